#!/usr/bin/env python3
"""Draws docs/images/forgetting.svg and prints the table of docs/forgetting.md: three clients with Gaussian likelihoods in
two dimensions, visited in turn. Every visit is solved in closed form, so the picture has no random number in it.

    python3 scripts/forgetting.py            (needs numpy)

The equations are those of docs/forgetting.md, which are docs/algorithms.md with one particle and L -> infinity. The script
stops where a check fails: the end of each path against the posterior of all rows.
"""

from pathlib import Path

import numpy as np

TARGET = Path(__file__).resolve().parent.parent / "docs" / "images" / "forgetting.svg"

# --------------------------------------------------------------------------------------------------------- the clients

TAU = 0.04  # precision of the prior N(0, I/TAU)
START = np.array([-0.4, 1.1])
TRUTH = np.array([1.0, 0.5])
# angle of the direction that the client knows, its precision, the offset of its optimum along that direction and across it
CLIENTS = [(20, 16.0, 0.0, 1.6), (80, 4.0, 0.3, -1.9), (140, 1.0, -0.6, 1.6)]
ACROSS = 0.1  # every client's precision in the other direction
K = len(CLIENTS)
I = np.eye(2)


def client(angle, along, offset, offset_across):
    """The precision matrix H_k of a client's likelihood and its optimum m_k."""
    turn = np.deg2rad(angle)
    axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return axes @ np.diag([along, ACROSS]) @ axes.T, TRUTH + axes @ np.array([offset, offset_across])


H, M = map(list, zip(*(client(*of) for of in CLIENTS)))
PRECISION = TAU * I + sum(H)
MEAN = np.linalg.solve(PRECISION, sum(h @ m for h, m in zip(H, M)))
AVERAGE = sum(M) / K  # federated averaging of clients with equally many rows, each at its own optimum


def distance(path):
    """Distances from the posterior's mean, in standard deviations of the posterior."""
    gap = np.atleast_2d(path) - MEAN
    return np.sqrt(np.einsum("vi,ij,vj->v", gap, PRECISION, gap))


# ---------------------------------------------------------------------------------------------------------- the methods


def no_memory(visits):
    """kde = "off": each visit ends at the posterior of the client's own rows, wherever it began."""
    ends = [np.linalg.solve(TAU * I + h, h @ m) for h, m in zip(H, M)]
    return np.array([START] + [ends[visit % K] for visit in range(visits)])


def sites(curvatures, visits):
    """A relay with sites G_k - F_k (theta - a_k): each visit ends where the tilted score is 0."""
    theta, last, path = START, {}, [START]
    for visit in range(visits):
        k = visit % K
        others = [(a, g, curvatures[j]) for j, (a, g) in last.items() if j != k]
        score = sum((g - f @ (theta - a) for a, g, f in others), np.zeros(2))  # A- at theta
        precision = sum((f for _, _, f in others), np.zeros((2, 2)))  # Lambda-
        tilted = score - TAU * theta + H[k] @ (M[k] - theta)
        theta = theta + np.linalg.solve(precision + TAU * I + H[k], tilted)
        last[k] = (theta, H[k] @ (M[k] - theta))
        path.append(theta)
    return np.array(path)


def one_precision(bandwidth, visits):
    """Sites of one precision, 1/bandwidth^2 for all clients together with the prior, in every coordinate."""
    return sites([(1 / bandwidth**2 - TAU) / K * I] * K, visits)


VISITS = 60
PATHS = {
    "no memory": no_memory(VISITS),
    "one precision, λ = 2": one_precision(2.0, VISITS),
    "one precision, λ = 0.3": one_precision(0.3, VISITS),
    "one precision, λ = 0.1": one_precision(0.1, VISITS),
    "Newton, F = H": sites(H, VISITS),
    "Newton, F = 3H": sites([3 * h for h in H], VISITS),
    "Newton, F = diagonal of H": sites([np.diag(np.diag(h)) for h in H], VISITS),
}


def check():
    score = sum(h @ (m - MEAN) for h, m in zip(H, M)) - TAU * MEAN
    assert np.abs(score).max() < 1e-12, score
    # Newton factors with F = H are at the posterior's mean after one pass, and stay there.
    assert distance(PATHS["Newton, F = H"])[K:].max() < 1e-6
    for name in ("Newton, F = 3H", "Newton, F = diagonal of H"):
        assert distance(PATHS[name])[-1] < 1e-6, name
    # Without memory every pass visits the same places; a precision that is too high is far from the
    # mean after 30 visits, and one that is too low after 12.
    assert np.abs(PATHS["no memory"][1 : 1 + K] - PATHS["no memory"][1 + K : 1 + 2 * K]).max() < 1e-12
    assert distance(PATHS["no memory"])[1:].min() > 1.0
    assert distance(PATHS["one precision, λ = 0.1"])[30] > 0.5
    assert distance(PATHS["one precision, λ = 2"])[12] > 1.0


def table():
    shown = (1, 3, 6, 12, 30, 60)
    print("| visits | " + " | ".join(map(str, shown)) + " |\n|---|" + "---|" * len(shown))
    number = lambda x: "0" if x < 1e-9 else f"{x:.2f}" if x >= 0.01 else f"{x:.0e}".replace("e-0", "e-")
    for name, path in PATHS.items():
        print(f"| {name} | " + " | ".join(number(distance(path)[visit]) for visit in shown) + " |")
    print(f"averaging: {distance(AVERAGE)[0]:.2f}; the mean: {MEAN.round(3)}")
    best = min(np.arange(0.05, 2.0, 0.05), key=lambda bandwidth: distance(one_precision(bandwidth, 12))[-1])
    print(f"the best of λ = 0.05, 0.1, ... after 12 visits: {best:.2f}, {distance(one_precision(best, 12))[-1]:.3f}")


# ---------------------------------------------------------------------------------------------------------- the picture

WIDTH, PANEL, HEIGHT = 860, 270, 236  # of the picture, and of a panel
LEFT, GAP, TOP, ROW = 14, 11, 92, 306
VIEW = (-0.75, -1.13, PANEL / 73.0)  # the lower left corner, and the width in units
SCALE = PANEL / VIEW[2]
SHOWN = 12  # visits in a path

STYLE = """
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","DejaVu Sans",Arial,sans-serif;fill:#1f2328;font-size:13px}
.bg{fill:#fff}
.head{font-size:17px;font-weight:600}
.title{font-size:14px;font-weight:600}
.muted{fill:#59636e;font-size:12px}
.panel{fill:#fff;stroke:#d1d9e0;stroke-width:1}
.all{fill:#1f2328;fill-opacity:.13;stroke:#1f2328;stroke-width:1.2}
.c1{fill:#0072b2;stroke:#0072b2}
.c2{fill:#d55e00;stroke:#d55e00}
.c3{fill:#b04a8a;stroke:#b04a8a}
.known{fill-opacity:.09;stroke-width:1.5;stroke-opacity:.9}
.faint{fill-opacity:.04;stroke-width:1;stroke-opacity:.3}
.path{fill:none;stroke:#59636e;stroke-width:1.4}
.start{fill:#fff;stroke:#59636e;stroke-width:1.4}
.dot{stroke:#fff;stroke-width:.8}
.name{stroke:none;font-weight:600}
.cross{fill:none;stroke:#1f2328;stroke-width:2}
.grid{stroke:#d1d9e0;stroke-width:1}
.line{fill:none;stroke:#59636e;stroke-width:1.5}
.bold{fill:none;stroke:#1f2328;stroke-width:2.6}
.dash{stroke-dasharray:6 3}
.points{stroke-dasharray:2 3}
.mid{text-anchor:middle}
.end{text-anchor:end}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}
.bg{fill:#0d1117}
.muted{fill:#9da7b3}
.panel{fill:#0d1117;stroke:#30363d}
.all{fill:#e6edf3;fill-opacity:.2;stroke:#e6edf3}
.c1{fill:#58b4ec;stroke:#58b4ec}
.c2{fill:#f0883e;stroke:#f0883e}
.c3{fill:#e08cc0;stroke:#e08cc0}
.path{stroke:#9da7b3}
.start{fill:#0d1117;stroke:#9da7b3}
.dot{stroke:#0d1117}
.name{stroke:none}
.cross{stroke:#e6edf3}
.grid{stroke:#30363d}
.line{stroke:#9da7b3}
.bold{stroke:#e6edf3}
}
"""


class Panel:
    """A panel of the picture: its corner, and the map from parameters to its coordinates."""

    def __init__(self, column, row, title, about):
        self.x, self.y = LEFT + column * (PANEL + GAP), TOP + row * ROW
        self.out = [
            f'<text class="title" x="{self.x}" y="{self.y - 26}">{title}</text>',
            f'<text class="muted" x="{self.x}" y="{self.y - 9}">{about}</text>',
            f'<rect class="panel" x="{self.x}" y="{self.y}" width="{PANEL}" height="{HEIGHT}" rx="6"/>',
        ]

    def at(self, theta):
        return self.x + (theta[0] - VIEW[0]) * SCALE, self.y + HEIGHT - (theta[1] - VIEW[1]) * SCALE

    def ellipse(self, mean, precision, deviations, style):
        """The contour of N(mean, precision^-1) at so many standard deviations."""
        values, axes = np.linalg.eigh(precision)
        radii = deviations / np.sqrt(values) * SCALE
        turn = -np.rad2deg(np.arctan2(axes[1, 0], axes[0, 0])) % 180  # whatever the sign of the eigenvector
        (x, y), clip = self.at(mean), f"p{self.x}-{self.y}"
        self.out.append(
            f'<g clip-path="url(#{clip})"><ellipse class="{style}" transform="translate({x:.1f} {y:.1f}) rotate({turn:.1f})"'
            f' rx="{radii[0]:.1f}" ry="{radii[1]:.1f}"/></g>'
        )

    def clip(self):
        return (
            f'<clipPath id="p{self.x}-{self.y}"><rect x="{self.x}" y="{self.y}" width="{PANEL}" height="{HEIGHT}" rx="6"/>'
            "</clipPath>"
        )

    def densities(self, style):
        for k in range(K):
            self.ellipse(M[k], H[k], 1, f"c{k + 1} {style}")
        for deviations in (2, 1):
            self.ellipse(MEAN, PRECISION, deviations, "all")

    def cross(self, theta, size=5):
        x, y = self.at(theta)
        self.out.append(f'<path class="cross" d="M{x - size:.1f} {y:.1f}h{2 * size}M{x:.1f} {y - size:.1f}v{2 * size}"/>')

    def text(self, x, y, words, style=""):
        self.out.append(f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{words}</text>')

    def path(self, path, labels):
        """A path with a dot for each visit in the colour of its client; `labels`: visit -> offset of its number."""
        points = [self.at(theta) for theta in path[: SHOWN + 1]]
        self.out.append('<path class="path" d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + '"/>')
        self.out.append('<circle class="start" cx="%.1f" cy="%.1f" r="4.5"/>' % points[0])
        for visit, (x, y) in reversed(list(enumerate(points[1:], start=1))):
            radius = 5 if visit <= K else 3.6
            self.out.append(f'<circle class="c{(visit - 1) % K + 1} dot" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>')
        for visit, (dx, dy) in labels.items():
            self.text(points[visit][0] + dx, points[visit][1] + dy, str(visit), "mid")


def knowledge():
    panel = Panel(0, 0, "What each client knows", "contours of the likelihoods")
    panel.densities("known")
    panel.cross(MEAN)
    x, y = panel.at(AVERAGE)
    panel.out.append(f'<path class="cross" d="M{x - 5:.1f} {y:.1f}l5 -5l5 5l-5 5z"/>')
    for k, theta in enumerate([(-0.62, 1.85), (2.15, 0.83), (-0.66, -1.0)]):
        panel.text(*panel.at(theta), f"client {k + 1}", f"c{k + 1} name")
    return panel


def visits(column, row, title, about, name, labels):
    panel = Panel(column, row, title, about)
    panel.densities("faint")
    panel.path(PATHS[name], labels)
    return panel


def distances():
    panel = Panel(2, 1, "Distance to the posterior’s mean", "in its sd, by visits; bold: Newton factors")
    left, right, top, bottom, most = panel.x + 38, panel.x + PANEL - 54, panel.y + 12, panel.y + HEIGHT - 34, 24
    low, high = -4.0, 1.0
    across = lambda visit: left + visit / most * (right - left)
    down = lambda value: top + (high - np.log10(value)) / (high - low) * (bottom - top)
    for power, words in ((1, "10"), (0, "1"), (-1, "0.1"), (-2, "10⁻²"), (-3, "10⁻³"), (-4, "10⁻⁴")):
        y = down(10.0**power)
        panel.out.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        panel.text(left - 6, y + 4, words, "muted end")
    for visit in range(0, most + 1, 6):
        panel.text(across(visit), bottom + 16, str(visit), "muted mid")
    panel.text((left + right) / 2, bottom + 29, "visits", "muted mid")
    clip = f'<clipPath id="plot"><rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}"/></clipPath>'
    panel.out.append(clip + '<g clip-path="url(#plot)">')
    for name, style in (
        ("no memory", "line"),
        ("one precision, λ = 0.1", "line dash"),
        ("one precision, λ = 2", "line dash"),
        ("one precision, λ = 0.3", "line points"),
        ("Newton, F = diagonal of H", "bold points"),
        ("Newton, F = H", "bold"),
    ):
        values = np.maximum(distance(PATHS[name])[: most + 1], 1e-9)
        line = "L".join(f"{across(visit):.1f} {down(value):.1f}" for visit, value in enumerate(values))
        panel.out.append(f'<path class="{style}" d="M{line}"/>')
    panel.out.append("</g>")
    for visit, value, words, style in (
        (24.6, 3.0, "none", "muted"),
        (24.6, 0.83, "λ = 0.1", "muted"),
        (24.6, 0.28, "λ = 2", "muted"),
        (18.0, 1.6e-3, "λ = 0.3", "muted"),
        (10.8, 2.5e-4, "diagonal", ""),
        (3.6, 1.6e-4, "full", ""),
    ):
        panel.text(across(visit), down(value), words, style)
    return panel


def picture():
    panels = [
        knowledge(),
        visits(1, 0, "No memory", "the last client alone counts", "no memory", {1: (-12, -7), 2: (12, 16), 3: (-14, 2)}),
        visits(2, 0, "One precision for all, too low", "precision 1/λ², λ = 2", "one precision, λ = 2",
               {1: (-2, -10), 2: (12, -3), 3: (12, 12)}),
        visits(0, 1, "One precision for all, too high", "precision 1/λ², λ = 0.1", "one precision, λ = 0.1",
               {1: (-2, -10), SHOWN: (15, 7)}),
        visits(1, 1, "Newton factors", "each client’s own curvature", "Newton, F = H", {1: (-2, -10), 2: (-12, 4), 3: (13, 16)}),
        distances(),
    ]
    height = TOP + ROW + HEIGHT + 56
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"'
        ' aria-labelledby="title desc">',
        '<title id="title">What forgetting is</title>',
        '<desc id="desc">Three clients with Gaussian likelihoods, each of which knows one direction well, are visited in turn'
        " twelve times. Without memory the mean jumps between the three clients’ own optima. With factors of one"
        " precision for every coordinate it swings around the posterior of all rows where the precision is low, and moves"
        " slowly where it is high. With Newton factors it is at the posterior’s mean after three visits. The"
        " last panel has the distances over 24 visits on a logarithmic scale.</desc>",
        f"<style>{STYLE}</style>",
        f'<rect class="bg" x="0" y="0" width="{WIDTH}" height="{height}" rx="10"/>',
        f'<text class="head" x="{LEFT}" y="30">Three clients visited in turn: where the mean goes</text>',
        "<defs>" + "".join(panel.clip() for panel in panels) + "</defs>",
    ]
    for panel in panels:
        lines += panel.out
    for row, words in enumerate(
        (
            "Grey: the posterior of all rows, at 1 and 2 sd; + its mean. ◇ the mean of the clients’ optima, where averaging ends.",
            "Dots: the mean after each of twelve visits, in the colour of the visited client; 1, 2, 3: the first pass. ○ the start.",
        )
    ):
        lines.append(f'<text class="muted" x="{LEFT}" y="{TOP + ROW + HEIGHT + 24 + 18 * row}">{words}</text>')
    return "\n".join(lines) + "\n</svg>\n"


if __name__ == "__main__":
    check()
    table()
    TARGET.write_text(picture(), encoding="utf-8")
    print(f"wrote {TARGET}")
