from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import fedstein
import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import LIMIT, Command, Predictions, drawn
from scipy import sparse, stats
from sklearn import metrics


def test_the_numbers_are_those_of_scikit_learn(predictions: Predictions) -> None:
    probabilities, labels = predictions
    report = fedstein.report(probabilities, labels)
    assert report.rows == 500
    assert report.accuracy == metrics.accuracy_score(labels, probabilities.argmax(axis=1))
    # Sums in another order.
    assert report.nll == pytest.approx(metrics.log_loss(labels, probabilities), rel=1e-12)
    one_hot = np.eye(4)[labels]
    assert report.brier == pytest.approx(((probabilities - one_hot) ** 2).sum(axis=1).mean(), rel=1e-12)
    binary = fedstein.report(probabilities[:, :2] / probabilities[:, :2].sum(axis=1, keepdims=True), labels % 2)
    assert binary.brier == 2 * binary.table()["brier_binary"]


def test_one_column_is_the_probability_of_class_1() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(300)
    y = rng.random(300) < p
    one, column = fedstein.report(p, y), fedstein.report(p[:, None], y)
    two = fedstein.report(np.column_stack([1 - p, p]), y)
    assert one.table() == two.table() == column.table()
    assert one.table()["brier_binary"] == pytest.approx(metrics.brier_score_loss(y, p), rel=1e-12)
    with pytest.raises(fedstein.DataError, match=r"row 1: the probability of class 1 is 1\.1"):
        fedstein.report([0.5, 1.1], [0, 1])


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_matrix_of_numpy_with_one_column_is_a_vector() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(300)
    y = rng.random(300) < p
    assert fedstein.report(np.matrix(p).T, np.matrix(y).T).table() == fedstein.report(p, y).table()


def test_probabilities_that_leave_their_range_by_rounding_are_accepted() -> None:
    rounded = [[1 - 0.9 - 0.1, 0.9, 0.1], [0.0, 1 + 2**-23, 0.0]]
    assert rounded[0][0] < 0
    report = fedstein.report(np.array(rounded, dtype=np.float32), [1, 1])
    assert report.nll == pytest.approx(-np.log(0.9) / 2, rel=1e-6) and report.accuracy == 1


def test_the_interval_of_an_accuracy_of_1_has_a_width() -> None:
    report = fedstein.report([0.9] * 50, [1] * 50)
    # SciPy: binomtest(50, 50).proportion_ci(0.95, "wilson").
    assert report.intervals["accuracy"] == pytest.approx((0.9286524008666412, 1.0), rel=1e-12)


def test_intervals_count_clusters_where_rows_belong_together() -> None:
    rng = np.random.default_rng(3)
    # 60 patients with five visits of one outcome and one prediction.
    p = rng.uniform(0.05, 0.95, 60)
    y = (rng.uniform(size=60) < p).astype(int)
    probabilities, labels, patients = np.repeat(p, 5), np.repeat(y, 5), np.repeat(np.arange(60), 5)
    alone = fedstein.report(probabilities, labels)
    together = fedstein.report(probabilities, labels, clusters=[f"P{patient}" for patient in patients])
    assert (together.accuracy, together.auroc) == (alone.accuracy, alone.auroc)
    # One visit of each patient tells the same, but for the divisor m - 1 of a variance by m clusters.
    visit = fedstein.report(p, y)
    for key in ("accuracy", "nll", "auroc", "calibration_slope"):
        one, many, by_rows = (np.ptp(of.intervals[key]) for of in (visit, together, alone))
        assert one == pytest.approx(many, rel=0.15), key
        assert many > 1.8 * by_rows, key
    assert together.to_dict()["overall"]["clusters"] == 60
    assert "clusters" not in visit.to_dict()["overall"]
    real = fedstein.report_regression(p, np.full(60, 0.3), y.astype(float), clusters=np.arange(60) // 3)
    assert real.to_dict()["overall"]["clusters"] == 20
    with pytest.raises(fedstein.DataError, match="299 clusters for 300 rows"):
        fedstein.report(probabilities, labels, clusters=patients[1:])
    with pytest.raises(fedstein.DataError, match="clusters"):
        fedstein.report(probabilities, labels, clusters=[None, *patients[1:]])


class Dlpack:
    """An array of a library that knows nothing but DLPack."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __dlpack__(self, **keys: Any) -> Any:
        return self._array.__dlpack__(**keys)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_arrays_of_every_library_and_layout_give_the_same_numbers(predictions: Predictions) -> None:
    probabilities, labels = predictions
    want = fedstein.report(probabilities, labels).table()
    wide = np.zeros((500, 8))
    wide[:, ::2] = probabilities
    frame = pd.DataFrame(probabilities, columns=list("abcd"))
    for given in (
        np.asfortranarray(probabilities),
        wide[:, ::2],
        np.repeat(probabilities, 2, axis=0)[::2],
        probabilities.astype(">f8"),
        probabilities.tolist(),
        frame,
        pl.DataFrame(frame.to_dict("list")),
        Dlpack(probabilities),
        memoryview(probabilities),
    ):
        assert fedstein.report(given, labels).table() == want
    for given in (
        labels.astype(np.uint8),
        labels.astype(float),
        labels[:, None],
        labels.tolist(),
        pd.Series(labels),
        pl.Series(labels),
        Dlpack(labels),
    ):
        assert fedstein.report(probabilities, given).table() == want
    single = fedstein.report(probabilities.astype(np.float32), labels)
    assert single.nll == pytest.approx(want["nll"], rel=1e-6)
    assert single.table() == fedstein.report(probabilities.astype(np.float32).astype(float), labels).table()


class Tensor:
    """A tensor of PyTorch that records gradients: it becomes an array only after `detach`."""

    def __init__(self, array: np.ndarray[Any, Any], records: bool = True) -> None:
        self._array, self._records = array, records

    def detach(self) -> Tensor:
        return Tensor(self._array, records=False)

    def cpu(self) -> Tensor:
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self._records:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self._array


def test_tensors_of_pytorch_and_arrays_of_jax_give_the_same_numbers(predictions: Predictions) -> None:
    probabilities, labels = predictions
    want = fedstein.report(probabilities, labels).table()
    assert fedstein.report(Tensor(probabilities), Tensor(labels)).table() == want
    single = fedstein.report(probabilities.astype(np.float32), labels).table()
    if importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        tensor = torch.tensor(probabilities, requires_grad=True)
        assert fedstein.report(tensor, torch.tensor(labels)).table() == want
        assert fedstein.report(tensor.float(), torch.tensor(labels)).table() == single
    if importlib.util.find_spec("jax"):
        numbers = importlib.import_module("jax.numpy")
        assert fedstein.report(numbers.array(probabilities), numbers.array(labels)).table() == single


def test_predictions_without_skill_have_a_warning() -> None:
    labels = np.array([0, 0, 1] * 20)
    worse = fedstein.report(np.tile([0.4, 0.6], (60, 1)), labels).warning
    assert worse is not None and "less often right than always naming the most frequent class" in worse
    assert "no lower than that of predicting the frequencies" in worse
    assert fedstein.report(np.where(labels == 1, 0.9, 0.1), labels).warning is None
    targets = np.arange(60.0)
    constant = fedstein.report_regression(np.full(60, 20.0), np.full(60, 5.0), targets)
    assert constant.warning is not None and constant.warning.startswith("The RMSE is no lower than")


def test_names_of_classes_are_labels_and_appear_on_the_page(predictions: Predictions) -> None:
    probabilities, labels = predictions
    names = ["wolf", "alder", "yew", "birch"]
    report = fedstein.report(probabilities, [names[label] for label in labels], classes=names)
    assert report.table() == fedstein.report(probabilities, labels).table()
    assert all(name in report.html for name in names)
    with pytest.raises(fedstein.DataError, match="labels have 'oak', which is not among the classes 'wolf', 'alder'"):
        fedstein.report(probabilities, ["oak"] * 500, classes=names)
    with pytest.raises(fedstein.DataError, match="3 names; the probabilities have 4 columns"):
        fedstein.report(probabilities, labels, classes=names[:3])


def test_the_columns_of_a_table_are_found_by_their_names(predictions: Predictions) -> None:
    probabilities, labels = predictions
    names = ["wolf", "alder", "yew", "birch"]
    words = [names[label] for label in labels]
    want = fedstein.report(probabilities, labels).table()
    frame = pd.DataFrame(probabilities, columns=names)
    for table in (frame, frame[sorted(names)], pl.DataFrame(frame[names[::-1]].to_dict("list"))):
        assert fedstein.report(table, words, classes=names).table() == want
        # Without classes, the columns are these, and sums are in their order.
        report = fedstein.report(table, words)
        assert report.table() == pytest.approx(want, rel=1e-12, nan_ok=True) and "birch" in report.html
    # Labels that are no names are numbers of columns; columns of other names stay where they are.
    assert fedstein.report(frame, labels).table() == want
    assert fedstein.report(frame.add_prefix("p_"), words, classes=names).table() == want
    truths = pd.DataFrame({"True": [0.9, 0.2], "False": [0.1, 0.8]})
    assert fedstein.report(truths, np.array([True, False])).accuracy == 1
    # Names may be numbers, but those that a library gives are none.
    years = frame.set_axis([2003, 2001, 2002, 2004], axis=1)
    assert fedstein.report(years, np.array([2003, 2001, 2002, 2004])[labels]).table() == want
    with pytest.raises(fedstein.DataError, match="labels have 0, which is not among the classes '2003', '2001'"):
        fedstein.report(years, labels * 0)
    for plain in (pd.DataFrame(probabilities), pl.DataFrame(probabilities)):
        assert fedstein.report(plain, labels).table() == want
        assert fedstein.report(plain, 3 - labels, classes=[3, 2, 1, 0]).table() == want
        with pytest.raises(fedstein.DataError, match="pass the names of the columns"):
            fedstein.report(plain, words)
    with pytest.raises(fedstein.DataError, match="labels have 'oak', which is not among the classes 'wolf'"):
        fedstein.report(frame, ["oak"] * 500)
    with pytest.raises(fedstein.DataError, match="classes: a name appears twice"):
        fedstein.report(frame.set_axis([*"aabc"], axis=1), list("abca") * 125, classes=list("abca"))


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        ([1.0, 2.0], [1, 2]),
        ([1.0, 2.0], [1.0, 2.0]),
        ([1.0, 0.0], [1, 0]),
        ([1, 2], [1.0, 2.0]),
        ([-1.0, 1.0], [-1, 1]),
        (["1.0", "2.0"], [1, 2]),
        ([True, False], [1, 0]),
        ([True, False], [True, False]),
        ([False, True], [0, 1]),
        ([1, 0], [True, False]),
        (["True", "False"], [1, 0]),
        ([2.0, 1.0], ["2", "1"]),
    ],
)
def test_labels_and_columns_are_matched_by_value(columns: list[Any], labels: Any) -> None:
    p = np.tile([[0.9, 0.1], [0.2, 0.8]], (2, 1))
    table = pd.DataFrame(p, columns=pd.Index(columns, dtype=object))
    given = np.concatenate([labels, labels])
    tables: list[Any] = [table, table.set_axis(pd.Index(columns), axis=1)]
    tables.append(pl.DataFrame({str(name): p[:, at] for at, name in enumerate(columns)}))
    for each in tables:
        for of in (given, given.tolist(), given.astype(object)):
            assert fedstein.report(each, of).accuracy == 1, (each.columns, of)
            # The names in the other order, and a column that is none of them.
            assert fedstein.report(each, of, classes=labels[::-1]).accuracy == 1
    other = table.iloc[:, ::-1].set_axis(pd.Index(columns[::-1], dtype=object), axis=1)
    assert fedstein.report(other, given).accuracy == 1


def test_labels_that_are_no_names_of_columns_are_refused() -> None:
    p = [[0.9, 0.1], [0.2, 0.8]]
    places = r"labels have 0, .* 'a', 'b'; where they are places in `classes`, pass np.asarray\(classes\)\[labels\]$"
    with pytest.raises(fedstein.DataError, match=places):
        fedstein.report(p, [0, 1], classes=["a", "b"])
    for columns, labels, message in (
        (["yes", "no"], [True, False], "labels have (True|False), which is not among the classes 'yes', 'no'"),
        (["yes", "no"], np.array([True, 0], dtype=object), "labels have True, which is not among the classes"),
        ([1.0, 2.0], [0, 1], "labels have 0, which is not among the classes '1.0', '2.0'"),
        ([True, False], [0, 2], "labels have 2, which is not among the classes 'True', 'False'"),
        (["a", "1.0"], [0, 1], "labels have 0, which is not among the classes 'a', '1.0'"),
        (["p_1", "p_0"], [0, 1], "the column 'p_1' of the probabilities stands where 'p_0' belongs"),
        (["a", "b"], ["a", "c"], "labels have 'c', which is not among the classes 'a', 'b'"),
    ):
        with pytest.raises(fedstein.DataError, match=message):
            fedstein.report(pd.DataFrame(p, columns=columns), labels)
    # True and 1 are different names where a column is called as each of them.
    two = np.array([1, True], dtype=object)
    assert fedstein.report(pd.DataFrame(p, columns=["1", "True"]), two).accuracy == 1
    # Where two columns are the same number, the label's own spelling says which.
    both = pd.DataFrame(p, columns=["1", "1.0"])
    assert fedstein.report(both, ["1", "1.0"]).accuracy == 1
    with pytest.raises(fedstein.DataError, match="several of the columns '1', '1.0' have the same name"):
        fedstein.report(both, ["1.00", "1"])
    assert fedstein.report(pd.DataFrame(p, columns=["p_0", "p_1"]), [0, 1]).accuracy == 1
    assert fedstein.report(pd.DataFrame(p, columns=["no", "yes"]), [0, 1]).accuracy == 1


def test_classes_are_all_columns_of_a_table_or_none() -> None:
    p = pd.DataFrame({"dog": [0.9, 0.8], "cat": [0.1, 0.2]})
    labels = ["dog", "dog"]
    for table in (p, p.assign(id=[7, 8]), pl.DataFrame({"id": [7, 8], **p.to_dict("list"), "more": ["x", "y"]})):
        assert fedstein.report(table, labels, classes=["cat", "dog"]).accuracy == 1
    words = "the probabilities have no column 'cat', and one for 'dog'; their columns are 'dog', 'cat '"
    with pytest.raises(fedstein.DataError, match=words):
        fedstein.report(p.rename(columns={"cat": "cat "}), labels, classes=["cat", "dog"])
    with pytest.raises(fedstein.DataError, match="2 columns 'dog'"):
        fedstein.report(p.assign(x=0.0).set_axis(["dog", "cat", "dog"], axis=1), labels, classes=["cat", "dog"])
    # None of them: the columns are in their order.
    other = p.set_axis(["p", "q"], axis=1)
    assert fedstein.report(other, labels, classes=["dog", "cat"]).accuracy == 1
    with pytest.raises(fedstein.DataError, match="classes has 1 name; the probabilities have 2 columns"):
        fedstein.report(other, labels, classes=["dog"])
    with pytest.raises(
        fedstein.DataError, match="the column 'p_dog' of the probabilities stands where 'p_cat' belongs"
    ):
        fedstein.report(p.add_prefix("p_"), labels, classes=["cat", "dog"])
    numbers = p.set_axis([1.0, 0.0], axis=1)
    assert fedstein.report(numbers, [1, 1], classes=[0, 1]).accuracy == 1


def test_the_groups_of_a_categorical_of_pandas_are_in_the_order_of_its_categories(predictions: Predictions) -> None:
    probabilities, labels = predictions
    age = pd.Series(np.arange(500) % 90)
    bands = pd.cut(age, [-1, 30, 60, 100], labels=["young", "mid", "old"])
    report = fedstein.report(probabilities, labels, groups=bands)
    assert list(report.groups) == ["young", "mid", "old"] == [g["name"] for g in report.to_dict()["groups"]]
    assert report.groups["mid"] == fedstein.report(probabilities[bands == "mid"], labels[bands == "mid"]).table()
    gaps = bands.where(age < 80)
    own = pd.Categorical(gaps, categories=["unused", "old", "mid", "young"])
    assert list(fedstein.report(probabilities, labels, groups=own).groups) == ["old", "mid", "young", "nan"]
    halves = pd.Series(pd.Categorical((age % 2).astype(float), categories=[1.0, 0.5, 0.0]))
    assert list(fedstein.report(probabilities, labels, groups=halves).groups) == ["1", "0"]
    mean, sd = np.zeros(500), np.ones(500)
    assert list(fedstein.report_regression(mean, sd, mean, groups=bands).groups) == ["young", "mid", "old"]


def test_values_without_rows_or_without_an_order_are_refused() -> None:
    p = [[0.9, 0.1], [0.2, 0.8]]
    for labels, message in (
        ((at for at in (0, 1)), "^labels: a generator is read once; pass a list or an array$"),
        (map(int, "01"), "^labels: a map is read once"),
        ({0, 1}, "^labels: a set has no rows in an order"),
        ({0: 1, 1: 0}, "^labels: a dict has no rows in an order"),
    ):
        with pytest.raises(fedstein.DataError, match=message):
            fedstein.report(p, labels)
    with pytest.raises(fedstein.DataError, match="^probabilities: a generator is read once"):
        fedstein.report((row for row in p), [0, 1])
    lazy = pl.DataFrame({"a": [0.9, 0.2], "b": [0.1, 0.8]}).lazy()
    with pytest.raises(
        fedstein.DataError, match=r"^probabilities: a LazyFrame has no rows yet; pass its .collect\(\)$"
    ):
        fedstein.report(lazy, [0, 1])
    with pytest.raises(fedstein.DataError, match=r"^features: a LazyFrame has no rows yet; pass its .collect\(\)$"):
        fedstein.Data(lazy, [0, 1])
    with pytest.raises(fedstein.DataError, match=r"^targets: a LazyFrame has no rows yet"):
        fedstein.report_regression([0.0], [1.0], lazy)
    missing = pd.DataFrame({"a": [0.9, 0.2], "b": [0.1, None]}).astype("Float64")
    with pytest.raises(fedstein.DataError, match="^probabilities: row 1 has no value in column 'b'; leave such rows"):
        fedstein.report(missing, [0, 1])
    with pytest.raises(fedstein.DataError, match="^probabilities: row 1 has no value in column 1; leave such rows"):
        fedstein.report(np.array([[0.9, 0.1], [0.2, pd.NA]], dtype=object), [0, 1])
    with pytest.raises(fedstein.DataError, match="^means: row 0 has no value; leave such rows"):
        fedstein.report_regression(np.array([pd.NA, 0.5], dtype=object), [1.0, 1.0], [0.0, 0.0])
    # Whole numbers and truth values are labels in an array of objects too.
    assert fedstein.report(p, np.array([0, True], dtype=object)).accuracy == 1
    with pytest.raises(fedstein.DataError, match="labels: row 1 is 9223372036854775808, which is out of range"):
        fedstein.report(p, np.array([0, 2**63], dtype=object))


def test_labels_are_found_by_the_texts_of_the_classes(predictions: Predictions) -> None:
    probabilities, labels = predictions
    want = fedstein.report(probabilities, labels).table()
    texts = ["5", "6", "7", "8"]
    for given in (labels + 5, (labels + 5).tolist(), pd.Series(labels + 5), np.array(labels + 5, dtype=object)):
        assert fedstein.report(probabilities, given, classes=texts).table() == want
    binary = fedstein.report(probabilities[:, 0], labels == 0, classes=["False", "True"])
    assert binary.table() == fedstein.report(probabilities[:, 0], labels == 0).table()
    # By value: floating point numbers that are whole, and truth values.
    for given in (labels + 5.0, [str(label + 5.0) for label in labels]):
        assert fedstein.report(probabilities, given, classes=texts).table() == want
    first = fedstein.report(probabilities[:, 0], labels == 0).table()
    assert fedstein.report(probabilities[:, 0], (labels == 0) * 1, classes=["False", "True"]).table() == first
    with pytest.raises(
        fedstein.DataError, match="labels have (True|False), which is not among the classes 'no', 'yes'"
    ):
        fedstein.report(probabilities[:, 0], labels == 0, classes=["no", "yes"])
    with pytest.raises(fedstein.DataError, match="labels have 9, which is not among the classes '5', '6'"):
        fedstein.report(probabilities, labels + 6, classes=texts)


def test_sparse_matrices_are_refused_with_what_makes_them_dense() -> None:
    for values in (sparse.csr_matrix(np.eye(2)), sparse.coo_array(np.eye(2))):
        with pytest.raises(
            fedstein.DataError, match=r"^probabilities: a sparse co?[os].*toarray\(\).*sparse_output=False"
        ):
            fedstein.report(values, [0, 1])
        with pytest.raises(fedstein.DataError, match=r"^features: a sparse .*toarray\(\).*sparse_output=False"):
            fedstein.Data(values, [0, 1])


def test_each_group_has_the_numbers_of_its_own_rows(predictions: Predictions) -> None:
    probabilities, labels = predictions
    groups = np.where(np.arange(500) < 200, "north", "south")
    report = fedstein.report(probabilities, labels, groups=groups)
    assert list(report.groups) == ["north", "south"]
    assert report.groups["north"] == fedstein.report(probabilities[:200], labels[:200]).table()
    assert report.groups["south"]["n"] == 300


def test_groups_are_on_the_page_and_in_the_files(predictions: Predictions) -> None:
    probabilities, labels = predictions
    # A name that a page could misread, and a group with too few rows to tell.
    groups = np.where(np.arange(500) < 200, "<b>north</b>, old", "south").astype(object)
    groups[:3] = "tiny"
    report = fedstein.report(probabilities, labels, groups=groups)
    assert "&lt;b&gt;north&lt;/b&gt;, old" in report.html and "<b>north" not in report.html
    found = report.to_dict()["groups"]
    assert [group["name"] for group in found] == ["<b>north</b>, old", "south", "tiny"] == list(report.groups)
    assert found[2]["verdict"]["kind"] == "too few rows" and found[2]["overall"]["n"] == 3
    alone = fedstein.report(probabilities[200:], labels[200:]).to_dict()
    assert all(found[1][key] == alone[key] for key in ("overall", "verdict", "confidence_intervals"))
    report.save("out")
    assert "<h2>Groups</h2>" in Path("out/report.html").read_text()
    table = pd.read_csv("out/groups.csv")
    assert list(table["group"]) == list(report.groups) and list(table["n"]) == [197, 300, 3]
    assert table["nll"][1] == report.groups["south"]["nll"]
    without = fedstein.report(probabilities, labels)
    assert without.groups == {} and "groups" not in without.to_dict() and "<h2>Groups</h2>" not in without.html


def test_groups_of_any_type_are_sorted_and_named(predictions: Predictions) -> None:
    probabilities, labels = predictions
    year = np.arange(500) % 3 + 9
    for groups, names in (
        (year, ["9", "10", "11"]),
        (pd.Series(year), ["9", "10", "11"]),
        (pd.Categorical(["b", "a"] * 250), ["a", "b"]),
        (pl.Series(["b", "a"] * 250), ["a", "b"]),
        (np.where(year == 9, np.nan, 0.5), ["0.5", "nan"]),
        ([None, "x"] * 250, ["x", "None"]),
        # A missing value makes whole numbers floating point numbers, and is the last group.
        (pd.Series(year).astype("Int64").where(year != 11), ["9", "10", "nan"]),
        (pd.Series(np.where(year == 11, np.nan, year)), ["9", "10", "nan"]),
        (np.where(year == 11, None, year), ["9", "10", "None"]),
        (np.where(year == 11, None, year.astype(float)), ["9", "10", "None"]),
        (np.where(year == 9, 0.5, year), ["0.5", "10.0", "11.0"]),
        ([1, "x"] * 250, ["1", "x"]),
        (np.array([1, 1.0] * 250, dtype=object), ["1"]),
        (year > 9, ["False", "True"]),
    ):
        report = fedstein.report(probabilities, labels, groups=groups)
        assert list(report.groups) == names
        assert sum(group["n"] for group in report.groups.values()) == 500
    many = fedstein.report(probabilities, labels, groups=np.arange(500) // 5)
    assert len(many.groups) == 100 and "has the 50 groups with the most rows, of 100" in many.html
    for wrong in ([1, "1"] * 250, np.array([1, "1"] * 250, dtype=object)):
        with pytest.raises(fedstein.DataError, match="1 and '1' are different and have one name"):
            fedstein.report(probabilities, labels, groups=wrong)
    with pytest.raises(fedstein.DataError, match="499 groups for 500 rows"):
        fedstein.report(probabilities, labels, groups=year[1:])


def test_a_wrong_row_is_named() -> None:
    good = [[0.5, 0.5], [0.5, 0.5]]
    for probabilities, labels, message in (
        ([[0.5, 0.5], [0.5, 0.6]], [0, 1], r"row 1: the probabilities sum to 1.1"),
        ([[0.5, 0.5], [np.nan, 1]], [0, 1], r"row 1: the probability of class 0 is NaN"),
        (good, [0, 2], r"row 1: label 2 is out of range"),
        (good, [0, -1], r"row 1: label -1 is below 0"),
        (good, [0, 0.5], r"row 1 is 0.5, which is no whole number"),
        (good, ["a", "b"], r"pass the names of the columns as classes"),
        (good, [0], r"1 label for 2 rows of probabilities"),
        ([[[0.5, 0.5]]], [0], r"shape \[1, 1, 2\]; they must be \[n, C\]"),
        (0.5, [0], r"shape \[\]; they must be \[n, C\]"),
        ([], [], r"no rows"),
        ([["x", "y"]], [0], r"are not numbers"),
    ):
        with pytest.raises(fedstein.DataError, match=message):
            fedstein.report(probabilities, labels)
    with pytest.raises(fedstein.DataError, match="complex128 are not real numbers"):
        fedstein.report(np.array(good) * 1j, [0, 1])
    for keys, message in (
        ({"bins": 2.5}, "bins: 2.5 must be a whole number"),
        ({"title": 3}, "title: 3 must be a text"),
        ({"classes": 2}, "classes: 2 must be a sequence of names"),
        ({"classes": "ab"}, "classes: 'ab' must be a sequence of names"),
        # Neither has an order that anybody has written down.
        ({"classes": {"a", "b"}}, "classes: {.*} must be a sequence of names"),
        ({"classes": frozenset("ab")}, "classes: frozenset.* must be a sequence of names"),
        ({"classes": {"a": 0, "b": 1}}, "classes: {.*} must be a sequence of names"),
    ):
        with pytest.raises(fedstein.DataError, match=message):
            fedstein.report(good, [0, 1], **keys)
    with pytest.raises(fedstein.DataError, match=r"shape \[\]; they must be \[n, C\]"):
        fedstein.report(0.5, ["yes"], classes=["no", "yes"])
    for bins in (-1, 0, 10**9, 10**30):
        with pytest.raises(fedstein.DataError, match="bins"):
            fedstein.report(good, [0, 1], bins=bins)


def test_a_row_without_a_label_is_named() -> None:
    p = [[0.5, 0.5]] * 4
    for labels in (
        ["a", "b", None, "b"],
        ["a", "b", float("nan"), "b"],
        pd.Categorical(["a", "b", None, "b"]),
        pd.Series(["a", "b", None, "b"], dtype="string"),
        pd.Series(["a", "b", None, "b"], dtype=object),
    ):
        with pytest.raises(fedstein.DataError, match="^labels: row 2 has none$"):
            fedstein.report(p, labels, classes=["a", "b"])
    for numbers in ([0, 1, np.nan, 0], [0, 1, None, 0], pd.array([0, 1, None, 0], dtype="Int64")):
        with pytest.raises(fedstein.DataError, match="^labels: row 2 has none$"):
            fedstein.report(p, numbers)
    for wrong, message in (
        (np.array([0, 2**64 - 2, 1, 0], dtype=np.uint64), "row 1 is 18446744073709551614, which is out of range"),
        ([0, 1e300, 1, 0], r"row 1 is 1e\+300, which is no whole number"),
        ([0, np.inf, 1, 0], "row 1 is inf, which is no whole number"),
    ):
        with pytest.raises(fedstein.DataError, match=message):
            fedstein.report(p, wrong)
    # Names of several types have no order, and need none.
    mixed = [1, "x", "x", 1]
    assert fedstein.report([[0.9, 0.1], [0.1, 0.9]] * 2, mixed, classes=[1, "x"]).accuracy == 0.5
    with pytest.raises(fedstein.DataError, match="classes: a name cannot be a list"):
        fedstein.report(p, [0, 1, 1, 0], classes=[[1], [2]])


def test_values_that_are_masked_or_dates_are_refused() -> None:
    p, mask = np.full((4, 2), 0.5), np.arange(4) == 2
    labels = np.ma.array([0, 1, 1, 0], mask=mask)
    for given, of, what in (
        (p, labels, "labels"),
        (np.ma.array(p, mask=np.column_stack([mask, mask])), [0, 1, 1, 0], "probabilities"),
    ):
        with pytest.raises(fedstein.DataError, match=f"^{what}: row 2 is masked"):
            fedstein.report(given, of)
    assert fedstein.report(np.ma.array(p), np.ma.array(labels.data)).rows == 4
    days = np.arange(4).astype("datetime64[D]")
    for wrong in (days, days - days[0]):
        with pytest.raises(fedstein.DataError, match="means: values of type .* are not numbers; convert them"):
            fedstein.report_regression(wrong, np.ones(4), np.ones(4))


def test_a_report_is_that_of_the_command(predictions: Predictions, command: Command, tmp_path: Path) -> None:
    probabilities, labels = predictions
    lines = [",".join([str(label), *(repr(float(p)) for p in row)]) for label, row in zip(labels, probabilities)]
    Path("p.csv").write_text("label,p_0,p_1,p_2,p_3\n" + "\n".join(lines) + "\n")
    command("report", "--predictions", "p.csv", "--out", "by-command")
    page = fedstein.report(probabilities, labels, title="p").save("by-python")
    assert page == Path("by-python/report.html")
    for name in ("report.json", "report.html", "bins.csv", "reliability.svg"):
        assert Path("by-python", name).read_bytes() == Path("by-command", name).read_bytes(), name
    report = fedstein.report(probabilities, labels, title="p")
    assert report.to_dict() == json.loads(Path("by-command/report.json").read_text())
    overall = report.to_dict()["overall"]
    assert {key: value for key, value in report.table().items() if not np.isnan(value)} == {
        key: value for key, value in overall.items() if value is not None
    }
    low, high = report.intervals["accuracy"]
    assert low < report.accuracy < high


def test_two_classes_have_numbers_for_decisions(predictions: Predictions) -> None:
    rng = np.random.default_rng(5)
    p = rng.random(400)
    labels = (rng.random(400) < 0.2 + 0.6 * p).astype(int)
    report = fedstein.report(p, labels)
    assert report.auroc == pytest.approx(metrics.roc_auc_score(labels, p), abs=1e-12)
    assert report.auprc == pytest.approx(metrics.average_precision_score(labels, p), abs=1e-12)
    low, high = report.intervals["calibration_slope"]
    assert low < report.calibration_slope < high < 1
    assert np.isfinite([report.calibration_intercept, report.calibration_in_the_large]).all()
    assert len(report.to_dict()["binary"]["thresholds"]) == 108
    assert np.isnan(fedstein.report(*predictions).auroc)


def test_a_report_shows_itself_and_replaces_only_reports(predictions: Predictions) -> None:
    report = fedstein.report(*predictions)
    assert report._repr_html_().startswith("<iframe srcdoc=") and "<script" not in report.html
    assert repr(report).startswith("Report(rows=500, accuracy=0.")
    report.save("out")
    report.save("out")
    Path("mine").mkdir()
    Path("mine/thesis.tex").write_text("years")
    with pytest.raises(fedstein.ConfigError, match="`mine` is not empty and holds no report"):
        report.save("mine")
    # The report of another program.
    for text in ('{"created": 1.5, "exitcode": 0, "tests": []}', "[]", "not JSON", '{"title": "x", "task": "y"}'):
        Path("mine/report.json").write_text(text)
        Path("mine/confusion.svg").write_text("of the user")
        with pytest.raises(fedstein.ConfigError, match="`mine` is not empty and holds no report of fedstein"):
            report.save("mine")
        assert Path("mine/report.json").read_text() == text and Path("mine/confusion.svg").exists()
    assert not Path("mine/report.html").exists()
    with pytest.raises(fedstein.ConfigError, match="^directory is 3; it must be a path$"):
        report.save(3)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="has no rmse; it has n, "):
        _ = report.rmse


def test_a_regression_report_has_the_closed_forms() -> None:
    rng = np.random.default_rng(3)
    mean, sd = rng.normal(size=200), rng.uniform(0.5, 2, size=200)
    y = mean + sd * rng.normal(size=200)
    report = fedstein.report_regression(mean, sd, y)
    assert report.nll == pytest.approx(-stats.norm(mean, sd).logpdf(y).mean(), rel=1e-12)
    assert report.rmse == pytest.approx(metrics.root_mean_squared_error(y, mean), rel=1e-12)
    assert report.mae == pytest.approx(metrics.mean_absolute_error(y, mean), rel=1e-12)
    # SciPy's percentile bootstrap, up to the noise of the draws; and Wilson's interval.
    for key, rows, of in (
        ("mae", np.abs(mean - y), np.mean),
        ("mean_error", mean - y, np.mean),
        ("nll", -stats.norm(mean, sd).logpdf(y), np.mean),
        ("rmse", (mean - y) ** 2, lambda squares, axis: np.sqrt(squares.mean(axis=axis))),
    ):
        drawn = stats.bootstrap((rows,), of, n_resamples=4000, method="percentile", rng=np.random.default_rng(1))
        noise = 0.35 * drawn.standard_error
        assert report.intervals[key] == pytest.approx(tuple(drawn.confidence_interval), abs=noise), key
    inside = int((np.abs(y - mean) < stats.norm.ppf(0.95) * sd).sum())
    wilson = stats.binomtest(inside, 200).proportion_ci(0.95, "wilson")
    assert report.intervals["coverage_90"] == pytest.approx(tuple(wilson), rel=1e-9)
    # Two equal members are one Gaussian.
    twice = fedstein.report_regression(np.stack([mean, mean]), np.stack([sd, sd]), y)
    assert twice.crps == pytest.approx(report.crps, rel=1e-12)
    groups = fedstein.report_regression(np.stack([mean, mean]), np.stack([sd, sd]), y, groups=np.arange(200) % 2).groups
    assert groups["1"]["rmse"] == pytest.approx(metrics.root_mean_squared_error(y[1::2], mean[1::2]), rel=1e-12)
    named = fedstein.report_regression(mean, sd, y, groups=np.arange(200) % 2)
    assert "<h2>Groups</h2>" in named.html and [group["overall"]["n"] for group in named.to_dict()["groups"]] == [
        100,
        100,
    ]
    assert "Regression" in report.html or "interval" in report.html
    for mean_, sd_, y_, message in (
        ([0.0], [0.0], [1.0], "standard deviation 0 is 0"),
        ([0.0], [1.0, 1.0], [1.0], "they must be equal"),
        ([0.0], [1.0], [1.0, 2.0], r"with these means it must be \[1\]"),
        ([np.inf], [1.0], [1.0], "must be finite"),
    ):
        with pytest.raises(fedstein.DataError, match=message):
            fedstein.report_regression(mean_, sd_, y_)


def test_an_array_that_changes_after_the_report_was_made_is_noticed(predictions: Predictions) -> None:
    probabilities, labels = predictions
    changed = "have changed since the report was made; make the report anew, or pass copies"
    report = fedstein.report(probabilities, labels, groups=labels)
    numbers, kept = report.table(), probabilities[7].copy()
    probabilities[7] = kept[::-1]
    for part in (lambda: report.html, lambda: report.groups, lambda: report.intervals, lambda: report.save("out")):
        with pytest.raises(fedstein.DataError, match=changed):
            part()
    assert report.table() == numbers and not Path("out").exists()
    probabilities[7] = kept
    page = report.html
    # What was computed stays, and is what is saved.
    labels[0] = (labels[0] + 1) % 4
    assert report.html == page and report.save("out").read_text() == page
    with pytest.raises(fedstein.DataError, match=changed):
        _ = report.groups
    single = probabilities.astype(np.float32)[::2]
    report = fedstein.report(single, labels[::2])
    single[0, :2] = single[0, 1::-1]
    with pytest.raises(fedstein.DataError, match=changed):
        _ = report.html
    mean, sd, y = np.zeros(9), np.ones(9), np.linspace(-1, 1, 9)
    for array in (mean, sd, y):
        report = fedstein.report_regression(mean, sd, y)
        array[4] += 0.5
        with pytest.raises(fedstein.DataError, match=changed):
            _ = report.html


def test_an_array_that_is_read_only_or_not_aligned_is_taken(predictions: Predictions) -> None:
    probabilities, labels = predictions
    want = fedstein.report(probabilities, labels).table()
    probabilities.flags.writeable = False
    odd = np.frombuffer(b"x" + probabilities.tobytes(), np.uint8)[1:].view(np.float64).reshape(500, 4)
    assert not odd.flags.aligned
    for given in (probabilities, odd):
        report = fedstein.report(given, labels)
        assert report.table() == want and report.html


def test_a_million_rows_take_a_second_and_little_memory(script: Any) -> None:
    # Seconds of CPU, which other programs on the machine hardly change. VmHWM, reset before the report: ru_maxrss
    # begins at the size of the process that started this one, and would hide the report's.
    text = """
import time
import numpy as np
import fedstein
def size(key):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
rng = np.random.default_rng(0)
p = np.empty((10**6, 10))
for part in np.split(p, 100):
    part[:] = rng.random(part.shape)
    part /= part.sum(axis=1, keepdims=True)
y = rng.integers(0, 10, 10**6)
fedstein.report(p[:100], y[:100])
open("/proc/self/clear_refs", "w").write("5")
before, start = size("VmRSS:"), time.process_time()
report = fedstein.report(p, y)
print(time.process_time() - start, (size("VmHWM:") - before) / p.nbytes)
"""
    done = subprocess.run(script(text), capture_output=True, text=True, check=True, timeout=LIMIT)
    seconds, share = map(float, done.stdout.split())
    # The array itself is not copied: of 10 columns, labels, confidences and their order in bins are half as large.
    assert seconds < 1 and 0.2 < share < 0.9, done.stdout
    print(f"10^6 x 10: {seconds:.2f} s of CPU, {share:.2f} times their memory")


def test_random_inputs_agree_with_an_independent_computation() -> None:
    for seed, (rows, classes, bins) in enumerate([(1, 2, 15), (7, 3, 1), (64, 10, 5), (1000, 2, 100)]):
        probabilities, labels = drawn(rows, classes, seed)
        report = fedstein.report(probabilities, labels, bins=bins)
        confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
        index = np.ceil(confidence * bins).astype(int) - 1
        gaps = [abs((right[index == b] - confidence[index == b]).sum()) for b in range(bins)]
        assert report.ece == pytest.approx(sum(gaps) / rows, abs=1e-12)
        assert report.signed_gap == pytest.approx((confidence - right).mean(), abs=1e-12)
