"""Running sums that change, against plain cumulative sums."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, ShapeError
from recsys.sampling import FenwickTree

VALUES = st.lists(st.integers(0, 9), min_size=1, max_size=40)


def array(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


@given(data=st.data(), values=VALUES)
def test_finds_what_a_cumulative_sum_finds_after_any_additions(
    data: st.DataObject, values: list[int]
) -> None:
    tree, plain = FenwickTree(array(*values)), array(*values)
    place = st.integers(0, len(values) - 1)
    for _ in range(3):
        pairs = data.draw(st.lists(st.tuples(place, st.integers(0, 5)), max_size=8))
        places, amounts = (array(*(pair[i] for pair in pairs)) for i in (0, 1))
        tree.add(places, amounts)
        np.add.at(plain, places, amounts)
        assert tree.total == plain.sum()
        assert tree.values.tolist() == plain.tolist()
        targets = np.arange(tree.total)  # all there are
        expected = np.searchsorted(plain.cumsum(), targets, side="right")
        assert tree.find(targets).tolist() == expected.tolist()


def test_holds_sums_beyond_32_bits() -> None:
    tree = FenwickTree(array(2**40, 0, 2**40))
    tree.add(array(1), array(2**41))
    found = tree.find(array(2**40 - 1, 2**40, 2**40 + 2**41 - 1, 2**40 + 2**41))
    assert found.tolist() == [0, 1, 1, 2]


def test_keeps_the_values_that_it_was_given_apart() -> None:
    values = array(1, 2)
    FenwickTree(values).add(array(0), array(5))
    assert values.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda: FenwickTree(array()), "`values` must hold one number or more"),
        (lambda: FenwickTree(array(1, -1)), "`values` must .* none below 0"),
        (lambda: FenwickTree(array(1, 2)).add(array(2), array(1)), r"`places` must be in \[0, 2\)"),
        (lambda: FenwickTree(array(1, 2)).add(array(-1), array(1)), r"`places` must be in"),
        (lambda: FenwickTree(array(1, 2)).add(array(0), array(-1)), "`amounts` must not be neg"),
        (lambda: FenwickTree(array(1, 2)).find(array(3)), r"`targets` must be in \[0, 3\)"),
        (lambda: FenwickTree(array(1, 2)).find(array(-1)), r"`targets` must be in \[0, 3\)"),
    ],
)
def test_names_the_argument_that_is_wrong(work: Callable[[], object], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        work()


def test_refuses_a_table_of_values() -> None:
    with pytest.raises(ShapeError, match="`values` must have shape"):
        FenwickTree(np.ones((2, 2), dtype=np.int64))
