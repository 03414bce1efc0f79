"""How a log is to be split, and what a split says."""

from dataclasses import dataclass, field

from recsys.data.coded_log import PARTS
from recsys.data.column_file import ColumnFile
from recsys.foundations import ConfigError

RULES = (
    "auto",
    "temporal",
    "leave_last_out",
    "strong_generalization",
    "cold_items",
    "given",
    "random",
)
FOLD_ORDERS = ("time", "random")
TRAIN, VALIDATION, TEST, VALIDATION_INPUT, TEST_INPUT = range(len(PARTS))


@dataclass(frozen=True, kw_only=True)
class SplitSettings:
    """How to split.

    Attributes:
        rule: "temporal": one cut in time for all; "leave_last_out": each user's last event is for
            the test, the one before for validation (of two events the last is for the test, a
            single one is for training); "strong_generalization": all events of held-out users;
            "cold_items": all events of held-out items; "random": by interaction; "given": the
            parts were read apart; "auto": temporal with a clock, leave_last_out with an order,
            random with neither.
        validation_share: Share of the interactions (strong_generalization: of the users;
            cold_items: of the items that have events and stand in the table of items); 0 for no
            validation part.
        test_share: Likewise.
        validation_from: temporal: the first moment of the validation part, in ISO form or as an
            epoch number, in place of its share.
        test_from: temporal: the first moment of the test part.
        fold_in: strong_generalization: share of a held-out user's events that is the input; the
            rest is the target.
        fold_in_order: strong_generalization: which events those are: "time": the oldest ones;
            "random": any, by seed, as where there is no order.
    """

    rule: str = "auto"
    validation_share: float = 0.1
    test_share: float = 0.1
    validation_from: str | int | None = None
    test_from: str | int | None = None
    fold_in: float = 0.8
    fold_in_order: str = "time"

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name, choices in (("rule", RULES), ("fold_in_order", FOLD_ORDERS)):
            if getattr(self, name) not in choices:
                raise ConfigError(
                    f"`split.{name}` must be one of {', '.join(choices)}, "
                    f"got {getattr(self, name)!r}."
                )
        for name in ("validation_share", "test_share"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"`split.{name}` must be in [0, 1), got {getattr(self, name)}.")
        if not self.validation_share + self.test_share < 1:
            raise ConfigError(
                "`split.validation_share` and `split.test_share` must leave something to train "
                f"on, got {self.validation_share} and {self.test_share}."
            )
        if not 0 < self.fold_in < 1:
            raise ConfigError(f"`split.fold_in` must be in (0, 1), got {self.fold_in}.")


@dataclass(frozen=True)
class Split:
    """The part of each interaction.

    Attributes:
        rule: What was applied; never "auto".
        parts: [M], int8, a position in PARTS, for each row of the log.
        validation_from: temporal: the first moment of validation, in microseconds (UTC).
        test_from: temporal: likewise of the test.
        held_out: cold_items: part -> number of items that are held out for it.
    """

    rule: str
    parts: ColumnFile
    validation_from: int | None = None
    test_from: int | None = None
    held_out: dict[str, int] = field(default_factory=dict)
