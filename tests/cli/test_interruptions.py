"""Ctrl-C and SIGTERM where another error comes over them, as in OmegaConf's own clean-up."""

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from omegaconf import OmegaConf
from omegaconf.errors import ConfigKeyError

from recsys.cli.interruptions import interruptible_composition
from recsys.cli.report import guarded
from recsys.foundations import DataError


def raise_over(first: BaseException) -> int:
    """Raise OmegaConf's error in a `finally` that another one passes."""
    config = OmegaConf.create({"a": 1})
    OmegaConf.set_struct(config, True)
    try:
        raise first
    finally:
        config["defaults"] = 1


def make_class_interrupted() -> int:
    class Field:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    class Owner:  # Python may raise a RuntimeError from it
        field = Field()

    return 0


def test_ctrl_c_under_an_error_of_clean_up_is_an_interruption(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert guarded(lambda: raise_over(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == "recsys: interrupted\n"


def test_ctrl_c_while_a_class_is_made_is_an_interruption(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert guarded(make_class_interrupted) == 130
    assert capsys.readouterr().err == "recsys: interrupted\n"


def test_the_exit_of_a_signal_under_another_error_is_kept() -> None:
    with pytest.raises(SystemExit) as leaving:
        guarded(lambda: raise_over(SystemExit(143)))
    assert leaving.value.code == 143


@pytest.mark.parametrize("first", [DataError("a file"), SystemExit(2), SystemExit("a text")])
def test_an_error_over_anything_else_is_told_as_ever(
    first: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(lambda: raise_over(first)) == 2
    assert "defaults is not a setting" in capsys.readouterr().err


def test_who_asks_for_tracebacks_sees_the_error_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECSYS_TRACEBACK", "1")
    assert guarded(lambda: raise_over(KeyboardInterrupt())) == 130
    assert "ConfigKeyError" in capsys.readouterr().err


def test_hydra_passes_over_no_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: object) -> None:
        raise_over(KeyboardInterrupt())

    monkeypatch.setattr(ConfigLoaderImpl, "load_configuration", interrupted)
    loader = ConfigLoaderImpl.__new__(ConfigLoaderImpl)
    with interruptible_composition(), pytest.raises(KeyboardInterrupt):
        loader.load_configuration()  # type: ignore[call-arg]
    with pytest.raises(ConfigKeyError):
        loader.load_configuration()  # type: ignore[call-arg]
