"""How many threads an operator of a training step is worth."""

from torch import nn

_WORTH_A_THREAD = 2**29  # operations, some milliseconds


def choose_operator_threads(model: nn.Module, *, rows: int, num_threads: int) -> int:
    """Choose by the widest dense layer, the one that gains most.

    An operator that is cut wakes its threads and waits for all of them: some hundred times a step.
    The others of a step's many operators are so short that one thread is done before; what is long
    in any model, the loss over many candidates, is cut once, as a whole.

    Args:
        model: The two towers.
        rows: That the layers get in a step, about.
        num_threads: That there are.

    Returns:
        From 1 to `num_threads`.
    """
    layers = (module for module in model.modules() if isinstance(module, nn.Linear))
    widest = max((layer.weight.numel() for layer in layers), default=0)
    return min(max(2 * rows * widest // _WORTH_A_THREAD, 1), num_threads)
