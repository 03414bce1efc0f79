"""Lookups in a bundle; the HTTP around them stands in modules that are imported on their own."""

from recsys.serving.answers import Answers
from recsys.serving.embed_items import embed_items
from recsys.serving.explain_table import print_explanations
from recsys.serving.explanations import Explanations
from recsys.serving.files import show_answers, write_answers
from recsys.serving.frames import Frame, as_arrow
from recsys.serving.ids import Ids, as_ids
from recsys.serving.known_users import KnownUsers
from recsys.serving.lookup import Lookup
from recsys.serving.user_lookup import UserRequest

__all__ = [
    "Answers",
    "Explanations",
    "Frame",
    "Ids",
    "KnownUsers",
    "Lookup",
    "UserRequest",
    "as_arrow",
    "as_ids",
    "embed_items",
    "print_explanations",
    "show_answers",
    "write_answers",
]
