"""Learning-rate schedules: pure functions of the step, as a factor of the rate that was set.

A resumed run needs nothing but the step to go on where it stopped.
"""

import math
from collections.abc import Callable, Iterable

from torch.optim import Optimizer

from recsys.foundations import ArgumentError, check_choice

Schedule = Callable[[int], float]
SCHEDULES = ("constant", "linear_warmup_decay", "cosine")


def warm_up(step: int, *, warmup_steps: int) -> float:
    """Rise in equal steps to 1: ``(step + 1) / (warmup_steps + 1)``, then stay; above 0 always."""
    return min(1.0, (step + 1) / (warmup_steps + 1))


def linear_warmup_decay(step: int, *, warmup_steps: int, total_steps: int) -> float:
    """Rise to 1 in `warmup_steps`, then fall in a straight line to 0 at `total_steps`."""
    left = 1 - _progress(step, warmup_steps, total_steps)
    return warm_up(step, warmup_steps=warmup_steps) * left


def cosine(step: int, *, warmup_steps: int, total_steps: int) -> float:
    """Rise to 1 in `warmup_steps`, then fall along half a cosine to 0 at `total_steps`."""
    left = (1 + math.cos(math.pi * _progress(step, warmup_steps, total_steps))) / 2
    return warm_up(step, warmup_steps=warmup_steps) * left


def build_schedule(name: str, *, warmup_steps: int, total_steps: int) -> Schedule:
    """Give the schedule of that name as a function of the step, counted from 0.

    Args:
        name: "constant" (after the warm-up), "linear_warmup_decay" or "cosine".
        warmup_steps: Steps below the full rate at the start; 0 for none.
        total_steps: Steps of the whole run; more than `warmup_steps`.

    Raises:
        ArgumentError: The name is unknown, or the numbers leave no step at the full rate.
    """
    check_choice("schedule", name, SCHEDULES)
    if not 0 <= warmup_steps < total_steps:
        raise ArgumentError(
            f"`warmup_steps` must be at least 0 and below `total_steps` ({total_steps}), "
            f"got {warmup_steps}."
        )
    match name:
        case "constant":
            return lambda step: warm_up(step, warmup_steps=warmup_steps)
        case "linear_warmup_decay":
            return lambda step: linear_warmup_decay(
                step, warmup_steps=warmup_steps, total_steps=total_steps
            )
        case _:
            return lambda step: cosine(step, warmup_steps=warmup_steps, total_steps=total_steps)


def set_learning_rates(optimizers: Iterable[Optimizer], factor: float) -> None:
    """Set each group's rate to the factor times the rate it was built with."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
            group["lr"] = group["initial_lr"] * factor


def _progress(step: int, warmup_steps: int, total_steps: int) -> float:
    """Give the share of the decay that lies behind: 0 until the warm-up ends, 1 at the end."""
    return min(1.0, max(0.0, (step - warmup_steps) / (total_steps - warmup_steps)))
