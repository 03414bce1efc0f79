"""Where Linux tells a container its own limits."""

from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")  # of version 2; of version 1 with a folder for each resource
