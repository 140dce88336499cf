#!/usr/bin/env python3
"""Federated averaging and FedProx of Flower with PyTorch, beside fedstein, on the same clients in Flower's simulation.

    python scripts/flower_peers.py prepare WORK        the clients' rows, inputs as they are and rotated, as .npy files
    python scripts/flower_peers.py choose WORK         settings, on rows held out from the clients' training rows
    python scripts/flower_peers.py run WORK NAME...    runs in Flower's simulation: NAME or NAME:SEED, the names of RUNS
    python scripts/flower_peers.py run-whole WORK ...  the same, to the last round; `run` ends when both targets are met
    python scripts/flower_peers.py table WORK          the table of docs/results.md, and WORK/rounds.csv

It needs `pip install "./python[flower,simulation]" torch`, the directory of MNIST in FEDSTEIN_DATA, a Linux machine and
the ports 29000 to 29099. Every process that it starts is ended by it.

MNIST, ten clients with three labels each, a network 784-100-10 (relu). The rows are those that `fedstein site split`
gives each client; all are scored on the same 10,000 test rows after every round. A visit is one training of one client.
This file is also the Flower app of the PyTorch runs: `run` copies it into a project.
"""

from __future__ import annotations

import contextlib
import csv
import ctypes
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg, FedProx

CONFIG = Path(__file__).resolve().parent.parent / "configs" / "mnist" / "newton-bnn.toml"
CLIENTS, BATCH = 10, 32
# The most rounds of a setting in the choice, and the most seconds of a run.
MOST, LIMIT = 15, 1500
ACCURACY, NLL = 0.90, 0.35
HELD_OUT = 0.1
PARTITION = {"partition.clients": CLIENTS, "partition.labels": 3}
AVERAGING = {
    "algorithm.kind": "fedavg",
    "schedule.clients": CLIENTS,
    "rounds": 60,
}
# The settings that `choose` found. An app's keys for a PyTorch run, fedstein's keys for a run of fedstein.
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "newton": ("fedstein", {}),
    "newton-rarely": ("fedstein", {"evaluation.every": 10}),
    "newton-once": ("fedstein", {"schedule.clients": CLIENTS, "rounds": 12}),
    "newton-one-f16": ("fedstein", {"algorithm.particles": 1, "federation.wire": "f16"}),
    "averaging": ("fedstein", AVERAGING | {"algorithm.local_steps": 250, "optimizer.lr": 3e-3}),
    "averaging-short": ("fedstein", AVERAGING | {"algorithm.local_steps": 50, "optimizer.lr": 1e-2}),
    "flower-fedavg": ("torch", {"mu": 0.0, "lr": 0.3, "epochs": 10, "inputs": "rotated", "rounds": 60}),
    "flower-fedavg-short": ("torch", {"mu": 0.0, "lr": 0.3, "epochs": 1, "inputs": "rotated", "rounds": 60}),
    "flower-fedprox": ("torch", {"mu": 0.001, "lr": 0.3, "epochs": 10, "inputs": "rotated", "rounds": 60}),
}
NAMES = {
    "newton": "fedstein `newton-dsvgd`, relay, ten particles",
    "newton-rarely": "the same, scored after every tenth round",
    "newton-once": "fedstein `newton-dsvgd`, ten at once, ten particles",
    "newton-one-f16": "fedstein `newton-dsvgd`, relay, one particle, half precision",
    "averaging": "fedstein `fedavg`, ten at once, 250 steps",
    "averaging-short": "fedstein `fedavg`, ten at once, 50 steps",
    "flower-fedavg": "Flower FedAvg, PyTorch, ten at once, 10 epochs",
    "flower-fedavg-short": "Flower FedAvg, PyTorch, ten at once, 1 epoch",
    "flower-fedprox": "Flower FedProx, PyTorch, ten at once, 10 epochs",
}

# --- What a PyTorch client and its server do ---


def network(seed: int) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(784, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10))


def rows(work: Path, inputs: str, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and labels of a client by its number, or of "test"."""
    return tuple(torch.from_numpy(np.load(work / inputs / f"{name}-{part}.npy")) for part in "xy")


def fit(
    net: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, *, lr: float, epochs: int, mu: float, seed: int
) -> None:
    """A visit: epochs of SGD on the client's rows, held to where the visit began by mu."""
    start = [weight.detach().clone() for weight in net.parameters()]
    optimiser = torch.optim.SGD(net.parameters(), lr=lr)
    shuffled = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for batch in torch.randperm(len(x), generator=shuffled).split(BATCH):
            loss = torch.nn.functional.cross_entropy(net(x[batch]), y[batch])
            if mu > 0:
                loss = loss + mu / 2 * sum(((a - b) ** 2).sum() for a, b in zip(net.parameters(), start))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def scores(net: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
    with torch.no_grad():
        logits = net(x)
    accuracy = (logits.argmax(1) == y).float().mean()
    return {"accuracy": float(accuracy), "nll": float(torch.nn.functional.cross_entropy(logits, y))}


client_app = ClientApp()
server_app = ServerApp()


@client_app.train()
def train(message: Message, context: Context) -> Message:
    torch.set_num_threads(1)
    config, client = message.content["config"], int(context.node_config["partition-id"])
    net = network(0)
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    x, y = rows(Path(str(config["work"])), str(config["inputs"]), str(client))
    seed = (int(config["seed"]) * 1000 + int(config["server-round"])) * 1000 + client
    mu = float(config.get("proximal-mu", 0.0))
    fit(net, x, y, lr=float(config["lr"]), epochs=int(config["epochs"]), mu=mu, seed=seed)
    content = {"arrays": ArrayRecord(net.state_dict()), "metrics": MetricRecord({"num-examples": len(x)})}
    return Message(RecordDict(content), reply_to=message)


@client_app.query()
def ready(message: Message, context: Context) -> Message:
    """Starts this process and reads the rows, as a site of fedstein does before the first round."""
    config = message.content["config"]
    x, _ = rows(Path(str(config["work"])), str(config["inputs"]), str(context.node_config["partition-id"]))
    return Message(RecordDict({"metrics": MetricRecord({"num-examples": len(x)})}), reply_to=message)


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    keys = context.run_config
    torch.set_num_threads(1)
    x, y = rows(Path(str(keys["work"])), str(keys["inputs"]), "test")
    net = network(int(keys["seed"]))
    initial = ArrayRecord(net.state_dict())
    size = sum(array.numpy().nbytes for array in initial.values() if isinstance(array, Array))
    common = {"fraction_evaluate": 0.0, "min_train_nodes": CLIENTS, "min_available_nodes": CLIENTS}
    mu = float(keys["mu"])
    strategy = FedProx(proximal_mu=mu, **common) if mu > 0 else FedAvg(**common)
    began = 0.0
    with (Path(str(keys["out"])) / "rounds.csv").open("w") as file:
        file.write("round,accuracy,nll,uplink_bytes,downlink_bytes,seconds\n")

        def evaluate(turn: int, arrays: ArrayRecord) -> MetricRecord:
            nonlocal began
            net.load_state_dict(arrays.to_torch_state_dict())
            found = scores(net, x, y)
            if turn == 0:
                began = time.monotonic()
            else:
                sent = size * CLIENTS
                seconds = time.monotonic() - began
                file.write(f"{turn},{found['accuracy']},{found['nll']},{sent},{sent},{seconds}\n")
                file.flush()
            return MetricRecord(found)

        config = ConfigRecord({name: keys[name] for name in ("work", "inputs", "lr", "epochs", "seed")})
        while len(nodes := list(grid.get_node_ids())) < CLIENTS:
            time.sleep(0.2)
        content = RecordDict({"config": config})
        grid.send_and_receive([Message(content, node, MessageType.QUERY) for node in nodes])
        strategy.start(grid, initial, num_rounds=int(keys["rounds"]), train_config=config, evaluate_fn=evaluate)
    (Path(str(keys["out"])) / "done").touch()


# --- The rows ---


def command(name: str) -> str:
    return shutil.which(name, path=sysconfig.get_path("scripts")) or name


def settings(keys: Mapping[str, Any]) -> list[str]:
    return [part for name, value in keys.items() for part in ("--set", f"{name}={value}")]


def prepare(work: Path) -> None:
    """Write the rows that fedstein gives each client."""
    for inputs, rotate in (("rotated", "principal"), ("plain", "none")):
        split, out = work / f"{inputs}-csv", work / inputs
        out.mkdir(parents=True)
        keys = settings(PARTITION | {"data.rotate": rotate})
        subprocess.run([command("fedstein"), "site", "split", str(CONFIG), *keys, "--out", str(split)], check=True)
        tests: dict[int, np.ndarray] = {}
        for client in range(CLIENTS):
            table = read(split / str(client) / "train.csv")
            save(out, str(client), table)
            # The test rows of a label are those of every client that has it; each is needed once.
            table = read(split / str(client) / "test.csv")
            for label in np.unique(table[:, 0]):
                tests.setdefault(int(label), table[table[:, 0] == label])
        test = np.concatenate(list(tests.values()))
        assert len(test) == 10_000, len(test)
        save(out, "test", test)
        shutil.rmtree(split)


def read(path: Path) -> np.ndarray:
    with path.open() as file:
        assert file.readline().startswith("target,")
        return np.loadtxt(file, delimiter=",", dtype=np.float32)


def save(out: Path, name: str, table: np.ndarray) -> None:
    np.save(out / f"{name}-x.npy", np.ascontiguousarray(table[:, 1:]))
    np.save(out / f"{name}-y.npy", table[:, 0].astype(np.int64))


# --- The choice of settings ---


def held_out(x: torch.Tensor, client: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of the rows that a client trains with in the choice, and of those that are held out."""
    order = torch.from_numpy(np.random.default_rng(client).permutation(len(x)))
    cut = int(len(x) * HELD_OUT)
    return order[cut:], order[:cut]


def averaging(work: Path, inputs: str, lr: float, epochs: int, mu: float, rounds: int) -> Iterator[dict[str, float]]:
    """Rounds of averaging in this process, without test rows, until both targets are reached."""
    parts, kept = [], []
    for client in range(CLIENTS):
        x, y = rows(work, inputs, str(client))
        train, rest = held_out(x, client)
        parts.append((x[train], y[train]))
        kept.append((x[rest], y[rest]))
    x, y = (torch.cat(part) for part in zip(*kept))
    net, best = network(1), {"accuracy": 0.0, "nll": float("inf")}
    weights = torch.tensor([float(len(part[1])) for part in parts])
    weights /= weights.sum()
    for turn in range(1, rounds + 1):
        start, ends = {name: value.clone() for name, value in net.state_dict().items()}, []
        for client, (rows_x, rows_y) in enumerate(parts):
            net.load_state_dict(start)
            fit(net, rows_x, rows_y, lr=lr, epochs=epochs, mu=mu, seed=turn * 1000 + client)
            ends.append({name: value.clone() for name, value in net.state_dict().items()})
        net.load_state_dict({name: sum(w * end[name] for w, end in zip(weights, ends)) for name in start})
        found = scores(net, x, y)
        best = {"accuracy": max(best["accuracy"], found["accuracy"]), "nll": min(best["nll"], found["nll"])}
        yield found
        if best["accuracy"] >= ACCURACY and best["nll"] <= NLL or not np.isfinite(found["nll"]):
            return


def choose(work: Path) -> None:
    """Try settings on held-out rows. Chosen: the fewest visits to both targets, then the lowest NLL at the end.

    What has made more visits than the best of its kind is given up. What is in choice.csv is not tried again.
    """
    torch.set_num_threads(1)
    path = work / "choice.csv"
    if not path.exists():
        path.write_text("who,settings,rounds to accuracy,rounds to NLL,rounds,accuracy at the end,NLL at the end\n")
    known = {(row["who"], row["settings"]): row for row in table_of(path)}

    def tried(who: str, name: str, rounds: Callable[[int], list[tuple[float, float]]], most: int) -> tuple[int, float]:
        if (who, name) not in known:
            found = rounds(most)
            met = [next((turn for turn, row in enumerate(found, 1) if test(row)), "") for test in TARGETS]
            with path.open("a") as file:
                csv.writer(file).writerow([who, name, *met, len(found), *(f"{value:.4f}" for value in found[-1])])
            known.update({(row["who"], row["settings"]): row for row in table_of(path)})
        row = known[who, name]
        met = [row["rounds to accuracy"], row["rounds to NLL"]]
        return (max(map(int, met)) if all(met) else LIMIT, float(row["NLL at the end"]))

    def peer(inputs: str, lr: float, epochs: int, mu: float, most: int) -> tuple[int, float]:
        def rounds(most: int) -> list[tuple[float, float]]:
            found = averaging(work, inputs, lr, epochs, mu, most)
            return [(row["accuracy"], row["nll"]) for row in found]

        return tried("torch", f"{inputs} lr={lr} epochs={epochs} mu={mu}", rounds, most)

    def own(steps: int, lr: float) -> tuple[int, float]:
        def rounds(most: int) -> list[tuple[float, float]]:
            keys = AVERAGING | {"algorithm.local_steps": steps, "optimizer.lr": lr, "rounds": most}
            keys |= PARTITION | {"partition.validation": HELD_OUT, "evaluation.rows": "validation"}
            out = work / f"choice-{steps}-{lr}"
            line = [command("fedstein"), "train", str(CONFIG), "--quiet", "--out", str(out), *settings(keys)]
            subprocess.run(line, check=True)
            return scored(out / "rounds.csv")

        return tried("fedstein fedavg", f"steps={steps} lr={lr}", rounds, MOST)

    found = {}
    for inputs, lr, epochs in itertools.product(("rotated", "plain"), (0.3, 0.1, 1.0), (5, 1, 10)):
        most = min([MOST, *(result[0] for result in found.values())])
        found[inputs, lr, epochs] = peer(inputs, lr, epochs, 0.0, most)
    inputs, lr, epochs = min(found, key=lambda keys: found[keys])
    print("FedAvg:", inputs, lr, epochs)
    found = {}
    for mu in (0.01, 0.001, 0.1, 1.0):
        found[mu] = peer(inputs, lr, epochs, mu, min([MOST, *(result[0] for result in found.values())]))
    print("FedProx:", min(found, key=lambda mu: found[mu]))
    found = {(steps, lr): own(steps, lr) for steps in (50, 250) for lr in (1e-3, 3e-3, 1e-2)}
    print("fedavg of fedstein:", min(found, key=lambda keys: found[keys]))


def scored(path: Path) -> list[tuple[float, float]]:
    """Accuracy and NLL after each round that is written; not a number for one without scores."""
    rows = (row for row in table_of(path) if row["seconds"])
    return [(float(row["accuracy"] or "nan"), float(row["nll"] or "nan")) for row in rows]


TARGETS = (lambda row: row[0] >= ACCURACY, lambda row: row[1] <= NLL)


def table_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


# --- Runs in Flower's simulation runtime ---


class Watch(threading.Thread):
    """Adds up processor time and memory of all processes below this one."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.times: dict[tuple[int, str], float] = {}
        self.cpu: list[tuple[float, float]] = []
        self.node = 0.0  # The largest peak of an actor of Ray's, MiB.

    def run(self) -> None:
        tick = os.sysconf("SC_CLK_TCK")
        while not self.ended.wait(0.5):
            for pid in below(os.getpid()):
                try:
                    stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                    title = Path(f"/proc/{pid}/cmdline").read_bytes()
                    status = Path(f"/proc/{pid}/status").read_text()
                except (OSError, IndexError):
                    continue
                self.times[pid, stat[19]] = (int(stat[11]) + int(stat[12])) / tick
                if title.startswith(b"ray::ClientAppActor"):
                    peak = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), "0")
                    self.node = max(self.node, int(peak) / 1024)
            self.cpu.append((time.time(), sum(self.times.values())))


def below(root: int) -> list[int]:
    """The processes below one."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [root]
    while todo:
        more = children.get(todo.pop(), [])
        found += more
        todo += more
    return found


def free_port() -> int:
    for port in range(29000, 29100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise SystemExit("no free port from 29000 to 29099")


def project(directory: Path, kind: str, keys: Mapping[str, Any]) -> None:
    """An app of Flower."""
    directory.mkdir(parents=True)
    module = "fedstein.flower"
    if kind == "torch":
        module = "peers"
        shutil.copy(__file__, directory / "peers.py")
    lines = [
        '[project]\nname = "peers"\nversion = "1.0.0"\ndescription = "Peers"\nlicense = "Apache-2.0"',
        "dependencies = []",
        f'[tool.flwr.app]\npublisher = "peers"\n[tool.flwr.app.components]\nserverapp = "{module}:server_app"',
        f'clientapp = "{module}:client_app"\n[tool.flwr.app.config]',
        *(f"{name} = {json.dumps(value)}" for name, value in keys.items()),
    ]
    (directory / "pyproject.toml").write_text("\n".join(lines) + "\n")


def run(work: Path, name: str, seed: int, whole: bool) -> None:
    """One run, its rounds and what it cost: until both targets are reached, or to its last round."""
    kind, keys = RUNS[name]
    out = work / "runs" / f"{name}-{seed}"
    if (out / "cost.json").exists():
        return
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    if kind == "torch":
        app = keys | {"work": str(work), "out": str(out), "seed": seed}
        result, last = out / "rounds.csv", out / "done"
    else:
        pairs = PARTITION | keys | {"seed": seed}
        app = {
            "out": str(out / "run"),
            "config": str(CONFIG),
            "data-dir": os.environ["FEDSTEIN_DATA"],
            "set": " ".join(f"{key}={value}" for key, value in pairs.items()),
        }
        result, last = out / "run" / "rounds.csv", out / "run" / "report" / "report.html"
    project(out / "app", kind, app)
    port = free_port()
    home = out / "flwr-home"
    home.mkdir()
    address = f'address = "127.0.0.1:{port}"\ninsecure = true'
    (home / "config.toml").write_text(f'[superlink]\ndefault = "lab"\n[superlink.lab]\n{address}\n')
    environment = os.environ | {
        "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "RAY_TMPDIR": str(work / "ray"),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Else Ray's actors are at a lower priority than the rest of the run.
        "RAY_worker_niceness": "0",
        "OMP_NUM_THREADS": "1",
        "RAYON_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "NO_COLOR": "1",
    }
    # What loses its parent becomes a child of this process, so that nothing is left and all is counted.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    watch, load = Watch(), os.getloadavg()[0]
    watch.start()
    try:
        with (out / "superlink.log").open("wb") as log:
            line = [command("flower-superlink"), "--insecure", "--simulation", "--host", "127.0.0.1"]
            line += ["--port", str(port), "--disable-runtime-dependency-installation"]
            subprocess.Popen(line, stdout=log, stderr=log, env=environment, cwd=out, start_new_session=True)
        wait(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, 90)
        began = time.time()
        federation = f"num-supernodes={CLIENTS} client-resources-num-cpus=1"
        line = [command("flwr"), "run", str(out / "app"), "lab", "--federation-config", federation]
        subprocess.run(line, env=environment, cwd=out, check=True, timeout=120)
        seen: dict[int, float] = {}

        def looked() -> bool:
            done = scored(result) if result.exists() else []
            if done:
                seen.setdefault(len(done), time.time())
            return last.exists() or (not whole and all(any(test(row) for row in done) for test in TARGETS))

        wait(looked, LIMIT)
    finally:
        watch.ended.set()
        watch.join()
        for pid in below(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
    found = table_of(result)
    first = min(seen)
    # When the first round began: before the first look that saw its row, by the seconds that it took.
    start = seen[first] - float(found[first - 1]["seconds"])
    cpu = [(at - start, used) for at, used in watch.cpu]
    cost = {
        "name": name,
        "seed": seed,
        "before_seconds": start - began,
        "node_mib": watch.node,
        "load": [load, os.getloadavg()[0]],
        "cpu": cpu,
        "rounds": [
            {key: float(row[key] or "nan") for key in ("accuracy", "nll", "uplink_bytes", "downlink_bytes", "seconds")}
            for row in found
        ],
    }
    (out / "cost.json").write_text(json.dumps(cost))
    shutil.rmtree(out / "run-sites", ignore_errors=True)


def wait(ready: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise SystemExit(f"not ready after {seconds} s")
        time.sleep(0.1)


# --- The table ---


def clock(cpu: Iterable[tuple[float, float]], at: float) -> float:
    """Processor seconds at a time of a run."""
    times, used = zip(*cpu)
    return float(np.interp(at, times, used))


def cells(cost: Mapping[str, Any], target: Any) -> list[str]:
    """Visits, MB down and up, seconds and processor seconds to a target."""
    found, each = cost["rounds"], visits(cost["name"])
    reached = next((turn for turn, row in enumerate(found) if target((row["accuracy"], row["nll"]))), None)
    if reached is None:
        return [f"not after {len(found) * each}", "", "", ""]
    rounds = found[: reached + 1]
    down, up = (sum(row[f"{way}link_bytes"] for row in rounds) / 1e6 for way in ("down", "up"))
    seconds = rounds[-1]["seconds"]
    used = clock(cost["cpu"], seconds) - clock(cost["cpu"], 0.0)
    return [str(len(rounds) * each), f"{down:.0f} + {up:.0f}", f"{seconds:.0f}", f"{used:.0f}"]


def visits(name: str) -> int:
    """Visits of a round."""
    kind, keys = RUNS[name]
    return CLIENTS if kind == "torch" else int(keys.get("schedule.clients", 1))


def table(work: Path) -> None:
    costs = [json.loads(path.read_text()) for path in sorted((work / "runs").glob("*/cost.json"))]
    order = list(RUNS)
    with (work / "rounds.csv").open("w") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow("run seed visits accuracy nll downlink_bytes uplink_bytes seconds cpu_seconds".split())
        for cost in costs:
            down = up = 0.0
            for turn, row in enumerate(cost["rounds"], 1):
                down, up = down + row["downlink_bytes"], up + row["uplink_bytes"]
                used = clock(cost["cpu"], row["seconds"]) - clock(cost["cpu"], 0.0)
                scored_ = ["" if np.isnan(row[key]) else f"{row[key]:.4f}" for key in ("accuracy", "nll")]
                first = [cost["name"], cost["seed"], turn * visits(cost["name"]), *scored_]
                lines.writerow([*first, int(down), int(up), f"{row['seconds']:.1f}", f"{used:.1f}"])
    head = ["run", "seed"]
    for target in (f"accuracy {ACCURACY:.2f}", f"NLL {NLL:.2f}"):
        head += [f"visits to {target}", "MB down + up", "seconds", "CPU s"]
    head += ["at the end", "visits", "seconds", "CPU s", "before round 1: seconds", "CPU s", "node, MiB", "load"]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for cost in sorted(costs, key=lambda cost: (order.index(cost["name"]), cost["seed"])):
        last, count = cost["rounds"][-1], len(cost["rounds"]) * visits(cost["name"])
        row = [NAMES[cost["name"]], str(cost["seed"]), *cells(cost, TARGETS[0]), *cells(cost, TARGETS[1])]
        before = clock(cost["cpu"], 0.0)
        started = before - cost["cpu"][0][1]
        row += [f"{last['accuracy']:.3f} / {last['nll']:.3f}", str(count), f"{last['seconds']:.0f}"]
        row += [
            f"{clock(cost['cpu'], last['seconds']) - before:.0f}",
            f"{cost['before_seconds']:.0f}",
            f"{started:.0f}",
        ]
        row += [f"{cost['node_mib']:.0f}", " to ".join(f"{load:.0f}" for load in cost["load"])]
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    what, folder, *names = sys.argv[1:]
    if what in ("run", "run-whole"):
        for each in names:
            # NAME or NAME:SEED. The seed of a PyTorch run does not change the rows of the clients.
            label, _, number = each.partition(":")
            run(Path(folder).resolve(), label, int(number or 1), what == "run-whole")
    else:
        {"prepare": prepare, "choose": choose, "table": table}[what](Path(folder).resolve())
