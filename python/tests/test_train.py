from __future__ import annotations

import datetime
import gc
import io
import json
import logging
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import fedstein
import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import Command
from fedstein import _cells

SMALL: dict[str, Any] = {
    "rounds": 3,
    "algorithm": {"particles": 4, "local_steps": 5},
    "model.hidden": [8],
}


def trees(rows: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, names of trees and names of sites."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [1, 10, 100] + [0, 5, 50]
    z = X[:, 0] + (X[:, 1] - 5) / 10 + rng.normal(scale=0.3, size=rows)
    y = np.array(["alder", "birch", "yew"])[np.digitize(z, [-0.7, 0.7])]
    return X, y, np.array(["north", "east", "south"])[rng.integers(0, 3, rows)]


def test_the_bits_are_those_of_the_command(command: Command) -> None:
    settings = ["rounds=3", "algorithm.particles=4", "algorithm.local_steps=5", "model.hidden=[8]"]
    command("train", "--quiet", "--out", "by-command", *(word for s in settings for word in ("--set", s)))
    # The built-in experiment with keywords, and the command's resolved config as a file, as text and as a dict.
    text = Path("by-command/config.toml").read_text()
    runs = {
        "keywords": fedstein.train(out="keywords", progress=False, **SMALL),
        "file": fedstein.train("by-command/config.toml", out="file", progress=False),
        "text": fedstein.train(text, out="text", progress=False),
        "dict": fedstein.train(fedstein.open("by-command").config, out="dict", progress=False),
    }
    for name, run in runs.items():
        assert run.path == Path(name)
        for file in ("particles.safetensors", "config.toml", "predictions.csv", "model.json", "partition.txt"):
            assert Path(name, file).read_bytes() == Path("by-command", file).read_bytes(), (name, file)
        assert {p.name for p in Path(name).iterdir()} == {p.name for p in Path("by-command").iterdir()}


def test_a_run_has_its_files_as_arrays() -> None:
    run = fedstein.train(out="run", progress=False, **SMALL)
    assert run.predictions.shape == (359, 10) and run.predictions.dtype == np.float64
    assert run.labels.shape == (359,) and run.labels.dtype == np.int64
    assert run.evaluation["accuracy"] == (run.predictions.argmax(axis=1) == run.labels).mean()
    assert run.rounds["round"].tolist() == [1, 2, 3]
    assert run.rounds["accuracy"][-1] == run.evaluation["accuracy"]
    assert np.isnan(run.rounds["rmse"]).all() and run.rounds["clients"].tolist() == [(0,), (1,), (2,)]
    frame = run.rounds.to_pandas()
    assert isinstance(frame, pd.DataFrame) and len(frame) == 3
    assert run.config["model"]["hidden"] == [8] and run.config["seed"] == 1
    assert {name: (value.shape, value.dtype.name) for name, value in run.particles.items()} == {
        "layers.0.bias": ((4, 8, 1), "float32"),
        "layers.0.weight": ((4, 8, 64), "float32"),
        "layers.1.bias": ((4, 10, 1), "float32"),
        "layers.1.weight": ((4, 10, 8), "float32"),
    }
    report = run.report()
    assert report.accuracy == run.evaluation["accuracy"] and report.ece == run.evaluation["ece"]
    assert report.table() == fedstein.report(run.predictions, run.labels).table()
    again = fedstein.open("run")
    assert np.array_equal(again.predictions, run.predictions) and again.evaluation == run.evaluation
    assert repr(again).startswith("Run('run', accuracy=0.")


def test_without_out_the_files_go_with_the_object() -> None:
    run = fedstein.train(progress=False, **SMALL)
    path = run.path
    assert path.is_dir() and not list(Path().iterdir())
    del run
    gc.collect()
    assert not path.exists() and not path.parent.exists()


def test_a_report_keeps_the_files_of_its_runs() -> None:
    report = fedstein.train(progress=False, **SMALL).report()
    both = fedstein.compare([fedstein.train(progress=False, name=name, **SMALL) for name in ("one", "two")])
    gc.collect()
    assert report.save("out").is_file() and both.save("both").is_file()
    paths = [report._source._run.path, both._source._run.path, both._source._others[0].path]  # type: ignore[attr-defined]
    assert all(path.is_dir() for path in paths)
    del report, both
    gc.collect()
    assert not any(path.exists() for path in paths)


def test_own_rows_with_clients_train_and_predict(command: Command) -> None:
    X, y, sites = trees()
    data = fedstein.Data(X[:200], y[:200], clients=sites[:200], test=(X[200:], y[200:], sites[200:]))
    assert data.classes == ["alder", "birch", "yew"] and data.clients == ["east", "north", "south"]
    assert repr(data) == "Data(200 training rows, 40 test rows, 3 classes, 3 clients)"
    run = fedstein.train(
        data=data, out="own", progress=False, rounds=6, algorithm={"particles": 5}, model={"hidden": [8]}
    )
    assert run.config["partition"]["kind"] == "by-column" and run.classes == data.classes
    assert run.evaluation["accuracy"] > 0.8
    # The test rows in their own units give the run's predictions.
    probabilities, members = run.predict(X[200:], return_members=True)
    assert np.array_equal(probabilities, run.predictions)
    assert members.shape == (5, 40, 3) and members.mean(axis=0) == pytest.approx(probabilities, abs=1e-12)
    parts = run.predict_uncertainty(X[200:])
    entropy = -(probabilities * np.log(probabilities)).sum(axis=1)
    noise = -(members * np.log(members)).sum(axis=2).mean(axis=0)
    assert parts["total"] == pytest.approx(entropy, abs=1e-12) and parts["aleatoric"] == pytest.approx(noise, abs=1e-12)
    assert parts["epistemic"] == pytest.approx(entropy - noise, abs=1e-12)
    # The command predicts the same.
    Path("new.csv").write_text("a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in X[200:].tolist()))
    lines = command("predict", "own", "--input", "new.csv").stdout.splitlines()[1:]
    by_command = np.array([[float(p) for p in line.split(",")[2:]] for line in lines])
    # CSV numbers are read as f32 at once, ours as the nearest f64 before.
    assert by_command == pytest.approx(probabilities, abs=1e-6)


def test_clients_have_their_names_in_notes_files_and_reports() -> None:
    X, y, sites = trees()
    # No training row of the last site, and of the first one.
    test = (X[:40], y[:40], np.where(np.arange(40) < 20, "attic", "south"))
    data = fedstein.Data(X, y, clients=np.where(sites == "east", "west", sites), test=test)
    assert data.clients == ["attic", "north", "south", "west"]
    with pytest.warns(fedstein.RunWarning, match=r"1 of the data's clients hold no training row .*\(`attic`\)"):
        run = fedstein.train(data=data, out="named", progress=False, **{**SMALL, "evaluation.personal": True})
    assert run.clients == ["north", "south", "west"] == fedstein.open("named").clients
    assert run.rounds["clients"].tolist() == [(0,), (1,), (2,)]
    assert [line.split(",")[1] for line in Path("named/clients.csv").read_text().splitlines()[1:]] == run.clients
    assert "west" in run.report().html
    # Numbers are names as well; two clients of one name have numbers only, and dealt rows have none.
    wards = fedstein.train(data=fedstein.Data(X, y, clients=np.arange(240) % 2 + 7), progress=False, **SMALL)
    assert wards.clients == ["7", "8"]
    dealt = fedstein.train(data=data, progress=False, **{**SMALL, "partition.kind": "iid"})
    assert dealt.clients is None


def test_clients_of_one_name_have_numbers_only() -> None:
    X, y, _ = trees()

    class Ward(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "ward"

    wards = np.array([Ward("a"), Ward("b")] * 120, dtype=object)
    data = fedstein.Data(X, y, clients=wards)
    assert fedstein.train(data=data, progress=False, **SMALL).clients is None


def test_classes_that_only_test_rows_have_are_named() -> None:
    X, y, _ = trees()
    with pytest.warns(fedstein.RunWarning, match="^no training row has the class 'oak' of the test rows") as caught:
        fedstein.Data(X, y, test=(X, np.where(y == "yew", "oak", y)))
    assert [warning.filename for warning in caught] == [__file__]
    numbers = np.arange(240) % 3
    with pytest.warns(fedstein.RunWarning, match=r"has the 7 classes 3, 4, 5, 6, 7, \.\.\. of the test rows"):
        fedstein.Data(X, numbers, test=(X, np.arange(240) % 10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fedstein.Data(X, numbers, test=(X, numbers % 2))
        fedstein.Data(X, numbers, test=(X, np.arange(240) % 10), classes=list(range(10)))


def test_rows_of_a_group_are_all_training_or_all_test_rows() -> None:
    X, y = np.arange(120.0).reshape(60, 2), np.arange(60) % 2
    groups = np.array(["P1", "P2", "P3"] + ["P4"] * 57)
    # One of the four groups is a quarter of them.
    one = ("Data(59 training rows, 1 test rows", "Data(3 training rows, 57 test rows")
    assert repr(fedstein.Data(X, y, groups=groups, test=0.25)).startswith(one)
    assert repr(fedstein.Data(X, y, test=0.25)).startswith("Data(45 training rows, 15 test rows")
    run = fedstein.train(data=fedstein.Data(X, y, groups=np.arange(60) // 3), progress=False, **SMALL)
    notes = json.loads((run.path / "summary.json").read_text())["notes"]
    assert "groups of rows: 16 in training, 4 in test, none in both" in notes
    with pytest.raises(fedstein.DataError, match="3 groups for 60 rows"):
        fedstein.Data(X, y, groups=groups[:3])
    for missing in (None, float("nan")):
        with pytest.raises(fedstein.DataError, match="row 2 has none"):
            fedstein.Data(X, y, groups=pd.Series(["P1", "P1", missing] + ["P2"] * 57, dtype=object))


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



@pytest.mark.parametrize(("normalise", "words"), [("standard", "standard deviations"), ("minmax", "than this range is wide")])
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


def test_two_classes_with_a_logistic_regression_reopen_and_report() -> None:
    # The run's config has no data set, and digits are its default, with ten classes: it was checked against the rows.
    X, y, sites = trees()
    data = fedstein.Data(X, y == "yew", clients=sites)
    run = fedstein.train(data=data, progress=False, rounds=3, model={"kind": "blr", "bias": True})
    assert run.classes == ["False", "True"]
    assert fedstein.open(run.path).report().accuracy == run.evaluation["accuracy"]


def test_tables_are_found_by_their_columns() -> None:
    X, y, _ = trees()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    run = fedstein.train(data=fedstein.Data(frame, pd.Series(y)), progress=False, **SMALL)
    want = run.predict(frame)
    assert np.array_equal(run.predict(X), want)
    assert np.array_equal(run.predict(frame[["c", "a", "b"]].assign(other=1.0)), want)
    assert np.array_equal(run.predict(pl.DataFrame({name: frame[name].to_numpy() for name in "cba"})), want)
    with pytest.raises(fedstein.DataError, match="no column 'b'"):
        run.predict(frame[["a", "c"]])
    with pytest.raises(fedstein.ConfigError, match="the rows: rows of 2 features; the run has rows of 3"):
        run.predict(X[:, :2])
    with pytest.raises(fedstein.DataError, match="2 columns 'a'"):
        run.predict(pd.concat([frame, frame[["a"]]], axis=1))


def test_columns_whose_names_are_numbers_are_found_by_them() -> None:
    X, y, _ = trees()
    frame = pd.DataFrame(X)
    run = fedstein.train(data=fedstein.Data(frame, y), progress=False, **SMALL)
    want = run.predict(frame)
    assert np.array_equal(run.predict(frame[[2, 0, 1]]), want)
    assert np.array_equal(run.predict(frame.rename(columns=str)[["1", "2", "0"]]), want)
    with pytest.raises(fedstein.DataError, match="no column '0'"):
        run.predict(frame.rename(columns={0: 99}))
    # Test rows of their own, in another order.
    held_out = (frame[[1, 2, 0]], y)
    same = fedstein.train(data=fedstein.Data(frame, y, test=held_out), progress=False, **SMALL)
    assert np.array_equal(same.predict(frame), same.predictions)


def test_targets_of_objects_and_nullable_numbers_have_the_task_of_their_values() -> None:
    X, values = np.arange(12.0).reshape(6, 2), [0.5, 1, 2, 3.25, 4, 5]
    fractions = [Fraction(number) for number in values]
    for y in (np.array(values, dtype=object), [Decimal(str(number)) for number in values], fractions):
        assert fedstein.Data(X, np.array(y, dtype=object)).classes is None
    # Also where all are whole.
    for y in ([0, 1.0, 2, 3, 4, 5], [float(number) for number in range(6)], [Decimal(number) for number in range(6)]):
        assert fedstein.Data(X, pd.Series(y, dtype=object)).classes is None
        assert fedstein.Data(X, np.array(y, dtype=object), task="classification").classes is not None
    prices = pl.Series([0, 10, 20, 30, 40, 50]).cast(pl.Decimal(10, 2))
    assert fedstein.Data(X, prices).classes is None
    # Whole numbers by their type, with a text, and truth values: classes.
    for y in ([0, 1, 2, 3, 4, 5], [0.5, "1", 2, 3, 4, "5"], [True, False] * 3):
        array = np.array(y, dtype=object)
        if "1" in y:
            with pytest.raises(fedstein.DataError, match="cannot be sorted"):
                fedstein.Data(X, array)
        else:
            assert fedstein.Data(X, array).classes is not None
    missing = [0, 1, None, 1, 0, 1]
    for whole in (pd.array(missing, dtype="Int64"), pd.Series(missing, dtype="UInt8"), pl.Series(missing)):
        with pytest.raises(fedstein.DataError, match="^labels: row 2 has none$"):
            fedstein.Data(X, whole)
        with pytest.raises(fedstein.DataError, match="^y: row 2 has none$"):
            fedstein.Data(X, whole, task="regression")
    for real in (pd.array([0.5, 1, None, 1, 0, 1], dtype="Float64"), np.array([0.5, 1, None, 1, 0, 1], dtype=object)):
        with pytest.raises(fedstein.DataError, match="^y: row 2 has none$"):
            fedstein.Data(X, real)
    with pytest.raises(fedstein.DataError, match="^test y: row 2 has none$"):
        fedstein.Data(X, np.array(values), test=(X, np.array([0.5, 1, np.nan, 1, 0, 1])))


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


@pytest.mark.parametrize(
    ("config", "keys", "message"),
    [
        (None, {"roundz": 3}, "^unknown key `roundz`; did you mean `rounds`?"),
        (None, {"model": {"hiden": [3]}}, "unknown key `model.hiden`; did you mean `model.hidden`"),
        (None, {"rounds": 0}, "^`rounds` cannot be 0; it must be"),
        (None, {"rounds": None}, "`rounds` cannot be None; leave it out"),
        (None, {"rounds": object()}, "`rounds` cannot be a object"),
        (None, {"optimizer": {"lr": float("nan")}}, "^`optimizer.lr` cannot be nan; a number must be finite$"),
        ({"roundz": 3}, {}, "^unknown key `roundz`"),
        ({"a=b": 3}, {}, "'a=b' is not the name of a key"),
        ("rounds = ", {}, "the config, line 1, column 10: not valid TOML"),
        ("rounds = 0", {}, "the config, line 1: `rounds` cannot be 0"),
        ("missing.toml", {}, "cannot read the config `missing.toml`: No such file"),
        (3, {}, "config is a int; it must be a path, TOML text or a dict"),
        (None, {"backend": "cuda"}, "is not compiled in"),
        ({"data": {"kind": "csv", "path": "none.csv", "target": "y"}}, {}, "none.csv"),
    ],
)
def test_a_wrong_config_is_refused_before_anything_runs(config: Any, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        fedstein.train(config, out="run", progress=False, **keys)
    assert isinstance(caught.value, (fedstein.ConfigError, fedstein.DataError))
    assert not Path("run").exists()


def test_wrong_rows_are_refused() -> None:
    X, y, sites = trees(20)
    bad = X.copy()
    bad[3, 1] = np.inf
    for build, message in (
        (lambda: fedstein.Data(bad, y), "row 3, feature 1 is inf"),
        (lambda: fedstein.Data(X, y[:5]), "rows"),
        (lambda: fedstein.Data(X[:, 0], y), r"shape \[20\]; they must be \[n, p\]"),
        (lambda: fedstein.Data(X, y, clients=sites[:3]), "client"),
        (lambda: fedstein.Data(X, y, test=1.5), "1.5"),
        (lambda: fedstein.Data(X[:0], y[:0]), r"features have the shape \[0, 3\]; there must be at least one row"),
        (lambda: fedstein.Data(X, y, test=None), "test must be a share of the rows"),  # type: ignore[arg-type]
        (lambda: fedstein.Data(X, y, test=[X, y]), "test must be a share of the rows"),  # type: ignore[arg-type]
        (lambda: fedstein.Data(X, y, seed=-1), "seed: -1 must be from 0"),
        (lambda: fedstein.Data(X, y, feature_names="abc"), "feature_names: 'abc' must be a sequence of names"),
        (lambda: fedstein.Data(X, y, feature_names={*"abc"}), "feature_names: {.*} must be a sequence of names"),
        (lambda: fedstein.Data(X, y, classes={"alder", "birch", "yew"}), "classes: {.*} must be a sequence of names"),
        (lambda: fedstein.Data(X, y, classes=dict.fromkeys(y)), "classes: {.*} must be a sequence of names"),
        (lambda: fedstein.Data(X, y, clients=sites, test=(X, y)), r"pass test=\(X, y, clients\)"),
        (lambda: fedstein.Data(X, y, test=(X, y, sites)), "pass clients="),
        (lambda: fedstein.Data(X, y, test=(X[:, :2], y)), "shape"),
        (lambda: fedstein.Data(X, y, classes=["alder"]), "not among the classes 'alder'"),
        (lambda: fedstein.Data(X, y, normalise="z"), 'normalise is "z"; it must be one of "auto"'),
        (lambda: fedstein.Data(X, y, task="ranking"), "it must be"),  # type: ignore[arg-type]
    ):
        with pytest.raises(fedstein.DataError, match=message):
            build()
    with pytest.raises(fedstein.ConfigError, match="progress is 'no'; it must be True, False or a function"):
        fedstein.train(progress="no")  # type: ignore[arg-type]
    with pytest.raises(fedstein.DataError, match="it must be a fedstein.Data"):
        fedstein.train(data=(X, y), progress=False)  # type: ignore[arg-type]
    with pytest.raises(fedstein.ConfigError, match="tells two classes apart"):
        fedstein.train(data=fedstein.Data(X, y), model={"kind": "blr"}, progress=False)


def test_an_argument_of_another_type_is_named() -> None:
    X, y, _ = trees()
    data = fedstein.Data(X, y)
    run = fedstein.train(data=data, progress=False, partition={"calibration": 0.3}, **SMALL)
    for call, message in (
        (lambda: fedstein.train(force="x", progress=False), "^force is 'x'; it must be True or False$"),  # type: ignore[arg-type]
        (lambda: fedstein.train(out=3, progress=False), "^out is 3; it must be a path$"),  # type: ignore[arg-type]
        (lambda: fedstein.train(data_dir=3, progress=False), "^data_dir is 3; it must be a path$"),  # type: ignore[arg-type]
        (lambda: fedstein.open(None), "^path is None; it must be a path$"),  # type: ignore[arg-type]
        (lambda: fedstein.resume(None), "^path is None; it must be a path$"),  # type: ignore[arg-type]
        (lambda: run.report(3), "^out is 3; it must be a path$"),  # type: ignore[arg-type]
        (lambda: run.report(compare=[3]), "^a run of `compare` is 3; it must be a path$"),  # type: ignore[list-item]
        (lambda: run.report(other_rows=0.5), "^other_rows is 0.5; it must be True or False$"),  # type: ignore[arg-type]
        (lambda: run.predict(X, raw="x"), "^raw is 'x'; it must be True or False$"),  # type: ignore[call-overload]
        (lambda: run.predict(X, return_members=2), "^return_members is 2; it must be True or False$"),  # type: ignore[call-overload]
        (lambda: run.predict_sets(X, level="a"), "^level is 'a'; it is a share of the rows, above 0 and below 1"),  # type: ignore[arg-type]
        (lambda: run.predict_sets(X, level=95), "^level is 95; it is a share of the rows, above 0 and below 1"),
        (lambda: run.predict_sets(X, level=float("nan")), "^level is nan; it is a share of the rows"),
    ):
        with pytest.raises(fedstein.ConfigError, match=message):
            call()
    assert np.array_equal(run.predict_sets(X, level=np.float32(0.5)), run.predict_sets(X, level=0.5))


def test_damaged_rounds_are_an_error_of_the_package() -> None:
    run = fedstein.train(out="run", progress=False, **SMALL)
    file = Path("run/rounds.csv")
    text = file.read_text()
    lines = text.splitlines(keepends=True)
    for damaged, message in (
        ("", "cannot read the file `run/rounds.csv`: it has no columns"),
        (text[: -len(lines[-1]) // 2], r"run/rounds.csv, line 4: \d+ cells; there must be \d+"),
        ("".join([lines[0], lines[1][: len(lines[1]) // 2]]), r"run/rounds.csv, line 2: \d+ cells; there must be \d+"),
        ("".join([lines[0], lines[1].replace("1,", "x,", 1)]), "run/rounds.csv, column `round`: invalid literal"),
    ):
        file.write_text(damaged)
        with pytest.raises(fedstein.ConfigError, match=message):
            _ = run.rounds
    file.unlink()
    with pytest.raises(fedstein.ConfigError, match="cannot read the file `run/rounds.csv`: No such file"):
        _ = run.rounds
    file.write_text(text)
    assert run.rounds["round"].tolist() == [1, 2, 3]


def test_a_row_without_a_label_or_a_client_is_named() -> None:
    X = np.arange(12.0).reshape(6, 2)
    names, missing = ["a", "b"] * 3, ["a", "b", None, "b", "a", "b"]
    for labels in (pd.Categorical(missing), missing, pd.Series(missing, dtype="string")):
        for keys in ({}, {"classes": ["a", "b"]}):
            with pytest.raises(fedstein.DataError, match="^labels: row 2 has none$"):
                fedstein.Data(X, labels, **keys)
        with pytest.raises(fedstein.DataError, match="^test labels: row 2 has none$"):
            fedstein.Data(X, names, test=(X, labels))
        with pytest.raises(fedstein.DataError, match="^test clients: row 2 has none$"):
            fedstein.Data(X, names, clients=names, test=(X, names, labels))
    for clients in (missing, [1, 2, float("nan"), 1, 2, 1], ["a", "b", float("nan"), "a", "b", "a"]):
        with pytest.raises(fedstein.DataError, match="^clients: row 2 has none$"):
            fedstein.Data(X, names, clients=clients)


def test_dates_are_refused_as_features_and_as_targets() -> None:
    days = np.arange(6).astype("datetime64[D]")
    for X, y, what in (
        (days[:, None], [0, 1] * 3, "features"),
        (pd.DataFrame({"day": days}), [0, 1] * 3, "features"),
        (np.ones((6, 1)), days - days[0], "y"),
    ):
        with pytest.raises(fedstein.DataError, match=f"^{what}: values of type .* convert them, for example to days"):
            fedstein.Data(X, y)


def test_the_column_of_a_table_that_is_not_of_numbers_is_named() -> None:
    good = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [1, 2, 3, 4]})
    y = [0, 1, 0, 1]
    for column, message in (
        (["x", "y", "x", "y"], "^features: column 'c' is not of numbers; leave it out, or encode it"),
        (pd.Categorical(["u", "v", "u", "v"]), "^features: column 'c' is not of numbers"),
        (pd.array([1, None, 3, 4], dtype="Int64"), "^features: row 1 has no value in column 'c'; leave such rows out"),
        (np.arange(4).astype("datetime64[D]"), "^features: values of type datetime64.*convert them.*column 'c'"),
        ([1.0, 2.0, np.nan, 4.0], r'^features: row 2, feature 2 \("c"\) is NaN; leave such rows out'),
    ):
        with pytest.raises(fedstein.DataError, match=message):
            fedstein.Data(good.assign(c=column), y)
    with pytest.raises(fedstein.DataError, match="column 'c' is not of numbers"):
        fedstein.Data(pl.DataFrame({"a": [1.0, 2.0], "c": ["x", "y"]}), [0, 1])
    with pytest.raises(fedstein.DataError, match=r"shape \[2\]; they must be .*; one row is \[row\]"):
        fedstein.Data(good.iloc[0], y)


def test_messages_name_arguments_and_not_options_of_the_command() -> None:
    X, y, _ = trees()
    data = fedstein.Data(X, y)
    with pytest.raises(fedstein.ConfigError, match="^config is a Data; pass it as data=$"):
        fedstein.train(data)  # type: ignore[arg-type]
    run = fedstein.train(data=data, out="run", progress=False, **SMALL)
    with pytest.raises(fedstein.ConfigError, match="not empty; choose another `out` or replace it with force=True$"):
        fedstein.train(data=data, out="run", progress=False, **SMALL)
    Path("mine").mkdir()
    Path("mine/thesis.txt").touch()
    with pytest.raises(fedstein.ConfigError, match="^force=True replaces only the directory of a run"):
        fedstein.train(data=data, out="mine", force=True, progress=False, **SMALL)
    other = fedstein.train(data=fedstein.Data(X, y, seed=2), progress=False, **SMALL)
    with pytest.raises(fedstein.ConfigError, match="^compare: `.*has other test rows.*other_rows=True compares them"):
        run.report(compare=[other])
    with pytest.raises(ValueError, match="fedstein data fetch mnist.*holds `mnist/` with `data_dir`$"):
        fedstein.train(data={"kind": "mnist"}, data_dir="none", progress=False)
    wheel = r"build the wheel with `maturin build --release --features fedstein/cuda`"
    with pytest.raises(fedstein.ConfigError, match=wheel):
        fedstein.train(backend="cuda", progress=False)
    Path("marks.csv").write_text("a;y\n1;u\n2;v\n")
    with pytest.raises(fedstein.DataError, match=r"are its cells separated by `;`\? \(data.delimiter\)$"):
        fedstein.train(data={"kind": "csv", "path": "marks.csv", "target": "y"}, progress=False)
    own = {**SMALL, "algorithm": {"kind": "fedper"}, "evaluation.personal": True}
    with pytest.warns(fedstein.RunWarning, match="clients.csv, and `fedstein predict --client` predicts with them"):
        fedstein.train(data=data, progress=False, **own)


def test_images_of_other_sides_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1, 4, 6))
    run = fedstein.train(data=fedstein.Data(X, np.arange(40) % 2), progress=False, **SMALL)
    want = run.predict(X)
    for same in (X.reshape(40, 24), X.reshape(40, 4, 6)):
        assert np.array_equal(run.predict(same), want)
    with pytest.raises(fedstein.DataError, match=r"the shape \[1, 6, 4\]; the run was trained on rows of \[1, 4, 6\]"):
        run.predict(X.reshape(40, 1, 6, 4))


def test_an_earlier_run_stays_unless_it_is_to_be_replaced() -> None:
    fedstein.train(out="run", progress=False, **SMALL)
    before = Path("run/particles.safetensors").read_bytes()
    with pytest.raises(fedstein.ConfigError, match="`run` exists and is not empty"):
        fedstein.train(out="run", progress=False, **SMALL)
    assert Path("run/particles.safetensors").read_bytes() == before
    fedstein.train(out="run", progress=False, force=True, seed=2, **SMALL)
    assert Path("run/particles.safetensors").read_bytes() != before
    with pytest.raises(fedstein.ConfigError, match="is this the directory of a finished run"):
        fedstein.open("nothing")


def test_a_run_whose_directory_has_another_one_reads_no_file_of_it() -> None:
    run = fedstein.train(out="run", progress=False, **SMALL)
    other = fedstein.train(progress=False, name="other", **SMALL)
    X, known = np.zeros((2, 64)), run.predictions
    both = fedstein.compare([other, run], other_rows=True)
    again = fedstein.train(out="run", force=True, progress=False, seed=2, **SMALL)
    gone = r"the directory run no longer has the run that was opened: .* fedstein.open\('run'\)"
    for read in (
        lambda: run.rounds,
        lambda: run.particles,
        lambda: run.predict(X),
        lambda: run.predict_sets(X),
        lambda: run.predict_uncertainty(X),
        lambda: run.report(),
        lambda: other.report(compare=[run], other_rows=True).html,
        lambda: both.save("both"),
        lambda: pickle.dumps(run),
    ):
        with pytest.raises(fedstein.ConfigError, match=gone):
            read()
    # What was read before stays, and the new run is as it should be.
    assert np.array_equal(run.predictions, known) and run.evaluation != again.evaluation
    assert np.array_equal(again.predict(X), fedstein.open("run").predict(X))
    # The same files in another place of the disk, as from a backup, are the same run.
    shutil.copytree("run", "copy")
    shutil.rmtree("run")
    with pytest.raises(fedstein.ConfigError, match=gone):
        again.predict(X)
    Path("copy").rename("run")
    os.utime("run/summary.json")
    assert np.array_equal(again.predict(X), fedstein.open("run").predict(X))


def test_a_run_that_cannot_go_on_fails_with_the_commands_text() -> None:
    with pytest.raises(fedstein.RunFailed, match="particle 0 is not finite; a smaller optimizer.lr usually helps"):
        fedstein.train(progress=False, rounds=1, algorithm={"kind": "dsvgd", "particles": 4}, **{"optimizer.lr": 1e30})


def test_progress_notes_and_warnings_have_their_usual_places(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="fedstein"):
        fedstein.train(**SMALL)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("digits-newton-bnn: newton-dsvgd, 4 particles") and len(lines) == 4
    assert re.match(r"round 3/3  client 2  accuracy 0\.\d+  NLL", lines[3])
    assert caplog.messages[0] == lines[0]
    assert len(caplog.messages) == 2
    assert re.match(r"digits-newton-bnn is complete, accuracy=0\.\d+, nll=.*, ece=", caplog.messages[1])
    seen: list[dict[str, Any]] = []
    fedstein.train(progress=seen.append, **SMALL)
    assert [record["round"] for record in seen] == [1, 2, 3] and 0 < seen[0]["accuracy"] < 1
    assert capsys.readouterr().err == ""
    with pytest.warns(fedstein.RunWarning, match="the built-in experiment is on `digits`") as caught:
        fedstein.train(progress=False, data={"kind": "twonorm"}, **SMALL)
    # At the caller's line, wherever in the package they come from.
    assert {warning.filename for warning in caught} == {__file__}


def test_notes_on_a_run_are_warnings_and_an_early_end_is_none(caplog: pytest.LogCaptureFixture) -> None:
    X, y, _ = trees()
    with pytest.warns(fedstein.RunWarning) as caught:
        fedstein.train(data=fedstein.Data(X + 1e9, y), progress=False, **{**SMALL, "rounds": 1})
    texts = [str(warning.message) for warning in caught]
    assert any(text.startswith("feature 0: near ") and "subtract a constant" in text for text in texts), texts
    assert any("clients never trained" in text for text in texts)
    assert {warning.filename for warning in caught} == {__file__}
    with warnings.catch_warnings(record=True) as silent, caplog.at_level(logging.INFO, logger="fedstein"):
        warnings.simplefilter("always")
        keys = {**SMALL, "partition.clients": 1, "partition.validation": 0.2, "stop.patience": 1, "optimizer.lr": 1e-30}
        fedstein.train(data=fedstein.Data(X, y), progress=False, **keys)
    assert not [warning for warning in silent if "the run ended" in str(warning.message)]
    assert any(message.startswith("the run ended after round 2 of 3") for message in caplog.messages)


def test_many_whole_numbers_are_taken_for_classes_with_a_warning() -> None:
    X = np.arange(60.0).reshape(30, 2)
    with pytest.warns(fedstein.RunWarning, match=r"y has 30 different whole numbers.*task=\"regression\" if not"):
        fedstein.Data(X, np.arange(30))
    with pytest.warns(fedstein.RunWarning, match=r"y has 30 different whole numbers"):
        fedstein.Data(X, pd.Series(np.arange(30), dtype=object))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fedstein.Data(X, np.arange(30), task="classification")
        fedstein.Data(X, np.arange(30), task="regression")
        fedstein.Data(X, np.arange(30) % 20)


def test_labels_of_signed_and_unsigned_numbers_beyond_floats_are_the_same_classes() -> None:
    X, labels = np.arange(8.0).reshape(4, 2), np.array([2**53, 2**53 + 1] * 2)
    data = fedstein.Data(X, labels.astype(np.uint64), test=(X, labels))
    assert data.classes == [2**53, 2**53 + 1]


def test_shares_and_targets_that_cannot_be_used_are_refused_by_their_names() -> None:
    X, y, _ = trees()
    for share in (0, 1, 1.5, -0.1, float("nan")):
        with pytest.raises(fedstein.DataError, match=f"^test is {share}; a share of the rows is above 0 and below 1"):
            fedstein.Data(X, y, test=share)
    with pytest.raises(fedstein.DataError, match="the target .*e1.*; targets must be finite, and below 3.4e38"):
        fedstein.Data(X, X[:, 0] * 1e160)


def test_what_a_callback_raises_ends_the_run_and_it_resumes_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    class Enough(Exception):
        pass

    def stop(record: dict[str, Any]) -> None:
        if record["round"] == 1:
            raise Enough("that was enough")

    whole = fedstein.train(out="whole", progress=False, **{**SMALL, "rounds": 30})
    with pytest.raises(Enough, match="that was enough"):
        fedstein.train(out="part", progress=stop, **{**SMALL, "rounds": 30})
    assert Path("part/checkpoint").is_dir() and not Path("part/summary.json").exists()
    resumed = fedstein.resume("part", progress=False)
    assert Path("part/particles.safetensors").read_bytes() == Path("whole/particles.safetensors").read_bytes()
    assert len(resumed.rounds["round"]) == 30 and resumed.evaluation == whole.evaluation
    # Without `out` nothing is kept.
    temporary = Path("temporary")
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(temporary.resolve()))
    with pytest.raises(Enough, match="that was enough"):
        fedstein.train(progress=stop, **{**SMALL, "rounds": 30})
    assert not list(temporary.iterdir())
    with pytest.raises(fedstein.ConfigError):
        fedstein.resume("nothing", progress=False)


def test_own_rows_resume_with_the_same_rows_only(command: Command) -> None:
    X, y, sites = trees()
    data = fedstein.Data(X, y, clients=sites)

    def stop(record: dict[str, Any]) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        fedstein.train(data=data, out="part", progress=stop, **{**SMALL, "rounds": 20})
    other = fedstein.Data(X + 1, y, clients=sites)
    with pytest.raises(fedstein.ConfigError, match="rows|data"):
        fedstein.resume("part", data=other, progress=False)
    own = r"the run part has rows of its own, which are not in its directory; .*resume\(.part., data=fedstein.Data"
    with pytest.raises(fedstein.ConfigError, match=own):
        fedstein.resume("part", progress=False)
    with pytest.raises(fedstein.ConfigError, match="go on with `fedstein.resume`, .* choose another `out`"):
        fedstein.train(data=data, out="part", progress=False, **SMALL)
    refused = command("train", "--resume", "part", code=2).stderr
    assert "the run in `part` has rows of its own" in refused and "fedstein.resume with data=" in refused
    whole = fedstein.train(data=data, progress=False, **{**SMALL, "rounds": 20})
    resumed = fedstein.resume("part", data=data, progress=False)
    assert np.array_equal(resumed.predictions, whole.predictions)


def test_the_config_of_a_run_on_own_rows_names_no_data_set(command: Command) -> None:
    X, y, sites = trees()
    data = fedstein.Data(X, y, clients=sites, name="trees")
    turned = {"data": {"rotate": "principal"}, "seed": 3}
    run = fedstein.train(turned, data=data, out="own", progress=False, **SMALL)
    assert run.config["data"] == {"rotate": "principal", "rotate_from": "all-clients", "class_weights": "none"}
    text = Path("own/config.toml").read_text()
    assert "[data]\n# The rows are the program's own, and no data set:" in text and "digits" not in text
    # The file and the dict repeat the run, and the command reads the directory.
    for config in ("own/config.toml", text, run.config):
        again = fedstein.train(config, data=data, progress=False)
        assert np.array_equal(again.predictions, run.predictions) and again.config == run.config
    assert "trees" in command("runs", ".").stdout
    command("report", "own", "--out", "page")
    assert 'type: "own-data"' in Path("page/MODEL_CARD.md").read_text()
    Path("new.csv").write_text("a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in X[:5].tolist()))
    lines = command("predict", "own", "--input", "new.csv").stdout.splitlines()[1:]
    by_command = np.array([[float(p) for p in line.split(",")[2:]] for line in lines])
    assert by_command == pytest.approx(run.predict(X[:5]), abs=1e-6)
    assert "the run's data, `trees`, name no column" in command("evaluate", "own", "--input", "new.csv", code=2).stderr


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"data.kind": "twonorm"}, "`data.kind`"),
        ("[data]\nkind = 'csv'", "`data.kind`"),
        ({"data": {"normalise": "minmax"}}, "`data.normalise`"),
        # A key of another kind than the default's.
        ({"data.target": "y"}, "`data.target`"),
        ({"data": {"path": "x.csv", "target": "y"}}, "`data.path`, `data.target`"),
        ("data.train_limit = 100\ndata.test_fraction = 0.5", "`data.test_fraction`, `data.train_limit`"),
    ],
)
def test_keys_of_a_data_set_are_refused_beside_own_rows(config: Any, named: str) -> None:
    X, y, _ = trees()
    data = fedstein.Data(X, y)
    verb, them = ("have", "them") if ", " in named else ("has", "it")
    with pytest.raises(
        fedstein.ConfigError, match=f"^{named} {verb} no effect beside rows of your own; leave {them} out"
    ):
        fedstein.train(config, data=data, out="run", progress=False, **SMALL)
    assert not Path("run").exists()


def test_a_run_of_an_earlier_version_on_own_rows_resumes_and_opens() -> None:
    X, y, _ = trees()
    data = fedstein.Data(X, y)

    def stop(record: dict[str, Any]) -> None:
        raise KeyError

    many = {**SMALL, "rounds": 20}
    with pytest.raises(KeyError):
        fedstein.train(data=data, out="part", progress=stop, **many)
    # It had the keys of the data set that it did not use.
    file = Path("part/config.toml")
    head, rest = file.read_text().split("[data]\n")
    remark, keys = rest.split("\n", 1)
    assert remark.startswith("# The rows are the program's own")
    unused = 'kind = "digits"\nclasses = []\nnormalise = "auto"\ntest_fraction = 0.2\ntrain_limit = 0\ntest_limit = 0\n'
    file.write_text(f"{head}[data]\n{unused}{keys}")
    whole = fedstein.train(data=data, progress=False, **many)
    resumed = fedstein.resume("part", data=data, progress=False)
    assert np.array_equal(resumed.predictions, whole.predictions)
    assert fedstein.train("part/config.toml", data=data, progress=False).classes == resumed.classes


def test_an_interrupted_run_on_own_rows_says_that_it_needs_them() -> None:
    X, y, _ = trees()

    def stop(record: dict[str, Any]) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(fedstein.Interrupted, match=r'resume with fedstein\.resume\("part", data=\.\.\.\)$') as caught:
        fedstein.train(data=fedstein.Data(X, y), out="part", progress=stop, **{**SMALL, "rounds": 1000})
    assert caught.value.resume == Path("part")


def test_runs_are_compared_in_one_report() -> None:
    one = fedstein.train(progress=False, name="one", **SMALL)
    two = fedstein.train(out="two", progress=False, name="two", seed=2, **SMALL)
    # Another seed draws other test rows.
    with pytest.raises(fedstein.ConfigError, match="other test rows"):
        _ = fedstein.compare([one, "two"]).compared
    report = fedstein.compare([one, "two"], out="both", other_rows=True)
    assert (
        report.compared["two"]["nll"] == two.evaluation["nll"]
        and report.compared["one"]["nll"] == one.evaluation["nll"]
    )
    assert "two" in Path("both/report.html").read_text()
    sizes = {"n": 359, "classes": 10, "bins": 15}
    for numbers in report.compared.values():
        assert {key: numbers[key] for key in sizes} == sizes
    with pytest.raises(fedstein.DataError, match="at least 2"):
        fedstein.compare([one])
    for single in (one, "two"):
        with pytest.raises(fedstein.DataError, match="runs is a (Run|str); it must be a list of runs and paths"):
            fedstein.compare(single)  # type: ignore[arg-type]
    with pytest.raises(fedstein.DataError, match="compare is a str; it must be a list"):
        one.report(compare="two")


def test_compared_runs_are_called_by_their_names_and_never_by_a_title() -> None:
    runs = [fedstein.train(progress=False, name=name, **{**SMALL, "rounds": rounds}) for rounds, name in
            ((1, "lr"), (2, "lr"), (3, "x"), (4, "lr"))]  # fmt: skip
    for title in (None, "My comparison", "x"):
        compared = fedstein.compare(runs, title=title).compared
        assert list(compared) == ["lr", "lr (2)", "x", "lr (3)"]
        assert [numbers["nll"] for numbers in compared.values()] == [run.evaluation["nll"] for run in runs]
    assert list(runs[2].report(compare=[runs[0].path]).compared) == ["x", "lr"]
    assert list(fedstein.report([0.2, 0.9], [0, 1], title="mine").compared) == ["mine"]


LONG = "rounds=100000, algorithm={'particles': 4, 'local_steps': 5}, model={'hidden': [8]}"


def test_ctrl_c_ends_a_run_at_a_rounds_end_with_a_checkpoint(script: Any) -> None:
    text = f"""
import sys, fedstein
def show(record): print(record["round"], flush=True)
try:
    fedstein.train(out="run", progress=show, {LONG})
except KeyboardInterrupt as error:
    print(type(error).__name__, error.resume, error)
    sys.exit(7)
"""
    process = subprocess.Popen(script(text), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while process.stdout.readline() != "2\n":
        pass
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=30)
    assert process.returncode == 7, rest
    last = rest.splitlines()[-1]
    found = re.fullmatch(
        r"Interrupted run interrupted after round (\d+) of 100000; the checkpoint of round \1 is complete; "
        r'resume with fedstein\.resume\("run"\)',
        last,
    )
    assert found, last
    done = int(found[1])
    resumed = fedstein.resume("run", progress=False, rounds=done + 2)
    whole = fedstein.train(out="whole", progress=False, **{**SMALL, "rounds": done + 2})
    assert np.array_equal(resumed.predictions, whole.predictions)


def test_python_threads_go_on_while_a_run_computes() -> None:
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.02):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    fedstein.train(progress=False, rounds=6)
    seconds = time.perf_counter() - start
    done.set()
    thread.join()
    # 50 a second without load; a run that held the lock would leave none.
    assert ticks > 10 * seconds, (ticks, seconds)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_refused_with_a_sentence(script: Any) -> None:
    text = """
import os, sys, fedstein
fedstein.report([0.5], [1])
if os.fork() == 0:
    try:
        fedstein.report([0.5], [1])
    except fedstein.RunFailed as error:
        print(error, flush=True)
        os._exit(0)
    os._exit(1)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    done = subprocess.run(script(text), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and 'get_context("spawn")' in done.stdout, done


def test_the_command_is_the_whole_command(command: Command) -> None:
    assert command("--version").stdout == f"fedstein {fedstein.__version__}\n"
    assert "flex" in command("backends").stdout
    assert "unknown key `roundz`" in command("train", "--set", "roundz=1", code=2).stderr
    module = subprocess.run([sys.executable, "-m", "fedstein", "--version"], capture_output=True, text=True, check=True)
    assert module.stdout == f"fedstein {fedstein.__version__}\n"


def test_the_command_starts_itself_for_sites(command: Command) -> None:
    config = Path("config.toml")
    config.write_text("rounds = 2\npartition = { kind = 'iid', clients = 2 }\nmodel = { hidden = [8] }\n")
    command("site", "split", "config.toml", "--out", "rehearsal")
    command(
        "train",
        "rehearsal/run.toml",
        "--sites",
        "rehearsal/0/site.toml,rehearsal/1/site.toml",
        "--out",
        "sites",
        "--quiet",
    )
    assert Path("sites/particles.safetensors").exists()


def test_ctrl_c_ends_the_command_as_it_ends_the_binary(tmp_path: Path) -> None:
    args = [
        sys.executable,
        "-m",
        "fedstein",
        "train",
        "--json",
        "--set",
        "rounds=100000",
        "--out",
        os.fspath(tmp_path / "run"),
    ]
    process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "resume with: fedstein train --resume" in errors
    assert "Traceback" not in errors


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
