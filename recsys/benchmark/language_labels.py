"""What tables and pictures call the estimators of the next-word experiment."""

_LABELS = {
    "full_softmax": "full softmax",
    "unigram_fixed": "importance, unigram, fixed",
    "unigram_adaptive": "importance, unigram, adaptive",
    "unigram_small": "importance, unigram, small",
    "bigram_fixed": "importance, bigram, fixed",
    "bigram_adaptive": "importance, bigram, adaptive",
    "sampled_softmax": "sampled softmax, log Q",
}


def label_of(estimator: str) -> str:
    """Give the name that people read; one that is not known as it is."""
    return _LABELS.get(estimator, estimator)
