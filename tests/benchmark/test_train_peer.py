"""iALS of the package implicit: what it ranks, for whom, and what is said where it is missing."""

import importlib.util
import sys

import numpy as np
import pytest

from recsys.benchmark import PeerIals, PeerSettings, peer_is_missing
from recsys.data import Events, FeatureSchema, FeatureTable
from recsys.foundations import Ragged

SETTINGS = PeerSettings(factors=2, regularization=0.1, alpha=5.0, iterations=8, threads=1)
needs_implicit = pytest.mark.skipif(
    importlib.util.find_spec("implicit") is None, reason="needs implicit"
)


def make_two_groups() -> Events:
    """Make users 0 to 9 of items 0 to 4, and users 10 to 19 of items 5 to 9, one missing each."""
    users = np.repeat(np.arange(20), 4)
    items = np.concatenate(
        [[item + 5 * (user >= 10) for item in range(5) if item != user % 5] for user in range(20)]
    )
    nothing = FeatureTable.missing(FeatureSchema(), len(users))
    return Events(users, items, None, None, nothing)


@needs_implicit
def test_a_new_user_gets_what_others_with_the_same_items_had_and_nothing_twice() -> None:
    peer = PeerIals(make_two_groups(), 10, SETTINGS, seed=0)
    peer.fit()
    had = Ragged(np.array([0, 3, 5]), np.array([0, 1, 2, 7, 8]))
    first, second = peer.top(had, 3)[0].tolist(), peer.top(had, 3)[1].tolist()
    assert set(first[:2]) == {3, 4}
    assert set(second) == {5, 6, 9}


@needs_implicit
def test_a_list_is_as_long_as_what_is_left() -> None:
    peer = PeerIals(make_two_groups(), 10, SETTINGS, seed=0)
    peer.fit()
    had = Ragged(np.array([0, 8]), np.arange(8))
    assert sorted(peer.top(had, 5)[0].tolist()) == [8, 9]


def test_a_missing_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "implicit", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert peer_is_missing() == "it needs implicit: pip install 'recsys-retrieval[peers]'"
