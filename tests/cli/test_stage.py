"""What a stage tells the shell: one line and a status, whatever goes wrong."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DRIVER = """
import contextlib, io, json, os, sys
import app
results = []
for overrides in json.load(sys.stdin):
    with contextlib.suppress(FileNotFoundError):
        os.remove("data_was_read")
    sys.argv = ["recsys train", *overrides]
    err, out, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
        try:
            app.main()
        except SystemExit as leaving:
            status = leaving.code
    read = os.path.exists("data_was_read")
    results.append([status, err.getvalue(), out.getvalue(), read])
json.dump(results, sys.stdout)
"""

REFUSED = {
    # a misspelt key, a missing prefix, a key of another choice
    "data=x sed=1": "sed is not a setting; did you mean seed?",
    "data=x loss.temprature=1": (
        "loss.temprature is not a setting; did you mean loss.temperature?"
    ),
    "data=x temperature=1": "temperature is not a setting; did you mean loss.temperature?",
    "data=x los=full": "los is not a setting; did you mean loss?",
    "data=x loss=full loss.num_sampled=2": (
        "loss.num_sampled is not a setting of this choice; it belongs to loss=sampled."
    ),
    "data=x loss=full loss.zzz=2": "loss.zzz is not a setting; loss has temperature.",
    "data=x hydra.sweep.dirr=1": "hydra.sweep.dirr is not a setting; hydra.sweep has dir, subdir.",
    "data=x +seed=2": "seed is a setting already: write seed=VALUE, without '+'.",
    # a wrong type
    "data=x loss.temperature=abc": "loss.temperature must be a number, got 'abc'.",
    "data=x seed=1.5": "seed must be an integer, got 1.5.",
    "data=x seed=": "seed must be an integer, got ''.",
    "data=x k=1": "k must be a list, got 1: write k=[1].",
    "data=x k=[1,a]": "k[1] must be an integer, got 'a'.",
    "data=x hydra.job.chdir=maybe": "hydra.job.chdir must be true or false, got 'maybe'.",
    "data=x hydra.job.chdir=1.5": "hydra.job.chdir must be true or false, got 1.5.",
    # a choice that is none
    "data=x loss=smpled": (
        "loss=smpled is not a choice; did you mean sampled? There are full, sampled."
    ),
    "data=x seed=1 loss=1": (
        "a group takes the name of one of its choices, got loss=1. "
        "Config group override must be a string or a list. Got int."
    ),
    "data=x --config-name=zzz": "--config-name: there are no settings of the name 'zzz'.",
    # grammar
    "data=/d/epoch=1.ckpt": (
        "data: the value '/d/epoch=1.ckpt' holds characters that need quotes: "
        "write 'data=\"/d/epoch=1.ckpt\"', with both kinds."
    ),
    "data=ünï": (
        "data: the value 'ünï' holds characters that need quotes: "
        "write 'data=\"ünï\"', with both kinds."
    ),
    "data=a,b": (
        "data: 'a,b' holds a comma: write data=[a,b] for a list, 'data=\"a,b\"' for a text, "
        "or add --multirun to run a job for each."
    ),
    "data": "'data' is not a setting: write NAME=VALUE.",
    "ü=1": "'ü' is not the name of a setting, in 'ü=1'.",
    "--seed 3": (
        "unrecognized arguments: --seed; settings are written NAME=VALUE, without dashes."
    ),
    "data=x --resolve": "The --resolve flag can only be used in conjunction with --cfg or --help.",
    # the user's own files
    "data=x --config-dir=nowhere": "--config-dir: the folder {here}/nowhere does not exist.",
    "data=x hydra.searchpath=[file:///nowhere]": "hydra.searchpath: /nowhere does not exist.",
    "data=x --config-dir=mine loss=misspelt": (
        "loss.tempature is not a setting; did you mean loss.temperature?"
    ),
    "data=x --config-dir=mine loss=mistyped": "loss.temperature must be a number, got 'abc'.",
    "data=x --config-dir=mine loss=deep": "In 'loss/deep': Could not load 'loss/nope'.",
    "data=x --config-dir=mine loss=folder/on": (
        "loss=folder/on is not a choice; did you mean folder/one? In folder/ there are one."
    ),
    "data=x --config-dir=mine loss=[good,bad]": (
        "loss=bad is not a choice. There are broken, deep, full, good, latin, misspelt, mistyped, "
        "sampled, folder/NAME."
    ),
    "data=x --config-dir=mine loss=latin": (
        "a settings file is not UTF-8 text: invalid start byte at byte 0."
    ),
    # a sweep, of which one job would be refused: none starts
    "data=x --multirun seed=1,x": "seed must be an integer, got 'x'.",
    # the machine
    "data=x run_dir=app.py": "File exists: app.py.",
}


def write_settings_of_the_user(folder: Path) -> None:
    loss = folder / "mine" / "loss"
    (loss / "folder").mkdir(parents=True)
    (loss / "folder" / "one.yaml").write_text("defaults: [sampled_schema]\n")
    (loss / "misspelt.yaml").write_text("defaults: [sampled_schema]\ntempature: 1\n")
    (loss / "mistyped.yaml").write_text("defaults: [sampled_schema]\ntemperature: abc\n")
    (loss / "deep.yaml").write_text("defaults: [nope]\n")
    (loss / "broken.yaml").write_text("a: [1\nb: 2\n")
    (loss / "latin.yaml").write_bytes(b"\xfc: 1\n")
    (loss / "good.yaml").write_text("defaults: [sampled_schema]\ntemperature: 2\nnum_sampled: 3\n")


def run_all(folder: Path, all_overrides: list[list[str]]) -> list[Any]:
    driver = subprocess.run(
        [sys.executable, "-c", DRIVER],
        cwd=folder,
        input=json.dumps(all_overrides),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    results: list[Any] = json.loads(driver.stdout)
    return results


def test_refused_settings_are_one_line_and_status_2_before_any_data_is_read(folder: Path) -> None:
    write_settings_of_the_user(folder)
    results = run_all(folder, [text.split() for text in REFUSED])
    for (text, words), result in zip(REFUSED.items(), results, strict=True):
        line = f"recsys: error: {words.format(here=folder)}\n"
        assert (text, result) == (text, [2, line, "", False])


def test_a_broken_settings_file_is_named(folder: Path) -> None:
    write_settings_of_the_user(folder)
    overrides = [["data=x", "--config-dir=mine", "loss=broken"]]
    [(status, err, _, read)] = run_all(folder, overrides)
    assert (status, read, err.count("\n")) == (2, False, 1)
    assert f'not a YAML file: while parsing a flow sequence in "{folder}/mine/loss/broken' in err


def test_quoted_values_and_settings_of_the_user_are_taken(folder: Path) -> None:
    write_settings_of_the_user(folder)
    runs = [
        ['data="/d/epoch=1,2 ünï.ckpt"'],
        ["data=x", "--config-dir=mine", "loss=good", "--cfg", "job"],
        ["data=a b"],
    ]
    quoted, printed, blank = run_all(folder, runs)
    assert quoted[0] == printed[0] == blank[0] == 0
    assert "temperature: 2" in printed[2]
    assert printed[3] is False
    assert (folder / "out" / "result").read_text() == "a b"


@pytest.mark.parametrize(
    ("fail", "words"),
    [
        ("data", "log.csv: two lines."),
        ("memory", "out of memory; ask for smaller batches or blocks. Unable to allocate 9 TiB"),
        (
            "torch memory",
            "out of memory; ask for smaller batches or blocks. "
            "CPUAllocator: can't allocate memory: x",
        ),
        (
            "torch size",
            "out of memory; ask for smaller batches or blocks. "
            "Storage size calculation overflowed: x",
        ),
        (
            "numpy size",
            "out of memory; ask for smaller batches or blocks. array is too big; x",
        ),
        ("disk", "No space left on device: /full/file."),
    ],
)
def test_what_the_user_can_mend_is_one_line_and_status_2(
    folder: Path, fail: str, words: str
) -> None:
    [(status, err, _, _)] = run_all(folder, [["data=x", f"fail={fail}"]])
    assert (status, err) == (2, f"a line of ours\nrecsys: error: {words}\n")


def test_a_missing_value_is_named(folder: Path) -> None:
    [(status, err, _, read)] = run_all(folder, [[]])
    assert (status, read) == (2, False)
    assert err == "recsys: error: data must be given: data=VALUE.\n"
    assert not (folder / "out").exists()


def test_a_fault_of_ours_is_a_traceback_and_status_1(folder: Path) -> None:
    [(status, err, _, _)] = run_all(folder, [["data=x", "fail=ours"]])
    assert status == 1
    assert "Traceback" in err
    assert err.endswith("RuntimeError: a fault of ours\n")


@pytest.mark.parametrize("variable", ["RECSYS_TRACEBACK", "HYDRA_FULL_ERROR"])
def test_a_traceback_is_shown_to_who_asks(
    folder: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    task, settings = run_all(folder, [["data=x", "fail=data"], ["data=x", "sed=1"]])
    assert (task[0], settings[0]) == (2, 2)
    assert "Traceback" in task[1]
    assert "Traceback" in settings[1]
    assert settings[1].endswith("recsys: error: sed is not a setting; did you mean seed?\n")


def test_a_job_of_a_sweep_that_fails_is_named_and_the_others_run(folder: Path) -> None:
    overrides = ["data=x", "fail=seed", "--multirun", "seed=0,1,2"]
    [(status, err, _, _)] = run_all(folder, [overrides])
    line = "recsys: error: job 1 (data=x fail=seed seed=1): seed 1 is unlucky.\n"
    assert (status, err) == (2, "a line of ours\n" * 2 + line + "a line of ours\n")
    assert (folder / "out" / "2" / "result").is_file()


def test_the_help_lists_the_choices_and_no_schema(folder: Path) -> None:
    [(status, _, out, read)] = run_all(folder, [["data=x", "--help"]])
    assert (status, read) == (0, False)
    assert "loss: full, sampled\n" in out
    assert "_schema" not in out


def test_a_job_knows_its_places_whatever_the_working_folder(folder: Path) -> None:
    overrides = ["data=1e5", "fail=where", "hydra.job.chdir=true"]
    in_sweep = ["data=x", *overrides[1:], "--multirun"]
    single, sweep = run_all(folder, [overrides, in_sweep])
    assert single[2].split() == [f"{folder}/out", str(folder), "None", "1e5", f"{folder}/out"]
    last = sweep[2].splitlines()[-1].split()
    assert last == [f"{folder}/out/0", str(folder), "out", "x", f"{folder}/out/0"]


def test_a_good_run_ends_with_0_and_keeps_its_log(run: Any, folder: Path) -> None:
    done = run("data=x")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "a line of ours\n")
    assert "a line of ours" in (folder / "out" / "app.log").read_text()


@pytest.mark.parametrize(
    ("number", "status", "last"),
    [(signal.SIGTERM, 143, ""), (signal.SIGINT, 130, "recsys: interrupted\n")],
)
def test_a_signal_unwinds_the_stage(start: Any, number: int, status: int, last: str) -> None:
    process = start("data=x", "fail=sleep")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (status, "closed\n", "a line of ours\n" + last)
