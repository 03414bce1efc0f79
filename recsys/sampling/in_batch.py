"""The positives of the other queries of the batch as candidates."""

from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.foundations import check_count
from recsys.sampling.draw import DrawRequest, Sample, check_no_state
from recsys.sampling.popularity_estimate import Popularity


class InBatchSampler:
    """Take the batch's own positives, S = B; nothing is drawn where they come one by one.

    Q is the count expected in a batch of B, on the query's own column as on all others. The own
    column leaves its row (`Draw.own_columns`).

    Where the positives come in groups (`DrawRequest.groups`), at most `max_columns` of them are the
    sample, chosen at random. A row's candidates are the columns of the other groups, n of them in
    the mean over the rows, and Q is the count expected among n. For a batch of one group n is 1. A
    row's own n may differ from the mean: alone, that is a constant of the row, which cancels; in a
    mixture it is an approximation, the coarser the more the groups differ in size.

    Args:
        popularity: The rate at which the loader emits each candidate. It is only read: whoever
            owns it updates it and keeps its state.
        max_columns: The most columns of a batch whose positives come in groups, which may be many
            times its queries. None: all positives are columns.

    Raises:
        ArgumentError: `max_columns` is no whole number from 1 on.
    """

    def __init__(self, popularity: Popularity, *, max_columns: int | None = None) -> None:
        if max_columns is not None:
            check_count("max_columns", max_columns)
        self._popularity, self._max_columns = popularity, max_columns

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        """Give the positives as the sample: [B], or [S] of them where they come in groups."""
        if request.groups is not None:
            return self._sample_groups(request.positive_rows, request.groups, generator)
        batch = len(request.positive_rows)
        return Sample(
            rows=request.positive_rows,
            log_expected_count=lambda rows: self._popularity.log_rate(rows, batch),
            expected_size=batch,
            own_columns=torch.arange(batch),
        )

    def _sample_groups(
        self, positives: Tensor, groups: Tensor, generator: torch.Generator
    ) -> Sample:
        columns = torch.arange(len(positives))
        if self._max_columns is not None and len(positives) > self._max_columns:
            columns = torch.randperm(len(positives), generator=generator)[: self._max_columns]
        size = _count_others(groups, groups[columns])
        return Sample(
            rows=positives[columns],
            log_expected_count=lambda rows: self._popularity.log_rate(rows, size),
            expected_size=size,
            column_groups=groups[columns],
        )

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:
        """Do nothing: the popularity is not this sampler's."""

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: the sampler does not change."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)


def _count_others(groups: Tensor, column_groups: Tensor) -> float:
    """Count the columns of other groups than a row's, in the mean over the rows; at least 1."""
    names, places = groups.unique(return_inverse=True)
    of_rows = torch.bincount(places, minlength=len(names)).double()
    columns = torch.bincount(torch.searchsorted(names, column_groups), minlength=len(names))
    own = (of_rows * columns).sum() / max(len(groups), 1)
    return max(float(len(column_groups) - own), 1.0)
