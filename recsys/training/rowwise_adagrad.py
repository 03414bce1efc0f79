"""Adagrad with one accumulator a row, for embedding tables."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from recsys.foundations import ArgumentError, check_positive


class RowwiseAdagrad(Optimizer):
    """Update only the rows that the gradient touches; keep one number a row.

    For each touched row, with gradient g of width D (plus ``weight_decay * row``)::

        sum += mean(g^2);    row -= learning_rate * g / (sqrt(sum) + eps)

    A step costs what the touched rows cost, whatever the size of the table. Repeats of a row in a
    sparse gradient are added up first. A dense gradient touches every row.

    Args:
        params: Tables, [N, D] or [N].
        learning_rate: Above 0.
        weight_decay: L2 penalty's factor; acts on touched rows only, when they are touched.
        eps: Keeps a row with a gradient of 0 in place.
        initial_accumulator: Start of each row's sum; a larger one makes the first steps smaller.

    Raises:
        ArgumentError: `learning_rate` is not above 0, or another number is negative.

    Source:
        The row-wise form in "Deep learning recommendation model for personalization and
        recommendation systems", arXiv 1906.00091, 2019.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        *,
        learning_rate: float,
        weight_decay: float = 0.0,
        eps: float = 1e-10,
        initial_accumulator: float = 0.0,
    ) -> None:
        check_positive("learning_rate", learning_rate)
        for name, value in (
            ("weight_decay", weight_decay),
            ("eps", eps),
            ("initial_accumulator", initial_accumulator),
        ):
            if not value >= 0:
                raise ArgumentError(f"`{name}` must not be negative, got {value}.")
        super().__init__(params, {"lr": learning_rate, "weight_decay": weight_decay, "eps": eps})
        for group in self.param_groups:
            for table in group["params"]:  # here, not in a step: this is of size N
                accumulator = torch.full((len(table),), initial_accumulator, device=table.device)
                self.state[table]["sum"] = accumulator

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the touched rows of every table that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is not None:
                    self._update(table, table.grad, group)
        return loss

    def _update(self, table: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            rows, values = gradient.indices()[0], gradient.values()  # [R], [R, ...]
        else:
            rows, values = torch.arange(len(table), device=table.device), gradient
        if len(rows) == 0:  # no row of the batch has, for one, a history
            return
        # Gathered, changed and put back: adding in place visits a large table row by row.
        held = table.index_select(0, rows)
        if group["weight_decay"] != 0:
            values = values.add(held, alpha=group["weight_decay"])
        accumulator = self.state[table]["sum"]
        sums = accumulator.index_select(0, rows).add_(_mean_squares(values))  # [R]
        accumulator.index_copy_(0, rows, sums)
        factors = sums.sqrt_().add_(group["eps"]).reciprocal_().mul_(-group["lr"])
        factors = factors.reshape(-1, *[1] * (values.dim() - 1)).to(table.dtype)
        table.index_copy_(0, rows, held.addcmul_(values, factors))


def _mean_squares(values: Tensor) -> Tensor:
    """Give the mean square of each row: [R, ...] to [R], float32."""
    by_row = values.reshape(len(values), -1)
    norms: Tensor = torch.linalg.vector_norm(by_row, dim=1, dtype=torch.float32)
    return norms.square_().div_(by_row.shape[1])
