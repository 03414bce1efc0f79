"""Where the model trains."""

import torch

from recsys.foundations import ConfigError


def choose_device(name: str) -> torch.device:
    """Choose a device: `auto` takes cuda, else mps, else the CPU.

    Raises:
        ConfigError: The device asked for is not there.
    """
    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        return torch.device(next(kind for kind, is_there in there.items() if is_there))
    if not there.get(name, False):
        found = ", ".join(kind for kind, is_there in there.items() if is_there)
        raise ConfigError(f"trainer.device is {name!r}, but this machine offers: {found}.")
    return torch.device(name)
