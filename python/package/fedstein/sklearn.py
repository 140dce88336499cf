"""Estimators with the conventions of scikit-learn, which must be installed.

They train a Bayesian network, over several clients where the rows have them, and predict with all its particles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # type: ignore[import-untyped]
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from . import _fedstein
from ._arrays import refuse_masked
from ._data import Data
from ._fedstein import ConfigError
from ._run import Run, _assignments, _of_toml, _train

__all__ = ["FedsteinClassifier", "FedsteinRegressor"]

# The keys of a config that are parameters of an estimator.
_PARAMETERS = {
    "seed": "random_state",
    "rounds": "rounds",
    "model.hidden": "hidden",
    "algorithm.particles": "particles",
}


class _Fedstein(BaseEstimator):  # type: ignore[misc]
    """What both estimators share."""

    run_: Run

    def __init__(
        self,
        *,
        hidden: Sequence[int] | None = (50,),
        rounds: int | None = None,
        particles: int | None = 20,
        config: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.rounds = rounds
        self.particles = particles
        self.config = config
        self.random_state = random_state

    @contextmanager
    def _fitting(self, X: Any, y: Any) -> Iterator[None]:
        """Where fitting fails or is interrupted, the estimator is what it was before."""
        # scikit-learn takes what a mask hides.
        refuse_masked(X, "X")
        refuse_masked(y, "y")
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _trained(
        self, X: NDArray[Any], y: NDArray[Any], clients: ArrayLike | None, classes: list[Any] | None = None
    ) -> Run:
        """A run on these rows: a classification with `classes`, and a regression without."""
        config, named = self._config()
        hidden = self.hidden
        if isinstance(hidden, str) or not (hidden is None or isinstance(hidden, (Sequence, np.ndarray))):
            raise ConfigError(f"hidden: {hidden!r} must be a sequence of whole numbers, such as (50,), or None")
        seed = int(check_random_state(self.random_state).randint(2**31))
        # A run is scored on test rows; an estimator is not, so its own rows take their place.
        test = (X, y) if clients is None else (X, y, clients)
        features = [str(name) for name in getattr(self, "feature_names_in_", ())]
        data = Data(
            X,
            y,
            clients=clients,
            test=test,
            task="regression" if classes is None else "classification",
            classes=classes,
            feature_names=features if features and _are_distinct(features) else None,
        )
        defaults: dict[str, Any] = {"checkpoint.enabled": False}
        if clients is None and "partition.kind" not in named:
            defaults["partition.clients"] = 1
        rounds = self.rounds
        if rounds is None:
            parts = named.get("partition.clients", defaults.get("partition.clients", 10))
            of_clients = len(data.clients) if data.clients is not None else parts
            # What is no number of clients, the run refuses.
            of_clients = of_clients if isinstance(of_clients, int) and 0 < of_clients < 2**63 else 1
            kind, personal = named.get("algorithm.kind", ""), named.get("evaluation.personal", False)
            rounds, share, patience = _fedstein.length(len(X), of_clients, str(kind), personal is True)
            if share is not None:
                # Each round is scored on the rows that are held out, and the best one is taken.
                stop = {"partition.validation": share, "stop.patience": patience, "evaluation.rows": "validation"}
                defaults.update(stop, **{"evaluation.every": 1})
        defaults.setdefault("evaluation.every", rounds)
        keys: dict[str, Any] = {
            "seed": seed,
            "rounds": rounds,
        }
        if hidden is not None:
            keys["model.hidden"] = list(hidden)
        if self.particles is not None:
            keys["algorithm.particles"] = self.particles
        keys.update({key: value for key, value in defaults.items() if key not in named})
        try:
            # An estimator has no test rows that its numbers could be of.
            return _train(config, data, None, keys, without=r"\(evaluation\.rows\)$")
        except ConfigError as error:
            for key, kind, what in (
                ("algorithm.particles", "algorithm.kind", "particles"),
                ("model.hidden", "model.kind", "`hidden` layers"),
            ):
                if str(error).startswith(f"`{key}` is not used"):
                    name = _PARAMETERS[key]
                    given = f"{name}={getattr(self, name)!r}"
                    raise ConfigError(f"{given}: `{named[kind]}` has no {what}; set {name}=None") from error
            raise

    def _config(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The further keys as they were given, and with dotted names.

        Raises
        ------
        ConfigError
            They are not a dict, or one of them is that of a parameter.
        """
        config = {} if self.config is None else self.config
        if not isinstance(config, Mapping):
            raise ConfigError(f"config is a {type(config).__name__}; it must be a dict of keys")
        assigned = (assignment.partition("=") for assignment in _assignments(config))
        named = {key: _of_toml(value) for key, _, value in assigned}
        for key, parameter in _PARAMETERS.items():
            if key in named:
                raise ConfigError(f"config: `{key}` is the parameter {parameter} of the estimator; set it there")
        return dict(config), named

    def _checked(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        refuse_masked(X, "X")
        checked: NDArray[Any] = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return checked

    def predict_sets(self, X: ArrayLike, level: float | None = None) -> NDArray[np.bool_] | NDArray[np.float64]:
        """Sets that hold the truth of so many rows: which classes of `classes_`, bool [n, C], or intervals, [n, 2].

        `config` must hold out rows for them, as in ``config={"partition.calibration": 0.2}``; `level` is that of
        `Run.predict_sets`.
        """
        checked = self._checked(X)
        return self.run_.predict_sets(checked, level=level)

    def predict_uncertainty(self, X: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """The `total`, `aleatoric` and `epistemic` uncertainty of each row, [n], as `Run.predict_uncertainty`."""
        checked = self._checked(X)
        return self.run_.predict_uncertainty(checked)


class FedsteinClassifier(ClassifierMixin, _Fedstein):  # type: ignore[misc]
    """A Bayesian network for classification.

    Parameters
    ----------
    hidden : sequence of int or None
        Units of each hidden layer; None for the models `blr` and `stack`, which need it.
    rounds : int, optional
        Rounds of communication; in each one client trains. Without it there are 100 (or twenty visits to each client,
        300 at most), which end where they no longer lower the NLL of a tenth of the rows, which are held out; the
        particles are those of the round with the lowest. Of fewer than 100 rows, or ten a client, none is held out, and
        there are 10 rounds (or two visits to each client, 200 at most); so it is, too, with `evaluation.personal`, and
        with `fedper` and `pfedgp`, whose published parameters say nothing of the method.
    particles : int or None
        Number of particles; None for methods with one parameter vector, such as `fedavg`, which need it.
    config : dict, optional
        Further keys of a config, nested or dotted. The keys `seed`, `rounds`, `model.hidden` and `algorithm.particles`
        are the parameters here, and refused. Where it does not say otherwise, a run with `rounds` is evaluated after
        the last round only (`evaluation.every`), a run has no checkpoints (`checkpoint.enabled`), and without `clients`
        has all rows at one client (`partition.clients`, unless there is a `partition.kind`).
    random_state : int, RandomState or None
        The seed of a run is drawn from it.

    Attributes
    ----------
    classes_ : ndarray, [C]
        The classes in the order of the columns of `predict_proba`.
    n_features_in_ : int
        The number of features p.
    feature_names_in_ : ndarray, [p]
        Their names, where `X` is a table whose columns all have texts as names.
    run_ : Run
        The run. Its results are on the rows that are held out without `rounds`, and else on the training rows.
    """

    classes_: NDArray[Any]

    def fit(self, X: ArrayLike, y: ArrayLike, clients: ArrayLike | None = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array_like, [n, p]
        y : array_like, [n]
        clients : array_like, [n], optional
            The client of each row, by any names. Without it, all rows are at one client, unless `config` deals them.
        """
        with self._fitting(X, y):
            features, labels = validate_data(self, X, y, dtype=[np.float64, np.float32])
            check_classification_targets(labels)
            classes = np.unique(labels)
            if len(classes) < 2:
                raise ValueError(f"a classification needs at least 2 classes; y has 1 class, {classes.tolist()[0]!r}")
            names: list[Any] = [str(name) for name in classes]
            labels = np.searchsorted(classes, labels)
            if _are_distinct(names):
                labels = np.array(names)[labels]
            else:
                names = list(range(len(classes)))
            run = self._trained(features, labels, clients, names)
            self.classes_, self.run_ = classes, run
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes, [n, C], each row divided by its sum, which is 1 but for rounding."""
        checked = self._checked(X)
        found = self.run_.predict(checked)
        normalised: NDArray[np.float64] = found / found.sum(axis=1, keepdims=True)
        return normalised

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable classes, [n]."""
        probabilities = self.predict_proba(X)
        found: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return found


class FedsteinRegressor(RegressorMixin, _Fedstein):  # type: ignore[misc]
    """A Bayesian network for regression.

    Parameters and attributes are those of `FedsteinClassifier`, but for `classes_`.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, clients: ArrayLike | None = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array_like, [n, p]
        y : array_like, [n]
        clients : array_like, [n], optional
            The client of each row, by any names. Without it, all rows are at one client, unless `config` deals them.
        """
        with self._fitting(X, y):
            features, values = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=True)
            self.run_ = self._trained(features, np.asarray(values, dtype=np.float64), clients)
        return self

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predictive means, [n]; with `return_std` also the standard deviations of the predictive, [n]."""
        checked = self._checked(X)
        mean = self.run_.predict(checked)
        return (mean, np.sqrt(self.run_.predict_uncertainty(checked)["total"])) if return_std else mean


def _are_distinct(names: list[str]) -> bool:
    return len(set(names)) == len(names)
