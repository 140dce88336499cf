from __future__ import annotations

import pickle
import warnings
from typing import Any

import fedstein
import numpy as np
import pytest
from fedstein.sklearn import FedsteinClassifier, FedsteinRegressor
from sklearn.datasets import load_iris, make_regression
from sklearn.exceptions import NotFittedError
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
    assert model.predict_proba(X) == pytest.approx(model.run_.predict(X), abs=1e-6)
    assert np.abs(model.predict_proba(X).sum(axis=1) - 1).max() < 1e-15
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

    def parameters(config: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        return {"random_state": 0, "hidden": (4,), "config": {"algorithm.local_steps": 5} | (config or {})} | more

    # Nothing is to be said of test rows, which an estimator does not have.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = FedsteinClassifier(**parameters()).fit(X, y).run_
        FedsteinRegressor(**parameters()).fit(X, y)
    with pytest.warns(fedstein.RunWarning, match="never train"):
        FedsteinClassifier(**parameters(rounds=1)).fit(X, y, clients=np.arange(150) % 5)
    assert run.config["rounds"] == 100 and run.config["stop"]["patience"] == 10
    # The rows that are held out are scored, and the best round of these is taken.
    best = np.nanargmin(run.rounds["nll"])
    assert run.evaluation["rows"] == len(run.labels) == 15
    assert run.evaluation["nll"] == pytest.approx(run.rounds["nll"][best]) and len(run.rounds["nll"]) == min(
        100, best + 11
    )
    few = FedsteinRegressor(**parameters()).fit(X[:99], y[:99]).run_
    assert few.config["rounds"] == 10 and few.config["stop"]["patience"] == 0 and len(few.labels) == 99
    sites = FedsteinClassifier(**parameters()).fit(X, y, clients=np.arange(150) % 12).run_
    assert sites.config["rounds"] == 240 and sites.config["stop"]["patience"] == 24
    for dealt, rounds, patience in (
        ({"partition.clients": 20}, 40, 0),
        ({"partition.clients": 5, "stop.patience": 3}, 100, 3),
    ):
        keys = FedsteinClassifier(**parameters(dealt)).fit(X, y).run_.config
        assert keys["rounds"] == rounds and keys["stop"]["patience"] == patience
    told = FedsteinClassifier(**parameters(rounds=2)).fit(X, y).run_
    assert told.config["rounds"] == 2 and len(told.labels) == 150


def test_methods_without_particles_are_fitted_too() -> None:
    X, y = load_iris(return_X_y=True)
    for kind in ("fedavg", "fedper"):
        parameters = {"hidden": (4,), "particles": None, "config": {"algorithm.kind": kind}, "random_state": 0}
        model = FedsteinClassifier(**parameters).fit(X, y, clients=np.arange(150) % 3)
        assert model.run_.config["algorithm"]["kind"] == kind and model.predict_proba(X).shape == (150, 3)
        # Where the clients' own heads complete the model, no round is better by its published part.
        assert (model.run_.config["stop"]["patience"] > 0) == (kind == "fedavg")


def test_models_without_hidden_layers_are_fitted_too() -> None:
    X, y = load_iris(return_X_y=True)
    # The first species is separable from the others by a line, and a logistic regression is enough.
    config = {"model": {"kind": "blr", "bias": True}, "optimizer.lr": 0.1}
    line = FedsteinClassifier(hidden=None, rounds=3, random_state=0, config=config).fit(X, y > 0)
    # A weight for each feature, one for the bias, and the precision.
    assert line.score(X, y > 0) == 1 and sum(block[0].size for block in line.run_.particles.values()) == 6
    layers = {"model": {"kind": "stack", "layers": ["dense 6", "relu"]}}
    model = FedsteinRegressor(hidden=None, rounds=1, config=layers).fit(X, X[:, 0])
    assert model.run_.config["model"]["layers"] == ["dense 6", "relu"]
    for of in (config, layers):
        kind = of["model"]["kind"]
        with pytest.raises(
            fedstein.ConfigError, match=rf"^hidden=\(4,\): `{kind}` has no `hidden` layers; set hidden=None$"
        ):
            FedsteinClassifier(hidden=(4,), config=of).fit(X, y > 0)
    with pytest.raises(fedstein.ConfigError, match="^particles=20: `fedavg` has no particles; set particles=None$"):
        FedsteinClassifier(config={"algorithm.kind": "fedavg"}).fit(X, y)


def test_an_estimator_with_particles_says_how_a_method_without_them_is_fitted() -> None:
    X, y = load_iris(return_X_y=True)
    message = "^particles=20: `fedavg` has no particles; set particles=None$"
    with pytest.raises(fedstein.ConfigError, match=message):
        FedsteinClassifier(rounds=1, config={"algorithm": {"kind": "fedavg"}}).fit(X, y)
    with pytest.raises(fedstein.ConfigError, match="^`algorithm.particles` cannot be 0"):
        FedsteinClassifier(rounds=1, particles=0).fit(X, y)


def test_the_run_of_an_estimator_has_the_names_of_classes_features_and_clients() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    names, sites = np.array(["setosa", "versicolor", "virginica"])[y], np.array(["east", "west"])[np.arange(150) % 2]
    model = FedsteinClassifier(random_state=0, rounds=4, hidden=(4,)).fit(X, names, clients=sites)
    assert model.run_.classes == model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.run_.clients == ["east", "west"]
    # Columns are found by their names.
    want = model.run_.predict(X)
    assert np.array_equal(model.run_.predict(X[X.columns[::-1]]), want)
    with pytest.raises(fedstein.DataError, match="no column 'petal width"):
        model.run_.predict(X.drop(columns="petal width (cm)"))
    assert "versicolor" in model.run_.report().html
    # Numbers and truth values have their texts as names, and come back as they were.
    for labels, texts in ((y.to_numpy() + 5, ["5", "6", "7"]), (y.to_numpy() > 1, ["False", "True"])):
        other = FedsteinClassifier(random_state=0, rounds=4, hidden=(4,)).fit(X.to_numpy(), labels)
        assert other.run_.classes == texts and other.classes_.dtype == labels.dtype
        assert other.score(X.to_numpy(), labels) > 0.5 and other.run_.clients is None
    regressor = FedsteinRegressor(random_state=0, rounds=2, hidden=(4,)).fit(X, y)
    assert regressor.run_.classes is None
    assert np.array_equal(regressor.run_.predict(X[X.columns[::-1]]), regressor.predict(X))


def test_estimators_predict_sets_and_uncertainty() -> None:
    X, y = load_iris(return_X_y=True)
    held = {"config": {"partition.calibration": 0.3}, "random_state": 0, "rounds": 3, "hidden": (4,)}
    classifier = FedsteinClassifier(**held).fit(X, y)
    for level in (None, 0.8):
        sets = classifier.predict_sets(X, level=level)
        assert sets.dtype == bool and np.array_equal(sets, classifier.run_.predict_sets(X, level=level))
    assert classifier.predict_sets(X).sum() > classifier.predict_sets(X, level=0.8).sum()
    parts = classifier.predict_uncertainty(X)
    assert parts["total"] == pytest.approx(parts["aleatoric"] + parts["epistemic"]) and len(parts["total"]) == 150
    regressor = FedsteinRegressor(**held).fit(X, y)
    assert regressor.predict_sets(X, level=0.8).shape == (150, 2)
    assert np.sqrt(regressor.predict_uncertainty(X)["total"]) == pytest.approx(regressor.predict(X, return_std=True)[1])
    with pytest.raises(ValueError, match="X has 2 features"):
        classifier.predict_sets(X[:, :2])
    with pytest.raises(NotFittedError):
        FedsteinRegressor().predict_uncertainty(X)


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
        # What only the run can refuse: no key, and no number of clients.
        ({"config": {"algorithm": {"kernel": {"kind": "imq"}}}}, "^unknown key `algorithm.kernel`"),
        ({"config": {"partition.clients": -1}}, "^`partition.clients` cannot be -1"),
        ({"config": {"partition.clients": 2**64}}, "^`partition.clients` cannot be"),
        ({"hidden": 50}, r"hidden: 50 must be a sequence of whole numbers, such as \(50,\)"),
    ):
        with pytest.raises(fedstein.ConfigError, match=message):
            FedsteinClassifier(**parameters).fit(X, y)


def test_what_a_mask_hides_is_not_taken() -> None:
    X, y = load_iris(return_X_y=True)
    hidden, labels = np.ma.masked_greater(X, 7.0), np.ma.masked_equal(y, 1)
    # Row 102 has the first feature above 7, and row 50 the first label 1.
    for estimator in (FedsteinClassifier(rounds=1, hidden=(4,)), FedsteinRegressor(rounds=1, hidden=(4,))):
        with pytest.raises(fedstein.DataError, match="^X: row 102 is masked, and has no value"):
            estimator.fit(hidden, y)
        with pytest.raises(fedstein.DataError, match="^y: row 50 is masked, and has no value"):
            estimator.fit(X, labels)
        # Nothing is hidden.
        estimator.fit(np.ma.array(X), y)
        for predict in (estimator.predict, estimator.predict_uncertainty):
            with pytest.raises(fedstein.DataError, match="^X: row 102 is masked"):
                predict(hidden)
