"""Settings of the model and optimizer groups: types and ranges."""

import itertools
from dataclasses import dataclass
from typing import Any

from omegaconf import MISSING

from recsys.config.ranges import above, at_least, between, numbers, one_of, share, within
from recsys.config.schema_history import UserHistoryConfig
from recsys.foundations import ConfigError
from recsys.training import TABLE_OPTIMIZERS, takes_weight_decay

_SMALLEST, _LARGEST = 1e-6, 1e6  # of what multiplies scores or squares, which are float32
_LEAST_TEMPERATURE = 1e-12  # squares of gradients by it stay within float32
_WIDEST = 65_536  # of a ridge part


@dataclass(kw_only=True)
class UserTowerConfig:
    """What the user side reads and the layers on top."""

    use_id: bool = MISSING
    id_dropout: float = MISSING  # trains the row that unknown users share
    features: Any = MISSING  # all, or a list of names
    context: Any = MISSING  # all, or a list of names
    history: UserHistoryConfig = MISSING
    hidden: list[int] = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        share("model.user_tower.id_dropout", self.id_dropout)
        check_names("model.user_tower.features", self.features)
        check_names("model.user_tower.context", self.context)
        check_widths("model.user_tower.hidden", self.hidden)


@dataclass(kw_only=True)
class ItemTowerConfig:
    """What the item side reads and the layers on top."""

    use_id: bool = MISSING
    id_dropout: float = MISSING  # trains the row that unknown items share
    features: Any = MISSING  # all, or a list of names
    hidden: list[int] = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        share("model.item_tower.id_dropout", self.id_dropout)
        check_names("model.item_tower.features", self.features)
        check_widths("model.item_tower.hidden", self.hidden)


def check_names(key: str, value: Any) -> None:
    """Check `all` or a list of names."""
    if value != "all" and not (isinstance(value, list) and all(isinstance(n, str) for n in value)):
        raise ConfigError(f"{key} must be `all` or a list of names, got {value!r}.")


def check_widths(key: str, value: list[int]) -> None:
    """Check the widths of hidden layers."""
    if any(width < 1 for width in value):
        raise ConfigError(f"{key} must hold widths of at least 1, got {value}.")


@dataclass(kw_only=True)
class TemperatureConfig:
    """What divides the scores in the softmax; it does not change a ranking."""

    initial: float = MISSING
    learned: bool = MISSING
    minimum: float = MISSING
    maximum: float = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        above("model.temperature.initial", self.initial, 0)
        above("model.temperature.minimum", self.minimum, 0)
        above("model.temperature.maximum", self.maximum, 0)
        for name in ("initial", "minimum"):
            at_least(f"model.temperature.{name}", getattr(self, name), _LEAST_TEMPERATURE)
        if self.learned:
            between("model.temperature.initial", self.initial, self.minimum, self.maximum)


@dataclass(kw_only=True)
class RidgeConfig:
    """A linear model whose vectors stand beside those of the towers."""

    dim: Any = MISSING  # 0: none; a number, or several to choose from on validation
    regularization: Any = MISSING  # likewise
    unobserved: Any = MISSING  # weight of what a user did not meet; likewise
    iterations: int = MISSING
    scale: Any = MISSING  # multiplies its scores; a number, or several to choose from

    def __post_init__(self) -> None:
        """Check the ranges."""
        dims = numbers("model.ridge.dim", self.dim)
        wrong = any(not 0 <= dim <= _WIDEST or dim % 16 != 0 for dim in dims)
        if wrong or (len(dims) > 1 and 0 in dims):
            raise ConfigError(
                f"model.ridge.dim must be 0, a multiple of 16 up to {_WIDEST:,} or a list of such "
                f"multiples, got {self.dim}."
            )
        for key in ("regularization", "unobserved", "scale"):
            for value in numbers(f"model.ridge.{key}", getattr(self, key)):
                within(f"model.ridge.{key}", value, _SMALLEST, _LARGEST)
        at_least("model.ridge.iterations", self.iterations, 1)

    @property
    def scales(self) -> list[float]:
        """Give what its scores may be multiplied by."""
        return numbers("model.ridge.scale", self.scale)

    @property
    def settings(self) -> list[tuple[int, float, float]]:
        """Give each width with each regularization with each weight of what was not met."""
        return list(
            itertools.product(
                [int(dim) for dim in numbers("model.ridge.dim", self.dim)],
                numbers("model.ridge.regularization", self.regularization),
                numbers("model.ridge.unobserved", self.unobserved),
            )
        )


@dataclass(kw_only=True)
class RepeatsConfig:
    """What is added to the scores of items that the user had, where they may be given again."""

    weight: Any = MISSING  # of log(1 + count); a number, or several to choose from on validation
    decay: Any = MISSING  # what an event counts against the next newer one; likewise

    def __post_init__(self) -> None:
        """Check the ranges."""
        for value in numbers("model.repeats.weight", self.weight):
            within("model.repeats.weight", value, 0, _LARGEST)
        for value in numbers("model.repeats.decay", self.decay):
            if not 0 < value <= 1:
                raise ConfigError(
                    f"model.repeats.decay must be above 0 and at most 1, got {value}."
                )

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """Give each weight with each decay; with a weight of 0, where none matters, 1."""
        weights = numbers("model.repeats.weight", self.weight)
        decays = numbers("model.repeats.decay", self.decay)
        found = [(w, d if w > 0 else 1.0) for w, d in itertools.product(weights, decays)]
        return list(dict.fromkeys(found))


@dataclass(kw_only=True)
class ModelConfig:
    """Settings of recsys.models.TwoTower."""

    embedding_dim: int = MISSING
    combine: str = MISSING  # how the parts of a tower come together
    dropout: float = MISSING  # between hidden layers
    normalization: str = MISSING  # between hidden layers
    normalize: bool = MISSING  # outputs of length 1: cosine in place of the inner product
    item_bias: bool = MISSING
    item_bias_start: str = MISSING
    feature_dropout: float = MISSING  # trains the row that unknown categories share
    feature_start: str = MISSING
    value_dropout: float = MISSING  # of the values in a list
    init_std: float = MISSING
    temperature: TemperatureConfig = MISSING
    user_tower: UserTowerConfig = MISSING
    item_tower: ItemTowerConfig = MISSING
    ridge: RidgeConfig = MISSING
    repeats: RepeatsConfig = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least("model.embedding_dim", self.embedding_dim, 1)
        one_of("model.combine", self.combine, ("sum", "concat"))
        share("model.dropout", self.dropout)
        one_of("model.normalization", self.normalization, ("none", "batch_norm", "layer_norm"))
        share("model.feature_dropout", self.feature_dropout)
        one_of("model.feature_start", self.feature_start, ("random", "content"))
        share("model.value_dropout", self.value_dropout)
        above("model.init_std", self.init_std, 0)
        one_of("model.item_bias_start", self.item_bias_start, ("zero", "log_popularity"))
        if self.item_bias_start == "log_popularity" and not self.item_bias:
            raise ConfigError("model.item_bias_start=log_popularity needs model.item_bias=true.")
        history = self.user_tower.history
        history.check_width(self.embedding_dim)
        if history.encoder == "none" and self.ridge.settings[0][0] > 0:
            raise ConfigError(
                f"model.ridge.dim={self.ridge.dim} needs histories, which "
                "model.user_tower.history.encoder=none leaves out."
            )
        weight = self.repeats.weight
        if history.encoder == "none" and not isinstance(weight, list) and weight > 0:
            raise ConfigError(
                f"model.repeats.weight={weight:g} needs histories, which "
                "model.user_tower.history.encoder=none leaves out."
            )
        if history.encoder != "none" and history.table == "shared" and not self.item_tower.use_id:
            raise ConfigError(
                "model.user_tower.history.table=shared reads the vectors of item ids, which "
                "model.item_tower.use_id=false leaves out; set it to own or tower."
            )


@dataclass(kw_only=True)
class OptimizerConfig:
    """The optimiser of the embedding tables; dense layers train with Adam."""

    name: str = MISSING
    learning_rate: float = MISSING  # tables
    dense_learning_rate: float = MISSING
    weight_decay: float = MISSING  # tables; on the rows of the batch alone
    dense_weight_decay: float = MISSING
    schedule: str = MISSING
    warmup_share: float = MISSING  # share of all steps
    gradient_clip: float = MISSING  # norm over all gradients; 0: off

    def __post_init__(self) -> None:
        """Check the ranges and what excludes what."""
        one_of("optimizer.name", self.name, TABLE_OPTIMIZERS)
        above("optimizer.learning_rate", self.learning_rate, 0)
        above("optimizer.dense_learning_rate", self.dense_learning_rate, 0)
        at_least("optimizer.weight_decay", self.weight_decay, 0)
        at_least("optimizer.dense_weight_decay", self.dense_weight_decay, 0)
        one_of("optimizer.schedule", self.schedule, ("constant", "linear_warmup_decay", "cosine"))
        share("optimizer.warmup_share", self.warmup_share)
        at_least("optimizer.gradient_clip", self.gradient_clip, 0)
        if self.weight_decay > 0 and not takes_weight_decay(self.name):
            raise ConfigError(
                f"optimizer.weight_decay={self.weight_decay:g} does not go with "
                f"optimizer.name={self.name}, whose table gradients are sparse; "
                "use rowwise_adagrad or adam, or weight_decay=0."
            )
