"""Training, what a run has, and where it stays."""

from __future__ import annotations

import gc
import logging
import os
import pickle
import re
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import fedstein
import numpy as np
import pandas as pd
import pytest
from conftest import SMALL, Command, trees


def test_the_bits_are_those_of_the_command(command: Command) -> None:
    settings = ["rounds=3", "algorithm.particles=4", "algorithm.local_steps=5", "model.hidden=[8]"]
    command("train", "--quiet", "--out", "by-command", *(word for s in settings for word in ("--set", s)))
    # The built-in experiment with keywords, and the command's resolved config as a file, as text and as a dict.
    text = Path("by-command/config.toml").read_text()
    runs = {
        "keywords": fedstein.train(out="keywords", progress=False, **SMALL),
        "file": fedstein.train("by-command/config.toml", out="file", progress=False),
        "text": fedstein.train(text, out="text", progress=False),
        "dict": fedstein.train(fedstein.open("by-command").config, out="dict", progress=False),
    }
    for name, run in runs.items():
        assert run.path == Path(name)
        for file in ("particles.safetensors", "config.toml", "predictions.csv", "model.json", "partition.txt"):
            assert Path(name, file).read_bytes() == Path("by-command", file).read_bytes(), (name, file)
        assert {p.name for p in Path(name).iterdir()} == {p.name for p in Path("by-command").iterdir()}


def test_a_run_has_its_files_as_arrays() -> None:
    run = fedstein.train(out="run", progress=False, **SMALL)
    assert run.predictions.shape == (359, 10) and run.predictions.dtype == np.float64
    assert run.labels.shape == (359,) and run.labels.dtype == np.int64
    assert run.evaluation["accuracy"] == (run.predictions.argmax(axis=1) == run.labels).mean()
    assert run.rounds["round"].tolist() == [1, 2, 3]
    assert run.rounds["accuracy"][-1] == run.evaluation["accuracy"]
    assert np.isnan(run.rounds["rmse"]).all() and run.rounds["clients"].tolist() == [(0,), (1,), (2,)]
    frame = run.rounds.to_pandas()
    assert isinstance(frame, pd.DataFrame) and len(frame) == 3
    assert run.config["model"]["hidden"] == [8] and run.config["seed"] == 1
    assert {name: (value.shape, value.dtype.name) for name, value in run.particles.items()} == {
        "layers.0.bias": ((4, 8, 1), "float32"),
        "layers.0.weight": ((4, 8, 64), "float32"),
        "layers.1.bias": ((4, 10, 1), "float32"),
        "layers.1.weight": ((4, 10, 8), "float32"),
    }
    report = run.report()
    assert report.accuracy == run.evaluation["accuracy"] and report.ece == run.evaluation["ece"]
    assert report.table() == fedstein.report(run.predictions, run.labels).table()
    again = fedstein.open("run")
    assert np.array_equal(again.predictions, run.predictions) and again.evaluation == run.evaluation
    assert repr(again).startswith("Run('run', accuracy=0.")


def test_without_out_the_files_go_with_the_object() -> None:
    run = fedstein.train(progress=False, **SMALL)
    path = run.path
    assert path.is_dir() and not list(Path().iterdir())
    del run
    gc.collect()
    assert not path.exists() and not path.parent.exists()


def test_a_report_keeps_the_files_of_its_runs() -> None:
    report = fedstein.train(progress=False, **SMALL).report()
    both = fedstein.compare([fedstein.train(progress=False, name=name, **SMALL) for name in ("one", "two")])
    gc.collect()
    assert report.save("out").is_file() and both.save("both").is_file()
    paths = [report._source._run.path, both._source._run.path, both._source._others[0].path]  # type: ignore[attr-defined]
    assert all(path.is_dir() for path in paths)
    del report, both
    gc.collect()
    assert not any(path.exists() for path in paths)


def test_two_classes_with_a_logistic_regression_reopen_and_report() -> None:
    # The run's config has no data set, and digits are its default, with ten classes: it was checked against the rows.
    X, y, sites = trees()
    data = fedstein.Data(X, y == "yew", clients=sites)
    run = fedstein.train(data=data, progress=False, rounds=3, model={"kind": "blr", "bias": True})
    assert run.classes == ["False", "True"]
    assert fedstein.open(run.path).report().accuracy == run.evaluation["accuracy"]


@pytest.mark.parametrize(
    ("config", "keys", "message"),
    [
        (None, {"roundz": 3}, "^unknown key `roundz`; did you mean `rounds`?"),
        (None, {"model": {"hiden": [3]}}, "unknown key `model.hiden`; did you mean `model.hidden`"),
        (None, {"modle": {}}, r"^unknown section \[modle\]; did you mean \[model\]\?"),
        (None, {"modle": {"hidden": [3]}}, r"^unknown section \[modle\]; did you mean \[model\]\?"),
        (None, {"model": {"hidden": {"a": 3}}}, "^`model.hidden` cannot be"),
        (None, {"rounds": 0}, "^`rounds` cannot be 0; it must be"),
        (None, {"rounds": None}, "`rounds` cannot be None; leave it out"),
        (None, {"rounds": object()}, "`rounds` cannot be a object"),
        (None, {"optimizer": {"lr": float("nan")}}, "^`optimizer.lr` cannot be nan; a number must be finite$"),
        ({"roundz": 3}, {}, "^unknown key `roundz`"),
        ({"a=b": 3}, {}, "'a=b' is not the name of a key"),
        ("rounds = ", {}, "the config, line 1, column 10: not valid TOML"),
        ("rounds = 0", {}, "the config, line 1: `rounds` cannot be 0"),
        ("missing.toml", {}, "cannot read the config `missing.toml`: No such file"),
        (3, {}, "config is a int; it must be a path, TOML text or a dict"),
        (None, {"backend": "cuda"}, "is not compiled in"),
        ({"data": {"kind": "csv", "path": "none.csv", "target": "y"}}, {}, "none.csv"),
    ],
)
def test_a_wrong_config_is_refused_before_anything_runs(config: Any, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        fedstein.train(config, out="run", progress=False, **keys)
    assert isinstance(caught.value, (fedstein.ConfigError, fedstein.DataError))
    assert not Path("run").exists()


def test_an_argument_of_another_type_is_named() -> None:
    X, y, _ = trees()
    data = fedstein.Data(X, y)
    run = fedstein.train(data=data, progress=False, partition={"calibration": 0.3}, **SMALL)
    for call, message in (
        (lambda: fedstein.train(force="x", progress=False), "^force is 'x'; it must be True or False$"),  # type: ignore[arg-type]
        (lambda: fedstein.train(out=3, progress=False), "^out is 3; it must be a path$"),  # type: ignore[arg-type]
        (lambda: fedstein.train(data_dir=3, progress=False), "^data_dir is 3; it must be a path$"),  # type: ignore[arg-type]
        (lambda: fedstein.open(None), "^path is None; it must be a path$"),  # type: ignore[arg-type]
        (lambda: fedstein.resume(None), "^path is None; it must be a path$"),  # type: ignore[arg-type]
        (lambda: run.report(3), "^out is 3; it must be a path$"),  # type: ignore[arg-type]
        (lambda: run.report(compare=[3]), "^a run of `compare` is 3; it must be a path$"),  # type: ignore[list-item]
        (lambda: run.report(other_rows=0.5), "^other_rows is 0.5; it must be True or False$"),  # type: ignore[arg-type]
        (lambda: run.predict(X, raw="x"), "^raw is 'x'; it must be True or False$"),  # type: ignore[call-overload]
        (lambda: run.predict(X, return_members=2), "^return_members is 2; it must be True or False$"),  # type: ignore[call-overload]
        (lambda: run.predict_sets(X, level="a"), "^level is 'a'; it is a share of the rows, above 0 and below 1"),  # type: ignore[arg-type]
        (lambda: run.predict_sets(X, level=95), "^level is 95; it is a share of the rows, above 0 and below 1"),
        (lambda: run.predict_sets(X, level=float("nan")), "^level is nan; it is a share of the rows"),
    ):
        with pytest.raises(fedstein.ConfigError, match=message):
            call()
    assert np.array_equal(run.predict_sets(X, level=np.float32(0.5)), run.predict_sets(X, level=0.5))


def test_damaged_rounds_are_an_error_of_the_package() -> None:
    run = fedstein.train(out="run", progress=False, **SMALL)
    file = Path("run/rounds.csv")
    text = file.read_text()
    lines = text.splitlines(keepends=True)
    for damaged, message in (
        ("", "cannot read the file `run/rounds.csv`: it has no columns"),
        (text[: -len(lines[-1]) // 2], r"run/rounds.csv, line 4: \d+ cells; there must be \d+"),
        ("".join([lines[0], lines[1][: len(lines[1]) // 2]]), r"run/rounds.csv, line 2: \d+ cells; there must be \d+"),
        ("".join([lines[0], lines[1].replace("1,", "x,", 1)]), "run/rounds.csv, column `round`: invalid literal"),
    ):
        file.write_text(damaged)
        with pytest.raises(fedstein.ConfigError, match=message):
            _ = run.rounds
    file.unlink()
    with pytest.raises(fedstein.ConfigError, match="cannot read the file `run/rounds.csv`: No such file"):
        _ = run.rounds
    file.write_text(text)
    assert run.rounds["round"].tolist() == [1, 2, 3]


def test_messages_name_arguments_and_not_options_of_the_command() -> None:
    X, y, _ = trees()
    data = fedstein.Data(X, y)
    with pytest.raises(fedstein.ConfigError, match="^config is a Data; pass it as data=$"):
        fedstein.train(data)  # type: ignore[arg-type]
    run = fedstein.train(data=data, out="run", progress=False, **SMALL)
    with pytest.raises(fedstein.ConfigError, match="not empty; choose another `out` or replace it with force=True$"):
        fedstein.train(data=data, out="run", progress=False, **SMALL)
    Path("mine").mkdir()
    Path("mine/thesis.txt").touch()
    with pytest.raises(fedstein.ConfigError, match="^force=True replaces only the directory of a run"):
        fedstein.train(data=data, out="mine", force=True, progress=False, **SMALL)
    other = fedstein.train(data=fedstein.Data(X, y, seed=2), progress=False, **SMALL)
    with pytest.raises(fedstein.ConfigError, match="^compare: `.*has other test rows.*other_rows=True compares them"):
        run.report(compare=[other])
    with pytest.raises(ValueError, match="fedstein data fetch mnist.*holds `mnist/` with `data_dir`$"):
        fedstein.train(data={"kind": "mnist"}, data_dir="none", progress=False)
    wheel = r"build the wheel with `maturin build --release --features fedstein/cuda`"
    with pytest.raises(fedstein.ConfigError, match=wheel):
        fedstein.train(backend="cuda", progress=False)
    Path("marks.csv").write_text("a;y\n1;u\n2;v\n")
    with pytest.raises(fedstein.DataError, match=r"are its cells separated by `;`\? \(data.delimiter\)$"):
        fedstein.train(data={"kind": "csv", "path": "marks.csv", "target": "y"}, progress=False)
    own = {**SMALL, "algorithm": {"kind": "fedper"}, "evaluation.personal": True}
    with pytest.warns(fedstein.RunWarning, match="clients.csv, and `fedstein predict --client` predicts with them"):
        fedstein.train(data=data, progress=False, **own)


def test_an_earlier_run_stays_unless_it_is_to_be_replaced() -> None:
    fedstein.train(out="run", progress=False, **SMALL)
    before = Path("run/particles.safetensors").read_bytes()
    with pytest.raises(fedstein.ConfigError, match="`run` exists and is not empty"):
        fedstein.train(out="run", progress=False, **SMALL)
    assert Path("run/particles.safetensors").read_bytes() == before
    fedstein.train(out="run", progress=False, force=True, seed=2, **SMALL)
    assert Path("run/particles.safetensors").read_bytes() != before
    with pytest.raises(fedstein.ConfigError, match="is this the directory of a finished run"):
        fedstein.open("nothing")


def test_a_run_whose_directory_has_another_one_reads_no_file_of_it() -> None:
    run = fedstein.train(out="run", progress=False, **SMALL)
    other = fedstein.train(progress=False, name="other", **SMALL)
    X, known = np.zeros((2, 64)), run.predictions
    both = fedstein.compare([other, run], other_rows=True)
    again = fedstein.train(out="run", force=True, progress=False, seed=2, **SMALL)
    gone = r"the directory run no longer has the run that was opened: .* fedstein.open\('run'\)"
    for read in (
        lambda: run.rounds,
        lambda: run.particles,
        lambda: run.predict(X),
        lambda: run.predict_sets(X),
        lambda: run.predict_uncertainty(X),
        lambda: run.report(),
        lambda: other.report(compare=[run], other_rows=True).html,
        lambda: both.save("both"),
        lambda: pickle.dumps(run),
    ):
        with pytest.raises(fedstein.ConfigError, match=gone):
            read()
    # What was read before stays, and the new run is as it should be.
    assert np.array_equal(run.predictions, known) and run.evaluation != again.evaluation
    assert np.array_equal(again.predict(X), fedstein.open("run").predict(X))
    # The same files in another place of the disk, as from a backup, are the same run.
    shutil.copytree("run", "copy")
    shutil.rmtree("run")
    with pytest.raises(fedstein.ConfigError, match=gone):
        again.predict(X)
    Path("copy").rename("run")
    os.utime("run/summary.json")
    assert np.array_equal(again.predict(X), fedstein.open("run").predict(X))


def test_a_run_is_read_after_a_change_of_the_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X, y, _ = trees()
    run = fedstein.train(data=fedstein.Data(X, y), out="here", **SMALL)
    want, opened = run.predict(X), fedstein.open("here")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for one in (run, opened):
        assert np.array_equal(one.predict(X), want) and len(one.rounds) and len(one.labels) == len(one.predictions)
        assert one.path == Path("here") and one.report().rows == one.evaluation["rows"]


def test_cells_that_are_missing_values_may_be_given_by_column() -> None:
    cells = [f"{-9 if row % 7 == 0 else row},{row % 2}" for row in range(60)]
    Path("rows.csv").write_text("\n".join(["a b,y", *cells]) + "\n")
    keys = {"kind": "csv", "path": "rows.csv", "target": "y", "missing": "mean", "missing_values": {"a b": [-9, "?"]}}
    run = fedstein.train(data=keys, **SMALL)
    again = fedstein.train(run.config, progress=False)
    assert run.config["data"]["missing_values"] == {"a b": ["-9", "?"]} == again.config["data"]["missing_values"]
    assert np.array_equal(run.predictions, again.predictions)


def test_a_run_that_cannot_go_on_fails_with_the_commands_text() -> None:
    with pytest.raises(fedstein.RunFailed, match="particle 0 is not finite; a smaller optimizer.lr usually helps"):
        fedstein.train(progress=False, rounds=1, algorithm={"kind": "dsvgd", "particles": 4}, **{"optimizer.lr": 1e30})


def test_progress_notes_and_warnings_have_their_usual_places(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="fedstein"):
        fedstein.train(**SMALL)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("digits-newton-bnn: newton-dsvgd, 4 particles") and len(lines) == 4
    assert re.match(r"round 3/3  client 2  accuracy 0\.\d+  NLL", lines[3])
    assert caplog.messages[0] == lines[0]
    assert len(caplog.messages) == 2
    assert re.match(r"digits-newton-bnn is complete, accuracy=0\.\d+, nll=.*, ece=", caplog.messages[1])
    seen: list[dict[str, Any]] = []
    fedstein.train(progress=seen.append, **SMALL)
    assert [record["round"] for record in seen] == [1, 2, 3] and 0 < seen[0]["accuracy"] < 1
    assert capsys.readouterr().err == ""
    with pytest.warns(fedstein.RunWarning, match="the built-in experiment is on `digits`") as caught:
        fedstein.train(progress=False, data={"kind": "twonorm"}, **SMALL)
    # At the caller's line, wherever in the package they come from.
    assert {warning.filename for warning in caught} == {__file__}


def test_notes_on_a_run_are_warnings_and_an_early_end_is_none(caplog: pytest.LogCaptureFixture) -> None:
    X, y, _ = trees()
    with pytest.warns(fedstein.RunWarning) as caught:
        fedstein.train(data=fedstein.Data(X + 1e9, y), progress=False, **{**SMALL, "rounds": 1})
    texts = [str(warning.message) for warning in caught]
    assert any(text.startswith("feature 0: near ") and "subtract a constant" in text for text in texts), texts
    assert any("clients never trained" in text for text in texts)
    assert {warning.filename for warning in caught} == {__file__}
    with warnings.catch_warnings(record=True) as silent, caplog.at_level(logging.INFO, logger="fedstein"):
        warnings.simplefilter("always")
        keys = {**SMALL, "partition.clients": 1, "partition.validation": 0.2, "stop.patience": 1, "optimizer.lr": 1e-30}
        fedstein.train(data=fedstein.Data(X, y), progress=False, **keys)
    assert not [warning for warning in silent if "the run ended" in str(warning.message)]
    assert any(message.startswith("the run ended after round 2 of 3") for message in caplog.messages)


def test_what_a_callback_raises_ends_the_run_and_it_resumes_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    class Enough(Exception):
        pass

    def stop(record: dict[str, Any]) -> None:
        if record["round"] == 1:
            raise Enough("that was enough")

    whole = fedstein.train(out="whole", progress=False, **{**SMALL, "rounds": 30})
    with pytest.raises(Enough, match="that was enough"):
        fedstein.train(out="part", progress=stop, **{**SMALL, "rounds": 30})
    assert Path("part/checkpoint").is_dir() and not Path("part/summary.json").exists()
    resumed = fedstein.resume("part", progress=False)
    assert Path("part/particles.safetensors").read_bytes() == Path("whole/particles.safetensors").read_bytes()
    assert len(resumed.rounds["round"]) == 30 and resumed.evaluation == whole.evaluation
    # Without `out` nothing is kept.
    temporary = Path("temporary")
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(temporary.resolve()))
    with pytest.raises(Enough, match="that was enough"):
        fedstein.train(progress=stop, **{**SMALL, "rounds": 30})
    assert not list(temporary.iterdir())
    with pytest.raises(fedstein.ConfigError):
        fedstein.resume("nothing", progress=False)


def test_runs_are_compared_in_one_report() -> None:
    one = fedstein.train(progress=False, name="one", **SMALL)
    two = fedstein.train(out="two", progress=False, name="two", seed=2, **SMALL)
    # Another seed draws other test rows.
    with pytest.raises(fedstein.ConfigError, match="other test rows"):
        _ = fedstein.compare([one, "two"]).compared
    report = fedstein.compare([one, "two"], out="both", other_rows=True)
    assert (
        report.compared["two"]["nll"] == two.evaluation["nll"]
        and report.compared["one"]["nll"] == one.evaluation["nll"]
    )
    assert "two" in Path("both/report.html").read_text()
    sizes = {"n": 359, "classes": 10, "bins": 15}
    for numbers in report.compared.values():
        assert {key: numbers[key] for key in sizes} == sizes
        # The same numbers of each.
        assert list(numbers) == list(report.compared["one"]) and numbers.keys() >= one.evaluation.keys()
    with pytest.raises(fedstein.DataError, match="at least 2"):
        fedstein.compare([one])
    for single in (one, "two"):
        with pytest.raises(fedstein.DataError, match="runs is a (Run|str); it must be a list of runs and paths"):
            fedstein.compare(single)  # type: ignore[arg-type]
    with pytest.raises(fedstein.DataError, match="compare is a str; it must be a list"):
        one.report(compare="two")


def test_compared_runs_are_called_by_their_names_and_never_by_a_title() -> None:
    runs = [fedstein.train(progress=False, name=name, **{**SMALL, "rounds": rounds}) for rounds, name in
            ((1, "lr"), (2, "lr"), (3, "x"), (4, "lr"))]  # fmt: skip
    for title in (None, "My comparison", "x"):
        compared = fedstein.compare(runs, title=title).compared
        assert list(compared) == ["lr", "lr (2)", "x", "lr (3)"]
        assert [numbers["nll"] for numbers in compared.values()] == [run.evaluation["nll"] for run in runs]
    assert list(runs[2].report(compare=[runs[0].path]).compared) == ["x", "lr"]
    assert list(fedstein.report([0.2, 0.9], [0, 1], title="mine").compared) == ["mine"]
