"""Refusals of Hydra and OmegaConf in one sentence that names the setting and what is right."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

from hydra.core.config_store import ConfigNode, ConfigStore
from hydra.errors import (
    HydraException,
    MissingConfigException,
    OverrideParseException,
    SearchPathException,
)
from omegaconf import Container, OmegaConf
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)
from yaml import YAMLError

from recsys.config.missing_choice import explain_missing
from recsys.config.unknown_group import explain_unknown_group

_MOST_LISTED = 12
_TYPES = {"Integer": "an integer", "Float": "a number", "bool": "true or false"}


def explain(error: BaseException, stage: str | None = None) -> str | None:
    """Say in one sentence why settings were refused.

    Args:
        error: Raised while Hydra composed or converted settings.
        stage: The command whose settings they are, where that is known.

    Returns:
        The sentence, or None for an error of another kind.
    """
    match error:
        case OverrideParseException():
            return _grammar(error.override)
        case MissingConfigException():
            return explain_missing(error)
        case SearchPathException():
            folder = re.sub(r".*'(.*)'.*", r"\1", str(error))
            return f"--config-dir: the folder {folder} does not exist."
        case UserWarning() if "is not available" in str(error):
            path = re.sub(r".*path=(.*) is not available.*", r"\1", str(error))
            return f"hydra.searchpath: {path} does not exist."
        case UnicodeDecodeError():
            return f"a settings file is not UTF-8 text: {error.reason} at byte {error.start}."
        case YAMLError():
            return f"not a YAML file: {_joined(error)}."
        case HydraException() | OmegaConfBaseException():
            inner = _innermost(error)
            return _composed(str(error), stage) if inner is None else _setting(inner)
    return None


def _grammar(override: str) -> str:
    """Explain an override that Hydra's grammar refuses."""
    key, equals, value = override.partition("=")
    if not equals:
        return f"{override!r} is not a setting: write NAME=VALUE."
    if not re.fullmatch(r"[~+]*[\w./@:-]+", key, re.ASCII):
        return f"{key!r} is not the name of a setting, in {override!r}."
    text = quoted(value, mark='"')
    return (
        f"{key}: the value {value!r} holds characters that need quotes: "
        f"write '{key}={text}', with both kinds."
    )


def quoted(text: str, *, mark: str) -> str:
    """Write a text in Hydra's grammar, between quotes of the kind `mark`.

    A quote inside gets a backslash, and so do backslashes that stand right before one.
    """
    inner = re.sub(rf"(\\*)({mark}|\Z)", lambda m: m[1] * 2 + (m[2] and f"\\{mark}"), text)
    return f"{mark}{inner}{mark}"


def explain_group(error: ValueError, overrides: Sequence[str]) -> str:
    """Say which override gives a group of settings something that is no choice's name.

    Args:
        error: Of Hydra, which does not name it.
        overrides: As the shell gave them.
    """
    text = f"{_joined(error).rstrip('.')}."
    if "Config group override" not in text:
        return text
    groups = {name for name, node in ConfigStore.instance().repo.items() if isinstance(node, dict)}
    suspects = [
        one
        for one in overrides
        if re.fullmatch(r"[\w/@+]+=(-?[\d.].*|\{.*|null|true|false)", one)
        and re.split(r"[/@=]", one.lstrip("+"))[0] in groups | {"experiment"}
    ]
    return f"a group takes the name of one of its choices, got {' '.join(suspects)}. {text}"


def _composed(text: str, stage: str | None) -> str:
    """Put a composition error of Hydra, which has no setting's error inside, in one line."""
    unknown = explain_unknown_group(text, stage)
    if unknown is not None:
        return unknown
    ambiguous = re.match(r"Ambiguous value for argument '(.*?)=(.*)'\n", text)
    if ambiguous:
        key, value = ambiguous.groups()
        return (
            f"{key}: {value!r} holds a comma: write {key}=[{value}] for a list, "
            f"'{key}=\"{value}\"' for a text, or add --multirun to run a job for each."
        )
    there = re.match(r"Could not append to config. An item is already at '(.*?)'", text)
    if there:
        return f"{there[1]} is a setting already: write {there[1]}=VALUE, without '+'."
    must = re.match(r"You must specify '(.*?)'.*?Available options:(.*)", text, re.DOTALL)
    if must:
        choices = [name for name in must[2].split() if not name.endswith("_schema")]
        return f"{must[1]} must be given: {must[1]}=CHOICE, of {', '.join(choices)}."
    return re.sub(
        r"\s*(Config search path|See https|To append to).*", "", _joined(text), flags=re.DOTALL
    )


def _setting(error: OmegaConfBaseException) -> str:
    """Explain a refusal of OmegaConf, which knows the setting's full name."""
    key = error.full_key or ""
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, MissingMandatoryValue):
        key = key or first.rpartition(": ")[2]
        return f"{key} must be given: {key}=VALUE."
    if isinstance(error, ConfigAttributeError | ConfigKeyError):
        return f"{key} is not a setting{_hint(key, error.parent_node)}"
    if "is not a ListConfig" in first:
        return f"{key} must be a list, got {error.value!r}: write {key}=[{error.value}]."
    if "is not Optional" in first:
        return f"{key} must not be null."
    wanted = re.search(r"could not be converted to (\w+)|is not a valid (bool)", first)
    if wanted:
        name = wanted[1] or wanted[2]
        kind = _TYPES.get(name, f"of type {name}")
        return f"{key} must be {kind}, got {error.value!r}."
    return f"{key}: {first.rstrip('.')}." if key else f"{first.rstrip('.')}."


def _hint(key: str, parent: Any) -> str:
    """Suggest the setting that was meant, or say which choice has it or what there is here."""
    if not isinstance(parent, Container):
        return "."
    names = [name for name in _names(parent._get_root()) if not name.startswith("hydra")]
    last = key.rpartition(".")[2]
    where = key.rpartition(".")[0]
    close = difflib.get_close_matches(key, names, n=1, cutoff=0.85)
    others = _choices_with(key)
    if others and not close:
        return f" of this choice; it belongs to {others}."
    if where and OmegaConf.get_type(parent) is dict:  # of names that are the reader's own
        return f" yet; with a + in front it becomes one: +{key}=VALUE."
    near = close or [name for name in names if name.rpartition(".")[2] == last][:3]
    near = near or difflib.get_close_matches(key, names, n=1, cutoff=0.75)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    beside = [str(name) for name in parent if str(name) != "hydra"]
    listed = ", ".join(beside[:_MOST_LISTED]) + (", ..." if len(beside) > _MOST_LISTED else "")
    return f"; {where or 'there'} {'has' if where else 'are'} {listed}." if beside else "."


def _choices_with(key: str) -> str:
    """List the choices of the key's group whose schema holds the key: ``loss=mixed and bpr``."""
    group, _, rest = key.partition(".")
    entries = ConfigStore.instance().repo.get(group, {})
    if not rest or not isinstance(entries, dict):
        return ""
    choices = [
        name.removesuffix(".yaml").removesuffix("_schema")
        for name, entry in entries.items()
        if isinstance(entry, ConfigNode) and rest in _names(entry.node)
    ]
    listed = " and ".join([", ".join(choices[:-1]), choices[-1]] if choices[1:] else choices)
    return f"{group}={listed}" if choices else ""


def _names(root: Any) -> list[str]:
    """List the full names of all settings and groups of settings."""
    found: list[str] = []

    def walk(value: Any, prefix: str) -> None:
        for name, item in value.items() if isinstance(value, dict) else ():
            found.append(f"{prefix}{name}")
            walk(item, f"{prefix}{name}.")

    walk(OmegaConf.to_container(root, resolve=False, throw_on_missing=False), "")
    return found


def _innermost(error: BaseException) -> OmegaConfBaseException | None:
    """Give OmegaConf's error inside one of Hydra's: the outermost that knows its setting."""
    current: BaseException | None = error
    while current is not None:
        if isinstance(current, OmegaConfBaseException):
            return current
        current = current.__cause__ or current.__context__
    return None


def _joined(value: object) -> str:
    return " ".join(line.strip() for line in str(value).splitlines() if line.strip())
