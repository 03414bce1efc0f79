"""What an estimator of the softmax is: candidates of some rows, and a loss over them."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from recsys.diagnosis.candidates import Candidates, LossInputs
from recsys.diagnosis.row_losses import RowLoss
from recsys.diagnosis.subject import Subject
from recsys.losses import full_softmax_loss, sampled_softmax_loss
from recsys.sampling import DrawRequest, Sampler, draw

MakeSampler = Callable[[int], Sampler]


class Estimator(Protocol):
    """Estimates the gradient of the full softmax from candidates."""

    def sample(self, subject: Subject, size: int, generator: torch.Generator) -> Candidates:
        """Draw candidates for all rows of the subject; `size` is the sample size as it is set."""
        ...

    def loss(self, inputs: LossInputs, candidates: Candidates) -> Tensor:
        """Give the losses of a block of rows: [b], in nats."""
        ...


class FullSoftmax:
    """The softmax over the whole catalogue: what the others stand for, and the time to beat."""

    def sample(self, subject: Subject, size: int, generator: torch.Generator) -> Candidates:  # noqa: ARG002
        """Give every candidate once, so that log Q is 0."""
        return Candidates(
            rows=torch.arange(subject.num_items),
            num_draws=subject.num_items,
            log_q=torch.zeros(subject.num_items),
            positive_log_q=torch.zeros(len(subject)),
        )

    def loss(self, inputs: LossInputs, candidates: Candidates) -> Tensor:
        """Compute the loss that training computes; from scores alone, the same over a sample."""
        if inputs.sampled_biases is None:
            return full_softmax_loss(
                inputs.queries,
                inputs.sampled,
                positive_rows=inputs.positive_rows,
                temperature=inputs.temperature,
            )
        return sampled_softmax_loss(
            **inputs.arguments(),
            positive_rows=inputs.positive_rows,
            sampled_rows=candidates.rows,
            positive_log_q=candidates.positive_log_q,
            sampled_log_q=candidates.log_q,
        )


class Sampled:
    """A loss over the candidates of a sampler.

    Args:
        make_sampler: From the sample size to the sampler.
        loss: Of each row.
    """

    def __init__(self, make_sampler: MakeSampler, loss: RowLoss) -> None:
        self._make_sampler, self._loss = make_sampler, loss

    def sample(self, subject: Subject, size: int, generator: torch.Generator) -> Candidates:
        """Draw as a training step of these rows would."""
        request = DrawRequest(subject.positive_rows, subject.last_rows, subject.query_vectors)
        return Candidates.of(draw(self._make_sampler(size), request, generator))

    def loss(self, inputs: LossInputs, candidates: Candidates) -> Tensor:
        """Give the loss of each row."""
        return self._loss(inputs, candidates)


class InBatch:
    """A loss over the positives of a training batch, and maybe drawn candidates behind them.

    Args:
        make_sampler: From the sample size to the sampler.
        loss: Of each row.
        num_peers: From the sample size to the positives of the batch.
    """

    def __init__(
        self, make_sampler: MakeSampler, loss: RowLoss, num_peers: Callable[[int], int]
    ) -> None:
        self._make_sampler, self._loss, self._num_peers = make_sampler, loss, num_peers

    def sample(self, subject: Subject, size: int, generator: torch.Generator) -> Candidates:
        """Draw as a step would whose batch holds the subject's peers.

        Where the peers are others, the row itself makes the batch one larger, which adds one
        constant to all log Q and changes nothing.
        """
        peers = subject.peers.draw(self._num_peers(size), generator)
        sample = self._make_sampler(size).sample(DrawRequest(peers.rows), generator)
        return Candidates(
            rows=sample.rows,
            num_draws=sample.expected_size,
            log_q=sample.log_expected_count(sample.rows).float(),
            positive_log_q=sample.log_expected_count(subject.positive_rows).float(),
            own_columns=sample.own_columns if peers.are_own else None,
        )

    def loss(self, inputs: LossInputs, candidates: Candidates) -> Tensor:
        """Give the loss of each row."""
        return self._loss(inputs, candidates)
