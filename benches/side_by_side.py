"""Records of side_by_side.sh, one JSONL file a pass, as a Markdown table of ratios. Standard library only.

For each workload of fedstein: its time over that of the fastest yardstick line with automatic differentiation, and over
the fastest with hand-derived gradients. "Fastest" is by the median over passes; the ratio is taken within each pass,
where both were timed in turn, and its median (least to most) is shown.
"""
import json
import statistics
import sys

# Words in the name of an implementation that indicate how it computes gradients.
AUTODIFF = ("autograd", "vmap", "grad-einsum", "map-grad", "grad-conv")
# Threads beyond which a line counts as disturbed: a tenth of a core taken by others.
DISTURBED = 0.1


def read(path):
    """name -> implementation -> record; the last line of a name and implementation wins."""
    lines = {}
    with open(path) as file:
        for text in filter(str.strip, file):
            record = json.loads(text)
            if "name" not in record:
                continue
            # JAX's scan of 20 steps in one program: a step of it is the same work.
            if record["name"].endswith(" x20"):
                record = dict(record, name=record["name"][:-4])
                for key in ("median", "min", "max"):
                    record[key] /= 20
            lines.setdefault(record["name"], {})[record["impl"]] = record
    return lines


def kind(implementation):
    if implementation.startswith("fedstein/"):
        return "fedstein"
    return "autodiff" if any(word in implementation for word in AUTODIFF) else "hand-derived"


def times(passes, name, implementation):
    return [lines[name][implementation]["median"] for lines in passes if implementation in lines.get(name, {})]


def fastest(passes, name, wanted):
    named = {i for lines in passes for i in lines.get(name, {}) if kind(i) == wanted}
    return min(named, key=lambda i: statistics.median(times(passes, name, i)), default=None)


def against(passes, name, ours, theirs):
    """Cells of a comparison: ratio, and with what."""
    if theirs is None:
        return ["–", ""]
    both = [lines[name] for lines in passes if ours in lines.get(name, {}) and theirs in lines.get(name, {})]
    ratios = sorted(lines[ours]["median"] / lines[theirs]["median"] for lines in both)
    if not ratios:
        return ["–", theirs]
    spread = f" ({ratios[0]:.2f} to {ratios[-1]:.2f})" if len(ratios) > 1 else ""
    line = f"{theirs}, {statistics.median(times(passes, name, theirs)):.3g} ms"
    return [f"**{statistics.median(ratios):.2f}**{spread}", line]


def main(paths):
    passes = [read(path) for path in paths]
    names = list(dict.fromkeys(name for lines in passes for name in lines))
    rows, disturbed = [], 0.0
    for name in names:
        ours = fastest(passes, name, "fedstein")
        rivals = [fastest(passes, name, wanted) for wanted in ("autodiff", "hand-derived")]
        if ours is None or not any(rivals):
            continue
        foreign = [l["foreign"] or 0.0 for p in passes for l in p.get(name, {}).values()]
        disturbed = max(disturbed, *foreign)
        cells = [name, f"{statistics.median(times(passes, name, ours)):.3g}"]
        for rival in rivals:
            cells += against(passes, name, ours, rival)
        rows.append(cells + [f"{max(foreign):.2f}"])
    print(f"{len(passes)} passes, all programs in turn. Ratios are fedstein's time over the other's: below 1 it is faster.\n")
    print("| workload | fedstein, ms | / autodiff | fastest autodiff | / hand-derived | fastest hand-derived | foreign |")
    print("|---|--:|--:|---|--:|---|--:|")
    for cells in rows:
        print("| " + " | ".join(cells) + " |")
    if disturbed > DISTURBED:
        print(f"\nOther processes took up to {disturbed:.2f} cores (column foreign): repeat on a quiet machine.")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: side_by_side.py PASS.jsonl...")
    main(sys.argv[1:])
