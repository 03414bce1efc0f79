"""The tracker that keeps nothing."""

from pathlib import Path

from recsys.tracking import Tracker, null_tracker


def test_the_null_tracker_takes_every_call_and_writes_nothing(tmp_path: Path) -> None:
    tracker: Tracker = null_tracker()
    with tracker as entered:
        assert entered is tracker
        tracker.log_settings({"a": 1}, {"a": 1})
        tracker.log_metrics({"recall@10": float("nan")}, step=0)
        tracker.log_artifact(tmp_path / "missing")
        tracker.log_dataset("name", "f" * 64, "source")
        tracker.set_tags({"a": "b"})
    assert tracker.run_id is None
    assert tracker.url is None
    assert list(tmp_path.iterdir()) == []
