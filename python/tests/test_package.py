from __future__ import annotations

import copy
import importlib.metadata
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import fedstein
import pytest
from conftest import LIMIT

PACKAGE = Path(__file__).parents[1]


def test_numpy_is_the_only_dependency() -> None:
    required = importlib.metadata.requires("fedstein") or []
    assert [line for line in required if "extra ==" not in line] == ["numpy>=1.26"]


def test_an_import_is_quick_and_imports_numpy_only() -> None:
    text = """
import numpy, sys, time
before = set(sys.modules)
start = time.process_time()
import fedstein
print(time.process_time() - start, *{name.split(".")[0] for name in set(sys.modules) - before})
"""
    runs = [subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True) for _ in range(3)]
    # The processor's time, and the best of three, for a busy machine.
    assert min(float(run.stdout.split()[0]) for run in runs) < 0.2
    others = set(runs[0].stdout.split()[1:]) - set(sys.stdlib_module_names)
    assert others <= {"fedstein", "numpy"}, others


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_the_stubs_are_those_of_the_module() -> None:
    allowed = ["--allowlist", str(PACKAGE / "tests" / "stubtest.txt")]
    args = [sys.executable, "-m", "mypy.stubtest", "fedstein", *allowed]
    done = subprocess.run(args, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_users_code_is_checked_against_the_types(tmp_path: Path) -> None:
    code = tmp_path / "user.py"
    code.write_text(
        "import fedstein\n"
        "reveal_type(fedstein.train().predict([[1.0]]))\n"
        "reveal_type(fedstein.report([[1.0]], [0]).ece)\n"
        "fedstein.report([[1.0]], [0], bin=3)\n"
        "import numpy as np\n"
        "fedstein.report([[1.0]], ['a'], classes=np.array(['a']))\n"
        "fedstein.Data([[1.0]], [0], classes=np.arange(2), feature_names=np.array(['x']))\n"
    )
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", str(code)], capture_output=True, text=True)
    assert 'ndarray[tuple[Any, ...], dtype[floating[_64Bit]]]"' in done.stdout or "float64" in done.stdout, done.stdout
    assert 'Revealed type is "builtins.float"' in done.stdout or 'Revealed type is "float"' in done.stdout
    assert 'Unexpected keyword argument "bin"' in done.stdout and "Found 1 error" in done.stdout


def test_the_version_is_that_of_the_package() -> None:
    assert fedstein.__version__ == importlib.metadata.version("fedstein")


def test_the_first_lines_of_an_example_install_it_from_a_checkout() -> None:
    text = (PACKAGE / "examples" / "calibrate_and_train.py").read_text()
    assert "pip install ./python scikit-learn pandas " in text and "pip install fedstein" not in text


@pytest.mark.parametrize("example", sorted(path.name for path in (PACKAGE / "examples").glob("*.py")))
def test_an_example_runs(example: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(PACKAGE / "examples" / example)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr


def test_rows_and_reports_say_what_to_pickle_in_their_place() -> None:
    data = fedstein.Data([[0.0], [1.0], [2.0]], [0, 1, 0], test=0.4)
    report = fedstein.report([0.2, 0.9], [0, 1])
    for thing, message in ((data, "pickle X and y"), (report, r"pickle its numbers, report.to_dict\(\)")):
        with pytest.raises(TypeError, match=message):
            pickle.dumps(thing)
        assert copy.copy(thing) is thing and copy.deepcopy([thing])[0] is thing
    assert pickle.loads(pickle.dumps(report.to_dict())) == report.to_dict()
