"""What a new bundle may take the place of."""

from pathlib import Path

from recsys.bundle.manifest import FILES, MANIFEST
from recsys.foundations import ConfigError


def check_replaceable(path: Path) -> None:
    """Check that nothing but a bundle, whole or damaged, or an empty folder would be replaced.

    Raises:
        ConfigError: Something else lies there.
    """
    if not path.is_dir():  # what is there instead is refused where it would be replaced
        return
    names = {one.name for one in path.iterdir()}
    if names and not names & {MANIFEST, *FILES}:
        raise ConfigError(f"{path} is no bundle and is not replaced: choose another run_dir.")
