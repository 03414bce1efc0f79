"""The bridge from settings to the threads of each operator of a training step."""

from recsys.config import schema_loss
from recsys.config.schema_stages import TrainConfig
from recsys.foundations import num_threads
from recsys.models import TwoTower
from recsys.training import choose_operator_threads

_READING = ("gru", "attention", "transformer")  # they have dense layers over each item of a history
_OVER_CATALOGUE = (schema_loss.FullSoftmaxConfig, schema_loss.FullLogisticConfig)


def build_operator_threads(config: TrainConfig, model: TwoTower, num_items: int) -> int:
    """Give what is set; else what the towers' dense layers are worth.

    Args:
        config: Of the training.
        model: The two towers.
        num_items: All of which a loss over the catalogue takes through the item tower.
    """
    trainer, history = config.trainer, config.model.user_tower.history
    if trainer.operator_threads is not None:
        return trainer.operator_threads
    read = history.length if history.encoder in _READING else 1
    candidates = num_items if isinstance(config.loss, _OVER_CATALOGUE) else trainer.batch_size
    return choose_operator_threads(
        [(model.user_tower, trainer.batch_size * read), (model.item_tower, candidates)],
        num_threads=num_threads(),
    )
