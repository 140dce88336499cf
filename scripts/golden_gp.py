#!/usr/bin/env python3
"""Writes tests/golden/gaussian_process_tree.json: the tree of Gaussian processes of `pfedgp`, computed a second time.

    pip install numpy
    python scripts/golden_gp.py

Written from the formulas in docs/algorithms.md (pfedgp), not from the program. Expectations of the sigmoid are sums
over 6,001 points, and the gradient of the bound is by complex steps of the bound, with the c of the fit held fixed.
"""

import json
from pathlib import Path

import numpy as np

UNSEEN = 1e-6
RNG = np.random.default_rng(23)


def squares(a, b):
    return ((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)


def divided(means):
    """2-means: for each start, Lloyd's iteration from it and from the mean farthest from it; the best of all."""
    best = None
    for start in means:
        centres = np.stack([start, means[np.argmax(squares(means, start[None])[:, 0])]])
        while True:
            sides = np.argmin(squares(means, centres), 1)
            moved = np.stack([means[sides == side].mean(0) for side in (0, 1)])
            if np.array_equal(moved, centres):
                break
            centres = moved
        total = sum(squares(means[sides == side], centres[side][None]).sum() for side in (0, 1))
        if best is None or total < best[0] - 1e-12:
            best = (total, sides)
    return best[1]


def forks(classes, rows, labels):
    """Each fork as (left classes, right classes), the lowest class on the left."""
    if len(classes) < 2:
        return []
    means = np.stack([rows[labels == each].mean(0) for each in classes])
    sides = divided(means) if len(classes) > 2 else np.array([0, 1])
    left = [each for each, side in zip(classes, sides) if side == sides[0]]
    right = [each for each, side in zip(classes, sides) if side != sides[0]]
    return [(left, right), *forks(left, rows, labels), *forks(right, rows, labels)]


def kernel(a, b, scale, length):
    return scale * np.exp(-squares(a, b) / (2 * length**2))


def fitted(gram, y, scale, steps):
    """The c of the last update, and with it ω, α, m and S."""
    c = np.full(len(y), np.sqrt(scale))
    for step in range(steps + 1):
        omega = np.tanh(c / 2) / (2 * c)
        noisy = gram + np.diag(1 / omega)
        alpha = np.linalg.solve(noisy, y / 2 / omega)
        m = gram @ alpha
        s = gram - gram @ np.linalg.solve(noisy, gram)
        if step < steps:
            c = np.sqrt(m**2 + np.diag(s))
    return c, omega, alpha


def expected_sigmoid(mean, variance):
    z = np.linspace(-12, 12, 6001)
    weights = np.exp(-z * z / 2)
    f = mean + np.sqrt(variance) * z
    return float(weights @ np.exp(-np.logaddexp(0, -f)) / weights.sum())


def of_fork(fork, rows, labels):
    left, right = fork
    own = np.isin(labels, left + right)
    return rows[own], np.where(np.isin(labels[own], left), 1.0, -1.0), own


def predicted(rows, labels, test, classes, scale, length, steps):
    p = np.ones((len(test), classes))
    held = sorted(set(labels.tolist()))
    for fork in forks(held, rows, labels):
        seen, y, _ = of_fork(fork, rows, labels)
        gram, cross = kernel(seen, seen, scale, length), kernel(test, seen, scale, length)
        _, omega, alpha = fitted(gram, y, scale, steps)
        shrunk = np.linalg.solve(gram + np.diag(1 / omega), cross.T)
        variances = scale - np.einsum("ij,ji->i", cross, shrunk)
        up = np.array([expected_sigmoid(m, v) for m, v in zip(cross @ alpha, variances)])
        p[:, fork[0]] *= up[:, None]
        p[:, fork[1]] *= 1 - up[:, None]
    unseen = [each for each in range(classes) if each not in held]
    if unseen:
        p *= 1 - UNSEEN
        p[:, unseen] = UNSEEN / len(unseen)
    return p


def bound(rows, labels, tree, scale, length, fits):
    """Σ_forks L at these c, also of complex rows."""
    total = 0
    for fork, c in zip(tree, fits):
        seen, y, _ = of_fork(fork, rows, labels)
        gram = kernel(seen, seen, scale, length)
        omega = np.tanh(c / 2) / (2 * c)
        m = gram @ np.linalg.solve(gram + np.diag(1 / omega), y / 2 / omega)
        root = np.linalg.eigvals(np.eye(len(y)) + omega[:, None] * gram)
        total += (-np.log1p(np.exp(-c)) - c / 2 + omega * c * c / 2).sum() + y / 2 @ m / 2 - np.log(root).sum() / 2
    return total


def bound_and_gradient(rows, labels, scale, length, steps):
    tree = forks(sorted(set(labels.tolist())), rows, labels)
    fits = []
    for fork in tree:
        seen, y, _ = of_fork(fork, rows, labels)
        fits.append(fitted(kernel(seen, seen, scale, length), y, scale, steps)[0])
    gradient = np.zeros_like(rows)
    for at in np.ndindex(rows.shape):
        moved = rows.astype(complex)
        moved[at] += 1e-30j
        gradient[at] = bound(moved, labels, tree, scale, length, fits).imag / 1e-30
    return bound(rows, labels, tree, scale, length, fits).real, gradient


def case(name, counts, scale, length, steps, features=3):
    """`counts`: the rows of each class, around a direction of its own."""
    directions = RNG.normal(size=(len(counts), features))
    labels = np.repeat(np.arange(len(counts)), counts)
    rows = directions[labels] + 0.4 * RNG.normal(size=(len(labels), features))
    test = directions[[0, 1, 2]] + RNG.normal(size=(3, features))
    rows, test = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (rows, test))
    value, gradient = bound_and_gradient(rows, labels, scale, length, steps)
    return {
        "name": name,
        "inputs": {
            "rows": rows.tolist(),
            "labels": labels.tolist(),
            "test": test.tolist(),
            "classes": len(counts),
            "output_scale": scale,
            "length_scale": length,
            "inference_steps": steps,
        },
        "expected": {
            "probabilities": predicted(rows, labels, test, len(counts), scale, length, steps).tolist(),
            "bound": value,
            "gradient": gradient.tolist(),
        },
    }


golden = {
    "subject": "the tree of Gaussian processes of pfedgp",
    "source": f"NumPy {np.__version__}, by scripts/golden_gp.py",
    "cases": [
        case("three classes", [4, 3, 5], 8.0, 1.0, 10),
        case("eight classes, two without a row", [3, 1, 4, 0, 2, 5, 0, 3], 8.0, 1.0, 10, features=4),
        case("a narrow kernel and one update", [3, 4, 2, 3], 2.0, 0.3, 1),
        case("a wide variance", [4, 4, 3], 400.0, 0.5, 20),
    ],
}
target = Path(__file__).parent.parent / "tests" / "golden" / "gaussian_process_tree.json"
target.write_text(json.dumps(golden, indent=1) + "\n")
