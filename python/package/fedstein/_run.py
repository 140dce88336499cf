"""Runs: training, and what it leaves."""

from __future__ import annotations

import csv
import hashlib
import importlib
import json
import logging
import math
import os
import re
import shutil
import sys
import tempfile
import tomllib
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from . import _fedstein
from ._arrays import LONE, FloatArray, StrPath, as_bins, as_flag, as_level, as_path, as_text, counted, is_unicode
from ._cells import features_of_cells
from ._data import Data, RunWarning, features_of, in_order_of
from ._fedstein import ConfigError, DataError, Finished, Interrupted, Plan
from ._report import Report

__all__ = ["Rounds", "Run", "RunWarning", "compare", "open", "resume", "train"]

Progress = bool | Callable[[dict[str, Any]], object]

logger = logging.getLogger("fedstein")


class Rounds(dict[str, NDArray[Any]]):
    """The columns of `rounds.csv`, each [rounds]. A metric is NaN in a round without evaluation."""

    def to_pandas(self) -> Any:
        """The same as a `pandas.DataFrame`, one line for each round."""
        return importlib.import_module("pandas").DataFrame(dict(self))


class _Content:
    """The content of a file at the time when this was made."""

    def __init__(self, file: Path) -> None:
        self._file, self._state, self._digest = file, _state(file), _digest(file)

    def is_there(self) -> bool:
        """Whether the file still has it."""
        state = _state(self._file)
        if state is not None and state == self._state:
            return True
        # A copy of the directory in its place, for example from a backup, is the same run.
        if self._digest is None or _digest(self._file) != self._digest:
            return False
        self._state = state
        return True


def _state(file: Path) -> tuple[int, ...] | None:
    """What changes when a file is written; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _digest(file: Path) -> bytes | None:
    """The digest of a file's content; None where it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).digest()
    except OSError:
        return None


class _RunSource:
    """The report of a finished run, which keeps the files of temporary runs as long as it is there."""

    def __init__(
        self, run: Run, bins: int | None, title: str | None, compare: list[Run | Path], other_rows: bool
    ) -> None:
        self._run, self._others = run, compare
        others = [other.path if isinstance(other, Run) else other for other in compare]
        self._options = (bins, title, others, other_rows)

    @cached_property
    def _files(self) -> tuple[str, str]:
        with tempfile.TemporaryDirectory(prefix="fedstein-") as directory:
            self.save(Path(directory))
            texts = [Path(directory, name).read_text(encoding="utf-8") for name in ("report.json", "report.html")]
        return texts[0], texts[1]

    def names(self) -> list[str]:
        """The names of the runs, the report's own first."""
        others = (other if isinstance(other, Run) else Run(other) for other in self._others)
        return [self._run.name, *(other.name for other in others)]

    def overall(self) -> str:
        return json.dumps(json.loads(self._files[0])["overall"])

    def groups(self) -> str:
        return "{}"

    def render(self) -> tuple[str, str]:
        return self._files

    def save(self, directory: Path) -> Path:
        for run in (self._run, *self._others):
            if isinstance(run, Run):
                run._same()
        page = self._run._finished.report(directory, *self._options)
        if page is None:
            raise DataError("there is nothing to report on: the run has neither predictions nor scores of its sites")
        return page


class Run:
    """A finished run. Make one with `fedstein.train`, `fedstein.open` or `fedstein.resume`.

    Its files are read when they are asked for. Where its directory has another run by then, this raises `ConfigError`.

    Attributes
    ----------
    path : Path
        The directory of the run. Without `out`, it is a temporary one, which is removed with this object.
    """

    def __init__(self, path: StrPath) -> None:
        self._open(as_path(path, "path"))

    def _open(self, path: Path) -> None:
        self.path = path
        # The program may change its directory.
        self._directory = path.absolute()
        self._content = _Content(self._directory / "summary.json")
        self._finished = Finished(self._directory)

    def _same(self) -> Finished:
        """The run, whose files are about to be read: its directory must still have it.

        Raises
        ------
        ConfigError
            The directory has another run now, or none.
        """
        if not self._content.is_there():
            raise ConfigError(
                f"the directory {self.path} no longer has the run that was opened: it has another run now, or none; "
                f"fedstein.open({str(self.path)!r}) opens what it has"
            )
        return self._finished

    @property
    def name(self) -> str:
        """The run's name."""
        return self._finished.name()

    @cached_property
    def config(self) -> dict[str, Any]:
        """The config with every default written out."""
        return tomllib.loads(self._finished.config_toml())

    @property
    def classes(self) -> list[str] | None:
        """The names of the classes, as texts, in the order of the columns of predictions; None for a regression."""
        return self._finished.classes()

    @property
    def clients(self) -> list[str] | None:
        """The names of the clients, as texts, in the order of their numbers; None where they have numbers only.

        They are those of the data's clients that have training rows, or of the sites of a federation.
        """
        return self._finished.clients()

    @cached_property
    def evaluation(self) -> dict[str, float]:
        """The metrics on the test rows after the last round, those that have a value."""
        found = json.loads(self._finished.evaluation())
        return {key: value for key, value in found.items() if value is not None}

    @cached_property
    def rounds(self) -> Rounds:
        """The columns of `rounds.csv` by name, each [rounds]; `clients` has a tuple of client numbers in each round.

        Raises
        ------
        ConfigError
            The file is missing or damaged.
        """
        self._same()
        file = self.path / "rounds.csv"
        text = _read(file, "file", self._directory / file.name)
        try:
            header, *lines = csv.reader(text.splitlines())
        except (ValueError, csv.Error) as error:
            raise ConfigError(f"cannot read the file `{file}`: it has no columns") from error
        for at, line in enumerate(lines, start=2):
            if len(line) != len(header):
                raise ConfigError(f"{file}, line {at}: {len(line)} cells; there must be {len(header)}")
        rounds = Rounds()
        for at, name in enumerate(header):
            try:
                rounds[name] = _column(name, [line[at] for line in lines])
            except (ValueError, OverflowError) as error:
                raise ConfigError(f"{file}, column `{name}`: {error}") from error
        return rounds

    @cached_property
    def _predicted(self) -> dict[str, NDArray[Any]]:
        return self._same().predictions()

    @property
    def predictions(self) -> NDArray[np.float64]:
        """Predictions on the test rows: probabilities [n, C], or predictive means [n] in the unit of the target.

        Probabilities are those of the particles, without the map of a run with calibration rows.
        """
        found = self._predicted
        return found["probabilities"] if "probabilities" in found else found["mean"].mean(axis=0)

    @property
    def labels(self) -> NDArray[Any]:
        """The truth of the test rows: numbers of classes, int64 [n], or values, float64 [n]."""
        return self._predicted["labels" if "labels" in self._predicted else "targets"]

    @cached_property
    def particles(self) -> dict[str, NDArray[Any]]:
        """The particles after the last round, by the names of the model's blocks, float32 or float64 [N, ...]."""
        return self._same().particles()

    @cached_property
    def _row_shape(self) -> list[int]:
        """The shape of a training row, from `model.json`; empty where it is not there."""
        try:
            card = json.loads((self._directory / "model.json").read_text(encoding="utf-8"))
            return [int(side) for side in card["feature_shape"]]
        except (OSError, ValueError, TypeError, KeyError):
            return []

    def _check_shape(self, shape: list[int]) -> None:
        """Check that rows have as many features as the run's, and images its sides; rows in one dimension are read so.

        Raises
        ------
        DataError
            They have others.
        """
        width, needed = math.prod(shape), math.prod(self._row_shape)
        if self._row_shape and width != needed:
            raise DataError(f"features: a row has {counted(width, 'value')}; the run was trained on rows of {needed}")
        sides, own = ([side for side in of if side != 1] for of in (shape, self._row_shape))
        if len(sides) > 1 and len(own) > 1 and sides != own:
            raise DataError(f"features: a row has the shape {shape}; the run was trained on rows of {self._row_shape}")

    def _forecast(
        self, X: Any, with_members: bool = False, raw: bool = False, level: float | None = None, sets: bool = False
    ) -> dict[str, NDArray[np.float64]]:
        finished = self._same()
        features: FloatArray
        cells = features_of_cells(finished, self.config["data"], X)
        if cells is not None:
            features, of_cells = cells
        else:
            of_cells = []
            features, shape = features_of(in_order_of(finished.feature_names(), X, "rows"), "features")
            self._check_shape(shape)
        found, notes = finished.predict(features, with_members, raw, level, sets)
        for note in of_cells + notes:
            _warn(note)
        return found

    @overload
    def predict(self, X: Any, *, raw: bool = False, return_members: Literal[False] = False) -> NDArray[np.float64]: ...
    @overload
    def predict(
        self, X: Any, *, raw: bool = False, return_members: Literal[True]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def predict(
        self, X: Any, *, raw: bool = False, return_members: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predict new rows with all particles.

        Parameters
        ----------
        X : array_like, [n, p] or [n, ...]
            Features in the units of the training rows. The columns of a table are found by name. For a run on a file
            with texts, dates or missing cells, a table has the columns of this file; texts are written as there, dates
            may be those of pandas, and a missing cell is None or NaN.
        raw : bool
            Probabilities of the model itself. Without it they are at the temperature, or after the other map, of a run
            that held out calibration rows (`partition.calibration`), as those of the command are.
        return_members : bool
            Also return what every particle predicts, without a temperature.

        Returns
        -------
        ndarray of float64
            Probabilities [n, C]; of a regression the predictive means [n], in the unit of the target.
        ndarray of float64
            With `return_members`: [N, n, C], or [N, n].

        Raises
        ------
        DataError, ConfigError
            The rows have other columns than the run's, are not finite, or a file of the run is damaged.
        """
        return_members = as_flag(return_members, "return_members")
        found = self._forecast(X, return_members, as_flag(raw, "raw"))
        mean = found["probabilities"] if "probabilities" in found else found["mean"]
        return (mean, found["members"]) if return_members else mean

    def predict_sets(self, X: Any, *, level: float | None = None) -> NDArray[np.bool_] | NDArray[np.float64]:
        """Predict sets of classes, or intervals, that hold the truth of so many new rows (conformal prediction).

        The run must have held out calibration rows: `partition.calibration`.

        Parameters
        ----------
        X : array_like, [n, p] or [n, ...]
            As for `predict`.
        level : float, optional
            The share of rows, such as 0.9, one of those that the run keeps; without it, the run's `calibration.level`.

        Returns
        -------
        ndarray of bool, [n, C]
            Whether a class is in the set of a row. A set may be empty.
        ndarray of float64, [n, 2]
            Of a regression: lower and upper end; NaN where it is empty, infinite where there were too few rows.

        Raises
        ------
        DataError, ConfigError
            The run has no sets or none of this level, or as `predict`.
        """
        found = self._forecast(X, level=None if level is None else as_level(level), sets=True)
        if "sets" in found:
            sets: NDArray[np.bool_] = found["sets"] == 1
            return sets
        if "intervals" in found:
            return found["intervals"]
        raise ConfigError(
            f"the run {self.path} has no prediction sets; train with rows held out for them (partition.calibration)"
        )

    def predict_uncertainty(self, X: Any) -> dict[str, NDArray[np.float64]]:
        """The uncertainty of predictions on new rows and its two parts.

        `X` and errors are those of `predict`. A temperature or another map of the run is not applied: these are the
        numbers of the particles, as with `raw=True`.

        Returns
        -------
        dict of ndarray of float64, [n]
            `total` = `aleatoric` (noise in the data) + `epistemic` (disagreement of the particles): entropies in nats,
            or variances in the squared unit of the target.
        """
        found = self._forecast(X)
        return {name: found[name] for name in ("total", "aleatoric", "epistemic")}

    def report(
        self,
        out: StrPath | None = None,
        *,
        compare: Sequence[Run | StrPath] = (),
        other_rows: bool = False,
        bins: int | None = None,
        title: str | None = None,
    ) -> Report:
        """The calibration report on the test rows.

        It is on the probabilities of the particles (`predictions`). Of a run with calibration rows it has what the
        temperature, or another map, does on the test rows in a section of its own; `fedstein.report(run.predict(X), y)`
        is a report on probabilities after the map.

        Parameters
        ----------
        out : path, optional
            A directory to write it into, as `Report.save` does.
        compare : sequence of Run or path
            Runs of the same task, to show beside this one.
        other_rows : bool, optional
            Whether these runs may have other test rows.
        bins : int, optional
            Number of bins of confidence; without it, the run's.
        title : str, optional
            Headline of the page; without it, the run's name.

        Raises
        ------
        DataError, ConfigError
            There are no predictions, a run to compare has another task or other test rows, or a file of a run is
            damaged.
        """
        others = [
            run if isinstance(run, Run) else as_path(run, "a run of `compare`") for run in _listed(compare, "compare")
        ]
        number, headline = None if bins is None else as_bins(bins), None if title is None else as_text(title, "title")
        directory = None if out is None else as_path(out, "out")
        source = _RunSource(self, number, headline, others, as_flag(other_rows, "other_rows"))
        report = Report(source, source.names(), self.evaluation)
        if directory is not None:
            report.save(directory)
        return report

    def __getstate__(self) -> dict[str, bytes]:
        """The run's files, without checkpoints and reports: a copy of a run is a run of its own."""
        self._same()
        return {file.name: file.read_bytes() for file in self._directory.iterdir() if file.is_file()}

    def __setstate__(self, files: dict[str, bytes]) -> None:
        directory = tempfile.mkdtemp(prefix="fedstein-")
        weakref.finalize(self, _remove, directory, os.getpid())
        path = Path(directory, "run")
        path.mkdir()
        for name, content in files.items():
            # A name is that of a file in the directory, whoever made the copy.
            (path / Path(name).name).write_bytes(content)
        self._open(path)

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def _headline(self) -> str:
        keys = ("accuracy", "rmse", "nll", "ece")
        return "".join(f", {key}={self.evaluation[key]:.4g}" for key in keys if key in self.evaluation)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}{self._headline()})"


def train(
    config: StrPath | Mapping[str, Any] | None = None,
    *,
    data: Data | Mapping[str, Any] | None = None,
    out: StrPath | None = None,
    progress: Progress = True,
    force: bool = False,
    data_dir: StrPath | None = None,
    **keys: Any,
) -> Run:
    """Train a federation on this machine.

    The same config and seed give the same bits as the command `fedstein train`.

    Parameters
    ----------
    config : path, TOML text or dict, optional
        The experiment: a file, its text (anything with a "=" that is not a file), or its keys, nested or dotted. What
        it does not say has the default of its key. Without it, `keys` change the built-in experiment on digits, which
        has clients with three labels each; with `data`, or another `data.kind`, the defaults of every key.
    data : Data or dict, optional
        Rows in the place of `[data]`, of which only `rotate`, `rotate_from` and `class_weights` then have an effect; or
        the keys of `[data]`.
    out : path, optional
        The directory of the run's files. Without it, they are in a temporary directory, which is removed with the
        returned object.
    progress : bool or callable
        Whether progress is shown; or a function of a dict of each round's numbers. What it raises ends the run at its
        round's end: with `out` its checkpoint is there, without `out` nothing is kept.
    force : bool
        Whether an earlier run in `out` is replaced.
    data_dir : path, optional
        The directory of the data sets; without it, `$FEDSTEIN_DATA`, else `data`.
    **keys
        Keys that take precedence over `config`: ``rounds=5``, ``model={"hidden": [50]}``,
        ``**{"model.hidden": [50]}``.

    Returns
    -------
    Run

    Raises
    ------
    ConfigError
        A key or a value is wrong, a key of `[data]` has no effect beside `data`, or `out` holds something. Nothing was
        run.
    DataError
        The rows cannot be used. Nothing was run.
    RunFailed
        The run began and could not be completed.
    Interrupted
        Ctrl-C: the run ended at its round's end, with a checkpoint. It is a `KeyboardInterrupt`; a second Ctrl-C does
        not wait for the round's end, and nothing more is written.

    Examples
    --------
    >>> import fedstein
    >>> run = fedstein.train(rounds=1, progress=False)
    >>> run.predictions.shape
    (359, 10)
    """
    if isinstance(data, Mapping):
        keys["data"], data = data, None
    return _train(config, data, out, keys, progress=progress, force=as_flag(force, "force"), data_dir=data_dir)


def _train(
    config: StrPath | Mapping[str, Any] | None,
    data: Data | None,
    out: StrPath | None,
    keys: Mapping[str, Any],
    *,
    progress: Progress = False,
    force: bool = False,
    data_dir: StrPath | None = None,
    without: str | None = None,
) -> Run:
    """As `train`; notes in which the pattern `without` is found are not shown."""
    source, values = _source(config)
    plan = Plan(source, values + _assignments(keys), _rows(data))
    return _execute(plan, data, out, force=force, resume=False, progress=progress, data_dir=data_dir, without=without)


def resume(
    path: StrPath, *, data: Data | None = None, progress: Progress = True, data_dir: StrPath | None = None, **keys: Any
) -> Run:
    """Continue a run that was stopped, to the bits of a run that was not.

    Parameters
    ----------
    path : path
        The directory of the run.
    data : Data, optional
        The same rows as the run's, if it had any of its own.
    progress, data_dir
        As in `train`.
    **keys
        Keys to change, such as ``rounds=100``.

    Raises
    ------
    ConfigError, DataError, RunFailed, Interrupted
        As in `train`; there is no checkpoint; it is of other rows or another config; or the run has rows of its own,
        and there is no `data`.
    """
    directory = as_path(path, "path")
    if data is None and _has_own_rows(directory):
        raise ConfigError(
            f"the run {path} has rows of its own, which are not in its directory; pass the same rows: "
            f"fedstein.resume({str(path)!r}, data=fedstein.Data(...))"
        )
    file = directory / "config.toml"
    plan = Plan((_readable(file), _read(file)), _assignments(keys), _rows(data), resumes=True)
    return _execute(plan, data, path, force=False, resume=True, progress=progress, data_dir=data_dir)


def open(path: StrPath) -> Run:
    """Open the directory of a finished run, of this package or of the command.

    Raises
    ------
    ConfigError
        It is not the directory of a finished run, or a file is damaged.
    """
    return Run(path)


def compare(
    runs: Sequence[Run | StrPath],
    *,
    out: StrPath | None = None,
    other_rows: bool = False,
    bins: int | None = None,
    title: str | None = None,
) -> Report:
    """Put runs of the same task into one report: that of the first, with the others beside it.

    Parameters
    ----------
    runs : sequence of Run or path
        Two or more.
    out, other_rows, bins, title
        As in `Run.report`.

    Returns
    -------
    Report
        `Report.compared` has the numbers of each run, with their sizes: `n`, `classes`, `bins`.

    Raises
    ------
    DataError, ConfigError
        There are fewer than two runs, or they have different tasks.
    """
    runs = _listed(runs, "runs")
    if len(runs) < 2:
        raise DataError(f"{len(runs)} run(s) to compare; there must be at least 2")
    first, *others = (run if isinstance(run, Run) else Run(run) for run in runs)
    return first.report(out, compare=others, other_rows=other_rows, bins=bins, title=title)


def _listed(runs: Any, what: str) -> list[Run | StrPath]:
    """The runs and paths of a sequence, which one run or path is not."""
    if isinstance(runs, (Run, str, os.PathLike)) or not hasattr(runs, "__iter__"):
        raise DataError(f"{what} is a {type(runs).__name__}; it must be a list of runs and paths")
    return list(runs)


def _rows(data: Data | None) -> _fedstein.Rows | None:
    if data is None or isinstance(data, Data):
        return None if data is None else data._rows
    raise DataError(f"data is a {type(data).__name__}; it must be a fedstein.Data(X, y)")


def _has_own_rows(run: Path) -> bool:
    """Whether a run was given its rows by a program; False where its `model.json` cannot be read."""
    try:
        card = json.loads((run / "model.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(card, dict) and card.get("own_data") is True


def _column(name: str, cells: list[str]) -> NDArray[Any]:
    """A column of `rounds.csv`."""
    if name == "clients":
        clients = np.empty(len(cells), dtype=object)
        clients[:] = [tuple(map(int, cell.split())) for cell in cells]
        return clients
    if name in ("round", "uplink_bytes", "downlink_bytes"):
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    return np.array([float(cell or "nan") for cell in cells], dtype=np.float64)


def _read(file: Path, what: str = "config", at: Path | None = None) -> str:
    """The text of a file, which messages call by its name `file` where it is `at` another path."""
    try:
        return (file if at is None else at).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(f"cannot read the {what} `{file}`: {reason}") from error


def _source(config: StrPath | Mapping[str, Any] | None) -> tuple[tuple[str, str] | None, list[str]]:
    """A config's name and text, and assignments."""
    if config is None:
        return None, []
    if isinstance(config, Mapping):
        return ("the config", ""), _assignments(config)
    if isinstance(config, str) and ("=" in config or "\n" in config) and not os.path.exists(config):
        if not is_unicode(config):
            raise ConfigError(f"config: the text {LONE}")
        return ("the config", config), []
    if isinstance(config, Data):
        raise ConfigError("config is a Data; pass it as data=")
    if not isinstance(config, (str, os.PathLike)):
        raise ConfigError(f"config is a {type(config).__name__}; it must be a path, TOML text or a dict")
    file = as_path(config, "config")
    return (_readable(file), _read(file)), []


def _readable(file: Path) -> str:
    """A path as a text in messages, also where its bytes are none."""
    return os.fsencode(file).decode("utf-8", "replace")


def _assignments(keys: Mapping[str, Any]) -> list[str]:
    """`key=value` of every key, with values as TOML; a dict under a name without a dot has the keys of a section."""
    found = []
    for key, value in keys.items():
        if not isinstance(key, str) or "=" in key or not is_unicode(key):
            raise ConfigError(f"{key!r} is not the name of a key")
        if isinstance(value, Mapping) and value and "." not in key:
            found += _assignments({f"{key}.{name}": of for name, of in value.items()})
        else:
            text = _toml(key, value)
            if not is_unicode(text):
                raise ConfigError(f"`{key}` cannot be {value!r}; it {LONE}")
            found.append(f"{key}={text}")
    return found


def _of_toml(text: str) -> Any:
    """A value as on the command line: TOML, else a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _toml(path: str, value: Any) -> str:
    """A value as TOML, whose numbers, texts and lists are those of JSON."""
    if isinstance(value, Mapping):
        inner = (f"{json.dumps(str(key))} = {_toml(f'{path}.{key}', of)}" for key, of in value.items())
        return f"{{ {', '.join(inner)} }}"

    def plain(value: Any) -> Any:
        if isinstance(value, (np.generic, np.ndarray)):
            return value.tolist()
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        raise TypeError(f"`{path}` cannot be a {type(value).__name__}")

    try:
        if value is None:
            raise TypeError(f"`{path}` cannot be None; leave it out for its default")
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain)
    except TypeError as error:
        raise ConfigError(str(error)) from error
    except ValueError as error:
        reason = "a list cannot hold itself" if "Circular" in str(error) else "a number must be finite"
        raise ConfigError(f"`{path}` cannot be {value!r}; {reason}") from error


def _execute(
    plan: Plan,
    data: Data | None,
    out: StrPath | None,
    *,
    force: bool,
    resume: bool,
    progress: Progress,
    data_dir: StrPath | None,
    without: str | None = None,
) -> Run:
    if not isinstance(progress, bool) and not callable(progress):
        raise ConfigError(f"progress is {progress!r}; it must be True, False or a function of a round's numbers")
    if data_dir is None:
        data_dir = os.environ.get("FEDSTEIN_DATA") or "data"
    sets, directory = as_path(data_dir, "data_dir"), None if out is None else as_path(out, "out")
    shown = _Shown(progress, without)
    for note in plan.notes():
        shown("note", "", note)
    # It would leave nothing of the rounds before, and need not wait for the end of this one.
    shown.ends_at_once = directory is None and not tomllib.loads(plan.to_toml())["checkpoint"]["enabled"]
    temporary = tempfile.mkdtemp(prefix="fedstein-") if directory is None else None
    path = Path(temporary or "", "run") if directory is None else directory
    try:
        _fedstein.train(
            plan,
            _rows(data),
            sets,
            path,
            force,
            resume,
            None if temporary is None else Path(temporary),
            shown.is_bar,
            shown,
        )
        run = Run(path)
    except BaseException as error:
        if data is not None and isinstance(error, Interrupted) and error.resume:
            # The library names the call that resumes, and does not know that the rows are not in the directory.
            error.args = (str(error).removesuffix(")") + ", data=...)",)
        # A run that can go on keeps its directory.
        if temporary is not None and not (isinstance(error, Interrupted) and error.resume):
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    if temporary is not None:
        weakref.finalize(run, _remove, temporary, os.getpid())
    logger.info("%s is complete%s", run.name, run._headline())
    return run


def _warn(note: str) -> None:
    """Warn at the line outside this package that is being executed."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(note, RunWarning, stacklevel=level)


def _remove(directory: str, owner: int) -> None:
    """Remove a temporary directory, unless this is a fork of the process that has it."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


class _Shown:
    """Shows progress: as a bar of the command in a terminal, as one line that changes in a notebook, else as lines."""

    def __init__(self, progress: Progress, without: str | None = None) -> None:
        self._without = without
        # Whether a run without a bar ends at the first Ctrl-C, and not at its round's end.
        self.ends_at_once = False
        self._callback = progress if callable(progress) else None
        self._lines = progress is True
        self._handle: Any = None
        kernel = "ipykernel" in sys.modules
        stderr = sys.__stderr__
        terminal = stderr is not None and stderr is sys.stderr and stderr.isatty()
        self.is_bar = self._lines and terminal and not kernel
        if self._lines and kernel:
            show = importlib.import_module("IPython.display")
            self._handle = show.display(show.Pretty(""), display_id=True)
            self._pretty = show.Pretty

    def __call__(self, kind: str, value: Any, text: str) -> None:
        if kind == "stopping" and self.ends_at_once:
            # What is raised here ends the run as a second Ctrl-C does.
            interrupted = Interrupted(
                "interrupted; with checkpoint.enabled = false there is no checkpoint to resume from"
            )
            interrupted.resume = None
            raise interrupted
        if kind == "note":
            if self._without is None or not re.search(self._without, text):
                _warn(text)
        elif kind != "round":
            logger.info(text)
        if kind == "round" and self._callback is not None:
            self._callback(json.loads(value))
        if kind not in ("note", "info") and self._lines and not self.is_bar:
            self._write(text)

    def _write(self, line: str) -> None:
        if self._handle is not None:
            self._handle.update(self._pretty(line))
        elif sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)
