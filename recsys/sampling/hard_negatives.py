"""Candidates that the model itself ranks highest for each query.

Dimensions: B queries in the batch, n candidates drawn a query, m candidates of its list, E output
width of the towers.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, check_count, check_integers, check_shape
from recsys.sampling.draw import DrawRequest, Sample, check_no_state


class HardNegativeSampler:
    """Draw n candidates alike from each query's top m, with replacement.

    A candidate is expected ``n / m`` times where it is in the top m (as often again for each repeat
    in the list), and never elsewhere. So the sampler has a place only in a mixture that reaches
    every candidate: alone, `draw` refuses a positive outside its own query's list. A positive
    within it can be drawn; it then is an accidental hit like any other.

    Args:
        search: From query embeddings [B, E] to rows [B, m], int64, on the CPU: the best candidates
            of each query, as the model of the moment or of a recent step ranks them. The list that
            is drawn from is the one that Q is taken from, however old it is.
        num_sampled: n, at least 1.
        num_top: m, at least 1.

    Raises:
        ArgumentError: One of the two numbers is below 1.
    """

    def __init__(
        self, search: Callable[[Tensor], Tensor], *, num_sampled: int, num_top: int
    ) -> None:
        check_count("num_sampled", num_sampled)
        check_count("num_top", num_top)
        self._search, self._num_sampled, self._num_top = search, num_sampled, num_top

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        """Draw [B, n] candidates.

        Raises:
            ArgumentError: The request holds no query embeddings, or the search found too few
                candidates and filled up with negative rows.
            ShapeError: The search did not give [B, m].
        """
        queries = request.query_embeddings
        if queries is None:
            raise ArgumentError("`query_embeddings` must be given for hard negatives, got none.")
        batch = len(queries)
        top = self._search(queries)  # [B, m]
        check_shape("search(query_embeddings)", top, batch, self._num_top)
        check_integers("search(query_embeddings)", top)
        if (top < 0).any():
            raise ArgumentError(
                f"`num_top` must be a number of candidates that the search finds, "
                f"got {self._num_top}."
            )
        places = torch.randint(self._num_top, (batch, self._num_sampled), generator=generator)
        ordered = top.sort(dim=1).values
        # How often each entry stands in its list: once, unless the search repeats itself.
        repeats = torch.searchsorted(ordered, ordered, right=True)
        repeats -= torch.searchsorted(ordered, ordered)
        return Sample(
            rows=top.gather(1, places),
            log_expected_count=lambda rows: self._log_expected_count(ordered, repeats, rows),
            expected_size=self._num_sampled,
        )

    def _log_expected_count(self, ordered: Tensor, repeats: Tensor, rows: Tensor) -> Tensor:
        if rows.ndim == 1:
            times = _count_in_lists(ordered, rows)  # [B, K]
        else:
            times = self._find_in_lists(ordered, repeats, rows)
        return times.log() + math.log(self._num_sampled / self._num_top)

    def _find_in_lists(self, ordered: Tensor, repeats: Tensor, rows: Tensor) -> Tensor:
        by_query = rows.expand(len(ordered), rows.shape[-1]).contiguous()  # [B, K]
        places = torch.searchsorted(ordered, by_query).clamp(max=self._num_top - 1)
        listed = ordered.gather(1, places) == by_query
        return torch.where(listed, repeats.gather(1, places), 0).double()  # [B, K]

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:
        """Do nothing: what the search knows is kept by its owner."""

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: the sampler does not change."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)


def _count_in_lists(lists: Tensor, rows: Tensor) -> Tensor:
    """Count how often each of the rows [K] stands in each list [B, m]: [B, K], float64.

    The lists are looked up among the rows, not the rows in every list: m is smaller than K.
    """
    unique, columns = rows.unique(return_inverse=True)  # [U], [K]
    counts = lists.new_zeros(len(lists), len(unique), dtype=torch.float64)
    if len(unique):
        places = torch.searchsorted(unique, lists).clamp(max=len(unique) - 1)  # [B, m]
        counts.scatter_add_(1, places, (unique[places] == lists).double())
    return counts.index_select(1, columns)
