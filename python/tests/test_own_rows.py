"""Rows of the program: `fedstein.Data`, what is refused, and runs on them."""

from __future__ import annotations

import json
import os
import signal
import sys
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
from conftest import SMALL, Command, trees


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
    with pytest.raises(fedstein.DataError, match="^features: a row has 2 values; the run was trained on rows of 3$"):
        run.predict(X[:, :2])
    with pytest.raises(fedstein.DataError, match="2 columns 'a'"):
        run.predict(pd.concat([frame, frame[["a"]]], axis=1))


def test_test_rows_of_a_table_with_new_names_are_found_by_the_old_ones() -> None:
    X, y, _ = trees()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    renamed = frame.set_axis(["x", "y", "z"], axis=1)
    runs = [
        fedstein.train(data=fedstein.Data(frame, y, feature_names=["x", "y", "z"], test=(rows, y)), **SMALL)
        for rows in (X, frame[["c", "a", "b"]], renamed[["z", "x", "y"]])
    ]
    for run in runs:
        assert np.array_equal(run.predictions, runs[0].predictions) and np.array_equal(
            run.predict(renamed[["y", "z", "x"]]), run.predict(X)
        )
    with pytest.raises(fedstein.DataError, match="feature_names calls the column 'a' 'b'"):
        fedstein.Data(frame, y, feature_names=["b", "a", "c"])


def test_columns_that_are_called_true_and_false_are_found_by_them() -> None:
    X, y, _ = trees()
    frame = pd.DataFrame(X[:, :2], columns=[False, True])
    run = fedstein.train(data=fedstein.Data(frame, y), **SMALL)
    assert np.array_equal(run.predict(frame[:2].iloc[:, [1, 0]]), run.predict(frame[:2]))


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


def test_wrong_rows_are_refused() -> None:
    X, y, sites = trees(20)
    bad = X.copy()
    bad[3, 1] = np.inf
    for build, message in (
        (lambda: fedstein.Data(bad, y), "row 3, feature 1 is inf"),
        (lambda: fedstein.Data(X, y[:5]), "^y: 5 values for 20 rows$"),
        (lambda: fedstein.Data(X, y[:1], task="regression"), "^y: 1 value for 20 rows$"),
        (lambda: fedstein.Data(X, y, test=(X[:1], y)), "^test y: 20 values for 1 row$"),
        (lambda: fedstein.Data(X, y, clients=sites, test=(X, y, sites[:2])), "^test clients: 2 values for 20 rows$"),
        (lambda: fedstein.Data(X[:, 0], y), r"shape \[20\]; they must be \[n, p\]"),
        (lambda: fedstein.Data(X, y, clients=sites[:3]), "^clients: 3 values for 20 rows$"),
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


def test_categories_are_classes_whatever_their_names() -> None:
    X, y = np.arange(12.0).reshape(6, 2), pd.Series([1.0, 2.5, 1.0, 2.5, 1.0, 2.5])
    assert fedstein.Data(X, y).classes is None
    assert fedstein.Data(X, y.astype("category")).classes == [1.0, 2.5]


def test_tables_of_pyarrow_are_refused_as_their_columns_have_no_names() -> None:
    class Table:
        """What the package sees of a pyarrow.Table."""

        column_names = ("a", "b")
        columns = ([1.0, 2.0], [3.0, 4.0])

        def to_pandas(self) -> pd.DataFrame:
            return pd.DataFrame(dict(zip(self.column_names, self.columns, strict=True)))

    for refused in (lambda: fedstein.Data(Table(), [0, 1]), lambda: fedstein.report(Table(), [0, 1])):
        with pytest.raises(fedstein.DataError, match=r"a Table of pyarrow is not taken; pass its .to_pandas\(\)"):
            refused()


def test_dates_are_refused_as_features_and_as_targets() -> None:
    days = np.arange(6).astype("datetime64[D]")
    pairs = np.empty((6, 2), dtype=object)
    pairs[:, 0], pairs[:, 1] = list(days), 1.0
    for X, y, what in (
        (days[:, None], [0, 1] * 3, "features"),
        (pd.DataFrame({"day": days}), [0, 1] * 3, "features"),
        (pl.DataFrame({"x": np.ones(6), "day": days}), [0, 1] * 3, "features"),
        (pl.DataFrame({"x": np.ones(6), "stay": (days - days[0]).astype("timedelta64[ms]")}), [0, 1] * 3, "features"),
        (pairs, [0, 1] * 3, "features"),
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


def test_images_of_other_sides_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1, 4, 6))
    run = fedstein.train(data=fedstein.Data(X, np.arange(40) % 2), progress=False, **SMALL)
    want = run.predict(X)
    for same in (X.reshape(40, 24), X.reshape(40, 4, 6)):
        assert np.array_equal(run.predict(same), want)
    with pytest.raises(fedstein.DataError, match=r"the shape \[1, 6, 4\]; the run was trained on rows of \[1, 4, 6\]"):
        run.predict(X.reshape(40, 1, 6, 4))


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


def test_texts_that_are_not_unicode_are_refused_by_their_place() -> None:
    X, y, _ = trees(20)
    # What Python makes of a file in Latin-1 with errors="surrogateescape".
    strange = b"caf\xe9".decode("utf-8", "surrogateescape")
    two = np.array(["a", strange] * 10)
    p = np.tile([0.3, 0.7], (20, 1))
    lone = r"'caf\\udce9' has a lone surrogate, and is no Unicode text; read its file with the encoding that it has$"
    for build, what in (
        (lambda: fedstein.Data(X, two), "labels"),
        (lambda: fedstein.Data(X, y, clients=two), "clients"),
        (lambda: fedstein.Data(pd.DataFrame(X, columns=["a", strange, "c"]), y), "features"),
        (lambda: fedstein.Data(X, y, feature_names=["a", strange, "c"]), "feature_names"),
        (lambda: fedstein.Data(X, y, name=strange), "name"),
        (lambda: fedstein.report(p, two, classes=["a", strange]), "classes"),
        (lambda: fedstein.report(pd.DataFrame(p, columns=["a", strange]), two), "columns"),
        (lambda: fedstein.report(p, [0, 1] * 10, groups=two), "groups"),
        (lambda: fedstein.report(p, [0, 1] * 10, title=strange), "title"),
    ):
        with pytest.raises(fedstein.DataError, match=f"^{what}: {lone}"):
            build()
    # Which rows belong together has no names.
    assert repr(fedstein.Data(X, y, groups=two, test=0.5)).startswith("Data(10 training rows")
    assert fedstein.report(p, [0, 1] * 10, clusters=two).rows == 20
    for config, message in (
        ({"name": strange}, r"^`name` cannot be 'caf\\udce9'; it has a lone surrogate"),
        ({"data": {"path": strange}}, r"^`data.path` cannot be 'caf\\udce9'; it has a lone surrogate"),
        ({strange: 1}, r"^'caf\\udce9' is not the name of a key"),
        (f"name = '{strange}'", "^config: the text has a lone surrogate"),
        ("\ud800.toml", r"^config is '\\ud800.toml'; no file can have this name"),
    ):
        with pytest.raises(fedstein.ConfigError, match=message):
            fedstein.train(config, progress=False)
    for call in (fedstein.open, fedstein.resume, fedstein.report(p, [0, 1] * 10).save):
        with pytest.raises(fedstein.ConfigError, match="no file can have this name"):
            call("\ud800")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_file_whose_name_is_not_unicode_is_a_config() -> None:
    X, y, _ = trees()
    file, out = (os.fsdecode(name) for name in (b"caf\xe9.toml", b"caf\xe9"))
    Path(file).write_text("rounds = 1\nmodel.hidden = [4]\nspeed = 3\n")
    with pytest.raises(fedstein.ConfigError, match="caf\ufffd.toml, line 3: unknown key `speed`"):
        fedstein.train(file, progress=False)
    Path(file).write_text("rounds = 1\nmodel.hidden = [4]\n")
    run = fedstein.train(file, data=fedstein.Data(X, y), out=out, progress=False)
    assert np.array_equal(fedstein.open(out).predictions, run.predictions)
    longer = fedstein.resume(out, data=fedstein.Data(X, y), progress=False, rounds=2)
    assert len(longer.rounds["nll"]) == 2
