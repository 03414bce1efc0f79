"""From a dataset and a model to the rows that estimators are measured on."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.data import EventBatches, PreparedDataset, TrainingBatch
from recsys.diagnosis.positives import ChosenPositives
from recsys.diagnosis.subject import BatchPeers, DrawnPeers, Subject
from recsys.evaluation import embed_queries
from recsys.models import QueryInputs, TwoTower, encode_queries


@dataclass(frozen=True)
class Towers:
    """A model as it scores, without training.

    Attributes:
        model: Both towers.
        item_vectors: [C, E], float32; those of the candidates.
    """

    model: TwoTower
    item_vectors: NDArray[np.float32]

    @property
    def temperature(self) -> float:
        """Give what divides the scores."""
        return float(self.model.temperature().detach())

    @cached_property
    def items(self) -> Tensor:
        """Give the item vectors as a tensor, which shares their memory unless that is a file."""
        writable = np.require(self.item_vectors, requirements="W")  # torch refuses others
        return torch.from_numpy(np.asarray(writable))


def subject_of_positives(
    dataset: PreparedDataset, towers: Towers, chosen: ChosenPositives
) -> Subject:
    """Make validation positives the rows; in-batch candidates come from the training part."""
    return Subject(
        query_vectors=torch.from_numpy(embed_queries(towers.model, chosen.queries)),
        positive_rows=torch.from_numpy(chosen.item_rows),
        last_rows=torch.from_numpy(chosen.last_rows()),
        item_vectors=towers.items,
        temperature=towers.temperature,
        peers=DrawnPeers(torch.from_numpy(dataset.train.items.astype(np.int64))),
    )


def subjects_of_batches(
    dataset: PreparedDataset,
    towers: Towers,
    *,
    ties: str,
    batch_size: int,
    num_batches: int,
    seed: int,
) -> Iterator[Subject]:
    """Make training batches the rows, one batch after another; their peers are their own.

    Args:
        dataset: The prepared data set. With fewer training events than a batch has, all of them
            are each batch.
        towers: Embed the queries.
        ties: See `EventBatches`.
        batch_size: B.
        num_batches: Batches, of as many epochs as that takes.
        seed: Of their order.
    """
    batches = EventBatches(
        dataset.train,
        clock=dataset.clock,
        ties=ties,
        history_length=max(towers.model.history_length, 1),  # the bigram asks for the last item
        batch_size=min(batch_size, len(dataset.train)),
        drop_last=True,
        seed=seed,
    )
    epochs = (batches.epoch(epoch) for epoch in itertools.count())
    for batch in itertools.islice(itertools.chain.from_iterable(epochs), num_batches):
        yield _subject_of_batch(dataset, towers, batch)


def _subject_of_batch(dataset: PreparedDataset, towers: Towers, batch: TrainingBatch) -> Subject:
    features = dataset.users.features.take(batch.users)
    inputs = QueryInputs(batch.users, batch.histories, features, batch.context)
    positives = torch.from_numpy(batch.positives.astype(np.int64))
    return Subject(
        query_vectors=torch.from_numpy(encode_queries(towers.model, inputs)),
        positive_rows=positives,
        last_rows=torch.from_numpy(batch.histories[:, 0].astype(np.int64)),
        item_vectors=towers.items,
        temperature=towers.temperature,
        peers=BatchPeers(positives),
    )
