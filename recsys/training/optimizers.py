"""The optimisers of a model: one for its embedding tables, one for the rest."""

from collections.abc import Iterator
from typing import Protocol

import torch
from torch.nn import Parameter
from torch.optim import Optimizer

from recsys.foundations import ArgumentError, ConfigError, check_choice
from recsys.training.rowwise_adagrad import RowwiseAdagrad

TABLE_OPTIMIZERS = ("rowwise_adagrad", "adagrad", "adam", "lazy_adam", "sgd")
_WITH_WEIGHT_DECAY = ("rowwise_adagrad", "adam")


class HasTables(Protocol):
    """A model that tells its embedding tables from its other parameters."""

    def tables(self) -> Iterator[tuple[str, Parameter]]:
        """Give name and parameter of each embedding table."""
        ...

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Give name and parameter of everything that is trained."""
        ...


def needs_sparse_gradients(table_optimizer: str) -> bool:
    """Tell whether the tables' gradients must be sparse: all but `adam`, which visits every row.

    Raises:
        ArgumentError: The name is unknown.
    """
    check_choice("optimizer.name", table_optimizer, TABLE_OPTIMIZERS)
    return table_optimizer != "adam"


def takes_weight_decay(table_optimizer: str) -> bool:
    """Tell whether an optimiser can apply a decay to the rows that a step touches."""
    return table_optimizer in _WITH_WEIGHT_DECAY


def check_optimizer_settings(table_optimizer: str, weight_decay: float) -> None:
    """Check what excludes each other.

    Raises:
        ConfigError: The name is unknown, the decay is negative, or the optimiser cannot apply a
            decay to the rows of a sparse gradient.
    """
    if table_optimizer not in TABLE_OPTIMIZERS:
        raise ConfigError(
            f"`optimizer.name` must be one of {', '.join(TABLE_OPTIMIZERS)}, "
            f"got {table_optimizer!r}."
        )
    if not weight_decay >= 0:
        raise ConfigError(f"`optimizer.weight_decay` must not be negative, got {weight_decay}.")
    if weight_decay > 0 and not takes_weight_decay(table_optimizer):
        raise ConfigError(
            f"`optimizer.weight_decay` must be 0 with `optimizer.name={table_optimizer}`, whose "
            f"sparse updates cannot apply it, got {weight_decay}; use "
            f"{' or '.join(_WITH_WEIGHT_DECAY)}."
        )


def build_optimizers(
    model: HasTables,
    *,
    table_optimizer: str,
    learning_rate: float,
    dense_learning_rate: float,
    weight_decay: float,
    dense_weight_decay: float,
    initial_accumulator: float = 0.0,
) -> list[Optimizer]:
    """Build the optimiser of the tables, then Adam for the dense parts; one of an empty set is out.

    Weight decay is an L2 penalty: its gradient is added to the loss's. On tables it acts on the
    rows that a step touches, with `adam` on all rows.

    Args:
        model: Its `tables()` get the table optimiser, every other trained parameter Adam.
        table_optimizer: "rowwise_adagrad", "adagrad", "lazy_adam" and "sgd" take sparse gradients,
            and a step costs what the touched rows cost; "adam" takes dense ones and visits every
            row.
        learning_rate: Of the tables; above 0.
        dense_learning_rate: Of the rest; above 0.
        weight_decay: Of the tables; at least 0, and 0 where the optimiser has none.
        dense_weight_decay: Of the rest; at least 0.
        initial_accumulator: Of the tables' rows, for "rowwise_adagrad" (see `RowwiseAdagrad`). At
            0 a row's first gradient is taken at full length, however small: not what the tiny ones
            need that a full softmax gives every row. Must be 0 with every other optimiser.

    Raises:
        ConfigError: See `check_optimizer_settings`.
        ArgumentError: A learning rate is not above 0, or `dense_weight_decay` is negative.
    """
    check_optimizer_settings(table_optimizer, weight_decay)
    for name, rate in (
        ("learning_rate", learning_rate),
        ("dense_learning_rate", dense_learning_rate),
    ):
        if not rate > 0:
            raise ArgumentError(f"`{name}` must be above 0, got {rate}.")
    if initial_accumulator != 0 and table_optimizer != "rowwise_adagrad":
        raise ArgumentError(
            f"`initial_accumulator` must be 0 for {table_optimizer}, got {initial_accumulator}."
        )
    if not dense_weight_decay >= 0:
        raise ArgumentError(f"`dense_weight_decay` must not be negative, got {dense_weight_decay}.")
    tables = _distinct([table for _, table in model.tables()])
    known = {id(table) for table in tables}
    dense = [
        param
        for _, param in model.named_parameters()
        if param.requires_grad and id(param) not in known
    ]
    optimizers = []
    if tables:
        optimizers.append(
            _build_table_optimizer(
                table_optimizer, tables, learning_rate, weight_decay, initial_accumulator
            )
        )
    if dense:
        optimizers.append(
            torch.optim.Adam(
                dense, lr=dense_learning_rate, weight_decay=dense_weight_decay, fused=True
            )
        )
    return optimizers


def _build_table_optimizer(
    name: str,
    tables: list[Parameter],
    learning_rate: float,
    weight_decay: float,
    initial_accumulator: float,
) -> Optimizer:
    checks = torch.sparse.check_sparse_tensor_invariants
    if not checks.is_enabled():
        # Torch's own sparse optimisers warn at the first step unless its default is chosen aloud.
        checks.disable()
    match name:
        case "rowwise_adagrad":
            return RowwiseAdagrad(
                tables,
                learning_rate=learning_rate,
                weight_decay=weight_decay,
                initial_accumulator=initial_accumulator,
            )
        case "adagrad":
            return torch.optim.Adagrad(tables, lr=learning_rate)
        case "lazy_adam":
            return torch.optim.SparseAdam(tables, lr=learning_rate)
        case "sgd":
            return torch.optim.SGD(tables, lr=learning_rate)
        case _:
            return torch.optim.Adam(tables, lr=learning_rate, weight_decay=weight_decay, fused=True)


def _distinct(tables: list[Parameter]) -> list[Parameter]:
    """Drop repeats of a table that two towers share."""
    return list({id(table): table for table in tables}.values())
