"""Every `recsys` command of the pages composes, or is refused as the page says."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_module
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from recsys.cli.quoting import with_quoted_expressions
from recsys.config import load, register_schemas
from recsys.config.groups import GROUPS
from recsys.config.replaced_choices import without_keys_of_replaced_choices
from recsys.config.schema_stages import StageConfig


def composed(words: list[str], config_dir: Path) -> list[str]:
    """Compose the settings of a command line; give the options that it has."""
    stage, options, settings = words[0], [], []
    rest = iter(words[1:])
    for word in rest:
        if word in ("--config-dir", "--cfg"):
            options.append(f"{word} {next(rest)}")
        elif word.startswith("-"):
            options.append(word)
        else:
            settings.append(word)
    jobs = [settings]
    if "--multirun" in options:
        overrides = OverridesParser.create().parse_overrides(settings)
        jobs = [list(job) for job in BasicSweeper.split_arguments(overrides, None)[0]]
    searched = []
    if any(option.startswith("--config-dir") for option in options):
        searched = [f"hydra.searchpath=[file://{config_dir}]"]
    for job in jobs:
        with (
            initialize_config_module(config_module="recsys.conf", version_base="1.3"),
            without_keys_of_replaced_choices(),
        ):
            tree = compose(stage, overrides=[*job, *searched])
            load(tree, StageConfig)
    return options


@pytest.fixture
def config_dir(pages: list[Any], tmp_path: Path) -> Path:
    """Write the settings files that the pages show."""
    blocks = [block for page in pages for block in page.blocks() if block.file]
    settings = [block for block in blocks if block.language == "yaml"]
    assert settings
    for block in settings:
        path = tmp_path / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
    return tmp_path / "conf"


def test_commands_compose(pages: list[Any], config_dir: Path) -> None:
    register_schemas()
    commands = [one for page in pages for one in page.commands() if one.is_recsys]
    assert len(commands) > 40
    refused = []
    for command in commands:
        if any(line.startswith("recsys: error:") for line in command.shown):
            continue  # test_console.py compares the words
        if {"--help", "--version"} & set(command.words()):
            continue
        try:
            composed(with_quoted_expressions(command.words()), config_dir)
        except Exception as error:  # noqa: BLE001  (any refusal is what is looked for)
            refused.append(f"{command.where}: {command.text}: {error}")
    assert not refused


def test_settings_named_in_the_text_are_settings(pages: list[Any], stages: list[str]) -> None:
    """`key=value` between backticks: the key is one of the composed trees, or a group."""
    register_schemas()
    known = set(_keys(stages))
    unknown = set()
    for page in pages:
        for key in re.findall(r"`\+?([a-z_]+(?:\.[a-z_]+)*)=(?!=)[^`]*`", page.prose):
            if key not in known and not key.startswith(("features.", "hydra.")):
                unknown.add((page.path.name, key))
    assert not unknown


def _keys(stages: list[str]) -> list[str]:
    keys: list[str] = []
    for stage in stages:
        for dataset in ("ml-100k", "table", "synthetic"):
            with initialize_config_module(config_module="recsys.conf", version_base="1.3"):
                has_dataset = stage in ("prepare", "train", "baselines")
                overrides = [f"dataset={dataset}"] if has_dataset else []
                tree = compose(stage, overrides=overrides)
            _walk(OmegaConf.to_container(tree, resolve=False), "", keys)
    for group, choices in GROUPS.items():
        keys += [f"{group}.{one.name}" for schema in choices.values() for one in fields(schema)]
    return [*keys, "experiment", "dataset"]


def _walk(value: Any, prefix: str, keys: list[str]) -> None:
    for name, item in value.items() if isinstance(value, dict) else ():
        keys.append(f"{prefix}{name}")
        _walk(item, f"{prefix}{name}.", keys)


def test_yaml_blocks_are_yaml(pages: list[Any]) -> None:
    blocks = [b for page in pages for b in page.blocks() if b.language in ("yaml", "json")]
    assert blocks
    for block in blocks:
        yaml.safe_load(block.text)
