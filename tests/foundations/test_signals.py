"""Signals in processes of their own: the status, what clean-up still does, what is printed."""

import signal
import subprocess
import sys

import pytest

HEAD = """
import os, signal, time, weakref
from recsys.foundations import unwinding_on_signals

def tell(number=signal.SIGTERM):
    os.kill(os.getpid(), number)
    for _ in range(1000):  # Python looks for signals here
        pass

class Thing:
    pass
"""
IN_DESTRUCTOR = """
Thing.__del__ = lambda self: tell()
with unwinding_on_signals():
    thing = Thing()
    del thing
    time.sleep(30)
    print("ran on")
"""
IN_CALLBACK = """
with unwinding_on_signals():
    thing = Thing()
    reference = weakref.ref(thing, lambda _: tell())
    del thing
    time.sleep(30)
    print("ran on")
"""
SWALLOWED = """
with unwinding_on_signals():
    try:
        tell()
    except BaseException:
        print("swallowed")
    tell()
    print("ran on")
"""
IN_CLEAN_UP = """
def clean_up():
    tell()
    try:
        raise KeyError
    except KeyError:
        tell(signal.SIGHUP)
    print("cleaned")

def generate():
    try:
        yield
    finally:
        tell()
        print("closed")

import contextlib
with unwinding_on_signals(), contextlib.contextmanager(generate)():
    try:
        tell()
    finally:
        clean_up()
"""
LOST_IN_CLEAN_UP = """
Thing.__del__ = lambda self: tell()
with unwinding_on_signals():
    try:
        (Thing(), tell())  # the thing goes as the exit passes, before `finally` begins
    finally:
        time.sleep(0.3)
        print("cleaned")
"""
AFTERWARDS = """
import sys
before = sys.unraisablehook
with unwinding_on_signals():
    assert sys.unraisablehook is not before
assert sys.unraisablehook is before
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
tell()
"""
OTHER_ERROR = """
def fail(self):
    raise ValueError("of a destructor")
Thing.__del__ = fail
with unwinding_on_signals():
    Thing()
print("ran on")
"""


def run(script: str) -> tuple[int, str, str]:
    """Run a script; give its status and what it wrote."""
    command = [sys.executable, "-c", HEAD + script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("script", [IN_DESTRUCTOR, IN_CALLBACK])
def test_a_signal_whose_exit_python_drops_ends_the_process_all_the_same(script: str) -> None:
    assert run(script) == (143, "", "")


def test_a_second_signal_acts_where_the_first_ones_exit_was_swallowed() -> None:
    assert run(SWALLOWED) == (143, "swallowed\n", "")


def test_further_signals_do_not_cut_the_clean_up_short() -> None:
    assert run(IN_CLEAN_UP) == (143, "cleaned\nclosed\n", "")


def test_one_that_is_lost_while_the_first_unwinds_does_not_come_back() -> None:
    assert run(LOST_IN_CLEAN_UP) == (143, "cleaned\n", "")


def test_a_signal_ends_the_process_at_once_once_the_block_has_ended() -> None:
    assert run(AFTERWARDS) == (-signal.SIGTERM, "", "")


def test_other_errors_of_destructors_are_told_as_ever() -> None:
    status, out, err = run(OTHER_ERROR)
    assert (status, out) == (0, "ran on\n")
    assert "ValueError: of a destructor" in err
