"""A recommender-system retrieval toolkit that gets the softmax right."""

__version__ = "0.1.0"
