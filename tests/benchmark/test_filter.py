"""A filter inside an index against scoring what is allowed: both are timed at every share."""

import pytest

from recsys.benchmark import measure_filter


@pytest.mark.parametrize("kind", ["hnsw", "ivf_flat", "ivf_pq"])
def test_both_ways_are_timed_by_the_number_of_allowed_items(kind: str) -> None:
    result = measure_filter(
        kind=kind,
        catalogue_size=600,
        percents=[50, 10],
        dim=4,
        k=3,
        num_queries=5,
        rounds=2,
        seed=0,
    )
    names = [
        f"{way}, {how}"
        for way in ("inside the index", "allowed items scored")
        for how in ("one alone", "all at once")
    ]
    assert list(result.measurements) == names
    assert [line.name for line in result.growth] == names
    for line in result.growth:
        few, many = line.sizes
        assert 30 < few < 100  # 60 and 300 are expected
        assert 240 < many < 360
    assert [(ratio.first, ratio.second) for ratio in result.ratios] == [
        (names[0], names[2]),
        (names[1], names[3]),
    ]
    assert result.measurements[names[0]].calls == result.measurements[names[1]].units == 5
