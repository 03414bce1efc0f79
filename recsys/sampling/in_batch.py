"""The positives of the other queries of the batch as candidates."""

from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.sampling.draw import DrawRequest, Sample, check_no_state
from recsys.sampling.popularity_estimate import Popularity


class InBatchSampler:
    """Take the batch's own positives, S = B; nothing is drawn.

    Q is the count expected in a batch of B, on the query's own column as on all others. The own
    column leaves its row (`Draw.own_columns`).

    Where the positives come in groups (`DrawRequest.groups`), a row's candidates are those of the
    other groups, n of them in the mean over the rows, and Q is the count expected among n. For a
    batch of one group n is 1. A row's own n may differ from the mean: alone, that is a constant of
    the row, which cancels; in a mixture it is an approximation, the coarser the more the groups
    differ in size.

    Args:
        popularity: The rate at which the loader emits each candidate. It is only read: whoever
            owns it updates it and keeps its state.
    """

    def __init__(self, popularity: Popularity) -> None:
        self._popularity = popularity

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:  # noqa: ARG002
        """Give the positives as the sample: [B]."""
        batch = len(request.positive_rows)
        size = batch if request.groups is None else _count_others(request.groups)
        return Sample(
            rows=request.positive_rows,
            log_expected_count=lambda rows: self._popularity.log_rate(rows, size),
            expected_size=size,
            own_columns=torch.arange(batch),
        )

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:
        """Do nothing: the popularity is not this sampler's."""

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: the sampler does not change."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)


def _count_others(groups: Tensor) -> float:
    """Count the positives of other groups, in the mean over the rows; at least 1."""
    sizes = groups.unique(return_counts=True)[1].double()
    return max(float(len(groups) - sizes.square().sum() / max(len(groups), 1)), 1.0)
