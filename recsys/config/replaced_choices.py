"""Keys that an experiment sets for a choice which the command line replaced by another."""

import contextlib
import inspect
import logging
from collections.abc import Callable, Iterator
from typing import Any

import hydra
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_store import ConfigNode, ConfigStore
from hydra.core.default_element import ConfigDefault, GroupDefault, ResultDefault
from omegaconf import DictConfig, OmegaConf

from recsys.foundations import ConfigError

log = logging.getLogger(__name__)

_COMPOSE = "_compose_config_from_defaults_list"
_ARGUMENTS = ["self", "defaults", "repo"]
_said: set[str] = set()  # a command composes its settings more than once


@contextlib.contextmanager
def without_keys_of_replaced_choices() -> Iterator[None]:
    """While Hydra composes, leave out what an experiment sets for a choice that is not taken.

    ``experiment=sequential loss=full_softmax`` takes another loss than the experiment does. Keys
    that the experiment sets of its own loss and that the other one lacks are left out, with a
    warning that names them. A key that the experiment's own choice lacks is refused as ever, and
    so is one on the command line.

    Raises:
        ConfigError: Hydra is a release that composes in another way.
    """
    compose = _hydras_own()

    # Hydra has no hook between the choice of the files and their merging, which refuses the keys.
    def leave_out_and_compose(self: Any, defaults: list[ResultDefault], repo: Any) -> DictConfig:
        _leave_out(defaults, repo)
        composed: DictConfig = compose(self, defaults=defaults, repo=repo)
        return composed

    setattr(ConfigLoaderImpl, _COMPOSE, leave_out_and_compose)
    try:
        yield
    finally:
        setattr(ConfigLoaderImpl, _COMPOSE, compose)


def _hydras_own() -> Callable[..., Any]:
    """Give what Hydra composes with, which is private to it; another release may lack it."""
    found: Callable[..., Any] | None = getattr(ConfigLoaderImpl, _COMPOSE, None)
    if found is None or list(inspect.signature(found).parameters) != _ARGUMENTS:
        raise ConfigError(
            f"hydra-core {hydra.__version__} composes settings in another way than 1.3 does: "
            "pip install 'hydra-core>=1.3,<1.4'."
        )
    return found


def _leave_out(defaults: list[ResultDefault], repo: Any) -> None:
    """Take the keys out of the experiments, which `repo` has read once for this composition."""
    paths = [one.config_path for one in defaults if one.config_path is not None]
    primary = [one.config_path for one in defaults if one.primary]
    experiments = [path for path in dict.fromkeys(paths) if path.startswith("experiment/")]
    own: dict[str, str] = {}
    for path in [*primary[:1], *experiments]:
        own |= _choices_in(repo.load_config(path).defaults_list or [])
    for group, choice in own.items():
        taken = {path for path in paths if path.startswith(f"{group}/")}
        if f"{group}/{choice}" in taken:
            continue
        here, there = _keys(group, taken), _keys(group, _files_of(repo, f"{group}/{choice}"))
        for path in experiments if here else ():
            gone = _remove(repo.load_config(path).config, group, there - here)
            if gone:
                _say(path, gone, f"{group}={_name(group, paths)}")


def _choices_in(entries: list[Any]) -> dict[str, str]:
    """Give the choices that a file's defaults list makes, by group."""
    named = [one for one in entries if isinstance(one, GroupDefault)]
    return {(x.group or "").lstrip("/"): x.value for x in named if isinstance(x.value, str)}


def _files_of(repo: Any, path: str) -> set[str]:
    """Give a choice's file and those that its defaults list names, schemas among them."""
    found, waiting = set(), [path]
    while waiting:
        one = waiting.pop()
        loaded = None if one in found else repo.load_config(one)
        found.add(one)
        entries = (loaded.defaults_list or []) if loaded is not None else []
        folder = one.rpartition("/")[0]
        names = [x.path for x in entries if isinstance(x, ConfigDefault) and not x.is_self()]
        waiting += [f"{folder}/{name}" for name in names]
    return found


def _keys(group: str, files: set[str]) -> set[str]:
    """Give the keys of those schemas of a group that are among the files."""
    entries = ConfigStore.instance().repo.get(group, {})
    nodes = [entries.get(f"{file.removeprefix(f'{group}/')}.yaml") for file in files]
    return {str(key) for one in nodes if isinstance(one, ConfigNode) for key in one.node}


def _remove(config: Any, group: str, keys: set[str]) -> list[str]:
    """Take keys of a group out of an experiment; give those that were there."""
    held = OmegaConf.select(config, group)
    gone = [str(key) for key in held if str(key) in keys] if isinstance(held, DictConfig) else []
    for key in gone:
        del held[key]
    return [f"{group}.{key}" for key in gone]


def _name(group: str, paths: list[str]) -> str:
    """Give the choice taken: the last of the group's files, which stands on the others."""
    return [path for path in paths if path.startswith(f"{group}/")][-1].removeprefix(f"{group}/")


def _say(path: str, gone: list[str], choice: str) -> None:
    experiment, _, name = path.partition("/")
    text = f"{experiment}={name}: {', '.join(gone)} left out, which {choice} does not have."
    if text not in _said:
        _said.add(text)
        log.warning(text)
