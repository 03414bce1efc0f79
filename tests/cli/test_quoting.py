"""Expressions on the command line: Hydra hands them on as they were written."""

from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import example, given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from recsys.cli.quoting import with_quoted_expressions


def value_of(argument: str) -> object:
    """Read a setting as Hydra and OmegaConf do."""
    [override] = OverridesParser.create().parse_overrides(with_quoted_expressions([argument]))
    assert not override.is_sweep_override()
    return OmegaConf.create({"value": override.value()}).value


@given(behind=st.text("ab \\'\"$*{}[](),=<>0:", max_size=12))
@example(behind="country in [DE, FR] and price <= 1e1")
@example(behind="title = 'it\\'s' or title = \"\\\\\"")
@example(behind="= '${oc.env:HOME}'")
@example(behind="\\${a} \\\\${a} $\\{a}")
@example(behind="\\")
def test_an_expression_is_one_text_whatever_stands_in_it(behind: str) -> None:
    assert value_of(f"where=x{behind}") == f"x{behind}"


def test_null_and_what_is_quoted_already_are_read_by_hydra() -> None:
    assert value_of("where=null") is None
    assert value_of("where='price < 5'") == "price < 5"
    assert value_of('where="a in [b, c]"') == "a in [b, c]"
    assert with_quoted_expressions(["k=3", "x.where=a b"]) == ["k=3", "x.where=a b"]
