"""The server as a process: what it needs, where it listens, and how it stops."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from recsys.bundle import Bundle
from recsys.foundations import ArgumentError, MissingExtraError
from recsys.serving import Lookup
from recsys.serving.app import create_app, serve_app

LIMITS: dict[str, Any] = {
    "max_k": 50,
    "max_batch": 20,
    "max_body_bytes": 20_000,
    "popularity_alpha": 0.0,
}


def test_a_missing_extra_is_named(odd_lookup: Lookup, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(odd_lookup, **LIMITS)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    words = r"Serving needs .*: pip install 'recsys-retrieval\[serve\]'\."
    with pytest.raises(MissingExtraError, match=words):
        create_app(odd_lookup, **LIMITS)
    with pytest.raises(MissingExtraError, match=words):
        serve_app(app, host="127.0.0.1", port=0)


def test_an_address_that_is_taken_is_named(odd_lookup: Lookup) -> None:
    app = create_app(odd_lookup, **LIMITS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ArgumentError, match=rf"127\.0\.0\.1:{port} cannot be used"):
            serve_app(app, host="127.0.0.1", port=port)


def test_a_server_answers_and_stops_when_told(odd_bundle: Bundle, tmp_path: Path) -> None:
    code = """
import logging, sys
from pathlib import Path
from recsys.bundle import read_bundle
from recsys.serving import Lookup
from recsys.serving.app import create_app, serve_app
logging.basicConfig(level=logging.INFO, format="%(message)s")
limits = {"max_k": 10, "max_batch": 9, "max_body_bytes": 999, "popularity_alpha": 0.0}
app = create_app(Lookup(read_bundle(Path(sys.argv[1]))), **limits)
serve_app(app, host="127.0.0.1", port=0)
"""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(odd_bundle.path)],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        address = process.stderr.readline().split()[-1]
        assert address.startswith("http://127.0.0.1:")
        request = urllib.request.Request(
            f"{address}/v1/recommend", json.dumps({"users": ["🎈 fête"], "k": 2}).encode()
        )
        deadline = time.monotonic() + 30
        reply = None
        while reply is None:
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    reply = json.load(answer)
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert len(reply["results"][0]["items"]) == 2
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
