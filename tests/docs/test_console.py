"""The commands of the pages are run, and what a page shows is what they say.

Numbers may differ between machines, and `...` stands for anything; words may not.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LIMIT_SECONDS = 120
ANYTHING = "\0"  # stands for the three dots of a page
SLOW_PAGES = (
    "your-own-data",
    "settings",
    "dataset",
    "bundle",
    "diagnose",
    "estimators",
    "evaluation",
    "export",
    "serving",
    "towers",
    "tracking",
)

pytestmark = pytest.mark.skipif(
    shutil.which("bash") is None or shutil.which("curl") is None, reason="needs bash and curl"
)


class Terminal:
    """A shell in a folder, as a reader has it: the command on the path, the sample beside it."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self._servers = folder, list[subprocess.Popen[bytes]]()
        self._port = _free_port()
        (folder / "data").mkdir()
        shutil.copytree(root / "data" / "sample", folder / "data" / "sample")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "COLUMNS": "160"}
        self._environment.pop("RECSYS_TRACEBACK", None)

    def run(self, text: str) -> tuple[int, str]:
        """Run a command; give its status and all that it printed."""
        text = text.replace("localhost:8000", f"localhost:{self._port}")
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        return done.returncode, done.stdout.decode()

    def serve(self, text: str) -> str:
        """Start a server and wait until it answers; give what it said."""
        self.close()
        text = text.replace("port=8000", f"port={self._port}")
        log = self.folder / "server.log"
        with log.open("wb") as out:
            server = subprocess.Popen(
                ["bash", "-c", f"exec {text}"],
                cwd=self.folder,
                env=self._environment,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self._servers.append(server)
        deadline = time.monotonic() + LIMIT_SECONDS
        while "listening on" not in log.read_text():
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        return log.read_text()

    def close(self) -> None:
        """Stop the servers that were started."""
        while self._servers:
            server = self._servers.pop()
            server.terminate()
            server.wait(timeout=20)


@pytest.fixture
def terminal(tmp_path: Path, root: Path) -> Iterator[Terminal]:
    """Open a terminal in an empty folder."""
    opened = Terminal(tmp_path, root)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """Train the run of the README's first screen, which the pages go on with."""
    opened = Terminal(tmp_path_factory.mktemp("first"), root)
    status, said = opened.run("recsys train experiment=tiny run_dir=first tracking=none")
    assert status == 0, said
    return opened.folder / "first"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def plain(line: str) -> str:
    """Reduce a line to what must be alike: numbers, rules and blanks become one sign each."""
    line = re.sub(r"\d[\d.,:\-TZ]*(e-\d+)?", "#", line.replace("...", ANYTHING))
    line = re.sub(r"-(?=#)", "", line)
    line = re.sub(r"#[#.,:\-]*", "#", line)
    return re.sub(r"\s+", " ", re.sub("[━─]+", "━", line)).strip()


def matches(shown: str, said: list[str]) -> bool:
    """Tell whether a line of a page is one of those that were printed."""
    if "│" in shown and ANYTHING not in shown:  # of a table: names of items may differ, not columns
        return any(
            line.count("│") == shown.count("│") and line.split("│")[1] == shown.split("│")[1]
            for line in said
            if line.startswith("│")
        )
    parts = [re.escape(part.strip(" ")) for part in shown.split(ANYTHING)]
    pattern = re.compile(r"\s?.*\s?".join(parts))
    return any(pattern.fullmatch(line) for line in said)


def check(command: Any, status: int, said: str) -> None:
    """Compare what a page shows with what a command did."""
    refused = any(line.startswith("recsys: error:") for line in command.shown)
    assert status == (2 if refused else 0), f"{command.where}: {command.text}\n{said}"
    printed = [plain(line) for line in said.splitlines()]
    for line in command.shown:
        if line.strip() not in ("", "..."):
            assert matches(plain(line), printed), f"{command.where}: not printed: {line}\n{said}"


def run_page(page: Any, terminal: Terminal, commands_of: Any) -> int:
    """Run the console blocks of a page in order, after writing the files it shows."""
    num_commands = 0
    for block in page.blocks():
        if block.file is not None:
            path = terminal.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        if block.language != "console":
            continue
        for command in commands_of(block):
            num_commands += 1
            if command.text.startswith("recsys serve") and command.shown[0][:6] == "bundle":
                check(command, 0, terminal.serve(command.text))
            else:
                check(command, *terminal.run(command.text))
    return num_commands


def test_the_first_screen_leads_to_a_lookup(
    pages: list[Any], terminal: Terminal, commands_of: Any
) -> None:
    assert run_page(pages[0], terminal, commands_of) == 5


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW_PAGES)
def test_the_commands_of_a_page_say_what_it_shows(
    name: str, pages: list[Any], terminal: Terminal, first: Path, commands_of: Any
) -> None:
    shutil.copytree(first, terminal.folder / "first")
    page = next(page for page in pages if page.path.stem == name)
    assert run_page(page, terminal, commands_of) > 0


def test_no_page_with_commands_is_left_out(pages: list[Any]) -> None:
    with_console = {
        page.path.stem
        for page in pages
        if any(block.language == "console" for block in page.blocks())
    }
    assert with_console <= {"README", *SLOW_PAGES}
