#!/usr/bin/env python3
"""Writes the tables of "Clients that differ" in docs/results.md and draws its pictures, from the kept numbers.

    python3 scripts/federations.py            (needs nothing but Python 3.9 or later)

The tables go to docs/results/beyond/federations/table.md.

It reads docs/results/beyond/federations/federations.csv.gz, one row for each evaluation of each run: set, partition, method,
settings, seed, visits, uplink_bytes, cpu_seconds (of the whole run, the same in all its rows; empty where it was not measured),
accuracy, nll, ece. The pictures are written beside it. Differences are paired by seed, with two standard errors.
"""

import contextlib
import csv
import gzip
import io
import math
from collections import defaultdict
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "results" / "beyond" / "federations"
MIB = 2**20

NAMES = {
    "newton": "**Newton factors, relay**, rotated inputs",
    "newton-plain": "Newton factors, relay, inputs as they are",
    "newton-step": "Newton factors, relay, rotated inputs, step chosen",
    "newton-once": "Newton factors, ten at once, rotated inputs",
    "dsvgd": "DSVGD, λ = 0.55 (default)",
    "dsvgd-chosen": "DSVGD, λ chosen",
    "dsvgd-rotated": "DSVGD, λ chosen, rotated inputs",
    "dsvgd-reference": "DSVGD, public code",
    "p-dsvgd": "P-DSVGD, ten at once",
    "pvi": "PVI, Gaussians, relay",
    "fedwba": "FedWBA, global particles, ten at once",
    "fedavg-relay": "federated averaging, relay",
    "fedavg-60": "federated averaging, step for 60 visits",
    "fedavg-60-rotated": "the same, rotated inputs",
    "fedavg": "federated averaging, step for 1,800 visits",
    "fedavg-rotated": "the same, rotated inputs",
    "fedprox": "FedProx",
    "scaffold": "SCAFFOLD",
    "fedadam": "FedAdam",
    "fedavgm": "FedAvgM",
    "svgd": "SVGD, all rows in one place",
    "svgd-rotated": "SVGD, all rows in one place, rotated inputs",
}
SETS = {
    "twonorm": "Twonorm",
    "ringnorm": "Ringnorm",
    "waveform": "Waveform",
    "covertype": "Covertype",
    "digits": "Digits",
    "mnist": "MNIST",
    "fashion": "Fashion-MNIST",
}
PARTITIONS = {"alike": "clients alike", "ratio": "1 : 9", "three": "three labels a client", "dirichlet": "Dirichlet(0.1)"}
METRICS = ("accuracy", "nll", "ece")
# Where the λ chosen is the default, the default's runs are those of the chosen one.
DEFAULT_CHOSEN = ("digits", "mnist", "fashion")


def read():
    """{(set, partition, method): {seed: [row, ...]}}, rows by visits."""
    runs = defaultdict(lambda: defaultdict(list))
    with gzip.open(FOLDER / "federations.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            for name in ("visits", "uplink_bytes", *METRICS):
                row[name] = float(row[name])
            runs[row["set"], row["partition"], row["method"]][int(row["seed"])].append(row)
    return {key: dict(seeds) for key, seeds in runs.items()}


def at_visits(rows, visits):
    """The last evaluation within so many visits."""
    within = [row for row in rows if row["visits"] <= visits]
    return within[-1] if within else None


def at_uplink(rows, uplink):
    within = [row for row in rows if row["uplink_bytes"] <= uplink]
    return within[-1] if within else None


def mean(values):
    return sum(values) / len(values)


def error(values):
    """Two standard errors."""
    middle = mean(values)
    return 2 * math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1) / len(values))


def three(rows):
    return " / ".join(f"{mean([row[name] for row in rows]):.3f}" for name in METRICS)


def paired(a, b, metric, at=lambda rows: rows[-1], other=None):
    """Mean of a - b over the seeds that both have, two standard errors, and the number of seeds."""
    gaps = []
    for seed in sorted(set(a) & set(b)):
        first, second = at(a[seed]), (other or at)(b[seed])
        if first and second:
            gaps.append(first[metric] - second[metric])
    return (mean(gaps), error(gaps) if len(gaps) > 1 else None, len(gaps)) if gaps else None


def table(runs, of, part):
    print(f"\n**{SETS[of]}, {PARTITIONS[part]}**\n")
    print("| method | seeds | after 60 visits | at the end | visits | uplink, MiB | CPU, s |\n|---|---|---|---|---|---|---|")
    for method, name in NAMES.items():
        # With all rows in one place the partition does not matter.
        seeds = runs.get((of, part, method)) or (method.startswith("svgd") and pooled(runs, of, method))
        if not seeds:
            continue
        first = [row for row in (at_visits(rows, 60) for rows in seeds.values()) if row]
        last = [rows[-1] for rows in seeds.values()]
        visits = last[0]["visits"]
        times = [float(row["cpu_seconds"]) for row in last if row["cpu_seconds"]]
        cells = [name, len(seeds), three(first) if len(first) == len(last) else "", three(last) if visits > 60 else ""]
        if method.startswith("svgd"):
            cells += ["", ""]
        else:
            cells += [f"{visits:,.0f}", mebibytes(mean([row["uplink_bytes"] for row in last]))]
        cells.append(f"{mean(times):.1f}" if times else "")
        print("| " + " | ".join(map(str, cells)) + " |")


def mebibytes(value):
    return f"{value / MIB:.1f}" if value >= MIB else f"{value / MIB:.2g}"


def pooled(runs, of, method):
    found = [seeds for (one, _, other), seeds in runs.items() if (one, other) == (of, method)]
    return max(found, key=len, default=None)


def signed(value):
    return f"{value:+.3f}".replace("-", "−")


def differences(runs):
    print("\n| federation | Newton factors minus | seeds | accuracy | NLL |\n|---|---|---|---|---|")
    for of in SETS:
        for part in PARTITIONS:
            newton = runs.get((of, part, "newton"))
            if not newton:
                continue
            rivals = {method: runs.get((of, part, method)) for method in NAMES if method != "newton"}
            for method in ("svgd", "svgd-rotated"):
                rivals[method] = rivals[method] or pooled(runs, of, method)
            growing = {method: seeds for (one, p, method), seeds in runs.items() if (one, p) == (of, part) and "growing" in method}
            for method, seeds in {**rivals, **growing}.items():
                if not seeds:
                    continue
                ends = [("60 visits", lambda rows: at_visits(rows, 60), lambda rows: at_visits(rows, 60))]
                if max(rows[-1]["visits"] for rows in seeds.values()) > 60:
                    ends.append(("the end", lambda rows: rows[-1], lambda rows: rows[-1]))
                if method in ("fedavg", "fedavg-rotated"):
                    # The bytes of the shorter of the two: averaging after all its visits, or a relay of 60.
                    budget = min(
                        min(rows[-1]["uplink_bytes"] for rows in newton.values()),
                        min(rows[-1]["uplink_bytes"] for rows in seeds.values()),
                    )
                    bytes_ = lambda rows: at_uplink(rows, budget)
                    ends.append((f"{mebibytes(budget)} MiB", bytes_, bytes_))
                for word, own, theirs in ends:
                    both = [paired(newton, seeds, metric, own, theirs) for metric in ("accuracy", "nll")]
                    if not both[0]:
                        continue
                    cell = [f"{signed(d)}" + (f" ± {e:.3f}" if e is not None else "") for d, e, _ in both]
                    print(f"| {SETS[of]}, {PARTITIONS[part]} | {method}, {word} | {both[0][2]} | {cell[0]} | {cell[1]} |")


def particles(runs):
    """Newton factors by the number of particles and the precision on the wire, beside averaging and FedAdam at the same bytes."""
    for of, part in (("digits", "three"), ("mnist", "three")):
        found = {key[2]: seeds for key, seeds in runs.items() if key[:2] == (of, part) and key[2].startswith("newton-N")}
        if not found:
            continue
        found["newton-N10-f32"] = found.get("newton-N10-f32") or runs[of, part, "newton"]
        print(f"\n**{SETS[of]}, {PARTITIONS[part]}**: N and the precision on the wire, 60 visits of a relay\n")
        print("| N | wire | seeds | uplink, MiB | accuracy / NLL / ECE | averaging with as many bytes | its visits | NLL, difference | FedAdam with as many bytes | its visits | NLL, difference |\n|---|---|---|---|---|---|---|---|---|---|---|")
        order = lambda name: (int(name.split("-")[1][1:]), name.split("-")[2] == "f16")
        for name in sorted(found, key=order):
            n, half = order(name)
            seeds = found[name]
            last = [rows[-1] for rows in seeds.values()]
            uplink = mean([row["uplink_bytes"] for row in last])
            cells = []
            for rivals in (("fedavg", "fedavg-rotated", "fedavg-60", "fedavg-60-rotated"), ("fedadam",)):
                best, cell = None, ["", "", ""]
                for method in rivals:
                    rival = runs.get((of, part, method), {})
                    theirs = {seed: at_uplink(rows, uplink) for seed, rows in rival.items() if seed in seeds}
                    theirs = {seed: row for seed, row in theirs.items() if row}
                    if theirs and (best is None or mean([row["nll"] for row in theirs.values()]) < best):
                        d, e, _ = paired(seeds, {seed: [row] for seed, row in theirs.items()}, "nll")
                        best = mean([row["nll"] for row in theirs.values()])
                        visits = mean([row["visits"] for row in theirs.values()])
                        cell = [three(list(theirs.values())), f"{visits:,.0f}", signed(d) + (f" ± {e:.3f}" if e is not None else "")]
                cells += cell
            print(f"| {n} | {'f16' if half else 'f32'} | {len(seeds)} | {uplink / MIB:.1f} | {three(last)} | " + " | ".join(cells) + " |")


# --------------------------------------------------------------------------------------------------------- the pictures

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 680, 470, 62, 20, 74, 150
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#b04a8a", "#b87400", "#59636e", "#56b4e9", "#7a5195", "#a4262c"]
DARK = ["#58b4ec", "#f0883e", "#2fc79b", "#e08cc0", "#f0b429", "#9da7b3", "#9fd3f5", "#b79bd6", "#ff7b72"]
DASHES = ["", "7 3", "2 3", "9 3 2 3", "", "7 3", "2 3", "9 3 2 3", "12 3"]
STYLE = (
    'text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","DejaVu Sans",Arial,sans-serif;fill:#1f2328;font-size:13px}'
    ".bg{fill:#fff}.head{font-size:17px;font-weight:600}.muted{fill:#59636e;font-size:12px}.grid{stroke:#e4e7eb}"
    ".axis{stroke:#818b98;fill:none}.mid{text-anchor:middle}.end{text-anchor:end}.line{fill:none;stroke-width:2}.band{fill-opacity:.13;stroke:none}"
    + "".join(f".s{i}{{stroke:{c}}}.f{i}{{fill:{c}}}" for i, c in enumerate(COLOURS))
    + "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.bg{fill:#0d1117}.muted{fill:#9da7b3}.grid{stroke:#262c35}.axis{stroke:#6e7681}"
    + "".join(f".s{i}{{stroke:{c}}}.f{i}{{fill:{c}}}" for i, c in enumerate(DARK))
    + "}"
)


def ticks(low, high, log):
    if log:
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        steps = (1, 2, 5) if math.log10(high / low) < 2.2 else (1,)
        return [m * 10.0**e for e in exponents for m in steps if low * 0.999 <= m * 10.0**e <= high * 1.001]
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (m * step) <= 6)
    return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def picture(path, title, about, curves, x_name, y_name, y_top, log_x=True, log_y=True):
    """`curves`: (name, [(x, mean, standard error), ...])."""
    xs = [x for _, points in curves for x, _, _ in points]
    ys = [y for _, points in curves for _, y, _ in points if y <= y_top]
    x_low, x_high = min(xs), max(xs)
    y_low, y_high = min(ys) * (0.92 if log_y else 0.98), min(y_top, max(ys) * 1.05)
    scale = lambda v, low, high, log: (math.log(v / low) / math.log(high / low)) if log else (v - low) / (high - low)
    X = lambda v: LEFT + (WIDTH - LEFT - RIGHT) * scale(v, x_low, x_high, log_x)
    Y = lambda v: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * max(-0.2, min(1.2, scale(max(v, 1e-9), y_low, y_high, log_y)))
    number = lambda v: f"{v:,.0f}" if v >= 100 else f"{v:.3g}"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{title}">',
        f'<style>{STYLE}</style><rect class="bg" width="100%" height="100%" rx="8"/>',
        f'<text class="head" x="16" y="28">{title}</text><text class="muted" x="16" y="48">{about}</text>',
        f'<clipPath id="area"><rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}"/></clipPath>',
    ]
    for tick in ticks(x_low, x_high, log_x):
        out.append(f'<path class="grid" d="M{X(tick):.1f} {TOP}V{HEIGHT - BOTTOM}"/><text class="muted mid" x="{X(tick):.1f}" y="{HEIGHT - BOTTOM + 17}">{number(tick)}</text>')
    for tick in ticks(y_low, y_high, log_y):
        out.append(f'<path class="grid" d="M{LEFT} {Y(tick):.1f}H{WIDTH - RIGHT}"/><text class="muted end" x="{LEFT - 7}" y="{Y(tick) + 4:.1f}">{number(tick)}</text>')
    out.append(f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    out.append(f'<text class="muted mid" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - BOTTOM + 36}">{x_name}</text>')
    out.append(f'<text class="muted" x="{LEFT}" y="{TOP - 8}">{y_name}</text>')
    for i, (name, points) in enumerate(curves):
        tone = i % len(COLOURS)
        if any(e for _, _, e in points):
            upper = [f"{X(x):.1f} {Y(y + e):.1f}" for x, y, e in points]
            lower = [f"{X(x):.1f} {Y(y - e):.1f}" for x, y, e in reversed(points)]
            out.append(f'<path class="band f{tone}" clip-path="url(#area)" d="M{"L".join(upper + lower)}z"/>')
        line = "L".join(f"{X(x):.1f} {Y(y):.1f}" for x, y, _ in points)
        dash = f' stroke-dasharray="{DASHES[tone]}"' if DASHES[tone] else ""
        if len(points) > 1:
            out.append(f'<path class="line s{tone}"{dash} clip-path="url(#area)" d="M{line}"/>')
        if len(points) < 8:
            out += [f'<circle class="f{tone}" clip-path="url(#area)" cx="{X(x):.1f}" cy="{Y(y):.1f}" r="3.5"/>' for x, y, _ in points]
        column, row = i % 2, i // 2
        x, y = LEFT + column * 305, HEIGHT - BOTTOM + 60 + row * 20
        out.append(f'<path class="line s{tone}"{dash} d="M{x} {y - 4}h28"/><text class="muted" x="{x + 35}" y="{y}">{name}</text>')
    path.write_text("\n".join(out) + "\n</svg>\n")


def curve(seeds, x_name, start=0.0):
    """Means over the seeds at the evaluations that all have."""
    points = defaultdict(list)
    for rows in seeds.values():
        for row in rows:
            points[row["visits"]].append(row)
    result = []
    for visits in sorted(points):
        rows = points[visits]
        if len(rows) < len(seeds):
            continue
        x = mean([row["uplink_bytes"] for row in rows]) / MIB if x_name == "uplink" else visits
        values = [row["nll"] for row in rows]
        if x >= start:
            result.append((x, mean(values), error(values) / 2 if len(values) > 1 else 0.0))
    return result


SHOWN = ("newton", "newton-once", "dsvgd-chosen", "dsvgd-reference", "fedavg-60", "fedavg", "fedavg-rotated", "scaffold", "fedadam")
TITLES = {name: text.replace("**", "") for name, text in NAMES.items()} | {"fedavg-rotated": "averaging, 1,800 visits, rotated inputs"}


def pictures(runs):
    for of, part, top in (("covertype", "ratio", 2.0), ("digits", "three", 3.0), ("mnist", "three", 3.0)):
        shown = ["dsvgd" if method == "dsvgd-chosen" and of in DEFAULT_CHOSEN else method for method in SHOWN]
        kept = [(method, runs[of, part, method]) for method in shown if (of, part, method) in runs]
        counts = sorted({len(seeds) for _, seeds in kept})
        about = f"test rows, mean of {counts[0]} to {counts[-1]} seeds, band: one standard error" if len(counts) > 1 else f"test rows, mean of {counts[0]} seeds, band: one standard error"
        for x_name, label in (("visits", "visits"), ("uplink", "uplink of all clients, MiB")):
            curves = [(TITLES[method], curve(seeds, x_name)) for method, seeds in kept]
            picture(FOLDER / f"{of}-{part}-nll-{x_name}.svg", f"{SETS[of]}, {PARTITIONS[part]}: NLL", about, curves, label, "NLL, nats", top)
    for of, part in (("digits", "three"), ("mnist", "three")):
        found = {key[2]: seeds for key, seeds in runs.items() if key[:2] == (of, part) and key[2].startswith("newton-N")}
        if not found:
            continue
        found.setdefault("newton-N10-f32", runs[of, part, "newton"])
        curves = []
        for wire in ("f32", "f16"):
            names = sorted((name for name in found if name.endswith(wire)), key=lambda name: int(name.split("-")[1][1:]))
            points = []
            for name in names:
                rows = [rows[-1] for rows in found[name].values()]
                values = [row["nll"] for row in rows]
                points.append((mean([row["uplink_bytes"] for row in rows]) / MIB, mean(values), error(values) / 2 if len(values) > 1 else 0.0))
            curves.append((f"Newton factors, 60 visits, {wire}; N = " + ", ".join(name.split("-")[1][1:] for name in names), points))
        low = min(x for _, points in curves for x, _, _ in points) / 2
        for method in ("fedavg", "fedavg-rotated", "fedadam"):
            if (of, part, method) in runs:
                curves.append((TITLES[method], curve(runs[of, part, method], "uplink", low)))
        curves = [(name if len(name) < 46 else name.replace("Newton factors, 60 visits, ", "Newton factors, "), points) for name, points in curves if points]
        picture(FOLDER / f"{of}-{part}-particles.svg", f"{SETS[of]}, {PARTITIONS[part]}: number of particles", "NLL after 60 visits over the bytes sent", curves, "uplink of all clients, MiB", "NLL, nats", 3.0)


def others(runs):
    """One row for each federation: the last values of the methods that all have."""
    columns = {
        "newton": "Newton factors, relay",
        "newton-once": "ten at once, 120 visits",
        "dsvgd-chosen": "DSVGD, λ chosen",
        "dsvgd-reference": "DSVGD, public code",
        "fedavg-60": "averaging, 60 visits",
        "fedavg-60-rotated": "the same, rotated",
        "fedavg": "averaging, 1,800 visits",
        "fedadam": "FedAdam, 600 visits",
        "svgd-rotated": "SVGD in one place, rotated",
    }
    print("\n| federation | " + " | ".join(columns.values()) + " |\n|---|" + "---|" * len(columns))
    for of in SETS:
        for part in PARTITIONS:
            if (of, part, "newton") not in runs:
                continue
            cells = []
            for method in columns:
                if method == "dsvgd-chosen" and of in DEFAULT_CHOSEN:
                    method = "dsvgd"
                seeds = runs.get((of, part, method)) or (method.startswith("svgd") and pooled(runs, of, method))
                count = f" ({len(seeds)})" if seeds and len(seeds) != 3 else ""
                cells.append(three([rows[-1] for rows in seeds.values()]) + count if seeds else "")
            print(f"| {SETS[of]}, {PARTITIONS[part]} | " + " | ".join(cells) + " |")


def last_rounds(runs):
    """The spread of the accuracy over the last five rounds of a relay that was evaluated in every round."""
    print("\n| federation | seeds | accuracy, largest minus smallest of the last five rounds |\n|---|---|---|")
    for of in SETS:
        for part in PARTITIONS:
            seeds = runs.get((of, part, "newton"), {})
            spreads = []
            for rows in seeds.values():
                last = [row["accuracy"] for row in rows if row["visits"] > rows[-1]["visits"] - 5]
                if len(last) == 5:
                    spreads.append(max(last) - min(last))
            if spreads:
                print(f"| {SETS[of]}, {PARTITIONS[part]} | {len(spreads)} | " + ", ".join(f"{value:.4f}" for value in spreads) + " |")


HEAD = """# Federations whose clients differ

All tables of [Clients that differ](../../../results.md#clients-that-differ), written by `scripts/federations.py` from
[federations.csv.gz](federations.csv.gz): accuracy / NLL / ECE on test rows, mean over the seeds stated. A *visit* is one client's part of
one round. "CPU" is the processor time of the whole process with reading of the data and evaluations, of the runs where it was measured.
"""


def main():
    runs = read()
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        tables(runs)
    (FOLDER / "table.md").write_text(HEAD + text.getvalue())
    pictures(runs)


def tables(runs):
    print("\n## All federations, after the last round\n\nThe mean of three seeds, or of as many as are in brackets.")
    others(runs)
    print("\n## The last five rounds")
    last_rounds(runs)
    print("\n## By federation")
    for of in SETS:
        for part in PARTITIONS:
            if any(key[:2] == (of, part) for key in runs):
                table(runs, of, part)
    print("\n## Number of particles and precision on the wire")
    particles(runs)
    print("\n## Paired differences\n\nNewton factors (relay, rotated inputs, 60 visits) minus the method named, over the seeds that both have, with two standard errors. ")
    print("\"60 visits\" compares at equal visits, \"the end\" with the method's last round, a number of MiB at equal uplink.")
    differences(runs)


if __name__ == "__main__":
    main()
