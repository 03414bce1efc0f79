"""Types and ranges of every setting, and the bridge from settings to objects."""

from recsys.config.flatten import flatten, to_plain
from recsys.config.load import compose_config, load, register_schemas
from recsys.config.schema_baselines import BaselinesConfig
from recsys.config.schema_benchmark import BenchmarkConfig
from recsys.config.schema_diagnosis import DiagnoseConfig
from recsys.config.schema_export import ExportConfig
from recsys.config.schema_stages import (
    EvaluateConfig,
    ExplainConfig,
    NeighboursConfig,
    PrepareConfig,
    RecommendConfig,
    ReindexConfig,
    ServeConfig,
    TrainConfig,
)
from recsys.config.schema_updates import CompactConfig, UpdateConfig

__all__ = [
    "BaselinesConfig",
    "BenchmarkConfig",
    "CompactConfig",
    "DiagnoseConfig",
    "EvaluateConfig",
    "ExplainConfig",
    "ExportConfig",
    "NeighboursConfig",
    "PrepareConfig",
    "RecommendConfig",
    "ReindexConfig",
    "ServeConfig",
    "TrainConfig",
    "UpdateConfig",
    "compose_config",
    "flatten",
    "load",
    "register_schemas",
    "to_plain",
]
