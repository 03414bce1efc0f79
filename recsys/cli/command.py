"""The command `recsys`: its stages, each one line of help; the work is done elsewhere.

It loads nothing heavy, so that help and refusals come at once.
"""

import difflib
import importlib
import importlib.util
import sys
from collections.abc import Sequence

from recsys import __version__
from recsys.cli.environment import set_thread_environment
from recsys.cli.report import complain, guarded

_STAGES = {
    "prepare": "read logs, filter, split; write a dataset folder",
    "train": "prepare if needed, train, index, evaluate; write a bundle",
    "evaluate": "score a bundle on its dataset, or any ranked list",
    "index": "give an existing bundle another index, as a new bundle",
    "update": "add, replace and withdraw items of a bundle, as a new bundle",
    "compact": "fold the changes of updates into the index, as a new bundle",
    "recommend": "write the top items of many users to Parquet",
    "neighbours": "show the nearest items of items",
    "explain": "say why items have their scores for a user",
    "serve": "answer lookups over HTTP",
    "baselines": "score popularity, EASE and others under the same report",
    "diagnose": "measure bias and noise of the softmax estimators on your data",
    "benchmark": "measure rates and memory on this machine",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: What stands behind `recsys`; None: what the shell gave.

    Returns:
        The exit status: 0, 2 for what the user can mend, 1 for a fault of the toolkit.

    Raises:
        SystemExit: A stage ended with another status than 0.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    first, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if first in ("-h", "--help"):
        sys.stdout.write(_help())
        return 0
    if first == "--version":
        sys.stdout.write(f"recsys {__version__}\n")
        return 0
    stages = _installed()
    if first in stages:
        return guarded(lambda: _run(first, rest))
    if not first:
        sys.stderr.write(_help())
        return 2
    near = difflib.get_close_matches(first, stages, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(stages)}."
    complain(f"{first!r} is not a command; {hint}")
    return 2


def _run(name: str, overrides: list[str]) -> int:
    set_thread_environment()
    before = sys.argv
    sys.argv = [f"recsys {name}", *overrides]  # Hydra reads it, here and in a sweep's processes
    try:
        importlib.import_module(f"recsys.pipelines.{name}").main()
    finally:
        sys.argv = before
    return 0


def _installed() -> list[str]:
    """List the stages that this installation has."""
    if importlib.util.find_spec("recsys.pipelines") is None:
        return []
    return [n for n in _STAGES if importlib.util.find_spec(f"recsys.pipelines.{n}") is not None]


def _help() -> str:
    lines = [f"  {name:<12}{_STAGES[name]}" for name in _installed()]
    return "\n".join(
        [
            "Train and serve a two-tower retrieval model.",
            "",
            "usage: recsys COMMAND [SETTING=VALUE ...]",
            "",
            *lines,
            "",
            "recsys COMMAND --help lists a command's settings and groups; --cfg job prints the",
            "settings a run would use; --multirun SETTING=A,B runs one job for each value.",
            "recsys --version prints the version.",
            "",
        ]
    )
