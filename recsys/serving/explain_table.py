"""Explanations on a terminal: two tables an item."""

import sys
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from recsys.serving.explanations import Explanations
from recsys.serving.item_names import item_names
from recsys.serving.lookup import Lookup

_NOTE = (
    "Contribution: what the score loses without it. On each side base + pieces + remainder = score."
)
_PIECE_NOTES = {
    "ridge": "ridge: what the linear model beside the towers adds.",
    "repeats": "repeats: the bonus of an item that the user had.",
}


def print_explanations(lookup: Lookup, user: str, found: Explanations) -> None:
    """Print the explanation of each item for a user."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    ids = pa.chunked_array([found.items["item_id"], found.history["history_item_id"]], pa.string())
    names = item_names(lookup, ids.unique())
    for one in found:
        item = one.items.to_pylist()[0]
        console.print(_headline(user, item, names[item["item_id"]]), highlight=False)
        if one.history.num_rows:
            console.print(_history_table(one.history, names))
        console.print(_piece_table(one.pieces))
    if not found.items.num_rows:
        console.print("There is no item left for this user.")
        return
    console.print(_NOTE)
    there = set(found.pieces["piece"].to_pylist())
    for note in (note for piece, note in _PIECE_NOTES.items() if piece in there):
        console.print(note)


def _headline(user: str, item: dict[str, Any], name: Text) -> Text:
    line = Text(f"{user} and ").append_text(name).append(f": score {item['score']:.4f}")
    if item["interest"] is not None:
        line.append(f", of interest {item['interest']}")
    if item["fallback"]:
        line.append("; nothing is known of the user, who is recommended popular items")
    return line


def _history_table(history: pa.Table, names: dict[str, Text]) -> Table:
    table = Table(title="History, most similar items first", title_justify="left")
    table.add_column("item")
    for heading in ("events", "similarity", "contribution"):
        table.add_column(heading, justify="right")
    for row in history.to_pylist():
        table.add_row(
            names[row["history_item_id"]],
            str(row["num_events"]),
            f"{row['similarity']:.4f}",
            _signed(row["contribution"]),
        )
    return table


def _piece_table(pieces: pa.Table) -> Table:
    """Lay both sides out beside each other: each adds up to the score by itself."""
    table = Table(title="Pieces", title_justify="left")
    for heading, side in (("side", "left"), ("piece", "left"), ("contribution", "right")):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    for row in pieces.to_pylist():
        last = row["piece"] == "remainder"
        name = row["side"] if row["piece"] == "base" else ""
        table.add_row(name, Text(row["piece"]), _signed(row["contribution"]), end_section=last)
    return table


def _signed(value: float) -> str:
    return f"{round(value, 4) + 0.0:+.4f}"  # no -0.0000
