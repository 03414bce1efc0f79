"""The bridge from settings to the benchmark of the training step."""

import itertools
from dataclasses import replace
from functools import partial

from torch.optim import Optimizer

from recsys.benchmark import (
    MERGED,
    STEP,
    BenchmarkResult,
    Job,
    StepPlan,
    StepSize,
    make_proposal,
    measure_step,
    zipf_counts,
)
from recsys.config.build import build_model_spec, build_optimizer
from recsys.config.schema_benchmark import BenchmarkConfig
from recsys.config.schema_model import ModelConfig
from recsys.data import FeatureSchema, FeatureTable, TrainingBatch
from recsys.foundations import ConfigError, make_generator, num_threads, operator_threads
from recsys.models import TwoTower, build_two_tower
from recsys.sampling import WithReplacementSampler, merge_repeats
from recsys.training import (
    ModelStep,
    SampledObjective,
    choose_operator_threads,
    needs_sparse_gradients,
    sampled_losses,
    update,
)

_NOTHING = FeatureSchema(())


def run_step_benchmark(config: BenchmarkConfig) -> BenchmarkResult:
    """Measure the training step of the model group with the optimizer group."""
    step = config.step
    size = StepSize(
        num_items=min(step.catalogue_sizes),
        num_users=step.num_users,
        batch_size=step.batch_size,
        num_sampled=step.num_sampled,
        dim=config.model.embedding_dim,
    )
    plan = StepPlan(
        size=size,
        catalogue_sizes=step.catalogue_sizes,
        naive_sizes=step.naive_sizes,
        batch_sizes=step.batch_sizes,
        dims=step.dims,
        hidden=_hidden_width(config.model),
        history_length=config.model.user_tower.history.length,
        steps=step.steps,
        rounds=config.rounds,
        seed=config.seed,
    )
    return measure_step(partial(build_steps, config), plan)


def check_step_model(model: ModelConfig) -> None:
    """Check that a model can train on made-up events, which have no features and no context.

    Raises:
        ConfigError: It needs some.
    """
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


def build_steps(
    config: BenchmarkConfig, size: StepSize, batches: list[TrainingBatch]
) -> dict[str, Job]:
    """Build a model over a catalogue and give what trains it by one step, on the CPU.

    The loss is the sampled softmax with log Q over shared draws with replacement: with a column for
    each draw, and as `recsys train` computes it, with one for each candidate. Both train one model.
    """
    model = _build_model(config, size)
    optimizers, clip = build_optimizer(config.optimizer, model), config.optimizer.gradient_clip
    threads = choose_operator_threads([(model, size.batch_size)], num_threads=num_threads())
    items = FeatureTable.missing(_NOTHING, size.num_items)
    users = FeatureTable.missing(_NOTHING, size.num_users)
    sampler = WithReplacementSampler(make_proposal(size.num_items), num_sampled=size.num_sampled)
    loss = partial(sampled_losses.standard_softmax, remove_accidental_hits=True)
    jobs: dict[str, Job] = {}
    for name, shorten in ((STEP, None), (MERGED, merge_repeats)):
        draws = make_generator(config.seed, "benchmark", "step")
        objective = SampledObjective(sampler, items, loss, shorten=shorten)
        step = ModelStep(model, objective, users, draws, items)
        jobs[name] = partial(_take_step, step, itertools.cycle(batches), optimizers, clip, threads)
    return jobs


def _build_model(config: BenchmarkConfig, size: StepSize) -> TwoTower:
    spec = build_model_spec(replace(config.model, embedding_dim=size.dim), clock="none")
    return build_two_tower(
        replace(spec, ridge_dim=0),  # no step sees a ridge part
        num_users=size.num_users,
        num_items=size.num_items,
        user_schema=_NOTHING,
        item_schema=_NOTHING,
        context_schema=_NOTHING,
        item_counts=zipf_counts(size.num_items),
        item_features=FeatureTable.missing(_NOTHING, size.num_items),
        sparse=needs_sparse_gradients(config.optimizer.name),
    )


def _take_step(
    step: ModelStep,
    batches: "itertools.cycle[TrainingBatch]",
    optimizers: list[Optimizer],
    clip: float,
    threads: int,
) -> None:
    with operator_threads(threads):
        losses, weights = step(next(batches))
        total, weight_sum = (losses * weights).sum(), weights.sum()
        update(step.model, optimizers, total, weight_sum, rate_share=1.0, gradient_clip=clip)


def _hidden_width(model: ModelConfig) -> int | None:
    """Give the width of the hidden layers of a model of ids alone, one layer on both sides.

    None for any other model, with which the floor program and the naive one have nothing in common.
    """
    user, item = model.user_tower, model.item_tower
    is_plain = user.use_id and user.history.encoder == "none" and user.hidden == item.hidden
    is_plain &= not model.normalize and not model.item_bias and model.dropout == 0
    is_plain &= model.combine == "sum" and model.normalization == "none"
    return item.hidden[0] if is_plain and len(item.hidden) == 1 else None
