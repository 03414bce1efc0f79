"""Random streams: one seed gives each part of the program a stream of its own."""

import hashlib
import random

import numpy as np
import torch


def derive_seed(seed: int, *names: str | int) -> int:
    """Derive the seed of a named stream, in [0, 2**63), independent of PYTHONHASHSEED."""
    text = "/".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def make_generator(seed: int, *names: str | int) -> torch.Generator:
    """Make a torch generator for the named stream, on the CPU."""
    return torch.Generator().manual_seed(derive_seed(seed, *names))


def make_numpy_generator(seed: int, *names: str | int) -> np.random.Generator:
    """Make a NumPy generator for the named stream."""
    return np.random.default_rng(derive_seed(seed, *names))


def seed_everything(seed: int) -> None:
    """Seed the global streams of Python and torch, which dropout and initialisers use."""
    random.seed(seed)
    torch.manual_seed(derive_seed(seed, "global"))
