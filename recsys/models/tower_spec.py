"""What each tower is made of, as plain values."""

from dataclasses import dataclass

from recsys.foundations import ConfigError

HISTORIES = ("none", "mean", "recency", "attention", "gru", "transformer")
GATED = ("mean", "recency")
HISTORY_TABLES = ("own", "shared", "tower")
COMBINATIONS = ("sum", "concat")
POSITIONS = ("none", "absolute", "relative")
NORMS = ("none", "layer_norm", "batch_norm")


@dataclass(frozen=True, kw_only=True)
class UserTowerSpec:
    """What the user tower reads and how it puts the pieces together.

    Attributes:
        use_id: Whether each user has a vector of its own.
        id_dropout: Share of the users that training treats as unknown, so that the vector of
            unknown users is trained.
        features: Names of the user features read; None: all there are.
        context: Names of the columns of the interaction itself (hour, device); None: all there are.
        feature_dropout: Share of the features that training treats as missing.
        value_dropout: Share of the values of a list (multi, text) that training leaves out.
        history: none | mean | recency | attention | gru | transformer: what reads the history.
        history_length: Items of the history looked at, the newest ones.
        history_table: own | shared | tower: what histories read of an item: a vector of a table for
            histories alone, the item tower's vector of its id, or what that tower makes of id and
            features (normalised as an item's is, without bias; items without either are left out).
        decay: Weight of an item against the next newer one, in (0, 1] (recency; attention begins
            with it).
        exponent: Power of the sum of weights that divides the pooled sum, in [0, 1] (recency and
            attention; the mean has 1).
        history_dropout: Share of the history's items that training takes out.
        gate_dim: Width of the gate that weighs an item by the rest of the history (mean and
            recency); 0: none.
        num_heads: Heads of the attention (attention and transformer); they divide the width.
        num_interests: Vectors of a user, of which the best matching one counts (attention only).
        num_layers: Layers (gru and transformer).
        layer_dropout: Share of the values inside the layers that training sets to zero (gru and
            transformer).
        positions: none | absolute | relative: what tells the order of the items (transformer): a
            vector for each position from the oldest item, or what a head adds for a distance.
        time_gaps: Whether the time between the items is read (gru and transformer); training hides
            it in a share `feature_dropout` of the histories.
        combine: sum | concat: how id, features, context and history become one vector.
        hidden: Width of each hidden layer; empty for none.
        dropout: Share of the hidden values that training sets to zero.
        norm: none | layer_norm | batch_norm, in the hidden layers.
    """

    use_id: bool = True
    id_dropout: float = 0.1
    features: tuple[str, ...] | None = None
    context: tuple[str, ...] | None = None
    feature_dropout: float = 0.1
    value_dropout: float = 0.0
    history: str = "recency"
    history_length: int = 50
    history_table: str = "own"
    decay: float = 0.9
    exponent: float = 0.5
    history_dropout: float = 0.3
    gate_dim: int = 0
    num_heads: int = 2
    num_interests: int = 1
    num_layers: int = 1
    layer_dropout: float = 0.1
    positions: str = "relative"
    time_gaps: bool = False
    combine: str = "sum"
    hidden: tuple[int, ...] = ()
    dropout: float = 0.0
    norm: str = "none"

    def __post_init__(self) -> None:
        """Check the ranges."""
        name = "model.user_tower"
        _check_share(f"{name}.id_dropout", self.id_dropout)
        _check_share(f"{name}.history.dropout", self.history_dropout)
        _check_choice(f"{name}.history.encoder", self.history, HISTORIES)
        _check_choice(f"{name}.history.table", self.history_table, HISTORY_TABLES)
        _check_choice(f"{name}.history.positions", self.positions, POSITIONS)
        _check_share(f"{name}.history.layer_dropout", self.layer_dropout)
        _check_layers(self, name)
        for key, value in (
            ("length", self.history_length),
            ("num_heads", self.num_heads),
            ("num_interests", self.num_interests),
            ("num_layers", self.num_layers),
        ):
            if value < 1:
                raise ConfigError(f"{name}.history.{key} must be at least 1, got {value}.")
        if self.num_interests > 1 and self.history != "attention":
            raise ConfigError(
                f"{name}.history.num_interests={self.num_interests} needs "
                f"{name}.history.encoder=attention, got {self.history}."
            )
        if self.gate_dim < 0:
            raise ConfigError(f"{name}.history.gate_dim must be at least 0, got {self.gate_dim}.")
        if self.gate_dim > 0 and self.history not in GATED:
            raise ConfigError(
                f"{name}.history.gate_dim={self.gate_dim} needs {name}.history.encoder=recency or "
                f"mean, got {self.history}."
            )
        if not 0 < self.decay <= 1:
            raise ConfigError(
                f"{name}.history.decay must be above 0 and at most 1, got {self.decay}."
            )
        if not 0 <= self.exponent <= 1:
            raise ConfigError(f"{name}.history.exponent must be from 0 to 1, got {self.exponent}.")


@dataclass(frozen=True, kw_only=True)
class ItemTowerSpec:
    """What the item tower reads and how it puts the pieces together; as in `UserTowerSpec`."""

    use_id: bool = True
    id_dropout: float = 0.1
    features: tuple[str, ...] | None = None
    feature_dropout: float = 0.1
    value_dropout: float = 0.0
    combine: str = "sum"
    hidden: tuple[int, ...] = ()
    dropout: float = 0.0
    norm: str = "none"

    def __post_init__(self) -> None:
        """Check the ranges."""
        name = "model.item_tower"
        _check_share(f"{name}.id_dropout", self.id_dropout)
        _check_layers(self, name)


def _check_share(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ConfigError(f"{name} must be at least 0 and below 1, got {value}.")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")


def _check_layers(spec: UserTowerSpec | ItemTowerSpec, name: str) -> None:
    _check_share(f"{name}: feature_dropout", spec.feature_dropout)
    _check_share(f"{name}: value_dropout", spec.value_dropout)
    _check_share(f"{name}: dropout", spec.dropout)
    _check_choice(f"{name}: combine", spec.combine, COMBINATIONS)
    _check_choice(f"{name}: normalization", spec.norm, NORMS)
    if any(width < 1 for width in spec.hidden):
        raise ConfigError(f"{name}.hidden must hold widths of at least 1, got {list(spec.hidden)}.")
