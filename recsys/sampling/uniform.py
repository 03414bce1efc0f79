"""Candidates drawn alike from the whole catalogue."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.foundations import check_positive
from recsys.sampling.draw import Draw, check_no_state, check_rows, draw_from


class UniformSampler:
    """Draw S candidates a batch with replacement, each with chance 1 / C.

    The expected count is ``S / C``, exactly; repeats stay as separate terms.

    Args:
        num_candidates: C, at least 1.
        num_sampled: S, at least 1.

    Raises:
        ArgumentError: One of the two is below 1.
    """

    def __init__(self, num_candidates: int, *, num_sampled: int) -> None:
        check_positive("num_candidates", num_candidates)
        check_positive("num_sampled", num_sampled)
        self.num_candidates = num_candidates
        self.num_sampled = num_sampled

    def draw(self, positive_rows: Tensor, generator: torch.Generator) -> Draw:
        """Draw [S] candidates shared by the batch; see `draw_from` for the errors."""
        return draw_from(self, positive_rows, generator)

    def draw_rows(self, positive_rows: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Draw candidates only: [S], int64."""
        return torch.randint(self.num_candidates, (self.num_sampled,), generator=generator)

    def log_expected_count(self, rows: Tensor, batch_size: int) -> Tensor:  # noqa: ARG002
        """Give ``log(S / C)``: as `rows`, float64."""
        check_rows("rows", rows, self.num_candidates)
        log_q = math.log(self.num_sampled / self.num_candidates)
        return torch.full(rows.shape, log_q, dtype=torch.float64)

    def num_columns(self, batch_size: int) -> int:  # noqa: ARG002
        """Give S."""
        return self.num_sampled

    def own_columns(self, batch_size: int) -> Tensor | None:  # noqa: ARG002
        """Give None: a positive is drawn by accident only."""
        return None

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: the sampler does not change."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)
