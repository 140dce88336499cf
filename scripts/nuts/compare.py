#!/usr/bin/env python3
"""Particles of fedstein's runs beside the draws of nuts.py: prints the tables of docs/results.md and draws spread.svg.

    python3 scripts/nuts/compare.py DIRECTORY            (needs numpy; prepare.py says what goes before)

Every run is first checked: its particles, with `data.rotate` undone, must give the probabilities of its own predictions.csv.
A run with a particle farther from the posterior's mean than every draw of NUTS has not arrived ("late") and is counted apart.
The rows "SVGD, numpy" are SVGD on all rows with the same kernel, solved here with steps that are multiplied by the posterior's
covariance: that changes the way to the fixed point and not the fixed point.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np

DIRECTORY = Path(sys.argv[1]).resolve()
TARGET = Path(__file__).resolve().parents[2] / "docs" / "images" / "spread.svg"
SHAPE, RATE = 1.0, 100.0
METHODS = {"svgd": "`svgd`", "newton-iid": "`newton-dsvgd`, alike", "newton-skew": "`newton-dsvgd`, 1 : 9"}
_data = {}


def sigmoid(z):
    return 0.5 * (1 + np.tanh(0.5 * z))


def data(name):
    if name not in _data:
        train, test = (np.loadtxt(DIRECTORY / "data" / f"{name}-{s}.csv", delimiter=",", skiprows=1) for s in ("train", "test"))
        saved = np.load(DIRECTORY / f"nuts-{name}.npz")
        draws = saved["draws"].reshape(-1, saved["draws"].shape[-1])
        d = dict(x=train[:, :-1], y=train[:, -1], test=test[:, :-1], labels=test[:, -1], draws=draws, saved=saved)
        d |= dict(mean=draws.mean(0), sd=draws.std(0, ddof=1), cov=np.cov(draws.T))
        d["inverse"] = np.linalg.inv(np.linalg.cholesky(d["cov"]))
        d["limit"] = distance(d, draws).max()
        d["p"] = predict(d, draws)
        d["nll"], d["accuracy"] = quality(d, d["p"])
        _data[name] = d
    return _data[name]


def distance(d, theta):
    """Mahalanobis distance from the posterior's mean over the root of the dimension: about 1 for a draw."""
    return np.sqrt((((theta - d["mean"]) @ d["inverse"].T) ** 2).mean(1))


def predict(d, theta):
    return sum(sigmoid(c[:, :-1] @ d["test"].T).sum(0) for c in np.array_split(theta, len(theta) // 500 + 1)) / len(theta)


def quality(d, p):
    return -np.log(np.where(d["labels"] == 1, p, 1 - p)).mean(), ((p > 0.5) == (d["labels"] == 1)).mean()


def tensors(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = {k: v for k, v in json.loads(raw[8 : 8 + size]).items() if k != "__metadata__"}
    kind = {"F32": "<f4", "F64": "<f8"}
    cut = lambda v: raw[8 + size + v["data_offsets"][0] : 8 + size + v["data_offsets"][1]]
    return {k: np.frombuffer(cut(v), kind[v["dtype"]]).reshape(v["shape"]).astype(float) for k, v in header.items()}


def particles(d, run):
    """[N, (w, log ξ)] for the inputs as they are in the file."""
    found = sorted(tensors(run / "particles.safetensors").values(), key=lambda t: -t.size)
    theta = np.concatenate([t.reshape(len(t), -1) for t in found], 1)
    if (run / "rotation.safetensors").exists():  # the run's inputs are x Q, so its weights are w Q
        (q,) = tensors(run / "rotation.safetensors").values()
        theta[:, :-1] = theta[:, :-1] @ q.T
    own = np.loadtxt(run / "predictions.csv", delimiter=",", skiprows=1)[:, 2]
    assert np.abs(own - predict(d, theta)).max() < 1e-6, run
    return theta


def stein(d, theta):
    """SVGD's direction on all rows: RBF kernel, bandwidth med²/ln(N + 1)."""
    w, xi, n = theta[:, :-1], np.exp(theta[:, -1:]), len(theta)
    slope = (d["y"] - sigmoid(w @ d["x"].T)) @ d["x"] - xi * w
    last = 0.5 * w.shape[1] + SHAPE - xi * (0.5 * (w * w).sum(1, keepdims=True) + RATE)
    squares = ((theta[:, None] - theta[None]) ** 2).sum(-1)
    h = np.median(squares) / np.log(n + 1)
    k = np.exp(-squares / h)
    return (k @ np.concatenate([slope, last], 1) + 2 / h * (k.sum(1, keepdims=True) * theta - k @ theta)) / n


def svgd(d, n, seed, steps=1500):
    """SVGD's particles, from three times the posterior's spread; the direction that is left is at most 10⁻³ posterior sd."""
    theta = d["mean"] + 3 * np.random.default_rng(seed).normal(size=(n, len(d["mean"]))) @ np.linalg.inv(d["inverse"]).T
    for _ in range(steps):
        theta = theta + stein(d, theta) @ d["cov"]
    left = np.abs(stein(d, theta) @ d["cov"] / d["sd"]).max()
    assert left < 1e-3, left
    return theta


def summary(d, theta):
    off, ratio = np.abs(theta.mean(0) - d["mean"]) / d["sd"], theta.std(0, ddof=1) / d["sd"]
    values, axes = np.linalg.eigh(d["cov"])
    along = (theta @ axes).std(0, ddof=1) / np.sqrt(values)  # the posterior's principal axes, narrowest first
    logit = np.sqrt(np.einsum("ij,jk,ik->i", d["test"], d["cov"][:-1, :-1], d["test"]))
    p = predict(d, theta)
    nll, accuracy = quality(d, p)
    spread = np.median((theta[:, :-1] @ d["test"].T).std(0, ddof=1) / logit)
    return dict(off=off[:-1].mean(), worst=off[:-1].max(), median=np.median(ratio[:-1]), low=ratio[:-1].min(), high=ratio[:-1].max(),
                xi=ratio[-1], wide=along[-1], middle=np.median(along), narrow=along[0], axes=(along > 0.3).sum(), logit=spread,
                nll=nll - d["nll"], accuracy=accuracy - d["accuracy"], p=np.abs(p - d["p"]).mean(),
                late=int((distance(d, theta) > d["limit"]).sum()))


def line(label, found):
    arrived = [s for s in found if not s["late"]]
    late = [s["late"] for s in found if s["late"]]
    count = f"{len(arrived)}" + (f" + {len(late)} late ({', '.join(map(str, late))} particles)" if late else "")
    if not arrived:
        return f"| {label} | {count} |" + " |" * 9
    m = {k: np.mean([s[k] for s in arrived]) for k in arrived[0]}
    return (f"| {label} | {count} | {m['off']:.2f} ({m['worst']:.2f}) | {m['median']:.2f} ({m['low']:.2g} to {m['high']:.2f}) | {m['xi']:.2f} "
            f"| {m['wide']:.2f}, {m['middle']:.2f}, {m['narrow']:.3f} | {m['axes']:.1f} | {m['logit']:.3f} "
            f"| {m['nll']:+.4f} | {m['accuracy']:+.4f} | {m['p']:.4f} |")


def tables():
    print("| data | particles | runs | mean off: average (worst) | sd ratio of a weight: median (range) | log ξ "
          "| principal axes: wide, median, narrow | of them above 0.3 | logit sd | NLL | accuracy | abs. difference of p |")
    print("|" + "---|" * 12)
    sets = [n for n in ("small", "twonorm", "covertype") if (DIRECTORY / f"nuts-{n}.npz").exists()]

    def load(d, pattern):
        return [summary(d, particles(d, r.parent)) for r in sorted((DIRECTORY / "runs").glob(f"{pattern}/particles.safetensors"))]

    for name in sets:
        d = data(name)
        for n in (20, 50, 100):
            label = f"{name}, d = {len(d['mean'])} | %s, N = {n}"
            if n == 20:
                print(line(label % "SVGD, numpy", [summary(d, svgd(d, n, seed)) for seed in (1, 2, 3)]))
            for method, title in METHODS.items():
                if found := load(d, f"{name}-{method}-N{n}-s?"):
                    print(line(label % title, found))
            rng = np.random.default_rng(n)
            some = [summary(d, d["draws"][rng.choice(len(d["draws"]), n, replace=False)]) for _ in range(20)]
            print(line(label % "draws of NUTS", [s | {"late": 0} for s in some]))
        for kind in ("paper", "pyro", "imq"):
            if found := load(d, f"{name}-newton-skew-N20-{kind}-s?"):
                print(line(f"{name} | 1 : 9, N = 20, {kind}", found))
    print("\nas a user runs it, every seed (arrived or not)")
    for name in sets:
        for method, title in METHODS.items():
            if found := load(data(name), f"{name}-{method}-N20-user-s?"):
                of = lambda k: ", ".join(f"{s[k]:.2f}" for s in found)
                mean = lambda k: np.mean([s[k] for s in found])
                print(f"{name}, {title}: late particles {[s['late'] for s in found]}, mean off {of('off')}, sd ratio {of('median')}, "
                      f"NLL {mean('nll'):+.4f}, accuracy {mean('accuracy'):+.4f}, |Δp| {mean('p'):.4f}")
    print()
    for name in sets:
        d = data(name)
        s, w = d["saved"], np.sort(d["sd"][:-1])
        print(f"NUTS, {name}: draws {s['draws'].shape}, ESS at least {s['ess']:.0f}, R-hat at most {s['rhat']:.4f}, "
              f"divergences {s['divergences']}, farthest draw {d['limit']:.2f}, NLL {d['nll']:.5f}, accuracy {d['accuracy']:.4f}, "
              f"sd of w {w[0]:.3f} to {w[-1]:.3f}, condition of the covariance {np.linalg.cond(d['cov']):.0f}")


def picture(name="covertype"):
    d = data(name)
    draws = d["draws"][np.random.default_rng(20).choice(len(d["draws"]), 20, replace=False)]
    sets = [("20 draws of NUTS", "n", draws), ("SVGD, N = 20", "a", svgd(d, 20, 1))]
    sets.append(("newton-dsvgd 1 : 9, N = 20", "b", particles(d, DIRECTORY / "runs" / f"{name}-newton-skew-N20-s1")))
    ys = [(label, c, t.std(0, ddof=1)) for label, c, t in sets]
    x = d["sd"]
    left, top, width, height = 70, 62, 460, 360
    spans = [(v.min() / 1.3, v.max() * 1.3) for v in (x, np.concatenate([x] + [y for *_, y in ys]))]
    at = lambda v, axis, size: np.log(v / spans[axis][0]) / np.log(spans[axis][1] / spans[axis][0]) * size
    across, up = lambda v: left + at(v, 0, width), lambda v: top + height - at(v, 1, height)

    def mark(c, cx, cy):
        if c == "b":
            return f'<path class="b" d="M{cx - 4.8:.1f} {cy:.1f}h9.6M{cx:.1f} {cy - 4.8:.1f}v9.6"/>'
        return f'<circle class="{c}" cx="{cx:.1f}" cy="{cy:.1f}" r="{3 if c == "n" else 3.4}"/>'

    o = [f'''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 484" width="560" height="484" class="sp" role="img" aria-label="Standard deviation of every parameter of a logistic regression: particles against NUTS. Twenty draws lie on the line of equality; the particles of SVGD and of newton-dsvgd lie below it, at about half where the posterior is wide and at a hundredth where it is narrow.">
<style>.sp text{{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","DejaVu Sans",Arial,sans-serif;font-size:13px;fill:#1f2328}}
.bg{{fill:#fff}}.sp .tick{{fill:#59636e;font-size:12px}}.grid{{stroke:#e4e7eb}}.axis{{stroke:#818b98;fill:none}}.line{{stroke:#1f2328;stroke-width:1.4;stroke-dasharray:6 4}}
.n{{fill:none;stroke:#818b98;stroke-width:1.2}}.a{{fill:#0072b2;stroke:#fff;stroke-width:.6}}.b{{fill:none;stroke:#b87400;stroke-width:1.7}}
@media (prefers-color-scheme:dark){{.bg{{fill:#0d1117}}.sp text{{fill:#e6edf3}}.sp .tick{{fill:#9da7b3}}.grid{{stroke:#262c35}}.axis{{stroke:#6e7681}}.line{{stroke:#e6edf3}}.n{{stroke:#9da7b3}}.a{{fill:#4aa8e0;stroke:#0d1117}}.b{{stroke:#f0b429}}}}
</style><rect class="bg" width="100%" height="100%" rx="8"/>''']
    start = left
    for label, c, _ in ys:
        o.append(mark(c, start + 4, 28) + f'<text x="{start + 13}" y="32.5">{label}</text>')
        start += 38 + 6.9 * len(label)
    ticks = [m * 10.0**e for e in range(-4, 3) for m in (1, 2, 5)]
    for t in (t for t in ticks if spans[0][0] <= t <= spans[0][1]):
        o.append(f'<path class="grid" d="M{across(t):.1f} {top}v{height}"/>')
        o.append(f'<text class="tick" x="{across(t):.1f}" y="{top + height + 17}" text-anchor="middle">{t:g}</text>')
    for t in (t for t in ticks if spans[1][0] <= t <= spans[1][1] and f"{t:e}"[0] == "1"):
        o.append(f'<path class="grid" d="M{left} {up(t):.1f}h{width}"/>')
        o.append(f'<text class="tick" x="{left - 7}" y="{up(t) + 4:.1f}" text-anchor="end">{t:g}</text>')
    ends = max(spans[0][0], spans[1][0]), min(spans[0][1], spans[1][1])
    o.append(f'<path class="line" d="M{across(ends[0]):.1f} {up(ends[0]):.1f}L{across(ends[1]):.1f} {up(ends[1]):.1f}"/>')
    o.append(f'<rect class="axis" x="{left}" y="{top}" width="{width}" height="{height}"/>')
    o += [mark(c, across(a), up(b)) for _, c, y in ys for a, b in zip(x, y)]
    o.append(f'<text x="{left + width / 2}" y="{top + height + 42}" text-anchor="middle">standard deviation of a parameter, NUTS</text>')
    o.append(f'<text transform="translate(20 {top + height / 2}) rotate(-90)" text-anchor="middle">standard deviation of the particles</text></svg>')
    TARGET.write_text("\n".join(o) + "\n")
    print(TARGET, {label: round(float(np.median((y / x)[:-1])), 3) for label, _, y in ys})


if __name__ == "__main__":
    tables()
    picture()
