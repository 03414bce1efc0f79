"""The lines of an export's README are run against a server that writes down what it is sent."""

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from recsys.bundle import Bundle

Export = Callable[..., Path]
MakeBundle = Callable[..., Bundle]

pytestmark = pytest.mark.skipif(
    shutil.which("bash") is None or shutil.which("curl") is None, reason="needs bash and curl"
)


class Engine:
    """A server that keeps every request and answers with one text."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str, bytes]] = []
        self.answer = b'{"errors":false}'
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def keep(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                kind = self.headers.get("Content-Type") or ""
                engine.requests.append((self.command, self.path, kind, body))
                self.send_response(200)
                self.send_header("Content-Length", str(len(engine.answer)))
                self.end_headers()
                self.wfile.write(engine.answer)

            do_PUT = do_POST = keep  # noqa: N815  (the names that the library calls)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def engine() -> Iterator[Engine]:
    started = Engine()
    yield started
    started.close()


def run_first_block(folder: Path, variable: str, url: str) -> subprocess.CompletedProcess[str]:
    text = (folder / "README.md").read_text()
    block = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert block is not None
    return subprocess.run(
        ["bash", "-e", "-c", block[1]],
        cwd=folder,
        env=os.environ | {variable: url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_qdrant_is_sent_the_collection_the_indexes_and_every_point(
    odd_bundle: Bundle, export: Export, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recsys.export.json_rows._MOST_AT_ONCE", 4)
    folder = export(odd_bundle, "qdrant", name="größe$1") / "qdrant"
    done = run_first_block(folder, "QDRANT", engine.url)
    assert done.returncode == 0, done.stderr
    base = "/collections/gr%C3%B6%C3%9Fe%241"
    assert {(method, kind) for method, _, kind, _ in engine.requests} == {
        ("PUT", "application/json")
    }
    paths = [path for _, path, _, _ in engine.requests]
    bodies = [json.loads(body) for *_, body in engine.requests]
    assert (paths[0], bodies[0]["vectors"]["size"]) == (base, 8)
    num_indexes = len((folder / "indexes.jsonl").read_text().splitlines())
    assert paths[1:-1] == [f"{base}/index?wait=true"] * num_indexes
    assert {"field_name": '"größe"', "field_schema": "integer"} in bodies[1:-1]
    assert paths[-1] == f"{base}/points?wait=true"
    assert len(bodies[-1]["points"]) == 9


def test_opensearch_is_sent_the_index_and_every_document(
    make_bundle: MakeBundle, export: Export, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make_bundle([f"i{n}" for n in range(60)])
    folder = export(bundle, "opensearch", name="films") / "opensearch"
    done = run_first_block(folder, "OPENSEARCH", engine.url)
    assert done.returncode == 0, done.stderr
    (_, first, _, index), (_, second, kind, bulk), (_, last, _, _) = engine.requests
    assert (first, last) == ("/films", "/films/_refresh")
    assert second == "/films/_bulk?filter_path=errors,items.*.error"
    assert kind == "application/x-ndjson"
    assert json.loads(index)["mappings"]["properties"]["vector"]["dimension"] == 8
    assert bulk == (folder / "bulk-000000.ndjson").read_bytes()
    assert bulk.count(b"\n") == 120


def test_opensearch_is_sent_no_more_after_an_error(
    make_bundle: MakeBundle, export: Export, engine: Engine
) -> None:
    folder = export(make_bundle([f"i{n}" for n in range(12)]), "opensearch") / "opensearch"
    shutil.copy(folder / "bulk-000000.ndjson", folder / "bulk-000001.ndjson")
    engine.answer = b'{"errors":true}'
    run_first_block(folder, "OPENSEARCH", engine.url)
    assert sum("_bulk" in path for _, path, _, _ in engine.requests) == 1
