"""How many threads an operator of a training step is worth."""

from collections.abc import Iterable

from torch import nn

_WORTH_A_THREAD = 2**29  # operations, some milliseconds


def choose_operator_threads(parts: Iterable[tuple[nn.Module, int]], *, num_threads: int) -> int:
    """Choose by the dense layer that multiplies most, the one that gains most.

    An operator that is cut wakes its threads and waits for all of them: some hundred times a step.
    The others of a step's many operators are so short that one thread is done before; what is long
    in any model, the loss over many candidates, takes all threads by itself.

    Args:
        parts: Parts of a model, each with the rows that go through it in a step, about.
        num_threads: That there are.

    Returns:
        From 1 to `num_threads`.
    """
    most = max((2 * rows * _widest(part) for part, rows in parts), default=0)
    return min(max(most // _WORTH_A_THREAD, 1), num_threads)


def _widest(part: nn.Module) -> int:
    """Give the size of the largest matrix that rows are multiplied with; tables are none."""
    layers = (module for module in part.modules() if isinstance(module, nn.Linear | nn.RNNBase))
    weights = (weight for layer in layers for weight in layer.parameters(recurse=False))
    return max((weight.numel() for weight in weights if weight.dim() == 2), default=0)
