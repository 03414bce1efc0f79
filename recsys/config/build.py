"""The bridge from settings to the objects that train and track; `build_dataset` has the data's."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch.optim import Optimizer

from recsys.config import schema_model, schema_training
from recsys.config.build_batches import build_batches
from recsys.config.build_objective import build_objective, searches_while_training
from recsys.config.build_operator_threads import build_operator_threads
from recsys.config.build_ridge import fit_ridge
from recsys.config.flatten import flatten
from recsys.config.schema_stages import StageConfig, TrainConfig
from recsys.data import PreparedDataset, TrainingBatches, check_joins
from recsys.foundations import (
    ConfigError,
    available_cores,
    make_generator,
    set_threads,
)
from recsys.models import (
    ItemTowerSpec,
    ModelSpec,
    TwoTower,
    UserTowerSpec,
    build_two_tower,
    start_at_content,
)
from recsys.tracking import Tracker, mlflow_tracker, null_tracker
from recsys.training import (
    CheckpointStore,
    FitSettings,
    MatrixProducts,
    ModelStep,
    Schedule,
    TrainingRun,
    Validator,
    build_optimizers,
    build_schedule,
    choose_device,
    needs_sparse_gradients,
)

# Groups and keys that may differ between a run and its resumption: none of them shapes a step.
# What shapes the data is held by the dataset's fingerprint.
_FREE = ("tracking", "evaluation", "index", "dataset", "split", "features")
_FREE_KEYS = (
    *("run_dir", "resume", "threads", "dataset_dir"),
    *("trainer.epochs", "trainer.patience", "trainer.refit", "trainer.prefetch"),
    "trainer.operator_threads",
)


def apply_threads(config: StageConfig) -> None:
    """Bound every pool of threads: as set, else by the cores that the process may use."""
    set_threads(available_cores() if config.threads is None else config.threads)


def build_products(config: TrainConfig) -> MatrixProducts:
    """Build what is entered while the model trains.

    Raises:
        ConfigError: The device is not there, or cannot multiply with that precision.
    """
    return MatrixProducts(config.trainer.precision, choose_device(config.trainer.device))


def build_model(config: TrainConfig, dataset: PreparedDataset) -> TwoTower:
    """Build the two towers, on the device that trains them; a ridge part is chosen and fitted."""
    sparse = needs_sparse_gradients(config.optimizer.name)
    settings, factors = config.model, None
    if config.init_from is not None:  # its vectors have directions of their own
        settings = replace(settings, feature_start="random")
    if settings.ridge.settings[0][0] > 0:
        ridge, factors = fit_ridge(config, dataset)
        settings = replace(settings, ridge=ridge)
    model = build_fresh_model(settings, dataset, sparse=sparse)
    if model.ridge is not None and factors is not None:
        model.ridge.set_item_factors(factors)
    return model.to(choose_device(config.trainer.device))


def build_fresh_model(
    config: schema_model.ModelConfig, dataset: PreparedDataset, *, sparse: bool
) -> TwoTower:
    """Build the two towers with their first values; the factors of a ridge part are zeros.

    Raises:
        ConfigError: The model reads times and the data has none, or see `build_two_tower`.
    """
    model = build_two_tower(
        build_model_spec(config, clock=dataset.clock, exclude_seen=dataset.exclude_seen),
        num_users=dataset.num_users,
        num_items=dataset.num_items,
        user_schema=dataset.users.features.schema,
        item_schema=dataset.items.features.schema,
        context_schema=dataset.context_schema,
        item_counts=dataset.items.counts[: dataset.num_items],
        item_features=dataset.items.features,
        sparse=sparse,
    )
    if model.uses_times and dataset.clock != "time":
        raise ConfigError(
            "model.user_tower.history.time_gaps=true needs the times of the events, and this "
            "dataset has none: set it to auto or false, or give dataset.columns.timestamp as times."
        )
    if config.item_bias_start == "log_popularity":
        model.start_at_popularity(dataset.items.counts[: dataset.num_items])
    if config.feature_start == "content":
        start_at_content(model, dataset.items.features)
    return model


def build_model_spec(
    config: schema_model.ModelConfig, *, clock: str, exclude_seen: bool = True
) -> ModelSpec:
    """Turn the model group into the specification that a bundle carries along.

    Args:
        config: The model group; of lists that validation chooses from it is the first values that
            count.
        clock: "time", "order" or "none", as the dataset states it.
        exclude_seen: As the dataset states it.
    """
    both: dict[str, Any] = {
        "combine": config.combine,
        "feature_dropout": config.feature_dropout,
        "value_dropout": config.value_dropout,
        "dropout": config.dropout,
        "norm": config.normalization,
    }
    ridge_dim, regularization, unobserved = config.ridge.settings[0]
    weight, decay = repeats_pairs(config, exclude_seen=exclude_seen)[0]
    user, item, history = config.user_tower, config.item_tower, config.user_tower.history
    return ModelSpec(
        embedding_dim=config.embedding_dim,
        user_tower=UserTowerSpec(
            use_id=user.use_id,
            id_dropout=user.id_dropout,
            features=_names(user.features),
            context=_names(user.context),
            history=history.encoder,
            history_length=history.length,
            history_table=history.table,
            decay=history.decay,
            exponent=history.exponent,
            history_dropout=history.dropout,
            gate_dim=history.gate_dim,
            num_heads=history.num_heads,
            num_interests=history.num_interests,
            num_layers=history.num_layers,
            layer_dropout=history.layer_dropout,
            positions=history.positions,
            time_gaps=history.reads_times(clock),
            hidden=tuple(user.hidden),
            **both,
        ),
        item_tower=ItemTowerSpec(
            use_id=item.use_id,
            id_dropout=item.id_dropout,
            features=_names(item.features),
            hidden=tuple(item.hidden),
            **both,
        ),
        normalize=config.normalize,
        item_bias=config.item_bias,
        temperature=config.temperature.initial,
        learn_temperature=config.temperature.learned,
        min_temperature=config.temperature.minimum,
        max_temperature=config.temperature.maximum,
        init_std=config.init_std,
        ridge_dim=ridge_dim,
        ridge_regularization=regularization,
        ridge_unobserved=unobserved,
        ridge_scale=config.ridge.scales[0],
        repeats_weight=weight,
        repeats_decay=decay,
    )


def repeats_pairs(
    config: schema_model.ModelConfig, *, exclude_seen: bool
) -> list[tuple[float, float]]:
    """Give what the bonus for items that users had may be: weight and decay.

    Args:
        config: The model group.
        exclude_seen: Whether such items are never given; then there is nothing to add.
    """
    if exclude_seen or config.user_tower.history.encoder == "none":
        return [(0.0, 1.0)]
    return config.repeats.pairs


def _names(value: Any) -> tuple[str, ...] | None:
    return None if value == "all" else tuple(value)


def build_run(
    config: TrainConfig, dataset: PreparedDataset, tracker: Tracker, run_dir: Path
) -> TrainingRun:
    """Build all that the training loop works with.

    Raises:
        DataError: It is to be trained again on validation, which has nothing to add.
        ConfigError: See `build_fresh_model`.
    """
    if config.trainer.refit:
        check_joins(dataset)
    model = build_model(config, dataset)
    batches = build_batches(config, dataset)
    generator = make_generator(config.seed, "draws")
    objective = build_objective(config, dataset, model)
    trainer = config.trainer
    items = dataset.items.features
    return TrainingRun(
        step=ModelStep(model, objective, dataset.users.features, generator, items),
        batches=batches,
        optimizers=build_optimizer(config.optimizer, model),
        schedule=build_learning_rates(config, batches),
        validator=Validator(
            dataset,
            k=trainer.validate_at,
            max_users=trainer.validation_users,
            seed=config.seed,
            candidates=config.evaluation.candidates,
            ridge_scales=config.model.ridge.scales if model.ridge is not None else (),
            repeats=repeats_pairs(config.model, exclude_seen=dataset.exclude_seen),
        ),
        tracker=tracker,
        store=build_checkpoints(config, dataset, run_dir),
        settings=FitSettings(
            epochs=trainer.epochs,
            patience=trainer.patience,
            checkpoint_steps=trainer.checkpoint_steps,
            gradient_clip=config.optimizer.gradient_clip,
            operator_threads=build_operator_threads(config, model, dataset.num_items),
        ),
        item_counts=dataset.items.counts[: dataset.num_items],
    )


def build_optimizer(settings: schema_model.OptimizerConfig, model: TwoTower) -> list[Optimizer]:
    """Build the optimisers of tables and of dense layers."""
    return build_optimizers(
        model,
        table_optimizer=settings.name,
        learning_rate=settings.learning_rate,
        dense_learning_rate=settings.dense_learning_rate,
        weight_decay=settings.weight_decay,
        dense_weight_decay=settings.dense_weight_decay,
    )


def build_learning_rates(config: TrainConfig, batches: TrainingBatches) -> Schedule:
    """Build the share of the learning rate at each step."""
    total_steps = max(batches.count_batches(config.trainer.epochs), 1)
    warmup_steps = min(round(config.optimizer.warmup_share * total_steps), total_steps - 1)
    return build_schedule(
        config.optimizer.schedule, warmup_steps=warmup_steps, total_steps=total_steps
    )


def build_checkpoints(
    config: TrainConfig, dataset: PreparedDataset, run_dir: Path
) -> CheckpointStore:
    """Build the run's checkpoints, which refuse to go on with other settings.

    More epochs than at first are fine, but not where they change the learning rate of every step;
    and so is another index, but not where hard negatives are found by it.
    """
    free = set(_FREE) - ({"index"} if searches_while_training(config.loss) else set())
    settings = {
        key: value
        for key, value in flatten(config).items()
        if key.partition(".")[0] not in free and key not in _FREE_KEYS
    }
    settings["evaluation.candidates"] = config.evaluation.candidates  # they choose the best epoch
    if config.optimizer.schedule != "constant":
        settings["trainer.epochs"] = config.trainer.epochs
    return CheckpointStore(run_dir / "checkpoints", settings, dataset.fingerprint)


def build_tracker(
    config: schema_training.TrackingConfig,
    run_dir: Path,
    sweep: str | None = None,
    run_id: str | None = None,
    *,
    experiment: str | None = None,
) -> Tracker:
    """Build the tracker; the store is reached now.

    Args:
        config: The tracking group.
        run_dir: Gives the run its name unless one is set, in a sweep together with `experiment`.
        sweep: What the jobs of one sweep share; None outside a sweep.
        run_id: The run to go on with; None for a new one.
        experiment: What was chosen by that name; None for nothing.
    """
    name = os.path.relpath(run_dir, run_dir.parent.parent)
    if sweep is not None and experiment is not None:
        name = f"{name} {experiment}"  # the jobs' folders are but numbers
    match config:
        case schema_training.MlflowConfig():
            return mlflow_tracker(
                config.uri,
                config.experiment,
                config.run_name or name,
                on_error=config.on_error,
                artifact_root=config.artifact_root,
                sweep=sweep,
                run_id=run_id,
            )
        case schema_training.NoTrackingConfig():
            return null_tracker()
        case _:
            raise ConfigError(f"tracking is of no known kind: {type(config).__name__}.")


def bundle_to_send(config: schema_training.TrackingConfig, bundle: Path) -> Path | None:
    """Give the bundle where a copy of it goes to the store, else None."""
    wanted = isinstance(config, schema_training.MlflowConfig) and config.log_bundle
    return bundle if wanted else None
