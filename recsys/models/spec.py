"""What a two-tower model is made of, as plain values that a saved model carries along."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self, get_args, get_origin

from recsys.foundations import ConfigError, FormatError
from recsys.models.tower_spec import ItemTowerSpec, UserTowerSpec


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A two-tower model.

    Attributes:
        embedding_dim: Width of every embedding and of both towers' outputs.
        user_tower: The user tower.
        item_tower: The item tower.
        normalize: Whether both towers' outputs have length 1, so that scores are cosines.
        item_bias: Whether each item has a learned number added to its scores. It is one more
            dimension of the item's vector, against a constant 1 in the user's.
        temperature: What divides scores before the softmax; where it starts, if learned.
        learn_temperature: Whether it is learned.
        min_temperature: Lower bound of a learned temperature.
        max_temperature: Upper bound of a learned temperature.
        init_std: Standard deviation of the first values of every embedding.
        ridge_dim: Width of the `RidgePart` beside the towers, a multiple of 16; 0: none.
        ridge_regularization: Of that part, above 0.
        ridge_unobserved: Weight of what a user did not meet, of that part, above 0.
        ridge_scale: What that part's scores are multiplied by, above 0.
        repeats_weight: Of the bonus for items that the user had, at least 0; see `Repeats`.
        repeats_decay: What an event counts against the next newer one there, in (0, 1].
    """

    embedding_dim: int = 64
    user_tower: UserTowerSpec = field(default_factory=UserTowerSpec)
    item_tower: ItemTowerSpec = field(default_factory=ItemTowerSpec)
    normalize: bool = False
    item_bias: bool = False
    temperature: float = 1.0
    learn_temperature: bool = False
    min_temperature: float = 0.01
    max_temperature: float = 10.0
    init_std: float = 0.05
    ridge_dim: int = 0
    ridge_regularization: float = 0.01
    ridge_unobserved: float = 0.1
    ridge_scale: float = 10.0
    repeats_weight: float = 0.0
    repeats_decay: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges, and settings of the two towers that exclude each other."""
        if self.embedding_dim < 1:
            raise ConfigError(f"model.embedding_dim must be at least 1, got {self.embedding_dim}.")
        start, low, high = self.temperature, self.min_temperature, self.max_temperature
        for name, value in (
            ("temperature.initial", start),
            ("init_std", self.init_std),
            ("ridge.regularization", self.ridge_regularization),
            ("ridge.unobserved", self.ridge_unobserved),
            ("ridge.scale", self.ridge_scale),
        ):
            if not 0 < value < float("inf"):
                raise ConfigError(f"model.{name} must be above 0, got {value}.")
        if self.learn_temperature and not 0 < low < start < high < float("inf"):
            raise ConfigError(
                "model.temperature.initial must lie between model.temperature.minimum (above 0) "
                "and model.temperature.maximum where the temperature is learned, "
                f"got {start} for {low} to {high}."
            )
        heads, encoder = self.user_tower.num_heads, self.user_tower.history
        if encoder in ("attention", "transformer") and self.embedding_dim % heads != 0:
            raise ConfigError(
                f"model.embedding_dim must be a multiple of model.user_tower.history.num_heads, "
                f"got {self.embedding_dim} for {heads}."
            )
        shares_table = self.user_tower.history != "none"
        shares_table &= self.user_tower.history_table == "shared"
        if shares_table and not self.item_tower.use_id:
            raise ConfigError(
                "model.user_tower.history.table=shared reads the vectors of item ids, which "
                "model.item_tower.use_id=false leaves out; set it to own or tower."
            )
        self._check_ridge()
        self._check_repeats()

    @property
    def histories_read_tower(self) -> bool:
        """Whether histories read what the item tower makes of their items."""
        return self.user_tower.history != "none" and self.user_tower.history_table == "tower"

    def _check_ridge(self) -> None:
        if self.ridge_dim < 0 or self.ridge_dim % 16 != 0:
            raise ConfigError(
                f"model.ridge.dim must be 0 or a multiple of 16, got {self.ridge_dim}."
            )
        if self.ridge_dim > 0 and self.user_tower.history == "none":
            raise ConfigError(
                f"model.ridge.dim={self.ridge_dim} needs histories, which "
                "model.user_tower.history.encoder=none leaves out."
            )

    def _check_repeats(self) -> None:
        weight, decay = self.repeats_weight, self.repeats_decay
        if not 0 <= weight < float("inf"):
            raise ConfigError(f"model.repeats.weight must be at least 0, got {weight}.")
        if not 0 < decay <= 1:
            raise ConfigError(f"model.repeats.decay must be above 0 and at most 1, got {decay}.")
        if weight > 0 and self.user_tower.history == "none":
            raise ConfigError(
                f"model.repeats.weight={weight:g} needs histories, which "
                "model.user_tower.history.encoder=none leaves out."
            )

    def to_json(self) -> dict[str, Any]:
        """Give plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read what `to_json` gave.

        Raises:
            FormatError: It is not the specification of a model of this version.
        """
        towers = {"user_tower": UserTowerSpec, "item_tower": ItemTowerSpec}
        try:
            parts = {name: kind(**_typed(kind, value[name])) for name, kind in towers.items()}
            return cls(**_typed(cls, {**value, **parts}))
        except (TypeError, KeyError, ConfigError) as error:
            raise FormatError(f"The model's specification is damaged: {error}") from error


def _typed(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    """Turn JSON's lists into tuples; refuse a value of another type than the field's, and none."""
    typed = {k: tuple(v) if isinstance(v, list) else v for k, v in dict(values).items()}
    for entry in fields(kind):
        if entry.name in typed and not _is_a(typed[entry.name], entry.type):
            raise TypeError(f"`{entry.name}` must not be {typed[entry.name]!r}.")
    missing = [entry.name for entry in fields(kind) if entry.name not in typed]
    if missing:  # a default would be a guess at what another version meant
        raise TypeError(f"`{missing[0]}` is missing.")
    return typed


def _is_a(value: Any, wanted: Any) -> bool:
    if get_origin(wanted) is tuple:
        return isinstance(value, tuple) and all(_is_a(part, get_args(wanted)[0]) for part in value)
    if not isinstance(wanted, type):
        return any(_is_a(value, choice) for choice in get_args(wanted))
    if isinstance(value, bool) or wanted is bool:
        return isinstance(value, bool) and wanted is bool
    return isinstance(value, (int, float) if wanted is float else wanted)
