"""How memory is divided, and what is refused."""

import pytest

from recsys.data.memory_budget import MemoryBudget
from recsys.foundations import ConfigError, available_memory


def test_events_get_what_the_program_and_the_ids_leave() -> None:
    # 8 GB less 0.5 for the program and 0.2 for a million ids: 7.3 GB of 12 bytes.
    assert MemoryBudget.of(8.0).events_at_once(10**6, 12) == 7_300_000_000 // 12


def test_too_little_is_refused_with_what_would_do() -> None:
    with pytest.raises(ConfigError, match=r"`memory_gb` must be at least 1, got 0\.9"):
        MemoryBudget.of(0.9)
    with pytest.raises(ConfigError, match=r"at least 2\.5 for 10,000,000 users and items, got 2"):
        MemoryBudget.of(2.0).events_at_once(10**7, 12)
    with pytest.raises(ConfigError, match=r"at least 3\.1 for 10,000,000 interactions of some u"):
        MemoryBudget.of(2.0).check_rows(10**7)


def test_without_a_bound_nothing_is_refused_and_some_rows_are_worked_on() -> None:
    budget = MemoryBudget.of(None)
    assert not budget.is_given
    assert budget.num_bytes <= max(available_memory(), 10**9)
    budget.check_rows(10**12)
    assert budget.events_at_once(10**12, 12) == 262_144  # 2^18
