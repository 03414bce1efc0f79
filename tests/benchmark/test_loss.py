"""The benchmark of the loss: what it measures, and what it sets against what."""

import pytest

from recsys.benchmark import measure_loss


@pytest.mark.slow
def test_measures_every_way_at_its_sizes_and_how_it_grows() -> None:
    result = measure_loss(sizes=[32, 64], plain_sizes=[32], dim=8, rounds=1, seed=0)
    ways = {name.rsplit(", B = ", 1)[0] for name in result.measurements}
    assert {"float32 blocks", "bfloat16 blocks", "plain torch, all logits"} < ways
    assert "plain torch, all logits, B = 32" in result.measurements
    assert "plain torch, all logits, B = 64" not in result.measurements
    blocks = result.measurements["float32 blocks, B = 64"]
    assert blocks.units == 64
    assert blocks.peak_bytes is not None
    assert blocks.floor_seconds is not None
    pairs = {(ratio.first, ratio.second, ratio.quantity) for ratio in result.ratios}
    for kept in ("", ", memory kept"):
        names = (f"float32 blocks{kept}, B = 32", f"plain torch, all logits{kept}, B = 32")
        assert (*names, "time") in pairs
    assert ("bfloat16 blocks, B = 64", "float32 blocks, B = 64", "time") in pairs
    growth = {line.name: line for line in result.growth}
    assert growth["float32 blocks"].sizes == [32, 64]
    assert growth["plain torch, all logits"].sizes == [32]
