"""Settings of the export."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from recsys.config.ranges import one_of, within
from recsys.config.schema_data import PATH
from recsys.config.schema_stages import StageConfig
from recsys.export import FORMS, MOST_FILE_MB, check_name, forms_of
from recsys.foundations import ArgumentError, ConfigError


@dataclass(kw_only=True)
class ExportConfig(StageConfig):
    """Write a bundle's vectors as other engines load them."""

    bundle: str = field(default=MISSING, metadata=PATH)
    form: str = MISSING
    name: str = MISSING  # of the collection or index in the engine
    columns: list[str] | None = MISSING  # null: all that the bundle keeps
    users: bool = MISSING  # their vectors too
    file_mb: int = MISSING  # files sent as one request stay below

    def __post_init__(self) -> None:
        """Check the ranges, and that the engines take the name."""
        super().__post_init__()
        one_of("form", self.form, [*FORMS, "all"])
        within("file_mb", self.file_mb, 1, MOST_FILE_MB)
        for form in forms_of(self.form):
            try:
                check_name(form, self.name)
            except ArgumentError as error:
                raise ConfigError(str(error).replace("`name`", "name")) from error
