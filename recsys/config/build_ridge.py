"""The bridge from settings to the ridge part that stands beside the towers."""

from dataclasses import replace

from torch import Tensor

from recsys.config.schema_model import RidgeConfig
from recsys.config.schema_stages import TrainConfig
from recsys.data import PreparedDataset
from recsys.foundations import Progress, make_generator
from recsys.models import ItemFactors
from recsys.training import RidgeJudge, RidgeSettings, choose_ridge


def fit_ridge(config: TrainConfig, dataset: PreparedDataset) -> tuple[RidgeConfig, Tensor]:
    """Choose the settings of the ridge part on validation, and fit it to the training part.

    Returns:
        The settings with the one choice that was made, and the factors [num_items, dim]: those
        that it gives where nothing else is listed.
    """
    ridge, events = config.model.ridge, dataset.train
    kept = events.items < dataset.num_items

    def factors_of(dim: int) -> ItemFactors:
        return ItemFactors(
            events.users[kept],
            events.items[kept],
            num_items=dataset.num_items,
            dim=dim,
            generator=make_generator(config.seed, "ridge"),
        )

    listed = [RidgeSettings(*settings) for settings in ridge.settings]
    chosen = listed[0]
    if len(listed) > 1:
        judge = _build_judge(config, dataset)
        chosen = choose_ridge(factors_of, listed, judge, ridge.iterations)
    dim, regularization, unobserved = chosen
    with Progress("fitting the ridge part", ridge.iterations, "iterations") as bar:
        fitted = factors_of(dim).fit(
            regularization=regularization,
            unobserved=unobserved,
            iterations=ridge.iterations,
            on_turn=lambda: bar.advance(1),
        )
    one = replace(ridge, dim=dim, regularization=regularization, unobserved=unobserved)
    return one, fitted


def _build_judge(config: TrainConfig, dataset: PreparedDataset) -> RidgeJudge:
    return RidgeJudge(
        dataset,
        history_length=config.model.user_tower.history.length,
        max_users=config.trainer.validation_users,
        seed=config.seed,
        candidates=config.evaluation.candidates,
    )
