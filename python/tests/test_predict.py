"""Predictions for new rows, of arrays and of tables with texts."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import re
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import fedstein
import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import SMALL, Command, trees
from fedstein import _cells


def test_calibration_rows_give_a_temperature_and_sets(command: Command) -> None:
    X, y, sites = trees()
    data = fedstein.Data(X, y, clients=sites)
    held = {"calibration": 0.3}
    run = fedstein.train(data=data, out="held", progress=False, partition=held, **SMALL)
    card = json.loads(Path("held/model.json").read_text())["calibration"]
    at, raw = run.predict(X), run.predict(X, raw=True)
    tempered = raw ** (1 / card["temperature"])
    assert at == pytest.approx(tempered / tempered.sum(axis=1, keepdims=True), abs=1e-12)
    # The set of LAC: every class whose 1 - p is not above the threshold of the level.
    thresholds = dict(card["conformal"]["thresholds"])
    for level, sets in [(0.9, run.predict_sets(X)), (0.8, run.predict_sets(X, level=0.8))]:
        assert sets.dtype == bool and np.array_equal(sets, 1 - at <= thresholds[level])
    with pytest.raises(fedstein.ConfigError, match="level 0.42"):
        run.predict_sets(X, level=0.42)
    # The command has the same sets.
    Path("new.csv").write_text("a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in X.tolist()))
    lines = command("predict", "held", "--input", "new.csv").stdout.splitlines()
    assert lines[0].endswith(",set")
    names = np.array(run.classes)
    assert [line.rsplit(",", 1)[1] for line in lines[1:]] == ["|".join(names[of]) for of in run.predict_sets(X)]
    # Each client holds out a row or two: too few for sets, and predictions need none.
    few = fedstein.train(data=data, progress=False, partition={"calibration": 0.02}, **SMALL)
    with pytest.warns(fedstein.RunWarning, match="calibration rows are too few for sets at the level 0.9"):
        assert few.predict_sets(X).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few.predict(X)
    plain = fedstein.train(data=data, progress=False, **SMALL)
    assert np.array_equal(plain.predict(X), plain.predict(X, raw=True))
    with pytest.raises(fedstein.ConfigError, match="no prediction sets"):
        plain.predict_sets(X)


@pytest.mark.parametrize(
    ("normalise", "words"), [("standard", "standard deviations"), ("minmax", "than this range is wide")]
)
def test_rows_far_outside_those_of_a_program_are_warned_of(normalise: str, words: str) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    table = pd.DataFrame(X, columns=["age", "dose"])
    data = fedstein.Data(table, (X[:, 0] > 0).astype(int), test=0.2, normalise=normalise)
    run = fedstein.train(data=data, rounds=1, progress=False, **{"partition.clients": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.predict(table)
    with pytest.warns(fedstein.RunWarning, match=f"1 of 60 rows has a feature .*{words}.*: `dose` in 1"):
        run.predict(table.assign(dose=table["dose"].where(table.index != 7, 999.0)))


def test_predictions_are_after_the_map_that_a_run_keeps() -> None:
    X, y, sites = trees()
    data = fedstein.Data(X, y, clients=sites)
    held, map_ = {"calibration": 0.5}, {"map": "vector"}
    run = fedstein.train(data=data, out="mapped", progress=False, partition=held, calibration=map_, **SMALL)
    card = json.loads(Path("mapped/model.json").read_text())["calibration"]
    raw = run.predict(X, raw=True)
    # softmax(a ln p + b).
    powers = np.exp(np.array(card["vector"]["scale"]) * np.log(raw) + card["vector"]["bias"])
    assert run.predict(X) == pytest.approx(powers / powers.sum(axis=1, keepdims=True), abs=1e-12)
    assert np.abs(run.predict(X) - raw).max() > 1e-3
    # The sets are of the model's own probabilities.
    thresholds = dict(card["conformal"]["thresholds"])
    assert np.array_equal(run.predict_sets(X), 1 - raw <= thresholds[0.9])


def test_a_feature_that_cannot_be_predicted_is_named_and_counted_from_0() -> None:
    X, y, _ = trees()
    X[:, 0] /= 100
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = fedstein.train(data=fedstein.Data(frame, y), progress=False, **SMALL)
    plain = fedstein.train(data=fedstein.Data(X, y), progress=False, **SMALL)
    for value, words in (
        (np.nan, "is NaN; leave such rows out, or fill them"),
        (-np.inf, "is -inf; leave such rows out, or fill them"),
        (3e38, "is 3e38, too large on the scale of the training rows"),
        (1e300, "is 1e300, too large on the scale of the training rows"),
    ):
        bad = frame.copy()
        bad.loc[5, "a"] = bad.loc[9, "b"] = value
        for rows in (bad, bad[["c", "b", "a"]], bad.to_numpy(), bad.to_numpy().tolist()):
            with pytest.raises(fedstein.DataError, match=f'^features: row 5, feature 0 \\("a"\\) {re.escape(words)}$'):
                named.predict(rows)
        with pytest.raises(fedstein.DataError, match=f"^features: row 5, feature 0 {re.escape(words)}$"):
            plain.predict_uncertainty(bad)
    single = np.ones((4, 3), dtype=np.float32)
    single[3, 2] = np.nan
    with pytest.raises(fedstein.DataError, match='^features: row 3, feature 2 \\("c"\\) is NaN'):
        named.predict(single)


def test_a_regression_predicts_in_its_own_unit() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    y = 1000 + 50 * X[:, 0] + rng.normal(scale=5, size=300)
    data = fedstein.Data(X, y, test=0.25, seed=3)
    assert data.classes is None and repr(data) == "Data(225 training rows, 75 test rows, regression)"
    run = fedstein.train(data=data, progress=False, rounds=10, partition={"clients": 2}, model={"hidden": [10]})
    assert run.classes is None and run.predictions.shape == (75,) and run.labels.shape == (75,)
    # The targets have the bits that were given.
    assert np.isin(run.labels, y).all() and len(np.unique(run.labels)) == 75
    rmse = float(np.sqrt(((run.predictions - run.labels) ** 2).mean()))
    assert run.evaluation["rmse"] == pytest.approx(rmse, rel=1e-9) and run.report().rmse == pytest.approx(
        rmse, rel=1e-9
    )
    assert rmse < 30
    held = fedstein.train(data=data, progress=False, partition={"calibration": 0.3}, **SMALL)
    intervals = held.predict_sets(X)
    assert intervals.shape == (300, 2) and (intervals[:, 0] < intervals[:, 1]).all()
    assert ((intervals[:, 0] <= y) & (y <= intervals[:, 1])).mean() > 0.8
    mean, members = run.predict(X, return_members=True)
    parts = run.predict_uncertainty(X)
    assert members.mean(axis=0) == pytest.approx(mean, rel=1e-12)
    assert parts["epistemic"] == pytest.approx(members.var(axis=0), rel=1e-6)
    assert parts["total"] == pytest.approx(parts["aleatoric"] + parts["epistemic"], rel=1e-12)


WARDS = """kind,admitted,ward,dose,smokes,age
a,03.01.2024,north,"1,5",yes,40
b,17.02.2024,"St. Mary; west",,no,51
a,28.02.2024,north,"2,25",yes,
b,01.03.2024,south,"0,5",no,33
"""


def test_a_run_on_a_table_with_texts_predicts_tables_of_pandas_and_polars(command: Command) -> None:
    table = pd.read_csv(io.StringIO(WARDS), decimal=",").drop(columns="kind")
    lines = WARDS.splitlines()
    Path("wards.csv").write_text("\n".join([lines[0], *(lines[1:] * 15)]) + "\n")
    data = {
        "kind": "csv", "path": "wards.csv", "target": "kind", "date": ["admitted"], "date_format": "DD.MM.YYYY",
        "categorical": ["ward"], "boolean": ["smokes"], "decimal": ",", "missing": "mean",
    }  # fmt: skip
    run = fedstein.train(data=data, out="wards", progress=False, **{**SMALL, "partition.clients": 2})
    Path("new.csv").write_text(WARDS)
    predicted = [line.split(",") for line in command("predict", "wards", "--input", "new.csv").stdout.splitlines()[1:]]
    want = np.array([[float(p) for p in cells[-2:]] for cells in predicted])
    dated = table.assign(admitted=pd.to_datetime(table["admitted"], format="%d.%m.%Y"), smokes=table["smokes"] == "yes")
    reversed_columns = table[table.columns[::-1]].assign(more="not used")
    dates = [datetime.date(2024, *day) for day in ((1, 3), (2, 17), (2, 28), (3, 1))]
    cells = {name: [None if pd.isna(cell) else cell for cell in table[name].tolist()] for name in table}
    for rows in (table, dated, reversed_columns, pl.DataFrame(cells), pl.DataFrame({**cells, "admitted": dates})):
        assert run.predict(rows) == pytest.approx(want, abs=1e-6)
    # A time of a zone is that on its clock.
    midnights = [datetime.datetime.combine(date, datetime.time()) for date in dates]
    in_tokyo = pl.DataFrame({**cells, "admitted": midnights}).with_columns(
        pl.col("admitted").dt.replace_time_zone("Asia/Tokyo")
    )
    for rows in (in_tokyo, dated.assign(admitted=dated["admitted"].dt.tz_localize("Asia/Tokyo"))):
        assert run.predict(rows) == pytest.approx(want, abs=1e-6)
    assert run.predict_uncertainty(dated)["total"].shape == (4,)
    # Columns of numbers alone, some of them missing, are called as their features are.
    lines = ["y,dose,age", *(f"{'ab'[i % 2]},{'' if i % 5 == 0 else i % 7},{40 + i % 3}" for i in range(40))]
    Path("doses.csv").write_text("\n".join(lines) + "\n")
    keys = {"kind": "csv", "path": "doses.csv", "target": "y", "missing": "mean"}
    doses = fedstein.train(data=keys, progress=False, **{**SMALL, "partition.clients": 2})
    with pytest.warns(fedstein.RunWarning, match="`dose`"):
        filled = doses.predict(pd.DataFrame({"age": [40, 41], "dose": [np.nan, 2.0]}))
    assert filled[1] == pytest.approx(doses.predict(pd.DataFrame({"dose": [2], "age": [41]}))[0])
    with pytest.warns(fedstein.RunWarning, match="standard deviations from the mean of the training rows: `age`"):
        doses.predict(pd.DataFrame({"age": [4000], "dose": [2]}))
    with pytest.warns(fedstein.RunWarning, match="the rows.*`ward`"):
        run.predict(dated.assign(ward="attic"))
    for wrong, words in (
        (dated.drop(columns="ward"), "the rows have no column 'ward'"),
        (
            dated.assign(dose=["1", "x", "2", "3"]),
            r"^rows: row 1, column 3 \(dose\): `x` is not .*; a missing value is None or NaN$",
        ),
        (dated.assign(smokes="maybe"), r"^rows: row 0, column 4 \(smokes\): `maybe`"),
        (dated.assign(ward=["a", "b", "c", "\udce9"]), r"^rows: row 3, column 'ward': '\\udce9' has a lone surrogate"),
    ):
        with pytest.raises(fedstein.DataError, match=words):
            run.predict(wrong)


def test_truth_values_and_numbers_of_32_bits_are_written_as_the_file_of_the_run_has_them(command: Command) -> None:
    rng = np.random.default_rng(0)
    smokes, dose = rng.random(120) < 0.5, (rng.integers(0, 30, 120) / 10).astype(np.float32)
    for at, (false, true) in enumerate([("False", "True"), ("false", "true"), ("FALSE", "TRUE"), ("no", "yes")]):
        words = np.where(smokes, true, false)
        lines = [f"{'ab'[int(cell)]},{word},{number}" for cell, word, number in zip(smokes, words, dose, strict=True)]
        Path("smokers.csv").write_text("\n".join(["kind,smokes,dose", *lines]) + "\n")
        keys: dict[str, Any] = {"kind": "csv", "path": "smokers.csv", "target": "kind"}
        keys["boolean" if true == "yes" else "categorical"] = ["smokes"]
        run = fedstein.train(data=keys, out=f"run{at}", progress=False, **{**SMALL, "partition.clients": 2})
        Path("new.csv").write_text("smokes,dose\n" + "\n".join(line.split(",", 1)[1] for line in lines) + "\n")
        predicted = command("predict", f"run{at}", "--input", "new.csv").stdout.splitlines()[1:]
        want = np.array([[float(p) for p in line.split(",")[-2:]] for line in predicted])
        frame = pd.DataFrame({"smokes": smokes, "dose": dose})
        tables = (frame, pl.DataFrame({"dose": dose, "smokes": smokes}), frame.astype({"smokes": "boolean"}))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for table in tables:
                assert run.predict(table) == pytest.approx(want, abs=1e-9)
    # Two spellings are two categories, of which none is the column's own.
    mixed = np.array(["True", "TRUE", "False"])[rng.integers(0, 3, 120)]
    lines = [f"{'ab'[at % 2]},{word},{at % 7}" for at, word in enumerate(mixed)]
    Path("smokers.csv").write_text("\n".join(["kind,smokes,dose", *lines]) + "\n")
    run = fedstein.train(
        data={**keys, "boolean": [], "categorical": ["smokes"]}, progress=False, **{**SMALL, "partition.clients": 2}
    )
    with pytest.warns(fedstein.RunWarning, match="`smokes`"):
        run.predict(pd.DataFrame({"smokes": [True, False], "dose": [1, 2]}))


def test_numbers_of_32_and_16_bits_become_their_shortest_texts() -> None:
    for dtype in ("f2", "f4", ">f4", "f8"):
        column = np.array([0.1, 2.0, np.nan, -2.5], dtype=dtype)
        assert _cells._texts(column, "dose", {"decimal": ",", "date_format": "YYYY-MM-DD"}, []) == [
            "0,1",
            "2",
            "",
            "-2,5",
        ]


def test_decimals_of_a_database_are_written_as_the_runs_numbers() -> None:
    column = np.array([*map(Decimal, ["0.10", "2.00", "NaN", "-2.51E-3", "1E3", "1000000000000000.0"])], dtype=object)
    keys = {"decimal": ",", "date_format": "YYYY-MM-DD"}
    with decimal.localcontext(prec=1):
        assert _cells._texts(column, "dose", keys, []) == ["0,1", "2", "", "-0,00251", "1000", "1000000000000000"]
