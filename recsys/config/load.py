"""From the composed tree to checked dataclasses; `DictConfig` ends here."""

import dataclasses
import math
import os
import uuid
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, MissingMandatoryValue, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from recsys.config import schema_stages
from recsys.config.composition import explain, explain_group, quoted
from recsys.config.groups import GROUPS, STAGES
from recsys.config.replaced_choices import without_keys_of_replaced_choices
from recsys.foundations import ConfigError

Config = TypeVar("Config", bound=schema_stages.StageConfig)

_SQLITE = "sqlite:///"
_END = 2**63
_LARGEST = 3.4e38  # about the largest float32


def _stamp() -> str:
    return f"{datetime.now():%Y-%m-%d_%H-%M-%S-%f}-{uuid.uuid4().hex[:6]}"


_STARTED = _stamp()  # one a process: a command composes its settings more than once


def register_schemas() -> None:
    """Tell Hydra the schemas, under the names that the defaults lists use. Idempotent."""
    store = ConfigStore.instance()
    for stage, schema in STAGES.items():
        store.store(name=f"{stage}_schema", node=schema)
    for group, choices in GROUPS.items():
        for choice, schema in choices.items():
            store.store(group=group, name=f"{choice}_schema", node=schema)
    OmegaConf.register_new_resolver("started", lambda: _STARTED, replace=True)
    OmegaConf.register_new_resolver("expand", os.path.expanduser, replace=True)


def load(tree: DictConfig, schema: type[Config], *, folder: Path | None = None) -> Config:
    """Turn a composed tree into the schema's dataclass, checked, with absolute paths.

    Args:
        tree: As Hydra composed it.
        schema: The stage's schema.
        folder: Where relative paths start; where the user stands if not given.

    Raises:
        ConfigError: A value is missing, of a wrong type or out of range; the key is named.
    """
    tree = tree.copy()
    OmegaConf.set_struct(tree, False)
    tree.pop("experiment", None)
    try:
        config = OmegaConf.to_object(tree)
    except MissingMandatoryValue as error:
        key = error.full_key or str(error).rpartition(": ")[2]
        raise ConfigError(f"{key} must be given: {key}=...") from error
    except OmegaConfBaseException as error:
        raise ConfigError(f"{error.full_key}: {str(error).splitlines()[0]}") from error
    if not isinstance(config, schema):
        raise ConfigError(f"the settings do not make a {schema.__name__}.")
    _check_sizes(config, "")
    _resolve_paths(config, folder or Path.cwd(), "")
    return config


def compose_config(stage: str, schema: type[Config], settings: Mapping[str, Any]) -> Config:
    """Compose a stage's settings without the command line.

    Args:
        stage: The name of the primary file, such as `train`.
        schema: Its schema.
        settings: Key, dots inside -> value; the choice of a group is the group's own key.

    Raises:
        ConfigError: As `load`.
    """
    register_schemas()
    now = _stamp()
    OmegaConf.register_new_resolver("started", lambda: now, replace=True)
    overrides = [f"{key}={_literal(value)}" for key, value in settings.items()]
    outer, GlobalHydra.instance().hydra = GlobalHydra.instance().hydra, None  # we may be in an app
    try:
        with (
            initialize_config_module(config_module="recsys.conf", version_base="1.3"),
            without_keys_of_replaced_choices(),
        ):
            tree = compose(stage, overrides=overrides)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(explain(error, stage) or str(error)) from error
    except ValueError as error:
        raise ConfigError(explain_group(error, overrides)) from error
    finally:
        GlobalHydra.instance().hydra = outer
    return load(tree, schema)


def _literal(value: Any) -> str:
    """Write a value in Hydra's grammar of overrides."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return repr(int(value))
        case float():  # also NumPy's
            return repr(float(value))
        case Mapping():
            return "{" + ",".join(f"{key}:{_literal(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_literal, value)) + "]"
        case _:
            return quoted(str(value), mark="'")


def _check_sizes(value: Any, key: str) -> None:
    """Check that every number is one that tensors hold: whole ones in 64 bits, others in float32.

    Whether a number may be infinite is for its own schema to say.

    Raises:
        ConfigError: One is not; the key is named.
    """
    match value:
        case int() | float():
            _check_size(value, key)
        case list():
            for item in value:
                _check_sizes(item, key)
        case dict():
            for name, item in value.items():
                _check_sizes(item, f"{key}.{name}")
        case _ if dataclasses.is_dataclass(value):
            for item in dataclasses.fields(value):
                name = f"{key}.{item.name}" if key else item.name
                _check_sizes(getattr(value, item.name), name)


def _check_size(value: float, key: str) -> None:
    if isinstance(value, int) and not -_END <= value < _END:
        raise ConfigError(f"{key} must be a whole number of at most 64 bits, got {value}.")
    if isinstance(value, float) and _LARGEST < abs(value) < math.inf:
        raise ConfigError(f"{key} must be at most {_LARGEST:g} in size, got {value}.")


def _resolve_paths(config: Any, folder: Path, prefix: str) -> None:
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        if item.metadata.get("path"):
            if value == "":
                raise ConfigError(f"{prefix}{item.name} must not be empty.")
            if isinstance(value, list) and item.metadata.get("or_ids", False):
                continue  # ids, not paths
            path = _absolute(value, folder)
            is_word = value in item.metadata.get("words", ())
            is_id = item.metadata.get("or_id", False) and not Path(path).is_file()
            setattr(config, item.name, value if is_word or is_id else path)
        elif dataclasses.is_dataclass(value):
            _resolve_paths(value, folder, f"{prefix}{item.name}.")


def _absolute(value: Any, folder: Path) -> Any:
    if isinstance(value, list):
        return [_absolute(item, folder) for item in value]
    if isinstance(value, str) and value.startswith(_SQLITE):
        return _SQLITE + _absolute(value.removeprefix(_SQLITE), folder)
    if not isinstance(value, str) or "://" in value:
        return value  # null, or a URI
    return os.path.normpath(folder / Path(value).expanduser())
