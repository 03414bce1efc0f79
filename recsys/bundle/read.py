"""Reading a bundle: hashes first, then every part, then whether the parts belong together."""

from pathlib import Path

from recsys.bundle.bundle import Bundle
from recsys.bundle.histories import read_histories
from recsys.bundle.manifest import read_manifest
from recsys.bundle.model_files import read_facts, read_model
from recsys.data import Entities, FeatureSchema, read_entities_file
from recsys.foundations import FormatError, read_json
from recsys.index import IndexSettings, read_stored, read_vectors


def read_bundle(path: Path | str, *, verify: bool = True) -> Bundle:
    """Read a bundle.

    Args:
        path: Its folder.
        verify: Whether the files' hashes are compared; their sizes always are.

    Raises:
        MissingFileError: There is no bundle.
        FormatError: A file is missing, damaged, of another bundle, or of an unknown version; the
            message names it.
    """
    folder = Path(path)
    manifest = read_manifest(folder, verify=verify)
    facts, schemas = read_facts(folder), _read_schemas(folder)
    model = read_model(folder, facts, schemas)
    users = read_entities_file(folder / "users.parquet", schemas["users"])
    items = read_entities_file(folder / "items.parquet", schemas["items"])
    model.item_features = items.features
    num_users, num_items = facts["num_users"], facts["num_items"]
    _check_count(folder / "users.parquet", users, num_users)
    _check_count(folder / "items.parquet", items, num_items)
    vectors = read_vectors(folder / "item_vectors.npy")
    if vectors.shape != (num_items, model.output_dim):
        raise FormatError(
            f"{folder / 'item_vectors.npy'} holds {len(vectors)} vectors of width "
            f"{vectors.shape[1]}, the model gives {num_items} of width {model.output_dim}."
        )
    histories, history_times = read_histories(
        folder, num_users=len(users), num_items=num_items, clock=facts["clock"]
    )
    settings = IndexSettings.from_json(read_json(folder / "index.json"))
    return Bundle(
        path=folder,
        manifest=manifest,
        model=model,
        users=users,
        items=items,
        num_users=num_users,
        num_items=num_items,
        context_schema=schemas["context"],
        histories=histories,
        history_times=history_times,
        item_vectors=vectors,
        index=read_stored(folder, vectors, settings),
        exclude_seen=facts["exclude_seen"],
        clock=facts["clock"],
    )


def _read_schemas(folder: Path) -> dict[str, FeatureSchema]:
    plain = read_json(folder / "features.json")
    try:
        return {
            name: FeatureSchema.from_json(plain[name]) for name in ("users", "items", "context")
        }
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{folder / 'features.json'} is damaged: {error}") from error


def _check_count(path: Path, entities: Entities, at_least: int) -> None:
    if len(entities) < at_least:
        raise FormatError(f"{path} holds {len(entities)} ids, the model has {at_least}.")
