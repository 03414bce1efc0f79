"""From a dataset and a model to the rows that estimators are measured on.

Dimensions: N rows, M interests of a query, C candidates, E output width, T width in training.
"""

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

    The loss trains the first T numbers of its vectors, and so estimators are measured on these.
    What a ridge part adds in search stands behind them.

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
        """Give what is trained of the item vectors, [C, T], which are shared unless in a file."""
        trained = self.trained(self.item_vectors)
        writable = np.require(trained, requirements="W")  # torch refuses others
        return torch.from_numpy(np.asarray(writable))

    def trained(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Give the numbers of vectors that the loss trains: [..., E] to [..., T]."""
        return vectors[..., : self.model.training_dim]


def subject_of_positives(
    dataset: PreparedDataset, towers: Towers, chosen: ChosenPositives
) -> Subject:
    """Make validation positives the rows; in-batch candidates come from the training part."""
    vectors = _routed(embed_queries(towers.model, chosen.queries), chosen.item_rows, towers)
    return Subject(
        query_vectors=torch.from_numpy(vectors),
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
        with_times=towers.model.uses_times,
        repeats=not dataset.exclude_seen,
    )
    epochs = (batches.epoch(epoch) for epoch in itertools.count())
    for batch in itertools.islice(itertools.chain.from_iterable(epochs), num_batches):
        yield _subject_of_batch(dataset, towers, batch)


def _subject_of_batch(dataset: PreparedDataset, towers: Towers, batch: TrainingBatch) -> Subject:
    features = dataset.users.features.take(batch.users)
    inputs = QueryInputs(batch.users, batch.histories, features, batch.context, batch.times)
    vectors = _routed(encode_queries(towers.model, inputs), batch.positives, towers)
    positives = torch.from_numpy(batch.positives.astype(np.int64))
    return Subject(
        query_vectors=torch.from_numpy(vectors),
        positive_rows=positives,
        last_rows=torch.from_numpy(batch.histories[:, 0].astype(np.int64)),
        item_vectors=towers.items,
        temperature=towers.temperature,
        peers=BatchPeers(positives),
    )


def _routed(
    query_vectors: NDArray[np.float32], positives: NDArray[np.int64], towers: Towers
) -> NDArray[np.float32]:
    """Take what is trained, of several interests that which scores the positive highest.

    Training routes so too.

    Args:
        query_vectors: [N, E] or [N, M, E].
        positives: [N].
        towers: Give the items' vectors.

    Returns:
        [N, T].
    """
    vectors = towers.trained(query_vectors)
    if vectors.ndim == 2:
        return vectors
    scores = np.einsum("nme,ne->nm", vectors, towers.trained(towers.item_vectors[positives]))
    best = scores.argmax(axis=1)[:, None, None]  # [N, 1, 1]
    return np.take_along_axis(vectors, best, axis=1)[:, 0]
