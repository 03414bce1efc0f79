"""Checkpoints: all that a run needs to go on as if it had never stopped.

A checkpoint is a folder that appears by one rename: `state.safetensors` holds the tensors,
`state.json` the position, the settings and the hash of the tensors.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from recsys.foundations import (
    ConfigError,
    FormatError,
    atomic_folder,
    canonical_json,
    check_files,
    list_files,
    read_json,
    sha256_text,
    write_json,
)
from recsys.training.objective import Objective

FORMAT_VERSION = 1
_PARTS = {"position": dict, "settings": dict, "fingerprint": str, "files": dict}


@dataclass
class Position:
    """Where a run stands.

    Attributes:
        epoch: The epoch under way, from 0.
        batch: Batches of it that are done.
        rows: Rows of it that are done.
        step: Steps done in all.
        loss_sum: Weighted sum of the epoch's losses so far, in nats.
        weight_sum: Sum of the weights.
        records: One dictionary of numbers for each epoch that is done.
        best_epoch: The epoch (from 1) with the best validation recall; 0: none yet.
        best_recall: That recall; None where nothing was validated.
    """

    epoch: int = 0
    batch: int = 0
    rows: int = 0
    step: int = 0
    loss_sum: float = 0.0
    weight_sum: float = 0.0
    records: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int = 0
    best_recall: float | None = None

    @property
    def mean_loss(self) -> float:
        """Give the epoch's mean loss so far, in nats; 0 where no row has a weight."""
        return self.loss_sum / self.weight_sum if self.weight_sum > 0 else 0.0

    @property
    def is_best(self) -> bool:
        """Say whether the epoch that just ended is the best one."""
        return self.batch == 0 and 0 < self.best_epoch == self.epoch

    def start_epoch(self) -> None:
        """Forget the sums of the epoch that ended."""
        self.batch, self.rows, self.loss_sum, self.weight_sum = 0, 0, 0.0, 0.0


@dataclass(frozen=True)
class Trainable:
    """The parts of a run that change: what a checkpoint saves and restores."""

    model: nn.Module
    optimizers: list[Optimizer]
    objective: Objective
    generator: torch.Generator

    def tensors(self) -> dict[str, Tensor]:
        """Give every tensor under a name of its own."""
        named = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        named |= {f"objective.{name}": v for name, v in self.objective.state_dict().items()}
        for place, optimizer in enumerate(self.optimizers):
            for parameter, state in optimizer.state_dict()["state"].items():
                for name, value in state.items():
                    named[f"optimizer.{place}.{parameter}.{name}"] = torch.as_tensor(value)
        named |= {"random.own": self.generator.get_state(), "random.cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            named["random.cuda"] = torch.cuda.get_rng_state()
        return {name: value.detach().cpu().contiguous() for name, value in named.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take up what `tensors` gave."""
        self.model.load_state_dict(_under(tensors, "model."))
        self.objective.load_state_dict(_under(tensors, "objective."))
        for place, optimizer in enumerate(self.optimizers):
            states: dict[int, dict[str, Any]] = {}
            for key, value in _under(tensors, f"optimizer.{place}.").items():
                parameter, _, name = key.partition(".")
                # A count of steps that was an int must not go through float32 from here on.
                is_int = value.dim() == 0 and not value.is_floating_point()
                states.setdefault(int(parameter), {})[name] = value.item() if is_int else value
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": states, "param_groups": groups})
        self.generator.set_state(tensors["random.own"])
        torch.set_rng_state(tensors["random.cpu"])
        if torch.cuda.is_available() and "random.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random.cuda"])


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _link(source: Path, target: Path) -> None:
    """Share a file that never changes; copy it where the disk cannot."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


class CheckpointStore:
    """The checkpoints `last` and `best` of one run.

    Args:
        folder: Where they stand.
        settings: Flat settings that shape the training; a checkpoint of others is refused.
        fingerprint: Of the dataset.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], fingerprint: str) -> None:
        self._folder, self._settings, self._fingerprint = folder, settings, fingerprint

    @property
    def has_last(self) -> bool:
        """Say whether there is a checkpoint to go on from."""
        return (self._folder / "last" / "state.json").exists()

    def save_last(self, trainable: Trainable, position: Position) -> None:
        """Replace the checkpoint `last`."""
        with atomic_folder(self._folder / "last") as folder:
            save_file(trainable.tensors(), folder / "state.safetensors")
            state = {
                "format": "recsys-checkpoint",
                "format_version": FORMAT_VERSION,
                "position": asdict(position),
                "settings": self._settings,
                "fingerprint": self._fingerprint,
                "files": list_files(folder),
            }
            write_json(folder / "state.json", state | {"state_sha256": _own_hash(state)})

    def keep_as_best(self) -> None:
        """Make `best` the checkpoint that `last` is now; the files are shared, not copied."""
        with atomic_folder(self._folder / "best") as folder:
            for name in ("state.safetensors", "state.json"):
                _link(self._folder / "last" / name, folder / name)

    def resume(self, trainable: Trainable) -> Position:
        """Restore `last`.

        Raises:
            FormatError: It is damaged or of an unknown version.
            ConfigError: It was trained with other settings or on another dataset.
        """
        state = self._read("last")
        self._check_same_run(state)
        with self._fitting("last"):
            trainable.restore(self._read_tensors("last", state))
        for half_written in self._folder.glob(".tmp-*"):
            shutil.rmtree(half_written, ignore_errors=True)
        position = Position(**state["position"])
        if position.is_best:  # a kill may have come between `save_last` and `keep_as_best`
            self.keep_as_best()
        return position

    def restore_best(self, model: nn.Module) -> None:
        """Give the model the weights of `best`."""
        with self._fitting("best"):
            tensors = self._read_tensors("best", self._read("best"))
            model.load_state_dict(_under(tensors, "model."))

    @contextlib.contextmanager
    def _fitting(self, name: str) -> Iterator[None]:
        """Turn what torch raises at tensors of other names or shapes into a refusal."""
        try:
            yield
        except (RuntimeError, KeyError) as error:
            path, reason = self._folder / name / "state.safetensors", str(error).split("\n")[-1]
            raise FormatError(f"{path} does not fit this run: {reason.strip()}") from error

    def _read(self, name: str) -> dict[str, Any]:
        path = self._folder / name / "state.json"
        state = read_json(path)
        if not isinstance(state, dict) or state.get("format") != "recsys-checkpoint":
            raise FormatError(f"{path} is not a checkpoint of recsys.")
        if state.get("format_version") != FORMAT_VERSION:
            raise FormatError(
                f"{path} has format_version {state.get('format_version')}; "
                f"this program reads {FORMAT_VERSION}."
            )
        is_whole = all(isinstance(state.get(key), kind) for key, kind in _PARTS.items())
        if not is_whole or state["position"].keys() != asdict(Position()).keys():
            raise FormatError(f"{path} is damaged: not all of {', '.join(_PARTS)} is there.")
        if "state.safetensors" not in state["files"]:
            raise FormatError(f"{path} is damaged: it does not list state.safetensors.")
        if state.pop("state_sha256", None) != _own_hash(state):
            raise FormatError(f"{path} is damaged: its SHA-256 is not the one it states.")
        return state

    def _read_tensors(self, name: str, state: dict[str, Any]) -> dict[str, Tensor]:
        folder = self._folder / name
        check_files(folder, state.get("files"))
        try:
            tensors: dict[str, Tensor] = load_file(folder / "state.safetensors")
        except (SafetensorError, OSError) as error:
            raise FormatError(f"{folder / 'state.safetensors'} is damaged: {error}") from error
        return tensors

    def _check_same_run(self, state: dict[str, Any]) -> None:
        saved = state["settings"]
        both, either = saved.keys() & self._settings.keys(), saved.keys() | self._settings.keys()
        # A setting that only one of them has is there because of another that both have.
        for key in sorted(both) + sorted(either - both):
            there, here = saved.get(key), self._settings.get(key)
            if there != here:
                raise ConfigError(
                    f"resume: {key} is {here!r}, but the checkpoint in {self._folder} was "
                    f"trained with {there!r}; set it back, or start a new run."
                )
        if state["fingerprint"] != self._fingerprint:
            raise ConfigError(
                f"resume: the dataset is not the one that the checkpoint in {self._folder} "
                f"was trained on ({state['fingerprint'][:12]} there, "
                f"{self._fingerprint[:12]} here)."
            )


def _own_hash(state: dict[str, Any]) -> str:
    """Hash a checkpoint's state without the field that holds the hash."""
    return sha256_text(canonical_json(state))
