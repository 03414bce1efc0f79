"""What tends to follow the query's last item, as a distribution over the catalogue.

Dimensions: N pairs, C candidates in the catalogue, B queries, K candidates a query.
"""

import math
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import ArgumentError, check_integers, check_shape
from recsys.sampling.draw import check_rows
from recsys.sampling.proposal import PopularityProposal
from recsys.sampling.take import take


class BigramProposal:
    """The next item given the last one, from counted pairs, interpolated with the unigram.

    ``Q(y | last) = share * unigram(y) + (1 - share) * pairs(last, y) / pairs(last, any)``, and the
    unigram alone where the last item is not known (-1) or begins no pair. So Q > 0 for all that
    has events, whatever the last item.

    O(1) a draw: a random pair that begins with the last item, or the unigram's alias table. A
    probability takes O(log N), a search in the sorted pairs. Memory is O(N + C).

    Args:
        counts: [C], training events of each candidate; not all 0.
        previous_rows: [N], int64, in the catalogue: the first items of the pairs.
        next_rows: [N], int64, in the catalogue: the items that followed them; pairs may repeat.
        unigram_share: In (0, 1].

    Raises:
        ArgumentError: A row or the share is out of range; see also `popularity_probabilities`.
        ShapeError: `previous_rows` and `next_rows` are not [N] both.

    Source:
        "Adaptive importance sampling to accelerate training of a neural probabilistic language
        model", IEEE Transactions on Neural Networks 2008, whose proposals are n-grams; the
        interpolation is that of Jelinek and Mercer, 1980.
    """

    def __init__(
        self,
        counts: NDArray[Any] | Tensor,
        previous_rows: NDArray[Any] | Tensor,
        next_rows: NDArray[Any] | Tensor,
        *,
        unigram_share: float,
    ) -> None:
        if not 0 < unigram_share <= 1:
            raise ArgumentError(f"`unigram_share` must be in (0, 1], got {unigram_share}.")
        self._unigram = PopularityProposal(counts, alpha=1.0)
        self.num_candidates = num_candidates = self._unigram.num_candidates
        self._unigram_share = unigram_share
        check_integers("previous_rows", previous_rows)
        check_integers("next_rows", next_rows)
        previous_rows = torch.as_tensor(previous_rows, dtype=torch.int64)
        next_rows = torch.as_tensor(next_rows, dtype=torch.int64)
        check_shape("previous_rows", previous_rows, None)
        check_shape("next_rows", next_rows, len(previous_rows))
        check_rows("previous_rows", previous_rows, num_candidates)
        check_rows("next_rows", next_rows, num_candidates)

        keys = (previous_rows * num_candidates + next_rows).sort().values  # [N]
        self._next_rows = keys % num_candidates  # [N], by previous row
        self._num_pairs = torch.bincount(previous_rows, minlength=num_candidates)  # [C]
        self._starts = self._num_pairs.cumsum(dim=0) - self._num_pairs  # [C], into the pairs
        keys, pair_counts = keys.unique_consecutive(return_counts=True)
        # One key past all others, so that every search ends at a key.
        self._keys = torch.cat([keys, keys.new_full((1,), torch.iinfo(torch.int64).max)])
        self._pair_counts = torch.cat([pair_counts, pair_counts.new_zeros(1)])

    def draw(self, last_rows: Tensor, num_draws: int, generator: torch.Generator) -> Tensor:
        """Draw independently for each query, with replacement.

        Args:
            last_rows: [B], int64, in the catalogue, or -1 for none.
            num_draws: Draws a query.
            generator: The only source of randomness.

        Returns:
            [B, num_draws], int64.

        Raises:
            ArgumentError: A last row is out of range.
        """
        starts, num_pairs = self._pairs_of(last_rows)
        shape = (len(last_rows), num_draws)
        rows = self._unigram.draw(math.prod(shape), generator).view(shape)  # [B, num_draws]
        coins = torch.rand(shape, generator=generator, dtype=torch.float64)  # [0, 1)
        places = torch.rand(shape, generator=generator, dtype=torch.float64) * num_pairs[:, None]
        pairs = starts[:, None] + places.long()  # below starts + num_pairs where there are pairs
        follows = (coins >= self._unigram_share) & (num_pairs > 0)[:, None]
        rows[follows] = take(self._next_rows, pairs[follows])
        return rows

    def log_probability(self, last_rows: Tensor, rows: Tensor) -> Tensor:
        """Give the log of the chance that one draw of query b yields each of its candidates.

        Args:
            last_rows: [B], int64, in the catalogue, or -1 for none.
            rows: [B, K], int64, in the catalogue.

        Returns:
            [B, K], float64, nats; -inf for 0.

        Raises:
            ArgumentError: A row is out of range.
            ShapeError: `rows` does not have B rows.
        """
        check_shape("rows", rows, len(last_rows), None)
        _, num_pairs = self._pairs_of(last_rows)
        log_unigram = self._unigram.log_probability(rows)
        keys = last_rows[:, None].long() * self.num_candidates + rows  # below 0 without a last item
        places = torch.searchsorted(self._keys, keys)
        found = take(self._keys, places) == keys
        pair_counts = torch.where(found, take(self._pair_counts, places), 0)  # [B, K]
        log_pairs = pair_counts.double().log() - num_pairs.clamp(min=1).double().log()[:, None]
        share = self._unigram_share
        log_rest = math.log1p(-share) if share < 1 else -math.inf
        mixed = torch.logaddexp(log_unigram + math.log(share), log_pairs + log_rest)
        return torch.where((num_pairs > 0)[:, None], mixed, log_unigram)

    def _pairs_of(self, last_rows: Tensor) -> tuple[Tensor, Tensor]:
        """Give where the pairs of each last item begin and how many there are: [B] and [B]."""
        check_shape("last_rows", last_rows, None)
        check_integers("last_rows", last_rows)
        outside = last_rows[(last_rows < -1) | (last_rows >= self.num_candidates)]
        if len(outside):
            raise ArgumentError(
                f"`last_rows` must be in [-1, {self.num_candidates}), got {int(outside[0])}."
            )
        known = last_rows.clamp(min=0)
        num_pairs = take(self._num_pairs, known)
        return take(self._starts, known), torch.where(last_rows >= 0, num_pairs, 0)
