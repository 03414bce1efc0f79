"""A run that was killed, resumed or prolonged ends with the bytes of one that was not."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.train import train
from recsys.bundle import read_bundle
from recsys.config import TrainConfig, compose_config
from recsys.foundations import ConfigError, FormatError

Train = Callable[..., Path]
OPTIMIZERS = ["rowwise_adagrad", "adam", "lazy_adam"]


def bundle_id(bundle: Path) -> str:
    return read_bundle(bundle).bundle_id


def numbers_of_epochs(folder: Path) -> list[dict[str, float]]:
    """Give the records of the epochs without the one that is a clock's."""
    state = json.loads((folder / "checkpoints" / "last" / "state.json").read_text())
    drop = "rows_per_second"
    return [{k: v for k, v in r.items() if k != drop} for r in state["position"]["records"]]


@pytest.fixture(scope="module")
def straight(train_in: Train, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Train four epochs in one go, with each optimiser."""
    root = tmp_path_factory.mktemp("straight")
    for name in OPTIMIZERS:
        train_in(root / name, {"optimizer": name, "model.user_tower.use_id": True})
    return {name: root / name for name in OPTIMIZERS}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_two_epochs_and_two_more_are_four(
    train_in: Train, straight: dict[str, Path], optimizer: str, tmp_path: Path
) -> None:
    settings = {"optimizer": optimizer, "model.user_tower.use_id": True}
    train_in(tmp_path, settings | {"trainer.epochs": 2})
    bundle = train_in(tmp_path, settings | {"resume": True})
    assert numbers_of_epochs(tmp_path) == numbers_of_epochs(straight[optimizer])
    assert bundle_id(bundle) == bundle_id(straight[optimizer] / "bundle")
    reports = [json.loads((f / "report.json").read_text()) for f in (tmp_path, straight[optimizer])]
    assert reports[0] == reports[1]


def test_twice_the_same_run_gives_the_same_bytes(
    train_in: Train, straight: dict[str, Path], tmp_path: Path
) -> None:
    settings = {"optimizer": "adam", "model.user_tower.use_id": True}
    assert bundle_id(train_in(tmp_path, settings)) == bundle_id(straight["adam"] / "bundle")
    other = train_in(tmp_path / "other", settings | {"seed": 1})
    assert bundle_id(other) != bundle_id(straight["adam"] / "bundle")


# Ends itself by SIGKILL with half of a checkpoint written.
KILLED = """
import json, os, signal, sys
from pathlib import Path
from pipelines.train import train
from recsys.config import TrainConfig, compose_config
from recsys.training import checkpoint

settings, count = json.loads(sys.argv[1]), 0
save_file = checkpoint.save_file

def save(tensors, path):
    global count
    count += 1
    save_file(tensors, path)
    if count == 9:
        path.write_bytes(path.read_bytes()[:1000])
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.save_file = save
train(compose_config("train", TrainConfig, settings), Path(settings["run_dir"]))
"""


def test_a_run_killed_while_it_writes_a_checkpoint_ends_with_the_same_bytes(
    train_in: Train, straight: dict[str, Path], tiny: dict[str, Any], tmp_path: Path
) -> None:
    changes = {
        "optimizer": "lazy_adam",
        "model.user_tower.use_id": True,
        "trainer.checkpoint_steps": 5,
    }
    settings = tiny | changes | {"run_dir": str(tmp_path)}
    process = subprocess.run(
        [sys.executable, "-c", KILLED, json.dumps(settings)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    position = json.loads((tmp_path / "checkpoints/last/state.json").read_text())["position"]
    assert position["batch"] > 0  # in mid-epoch
    assert not (tmp_path / "bundle").exists()
    bundle = train_in(tmp_path, changes | {"resume": True})
    assert bundle_id(bundle) == bundle_id(straight["lazy_adam"] / "bundle")
    assert numbers_of_epochs(tmp_path) == numbers_of_epochs(straight["lazy_adam"])
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["best", "last"]


def test_a_bundle_that_was_not_written_yet_is_written_by_the_resumption(
    train_in: Train, straight: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"optimizer": "adam", "model.user_tower.use_id": True}

    def fail(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pipelines.train.write_bundle", fail)
        with pytest.raises(KeyboardInterrupt):
            train_in(tmp_path, settings)
    bundle = train_in(tmp_path, settings | {"resume": True})
    assert bundle_id(bundle) == bundle_id(straight["adam"] / "bundle")


def test_a_folder_with_a_run_is_refused_without_resume_and_stays(
    train_in: Train, straight: dict[str, Path]
) -> None:
    folder = straight["adam"]
    before = bundle_id(folder / "bundle")
    with pytest.raises(ConfigError, match=r"holds a run already; give another run_dir, or resume"):
        train_in(folder)
    assert bundle_id(folder / "bundle") == before


def test_resuming_where_no_run_stands_is_refused_and_writes_nothing(
    train_in: Train, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"resume=true, but run_dir=.* holds no run"):
        train_in(tmp_path / "nothing", {"resume": True})
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model.embedding_dim": 8}, r"model\.embedding_dim is 8, .* trained with 16"),
        ({"optimizer": "sgd"}, r"optimizer\.learning_rate is 0\.5, .* trained with 0\.005"),
        ({"seed": 3}, r"seed is 3, .* trained with 0"),
        ({"trainer.batch_size": 64}, r"trainer\.batch_size is 64, .* trained with 128"),
        ({"dataset.seed": 5}, "the dataset is not the one that the checkpoint"),
    ],
)
def test_a_changed_setting_that_shapes_the_training_is_refused_with_both_values(
    train_in: Train, straight: dict[str, Path], changes: dict[str, Any], words: str
) -> None:
    settings = {"optimizer": "adam", "model.user_tower.use_id": True, "resume": True}
    with pytest.raises(ConfigError, match=f"resume: {words}"):
        train_in(straight["adam"], settings | changes)


def test_settings_that_shape_no_step_may_change(
    train_in: Train, straight: dict[str, Path], tmp_path: Path
) -> None:
    settings = {"optimizer": "adam", "model.user_tower.use_id": True}
    train_in(tmp_path, settings | {"trainer.epochs": 2})
    changes = {"resume": True, "index": "hnsw", "evaluation.k": [3], "trainer.patience": 9}
    train_in(tmp_path, settings | changes)
    assert numbers_of_epochs(tmp_path) == numbers_of_epochs(straight["adam"])


def test_more_epochs_are_refused_where_they_change_the_rate_of_every_step(
    train_in: Train, tmp_path: Path
) -> None:
    settings = {"optimizer.schedule": "cosine", "trainer.epochs": 1}
    train_in(tmp_path, settings)
    with pytest.raises(ConfigError, match=r"resume: trainer\.epochs is 2, .* trained with 1"):
        train_in(tmp_path, settings | {"trainer.epochs": 2, "resume": True})


def test_a_damaged_checkpoint_is_refused_by_name(train_in: Train, tmp_path: Path) -> None:
    train_in(tmp_path, {"trainer.epochs": 1})
    path = tmp_path / "checkpoints" / "last" / "state.safetensors"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"checkpoints/last/state\.safetensors is damaged"):
        train_in(tmp_path, {"trainer.epochs": 2, "resume": True})


def test_a_run_whose_data_are_refused_can_be_started_again(
    tiny: dict[str, Any], tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("user_id,item_id,timestamp\na,x,1700000000\na,y,soon\n")
    made_up = "dataset.num_"
    settings = {key: value for key, value in tiny.items() if not key.startswith(made_up)} | {
        "dataset": "table",
        "dataset.interactions": str(log),
        "split": "leave_last_out",
        "run_dir": str(tmp_path / "run"),
        "trainer.epochs": 1,
    }
    with pytest.raises(ValueError, match="soon"):
        train(compose_config("train", TrainConfig, settings), tmp_path / "run")
    rows = [
        f"u{user},i{(user * item) % 7},{1700000000 + item}"
        for user in range(9)
        for item in (1, 2, 3)
    ]
    log.write_text("\n".join(["user_id,item_id,timestamp", *rows]))
    assert train(compose_config("train", TrainConfig, settings), tmp_path / "run").is_dir()
