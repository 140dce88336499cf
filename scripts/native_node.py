#!/usr/bin/env python3
"""Tries `fedstein supernode` against a real SuperLink of Flower on this machine: two nodes with sites of configs/sites, and
a ServerApp that asks each node who it is, in a form that no node understands, and with too many bytes. With --train a third
site joins over a SuperNode of Flower's, and the three train: the particles must have the bits of `fedstein train --sites`; with
--kill a native node is killed in the middle of a visit and started again on the way. Without a SuperLink it ends with exit code 1
after a minute (--alone).

    cargo build --release
    python3 -m venv /tmp/flower && /tmp/flower/bin/pip install "flwr==1.41.*"
    python3 scripts/native_node.py /tmp/flower                    (--tls, --keys, --restart, --train, --kill, --alone; --help)

It needs nothing but Python 3.11, openssl and ssh-keygen for --tls and --keys, and for --train fedstein's wheel in the virtual
environment. It listens on 127.0.0.1 only and ends what it starts. The exit code is 0 where everything was as expected.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 120  # seconds for any one step

APP = '''
import json, time
import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

server = ServerApp()
client = ClientApp()
# The question who a site is: `remote::ask_who` as records.
WHO = {"protocol": PROTOCOL, "version": "0.1.0", "run": "0" * 16, "number": 0, "content": '{"kind":"identify"}', "arrays": "[]"}


def ask(grid, records, kind="query"):
    """The answers of all nodes to the same records, and the seconds until each was there."""
    from_, answers = time.monotonic(), {}
    waiting = set(grid.push_messages([Message(records, node, kind, ttl=100.0) for node in grid.get_node_ids()]))
    while waiting and time.monotonic() < from_ + 60:
        for reply in grid.pull_messages(waiting):
            waiting.discard(reply.metadata.reply_to_message_id)
            told = {"error": reply.error.reason} if reply.has_error() else dict(reply.content["fedstein"])
            answers[reply.metadata.src_node_id] = told | {"seconds": time.monotonic() - from_}
        time.sleep(0.05)
    return list(answers.values())


@server.main()
def main(grid, context):
    while len(list(grid.get_node_ids())) < context.run_config["nodes"]:
        time.sleep(0.2)
    def records(envelope, **more):
        return RecordDict({"fedstein": ConfigRecord(envelope), "numbers": MetricRecord({}), "arrays": ArrayRecord(more)})
    # Four chunks of Flower's, of which three are the same.
    long = Array(np.zeros(4_500_000, "<f4"))
    found = {
        "who": ask(grid, records(WHO)),
        "again": ask(grid, records(WHO)),
        "protocol": ask(grid, records(WHO | {"protocol": 99})),
        "foreign": ask(grid, RecordDict({"config": ConfigRecord({"lr": 0.1})}), "train"),
        "arrays": ask(grid, records(WHO, a=long)),
        "long": ask(grid, records(WHO, **{f"a{k}": Array(np.full(4_500_000, k, "<f4")) for k in range(5)})),
    }
    with open(context.run_config["out"], "w") as file:
        json.dump(found, file)
'''

PROJECT = """
[project]
name = "who"
version = "1.0.0"
license = "Apache-2.0"
dependencies = ["flwr"]

[tool.flwr.app]
publisher = "nobody"

[tool.flwr.app.components]
serverapp = "who.app:server"
clientapp = "who.app:client"

[tool.flwr.app.config]
out = "{out}"
nodes = 2
"""

TRAINING = """
[project]
name = "training"
version = "1.0.0"
license = "Apache-2.0"
dependencies = ["flwr", "fedstein"]

[tool.flwr.app]
publisher = "nobody"

[tool.flwr.app.components]
serverapp = "fedstein.flower:server_app"
clientapp = "fedstein.flower:client_app"

[tool.flwr.app.config]
sites = 3
rounds = {rounds}
out = "{out}"
config = "{config}"
# A node that was killed gets its key back after a minute.
rejoin-seconds = 60
"""


class Roles:
    """Processes in groups of their own, which end with this."""

    def __init__(self, directory, environment):
        self.directory, self.environment, self.running = directory, environment, {}

    def start(self, name, *words):
        log = open(self.directory / f"{name}.log", "ab")
        self.running[name] = subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
            cwd=self.directory, start_new_session=True,
        )

    def end(self, name, how=signal.SIGTERM):
        process = self.running.pop(name)
        for what in (how, signal.SIGKILL):
            try:
                os.killpg(process.pid, what)
            except ProcessLookupError:
                pass
            try:
                return process.wait(15)
            except subprocess.TimeoutExpired:
                continue

    def log(self, name):
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def memory(self, name):
        """The resident MiB of a process now and at most."""
        status = Path(f"/proc/{self.running[name].pid}/status").read_text().splitlines()
        sizes = dict(line.split(":", 1) for line in status)
        return [round(int(sizes[key].split()[0]) / 1024, 1) for key in ("VmRSS", "VmHWM")]


def until(what, holds, limit=LIMIT):
    end = time.monotonic() + limit
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"not within {limit} s: {what}")
        time.sleep(0.1)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def certificates(directory):
    """A root certificate, and one for 127.0.0.1 that it has signed."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=test root", "-days", "2")
    openssl("req", *key, "-keyout", "s.key", "-out", "s.csr", "-subj", "/CN=127.0.0.1")
    (directory / "san").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl(*"x509 -req -in s.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out s.crt -days 2 -extfile san".split())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("flower", type=Path, help="a virtual environment with flwr")
    parser.add_argument("--fedstein", type=Path, default=ROOT / "target/release/fedstein", help="the built command")
    parser.add_argument("--port", type=int, default=28010)
    parser.add_argument("--tls", action="store_true", help="over TLS, with certificates made for this")
    parser.add_argument("--keys", action="store_true", help="with keys that the SuperLink knows; needs --tls")
    parser.add_argument("--restart", action="store_true", help="also kills the SuperLink and starts it again")
    parser.add_argument("--train", type=int, metavar="ROUNDS", default=0, help="also trains, with one Python node")
    parser.add_argument("--kill", action="store_true", help="also kills a native node in a visit; needs --train")
    parser.add_argument("--alone", action="store_true", help="also waits until a node without a SuperLink gives up")
    parser.add_argument("--keep", type=Path, help="a new directory for logs, else a temporary one")
    typed = parser.parse_args()
    if typed.keys and not typed.tls:
        parser.error("--keys needs --tls")
    if typed.kill and not typed.train:
        parser.error("--kill needs --train")
    directory = typed.keep or Path(tempfile.mkdtemp(prefix="native-node-"))
    directory.mkdir(exist_ok=True)
    environment = os.environ | {
        "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "FLWR_HOME": str(directory / "home"),
        "NO_COLOR": "1", "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
        "PATH": f"{typed.flower.resolve() / 'bin'}:{os.environ['PATH']}",
    }  # fmt: skip
    roles = Roles(directory, environment)
    try:
        rehearse(typed, directory, environment, roles)
    except BaseException:
        for log in sorted(directory.glob("*.log")):
            print(f"---- {log}\n{log.read_text(errors='replace')[-3000:]}", file=sys.stderr)
        raise
    finally:
        for name in list(roles.running):
            roles.end(name)
        if typed.keep is None:
            shutil.rmtree(directory, ignore_errors=True)


def rehearse(typed, directory, environment, roles):
    address = f"127.0.0.1:{typed.port}"
    source = (ROOT / "src/remote/envelope.rs").read_text()
    protocol = re.search(r"PROTOCOL: u32 = (\d+)", source).group(1)
    shutil.copytree(ROOT / "configs/sites", directory / "sites", ignore=shutil.ignore_patterns("state", "runs"))
    names = ["north", "east"]
    for name in names:
        # Room for one array of 18 MB, not for five.
        with open(directory / "sites" / name / "site.toml", "a") as file:
            file.write("\n[limits]\nmegabytes = 50\n")
    (directory / "app/who").mkdir(parents=True)
    (directory / "app/who/__init__.py").write_text("")
    (directory / "app/who/app.py").write_text(APP.replace("PROTOCOL", protocol))
    out = directory / "found.json"
    (directory / "app/pyproject.toml").write_text(PROJECT.format(out=out))
    server, trust = ["--insecure"], ["--insecure"]
    (directory / "home").mkdir()
    lab = "insecure = true"
    if typed.tls:
        certificates(directory)
        server = ["--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "s.crt", "--ssl-keyfile", "s.key"]
        trust = ["--root-certificates", "ca.crt"]
        lab = f'root-certificates = "{directory}/ca.crt"'
    if typed.keys:
        # With a database the SuperLink knows the keys, and the nodes, when it is started again.
        server += ["--enable-supernode-auth", "--database", "superlink.db"]
    config = f'[superlink]\ndefault = "lab"\n[superlink.lab]\naddress = "{address}"\n{lab}\n'
    (directory / "home/config.toml").write_text(config)

    def superlink():
        words = ["--host", "127.0.0.1", "--port", typed.port, "--disable-runtime-dependency-installation"]
        roles.start("superlink", "flower-superlink", *server, *words)

    def flwr(*words):
        return subprocess.run(
            ["flwr", *words], env=environment, cwd=directory / "app", timeout=LIMIT, capture_output=True, text=True
        )

    def node(name, *more):
        command = [typed.fedstein.resolve(), "supernode", "--superlink", address, *trust, *more]
        roles.start(name, *command, "--site", f"sites/{name}/site.toml")

    if typed.alone:
        start = time.monotonic()
        node(names[0])
        code = roles.running[names[0]].wait(LIMIT)
        assert code == 1, code
        print(f"a node without a SuperLink: exit code 1 after {time.monotonic() - start:.0f} s:", roles.log(names[0]).strip())
        roles.end(names[0])
        (directory / f"{names[0]}.log").unlink()

    # The first node is there before its SuperLink is.
    keys = {name: [] for name in [*names, "south"]}
    if typed.keys:
        for name, bits in zip(keys, ("384", "256", "384")):
            subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", bits, "-N", "", "-f", directory / name], check=True)
            keys[name] = ["--auth-supernode-private-key", name]
    else:
        node(names[0])
        until("the node says that the SuperLink is away", lambda: "trying again" in roles.log(names[0]))
    superlink()
    until("the SuperLink listens", lambda: listens(typed.port))
    if typed.keys:
        # A node whose key is not known does not get in.
        node(names[0])
        assert roles.running[names[0]].wait(LIMIT) == 1, "a node without a known key has joined"
        print("refused:", roles.log(names[0]).strip())
        roles.end(names[0])
        for name in keys:
            done = flwr("supernode", "register", str(directory / f"{name}.pub"))
            assert done.returncode == 0, done.stdout + done.stderr
        for name in names:
            node(name, *keys[name])
    else:
        node(names[1])
    for name in names:
        until("the node has joined", lambda: "node" in roles.log(name))

    def ask():
        out.unlink(missing_ok=True)
        done = flwr("run", ".", "lab", "--stream")
        assert out.exists(), done.stdout + done.stderr
        found = json.loads(out.read_text())
        check(found, names)
        return found

    for name in names:
        print(name, "resident MiB before a message:", roles.memory(name)[0])
    found = ask()
    for question in ("who", "again", "arrays"):
        print(question, "seconds until the answers:", [round(answer["seconds"], 2) for answer in found[question]])
    print("refused by the nodes:", found["long"][0]["error"])
    for name in names:
        print(name, "resident MiB now and at most:", roles.memory(name))
    if typed.train:
        train(typed, directory, environment, roles, names, [*trust, *keys["south"]], lambda: node(names[0], *keys[names[0]]))
    if typed.restart:
        roles.end("superlink", signal.SIGKILL)
        until("the port is free", lambda: not listens(typed.port))
        again = "answers again" if typed.keys else "joining it anew"
        before = {name: roles.log(name).count(again) for name in names}
        superlink()
        for name in names:
            until("the node is there again", lambda: roles.log(name).count(again) > before[name])
        ask()
        print("the nodes are there after a restart of the SuperLink")
    for name, how in zip(names, (signal.SIGTERM, signal.SIGINT)):
        code = roles.end(name, how)
        assert code == 0 and "has left" in roles.log(name), (name, code)
    print(roles.log(names[0]).strip())
    print("as expected")


def busy(process):
    """The seconds of CPU time that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def in_a_visit(process):
    before = busy(process)
    time.sleep(1.0)
    return busy(process) - before > 0.3


def train(typed, directory, environment, roles, names, trust, again):
    """Rounds with two native nodes and one SuperNode of Flower's, and the same without Flower."""
    if typed.kill:
        # Visits of some seconds.
        path = directory / "sites/run.toml"
        text, count = re.subn(r"(?m)^local_steps = .*$", "local_steps = 6000", path.read_text())
        assert count == 1, text
        path.write_text(text)
    shutil.copytree(directory / "sites", directory / "same")
    (directory / "training").mkdir()
    text = TRAINING.format(rounds=typed.train, out=directory / "over-flower", config=directory / "sites/run.toml")
    (directory / "training/pyproject.toml").write_text(text)
    site = f'partition-id=2 site="{directory}/sites/south/site.toml"'
    address = ("--superlink", f"127.0.0.1:{typed.port}", "--port", typed.port + 1)
    roles.start("south", "flower-supernode", *trust, *address, "--node-config", site)

    def run(where, *words):
        done = subprocess.run(words, cwd=where, env=environment, timeout=5 * LIMIT, capture_output=True, text=True)
        (directory / "run.log").write_text(done.stdout + done.stderr)
        return done

    start = time.monotonic()
    if typed.kill:
        words = ("flwr", "run", ".", "lab", "--stream")
        running = subprocess.Popen(words, cwd=directory / "training", env=environment, stdout=subprocess.DEVNULL)
        rounds = directory / "over-flower/rounds.csv"
        until("the first round", lambda: rounds.exists() and len(rounds.read_text().splitlines()) > 1)
        until("a visit", lambda: in_a_visit(roles.running[names[0]]))
        assert len(rounds.read_text().splitlines()) <= typed.train, "the run has ended before"
        roles.end(names[0], signal.SIGKILL)
        print(f"killed {names[0]} in a visit after {len(rounds.read_text().splitlines()) - 1} rounds")
        again()
        running.wait(5 * LIMIT)
    else:
        run(directory / "training", "flwr", "run", ".", "lab", "--stream")
    print(f"{typed.train} rounds over Flower: {time.monotonic() - start:.1f} s")
    files = ",".join(f"same/{name}/site.toml" for name in [*names, "south"])
    command = (str(typed.fedstein.resolve()), "train", "same/run.toml", "--sites", files, "--quiet")
    start = time.monotonic()
    done = run(directory, *command, "--set", f"rounds={typed.train}", "--out", "without-flower")
    assert done.returncode == 0, done.stderr
    print(f"{typed.train} rounds without Flower: {time.monotonic() - start:.1f} s")
    found, same = (
        (directory / out / "particles.safetensors").read_bytes() for out in ("over-flower", "without-flower")
    )
    assert found == same, "the particles differ"
    print(f"the same particles, {len(found)} bytes")
    for name in names:
        print(name, "resident MiB now and at most:", roles.memory(name))
    roles.end("south")


def check(found, names):
    def content(answer):
        return json.loads(answer["content"])
    for question in ("who", "again"):
        told = sorted((content(answer)["index"], content(answer)["name"]) for answer in found[question])
        assert told == list(enumerate(names)), found[question]
    for question, word in (("protocol", "protocol 99"), ("arrays", "lists 0 arrays and carries 1")):
        assert len(found[question]) == 2, found[question]
        for answer in found[question]:
            said = answer["error"] if "error" in answer else content(answer)["reason"]
            assert word in said, (question, said)
    for question, word in (("foreign", "the record `config`"), ("long", "more than the 52428800 bytes")):
        assert [word in answer["error"] for answer in found[question]] == [True, True], found[question]


if __name__ == "__main__":
    main()
