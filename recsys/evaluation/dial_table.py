"""The settings of the popularity dial as a table for a terminal."""

from collections.abc import Sequence

from rich.table import Table

from recsys.evaluation.dial_judge import DialPoint
from recsys.evaluation.estimates import format_estimate

_COLUMNS = (
    ("ndcg", "NDCG"),
    ("coverage", "coverage"),
    ("popularity_percentile", "popularity percentile"),
)
_CAPTION = (
    "Items by score - alpha * temperature * log(popularity); difference: recall less that at 0, "
    "on the same users; popularity percentile: share of the catalogue that is less popular than "
    "what is shown, mean."
)


def dial_table(points: Sequence[DialPoint], k: int) -> Table:
    """Lay out what the settings came to, one row each; the file has the other intervals."""
    table = Table(
        title="Popularity dial",
        title_justify="left",
        title_style="bold",
        caption=_CAPTION,
        caption_justify="left",
    )
    table.add_column("alpha", justify="right")
    for heading in (f"recall@{k}", "difference", *(f"{name}@{k}" for _, name in _COLUMNS)):
        table.add_column(heading, justify="right")
    for point in points:
        recall, others = f"recall_at_{k}", (point.metrics.get(f"{n}_at_{k}") for n, _ in _COLUMNS)
        table.add_row(
            f"{point.alpha:g}",
            format_estimate(point.metrics.get(recall)),
            format_estimate(point.difference.get(recall), signed=True),
            *(f"{one.value:.4f}" if one is not None else "" for one in others),
        )
    return table
