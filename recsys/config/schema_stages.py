"""One schema a command: the whole tree that `recsys COMMAND --cfg job` prints."""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from recsys.config.ranges import alpha, at_least, one_of, parquet_file, threads, within
from recsys.config.schema_data import (
    PATH,
    PATH_OR_ID,
    ColumnsConfig,
    DatasetConfig,
    FeaturesConfig,
    FileFormatConfig,
    SplitConfig,
    TableConfig,
    check_paths,
)
from recsys.config.schema_loss import (
    BinaryLossConfig,
    BprConfig,
    ExactImportanceConfig,
    ImportanceSamplingConfig,
    InBatchConfig,
    LossConfig,
    MetropolisHastingsConfig,
    MixedConfig,
    MonteCarloConfig,
    SampledSoftmaxConfig,
)
from recsys.config.schema_model import ModelConfig, OptimizerConfig
from recsys.config.schema_sampling import (
    BigramConfig,
    LearnedUnigramConfig,
    ProposalConfig,
    RateConfig,
    SamplerConfig,
    StreamsConfig,
    draws_by_query,
)
from recsys.config.schema_training import (
    EvaluationConfig,
    HistoryConfig,
    IndexConfig,
    TrackingConfig,
    TrainerConfig,
    check_ks,
)
from recsys.foundations import ConfigError


@dataclass(kw_only=True)
class StageConfig:
    """What every command has."""

    run_dir: str = field(default=MISSING, metadata=PATH)
    seed: int = MISSING
    threads: int | None = MISSING  # null: all cores that the process may use

    def __post_init__(self) -> None:
        """Check the range."""
        threads("threads", self.threads)


@dataclass(kw_only=True)
class PrepareConfig(StageConfig):
    """Turn a log into a prepared dataset."""

    dataset: DatasetConfig = MISSING
    split: SplitConfig = MISSING
    features: FeaturesConfig = MISSING
    dataset_dir: str | None = field(default=MISSING, metadata=PATH)

    def __post_init__(self) -> None:
        """Check what excludes what."""
        super().__post_init__()
        check_split(self.dataset, self.split)
        check_features(self.dataset, self.features)


def check_features(dataset: DatasetConfig, features: FeaturesConfig) -> None:
    """Check that the tables are there whose columns are named as features."""
    for side in ("items", "users") if isinstance(dataset, TableConfig) else ():
        named = getattr(features, side)
        if named and getattr(dataset, side) is None:
            raise ConfigError(
                f"features.{side}.{next(iter(named))} needs a table of {side}: dataset.{side}=FILE."
            )


def check_split(dataset: DatasetConfig, split: SplitConfig) -> None:
    """Check that the split's rule and the dataset's files agree."""
    parts_given = isinstance(dataset, TableConfig) and dataset.train is not None
    if parts_given != (split.rule == "given"):
        raise ConfigError(
            f"split.rule={split.rule} does not go with dataset.train="
            f"{dataset.train if isinstance(dataset, TableConfig) else None}: "
            "split=given and dataset.train need each other."
        )
    if split.rule == "cold_items" and isinstance(dataset, TableConfig) and dataset.items is None:
        raise ConfigError(
            "split.rule=cold_items needs a table of items: dataset.items=FILE; an item that is "
            "held out is known by its features alone."
        )
    ordered = isinstance(dataset, TableConfig) and dataset.timestamp_unit == "order"
    if ordered and split.rule == "temporal":
        raise ConfigError(
            "split.rule=temporal needs a clock; dataset.timestamp_unit=order has none."
        )


@dataclass(kw_only=True)
class TrainConfig(PrepareConfig):
    """Train a two-tower model; prepare before it and index and evaluate after it."""

    model: ModelConfig = MISSING
    loss: LossConfig = MISSING
    sampler: SamplerConfig = MISSING
    popularity: RateConfig = MISSING
    streams: StreamsConfig = MISSING
    optimizer: OptimizerConfig = MISSING
    history: HistoryConfig = MISSING
    trainer: TrainerConfig = MISSING
    index: IndexConfig = MISSING
    evaluation: EvaluationConfig = MISSING
    tracking: TrackingConfig = MISSING
    init_from: str | None = field(default=MISSING, metadata=PATH)  # a bundle
    resume: bool = MISSING

    def __post_init__(self) -> None:
        """Check what excludes what."""
        super().__post_init__()
        if self.trainer.batch_size == 1:
            _check_others(self.loss)
        _check_draws(self.loss, self.sampler)
        if self.trainer.precision == "bfloat16":
            _check_shares(self.loss, self.sampler)
        _check_examples(self.trainer.examples, self.model.user_tower.history.encoder)
        if self.trainer.refit and self.evaluation.part == "validation":
            raise ConfigError(
                "trainer.refit=true trains on the validation part too, so that "
                "evaluation.part=validation would say nothing: take evaluation.part=test."
            )


def _check_examples(examples: str, encoder: str) -> None:
    """Check that the encoder can read what a batch holds."""
    causal = ("gru", "transformer")
    if examples == "sequences" and encoder not in causal:
        raise ConfigError(
            f"trainer.examples=sequences needs model.user_tower.history.encoder to be "
            f"{' or '.join(causal)}, which see at each event only those before it, got {encoder!r}."
        )
    if examples == "profiles" and encoder == "none":
        raise ConfigError(
            "trainer.examples=profiles predicts the events of a history from each other, so that "
            "model.user_tower.history.encoder must not be none."
        )


def _check_others(loss: LossConfig) -> None:
    """Check that a row has negatives beside the batch's other rows."""
    match loss:
        case MixedConfig(streams=["in_batch"]):
            name = "loss.streams=[in_batch]"
        case InBatchConfig():
            name = "loss=in_batch"
        case _:
            return
    raise ConfigError(
        f"trainer.batch_size must be at least 2 for {name}, got 1: "
        "a batch of one row has no negative."
    )


def _check_draws(loss: LossConfig, sampler: SamplerConfig) -> None:
    """Check that the loss can be computed from the draws of the sampler group."""
    if isinstance(loss, ImportanceSamplingConfig) and isinstance(sampler, ProposalConfig):
        _check_mode(sampler.mode, ("with_replacement", "per_query"), "loss=importance_sampling")
    if not isinstance(loss, ExactImportanceConfig | MetropolisHastingsConfig):
        return
    references = "loss=exact_importance and loss=metropolis_hastings"
    if isinstance(sampler, BigramConfig | LearnedUnigramConfig):
        raise ConfigError(
            f"sampler must be uniform, log_uniform or popularity for {references}: "
            "they draw from one fixed distribution."
        )
    if isinstance(sampler, ProposalConfig):
        _check_mode(sampler.mode, ("with_replacement",), references)


def _check_shares(loss: LossConfig, sampler: SamplerConfig) -> None:
    """Check that all queries of a batch share their candidates, and so a matrix product."""
    match loss:
        case BprConfig() | ImportanceSamplingConfig() | MonteCarloConfig():
            without = "this loss has no sum over shared candidates"
        case MixedConfig(streams=streams) if "hard" in streams:
            without = "the candidates of the stream hard are each query's own"
        case MixedConfig(streams=streams) if "drawn" not in streams:
            return
        case SampledSoftmaxConfig() | BinaryLossConfig() if draws_by_query(sampler):
            without = "the sampler draws for each query"
        case _:
            return
    raise ConfigError(
        "trainer.precision=bfloat16 rounds the matrix products of a loss whose candidates all "
        f"queries of a batch share, but {without}: take trainer.precision=float32."
    )


def _check_mode(mode: str, modes: tuple[str, ...], losses: str) -> None:
    """Check that the draws are of a kind that the losses take."""
    if mode not in modes:
        raise ConfigError(f"sampler.mode must be {' or '.join(modes)} for {losses}, got {mode!r}.")


@dataclass(kw_only=True)
class EvaluateConfig(StageConfig):
    """Score a bundle on a dataset, or any ranked list against the truth."""

    bundle: str | None = field(default=MISSING, metadata=PATH)
    dataset_dir: str | None = field(default=MISSING, metadata=PATH)
    ranked: str | None = field(default=MISSING, metadata=PATH)
    truth: str | None = field(default=MISSING, metadata=PATH)
    k: list[int] = MISSING
    evaluation: EvaluationConfig = MISSING
    tracking: TrackingConfig = MISSING

    def __post_init__(self) -> None:
        """Check what excludes what."""
        super().__post_init__()
        check_ks("k", self.k)
        if (self.ranked is None) != (self.truth is None):
            raise ConfigError("ranked and truth need each other.")
        if (self.bundle is None) == (self.ranked is None):
            raise ConfigError("evaluate needs bundle=, or ranked= and truth=, and not both.")


@dataclass(kw_only=True)
class RecommendConfig(StageConfig):
    """Write the top k items of many users."""

    bundle: str = field(default=MISSING, metadata=PATH)
    users: str = field(default=MISSING, metadata=PATH | {"words": ("all",)})
    histories: Any = field(default=MISSING, metadata=PATH)
    k: int = MISSING
    exclude_seen: bool | None = MISSING  # null: as the dataset was prepared
    exact: bool = MISSING
    where: str | None = MISSING  # an expression over item columns
    popularity_alpha: float = MISSING
    output: str = field(default=MISSING, metadata=PATH)
    columns: ColumnsConfig = MISSING
    file: FileFormatConfig = MISSING
    timestamp_unit: str = MISSING
    timezone: str = MISSING
    on_bad_rows: str = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        at_least("k", self.k, 1)
        alpha("popularity_alpha", self.popularity_alpha)
        parquet_file("output", self.output)
        units = ("auto", "s", "ms", "us", "ns", "iso", "order")
        one_of("timestamp_unit", self.timestamp_unit, units)
        one_of("on_bad_rows", self.on_bad_rows, ("error", "drop"))


@dataclass(kw_only=True)
class NeighboursConfig(StageConfig):
    """Find the nearest items of items."""

    bundle: str = field(default=MISSING, metadata=PATH)
    items: str = field(default=MISSING, metadata=PATH_OR_ID)
    k: int = MISSING
    exact: bool = MISSING
    where: str | None = MISSING  # an expression over item columns
    output: str | None = field(default=MISSING, metadata=PATH)
    columns: ColumnsConfig = MISSING
    file: FileFormatConfig = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        at_least("k", self.k, 1)
        if self.output is not None:
            parquet_file("output", self.output)


@dataclass(kw_only=True)
class ExplainConfig(StageConfig):
    """Say why items have their scores for a user."""

    bundle: str = field(default=MISSING, metadata=PATH)
    user: str = MISSING
    item: str | None = MISSING  # null: the k items that would be recommended
    k: int = MISSING
    where: str | None = MISSING  # an expression over item columns
    num_history: int = MISSING  # items of the history named for each item

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        at_least("k", self.k, 1)
        at_least("num_history", self.num_history, 0)
        if self.item is not None and self.where is not None:
            raise ConfigError(
                "where= chooses among the items that would be recommended, and item= names one: "
                "give one of them."
            )


@dataclass(kw_only=True)
class ReindexConfig(StageConfig):
    """Build another index for a bundle, as a new bundle."""

    bundle: str = field(default=MISSING, metadata=PATH)
    index: IndexConfig = MISSING
    dataset_dir: str | None = field(default=MISSING, metadata=PATH)


@dataclass(kw_only=True)
class RecallConfig:
    """How index recall is measured, and how far it may fall."""

    k: int = MISSING
    num_queries: int = MISSING  # users asked, at most
    drift: float = MISSING  # below what it was when the index was trained

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least("recall.k", self.k, 1)
        at_least("recall.num_queries", self.num_queries, 1)
        within("recall.drift", self.drift, 0, 1)


@dataclass(kw_only=True)
class UpdateConfig(StageConfig):
    """Add, replace and withdraw items of a bundle, as a new bundle."""

    bundle: str = field(default=MISSING, metadata=PATH)
    items: Any = field(default=MISSING, metadata=PATH)
    remove: Any = field(default=MISSING, metadata=PATH | {"or_ids": True})
    id_column: str | None = MISSING  # null: as in training
    list_separator: str = MISSING  # in text files, where training met lists
    on_unknown: str = MISSING
    on_bad_rows: str = MISSING
    max_share: float = MISSING  # of items beside the index, above which compaction is advised
    recall: RecallConfig = MISSING
    file: FileFormatConfig = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        if self.items is None and self.remove is None:
            raise ConfigError("update needs items=FILE, remove=FILE or remove=[ID,...], or both.")
        _check_removed(self.remove)
        check_paths("items", self.items)
        if self.list_separator == "":
            raise ConfigError("list_separator must not be empty.")
        one_of("on_unknown", self.on_unknown, ("error", "skip"))
        one_of("on_bad_rows", self.on_bad_rows, ("error", "drop"))
        within("max_share", self.max_share, 0, 1)


def _check_removed(value: Any) -> None:
    """Check that there is a file, or a list of ids."""
    if isinstance(value, list):
        if any(one is None or str(one).strip() == "" for one in value):
            raise ConfigError("remove must hold no empty id.")
    elif value is not None and not isinstance(value, str | int | float):
        raise ConfigError(f"remove must be a file or a list of ids, got {value!r}.")


@dataclass(kw_only=True)
class CompactConfig(StageConfig):
    """Fold the changes of a bundle into its index, as a new bundle."""

    bundle: str = field(default=MISSING, metadata=PATH)
    recall: RecallConfig = MISSING


@dataclass(kw_only=True)
class ServeConfig(StageConfig):
    """Answer lookups over HTTP."""

    bundle: str = field(default=MISSING, metadata=PATH)
    host: str = MISSING
    port: int = MISSING
    max_k: int = MISSING
    max_batch: int = MISSING
    max_body_bytes: int = MISSING
    popularity_alpha: float = MISSING  # of requests that name none

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port must lie between 0 and 65535, got {self.port}.")
        for key in ("max_k", "max_batch", "max_body_bytes"):
            at_least(key, getattr(self, key), 1)
        alpha("popularity_alpha", self.popularity_alpha)
