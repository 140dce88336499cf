"""Calibration reports."""

from __future__ import annotations

import html as _html
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from ._arrays import (
    Names,
    StrPath,
    as_bins,
    as_gaussians,
    as_groups,
    as_labels,
    as_names,
    as_path,
    as_probabilities,
    as_text,
    as_texts,
    as_units,
    counted,
    in_order_of_categories,
    refuse_labels_of_other_rows,
)
from ._data import columns_of
from ._fedstein import ConfigError, DataError, Scored, takes_report
from ._names import places_in_classes, places_in_columns, table_of

__all__ = ["Report", "report", "report_regression"]


class _Source(Protocol):
    """Where a report comes from."""

    def overall(self) -> str: ...
    def groups(self) -> str: ...
    def render(self) -> tuple[str, str]: ...
    def save(self, directory: Path) -> Path: ...


class Report:
    """A calibration report: numbers, tables and a page. It shows itself in a notebook.

    The headline numbers are computed at once. Those of groups, bootstrap intervals, temperature scaling and the page
    are computed when they are first asked for.

    The arrays are not copied. Where one was written into before a part of the report was computed, that part raises
    `DataError`.

    Make one with `fedstein.report`, `fedstein.report_regression` or `Run.report`.
    """

    def __init__(
        self, source: _Source, names: Sequence[str] = (), evaluation: Mapping[str, float | None] | None = None
    ) -> None:
        # The names of the runs that are compared, its own first; empty where it is on no run.
        self._names = _distinct(names)
        # What the run has of itself, as of the runs that it is compared with.
        self._evaluation = dict(evaluation or {})
        self._source = source
        self._overall = _numbers(json.loads(source.overall()))
        self._groups: dict[str, dict[str, float]] | None = None
        self._rendered: tuple[str, str] | None = None

    def _number(self, key: str) -> float:
        if key not in self._overall:
            raise AttributeError(f"this report has no {key}; it has {', '.join(self._overall)}")
        return self._overall[key]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._number("n"))

    @property
    def accuracy(self) -> float:
        """Share of rows whose most probable class is the label."""
        return self._number("accuracy")

    @property
    def nll(self) -> float:
        """Negative log-likelihood, nats; lower is better."""
        return self._number("nll")

    @property
    def brier(self) -> float:
        """Brier score, from 0 to 2; lower is better."""
        return self._number("brier")

    @property
    def ece(self) -> float:
        """Expected calibration error of the top label."""
        return self._number("ece")

    @property
    def mce(self) -> float:
        """Maximum calibration error of the top label; a bin of few rows can set it."""
        return self._number("mce")

    @property
    def ace(self) -> float:
        """Adaptive calibration error: the ECE over bins of equal numbers of rows."""
        return self._number("ace")

    @property
    def classwise_ece(self) -> float:
        """Mean over classes of the calibration error of one class against the others."""
        return self._number("classwise_ece")

    @property
    def signed_gap(self) -> float:
        """Mean confidence minus accuracy: above 0 is overconfident."""
        return self._number("signed_gap")

    @property
    def auroc(self) -> float:
        """Area under the ROC curve of p(y = 1); NaN unless there are two classes that both have rows."""
        return self._number("auroc")

    @property
    def auprc(self) -> float:
        """Average precision of p(y = 1); NaN unless there are two classes, and rows of class 1."""
        return self._number("auprc")

    @property
    def calibration_slope(self) -> float:
        """Slope of the label on logit p(y = 1): below 1 too extreme; NaN where it has no value."""
        return self._number("calibration_slope")

    @property
    def calibration_intercept(self) -> float:
        """Intercept of the same fit; NaN where it has no value."""
        return self._number("calibration_intercept")

    @property
    def calibration_in_the_large(self) -> float:
        """Intercept with the slope 1: above 0 the probabilities of class 1 are too low; NaN where it has no value."""
        return self._number("calibration_in_the_large")

    @property
    def rmse(self) -> float:
        """Root mean squared error of the predictive mean, in the unit of the target."""
        return self._number("rmse")

    @property
    def mae(self) -> float:
        """Mean absolute error of the predictive mean, in the unit of the target."""
        return self._number("mae")

    @property
    def crps(self) -> float:
        """Continuous ranked probability score, in the unit of the target."""
        return self._number("crps")

    @property
    def groups(self) -> dict[str, dict[str, float]]:
        """The table of each group of rows, by its name, in the order of `report`; empty without groups."""
        if self._groups is None:
            found = json.loads(self._source.groups())
            self._groups = {name: _numbers(numbers) for name, numbers in found.items()}
        return {name: dict(numbers) for name, numbers in self._groups.items()}

    @property
    def compared(self) -> dict[str, dict[str, float]]:
        """The headline numbers of each run that this report compares, its own first, by the run's name.

        They are the same ones of each, those of `Run.evaluation`; `table` has more of its own run.

        Of runs with the same name the second is called "name (2)", the third "name (3)". A report on no run has its own
        numbers by its title.
        """
        run = self.to_dict().get("run") or {}
        own = self.table()
        others = run.get("compare", [])
        names = self._names or [str(self.to_dict()["title"])]
        if not others:
            return {names[0]: own}
        found = {}
        evaluations = [self._evaluation, *(other["evaluation"] for other in others)]
        bins = [own.get("bins"), *(len(other["bins"]) for other in others)]
        for name, evaluation, count in zip(names, evaluations, bins, strict=True):
            numbers = {key: value for key, value in evaluation.items() if value is not None}
            # The sizes have the keys of `table`. Runs of one task have the same classes.
            sizes = {"n": numbers["rows"]}
            if "classes" in own:
                sizes.update(classes=own["classes"], bins=count)
            found[name] = {**sizes, **numbers}
        return found

    @property
    def html(self) -> str:
        """The page `report.html`: one file without scripts."""
        return self._render()[1]

    @property
    def verdict(self) -> str:
        """Whether the predictions are overconfident, in one line."""
        return str(self.to_dict()["verdict"]["headline"])

    @property
    def warning(self) -> str | None:
        """In what the model is no better than one prediction for all rows; None where it is better, or not known."""
        found = self.to_dict()["verdict"].get("warning")
        return None if found is None else str(found)

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Intervals of 95 % of the headline numbers, by key."""
        found = self.to_dict().get("confidence_intervals") or {}
        return {key: (value["lo"], value["hi"]) for key, value in found.items() if isinstance(value, dict)}

    def table(self) -> dict[str, float]:
        """The headline numbers by their keys in `report.json`; NaN where a number has no value."""
        return dict(self._overall)

    def to_dict(self) -> dict[str, Any]:
        """All numbers: the content of `report.json`."""
        found: dict[str, Any] = json.loads(self._render()[0])
        return found

    def save(self, directory: StrPath) -> Path:
        """Write `report.html`, `report.json`, `bins.csv` and pictures into a directory, which is created.

        With groups there is also `groups.csv`, with two classes `thresholds.csv`, with more `confusion.csv`.

        An earlier report there is replaced; a directory of other files is refused.

        Returns
        -------
        Path
            The page.

        Raises
        ------
        ConfigError
            The directory holds files and no report of fedstein.
        DataError
            The arrays have changed since the report was made, and its page was not computed before.
        RunFailed
            A file cannot be written.
        """
        path = as_path(directory, "directory")
        if path.is_dir() and not takes_report(path):
            raise ConfigError(f"`{path}` is not empty and holds no report of fedstein; choose another directory")
        return Path(self._source.save(path))

    def _render(self) -> tuple[str, str]:
        if self._rendered is None:
            self._rendered = self._source.render()
        return self._rendered

    def _repr_html_(self) -> str:
        # The page has a style of its own, which a frame keeps apart from the notebook's.
        page = _html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 60em; border: 0"></iframe>'

    def __reduce__(self) -> NoReturn:
        raise TypeError("a fedstein.Report cannot be pickled; pickle its numbers, report.to_dict(), or use report.save")

    def __copy__(self) -> Report:
        """The object itself: what it reports on does not change."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Report:
        """The object itself: what it reports on does not change."""
        return self

    def __repr__(self) -> str:
        keys = [key for key in ("accuracy", "nll", "brier", "ece", "rmse", "crps") if key in self._overall]
        numbers = ", ".join(f"{key}={self._overall[key]:.4g}" for key in keys)
        return f"Report(rows={self.rows}, {numbers})"


def report(
    probabilities: Any,
    labels: Any,
    *,
    classes: Names | None = None,
    groups: Any = None,
    clusters: Any = None,
    bins: int = 15,
    title: str = "predictions",
) -> Report:
    """Judge class probabilities of any model.

    Parameters
    ----------
    probabilities : array_like, [n, C] or [n]
        A distribution over C classes for each row, which sums to 1 within 0.001; or the probability of class 1 of two.
        Arrays of numpy, PyTorch, JAX, pandas and polars are taken; those of float64, row by row, are not copied. The
        columns of a table that are called as the `classes` are found by their names, and its further columns are not
        used; where no column is called as a class, they are in the order of the classes.
    labels : array_like, [n]
        The true classes: whole numbers from 0, or members of `classes`, or values whose texts these are.
    classes : sequence, optional
        The names of the C classes in the order of the columns. Labels are then these names. Without it, they are the
        names of a table's columns, if it has any: labels are these names, or, where the names are words and no label is
        one, whole numbers from 0. Names are matched by value: 1, 1.0 and "1" are one name, and so are True and 1 where
        nothing else is called 1.
    groups : array_like, [n], optional
        The group of each row, such as its hospital. `Report.groups` has the numbers of each, and the page a table of
        the groups; of more than 50, those with the most rows. They are sorted by their values, and those of a
        Categorical of pandas are in the order of its categories; rows without a value are the last group.
    clusters : array_like, [n], optional
        The cluster of each row, such as its patient, where rows that belong together are alike. Intervals and the
        verdict then count clusters and not rows: clusters are resampled, and shares have as many rows as independent
        ones would tell as much.
    bins : int
        Number of bins of confidence.
    title : str
        Headline of the page.

    Returns
    -------
    Report

    Raises
    ------
    DataError
        A row is not a distribution, a label is no class, or the shapes do not fit together. The message names the row.

    Examples
    --------
    >>> import fedstein
    >>> fedstein.report([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1]).accuracy
    0.6666666666666666
    """
    columns = _names_of_columns(probabilities)
    names = None
    if classes is not None:
        classes = as_names(classes, "classes")
        if columns is not None:
            probabilities = table_of(classes, probabilities)
        names = as_texts(classes, "classes")
    array = as_probabilities(probabilities)
    if classes is not None:
        width = array.shape[-1] if array.ndim > 1 else 2
        if len(classes) != width:
            raise DataError(f"classes has {counted(len(classes), 'name')}; the probabilities have {width} columns")
        indices = places_in_classes(labels, classes)
    elif columns is not None:
        indices, names = places_in_columns(labels, columns), as_texts(columns, "columns")
    else:
        indices = as_labels(labels)
    refuse_labels_of_other_rows(array, indices)
    of = None if groups is None else _groups(groups, len(indices))
    together = None if clusters is None else as_units(clusters, len(indices), "clusters")
    return Report(Scored.classes(array, indices, as_bins(bins), as_text(title, "title"), names, of, together))


def _names_of_columns(probabilities: Any) -> list[Any] | None:
    """The names of a table's columns; None where it has one column, or its library has numbered them."""
    if columns_of(probabilities, "probabilities") is None:
        return None
    own = list(probabilities.columns)
    numbered = [list(range(len(own))), [f"column_{at}" for at in range(len(own))]]
    # True and False are not the numbers 1 and 0 of a library.
    is_numbered = own in numbered and not any(isinstance(name, (bool, np.bool_)) for name in own)
    return None if len(own) < 2 or is_numbered else own


def _groups(values: Any, rows: int) -> tuple[list[str], NDArray[np.int64]]:
    names, of = in_order_of_categories(values, as_groups(values, rows))
    return as_texts(names, "groups"), of


def report_regression(
    mean: Any,
    sd: Any,
    targets: Any,
    *,
    groups: Any = None,
    clusters: Any = None,
    title: str = "predictions",
) -> Report:
    """Judge Gaussian predictions of any model.

    Parameters
    ----------
    mean, sd : array_like, [n] or [N, n]
        Means and standard deviations; with two dimensions, of the N equally likely members of an ensemble. A column,
        [n, 1], counts as [n].
    targets : array_like, [n]
        The true values.
    groups : array_like, [n], optional
        The group of each row, as in `report`.
    clusters : array_like, [n], optional
        The cluster of each row, as in `report`.
    title : str
        Headline of the page.

    Returns
    -------
    Report
        With `nll` (nats), `rmse`, `mae` and `crps` (in the unit of the targets).

    Raises
    ------
    DataError
        The shapes do not fit together, a number is not finite, or a standard deviation is not greater than 0.
    """
    means, sds, values = as_gaussians(mean, sd, targets)
    of = None if groups is None else _groups(groups, len(values))
    together = None if clusters is None else as_units(clusters, len(values), "clusters")
    return Report(Scored.real(means, sds, values, 15, as_text(title, "title"), of, together))


def _numbers(values: dict[str, float | None]) -> dict[str, float]:
    """Numbers by their keys; NaN where one has no value."""
    return {key: math.nan if value is None else value for key, value in values.items()}


def _distinct(names: Sequence[str]) -> list[str]:
    """Names of which none is twice: the second "a" is "a (2)"."""
    found: list[str] = []
    for name in names:
        own, number = name, 1
        while own in found:
            number += 1
            own = f"{name} ({number})"
        found.append(own)
    return found
