"""Next-word prediction: the full softmax and its estimators, trained side by side.

Dimensions: B examples of a batch.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from recsys.benchmark.language_result import EpochRecord, EstimatorRun, LanguageResult
from recsys.benchmark.next_word_perplexity import PerplexityJudge, unigram_perplexity
from recsys.benchmark.next_words import NextWordData
from recsys.data import EventBatches, TrainingBatch
from recsys.foundations import Progress
from recsys.models import TwoTower

log = logging.getLogger(__name__)


class Learner(Protocol):
    """A model in training under one estimator."""

    @property
    def model(self) -> TwoTower:
        """Give the model."""
        ...

    def start_epoch(self) -> None:
        """Begin the epoch's statistics anew."""
        ...

    def learn(self, batch: TrainingBatch) -> float:
        """Take one step; give the mean loss [nats]. If it is not finite, nothing was changed."""
        ...

    def statistics(self) -> dict[str, float]:
        """Give what the epoch's draws were like, by name; empty if there are none."""
        ...


def measure_language(
    data: NextWordData,
    make_learner: Callable[[str], Learner],
    *,
    estimators: Sequence[str],
    epochs: int,
    batch_size: int,
    context: int,
    validation_examples: int | None,
    seed: int,
    settings: Mapping[str, Any],
) -> LanguageResult:
    """Train one model by each estimator on the same batches, and follow time and perplexity.

    Epochs are taken in turn: the first of every estimator, then, in the opposite order, the
    second, and so on; what slows the machine down for a while slows all of them. A model whose
    loss is no longer finite is left alone from there on.

    Args:
        data: The text in three parts.
        make_learner: Name of an estimator -> a new model with the same first weights each time,
            and all that trains it.
        estimators: The names.
        epochs: Epochs of each.
        batch_size: B.
        context: Earlier words of the sentence that a word is predicted from.
        validation_examples: At most so many words of the validation part are scored; None: all.
            The test part is scored as a whole.
        seed: Of the order of the batches.
        settings: What the result notes beside the counts.

    Returns:
        What every epoch took and came to.
    """
    course = _Course(
        data,
        batch_size=batch_size,
        context=context,
        validation_examples=validation_examples,
        seed=seed,
    )
    learners = {name: make_learner(name) for name in estimators}
    records: dict[str, list[EpochRecord]] = {name: [] for name in estimators}
    for epoch in range(epochs):
        for name in list(learners)[:: 1 if epoch % 2 == 0 else -1]:
            record = course.run_epoch(name, learners[name], epoch)
            records[name].append(record)
            log.info("%s, epoch %d/%d: %s", name, epoch + 1, epochs, record)
            if record.diverged:
                del learners[name]
    return LanguageResult(
        settings=settings,
        facts=data.describe() | course.count_scored(),
        unigram_perplexity=unigram_perplexity(data, data.test),
        runs=tuple(EstimatorRun(name, tuple(records[name])) for name in estimators),
    )


class _Course:
    """What every model is trained and scored on."""

    def __init__(
        self,
        data: NextWordData,
        *,
        batch_size: int,
        context: int,
        validation_examples: int | None,
        seed: int,
    ) -> None:
        self._num_rows = data.num_rows
        self._batches = EventBatches(
            data.train.events,
            clock="order",
            ties="include",
            history_length=context,
            batch_size=batch_size,
            drop_last=False,
            seed=seed,
            positives=data.train.examples,
        )
        of_validation, of_test = (
            PerplexityJudge(part, context=context, max_examples=most, seed=seed)
            for part, most in ((data.validation, validation_examples), (data.test, None))
        )
        self._judges = {"validation": of_validation, "test": of_test}

    def count_scored(self) -> dict[str, int]:
        """Count the words that are scored, by part."""
        return {f"{part}_examples_scored": j.num_examples for part, j in self._judges.items()}

    def run_epoch(self, name: str, learner: Learner, epoch: int) -> EpochRecord:
        """Train an epoch by the clock, then score."""
        label = f"{name}, epoch {epoch + 1}"
        learner.start_epoch()
        total, examples = 0.0, 0
        with Progress(label, self._batches.num_rows, "words") as bar:
            started = time.perf_counter()
            for batch in self._batches.epoch(epoch):
                total += learner.learn(batch) * len(batch.positives)
                examples += len(batch.positives)
                bar.advance(len(batch.positives), f"loss {total / examples:.4f}")
                if not math.isfinite(total):
                    break
            seconds = time.perf_counter() - started
        perplexities = dict.fromkeys(self._judges, math.inf)
        if math.isfinite(total):
            for part, judge in self._judges.items():
                what = f"{label}, {part}"
                perplexities[part] = judge.perplexity(learner.model, self._num_rows, what)
        return EpochRecord(
            seconds=seconds,
            examples=examples,
            loss=total / examples,
            validation_perplexity=perplexities["validation"],
            test_perplexity=perplexities["test"],
            statistics=learner.statistics(),
        )
