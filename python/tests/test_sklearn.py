from __future__ import annotations

import pickle
from typing import Any

import fedstein
import numpy as np
import pytest
from fedstein.sklearn import FedsteinClassifier, FedsteinRegressor
from sklearn.datasets import load_iris, make_regression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks


# A small network, because these are some hundred trainings.
@parametrize_with_checks([FedsteinClassifier(hidden=(10,)), FedsteinRegressor(hidden=(10,))])  # type: ignore[untyped-decorator]
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_a_classifier_over_clients_predicts_names() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = FedsteinClassifier(random_state=0, rounds=9).fit(X, names, clients=np.arange(150) % 3)
    assert model.run_.config["partition"]["kind"] == "by-column"
    assert model.score(X, names) > 0.95
    assert np.array_equal(model.predict_proba(X), model.run_.predict(X))
    again = pickle.loads(pickle.dumps(model))
    assert again.run_.path != model.run_.path and np.array_equal(again.predict(X), model.predict(X))
    assert cross_val_score(make_pipeline(PolynomialFeatures(2), FedsteinClassifier(rounds=2)), X, y, cv=2).min() > 0.8


def test_a_regressor_has_standard_deviations() -> None:
    X, y = make_regression(200, 3, noise=10.0, random_state=0)
    model = FedsteinRegressor(random_state=0, rounds=20).fit(X, y)
    mean, sd = model.predict(X, return_std=True)
    assert np.array_equal(mean, model.predict(X))
    # The noise of the rows, and a little for what the particles disagree about.
    assert 10 < sd.mean() < 20
    with pytest.raises(fedstein.ConfigError, match="`rounds` cannot be 0"):
        FedsteinRegressor(rounds=0).fit(X, y)


def test_without_rounds_a_fit_is_as_long_as_held_out_rows_say() -> None:
    X, y = load_iris(return_X_y=True)
    run = FedsteinClassifier(random_state=0, hidden=(4,)).fit(X, y).run_
    best = np.nanargmin(run.rounds["nll"])
    assert run.config["rounds"] == 100 and run.config["stop"]["patience"] == 10
    # The rows that are held out are scored, and the best round of these is taken.
    assert run.evaluation["rows"] == len(run.labels) == 15
    assert run.evaluation["nll"] == pytest.approx(run.rounds["nll"][best]) and len(run.rounds["nll"]) == min(
        100, best + 11
    )
    few = FedsteinRegressor(random_state=0, hidden=(4,)).fit(X[:99], y[:99]).run_
    assert few.config["rounds"] == 10 and few.config["stop"]["patience"] == 0 and len(few.labels) == 99
    sites = FedsteinClassifier(random_state=0, hidden=(4,)).fit(X, y, clients=np.arange(150) % 12).run_
    assert sites.config["rounds"] == 240 and sites.config["stop"]["patience"] == 24
    for dealt, rounds, patience in (
        ({"partition.clients": 20}, 40, 0),
        ({"partition.clients": 5, "stop.patience": 3}, 100, 3),
    ):
        keys = FedsteinClassifier(random_state=0, hidden=(4,), config=dealt).fit(X, y).run_.config
        assert keys["rounds"] == rounds and keys["stop"]["patience"] == patience
    told = FedsteinClassifier(random_state=0, hidden=(4,), rounds=2).fit(X, y).run_
    assert told.config["rounds"] == 2 and len(told.labels) == 150


def test_methods_without_particles_are_fitted_too() -> None:
    X, y = load_iris(return_X_y=True)
    for kind in ("fedavg", "fedper"):
        parameters = {"hidden": (4,), "particles": None, "config": {"algorithm.kind": kind}, "random_state": 0}
        model = FedsteinClassifier(**parameters).fit(X, y, clients=np.arange(150) % 3)
        assert model.run_.config["algorithm"]["kind"] == kind and model.predict_proba(X).shape == (150, 3)
        # Where the clients' own heads complete the model, no round is better by its published part.
        assert (model.run_.config["stop"]["patience"] > 0) == (kind == "fedavg")


def test_a_fit_that_fails_leaves_the_model_of_the_fit_before() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = FedsteinClassifier(random_state=0, rounds=2, hidden=(4,)).fit(X, names)
    want, before = model.predict(X), dict(vars(model))
    model.set_params(config={"optimizer.lr": 0.0})
    with pytest.raises(fedstein.ConfigError, match="optimizer.lr"):
        model.fit(X.to_numpy()[:, :2], y)
    assert np.array_equal(model.predict(X), want)
    assert vars(model) == {**before, "config": {"optimizer.lr": 0.0}}
    regressor = FedsteinRegressor(random_state=0, rounds=2, hidden=(4,)).fit(X, y)
    means = regressor.predict(X)
    with pytest.raises(fedstein.DataError, match="client"):
        regressor.fit(X.to_numpy()[:, :2], y, clients=[1, 2, 3])
    assert np.array_equal(regressor.predict(X), means)


def test_keys_of_the_config_are_those_of_the_run() -> None:
    X, y = load_iris(return_X_y=True)
    config = {"partition": {"clients": 3}, "evaluation.every": 1, "checkpoint": {"enabled": True}}
    run = FedsteinClassifier(rounds=2, hidden=[4], config=config).fit(X, y).run_
    assert run.config["partition"]["clients"] == 3 and run.config["evaluation"]["every"] == 1
    assert run.config["checkpoint"]["enabled"] and not np.isnan(run.rounds["accuracy"]).any()
    kind = {"partition.kind": "labels-per-client", "partition.labels": 2}
    assert FedsteinClassifier(rounds=1, hidden=[4], config=kind).fit(X, y).run_.config["partition"]["clients"] > 1
    assert FedsteinClassifier(rounds=1, hidden=[4]).fit(X, y).run_.config["partition"]["clients"] == 1
    for parameters, message in (
        ({"config": {"rounds": 3}}, "config: `rounds` is the parameter rounds of the estimator"),
        ({"config": {"seed": 3}}, "config: `seed` is the parameter random_state"),
        ({"config": {"model": {"hidden": [3]}}}, "config: `model.hidden` is the parameter hidden"),
        ({"config": "x"}, "config is a str; it must be a dict"),
        ({"hidden": 50}, r"hidden: 50 must be a sequence of whole numbers, such as \(50,\)"),
    ):
        with pytest.raises(fedstein.ConfigError, match=message):
            FedsteinClassifier(**parameters).fit(X, y)
