"""`tower_inputs.json`: how the graphs are fed without this library, and what they give."""

from pathlib import Path
from typing import Any

from recsys.bundle import Bundle
from recsys.export.onnx_inputs import BATCH, TowerInput
from recsys.foundations import write_json

FORMAT, FORMAT_VERSION = "recsys-towers", 1

_TEXT_CODES = [
    "Bring the text to Unicode's NFKD form and to lower case; replace each run of blanks, "
    r"punctuation and control characters ([\s\pP\pZ\x00-\x1f]+) by one blank; strip; put one blank "
    "before and one behind. A text of blanks alone has no codes.",
    "Its n-grams, each with a salt: words (0), two neighbouring words with the blank between (1), "
    "and the runs of 3, 4 and 5 characters that hold at most the blank before and the blank behind "
    "one word (2, 3, 4).",
    "All numbers are unsigned and modulo 2^64. mix(v): v += 0x9E3779B97F4A7C15; "
    "v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9; v = (v ^ v >> 27) * 0x94D049BB133111EB; v ^ v >> 31.",
    "hash of code points c[0], c[1], ..., c[n-1]: mix(mix(sum of mix(c[i]) * "
    "0x9E3779B97F4A7C15^i) ^ n * 0xD6E8FEB86659FD93 ^ salt).",
    "code = hash modulo num_buckets.",
]


def write_guide(
    bundle: Bundle, path: Path, users: list[TowerInput], items: list[TowerInput]
) -> Path:
    """Write the guide.

    Args:
        bundle: The bundle.
        path: The file.
        users: The inputs of the user tower.
        items: Those of the item tower.

    Returns:
        The file.
    """
    model, many = bundle.model, bundle.model.num_interests
    interests = [many] if many > 1 else []
    texts = any(entry.encoding.get("kind") == "text" for entry in (*users, *items))
    guide: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "bundle_id": bundle.bundle_id,
        "score": _score(many),
        "embedding_dim": model.output_dim,
        "user_tower": _tower("user_tower.onnx", users, [BATCH, *interests, model.output_dim]),
        "item_tower": _tower("item_tower.onnx", items, [BATCH, model.output_dim]),
        "not_in_the_vectors": _left_out(bundle),
    }
    if texts:
        guide["text_codes"] = _TEXT_CODES
    write_json(path, guide)
    return path


def _tower(file: str, inputs: list[TowerInput], shape: list[int | str]) -> dict[str, Any]:
    return {
        "file": file,
        "inputs": [entry.to_json() for entry in inputs],
        "output": {"name": "vectors", "dtype": "float32", "shape": shape},
    }


def _score(num_interests: int) -> str:
    if num_interests == 1:
        return "The inner product of a user's vector and an item's; higher is better."
    return (
        f"The largest of the inner products of a user's {num_interests} vectors and an item's; "
        "higher is better."
    )


def _left_out(bundle: Bundle) -> list[str]:
    """Say what a lookup does beyond inner products."""
    said = []
    if bundle.exclude_seen:
        said.append("Items of the user's history are left out of the user's list.")
    repeats = bundle.model.repeats
    if repeats is not None:
        said.append(
            f"{repeats.weight:g} * ln(1 + count) is added to the score of each item of the newest "
            f"{repeats.length} events of the history, where count is the sum over the item's "
            f"events of {repeats.decay:g}^age, the age of the newest event being 0."
        )
    said.append(
        "A user of whom nothing is known (no row, no history, no feature) gets the most popular "
        "items instead."
    )
    return said
