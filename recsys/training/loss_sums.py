"""The sums of an epoch's losses, and the watch over them, without a wait for the device."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, Self

import torch
from torch import Tensor

from recsys.data import TrainingBatch
from recsys.foundations import TrainingError
from recsys.training.checkpoint import Position

_MOST_LATE = 16  # steps
_NAMED = 5  # users and items of a batch


class LossSums(Protocol):
    """Adds the losses of steps up, and stops where one is not finite."""

    def add(self, total: Tensor, weight_sum: Tensor, batch: TrainingBatch) -> None:
        """Add a step: the sum of its weighted losses, and of the weights.

        Raises:
            TrainingError: A loss is not finite, of this step or an earlier one.
        """
        ...

    def settle(self) -> None:
        """Bring the position's sums up to the last step.

        Raises:
            TrainingError: A loss is not finite.
        """
        ...


def start_sums(position: Position, device: torch.device) -> LossSums:
    """Give the sums that go on from a position and keep its own up to date.

    On cuda the sums stay there: a step does not wait for its loss, which is looked at when it has
    come, a few steps later. Elsewhere it is looked at before the step goes on.
    """
    if device.type == "cuda":
        return LateSums(position, device, PinnedCopy.of)
    return PromptSums(position)


class PromptSums:
    """Sums that are up to date after each step.

    Args:
        position: Whose sums they are; it counts the steps.
    """

    def __init__(self, position: Position) -> None:
        self._position = position

    def add(self, total: Tensor, weight_sum: Tensor, batch: TrainingBatch) -> None:
        """Add a step; see `LossSums`."""
        position, value = self._position, float(total.detach())
        _Step.at(position, batch).check(value)
        position.loss_sum += value
        position.weight_sum += float(weight_sum)

    def settle(self) -> None:
        """Do nothing: they are."""


class Copy(Protocol):
    """Values on their way from the device."""

    def is_done(self) -> bool:
        """Tell whether they have come, without waiting."""
        ...

    def read(self) -> list[float]:
        """Give them, once they have come."""
        ...


@dataclass(frozen=True)
class PinnedCopy:
    """Values that a cuda device copies into memory that stays where it is."""

    values: Tensor
    event: torch.cuda.Event = field(default_factory=torch.cuda.Event)

    @classmethod
    def of(cls, values: Tensor) -> Self:
        """Start the copy."""
        target = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
        copy = cls(target.copy_(values, non_blocking=True))
        copy.event.record()
        return copy

    def is_done(self) -> bool:
        """Tell whether they have come; see `Copy`."""
        return bool(self.event.query())

    def read(self) -> list[float]:
        """Give them; see `Copy`."""
        self.event.synchronize()
        values: list[float] = self.values.tolist()
        return values


class LateSums:
    """Sums on the device; the position has those that have come from there.

    A loss that is not finite makes its step's sum, and all later ones, so: that is how it is found.

    Args:
        position: Whose sums they are; it counts the steps.
        device: Where the losses are.
        copy: Starts to copy values from there.
    """

    def __init__(
        self, position: Position, device: torch.device, copy: Callable[[Tensor], Copy]
    ) -> None:
        self._position, self._copy = position, copy
        sums = [position.loss_sum, position.weight_sum]
        self._sums = torch.tensor(sums, dtype=torch.float64, device=device)
        self._coming: deque[tuple[_Step, Copy]] = deque()

    def add(self, total: Tensor, weight_sum: Tensor, batch: TrainingBatch) -> None:
        """Add a step; see `LossSums`."""
        self._sums += torch.stack([total.detach(), weight_sum]).double()
        self._coming.append((_Step.at(self._position, batch), self._copy(self._sums)))
        while self._coming and (len(self._coming) > _MOST_LATE or self._coming[0][1].is_done()):
            self._take()

    def settle(self) -> None:
        """Wait for what has not come; see `LossSums`."""
        while self._coming:
            self._take()

    def _take(self) -> None:
        step, copy = self._coming.popleft()
        loss_sum, weight_sum = copy.read()
        step.check(loss_sum)
        self._position.loss_sum, self._position.weight_sum = loss_sum, weight_sum


@dataclass(frozen=True)
class _Step:
    """What is said of a step whose loss is not finite.

    Attributes:
        number: Of the step, from 1.
        epoch: From 1.
        users: Some of its users.
        items: Some of its positives.
    """

    number: int
    epoch: int
    users: list[int]
    items: list[int]

    @classmethod
    def at(cls, position: Position, batch: TrainingBatch) -> Self:
        """Describe the step that a position is at."""
        users, items = batch.users[:_NAMED].tolist(), batch.positives[:_NAMED].tolist()
        return cls(position.step + 1, position.epoch + 1, users, items)

    def check(self, loss: float) -> None:
        """Check that a loss, or a sum that it is in, is finite."""
        if abs(loss) < float("inf"):
            return
        raise TrainingError(
            f"the loss is {loss} at step {self.number} (epoch {self.epoch}, users "
            f"{self.users}..., items {self.items}...); the last checkpoint is kept. "
            "A lower optimizer.learning_rate or optimizer.gradient_clip=1 often helps."
        )
