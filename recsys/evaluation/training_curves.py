"""How training went, epoch by epoch, as a picture."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from recsys.evaluation.figures import FAINT, INK, MODEL, new_panels, with_legend
from recsys.metrics import perplexity

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOSS, _LIKELIHOOD = "#5f5f5f", "#7a3e9d"

Curve = list[tuple[int, float]]  # epoch, value; epochs without the value are left out


def training_curves(history: Sequence[Mapping[str, float]]) -> Figure:
    """Draw loss and validation recall over the epochs, and below them the log-likelihood.

    Args:
        history: As for `write_plots`; at least one epoch. What it lacks is not drawn.
    """
    from matplotlib.ticker import MaxNLocator

    recall_name = next((name for name in history[-1] if "recall_at_" in name), "")
    k = recall_name.rpartition("_")[2]
    recall, likelihood = (_curve(history, n) for n in (recall_name, "validation_log_likelihood"))
    title, subtitle = f"Training over {len(history)} epochs", "No validation part"
    if recall:
        epoch, best = _best(recall)
        title = f"Best validation recall@{k} is {best:.3f}, after epoch {epoch}"
        subtitle = "Training loss (left axis) and validation recall (right axis) by epoch"
    if likelihood:
        subtitle += "; below, validation log-likelihood"
    heights = (4.6, 2.6) if likelihood else (5,)
    figure, [axes, *below] = new_panels(title, subtitle, heights=heights)
    losses = _curve(history, "train_loss")
    lines: list[Artist] = _line(axes, losses, "o-", _LOSS, "Training loss")
    axes.set_ylabel("Training loss (nats, mean over examples)")
    if recall:
        right = axes.twinx()
        right.spines["top"].set_visible(False)
        lines += _line(right, recall, "s-", MODEL, f"Validation recall@{k}")
        right.axvline(_best(recall)[0], color=FAINT, linestyle=":", linewidth=1.2)
        right.set_ylabel(f"Validation recall@{k}")
        right.set_ylim(bottom=0)
    for panel in below:
        lines += _line(panel, likelihood, "^-", _LIKELIHOOD, "Validation log-likelihood")
        _explain(panel, likelihood)
    bottom = [axes, *below][-1]
    bottom.set_xlabel("Epoch")
    bottom.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return with_legend(figure, axes, lines)


def _explain(panel: Axes, likelihood: Curve) -> None:
    """Say what the lower panel shows, with the perplexity of its best epoch."""
    epoch, best = _best(likelihood)
    panel.axvline(epoch, color=FAINT, linestyle=":", linewidth=1.2)
    panel.set_ylabel("Log-likelihood\n(nats, mean over events)")
    text = f"Higher is better; best after epoch {epoch}: perplexity {perplexity(best):,.1f}"
    panel.set_title(text, loc="left", fontsize=9.5, color=INK)


def _curve(history: Sequence[Mapping[str, float]], name: str) -> Curve:
    return [(int(record["epoch"]), record[name]) for record in history if name in record]


def _best(curve: Curve) -> tuple[int, float]:
    """Give the first of the epochs with the largest value, and that value."""
    return max(curve, key=lambda point: point[1])


def _line(axes: Axes, curve: Curve, style: str, color: str, label: str) -> list[Artist]:
    epochs, values = zip(*curve, strict=True)
    return list(axes.plot(epochs, values, style, color=color, ms=4, label=label))
