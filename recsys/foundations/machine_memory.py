"""How much memory a process may still take."""

import os
from pathlib import Path

from recsys.foundations.control_group import CGROUP

_MEMINFO = Path("/proc/meminfo")


def available_memory() -> int:
    """Give the bytes that are free or can be freed at once, within the container's limit if any.

    Where the system does not tell, half of what is built in is taken to be free.
    """
    free = _available_of_machine()
    if (CGROUP / "memory.max").exists():
        within = _available_of_group(CGROUP, "max", "current", "inactive_file")
    else:
        names = ("limit_in_bytes", "usage_in_bytes", "total_inactive_file")
        within = _available_of_group(CGROUP / "memory", *names)
    return free if within is None else min(free, within)


def _available_of_machine() -> int:
    if _MEMINFO.exists():
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _available_of_group(folder: Path, limit: str, usage: str, cache: str) -> int | None:
    """Give what a container's limit leaves; None: there is no limit.

    Args:
        folder: Of the files.
        limit: Names the file of the limit.
        usage: Names the file of what is in use, among it files that were read or written.
        cache: What `memory.stat` calls the part of it that the system frees where it is needed.
    """
    most = _read_number(folder / f"memory.{limit}")
    if most is None:
        return None
    used = _read_number(folder / f"memory.{usage}") or 0
    return max(most - max(used - _read_entry(folder / "memory.stat", cache), 0), 0)


def _read_entry(path: Path, name: str) -> int:
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)


def _read_number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # "max" stands for no limit
        return None
