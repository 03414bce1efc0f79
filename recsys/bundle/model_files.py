"""The towers of a bundle: what they are made of as JSON, their values as safetensors."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from recsys.data import FeatureSchema
from recsys.foundations import FormatError, RecsysError, read_json, write_json
from recsys.models import ModelSpec, TwoTower, build_two_tower

_SPEC, _VALUES = "model.json", "model.safetensors"


def write_model(folder: Path, model: TwoTower, facts: dict[str, Any]) -> None:
    """Write a model.

    Args:
        folder: The bundle.
        model: On any device.
        facts: num_users, num_items and what else is fixed with the model.
    """
    write_json(folder / _SPEC, {"spec": model.spec.to_json(), **facts})
    tensors = {name: values.detach().cpu() for name, values in model.state_dict().items()}
    save_file({name: tensors[name].contiguous() for name in tensors}, folder / _VALUES)


def read_facts(folder: Path) -> dict[str, Any]:
    """Read num_users, num_items, exclude_seen, clock and the specification.

    Raises:
        FormatError: One is absent or of another type.
    """
    facts = read_json(folder / _SPEC)
    kinds = {"num_users": int, "num_items": int, "exclude_seen": bool, "clock": str, "spec": dict}
    if not isinstance(facts, dict) or any(
        type(facts.get(name)) is not kind for name, kind in kinds.items()
    ):
        raise FormatError(f"{folder / _SPEC} is damaged: not what describes a model.")
    return facts


def read_model(folder: Path, facts: dict[str, Any], schemas: dict[str, FeatureSchema]) -> TwoTower:
    """Rebuild a model, on the CPU, in evaluation mode; the random streams are left as they are.

    Args:
        folder: The bundle.
        facts: As `read_facts` gave them.
        schemas: Of "users", "items" and "context".

    Raises:
        FormatError: A file is damaged or the values are those of another model.
    """
    try:
        with torch.random.fork_rng(devices=[]):
            model = build_two_tower(
                ModelSpec.from_json(facts["spec"]),
                num_users=facts["num_users"],
                num_items=facts["num_items"],
                user_schema=schemas["users"],
                item_schema=schemas["items"],
                context_schema=schemas["context"],
            )
    except (RecsysError, RuntimeError) as error:
        raise FormatError(f"{folder / _SPEC} is damaged: {error}") from error
    try:
        model.load_state_dict(load_file(folder / _VALUES))
    except (SafetensorError, RuntimeError, OSError) as error:
        raise FormatError(
            f"{folder / _VALUES} is damaged, or of another model than {_SPEC}."
        ) from error
    return model.eval()
