"""Scores and calibration errors as functions of arrays: the metrics of the reports, one at a time.

Probabilities are [n, C], or [n] for the probability of class 1 of two; labels are whole numbers from 0, [n]. Arrays of
numpy, PyTorch, JAX, pandas and polars are taken. Bins of confidence are (lo, hi], the first closed; ties of the largest
probability go to the lowest class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _fedstein
from ._arrays import (
    FloatArray,
    as_bins,
    as_floats,
    as_gaussians,
    as_labels,
    as_probabilities,
    as_text,
    refuse_labels_of_other_rows,
)
from ._fedstein import DataError

__all__ = [
    "Bins",
    "BrierParts",
    "Coverage",
    "bins",
    "brier",
    "brier_parts",
    "classwise_ece",
    "crps",
    "ece",
    "interval_coverage",
    "mce",
    "nll",
    "pit",
]


class Bins(NamedTuple):
    """Bins of confidence, each field [B]; an empty bin has the accuracy and the confidence NaN."""

    lo: NDArray[np.float64]
    """Lower edges; of bins of equal mass the smallest confidence inside."""
    hi: NDArray[np.float64]
    """Upper edges; of bins of equal mass the largest confidence inside."""
    rows: NDArray[np.int64]
    """Numbers of rows."""
    accuracy: NDArray[np.float64]
    """Shares of right predictions."""
    confidence: NDArray[np.float64]
    """Mean confidences."""


class BrierParts(NamedTuple):
    """The top-label Brier score, `uncertainty - resolution + reliability + within`."""

    brier: float
    """Mean of (confidence - correct)^2."""
    uncertainty: float
    """Variance of the outcomes."""
    resolution: float
    """Variance of the accuracy over the bins."""
    reliability: float
    """Mean squared gap of the bins: the calibration error."""
    within: float
    """Variation inside the bins."""


class Coverage(NamedTuple):
    """Central intervals against the targets, each field [L]."""

    level: NDArray[np.float64]
    """Nominal masses of the intervals."""
    coverage: NDArray[np.float64]
    """Shares of targets inside."""
    width: NDArray[np.float64]
    """Mean widths, in the unit of the target."""


def _scored(probabilities: Any, labels: Any) -> tuple[FloatArray, NDArray[np.int64]]:
    """Probabilities, and the label of each row."""
    array, indices = as_probabilities(probabilities), as_labels(labels)
    refuse_labels_of_other_rows(array, indices)
    return array, indices


def ece(probabilities: Any, labels: Any, *, bins: int = 15, binning: Literal["width", "mass"] = "width") -> float:
    """Expected calibration error of the top label: sum over bins of (rows / n) |accuracy - confidence|.

    Parameters
    ----------
    probabilities : array_like, [n, C] or [n]
    labels : array_like of int, [n]
    bins : int
        Number of bins.
    binning : {"width", "mass"}
        Bins of equal width (Guo et al. 2017), or of equal numbers of rows (Nixon et al. 2019, "adaptive").

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    DataError
        The rows are not distributions with labels, or the number of bins is out of range.
    """
    return _fedstein.bins(*_scored(probabilities, labels), as_bins(bins), as_text(binning, "binning"))[5][0]


def mce(probabilities: Any, labels: Any, *, bins: int = 15, binning: Literal["width", "mass"] = "width") -> float:
    """Maximum calibration error of the top label: the largest |accuracy - confidence| of a bin with rows.

    Parameters and errors are those of `ece`. One bin of few rows can set it.
    """
    return _fedstein.bins(*_scored(probabilities, labels), as_bins(bins), as_text(binning, "binning"))[5][2]


def bins(probabilities: Any, labels: Any, *, bins: int = 15, binning: Literal["width", "mass"] = "width") -> Bins:
    """The bins of a reliability diagram of the top label. Parameters and errors are those of `ece`."""
    found = _fedstein.bins(*_scored(probabilities, labels), as_bins(bins), as_text(binning, "binning"))
    return Bins(*found[:5])


def classwise_ece(probabilities: Any, labels: Any, *, bins: int = 15) -> NDArray[np.float64]:
    """Calibration error of every class: p_c against "the label is c", over all rows, in bins of equal width.

    Returns
    -------
    ndarray of float64, [C]
        Its mean is the classwise ECE of a report.
    """
    return _fedstein.classwise_ece(*_scored(probabilities, labels), as_bins(bins))


def brier(probabilities: Any, labels: Any) -> float:
    """Brier score: mean over rows of sum_c (p_c - [label = c])^2, from 0 to 2 for two classes too.

    For two classes it is twice the mean squared error of p(label = 1).
    """
    return _fedstein.brier(*_scored(probabilities, labels))


def brier_parts(probabilities: Any, labels: Any, *, bins: int = 15) -> BrierParts:
    """The exact decomposition of the top-label Brier score over bins of equal width (Murphy 1973)."""
    return BrierParts(*_fedstein.brier_parts(*_scored(probabilities, labels), as_bins(bins)))


def nll(probabilities: Any, labels: Any) -> float:
    """Negative log-likelihood: mean over rows of -ln max(p_label, 1e-12), in nats."""
    return _fedstein.nll(*_scored(probabilities, labels))


def crps(mean: Any, sd: Any, targets: Any) -> float:
    """Continuous ranked probability score of Gaussians, or of equal-weight mixtures of Gaussians, in closed form.

    Parameters
    ----------
    mean, sd : array_like, [n] or [N, n]
        Means and standard deviations; with two dimensions, of the N members of a mixture. A column, [n, 1], counts as
        [n].
    targets : array_like, [n]

    Returns
    -------
    float
        Mean over rows, in the unit of the targets; lower is better.

    Raises
    ------
    DataError
        The shapes do not fit together, or a number is not finite, or a standard deviation not greater than 0.
    """
    return _fedstein.crps(*as_gaussians(mean, sd, targets))


def pit(mean: Any, sd: Any, targets: Any) -> NDArray[np.float64]:
    """Probability integral transform: the predictive's distribution function at each target.

    Parameters and errors are those of `crps`. The result, [n], is uniform on [0, 1] where predictions are calibrated.
    """
    return _fedstein.pit(*as_gaussians(mean, sd, targets))


def interval_coverage(
    mean: Any, sd: Any, targets: Any, *, levels: Sequence[float] | NDArray[Any] = (0.5, 0.8, 0.9, 0.95)
) -> Coverage:
    """The share of targets in the central interval of each level, and the intervals' mean width.

    Parameters and errors are those of `crps`; a level lies strictly between 0 and 1.
    """
    of = as_gaussians(mean, sd, targets)
    masses = as_floats(levels, "levels").astype(np.float64)
    if masses.ndim != 1:
        raise DataError(f"levels: {levels!r} must be a sequence of numbers, such as (0.5, 0.9)")
    share, width = _fedstein.coverage(*of, masses.tolist())
    return Coverage(masses, share, width)
