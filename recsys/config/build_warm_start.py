"""The bridge from settings to where a model starts."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from recsys.bundle import Bundle, read_bundle
from recsys.config.build import build_model_spec
from recsys.config.flatten import flatten
from recsys.config.schema_stages import TrainConfig
from recsys.data import PreparedDataset
from recsys.evaluation import (
    Resampling,
    bonus_of,
    embed_queries,
    evaluate_retrieval,
    known_to_model,
)
from recsys.foundations import ConfigError
from recsys.index import ExactIndex
from recsys.models import TwoTower, encode_candidates
from recsys.training import (
    CheckpointStore,
    FreshStart,
    Start,
    StartingPoint,
    WarmStart,
    start_from_bundle,
)

# What may differ between a bundle and the model that goes on from it: what training alone reads,
# the names of features, which are matched one by one, the ridge part, which is fitted anew, and the
# bonus for repeats, which is chosen anew.
_FREE = re.compile(r"init_std|(ridge|repeats)_\w+|(user|item)_tower\.(\w*dropout|features|context)")
# Settings that have another name in the specification.
_NAMES = {
    "norm": "normalization",
    "history": "encoder",
    "temperature": "temperature.initial",
    "learn_temperature": "temperature.learned",
    "min_temperature": "temperature.minimum",
    "max_temperature": "temperature.maximum",
}


def build_start(config: TrainConfig, run_dir: Path) -> Start:
    """Build where the model starts: from nothing, from a bundle, or where the run once did.

    Raises:
        ConfigError: The bundle's model is of another make than the settings.
        MissingFileError: There is no bundle.
        FormatError: The bundle, or what the run noted, is damaged.
    """
    if config.init_from is None:
        return FreshStart()
    measure = partial(_measure, config)
    evaluation, folder = config.evaluation, run_dir / "warm_start"
    resampling = Resampling(config.seed, evaluation.num_bootstrap, evaluation.confidence)
    if config.resume and CheckpointStore(run_dir / "checkpoints", {}, "").has_last:
        point = StartingPoint.read(folder)
        return WarmStart(lambda *_: point, measure, resampling)
    bundle = read_bundle(Path(config.init_from))
    check_same_make(config, bundle)

    def begin(model: TwoTower, dataset: PreparedDataset) -> StartingPoint:
        point = start_from_bundle(bundle, model, dataset, measure)
        point.write(folder)
        return point

    return WarmStart(begin, measure, resampling)


def check_same_make(config: TrainConfig, bundle: Bundle) -> None:
    """Check that a bundle's model is made as the settings say.

    Raises:
        ConfigError: It is not; the message names the first setting that differs, and both values.
    """
    # The data is read later; what follows its clock is compared as if that were the bundle's.
    here = _flat(build_model_spec(config.model, clock=bundle.clock).to_json())
    there = _flat(bundle.model.spec.to_json())
    for name in here:
        if here[name] != there[name] and not _FREE.fullmatch(name):
            raise ConfigError(
                f"init_from: {_setting(name, config)} is {_plain(here[name])}, but the bundle "
                f"{bundle.path} was trained with {_plain(there[name])}; set it so, or start "
                "without init_from."
            )


def _measure(config: TrainConfig, model: TwoTower, dataset: PreparedDataset) -> dict[str, pa.Table]:
    """Rank all candidates exactly, for the users of each part that has some and judges."""
    vectors = encode_candidates(model, dataset.items.features, dataset.num_items)
    parts = {"test": dataset.test}
    if not config.trainer.refit:  # else it is trained on
        parts = {"validation": dataset.validation} | parts
    return {
        part: evaluate_retrieval(
            dataset,
            part,
            embed=partial(embed_queries, model),
            reads=partial(known_to_model, model),
            exact=ExactIndex(vectors),
            approximate=None,
            ks=config.evaluation.k,
            seed=config.seed,
            num_resamples=1,  # the values of each user are wanted, not their mean
            level=config.evaluation.confidence,
            bonus=bonus_of(model),
        ).per_user
        for part, events in parts.items()
        if len(events)
    }


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _plain(value: Any) -> str:
    return repr(list(value) if isinstance(value, tuple) else value)


def _setting(name: str, config: TrainConfig) -> str:
    """Give the key of the setting behind a name in the specification."""
    tower, _, field = name.rpartition(".")
    field = _NAMES.get(field, field)
    places = [f"model.{tower}.{field}", f"model.{tower}.history.{field.removeprefix('history_')}"]
    keys = flatten(config)
    return next((place for place in places if place in keys), f"model.{field}")
