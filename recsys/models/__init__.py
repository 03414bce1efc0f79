"""Two towers: users (with their history and context) and items as vectors of one space."""

from recsys.models.build_two_tower import build_two_tower
from recsys.models.carry_over import CarriedOver, carry_over
from recsys.models.content_start import start_at_content
from recsys.models.embeddings import EmbeddingTable
from recsys.models.encode import encode_candidates, encode_queries, inference
from recsys.models.grouped_rows import GroupedRows
from recsys.models.inputs import QueryInputs, pad_histories
from recsys.models.item_factors import ItemFactors
from recsys.models.repeats import Repeats, decayed_counts
from recsys.models.ridge_part import RidgePart
from recsys.models.row_match import RowMatch, match_ids
from recsys.models.spec import ModelSpec
from recsys.models.tower_spec import ItemTowerSpec, UserTowerSpec
from recsys.models.two_tower import TwoTower
from recsys.models.unknown_ids import place_unknown_ids, untaught_rows

__all__ = [
    "CarriedOver",
    "EmbeddingTable",
    "GroupedRows",
    "ItemFactors",
    "ItemTowerSpec",
    "ModelSpec",
    "QueryInputs",
    "Repeats",
    "RidgePart",
    "RowMatch",
    "TwoTower",
    "UserTowerSpec",
    "build_two_tower",
    "carry_over",
    "decayed_counts",
    "encode_candidates",
    "encode_queries",
    "inference",
    "match_ids",
    "pad_histories",
    "place_unknown_ids",
    "start_at_content",
    "untaught_rows",
]
