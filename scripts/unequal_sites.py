#!/usr/bin/env python3
"""Federations of unequal sites on real data: makes them, trains, and writes the tables of "Unequal sites" in docs/results.md.

    python3 scripts/unequal_sites.py --fedstein target/release/fedstein --data data --work /tmp/unequal-sites
    python3 scripts/unequal_sites.py --table          (only the tables, from the kept numbers)

It needs nothing but Python 3.9 or later, and the data sets `covertype` and `vehicle` (docs/data.md). Its stages:

 1. prepare: CSV files with a column `site`, one pair (training, test) for each federation and seed;
 2. choose: step sizes on validation rows (a tenth of each site's training rows), seed 1, in one process, by the mean NLL of the last
    rounds: as many as there are sites for methods that visit one site a round, else five;
 3. split: `fedstein site split`, one directory with its own rows for each site;
 4. train: `fedstein train --sites`, one process for each site; SVGD with all rows in one place; SVGD of each site alone;
 5. check: one run in one process, whose particles must have the same bytes;
 6. table: docs/results/beyond/sites/{sites.csv.gz,choices.csv,table.md}.

What is done already is kept in the work directory, so a run that was stopped goes on. One run at a time, one thread each.
"""

import argparse
import contextlib
import csv
import gzip
import io
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "results" / "beyond" / "sites"
SEEDS = (1, 2, 3)
BINS = 15
FLOOR = 1e-12  # the smallest probability that is counted, as in the report
AREAS = ("1-rawah", "2-neota", "3-comanche-peak", "4-cache-la-poudre")
AREA_PART = 4  # one row in so many, to save time
CUTS = (("20-one-class", 20), ("200", 200), ("2000-few-positives", 2000), ("20000", 20_000), ("200000", 200_000))
CUT_TEST = 5000

# ---- federations: model, scale, number of visits -------------------------------------------------------------------------

BLR = {"kind": '"blr"', "bias": "true"}
BNN = {"kind": '"bnn"', "hidden": "[20]"}
FEDERATIONS = {
    "areas": {"data": "areas", "model": BLR, "normalise": "standard", "sites": 4, "visits": 60},
    "areas-column": {"data": "areas-column", "model": BLR, "normalise": "standard", "sites": 4, "visits": 60},
    "cut": {"data": "cut", "model": BLR, "normalise": "standard", "sites": 5, "visits": 60},
    "vehicle": {"data": "vehicle", "model": BLR, "normalise": "none", "sites": 23, "visits": 69},
    "vehicle-bnn": {"data": "vehicle", "model": BNN, "normalise": "none", "sites": 23, "visits": 69},
}
ADAGRAD = {"kind": '"adagrad"', "epsilon": "1e-9"}
SGD = {"kind": '"sgd"'}
SMALL_START = {"gamma_rate": "0.01"}  # a logistic regression's draw from its prior is no start for one vector
# name: (algorithm, model's keys, optimizer, all sites at once, visits times)
METHODS = {
    "newton": ({"kind": '"newton-dsvgd"'}, {}, ADAGRAD, False, 1),
    "dsvgd": ({"kind": '"dsvgd"'}, {}, ADAGRAD, False, 1),
    "dsvgd-median": ({"kind": '"dsvgd"', "kde_bandwidth": '"median"'}, {}, ADAGRAD, False, 1),
    "fedavg": ({"kind": '"fedavg"'}, SMALL_START, ADAGRAD, True, 1),
    "fedprox": ({"kind": '"fedprox"'}, SMALL_START, ADAGRAD, True, 1),
    "scaffold": ({"kind": '"scaffold"'}, SMALL_START, SGD, True, 1),
    "fedavg-10": ({"kind": '"fedavg"'}, SMALL_START, ADAGRAD, True, 10),
    "scaffold-10": ({"kind": '"scaffold"'}, SMALL_START, SGD, True, 10),
    "svgd": ({"kind": '"svgd"'}, {}, ADAGRAD, False, 1),
}
PARTICLES = ("newton", "dsvgd", "dsvgd-median", "svgd")
# Step sizes, chosen on validation rows.
GRIDS = {
    "areas": {
        "newton": (0.001, 0.002, 0.005, 0.02), "dsvgd": (0.001, 0.002, 0.005, 0.02), "dsvgd-median": (0.001, 0.002, 0.005, 0.02), "svgd": (0.001, 0.002, 0.005, 0.02),
        "fedavg": (0.001, 0.002, 0.005, 0.02, 0.1), "fedprox": (0.001, 0.002, 0.005, 0.02, 0.1), "scaffold": (0.03, 0.1, 0.3, 1),
        "fedavg-10": (0.001, 0.002, 0.005, 0.02), "scaffold-10": (0.03, 0.1, 0.3, 1),
    },
    "cut": {
        "newton": (0.001, 0.005, 0.02), "dsvgd": (0.002, 0.02), "dsvgd-median": (0.005, 0.02), "svgd": (0.005,),
        "fedavg": (0.005, 0.05), "fedprox": (0.005, 0.05), "scaffold": (0.3, 1), "fedavg-10": (0.005, 0.02), "scaffold-10": (0.1, 0.3),
    },
    "vehicle": {
        "newton": (0.002, 0.01), "dsvgd": (0.002, 0.01), "dsvgd-median": (0.002, 0.01), "svgd": (0.002, 0.01),
        "fedavg": (0.002, 0.01), "scaffold": (0.03, 0.1),
    },
    "vehicle-bnn": {
        "newton": (0.001, 0.003, 0.01), "dsvgd": (0.001, 0.003, 0.01), "dsvgd-median": (0.001, 0.003, 0.01), "svgd": (0.001, 0.003, 0.01),
        "fedavg": (0.001, 0.003, 0.01), "scaffold": (0.03, 0.1, 0.3),
    },
}

SKIPPED = {("areas-column", method) for method in ("dsvgd", "dsvgd-median", "fedprox", "scaffold", "scaffold-10", "fedavg-10")}
SKIPPED |= {(name, method) for name in ("vehicle", "vehicle-bnn") for method in ("fedprox", "fedavg-10", "scaffold-10")}
SKIPPED.add(("cut", "scaffold-10"))

# Not run, for want of time: these beyond seed 1, and in docs/results.md `areas-column` and `vehicle-bnn` as a whole.
ONE_SEED = {("cut", "fedprox"), ("cut", "fedavg-10")}


def methods(name, seed):
    return [method for method in METHODS if (name, method) not in SKIPPED and (seed == 1 or (name, method) not in ONE_SEED)]


# ---- 1. prepare ----------------------------------------------------------------------------------------------------------


def covertype(data):
    with gzip.open(data / "covertype" / "covtype.binary.csv.gz", "rt") as file:
        return [line.rstrip("\n").split(",") for line in file]


def write(path, header, rows):
    with open(path, "w") as file:
        file.write(",".join(header) + "\n")
        for row in rows:
            file.write(",".join(row) + "\n")


def label(row):
    return "pine" if row[54] == "2" else "other"


def prepare_areas(rows, seed, work):
    """A site for each wilderness area, with a quarter of the area's rows; a fifth of each site's rows are for the test. `areas` is without the four columns of
    the area, which are constant at a site; `areas-column` has them."""
    draw = random.Random(seed)
    places = [[] for _ in AREAS]
    for row in rows:
        places[row[10:14].index("1")].append(row)
    parts = {"train": [], "test": []}
    for area, place in zip(AREAS, places):
        place = draw.sample(place, len(place) // AREA_PART)
        cut = len(place) // 5
        parts["test"] += [(area, row) for row in place[:cut]]
        parts["train"] += [(area, row) for row in place[cut:]]
    names = [f"f{i}" for i in range(54)]
    for of, columns in (("areas", [*range(10), *range(14, 54)]), ("areas-column", range(54))):
        for part, chosen in parts.items():
            write(
                work / "csv" / f"{of}-{seed}-{part}.csv",
                ["site", *(names[i] for i in columns), "cover"],
                ([area, *(row[i] for i in columns), label(row)] for area, row in chosen),
            )


def prepare_cut(rows, seed, work):
    """Five sites of 20 to 200,000 rows of all of Covertype: the one with 20 rows has no pine among its training rows (its test
    rows are mixed like the others'), the one with 2,000 has 5 % pines in both. Each has 5,000 test rows."""
    draw = random.Random(100 + seed)
    rest = draw.sample(rows, len(rows))
    pines = iter([row for row in rest if label(row) == "pine"])
    others = iter([row for row in rest if label(row) == "other"])
    share = sum(label(row) == "pine" for row in rows) / len(rows)

    def take(count, share):
        positive = round(count * share)
        got = [next(pines) for _ in range(positive)] + [next(others) for _ in range(count - positive)]
        return draw.sample(got, count)

    parts = {"train": [], "test": []}
    for place, (site, count) in enumerate(CUTS):
        of_test = 0.05 if count == 2000 else share
        of_train = 0 if count == 20 else of_test
        parts["train"] += [(f"{place}-{site}", row) for row in take(count, of_train)]
        parts["test"] += [(f"{place}-{site}", row) for row in take(CUT_TEST, of_test)]
    names = [f"f{i}" for i in range(54)]
    for part, chosen in parts.items():
        write(
            work / "csv" / f"cut-{seed}-{part}.csv",
            ["site", *names, "cover"],
            ([site, *row[:54], label(row)] for site, row in chosen),
        )


def prepare_vehicle(data, seed, work):
    """The 23 sensors of the part of the set that there is; a fifth of each sensor's rows, and at least one, are for the test."""
    draw = random.Random(200 + seed)
    places = defaultdict(list)
    with gzip.open(data / "vehicle" / "vehicle-23-ditto-train.csv.gz", "rt") as file:
        for line in file:
            row = line.rstrip("\n").split(",")
            places[int(row[0])].append(row)
    parts = {"train": [], "test": []}
    for place in sorted(places):
        rows = draw.sample(places[place], len(places[place]))
        cut = max(1, round(len(rows) / 5))
        parts["test"] += rows[:cut]
        parts["train"] += rows[cut:]
    for part, chosen in parts.items():
        write(
            work / "csv" / f"vehicle-{seed}-{part}.csv",
            ["site", *(f"f{i}" for i in range(100)), "cover"],
            ([f"sensor-{int(row[0]):02}", *row[1:101], "plus" if float(row[101]) > 0 else "minus"] for row in chosen),
        )


def prepare(data, work, wanted):
    (work / "csv").mkdir(parents=True, exist_ok=True)
    rows = None
    for seed in SEEDS:
        missing = [of for of in {FEDERATIONS[name]["data"] for name in wanted} if not (work / "csv" / f"{of}-{seed}.done").exists()]
        if not missing:
            continue
        if rows is None and any(of != "vehicle" for of in missing):
            rows = covertype(data)
        if "areas" in missing or "areas-column" in missing:
            prepare_areas(rows, seed, work)
            missing += ["areas", "areas-column"]
        if "cut" in missing:
            prepare_cut(rows, seed, work)
        if "vehicle" in missing:
            prepare_vehicle(data, seed, work)
        for of in missing:
            (work / "csv" / f"{of}-{seed}.done").touch()


# ---- 2. configs and runs -------------------------------------------------------------------------------------------------


def config(name, method, seed, step, data, **more):
    of = FEDERATIONS[name]
    algorithm, model, optimizer, at_once, times = METHODS[method]
    bnn = of["model"]["kind"] == '"bnn"'
    visits = of["visits"] * times
    text = f'name = "{name}-{method}"\nseed = {seed}\nrounds = {visits // of["sites"] if at_once else visits}\n'
    sections = {
        "data": data,
        "partition": more.pop("partition", None),
        "model": {**of["model"], **({} if bnn else model)},
        "algorithm": {**algorithm, "batch": "100", **({"particles": "10" if bnn else "6"} if method in PARTICLES else {})},
        "optimizer": {**optimizer, "lr": f"{step}", **({"epsilon": "1e-6"} if bnn and "epsilon" in optimizer else {})},
        "schedule": {"clients": str(of["sites"])} if at_once else None,
        "evaluation": {"every": "1000000000", **more.pop("evaluation", {})},
        "checkpoint": {"keep": "false"},
    }
    for section, keys in sections.items():
        if keys:
            text += f"\n[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
    return text


def table_of(name, seed, work):
    of = FEDERATIONS[name]
    at = work / "csv"
    return {
        "kind": '"csv"',
        "path": f'"{at}/{of["data"]}-{seed}-train.csv"',
        "test_path": f'"{at}/{of["data"]}-{seed}-test.csv"',
        "target": '"cover"',
        "client_column": '"site"',
        "normalise": f'"{of["normalise"]}"',
    }


BY_SITE = {"kind": '"by-column"'}


def call(arguments, log):
    """A run's output goes to a log; its end is shown where it fails."""
    began = time.time()
    with open(log, "w") as file:
        code = subprocess.run([str(word) for word in arguments], stdout=file, stderr=subprocess.STDOUT).returncode
    if code:
        sys.exit(f"{' '.join(str(word) for word in arguments)}\nended with {code}: {Path(log).read_text()[-2000:]}")
    return time.time() - began


def train(work, tool, key, text, sites=()):
    """Runs a config into work/runs/key and returns its summary."""
    out = work / "runs" / key
    out.parent.mkdir(parents=True, exist_ok=True)
    path = work / "runs" / f"{key}.toml"
    path.write_text(text)
    extra = ["--sites", ",".join(str(site) for site in sites)] if sites else []
    seconds = call([tool, "train", path, "--out", out, "--force", "--quiet", *extra], work / "runs" / f"{key}.log")
    summary = json.loads((out / "summary.json").read_text())
    summary["wall"] = seconds
    return summary, out


# ---- 3. metrics of rows, for runs that give predictions ------------------------------------------------------------------


def floor_of(bins):
    """The ECE that is expected of a model whose confidences are true, with so many rows in the bins: Σ n_b/n E|acc_b − conf_b|."""
    total = sum(n for n, _, _ in bins)
    return sum(n / total * math.sqrt(2 * max(c * (1 - c), 0) / (math.pi * n)) for n, _, c in bins if n)


def numbers(evaluation, bins):
    return {
        "test_rows": int(evaluation["rows"]),
        "accuracy": evaluation["accuracy"],
        "nll": evaluation["nll"],
        "ece": evaluation["ece"],
        "signed_gap": evaluation["signed_gap"],
        "ece_floor": floor_of(bins),
        "bins": bins,
    }


def score(rows):
    """The same of (label, p_0, p_1) rows."""
    sums = [[0, 0.0, 0.0] for _ in range(BINS)]
    nll = right = 0.0
    for of, *p in rows:
        nll -= math.log(max(p[of], FLOOR))
        best = 0 if p[0] >= p[1] else 1
        at = min(max(math.ceil(p[best] * BINS) - 1, 0), BINS - 1)
        right += best == of
        for place, value in enumerate((1, best == of, p[best])):
            sums[at][place] += value
    n = len(rows)
    bins = [(count, hits / count, conf / count) for count, hits, conf in sums if count]
    return numbers(
        {
            "rows": n,
            "accuracy": right / n,
            "nll": nll / n,
            "ece": sum(c * abs(a - q) for c, a, q in bins) / n,
            "signed_gap": sum(c * (q - a) for c, a, q in bins) / n,
        },
        bins,
    )


def predictions(out):
    with open(out / "predictions.csv") as file:
        next(file)
        for line in file:
            of, *p = line.split(",")
            yield int(of), float(p[0]), float(p[1])


def by_site(out, test):
    """{site: numbers} and "all", from a run's predictions of the rows of a CSV file whose first column is the site."""
    rows, every = defaultdict(list), []
    with open(test) as file:
        next(file)
        for line, row in zip(file, predictions(out)):
            text = line.rstrip("\n")
            if (text.rsplit(",", 1)[1] in ("pine", "plus")) != bool(row[0]):
                sys.exit(f"{out}: the predictions are not in the order of {test}")
            rows[text.split(",", 1)[0]].append(row)
            every.append(row)
    return {"all": score(every), **{site: score(found) for site, found in rows.items()}}


def bins_of(summary):
    return [(bin["n"], bin["accuracy"], bin["confidence"]) for bin in summary if bin["n"]]


def sizes(name, seed, work):
    """{site: training rows}, in the order of the sites' indices."""
    count = defaultdict(int)
    with open(work / "csv" / f"{FEDERATIONS[name]['data']}-{seed}-train.csv") as file:
        next(file)
        for line in file:
            count[line.split(",", 1)[0]] += 1
    return dict(sorted(count.items()))


# ---- 4. stages -----------------------------------------------------------------------------------------------------------


def choose(work, tool, name, method):
    """The step with the lowest NLL on validation rows of seed 1."""
    if name == "areas-column":  # those of the same rows without the areas' columns
        return choose(work, tool, "areas", method)
    kept = work / "choices.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    grid = GRIDS[name][method]
    if len(grid) == 1:  # that of `areas`
        return grid[0]
    for step in grid:
        key = f"{name} {method} {step}"
        if key not in known:
            text = config(
                name, method, 1, step, table_of(name, 1, work),
                partition={**BY_SITE, "validation": "0.1"}, evaluation={"rows": '"validation"', "every": "1"},
            )  # fmt: skip
            summary, out = train(work, tool, f"choose-{name}-{method}-{step}", text)
            last = [row["nll"] for row in summary["rounds"]][-(5 if METHODS[method][3] else FEDERATIONS[name]["sites"]) :]
            known[key] = [*(summary["evaluation"][metric] for metric in ("accuracy", "nll", "ece")), sum(last) / len(last), min(last), max(last)]
            kept.write_text(json.dumps(known, indent=0))
            shutil.rmtree(out)
            print("chosen from", key, known[key], f"{summary['wall']:.0f} s", flush=True)
    return min(grid, key=lambda step: known[f"{name} {method} {step}"][3])


def split(work, tool, name, seed):
    of = FEDERATIONS[name]
    at = work / "sites" / f"{of['data']}-{seed}"
    if not (at / "done").exists():
        shutil.rmtree(at, ignore_errors=True)
        at.parent.mkdir(parents=True, exist_ok=True)
        path = work / "csv" / f"{of['data']}-{seed}.toml"
        path.write_text(config(name, "newton", seed, 0.05, table_of(name, seed, work), partition=BY_SITE))
        call([tool, "site", "split", path, "--out", at], work / "csv" / f"{of['data']}-{seed}.log")
        (at / "done").touch()
    return [at / str(index) / "site.toml" for index in range(of["sites"])]


def record(work, name, method, seed, step, rows):
    path = work / "results" / f"{name}--{method}--{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"federation": name, "method": method, "seed": seed, "step": step, "sites": rows}))


def done(work, name, method, seed):
    return (work / "results" / f"{name}--{method}--{seed}.json").exists()


def federated(work, tool, name, method, seed):
    step = choose(work, tool, name, method)
    key = f"{name}-{method}-{seed}"
    if method == "svgd":
        summary, out = train(work, tool, key, config(name, method, seed, step, table_of(name, seed, work)))
        rows = by_site(out, work / "csv" / f"{FEDERATIONS[name]['data']}-{seed}-test.csv")
    else:
        sites = split(work, tool, name, seed)
        text = config(name, method, seed, step, {"kind": '"sites"', "normalise": '"none"'})
        summary, out = train(work, tool, key, text, sites)
        found = sorted(summary["sites"], key=lambda site: site["index"])
        rows = {site: numbers(of["evaluation"], bins_of(of["bins"])) for site, of in zip(sizes(name, seed, work), found)}
        pooled = defaultdict(lambda: [0, 0.0, 0.0])
        for of in found:
            for bin in of["bins"]:
                if bin["n"]:
                    for place, value in enumerate((bin["n"], bin["n"] * bin["accuracy"], bin["n"] * bin["confidence"])):
                        pooled[bin["lo"]][place] += value
        rows["all"] = numbers(summary["evaluation"], [(n, a / n, c / n) for n, a, c in pooled.values()])
        for site in sites:
            shutil.rmtree(site.parent / "state", ignore_errors=True)
    whole = summary["evaluation"]
    assert abs(rows["all"]["nll"] - whole["nll"]) < 1e-4 and abs(rows["all"]["ece"] - whole["ece"]) < 1e-4, (key, rows["all"], whole)
    record(work, name, method, seed, step, rows)
    shutil.rmtree(out)
    print(key, "step", step, " / ".join(f"{rows['all'][metric]:.4f}" for metric in ("accuracy", "nll", "ece")), f"{summary['wall']:.0f} s", flush=True)


def alone(work, tool, name, seed):
    """SVGD with the rows of one site only, with as many steps as the federation makes, from the files that the split wrote.
    Scaled by the site's own training rows. A site with one class takes the names of classes from its test file."""
    step = choose(work, tool, name, "svgd")
    split(work, tool, name, seed)
    rows, every = {}, []
    for index, site in enumerate(sizes(name, seed, work)):
        at = work / "sites" / f"{FEDERATIONS[name]['data']}-{seed}" / str(index)
        train_labels, test_labels = ({line.split(",", 1)[0] for line in open(at / f"{part}.csv")} - {"target"} for part in ("train", "test"))
        if len(train_labels | test_labels) < 2:  # one class in all that the site has: no model, no run
            continue
        data = {
            "kind": '"csv"', "path": f'"{at}/train.csv"', "test_path": f'"{at}/test.csv"', "target": '"target"',
            "normalise": f'"{FEDERATIONS[name]["normalise"]}"',
        }  # fmt: skip
        summary, out = train(work, tool, f"alone-{name}-{seed}-{index}", config(name, "svgd", seed, step, data, partition={"clients": "1"}))
        found = list(predictions(out))
        rows[site] = score(found)
        assert abs(rows[site]["nll"] - summary["evaluation"]["nll"]) < 1e-4
        every += found
        shutil.rmtree(out)
    rows["all"] = score(every)
    record(work, name, "alone", seed, step, rows)
    print(name, "alone", seed, " / ".join(f"{rows['all'][metric]:.4f}" for metric in ("accuracy", "nll", "ece")), flush=True)


def check(work, tool, name):
    """The particles of a federation and of the run in one process over the same rows have the same bytes."""
    kept = work / "checked.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    if name in known:
        return
    step = choose(work, tool, name, "newton")
    text = config(name, "newton", 1, step, table_of(name, 1, work), partition=BY_SITE)
    _, one = train(work, tool, f"check-{name}-one", text)
    text = config(name, "newton", 1, step, {"kind": '"sites"', "normalise": '"none"'})
    summary, sites = train(work, tool, f"check-{name}-sites", text, split(work, tool, name, 1))
    same = (one / "particles.safetensors").read_bytes() == (sites / "particles.safetensors").read_bytes()
    mine = by_site(one, work / "csv" / f"{FEDERATIONS[name]['data']}-1-test.csv")
    found = sorted(summary["sites"], key=lambda site: site["index"])
    apart = max(
        abs(mine[site][metric] - of["evaluation"][metric])
        for site, of in zip(sizes(name, 1, work), found)
        for metric in ("accuracy", "nll", "ece")
    )
    known[name] = {"same bytes of particles": same, "largest difference of a site's accuracy, NLL or ECE": apart}
    kept.write_text(json.dumps(known, indent=0))
    print(name, known[name], flush=True)


# ---- 5. the kept numbers -------------------------------------------------------------------------------------------------

COLUMNS = ("federation", "method", "step", "seed", "site", "train_rows", "test_rows", "accuracy", "nll", "ece", "ece_floor", "signed_gap", "bins")


def collect(work):
    """sites.csv.gz: one row for each run and site, "all" for all test rows together; `bins` are n:accuracy:confidence."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    counted = {}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for path in sorted((work / "results").glob("*.json")):
        run = json.loads(path.read_text())
        of = FEDERATIONS[run["federation"]]["data"], run["seed"]
        if of not in counted:
            counted[of] = sizes(run["federation"], run["seed"], work)
        for site, got in sorted(run["sites"].items()):
            rows = sum(counted[of].values()) if site == "all" else counted[of][site]
            bins = ";".join(f"{n}:{a:.4f}:{c:.4f}" for n, a, c in got["bins"])
            values = [f"{got[key]:.6f}" for key in ("accuracy", "nll", "ece", "ece_floor", "signed_gap")]
            writer.writerow([run["federation"], run["method"], run["step"], run["seed"], site, rows, got["test_rows"], *values, bins])
    (FOLDER / "sites.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))
    (FOLDER / "checked.json").write_text((work / "checked.json").read_text() + "\n")
    kept = work / "choices.json"
    with open(FOLDER / "choices.csv", "w") as file:
        file.write("federation,method,step,accuracy,nll,ece,mean_nll,least_nll,largest_nll\n")
        for key, values in json.loads(kept.read_text()).items():
            file.write(",".join([*key.split(" "), *(f"{value:.6f}" for value in values)]) + "\n")


# ---- 6. tables -----------------------------------------------------------------------------------------------------------

NAMES = {
    "newton": "**Newton factors, relay**",
    "dsvgd": "DSVGD, λ = 0.55 (default)",
    "dsvgd-median": "DSVGD, λ by the median rule",
    "fedavg": "federated averaging",
    "fedprox": "FedProx",
    "scaffold": "SCAFFOLD",
    "fedavg-10": "federated averaging, ten times the visits",
    "scaffold-10": "SCAFFOLD, ten times the visits",
    "svgd": "SVGD, all rows in one place",
    "alone": "SVGD, each site alone",
}
TITLES = {
    "areas": "Covertype by wilderness area, without the columns of the area",
    "areas-column": "Covertype by wilderness area, with the columns of the area",
    "cut": "Covertype in five sites of 20 to 200,000 rows",
    "vehicle": "Vehicle, 23 sensors, logistic regression",
    "vehicle-bnn": "Vehicle, 23 sensors, network with 20 hidden units",
}
# Vehicle's sites by their training rows: few test rows say nothing about one site, but something about several together.
GROUPS = ((0, 20, "under 20"), (20, 100, "20 to 99"), (100, 1000, "100 and more"))
METRICS = ("accuracy", "nll", "ece")


def mean(values):
    return sum(values) / len(values)


def error(values):
    """Two standard errors."""
    middle = mean(values)
    return 2 * math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1) / len(values))


def merged(rows):
    """The numbers of several sites' test rows together."""
    n = sum(row["test_rows"] for row in rows)
    sums = defaultdict(lambda: [0, 0.0, 0.0])
    for row in rows:
        for count, hits, conf in row["bins"]:
            # A mean confidence lies in its bin.
            at = sums[math.ceil(round(conf * BINS, 3)) - 1]
            for place, value in enumerate((count, count * hits, count * conf)):
                at[place] += value
    bins = [(count, hits / count, conf / count) for count, hits, conf in sums.values()]
    return {
        "train_rows": sum(row["train_rows"] for row in rows), "test_rows": n, "bins": bins,
        **{key: sum(row["test_rows"] * row[key] for row in rows) / n for key in ("accuracy", "nll", "signed_gap")},
        "ece": sum(c * abs(h - q) for c, h, q in bins) / n, "ece_floor": floor_of(bins),
    }  # fmt: skip


def read():
    """{federation: {method: {seed: {site: row}}}}, with vehicle's groups of sites in place of its sites."""
    runs = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    with gzip.open(FOLDER / "sites.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            for key in ("step", "accuracy", "nll", "ece", "ece_floor", "signed_gap"):
                row[key] = float(row[key])
            for key in ("train_rows", "test_rows"):
                row[key] = int(row[key])
            row["bins"] = [tuple(map(float, bin.split(":"))) for bin in row["bins"].split(";")]
            runs[row["federation"]][row["method"]][int(row["seed"])][row["site"]] = row
    return runs


def grouped(sites):
    places = {}
    for low, high, name in GROUPS:
        rows = [row for site, row in sites.items() if site != "all" and low <= row["train_rows"] < high]
        places[f"{len(rows)} sensors with {name}"] = merged(rows)
    return places


def three(rows):
    return " / ".join(f"{mean([row[metric] for row in rows]):.3f}" for metric in METRICS)


def signed(value):
    return f"{value:+.3f}".replace("-", "−")


def difference(a, b, metric):
    """a − b, paired by seed, ± two standard errors."""
    seeds = sorted(set(a) & set(b))
    gaps = [a[seed][metric] - b[seed][metric] for seed in seeds]
    if len(gaps) < 2:
        return f"{signed(mean(gaps))} (one seed)"
    text = f"{signed(mean(gaps))} ± {error(gaps):.3f}"
    return f"**{text}**" if abs(mean(gaps)) > error(gaps) else text


def places_of(name, seeds):
    """{site: {seed: row}}"""
    places = defaultdict(dict)
    for seed, sites in seeds.items():
        for site, row in sites.items():
            if site != "all" and (not name.startswith("vehicle") or row["test_rows"] >= 20):
                places[site][seed] = row
    return places


def summary(name, methods):
    print(f"\n**{TITLES[name]}**\n")
    print("| method | step | seeds | all test rows | worst site | median site |\n|---|---|---|---|---|---|")
    for method in NAMES:
        if method not in methods:
            continue
        seeds = methods[method]
        places = places_of(name, seeds)
        cells = []
        for pick in ("worst", "median"):
            values = []
            for metric in METRICS:
                of = sorted(mean([row[metric] for row in rows.values()]) for rows in places.values())
                middle = (of[(len(of) - 1) // 2] + of[len(of) // 2]) / 2
                values.append(middle if pick == "median" else (of[0] if metric == "accuracy" else of[-1]))
            cells.append(" / ".join(f"{value:.3f}" for value in values))
        step = f"{next(iter(seeds.values()))['all']['step']:g}"
        print(f"| {NAMES[method]} | {step} | {len(seeds)} | {three([sites['all'] for sites in seeds.values()])} | {cells[0]} | {cells[1]} |")


def every_site(name, methods, order):
    groups = name.startswith("vehicle")
    kept = {method: {seed: grouped(sites) if groups else sites for seed, sites in seeds.items()} for method, seeds in methods.items()}
    first = kept[order[0]]
    sites = sorted({site for sites in first.values() for site in sites} - {"all"}) if not groups else list(next(iter(first.values())))
    print(f"\n**{TITLES[name]}, site by site**\n")
    print("| site | training rows | test rows | " + " | ".join(NAMES[method].strip("*") for method in order) + " | ECE by chance |")
    print("|" + "---|" * (len(order) + 4))
    for site in sites:
        of = [found[site] for found in first.values()]
        cells = [three([found[site] for found in kept[method].values() if site in found]) for method in order]
        floors = [mean([found[site]["ece_floor"] for found in kept[method].values() if site in found]) for method in order]
        print(
            f"| {site} | {mean([row['train_rows'] for row in of]):,.0f} | {mean([row['test_rows'] for row in of]):,.0f} | "
            + " | ".join(cells) + f" | {min(floors):.3f} to {max(floors):.3f} |"
        )  # fmt: skip
    return kept, sites


def gaps(name, methods, kept, sites):
    print(f"\n**{TITLES[name]}, differences**: paired by seed, ± two standard errors; beyond them in bold\n")
    print("| | test rows of | accuracy | NLL | ECE |\n|---|---|---|---|---|")

    def line(text, a, b, site):
        of = [{seed: found[site] for seed, found in side.items() if site in found} for side in (a, b)]
        if all(of):
            print(f"| {text} | {site if site != 'all' else 'all sites'} | " + " | ".join(difference(*of, metric) for metric in METRICS) + " |")

    for method in NAMES:
        if method in methods and method not in ("newton", "alone"):
            line(f"Newton factors − {NAMES[method]}", methods["newton"], methods[method], "all")
    if "alone" in methods:
        for method in ("newton", "fedavg", "svgd"):
            for site in ["all", *sites]:
                side = methods if site == "all" else kept
                if site != "all" or len(set(map(len, (methods["alone"][1], methods[method][1])))) == 1:
                    line(f"{NAMES[method].strip('*')} − each site alone", side[method], side["alone"], site)
    for site in sites:
        line("Newton factors − SVGD in one place", kept["newton"], kept["svgd"], site)


def choices():
    print(
        "\n## Steps\n\nNLL on validation rows, seed 1: mean of the last rounds (as many as there are sites where a round visits one site, else five) and, in\n"
        "brackets, the smallest and the largest of them. The step that was used in bold. `areas-column` has the steps of `areas`.\n"
    )
    found = defaultdict(dict)
    with open(FOLDER / "choices.csv") as file:
        for row in csv.DictReader(file):
            found[row["federation"], row["method"]][float(row["step"])] = [float(row[key]) for key in ("mean_nll", "least_nll", "largest_nll")]
    print("| federation | method | step: NLL |\n|---|---|---|")
    for (name, method), steps in found.items():
        best = min(steps, key=lambda step: steps[step][0])
        cells = []
        for step, (nll, least, largest) in sorted(steps.items()):
            text = f"{step:g}: {nll:.3f} ({least:.3f} to {largest:.3f})"
            cells.append(f"**{text}**" if step == best else text)
        print(f"| {TITLES[name]} | {NAMES[method].strip('*')} | {', '.join(cells)} |")


def tables():
    runs = read()
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print("# Unequal sites\n")
        print(
            "All tables of [Unequal sites](../../../results.md#unequal-sites), written by `scripts/unequal_sites.py` from\n"
            "[sites.csv.gz](sites.csv.gz) and [choices.csv](choices.csv): accuracy / NLL / ECE on test rows, mean over the seeds. *Worst* and *median*\n"
            "are taken over the sites' means, for each number by itself; on vehicle over the sensors with at least 20 test rows. *ECE by chance* is what\n"
            "a model with true confidences would have with as many test rows in the bins, over the methods of the table."
        )
        for name in TITLES:
            if name not in runs:
                continue
            print(f"\n## {TITLES[name]}")
            methods = runs[name]
            summary(name, methods)
            order = [method for method in ("alone", "newton", "dsvgd-median", "fedavg", "scaffold-10", "svgd") if method in methods]
            kept, sites = every_site(name, methods, order)
            gaps(name, methods, kept, sites)
        choices()
    (FOLDER / "table.md").write_text(text.getvalue())


# ---- main ----------------------------------------------------------------------------------------------------------------


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--fedstein", default="target/release/fedstein", help="the program")
    arguments.add_argument("--data", default=os.environ.get("FEDSTEIN_DATA", "data"), help="the directory of the data sets")
    arguments.add_argument("--work", default="/tmp/unequal-sites", help="the directory of all files that are not kept")
    arguments.add_argument("--only", default=",".join(FEDERATIONS), help="federations, separated by commas")
    arguments.add_argument("--seeds", default=",".join(map(str, SEEDS)), help="seeds, separated by commas")
    arguments.add_argument("--table", action="store_true", help="only write the tables, from the kept numbers")
    given = arguments.parse_args()
    if not given.table:
        os.environ["RAYON_NUM_THREADS"] = "1"
        work, tool = Path(given.work).resolve(), Path(given.fedstein).resolve()
        wanted = given.only.split(",")
        prepare(Path(given.data), work, wanted)
        for name in wanted:
            check(work, tool, name)
            for seed in map(int, given.seeds.split(",")):
                for method in methods(name, seed):
                    if not done(work, name, method, seed):
                        federated(work, tool, name, method, seed)
                if name != "areas-column" and not done(work, name, "alone", seed):
                    alone(work, tool, name, seed)
        collect(work)
    tables()


if __name__ == "__main__":
    main()
