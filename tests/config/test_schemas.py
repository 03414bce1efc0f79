"""What each schema refuses, with the key in the sentence, before any data is read."""

import functools
from typing import Any

import hydra
import numpy as np
import pytest
from hydra import initialize_config_module
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from recsys.config import (
    BaselinesConfig,
    CompactConfig,
    EvaluateConfig,
    ExplainConfig,
    ExportConfig,
    NeighboursConfig,
    PrepareConfig,
    RecommendConfig,
    ReindexConfig,
    ServeConfig,
    TrainConfig,
    UpdateConfig,
    compose_config,
    load,
    register_schemas,
)
from recsys.foundations import ConfigError

REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    "train": [
        # misspelt
        ({"trainer.epocs": 3}, "trainer.epocs is not a setting; did you mean trainer.epochs?"),
        ({"sed": 3}, "sed is not a setting; did you mean seed?"),
        ({"tracking.url": "x"}, "tracking.url is not a setting"),
        (
            {"features.items.title": "text"},
            "features.items.title is not a setting yet; with a + in front it becomes one: "
            "+features.items.title=VALUE.",
        ),
        (
            {"loss": "full_softmax", "loss.log_q": "none"},
            "of this choice; it belongs to loss=in_batch, sampled_softmax and mixed.",
        ),
        # a choice that is none
        ({"loss": "sampled"}, "loss=sampled is not a choice; did you mean sampled_softmax?"),
        ({"loss": 1}, "a group takes the name of one of its choices, got loss=1."),
        (
            {"loss": "refined"},
            "loss=refined is not a choice; did you mean experiment=estimator/refined? There are",
        ),
        ({"experiment": "tiney"}, "experiment=tiney is not a choice; did you mean tiny?"),
        (
            {"experiment": "none"},
            "choice. There are features, general, history, sequential, tiny, data/NAME, estimator/",
        ),
        ({"experiment": "bpr"}, "experiment=bpr is not a choice; did you mean estimator/bpr? Ther"),
        (
            {"experiment": "estimator/brp"},
            "experiment=estimator/brp is not a choice; did you mean estimator/bpr? "
            "In estimator/ there are adaptive_importance_sampling, bigram,",
        ),
        (
            {"experiment": ["tiny", "estimator/nonsense"]},
            "experiment=estimator/nonsense is not a choice. In estimator/ there are adaptive",
        ),
        ({"experiment": "estimator"}, "experiment=estimator is not a choice. In estimator/ there"),
        # a wrong type
        ({"trainer.epochs": "x"}, "trainer.epochs must be an integer, got 'x'."),
        ({"trainer.epochs": 1.5}, "trainer.epochs must be an integer, got 1.5."),
        ({"optimizer.learning_rate": "fast"}, "optimizer.learning_rate must be a number, got 'f"),
        ({"seed": None}, "seed must not be null."),
        ({"evaluation.k": 5}, "evaluation.k must be a list, got 5: write evaluation.k=[5]."),
        ({"model.user_tower.hidden": [8, "x"]}, "model.user_tower.hidden[1] must be an integer"),
        # ranges
        ({"threads": 0}, "threads must be from 1 to 1,024, got 0."),
        ({"threads": 1025}, "threads must be from 1 to 1,024, got 1025."),
        (
            {"trainer.operator_threads": 1000000},
            "trainer.operator_threads must be from 1 to 1,024, got 1000000.",
        ),
        ({"run_dir": ""}, "run_dir must not be empty."),
        ({"dataset_dir": ""}, "dataset_dir must not be empty."),
        ({"trainer.epochs": 0}, "trainer.epochs must be at least 1, got 0."),
        ({"trainer.examples": "users"}, "trainer.examples must be one of events, sequences, prof"),
        ({"streams.in_batch.size": 0}, "streams.in_batch.size must be at least 1, got 0."),
        ({"trainer.user_weighting": 1.5}, "trainer.user_weighting must be from 0 to 1, got 1.5."),
        ({"trainer.user_weighting": -0.1}, "trainer.user_weighting must be from 0 to 1, got -0."),
        (
            {"loss": "full_softmax", "loss.label_smoothing": 1},
            "loss.label_smoothing must be at least 0 and below 1, got 1",
        ),
        (
            {"loss": "full_softmax", "loss.candidates": "warm"},
            "loss.candidates must be one of all, trained, got 'warm'.",
        ),
        ({"trainer.batch_size": 0}, "trainer.batch_size must be at least 1, got 0."),
        (
            {"trainer.device": "tpu"},
            "trainer.device must be one of auto, cpu, cuda, mps, got 'tpu'",
        ),
        ({"trainer.validate_at": 0}, "trainer.validate_at must be at least 1, got 0."),
        ({"trainer.validation_users": 0}, "trainer.validation_users must be at least 1, got 0."),
        ({"trainer.patience": -1}, "trainer.patience must be at least 0, got -1."),
        ({"trainer.checkpoint_steps": -1}, "trainer.checkpoint_steps must be at least 0, got -1"),
        ({"history.ties": "keep"}, "history.ties must be one of include, exclude, got 'keep'."),
        ({"model.embedding_dim": 0}, "model.embedding_dim must be at least 1, got 0."),
        ({"model.combine": "max"}, "model.combine must be one of sum, concat, got 'max'."),
        ({"model.dropout": 1}, "model.dropout must be at least 0 and below 1, got 1.0."),
        ({"model.feature_dropout": 1}, "model.feature_dropout must be at least 0 and below 1"),
        ({"model.value_dropout": 1}, "model.value_dropout must be at least 0 and below 1"),
        ({"model.feature_start": "svd"}, "model.feature_start must be one of random, content, got"),
        ({"model.normalization": "group"}, "model.normalization must be one of none, batch_norm"),
        ({"model.init_std": 0}, "model.init_std must be above 0, got 0.0."),
        (
            {"model.ridge.regularization": []},
            "model.ridge.regularization must be a number or a list of some, got [].",
        ),
        (
            {"model.ridge.unobserved": "many"},
            "model.ridge.unobserved must be a number or a list of some, got 'many'.",
        ),
        (
            {"model.ridge.dim": [16, 24]},
            "model.ridge.dim must be 0, a multiple of 16 up to 65,536 or a list of such multiples, "
            "got [16, 24].",
        ),
        ({"model.ridge.dim": [0, 16]}, "a list of such multiples, got [0, 16]."),
        ({"model.ridge.dim": -16}, "a list of such multiples, got -16."),
        ({"model.ridge.dim": 65_552}, "a list of such multiples, got 65552."),
        ({"model.ridge.dim": 1e30}, "a list of such multiples, got 1e+30."),
        (
            {"model.ridge.scale": [5, -1]},
            "model.ridge.scale must be from 1e-06 to 1,000,000, got -1.0.",
        ),
        ({"model.ridge.scale": 3e38}, "model.ridge.scale must be from 1e-06 to 1,000,000, got"),
        ({"model.ridge.unobserved": [0.1, 0]}, "model.ridge.unobserved must be from 1e-06 to"),
        ({"model.ridge.regularization": 1e-38}, "model.ridge.regularization must be from 1e-06 to"),
        (
            {"model.repeats.weight": [0, -1]},
            "model.repeats.weight must be from 0 to 1,000,000, got -1.0.",
        ),
        ({"model.repeats.weight": 3e38}, "model.repeats.weight must be from 0 to 1,000,000, got"),
        (
            {"model.repeats.weight": "some"},
            "model.repeats.weight must be a number or a list of some, got 'some'.",
        ),
        (
            {"model.repeats.decay": [0.9, 0]},
            "model.repeats.decay must be above 0 and at most 1, got 0.0.",
        ),
        (
            {"model.repeats.decay": 1.5},
            "model.repeats.decay must be above 0 and at most 1, got 1.5.",
        ),
        (
            {"model.repeats.weight": 2, "model.user_tower.history.encoder": "none"},
            "model.repeats.weight=2 needs histories, which model.user_tower.history.encoder=none",
        ),
        ({"model.temperature.initial": 0}, "model.temperature.initial must be above 0, got 0.0."),
        (
            {"model.temperature.initial": 1e-45},
            "model.temperature.initial must be at least 1e-12, got 1e-45.",
        ),
        (
            {"model.temperature.minimum": 1e-13},
            "model.temperature.minimum must be at least 1e-12, got 1e-13.",
        ),
        (
            {"model.temperature.learned": True, "model.temperature.initial": 20},
            "model.temperature.initial must lie between 0.01 and 10, got 20.0.",
        ),
        ({"model.user_tower.id_dropout": 1}, "model.user_tower.id_dropout must be at least 0 and"),
        ({"model.user_tower.features": "age"}, "model.user_tower.features must be `all` or a list"),
        ({"model.user_tower.context": [1]}, "model.user_tower.context must be `all` or a list"),
        ({"model.user_tower.hidden": [0]}, "model.user_tower.hidden must hold widths of at least"),
        ({"model.item_tower.hidden": [0]}, "model.item_tower.hidden must hold widths of at least"),
        (
            {"model.user_tower.history.encoder": "lstm"},
            "history.encoder must be one of none, mean, recency, attention, gru, transformer, got",
        ),
        ({"model.user_tower.history.length": 0}, "model.user_tower.history.length must be at le"),
        ({"model.user_tower.history.decay": 0}, "model.user_tower.history.decay must be above 0"),
        ({"model.user_tower.history.exponent": 2}, "model.user_tower.history.exponent must be fr"),
        ({"model.user_tower.history.dropout": 1}, "model.user_tower.history.dropout must be at l"),
        (
            {"model.user_tower.history.num_heads": 0},
            "model.user_tower.history.num_heads must be at least 1, got 0.",
        ),
        (
            {"model.user_tower.history.encoder": "transformer", "model.embedding_dim": 63},
            "model.embedding_dim must be a multiple of model.user_tower.history.num_heads, "
            "got 63 for 2.",
        ),
        (
            {"model.user_tower.history.gate_dim": 8, "model.user_tower.history.encoder": "gru"},
            "model.user_tower.history.gate_dim=8 needs model.user_tower.history.encoder=recency",
        ),
        (
            {"model.user_tower.history.num_interests": 4},
            "model.user_tower.history.num_interests=4 needs "
            "model.user_tower.history.encoder=attention, got recency.",
        ),
        (
            {"model.user_tower.history.layer_dropout": 1},
            "model.user_tower.history.layer_dropout must be at least 0 and below 1",
        ),
        (
            {"model.user_tower.history.positions": "rotary"},
            "model.user_tower.history.positions must be one of none, absolute, relative",
        ),
        ({"model.user_tower.history.table": "x"}, "model.user_tower.history.table must be one of"),
        (
            {"model.user_tower.history.table": "shared", "model.item_tower.use_id": False},
            "model.user_tower.history.table=shared reads the vectors of item ids, which "
            "model.item_tower.use_id=false leaves out",
        ),
        (
            {"trainer.precision": "float16"},
            "trainer.precision must be one of float32, bfloat16, tf32, got 'float16'.",
        ),
        (
            {"loss": "bpr", "trainer.precision": "bfloat16"},
            "trainer.precision=bfloat16 rounds the matrix products of a loss whose candidates all "
            "queries of a batch share, but this loss has no sum over shared candidates: take "
            "trainer.precision=float32.",
        ),
        (
            {"loss": "importance_sampling", "trainer.precision": "bfloat16"},
            "but this loss has no sum over shared candidates",
        ),
        (
            {"loss.streams": ["in_batch", "hard"], "trainer.precision": "bfloat16"},
            "but the candidates of the stream hard are each query's own",
        ),
        (
            {"sampler.mode": "per_query", "trainer.precision": "bfloat16"},
            "but the sampler draws for each query",
        ),
        (
            {"loss": "noise_contrastive", "sampler": "bigram", "trainer.precision": "bfloat16"},
            "but the sampler draws for each query",
        ),
        ({"loss.log_q": "yes"}, "loss.log_q must be one of standard, refined, none, got 'yes'."),
        ({"loss.num_sampled": 0}, "loss.num_sampled must be at least 1, got 0."),
        (
            {"loss.log_q": "refined", "loss.mask_accidental_hits": False},
            "loss.log_q=refined takes the positive out of the sum, so that "
            "loss.mask_accidental_hits must be true, got false.",
        ),
        ({"loss.streams": []}, "loss.streams must name at least one stream, got none."),
        (
            {"loss.streams": ["in_batch", "cached"]},
            "loss.streams must be one of in_batch, drawn, memory, hard, got 'cached'.",
        ),
        (
            {"loss.streams": ["drawn", "drawn"]},
            "loss.streams must name each stream once, got ['drawn', 'drawn'].",
        ),
        (
            {"loss.streams": ["memory", "hard"]},
            "loss.streams must hold in_batch or drawn, so that every item can be met, "
            "got ['memory', 'hard'].",
        ),
        ({"loss": "bpr", "loss.num_sampled": 0}, "loss.num_sampled must be at least 1, got 0."),
        ({"loss": "bpr", "loss.log_q": "none"}, "loss.log_q is not a setting"),
        (
            {"loss": "importance_sampling", "loss.min_ess": -1},
            "loss.min_ess must be at least 0, got -1.0.",
        ),
        (
            {"loss": "importance_sampling", "loss.num_sampled": 100, "loss.max_samples": 99},
            "loss.max_samples must be at least 100, got 99.",
        ),
        (
            {"loss": "importance_sampling", "loss.ess_quantile": 1},
            "loss.ess_quantile must be at least 0 and below 1, got 1.0.",
        ),
        (
            {"loss": "importance_sampling", "loss.min_ess": 9000},
            "loss.min_ess must be at most loss.max_samples=8192, got 9000: "
            "a sample is never worth more than its size.",
        ),
        ({"loss": "monte_carlo", "loss.num_sampled": 0}, "loss.num_sampled must be at least 1"),
        (
            {"loss": "metropolis_hastings", "loss.burn_in": -1},
            "loss.burn_in must be at least 0, got -1.",
        ),
        (
            {"loss": "metropolis_hastings", "loss.num_sampled": 32},
            "loss.burn_in must be below loss.num_sampled=32, got 32.",
        ),
        ({"sampler.mode": "unique"}, "sampler.mode must be one of with_replacement, per_query, de"),
        (
            {"sampler": "bigram", "sampler.unigram_share": 0},
            "sampler.unigram_share must be above 0 and at most 1, got 0.0.",
        ),
        ({"sampler": "bigram", "sampler.mode": "distinct"}, "sampler.mode is not a setting"),
        (
            {"popularity": "streaming", "popularity.num_tables": 0},
            "popularity.num_tables must be at least 1, got 0.",
        ),
        (
            {"popularity": "streaming", "popularity.num_buckets": 2**31 - 1},
            "popularity.num_buckets must be below 2147483647, got 2147483647.",
        ),
        (
            {"popularity": "streaming", "popularity.num_buckets": 0},
            "popularity.num_buckets must be at least 2, got 0.",
        ),
        (
            {"popularity": "streaming", "popularity.step_size": 0},
            "popularity.step_size must be above 0 and at most 1, got 0.0.",
        ),
        (
            {"popularity": "streaming", "popularity.initial_gap": 0.9},
            "popularity.initial_gap must be at least 1, got 0.9.",
        ),
        (
            {"popularity": "count_min", "popularity.num_tables": 0},
            "popularity.num_tables must be at least 1, got 0.",
        ),
        (
            {"popularity": "count_min", "popularity.num_buckets": 2**31 - 1},
            "popularity.num_buckets must be below 2147483647, got 2147483647.",
        ),
        (
            {"popularity": "count_min", "popularity.num_buckets": 0},
            "popularity.num_buckets must be at least 2, got 0.",
        ),
        (
            {"popularity": "count_min", "popularity.initial_count": 0},
            "popularity.initial_count must be above 0, got 0.0.",
        ),
        ({"streams.memory.size": 0}, "streams.memory.size must be at least 1, got 0."),
        ({"streams.memory.max_age": 0}, "streams.memory.max_age must be at least 1, got 0."),
        ({"streams.hard.num_sampled": 0}, "streams.hard.num_sampled must be at least 1, got 0."),
        ({"streams.hard.num_top": 0}, "streams.hard.num_top must be at least 1, got 0."),
        ({"streams.hard.refresh_steps": 0}, "streams.hard.refresh_steps must be at least 1, got"),
        ({"sampler.alpha": float("inf")}, "sampler.alpha must be finite, got inf."),
        ({"sampler.alpha": float("nan")}, "sampler.alpha must be finite, got nan."),
        ({"optimizer.name": "lion"}, "optimizer.name must be one of rowwise_adagrad, adagrad"),
        ({"optimizer.learning_rate": 0}, "optimizer.learning_rate must be above 0, got 0.0."),
        ({"optimizer.learning_rate": float("inf")}, "optimizer.learning_rate must be above 0"),
        ({"optimizer.dense_learning_rate": -1}, "optimizer.dense_learning_rate must be above 0"),
        ({"optimizer.weight_decay": -1}, "optimizer.weight_decay must be at least 0, got -1.0."),
        ({"optimizer.weight_decay": float("inf")}, "optimizer.weight_decay must be at least 0"),
        ({"optimizer.dense_weight_decay": -1}, "optimizer.dense_weight_decay must be at least 0"),
        ({"optimizer.schedule": "step"}, "optimizer.schedule must be one of constant, linear_w"),
        ({"optimizer.warmup_share": 1}, "optimizer.warmup_share must be at least 0 and below 1"),
        ({"optimizer.gradient_clip": -1}, "optimizer.gradient_clip must be at least 0, got -1.0."),
        ({"index.kind": "hnws"}, "index.kind must be one of auto, flat, hnsw, hnsw_sq8, ivf_flat"),
        ({"index.m": 1}, "index.m must be from 2 to 512, got 1."),
        ({"evaluation.part": "train"}, "evaluation.part must be one of validation, test, got 'tr"),
        ({"evaluation.k": []}, "evaluation.k must hold numbers of at least 1, got []."),
        ({"evaluation.k": [0, 5]}, "evaluation.k must hold numbers of at least 1, got [0, 5]."),
        ({"evaluation.num_bootstrap": 0}, "evaluation.num_bootstrap must be at least 1, got 0."),
        ({"evaluation.confidence": 1}, "evaluation.confidence must lie between 0 and 1, got 1.0."),
        (
            {"evaluation.popularity_alphas": [0.5, 11]},
            "evaluation.popularity_alphas must lie between -10 and 10, got 11.0.",
        ),
        ({"tracking": "mlflow", "tracking.uri": ""}, "tracking.uri must not be empty."),
        (
            {"tracking": "mlflow", "tracking.experiment": ""},
            "tracking.experiment must not be empty",
        ),
        ({"tracking": "mlflow", "tracking.on_error": "x"}, "tracking.on_error must be one of fail"),
        # what excludes what
        (
            {"trainer.examples": "sequences"},
            "trainer.examples=sequences needs model.user_tower.history.encoder to be gru or "
            "transformer, which see at each event only those before it, got 'recency'.",
        ),
        (
            {"trainer.examples": "profiles", "model": "factorization"},
            "model.user_tower.history.encoder must not be none.",
        ),
        (
            {"loss.label_smoothing": 0.1, "loss.log_q": "none"},
            "which loss.log_q=none leaves out; got 0.1.",
        ),
        (
            {"trainer.batch_size": 1, "loss": "in_batch"},
            "trainer.batch_size must be at least 2 for loss=in_batch, got 1",
        ),
        (
            {"trainer.batch_size": 1, "loss.streams": ["in_batch"]},
            "trainer.batch_size must be at least 2 for loss.streams=[in_batch], got 1: "
            "a batch of one row has no negative.",
        ),
        (
            {"loss": "importance_sampling", "sampler.mode": "deduplicated"},
            "sampler.mode must be with_replacement or per_query for loss=importance_sampling, got ",
        ),
        (
            {"loss": "exact_importance", "sampler": "bigram"},
            "sampler must be uniform, log_uniform or popularity for loss=exact_importance",
        ),
        (
            {"loss": "metropolis_hastings", "sampler": "learned_unigram"},
            "sampler must be uniform, log_uniform or popularity for loss=exact_importance and "
            "loss=metropolis_hastings: they draw from one fixed distribution.",
        ),
        (
            {"loss": "metropolis_hastings", "sampler.mode": "per_query"},
            "sampler.mode must be with_replacement for loss=exact_importance and loss=metropolis",
        ),
    ],
    "prepare": [
        ({"dataset.num_users": 0}, "dataset.num_users must be at least 1, got 0."),
        ({"dataset.zipf_exponent": -1}, "dataset.zipf_exponent must be at least 0, got -1.0."),
        ({"dataset.min_user_interactions": 0}, "dataset.min_user_interactions must be at least 1"),
        ({"dataset.min_item_interactions": 0}, "dataset.min_item_interactions must be at least 1"),
        ({"dataset.duplicates": "none"}, "dataset.duplicates must be one of auto, keep_first"),
        ({"dataset.on_bad_rows": "fix"}, "dataset.on_bad_rows must be one of error, drop, got 'f"),
        ({"dataset.archive": "x"}, "it belongs to dataset=ml-100k"),
        ({"split": "temporl"}, "split=temporl is not a choice; did you mean temporal?"),
        ({"split.rule": "last"}, "split.rule must be one of auto, temporal, leave_last_out"),
        ({"split.validation_share": 1}, "split.validation_share must be at least 0 and below 1"),
        ({"split.test_share": -0.1}, "split.test_share must be at least 0 and below 1, got -0.1."),
        (
            {"split.validation_share": 0.5, "split.test_share": 0.5},
            "split.validation_share + split.test_share must be below 1, got 1.",
        ),
        ({"split.fold_in": 0}, "split.fold_in must lie between 0 and 1, got 0.0."),
        ({"split.fold_in_order": "last"}, "split.fold_in_order must be one of time, random, got"),
        (
            {"dataset": "table", "dataset.interactions": "x", "split": "cold_items"},
            "split.rule=cold_items needs a table of items: dataset.items=FILE",
        ),
        ({"split": "given"}, "split.rule=given does not go with dataset.train=None"),
        ({"+features.items.x.kind": "txt"}, "features.items.x: features: `kind` must be one of"),
        ({"+features.items.x.knd": "text"}, "features.items.x must be a kind, or hold kind"),
        ({"+features.items.x.min_count": 0}, "features.items.x: features: `min_count` must be at"),
        ({"dataset": "table"}, "dataset.interactions must be given: dataset.interactions=FILE"),
        (
            {"dataset": "table", "dataset.columns.user": None},
            "dataset.columns.user must not be null",
        ),
        (
            {"dataset": "table", "dataset.interactions": ""},
            "dataset.interactions must be a path or a list of paths, got ''.",
        ),
        (
            {"dataset": "table", "dataset.interactions": 3},
            "dataset.interactions must be a path or a list of paths, got 3.",
        ),
        (
            {"dataset": "table", "dataset.interactions": ["a", 3]},
            "dataset.interactions must be a path or a list of paths, got ['a', 3].",
        ),
        (
            {"dataset": "table", "dataset.train": "t.csv"},
            "split=given and dataset.train need each other.",
        ),
        (
            {"dataset": "table", "dataset.interactions": "x.csv", "split": "given"},
            "split=given and dataset.train need each other.",
        ),
        (
            {"dataset": "table", "dataset.interactions": "x.csv", "dataset.train": "t.csv"},
            "dataset.interactions and dataset.train exclude each other.",
        ),
        (
            {"dataset": "table", "dataset.interactions": "x", "dataset.timestamp_unit": "min"},
            "dataset.timestamp_unit must be one of auto, s, ms, us, ns, iso, order, got 'min'.",
        ),
        (
            {"dataset": "table", "dataset.interactions": "x", "dataset.events": ["buy"]},
            "dataset.events needs dataset.columns.event, which is null.",
        ),
        (
            {"dataset": "table", "dataset.interactions": "x", "dataset.file.format": "json"},
            "dataset.file.format must be one of auto, csv, tsv, parquet, got 'json'.",
        ),
        (
            {
                "dataset": "table",
                "dataset.interactions": "x",
                "dataset.timestamp_unit": "order",
                "split": "temporal",
            },
            "split.rule=temporal needs a clock; dataset.timestamp_unit=order has none.",
        ),
    ],
    "evaluate": [
        ({"tracking": "none"}, "evaluate needs bundle=, or ranked= and truth=, and not both."),
        ({"bundle": "b", "ranked": "r", "truth": "t"}, "evaluate needs bundle=, or ranked="),
        ({"ranked": "r"}, "ranked and truth need each other."),
        ({"bundle": "b", "k": [0]}, "k must hold numbers of at least 1, got [0]."),
        ({"bundle": ""}, "bundle must not be empty."),
    ],
    "recommend": [
        ({"output": "x.parquet"}, "bundle must be given: bundle="),
        ({"bundle": "b"}, "output must be given: output="),
        ({"bundle": "b", "output": "x", "k": 0}, "k must be at least 1, got 0."),
        ({"bundle": "b", "output": ""}, "output must not be empty."),
        (
            {"bundle": "b", "output": "a.b/top.CSV.gz"},
            "output must end in .parquet, the format that is written, got 'a.b/top.CSV.gz'.",
        ),
        (
            {"bundle": "b", "output": "x", "popularity_alpha": -10.5},
            "popularity_alpha must lie between -10 and 10, got -10.5.",
        ),
        ({"bundle": "b", "output": "x", "exclude_seen": "some"}, "exclude_seen must be true or"),
        ({"bundle": "b", "output": "x", "timestamp_unit": "h"}, "timestamp_unit must be one of"),
        ({"bundle": "b", "output": "x", "on_bad_rows": "x"}, "on_bad_rows must be one of error"),
    ],
    "neighbours": [
        ({"items": "1"}, "bundle must be given: bundle="),
        ({"bundle": "b", "k": 0}, "k must be at least 1, got 0."),
        ({"bundle": "b", "output": "near.json"}, "output must end in .parquet, the format"),
    ],
    "explain": [
        ({"user": "1"}, "bundle must be given: bundle="),
        ({"bundle": "b"}, "user must be given: user="),
        ({"bundle": "b", "user": "1", "k": 0}, "k must be at least 1, got 0."),
        ({"bundle": "b", "user": "1", "num_history": -1}, "num_history must be at least 0, got"),
    ],
    "export": [
        ({}, "bundle must be given: bundle="),
        ({"bundle": "b", "form": "faiss"}, "form must be one of parquet, qdrant, milvus, opensear"),
        ({"bundle": "b", "name": "Films"}, "name must hold no capital, no blank and none of"),
        ({"bundle": "b", "form": "milvus", "name": "a-b"}, "a digit not first for form=milvus, go"),
        ({"bundle": "b", "file_mb": 33}, "file_mb must be from 1 to 32, got 33."),
    ],
    "index": [
        ({"index": "hnsw"}, "bundle must be given: bundle="),
        ({"bundle": "b", "index": "annoy"}, "index=annoy is not a choice"),
        ({"bundle": "b", "index": "ivf_pq", "index.code_bits": 3}, "index.code_bits must be"),
    ],
    "update": [
        ({"items": "x.csv"}, "bundle must be given: bundle="),
        ({"bundle": "b"}, "update needs items=FILE, remove=FILE or remove=[ID,...], or both."),
        ({"bundle": "b", "remove": "x", "list_separator": ""}, "list_separator must not be empty."),
        ({"bundle": "b", "remove": "x", "on_unknown": "x"}, "on_unknown must be one of error, ski"),
        ({"bundle": "b", "remove": "x", "on_bad_rows": "x"}, "on_bad_rows must be one of error"),
        ({"bundle": "b", "remove": "x", "max_share": 1.5}, "max_share must be from 0 to 1, got"),
        ({"bundle": "b", "remove": "x", "recall.k": 0}, "recall.k must be at least 1, got 0."),
        ({"bundle": "b", "remove": [""]}, "remove must hold no empty id."),
        ({"bundle": "b", "remove": {"a": 1}}, "remove must be a file or a list of ids, got"),
        ({"bundle": "b", "items": 3}, "items must be a path or a list of paths, got 3."),
    ],
    "compact": [
        ({"seed": 1}, "bundle must be given: bundle="),
        ({"bundle": "b", "recall.drift": -0.1}, "recall.drift must be from 0 to 1, got -0.1."),
        ({"bundle": "b", "recall.num_queries": 0}, "recall.num_queries must be at least 1"),
    ],
    "serve": [
        ({"port": 80}, "bundle must be given: bundle="),
        ({"bundle": "b", "port": 70_000}, "port must lie between 0 and 65535, got 70000."),
        ({"bundle": "b", "max_k": 0}, "max_k must be at least 1, got 0."),
        (
            {"bundle": "b", "popularity_alpha": "nan"},
            "popularity_alpha must lie between -10 and 10",
        ),
    ],
    "baselines": [
        ({"validate_at": 0}, "validate_at must be at least 1, got 0."),
    ],
}
SCHEMAS: dict[str, Any] = {
    "train": TrainConfig,
    "prepare": PrepareConfig,
    "evaluate": EvaluateConfig,
    "recommend": RecommendConfig,
    "neighbours": NeighboursConfig,
    "explain": ExplainConfig,
    "export": ExportConfig,
    "index": ReindexConfig,
    "update": UpdateConfig,
    "compact": CompactConfig,
    "serve": ServeConfig,
    "baselines": BaselinesConfig,
}
MADE_UP = {"dataset": "synthetic", "tracking": "none"}


def made_up_settings(stage: str) -> dict[str, str]:
    """Choose made-up data where the stage has a data set."""
    choices = {"prepare": {"dataset": "synthetic"}, "train": MADE_UP, "baselines": MADE_UP}
    return choices.get(stage, {})


def compose(stage: str, settings: dict[str, Any]) -> Any:
    return compose_config(stage, SCHEMAS[stage], {**made_up_settings(stage), **settings})


GROUPS = {"dataset", "experiment", "index", "loss", "optimizer", "popularity", "sampler", "split"}
GROUPS |= {"tracking"}


@functools.cache
def tree_of(stage: str, choices: tuple[tuple[str, Any], ...]) -> DictConfig:
    """Compose the tree of a stage with some choices, once."""
    made_up = {**made_up_settings(stage), **dict(choices)}
    with initialize_config_module(config_module="recsys.conf", version_base="1.3"):
        return hydra.compose(stage, overrides=[f"{key}={value}" for key, value in made_up.items()])


def change(stage: str, settings: dict[str, Any]) -> Any:
    """Change a composed tree, which is faster than to compose it anew."""
    chosen = {key: value for key, value in settings.items() if key in GROUPS}
    values = {key: value for key, value in settings.items() if key not in GROUPS}
    if not values or any("+" in key for key in values):
        return compose(stage, settings)
    try:
        changed = tree_of(stage, tuple(chosen.items())).copy()
        for key, value in values.items():
            OmegaConf.update(changed, key, value)
    except (HydraException, OmegaConfBaseException):  # composing refuses it in our words
        return compose(stage, settings)
    return load(changed, SCHEMAS[stage])


@pytest.mark.parametrize("stage", REFUSED)
def test_a_refusal_names_the_key(stage: str) -> None:
    register_schemas()
    for settings, words in REFUSED[stage]:
        with pytest.raises(ConfigError) as refusal:
            change(stage, settings)
        assert words in str(refusal.value), settings
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "decay", "is_refused"),
    [
        ("rowwise_adagrad", 0.01, False),
        ("adam", 0.01, False),
        ("adagrad", 0.01, True),
        ("lazy_adam", 0.01, True),
        ("sgd", 0.0001, True),
        ("adagrad", 0.0, False),
        ("lazy_adam", 0.0, False),
        ("sgd", 0.0, False),
    ],
)
def test_weight_decay_goes_with_some_optimisers_only(
    name: str, decay: float, is_refused: bool
) -> None:
    settings = {"optimizer": name, "optimizer.weight_decay": decay}
    if not is_refused:
        assert compose("train", settings).optimizer.weight_decay == decay
        return
    with pytest.raises(ConfigError) as refusal:
        compose("train", settings)
    words = f"optimizer.weight_decay={decay:g} does not go with optimizer.name={name}"
    assert words in str(refusal.value)


def test_zero_false_and_numbers_of_numpy_are_values() -> None:
    settings = {
        "seed": 0,
        "trainer.drop_last": False,
        "trainer.patience": np.int64(0),
        "optimizer.learning_rate": np.float64(0.5),
        "sampler.alpha": 0,
    }
    config = compose("train", settings)
    assert (config.seed, config.trainer.drop_last, config.trainer.patience) == (0, False, 0)
    assert (config.optimizer.learning_rate, config.sampler.alpha) == (0.5, 0.0)


def test_parts_that_are_given_need_no_interactions() -> None:
    settings = {"dataset": "table", "split": "given", "dataset.train": "t", "dataset.test": "u"}
    config = compose("prepare", settings)
    assert (config.dataset.interactions, config.dataset.validation) == (None, None)
