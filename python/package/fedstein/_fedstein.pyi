"""The compiled part. Its functions take numpy arrays of the types named here; use those of `fedstein`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "__version__",
    "MOST_CLASSES",
    "ConfigError",
    "DataError",
    "RunFailed",
    "Interrupted",
    "RawRows",
    "Rows",
    "Finished",
    "Scored",
    "Plan",
    "main",
    "length",
    "train",
    "answer",
    "ask_site",
    "decline",
    "serve",
    "site_answers",
    "split",
    "takes_report",
    "bins",
    "brier",
    "brier_parts",
    "classwise_ece",
    "coverage",
    "crps",
    "nll",
    "pit",
]

__version__: str
MOST_CLASSES: int

_Floats = NDArray[np.float64] | NDArray[np.float32]
_Groups = tuple[Sequence[str], NDArray[np.int64]]

class ConfigError(ValueError):
    """A key, a value or a file that cannot be used; nothing was run."""

class DataError(ValueError):
    """Rows or predictions that cannot be used; nothing was run."""

class RunFailed(RuntimeError):
    """A run that began and could not be completed."""

class Interrupted(KeyboardInterrupt):
    """A run that Ctrl-C ended at a round's end."""

    resume: Path | None

@final
class RawRows:
    def __new__(
        cls,
        name: str,
        features: _Floats,
        shape: Sequence[int],
        feature_names: Sequence[str] | None,
        labels: tuple[NDArray[np.int64], Sequence[str]] | None,
        values: NDArray[np.float64] | None,
        clients: tuple[NDArray[np.int64], Sequence[str] | None] | None,
        groups: NDArray[np.int64] | None,
    ) -> RawRows: ...

@final
class Rows:
    @staticmethod
    def of(train: RawRows, test: RawRows, normalise: str) -> Rows: ...
    @staticmethod
    def split(rows: RawRows, fraction: float, seed: int, normalise: str) -> Rows: ...
    def counts(self) -> tuple[int, int]: ...

@final
class Plan:
    def __new__(
        cls, source: tuple[str, str] | None, set: Sequence[str], data: Rows | None, resumes: bool = False
    ) -> Plan: ...
    def to_toml(self) -> str: ...
    def name(self) -> str: ...
    def notes(self) -> list[str]: ...

@final
class Finished:
    def __new__(cls, path: Path) -> Finished: ...
    def config_toml(self) -> str: ...
    def name(self) -> str: ...
    def classes(self) -> list[str] | None: ...
    def clients(self) -> list[str] | None: ...
    def feature_names(self) -> list[str] | None: ...
    def cell_columns(self) -> tuple[list[str] | None, list[list[str]]] | None: ...
    def cells(self, file: Path) -> tuple[NDArray[np.float32], list[str]]: ...
    def evaluation(self) -> str: ...
    def predictions(self) -> dict[str, NDArray[Any]]: ...
    def particles(self) -> dict[str, NDArray[Any]]: ...
    def predict(
        self, features: _Floats, with_members: bool, raw: bool, level: float | None, sets: bool
    ) -> tuple[dict[str, NDArray[np.float64]], list[str]]: ...
    def report(
        self, out: Path, bins: int | None, title: str | None, compare: Sequence[Path], other_rows: bool
    ) -> Path | None: ...

@final
class Scored:
    @staticmethod
    def classes(
        probabilities: _Floats,
        labels: NDArray[np.int64],
        bins: int,
        title: str,
        names: Sequence[str] | None,
        groups: _Groups | None,
        clusters: NDArray[np.int64] | None,
    ) -> Scored: ...
    @staticmethod
    def real(
        mean: _Floats,
        sd: _Floats,
        targets: _Floats,
        bins: int,
        title: str,
        groups: _Groups | None,
        clusters: NDArray[np.int64] | None,
    ) -> Scored: ...
    def overall(self) -> str: ...
    def groups(self) -> str: ...
    def render(self) -> tuple[str, str]: ...
    def save(self, directory: Path) -> Path: ...

def main(args: Sequence[str], program: Path | None) -> int: ...
def length(rows: int, clients: int, algorithm: str, personal: bool) -> tuple[int, float | None, int | None]: ...
def train(
    plan: Plan,
    data: Rows | None,
    data_dir: Path,
    out: Path,
    force: bool,
    resume: bool,
    temporary: Path | None,
    bar: bool,
    tell: Callable[[str, Any, str], object],
) -> None: ...

# The envelope, the numbers, and the names and .npy bytes of the arrays.
_Carried = tuple[dict[str, int | str], dict[str, float], list[tuple[str, bytes]]]
# Arrays have a type and a shape as well; and the kind and the round of a request.
_Outgoing = tuple[dict[str, int | str], dict[str, float], list[tuple[str, str, list[int], bytes]], str, int]

class _Network(Protocol):
    def send(self, messages: list[tuple[int, _Outgoing]], /) -> None: ...
    def receive(self) -> list[tuple[int, _Carried | None, str]]: ...

def answer(file: Path, index: int | None, message: _Carried) -> _Outgoing: ...
def ask_site() -> _Outgoing: ...
def decline(message: _Carried, reason: str) -> _Outgoing: ...
def serve(
    plan: Plan,
    names: Sequence[str],
    out: Path,
    force: bool,
    resume: bool,
    network: _Network,
    tell: Callable[[str, Any, str], None],
) -> None: ...
def site_answers(answer: _Carried) -> tuple[int, str]: ...
def split(plan: Plan, data_dir: Path, out: Path) -> tuple[list[Path], list[str]]: ...
def bins(
    probabilities: _Floats, labels: NDArray[np.int64], bins: int, binning: str
) -> tuple[
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.int64],
    NDArray[np.float64],
    NDArray[np.float64],
    tuple[float, float, float],
]: ...
def brier(probabilities: _Floats, labels: NDArray[np.int64]) -> float: ...
def brier_parts(
    probabilities: _Floats, labels: NDArray[np.int64], bins: int
) -> tuple[float, float, float, float, float]: ...
def classwise_ece(probabilities: _Floats, labels: NDArray[np.int64], bins: int) -> NDArray[np.float64]: ...
def coverage(
    mean: _Floats, sd: _Floats, targets: _Floats, levels: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def crps(mean: _Floats, sd: _Floats, targets: _Floats) -> float: ...
def takes_report(directory: Path) -> bool: ...
def nll(probabilities: _Floats, labels: NDArray[np.int64]) -> float: ...
def pit(mean: _Floats, sd: _Floats, targets: _Floats) -> NDArray[np.float64]: ...
