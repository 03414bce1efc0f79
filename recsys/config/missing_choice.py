"""Refusals of a settings file that is not there, with the names of those that are."""

import difflib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from hydra.errors import MissingConfigException


def explain_missing(error: MissingConfigException) -> str:
    """Explain a choice that its group does not have, or another file that is not there.

    Args:
        error: Raised while Hydra composed settings.
    """
    text = str(error)
    path = PurePosixPath(error.missing_cfg_file or "")
    if "primary config" in text:
        return f"--config-name: there are no settings of the name '{path}'."
    known = re.search(r"Available options in '(.*)':", text)
    group = known[1] if known else path.parts[0]
    asked_for_by = re.match(r"In '(.*?)'", text)
    in_a_file = asked_for_by is not None and "/" in asked_for_by[1]  # a choice's defaults list
    choices = [name for name in error.options or () if not name.endswith("_schema")]
    nested = _nested_choices(group, text)
    if in_a_file or not (known or nested):
        return f"{text.splitlines()[0].rstrip('.')}."
    name = "/".join(path.relative_to(group).parts)
    experiments = [] if group == "experiment" else _nested_choices("experiment", text)
    hint = _hint(name, choices or _plain(nested), nested, experiments)
    return f"{group}={name} is not a choice{hint}"


def _hint(name: str, choices: list[str], nested: list[str], experiments: list[str]) -> str:
    """Suggest the choice or the experiment that was meant; list where it was looked for."""
    folder, _, last = name.rpartition("/")
    inside: dict[str, list[str]] = {}
    for other in nested:
        where, _, its_name = other.rpartition("/")
        if where:
            inside.setdefault(where, []).append(its_name)
    if folder in inside or name in inside:
        where = folder if folder in inside else name
        full_names = {one: f"{where}/{one}" for one in inside[where]}
        listed = f"In {where}/ there are {', '.join(inside[where])}."
    else:
        full_names = {one.rpartition("/")[2]: one for one in [*nested, *choices]}
        listed = f"There are {', '.join([*choices, *(f'{one}/NAME' for one in inside)])}."
    near = [full_names[one] for one in difflib.get_close_matches(last, full_names, n=1)]
    near += [f"experiment={one}" for one in experiments if one.rpartition("/")[2] == name]
    return f"; did you mean {near[0]}? {listed}" if near else f". {listed}"


def _plain(nested: list[str]) -> list[str]:
    return [name for name in nested if "/" not in name]


def _nested_choices(group: str, text: str) -> list[str]:
    """List the group's choices, those in its folders too, from the search path in the text."""
    found: set[str] = set()
    for folder in _search_path(text):
        files = (folder / group).rglob("*.yaml")
        found |= {str(file.relative_to(folder / group).with_suffix("")) for file in files}
    return sorted(found)


def _search_path(text: str) -> Iterator[Path]:
    """Give the folders that Hydra's message names as searched."""
    for scheme, where in re.findall(r"^\s*provider=.*?, path=(\w+)://(.*)$", text, re.MULTILINE):
        if scheme == "file":
            yield Path(where)
        elif scheme == "pkg":
            spec = importlib.util.find_spec(where)
            yield from map(Path, spec.submodule_search_locations or () if spec else ())
