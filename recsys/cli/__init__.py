"""The one command `recsys`, and the decorator that makes a pipeline one of its stages."""

from recsys.cli.command import main
from recsys.cli.environment import set_thread_environment
from recsys.cli.job import (
    as_written,
    experiment_name,
    job_folder,
    list_as_written,
    sweep_name,
    user_folder,
)
from recsys.cli.stage import stage

__all__ = [
    "as_written",
    "experiment_name",
    "job_folder",
    "list_as_written",
    "main",
    "set_thread_environment",
    "stage",
    "sweep_name",
    "user_folder",
]
