"""docs/settings.md names every key of every command, with its default; and no other."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from recsys.config import register_schemas

COMMON = {"run_dir", "seed", "threads"}


@dataclass(frozen=True)
class Row:
    """A key of the page: where it is explained, and the default that stands there."""

    scope: str  # "every command", "recsys train", "group loss"
    choice: str | None  # the dataset choice of its heading
    key: str
    default: str


@functools.cache
def tree_of(stage: str, *overrides: str) -> dict[str, Any]:
    """Compose a command's settings as plain values."""
    register_schemas()
    with initialize_config_module(config_module="recsys.conf", version_base="1.3"):
        composed = compose(stage, overrides=list(overrides))
    plain = OmegaConf.to_container(composed, resolve=False)
    assert isinstance(plain, dict)
    plain.pop("experiment", None)
    return {str(name): value for name, value in plain.items()}


def leaves(value: Any, prefix: str = "") -> dict[str, Any]:
    """Flatten to dotted keys; the free mappings of the features group stay whole."""
    if not isinstance(value, dict) or re.match(r"features\.(items|users|context)\.", prefix):
        return {prefix.rstrip("."): value}
    if not value and prefix.count(".") < 2:
        return {}  # a choice without keys
    flat: dict[str, Any] = {} if value else {prefix.rstrip("."): value}
    for name, item in value.items():
        flat |= leaves(item, f"{prefix}{name}.")
    return flat


def groups(root: Path) -> dict[str, list[str]]:
    """List the choices of each group, those in its folders too, from the files."""
    found: dict[str, list[str]] = {}
    for path in sorted((root / "conf").glob("*/**/*.yaml")):
        group, *name = path.relative_to(root / "conf").with_suffix("").parts
        found.setdefault(group, []).append("/".join(name))
    return found


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    """Give the page."""
    return (root / "docs" / "settings.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def rows(text: str) -> list[Row]:
    """Give the rows of the tables of keys."""
    found, scope, choice = [], "", None
    for line in text.splitlines():
        if line.startswith("## "):
            scope, choice = line.removeprefix("## ").lower(), None
        elif line.startswith("### "):
            choice = line.removeprefix("### ")
        row = re.match(r"\| `([a-z_.0-9]+)` \| (.*?) \| .*\|$", line)
        if row:
            found.append(Row(scope, choice, row[1], row[2]))
    return found


def expected_keys(root: Path, stages: list[str]) -> dict[str, set[str]]:
    """List the keys of each scope, from the composed trees."""
    keys: dict[str, set[str]] = {"every command": COMMON}
    for stage in stages:
        primary = yaml.safe_load((root / "conf" / f"{stage}.yaml").read_text(encoding="utf-8"))
        chosen = {name for one in primary["defaults"] if isinstance(one, dict) for name in one}
        own = {name: value for name, value in tree_of(stage).items() if name not in chosen}
        keys[f"recsys {stage}"] = set(leaves(own)) - COMMON
    for group, choices in groups(root).items():
        if group == "experiment":
            continue
        found: set[str] = set()
        for choice in choices:
            found |= set(leaves({group: tree_of("train", f"{group}={choice}")[group]}))
        keys[f"group {group}"] = {key for key in found if key != group}
    return keys


def test_the_page_has_every_key_and_no_other(
    rows: list[Row], root: Path, stages: list[str]
) -> None:
    documented: dict[str, set[str]] = {}
    for row in rows:
        documented.setdefault(row.scope, set()).add(row.key)
    expected = {scope: keys for scope, keys in expected_keys(root, stages).items() if keys}
    assert len(rows) > 150
    assert documented.keys() == expected.keys()
    missing = {s: expected[s] - documented[s] for s in expected if expected[s] - documented[s]}
    invented = {s: documented[s] - expected[s] for s in expected if documented[s] - expected[s]}
    assert (missing, invented) == ({}, {})


def test_the_defaults_are_those_of_the_files(rows: list[Row]) -> None:
    wrong = []
    for row in rows:
        if not row.default.startswith("`"):
            continue  # a description, as of the folder that time names
        if row.scope.startswith("recsys "):
            actual = leaves(tree_of(row.scope.removeprefix("recsys ")))
        elif row.choice is not None:
            actual = leaves(tree_of("train", row.choice))
        elif row.scope == "group features":  # ml-100k chooses its own
            actual = leaves(tree_of("train", "features=auto"))
        elif row.scope == "group split":
            actual = leaves(tree_of("train", "split=auto"))
        else:
            actual = leaves(tree_of("train"))
        if yaml.safe_load(row.default.strip("`").replace("\\|", "|")) != actual[row.key]:
            wrong.append((row.scope, row.key, row.default, actual[row.key]))
    assert wrong == []


def test_every_choice_is_listed_with_what_it_changes(text: str, root: Path) -> None:
    listed = {
        (m[1], m[2]): m[3]
        for m in re.finditer(r"^\| `([a-z]+)=([\w/-]+)` \| (.*)\|$", text, flags=re.MULTILINE)
    }
    there = {(group, choice) for group, choices in groups(root).items() for choice in choices}
    assert listed.keys() == there
    wrong = {}
    for (group, choice), cells in listed.items():
        if group == "experiment":
            continue
        first = next(one for other, one in listed if other == group)
        base = leaves({group: tree_of("train", f"{group}={first}")[group]})
        here = leaves({group: tree_of("train", f"{group}={choice}")[group]})
        changes = {key: here[key] for key in here if here[key] != base.get(key, here[key])}
        said = {}
        for span in re.findall(r"`([^`]+: [^`]+)`", cells):
            key, _, value = span.partition(": ")
            said[f"{group}.{key}"] = yaml.safe_load(value)
        if said != changes:
            wrong[f"{group}={choice}"] = (said, changes)
    assert wrong == {}


def test_the_help_of_every_command_lists_the_choices_of_its_groups(
    root: Path, stages: list[str]
) -> None:
    there = groups(root)
    num_groups = 0
    for stage in stages:
        primary = yaml.safe_load((root / "conf" / f"{stage}.yaml").read_text(encoding="utf-8"))
        template = primary["hydra"]["help"]["template"]
        listed = re.findall(r"^ {2}([a-z]+) +(\S+(?: \|\s+\S+)*)$", template, re.MULTILINE)
        chosen = {name for one in primary["defaults"] if isinstance(one, dict) for name in one}
        assert {group for group, _ in listed} == chosen, stage
        for group, choices in listed:
            num_groups += 1
            named = {re.sub("/.*", "/NAME", choice) for choice in there[group]}
            assert set(re.split(r"\s*\|\s*", choices)) == named, (stage, group)
    assert num_groups > 20


def test_the_estimators_are_listed_with_all_that_their_files_set(text: str, root: Path) -> None:
    listed = {
        m[1]: set(re.findall(r"`(\S+?=[^`]+)`", m[2]))
        for m in re.finditer(r"^\| `experiment=(estimator/\w+)` \| (.*?) \|", text, re.MULTILINE)
    }
    assert len(listed) > 20
    files = root / "conf" / "experiment"
    assert listed == {name: contents_of(files / f"{name}.yaml") for name in listed}


def contents_of(file: Path) -> set[str]:
    """Give what an experiment's file sets, as on the command line."""
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    chosen = [one for one in settings.pop("defaults") if one != "_self_"]
    found = {
        f"{group.removeprefix('override /')}={choice}"
        for one in chosen
        for group, choice in one.items()
    }
    for key, value in leaves(settings).items():
        found.add(f"{key}={yaml.safe_dump(value, default_flow_style=True).split(chr(10))[0]}")
    return found
