"""Arrays of any library as numpy arrays, without a copy where type and layout allow."""

from __future__ import annotations

import datetime
import math
import numbers
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._fedstein import ConfigError, DataError

FloatArray = NDArray[np.float64] | NDArray[np.float32]
Names = Sequence[Any] | NDArray[Any]
StrPath = str | os.PathLike[str]


def as_array(values: Any, what: str) -> NDArray[Any]:
    """The values as a numpy array; `what` names them in messages."""
    refuse_masked(values, what)
    if isinstance(values, np.ma.MaskedArray):
        return np.asarray(values.data)
    if isinstance(values, np.ndarray):
        # A matrix has two dimensions whatever is taken of it.
        return np.asarray(values)
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise DataError(
            f"{what}: a sparse {type(values).__name__} is not taken; pass its .toarray(), or make a dense array "
            "(scikit-learn: sparse_output=False)"
        )
    refuse_lazy(values, what)
    # A tensor that records gradients, or is on a GPU, does not become an array by itself.
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        values = values.detach().cpu()
    try:
        if hasattr(values, "to_numpy"):
            return np.asarray(values.to_numpy())
        if hasattr(values, "__array__") or isinstance(values, (Sequence, memoryview)):
            return np.asarray(values)
        if hasattr(values, "__dlpack__"):
            return np.from_dlpack(values)
        if isinstance(values, (set, frozenset, Mapping, Iterator)):
            reason = "is read once" if isinstance(values, Iterator) else "has no rows in an order"
            raise DataError(f"{what}: a {type(values).__name__} {reason}; pass a list or an array")
        return np.asarray(values)
    except DataError:
        raise
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise DataError(f"{what}: {type(values).__name__} does not become an array: {error}") from error


def refuse_masked(values: Any, what: str) -> None:
    """Check that no value of a masked array is masked.

    Raises
    ------
    DataError
        One is; its row is named.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argwhere(np.ma.getmaskarray(values))[0][0]) if values.ndim else 0
        raise DataError(f"{what}: row {row} is masked, and has no value; leave such rows out, or fill them")


def refuse_lazy(values: Any, what: str) -> None:
    """Check that a table has its rows, and names of its columns.

    Raises
    ------
    DataError
        It is a query of polars that was not carried out, or a table of pyarrow, whose `columns` are its cells.
    """
    if hasattr(type(values), "collect") and hasattr(type(values), "lazy"):
        raise DataError(f"{what}: a {type(values).__name__} has no rows yet; pass its .collect()")
    if hasattr(values, "column_names") and hasattr(values, "to_pandas"):
        raise DataError(f"{what}: a {type(values).__name__} of pyarrow is not taken; pass its .to_pandas()")


def as_floats(values: Any, what: str) -> FloatArray:
    """The values as float64 or float32."""
    array = as_array(values, what)
    _refuse_times_of_polars(values, what)
    if array.dtype in (np.float64, np.float32) and array.dtype.isnative:
        return np.require(array, requirements=["ALIGNED"])
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    if array.dtype.kind == "c":
        raise DataError(f"{what}: values of type {array.dtype} are not real numbers")
    refuse_dates(array, what)
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        reason = _missing_cell(values, array) or f"values of type {array.dtype} are not numbers: {error}"
        raise DataError(f"{what}: {reason}") from error


def _missing_cell(values: Any, array: NDArray[Any]) -> str | None:
    """That the first missing value of an array of objects is one, with its row and its column; None without one."""
    if array.dtype.kind != "O" or array.ndim not in (1, 2):
        return None
    at = next((at for at, value in np.ndenumerate(array) if is_missing(value)), None)
    if at is None:
        return None
    columns = getattr(values, "columns", None)
    of = "" if len(at) == 1 else f" in column {at[1] if columns is None else columns[at[1]]!r}"
    return f"row {at[0]} has no value{of}; leave such rows out, or fill them"


def as_probabilities(values: Any) -> FloatArray:
    """Probabilities, [n, C] or [n]; a column [n, 1] counts as [n]."""
    array = as_floats(values, "probabilities")
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def as_gaussians(mean: Any, sd: Any, targets: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means and standard deviations, [n] or [N, n], and targets, [n]; a column [n, 1] counts as [n]."""
    values = as_floats(as_vector(targets, "targets"), "targets")

    def of_rows(given: Any, what: str) -> FloatArray:
        array = as_floats(given, what)
        # Beside one target a column has the members of one row.
        is_column = array.ndim == 2 and array.shape[1] == 1 and len(values) != 1
        return array[:, 0] if is_column else array

    return of_rows(mean, "means"), of_rows(sd, "standard deviations"), values


def refuse_dates(array: NDArray[Any], what: str) -> None:
    """Check that the values are not dates or spans of time, whose numbers depend on their unit.

    Raises
    ------
    DataError
        They are.
    """
    found: object = array.dtype
    if array.dtype.kind == "O":
        times = (np.datetime64, np.timedelta64, datetime.date, datetime.timedelta)
        found = next((type(value).__name__ for value in array.ravel().tolist() if isinstance(value, times)), None)
    elif array.dtype.kind not in "mM":
        found = None
    if found is not None:
        raise DataError(
            f"{what}: values of type {found} are not numbers; convert them, for example to days since a date: "
            '(values - values.min()) / numpy.timedelta64(1, "D")'
        )


def _refuse_times_of_polars(values: Any, what: str) -> None:
    """Check that no column of a table of polars is of dates or times: its `to_numpy` makes numbers of them."""
    types = getattr(values, "dtypes", None)
    for name, of in zip(getattr(values, "columns", []), types if isinstance(types, list) else []):
        is_time = getattr(of, "is_temporal", None)
        if callable(is_time) and is_time():
            raise DataError(
                f"{what}: values of type {of} are not numbers; convert them, for example to days since a date: "
                f"(column - column.min()).dt.total_days() (column {name!r})"
            )


def as_vector(values: Any, what: str) -> NDArray[Any]:
    """The values as one dimension; a column [n, 1] counts as [n]."""
    array = as_array(values, what)
    if array.dtype.kind == "U" and array.ndim == 1 and isinstance(values, (list, tuple)):
        if not all(isinstance(value, str) for value in values):
            # numpy makes a text of what is none, a missing value included.
            array = np.empty(len(values), dtype=object)
            array[:] = values
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{what} have the shape {list(array.shape)}; they must be [n]")
    return array


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, NaT or pandas' NA."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # NA is neither true nor false, and an array of several values neither.
        return not isinstance(value, np.ndarray)


def refuse_missing(array: NDArray[Any], what: str) -> None:
    """Check that every row has a value.

    Raises
    ------
    DataError
        A row has none; the first such row is named.
    """
    if array.dtype.kind == "O":
        rows = (row for row, value in enumerate(array.tolist()) if is_missing(value))
        at = next(rows, None)
    elif array.dtype.kind in "fcmM":
        at = next(iter(np.flatnonzero(array != array).tolist()), None)
    else:
        at = None
    if at is not None:
        raise DataError(f"{what}: row {at} has none")


def counted(number: int, what: str) -> str:
    """A number of things, such as "1 row" and "2 rows"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def refuse_labels_of_other_rows(probabilities: FloatArray, labels: NDArray[np.int64]) -> None:
    """Check that there is a label for each row of probabilities.

    Raises
    ------
    DataError
        There are more or fewer.
    """
    if probabilities.ndim and len(probabilities) != len(labels):
        rows = counted(len(probabilities), "row")
        raise DataError(f"{counted(len(labels), 'label')} for {rows} of probabilities")


def as_labels(values: Any, what: str = "labels") -> NDArray[np.int64]:
    """The values as whole numbers."""
    array = as_vector(values, what)
    refuse_missing(array, what)
    if array.dtype.kind in "iub":
        whole = np.require(array, np.int64, ["ALIGNED"])
        if array.dtype == np.uint64 and (whole < 0).any():
            at = int(np.flatnonzero(whole < 0)[0])
            raise DataError(f"{what}: row {at} is {array[at]}, which is out of range")
        return whole
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
        is_whole = (np.abs(array) < 2.0**63) & (np.trunc(array) == array)
        if is_whole.all():
            return array.astype(np.int64)
        at = int(np.flatnonzero(~is_whole)[0])
        raise DataError(f"{what}: row {at} is {array[at]}, which is no whole number")
    if array.dtype.kind == "O" and all(isinstance(value, (numbers.Integral, np.bool_)) for value in array):
        return _of_integers(array, what)
    raise DataError(
        f"{what} are of type {array.dtype}; they must be whole numbers from 0, or pass the names of the columns as "
        "classes=[...]"
    )


def _of_integers(array: NDArray[Any], what: str) -> NDArray[np.int64]:
    """Whole numbers and truth values of Python as int64."""
    whole = [int(value) for value in array]
    at = next((at for at, value in enumerate(whole) if abs(value) >= 2**63), None)
    if at is not None:
        raise DataError(f"{what}: row {at} is {whole[at]}, which is out of range")
    return np.array(whole, dtype=np.int64)


def as_indices(values: Any, classes: Sequence[Any], what: str = "labels", by_text: bool = False) -> NDArray[np.int64]:
    """The position of every value in `classes`; with `by_text`, of its text where it is not among them."""
    array = as_vector(values, what)
    refuse_missing(array, what)
    try:
        place = {value: at for at, value in enumerate(classes)}
    except TypeError as error:
        raise DataError(f"classes: a name cannot be a list or another value that changes: {error}") from error
    if len(place) != len(classes):
        raise DataError("classes: a name appears twice")
    if array.dtype.kind == "O":  # Values that may have no order.
        distinct, inverse = array.tolist(), None
    else:
        found, inverse = np.unique(array, return_inverse=True)
        distinct = found.tolist()

    def at(value: Any) -> int | None:
        found = place.get(value)
        return place.get(str(value)) if found is None and by_text else found

    try:
        places = [at(value) for value in distinct]
    except TypeError as error:
        raise DataError(f"{what}: a value cannot be a name: {error}") from error
    unknown = [value for value, index in zip(distinct, places, strict=True) if index is None]
    if unknown:
        known = ", ".join(repr(name) for name in list(classes)[:8]) + (", ..." if len(classes) > 8 else "")
        advice = ""
        if all(type(value) is int and 0 <= value < len(classes) for value in distinct):
            advice = "; where they are places in `classes`, pass np.asarray(classes)[labels]"
        raise DataError(f"{what} have {unknown[0]!r}, which is not among the classes {known}{advice}")
    indices = np.array(places, dtype=np.int64)
    return indices if inverse is None else indices[inverse]


def as_groups(values: Any, rows: int, what: str = "groups") -> tuple[list[str], NDArray[np.int64]]:
    """The names of the groups, sorted by the values that they stand for, and each row's position in them.

    Rows without a value are a group, which is the last.
    """
    array = as_vector(values, what)
    if len(array) != rows:
        raise DataError(f"{len(array)} {what[:-1] if len(array) == 1 else what} for {rows} rows")
    if array.dtype.kind == "O":
        return _groups_of_objects(array.tolist(), what)
    distinct, inverse = np.unique(array, return_inverse=True)
    found = list(distinct)
    are_whole = _are_whole(found)
    return [_name_of_group(value, are_whole) for value in found], inverse.astype(np.int64, copy=False)


def as_units(values: Any, rows: int, what: str) -> NDArray[np.int64]:
    """Each row's position among the distinct values, of which every row has one."""
    _, of = as_groups(values, rows, what)
    # Rows of which nobody knows the value are not one unit.
    refuse_missing(as_vector(values, what), what)
    return of


def _are_whole(values: list[Any]) -> bool:
    """Whether all floating point numbers among the values are whole, as where pandas had to hold a missing value."""
    reals = (float(value) for value in values if isinstance(value, (float, np.floating)) and not is_missing(value))
    return all(value.is_integer() and abs(value) < 2**53 for value in reals)


def _name_of_group(value: Any, are_whole: bool) -> str:
    is_real = isinstance(value, (float, np.floating)) and not is_missing(value)
    return str(int(value)) if are_whole and is_real else str(value)


def _groups_of_objects(values: list[Any], what: str) -> tuple[list[str], NDArray[np.int64]]:
    """As `as_groups`, of values of any types.

    Raises
    ------
    DataError
        Two values that differ have one name, such as 1 and "1", or a value cannot be a group.
    """
    names: dict[Any, str] = {}
    firsts: dict[str, Any] = {}
    are_whole = _are_whole(values)
    for value in values:
        try:
            name = names.setdefault(value, _name_of_group(value, are_whole))
        except TypeError as error:
            raise DataError(f"{what}: {value!r} cannot be a {what[:-1]}: {error}") from error
        first = firsts.setdefault(name, value)
        if first is value:
            continue
        if is_missing(first) != is_missing(value) or not (is_missing(value) or first == value):
            raise DataError(f"{what}: {first!r} and {value!r} are different and have one name")
    missing = sorted(name for name, value in firsts.items() if is_missing(value))
    present = [name for name in firsts if name not in missing]
    try:
        order = sorted(present, key=firsts.__getitem__)
    except TypeError:  # Values that have no order.
        order = sorted(present)
    order += missing
    place = {name: at for at, name in enumerate(order)}
    return order, np.array([place[names[value]] for value in values], dtype=np.int64)


def in_order_of_categories(
    values: Any, groups: tuple[list[str], NDArray[np.int64]]
) -> tuple[list[str], NDArray[np.int64]]:
    """Groups in the order of the categories where the values are a Categorical of pandas, as `groupby` has them."""
    dtype: Any = getattr(values, "dtype", None)
    if not hasattr(dtype, "ordered") or not hasattr(dtype, "categories"):
        return groups
    names, of = groups
    rank: dict[str, int] = {}
    for at, value in enumerate(dtype.categories.tolist()):
        rank[str(value)] = rank[_name_of_group(value, _are_whole([value]))] = at
    order = sorted(range(len(names)), key=lambda at: rank.get(names[at], len(rank)))
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.arange(len(names))
    return [names[at] for at in order], place[of]


def as_bins(bins: int) -> int:
    """A number of bins; the library knows the largest."""
    number = as_whole(bins, "bins")
    if number < 1:
        raise DataError(f"{number} bins; there must be at least 1")
    if number >= 2**63:
        raise DataError(f"{number} bins are too many")
    return number


def as_whole(value: Any, what: str) -> int:
    """A whole number.

    Raises
    ------
    DataError
        It is not one.
    """
    try:
        return operator.index(value)
    except TypeError as error:
        raise DataError(f"{what}: {value!r} must be a whole number") from error


def as_names(values: Any, what: str) -> list[Any]:
    """The names in a sequence, which a text is not, nor what has no order.

    Raises
    ------
    DataError
        It is not a sequence.
    """
    if not isinstance(values, (str, bytes, set, frozenset, Mapping)):
        try:
            return list(values)
        except TypeError:
            pass
    raise DataError(f"{what}: {values!r} must be a sequence of names, such as ['a', 'b']")


def as_text(value: Any, what: str) -> str:
    """A text.

    Raises
    ------
    DataError
        It is not one.
    """
    if not isinstance(value, str):
        raise DataError(f"{what}: {value!r} must be a text")
    return as_texts([value], what)[0]


def as_texts(values: Iterable[Any], what: str) -> list[str]:
    """The texts of names.

    Raises
    ------
    DataError
        One has a lone surrogate.
    """
    texts = [str(value) for value in values]
    strange = next((text for text in texts if not is_unicode(text)), None)
    if strange is not None:
        raise DataError(f"{what}: {strange!r} {LONE}; read its file with the encoding that it has")
    return texts


LONE = "has a lone surrogate, and is no Unicode text"


def is_unicode(text: str) -> bool:
    """Whether UTF-8 has the text. It has no lone surrogates, such as those of `errors="surrogateescape"`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_path(value: Any, what: str) -> Path:
    """A path.

    Raises
    ------
    ConfigError
        It is not one.
    """
    if not isinstance(value, (str, os.PathLike)):
        raise ConfigError(f"{what} is {value!r}; it must be a path")
    try:
        os.fsencode(value)
    except UnicodeEncodeError as error:
        raise ConfigError(f"{what} is {value!r}; no file can have this name: {error}") from error
    return Path(value)


def as_flag(value: Any, what: str) -> bool:
    """True or false.

    Raises
    ------
    ConfigError
        It is neither.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ConfigError(f"{what} is {value!r}; it must be True or False")
    return bool(value)


def as_level(value: Any) -> float:
    """The level of prediction sets.

    Raises
    ------
    ConfigError
        It is not a share.
    """
    is_number = isinstance(value, (numbers.Real, np.number)) and not isinstance(value, bool)
    number = float(value) if is_number else math.nan
    if not 0 < number < 1:
        raise ConfigError(f"level is {value!r}; it is a share of the rows, above 0 and below 1, such as 0.9")
    return number
