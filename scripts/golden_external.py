#!/usr/bin/env python3
"""Writes tests/golden/external_rows.json: what other programs compute for labelled rows and a model of known particles.

    pip install scikit-learn scipy
    python scripts/golden_external.py

The model is a softmax regression with five given particles (W [2, 3], b [2]); numpy computes the probabilities, scikit-learn
log loss, accuracy, AUROC, average precision and Brier score of all rows and of each group, scipy the entropies in nats.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.special import log_softmax, softmax
from scipy.stats import entropy
from sklearn.metrics import accuracy_score, average_precision_score, brier_score_loss, log_loss, roc_auc_score

TEMPERATURE = 1.7


def scores(p, y):
    return {
        "rows": len(y),
        "nll": log_loss(y, p, labels=[0, 1]),
        "accuracy": accuracy_score(y, p.argmax(axis=1)),
        "auroc": roc_auc_score(y, p[:, 1]),
        "auprc": average_precision_score(y, p[:, 1]),
        # The Brier score over both classes is twice that of one.
        "brier": 2 * brier_score_loss(y, p[:, 1]),
    }


def main():
    rng = np.random.default_rng(20)
    weight, bias = np.round(rng.normal(size=(5, 2, 3)), 3), np.round(0.3 * rng.normal(size=(5, 2)), 3)
    x = np.round(rng.normal(scale=1.5, size=(90, 3)), 3)
    site = rng.choice(["Aarhus", "Bergen", "C, north"], size=len(x), p=[0.5, 0.3, 0.2])
    logits = np.einsum("ncf,rf->nrc", weight, x) + bias[:, None, :]
    members = softmax(logits, axis=2)
    p = members.mean(axis=0)
    # Labels of one site do not follow the model.
    y = (rng.random(len(x)) < np.where(site == "Bergen", 0.5, p[:, 1])).astype(int)
    total, mean = entropy(p, axis=1), entropy(members, axis=2).mean(axis=0)
    expected = {
        "all": scores(p, y),
        "groups": {name: scores(p[site == name], y[site == name]) for name in np.unique(site).tolist()},
        "p_1": p[:, 1].tolist(),
        "entropy": total.tolist(),
        "mutual_information": (total - mean).tolist(),
        "entropy_at_temperature": entropy(softmax(np.log(p) / TEMPERATURE, axis=1), axis=1).tolist(),
        "nll_of_members": float(np.mean([-log_softmax(logits[n], axis=1)[np.arange(len(y)), y].mean() for n in range(5)])),
    }
    case = {
        "name": "two classes at three sites",
        "inputs": {
            "weight": weight.tolist(),
            "bias": bias.tolist(),
            "x": x.tolist(),
            "label": y.tolist(),
            "site": site.tolist(),
            "temperature": TEMPERATURE,
        },
        "expected": expected,
        "tolerance": "outputs of a model in f32: 1e-5",
    }
    source = ", ".join(f"{name} {version(name)}" for name in ("scikit-learn", "scipy", "numpy"))
    content = {
        "subject": "evaluation on labelled rows",
        "source": f"scripts/golden_external.py with {source}",
        "cases": [case],
    }
    path = Path(__file__).parent.parent / "tests" / "golden" / "external_rows.json"
    path.write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
