#!/usr/bin/env python3
"""Particles beside the posterior: writes the rows and the configurations of the comparison with NUTS in docs/results.md.

How to repeat that comparison (needs numpy, Covertype's rows under $FEDSTEIN_DATA, and one to two hours of one core):

    D=target/nuts
    python3 scripts/nuts/prepare.py $D
    for n in small twonorm covertype; do python3 scripts/nuts/nuts.py $D $n; done
    for c in $D/configs/*.toml; do fedstein train $c --out $D/runs/$(basename $c .toml) --force; done
    python3 scripts/nuts/compare.py $D

prepare.py writes $D/data/NAME-{train,test}.csv, which nuts.py and fedstein both read, and $D/configs; nuts.py draws from the
posterior without fedstein; compare.py prints the tables and draws docs/images/spread.svg. Runs may be left out: compare.py
prints what it finds.

The runs are not tuned. Those named DATA-METHOD-N20-sSEED go on, with all rows in a batch and a small step, until the
particles have arrived; those named ...-user-... have the step and the batch of the paper's logistic regressions and 12,000
steps.
"""

import gzip
import os
import sys
from pathlib import Path

import numpy as np

CLIENTS = {"small": 4, "twonorm": 10, "covertype": 20}
ROWS = {"small": 200, "twonorm": 5920, "covertype": 10000}
# runs in which a particle was still under way at the end of the usual number of rounds
LONGER = {("twonorm", "svgd", 20, 2): 120, ("twonorm", "newton-skew", 20, 2): 2500}
LONGER |= {("covertype", f"newton-{part}", n, 2): 2500 for part in ("iid", "skew") for n in (20, 50)}


def write(path, x, y):
    with open(path, "w") as out:
        out.write(",".join([f"f{j}" for j in range(x.shape[1])] + ["label"]) + "\n")
        for row, label in zip(x.astype(np.float32), y):
            out.write(",".join([f"{v:.9g}" for v in row] + [str(int(label))]) + "\n")


def data(folder):
    """twonorm: 20 features, two normal classes. small: 8 correlated features. covertype: spruce or not, features over their range."""
    rng = np.random.default_rng(16)
    y = rng.integers(0, 2, 7400)
    x = rng.normal(size=(7400, 20)) + np.where(y == 1, 1, -1)[:, None] * 2 / np.sqrt(20)
    sets = {"twonorm": (x, y)}
    lower = np.linalg.cholesky(0.6 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8))))
    x = rng.normal(size=(2200, 8)) @ lower.T
    w = np.array([0.9, -0.6, 0.5, 0, 0, 0.4, -0.8, 0.2])
    sets["small"] = x, (rng.random(2200) < 1 / (1 + np.exp(-x @ w))).astype(int)
    source = Path(os.environ["FEDSTEIN_DATA"]) / "covertype" / "covtype.binary.csv.gz"
    a = np.loadtxt(gzip.open(source, "rt"), delimiter=",", dtype=np.int32)
    a = a[rng.permutation(len(a))[:15000]]
    low = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0] + [0] * 44)
    high = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173] + [1] * 44)
    sets["covertype"] = (a[:, :54] - low) / (high - low), (a[:, 54] == 2).astype(int)
    for name, (x, y) in sets.items():
        n = ROWS[name]
        write(folder / f"{name}-train.csv", x[:n], y[:n])
        write(folder / f"{name}-test.csv", x[n:], y[n:])


def config(directory, name, rows, method, particles, seed, user=False, kernel="rbf", bandwidth="reference"):
    part = 'kind = "label-ratio"\nratio = [1, 9]' if method == "newton-skew" else 'kind = "iid"'
    algorithm = "svgd" if method == "svgd" else "newton-dsvgd"
    if user:
        rounds, steps, batch, lr = 60, 200, 100, 0.05
    elif method == "svgd":
        rounds, steps, batch, lr = 20 if rows == "covertype" else 40, 1000, ROWS[rows], 0.01
    else:
        rounds, steps, batch, lr = 1000, 50, ROWS[rows], 0.01
    if not user and kernel == "rbf":
        rounds = LONGER.get((rows, method, particles, seed), rounds)
    (directory / "configs" / f"{name}.toml").write_text(f'''name = "{name}"
seed = {seed}
rounds = {rounds}
backend = "flex"
precision = "f64"
[data]
kind = "csv"
path = "{directory}/data/{rows}-train.csv"
test_path = "{directory}/data/{rows}-test.csv"
target = "label"
normalise = "none"
{"" if user else 'rotate = "principal"'}
[partition]
{part}
clients = {CLIENTS[rows]}
[model]
kind = "blr"
[algorithm]
kind = "{algorithm}"
particles = {particles}
local_steps = {steps}
batch = {batch}
[kernel]
kind = "{kernel}"
bandwidth = "{bandwidth}"
[optimizer]
kind = "adagrad"
lr = {lr}
epsilon = 1e-9
momentum = 0.9
reset = "{"per-visit" if user or method == "svgd" else "never"}"
[schedule]
kind = "round-robin"
clients = 1
[evaluation]
every = {max(1, rounds // 10)}
[checkpoint]
enabled = false
''')


if __name__ == "__main__":
    directory = Path(sys.argv[1]).resolve()
    (directory / "data").mkdir(parents=True, exist_ok=True)
    (directory / "configs").mkdir(exist_ok=True)
    data(directory / "data")
    for rows in CLIENTS:
        for method in ("svgd", "newton-iid", "newton-skew"):
            for n in (20, 50, 100):
                if n == 20 or rows != "covertype" or method != "svgd":
                    for seed in (1, 2, 3) if n < 100 else (1, 2) if rows == "small" and method != "newton-iid" else ():
                        config(directory, f"{rows}-{method}-N{n}-s{seed}", rows, method, n, seed)
            for seed in (1, 2, 3):
                config(directory, f"{rows}-{method}-N20-user-s{seed}", rows, method, 20, seed, user=True)
        if rows != "twonorm":
            for bandwidth in ("paper", "pyro"):
                config(directory, f"{rows}-newton-skew-N20-{bandwidth}-s1", rows, "newton-skew", 20, 1, bandwidth=bandwidth)
            config(directory, f"{rows}-newton-skew-N20-imq-s1", rows, "newton-skew", 20, 1, kernel="imq")
