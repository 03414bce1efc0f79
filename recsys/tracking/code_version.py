"""Which code ran: the version of the package and, in a checkout, the commit."""

import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import recsys


def code_version() -> dict[str, str]:
    """Give tags that name the code: the version; commit and changed files in a checkout.

    Returns:
        ``recsys.version``; where git tracks the package also ``mlflow.source.git.commit`` and
        ``recsys.git_dirty`` ("true" or "false").
    """
    tags = {"recsys.version": recsys.__version__, "mlflow.version": metadata.version("mlflow")}
    package = Path(recsys.__file__).parent
    git = shutil.which("git")
    # A package inside someone else's repository (a virtual environment there) is not tracked.
    if git and _git(git, package, "ls-files", "--error-unmatch", "__init__.py"):
        commit = _git(git, package, "rev-parse", "HEAD")
        if commit:
            changed = _git(git, package, "status", "--porcelain", "--untracked-files=no", ".")
            tags["mlflow.source.git.commit"] = commit
            tags["recsys.git_dirty"] = "true" if changed else "false"
    return tags


def _git(git: str, folder: Path, *arguments: str) -> str:
    """Give what git says, or nothing where it fails or does not answer."""
    try:
        answer = subprocess.run(  # noqa: S603  (fixed arguments, no shell)
            [git, "--no-optional-locks", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()
