"""The one command `recsys`, and the decorator that makes a pipeline one of its stages."""

from recsys.cli.command import main
from recsys.cli.environment import set_thread_environment
from recsys.cli.stage import stage

__all__ = ["main", "set_thread_environment", "stage"]
