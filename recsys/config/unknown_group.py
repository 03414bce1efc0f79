"""Refusals of a group of settings that a command does not have, with the names of those it has."""

import re
from importlib.resources import files

import yaml


def explain_unknown_group(text: str, stage: str | None) -> str | None:
    """Explain Hydra's refusal of a choice for a group that is not in the defaults list.

    Args:
        text: Of Hydra's error.
        stage: The command that was composed; None: not known.

    Returns:
        The sentence, or None for an error of another kind.
    """
    there = re.match(r"Could not override '(.*?)'\. No match in the defaults list", text)
    if not there:
        return None
    file = files("recsys.conf") / f"{stage}.yaml"
    if not file.is_file():
        return f"{there[1]} is not a group of this command."
    defaults = yaml.safe_load(file.read_text(encoding="utf-8"))["defaults"]
    groups = [group for one in defaults if isinstance(one, dict) for group in one]
    listed = " and ".join([", ".join(groups[:-1]), groups[-1]] if groups[1:] else groups)
    has = f"the group{'s' if groups[1:] else ''} {listed}" if groups else "none"
    return f"{there[1]} is not a group of {stage}, which has {has}."
