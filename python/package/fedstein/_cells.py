"""Tables with texts, dates and missing cells, for runs that were trained on a file of such cells."""

from __future__ import annotations

import csv
import datetime
import numbers
import re
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import LONE, as_vector, is_missing, is_unicode
from ._data import columns_of, in_order_of
from ._fedstein import DataError, Finished


def features_of_cells(
    finished: Finished, data: Mapping[str, Any], table: Any
) -> tuple[NDArray[np.float32], list[str]] | None:
    """The features [n, p] of a table's cells, and notes on cells that are missing or new to the run.

    None where the run was trained on numbers alone, or the table has the features themselves and not all columns.

    Parameters
    ----------
    finished : Finished
        The run.
    data : mapping
        Its keys of `[data]`, by which its file was read.
    table : object
        Rows to predict.

    Raises
    ------
    DataError
        A column is missing, or a cell does not fit its column. The message names row and column.
    """
    columns, found = finished.cell_columns(), columns_of(table)
    if columns is None or found is None:
        return None
    names, categories = columns
    if names is not None and not set(names).issubset(found) and set(finished.feature_names() or ()).issubset(found):
        return None
    if names is None and len(found) != len(categories):
        raise DataError(f"the rows have {len(found)} columns; the run was trained on {len(categories)}, without names")
    own = in_order_of(names, table, "rows")
    cells = [_texts(own[name], name, data, texts) for name, texts in zip(own.columns, categories, strict=True)]
    with tempfile.TemporaryDirectory(prefix="fedstein-") as directory:
        file = Path(directory, "rows.csv")
        mark = "\t" if data["delimiter"] in ("tab", "\\t") else data["delimiter"]
        with file.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, delimiter=mark, lineterminator="\n")
            if names is not None:
                writer.writerow(names)
            writer.writerows(zip(*cells, strict=True))
        try:
            encoded, notes = finished.cells(file)
        except DataError as error:
            first = 1 if names is None else 2
            row = re.sub(r"^: line (\d+)", lambda at: f": row {int(at[1]) - first}", str(error).removeprefix(str(file)))
            raise DataError(f"rows{row}" if row.startswith(":") else str(error)) from None
    return encoded, [note.replace(str(file), "the rows") for note in notes]


def _texts(column: Any, name: Any, data: Mapping[str, Any], categories: list[str]) -> list[str]:
    """The cells of a column as the run's file would have them; `categories` are the texts of a column of texts."""
    if getattr(getattr(column, "dtype", None), "time_zone", None) is not None:
        # The time on the clock, as of a column of pandas; numpy would have it in UTC.
        column = column.dt.replace_time_zone(None)
    values = as_vector(column, f"column {name!r}")
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]").astype(object)
    # The shortest number that is the same in the column's own precision: 0.1, and not 0.10000000149011612.
    is_short = values.dtype.kind == "f" and values.dtype.itemsize < 8
    cells = list(values) if is_short else values.tolist()
    words = {value: _word(value, categories) for value in (False, True)}
    texts = [_text(cell, data["decimal"], data["date_format"], words) for cell in cells]
    strange = next((row for row, text in enumerate(texts) if not is_unicode(text)), None)
    if strange is not None:
        raise DataError(f"rows: row {strange}, column {name!r}: {texts[strange]!r} {LONE}")
    return texts


def _word(value: bool, categories: list[str]) -> str:
    """What the file of a run has for true or false: its own spelling, where the texts of the column have one."""
    word = str(value).lower()
    found = [text for text in categories if text.lower() == word]
    return found[0] if len(found) == 1 else word


def _text(value: Any, decimal: str, date_format: str, words: Mapping[bool, str]) -> str:
    if is_missing(value):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return words[bool(value)]
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        # A column of whole numbers with a missing cell is one of floating point numbers in pandas.
        is_whole = number.is_integer() and abs(number) < 1e15
        return str(int(number)) if is_whole else _shortest(value).replace(".", decimal)
    if isinstance(value, Decimal) and value.is_finite():
        # No operation here rounds to the precision of the caller's context.
        if value == value.to_integral_value() and value.copy_abs() < 10**15:
            return str(int(value))
        digits = format(value, "f")
        return (digits.rstrip("0").rstrip(".") if "." in digits else digits).replace(".", decimal)
    if isinstance(value, datetime.date):
        parts = {"YYYY": f"{value.year:04}", "MM": f"{value.month:02}", "DD": f"{value.day:02}"}
        day = re.sub("YYYY|MM|DD", lambda part: parts[part[0]], date_format)
        time = value.time() if isinstance(value, datetime.datetime) else datetime.time()
        return f"{day}T{time.isoformat()}" if time != datetime.time() else day
    return str(value)


def _shortest(value: numbers.Real) -> str:
    """The shortest decimal number that is this value in its own precision."""
    return str(value) if isinstance(value, (np.float16, np.float32)) else repr(float(value))
