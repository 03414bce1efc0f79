"""Users held out entirely, whose events are an input and a target."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import Block, CodedLog
from recsys.data.column_file import ColumnFile
from recsys.data.input_order import InputOrder
from recsys.data.split_settings import (
    TEST,
    TEST_INPUT,
    VALIDATION,
    VALIDATION_INPUT,
    SplitSettings,
)
from recsys.data.stable_order import stable_order
from recsys.foundations import DataError, make_numpy_generator


def hold_users_out(log: CodedLog, clock: str, settings: SplitSettings, seed: int) -> ColumnFile:
    """Hold users with at least two events out; a single event cannot be input and target.

    Returns:
        [M], int8, the part of each interaction.

    Raises:
        DataError: There are fewer such users than are wanted.

    Source:
        "Variational autoencoders for collaborative filtering", WWW 2018 (with a random order of
        the events). Differs: items that no user in training had stay in the target.
    """
    generator = make_numpy_generator(seed, "split")
    part_of_user = _draw_users(log, settings, generator)
    blocks = (
        _in_random_order(log, generator)
        if folded_by(settings, clock) == "random"
        else _as_they_stand(log)
    )
    values = (_fold(block, order, part_of_user, settings.fold_in) for block, order in blocks)
    return log.new_column("split", np.int8, values)


def folded_by(settings: SplitSettings, clock: str) -> str:
    """Say by what the input of a held-out user is told from the target: time, order or random."""
    return clock if settings.fold_in_order == "time" and clock != "none" else "random"


def _draw_users(
    log: CodedLog, settings: SplitSettings, generator: np.random.Generator
) -> NDArray[np.int8]:
    """Draw the users that are held out: the part of each, by code."""
    rising = log.user_ids.order  # the draw depends on the ids, not on their codes
    candidates = generator.permutation(rising[log.counts[rising] >= 2])
    num_test = round(settings.test_share * log.num_users)
    num_validation = round(settings.validation_share * log.num_users)
    if num_test + num_validation > len(candidates):
        raise DataError(
            f"The split strong_generalization wants {num_test + num_validation} users with at "
            f"least two interactions; there are {len(candidates)}."
        )
    part_of_user = np.zeros(len(log.counts), np.int8)
    part_of_user[candidates[:num_test]] = TEST
    part_of_user[candidates[num_test : num_test + num_validation]] = VALIDATION
    return part_of_user


def _as_they_stand(log: CodedLog) -> Iterator[tuple[Block, None]]:
    for block in log.blocks(what="splitting"):
        yield block, None


def _in_random_order(
    log: CodedLog, generator: np.random.Generator
) -> Iterator[tuple[Block, NDArray[np.int64]]]:
    """Give each block with the positions that sort each user's events at random."""
    places = InputOrder(log).draw_places(generator)
    for block in log.blocks("row", what="splitting"):
        order = stable_order(places(block.columns["row"]))
        yield block, order[stable_order(block.owners[order])]


def _fold(
    block: Block,
    order: NDArray[np.int64] | None,
    part_of_user: NDArray[np.int8],
    fold_in: float,
) -> NDArray[np.int8]:
    """Give the parts of a block: of each held-out user, the first events are the input.

    Args:
        block: All events of its users.
        order: The positions of the events, by user and from first to last; None: as they stand.
        part_of_user: By code.
        fold_in: Share of a user's events that is the input.
    """
    counts = block.counts
    starts = np.cumsum(counts) - counts
    place = np.arange(len(block)) - np.repeat(starts, counts)  # within the user, from the first
    num_input = np.clip(np.ceil(fold_in * counts), 1, np.maximum(counts - 1, 1))
    parts = np.repeat(part_of_user[block.users], counts)
    is_input = place < np.repeat(num_input, counts)
    parts[is_input & (parts == TEST)] = TEST_INPUT
    parts[is_input & (parts == VALIDATION)] = VALIDATION_INPUT
    if order is None:
        return parts
    as_they_stand = np.empty_like(parts)
    as_they_stand[order] = parts
    return as_they_stand
