"""Where the model trains, and how precisely it multiplies there."""

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


class MatrixProducts:
    """Lets the float32 matrix products of cuda round their factors to TF32, while it is entered.

    Args:
        precision: `tf32` does; anything else changes nothing.
        device: Where the products are computed.

    Raises:
        ConfigError: The device knows no TF32.
    """

    def __init__(self, precision: str, device: torch.device) -> None:
        self._rounds = precision == "tf32"
        if self._rounds and device.type != "cuda":
            raise ConfigError(
                "trainer.precision=tf32 is of products on cuda, but training would run on "
                f"{device.type}: take float32 or bfloat16."
            )
        self._before = torch.get_float32_matmul_precision()

    def __enter__(self) -> None:
        """Round from now on."""
        self._before = torch.get_float32_matmul_precision()
        if self._rounds:
            torch.set_float32_matmul_precision("high")

    def __exit__(self, *_: object) -> None:
        """Do as before."""
        torch.set_float32_matmul_precision(self._before)
