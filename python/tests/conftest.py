from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Command = Callable[..., "subprocess.CompletedProcess[str]"]

# Ends a process that hangs, in seconds. On a machine that does other work a process takes several times as long as
# alone, and each message of a federation over Flower is a process: a limit near the usual time would fail there.
LIMIT = 600.0


@pytest.fixture(autouse=True, scope="session")
def ctrl_c() -> None:
    """Ctrl-C interrupts also where the tests are a background job of a shell, which starts its jobs without it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a working directory of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command() -> Command:
    """The command `fedstein` of this package."""
    program = shutil.which("fedstein", path=sysconfig.get_path("scripts"))
    assert program is not None, "the package's command is not installed"

    def run(*args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([program, *args], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == code, done.stderr
        return done

    return run


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Sequence[str]]:
    """The arguments that run a text as a program of its own."""

    def write(text: str) -> Sequence[str]:
        path = tmp_path / "script.py"
        path.write_text(text)
        return [sys.executable, "-u", os.fspath(path)]

    return write


SMALL: dict[str, Any] = {
    "rounds": 3,
    "algorithm": {"particles": 4, "local_steps": 5},
    "model.hidden": [8],
}


def trees(rows: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, names of trees and names of sites."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [1, 10, 100] + [0, 5, 50]
    z = X[:, 0] + (X[:, 1] - 5) / 10 + rng.normal(scale=0.3, size=rows)
    y = np.array(["alder", "birch", "yew"])[np.digitize(z, [-0.7, 0.7])]
    return X, y, np.array(["north", "east", "south"])[rng.integers(0, 3, rows)]


Predictions = tuple[NDArray[np.float64], NDArray[np.int64]]


def drawn(rows: int, classes: int, seed: int = 0) -> Predictions:
    """Predictions that know something, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, rows)
    logits = rng.normal(size=(rows, classes)) + 1.5 * np.eye(classes)[labels]
    weights = np.exp(logits)
    return weights / weights.sum(axis=1, keepdims=True), labels


@pytest.fixture
def predictions() -> Predictions:
    return drawn(500, 4)
