"""Training and evaluating from Python, with the settings of the commands."""

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.config import EvaluateConfig, TrainConfig, compose_config
from recsys.evaluation import Report, evaluate_ranked
from recsys.foundations import ArgumentError, read_json
from recsys.serving import Frame, as_arrow


@dataclass(frozen=True)
class TrainedRun:
    """A finished run.

    Attributes:
        run_dir: Its folder, with plots, checkpoints and `report.json`.
        bundle: The bundle's folder, for `load_bundle`.
        report: What report.json holds; None where there was nothing to evaluate on.
    """

    run_dir: Path
    bundle: Path
    report: dict[str, Any] | None


def train(settings: Mapping[str, Any] | None = None) -> TrainedRun:
    """Do what `recsys train` does.

    Args:
        settings: Key -> value, as on the command line: ``{"dataset": "synthetic",
            "trainer.epochs": 3, "run_dir": "runs/first"}``. What is not given has its default.

    Raises:
        ConfigError: A setting is misspelt, of a wrong type or out of range.
        DataError: The data cannot be read as asked.
        TrainingError: The loss is not finite.
    """
    config = compose_config("train", TrainConfig, settings or {})
    run_dir = Path(config.run_dir)
    chosen = (settings or {}).get("experiment")
    name = chosen if isinstance(chosen, str | None) else ",".join(chosen)
    bundle = _stage("train").train(config, run_dir, experiment=name)
    report = run_dir / "report.json"
    return TrainedRun(run_dir, bundle, read_json(report) if report.exists() else None)


def evaluate(
    bundle: str | os.PathLike[str] | None = None,
    *,
    ranked: Frame | None = None,
    truth: Frame | None = None,
    k: Sequence[int] = (1, 5, 10, 20, 50, 100),
    settings: Mapping[str, Any] | None = None,
) -> Report:
    """Score a bundle on its dataset, or ranked lists against the truth; writes no files.

    Args:
        bundle: The bundle's folder.
        ranked: In its place: user_id, item_id, and `rank` (lowest first) or `score` (highest
            first).
        truth: user_id and item_id, with `ranked`.
        k: Lengths of the list that is judged.
        settings: With a bundle, more settings of `recsys evaluate`, such as
            ``{"dataset_dir": "data/mine"}``.

    Returns:
        The report: ``.flat_metrics()["recall_at_10"]``, ``.to_json()``, ``.per_user``.

    Raises:
        ArgumentError: Neither a bundle nor both tables are given, or all of them; `settings`
            come with tables.
        DataError: A table cannot be read as asked.
    """
    lists = [table for table in (ranked, truth) if table is not None]
    if len(lists) != (2 if bundle is None else 0):
        raise ArgumentError("`evaluate` must get `bundle`, or `ranked` and `truth`.")
    if bundle is None:
        if settings:
            raise ArgumentError("`settings` must come with `bundle`, got them with tables.")
        return evaluate_ranked(as_arrow(lists[0]), as_arrow(lists[1]), list(k))
    given = {"bundle": str(bundle), "k": list(k), **(settings or {})}
    config = compose_config("evaluate", EvaluateConfig, given)
    return _stage("evaluate").score(config)  # type: ignore[no-any-return]


def _stage(name: str) -> Any:
    """Import a pipeline: it stands above this package, which must not know it at import."""
    return importlib.import_module(f"recsys.pipelines.{name}")
