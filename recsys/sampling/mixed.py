"""Several samples of candidates side by side, under one Q."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, FormatError
from recsys.sampling.draw import DrawRequest, Sample, Sampler, StoredVectors


class MixedSampler:
    """Concatenate the candidates of several samplers; repeats stay.

    Every column gets the log of the **sum** of the samplers' expected counts, whichever drew it:
    what enters the softmax is the union, and in the union a candidate is expected that often. A
    sampler may have Q = 0 for a candidate that another one reaches. Samples shared by the batch
    and samples of one query each may stand side by side; the union is then one sample a query.

    Args:
        samplers: At least one, over the same catalogue; at most one holds the positives
            themselves. Two that share a proposal which learns would teach it twice a step.

    Raises:
        ArgumentError: There is no sampler.
    """

    def __init__(self, samplers: Sequence[Sampler]) -> None:
        if not samplers:
            raise ArgumentError("`samplers` must hold at least one sampler, got none.")
        self._samplers = tuple(samplers)

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        """Draw from the samplers in turn: [sum of S], or [B, sum of S] if any draws by query.

        Columns that the batch shares come before those of single queries.

        Raises:
            ArgumentError: More than one sample holds the positives themselves.
        """
        samples = [sampler.sample(request, generator) for sampler in self._samplers]
        return _union(samples, len(request.positive_rows))

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:
        """Let every sampler learn."""
        for sampler in self._samplers:
            sampler.update(positive_rows, positive_embeddings)

    def state_dict(self) -> dict[str, Tensor]:
        """Give the samplers' states under ``<position>.<name>``."""
        states = [sampler.state_dict() for sampler in self._samplers]
        return {f"{i}.{name}": value for i, s in enumerate(states) for name, value in s.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Hand each sampler its part.

        Raises:
            FormatError: It is of a mixture of more samplers, or of another sampler.
        """
        places = {str(i) for i in range(len(self._samplers))}
        strangers = sorted(name for name in state if name.partition(".")[0] not in places)
        if strangers:
            raise FormatError(
                f"The checkpoint's sampler state must be of {len(self._samplers)} samplers, "
                f"got {strangers}."
            )
        for i, sampler in enumerate(self._samplers):
            prefix = f"{i}."
            sampler.load_state_dict(
                {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            )


def _union(samples: list[Sample], batch: int) -> Sample:
    """Put samples side by side, those that are shared by the batch before the others."""
    samples = sorted(samples, key=lambda sample: sample.rows.ndim)
    starts = _starts(samples)
    stored = _stored(samples, starts)
    live = [sample for sample in samples if sample.stored is None]
    return Sample(
        rows=_join([sample.rows for sample in samples], batch),
        log_expected_count=lambda rows: _sum_of_counts(samples, rows),
        expected_size=sum(sample.expected_size for sample in samples),
        own_columns=_own_columns(samples, starts),
        column_groups=_column_groups(samples),
        stored=stored,
        num_shared=sum(len(sample.rows) for sample in samples if sample.rows.ndim == 1),
        live=_union(live, batch) if live and stored is not None and len(stored.columns) else None,
    )


def _starts(samples: list[Sample]) -> list[int]:
    """Give the column of the union at which each sample begins."""
    starts = [0]
    for sample in samples[:-1]:
        starts.append(starts[-1] + sample.rows.shape[-1])
    return starts


def _join(rows: list[Tensor], batch: int) -> Tensor:
    if all(part.ndim == 1 for part in rows):
        return torch.cat(rows)  # [S]
    return torch.cat([part.expand(batch, part.shape[-1]) for part in rows], dim=1)  # [B, S]


def _sum_of_counts(samples: list[Sample], rows: Tensor) -> Tensor:
    counts = [sample.log_expected_count(rows) for sample in samples]  # each [K] or [B, K]
    by_width = [[one for one in counts if one.ndim == ndim] for ndim in (1, 2)]
    sums = [torch.stack(same).logsumexp(dim=0) for same in by_width if same]
    return sums[0] if len(sums) == 1 else torch.logaddexp(*sums)


def _own_columns(samples: list[Sample], starts: list[int]) -> Tensor | None:
    _check_one_of_positives(samples)
    own = [
        start + sample.own_columns
        for start, sample in zip(starts, samples, strict=True)
        if sample.own_columns is not None
    ]
    return own[0] if own else None


def _column_groups(samples: list[Sample]) -> Tensor | None:
    if all(sample.column_groups is None for sample in samples):
        return None
    parts = [
        torch.full(sample.rows.shape[-1:], -1)  # drawn for all alike
        if sample.column_groups is None
        else sample.column_groups
        for sample in samples
    ]
    return torch.cat(parts)


def _check_one_of_positives(samples: list[Sample]) -> None:
    count = sum(s.own_columns is not None or s.column_groups is not None for s in samples)
    if count > 1:
        raise ArgumentError(
            f"`samplers` must hold at most one that gives the positives themselves, got {count}."
        )


def _stored(samples: list[Sample], starts: list[int]) -> StoredVectors | None:
    stored = [
        (start + sample.stored.columns, sample.stored.vectors)
        for start, sample in zip(starts, samples, strict=True)
        if sample.stored is not None
    ]
    if not stored:
        return None
    columns, vectors = zip(*stored, strict=True)
    return StoredVectors(torch.cat(columns), torch.cat(vectors))
