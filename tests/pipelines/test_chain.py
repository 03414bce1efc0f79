"""The commands one after another, as a person types them, in this process; and the server."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recsys.cli import main

MADE_UP = [
    *("dataset=synthetic", "dataset.num_users=60", "dataset.num_items=50"),
    "dataset.num_interactions=900",
]
SMALL = [
    *("model.embedding_dim=8", "loss.num_sampled=16", "trainer.epochs=1", "evaluation.k=[5]"),
    *("evaluation.num_bootstrap=10", "tracking=none"),
]


@pytest.fixture
def logs_as_before() -> Iterator[None]:
    """Put the loggers back that a command sets up for the terminal."""
    root, names = logging.getLogger(), ("recsys", "pipelines", "__main__")
    handlers, level = list(root.handlers), root.level
    levels = [logging.getLogger(name).level for name in names]
    yield
    for handler in [one for one in root.handlers if one not in handlers]:
        root.removeHandler(handler)
        handler.close()
    root.handlers, root.level = handlers, level
    for name, before in zip(names, levels, strict=True):
        logging.getLogger(name).setLevel(before)
    logging.captureWarnings(False)


@pytest.mark.usefixtures("logs_as_before")
def test_from_nothing_to_lists_for_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def recsys(*arguments: str) -> None:
        assert main([*arguments, "threads=1"]) == 0

    recsys("prepare", *MADE_UP, "dataset_dir=made", "run_dir=p")
    recsys("train", *SMALL, "dataset_dir=made", "run_dir=t")
    recsys("evaluate", "bundle=t/bundle", "k=[5]", "evaluation.num_bootstrap=10", "run_dir=e")
    recsys("index", "bundle=t/bundle", "index=hnsw", "run_dir=i")
    recsys("recommend", "bundle=i/bundle", "output=top.parquet", "k=3", "run_dir=r")
    recsys("neighbours", "bundle=i/bundle", "output=near.parquet", "k=2", "run_dir=n")
    recsys("baselines", "dataset_dir=made", "systems=[item_knn]", "evaluation.k=[5]", "run_dir=b")
    recalls = [
        json.loads((tmp_path / run / "report.json").read_text())["metrics"]["recall_at_5"]
        for run in ("t", "e")
    ]
    assert recalls[0] == recalls[1]
    assert len(pd.read_parquet(tmp_path / "top.parquet")) == 60 * 3
    assert len(pd.read_parquet(tmp_path / "near.parquet")) == 50 * 2
    assert (tmp_path / "b" / "baselines.json").is_file()
    assert "recall" in capsys.readouterr().out


@pytest.fixture
def server(trained: Any) -> Iterator[str]:
    """Serve a bundle; give the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = "import sys; from recsys.cli import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "serve", f"bundle={trained.bundle}", f"port={port}"],
        cwd=trained.folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        stderr=subprocess.PIPE,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert b"Traceback" not in err, err


def ask(address: str, body: dict[str, Any] | None = None) -> Any:
    """Ask over HTTP, as soon as somebody answers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json"})
    for _ in range(300):
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError(f"{address} does not answer")


def test_a_lookup_over_http_is_that_of_recommend(
    server: str, trained: Any, recommend_to: Any, tmp_path: Path
) -> None:
    assert ask(f"{server}/healthz")["status"] == "ok"
    lists = recommend_to(tmp_path / "top.parquet", trained.bundle, k=4)
    user = lists["user_id"].iloc[0]
    reply = ask(f"{server}/v1/recommend", {"users": [user], "k": 4})
    items = [item["item_id"] for item in reply["results"][0]["items"]]
    assert items == lists[lists["user_id"] == user]["item_id"].tolist()


@pytest.mark.usefixtures("logs_as_before")
def test_serve_listens_where_the_settings_say(
    trained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[tuple[str, int]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "recsys.serving.app.serve_app", lambda _, host, port, **__: served.append((host, port))
    )
    monkeypatch.delitem(sys.modules, "recsys.pipelines.serve", raising=False)
    assert main(["serve", f"bundle={trained.bundle}", "port=1234"]) == 0
    assert served == [("127.0.0.1", 1234)]
