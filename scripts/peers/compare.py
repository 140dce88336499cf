#!/usr/bin/env python3
"""fedstein beside PFLlib: the same rows, network, steps and rounds for five methods of federated learning.

    python scripts/peers/compare.py prepare WORK --fedstein BINARY
    python scripts/peers/compare.py run WORK --fedstein BINARY --pfllib CHECKOUT [NAME...]
    python scripts/peers/compare.py table WORK      docs/results/beyond/peers/pfllib.csv, the table of docs/results.md

It needs a Python with torch, numpy, scikit-learn, h5py and matplotlib, which PFLlib imports, the directory of MNIST in
FEDSTEIN_DATA, and a checkout of https://github.com/TsingZ0/PFLlib, of which nothing is copied or changed. What is in
WORK already is not made again. A NAME is one of METHODS.

MNIST, twenty clients with Dirichlet(0.1) (`dirichlet.toml`), 784-100-10 with relu. fedstein's seed draws the partition,
the start and the minibatches; PFLlib has the same partition's rows, and a start and minibatches of its own.
"""

from __future__ import annotations

import argparse
import csv
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from common import KEPT, SEEDS, evaluated, mean_and_error, mnist_test, pfllib, save, site_table, split, train

CONFIG = Path(__file__).with_name("dirichlet.toml")
CLIENTS, ROUNDS, STEPS, BATCH, LR = 20, 40, 50, 10, 0.05
COMMON = {"clients": CLIENTS, "rounds": ROUNDS, "steps": STEPS, "batch": BATCH, "epochs": 1, "lr": LR, "every": 5}
MU, LAMBDA, INNER_STEPS, INNER_LR = 0.01, 15.0, 5, 0.01
PFEDME = {"lamda": LAMBDA, "inner_steps": INNER_STEPS, "inner_lr": INNER_LR}
# name -> keys of fedstein, PFLlib's name of the algorithm, and its keys.
METHODS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "fedavg": ({}, "FedAvg", {}),
    "fedprox": ({"algorithm.proximal": MU}, "FedProx", {"mu": MU}),
    "fedper": ({"algorithm.personal_layers": 1}, "FedPer", {}),
    "pfedme": (
        {"algorithm.proximal": LAMBDA, "algorithm.inner_steps": INNER_STEPS, "algorithm.inner_lr": INNER_LR},
        "pFedMe",
        PFEDME,
    ),
    "scaffold": ({"algorithm.server_lr": 1.0}, "SCAFFOLD", {}),
}
# Who ran -> PFLlib's keys beside those of the method.
VARIANTS: dict[str, dict[str, Any]] = {
    "memory": {"loader": "memory", "aligned": True},
    "memory-again": {"loader": "memory", "aligned": True, "draw": 1},
    "own": {"loader": "own", "aligned": True},
    "unaligned": {"loader": "memory", "aligned": False},
}


def variants(method: str, seed: int) -> list[str]:
    """pFedMe, which takes five times as long, also with PFLlib's own weights and decay, but with one draw.

    With one seed PFLlib's own loader, for its processor time.
    """
    if method == "pfedme":
        return ["memory", "unaligned"]
    return ["memory", "memory-again"] + (["own"] if seed == 1 else [])


def prepare(work: Path, fedstein: str) -> None:
    """The rows of each client as files of PFLlib: `fedstein site split` gives those of a run with the same seed."""
    for seed in SEEDS:
        out, sites = work / "dataset" / f"mnist-{seed}", work / f"split-{seed}"
        if (out / "all.npz").exists():
            continue
        split(fedstein, CONFIG, {"seed": seed}, sites)
        for client in range(CLIENTS):
            for part in ("train", "test"):
                save(out / part / f"{client}.npz", site_table(sites / str(client) / f"{part}.csv"))
        save(out / "all.npz", mnist_test())
        shutil.rmtree(sites)


def peer(work: Path, checkout: Path, method: str, variant: str, seed: int) -> dict[str, Any]:
    keys = COMMON | METHODS[method][2] | VARIANTS[variant]
    keys |= {"pfllib": str(checkout), "data": str(work), "name": f"mnist-{seed}", "personal": True}
    keys |= {"algorithm": METHODS[method][1], "seed": seed + 100 * int(keys.get("draw", 0))}
    return pfllib(keys, work / "pfllib" / f"{method}-{variant}-{seed}.json")


def run(work: Path, fedstein: str, checkout: Path, names: list[str]) -> None:
    for seed in SEEDS:
        for method in names or list(METHODS):
            keys = {"algorithm.kind": method, "seed": seed} | METHODS[method][0]
            for rounds in (ROUNDS, 1):
                train(fedstein, CONFIG, keys | {"rounds": rounds}, work / "fedstein" / f"{method}-{seed}-{rounds}")
            for variant in variants(method, seed):
                peer(work, checkout, method, variant, seed)
            print(method, seed, flush=True)


# --- The table ---

COLUMNS = "who method seed rounds personal_accuracy personal_nll accuracy nll cpu_seconds_a_round published_accuracy"


def own_row(work: Path, method: str, seed: int) -> dict[str, Any] | None:
    whole, first = (work / "fedstein" / f"{method}-{seed}-{rounds}" for rounds in (ROUNDS, 1))
    if not (whole / "cpu.json").exists() or not (first / "cpu.json").exists():
        return None
    last = evaluated(whole)[-1]
    used = [train("", CONFIG, {}, path) for path in (whole, first)]
    names = ["personal_accuracy", "personal_nll"] + ([] if method == "fedper" else ["accuracy", "nll"])
    return {name: float(last[name]) for name in names} | {"cpu_seconds_a_round": (used[0] - used[1]) / (ROUNDS - 1)}


def peer_row(work: Path, method: str, variant: str, seed: int) -> dict[str, Any] | None:
    path = work / "pfllib" / f"{method}-{variant}-{seed}.json"
    if not path.exists():
        return None
    result = pfllib({}, path)
    last = result["rounds"][-1]
    row = {name: last[name] for name in ("personal_accuracy", "personal_nll", "accuracy", "nll") if name in last}
    used = last["cpu_seconds"] / last["round"]
    return row | {"cpu_seconds_a_round": used, "published_accuracy": result["published_accuracy"]}


def table(work: Path) -> None:
    found: dict[tuple[str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
    for method in METHODS:
        for seed in SEEDS:
            if row := own_row(work, method, seed):
                found["fedstein", method][seed] = row
            for variant in VARIANTS:
                if row := peer_row(work, method, variant, seed):
                    found[f"pfllib-{variant}", method][seed] = row
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / "pfllib.csv").open("w") as file:
        lines = csv.DictWriter(file, COLUMNS.split(), lineterminator="\n")
        lines.writeheader()
        for (who, method), seeds in found.items():
            for seed, row in seeds.items():
                cells = {name: f"{value:.4f}" for name, value in row.items()}
                lines.writerow({"who": who, "method": method, "seed": seed, "rounds": ROUNDS} | cells)
    head = ["accuracy: fedstein", "PFLlib", "fedstein − PFLlib", "− its second draw"]
    head += [
        "NLL: fedstein",
        "PFLlib",
        "fedstein − PFLlib",
        "− its second draw",
        "CPU s a round: fedstein",
        "PFLlib",
        "PFLlib, own loader",
    ]
    print("| | " + " | ".join(head) + " |\n" + "|---" * (1 + len(head)) + "|")
    for method in METHODS:
        of = {who: found.get((who, method), {}) for who in ("fedstein", *(f"pfllib-{variant}" for variant in VARIANTS))}
        own, peers = of["fedstein"], of["pfllib-memory"]
        line = [f"`{method}`"]
        for name in ("personal_accuracy", "personal_nll"):
            line += [shown([row[name] for row in rows.values()]) for rows in (own, peers)]
            line += [shown(gaps(own, rows, name), "+") for rows in (peers, of["pfllib-memory-again"])]
        for rows in (own, peers, of["pfllib-own"]):
            values = [row["cpu_seconds_a_round"] for row in rows.values()]
            line.append(f"{np.mean(values):.2f}" if values else "")
        print("| " + " | ".join(line) + " |")
    print()
    for (who, method), seeds in found.items():
        if who != "fedstein":
            rows = [f"{row['personal_accuracy']:.4f} / {row['published_accuracy']:.4f}" for row in seeds.values()]
            print(f"{who} {method}: accuracy / PFLlib's own: {', '.join(rows)}")


def gaps(first: dict[int, dict[str, Any]], second: dict[int, dict[str, Any]], name: str) -> list[float]:
    return [first[seed][name] - second[seed][name] for seed in SEEDS if seed in first and seed in second]


def shown(values: list[float], sign: str = "") -> str:
    if len(values) < 2:
        return "".join(f"{value:{sign}.4f}" for value in values)
    middle, error = mean_and_error(values)
    return f"{middle:{sign}.4f} ± {error:.4f}".replace("-", "−")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "run", "table"])
    parser.add_argument("work", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--fedstein", default="fedstein")
    parser.add_argument("--pfllib", type=Path)
    asked = parser.parse_intermixed_args()
    folder = asked.work.resolve()
    if asked.what == "prepare":
        prepare(folder, asked.fedstein)
    elif asked.what == "run":
        run(folder, asked.fedstein, asked.pfllib.resolve(), asked.names)
    else:
        table(folder)
