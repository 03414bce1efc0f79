"""The experiments of the data sets are those of docs/quality.md, over presets that stand alone."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from recsys.config import TrainConfig, compose_config, flatten

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.glob("conf/experiment/data/*.yaml"))


def dotted(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Give a tree of settings by dotted keys, those of features as they are grouped."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict) and prefix != "features.":
            flat |= dotted(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_changes_what_it_says_and_nothing_else(file: Path) -> None:
    own = yaml.safe_load(file.read_text(encoding="utf-8"))
    defaults = own.pop("defaults")
    [preset] = [one.rpartition("/")[2] for one in defaults if str(one).startswith("/experiment/")]
    groups = {next(iter(one)).rpartition("/")[2] for one in defaults if isinstance(one, dict)}
    files = {"dataset.interactions": "log.parquet", "dataset.items": "items.parquet"}
    data = {} if file.stem.startswith("ml-100k") else {"dataset": "table", **files}
    data |= {"run_dir": "run"}

    there = flatten(
        compose_config("train", TrainConfig, {"experiment": f"data/{file.stem}", **data})
    )
    base = flatten(compose_config("train", TrainConfig, {"experiment": preset, **data}))

    said = dotted(own)
    assert said
    differs = {key for key in there if there[key] != base.get(key)}
    assert {key for key in differs if key.partition(".")[0] not in groups} <= said.keys()
    for key, value in said.items():
        settings = there[key]
        if key.startswith("features.") and isinstance(value, dict):
            assert {name: settings[name]["kind"] for name in settings} == {
                name: column["kind"] for name, column in value.items()
            }
        else:
            assert settings == value, key


def test_every_data_set_stands_on_the_page_of_what_was_measured() -> None:
    page = (ROOT / "docs" / "quality.md").read_text(encoding="utf-8")
    assert len(FILES) > 8
    assert [file.stem for file in FILES if f"experiment=data/{file.stem}" not in page] == []
