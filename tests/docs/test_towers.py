"""docs/towers.md names all presets and all choices of what a tower is made of, as they are."""

import re
from pathlib import Path
from typing import Any

import pytest

from recsys.config import TrainConfig, compose_config, flatten
from recsys.models.tower_spec import HISTORIES, HISTORY_TABLES, POSITIONS

# [`name`](../folder/file.py)
LINK = re.compile(r"\[`(\w+)`\]\(\.\./((?:recsys|tests)/[\w/]+\.py)\)")


@pytest.fixture(scope="module")
def page(pages: list[Any]) -> Any:
    return next(page for page in pages if page.path.name == "towers.md")


def test_every_preset_is_there_with_what_it_chooses(page: Any) -> None:
    [table] = re.findall(r"^\| your data \|.*?\n\n", page.text, re.MULTILINE | re.DOTALL)
    listed = {
        row[0]: row[1:]
        for row in re.findall(
            r"^\| .*? \| (?:`experiment=(\w+)`|none: .*?) \| `model=(\w+)` \|"
            r" `trainer\.examples=(\w+)` \| `loss=(\w+)` \|$",
            table,
            re.MULTILINE,
        )
    }
    assert listed.keys() >= {"", "general", "sequential", "features", "history"}
    for name, (model, examples, loss) in listed.items():
        config = compose_config("train", TrainConfig, {"experiment": name} if name else {})
        alone = compose_config("train", TrainConfig, {"model": model})
        chosen = flatten(config)
        assert (chosen["trainer.examples"], chosen["loss"]) == (examples, loss), name
        assert config.model == alone.model, name


def test_every_choice_has_a_row(page: Any) -> None:
    def rows(title: str) -> list[str]:
        section = re.split(rf"^## {title}$", page.text, flags=re.MULTILINE)[1]
        return re.findall(r"^\| (\w+) \|", section.split("\n## ")[0], re.MULTILINE)

    assert set(HISTORIES) <= set(rows("History encoders"))
    assert set(HISTORY_TABLES) <= set(rows("Tables of histories"))
    assert {"events", "sequences", "profiles"} <= set(rows("Examples"))
    said = set(re.findall(r"`model\.user_tower\.history\.positions=(\w+)`", page.text))
    assert said == set(POSITIONS)


def test_every_key_that_is_named_is_a_setting(page: Any) -> None:
    losses = [{"loss": "mixed"}, {"loss": "full_softmax"}]
    known = {key for one in losses for key in flatten(compose_config("train", TrainConfig, one))}
    named = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)(?:=[^`]*)?`", page.prose))
    of_baselines = {name for name in named if name.startswith("ials.")}
    assert len(named) > 40
    assert named - of_baselines <= known


def test_every_test_that_is_named_stands_in_its_file(page: Any, root: Path) -> None:
    links = LINK.findall(page.prose)
    assert len(links) > 15
    missing = [
        (name, file)
        for name, file in links
        if f"def {name}(" not in (root / file).read_text(encoding="utf-8")
    ]
    assert missing == []
