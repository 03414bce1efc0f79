"""Importance sampling of the softmax gradient, with as many draws as it takes.

Dimensions: B rows in the batch, b of them still short, N candidates in a block of draws, C
candidates in the catalogue.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from recsys.data import FeatureTable, TrainingBatch
from recsys.losses import (
    full_softmax_loss,
    grow_row_samples,
    grow_sample,
    importance_log_weights,
)
from recsys.models import TwoTower
from recsys.sampling import Draw, Sampler, draw
from recsys.training.drawn_candidates import embed_rows, request_draw
from recsys.training.epoch_means import EpochMeans
from recsys.training.expand_queries import expand_queries
from recsys.training.objective import Catalogue
from recsys.training.state_parts import join_parts, split_parts


@dataclass(frozen=True, kw_only=True)
class SampleGrowth:
    """When a sample is large enough.

    Attributes:
        min_ess: Effective sample size to reach; 0: one block is enough, the sample is fixed.
        max_samples: Draws after which a row that has not reached it takes the full softmax.
        ess_quantile: Share of the batch's rows, in [0, 1), that may stay below `min_ess` where the
            draws are shared, and do with what they have; 0: none.
    """

    min_ess: float
    max_samples: int
    ess_quantile: float


@dataclass(frozen=True)
class Grown:
    """How far the sample of a batch grew.

    Attributes:
        num_samples: [B], draws of each row.
        ess: [B], effective sample size.
        reached: [B], bool; the others are short of it and take the full softmax.
    """

    num_samples: Tensor
    ess: Tensor
    reached: Tensor


class DrawBlock(Protocol):
    """Draw one block more for some rows of the batch."""

    def __call__(self, rows: Tensor) -> Tensor:
        """Give the block's log importance weights [b, N] of the rows [b] of the batch."""
        ...


class Grow(Protocol):
    """Draw blocks until the sample is large enough: `grow_shared`, `grow_each`."""

    def __call__(self, draw_block: DrawBlock, num_rows: int, growth: SampleGrowth) -> Grown:
        """Draw for B rows."""
        ...


def grow_shared(draw_block: DrawBlock, num_rows: int, growth: SampleGrowth) -> Grown:
    """Grow one sample for all rows, until enough of them have reached it."""
    rows = torch.arange(num_rows)
    grown = grow_sample(
        (draw_block(rows) for _ in itertools.count()),
        min_ess=growth.min_ess,
        max_samples=growth.max_samples,
        ess_quantile=growth.ess_quantile,
    )
    return Grown(torch.full((num_rows,), grown.num_samples), grown.ess, grown.reached)


def grow_each(draw_block: DrawBlock, num_rows: int, growth: SampleGrowth) -> Grown:
    """Grow a sample for each row, until it has reached it."""
    grown = grow_row_samples(
        draw_block, num_rows, min_ess=growth.min_ess, max_samples=growth.max_samples
    )
    return Grown(grown.num_samples, grown.ess, grown.reached)


class ImportanceObjective:
    """Draw blocks until the effective sample size is reached, or take the full softmax.

    Sample size, effective sample size and the share of rows that took the full softmax are the
    epoch's statistics.

    Args:
        sampler: Draws one block, with replacement.
        item_features: [C] rows.
        growth: When to stop.
        grow: `grow_shared` where a block is shared by the batch, `grow_each` where each query has
            its own.

    Source:
        "Adaptive importance sampling to accelerate training of a neural probabilistic language
        model", IEEE Transactions on Neural Networks 2008.
    """

    def __init__(
        self, sampler: Sampler, item_features: FeatureTable, growth: SampleGrowth, grow: Grow
    ) -> None:
        self._sampler, self._growth, self._grow = sampler, growth, grow
        self._catalogue = Catalogue(item_features)
        self._means = EpochMeans("sample_size", "effective_sample_size", "full_softmax_share")

    def losses(
        self,
        model: TwoTower,
        query_embeddings: Tensor,
        batch: TrainingBatch,
        generator: torch.Generator,
    ) -> Tensor:
        """Compute the loss of each row: [B]."""
        query_embeddings, batch = expand_queries(query_embeddings, batch)
        request = request_draw(batch, query_embeddings)
        positives = embed_rows(model, self._catalogue.features, request.positive_rows)
        blocks = _Blocks(model, self._catalogue.features, query_embeddings, positives)

        def draw_block(rows: Tensor) -> Tensor:
            return blocks.add(draw(self._sampler, request.take(rows), generator), rows)

        grown = self._grow(draw_block, len(batch.positives), self._growth)
        losses = blocks.losses()
        short = (~grown.reached).nonzero().squeeze(1).to(losses.device)
        if len(short):
            weights = None if batch.weights is None else torch.from_numpy(batch.weights)
            exact = full_softmax_loss(
                query_embeddings[short],
                self._catalogue.embed(model),
                positive_rows=request.positive_rows.to(short.device)[short],
                temperature=model.temperature(),
                loss_weights=None if weights is None else weights.to(short.device)[short],
            )
            losses = losses.index_copy(0, short, exact)
        self._means.add(
            sample_size=grown.num_samples,
            effective_sample_size=grown.ess,
            full_softmax_share=~grown.reached,
        )
        self._sampler.update(request.positive_rows, positives.detach())
        return losses

    def start_epoch(self) -> None:
        """Begin the epoch's statistics anew."""
        self._means.start_epoch()

    def statistics(self) -> dict[str, float]:
        """Give the mean sample size, effective sample size and share of full softmaxes."""
        return self._means.means()

    def state_dict(self) -> dict[str, Tensor]:
        """Give the state of sampler and statistics."""
        return join_parts(sampler=self._sampler.state_dict(), statistics=self._means.state_dict())

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Hand each part its state.

        Raises:
            FormatError: It is of another loss or sampler.
        """
        sampler, statistics = split_parts(state, "sampler", "statistics")
        self._sampler.load_state_dict(sampler)
        self._means.load_state_dict(statistics)


class _Blocks:
    """The blocks that were drawn for a batch, as the estimate of Z that each gives its rows."""

    def __init__(
        self, model: TwoTower, features: FeatureTable, queries: Tensor, positives: Tensor
    ) -> None:
        self._model, self._features = model, features
        self._queries = queries
        self._temperature: Tensor = model.temperature()
        dtype = torch.promote_types(queries.dtype, torch.float32)
        products = queries.to(dtype) * positives.to(dtype)
        self._positive_logits: Tensor = products.sum(dim=1) / self._temperature  # [B]
        self._totals = queries.new_full((len(queries),), float("-inf"), dtype=dtype)
        self._counts = torch.zeros(len(queries), device=queries.device)

    def add(self, drawn: Draw, rows: Tensor) -> Tensor:
        """Add a block for some rows [b] of the batch; give its log importance weights [b, N]."""
        rows = rows.to(self._queries.device)
        weigh = self._weigh_shared if drawn.rows.dim() == 1 else self._weigh_own
        log_weights, log_total = weigh(self._queries.index_select(0, rows), drawn)
        total = torch.logaddexp(self._totals.index_select(0, rows), log_total)
        self._totals = self._totals.index_copy(0, rows, total)
        self._counts[rows] += 1
        return log_weights.cpu()

    def _weigh_shared(self, queries: Tensor, drawn: Draw) -> tuple[Tensor, Tensor]:
        """Give the log weights [b, N] and, with its gradient, the log of their sum [b].

        Every candidate is scored once, however often it was drawn.
        """
        distinct, places, counts = torch.unique(drawn.rows, return_inverse=True, return_counts=True)
        log_q = torch.empty(len(distinct)).scatter_(0, places, drawn.log_q)
        log_weights = importance_log_weights(
            queries,
            self._embed(distinct),
            log_q=log_q.to(queries.device),
            temperature=self._temperature,
        )  # [b, distinct]
        log_total = (log_weights + counts.log().to(queries.device)).logsumexp(dim=1)
        return log_weights.detach().index_select(1, places.to(queries.device)), log_total

    def _weigh_own(self, queries: Tensor, drawn: Draw) -> tuple[Tensor, Tensor]:
        """Do the same where each query has draws of its own."""
        distinct, places = torch.unique(drawn.rows, return_inverse=True)
        log_weights = importance_log_weights(
            queries,
            self._embed(distinct),
            log_q=drawn.log_q.to(queries.device),
            temperature=self._temperature,
            places=places.to(queries.device),
        )
        return log_weights.detach(), log_weights.logsumexp(dim=1)

    def _embed(self, distinct: Tensor) -> Tensor:
        return self._model.embed_candidates(distinct, self._features.take(distinct.numpy()))

    def losses(self) -> Tensor:
        """Give the losses [B] of all blocks of a row as one sample.

        The log of the mean weight over all draws is that of the mean over the (equally large)
        blocks.
        """
        return self._totals - self._counts.log() - self._positive_logits
