"""The pages of the documentation as data: their blocks, commands, tables and links."""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: The file.
        line: Where it begins, from 1.
        language: The word behind the fence.
        text: What stands inside.
        file: The file that a comment in front of it names, to be written with its text.
    """

    page: Path
    line: int
    language: str
    text: str
    file: str | None = None


@dataclass(frozen=True)
class Command:
    """A command of a `sh` or `console` block, with the output that is shown below it.

    Attributes:
        where: Page and line of its block.
        text: As a shell reads it.
        shown: Lines.
    """

    where: str
    text: str
    shown: list[str] = field(default_factory=list)

    @property
    def is_recsys(self) -> bool:
        """Tell whether it is the toolkit's own."""
        return self.text.startswith("recsys ")

    def words(self) -> list[str]:
        """Give what the shell hands over, behind the program's name."""
        return shlex.split(self.text, comments=True)[1:]


@dataclass(frozen=True)
class Page:
    """A page of the documentation."""

    path: Path

    @property
    def text(self) -> str:
        """Give what stands in it."""
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """Give the text without its fenced blocks."""
        return re.sub(r"^```.*?^```$", "", self.text, flags=re.MULTILINE | re.DOTALL)

    def blocks(self) -> list[Block]:
        """List the fenced blocks, in order."""
        found: list[Block] = []
        inside: list[str] | None = None
        start, language = 0, ""
        file: str | None = None
        for number, line in enumerate(self.text.splitlines(), start=1):
            if inside is None and line.startswith("```"):
                language, inside, start = line.removeprefix("```").strip(), [], number
            elif inside is not None and line == "```":
                text = "".join(f"{one}\n" for one in inside)
                found.append(Block(self.path, start, language, text, file))
                inside, file = None, None
            elif inside is not None:
                inside.append(line)
            elif line.strip():
                named = re.fullmatch(r"<!-- file: (\S+) -->", line.strip())
                file = named[1] if named else None
        assert inside is None, f"{self.path}: a block is not closed"
        return found

    def commands(self) -> list[Command]:
        """List the commands of all blocks for a shell, in order."""
        return [one for block in self.blocks() for one in _commands_of(block)]

    def anchors(self) -> set[str]:
        """List the anchors of its headings, as GitHub makes them."""
        titles = re.findall(r"^#+ (.*)$", self.prose, flags=re.MULTILINE)
        return {
            re.sub(r"[^\w\- ]", "", title.strip().lower().replace("`", "")).replace(" ", "-")
            for title in titles
        }


def _commands_of(block: Block) -> list[Command]:
    """Give the commands of a block; in a `console` block they begin with a dollar sign."""
    if block.language not in ("sh", "console"):
        return []
    where = f"{block.page.name}:{block.line}"
    return list(_commands(block.text.splitlines(), where, prompt=block.language == "console"))


def _commands(lines: list[str], where: str, *, prompt: bool) -> Iterator[Command]:
    current: Command | None = None
    continued = False
    for line in lines:
        begins = line.startswith("$ ") if prompt else True
        if current is not None and continued:
            current = Command(where, f"{current.text[:-1]}{line.strip()}")
            continued = line.endswith("\\")
        elif begins:
            if current is not None:
                yield current
            current = Command(where, line.removeprefix("$ ") if prompt else line)
            continued = line.endswith("\\")
        elif current is not None:
            current.shown.append(line)
    if current is not None:
        yield current


@pytest.fixture(scope="session")
def root() -> Path:
    """Give the folder of the project."""
    return ROOT


@pytest.fixture(scope="session")
def stages() -> list[str]:
    """Give the names of the commands, from their settings files."""
    return sorted(path.stem for path in (ROOT / "conf").glob("*.yaml"))


@pytest.fixture(scope="session")
def pages() -> list[Page]:
    """Give every page that people read."""
    paths = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "data" / "README.md"]
    paths += sorted((ROOT / "docs").glob("*.md"))
    assert len(paths) > 8
    return [Page(path) for path in paths]


@pytest.fixture(scope="session")
def commands_of() -> Callable[[Block], list[Command]]:
    """Give the function from a block to its commands."""
    return _commands_of
