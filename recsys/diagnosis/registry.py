"""The estimators that can be diagnosed, by name."""

from collections.abc import Callable, Sequence
from functools import partial

from recsys.diagnosis import row_losses
from recsys.diagnosis.adaptive import AdaptiveImportance
from recsys.diagnosis.estimator import Estimator, FullSoftmax, InBatch, MakeSampler, Sampled
from recsys.diagnosis.kind import FAMILIES, Kind, Material
from recsys.diagnosis.references import ExactImportance, MetropolisHastings, MonteCarlo
from recsys.diagnosis.row_losses import RowLoss
from recsys.sampling import (
    BigramProposal,
    BigramSampler,
    ExactPopularity,
    InBatchSampler,
    LogUniformProposal,
    MixedSampler,
    PerQuerySampler,
    PopularityProposal,
    Proposal,
    UniformProposal,
    WithReplacementSampler,
)

Build = Callable[[Material], Estimator | str]
_FULL, _STANDARD, _FORMS, _BATCH, _IMPORTANCE, _MODEL, _SIGMOID = FAMILIES


def _popularity(material: Material, alpha: float) -> Proposal:
    return PopularityProposal(material.counts, alpha=alpha)


def _uniform(material: Material) -> Proposal:
    return UniformProposal(material.num_items)


def _log_uniform(material: Material) -> Proposal:
    return LogUniformProposal(material.counts)


_PROPOSALS: dict[str, tuple[str, Callable[[Material], Proposal]]] = {
    "uniform": ("uniform", _uniform),
    "log_uniform": ("log-uniform", _log_uniform),
    "popularity_075": ("popularity^0.75", partial(_popularity, alpha=0.75)),
    "popularity": ("popularity", partial(_popularity, alpha=1.0)),
}


def _with_replacement(proposal: Proposal) -> MakeSampler:
    return lambda size: WithReplacementSampler(proposal, num_sampled=size)


def _sampled(proposal: str, loss: RowLoss) -> Build:
    _, make = _PROPOSALS[proposal]
    return lambda material: Sampled(_with_replacement(make(material)), loss)


def _forms() -> dict[str, Kind]:
    """List the three forms of the sampled softmax over each proposal."""
    forms = (
        ("standard", "standard", _STANDARD, row_losses.standard),
        ("refined", "refined", _FORMS, row_losses.refined),
        ("uncorrected", "no log Q", _FORMS, row_losses.without_log_q),
    )
    return {
        f"{form}_{proposal}": Kind(
            f"{name}, {label}",
            family,
            _sampled(proposal, loss),
            # Drawn uniformly, Q is one number, and to leave it out changes nothing.
            aim="uncorrected" if form == "uncorrected" and proposal != "uniform" else "softmax",
        )
        for form, name, family, loss in forms
        for proposal, (label, _) in _PROPOSALS.items()
    }


def _per_query(material: Material) -> Estimator:
    proposal = _popularity(material, 0.75)
    return Sampled(lambda size: PerQuerySampler(proposal, num_sampled=size), row_losses.standard)


def _in_batch(material: Material) -> Estimator:
    sampler = InBatchSampler(ExactPopularity(material.counts))
    return InBatch(lambda _: sampler, row_losses.standard, lambda size: size)


def _and_batch_size(sample_sizes: Sequence[int], material: Material) -> tuple[int, ...]:
    """Add the size that training has."""
    return tuple(sorted({*sample_sizes, material.batch_size}))


def _mixed(material: Material) -> Estimator:
    in_batch = InBatchSampler(ExactPopularity(material.counts))
    drawn = _with_replacement(_popularity(material, 0.75))
    return InBatch(
        lambda size: MixedSampler([in_batch, drawn(size)]),
        row_losses.standard,
        lambda _: material.batch_size,
    )


def _bigram(loss: RowLoss) -> Build:
    def build(material: Material) -> Estimator:
        previous, following = material.pairs
        proposal = BigramProposal(
            material.counts, previous, following, unigram_share=material.unigram_share
        )
        return Sampled(lambda size: BigramSampler(proposal, num_sampled=size), loss)

    return build


def _adaptive(material: Material) -> Estimator:
    return AdaptiveImportance(_popularity(material, 1.0), ess_quantile=material.ess_quantile)


def _chain(material: Material) -> Estimator:
    return MetropolisHastings(_popularity(material, 1.0), burn_in_share=material.burn_in_share)


def _visiting_all(make: Callable[[Material], Estimator]) -> Build:
    """Build what sums over the whole catalogue, unless that is too large."""

    def build(material: Material) -> Estimator | str:
        limit = material.max_exact_items
        if material.num_items > limit:
            return f"{material.num_items:,} items are more than max_exact_items={limit:,}"
        return make(material)

    return build


def _sigmoid(label: str, loss: RowLoss, aim: str) -> Kind:
    return Kind(label, _SIGMOID, _sampled("popularity_075", loss), aim)


KINDS: dict[str, Kind] = {
    "full_softmax": Kind(
        "full softmax",
        _FULL,
        lambda _: FullSoftmax(),
        draws=False,
        sizes=lambda _, material: (material.num_items,),
    ),
    **_forms(),
    "per_query": Kind("standard, popularity^0.75, per query", _STANDARD, _per_query),
    "bigram": Kind("standard, bigram", _STANDARD, _bigram(row_losses.standard)),
    "in_batch": Kind(
        "in-batch",
        _BATCH,
        _in_batch,
        sizes=_and_batch_size,
        is_step=lambda size, material: size == material.batch_size,
    ),
    "mixed": Kind("mixed with popularity^0.75", _BATCH, _mixed),
    "importance_sampling": Kind(
        "importance, unigram", _IMPORTANCE, _sampled("popularity", row_losses.importance)
    ),
    "bigram_importance_sampling": Kind(
        "importance, bigram", _IMPORTANCE, _bigram(row_losses.importance)
    ),
    "adaptive_importance_sampling": Kind("importance, adaptive unigram", _IMPORTANCE, _adaptive),
    "exact_importance": Kind(
        "importance, exact P",
        _IMPORTANCE,
        _visiting_all(lambda material: ExactImportance(_popularity(material, 1.0))),
        visits_all=True,
        has_likelihood=False,
    ),
    "metropolis_hastings": Kind("Metropolis-Hastings", _MODEL, _chain, has_likelihood=False),
    "monte_carlo": Kind(
        "Monte-Carlo from the model",
        _MODEL,
        _visiting_all(lambda _: MonteCarlo()),
        visits_all=True,
        has_likelihood=False,
    ),
    "noise_contrastive": _sigmoid(
        "noise-contrastive", row_losses.noise_contrastive, "classification"
    ),
    "sampled_logistic": _sigmoid("sampled logistic", row_losses.sampled_logistic, "classification"),
    "negative_sampling": _sigmoid("negative sampling", row_losses.negative_sampling, "other"),
    "bpr": _sigmoid("BPR", row_losses.bpr, "other"),
}
