"""The stage `explain`, on the terminal, and ids that look like numbers on the command line."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.explain import explain
from recsys import load_bundle
from recsys.config import ExplainConfig, compose_config
from recsys.foundations import ConfigError, UnknownIdError

ROOT = Path(__file__).parents[2]


def run(bundle: Path, **settings: Any) -> None:
    given = {"bundle": str(bundle), "threads": 1, **settings}
    explain(compose_config("explain", ExplainConfig, given))


def test_the_best_items_of_a_user_are_explained(
    trained: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()  # of the training
    run(trained.bundle, user="u3", k=2, num_history=4)
    shown = capsys.readouterr().out
    lookup = load_bundle(trained.bundle)
    best = lookup.recommend(["u3"], k=2).to_pylist()
    for row in best:
        assert f"u3 and {row['item_id']}  " in shown
        assert f": score {row['score']:.4f}" in shown
    found = lookup.explain("u3", k=2, num_history=4)
    for row in found.history.to_pylist():
        assert f" {row['history_item_id']} " in shown
    assert found.history.num_rows == 8
    assert shown.count("│ remainder ") == 4  # two sides of two items


def test_one_item_is_explained(trained: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(trained.bundle, user="u3", item="i9")
    assert "u3 and i9  " in capsys.readouterr().out


def test_where_chooses_what_is_explained(trained: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(trained.bundle, user="u3", where="item_id in [i9, i8]")
    shown = capsys.readouterr().out
    assert shown.count("u3 and i") in (1, 2)  # as many of them as the user has not seen
    assert set(re.findall(r"u3 and (i\d+) ", shown)) <= {"i9", "i8"}
    with pytest.raises(ConfigError, match=r"where= chooses .* and item= names one"):
        run(trained.bundle, user="u3", item="i9", where="item_id = i9")


def test_an_unknown_item_is_named(trained: Any) -> None:
    with pytest.raises(UnknownIdError, match="There is no item 'nope' with a vector"):
        run(trained.bundle, user="u3", item="nope")


def test_ids_that_look_like_numbers_stay_as_they_are_written(trained: Any, tmp_path: Path) -> None:
    words = [f"bundle={trained.bundle}", "user=007", "item=1e5"]
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.explain", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == ("recsys: error: There is no item '1e5' with a vector.")
