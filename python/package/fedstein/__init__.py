"""Federated Bayesian learning with Stein particles, and calibration reports for predictions of any model.

`report` and `report_regression` judge predictions of any model. `train` runs a federation on this machine, `open` reads
a finished run, `resume` continues one that was stopped, `compare` puts several into one report. `calibration` has the
metrics as functions.
"""

from . import calibration
from ._data import Data
from ._fedstein import ConfigError, DataError, Interrupted, RunFailed, __version__
from ._report import Report, report, report_regression
from ._run import Run, RunWarning, compare, open, resume, train

__all__ = [
    "ConfigError",
    "Data",
    "DataError",
    "Interrupted",
    "Report",
    "Run",
    "RunFailed",
    "RunWarning",
    "__version__",
    "calibration",
    "compare",
    "open",
    "report",
    "report_regression",
    "resume",
    "train",
]
