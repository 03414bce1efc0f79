"""Any ranked lists against the truth, without a model."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data import TableFormat, id_pairs_from_table, read_id_pairs
from recsys.evaluation.estimates import Resampling
from recsys.evaluation.measures import check_ks, measure_lists, shown_k
from recsys.evaluation.report import Report
from recsys.foundations import DataError, Ragged
from recsys.metrics import distinct, top_k

_ORDERS = ("rank", "score")


def read_ranked(path: str | Path, form: TableFormat | None = None) -> pa.Table:
    """Read ranked lists: columns user_id, item_id, and rank (rising) or score (falling) or both.

    Args:
        path: A file, folder or URI of CSV, TSV or Parquet; ids are kept digit for digit as text.
        form: How the files are written; None: by their suffix.

    Returns:
        user_id, item_id (large_string), and rank or score (float64); rank if there are both.

    Raises:
        MissingFileError: The path leads nowhere.
        DataError: A column is missing or a row holds no id or no number; names file and row.
    """
    return read_id_pairs(path, format=form or TableFormat(), orders=_ORDERS)


def read_truth(path: str | Path, form: TableFormat | None = None) -> pa.Table:
    """Read what users chose: columns user_id and item_id; otherwise as `read_ranked`."""
    return read_id_pairs(path, format=form or TableFormat())


def evaluate_ranked(
    ranked: pa.Table,
    truth: pa.Table,
    ks: Sequence[int],
    *,
    seed: int = 0,
    num_resamples: int = 1000,
    level: float = 0.95,
) -> Report:
    """Score ranked lists by the same code as models.

    The mean is over the users of the truth. One without a list counts as 0; a list of a user
    without truth is left out; both are counted. An item that a list repeats counts at its first
    place and keeps the others occupied; a pair that the truth repeats counts once.

    Args:
        ranked: Columns user_id and item_id, and `rank` (lowest first) or `score` (highest first);
            with both, `rank`. Rows of one user that are equal in it stay in their order. Ranks
            order the list; gaps in them do not count.
        truth: Columns user_id and item_id.
        ks: Lengths of the list that is judged.
        seed: Of the resampling.
        num_resamples: Of the bootstrap.
        level: Of the intervals.

    Returns:
        The report: `recall_at_10` and so on, with intervals; without baseline and slices.

    Raises:
        DataError: A column is missing, an id is null, a rank or score is no number, or the truth
            is empty.
        ArgumentError: `ks` is empty or holds a number below 1.
    """
    ks = check_ks(ks)
    lists_table = id_pairs_from_table(ranked, name="ranked", orders=_ORDERS)
    truth_table = id_pairs_from_table(truth, name="truth")
    if truth_table.num_rows == 0:
        raise DataError("The truth is empty: nothing to evaluate on.")
    users = pc.unique(truth_table["user_id"])
    items = pc.unique(
        pa.chunked_array(
            [*truth_table["item_id"].chunks, *lists_table["item_id"].chunks], pa.large_string()
        )
    )
    relevant = distinct(_group(truth_table, users, items))
    order = "rank" if "rank" in lists_table.column_names else "score"
    lists = _group(_in_order(lists_table, order), users, items)
    values = measure_lists(lists, relevant, ks)
    listed = pc.unique(lists_table["user_id"])
    return Report(
        about={"ranking": f"the lists given, by {order}"},
        ks=ks,
        slice_k=shown_k(ks),
        level=level,
        counts=_counts(lists, relevant, len(listed), ks),
        metrics=Resampling(seed, num_resamples, level).means(values),
        per_user=pa.table(
            {"user_id": users, "num_relevant": relevant.lengths, "list_length": lists.lengths}
            | values
        ),
    )


def _counts(
    lists: Ragged, relevant: Ragged, num_listed: int, ks: tuple[int, ...]
) -> dict[str, int]:
    with_list = int((lists.lengths > 0).sum())
    return {
        "num_users": len(relevant),
        "num_users_without_relevant": num_listed - with_list,
        "num_users_without_list": len(relevant) - with_list,
        "num_positives": len(relevant.rows),
        "num_repeats_in_lists": len(lists.rows) - len(distinct(lists).rows),
        "num_short_lists": int((lists.lengths < ks[-1]).sum()),
        "num_items_shown": len(np.unique(top_k(lists, ks[-1]).rows)),
    }


def _in_order(table: pa.Table, order: str) -> pa.Table:
    """Put the best first, equal ones in the order of the input."""
    keys = table[order].to_numpy()
    return table.take(pa.array(np.argsort(-keys if order == "score" else keys, kind="stable")))


def _group(table: pa.Table, users: pa.Array, items: pa.Array) -> Ragged:
    """Give the item numbers of each of `users`, in the order of the table."""
    owners = _numbers(table["user_id"], users)
    rows = _numbers(table["item_id"], items)
    known = owners >= 0
    return Ragged.from_pairs(owners[known], rows[known], len(users))


def _numbers(ids: pa.ChunkedArray, known: pa.Array) -> NDArray[np.int64]:
    found = pc.fill_null(pc.index_in(ids, value_set=known), -1)
    return np.asarray(found.to_numpy(), np.int64)
