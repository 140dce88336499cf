"""Names of classes: which column of a table, and which label, is which class."""

from __future__ import annotations

import numbers
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import as_indices, as_labels, as_vector, refuse_missing
from ._fedstein import DataError

__all__ = ["places_in_classes", "places_in_columns", "table_of"]

_WHOLE = re.compile(r"([+-]?\d{1,30})(\.0*)?")


def _text(name: Any) -> str:
    return str(name)


def _number(name: Any) -> str:
    """The text; of a whole number, in whatever type or spelling, that without a fraction: "1" of 1.0 and of "1.0"."""
    text = str(name)
    found = _WHOLE.fullmatch(text)
    return str(int(found[1])) if found else text


def _truth(name: Any) -> str:
    """The same, with True and False as 1 and 0."""
    text = _number(name)
    return {"True": "1", "False": "0"}.get(text, text)


# From the strictest spelling to the widest. The first one in which every name has one counterpart is taken.
_SPELLINGS: tuple[Callable[[Any], str], ...] = (_text, _number, _truth)


def table_of(classes: Sequence[Any], table: Any) -> Any:
    """The columns of a table of probabilities that are called as the classes, in their order; all where none is.

    Raises
    ------
    DataError
        Some of the classes have a column and others have none, a class has several, a name appears twice, or the names
        say that the columns are in another order.
    """
    columns = list(table.columns)
    if len({str(name) for name in classes}) != len(classes):
        raise DataError("classes: a name appears twice")
    for spelling in _SPELLINGS:
        own, wanted = [spelling(name) for name in columns], [spelling(name) for name in classes]
        counts = Counter(own)
        if len(set(wanted)) == len(wanted) and all(counts[name] == 1 for name in wanted):
            return columns_at([own.index(name) for name in wanted], table)
    counts = Counter(map(_truth, columns))
    found = [name for name in classes if counts[_truth(name)]]
    if not found:
        _refuse_other_order([str(name) for name in classes], columns)
        return table
    several = [name for name in found if counts[_truth(name)] > 1]
    if several:
        raise DataError(f"the probabilities have {counts[_truth(several[0])]} columns {several[0]!r}")
    missing = [name for name in classes if not counts[_truth(name)]]
    if not missing:
        raise DataError(f"classes: several of the names {_listed(classes)} are the same number")
    raise DataError(
        f"the probabilities have no column {_listed(missing)}, and one for {_listed(found)}; their columns are "
        f"{_listed(columns)}"
    )


def columns_at(places: list[int], table: Any) -> Any:
    """The columns of a table of pandas or polars at these places, in their order."""
    columns = list(table.columns)
    if places == list(range(len(columns))):
        return table
    # pandas takes a list of the names True and False for a choice of rows.
    at = getattr(table, "iloc", None)
    return table[[columns[place] for place in places]] if at is None else at[:, places]


def places_in_classes(labels: Any, classes: Sequence[Any]) -> NDArray[np.int64]:
    """The position of every label in the classes.

    Raises
    ------
    DataError
        A label is missing or is no class, or a class appears twice.
    """
    array = as_vector(labels, "labels")
    refuse_missing(array, "labels")
    found = _matched(*_distinct(array), classes)
    return as_indices(array, classes, by_text=True) if found is None else found


def places_in_columns(labels: Any, columns: Sequence[Any]) -> NDArray[np.int64]:
    """The column of every label: that of its name, or of its number where the columns are called by words.

    Raises
    ------
    DataError
        A label is missing or has no column, or the names say that the columns are in another order.
    """
    array = as_vector(labels, "labels")
    refuse_missing(array, "labels")
    distinct, of = _distinct(array)
    found = _matched(distinct, of, columns)
    if found is not None:
        return found
    known = {_truth(name) for name in columns}
    are_numbers = all(isinstance(label, numbers.Real) and not isinstance(label, bool) for label in distinct)
    if are_numbers and known.isdisjoint(map(_truth, distinct)) and not any(map(_is_number, known)):
        _refuse_other_order([str(at) for at in range(len(columns))], columns)
        return as_labels(array)
    strange = next((label for label in distinct if _truth(label) not in known), None)
    if strange is None:
        raise DataError(f"labels: several of the columns {_listed(columns)} have the same name")
    raise DataError(f"labels have {strange!r}, which is not among the classes {_listed(list(map(str, columns)))}")


def _matched(labels: list[Any], of: NDArray[np.int64], names: Sequence[Any]) -> NDArray[np.int64] | None:
    """The position in the names of each row's label; None where a label is no name, or may be several."""
    for spelling in _SPELLINGS:
        place = {spelling(name): at for at, name in enumerate(names)}
        if len(place) == len(names) and all(spelling(label) in place for label in labels):
            return np.array([place[spelling(label)] for label in labels], dtype=np.int64)[of]
    return None


def _distinct(labels: NDArray[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct labels, and the position in them of each row's."""
    if labels.dtype.kind != "O":
        found, inverse = np.unique(labels, return_inverse=True)
        return found.tolist(), inverse.astype(np.int64, copy=False)
    place: dict[Any, int] = {}
    try:
        # True and 1 are different labels here.
        of = [place.setdefault((type(label), label), len(place)) for label in labels.tolist()]
    except TypeError as error:
        raise DataError(f"labels: a value cannot be a name: {error}") from error
    return [label for _, label in place], np.array(of, dtype=np.int64)


def _refuse_other_order(names: list[str], columns: Sequence[Any]) -> None:
    """Check that columns of other names, which are taken in their order, are not called p_1, p_0 for the names 0, 1.

    Raises
    ------
    DataError
        They are.
    """
    texts = [str(name) for name in columns]
    prefix = os.path.commonprefix(texts)
    ends = [text.removeprefix(prefix) for text in texts]
    if sorted(ends) == sorted(names) and ends != names:
        at = next(at for at, (end, name) in enumerate(zip(ends, names)) if end != name)
        raise DataError(
            f"the column {texts[at]!r} of the probabilities stands where {prefix + names[at]!r} belongs; the columns "
            f"must be in the order of the classes {_listed(names)}"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(repr(name) for name in list(names)[:8]) + (", ..." if len(names) > 8 else "")
