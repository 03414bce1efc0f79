"""Items held out entirely, which a model must rank by their features alone."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recsys.data.coded_log import CodedLog
from recsys.data.split_settings import TEST, VALIDATION, Split, SplitSettings
from recsys.foundations import ConfigError, make_numpy_generator


def hold_items_out(
    log: CodedLog, settings: SplitSettings, seed: int, table_ids: pa.LargeStringArray | None
) -> Split:
    """Hold items that have events and stand in the table of items out, with all their events.

    Args:
        log: Any.
        settings: The shares, each of those items.
        seed: Of the draw of the items.
        table_ids: Ids of the table of items, or None.

    Raises:
        ConfigError: There is no table.
    """
    if table_ids is None:
        raise ConfigError(
            "`split.rule` must not be cold_items where there is no table of items: an item that "
            "is held out is known by its features alone."
        )
    listed = np.asarray(pc.is_in(log.item_ids.texts, value_set=table_ids))
    possible = (log.item_counts > 0) & listed
    rising = log.item_ids.order  # the draw depends on the ids, not on their codes
    items = make_numpy_generator(seed, "split").permutation(rising[possible[rising]])
    num_test = round(settings.test_share * len(items))
    num_validation = round(settings.validation_share * len(items))
    part_of_item = np.zeros(len(log.item_ids), np.int8)
    part_of_item[items[:num_test]] = TEST
    part_of_item[items[num_test : num_test + num_validation]] = VALIDATION
    blocks = log.blocks("item", what="splitting")
    values = (part_of_item[block.columns["item"]] for block in blocks)
    held_out = {"validation": num_validation, "test": num_test}
    return Split("cold_items", log.new_column("split", np.int8, values), held_out=held_out)
