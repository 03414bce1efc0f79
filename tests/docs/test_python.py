"""The Python blocks of the pages run, in order, in an empty folder."""

import shutil
from pathlib import Path
from typing import Any

import pytest


def test_the_python_page_runs(
    pages: list[Any], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(root / "data" / "sample", tmp_path / "data" / "sample")
    page = next(page for page in pages if page.path.name == "python.md")
    blocks = [block for block in page.blocks() if block.language == "python"]
    assert len(blocks) > 10
    names: dict[str, Any] = {}
    for block in blocks:
        code = "\n" * block.line + block.text  # so that an error names the page's line
        exec(compile(code, str(page.path), "exec"), names)
    assert (tmp_path / "runs" / "first" / "bundle" / "manifest.json").exists()


def test_python_stands_on_its_own_page_alone(pages: list[Any]) -> None:
    others = [
        block.page.name
        for page in pages
        for block in page.blocks()
        if block.language == "python" and page.path.name != "python.md"
        if block.file is None  # a program that the page runs
    ]
    assert others == []
