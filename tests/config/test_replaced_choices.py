"""An experiment whose choice the command line replaces: its keys of that choice go with it."""

import logging
import re
from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from omegaconf import DictConfig

from pipelines.train import main
from recsys.config import TrainConfig, compose_config, register_schemas, to_plain
from recsys.config.composition import explain
from recsys.config.replaced_choices import without_keys_of_replaced_choices
from recsys.foundations import ConfigError


@pytest.mark.parametrize(
    ("experiment", "group", "choice", "gone"),
    [
        ("sequential", "loss", "full_softmax", {"num_sampled"}),
        ("features", "loss", "mixed", {"candidates"}),
        ("estimator/refined", "loss", "bpr", {"log_q"}),
        ("estimator/memory", "loss", "sampled_softmax", {"streams"}),
        ("tiny", "dataset", "ml-100k", {"num_users", "num_items", "num_interactions"}),
    ],
)
def test_another_choice_than_the_experiments_has_its_own_keys(
    experiment: str, group: str, choice: str, gone: set[str]
) -> None:
    config = compose_config("train", TrainConfig, {"experiment": experiment, group: choice})
    held = to_plain(config)[group]
    alone = to_plain(compose_config("train", TrainConfig, {group: choice}))[group]
    assert set(held) == set(alone)
    assert not gone & set(held)


def test_keys_that_both_choices_have_and_other_groups_stay_as_the_experiment_says() -> None:
    config = compose_config("train", TrainConfig, {"experiment": "sequential", "loss": "mixed"})
    plain = to_plain(config)
    assert plain["loss"]["num_sampled"] == 768
    assert plain["trainer"]["examples"] == "sequences"


def test_what_is_left_out_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    settings = {"experiment": "features", "loss": "in_batch"}
    with caplog.at_level(logging.WARNING, "recsys"):
        compose_config("train", TrainConfig, settings)
        compose_config("train", TrainConfig, settings)
    assert [record.getMessage() for record in caplog.records] == [
        "experiment=features: loss.candidates left out, which loss=in_batch does not have."
    ]


def test_a_key_on_the_command_line_that_the_choice_lacks_is_refused() -> None:
    settings = {"experiment": "sequential", "loss": "full_softmax", "loss.num_sampled": 5}
    with pytest.raises(ConfigError, match=r"^loss\.num_sampled is not a setting of this choice"):
        compose_config("train", TrainConfig, settings)


@pytest.mark.parametrize(
    ("keys", "overrides", "refused"),
    [
        ("streams: [drawn]", ["loss=bpr"], None),  # of the default, mixed
        ("candidates: trained", ["loss=bpr"], "loss.candidates"),  # of no choice that is its own
        ("candidates: trained", [], "loss.candidates"),
        ("num_sampeld: 3", ["loss=full_softmax"], "loss.num_sampeld"),
    ],
)
def test_a_key_that_the_experiments_own_choice_lacks_is_refused(
    tmp_path: Path, keys: str, overrides: list[str], refused: str | None
) -> None:
    (tmp_path / "experiment").mkdir()
    text = f"# @package _global_\nloss: {{{keys}}}\n"
    (tmp_path / "experiment" / "shop.yaml").write_text(text)
    if refused is None:
        assert set(composed(tmp_path, overrides).loss) == {"num_sampled"}
        return
    with pytest.raises(Exception, match=r"num_sampeld|candidates") as error:
        composed(tmp_path, overrides)
    assert (explain(error.value) or "").startswith(f"{refused} is not a setting")


def test_a_choice_of_ones_own_has_the_keys_of_the_schema_it_stands_on(tmp_path: Path) -> None:
    for folder in ("experiment", "loss"):
        (tmp_path / folder).mkdir()
    (tmp_path / "loss" / "mine.yaml").write_text("defaults: [mixed, _self_]\nnum_sampled: 7\n")
    text = (
        "# @package _global_\ndefaults: [{override /loss: mine}, _self_]\n"
        "loss: {streams: [drawn], num_sampled: 9}\n"
    )
    (tmp_path / "experiment" / "shop.yaml").write_text(text)
    assert composed(tmp_path, []).loss.streams == ["drawn"]
    assert dict(composed(tmp_path, ["loss=bpr"]).loss) == {"num_sampled": 9}


def test_hydra_is_left_as_it_was() -> None:
    before = ConfigLoaderImpl._compose_config_from_defaults_list
    with without_keys_of_replaced_choices():
        assert before is not ConfigLoaderImpl._compose_config_from_defaults_list
    assert before is ConfigLoaderImpl._compose_config_from_defaults_list


def test_hydra_is_left_as_it_was_after_an_error_too() -> None:
    before = ConfigLoaderImpl._compose_config_from_defaults_list
    with pytest.raises(KeyError, match="mine"), without_keys_of_replaced_choices():
        raise KeyError("mine")
    assert before is ConfigLoaderImpl._compose_config_from_defaults_list


@pytest.mark.parametrize("release", ["without", "with other arguments"])
def test_a_release_of_hydra_that_composes_otherwise_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], release: str
) -> None:
    name = "_compose_config_from_defaults_list"
    if release == "without":
        monkeypatch.delattr(ConfigLoaderImpl, name)
    else:
        monkeypatch.setattr(ConfigLoaderImpl, name, lambda self, tree: None)
    words = r"^hydra-core 1\.3\.\d+ composes settings in another way .* 'hydra-core>=1\.3,<1\.4'"
    with pytest.raises(ConfigError, match=words):
        compose_config("train", TrainConfig, {})
    monkeypatch.setattr("sys.argv", ["recsys train", "--cfg", "job"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert re.match(rf"recsys: error: {words[1:]}", capsys.readouterr().err)


def composed(folder: Path, overrides: list[str]) -> DictConfig:
    """Compose a training with the experiment `shop` of a folder of one's own."""
    register_schemas()
    given = [f"hydra.searchpath=[file://{folder}]", "experiment=shop", *overrides]
    with (
        initialize_config_module(config_module="recsys.conf", version_base="1.3"),
        without_keys_of_replaced_choices(),
    ):
        return compose("train", overrides=given)
