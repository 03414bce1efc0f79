"""How popular the recommended items are, with log Q and without, beside what users chose."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

from typing import TYPE_CHECKING

from recsys.diagnosis.canvas import COLORS, INK, label_ends, new_sheet, untrained_line
from recsys.diagnosis.recommended import RecommendedPopularity
from recsys.diagnosis.result import Diagnosis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = (
    ("minus_log_q", "without the correction: score - log Q", COLORS[1]),
    ("scores", "the model's own scores", COLORS[0]),
    ("plus_log_q", "score + log Q (corrects such a model)", COLORS[2]),
)


def plot_popularity(diagnosis: Diagnosis) -> Figure:
    """Draw the share of recommended items in each popularity decile, for three rankings."""
    popularity = diagnosis.popularity
    figure, [axes] = new_sheet(
        1,
        1,
        size=(10.5, 6),
        title=_title(popularity),
        subtitle=(
            f"Share of the items in the top {popularity.k} lists of {popularity.num_users:,} "
            "validation users, by the items' popularity in training. log Q: log of the item's "
            "share of the training events.\n"
            "score - log Q is what a model comes to rank that is trained on in-batch candidates "
            "without the correction; score + log Q would correct such a model."
            + untrained_line(diagnosis.about)
        ),
    )
    deciles = range(1, 11)
    lines = [(100 * popularity.shares[name], label, color, "o-") for name, label, color in _LINES]
    lines.append((100 * popularity.chosen, "chosen by users (validation)", INK, "s--"))
    for values, _, color, style in lines:
        axes.plot(deciles, values, style, ms=4, color=color, linewidth=1.7)
    top = max(float(values.max()) for values, *_ in lines)
    floor = 0.025 * top  # a label clears the axis
    ends = [(10, max(float(values[-1]), floor), label, color) for values, label, color, _ in lines]
    label_ends(axes, ends, gap=0.05 * top)
    axes.set_xlim(0.7, 14)
    axes.set_ylim(0, 1.06 * top)
    axes.set_xticks(
        deciles,
        [f"{decile}\n({_events(popularity, decile)})" for decile in deciles],
        fontsize=8.5,
    )
    axes.set_xlabel(
        "Popularity decile of the item, 1 = least popular tenth (training events of an item)"
    )
    axes.set_ylabel("Share of what is recommended or chosen (%)")
    return figure


def _events(popularity: RecommendedPopularity, decile: int) -> str:
    bounds = popularity.bounds[decile - 1]
    if bounds is None:
        return "none"
    low, high = bounds
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def _title(popularity: RecommendedPopularity) -> str:
    top = {name: f"{100 * shares[-1]:.0f} %" for name, shares in popularity.shares.items()}
    return (
        "From the most popular tenth of the items come\n"
        f"{top['scores']} of the recommendations by the model's scores, {top['minus_log_q']} by "
        f"score - log Q,\n{top['plus_log_q']} by score + log Q; users choose "
        f"{100 * popularity.chosen[-1]:.0f} % from it"
    )
