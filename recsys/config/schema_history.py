"""Settings of what reads a user's history: types and ranges."""

from dataclasses import dataclass
from typing import Any

from omegaconf import MISSING

from recsys.config.ranges import at_least, one_of, share
from recsys.foundations import ConfigError

ENCODERS = ("none", "mean", "recency", "attention", "gru", "transformer")
_KEY = "model.user_tower.history"


@dataclass(kw_only=True)
class UserHistoryConfig:
    """The part of the user tower that reads the user's earlier items."""

    encoder: str = MISSING
    length: int = MISSING  # the newest events that are read
    decay: float = MISSING  # recency: weight of an event is decay ** age; above 0, at most 1
    exponent: float = MISSING  # the sum is divided by (sum of weights) ** exponent
    dropout: float = MISSING  # share of the history items left out at random in training
    table: str = MISSING
    gate_dim: int = MISSING  # mean, recency; 0: no gate
    num_heads: int = MISSING  # attention, transformer
    num_interests: int = MISSING  # attention: vectors of a user
    num_layers: int = MISSING  # gru, transformer
    layer_dropout: float = MISSING  # gru, transformer
    positions: str = MISSING  # transformer
    time_gaps: Any = MISSING  # gru, transformer: the time between events; auto: where there is one

    def __post_init__(self) -> None:
        """Check the ranges and what excludes what."""
        one_of(f"{_KEY}.encoder", self.encoder, ENCODERS)
        if not 0 < self.decay <= 1:
            raise ConfigError(f"{_KEY}.decay must be above 0 and at most 1, got {self.decay}.")
        if not 0 <= self.exponent <= 1:
            raise ConfigError(f"{_KEY}.exponent must be from 0 to 1, got {self.exponent}.")
        share(f"{_KEY}.dropout", self.dropout)
        share(f"{_KEY}.layer_dropout", self.layer_dropout)
        one_of(f"{_KEY}.table", self.table, ("own", "shared", "tower"))
        one_of(f"{_KEY}.positions", self.positions, ("none", "absolute", "relative"))
        for name in ("length", "num_heads", "num_interests", "num_layers"):
            at_least(f"{_KEY}.{name}", getattr(self, name), 1)
        at_least(f"{_KEY}.gate_dim", self.gate_dim, 0)
        if self.time_gaps not in (True, False, "auto"):
            raise ConfigError(
                f"{_KEY}.time_gaps must be true, false or auto, got {self.time_gaps!r}."
            )
        if self.gate_dim > 0 and self.encoder not in ("mean", "recency"):
            raise ConfigError(
                f"{_KEY}.gate_dim={self.gate_dim} needs {_KEY}.encoder=recency or mean, "
                f"got {self.encoder}."
            )
        if self.num_interests > 1 and self.encoder != "attention":
            raise ConfigError(
                f"{_KEY}.num_interests={self.num_interests} needs {_KEY}.encoder=attention, "
                f"got {self.encoder}."
            )

    def reads_times(self, clock: str) -> bool:
        """Tell whether the time between events is read of a log with this clock."""
        if self.time_gaps == "auto":
            return clock == "time" and self.encoder in ("gru", "transformer")
        return bool(self.time_gaps)

    def check_width(self, embedding_dim: int) -> None:
        """Check that the heads of the attention divide the width of the embeddings."""
        if self.encoder in ("attention", "transformer") and embedding_dim % self.num_heads != 0:
            raise ConfigError(
                f"model.embedding_dim must be a multiple of {_KEY}.num_heads, "
                f"got {embedding_dim} for {self.num_heads}."
            )
