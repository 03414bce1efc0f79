"""Batches made in a thread of their own, ahead of the step that takes them."""

import itertools
import threading
from queue import SimpleQueue

from recsys.data.training_batch import BatchStream, TrainingBatch, TrainingBatches
from recsys.foundations import check_positive


class PrefetchedBatches:
    """The batches of another source, some of them made while earlier ones are worked on.

    Order and content are the source's. Its errors are raised where the batch is asked for. The
    thread ends with the epoch, or when the stream is closed or let go.

    Args:
        batches: The source.
        depth: The most batches that are ready or in the making.

    Raises:
        ArgumentError: `depth` is not above 0.
    """

    def __init__(self, batches: TrainingBatches, *, depth: int) -> None:
        check_positive("depth", depth)
        self._batches, self._depth = batches, depth

    @property
    def num_rows(self) -> int:
        """Count the positives that an epoch visits."""
        return self._batches.num_rows

    def count_batches(self, epochs: int) -> int:
        """Count the batches of the first epochs."""
        return self._batches.count_batches(epochs)

    def epoch(self, epoch: int, *, first_batch: int = 0) -> BatchStream:
        """Yield the batches of an epoch from `first_batch` on; the same ones every time."""
        ahead = _Ahead(self._batches.epoch(epoch, first_batch=first_batch), self._depth)
        try:
            while (batch := ahead.get()) is not None:
                yield batch
        finally:
            ahead.stop()


class _Ahead:
    """A thread that goes through a stream as far as there are free places."""

    def __init__(self, source: BatchStream, depth: int) -> None:
        self._source, self._depth, self._stopped = source, depth, False
        # Not a semaphore: one that Ctrl-C interrupts may stay locked, and `stop` would wait on it.
        self._taken: SimpleQueue[None] = SimpleQueue()
        self._made: SimpleQueue[TrainingBatch | BaseException | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="batches", daemon=True)
        self._thread.start()

    def get(self) -> TrainingBatch | None:
        """Wait for the next batch; None at the end."""
        made = self._made.get()
        self._taken.put(None)
        if isinstance(made, BaseException):
            raise made
        return made

    def stop(self) -> None:
        """End the thread, which finishes the batch that it is at."""
        self._stopped = True
        self._taken.put(None)
        self._thread.join()
        self._source.close()

    def _run(self) -> None:
        try:
            for number in itertools.count():
                if number >= self._depth:
                    self._taken.get()
                if self._stopped:
                    return
                batch = next(self._source, None)
                self._made.put(batch)
                if batch is None:
                    return
        except BaseException as error:  # noqa: BLE001 - raised by the thread that asks
            self._made.put(error)
