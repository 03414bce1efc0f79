"""The parts of the manifest that say where a data set came from and what it holds."""

from collections.abc import Mapping
from typing import Any

from recsys.data.catalogue import Assignment
from recsys.data.coded_log import PARTS
from recsys.data.part_counts import PartCounts
from recsys.data.raw import LogSource, RawEntities

_NUM_EXAMPLES = 3


def describe_counts(users: Assignment, items: Assignment, parts: PartCounts) -> dict[str, Any]:
    """Count rows: of users, items and parts; and name ids that a table lacks."""
    counts = {"users": users.num_main, "items": items.num_main}
    counts |= {"known_users": len(users.vocabulary), "known_items": len(items.vocabulary)}
    counts |= {name: int(parts.rows[PARTS.index(name)]) for name in parts.names()}
    absent = {}
    for name, rows in (("users", users), ("items", items)):
        counts[f"{name}_of_the_table_without_events"] = rows.untrained
        counts[f"{name}_of_the_table_left_out"] = rows.left_out
        counts[f"{name}_absent_from_the_table"] = len(rows.without_table)
        absent[name] = rows.without_table.slice(0, _NUM_EXAMPLES).to_pylist()
    return {"counts": counts, "absent_from_the_table": absent}


def describe_sources(
    logs: Mapping[str, LogSource], items: RawEntities | None, users: RawEntities | None
) -> dict[str, Any]:
    """Say where everything came from and what reading left out."""
    several = len(logs) > 1
    named: dict[str, LogSource | RawEntities] = {
        f"interactions ({name})" if several else "interactions": log for name, log in logs.items()
    }
    named |= {name: raw for name, raw in (("items", items), ("users", users)) if raw is not None}
    return {
        "sources": [{"table": name, **file} for name, raw in named.items() for file in raw.sources],
        "rows_read": sum(log.num_rows_read for log in logs.values()),
        "dropped": {name: dict(raw.dropped) for name, raw in named.items()},
        "warnings": [warning for raw in named.values() for warning in raw.warnings],
    }
