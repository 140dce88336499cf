"""Ctrl-C in the middle of what takes long. Each test is a process of its own, which sends itself the signal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import LIMIT

Script = Callable[[str], Sequence[str]]

# Runs that take long, `interrupted`, which says how long a call goes on after Ctrl-C, and `ended`, which waits for the
# threads of runs.
HEAD = """
import json, os, shutil, signal, sys, tempfile, threading, time
from pathlib import Path
import numpy as np
import fedstein

SMALL = {"algorithm": {"particles": 4, "local_steps": 5}, "model.hidden": [8]}
SLOW = {"rounds": 100000, "algorithm": {"particles": 20, "local_steps": 3000}, "model.hidden": [50]}

sent = []

def send():
    sent.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)

def ctrl_c(*after):
    for seconds in after:
        timer = threading.Timer(seconds, send)
        timer.daemon = True
        timer.start()

def interrupted(call, after=0.5):
    ctrl_c(after)
    try:
        call()
    except KeyboardInterrupt as error:
        # The processor's time, for a busy machine.
        seconds = time.process_time() - sent[-1]
        assert seconds < 1.5, f"{seconds:.1f} s after Ctrl-C"
        return error
    raise AssertionError("not interrupted")

def ended():
    def names():
        for task in Path("/proc/self/task").iterdir():
            try:
                yield (task / "comm").read_text().strip()
            except OSError:
                pass
    while "fedstein" in names():
        time.sleep(0.05)
"""


def run(script: Script, text: str, tmp: Path, **environment: str) -> None:
    """Runs a program whose temporary files are in a directory of their own."""
    tmp.mkdir()
    done = subprocess.run(
        script(HEAD + text),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env={**os.environ, "TMPDIR": os.fspath(tmp), **environment},
    )
    assert done.returncode == 0 and "FATAL" not in done.stderr, done.stdout + done.stderr


def test_what_waits_for_a_thread_of_the_pool_is_interrupted(script: Script, tmp_path: Path) -> None:
    text = """
run = fedstein.train(rounds=1, out="first", progress=False, **SMALL)
X = np.ones((5, 64))
rounds, enough = threading.Semaphore(0), threading.Event()
def until_enough(record):
    rounds.release()
    if enough.is_set():
        raise ZeroDivisionError
def other():
    try:
        fedstein.train(out="other", progress=until_enough, rounds=100000, **SMALL)
    except ZeroDivisionError:
        pass
thread = threading.Thread(target=other)
thread.start()
rounds.acquire()
try:
    assert type(interrupted(lambda: run.predict(X))) is KeyboardInterrupt
    error = interrupted(lambda: fedstein.train(out="second", progress=False, rounds=3, **SMALL))
    assert type(error) is fedstein.Interrupted and error.resume is None, repr(error)
    interrupted(lambda: fedstein.train(progress=False, rounds=3, **SMALL))
    # What needs no thread of the pool does not wait.
    assert run.report().accuracy == run.evaluation["accuracy"]
finally:
    enough.set()
    thread.join()
ended()
assert not Path("second").exists() and not any(Path(tempfile.gettempdir()).iterdir())
assert run.predict(X).shape == (5, 10)
"""
    run(script, text, tmp_path / "tmp", RAYON_NUM_THREADS="1")


def test_a_report_on_arrays_is_interrupted_and_made_later(script: Script, tmp_path: Path) -> None:
    text = """
rng = np.random.default_rng(0)
p = rng.dirichlet(np.ones(5), 400_000)
labels = rng.integers(0, 5, len(p))
report = fedstein.report(p, labels)
assert type(interrupted(lambda: report.html)) is KeyboardInterrupt
interrupted(lambda: report.save("out"))
assert not Path("out").exists()
small = fedstein.report(p[:1000], labels[:1000])
small.save("small")
assert Path("small/report.html").is_file()
# The computation of the large one still goes on, and the interpreter ends.
interrupted(lambda: report.html)
"""
    run(script, text, tmp_path / "tmp")


def test_what_is_called_at_the_interpreters_end_is_computed(script: Script) -> None:
    text = """
import atexit, numpy as np
def late():
    report = fedstein.report([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    report.save("late")
    print(fedstein.calibration.ece(np.array([[0.75, 0.25]]), [0]))
# Registered first, it is called last.
atexit.register(late)
import fedstein
"""
    done = subprocess.run(script(text), capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0 and done.stdout == "0.25\n", done
    assert Path("late/report.html").is_file()


def test_the_report_of_a_run_is_interrupted_without_files(script: Script, tmp_path: Path) -> None:
    text = """
run = fedstein.train(rounds=1, out="run", progress=False, **SMALL)
shutil.rmtree("run/report")
files = [Path("run/predictions.csv"), Path("run/uncertainty.csv")]
texts = [file.read_text().splitlines(True) for file in files]
def with_rows(times):
    for file, (header, *lines) in zip(files, texts):
        file.write_text(header + "".join(lines * times))
    summary = json.loads(Path("run/summary.json").read_text())
    summary["evaluation"]["rows"] = len(lines) * times
    Path("run/summary.json").write_text(json.dumps(summary))
with_rows(800)
run = fedstein.open("run")
interrupted(lambda: run.report("run/report"))
interrupted(lambda: run.report().html)
time.sleep(0.2)
assert not Path("run/report").exists() and not any(Path(tempfile.gettempdir()).iterdir())
with_rows(1)
fedstein.open("run").report("run/report")
assert Path("run/report/MODEL_CARD.md").is_file()
"""
    run(script, text, tmp_path / "tmp")


@pytest.mark.skipif(sys.platform != "linux", reason="it finds threads in /proc")
@pytest.mark.parametrize("out", ["None", "'run'"])
def test_after_a_second_ctrl_c_nothing_is_written(script: Script, tmp_path: Path, out: str) -> None:
    text = f"""
out = {out}
# The first is in the second round, and so is the second.
def first(record):
    ctrl_c(0.2, 0.5)
try:
    fedstein.train(out=out, progress=first, **SLOW)
except KeyboardInterrupt as error:
    assert type(error) is KeyboardInterrupt, repr(error)
else:
    raise AssertionError("not interrupted")
if out is not None:
    before = sorted(Path("run/checkpoint").iterdir()) if Path("run/checkpoint").exists() else []
    shutil.rmtree("run")
assert not any(Path(tempfile.gettempdir()).iterdir())
ended()
assert not Path("run").exists() and not any(Path(tempfile.gettempdir()).iterdir())
# The thread is free again.
fedstein.train(rounds=1, progress=False, **SMALL)
"""
    run(script, text, tmp_path / "tmp")


def test_after_ctrl_c_a_line_says_that_the_round_goes_on(script: Script, tmp_path: Path) -> None:
    text = """
import contextlib, io
shown = io.StringIO()
ctrl_c(0.5, 1.0)
with contextlib.redirect_stderr(shown):
    try:
        fedstein.train(out="run", **SLOW)
    except KeyboardInterrupt:
        pass
lines = shown.getvalue().splitlines()
assert lines[-1] == "stopping after this round; a second Ctrl-C does not wait for its end, and loses it", lines
"""
    run(script, text, tmp_path / "tmp")


@pytest.mark.skipif(sys.platform != "linux", reason="it finds threads in /proc")
def test_after_a_second_ctrl_c_the_bar_is_not_drawn(script: Script) -> None:
    text = """
ctrl_c(1.0, 1.5)
try:
    fedstein.train(out="run", **SLOW)
except KeyboardInterrupt:
    print("raised", flush=True)
ended()
print("ended", flush=True)
"""
    ours, theirs = os.openpty()
    process = subprocess.Popen(script(HEAD + text), stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # The other end is closed.
            break
    os.close(ours)
    assert process.wait(timeout=LIMIT) == 0, shown
    before, after = shown.split(b"raised\r\n")
    assert b"round 1/100000" in before and after == b"ended\r\n", shown


def test_ctrl_c_twice_before_the_first_round_leaves_nothing(script: Script, tmp_path: Path) -> None:
    text = """
ctrl_c(0.3, 0.6)
try:
    fedstein.train(out="run", progress=False, **SLOW)
except KeyboardInterrupt as error:
    assert type(error) is KeyboardInterrupt, repr(error)
else:
    raise AssertionError("not interrupted")
ended()
assert not Path("run").exists()
"""
    run(script, text, tmp_path / "tmp")


@pytest.mark.skipif(sys.platform != "linux", reason="it finds threads in /proc")
def test_a_fit_that_keeps_no_checkpoint_does_not_wait_for_its_rounds_end(script: Script, tmp_path: Path) -> None:
    text = """
from fedstein.sklearn import FedsteinClassifier
X, y = np.random.default_rng(0).normal(size=(400, 5)), np.arange(400) % 2
def slow(rounds, **config):
    return FedsteinClassifier(rounds=rounds, config={"algorithm.local_steps": 10_000, **config}, random_state=0)
model = slow(1)
error = interrupted(lambda: model.fit(X, y), after=1.0)
assert type(error) is fedstein.Interrupted and error.resume is None, repr(error)
assert str(error) == "interrupted; with checkpoint.enabled = false there is no checkpoint to resume from", error
assert not hasattr(model, "run_") and not any(Path(tempfile.gettempdir()).iterdir())
ended()
assert not any(Path(tempfile.gettempdir()).iterdir())
# With checkpoints it ends at its round's end, and there is one.
ctrl_c(0.3)
try:
    slow(1000, **{"checkpoint.enabled": True, "algorithm.local_steps": 2000}).fit(X, y)
except fedstein.Interrupted as error:
    assert (error.resume / "checkpoint").is_dir(), error
    shutil.rmtree(error.resume)
else:
    raise AssertionError("not interrupted")
"""
    run(script, text, tmp_path / "tmp")
