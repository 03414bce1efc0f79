"""Links inside the project lead somewhere."""

import re
from pathlib import Path
from typing import Any


def test_links_lead_to_files_and_headings(pages: list[Any], root: Path) -> None:
    known = {page.path: page for page in pages}
    broken, num_links = [], 0
    for page in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.prose):
            if "://" in target:
                continue
            num_links += 1
            name, _, anchor = target.partition("#")
            path = (page.path.parent / name).resolve() if name else page.path
            if not path.exists() or (anchor and anchor not in known[path].anchors()):
                broken.append(f"{page.path.relative_to(root)}: {target}")
    assert num_links > 40
    assert not broken


def test_every_page_is_reached_from_the_readme(pages: list[Any], root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    docs = [page.path.name for page in pages if page.path.parent.name == "docs"]
    assert [name for name in docs if f"(docs/{name})" not in text] == []


def test_no_page_speaks_of_what_is_not_there(pages: list[Any], root: Path) -> None:
    named = {
        (page.path.name, path)
        for page in pages
        for path in re.findall(r"`((?:recsys|conf|pipelines|tests)/[\w./-]+)`", page.prose)
    }
    assert sorted((page, path) for page, path in named if not (root / path).exists()) == []
