#!/usr/bin/env python3
"""Writes tests/golden/maps.json: isotonic regressions and vector scalings that other programs fit.

    pip install scikit-learn scipy
    python scripts/golden_maps.py

Isotonic regression is scikit-learn's IsotonicRegression, for more than two classes one for each class against the rest,
divided by their sum. The probabilities of the fit lie on fedstein's grid, so that both programs see the same numbers.
Vector scaling is the root of the gradient of the penalised NLL (SciPy's `root`), where the gradient is by complex steps of
the objective, which has no formula of fedstein's in it; and, for two classes, beside scikit-learn's LogisticRegression on both
log probabilities without a penalty.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.optimize import root
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

PENALTY = 0.01
RNG = np.random.default_rng(20)


def on_grid(p):
    """The nearest point of the grid: log odds in steps of 0.03, at most 15."""
    steps = np.clip(np.round(np.log(p / (1 - p)) / 0.03), -500, 500)
    return 1 / (1 + np.exp(-steps * 0.03))


def drawn(rows, classes, sharpness):
    """Probabilities of a model that is too sure, and labels."""
    logits = RNG.normal(size=(rows, classes)) * 1.5
    truth = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = np.array([RNG.choice(classes, p=p) for p in truth])
    given = np.exp(sharpness * logits)
    return given / given.sum(1, keepdims=True), labels


def rows_on_grid(rows, classes):
    kept, labels = [], []
    while len(kept) < rows:
        p, y = drawn(1000, classes, 2.0)
        p = on_grid(p)
        good = np.abs(p.sum(1) - 1) < 5e-4
        kept, labels = kept + list(p[good]), labels + list(y[good])
    return np.array(kept[:rows]), np.array(labels[:rows])


def isotonic(p, y, new):
    rows, classes = p.shape
    least = 1 / (rows * classes)
    fit = lambda k: IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(p[:, k], y == k)
    if classes == 2:
        second = fit(1).predict(new[:, 1])
        return np.stack([1 - second, second], 1)
    of = np.stack([fit(k).predict(new[:, k]) for k in range(classes)], 1)
    return of / of.sum(1, keepdims=True)


def vector(p, y):
    logs, classes = np.log(p), p.shape[1]

    def objective(x):
        z = logs * x[:classes] + x[classes:]
        nll = (np.log(np.exp(z).sum(1)) - z[np.arange(len(y)), y]).sum()
        identity = np.repeat([1.0, 0.0], classes)
        return nll + 0.5 * PENALTY * ((x - identity) ** 2).sum()

    def gradient(x):
        step = 1e-30j * np.eye(2 * classes)
        return np.array([objective(x + h).imag / 1e-30 for h in step])

    found = root(gradient, np.repeat([1.0, 0.0], classes), tol=1e-13)
    assert np.abs(gradient(found.x)).max() < 1e-9, found
    return found.x, objective(found.x)


def main():
    cases = {}
    for name, rows, classes in [("isotonic_2", 300, 2), ("isotonic_3", 400, 3)]:
        p, y = drawn(rows, classes, 2.0)
        if classes == 2:
            second = on_grid(p[:, 1])
            p = np.stack([1 - second, second], 1)
        else:
            p, y = rows_on_grid(rows, classes)
        new, _ = drawn(60, classes, 3.0)
        cases[name] = {"p": p, "y": y, "new": new, "mapped": isotonic(p, y, new)}
    for name, rows, classes in [("vector_2", 600, 2), ("vector_4", 300, 4)]:
        p, y = drawn(rows, classes, 2.0)
        # The last class is given too little.
        p[:, -1] *= 0.4
        p /= p.sum(1, keepdims=True)
        x, objective = vector(p, y)
        cases[name] = {"p": p, "y": y, "numbers": x, "objective": objective}
        if classes == 2:
            fit = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
            cases[name]["unpenalised"] = fit.fit(np.log(p), y).predict_proba(np.log(p))[:, 1]
    listed = {name: {k: np.asarray(v).tolist() for k, v in case.items()} for name, case in cases.items()}
    source = f"scikit-learn {version('scikit-learn')} and SciPy {version('scipy')}, by scripts/golden_maps.py"
    out = Path(__file__).resolve().parent.parent / "tests/golden/maps.json"
    out.write_text(json.dumps({"subject": "maps", "source": source, **listed}) + "\n")


if __name__ == "__main__":
    main()
