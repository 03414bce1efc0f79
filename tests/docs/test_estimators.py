"""docs/estimators.md compares all estimators that there are."""

import re
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser


def test_the_sweep_has_a_job_for_each_preset(pages: list[Any], root: Path) -> None:
    [page] = [page for page in pages if page.path.stem == "estimators"]
    [sweep] = [one for one in page.commands() if "run_dir=estimators" in one.text]
    settings = [word for word in sweep.words()[1:] if not word.startswith("--")]
    overrides = OverridesParser.create().parse_overrides(settings)
    jobs = {
        job for batch in BasicSweeper.split_arguments(overrides, None) for job in map(tuple, batch)
    }
    presets = (root / "conf" / "experiment" / "estimator").glob("*.yaml")
    assert jobs == {("run_dir=estimators", f"experiment=estimator/{p.stem}") for p in presets}


def test_a_preset_that_the_page_names_is_there(pages: list[Any], root: Path) -> None:
    named = {
        name for page in pages for name in re.findall(r"(?<!/)\bestimator/([a-z_]+)", page.text)
    }
    presets = (root / "conf" / "experiment" / "estimator").glob("*.yaml")
    assert len(named) > 20
    assert named - {"brp"} == {preset.stem for preset in presets}
