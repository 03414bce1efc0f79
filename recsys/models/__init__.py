"""Two towers: users (with their history and context) and items as vectors of one space."""

from recsys.models.embeddings import EmbeddingTable
from recsys.models.encode import encode_candidates, encode_queries
from recsys.models.inputs import QueryInputs, pad_histories
from recsys.models.spec import ItemTowerSpec, ModelSpec, UserTowerSpec
from recsys.models.two_tower import TwoTower, build_two_tower

__all__ = [
    "EmbeddingTable",
    "ItemTowerSpec",
    "ModelSpec",
    "QueryInputs",
    "TwoTower",
    "UserTowerSpec",
    "build_two_tower",
    "encode_candidates",
    "encode_queries",
    "pad_histories",
]
