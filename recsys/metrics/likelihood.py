"""The likelihood of what queries chose, under a softmax over the whole catalogue.

Dimensions: Q queries, B queries of a block, M interests of a query, C candidates, K candidates of a
block, D embedding width, P chosen candidates of all queries.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Ragged, ShapeError, check_positive, check_shape

_QUERY_VECTORS_AT_ONCE = 256
_CANDIDATES_AT_ONCE = 8192


def log_likelihood(
    query_embeddings: NDArray[np.floating],
    candidate_embeddings: NDArray[np.floating],
    chosen: Ragged,
    *,
    temperature: float,
) -> NDArray[np.float64]:
    """Compute ``log P(c | q) = s_c / T - log of sum over k of exp(s_k / T)``, s the scores.

    A score is the inner product; of a query with M interests the largest over them. The sum runs
    over all C candidates, in blocks of 256 x 8,192 inner products. Scores have the dtype of the
    embeddings; what is summed over them is float64. Time is O(Q M C D).

    Args:
        query_embeddings: [Q, D] or [Q, M, D], float32 or float64.
        candidate_embeddings: [C, D], the same dtype; row r is candidate r.
        chosen: Q lists of candidate rows, from 0; repeats count each time. A row of C or above is
            no candidate.
        temperature: T; above 0.

    Returns:
        [P], float64, in nats, aligned with `chosen.rows`; NaN where a row is no candidate.

    Raises:
        ShapeError: The arguments disagree in Q or D.
        ArgumentError: The dtypes are others, or `temperature` is not above 0.
    """
    if query_embeddings.ndim != 3:
        check_shape("query_embeddings", query_embeddings, None, None)
        query_embeddings = query_embeddings[:, None]
    _, num_interests, dim = query_embeddings.shape
    if num_interests == 0:
        raise ShapeError("`query_embeddings` must hold at least one vector a query, got none.")
    check_shape("candidate_embeddings", candidate_embeddings, None, dim)
    if len(chosen) != len(query_embeddings):
        raise ShapeError(f"`chosen` must have {len(query_embeddings)} lists, got {len(chosen)}.")
    for name, array in (("query", query_embeddings), ("candidate", candidate_embeddings)):
        if array.dtype not in (np.float32, np.float64):
            raise ArgumentError(
                f"`{name}_embeddings` must be float32 or float64, got {array.dtype}."
            )
    check_positive("temperature", temperature)
    values = [np.zeros(0)]
    step = max(_QUERY_VECTORS_AT_ONCE // num_interests, 1)
    for start in range(0, len(query_embeddings), step):
        stop = start + step
        scaled = query_embeddings[start:stop] / float(temperature)  # [B, M, D]
        values.append(_of_block(scaled, candidate_embeddings, chosen.slice(start, stop)))
    return np.concatenate(values)


def perplexity(mean_log_likelihood: float) -> float:
    """Compute ``exp(-mean)``: C for a model that knows nothing, 1 for one that is always right.

    Args:
        mean_log_likelihood: In nats.

    Returns:
        Infinity where that is beyond what a float holds, from a mean of about -709.8 down.
    """
    try:
        return math.exp(-mean_log_likelihood)
    except OverflowError:
        return math.inf


def _of_block(
    scaled_queries: NDArray[np.floating],
    candidate_embeddings: NDArray[np.floating],
    chosen: Ragged,
) -> NDArray[np.float64]:
    """Go through the catalogue for B queries [B, M, D], already divided by the temperature."""
    owners, rows = chosen.owners(), chosen.rows
    num_queries, num_interests, dim = scaled_queries.shape
    flat = scaled_queries.reshape(-1, dim)  # [B * M, D]
    log_partition = np.full(num_queries, -np.inf)  # [B]
    logits_of_chosen = np.full(len(rows), np.nan)
    kind = np.result_type(flat, candidate_embeddings)
    buffer = np.empty((len(flat), min(_CANDIDATES_AT_ONCE, len(candidate_embeddings))), kind)
    for start in range(0, len(candidate_embeddings), _CANDIDATES_AT_ONCE):
        block = candidate_embeddings[start : start + _CANDIDATES_AT_ONCE]
        logits = np.matmul(flat, block.T, out=buffer[:, : len(block)])
        if num_interests > 1:
            logits = logits.reshape(num_queries, num_interests, -1).max(axis=1)  # [B, K]
        # The chosen one's logit is the very one that is summed: P never passes 1 by rounding.
        inside = (rows >= start) & (rows < start + len(block))
        logits_of_chosen[inside] = logits[owners[inside], rows[inside] - start]
        log_partition = np.logaddexp(log_partition, _log_sum_exp(logits))
    return np.asarray(logits_of_chosen - log_partition[owners])


def _log_sum_exp(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Compute the log of the summed exp of each row, [B]; the logits [B, K] are overwritten."""
    peak = logits.max(axis=1)  # [B]
    logits -= peak[:, None]
    np.exp(logits, out=logits)
    return np.asarray(np.log(logits.sum(axis=1, dtype=np.float64)) + peak)
