"""Users held out entirely, whose events are an input and a target."""

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import CodedLog
from recsys.data.split_settings import (
    TEST,
    TEST_INPUT,
    VALIDATION,
    VALIDATION_INPUT,
    SplitSettings,
)
from recsys.foundations import DataError, make_numpy_generator


def hold_users_out(
    log: CodedLog, clock: str, settings: SplitSettings, seed: int
) -> NDArray[np.int8]:
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
    counts = np.bincount(log.users, minlength=len(log.user_ids))
    candidates = generator.permutation(np.flatnonzero(counts >= 2))
    num_test = round(settings.test_share * log.num_users)
    num_validation = round(settings.validation_share * log.num_users)
    if num_test + num_validation > len(candidates):
        raise DataError(
            f"The split strong_generalization wants {num_test + num_validation} users with at "
            f"least two interactions; there are {len(candidates)}."
        )
    part_of_user = np.zeros(len(log.user_ids), np.int8)
    part_of_user[candidates[:num_test]] = TEST
    part_of_user[candidates[num_test : num_test + num_validation]] = VALIDATION
    if folded_by(settings, clock) == "random":
        order = generator.permutation(len(log))
        order = order[np.argsort(log.users[order], kind="stable")]
    else:
        order = log.order(log.users)
    ends = np.cumsum(counts)
    users = log.users[order]
    place = np.arange(len(log)) - (ends - counts)[users]  # within the user, from the first
    num_input = np.clip(np.ceil(settings.fold_in * counts), 1, np.maximum(counts - 1, 1))
    parts = part_of_user[users]
    parts[(place < num_input[users]) & (parts == TEST)] = TEST_INPUT
    parts[(place < num_input[users]) & (parts == VALIDATION)] = VALIDATION_INPUT
    in_input_order = np.empty(len(log), np.int8)
    in_input_order[order] = parts
    return in_input_order


def folded_by(settings: SplitSettings, clock: str) -> str:
    """Say by what the input of a held-out user is told from the target: time, order or random."""
    return clock if settings.fold_in_order == "time" and clock != "none" else "random"
