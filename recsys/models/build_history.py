"""From a tower's specification to what reads its histories."""

from torch import Tensor

from recsys.models.attention_history import AttentionHistory
from recsys.models.causal_gru import CausalGru
from recsys.models.causal_history import CausalHistory
from recsys.models.causal_transformer import CausalTransformer
from recsys.models.history_gate import HistoryGate
from recsys.models.pooled_history import PooledHistory
from recsys.models.time_gaps import TimeGaps
from recsys.models.tower_spec import UserTowerSpec


def build_history(
    tower: UserTowerSpec, dim: int, init_std: float, *, trained: Tensor, sparse: bool
) -> PooledHistory | AttentionHistory | CausalHistory | None:
    """Build the encoder of histories; None where the tower reads none.

    Args:
        tower: What the user tower is made of.
        dim: Width of the vectors.
        init_std: Standard deviation of the first values of learned vectors.
        trained: [N], bool, which of the items with a row of their own occur in training.
        sparse: Whether the gradients of embedding tables are sparse.
    """
    match tower.history:
        case "none":
            return None
        case "gru" | "transformer":
            return _build_causal(tower, dim, init_std)
        case "attention":
            return AttentionHistory(
                dim,
                length=tower.history_length,
                num_heads=tower.num_heads,
                num_interests=tower.num_interests,
                decay=tower.decay,
                exponent=tower.exponent,
                dropout=tower.history_dropout,
                init_std=init_std,
            )
    gate = None
    if tower.gate_dim > 0:
        gate = HistoryGate(trained, dim, tower.gate_dim, sparse=sparse)
    is_mean = tower.history == "mean"
    return PooledHistory(
        dim,
        length=tower.history_length,
        decay=1.0 if is_mean else tower.decay,
        exponent=1.0 if is_mean else tower.exponent,
        dropout=tower.history_dropout,
        init_std=init_std,
        gate=gate,
    )


def _build_causal(tower: UserTowerSpec, dim: int, init_std: float) -> CausalHistory:
    is_gru, dropout = tower.history == "gru", tower.layer_dropout
    network: CausalGru | CausalTransformer
    if is_gru:
        network = CausalGru(dim, num_layers=tower.num_layers, dropout=dropout)
    else:
        network = CausalTransformer(
            dim,
            num_layers=tower.num_layers,
            num_heads=tower.num_heads,
            relative=tower.positions == "relative",
            dropout=dropout,
        )
    time_gaps = TimeGaps(dim, dropout=tower.feature_dropout, init_std=init_std)
    return CausalHistory(
        dim,
        network,
        length=tower.history_length,
        positions=not is_gru and tower.positions == "absolute",
        time_gaps=time_gaps if tower.time_gaps else None,
        dropout=tower.history_dropout,
        input_dropout=dropout,
        init_std=init_std,
    )
