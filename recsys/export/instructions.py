"""The README beside an export: what it is, how it is loaded, which column became which field."""

from collections.abc import Mapping
from pathlib import Path

from recsys.export.exported_items import ExportedItems


def write_readme(
    folder: Path, template: str, items: ExportedItems, fields: Mapping[str, str], **values: object
) -> None:
    """Write `README.md`.

    Args:
        folder: Where it goes.
        template: With `{facts}`, `{columns}` and the names of the values.
        items: What was exported.
        fields: Column -> field.
        values: What else stands in the template.
    """
    facts = (
        f"{len(items):,} items with vectors of width {items.dim} of the recsys bundle\n"
        f"`{items.bundle.bundle_id}`."
    )
    changed = {column: field for column, field in fields.items() if column != field}
    lines = [f"| `{column}` | `{field}` |" for column, field in changed.items()]
    table = "\n".join(["", "Columns under other names:", "", "| column | field |", "|---|---|"])
    columns = "\n".join([table, *lines, ""]) if changed else ""
    text = template.format(facts=facts, columns=columns, **values)
    (folder / "README.md").write_text(text, encoding="utf-8")
