"""A loss over the candidates that a sampler drew, in-batch ones among them.

Dimensions: B rows in the batch, S sampled candidates, C candidates in the catalogue.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.data import FeatureTable, TrainingBatch
from recsys.models import TwoTower
from recsys.sampling import Draw, Popularity, Sampler, check_no_state, draw
from recsys.training.drawn_candidates import embed_drawn, request_draw
from recsys.training.epoch_means import EpochMeans
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
    """

    def __init__(
        self,
        sampler: Sampler,
        item_features: FeatureTable,
        loss: SampledLoss,
        *,
        popularity: Popularity | None = None,
        known_positives: KnownPositives | None = None,
    ) -> None:
        self._sampler, self._features, self._loss = sampler, item_features, loss
        self._popularity, self._known = popularity, known_positives
        self._means = EpochMeans("sample_size")

    def losses(
        self,
        model: TwoTower,
        query_embeddings: Tensor,
        batch: TrainingBatch,
        generator: torch.Generator,
    ) -> Tensor:
        """Compute the loss of each row: [B]."""
        positive_rows = torch.from_numpy(batch.positives)
        drawn = draw(self._sampler, request_draw(batch, query_embeddings), generator)
        positives, sampled = embed_drawn(model, self._features, positive_rows, drawn)
        mask = None
        if self._known is not None:
            others = self._known.find_others(batch.users, positive_rows, drawn.rows)
            mask = others.logical_not()
        losses = self._loss(
            _make_terms(
                model,
                query_embeddings,
                positive_embeddings=positives,
                sampled_embeddings=sampled,
                positive_rows=positive_rows,
                drawn=drawn,
                mask=mask,
            )
        )
        self._means.add(sample_size=float(drawn.rows.shape[-1]))
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


def _make_terms(
    model: TwoTower,
    query_embeddings: Tensor,
    *,
    positive_embeddings: Tensor,
    sampled_embeddings: Tensor,
    positive_rows: Tensor,
    drawn: Draw,
    mask: Tensor | None,
) -> SampledTerms:
    """Gather the terms of a loss, on the device of the queries."""
    device = query_embeddings.device
    return SampledTerms(
        query_embeddings=query_embeddings,
        positive_embeddings=positive_embeddings,
        sampled_embeddings=sampled_embeddings,
        positive_rows=positive_rows.to(device),
        sampled_rows=drawn.rows.to(device),
        positive_log_q=drawn.positive_log_q.to(device),
        sampled_log_q=drawn.log_q.to(device),
        num_draws=drawn.num_draws,
        temperature=model.temperature(),
        own_columns=None if drawn.own_columns is None else drawn.own_columns.to(device),
        sampled_mask=None if mask is None else mask.to(device),
    )
