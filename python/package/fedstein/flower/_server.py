"""The server app, and the strategy that it runs."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from glob import escape
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NoReturn

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import Strategy

from .. import _fedstein
from .._arrays import StrPath, as_flag, as_path
from .._fedstein import ConfigError, Plan
from .._run import Run, _assignments, _of_toml, _read, _source
from ._network import Network
from ._project import untested

__all__ = ["FedsteinStrategy", "app"]

logger = logging.getLogger("flwr")

# The server's config beside the sites of a simulation, and the config that their rows were dealt by.
_RUN, _DEALT = "run.toml", "dealt.toml"
# Seconds for which Flower keeps a message without a deadline, and beyond the deadline.
LONG, BEYOND = 12 * 3600.0, 60.0


class FedsteinStrategy:
    """Runs fedstein's rounds over Flower's grid, for a ServerApp of one's own.

    The rounds are not those of Flower's strategies: fedstein asks questions before it selects, asks again, puts clients
    under quarantine, writes checkpoints and resumes. So `start` is the only method to call.

    Parameters
    ----------
    config : path, TOML text or dict, optional
        As in `fedstein.train`. With ``data.kind = "sites"`` the rows are those of the nodes' own `site.toml`; with any
        other the run is a simulation of its clients, on Flower's simulation runtime.
    out : path
        The directory of the run's files at the server, absolute or with "~".
    sites : int
        Number of sites K; they have the `partition-id` 0 to K - 1. In a simulation 0 is as many as the config has
        clients.
    force : bool
        Whether an earlier run in `out` is replaced.
    resume : bool
        Whether the run in `out` is continued, with its own config and `keys`. A simulation keeps its sites and their
        rows: `[data]` and `[partition]` are those of its start.
    muster_seconds, rejoin_seconds, poll_seconds : float
        For how long the sites are waited for at the start; for how long a message waits for the node of its site; and
        the time between two looks for answers.
    data_dir : path, optional
        The directory of the data sets of a simulation.
    **keys
        Keys that take precedence over `config`, as in `fedstein.train`.

    Raises
    ------
    ConfigError
        A key or a value is wrong.
    """

    def __init__(
        self,
        config: StrPath | Mapping[str, Any] | None = None,
        *,
        out: StrPath,
        sites: int = 0,
        force: bool = False,
        resume: bool = False,
        muster_seconds: float = 600.0,
        rejoin_seconds: float = 5.0,
        poll_seconds: float = 0.2,
        data_dir: StrPath | None = None,
        **keys: Any,
    ) -> None:
        self._out = as_path(out, "out").expanduser()
        if not self._out.is_absolute():
            raise ConfigError(
                f"out: {str(out)!r} must be an absolute path or begin with ~: the directory in which Flower "
                "runs this app is its own"
            )
        seconds: dict[str, Any] = {"muster": muster_seconds, "rejoin": rejoin_seconds, "poll": poll_seconds}
        for name, value in seconds.items():
            if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1e9:
                raise ConfigError(f"{name}-seconds: {value!r} must be a number greater than 0")
        count: Any = sites
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
            raise ConfigError(f"sites: {count!r} must be the number of sites, or 0 in a simulation")
        self._sites, self._force, self._resume = int(count), as_flag(force, "force"), as_flag(resume, "resume")
        self._muster, self._rejoin, self._poll = muster_seconds, rejoin_seconds, poll_seconds
        self._data_dir = as_path("data" if data_dir is None else data_dir, "data_dir")
        # The sites of a simulation; they belong to the run in `out`, and are there if and only if it is one.
        self._directory = self._out.with_name(self._out.name + "-sites")
        if resume:
            self._plan = self._resumed(_assignments(keys))
        else:
            source, values = _source(config)
            if source is None and _kind(keys) == "sites":
                # The built-in experiment has rows of its own.
                source = ("the app's config", "")
            self._plan = Plan(source, values + _assignments(keys), None)

    def start(self, grid: Grid) -> Run:
        """Run the federation to its last round.

        Parameters
        ----------
        grid : Grid
            What Flower gives the ServerApp.

        Returns
        -------
        Run
            The finished run, whose files are in `out`.

        Raises
        ------
        ConfigError
            The sites are not there, do not agree, or `out` holds something. No round was run.
        RunFailed
            The run began and could not be completed.
        """
        for note in filter(None, [untested(), *self._plan.notes(), *_left_aside(self._directory)]):
            logger.warning("%s", note)
        plan, simulation = self._plan, ""
        sites = self._sites
        config = tomllib.loads(plan.to_toml())
        directory = self._directory
        with self._sites_of_a_run_that_begins(directory):
            if config["data"]["kind"] != "sites":
                plan, count = self._simulated(directory)
                simulation = str(directory)
                if sites not in (0, count):
                    raise ConfigError(
                        f"sites: {sites}, and the config has {count} clients; leave `sites` out in a simulation"
                    )
                sites = count
            elif directory.is_dir():
                # The run that is resumed was a simulation.
                simulation, sites = str(directory), len(list(directory.glob("*/site.toml")))
            if sites == 0:
                raise ConfigError(
                    "sites: 0; it must be the number of sites, each with a SuperNode of its own partition-id"
                )
            deadline = config["federation"].get("deadline") or 0.0
            network = Network(
                grid,
                sites,
                poll=self._poll,
                rejoin=self._rejoin,
                # Answers about calibration rows may take three times the longest wait, and a minute at least.
                ttl=max(3.0 * deadline, BEYOND) + BEYOND if deadline > 0 else LONG,
                simulation=simulation,
            )
            names = network.muster(self._muster)
            _fedstein.serve(plan, names, self._out, self._force, self._resume, network, _tell)
        logger.info("run %s", self._out)
        return Run(self._out)

    @contextmanager
    def _sites_of_a_run_that_begins(self, directory: Path) -> Iterator[None]:
        """The sites of a simulation are those of its run: where it does not begin, an earlier one keeps its own.

        Raises
        ------
        ConfigError
            There are sites of an earlier simulation that may not be replaced, or the directory is something else.
        """
        if self._resume:
            yield
            return
        before = self._begun()
        earlier = self._put_aside(directory)
        try:
            yield
        finally:
            if self._begun() == before:
                shutil.rmtree(directory, ignore_errors=True)
                if earlier is not None:
                    try:
                        earlier.rename(directory)
                    except OSError:
                        # What ended the run is raised, and not this.
                        logger.warning("%s", _aside(earlier, directory))
            elif earlier is not None:
                shutil.rmtree(earlier, ignore_errors=True)

    def _begun(self) -> tuple[int, int] | None:
        """What tells the run in `out` from another one there; None without one."""
        try:
            found = (self._out / "config.toml").stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _resumed(self, assignments: list[str]) -> Plan:
        """The plan of the run in `out`, with these assignments.

        Raises
        ------
        ConfigError
            There is no run of sites in `out`, an assignment is wrong, or it changes the rows of a simulation.
        """
        if (self._directory / _RUN).is_file():
            # The app's config names the rows that the sites have already.
            rows = [each for each in assignments if each.startswith(("data.", "partition."))]
            self._check_rows(rows)
            assignments = [each for each in assignments if each not in rows]
        file = self._out / "config.toml"
        plan = Plan((str(file), _read(file)), assignments, None)
        kind = tomllib.loads(plan.to_toml())["data"]["kind"]
        if kind != "sites":
            raise ConfigError(
                f"data.kind: {kind!r}, and there is no simulation to resume in {self._directory}; a run over sites "
                'that is resumed has data.kind = "sites"'
            )
        return plan

    def _check_rows(self, assignments: list[str]) -> None:
        """Check that these assignments leave the rows of the sites of a simulation as they were dealt.

        Raises
        ------
        ConfigError
            One of them changes a key, which is named.
        """
        file = self._directory / _DEALT
        if not file.is_file():
            return
        dealt = (str(file), _read(file))
        before, after = (tomllib.loads(Plan(dealt, keys, None).to_toml()) for keys in ([], assignments))
        for section in ("data", "partition"):
            for key, value in after[section].items():
                old = before[section].get(key)
                if value != old:
                    raise ConfigError(
                        f"{section}.{key}: {value!r}, and the simulation that is resumed began with {old!r}; the rows "
                        "of its sites stay, so leave the key as it was, or set another `out` without resume"
                    )

    def _put_aside(self, directory: Path) -> Path | None:
        """Rename the sites of an earlier simulation if they may be replaced; the new place, or None without any.

        Raises
        ------
        ConfigError
            It may not, or the directory is something else.
        """
        is_simulation = (directory / _RUN).is_file()
        if self._force and is_simulation:
            aside = directory.with_name(f"{_hidden(directory)}{os.getpid()}")
            return directory.rename(aside)
        if directory.exists():
            what, also = (
                ("holds the sites of an earlier simulation", ", or force = true")
                if is_simulation
                else ("exists and is not of a simulation", "")
            )
            raise ConfigError(f"{directory} {what}; set another `out`{also}")
        return None

    def _simulated(self, directory: Path) -> tuple[Plan, int]:
        """The plan of a federation of the config's clients, whose rows are written to files of sites."""
        files, notes = _fedstein.split(self._plan, self._data_dir, directory)
        for note in notes:
            logger.info("%s", note)
        try:
            (directory / _DEALT).write_text(self._plan.to_toml(), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{directory / _DEALT} cannot be written: {error.strerror}") from error
        file = directory / _RUN
        return Plan((str(file), _read(file)), [], None), len(files)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(
            "fedstein runs rounds of its own: call start(grid). No strategy of Flower can take its place: particles "
            "cannot be averaged one by one."
        )

    configure_train = aggregate_train = configure_evaluate = aggregate_evaluate = summary = _refuse


# Flower's functions may ask for a Strategy; its rounds are not inherited.
Strategy.register(FedsteinStrategy)


def _hidden(directory: Path) -> str:
    """The beginning of the name that the sites of an earlier simulation get, before the number of the process."""
    return f".{directory.name}.earlier."


def _aside(earlier: Path, directory: Path) -> str:
    """That sites of an earlier simulation are still under the name that they have for a time."""
    return (
        f"{earlier} has the sites of an earlier simulation; rename it to {directory} to resume that one, or delete it"
    )


def _left_aside(directory: Path) -> list[str]:
    """Notes on sites of earlier simulations that a killed process has left under the name that they have for a time."""
    return [_aside(earlier, directory) for earlier in sorted(directory.parent.glob(escape(_hidden(directory)) + "*"))]


def _kind(keys: Mapping[str, Any]) -> Any:
    """The kind of data in keys, nested or dotted."""
    section = keys.get("data")
    return keys.get("data.kind", section.get("kind") if isinstance(section, Mapping) else None)


def _tell(kind: str, value: Any, text: str) -> None:
    """Log what a run tells."""
    logger.info("%s", text)


# The keys of `[tool.flwr.app.config]` that are not keys of fedstein, with their types.
_OWN: dict[str, type | tuple[type, ...]] = {
    "config": str,
    "data-dir": str,
    "force": bool,
    "muster-seconds": (int, float),
    "out": str,
    "poll-seconds": (int, float),
    "rejoin-seconds": (int, float),
    "resume": bool,
    "set": str,
    "sites": int,
}


def of_app_config(values: Mapping[str, Any]) -> FedsteinStrategy:
    """The strategy of the config of an app, whose keys Flower has flattened.

    Raises
    ------
    ConfigError
        A key or a value is wrong.
    """
    own: dict[str, Any] = {}
    keys: dict[str, Any] = {}
    for name, value in values.items():
        kind = _OWN.get(name)
        if kind is None:
            keys[name] = value
        elif not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ConfigError(f"{name}: {value!r} has the wrong type")
        else:
            own[name.replace("-", "_")] = value
    if not own.get("out"):
        raise ConfigError('out: it must name the directory of the run\'s files at the server, such as "~/fedstein/run"')
    values_of = {name: _of_text(name, value) for name, value in keys.items()}
    more = own.pop("set", "")
    try:
        assignments = shlex.split(more)
    except ValueError as error:
        raise ConfigError(f"set: {more!r} cannot be split into assignments: {error}") from error
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise ConfigError(f"set: {assignment!r} must be KEY=VALUE")
        values_of[name] = _of_toml(text)
    config = own.pop("config", "") or None
    data_dir = own.pop("data_dir", "") or None
    return FedsteinStrategy(
        None if config is None else Path(config).expanduser(), data_dir=data_dir, **own, **values_of
    )


def _of_text(name: str, value: Any) -> Any:
    """A value of Flower's config, which has no lists and no tables: these are TOML in a text."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{name}: {value!r} is not valid TOML: {error}") from error
    return value


def _run(grid: Grid, context: Context) -> None:
    """Run the federation of the app's config."""
    of_app_config(context.run_config).start(grid)


app = ServerApp()
app.main()(_run)
