"""Federations over Flower on the loopback. Every wait has a limit, and every process is ended."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

pytest.importorskip("flwr")

import fedstein
from conftest import LIMIT, Command
from roles import Roles, wait_until

SMALL = ["rounds=2", "algorithm.local_steps=20", "algorithm.particles=3", "model.hidden=[8]"]


@pytest.fixture
def roles(tmp_path: Path) -> Iterator[Callable[..., Roles]]:
    """Roles that are ended after the test, whatever happens; their logs are shown where it fails."""
    made: list[Roles] = []

    def make(**keys: bool) -> Roles:
        made.append(Roles(tmp_path, **keys))
        return made[-1]

    yield make
    for each in made:
        each.end()
        for log in sorted(each.directory.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}")


@pytest.fixture
def sites(command: Command, tmp_path: Path) -> Callable[..., Path]:
    """Writes the digits of some clients as the files of sites, and returns their directory."""

    def split(count: int, *keys: str) -> Path:
        typed = [f"partition.clients={count}", "partition.labels=5", *SMALL, *keys]
        out = tmp_path / "sites"
        command("site", "split", *[part for key in typed for part in ("--set", key)], "--out", str(out))
        return out

    return split


def app(directory: Path, sites: Path | None, count: int) -> Path:
    """A project of `python -m fedstein.flower new`."""
    project = directory / "trees"
    more = [] if sites is None else ["--sites", str(count)]
    subprocess.run([sys.executable, "-m", "fedstein.flower", "new", str(project), *more], check=True, timeout=LIMIT)
    return project


def keys(out: Path, sites: Path, *more: str) -> Sequence[str]:
    """The options that give the app this config."""
    return ["-c", " ".join([f'out="{out}"', f'config="{sites}/run.toml"', *more])]


# What the template sets would win over the config's own keys.
TEMPLATE = ('set="algorithm.local_steps=20 algorithm.particles=3 model.hidden=[8]"', "rounds=2")


def reference(command: Command, sites: Path, count: int, out: Path, *more: str) -> bytes:
    """The particles of the same federation without Flower."""
    files = ",".join(f"{sites}/{site}/site.toml" for site in range(count))
    command("train", f"{sites}/run.toml", "--sites", files, "--quiet", "--out", str(out), *more)
    return particles(out)


def particles(out: Path) -> bytes:
    return (out / "particles.safetensors").read_bytes()


def rounds(out: Path) -> int:
    """The number of rounds whose records are written."""
    path = out / "rounds.csv"
    return len(path.read_text().splitlines()) - 1 if path.exists() else 0


def test_a_project_is_written_where_there_is_none_and_is_what_flower_builds(
    roles: Callable[..., Roles], tmp_path: Path
) -> None:
    project = app(tmp_path, tmp_path, 3)
    assert "sites = 3" in (project / "pyproject.toml").read_text()
    roles().flwr("build", "--app", str(project))
    assert list(tmp_path.glob("*.fab"))
    for directory, message in ((project, "exists"), (tmp_path / "1-trees", "begin with a letter")):
        done = subprocess.run(
            [sys.executable, "-m", "fedstein.flower", "new", str(directory)],
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode == 2 and message in done.stderr


def test_check_says_what_is_missing_on_a_node(sites: Callable[..., Path]) -> None:
    site = sites(2) / "0" / "site.toml"

    def check(*args: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "fedstein.flower", "check", *args]
        return subprocess.run(program, capture_output=True, text=True, timeout=LIMIT)

    ready = check(str(site))
    assert ready.returncode == 0 and "This node is ready" in ready.stdout, ready.stderr
    away = check(str(site), "--superlink", "127.0.0.1:1")
    assert away.returncode == 1 and "missing: the SuperLink 127.0.0.1:1" in away.stderr
    site.write_text(site.read_text().replace("index = 0", "idx = 0"))
    wrong = check(str(site))
    assert wrong.returncode == 2 and "idx" in wrong.stderr


def test_two_supernodes_over_tls_have_the_bits_of_a_federation_without_flower(
    roles: Callable[..., Roles], sites: Callable[..., Path], command: Command, tmp_path: Path
) -> None:
    # The sites hold out rows by which the best round is chosen.
    split = sites(2, "partition.validation=0.2", "stop.patience=1")
    certificates(tmp_path)
    federation = roles(tls=True)
    federation.superlink()
    for index in range(2):
        federation.node(index, split / str(index) / "site.toml")
    out = tmp_path / "run"
    federation.flwr("run", str(app(tmp_path, split, 2)), "lab", "--stream", *keys(out, split, *TEMPLATE))
    wait_until(lambda: (out / "report" / "report.html").exists(), "the end of the run")
    # Each site has its own results, with the particles of the best round.
    assert len(list(split.glob("*/state/*/results/predictions.csv"))) == 2
    kept = [path.read_bytes() for path in split.glob("*/state/*/results/particles.safetensors")]
    assert kept == [particles(out)] * 2
    assert particles(out) == reference(command, split, 2, tmp_path / "reference")
    run = fedstein.open(out)
    assert run.rounds["round"].tolist() == [1, 2]
    assert "validation_nll" in run.rounds and run.clients == ["site-0", "site-1"]


def certificates(directory: Path) -> None:
    """A certificate authority, and a certificate of the loopback address."""

    def openssl(*args: str) -> None:
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=directory, timeout=LIMIT)

    names = directory / "names"
    names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    openssl(
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "ca.key",
        "-out",
        "ca.crt",
        "-days",
        "2",
        "-subj",
        "/CN=test authority",
    )
    openssl(
        "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server"
    )
    openssl(
        "x509",
        "-req",
        "-in",
        "server.csr",
        "-CA",
        "ca.crt",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-out",
        "server.crt",
        "-days",
        "2",
        "-extfile",
        "names",
    )


def test_a_supernode_that_is_killed_in_a_visit_comes_back_and_no_visit_counts_twice(
    roles: Callable[..., Roles], sites: Callable[..., Path], command: Command, tmp_path: Path
) -> None:
    slow = ("algorithm.local_steps=20000", "rounds=3")
    split = sites(2, *slow)
    federation = roles()
    federation.superlink()
    for index in range(2):
        federation.node(index, split / str(index) / "site.toml")
    out = tmp_path / "run"
    more = ('set="algorithm.local_steps=20000 algorithm.particles=3 model.hidden=[8]"', "rounds=3")
    federation.flwr("run", str(app(tmp_path, split, 2)), "lab", *keys(out, split, *more))
    wait_until(lambda: rounds(out) >= 1, "the first round")
    time.sleep(3.5)
    federation.kill("node1")
    federation.node(1, split / "1" / "site.toml", name="node1-again")
    wait_until(lambda: (out / "report" / "report.html").exists(), "the end of the run")
    assert particles(out) == reference(command, split, 2, tmp_path / "reference")


def events(out: Path) -> list[tuple[int, int, str]]:
    """Round, client and event of each line of `events.jsonl`, without those of the fault injector."""
    path = out / "events.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [(line["round"], line["client"], line["event"]) for line in lines if line["event"] != "injected"]


def trained(out: Path) -> list[str]:
    """The client whose reply counted in each round."""
    return [line.split(",")[1] for line in (out / "rounds.csv").read_text().splitlines()[1:]]


@pytest.mark.skipif("FEDSTEIN_NIGHTLY" not in os.environ, reason="minutes of waiting; .ci/nightly has it")
def test_a_supernode_that_is_killed_misses_the_deadline_and_takes_part_again_later(
    roles: Callable[..., Roles], sites: Callable[..., Path], tmp_path: Path
) -> None:
    keys_ = ("rounds=4", "algorithm.local_steps=8000", "federation.deadline=25.0")
    split = sites(2, *keys_)
    federation = roles()
    federation.superlink()
    for index in range(2):
        federation.node(index, split / str(index) / "site.toml")
    out = tmp_path / "run"
    more = (
        'set="algorithm.local_steps=8000 algorithm.particles=3 model.hidden=[8] federation.deadline=25.0"',
        "rounds=4",
    )
    federation.flwr("run", str(app(tmp_path, split, 2)), "lab", *keys(out, split, *more))
    wait_until(lambda: rounds(out) >= 1, "the first round")
    wait_until(lambda: federation.runs("node1", "flwr-clientapp"), "the visit of the second round")
    federation.kill("node1")
    # The round is repeated with the other site.
    wait_until(lambda: (2, 1, "unanswered") in events(out), "the end of the second round")
    federation.node(1, split / "1" / "site.toml", name="node1-again")
    wait_until(lambda: (out / "report" / "report.html").exists(), "the end of the run")
    # The round was repeated with the other site, and nothing came twice. On a loaded machine the node that is back may
    # give its scores of round 2 after the deadline: they come in round 3, and are dropped.
    found = events(out)
    assert {(2, 1, "unanswered"), (2, 0, "substitute")} <= set(found), found
    assert not {event for _, _, event in found} & {"duplicate", "failed", "refused"}, found
    assert {event for event in found if event[2] == "stale"} <= {(3, 1, "stale")}, found
    assert trained(out) == ["0", "0", "0", "1"] and (4, 1, "unanswered") not in found, found


# A SuperNode that waits before each object of an answer, as long as there is a file `slow`.
SLOW = """
import pathlib, sys, time
from importlib.metadata import entry_points

from flwr.supernode import fleet_http_connection as connection

made = connection.make_push_object_fn_protobuf


def make(*args, **keys):
    push = made(*args, **keys)

    def slowly(name, content):
        time.sleep(45 if pathlib.Path("slow").exists() else 0)
        return push(name, content)

    return slowly


connection.make_push_object_fn_protobuf = make
sys.argv[0] = "flower-supernode"
(command,) = entry_points(group="console_scripts", name="flower-supernode")
sys.exit(command.load()())
"""


@pytest.mark.skipif("FEDSTEIN_NIGHTLY" not in os.environ, reason="minutes of waiting; .ci/nightly has it")
def test_a_site_that_uploads_slowly_does_not_keep_back_what_others_answer(
    roles: Callable[..., Roles], sites: Callable[..., Path], tmp_path: Path
) -> None:
    split = sites(2, "rounds=3", "federation.deadline=60.0")
    federation = roles()
    federation.superlink()
    (tmp_path / "slow.py").write_text(SLOW)
    federation.node(0, split / "0" / "site.toml", program=f"{sys.executable} {tmp_path}/slow.py")
    federation.node(1, split / "1" / "site.toml")
    out = tmp_path / "run"
    more = (
        'set="algorithm.local_steps=20 algorithm.particles=3 model.hidden=[8] federation.deadline=60.0"',
        "rounds=3",
    )
    federation.flwr("run", str(app(tmp_path, split, 2)), "lab", *keys(out, split, *more))
    wait_until(lambda: rounds(out) >= 1, "the first round")
    (tmp_path / "slow").touch()
    wait_until(lambda: (out / "report" / "report.html").exists(), "the end of the run")
    found = events(out)
    assert any(event[1:] == (0, "unanswered") for event in found), found
    assert {event for _, client, event in found if client == 1} <= {"substitute"}, found
    assert trained(out)[1:] == ["1", "1"], found


@pytest.mark.skipif("FEDSTEIN_NIGHTLY" not in os.environ, reason="minutes of waiting; .ci/nightly has it")
def test_a_site_whose_own_file_is_damaged_in_the_middle_fails_and_takes_part_again_when_it_is_mended(
    roles: Callable[..., Roles], sites: Callable[..., Path], tmp_path: Path
) -> None:
    split = sites(2, "rounds=8")
    federation = roles()
    federation.superlink()
    for index in range(2):
        federation.node(index, split / str(index) / "site.toml")
    out = tmp_path / "run"
    federation.flwr("run", str(app(tmp_path, split, 2)), "lab", *keys(out, split, TEMPLATE[0], "rounds=8"))
    wait_until(lambda: rounds(out) >= 2, "the second round")
    file = split / "1" / "site.toml"
    right = file.read_text()
    file.write_text("index = one")
    wait_until(lambda: any(event[1:] == (1, "failed") for event in events(out)), "a visit that fails")
    file.write_text(right)
    failed = rounds(out)
    wait_until(lambda: (out / "report" / "report.html").exists(), "the end of the run")
    assert "1" in trained(out)[failed:], trained(out)
    assert "site.toml" not in (out / "events.jsonl").read_text()
    assert "site.toml" in federation.log("node1")


SPOILED = """
import numpy as np
from fedstein.flower import _client
from flwr.app import Array, ArrayRecord
from flwr.clientapp import ClientApp

app = ClientApp()
app.query()(_client._answer)
app.evaluate()(_client._answer)


@app.train()
def train(message, context):
    reply = _client._answer(message, context)
    if context.node_config["partition-id"] == {client}:
        spoiled = {{name: np.full_like(array.numpy(), np.nan) for name, array in reply.content["arrays"].items()}}
        reply.content["arrays"] = ArrayRecord({{name: Array(values) for name, values in spoiled.items()}})
    return reply
"""


@pytest.mark.skipif("FEDSTEIN_NIGHTLY" not in os.environ, reason="minutes of waiting; .ci/nightly has it")
def test_a_site_whose_replies_are_not_numbers_has_the_effect_of_that_fault_in_a_run_without_flower(
    roles: Callable[..., Roles], sites: Callable[..., Path], command: Command, tmp_path: Path
) -> None:
    split = sites(2, "rounds=5")
    faults = ("--set", 'faults.kinds=["nan"]', "--set", "faults.share=0.5")
    expected = reference(command, split, 2, tmp_path / "reference", *faults)
    found = events(tmp_path / "reference")
    (client,) = {event[1] for event in found if event[2] == "refused"}
    for site in split.glob("*/state"):
        shutil.rmtree(site)
    project = app(tmp_path, split, 2)
    (project / "spoiled").mkdir()
    (project / "spoiled" / "__init__.py").write_text(SPOILED.format(client=client))
    described = (project / "pyproject.toml").read_text()
    (project / "pyproject.toml").write_text(described.replace("fedstein.flower:client_app", "spoiled:app"))
    federation = roles()
    federation.superlink()
    for index in range(2):
        federation.node(index, split / str(index) / "site.toml")
    out = tmp_path / "run"
    federation.flwr("run", str(project), "lab", *keys(out, split, TEMPLATE[0], "rounds=5"))
    wait_until(lambda: (out / "report" / "report.html").exists(), "the end of the run")
    assert events(out) == found
    assert particles(out) == expected


def test_a_run_that_flower_stops_goes_on_to_the_same_bits(
    roles: Callable[..., Roles], sites: Callable[..., Path], command: Command, tmp_path: Path
) -> None:
    split = sites(2, "rounds=6")
    federation = roles(database=True)
    federation.superlink()
    for index in range(2):
        federation.node(index, split / str(index) / "site.toml")
    out, project = tmp_path / "run", app(tmp_path, split, 2)
    more = (TEMPLATE[0], "rounds=6")
    started = json.loads(federation.flwr("run", str(project), "lab", "--format", "json", *keys(out, split, *more)))
    wait_until(lambda: rounds(out) >= 2, "the second round")
    federation.flwr("stop", str(started["run-id"]), "lab")
    wait_until(lambda: not federation.runs("superlink", "flwr-serverapp"), "the stop")
    done = rounds(out)
    assert 2 <= done < 6 and not (out / "report").exists()
    federation.flwr("run", str(project), "lab", *keys(out, split, "resume=true", *more))
    wait_until(lambda: rounds(out) > done, "a round after the resume")
    # The SuperLink dies and is started again on its database; the run goes on from its checkpoint.
    federation.kill("superlink")
    federation.superlink()
    federation.flwr("run", str(project), "lab", *keys(out, split, "resume=true", *more))
    wait_until(lambda: (out / "report" / "report.html").exists(), "the end of the run")
    assert particles(out) == reference(command, split, 2, tmp_path / "reference")


def test_a_site_without_its_rows_ends_the_run_before_its_first_round_and_the_server_sees_no_path(
    roles: Callable[..., Roles], sites: Callable[..., Path], tmp_path: Path
) -> None:
    split = sites(2)
    federation = roles()
    federation.superlink()
    (split / "1" / "train.csv").unlink()
    for index in range(2):
        federation.node(index, split / str(index) / "site.toml")
    out = tmp_path / "run"
    log = federation.flwr("run", str(app(tmp_path, split, 2)), "lab", "--stream", *keys(out, split, *TEMPLATE))
    assert "its own file or its rows cannot be used; its log says why" in " ".join(log.split())
    assert not (out / "rounds.csv").exists()
    assert "train.csv" not in log and "train.csv" in federation.log("node1")


@pytest.mark.skipif("FEDSTEIN_REQUIRE_RAY" not in os.environ, reason="Ray is not asked for")
def test_a_simulation_has_the_bits_of_a_run_in_one_process(
    roles: Callable[..., Roles], command: Command, tmp_path: Path
) -> None:
    federation = roles()
    federation.superlink(simulation=True)
    out, project = tmp_path / "run", app(tmp_path, None, 0)
    simulate(federation, project, TEMPLATE[0], "rounds=3", f'out="{out}"')
    wait_until(lambda: (out / "report" / "report.html").exists(), "the end of the run")
    assert particles(out) == in_one_process(command, tmp_path / "reference", "rounds=3")


@pytest.mark.skipif("FEDSTEIN_REQUIRE_RAY" not in os.environ, reason="Ray is not asked for")
def test_a_simulation_that_flower_stops_goes_on_to_the_same_bits(
    roles: Callable[..., Roles], command: Command, tmp_path: Path
) -> None:
    federation = roles()
    federation.superlink(simulation=True)
    out, project = tmp_path / "run", app(tmp_path, None, 0)
    changes = (TEMPLATE[0], "rounds=100", f'out="{out}"')
    started = json.loads(simulate(federation, project, *changes))
    wait_until(lambda: rounds(out) >= 2, "the second round")
    federation.flwr("stop", str(started["run-id"]), "lab")
    wait_until(lambda: not federation.runs("superlink", "flwr-simulation"), "the stop")
    assert 2 <= rounds(out) < 100 and not (out / "report").exists()
    simulate(federation, project, *changes, "resume=true")
    wait_until(lambda: (out / "report" / "report.html").exists(), "the end of the run")
    assert particles(out) == in_one_process(command, tmp_path / "reference", "rounds=100")


def simulate(federation: Roles, project: Path, *changes: str) -> str:
    """Start a simulation of ten clients with these changes of the app's config; what Flower prints."""
    nodes = "num-supernodes=10 client-resources-num-cpus=1"
    options = ("--format", "json", "--federation-config", nodes, "-c", " ".join(changes))
    return federation.flwr("run", str(project), "lab", *options)


def in_one_process(command: Command, out: Path, *keys: str) -> bytes:
    """The particles of the built-in experiment with these keys."""
    command("train", "--quiet", "--out", str(out), *(part for key in (*SMALL, *keys) for part in ("--set", key)))
    return particles(out)
