"""The bridge from settings to benchmarks, the training step among them."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from torch.optim import Optimizer

from recsys.benchmark import (
    BenchmarkOutcome,
    BenchmarkResult,
    make_events,
    measure_loader,
    measure_loss,
    measure_rates,
    measure_read,
    measure_sampler,
    measure_search,
    measure_step,
    zipf_counts,
)
from recsys.config.build import build_model_spec, build_optimizer
from recsys.config.build_language import run_language
from recsys.config.build_train_benchmark import run_train_benchmark
from recsys.config.schema_benchmark import QUICK_BENCHMARKS, BenchmarkConfig
from recsys.config.schema_model import ModelConfig
from recsys.data import EventBatches, FeatureSchema, FeatureTable, TrainingBatch
from recsys.foundations import ConfigError, make_generator, make_numpy_generator
from recsys.models import build_two_tower
from recsys.sampling import (
    ExactPopularity,
    InBatchSampler,
    MixedSampler,
    PopularityProposal,
    WithReplacementSampler,
)
from recsys.training import (
    ModelStep,
    SampledObjective,
    needs_sparse_gradients,
    sampled_losses,
    update,
)

_BATCHES = 50  # made once, then taken in turn
_EVENTS_A_USER = 100


def run_benchmarks(config: BenchmarkConfig) -> BenchmarkOutcome:
    """Run the benchmark that is named, or all that end quickly; `language` only with a log.

    Raises:
        ConfigError: The step's model needs features, of which the made-up events have none.
    """
    names = (*QUICK_BENCHMARKS, "language") if config.name == "all" else (config.name,)
    if "step" in names:
        _check_model(config.model)
    interactions, language = config.language.interactions, None
    if "language" in names and interactions is not None:
        language = run_language(config.language, interactions, config.seed)
    training = run_train_benchmark(config) if "train" in names else None
    timed = [name for name in names if name not in ("language", "train")]
    machine = measure_rates() if timed else None
    rates = [_run(name, config) for name in timed]
    rates += [] if training is None else [training.rates]
    return BenchmarkOutcome(rates, language, machine, training)


def _run(name: str, config: BenchmarkConfig) -> BenchmarkResult:
    rounds, seed = config.rounds, config.seed
    match name:
        case "step":
            return measure_step(
                lambda size: build_step(config, size),
                catalogue_sizes=config.step.catalogue_sizes,
                batch_size=config.step.batch_size,
                steps=config.step.steps,
                rounds=rounds,
            )
        case "loss":
            return measure_loss(**vars(config.loss), rounds=rounds, seed=seed)
        case "sampler":
            return measure_sampler(**vars(config.sampler), rounds=rounds, seed=seed)
        case "loader":
            return measure_loader(**vars(config.loader), rounds=rounds, seed=seed)
        case "search":
            return measure_search(**vars(config.search), rounds=rounds, seed=seed)
        case _:
            return measure_read(**vars(config.read), rounds=rounds, seed=seed)


def _check_model(model: ModelConfig) -> None:
    """Check that a model can train on made-up events, which have no features and no context."""
    why = "the training step is measured on made-up events without features or context"
    user, item = model.user_tower, model.item_tower
    if not item.use_id:
        raise ConfigError(f"model.item_tower.use_id must be true: {why}; got false.")
    if not user.use_id and user.history.encoder == "none":
        raise ConfigError(
            "model.user_tower.use_id must be true, or model.user_tower.history.encoder another "
            f"than none: {why}."
        )
    for key, names in (
        ("user_tower.features", user.features),
        ("user_tower.context", user.context),
        ("item_tower.features", item.features),
    ):
        if names != "all" and names:
            raise ConfigError(f"model.{key} must be all or []: {why}; got {list(names)}.")


def build_step(config: BenchmarkConfig, num_items: int) -> Callable[[], None]:
    """Build a model over a catalogue and give a function that trains it by one step.

    Interactions are popular by Zipf's law; the loss is the mixed one, with log Q, on the CPU.
    """
    nothing = FeatureSchema(())
    counts = zipf_counts(num_items)
    items = FeatureTable.missing(nothing, num_items)
    model = build_two_tower(
        replace(
            build_model_spec(config.model, clock="none"), ridge_dim=0
        ),  # no step sees a ridge part
        num_users=config.step.num_users,
        num_items=num_items,
        user_schema=nothing,
        item_schema=nothing,
        context_schema=nothing,
        item_counts=counts,
        item_features=items,
        sparse=needs_sparse_gradients(config.optimizer.name),
    )
    proposal = PopularityProposal(counts, alpha=0.75)
    drawn = WithReplacementSampler(proposal, num_sampled=config.step.num_sampled)
    objective = SampledObjective(
        MixedSampler([InBatchSampler(ExactPopularity(counts)), drawn]),
        items,
        partial(sampled_losses.standard_softmax, remove_accidental_hits=True),
    )
    users = FeatureTable.missing(nothing, config.step.num_users)
    draws = make_generator(config.seed, "benchmark", "step")
    step = ModelStep(model, objective, users, draws, items)
    optimizers = build_optimizer(config.optimizer, model)
    batches = itertools.cycle(_batches(config, num_items))
    return lambda: _take_step(step, next(batches), optimizers, config.optimizer.gradient_clip)


def _take_step(
    step: ModelStep, batch: TrainingBatch, optimizers: list[Optimizer], clip: float
) -> None:
    losses, _ = step(batch)
    total, size = losses.sum(), losses.new_tensor(len(losses))
    update(step.model, optimizers, total, size, rate_share=1.0, gradient_clip=clip)


def _batches(config: BenchmarkConfig, num_items: int) -> list[TrainingBatch]:
    """Make batches of a few users with long histories, spread over the table of users."""
    sizes, rng = config.step, make_numpy_generator(config.seed, "benchmark", "step")
    num_rows = _BATCHES * sizes.batch_size
    active = min(max(num_rows // _EVENTS_A_USER, 1), sizes.num_users)
    events = make_events(num_rows=num_rows, num_users=active, num_items=num_items, rng=rng)
    events = replace(events, users=events.users * (sizes.num_users // active))
    source = EventBatches(
        events,
        clock="order",
        ties="include",
        history_length=config.model.user_tower.history.length,
        batch_size=sizes.batch_size,
        drop_last=True,
        seed=config.seed,
    )
    return list(source.epoch(0))
