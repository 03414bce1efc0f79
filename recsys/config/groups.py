"""Which schema stands behind a command, and behind each choice of a group."""

from typing import Any

from recsys.config import (
    schema_baselines,
    schema_benchmark,
    schema_data,
    schema_diagnosis,
    schema_export,
    schema_loss,
    schema_model,
    schema_sampling,
    schema_stages,
    schema_training,
    schema_updates,
)

STAGES = {
    "prepare": schema_stages.PrepareConfig,
    "train": schema_stages.TrainConfig,
    "evaluate": schema_stages.EvaluateConfig,
    "recommend": schema_stages.RecommendConfig,
    "neighbours": schema_stages.NeighboursConfig,
    "explain": schema_stages.ExplainConfig,
    "index": schema_stages.ReindexConfig,
    "export": schema_export.ExportConfig,
    "update": schema_updates.UpdateConfig,
    "compact": schema_updates.CompactConfig,
    "serve": schema_stages.ServeConfig,
    "baselines": schema_baselines.BaselinesConfig,
    "diagnose": schema_diagnosis.DiagnoseConfig,
    "benchmark": schema_benchmark.BenchmarkConfig,
}
GROUPS: dict[str, dict[str, type]] = {
    "dataset": {
        "ml-100k": schema_data.Ml100kConfig,
        "synthetic": schema_data.SyntheticConfig,
        "table": schema_data.TableConfig,
    },
    "split": {"split": schema_data.SplitConfig},
    "features": {"features": schema_data.FeaturesConfig},
    "model": {"model": schema_model.ModelConfig},
    "loss": {
        "full_softmax": schema_loss.FullSoftmaxConfig,
        "full_logistic": schema_loss.FullLogisticConfig,
        "in_batch": schema_loss.InBatchConfig,
        "sampled_softmax": schema_loss.SampledSoftmaxConfig,
        "mixed": schema_loss.MixedConfig,
        "negative_sampling": schema_loss.NegativeSamplingConfig,
        "noise_contrastive": schema_loss.NoiseContrastiveConfig,
        "sampled_logistic": schema_loss.SampledLogisticConfig,
        "bpr": schema_loss.BprConfig,
        "importance_sampling": schema_loss.ImportanceSamplingConfig,
        "monte_carlo": schema_loss.MonteCarloConfig,
        "exact_importance": schema_loss.ExactImportanceConfig,
        "metropolis_hastings": schema_loss.MetropolisHastingsConfig,
    },
    "sampler": {
        "uniform": schema_sampling.UniformConfig,
        "log_uniform": schema_sampling.LogUniformConfig,
        "popularity": schema_sampling.PopularityConfig,
        "learned_unigram": schema_sampling.LearnedUnigramConfig,
        "bigram": schema_sampling.BigramConfig,
    },
    "popularity": {
        "exact": schema_sampling.ExactRateConfig,
        "streaming": schema_sampling.StreamingRateConfig,
        "count_min": schema_sampling.CountMinRateConfig,
    },
    "streams": {"streams": schema_sampling.StreamsConfig},
    "optimizer": {"optimizer": schema_model.OptimizerConfig},
    "trainer": {"trainer": schema_training.TrainerConfig},
    "index": {"index": schema_training.IndexConfig, "auto": schema_training.AutoIndexConfig},
    "evaluation": {"evaluation": schema_training.EvaluationConfig},
    "tracking": {
        "mlflow": schema_training.MlflowConfig,
        "none": schema_training.NoTrackingConfig,
    },
}


def choice_of(group: str, config: Any) -> str | None:
    """Give the name of the choice that was made in a group.

    Returns:
        None where choices share a schema, which then has the group's name, and their values tell
        them apart; and where there is no such group.
    """
    choices = GROUPS.get(group, {})
    named = [name for name, schema in choices.items() if type(config) is schema]
    return named[0] if named and named[0] != group else None
