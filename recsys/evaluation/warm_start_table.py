"""A warm start as a table for a terminal."""

from rich.table import Table

from recsys.evaluation.estimates import format_estimate
from recsys.evaluation.warm_start_report import WarmStartReport

_RECALL = "recall_at_"


def warm_start_table(report: WarmStartReport, k: int) -> Table:
    """Lay a warm start out for rich: recall before and after, by part.

    The caption says how many users, items and features came along. Recall at two k stands there;
    the file has all.

    Args:
        report: The warm start.
        k: Shown beside the largest one.
    """
    said = [
        f"{what}: {counts['kept']:,} kept, {counts['new']:,} new, {counts['dropped']:,} dropped"
        for what, counts in report.counts.items()
    ]
    said += [f"{name} started anew: {why}" for name, why in report.fresh_features.items()]
    table = Table(
        title=f"Warm start from the bundle {report.bundle_id[:12]} (exact ranking)",
        title_justify="left",
        title_style="bold",
        caption="; ".join(said) + ".",
        caption_justify="left",
    )
    table.add_column("part")
    table.add_column("recall@k", justify="right")
    for heading in ("before", "after", "difference"):
        table.add_column(heading, justify="right")
    for part, before in report.before.items():
        ks = [int(name.removeprefix(_RECALL)) for name in before if name.startswith(_RECALL)]
        for place, one in enumerate(sorted({k, *ks[-1:]} & {*ks})):
            name = f"{_RECALL}{one}"
            cells = [format_estimate(some[part][name]) for some in (report.before, report.after)]
            cells.append(format_estimate(report.difference[part][name], signed=True))
            table.add_row("" if place else part, str(one), *cells)
    return table
