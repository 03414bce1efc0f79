"""How probable a model makes the words of a part: exactly, over all words.

Dimensions: B examples of a block, P examples in all, C rows of the catalogue of words.
"""

import math

import numpy as np
import torch

from recsys.benchmark.next_words import NextWordData, NextWords
from recsys.data import EventBatches, FeatureSchema, FeatureTable, TrainingBatch
from recsys.foundations import Progress, make_numpy_generator
from recsys.losses import full_softmax_loss
from recsys.metrics import perplexity
from recsys.models import QueryInputs, TwoTower

_BLOCK = 2048


class PerplexityJudge:
    """The full softmax over all words, in blocks, without gradients.

    Args:
        part: What is scored.
        context: Earlier words of the sentence that a word is predicted from.
        max_examples: At most so many of the part's examples, drawn by seed, the same ones every
            time. None: all.
        seed: Of that draw.
    """

    def __init__(
        self, part: NextWords, *, context: int, max_examples: int | None, seed: int
    ) -> None:
        chosen = part.examples
        if max_examples is not None and max_examples < len(chosen):
            rng = make_numpy_generator(seed, "perplexity")
            chosen = rng.choice(chosen, max_examples, replace=False, shuffle=False)
        self._batches = EventBatches(
            part.events,
            clock="order",
            ties="include",
            history_length=context,
            batch_size=_BLOCK,
            drop_last=False,
            seed=seed,
            positives=np.sort(chosen),
        )

    @property
    def num_examples(self) -> int:
        """Count the words that are scored."""
        return self._batches.num_rows

    def perplexity(self, model: TwoTower, num_rows: int, what: str) -> float:
        """Give ``exp`` of the mean loss in nats; infinite or NaN where that is what it comes to.

        Args:
            model: Is left in training mode.
            num_rows: C.
            what: Stands in the progress bar.
        """
        total = 0.0
        model.eval()
        with torch.no_grad(), Progress(what, self.num_examples, "words") as bar:
            words = FeatureTable.missing(FeatureSchema(()), num_rows)
            catalogue = model.embed_candidates(torch.arange(num_rows), words)  # [C, E]
            for batch in self._batches.epoch(0):
                losses = full_softmax_loss(
                    embed_contexts(model, batch),
                    catalogue,
                    positive_rows=torch.from_numpy(batch.positives),
                    temperature=model.temperature(),
                )
                total += float(losses.double().sum())
                bar.advance(len(losses))
        model.train()
        return perplexity(-total / self.num_examples)


def embed_contexts(model: TwoTower, batch: TrainingBatch) -> torch.Tensor:
    """Embed the contexts of a batch by the user tower: [B, E]."""
    nothing = FeatureTable.missing(FeatureSchema(()), len(batch.users))
    return model.embed_queries(QueryInputs(batch.users, batch.histories, nothing, batch.context))


def unigram_perplexity(data: NextWordData, part: NextWords) -> float:
    """Give the perplexity of a part under the words' shares of the training examples.

    A word without any counts as one with half an example, as where item biases begin at the log
    of the popularity.
    """
    counts = np.maximum(data.counts, 0.5)
    log_shares = np.log(counts / counts.sum())
    return math.exp(-float(log_shares[part.targets].mean()))
