"""docs/theory.md names functions, tests and settings that exist, and all estimators there are."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import recsys.losses
import recsys.sampling

# [`name`](../folder/file.py)
LINK = re.compile(r"\[`(\w+)`\]\(\.\./((?:recsys|tests)/[\w/]+\.py)\)")


@pytest.fixture(scope="module")
def page(pages: list[Any]) -> Any:
    return next(page for page in pages if page.path.name == "theory.md")


def test_every_function_and_test_that_is_named_stands_in_its_file(page: Any, root: Path) -> None:
    links = LINK.findall(page.prose)
    assert len(links) > 100
    missing = [
        (name, file)
        for name, file in links
        if not re.search(
            rf"^(?:def|class) {name}\b", (root / file).read_text(encoding="utf-8"), re.MULTILINE
        )
    ]
    assert missing == []
    # No link to a file of code is written in another form, which the check would pass over.
    assert len(links) == len(re.findall(r"\]\(\.\./[\w/]+\.py\)", page.prose))


def test_every_function_that_is_named_is_public(page: Any) -> None:
    hidden = [
        (name, file)
        for name, file in LINK.findall(page.prose)
        if file.startswith("recsys/")
        and name not in importlib.import_module(".".join(Path(file).parent.parts)).__all__
    ]
    assert hidden == []


def test_every_loss_and_every_way_to_draw_is_on_the_page(page: Any) -> None:
    named = {name for name, _ in LINK.findall(page.prose)}
    losses = {name for name in recsys.losses.__all__ if name[0].islower()}
    kinds = ("Sampler", "Proposal", "Popularity")
    samplers = {name for name in recsys.sampling.__all__ if name.endswith(kinds)} - {*kinds}
    assert len(losses) > 15
    assert len(samplers) > 12
    assert (losses | samplers) - named == set()


def test_every_section_names_a_test(page: Any) -> None:
    sections = re.split(r"^#{2,3} ", page.prose, flags=re.MULTILINE)[1:]
    titles = {section.splitlines()[0]: section for section in sections}
    without = [title for title, section in titles.items() if "](../tests/" not in section]
    assert without == [
        "Symbols",
        "Candidate sampling",
        "The softmax gradient and its estimators",
        "Which estimator for which catalogue",
        "References",
    ]


def test_the_losses_to_start_with_are_choices_of_the_settings(page: Any, root: Path) -> None:
    named = set(re.findall(r"`loss=(\w+)`", page.prose))
    choices = {path.stem for path in (root / "conf" / "loss").glob("*.yaml")}
    assert len(named) > 10
    assert named <= choices
    assert set(re.findall(r"`loss\.log_q=(\w+)`", page.prose)) <= {"standard", "refined", "none"}


def test_formulas_are_closed(page: Any) -> None:
    paragraphs = re.split(r"\n\s*\n", page.prose)
    assert [text for text in paragraphs if text.count("$") % 2] == []
    inline = re.findall(r"\$([^$]+)\$", page.prose)
    blocks = [block.text for block in page.blocks() if block.language == "math"]
    assert len(inline) > 100
    assert len(blocks) > 15
    for formula in inline + blocks:
        assert formula.count("{") == formula.count("}"), formula
        opened, closed = (re.findall(rf"\\{side}\b", formula) for side in ("left", "right"))
        assert len(opened) == len(closed), formula
    # Markdown takes the backslash of `\,` or `\{` away, and a star or a bar for its own.
    assert [one for one in inline if re.search(r"\\[^a-zA-Z]|[*|]", one)] == []
