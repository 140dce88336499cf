#!/usr/bin/env python3
"""Compares the scores of the Python package with those of PyTorch, torchmetrics and netcal, on random predictions.

    pip install torch torchmetrics netcal scikit-learn ./python && python3 scripts/python_scores.py

Prints the largest difference of each score over 200 sets of 20 to 3,000 rows, 2 to 11 classes and 5 to 20 bins, and whether
the report on a PyTorch network's predictions has the numbers of `fedstein report --predictions`. The maximum calibration
error of torchmetrics is left out: it computes in 32 bits, and a confidence that rounds to 1 has a bin of its own there.
"""

import csv
import json
import subprocess
import tempfile
from pathlib import Path

import fedstein
import numpy as np
import torch
from fedstein import calibration
from netcal.metrics import ECE, MCE
from sklearn.metrics import brier_score_loss, log_loss
from torchmetrics.functional.classification import multiclass_accuracy, multiclass_calibration_error

rng = np.random.default_rng(0)
largest: dict[str, float] = {}


def compare(name: str, ours: float, theirs: float) -> None:
    largest[name] = max(largest.get(name, 0.0), abs(ours - float(theirs)))


for case in range(200):
    rows, classes, bins = int(rng.integers(20, 3000)), int(rng.integers(2, 12)), int(rng.choice([5, 10, 15, 20]))
    p = np.exp(rng.normal(size=(rows, classes)) * rng.choice([0.3, 1, 3]))
    p /= p.sum(1, keepdims=True)
    calibrated = np.array([rng.choice(classes, p=row) for row in p])
    labels = calibrated if case % 2 else rng.integers(0, classes, rows)
    report = fedstein.report(p, labels, bins=bins)
    tensors = torch.from_numpy(p), torch.from_numpy(labels)
    confidence, right = p.max(1), (p.argmax(1) == labels).astype(int)
    l1 = multiclass_calibration_error(*tensors, num_classes=classes, n_bins=bins, norm="l1")
    compare("accuracy, torchmetrics", report.accuracy, multiclass_accuracy(*tensors, num_classes=classes, average="micro"))
    compare("NLL, PyTorch", report.nll, torch.nn.functional.nll_loss(torch.log(tensors[0]), tensors[1]))
    compare("NLL, scikit-learn", report.nll, log_loss(labels, p, labels=range(classes)))
    compare("ECE, torchmetrics", report.ece, l1)
    compare("ECE, netcal", report.ece, ECE(bins).measure(confidence, right))
    compare("MCE, netcal", report.mce, MCE(bins).measure(confidence, right))
    compare("ECE, fedstein.calibration", calibration.ece(p, labels, bins=bins), report.ece)
    if classes == 2:
        compare("Brier, scikit-learn", report.brier, 2 * brier_score_loss(labels, p[:, 1]))

for name, difference in largest.items():
    print(f"{name:28}{difference:.1e}")

network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
probabilities, labels = torch.softmax(network(torch.randn(400, 4)), 1), torch.randint(0, 3, (400,))
with tempfile.TemporaryDirectory() as directory:
    ours, file = Path(directory, "ours"), Path(directory, "predictions.csv")
    fedstein.report(probabilities, labels).save(ours)
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["label", "p_0", "p_1", "p_2"])
        rows = probabilities.detach().double().tolist()
        writer.writerows([label, *map(repr, row)] for label, row in zip(labels.tolist(), rows))
    command = ["fedstein", "report", "--predictions", str(file), "--out", str(Path(directory, "command"))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    one, other = (json.loads(Path(directory, name, "report.json").read_text())["overall"] for name in ("ours", "command"))
    print("a network's report has the command's numbers:", one == other)
