//! What a program does with the library beside its own parts: it chooses the backend by a type, resumes, changes a config,
//! scores rows of its own with a finished run, and asks for a client's predictor.

use std::path::Path;

use fedstein::backend::Flex;
use fedstein::datasets::{Dataset, Normalise, Targets, TrainTest};
use fedstein::error::RunError;
use fedstein::experiment::client_predictor::AskedClient;
use fedstein::experiment::external::LabelledRows;
use fedstein::experiment::row_groups::RowGroups;
use fedstein::experiment::{
    Artifacts, Config, ConfigLoader, Experiment, Finished, Forecast, Overrides, Quiet, Source, run, write_report,
};
use fedstein::metrics::predictive_moments;
use ndarray::{Array2, Axis, Slice};

/// Three rounds on some of the digits; the backend that the key names is not the one of the type.
const DIGITS: &str = "backend = \"ndarray\"\nrounds = 3\ndata = { kind = \"digits\", train_limit = 100 }\n\
                      partition = { clients = 2 }\nalgorithm = { kind = \"fedavg\", local_steps = 2, batch = 10 }\n\
                      checkpoint = { every_seconds = 0.0 }";

fn loaded(text: &str) -> (Config, Artifacts) {
    loaded_at(text, Path::new("nowhere"), false)
}

/// The config of a text, and the files of its run: new ones, or those of a run that resumes.
fn loaded_at(text: &str, path: &Path, resumes: bool) -> (Config, Artifacts) {
    let (config, resolved) = Config::load(Source { name: "program", text }, &Overrides::default()).unwrap();
    let artifacts = match resumes {
        true => Artifacts::resume(path.to_owned(), resolved, &mut |_| ()).unwrap(),
        false => Artifacts::new(path.to_owned(), false, resolved),
    };
    (config, artifacts)
}

#[test]
fn the_same_program_resumes_on_the_backend_of_its_type_and_on_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let runs = |text: &str, resumes: bool| {
        let (config, mut artifacts) = loaded_at(text, &path, resumes);
        run::<Flex>(&Experiment::new(config, "data"), &Quiet, Some(&mut artifacts)).map(|outcome| outcome.rounds.len())
    };
    assert_eq!(runs(DIGITS, false).unwrap(), 3);
    // The key has no effect: neither that of the first session nor another one.
    assert_eq!(runs(&DIGITS.replace("rounds = 3", "rounds = 4"), true).unwrap(), 4);
    assert_eq!(runs(&DIGITS.replace("rounds = 3", "rounds = 5").replace("ndarray", "flex"), true).unwrap(), 5);
    let written = std::fs::read_to_string(path.join("config.toml")).unwrap();
    assert!(written.contains("backend = \"flex\""), "{written}");

    // A checkpoint of another backend is refused, whatever the key says.
    let manifest = std::fs::read_dir(path.join("checkpoint")).unwrap().map(|entry| entry.unwrap().path());
    let manifest = manifest.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "json")).unwrap();
    assert!(std::fs::read_to_string(manifest).unwrap().contains(r#""\"flex\"""#), "the run's own backend");
    #[cfg(feature = "ndarray")]
    for key in ["ndarray", "flex"] {
        let text = DIGITS.replace("rounds = 3", "rounds = 6").replace("ndarray", key);
        let (config, mut artifacts) = loaded_at(&text, &path, true);
        let experiment = Experiment::new(config, "data");
        let error = run::<fedstein::backend::NdArray>(&experiment, &Quiet, Some(&mut artifacts)).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("backend: \"flex\" → \"ndarray\""), "{error}");
    }
}

#[test]
fn a_config_that_was_changed_after_loading_is_refused_where_files_would_describe_another() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let refused = |change: fn(&mut Config)| {
        let (mut config, mut artifacts) = loaded_at(DIGITS, &path, false);
        change(&mut config);
        let error = run::<Flex>(&Experiment::new(config, "data"), &Quiet, Some(&mut artifacts)).unwrap_err();
        assert!(error.exit_code() == 2 && !path.exists(), "{error}");
        error.to_string()
    };
    let message = refused(|config| drop(config.data.insert("rotate".into(), "principal".into())));
    assert!(message.contains("data.rotate: \"none\" → \"principal\"") && message.contains("`Overrides`"), "{message}");
    let message = refused(|config| config.rounds = 2);
    assert!(message.contains("rounds: 3 → 2") && !message.contains("backend"), "{message}");
    // Without files such a change is the program's own affair.
    let (mut config, _) = loaded(DIGITS);
    config.rounds = 1;
    assert_eq!(run::<Flex>(&Experiment::new(config, "data"), &Quiet, None).unwrap().rounds.len(), 1);
}

#[test]
fn a_value_that_no_config_may_have_is_refused_before_the_first_round() {
    let refused = |change: fn(&mut Config)| {
        let (mut config, _) = loaded(DIGITS);
        change(&mut config);
        let error = run::<Flex>(&Experiment::new(config, "data"), &Quiet, None).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    assert!(refused(|config| config.evaluation.chunk = 0).starts_with("`evaluation.chunk` cannot be 0"));
    assert!(refused(|config| config.evaluation.bins = 0).starts_with("`evaluation.bins` cannot be 0"));
}

// ------------------------------------------------------------------------------------------------ rows of its own

/// Rows of two features with the class or the number that their sum tells.
fn rows(real: bool, from: usize, names: [&str; 2]) -> Dataset {
    let number = |row: usize, column: usize| ((from + row) * (3 * column + 2) % 11) as f32 - 5.0;
    let features = Array2::from_shape_fn((44, 2), |(row, column)| number(row, column));
    let sums: Vec<f64> = features.rows().into_iter().map(|row| f64::from(row.sum())).collect();
    let targets = match real {
        true => Targets::Real { values: sums },
        false => Targets::Classes {
            labels: sums.iter().map(|sum| usize::from(*sum > 0.0)).collect(),
            names: names.map(str::to_owned).to_vec(),
        },
    };
    Dataset::new("own", features, targets).unwrap().with_clients((0..44).map(|row| row % 2).collect()).unwrap()
}

const NAMES: [&str; 2] = ["well", "ill"];

/// A finished run on such rows.
fn finished(path: &Path, real: bool) -> Finished {
    let data = TrainTest::from_rows(rows(real, 0, NAMES), rows(real, 7, NAMES), Normalise::Auto).unwrap();
    let text = "rounds = 3\npartition = { kind = \"by-column\" }\nmodel = { kind = \"bnn\", hidden = [6] }\n\
                optimizer = { lr = 0.05 }\nevaluation = { personal = true }\n\
                algorithm = { kind = \"fedper\", local_steps = 30, batch = 20 }";
    let loader = ConfigLoader::default().with_data(&data);
    let (config, resolved) = loader.load(Source { name: "own", text }, &Overrides::default()).unwrap();
    assert!(config.algorithm.capabilities().personal);
    let mut artifacts = Artifacts::new(path.to_owned(), false, resolved);
    run::<Flex>(&Experiment::new(config, "data").with_data(data), &Quiet, Some(&mut artifacts)).unwrap();
    write_report(path, &path.join("report")).unwrap();
    Finished::open(path).unwrap()
}

/// The NLL of rows, or why they are not scored.
fn scored(run: &Finished, rows: Dataset, groups: Option<RowGroups>) -> Result<f64, RunError> {
    let Dataset { features, targets, .. } = rows;
    let labelled = LabelledRows { features, targets, groups, clusters: None, input: "new rows".into() };
    let evaluated = run.evaluate(&run.config()?, None, &run.recalibrated(None)?, labelled)?;
    Ok(evaluated.evaluation.nll.unwrap())
}

#[test]
fn classes_are_those_of_the_run_by_their_names_and_targets_of_another_kind_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let run = finished(&dir.path().join("classes"), false);
    let nll = scored(&run, rows(false, 7, NAMES), None).unwrap();
    let swapped = |labels: &[usize]| labels.iter().map(|label| 1 - label).collect::<Vec<_>>();
    let mut other = rows(false, 7, NAMES);
    let Targets::Classes { labels, .. } = &other.targets else { panic!() };
    other.targets = Targets::Classes { labels: swapped(labels), names: vec!["ill".into(), "well".into()] };
    assert_eq!(scored(&run, other.clone(), None).unwrap(), nll, "the same classes in another order");

    let with = |targets: Targets| Dataset { targets, ..rows(false, 7, NAMES) };
    let of = |labels: Vec<usize>, names: [&str; 2]| {
        with(Targets::Classes { labels, names: names.map(str::to_owned).to_vec() })
    };
    let groups = |of: Vec<usize>| Some(RowGroups { names: vec!["north".into()], of });
    for (wrong, groups, words) in [
        (rows(true, 7, NAMES), None, "the targets are numbers (`Targets::Real`), and the run"),
        (with(Targets::None { rows: 44 }), None, "the rows have no targets"),
        (rows(false, 7, ["well", "dead"]), None, "has the class `dead`, which the run"),
        (of(vec![0; 43], NAMES), None, "43 targets for 44 rows"),
        (of(vec![7; 44], NAMES), None, "data row 1 has class 7, and the targets name the classes 0 to 1"),
        (rows(false, 7, NAMES), groups(vec![0; 3]), "the groups of 3 rows for 44 rows"),
        (rows(false, 7, NAMES), groups(vec![1; 44]), "data row 1 is of group 1"),
    ] {
        let error = scored(&run, wrong, groups).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        let message = error.to_string();
        assert!(message.starts_with("new rows: ") && message.contains(words), "no {words:?} in {message}");
    }

    // A config that a program has changed is checked.
    for (change, words) in [
        ((|config| config.evaluation.chunk = 0) as fn(&mut Config), "`evaluation.chunk` cannot be 0"),
        (|config| config.evaluation.chunk = usize::MAX, "cannot be written as a file"),
    ] {
        let mut config = run.config().unwrap();
        change(&mut config);
        let error = run.forecast(&config, rows(false, 7, NAMES).features, "new rows").unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains(words), "{error}");
    }

    let run = finished(&dir.path().join("real"), true);
    assert!(scored(&run, rows(true, 7, NAMES), None).unwrap().is_finite());
    let message = scored(&run, rows(false, 7, NAMES), None).unwrap_err().to_string();
    assert!(message.contains("the targets are classes (`Targets::Classes`), and the run"), "{message}");
    let message = scored(&run, with(Targets::Real { values: vec![f64::NAN; 44] }), None).unwrap_err().to_string();
    assert!(message.contains("the target of data row 1 is NaN"), "{message}");
}

#[test]
fn blocks_of_rows_have_the_predictions_of_all_rows_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let rows = Array2::from_shape_fn((300, 2), |(row, column)| ((7 * row + 3 * column) % 23) as f32 / 5.0);
    let cut = |rows: &Array2<f32>, of: std::ops::Range<usize>| rows.slice_axis(Axis(0), Slice::from(of)).to_owned();
    for regression in [false, true] {
        let run = finished(&dir.path().join(format!("run-{regression}")), regression);
        let config = run.config().unwrap();
        let forecaster = run.forecaster(&config, None).unwrap();
        assert_eq!(forecaster.block() % 128, 0);
        let values = |forecast: Forecast| match forecast {
            Forecast::Classes { log_probs, .. } => log_probs.ensemble(),
            Forecast::Real(predictions) => predictive_moments(&predictions).mean,
        };
        let all = values(run.forecast(&config, rows.clone(), "rows").unwrap());
        let parts = [0..128, 128..256, 256..300];
        let parts = parts.map(|of| values(forecaster.forecast((cut(&rows, of.clone()), of.start), "rows").unwrap()));
        assert_eq!(parts.concat(), all);
        let mut wrong = cut(&rows, 128..256);
        wrong[(5, 1)] = f32::NAN;
        let error = forecaster.forecast((wrong, 128), "rows").err().unwrap().to_string();
        assert!(error.contains("data row 134"), "{error}");
    }
}

#[test]
fn no_rows_and_no_own_predictor_are_said_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let run = finished(&dir.path().join("run"), false);
    let config = run.config().unwrap();
    let message = run.forecast(&config, Array2::zeros((0, 2)), "new rows").unwrap_err().to_string();
    assert_eq!(message, "new rows: no data rows");
    let asked = AskedClient { name: "0", data_dir: Path::new("data") };
    for error in [run.check_clients(&config).unwrap_err(), run.client_predictor(&config, asked).err().unwrap()] {
        let message = error.to_string();
        assert!(
            message.contains("has rows of a program's own") && message.contains("`Outcome::personal`"),
            "{message}"
        );
        assert!(!message.contains("client_column") && error.exit_code() == 2, "{message}");
    }
}

#[test]
fn a_directory_that_this_program_itself_holds_is_told_from_that_of_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let (config, mut artifacts) = loaded_at(DIGITS, &path, false);
    run::<Flex>(&Experiment::new(config, "data"), &Quiet, Some(&mut artifacts)).unwrap();
    let (_, resolved) = Config::load(Source { name: "program", text: DIGITS }, &Overrides::default()).unwrap();
    let resume = || Artifacts::resume(path.clone(), resolved.clone(), &mut |_| ());
    let message = resume().unwrap_err().to_string();
    assert!(message.contains("this program itself") && message.contains("until it is dropped"), "{message}");
    drop(artifacts);
    resume().unwrap();
}
