from __future__ import annotations

import fedstein
import numpy as np
import pandas as pd
import pytest
from conftest import Predictions
from fedstein import calibration
from scipy import integrate, stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss


def binned_ece(confidence: np.ndarray, right: np.ndarray, edges: np.ndarray) -> float:
    """ECE over bins (lo, hi], by scipy."""
    confidence = np.clip(confidence, 1e-300, None)
    n = len(confidence)
    # binned_statistic has bins [lo, hi); the negatives have (lo, hi].
    sums = stats.binned_statistic(-confidence, right - confidence, statistic="sum", bins=-edges[::-1]).statistic
    return float(np.abs(sums).sum() / n)


def test_ece_of_equal_width_is_that_of_an_independent_program(predictions: Predictions) -> None:
    probabilities, labels = predictions
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    for bins in (1, 10, 15):
        want = binned_ece(confidence, right, np.linspace(0, 1, bins + 1))
        assert calibration.ece(probabilities, labels, bins=bins) == pytest.approx(want, abs=1e-12)


def test_ece_of_equal_mass_cuts_the_sorted_rows(predictions: Predictions) -> None:
    probabilities, labels = predictions
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    order = np.argsort(confidence, kind="stable")
    parts = np.array_split(order, 15)
    want = sum(abs((right[part] - confidence[part]).sum()) for part in parts) / len(labels)
    assert calibration.ece(probabilities, labels, binning="mass") == pytest.approx(want, abs=1e-12)
    found = calibration.bins(probabilities, labels, binning="mass")
    assert found.rows.tolist() == [len(part) for part in parts]
    with pytest.raises(fedstein.DataError, match='binning is "equal"'):
        calibration.ece(probabilities, labels, binning="equal")  # type: ignore[arg-type]


def test_classwise_ece_and_bins_agree_with_scikit_learn(predictions: Predictions) -> None:
    probabilities, labels = predictions
    classwise = calibration.classwise_ece(probabilities, labels, bins=10)
    assert classwise.shape == (4,)
    for c in range(4):
        share, mean = calibration_curve(labels == c, probabilities[:, c], n_bins=10)
        counts = np.histogram(probabilities[:, c], bins=np.linspace(0, 1, 11))[0]
        want = (counts[counts > 0] * np.abs(share - mean)).sum() / len(labels)
        assert classwise[c] == pytest.approx(want, abs=1e-12)
    assert fedstein.report(probabilities, labels, bins=10).classwise_ece == pytest.approx(classwise.mean(), abs=1e-12)
    found = calibration.bins(probabilities, labels, bins=10)
    filled = found.rows > 0
    share, mean = calibration_curve(probabilities.argmax(axis=1) == labels, probabilities.max(axis=1), n_bins=10)
    assert found.accuracy[filled] == pytest.approx(share, abs=1e-12)
    assert found.confidence[filled] == pytest.approx(mean, abs=1e-12)
    assert np.isnan(found.accuracy[~filled]).all()
    assert calibration.mce(probabilities, labels, bins=10) == pytest.approx(np.abs(share - mean).max(), abs=1e-12)


def test_proper_scores_agree_with_scikit_learn(predictions: Predictions) -> None:
    probabilities, labels = predictions
    assert calibration.nll(probabilities, labels) == pytest.approx(log_loss(labels, probabilities), rel=1e-12)
    p, y = probabilities[:, 1], labels == 1
    assert calibration.brier(p, y) == pytest.approx(2 * brier_score_loss(y, p), rel=1e-12)


def test_the_parts_of_the_brier_score_add_up(predictions: Predictions) -> None:
    probabilities, labels = predictions
    parts = calibration.brier_parts(probabilities, labels, bins=7)
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    assert parts.brier == pytest.approx(brier_score_loss(right, confidence), rel=1e-12)
    assert parts.uncertainty == pytest.approx(right.var(), rel=1e-12)
    total = parts.uncertainty - parts.resolution + parts.reliability + parts.within
    assert total == pytest.approx(parts.brier, rel=1e-12)


def test_crps_is_the_integral_of_its_definition() -> None:
    mean, sd, y = [[0.0, 1.0], [0.5, -1.0]], [[1.0, 0.5], [2.0, 1.0]], [0.3, -2.0]

    def of_row(row: int) -> float:
        def cdf(t: float) -> float:
            return float(np.mean([stats.norm.cdf(t, mean[n][row], sd[n][row]) for n in range(2)]))

        below = integrate.quad(lambda t: cdf(t) ** 2, -30, y[row], limit=200)[0]
        above = integrate.quad(lambda t: (1 - cdf(t)) ** 2, y[row], 30, limit=200)[0]
        return below + above

    # The integrals are given to about 1e-8.
    assert calibration.crps(mean, sd, y) == pytest.approx((of_row(0) + of_row(1)) / 2, abs=1e-7)


def test_intervals_and_pit_are_those_of_the_normal_distribution() -> None:
    rng = np.random.default_rng(5)
    mean, sd = rng.normal(size=400), rng.uniform(0.1, 3, size=400)
    y = rng.normal(size=400)
    assert calibration.pit(mean, sd, y) == pytest.approx(stats.norm.cdf(y, mean, sd), abs=1e-14)
    found = calibration.interval_coverage(mean, sd, y, levels=[0.3, 0.9])
    for at, level in enumerate([0.3, 0.9]):
        low, high = stats.norm.interval(level, mean, sd)
        assert found.coverage[at] == ((low <= y) & (y <= high)).mean()
        assert found.width[at] == pytest.approx((high - low).mean(), rel=1e-12)
    with pytest.raises(fedstein.DataError, match="level"):
        calibration.interval_coverage(mean, sd, y, levels=[1.0])
    with pytest.raises(fedstein.DataError, match="levels: 0.9 must be a sequence of numbers"):
        calibration.interval_coverage(mean, sd, y, levels=0.9)  # type: ignore[arg-type]


def test_a_label_for_each_row_and_a_name_of_the_binning_are_asked_for() -> None:
    rows = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    for score in (calibration.ece, calibration.mce, calibration.bins, calibration.classwise_ece, calibration.nll):
        with pytest.raises(fedstein.DataError, match="^2 labels for 3 rows of probabilities$"):
            score(rows, [0, 1])
    for score in (calibration.brier, calibration.brier_parts):
        with pytest.raises(fedstein.DataError, match="^1 label for 2 rows of probabilities$"):
            score([0.9, 0.1], [0])
    with pytest.raises(fedstein.DataError, match="^binning: 3 must be a text$"):
        calibration.ece(rows, [0, 1, 1], binning=3)  # type: ignore[arg-type]
    with pytest.raises(fedstein.DataError, match='binning is "x"; it must be "width" or "mass"'):
        calibration.mce(rows, [0, 1, 1], binning="x")  # type: ignore[arg-type]


def test_a_column_of_means_is_of_rows_and_beside_one_target_of_members() -> None:
    rng = np.random.default_rng(6)
    mean, sd, y = rng.normal(size=30), rng.uniform(0.5, 2, size=30), rng.normal(size=30)
    # The closed form for one Gaussian (Gneiting & Raftery 2007, equation 21).
    z = (y - mean) / sd
    crps = (sd * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))).mean()
    for columns in (
        (mean[:, None], sd[:, None], y[:, None]),
        (mean[:, None], sd, y),
        tuple(pd.DataFrame({"x": values}) for values in (mean, sd, y)),
    ):
        assert calibration.crps(*columns) == pytest.approx(crps, rel=1e-12)
        assert calibration.pit(*columns) == pytest.approx(stats.norm.cdf(y, mean, sd), abs=1e-14)
        low, high = stats.norm.interval(0.8, mean, sd)
        found = calibration.interval_coverage(*columns, levels=[0.8])
        assert found.coverage[0] == ((low <= y) & (y <= high)).mean()
        report = fedstein.report_regression(*columns)
        assert report.rows == 30 and report.nll == pytest.approx(-stats.norm(mean, sd).logpdf(y).mean(), rel=1e-12)
    # Members of one row: the mean of their distribution functions.
    assert calibration.pit(mean[:, None], sd[:, None], [0.3]) == pytest.approx(stats.norm.cdf(0.3, mean, sd).mean())
    assert fedstein.report_regression(mean[:, None], sd[:, None], [0.3]).table()["particles"] == 30
    with pytest.raises(fedstein.DataError, match=r"targets have the shape \[29\]; with these means it must be \[30\]"):
        calibration.crps(mean[:, None], sd[:, None], y[:29])
