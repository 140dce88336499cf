"""The apps of `fedstein.flower` without Flower's processes: what a site answers, and what a strategy refuses."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("flwr")

from conftest import Command
from fedstein import ConfigError, DataError, _fedstein
from fedstein.flower import FedsteinStrategy, _project
from fedstein.flower._client import _site
from fedstein.flower._server import of_app_config
from flwr.app import ConfigRecord, RecordDict


def message(number: int | str, *arrays: tuple[str, bytes], **envelope: Any) -> Any:
    """The question who a site is as message of this number, changed so."""
    asked = {**_fedstein.ask_site()[0], "number": number, **envelope}
    return asked, {}, list(arrays)


def failure(answer: Any) -> tuple[int, str]:
    """The number of a message that was not answered, and the reason."""
    envelope = answer[0]
    content = json.loads(str(envelope["content"]))
    assert content["kind"] == "failure", content
    return int(envelope["number"]), content["reason"]


@pytest.fixture
def site(command: Command, tmp_path: Path) -> Path:
    """The own file of a site that reads messages of up to 1 MiB."""
    out = tmp_path / "sites"
    command("site", "split", "--set", "partition.clients=2", "--set", "partition.labels=5", "--out", str(out))
    file = out / "0" / "site.toml"
    file.write_text(file.read_text() + "\n[limits]\nmegabytes = 1\n")
    return file


def test_a_message_that_is_too_large_is_declined_by_its_number(site: Path) -> None:
    large = message(5, ("a", bytes((1 << 20) + 1)))
    number, reason = failure(_fedstein.answer(site, 0, large))
    assert number == 5
    assert reason == "its arrays have 1048577 bytes; at most 1048576 are read"
    small = message(6, ("a", b"x"))
    assert failure(_fedstein.answer(site, 0, small))[0] == 6, "an array that the message does not list"
    identity = json.loads(str(_fedstein.answer(site, 0, message(7))[0]["content"]))
    assert identity == {"kind": "identity", "index": 0, "name": "site-0"}


def test_a_message_that_is_damaged_is_declined_by_its_number(site: Path) -> None:
    assert failure(_fedstein.decline(message(8, content="{"), "no"))[0] == 8
    assert failure(_fedstein.answer(site, 0, message(9, content="{")))[0] == 9
    assert failure(_fedstein.decline(message("ten"), "no"))[0] == 0


def asked(simulation: str | None = None, **node: Any) -> tuple[Any, Any]:
    """A message of Flower's and the context of a node."""
    records = {} if simulation is None else {"simulation": ConfigRecord({"sites": simulation})}
    return SimpleNamespace(content=RecordDict(records)), SimpleNamespace(node_config=node)


def test_a_node_has_the_site_of_its_own_config_and_no_other() -> None:
    assert _site(*asked(**{"partition-id": 1, "site": "/srv/site.toml"})) == (Path("/srv/site.toml"), 1)
    assert _site(*asked(site="/srv/site.toml")) == (Path("/srv/site.toml"), None)
    for wrong in ("1", True, 1.0):
        with pytest.raises(ValueError, match="partition-id is not a whole number"):
            _site(*asked(**{"partition-id": wrong, "site": "/srv/site.toml"}))
    with pytest.raises(ValueError, match="it has no site: start it with --node-config"):
        _site(*asked(**{"partition-id": 1}))


def test_a_supernode_does_not_read_the_files_that_a_server_names(monkeypatch: pytest.MonkeyPatch) -> None:
    both = asked("/etc", **{"partition-id": 1, "site": "/srv/site.toml"})
    for modules in ({}, {"ray": SimpleNamespace(is_initialized=lambda: False)}):
        monkeypatch.setattr("fedstein.flower._client.sys.modules", modules)
        with pytest.raises(ValueError, match="the server asks for a simulation, and this is a SuperNode"):
            _site(*both)
    monkeypatch.setattr("fedstein.flower._client.sys.modules", {"ray": SimpleNamespace(is_initialized=lambda: True)})
    assert _site(*both) == (Path("/etc/1/site.toml"), 1)


def test_the_sites_of_an_earlier_simulation_are_replaced_only_where_asked_for(tmp_path: Path) -> None:
    out, beside = tmp_path / "run", tmp_path / "run-sites"

    def start(**keys: Any) -> str:
        """The message with which a start ends, since there is no grid."""
        grid: Any = None
        strategy = FedsteinStrategy({"rounds": 1, "partition.clients": 2}, out=out, **keys)
        with pytest.raises((ConfigError, DataError, AttributeError)) as raised:
            strategy.start(grid)
        return str(raised.value)

    beside.mkdir()
    (beside / "letter.txt").write_text("mine")
    for force in (False, True):
        assert start(force=force) == f"{beside} exists and is not of a simulation; set another `out`"
    (beside / "letter.txt").unlink()
    beside.rmdir()
    # A start that fails before its first round leaves nothing, so that the next one finds its way free.
    for message, keys in (("NoneType", {}), ("sites: 3, and the config has 2 clients", {"sites": 3}), ("NoneType", {})):
        assert message in start(**keys) and not list(tmp_path.iterdir())
    FedsteinStrategy({"rounds": 1, "partition.clients": 2}, out=out)._simulated(beside)
    kept = {file: file.read_bytes() for file in beside.rglob("*") if file.is_file()}
    for keys in ({}, {"data.kind": "sites", "sites": 2}):
        message = f"{beside} holds the sites of an earlier simulation; set another `out`, or force = true"
        assert start(**keys) == message
    # Where they may be replaced, they are when the new run begins, and not before.
    for keys in ({"seed": 2}, {"sites": 3}, {"data.path": "gone.csv", "data.kind": "csv", "data.target": "y"}):
        start(force=True, **keys)
        assert {file: file.read_bytes() for file in beside.rglob("*") if file.is_file()} == kept
        assert [path.name for path in tmp_path.iterdir()] == ["run-sites"]


@pytest.mark.parametrize(
    "keys, message",
    [
        ({"force": "false"}, "^force is 'false'; it must be True or False$"),
        ({"resume": 1}, "^resume is 1; it must be True or False$"),
        ({"sites": "2"}, "^sites: '2' must be the number of sites"),
        ({"sites": 2.0}, "^sites: 2.0 must be the number of sites"),
        ({"sites": -1}, "^sites: -1 must be the number of sites"),
        ({"sites": True}, "^sites: True must be the number of sites"),
        ({"muster_seconds": "600"}, "^muster-seconds: '600' must be a number greater than 0$"),
        ({"poll_seconds": 0}, "^poll-seconds: 0 must be a number greater than 0$"),
        ({"rejoin_seconds": float("nan")}, "^rejoin-seconds: nan must be a number greater than 0$"),
        ({"out": 3}, "^out is 3; it must be a path$"),
        ({"out": "runs/mine"}, "^out: 'runs/mine' must be an absolute path"),
        ({"data_dir": 3}, "^data_dir is 3; it must be a path$"),
    ],
)
def test_an_argument_of_a_strategy_of_another_type_is_named(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FedsteinStrategy({"rounds": 1}, **{"out": "/srv/run", **keys})


def test_sites_that_a_killed_process_put_aside_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    grid: Any = None
    aside = tmp_path / ".run-sites.earlier.123"
    aside.mkdir()
    with caplog.at_level("WARNING", logger="flwr"), pytest.raises(AttributeError):
        FedsteinStrategy({"rounds": 1, "partition.clients": 2}, out=tmp_path / "run").start(grid)
    beside = tmp_path / "run-sites"
    assert f"{aside} has the sites of an earlier simulation; rename it to {beside} to resume that one" in caplog.text
    assert aside.is_dir()


def test_a_simulation_is_resumed_with_the_sites_that_it_has(tmp_path: Path) -> None:
    out, beside = tmp_path / "run", tmp_path / "run-sites"
    # The keys that an app's config has at each start.
    keys = {"rounds": 2, "data.kind": "digits", "partition": {"kind": "labels-per-client", "clients": 2, "labels": 5}}

    def start(**more: Any) -> str:
        """The message with which a start ends, since there is no grid."""
        grid: Any = None
        with pytest.raises((ConfigError, AttributeError)) as raised:
            FedsteinStrategy(out=out, **{**keys, **more}).start(grid)
        return str(raised.value)

    # What a run leaves that was stopped.
    FedsteinStrategy(out=out, **keys)._simulated(beside)
    out.mkdir()
    run = (beside / "run.toml").read_text()
    (out / "config.toml").write_text(_fedstein.Plan(("run.toml", run), [], None).to_toml())
    files = {file: file.read_bytes() for file in beside.rglob("*") if file.is_file()}
    assert "NoneType" in start(resume=True), "the sites are there, and their nodes are looked for"
    changed = "partition.clients: 3, and the simulation that is resumed began with 2"
    assert changed in start(resume=True, **{"partition.clients": 3})
    assert "`partition.labels` cannot be" in start(resume=True, partition={"labels": 0})
    assert files == {file: file.read_bytes() for file in beside.rglob("*") if file.is_file()}
    # A simulation of a version that did not keep how its rows were dealt.
    (beside / "dealt.toml").unlink()
    assert "NoneType" in start(resume=True)
    shutil.rmtree(beside)
    assert "there is no simulation to resume in" in start(resume=True, partition={})


def test_assignments_that_cannot_be_split_are_refused() -> None:
    with pytest.raises(ConfigError, match="set: .* cannot be split into assignments: No closing quotation"):
        of_app_config({"out": "/run", "set": "a='b"})


def test_the_extras_have_the_versions_of_flower_that_are_tested() -> None:
    extras = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    low, high = (".".join(map(str, version)) for version in _project.FLOWER)
    for requirements in (extras["optional-dependencies"][extra] for extra in ("flower", "simulation")):
        assert [requirement.partition(">=")[2] for requirement in requirements] == [f"{low},<{high}"]


def test_another_version_of_flower_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _project.untested() is None
    for version in ("1.39.2", "2.0.0"):
        monkeypatch.setattr("flwr.__version__", version)
        assert f"Flower {version}: fedstein" in (_project.untested() or "")
