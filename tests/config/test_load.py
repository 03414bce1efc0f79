"""From keys and values to checked settings: every YAML file, quoting, paths, other Hydra apps."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_module
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.config import (
    BaselinesConfig,
    BenchmarkConfig,
    CompactConfig,
    DiagnoseConfig,
    EvaluateConfig,
    ExplainConfig,
    NeighboursConfig,
    PrepareConfig,
    RecommendConfig,
    ReindexConfig,
    ServeConfig,
    TrainConfig,
    UpdateConfig,
    compose_config,
    flatten,
    to_plain,
)
from recsys.config.composition import quoted
from recsys.foundations import ConfigError

CONF = Path(__file__).parents[2] / "conf"
STAGES: dict[str, Any] = {
    "baselines": (BaselinesConfig, {}),
    "benchmark": (BenchmarkConfig, {}),
    "compact": (CompactConfig, {"bundle": "b"}),
    "diagnose": (DiagnoseConfig, {}),
    "evaluate": (EvaluateConfig, {"bundle": "b"}),
    "explain": (ExplainConfig, {"bundle": "b", "user": "u"}),
    "index": (ReindexConfig, {"bundle": "b"}),
    "neighbours": (NeighboursConfig, {"bundle": "b"}),
    "prepare": (PrepareConfig, {}),
    "recommend": (RecommendConfig, {"bundle": "b", "output": "o"}),
    "serve": (ServeConfig, {"bundle": "b"}),
    "train": (TrainConfig, {}),
    "update": (UpdateConfig, {"bundle": "b", "remove": ["a"]}),
}
# What a choice cannot be without.
NEEDED = {
    ("dataset", "table"): {"dataset.interactions": "x.csv"},
    ("split", "given"): {"dataset": "table", "dataset.train": "x.csv"},
    ("index", "factory"): {"index.factory": "Flat"},
}


def test_every_primary_file_composes() -> None:
    names = sorted(file.stem for file in CONF.glob("*.yaml"))
    assert names == sorted(STAGES)
    for name in names:
        schema, needed = STAGES[name]
        assert isinstance(compose_config(name, schema, needed), schema)


def test_every_choice_of_every_group_composes() -> None:
    groups = sorted(path.name for path in CONF.iterdir() if any(path.glob("*.yaml")))
    assert groups == [
        *("dataset", "evaluation", "experiment", "features", "index", "loss", "model"),
        *("optimizer", "popularity", "sampler", "split", "streams", "tracking", "trainer"),
    ]
    choices = {group: sorted(f.stem for f in (CONF / group).glob("*.yaml")) for group in groups}
    assert sum(map(len, choices.values())) >= 35
    apart = {"dataset", "split", "sampler", "experiment"}  # some choices exclude each other
    alone = [{group: choice} for group in sorted(apart) for choice in choices[group]]
    together = [
        {group: names[turn % len(names)] for group, names in choices.items() if group not in apart}
        for turn in range(max(map(len, choices.values())))
    ]
    for chosen in alone + together:
        needed = {k: v for pair in chosen.items() for k, v in NEEDED.get(pair, {}).items()}
        assert isinstance(compose_config("train", TrainConfig, chosen | needed), TrainConfig)


def test_every_file_of_values_states_all_keys_of_its_schema() -> None:
    # A key that no file sets would be missing only for those who choose that file.
    for file in CONF.glob("*/*.yaml"):
        settings_of_file = yaml.safe_load(file.read_text())
        assert isinstance(settings_of_file, dict), file
        if file.parent.name not in ("experiment", "model"):
            assert "_self_" in settings_of_file["defaults"], file


def test_the_command_line_wins_over_an_experiment_and_an_experiment_over_the_defaults() -> None:
    default = compose_config("train", TrainConfig, {})
    tiny = compose_config("train", TrainConfig, {"experiment": "tiny"})
    mine = compose_config("train", TrainConfig, {"experiment": "tiny", "trainer.epochs": 7})
    assert tiny.dataset.name == "synthetic"
    assert tiny.trainer.epochs != default.trainer.epochs
    assert (mine.trainer.epochs, mine.dataset.name) == (7, "synthetic")


TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="$", exclude_categories=("Cc", "Cs", "Z")),
    min_size=1,
    max_size=12,
)


@settings(max_examples=15)
@given(text=TEXTS)
def test_any_text_reaches_the_settings_letter_for_letter(text: str) -> None:
    given_settings = {"tracking": "mlflow", "tracking.run_name": text}
    config = compose_config("train", TrainConfig, given_settings)
    assert vars(config.tracking)["run_name"] == text


def test_quotes_worked_by_hand() -> None:
    assert quoted("a b", mark='"') == '"a b"'
    assert quoted('say "x"', mark='"') == '"say \\"x\\""'
    assert quoted(r"C:\x", mark="'") == r"'C:\x'"
    assert quoted("end\\", mark="'") == r"'end\\'"


def test_lists_and_mappings_are_taken() -> None:
    config = compose_config(
        "train",
        TrainConfig,
        {
            "evaluation.k": [1, 10, 100],
            "model.user_tower.hidden": (32, 16),
            "model.user_tower.features": ["age", "a b"],
            "+features.items": {"title": {"kind": "text", "num_buckets": 64}},
        },
    )
    assert config.evaluation.k == [1, 10, 100]
    assert config.model.user_tower.hidden == [32, 16]
    assert config.model.user_tower.features == ["age", "a b"]
    assert config.features.items["title"].num_buckets == 64


def test_paths_start_where_the_user_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    config = compose_config(
        "train",
        TrainConfig,
        {
            "dataset": "table",
            "dataset.interactions": ["a/../b c.csv", "~/x.csv", "s3://bucket/x", "/abs.csv"],
            "dataset.items": "../items.csv",
            "run_dir": "~/runs/1",
            "tracking.artifact_root": "art",
        },
    )
    assert vars(config.dataset)["interactions"] == [
        f"{tmp_path}/b c.csv",
        "/home/me/x.csv",
        "s3://bucket/x",
        "/abs.csv",
    ]
    assert vars(config.dataset)["items"] == f"{tmp_path.parent}/items.csv"
    assert config.run_dir == "/home/me/runs/1"
    assert vars(config.tracking)["artifact_root"] == f"{tmp_path}/art"
    assert vars(config.tracking)["uri"] == f"sqlite:///{tmp_path}/mlflow.db"
    assert config.dataset.prepared_root == f"{tmp_path}/data/prepared"


def test_all_users_and_the_id_of_an_item_are_no_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.csv").write_text("item_id\n1\n")
    recommend = {"bundle": "b", "output": "o"}
    assert compose_config("recommend", RecommendConfig, recommend).users == "all"
    users = {**recommend, "users": "u.csv"}
    assert compose_config("recommend", RecommendConfig, users).users == f"{tmp_path}/u.csv"
    for items, expected in (("all", "all"), ("i42", "i42"), ("list.csv", f"{tmp_path}/list.csv")):
        given_settings = {"bundle": "b", "items": items}
        assert compose_config("neighbours", NeighboursConfig, given_settings).items == expected


def test_works_inside_another_hydra_app() -> None:
    with initialize_config_module(config_module="recsys.conf", version_base="1.3"):
        assert compose_config("train", TrainConfig, {"seed": 5}).seed == 5
        assert compose("train", overrides=["seed=6"]).seed == 6


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"loss.num_sampled": 2**63}, "loss.num_sampled"),
        ({"loss": "monte_carlo", "loss.num_sampled": 10**30}, "loss.num_sampled"),
        ({"streams.memory.size": 2**63}, "streams.memory.size"),
        ({"model.user_tower.hidden": [8, 2**63]}, "model.user_tower.hidden"),
        ({"seed": -(10**30)}, "seed"),
    ],
)
def test_numbers_that_no_array_can_count_with_are_refused(
    settings: dict[str, Any], key: str
) -> None:
    got = next(value for name, value in settings.items() if name == key)
    number = got[-1] if isinstance(got, list) else got
    with pytest.raises(ConfigError) as refusal:
        compose_config("train", TrainConfig, settings)
    words = f"{key} must be a whole number of at most 64 bits, got {number}."
    assert str(refusal.value) == words


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("optimizer.learning_rate", 1e300),
        ("optimizer.dense_weight_decay", 1e39),
        ("model.temperature.initial", 1e300),
        ("sampler.alpha", -1e308),
    ],
)
def test_numbers_past_those_of_a_tensor_are_refused(key: str, value: float) -> None:
    with pytest.raises(ConfigError) as refusal:
        compose_config("train", TrainConfig, {key: value})
    assert str(refusal.value) == f"{key} must be at most 3.4e+38 in size, got {value}."


def test_two_runs_of_one_process_have_folders_of_their_own() -> None:
    folders = {compose_config("train", TrainConfig, {}).run_dir for _ in range(2)}
    assert len(folders) == 2


def test_flat_and_plain_settings() -> None:
    config = compose_config("train", TrainConfig, {"+features.items": {"t": {"kind": "text"}}})
    flat, plain = flatten(config), to_plain(config)
    assert flat["model.user_tower.history.length"] == 50
    assert flat["evaluation.k"] == [1, 5, 10, 20, 50, 100]
    assert flat["features.items"]["t"]["kind"] == "text"
    chosen = {key: flat[key] for key in ("loss", "sampler", "popularity", "dataset", "tracking")}
    assert chosen == {
        "loss": "mixed",
        "sampler": "popularity",
        "popularity": "exact",
        "dataset": "ml-100k",
        "tracking": "mlflow",
    }
    assert "optimizer" not in flat  # its choices differ by optimizer.name
    assert plain["model"]["user_tower"]["history"]["length"] == 50
    assert yaml.safe_load(yaml.safe_dump(plain)) == plain
