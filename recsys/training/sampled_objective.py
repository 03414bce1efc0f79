"""A loss over the candidates that a sampler drew, in-batch ones among them.

Dimensions: B rows in the batch, S sampled candidates, C candidates in the catalogue.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.data import FeatureTable, TrainingBatch
from recsys.losses import SampledEmbeddings
from recsys.models import TwoTower
from recsys.sampling import Draw, Popularity, Sampler, check_no_state, draw
from recsys.training.drawn_candidates import embed_drawn, request_draw
from recsys.training.epoch_means import EpochMeans
from recsys.training.expand_queries import expand_queries
from recsys.training.known_positives import KnownPositives
from recsys.training.sampled_losses import SampledLoss, SampledTerms
from recsys.training.state_parts import join_parts, split_parts


class SampledObjective:
    """Draw, embed what is needed once, compute the loss; then let the sampler learn.

    Args:
        sampler: Draws candidates and owns their log Q.
        item_features: [C] rows.
        loss: Of each row.
        popularity: The rates that in-batch and memory samplers read, which are updated here, once
            a step, after they were used. None: no sampler reads any.
        known_positives: Sampled candidates that the user has elsewhere in training leave the row.
            None: they stay.
        shorten: Gives what stands in for a draw, with which the loss is the same, such as
            `merge_repeats`. None: nothing does.
    """

    def __init__(
        self,
        sampler: Sampler,
        item_features: FeatureTable,
        loss: SampledLoss,
        *,
        popularity: Popularity | None = None,
        known_positives: KnownPositives | None = None,
        shorten: Callable[[Draw], Draw] | None = None,
    ) -> None:
        self._sampler, self._features, self._loss = sampler, item_features, loss
        self._popularity, self._known = popularity, known_positives
        self._shorten = shorten
        self._means = EpochMeans("sample_size")

    def losses(
        self,
        model: TwoTower,
        query_embeddings: Tensor,
        batch: TrainingBatch,
        generator: torch.Generator,
    ) -> Tensor:
        """Compute the loss of each row: [B]."""
        query_embeddings, batch = expand_queries(query_embeddings, batch)
        positive_rows = torch.from_numpy(batch.positives)
        drawn = draw(self._sampler, request_draw(batch, query_embeddings), generator)
        self._means.add(sample_size=float(drawn.rows.shape[-1]))
        drawn = drawn if self._shorten is None else self._shorten(drawn)
        embedded = embed_drawn(model, self._features, positive_rows, drawn)
        step = _Step(model, batch, positive_rows, self._known)
        positives = embedded.positives
        if drawn.live is None:
            losses = self._loss(step.terms(query_embeddings, positives, embedded.sampled, drawn))
        else:
            of_queries = step.terms(
                query_embeddings, positives.detach(), _detach(embedded.sampled), drawn
            )
            of_candidates = step.terms(
                query_embeddings.detach(), positives, embedded.live, drawn.live
            )
            losses = _join_gradients(self._loss(of_queries), self._loss(of_candidates))
        self._sampler.update(positive_rows, positives.detach())
        if self._popularity is not None:
            self._popularity.update(positive_rows)
        return losses

    def start_epoch(self) -> None:
        """Begin the epoch's statistics anew."""
        self._means.start_epoch()

    def statistics(self) -> dict[str, float]:
        """Give the mean `sample_size`."""
        return self._means.means()

    def state_dict(self) -> dict[str, Tensor]:
        """Give the state of sampler, popularity and statistics."""
        popularity = {} if self._popularity is None else self._popularity.state_dict()
        return join_parts(
            sampler=self._sampler.state_dict(),
            popularity=popularity,
            statistics=self._means.state_dict(),
        )

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Hand each part its state.

        Raises:
            FormatError: It is of another loss, sampler or popularity.
        """
        sampler, popularity, statistics = split_parts(state, "sampler", "popularity", "statistics")
        self._sampler.load_state_dict(sampler)
        if self._popularity is None:
            check_no_state(popularity)
        else:
            self._popularity.load_state_dict(popularity)
        self._means.load_state_dict(statistics)


@dataclass(frozen=True)
class _Step:
    """What the terms of one step's losses have in common."""

    model: TwoTower
    batch: TrainingBatch
    positive_rows: Tensor
    known: KnownPositives | None

    def terms(
        self, queries: Tensor, positives: Tensor, sampled: SampledEmbeddings, drawn: Draw
    ) -> SampledTerms:
        """Gather the terms of a loss, on the device of the queries."""
        device = queries.device
        drawn_mask = self._find_drawn(drawn)
        mask = drawn_mask
        if self.known is not None:
            others = self.known.find_others(self.batch.users, self.positive_rows, drawn.rows)
            mask = ~others if mask is None else mask & ~others
        temperature, weights = self.model.temperature(), self.batch.weights
        return SampledTerms(
            query_embeddings=queries,
            positive_embeddings=positives,
            sampled_embeddings=sampled,
            positive_rows=self.positive_rows.to(device),
            sampled_rows=drawn.rows.to(device),
            positive_log_q=drawn.positive_log_q.to(device),
            sampled_log_q=drawn.log_q.to(device),
            num_draws=drawn.num_draws,
            temperature=temperature if queries.requires_grad else temperature.detach(),
            own_columns=None if drawn.own_columns is None else drawn.own_columns.to(device),
            sampled_mask=None if mask is None else mask.to(device),
            drawn_mask=None if drawn_mask is None else drawn_mask.to(device),
            loss_weights=None if weights is None else torch.from_numpy(weights).to(device),
        )

    def _find_drawn(self, drawn: Draw) -> Tensor | None:
        """Find the columns that are draws for each row: [B, S], bool; None: all but its own.

        The positives of the row's user stand in a grouped batch because they are the user's.
        """
        if drawn.column_groups is None:
            return None
        return torch.from_numpy(self.batch.users)[:, None] != drawn.column_groups


def _detach(embeddings: SampledEmbeddings) -> SampledEmbeddings:
    if isinstance(embeddings, Tensor):
        return embeddings.detach()
    shared, own = embeddings
    return shared.detach(), own.detach() if isinstance(own, Tensor) else own.detached()


def _join_gradients(of_queries: Tensor, of_candidates: Tensor) -> Tensor:
    """Give the first losses' values, with the gradients of both.

    Stored vectors take no gradient. In one loss over all columns the candidates would get the
    positives' pull in full and of the negatives' push only the live columns' share, so that
    popular ones would drift up. Here the queries' gradient comes from all columns, the candidates'
    from the live ones, each with the Q that belongs to its columns.
    """
    return of_queries + (of_candidates - of_candidates.detach())
