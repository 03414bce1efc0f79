"""How much memory preparing a log may take, and how many events have room in it."""

from dataclasses import dataclass

from recsys.foundations import ConfigError, available_memory

LEAST_MEMORY_GB = 1.0
_PROGRAM_BYTES = 500_000_000  # Python and the libraries
_LEAST_EVENTS = 2**18  # put in order together
_BYTES_A_ROW = 256  # read, checked, coded and sorted, with what that takes in between
_BYTES_AN_ID = 200  # of a user or an item: text, order, counts and row


@dataclass(frozen=True)
class MemoryBudget:
    """The memory that preparing a log may take, all in all.

    Attributes:
        num_bytes: That much.
        is_given: Whether the user said so; else a log that needs more is prepared all the same.
    """

    num_bytes: int
    is_given: bool

    @classmethod
    def of(cls, memory_gb: float | None) -> "MemoryBudget":
        """Take what the user gave, or half of what the machine has free.

        Args:
            memory_gb: In units of 10^9 bytes; or None.

        Raises:
            ConfigError: It is less than `LEAST_MEMORY_GB`.
        """
        if memory_gb is None:
            most = max(available_memory() // 2, int(LEAST_MEMORY_GB * 1e9))
            return cls(most, is_given=False)
        if memory_gb < LEAST_MEMORY_GB:
            raise ConfigError(
                f"`memory_gb` must be at least {LEAST_MEMORY_GB:g}, got {memory_gb:g}."
            )
        return cls(int(memory_gb * 1e9), is_given=True)

    def check_rows(self, num_rows: int) -> None:
        """Check that rows which must be sorted together have room.

        Raises:
            ConfigError: They have not; the message says what would do.
        """
        self._check(num_rows * _BYTES_A_ROW, f"{num_rows:,} interactions of some users")

    def events_at_once(self, num_ids: int, bytes_an_event: int) -> int:
        """Give the events that are put in order together, beside what is kept of users and items.

        Args:
            num_ids: Users and items.
            bytes_an_event: Of an event's columns.

        Raises:
            ConfigError: Users and items alone have no room; the message says what would do.
        """
        ids = num_ids * _BYTES_AN_ID
        self._check(ids, f"{num_ids:,} users and items")
        left = self.num_bytes - _PROGRAM_BYTES - ids
        return max(left // bytes_an_event, _LEAST_EVENTS)

    def _check(self, num_bytes: int, what: str) -> None:
        needed = num_bytes + _PROGRAM_BYTES
        if self.is_given and needed > self.num_bytes:
            raise ConfigError(
                f"`memory_gb` must be at least {needed / 1e9 + 0.05:.1f} for {what}, got "
                f"{self.num_bytes / 1e9:g}."
            )
