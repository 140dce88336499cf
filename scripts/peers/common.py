"""What the comparisons of this folder share: runs of fedstein, the rows of its clients, processor seconds."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = ROOT / "docs" / "results" / "beyond" / "peers"
SEEDS = (1, 2, 3)
# One thread a process, as the docs state.
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}


def settings(keys: Mapping[str, Any]) -> list[str]:
    return [part for name, value in keys.items() for part in ("--set", f"{name}={value}")]


def seconds_of(line: Sequence[str]) -> float:
    """Runs a command; its processor seconds, user and system."""
    child = subprocess.Popen(line, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"exit code {child.returncode}: {' '.join(line)}")
    return usage.ru_utime + usage.ru_stime


def train(fedstein: str, config: Path, keys: Mapping[str, Any], out: Path) -> float:
    """One run of fedstein, or what is left of one that was made before; its processor seconds."""
    kept = out / "cpu.json"
    if not kept.exists():
        shutil.rmtree(out, ignore_errors=True)
        line = [fedstein, "train", str(config), "--quiet", "--out", str(out), *settings(keys)]
        used = seconds_of(line)
        kept.write_text(json.dumps({"cpu_seconds": used, "load": os.getloadavg()[0]}))
    return json.loads(kept.read_text())["cpu_seconds"]


def pfllib(keys: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """One run of PFLlib, or the result of one that was made before."""
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        asked = out.with_suffix(".keys.json")
        asked.write_text(json.dumps(dict(keys)))
        seconds_of([sys.executable, str(Path(__file__).with_name("pfllib_run.py")), str(asked), str(out)])
    return json.loads(out.read_text())


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def evaluated(run: Path) -> list[dict[str, str]]:
    """The rows of a run's rounds.csv that have scores."""
    return [row for row in rows_of(run / "rounds.csv") if row["nll"]]


def site_table(path: Path) -> np.ndarray:
    """A file of `fedstein site split`: target, features."""
    with path.open() as file:
        assert file.readline().startswith("target,")
        return np.loadtxt(file, delimiter=",", dtype=np.float32)


def split(fedstein: str, config: Path, keys: Mapping[str, Any], out: Path) -> None:
    """The clients' rows as files of sites."""
    shutil.rmtree(out, ignore_errors=True)
    line = [fedstein, "site", "split", str(config), *settings(keys), "--out", str(out)]
    subprocess.run(line, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)


def save(path: Path, table: np.ndarray) -> None:
    """Rows in PFLlib's form."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {"x": np.ascontiguousarray(table[:, 1:]), "y": table[:, 0].astype(np.int64)}
    with path.open("wb") as file:
        np.savez(file, data=data)


def mnist_test() -> np.ndarray:
    """The publisher's 10,000 test rows: target, pixels over 255."""
    folder = Path(os.environ["FEDSTEIN_DATA"]) / "mnist"

    def numbers(name: str, skipped: int) -> np.ndarray:
        path = folder / name
        opened = gzip.open(folder / f"{name}.gz") if not path.exists() else path.open("rb")
        with opened as file:
            return np.frombuffer(file.read(), dtype=np.uint8, offset=skipped)

    pixels = numbers("t10k-images-idx3-ubyte", 16).reshape(-1, 784).astype(np.float32) / np.float32(255)
    return np.column_stack([numbers("t10k-labels-idx1-ubyte", 8).astype(np.float32), pixels])


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / len(values) ** 0.5)
