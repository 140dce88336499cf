"""The process: Ctrl-C, threads, forks, and the command of the package."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import fedstein
import numpy as np
import pytest
from conftest import LIMIT, SMALL, Command

LONG = "rounds=100000, algorithm={'particles': 4, 'local_steps': 5}, model={'hidden': [8]}"


def test_ctrl_c_ends_a_run_at_a_rounds_end_with_a_checkpoint(script: Any) -> None:
    text = f"""
import os, sys, fedstein
def show(record): os.write(1, b"%d\\n" % record["round"])  # print can be interrupted before its newline
try:
    fedstein.train(out="run", progress=show, {LONG})
except KeyboardInterrupt as error:
    print(type(error).__name__, error.resume, error)
    sys.exit(7)
"""
    process = subprocess.Popen(script(text), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while process.stdout.readline() != "2\n":
        pass
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 7, rest
    last = rest.splitlines()[-1]
    found = re.fullmatch(
        r"Interrupted run interrupted after round (\d+) of 100000; the checkpoint of round \1 is complete; "
        r'resume with fedstein\.resume\("run"\)',
        last,
    )
    assert found, last
    done = int(found[1])
    resumed = fedstein.resume("run", progress=False, rounds=done + 2)
    whole = fedstein.train(out="whole", progress=False, **{**SMALL, "rounds": done + 2})
    assert np.array_equal(resumed.predictions, whole.predictions)


def test_python_threads_go_on_while_a_run_computes() -> None:
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.02):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    fedstein.train(progress=False, rounds=6)
    seconds = time.perf_counter() - start
    done.set()
    thread.join()
    # 50 a second without load; a run that held the lock would leave none.
    assert ticks > 10 * seconds, (ticks, seconds)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_refused_with_a_sentence(script: Any) -> None:
    text = """
import os, sys, fedstein
fedstein.report([0.5], [1])
if os.fork() == 0:
    try:
        fedstein.report([0.5], [1])
    except fedstein.RunFailed as error:
        print(error, flush=True)
        os._exit(0)
    os._exit(1)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    done = subprocess.run(script(text), capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0 and 'get_context("spawn")' in done.stdout, done


def test_the_command_is_the_whole_command(command: Command) -> None:
    assert command("--version").stdout == f"fedstein {fedstein.__version__}\n"
    assert "flex" in command("backends").stdout
    assert "unknown key `roundz`" in command("train", "--set", "roundz=1", code=2).stderr
    module = subprocess.run([sys.executable, "-m", "fedstein", "--version"], capture_output=True, text=True, check=True)
    assert module.stdout == f"fedstein {fedstein.__version__}\n"


def test_the_command_starts_itself_for_sites(command: Command) -> None:
    config = Path("config.toml")
    config.write_text("rounds = 2\npartition = { kind = 'iid', clients = 2 }\nmodel = { hidden = [8] }\n")
    command("site", "split", "config.toml", "--out", "rehearsal")
    command(
        "train",
        "rehearsal/run.toml",
        "--sites",
        "rehearsal/0/site.toml,rehearsal/1/site.toml",
        "--out",
        "sites",
        "--quiet",
    )
    assert Path("sites/particles.safetensors").exists()


def test_ctrl_c_ends_the_command_as_it_ends_the_binary(tmp_path: Path) -> None:
    args = [
        sys.executable,
        "-m",
        "fedstein",
        "train",
        "--json",
        "--set",
        "rounds=100000",
        "--out",
        os.fspath(tmp_path / "run"),
    ]
    process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 130 and "resume with: fedstein train --resume" in errors
    assert "Traceback" not in errors
