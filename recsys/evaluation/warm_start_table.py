"""A warm start as a table for a terminal."""

from rich.table import Table

from recsys.evaluation.estimates import format_estimate
from recsys.evaluation.warm_start_report import WarmStartReport


def warm_start_table(report: WarmStartReport) -> Table:
    """Lay a warm start out for rich: recall before and after, by part and k.

    The caption says how many users, items and features came along.
    """
    said = [
        f"{what}: {counts['kept']:,} kept, {counts['new']:,} new, {counts['dropped']:,} dropped"
        for what, counts in report.counts.items()
    ]
    said += [f"{name} started anew: {why}" for name, why in report.fresh_features.items()]
    table = Table(
        title=f"Warm start from the bundle {report.bundle_id[:12]}, exact ranking",
        title_justify="left",
        title_style="bold",
        caption="; ".join(said) + ".",
        caption_justify="left",
    )
    table.add_column("part")
    table.add_column("recall@k")
    for heading in ("before", "after", "difference"):
        table.add_column(heading, justify="right")
    for part, before in report.before.items():
        names = [name for name in before if name.startswith("recall_at_")]
        for place, name in enumerate(names):
            difference = report.difference[part].get(name)
            table.add_row(
                "" if place else part,
                name.removeprefix("recall_at_"),
                format_estimate(before[name]),
                format_estimate(report.after[part].get(name)),
                format_estimate(difference, signed=True),
                end_section=place == len(names) - 1,
            )
    return table
