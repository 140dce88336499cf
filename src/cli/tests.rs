use std::path::Path;

use super::*;

fn parse(line: &str) -> Result<Invocation, CliError> {
    Invocation::parse(line.split(' '), None)
}

fn train(line: &str) -> Train {
    match parse(line) {
        Ok(Invocation::Train(train)) => *train,
        other => panic!("{line}: {other:?}"),
    }
}

fn usage(line: &str) -> String {
    match parse(line) {
        Err(CliError::Usage(message)) => message,
        other => panic!("{line}: {other:?}"),
    }
}

fn report(line: &str) -> Report {
    match parse(line) {
        Ok(Invocation::Report(report)) => report,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_arguments_pass_claps_own_checks() {
    use clap::CommandFactory;
    CommandLine::command().debug_assert();
}

#[test]
fn sites_are_checked_one_or_several() {
    let files = vec![PathBuf::from("a.toml"), PathBuf::from("b.toml")];
    match parse("fedstein site check a.toml b.toml --json") {
        Ok(Invocation::SiteCheck(typed)) => assert_eq!(typed, SiteCheck { files, json: true }),
        other => panic!("{other:?}"),
    }
    assert!(usage("fedstein site check").contains("SITE.toml"));
}

#[test]
fn train_without_a_config_is_the_built_in_experiment() {
    let train = train("fedstein train");
    assert_eq!(train.config.name, "digits-newton-bnn");
    assert_eq!(train.config.data_kind(), "digits");
    assert_eq!(train.out, Path::new("runs/digits-newton-bnn"));
    assert_eq!(train.data_dir, Path::new("data"));
    assert_eq!((train.display, train.force), (Display::Bar, false));
}

#[test]
fn options_override_the_config_and_seed_and_backend_override_set() {
    let train = train(
        "fedstein train --set name=a --set seed=2 --seed 3 --set backend=cuda --backend ndarray --json --force --data-dir d",
    );
    assert_eq!((train.config.seed, train.config.backend.as_str()), (3, "ndarray"));
    assert_eq!(train.out, Path::new("runs/a"));
    assert_eq!(train.data_dir, Path::new("d"));
    assert_eq!((train.display, train.force), (Display::Json, true));
}

#[test]
fn the_data_directory_is_the_option_else_the_variable_else_data() {
    for (option, variable, expected) in [
        (" --data-dir typed", Some("variable"), "typed"),
        ("", Some("variable"), "variable"),
        ("", Some(""), "data"),
        ("", None, "data"),
    ] {
        for command in
            ["data list", "train", "study f", "reproduce list", "site split --out o", "predict r --input i --client c"]
        {
            let line = format!("fedstein {command}{option}");
            let found = match Invocation::parse(line.split(' '), variable.map(OsString::from)) {
                Ok(Invocation::Data(typed)) => typed.data_dir().to_owned(),
                Ok(Invocation::Train(typed)) => typed.data_dir,
                Ok(Invocation::Study(typed)) => typed.data_dir.path().to_owned(),
                Ok(Invocation::Reproduce(typed)) => typed.data_dir.path().to_owned(),
                Ok(Invocation::SiteSplit(typed)) => typed.data_dir,
                Ok(Invocation::Predict(typed)) => typed.own.data_dir().to_owned(),
                other => panic!("{line}: {other:?}"),
            };
            assert_eq!(found, Path::new(expected), "{line}, {variable:?}");
        }
    }
}

#[test]
fn a_config_that_is_missing_or_not_utf8_is_named() {
    assert!(usage("fedstein train no/such.toml").contains("cannot read the file `no/such.toml`"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), [0xff, 0xfe]).unwrap();
    let message = usage(&format!("fedstein train {}", file.path().display()));
    assert!(message.contains("cannot read the file"), "{message}");
}

#[test]
fn an_unknown_backend_is_refused_with_the_list() {
    for line in ["fedstein train --backend gpu", "fedstein predict r --input i --backend gpu"] {
        let message = usage(line);
        assert!(message.contains("flex, ndarray, wgpu, cuda"), "{message}");
    }
}

#[test]
fn negative_and_huge_seeds_are_refused() {
    for seed in ["-1", "9223372036854775808", "x"] {
        let message = usage(&format!("fedstein train --seed={seed}"));
        assert!(message.contains("--seed"), "{message}");
    }
}

#[test]
fn quiet_and_json_exclude_each_other() {
    assert!(usage("fedstein train --quiet --json").contains("cannot be used with"));
}

#[test]
fn report_takes_a_run_or_predictions_and_not_both_or_neither() {
    assert!(usage("fedstein report").contains("RUN_DIR"));
    assert!(usage("fedstein report r --predictions p.csv").contains("cannot be used with"));
    let of_run = report("fedstein report r --bins 10 --compare a --compare b --title T");
    let expected = Report {
        source: ReportSource::Run("r".into()),
        bins: Some(10),
        out: "r/report".into(),
        replace: true,
        compare: vec!["a".into(), "b".into()],
        other_rows: false,
        title: Some("T".into()),
    };
    assert_eq!(of_run, expected);
    let elsewhere = report("fedstein report r --out o");
    assert_eq!((elsewhere.out, elsewhere.replace), ("o".into(), false));
    let of_file = report("fedstein report --predictions dir/p.csv");
    assert_eq!((of_file.out, of_file.replace, of_file.bins), ("p-report".into(), false, None));
}

#[test]
fn zero_bins_are_refused() {
    assert!(usage("fedstein report r --bins 0").contains("1..=1000"));
}

#[test]
fn data_asks_for_a_list_a_description_or_a_download() {
    for (line, expected) in
        [("list", None), ("info mnist", Some("described mnist")), ("fetch mnist", Some("fetched mnist"))]
    {
        let asked = match parse(&format!("fedstein data {line} --data-dir d")) {
            Ok(Invocation::Data(data)) => {
                assert_eq!(data.data_dir(), Path::new("d"));
                match data {
                    Data::List { .. } => None,
                    Data::Info { name, .. } => Some(format!("described {name}")),
                    Data::Fetch { name, .. } => Some(format!("fetched {name}")),
                }
            }
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(asked.as_deref(), expected, "{line}");
    }
}

/// Compares exit codes by their debug text, because `ExitCode` does not implement `PartialEq`.
fn assert_code(code: ExitCode, expected: u8) {
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(expected)));
}

#[test]
fn exit_codes_are_0_for_success_help_and_a_broken_pipe_1_for_failure_2_for_usage() {
    let run_with = |line: &str, result: fn() -> Result<(), CliError>| run(line.split(' '), |_| result());
    assert_code(run_with("fedstein backends", || Ok(())), 0);
    assert_code(run_with("fedstein --help", || Ok(())), 0);
    assert_code(run_with("fedstein --version", || Ok(())), 0);
    let broken: fn() -> Result<(), CliError> = || Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
    assert_code(run_with("fedstein backends", broken), 0);
    assert_code(run_with("fedstein backends", || Err(CliError::Failed("f".into()))), 1);
    assert_code(run_with("fedstein backends", || Err(CliError::Usage("u".into()))), 2);
    assert_code(run_with("fedstein nonsense", || Ok(())), 2);
    assert_code(run_with("fedstein train --set rounds=0", || Ok(())), 2);
}
