#!/usr/bin/env python3
"""Writes tests/golden/binary_decisions.json: what other programs compute for two classes, and for a confusion matrix.

    pip install scikit-learn statsmodels dcurves
    python scripts/golden_binary.py

AUROC, average precision and the confusion matrix are scikit-learn's; calibration slope, intercept and their standard
errors are those of statsmodels' Logit, beside scikit-learn's LogisticRegression without a penalty; calibration in the
large is statsmodels' GLM with an offset; net benefit is that of dcurves.
"""

import json
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from dcurves import dca
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, confusion_matrix, roc_auc_score

THRESHOLDS = [0.01, 0.05, 0.1, 0.25, 0.3, 0.5, 0.75, 0.9, 0.99]


def recalibration(p, y):
    logit = np.log(p) - np.log(1 - p)
    both = sm.Logit(y, sm.add_constant(logit)).fit(disp=0, method="newton", tol=1e-14, maxiter=200)
    large = sm.GLM(y, np.ones(len(y)), family=sm.families.Binomial(), offset=logit).fit(tol=1e-14, maxiter=200)
    other = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cholesky").fit(logit[:, None], y)
    assert abs(other.coef_[0, 0] - both.params[1]) < 1e-6 and abs(other.intercept_[0] - both.params[0]) < 1e-6
    return {
        "intercept": [both.params[0], both.bse[0]],
        "slope": [both.params[1], both.bse[1]],
        "in_the_large": [large.params[0], large.bse[0]],
    }


def thresholds(p, y):
    table = dca(data=pd.DataFrame({"y": y, "p": p}), outcome="y", modelnames=["p"], thresholds=THRESHOLDS)
    of = {name: table[table.model == name].set_index("threshold").net_benefit for name in ("p", "all")}
    rows = []
    for t in THRESHOLDS:
        tn, fp, fn, tp = (int(n) for n in confusion_matrix(y, p >= t, labels=[0, 1]).ravel())
        rows.append([tp, fp, fn, tn, float(of["p"][t]), float(of["all"][t])])
    return rows


def binary(name, p, y):
    expected = {"auroc": roc_auc_score(y, p), "auprc": average_precision_score(y, p), **recalibration(p, y)}
    expected["thresholds"] = thresholds(p, y)
    inputs = {"p": p.tolist(), "label": y.tolist(), "thresholds": THRESHOLDS}
    return {"name": name, "inputs": inputs, "expected": expected, "tolerance": {"f64": {"rtol": 1e-8, "atol": 1e-10}}}


def matrix(rng):
    probabilities = np.round(rng.dirichlet([0.6] * 5, size=120), 4)
    probabilities[:, 4] = np.round(1 - probabilities[:, :4].sum(axis=1), 4)
    label = np.array([rng.choice(5, p=np.clip(0.7 * row + 0.06, 0, 1) / (0.7 * row + 0.06).sum()) for row in probabilities])
    counts = confusion_matrix(label, probabilities.argmax(axis=1), labels=range(5))
    inputs = {"probabilities": probabilities.tolist(), "label": label.tolist()}
    tolerance = {"f64": {"rtol": 0, "atol": 0}}
    return {"name": "confusion matrix of five classes", "inputs": inputs, "expected": counts.tolist(), "tolerance": tolerance}


def main():
    warnings.simplefilter("ignore", FutureWarning)
    rng = np.random.default_rng(20)
    score = rng.normal(size=160)
    drawn = (rng.random(160) < 1 / (1 + np.exp(-(0.6 * score - 0.4)))).astype(int)
    over = np.round(1 / (1 + np.exp(-(1.8 * score + 0.5))), 6)
    tied = np.clip(np.round(over * 20) / 20, 0.05, 0.95)
    rare = np.round(1 / (1 + np.exp(-(rng.normal(size=300) - 4.5))), 6)
    few = (rng.random(300) < np.minimum(3 * rare, 1)).astype(int)
    cases = [
        binary("over-confident probabilities, 160 rows", over, drawn),
        binary("the same in steps of 0.05: ties", tied, drawn),
        binary("a rare class, 300 rows", rare, few),
        matrix(rng),
    ]
    packages = ["scikit-learn", "statsmodels", "dcurves", "numpy"]
    source = "scripts/golden_binary.py with " + ", ".join(f"{name} {version(name)}" for name in packages)
    fields = {
        "auroc": "roc_auc_score",
        "auprc": "average_precision_score",
        "slope, intercept": "estimate and standard error of statsmodels' Logit of the label on logit p",
        "in_the_large": "the same of statsmodels' GLM with the offset logit p",
        "thresholds": "true positives, false positives, false negatives, true negatives (p >= t is positive), and dcurves' net benefit of the model and of treating all",
    }
    out = Path(__file__).parent.parent / "tests/golden/binary_decisions.json"
    text = json.dumps({"subject": "binary decisions", "source": source, "fields": fields, "cases": cases})
    out.write_text(text.replace('{"name"', '\n{"name"') + "\n")


if __name__ == "__main__":
    main()
