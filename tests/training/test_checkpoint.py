"""Checkpoints: what comes back, and what is refused by name."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from recsys.foundations import ConfigError, FormatError, MissingFileError
from recsys.training import CheckpointStore, Position, TrainingRun

MakeRun = Callable[..., TrainingRun]


def make_store(folder: Path, *, fingerprint: str = "f" * 64, **settings: Any) -> CheckpointStore:
    return CheckpointStore(folder, {"model.embedding_dim": 8, "seed": 0} | settings, fingerprint)


@pytest.fixture
def saved(make_run: MakeRun, tmp_path: Path) -> Path:
    """Save a checkpoint; give its folder."""
    position = Position(epoch=1, batch=2, step=8, records=[{"epoch": 1, "train_loss": 0.5}])
    make_store(tmp_path / "checkpoints").save_last(make_run().trainable, position)
    return tmp_path / "checkpoints" / "last"


def test_position_and_tensors_come_back(make_run: MakeRun, saved: Path) -> None:
    run = make_run()
    for value in run.step.model.state_dict().values():
        value.zero_()
    torch.rand(5)
    position = make_store(saved.parent).resume(run.trainable)
    assert (position.epoch, position.batch, position.step) == (1, 2, 8)
    assert position.records == [{"epoch": 1, "train_loss": 0.5}]
    fresh, back = make_run().trainable.tensors(), run.trainable.tensors()
    assert fresh.keys() == back.keys()
    # make_run seeds the global stream and then initialises: both have the same state
    assert all(torch.equal(fresh[name], back[name]) for name in fresh)


def test_the_folder_holds_two_files_and_no_pickle(saved: Path) -> None:
    assert sorted(file.name for file in saved.iterdir()) == ["state.json", "state.safetensors"]
    state = json.loads((saved / "state.json").read_text())
    assert (state["format"], state["format_version"]) == ("recsys-checkpoint", 1)
    assert state["files"].keys() == {"state.safetensors"}


def test_saving_again_replaces_the_checkpoint_and_leaves_the_best(
    make_run: MakeRun, saved: Path
) -> None:
    store, run = make_store(saved.parent), make_run()
    store.keep_as_best()
    best = (saved.parent / "best" / "state.safetensors").read_bytes()
    for value in run.step.model.parameters():
        value.data.zero_()
    store.save_last(run.trainable, Position(epoch=2))
    assert (saved.parent / "best" / "state.safetensors").read_bytes() == best
    assert (saved / "state.safetensors").read_bytes() != best
    assert sorted(path.name for path in saved.parent.iterdir()) == ["best", "last"]
    store.restore_best(run.step.model)
    assert any(value.any() for value in run.step.model.parameters())


def test_the_best_is_copied_where_the_disk_has_no_links(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    make_store(saved.parent).keep_as_best()
    best = saved.parent / "best"
    for name in ("state.json", "state.safetensors"):
        assert (best / name).read_bytes() == (saved / name).read_bytes()


def test_what_a_killed_process_left_half_written_is_swept_away(
    make_run: MakeRun, saved: Path
) -> None:
    half = saved.parent / ".tmp-0123-last"
    half.mkdir()
    (half / "state.safetensors").write_bytes(b"half")
    make_store(saved.parent).resume(make_run().trainable)
    assert not half.exists()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"model.embedding_dim": 16},
            "resume: model.embedding_dim is 16, but the checkpoint in .* was trained with 8; "
            "set it back, or start a new run",
        ),
        ({"optimizer.name": "adam"}, "resume: optimizer.name is 'adam', .* trained with None"),
        ({"fingerprint": "0" * 64}, r"the dataset is not the one .*\(f{12} there, 0{12} here\)"),
    ],
)
def test_another_setting_or_dataset_is_refused_with_both_values(
    make_run: MakeRun, saved: Path, changed: dict[str, Any], words: str
) -> None:
    store = make_store(saved.parent, **changed)
    with pytest.raises(ConfigError, match=words):
        store.resume(make_run().trainable)


def resume(make_run: MakeRun, saved: Path) -> None:
    make_store(saved.parent).resume(make_run().trainable)


def test_a_changed_byte_is_refused_by_name(make_run: MakeRun, saved: Path) -> None:
    path = saved / "state.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"last/state\.safetensors is damaged: its SHA-256"):
        resume(make_run, saved)


def test_a_cut_file_is_refused_by_name(make_run: MakeRun, saved: Path) -> None:
    path = saved / "state.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FormatError, match=r"last/state\.safetensors is damaged: \d+ bytes"):
        resume(make_run, saved)


def test_a_missing_file_is_refused_by_name(make_run: MakeRun, saved: Path) -> None:
    (saved / "state.safetensors").unlink()
    with pytest.raises(FormatError, match=r"last/state\.safetensors is missing"):
        resume(make_run, saved)
    (saved / "state.json").unlink()
    assert not make_store(saved.parent).has_last
    with pytest.raises(MissingFileError, match=r"last/state\.json does not exist"):
        resume(make_run, saved)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "another"}, r"state\.json is not a checkpoint of recsys"),
        ({"format_version": 2}, r"state\.json has format_version 2; this program reads 1"),
        ({"position": None}, r"state\.json is damaged"),
        ({"position": {"epoch": 1, "place": 2}}, r"state\.json is damaged"),
        ({"settings": None}, r"state\.json is damaged"),
        ({"files": []}, r"state\.json is damaged"),
        ({"files": {}}, r"state\.json is damaged"),
        ({"files": {"state.safetensors": {}}}, r"state\.json is damaged: its SHA-256"),
        ({"fingerprint": "another"}, r"state\.json is damaged: its SHA-256"),
        ({"state_sha256": "0" * 64}, r"state\.json is damaged: its SHA-256"),
    ],
)
def test_a_changed_state_is_refused_by_name(
    make_run: MakeRun, saved: Path, change: dict[str, Any], words: str
) -> None:
    path = saved / "state.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FormatError, match=words):
        resume(make_run, saved)


@pytest.mark.parametrize("content", ["", "[]", "{", '"text"'])
def test_a_state_that_is_none_is_refused_by_name(
    make_run: MakeRun, saved: Path, content: str
) -> None:
    (saved / "state.json").write_text(content)
    with pytest.raises(FormatError, match=r"state\.json is"):
        resume(make_run, saved)


def test_tensors_of_another_model_are_refused_by_name(make_run: MakeRun, saved: Path) -> None:
    # Settings are compared first; this is for a checkpoint that another release wrote.
    with pytest.raises(FormatError, match=r"state\.safetensors does not fit this run"):
        make_store(saved.parent).resume(make_run(dim=4).trainable)
    make_store(saved.parent).keep_as_best()
    with pytest.raises(FormatError, match=r"state\.safetensors does not fit this run"):
        make_store(saved.parent).restore_best(make_run(dim=4).step.model)
