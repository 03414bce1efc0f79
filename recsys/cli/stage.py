"""A pipeline as a stage of the command: Hydra's settings in, an exit status out."""

import functools
import os
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from recsys.cli.environment import set_thread_environment, variable
from recsys.cli.help import help_without_schemas
from recsys.cli.interruptions import interruptible_composition, interruptions_first
from recsys.cli.job import job_folder
from recsys.cli.logs import configure_logging, remove_unused_folder
from recsys.cli.malloc import keep_freed_memory
from recsys.cli.quoting import with_quoted_expressions
from recsys.cli.report import complain, guarded, report

if TYPE_CHECKING:
    from omegaconf import DictConfig

Task = Callable[["DictConfig"], Any]
_FULL_ERROR = "HYDRA_FULL_ERROR"
_WITH_LARGE_TEMPORARIES = ("train", "evaluate", "diagnose")  # faster with `keep_freed_memory`


def stage(config_name: str, *, config_path: str = "pkg://recsys.conf") -> Callable[[Task], Any]:
    """Make a function of the composed settings a stage that a shell can run.

    The function it gives takes the command line from ``sys.argv``. Settings that are refused and
    every RecsysError end in one line on stderr and status 2, faults of ours in a traceback and
    status 1, Ctrl-C in 130, SIGTERM in 143 after everything has been closed. In a sweep every
    job runs; one that fails says so at once, and the status is that of the first of them.

    Args:
        config_name: The primary settings file, such as "train".
        config_path: Where it lies: ``pkg://`` and a package, or an absolute folder.
    """

    def decorate(task: Task) -> Callable[[], None]:
        @functools.wraps(task)
        def main() -> None:
            set_thread_environment()
            status = guarded(lambda: _compose_and_run(task, config_name, config_path))
            if status != 0:
                sys.exit(status)

        return main

    return decorate


def _compose_and_run(task: Task, config_name: str, config_path: str) -> int:
    import hydra
    from hydra.errors import ConfigCompositionException

    from recsys.config.composition import explain, explain_group
    from recsys.config.replaced_choices import without_keys_of_replaced_choices
    from recsys.foundations import ConfigError, unwinding_on_signals

    asked = os.environ.get(_FULL_ERROR)
    statuses: list[int] = []
    job = _reporting_job(task, asked, statuses, keeps=config_name in _WITH_LARGE_TEMPORARIES)
    sys.argv = [sys.argv[0], *_sorted_options(with_quoted_expressions(sys.argv[1:]))]
    run = hydra.main(version_base="1.3", config_path=config_path, config_name=config_name)(job)
    with unwinding_on_signals(), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".* is not available", category=UserWarning)
        try:
            # Without this Hydra prints errors in its own way and leaves.
            with (
                variable(_FULL_ERROR, "1"),
                help_without_schemas(sys.argv),
                interruptible_composition(),
                without_keys_of_replaced_choices(),
                interruptions_first(),
            ):
                run()
        except ConfigCompositionException as error:
            raise ConfigError(explain(error, config_name) or str(error)) from error
        except ValueError as error:  # of Hydra itself, for a job's own errors end in the job
            complain(explain(error) or explain_group(error, sys.argv[1:]))
            return 2
    return statuses[0] if statuses else 0


def _reporting_job(task: Task, asked: str | None, statuses: list[int], *, keeps: bool) -> Task:
    """Wrap the task: its errors are reported here, for Hydra adds lines to those it sees.

    Whether the process keeps freed memory is set here too, for a job may run in one of its own.
    """
    launcher = os.getpid()

    @functools.wraps(task)
    def job(tree: "DictConfig") -> Any:
        configure_logging()
        with variable(_FULL_ERROR, asked):
            try:
                if keeps:
                    keep_freed_memory()
                with interruptions_first():
                    return task(tree)
            except Exception as error:
                statuses.append(report(error, _job_name()))
                remove_unused_folder(job_folder())
                if os.getpid() != launcher:  # a launcher with processes must learn of it too
                    raise
                return None

    return job


def _job_name() -> str:
    """Name the job of a sweep by number and settings; a single run needs no name."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    settings = HydraConfig.get()
    if settings.mode != RunMode.MULTIRUN:
        return ""
    return f"job {settings.job.num} ({' '.join(settings.overrides.task)}): "


def _sorted_options(arguments: list[str]) -> list[str]:
    """Put options before settings, for Hydra takes no setting behind an option.

    Raises:
        ConfigError: An option is none, or misses its value.
    """
    from hydra._internal.utils import get_args_parser

    from recsys.foundations import ConfigError

    parser = get_args_parser()

    def refuse(message: str) -> NoReturn:  # Hydra's parser would print a page
        raise ConfigError(f"{message}; settings are written NAME=VALUE, without dashes.")

    parser.error = refuse  # type: ignore[method-assign]
    settings = parser.parse_intermixed_args([a for a in arguments if a != "--version"]).overrides
    options = list(arguments)
    for one in reversed(settings):
        del options[len(options) - 1 - options[::-1].index(one)]
    return [*options, *settings]
