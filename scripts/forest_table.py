#!/usr/bin/env python3
"""Makes the tables of docs/example.md from Covertype (Blackard, UCI; CC BY 4.0): forest.csv and poudre.csv.

    fedstein data fetch covertype
    python3 scripts/forest_table.py data/covertype/covtype.data.gz

A row of the input has 54 integers, of which 4 are the area and 40 the soil as 0 or 1, and a label that is 2 for lodgepole
pine. The tables have area and soil as one column each, with names: every 40th row of three areas, and every 20th row of
the fourth.
"""

import csv
import gzip
import sys

NUMBERS = [
    "elevation_m", "aspect_deg", "slope_deg", "to_water_m", "above_water_m", "to_road_m",
    "hillshade_9am", "hillshade_noon", "hillshade_3pm", "to_fire_point_m",
]
AREAS = ["Rawah", "Neota", "Comanche Peak", "Cache la Poudre"]
EVERY = {"Rawah": 40, "Neota": 40, "Comanche Peak": 40, "Cache la Poudre": 20}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    seen = dict.fromkeys(AREAS, 0)
    header = ["plot_id", "area", *NUMBERS, "soil", "cover"]
    with gzip.open(sys.argv[1], "rt", newline="") as rows, \
            open("forest.csv", "w", newline="") as forest, open("poudre.csv", "w", newline="") as poudre:
        tables = [csv.writer(file, lineterminator="\n") for file in (forest, poudre)]
        for table in tables:
            table.writerow(header)
        for number, row in enumerate(csv.reader(rows), 1):
            area, soil = AREAS[row[10:14].index("1")], row[14:54].index("1") + 1
            seen[area] += 1
            if seen[area] % EVERY[area]:
                continue
            cover = "lodgepole" if row[54] == "2" else "other"
            tables[area == "Cache la Poudre"].writerow([f"P{number:06}", area, *row[:10], f"soil {soil:02}", cover])


if __name__ == "__main__":
    main()
