"""Rows of one's own for a run."""

from __future__ import annotations

import numbers
import warnings
from collections import Counter
from decimal import Decimal
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ._arrays import (
    FloatArray,
    Names,
    as_array,
    as_floats,
    as_indices,
    as_names,
    as_text,
    as_texts,
    as_units,
    as_vector,
    as_whole,
    counted,
    is_missing,
    refuse_dates,
    refuse_lazy,
    refuse_missing,
)
from ._fedstein import MOST_CLASSES, DataError, RawRows, Rows
from ._names import columns_at

__all__ = ["Data", "RunWarning"]


class RunWarning(UserWarning):
    """A note: the rows, the config or the training may not be what was meant."""


def columns_of(values: Any, what: str = "the rows") -> list[str] | None:
    """The names of a table's columns as texts; None where the values are no table."""
    refuse_lazy(values, what)
    columns = getattr(values, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def in_order_of(names: list[str] | None, table: Any, what: str) -> Any:
    """The columns of a table that have these names, in their order; the table itself where either has no names.

    Raises
    ------
    DataError
        The table has no such column, or several.
    """
    columns = columns_of(table, f"the {what}")
    if names is None or columns is None or columns == names:
        return table
    counts = Counter(columns)
    for name in names:
        if counts[name] != 1:
            found = f"{counts[name]} columns" if counts[name] else "no column"
            raise DataError(f"the {what} have {found} {name!r}; the run was trained on {names}")
    return columns_at([columns.index(name) for name in names], table)


def features_of(values: Any, what: str) -> tuple[FloatArray, list[int]]:
    """Features as [n, p], and the shape of a row."""
    try:
        array = as_floats(values, what)
    except DataError:
        _refuse_columns(values, what)
        raise
    if array.ndim < 2:
        one = "; one row is [row]" if array.ndim == 1 else ""
        raise DataError(f"{what} have the shape {list(array.shape)}; they must be [n, p], or [n, ...] for images{one}")
    if array.size == 0:
        raise DataError(f"{what} have the shape {list(array.shape)}; there must be at least one row and one feature")
    shape = list(array.shape[1:])
    return array.reshape(len(array), -1), shape


def _refuse_columns(values: Any, what: str) -> None:
    """Check that every column of a table is of numbers.

    Raises
    ------
    DataError
        A column is not; the first such column is named.
    """
    for name in getattr(values, "columns", []):
        column = as_array(values[name], what)
        if column.dtype.kind in "Of":
            missing = next((row for row, value in enumerate(column.tolist()) if is_missing(value)), None)
            if missing is not None:
                raise DataError(
                    f"{what}: row {missing} has no value in column {name!r}; leave such rows out, or fill them "
                    "(scikit-learn: SimpleImputer)"
                )
        try:
            as_floats(column, what)
        except DataError as error:
            if column.dtype.kind in "mM":
                raise DataError(f"{error} (column {name!r})") from error
            reason = "; leave it out, or encode it in numbers (scikit-learn: OneHotEncoder)"
            raise DataError(f"{what}: column {name!r} is not of numbers{reason}") from error


class Data:
    """Training and test rows with their clients, for `fedstein.train`.

    Features are scaled with the statistics of the training rows; predictions take rows in the original units.

    Parameters
    ----------
    X : array_like, [n, p] or [n, ...]
        Features in the units of the data, finite. Images for models with convolutions are [n, H, W] or [n, C, H, W],
        the channels first.
    y : array_like, [n]
        Labels or values.
    clients : array_like, [n], optional
        The client of each row: any values, such as names of hospitals. The rows then go to these clients
        (`partition.kind = "by-column"`) unless the config says something else. Without it, `[partition]` of the config
        deals the rows.
    groups : array_like, [n], optional
        The group of each row: any values, such as the patient of a visit. The rows of a group are all training or all
        test rows where `test` is a share, which is then that of the groups. They stay together as well in what the
        config holds out for validation and calibration, and at the clients of `partition.kind = "iid"`.
    test : float or (X, y) or (X, y, clients)
        The share of rows that is held out at random for testing, between 0 and 1; or the test rows. With `clients` the
        test rows have clients too.
    task : {"classification", "regression"}, optional
        Without it, `y` of floating point numbers or decimals is a regression, also in an array of objects and where
        all are whole, anything else a classification.
    classes : sequence, optional
        The classes in the order of the predicted columns. Without it, they are the distinct labels, sorted.
    feature_names : sequence of str, optional
        Names for the columns in their order. Without them, the names of a table's columns.
    normalise : {"auto", "standard", "minmax", "mnist", "none"}
        The scale of the features; "auto" is "standard", and "mnist" that of MNIST's pixels.
    name : str
        The name of the rows in reports.
    seed : int
        Of the random share of test rows.

    Attributes
    ----------
    classes : list or None
        The classes in the order of the predicted columns; None for a regression.
    clients : list or None
        The clients, sorted; None without clients. A run has their texts as names and numbers those that have training
        rows, in this order: `Run.clients`.

    Raises
    ------
    DataError
        Shapes do not fit together, a number is not finite, or a label is no class. The message names the row.

    Warns
    -----
    RunWarning
        The test rows have classes that no training row has, or many whole numbers are taken for classes.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        clients: Any = None,
        groups: Any = None,
        test: float | tuple[Any, Any] | tuple[Any, Any, Any] = 0.2,
        task: Literal["classification", "regression"] | None = None,
        classes: Names | None = None,
        feature_names: Names | None = None,
        normalise: str = "auto",
        name: str = "data",
        seed: int = 1,
    ) -> None:
        held_out = _held_out(test)
        seed = as_whole(seed, "seed")
        if not 0 <= seed < 2**64:
            raise DataError(f"seed: {seed} must be from 0 to 2^64 - 1")
        as_text(name, "name")
        as_text(normalise, "normalise")
        names = own_names = columns_of(X, "features")
        if feature_names is not None:
            names = [as_text(each, "feature_names") for each in as_names(feature_names, "feature_names")]
            _refuse_names_of_others(names, own_names)
        elif names is not None:
            names = as_texts(names, "features")
        targets = as_vector(y, "y")
        refuse_dates(targets, "y")
        test_targets = None if held_out is None else as_vector(held_out[1], "test y")
        is_regression = _is_regression(task, y, targets)
        if is_regression and classes is not None:
            raise DataError("a regression has no classes")
        of_y = "y" if is_regression else "labels"
        refuse_missing(targets, of_y)
        if test_targets is not None:
            refuse_missing(test_targets, f"test {of_y}")
        self.classes: list[Any] | None = None
        if not is_regression and classes is not None:
            self.classes = as_names(classes, "classes")
        elif not is_regression:
            self.classes = _distinct(targets, test_targets, of_y)
            for note in _notes_on_classes(self.classes, targets, test_targets, is_supposed=task is None):
                warnings.warn(note, RunWarning, stacklevel=2)
        assigned = _clients_of(clients, held_out)
        self.clients: list[Any] | None = assigned.clients
        of_groups = None if groups is None else as_units(groups, len(targets), "groups")

        def rows(
            X: Any,
            targets: NDArray[Any],
            of_clients: NDArray[np.int64] | None,
            of_groups: NDArray[np.int64] | None,
            what: str,
        ) -> RawRows:
            features, shape = features_of(X, what)
            test_of = what.removesuffix("features")
            _refuse_other_length(targets, len(features), f"{test_of}y")
            if of_clients is not None:
                _refuse_other_length(of_clients, len(features), f"{test_of}clients")
            labels = values = None
            if self.classes is None:
                values = np.ascontiguousarray(as_floats(targets, "y"), dtype=np.float64)
            else:
                labels = (as_indices(targets, self.classes), as_texts(self.classes, of_y))
            named_clients = None if of_clients is None else (of_clients, assigned.names)
            return RawRows(name, features, shape, names, labels, values, named_clients, of_groups)

        train = rows(X, targets, assigned.of_train, of_groups, "features")
        if held_out is None or test_targets is None:
            share = float(test) if not isinstance(test, tuple) else 0.0
            self._rows = Rows.split(train, share, seed, normalise)
        else:
            # A table of test rows has the columns of the training table, or their new names.
            found = columns_of(held_out[0], "test rows") or []
            is_renamed = own_names is not None and names is not None and set(names).issubset(found)
            table = in_order_of(names if is_renamed or own_names is None else own_names, held_out[0], "test rows")
            held = rows(table, test_targets, assigned.of_test, None, "test features")
            self._rows = Rows.of(train, held, normalise)
        self.name = name

    def __reduce__(self) -> NoReturn:
        raise TypeError("a fedstein.Data cannot be pickled; pickle X and y, and make it from them in the other process")

    def __copy__(self) -> Data:
        """The object itself: its rows do not change."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Data:
        """The object itself: its rows do not change."""
        return self

    def __repr__(self) -> str:
        train, test = self._rows.counts()
        what = "regression" if self.classes is None else f"{len(self.classes)} classes"
        of = "" if self.clients is None else f", {len(self.clients)} clients"
        return f"Data({train} training rows, {test} test rows, {what}{of})"


def _held_out(test: float | tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The test rows where they are given; None where they are a share of the rows.

    Raises
    ------
    DataError
        `test` is neither.
    """
    if isinstance(test, tuple) and len(test) in (2, 3):
        return test
    if isinstance(test, tuple) or isinstance(test, bool) or not isinstance(test, numbers.Real):
        raise DataError("test must be a share of the rows, (X, y) or (X, y, clients)")
    if not 0 < test < 1:
        raise DataError(f"test is {test}; a share of the rows is above 0 and below 1, such as 0.2")
    return None


def _refuse_other_length(values: NDArray[Any], rows: int, what: str) -> None:
    """Check that there is a value for each row.

    Raises
    ------
    DataError
        There are more or fewer.
    """
    if len(values) != rows:
        raise DataError(f"{what}: {counted(len(values), 'value')} for {counted(rows, 'row')}")


def _is_regression(task: str | None, y: Any, targets: NDArray[Any]) -> bool:
    """Whether the targets, of which `targets` has the values, are real numbers: by the task, or by their types.

    Raises
    ------
    DataError
        There is no such task.
    """
    if task not in ("classification", "regression", None):
        raise DataError(f'task is "{task}"; it must be "classification" or "regression"')
    return _are_real(y, targets) if task is None else task == "regression"


def _notes_on_classes(
    classes: list[Any], targets: NDArray[Any], test_targets: NDArray[Any] | None, *, is_supposed: bool
) -> list[str]:
    """What may not be meant where the classes are those of the labels; `is_supposed`: the task is from them too."""
    notes = []
    if is_supposed and len(classes) > MOST_CLASSES and _are_integers(targets):
        notes.append(
            f"y has {len(classes)} different whole numbers, which are taken for classes; say "
            'task="classification" if they are, and task="regression" if not'
        )
    if test_targets is not None:
        trained = set(_distinct(targets, None, "labels"))
        if untrained := [label for label in classes if label not in trained]:
            notes.append(_of_test_rows_only(untrained))
    return notes


class _Assigned(NamedTuple):
    """The clients of the rows."""

    clients: list[Any] | None
    """The clients, sorted; None without clients."""
    names: list[str] | None = None
    """Their texts, where no two have the same."""
    of_train: NDArray[np.int64] | None = None
    """The client of each training row."""
    of_test: NDArray[np.int64] | None = None
    """The client of each test row, where the test rows are given."""


def _clients_of(clients: Any, held_out: tuple[Any, ...] | None) -> _Assigned:
    """The clients of training rows, and of test rows (X, y, clients).

    Raises
    ------
    DataError
        Some rows have clients and others none, or values are no clients.
    """
    has_test_clients = held_out is not None and len(held_out) == 3
    if clients is None and has_test_clients:
        raise DataError("the test rows have clients and the training rows none; pass clients=")
    if clients is None:
        return _Assigned(None)
    train = as_vector(clients, "clients")
    if held_out is not None and not has_test_clients:
        raise DataError("the training rows have clients and the test rows none; pass test=(X, y, clients)")
    test = None if held_out is None else as_vector(held_out[2], "test clients")
    refuse_missing(train, "clients")
    if test is not None:
        refuse_missing(test, "test clients")
    known = _distinct(train, test, "clients")
    texts = as_texts(known, "clients")
    return _Assigned(
        known,
        # Where two have one name, there are numbers only.
        texts if len(set(texts)) == len(texts) else None,
        as_indices(train, known, "clients"),
        None if test is None else as_indices(test, known, "test clients"),
    )


def _refuse_names_of_others(names: list[str], columns: list[str] | None) -> None:
    """Check that new names of a table's columns do not call one as another is called.

    Raises
    ------
    DataError
        They do; later tables could be read in either order.
    """
    for name, column in zip(names, columns or []):
        if name != column and name in (columns or []):
            raise DataError(
                f"feature_names calls the column {column!r} {name!r}, and the table has another one of this name; "
                "give the table the order that is meant, or use other names"
            )


def _distinct(one: NDArray[Any], other: NDArray[Any] | None, what: str) -> list[Any]:
    """The distinct values of both, sorted."""
    second = None if other is None else as_array(other, what)
    if second is not None and one.dtype.kind in "iu" and second.dtype.kind in "iu":
        # Together, signed and unsigned numbers would become floating point numbers, which may not be the same.
        return sorted({*one.tolist(), *second.tolist()})
    try:
        both = one if second is None else np.concatenate([one, second])
        found: list[Any] = np.unique(both).tolist()
    except TypeError as error:
        raise DataError(f"{what} cannot be sorted: {error}") from error
    return found


def _are_real(values: Any, array: NDArray[Any]) -> bool:
    """Whether targets are real numbers and no classes; `array` has the values."""
    if str(getattr(values, "dtype", "")) == "category":
        return False
    if array.dtype.kind == "f":
        # Whole numbers of pandas and polars become floating point numbers where one is missing.
        dtype = getattr(values, "dtype", None)
        is_integer = getattr(dtype, "is_integer", None)
        return getattr(dtype, "kind", None) not in ("i", "u", "b") and not (callable(is_integer) and is_integer())
    if array.dtype.kind != "O":
        return False
    present = [value for value in array.tolist() if not is_missing(value)]
    if any(isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, Decimal)) for value in present):
        return False
    return any(not isinstance(value, numbers.Integral) for value in present)


def _are_integers(array: NDArray[Any]) -> bool:
    """Whether all values are whole numbers by their types."""
    is_integer = (isinstance(value, numbers.Integral) for value in array) if array.dtype.kind == "O" else ()
    return array.dtype.kind in "iuO" and all(is_integer)


def _of_test_rows_only(classes: list[Any]) -> str:
    """A note about classes that no training row has."""
    listed = ", ".join(repr(label) for label in classes[:5]) + (", ..." if len(classes) > 5 else "")
    which = "the class" if len(classes) == 1 else f"the {len(classes)} classes"
    return f"no training row has {which} {listed} of the test rows; nothing can be learned about them"
