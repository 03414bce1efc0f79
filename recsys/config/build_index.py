"""The bridge from settings to an index."""

from recsys.config.schema_training import IndexConfig
from recsys.index import IndexSettings


def build_index_settings(config: IndexConfig) -> IndexSettings:
    """Turn the index group into the settings of an index."""
    return IndexSettings(**vars(config))
