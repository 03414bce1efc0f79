"""The bridge from settings to the ridge part that stands beside the towers."""

from dataclasses import replace

from torch import Tensor

from recsys.config.schema_model import RidgeConfig
from recsys.config.schema_stages import TrainConfig
from recsys.data import PreparedDataset
from recsys.foundations import Progress, make_generator
from recsys.models import ItemFactors
from recsys.training import RidgeJudge, choose_ridge


def fit_ridge(config: TrainConfig, dataset: PreparedDataset) -> tuple[RidgeConfig, Tensor]:
    """Choose the settings of the ridge part on validation, and fit it to the training part.

    Returns:
        The settings with the one pair that was chosen, and the factors [num_items, dim]: those
        that the pair gives where nothing else is listed.
    """
    ridge, events = config.model.ridge, dataset.train
    kept = events.items < dataset.num_items
    factors = ItemFactors(
        events.users[kept],
        events.items[kept],
        num_items=dataset.num_items,
        dim=ridge.dim,
        generator=make_generator(config.seed, "ridge"),
    )
    pair, pairs = ridge.pairs[0], ridge.pairs
    if len(pairs) > 1:
        pair = choose_ridge(factors, pairs, _build_judge(config, dataset), ridge.iterations)
    regularization, unobserved = pair
    with Progress("fitting the ridge part", ridge.iterations, "iterations") as bar:
        fitted = factors.fit(
            regularization=regularization,
            unobserved=unobserved,
            iterations=ridge.iterations,
            on_turn=lambda: bar.advance(1),
        )
    return replace(ridge, regularization=regularization, unobserved=unobserved), fitted


def _build_judge(config: TrainConfig, dataset: PreparedDataset) -> RidgeJudge:
    trainer = config.trainer
    return RidgeJudge(
        dataset,
        history_length=config.model.user_tower.history.length,
        k=trainer.validate_at,
        max_users=trainer.validation_users,
        seed=config.seed,
        candidates=config.evaluation.candidates,
    )
