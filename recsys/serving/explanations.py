"""What an explanation holds, as tables."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Explanations:
    """Why items have the scores that they have for one user.

    A contribution is what the score loses when one thing is hidden from the model and all else
    stays. Layers, lengths of 1 and several interests mix what they read, so that contributions
    need not add up: on each side ``base + the pieces + remainder = score``, and the remainder says
    how far from adding up they are. The two sides explain the same score twice: they must not be
    added to each other.

    Attributes:
        items: One row an item, in the order asked: item_id string, score float32, interest int32
            (which of the user's interests gives the score, from 0; null where there is one),
            fallback bool (nothing is known of the user, who is recommended popular items and not
            those of the best scores).
        history: One row an item and distinct item of the user's history, most similar first:
            item_id string, history_item_id string, num_events int32 (of it in the history),
            similarity float32 (cosine of the two items' vectors, without biases), contribution
            float32 (of all its events, of an item to itself with the bonus of these; 0 for one so
            old that the model does not read it).
        pieces: item_id string, side string (user or item), piece string, contribution float32. The
            user's: `base` (the score for a user of whom nothing is known), `id`, `features.NAME`,
            `context.NAME`, `history` (all of it, but for the next two), `ridge`, `repeats`,
            `remainder`. The item's: `base` (the score of an item of which nothing is known), `id`,
            `features.NAME`, `bias`, `ridge`, `repeats`, `remainder`. Only what the towers read
            stands there, and where the model has them, the same on both sides: `ridge`, the score
            of the ridge part, and `repeats`, the bonus for an item that the user had.
    """

    items: pa.Table
    history: pa.Table
    pieces: pa.Table

    def __iter__(self) -> Iterator["Explanations"]:
        """Give the explanation of each item by itself."""
        for item in self.items["item_id"].unique().to_pylist():
            tables = (self.items, self.history, self.pieces)
            yield Explanations(*(t.filter(pc.equal(t["item_id"], item)) for t in tables))
