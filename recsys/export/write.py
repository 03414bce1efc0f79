"""Writing an export: every form into its folder, a manifest, then one rename."""

from pathlib import Path

from recsys.bundle import Bundle
from recsys.export.engine_names import check_name
from recsys.export.exported_items import ExportedItems
from recsys.export.forms import FORMS, forms_of
from recsys.export.request import ExportRequest
from recsys.export.users import write_users
from recsys.foundations import ConfigError, RecsysError, atomic_folder, read_json, write_json

FORMAT, FORMAT_VERSION = "recsys-export", 1
_MANIFEST = "export.json"


def check_replaceable(path: Path) -> None:
    """Check that nothing but an export or an empty folder would be replaced.

    Raises:
        ConfigError: Something else lies there.
    """
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    try:
        manifest = read_json(path / _MANIFEST)
    except RecsysError:
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ConfigError(f"{path} is no export and is not replaced: choose another run_dir.")


def write_export(path: Path, bundle: Bundle, request: ExportRequest) -> Path:
    """Write an export; the folder appears, or replaces an older export, in one step.

    Args:
        path: The folder; each form has one of its own in it, and so have the users.
        bundle: What is exported.
        request: What is written.

    Returns:
        The folder.

    Raises:
        ConfigError: What lies there is no export.
        ArgumentError: A name is one that the engine refuses, or the bundle lacks a column.
        DataError: A value is beyond what the engine takes; the message names it.
    """
    check_replaceable(path)
    names = forms_of(request.form)
    for name in names:
        check_name(name, request.name)
    items = ExportedItems(bundle, request.columns)
    with atomic_folder(path) as folder:
        for name in names:
            (folder / name).mkdir()
            FORMS[name](items, request, folder / name)
        num_users = None
        if request.users:
            (folder / "users").mkdir()
            num_users = write_users(bundle, folder / "users")
        write_json(folder / _MANIFEST, _manifest(items, request, names, num_users))
    return path


def _manifest(
    items: ExportedItems, request: ExportRequest, forms: list[str], num_users: int | None
) -> dict[str, object]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "bundle_id": items.bundle.bundle_id,
        "forms": forms,
        "name": request.name,
        "metric": "inner_product",
        "dim": items.dim,
        "bias_place": items.bundle.model.bias_place,
        "num_items": len(items),
        "num_users": num_users,
        "columns": {name: str(kind) for name, kind in items.types.items()},
    }
