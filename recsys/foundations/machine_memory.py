"""How much memory a process may still take."""

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Give the bytes that are free or can be freed at once, within the container's limit if any.

    Where the system does not tell, half of what is built in is taken to be free.
    """
    free = _available_of_machine()
    limit, used = _read_number(_GROUP / "memory.max"), _read_number(_GROUP / "memory.current")
    return free if limit is None else min(free, max(limit - (used or 0), 0))


def _available_of_machine() -> int:
    if _MEMINFO.exists():
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _read_number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # "max" stands for no limit
        return None
