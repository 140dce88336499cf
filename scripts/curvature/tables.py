"""Tables whose sites hold different intervals of the inputs, for the studies in this folder.

Reads UCI regressions of $FEDSTEIN_DATA (`fedstein data info uci-regression`) and writes DIR/SET.csv: the features, the
target `y`, and `site`, the interval of a row on the first principal component of the standardised features, of equal
numbers of rows. Needs numpy.

    python scripts/curvature/tables.py tables
    cd tables && fedstein study ../scripts/curvature/regressions.toml
"""

import gzip
import os
import sys
from pathlib import Path

import numpy as np

# The number of sites, and the number of rows that are drawn where the table is larger.
SETS = {
    "kin8nm": (20, None),
    "power": (20, None),
    "protein": (20, 8000),
    "naval": (20, 6000),
    "concrete": (10, None),
    "wine-red": (10, None),
}


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    folder = Path(os.environ["FEDSTEIN_DATA"]) / "uci-regression"
    rng = np.random.default_rng(0)
    for name, (sites, most) in SETS.items():
        with gzip.open(folder / f"{name}.csv.gz", "rt") as file:
            rows = np.array([[float(value) for value in line.split(",")] for line in file if line.strip()])
        if most is not None:
            rows = rows[rng.permutation(len(rows))[:most]]
        features = rows[:, :-1]
        scaled = (features - features.mean(0)) / (features.std(0) + 1e-12)
        component = scaled @ np.linalg.svd(scaled, full_matrices=False)[2][0]
        site = np.argsort(np.argsort(component)) * sites // len(rows)
        with (out / f"{name}.csv").open("w") as file:
            file.write(",".join([f"x{i}" for i in range(features.shape[1])] + ["y", "site"]) + "\n")
            for values, at in zip(rows, site, strict=True):
                file.write(",".join([repr(float(value)) for value in values] + [f"s{at:02d}"]) + "\n")


if __name__ == "__main__":
    main()
