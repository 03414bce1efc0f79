"""What Hydra knows of the job under way."""

from pathlib import Path
from typing import Any, TypeVar

Value = TypeVar("Value", str, str | None)


def job_folder() -> Path:
    """Give the job's own folder; in a sweep each job has one."""
    return Path(_hydra().runtime.output_dir)


def user_folder() -> Path:
    """Give the folder where the user stands, whatever the job's working folder is."""
    return Path(_hydra().runtime.cwd)


def sweep_name() -> str | None:
    """Give what the jobs of one sweep share: the folder of the sweep; None outside a sweep."""
    from hydra.types import RunMode

    settings = _hydra()
    return str(settings.sweep.dir) if settings.mode == RunMode.MULTIRUN else None


def experiment_name() -> str | None:
    """Give the experiment that was asked for, `a,b` where several were; None if none was."""
    prefix = "experiment="
    given = [text for text in _hydra().overrides.task if text.startswith(prefix)]
    return given[-1].removeprefix(prefix).strip("[]") if given else None


def as_written(key: str, value: Value) -> Value | str:
    """Give an unquoted value digit for digit, where Hydra's grammar reads a number in it.

    ``items=1e5`` and ``items=1_000`` name the items "1e5" and "1_000", not 100000.0 and 1000.
    In a sweep Hydra hands on what it read, so quotes are needed there.
    """
    prefix = f"{key}="
    given = [text for text in _hydra().overrides.task if text.startswith(prefix)]
    if not given:
        return value
    text = given[-1].removeprefix(prefix)
    is_plain = text == text.strip() and not set(text) & set("'\"\\,[]{}()$")
    return text if is_plain and text not in ("null", "") else value


def list_as_written(key: str, value: Any) -> Any:
    """Give the unquoted values of a list digit for digit; see `as_written`.

    ``remove=[007,1e5]`` names the items "007" and "1e5".
    """
    prefix = f"{key}="
    given = [text for text in _hydra().overrides.task if text.startswith(prefix)]
    text = given[-1].removeprefix(prefix).strip() if given else ""
    inside = text[1:-1]
    if not (text[:1] == "[" and text[-1:] == "]") or set(inside) & set("'\"\\[]{}()$"):
        return value
    parts = [part.strip() for part in inside.split(",")]
    return parts if all(parts) else value


def _hydra() -> Any:
    """Give Hydra's own settings; the command's help works without loading Hydra."""
    from hydra.core.hydra_config import HydraConfig

    return HydraConfig.get()
