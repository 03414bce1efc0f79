"""The machine that numbers were taken on."""

import os
import platform
from typing import Any

import torch

from recsys.foundations import available_cores


def describe_machine() -> dict[str, Any]:
    """Give plain values for a file of results."""
    return {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "usable_cores": available_cores(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
