#!/usr/bin/env python3
"""Draws from the posterior of a Bayesian logistic regression with NUTS, independently of fedstein (float64, numpy only).

    python3 nuts.py DIRECTORY NAME [WARMUP DRAWS CHAINS]

Reads DIRECTORY/data/NAME-train.csv and writes DIRECTORY/nuts-NAME.npz. prepare.py says how all scripts here go together.

The model is fedstein's `blr`: p(y = 1 | x, w) = sigmoid(w·x), w ~ N(0, I/ξ), ξ ~ Gamma(shape 1, rate 100), and the parameter
is (w, log ξ). The sampler is the multinomial NUTS of Betancourt (arXiv:1701.02434) with Stan's criterion for a turn and dual
averaging of the step. Its mass matrix is the Hessian at the mode, which only changes how long a draw takes.
"""

import sys
import time

import numpy as np

SHAPE, RATE = 1.0, 100.0


def posterior(x, y):
    """The log density of (w, log ξ) up to a constant together with its gradient."""
    signed = x * (2 * y - 1)[:, None]

    def density(theta):
        w, t = theta[:-1], theta[-1]
        margin = signed @ w
        xi, energy = np.exp(min(t, 300.0)), 0.5 * (w @ w) + RATE
        value = -np.logaddexp(0, -margin).sum() + (0.5 * len(w) + SHAPE) * t - xi * energy
        gradient = (0.5 * (1 - np.tanh(0.5 * margin))) @ signed - xi * w
        return value, np.append(gradient, 0.5 * len(w) + SHAPE - xi * energy)

    return density


def mode(x, y, steps=200):
    """The mode of (w, log ξ) and the Hessian of minus the log density there: Newton steps of w, closed form of ξ."""
    w, xi = np.zeros(x.shape[1]), 0.01
    for _ in range(steps):
        p = 0.5 * (1 + np.tanh(0.5 * (x @ w)))
        hessian = x.T @ (x * (p * (1 - p))[:, None]) + xi * np.eye(len(w))
        w = w + np.linalg.solve(hessian, x.T @ (y - p) - xi * w)
        xi = (0.5 * len(w) + SHAPE) / (0.5 * (w @ w) + RATE)
    corner = 0.5 * len(w) + SHAPE
    return np.append(w, np.log(xi)), np.block([[hessian, xi * w[:, None]], [xi * w[None], np.array([[corner]])]])


def chain(density, start, warmup, draws, rng, target=0.85):
    """One chain with unit mass matrix: draws, divergences, gradients a draw."""
    position, (value, gradient) = start, density(start)
    step, mu, average, error = 0.5, np.log(5.0), 0.0, 0.0
    out, diverged, leaves = np.empty((draws, len(start))), 0, 0

    def tree(state, momentum, direction, depth, h0):
        """A subtree of 2^depth steps: ends, sum of momenta, log weight, a proposal, whether it goes on, acceptance, leaves, divergence."""
        if depth == 0:
            theta, (_, g) = state
            r = momentum + 0.5 * direction * step * g
            theta = theta + direction * step * r
            new = (theta, density(theta))
            r = r + 0.5 * direction * step * new[1][1]
            h = new[1][0] - 0.5 * r @ r - h0
            h = h if np.isfinite(h) else -np.inf
            return (new, r), (new, r), r, h, new, h > -1000, min(1.0, np.exp(min(h, 0.0))), 1, h <= -1000
        near, far, total, weight, proposal, ok, accept, n, bad = tree(state, momentum, direction, depth - 1, h0)
        if not ok:
            return near, far, total, weight, proposal, False, accept, n, bad
        near2, far2, total2, weight2, proposal2, ok2, accept2, n2, bad2 = tree(*far, direction, depth - 1, h0)
        both = np.logaddexp(weight, weight2)
        if ok2 and np.log(rng.random()) < weight2 - both:
            proposal = proposal2
        whole = total + total2
        ok2 = ok2 and straight(near[1], far2[1], whole)
        ok2 = ok2 and straight(near[1], near2[1], total + near2[1]) and straight(far[1], far2[1], total2 + far[1])
        return near, far2, whole, both, proposal, ok2, accept + accept2, n + n2, bad or bad2

    def straight(a, b, total):
        return a @ total > 0 and b @ total > 0

    for i in range(warmup + draws):
        r = rng.normal(size=len(start))
        state = (position, (value, gradient))
        h0 = value - 0.5 * r @ r
        left, right, total, weight = (state, r), (state, r), r, 0.0
        proposal, accept, n = state, 0.0, 0
        for depth in range(10):
            direction = 1 if rng.random() < 0.5 else -1
            side, other = (right, left) if direction > 0 else (left, right)
            near, far, total2, weight2, proposal2, ok, a, m, bad = tree(*side, direction, depth, h0)
            accept, n = accept + a, n + m
            diverged += bad and i >= warmup
            if not ok:
                break
            if np.log(rng.random()) < weight2 - weight:
                proposal = proposal2
            weight = np.logaddexp(weight, weight2)
            whole = total + total2
            ok = straight(other[1], far[1], whole) and straight(other[1], near[1], total + near[1])
            ok = ok and straight(side[1], far[1], total2 + side[1])
            total = whole
            left, right = (left, far) if direction > 0 else (far, right)
            if not ok:
                break
        position, (value, gradient) = proposal
        if i < warmup:  # dual averaging
            error += (target - accept / n - error) / (i + 11)
            log_step = mu - np.sqrt(i + 1) / 0.05 * error
            average += (i + 1) ** -0.75 * (log_step - average)
            step = np.exp(log_step if i < warmup - 1 else average)
        else:
            out[i - warmup] = position
            leaves += n
    return out, diverged, leaves / draws


def diagnostics(chains):
    """The smallest effective sample size (Geyer's initial positive sequence) and the largest split R-hat."""
    n, sizes, hats = chains.shape[1], [], []
    for j in range(chains.shape[2]):
        c = chains[:, :, j]
        halves = c[:, : n // 2 * 2].reshape(2 * len(c), -1)
        within, between = halves.var(1, ddof=1).mean(), halves.mean(1).var(ddof=1)
        hats.append(np.sqrt(1 + between / within))
        centred = c - c.mean()
        power = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
        rho = np.fft.irfft(power, axis=1)[:, :n].mean(0) / n / c.var()
        pairs = rho[0 : n // 2 * 2 : 2] + rho[1 : n // 2 * 2 : 2]
        end = np.argmax(pairs < 0) if (pairs < 0).any() else len(pairs)
        sizes.append(c.size / (2 * pairs[:end].sum() - 1))
    return min(sizes), max(hats)


if __name__ == "__main__":
    directory, name = sys.argv[1:3]
    warmup, draws, chains = map(int, sys.argv[3:6]) if len(sys.argv) > 3 else (500, 4000, 4)
    rows = np.loadtxt(f"{directory}/data/{name}-train.csv", delimiter=",", skiprows=1)
    x, y = rows[:, :-1], rows[:, -1]
    began, density = time.time(), posterior(x, y)
    top, hessian = mode(x, y)
    scale = np.linalg.inv(np.linalg.cholesky(hessian)).T  # scale @ scale.T = the inverse of the Hessian

    def whitened(z):
        value, gradient = density(top + scale @ z)
        return value, scale.T @ gradient

    rng = np.random.default_rng(16)
    runs = [chain(whitened, 2 * rng.normal(size=len(top)), warmup, draws, rng) for _ in range(chains)]
    samples = np.stack([top + out @ scale.T for out, *_ in runs])
    size, hat = diagnostics(samples)
    bad = sum(r[1] for r in runs)
    print(f"{name}: d = {len(top)}, draws {samples.shape[:2]}, ESS at least {size:.0f}, R-hat at most {hat:.4f}, "
          f"divergences {bad}, {np.mean([r[2] for r in runs]):.1f} gradients a draw, {time.time() - began:.0f} s")
    np.savez(f"{directory}/nuts-{name}.npz", draws=samples, ess=size, rhat=hat, divergences=bad)
