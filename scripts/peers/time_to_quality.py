#!/usr/bin/env python3
"""Processor seconds and uplink to NLL .35: methods of fedstein, FedAvg of PFLlib, and the kept runs of Flower's FedAvg.

    python scripts/peers/time_to_quality.py prepare WORK --fedstein BINARY
    python scripts/peers/time_to_quality.py run WORK --fedstein BINARY --pfllib CHECKOUT [NAME...]
    python scripts/peers/time_to_quality.py table WORK      rounds.csv, costs.csv and quality.csv in beyond/peers
    python scripts/peers/time_to_quality.py figure          docs/images/time-to-quality.svg, from the kept numbers

What it needs is what compare.py needs. MNIST, ten clients with three labels each, 784-100-10 with relu, all training
rows, scored on the 10,000 test rows: the clients and the rows of scripts/flower_peers.py.

fedstein's seconds are those of training alone: a run of so many rounds minus a run of one round, both with one
evaluation at their end, by the rounds between them. The rounds to the target come from a run that is evaluated after
every round. PFLlib's are counted around its training. All run with one thread.
"""

from __future__ import annotations

import argparse
import csv
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from common import KEPT, ROOT, SEEDS, evaluated, pfllib, rows_of, save, site_table, split, train

CONFIG = ROOT / "configs" / "mnist" / "newton-bnn.toml"
FLOWER = ROOT / "docs" / "results" / "beyond" / "flower" / "rounds.csv"
FIGURE = ROOT / "docs" / "images" / "time-to-quality.svg"
CLIENTS, TARGET = 10, 0.35
PARTITION = {"partition.clients": CLIENTS, "partition.labels": 3}
AT_ONCE = {"schedule.clients": CLIENTS}
MEAN_SGD = AT_ONCE | {"algorithm.likelihood_scale": "mean", "optimizer.kind": "sgd", "data.rotate": "none"}
DSVGD = {"algorithm.kind": "dsvgd", "algorithm.distill_steps": 50, "algorithm.kde_bandwidth": 0.55}
AVERAGING = AT_ONCE | {"algorithm.kind": "fedavg"}
MOMENTUM = {"algorithm.adaptivity": 1e3, "algorithm.server_beta2": 0.999999}
# A run's rounds are enough for the target, or as many as the kept tables of "Clients that differ" have.
# The rounds of the two runs whose difference is the processor time: as many more than one as in the last number.
OURS: dict[str, tuple[dict[str, Any], int, int]] = {
    "newton": ({}, 30, 20),
    "newton-f16": ({"federation.wire": "f16"}, 30, 20),
    "newton-one": ({"algorithm.particles": 1}, 60, 60),
    "newton-one-f16": ({"algorithm.particles": 1, "federation.wire": "f16"}, 60, 60),
    "newton-once": (AT_ONCE, 8, 3),
    "dsvgd": (DSVGD | {"data.rotate": "none"}, 60, 20),
    "dsvgd-rotated": (DSVGD, 60, 20),
    "p-dsvgd": (AT_ONCE | {"algorithm.kind": "p-dsvgd", "algorithm.distill_steps": 50, "data.rotate": "none"}, 6, 2),
    "dsgld": ({"algorithm.kind": "dsgld", "algorithm.step_size": 5e-4, "data.rotate": "none"}, 60, 20),
    "fedavg-250": (AVERAGING | {"algorithm.local_steps": 250, "optimizer.lr": 3e-3}, 15, 20),
    "fedavg-50": (AVERAGING | {"optimizer.lr": 1e-2}, 20, 40),
    "fedavg-plain": (AVERAGING | {"optimizer.lr": 5e-3, "data.rotate": "none"}, 30, 40),
    "fedprox": (
        AT_ONCE
        | {"algorithm.kind": "fedprox", "algorithm.proximal": 0.01, "optimizer.lr": 0.01, "algorithm.batch": 100}
        | {"algorithm.likelihood_scale": "mean", "data.rotate": "none"},
        60,
        40,
    ),
    "scaffold": (MEAN_SGD | {"algorithm.kind": "scaffold", "optimizer.lr": 0.3, "algorithm.batch": 100}, 60, 40),
    "fedadam": (MEAN_SGD | {"algorithm.kind": "fedadam", "optimizer.lr": 0.3, "algorithm.server_lr": 0.01}, 60, 40),
    "fedavgm": (
        MEAN_SGD | {"algorithm.kind": "fedadam", "optimizer.lr": 0.3, "algorithm.server_lr": 2000.0} | MOMENTUM,
        60,
        40,
    ),
}
# Methods that the kept tables show far from the target have one seed.
ONE_SEED = ("dsvgd", "dsvgd-rotated", "p-dsvgd", "dsgld")
PEERS: dict[str, dict[str, Any]] = {
    "pfllib-fedavg": {"epochs": 10, "rounds": 12},
    "pfllib-fedavg-short": {"epochs": 1, "rounds": 30},
}
NAMES = {
    "newton": "Newton factors, relay, 10 particles",
    "newton-f16": "the same, f16 on the wire",
    "newton-one": "Newton factors, relay, 1 particle",
    "newton-one-f16": "the same, f16 on the wire",
    "newton-once": "Newton factors, ten at once, 10 particles",
    "dsvgd": "DSVGD, λ = .55",
    "dsvgd-rotated": "DSVGD, λ = .55, rotated inputs",
    "p-dsvgd": "P-DSVGD, ten at once",
    "dsgld": "DSGLD, ten chains",
    "fedavg-250": "FedAvg, 250 steps",
    "fedavg-50": "FedAvg, 50 steps",
    "fedavg-plain": "FedAvg, 50 steps, inputs as they are",
    "fedprox": "FedProx",
    "scaffold": "SCAFFOLD",
    "fedadam": "FedAdam",
    "fedavgm": "FedAvgM",
    "pfllib-fedavg": "FedAvg of PFLlib, 10 epochs",
    "pfllib-fedavg-short": "FedAvg of PFLlib, 1 epoch",
    "flower-fedavg": "FedAvg of Flower, 10 epochs",
    "flower-fedavg-short": "FedAvg of Flower, 1 epoch",
}
# Bytes of one network in f32.
NETWORK = 4 * (784 * 100 + 100 + 100 * 10 + 10)
# MB that rotated inputs cost once in a federation over sites: p (p + 1) / 2 sums of each client, as f64.
ROTATION = CLIENTS * 8 * 784 * 785 / 2 / 1e6


def rotated(name: str) -> bool:
    return name not in OURS or OURS[name][0].get("data.rotate") != "none"


def prepare(work: Path, fedstein: str) -> None:
    """The clients' rows as fedstein gives them, inputs in their principal axes, as files of PFLlib."""
    for seed in SEEDS:
        out, sites = work / "dataset" / f"three-{seed}", work / f"three-split-{seed}"
        if (out / "all.npz").exists():
            continue
        split(fedstein, CONFIG, PARTITION | {"seed": seed}, sites)
        tests: dict[int, np.ndarray] = {}
        for client in range(CLIENTS):
            save(out / "train" / f"{client}.npz", site_table(sites / str(client) / "train.csv"))
            # The test rows of a label are those of every client that has it; each is needed once.
            table = site_table(sites / str(client) / "test.csv")
            save(out / "test" / f"{client}.npz", table[:1])
            for label in np.unique(table[:, 0]):
                tests.setdefault(int(label), table[table[:, 0] == label])
        test = np.concatenate(list(tests.values()))
        assert len(test) == 10_000, len(test)
        save(out / "all.npz", test)
        shutil.rmtree(sites)


def run(work: Path, fedstein: str, checkout: Path, names: list[str]) -> None:
    for name in names or [*OURS, *PEERS]:
        if name in PEERS:
            for seed in SEEDS:
                keys = PEERS[name] | {"pfllib": str(checkout), "data": str(work), "name": f"three-{seed}"}
                keys |= {"algorithm": "FedAvg", "clients": CLIENTS, "batch": 32, "lr": 0.3, "every": 1, "seed": seed}
                keys |= {"loader": "epoch", "steps": 0, "personal": False, "until_nll": TARGET}
                pfllib(keys, work / "quality" / f"{name}-{seed}.json")
        else:
            keys, rounds, more = OURS[name]
            keys = PARTITION | keys
            # The pair that is timed runs one after the other.
            for count in (more + 1, 1):
                whole = keys | {"rounds": count, "evaluation.every": count, "seed": 1}
                train(fedstein, CONFIG, whole, work / "quality" / f"{name}-cost-{count}")
            for seed in SEEDS[:1] if name in ONE_SEED else SEEDS:
                train(fedstein, CONFIG, keys | {"rounds": rounds, "seed": seed}, work / "quality" / f"{name}-{seed}")
        print(name, flush=True)


# --- The tables ---


def cost(work: Path, name: str) -> tuple[float, float] | None:
    """Processor seconds of a round, and of all else in a run with one evaluation."""
    more = OURS[name][2]
    paths = [work / "quality" / f"{name}-cost-{count}" for count in (more + 1, 1)]
    if not all((path / "cpu.json").exists() for path in paths):
        return None
    long, short = (train("", CONFIG, {}, path) for path in paths)
    a_round = (long - short) / more
    return a_round, short - a_round


def trajectories(work: Path) -> list[dict[str, Any]]:
    """Visits, scores, uplink and processor seconds after each round of each run."""
    found: list[dict[str, Any]] = []
    for name in OURS:
        spent = cost(work, name)
        for seed in SEEDS:
            path = work / "quality" / f"{name}-{seed}"
            if spent is None or not (path / "cpu.json").exists():
                continue
            uplink = 0.0
            each = OURS[name][0].get("schedule.clients", CLIENTS if name == "dsgld" else 1)
            for row in evaluated(path):
                uplink += float(row["uplink_bytes"])
                turn = int(row["round"])
                scores = {"accuracy": float(row["accuracy"]), "nll": float(row["nll"])}
                costs = {"uplink_bytes": uplink, "cpu_seconds": turn * spent[0]}
                found.append({"run": name, "seed": seed, "visits": turn * each} | scores | costs)
    for name in PEERS:
        for seed in SEEDS:
            path = work / "quality" / f"{name}-{seed}.json"
            for row in pfllib({}, path)["rounds"] if path.exists() else []:
                visits = int(row["round"]) * CLIENTS
                scores = {"accuracy": row["accuracy"], "nll": row["nll"]}
                costs = {"uplink_bytes": visits * NETWORK, "cpu_seconds": row["cpu_seconds"]}
                found.append({"run": name, "seed": seed, "visits": visits} | scores | costs)
    return found


def flower() -> list[dict[str, Any]]:
    """The kept rounds of Flower's FedAvg: all processes of the run from the beginning of round 1, with scores."""
    rows = [row for row in rows_of(FLOWER) if row["run"] in ("flower-fedavg", "flower-fedavg-short")]
    return [{name: value if name == "run" else float(value or "nan") for name, value in row.items()} for row in rows]


def first(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """When the target is met for the first time, and the visits from which on it stays met."""
    met = [row["nll"] <= TARGET for row in rows]
    last = {"run": rows[0]["run"], "seed": int(rows[0]["seed"]), "within": int(rows[-1]["visits"])}
    if not any(met):
        return last | {"visits": "", "stays_from": "", "uplink_mb": "", "cpu_seconds": ""}
    row = rows[met.index(True)]
    stays = next((rows[at]["visits"] for at in range(len(rows)) if all(met[at:])), "")
    return last | {
        "visits": int(row["visits"]),
        "stays_from": int(stays) if stays != "" else "",
        "uplink_mb": row["uplink_bytes"] / 1e6,
        "cpu_seconds": row["cpu_seconds"],
    }


def write(name: str, rows: list[dict[str, Any]]) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / name).open("w") as file:
        lines = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        lines.writeheader()
        for row in rows:
            lines.writerow({key: f"{value:.5g}" if isinstance(value, float) else value for key, value in row.items()})


def table(work: Path) -> None:
    rounds = trajectories(work)
    write("rounds.csv", [row | {"uplink_bytes": int(row["uplink_bytes"])} for row in rounds])
    spent = {name: found for name in OURS if (found := cost(work, name))}
    costs = [
        {"run": name, "cpu_seconds_a_round": each, "cpu_seconds_else": rest} for name, (each, rest) in spent.items()
    ]
    write("costs.csv", costs)
    runs: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rounds + flower():
        runs[row["run"], int(row["seed"])].append(row)
    results = [first(rows) for rows in runs.values()]
    write("quality.csv", results)
    print("| | visits | stays from | MB up | CPU s | start, one evaluation, report: CPU s |\n" + "|---" * 6 + "|")
    for name, title in NAMES.items():
        seeds = [row for row in results if row["run"] == name]
        if not seeds:
            continue
        if all(row["visits"] == "" for row in seeds):
            cells = [f"not within {seeds[0]['within']:,}", "", "", ""]
        else:
            cells = [
                ", ".join(str(row[key]) if row[key] != "" else "–" for row in seeds) for key in ("visits", "stays_from")
            ]
            for key, form in (("uplink_mb", ".1f"), ("cpu_seconds", ".1f")):
                values = [row[key] for row in seeds if row[key] != ""]
                cells.append(", ".join(f"{value:{form}}" for value in values))
            if rotated(name):
                cells[2] += " (+ 25)"
        rest = f"{spent[name][1]:.1f}" if name in spent else ""
        print("| " + " | ".join([title, *cells, rest]) + " |")


# --- The figure ---

# Okabe and Ito's colours; each family also has a mark of its own.
FAMILIES = {
    "fedstein, Newton factors": ("#0072b2", "o"),
    "fedstein, averaging": ("#009e73", "s"),
    "PFLlib": ("#d55e00", "^"),
    "Flower": ("#cc79a7", "D"),
}


def family(name: str) -> str:
    if name.startswith("pfllib"):
        return "PFLlib"
    if name.startswith("flower"):
        return "Flower"
    return "fedstein, Newton factors" if name.startswith("newton") else "fedstein, averaging"


def figure() -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "peers", "font.family": "sans-serif", "font.size": 10})
    results = rows_of(KEPT / "quality.csv")
    starts = {row["run"]: float(row["cpu_seconds_else"]) for row in rows_of(KEPT / "costs.csv")}
    reached = [name for name in NAMES if any(row["run"] == name and row["visits"] for row in results)]
    missed = [name for name in NAMES if name not in reached and any(row["run"] == name for row in results)]
    order = sorted(reached, key=lambda name: np.median([float(row["cpu_seconds"]) for row in of(results, name)]))
    drawn, panels = plt.subplots(1, 2, sharey=True, figsize=(9.2, 0.36 * len(order) + 1.9))
    for panel, key, title in zip(panels, ("cpu_seconds", "uplink_mb"), ("processor seconds", "uplink, MB")):
        for place, name in enumerate(order):
            colour, mark = FAMILIES[family(name)]
            values = [float(row[key]) for row in of(results, name)]
            panel.plot([min(values), max(values)], [place, place], color=colour, linewidth=1)
            panel.plot(values, [place] * len(values), mark, color=colour, markersize=6, alpha=0.8)
            more = starts.get(name, 0.0) if key == "cpu_seconds" else ROTATION * rotated(name)
            if more:
                whole = float(np.median(values)) + more
                panel.plot([whole], [place], mark, markerfacecolor="none", color=colour, markersize=6)
        panel.set_xscale("log")
        panel.set_xlabel(f"{title} to NLL {TARGET:.2f}".replace("0.", "."))
        panel.grid(axis="x", color="#e4e7eb", linewidth=0.7)
        panel.set_axisbelow(True)
        panel.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        for side in ("top", "right", "left"):
            panel.spines[side].set_visible(False)
        panel.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(order)), [label(name) for name in order])
    panels[0].invert_yaxis()
    marks = [
        plt.Line2D([], [], linestyle="none", color=colour, marker=mark, label=title)
        for title, (colour, mark) in FAMILIES.items()
    ]
    hollow = plt.Line2D([], [], linestyle="none", color="#59636e", marker="o", markerfacecolor="none")
    hollow.set_label("with the start, the rotation")
    drawn.legend(handles=[*marks, hollow], loc="upper center", ncols=5, frameon=False, fontsize=9)
    if missed:
        text = "Not reached: " + "; ".join(label(name) for name in missed)
        drawn.text(0.01, 0.01, text, fontsize=9, color="#59636e")
    drawn.tight_layout(rect=(0, 0.04, 1, 0.94))
    drawn.savefig(FIGURE, metadata={"Date": None})


def of(results: list[dict[str, str]], name: str) -> list[dict[str, str]]:
    return [row for row in results if row["run"] == name and row["visits"]]


def label(name: str) -> str:
    return NAMES[name].replace("the same", NAMES[name.removesuffix("-f16")])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "run", "table", "figure"])
    parser.add_argument("work", type=Path, nargs="?", default=Path())
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--fedstein", default="fedstein")
    parser.add_argument("--pfllib", type=Path, default=Path())
    asked = parser.parse_intermixed_args()
    folder = asked.work.resolve()
    if asked.what == "prepare":
        prepare(folder, asked.fedstein)
    elif asked.what == "run":
        run(folder, asked.fedstein, asked.pfllib.resolve(), asked.names)
    elif asked.what == "table":
        table(folder)
    else:
        figure()
