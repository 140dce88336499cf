//! Configs through the public interface: the accepted texts, their results, and the message of each mistake.

use std::fs;
use std::path::{Path, PathBuf};

use fedstein::algorithm::dsvgd::Factors;
use fedstein::algorithm::fedavg::{FedAvgConfig, Mix};
use fedstein::datasets::{DataConfig, PartitionConfig};
use fedstein::density::KdeMode;
use fedstein::experiment::ConfigLoader;
use fedstein::experiment::config::{
    AlgorithmConfig, BandwidthRule, Config, KdeRule, KernelConfig, ModelConfig, NumberOr, OptimizerConfig,
    RoundRobinConfig, ScheduleConfig, schema,
};
use fedstein::experiment::schema::{Accepts, Interval, Key, Kind, Literal, Overrides, Resolved, Source, key};
use fedstein::models::MODEL_KINDS;
use fedstein::rows::Order;
use proptest::prelude::*;

#[path = "../common/mod.rs"]
mod common;
mod docs;
mod notes;

fn load_with(text: &str, set: &[&str]) -> Result<(Config, Resolved), String> {
    let overrides = Overrides { set: set.iter().map(ToString::to_string).collect(), ..Overrides::default() };
    Config::load(Source { name: "e.toml", text }, &overrides).map_err(|error| error.to_string())
}

fn load(text: &str) -> Config {
    load_with(text, &[]).unwrap().0
}

fn error_with(text: &str, set: &[&str]) -> String {
    match load_with(text, set) {
        Err(message) => message,
        Ok(_) => panic!("accepted: {text} {set:?}"),
    }
}

fn error(text: &str) -> String {
    error_with(text, &[])
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every experiment under `configs/`; the files in `configs/paper` are figures, those in `configs/studies` studies, and
/// each site has a file of its own.
fn config_files() -> Vec<PathBuf> {
    let mut folders = vec![root().join("configs")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.ends_with("configs/paper") || path.ends_with("configs/studies") => {}
                true => folders.push(path),
                false if ["site.toml", "rows.csv.gz"].iter().any(|name| path.ends_with(name)) => {}
                false => files.push(path),
            }
        }
    }
    files.sort();
    files
}

/// A config for each kind of each section, as text that resolves.
fn one_config_a_kind() -> Vec<String> {
    let mut texts = vec![String::new()];
    for section in &schema().sections {
        for kind in section.kind_names() {
            let required = match kind {
                "csv" => "path = \"t.csv\"\ntarget = 3\n",
                "stack" => "layers = [\"dense 5\", \"relu\"]\n",
                _ => "",
            };
            texts.push(format!("[{}]\nkind = \"{kind}\"\n{required}", section.name));
        }
    }
    texts
}

fn resolve(text: &str) -> Resolved {
    schema().resolve(Source { name: "e.toml", text }, &Overrides::default()).unwrap()
}

// The results of a config.

#[test]
fn an_empty_file_is_the_default_experiment() {
    let config = load("");
    assert_eq!((config.name.as_str(), config.seed, config.rounds), ("run", 1, 10));
    assert_eq!((config.backend.as_str(), config.data_kind(), config.partition_kind()), ("flex", "digits", "iid"));
    let AlgorithmConfig::NewtonDsvgd(newton) = config.algorithm else { panic!("not newton-dsvgd") };
    assert_eq!((newton.particles, newton.local.local_steps, newton.local.batch), (20, 200, 100));
    assert_eq!(config.schedule, ScheduleConfig::RoundRobin(RoundRobinConfig { first: 0, clients: 1 }));
}

#[test]
fn a_resolved_config_resolves_to_itself_under_every_kind_and_preset() {
    for preset in ["sound", "paper", "reference"] {
        for text in one_config_a_kind() {
            let first = resolve(&format!("preset = \"{preset}\"\n{text}"));
            let again = resolve(&first.to_toml());
            assert_eq!((&first.table, &first.changed), (&again.table, &again.changed), "{}", first.to_toml());
            assert_eq!(first.notes, again.notes);
            assert_eq!(first.to_toml(), again.to_toml());
        }
    }
}

#[test]
fn the_typed_config_holds_exactly_the_keys_of_the_table_under_every_kind() {
    for text in one_config_a_kind() {
        let resolved = resolve(&text);
        let config = Config::from_resolved(&resolved).unwrap();
        assert_eq!(toml::Table::try_from(&config).unwrap(), resolved.table, "{text}");
    }
}

#[test]
fn the_data_sets_own_types_hold_exactly_the_keys_of_the_table_under_every_kind() {
    for text in one_config_a_kind() {
        let config = Config::from_resolved(&resolve(&text)).unwrap();
        let data: DataConfig = config.data.clone().try_into().unwrap();
        // The keys of the rotation and of the classes' weights are the experiment's own.
        let mut keys = config.data.clone();
        keys.retain(|key, _| !key.starts_with("rotate") && key != "class_weights");
        assert_eq!(toml::Table::try_from(&data).unwrap(), keys, "{text}");
        let partition: PartitionConfig = config.partition.clone().try_into().unwrap();
        assert_eq!(toml::Table::try_from(&partition).unwrap(), config.partition, "{text}");
    }
}

#[test]
fn the_fedwba_papers_partitions_have_its_numbers_of_labels_by_default() {
    for (kind, labels) in [("superclass-labels", 10), ("fedwba-reference", 5), ("pfedgp", 5), ("cyclic-labels", 3)] {
        let config = load(&format!("[data]\nkind = \"cifar100\"\n[partition]\nkind = \"{kind}\""));
        assert_eq!(config.partition["labels"].as_integer(), Some(labels), "{kind}");
        assert_eq!(config.partition["validation"].as_float(), Some(0.0));
    }
}

#[test]
fn every_file_under_configs_resolves_and_names_its_run_after_its_path() {
    let files = config_files();
    assert!(files.len() >= 15, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let (config, resolved) = load_with(&text, &[]).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(resolved.notes.is_empty(), "{:?}", resolved.notes);
        let stem = file.file_stem().unwrap().to_str().unwrap();
        let folder = file.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let expected = if folder == "csv" { stem.to_string() } else { format!("{folder}-{stem}") };
        assert_eq!(config.name, expected);
    }
}

#[test]
fn a_resolved_config_lists_top_level_keys_then_sections_in_the_order_of_the_table() {
    let text = resolve("").to_toml();
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
    let expected: Vec<String> = schema().sections[1..].iter().map(|section| format!("[{}]", section.name)).collect();
    assert_eq!(headings, expected);
    assert!(text.contains("name = \"run\"\npreset = \"sound\"\nseed = 1\nrounds = 10\n"), "{text}");
}

#[test]
fn presets_set_the_switches_and_an_explicit_key_takes_precedence() {
    let config = load("preset = \"reference\"\n[algorithm]\nkind = \"dsvgd\"");
    let AlgorithmConfig::Dsvgd(dsvgd) = &config.algorithm else { panic!("not dsvgd") };
    assert_eq!((dsvgd.density.kde, dsvgd.local.minibatch), (KdeMode::Reference, Order::SequentialRestart));
    assert_eq!(config.schedule, ScheduleConfig::RoundRobin(RoundRobinConfig { first: 1, clients: 1 }));

    let config = load("preset = \"reference\"\n[algorithm]\nkind = \"dsvgd\"\nkde = \"exact\"");
    let AlgorithmConfig::Dsvgd(dsvgd) = &config.algorithm else { panic!("not dsvgd") };
    assert_eq!((dsvgd.density.kde, dsvgd.local.minibatch), (KdeMode::Exact, Order::SequentialRestart));

    let config = load("preset = \"paper\"\n[algorithm]\nkind = \"dsvgd\"");
    let AlgorithmConfig::Dsvgd(dsvgd) = &config.algorithm else { panic!("not dsvgd") };
    assert_eq!((dsvgd.density.kde, dsvgd.factors), (KdeMode::Exact, Factors::Paper));
    let KernelConfig::Rbf(rbf) = config.kernel else { panic!("not rbf") };
    assert_eq!(rbf.bandwidth, NumberOr::Rule(BandwidthRule::Paper));

    let (config, _) = load_with("[algorithm]\nkind = \"fedavg\"", &["preset=reference"]).unwrap();
    let AlgorithmConfig::Fedavg(fedavg) = config.algorithm else { panic!("not fedavg") };
    assert_eq!(fedavg.mix, Mix::Reference);
}

#[test]
fn defaults_depend_on_the_kind_where_the_table_says_so() {
    let config = load("[model]\nkind = \"blr\"\n[data]\nkind = \"twonorm\"");
    let ModelConfig::Blr(model) = config.model else { panic!("not blr") };
    assert_eq!(model.gamma_rate, 100.0);
    assert_eq!(config.data["rows"].as_integer(), Some(7400));
    assert_eq!(load("[data]\nkind = \"waveform\"").data["rows"].as_integer(), Some(5000));
    assert!(error("[model]\nkind = \"blr\"\n[data]\nkind = \"waveform\"").contains("`waveform` has 3"));
    let config = load("[kernel]\nkind = \"sigmoid\"");
    assert!(matches!(config.kernel, KernelConfig::Sigmoid { offset: 0.0, .. }), "{:?}", config.kernel);
}

#[test]
fn set_takes_precedence_over_the_file_and_the_last_set_over_the_first() {
    let set = ["seed=8", "algorithm.kde_bandwidth=median", "seed=9", "model.hidden=[100, 50]", "name=2024"];
    let (config, _) = load_with("seed = 7\n[algorithm]\nkind = \"dsvgd\"", &set).unwrap();
    assert_eq!((config.seed, config.name.as_str()), (9, "2024"));
    let AlgorithmConfig::Dsvgd(dsvgd) = &config.algorithm else { panic!("not dsvgd") };
    assert_eq!(dsvgd.density.kde_bandwidth, NumberOr::Rule(KdeRule::Median));
    let ModelConfig::Bnn(model) = config.model else { panic!("not bnn") };
    assert_eq!(model.hidden, [100, 50]);
}

#[test]
fn set_of_a_kind_drops_the_files_keys_for_the_former_kind_and_says_so() {
    let file = "[algorithm]\nkind = \"dsvgd\"\nparticles = 9\nkde = \"off\"\nbatch = 7";
    let (config, resolved) = load_with(file, &["algorithm.kind=fedavg", "schedule.clients=2"]).unwrap();
    assert!(matches!(&config.algorithm, AlgorithmConfig::Fedavg(fedavg) if fedavg.local.batch == 7));
    assert_eq!(resolved.notes.len(), 1);
    assert!(resolved.notes[0].contains("`algorithm.particles`, `algorithm.kde`"), "{:?}", resolved.notes);
    // What --set itself gives is always checked.
    let message = error_with(file, &["algorithm.kind=fedavg", "algorithm.particles=3"]);
    assert!(message.starts_with("--set: `algorithm.particles` is not used by algorithm kind `fedavg`"), "{message}");
}

#[test]
fn set_of_a_preset_says_which_keys_the_file_keeps() {
    let (_, resolved) = load_with("[algorithm]\nkind = \"dsvgd\"\nkde = \"exact\"", &["preset=reference"]).unwrap();
    assert!(resolved.notes[0].contains("`algorithm.kde`"), "{:?}", resolved.notes);
}

#[test]
fn whole_numbers_are_taken_for_real_ones_and_column_numbers_for_names() {
    let config = load("[optimizer]\nkind = \"sgd\"\nlr = 1\n[data]\nkind = \"csv\"\npath = \"t.csv\"\ntarget = 3");
    assert!(matches!(config.optimizer, OptimizerConfig::Sgd { lr: 1.0, .. }));
    assert_eq!(config.data["target"].as_str(), Some("3"));
}

#[test]
fn seeds_up_to_the_largest_toml_integer_survive() {
    let overrides = Overrides { seed: Some(i64::MAX as u64), ..Overrides::default() };
    let (config, resolved) = Config::load(Source { name: "e.toml", text: "" }, &overrides).unwrap();
    assert_eq!(config.seed, i64::MAX as u64);
    assert_eq!(load(&resolved.to_toml()).seed, config.seed);
    let overrides = Overrides { seed: Some(u64::MAX), ..Overrides::default() };
    assert!(Config::load(Source { name: "e.toml", text: "" }, &overrides).is_err());
}

// The message of each mistake: its place, the mistake, and the valid values.

#[test]
fn an_unknown_key_is_answered_with_its_line_the_nearest_and_the_list() {
    let message = error("seed = 1\n[algorithm]\nparticels = 5");
    assert!(message.starts_with("e.toml, line 3: unknown key `algorithm.particels`"), "{message}");
    assert!(message.contains("did you mean `algorithm.particles`?"), "{message}");
    assert!(message.contains("[algorithm] takes `kind`, `particles`, `local_steps`"), "{message}");
    assert!(error("sed = 1").contains("did you mean `seed`?"));
    assert!(error_with("", &["algoritm.kind=svgd"]).contains("did you mean [algorithm]?"));
    assert!(
        error_with("", &["kernel.bandwith=1"])
            .contains("--set: unknown key `kernel.bandwith`; did you mean `kernel.bandwidth`?")
    );
}

#[test]
fn a_key_in_the_wrong_place_is_answered_with_the_right_one() {
    // In TOML, what follows a section belongs to it.
    let message = error("[evaluation]\nevery = 1\nbackend = \"flex\"");
    assert!(message.contains("`backend` stands at the top of the file"), "{message}");
    assert!(error("[algorithm]\nlr = 0.1").contains("did you mean `optimizer.lr`?"));
    assert!(error_with("", &["particles=3"]).contains("did you mean `algorithm.particles`?"));
    assert!(error("\"data.kind\" = \"digits\"").contains("unknown key"));
}

#[test]
fn an_unknown_section_is_answered_with_the_nearest_and_the_list() {
    let message = error("\n[optimiser]\nlr = 1.0");
    assert!(message.starts_with("e.toml, line 2: unknown section [optimiser]; did you mean [optimizer]?"), "{message}");
    assert!(message.contains("`data`, `partition`, `model`"), "{message}");
}

#[test]
fn a_section_used_as_a_key_is_answered_with_how_to_write_it() {
    for message in [error("algorithm = \"fedavg\""), error_with("", &["algorithm=fedavg"]), error("[[data]]\nkind = 1")]
    {
        assert!(message.contains("is a section, not a key"), "{message}");
    }
}

#[test]
fn a_key_of_another_kind_is_answered_with_the_kinds_that_use_it() {
    let message = error("[algorithm]\nkind = \"fedavg\"\nparticles = 5");
    let expected = "e.toml, line 3: `algorithm.particles` is not used by algorithm kind `fedavg`; it belongs to `dsvgd`, `newton-dsvgd`, `u-dsvgd`, `p-dsvgd`, `svgd`, `local-svgd`, `sgld`, `dsgld`, `pvi`, `gvi`, `pmd`, `npv`, `fedwba`, `pfedbayes`, `pfedvem`";
    assert_eq!(message, expected);
    assert!(error("[data]\npath = \"x\"").contains("it belongs to `csv`"));
}

#[test]
fn a_value_of_the_wrong_type_is_answered_with_the_key_the_value_and_the_type() {
    let message = error("[algorithm]\n\nparticles = \"20\"");
    let expected =
        "e.toml, line 3: `algorithm.particles` cannot be \"20\"; it must be a whole number from 1 to 1000000";
    assert_eq!(message, expected);
    assert!(error("seed = 1.5").contains("cannot be 1.5"));
    assert!(error("[model]\nhidden = 50").contains("a list of whole numbers"));
    assert!(error("[model]\nhidden = [50, 0]").contains("cannot be [50, 0]"));
    assert!(error("[model]\nhidden = [50, \"a\"]").contains("a list of whole numbers"));
    assert!(error("name = {a = 1}").contains("`name` cannot be"));
    assert!(error("name = \"../up\"").contains("`name` cannot be"));
    assert!(
        error("[data]\nkind = \"csv\"\npath = \"t\"\ntarget = 1\ndelimiter = \"::\"").contains("one ASCII character")
    );
    assert!(error("[partition]\nkind = \"label-ratio\"\nratio = [1.0]").contains("a list of 2 or more numbers"));
    load("[data]\nkind = \"csv\"\npath = \"t\"\ntarget = -1\ndelimiter = \"tab\"");
}

#[test]
fn a_value_out_of_range_is_answered_with_the_range() {
    for (text, allowed) in [
        ("[algorithm]\nparticles = 0", "from 1 to"),
        ("[partition]\nclients = 0", "from 1 to"),
        ("rounds = -1", "from 1 to"),
        ("seed = -1", "at least 0"),
        ("[optimizer]\nlr = 0.0", "greater than 0"),
        ("[optimizer]\nlr = nan", "greater than 0"),
        ("[optimizer]\nlr = inf", "greater than 0"),
        ("[optimizer]\nmomentum = 1.0", "at least 0 and less than 1"),
        ("[data]\ntest_fraction = 1.0", "greater than 0 and less than 1"),
        ("[partition]\nvalidation = 1.0", "at least 0 and less than 1"),
        ("[algorithm]\nkde_damping = 0.0", "greater than 0 and at most 1"),
        ("[algorithm]\nkde_bandwidth = -1", "a number greater than 0 or one of `median`, `scott`"),
        ("[algorithm]\ntemperature = 0", "greater than 0"),
        ("[algorithm]\nbatch = 0", "from 1 to"),
        ("[evaluation]\nbins = 0", "from 1 to 1000"),
    ] {
        let message = error(text);
        assert!(message.contains("cannot be") && message.contains(allowed), "{text}: {message}");
    }
}

#[test]
fn factors_need_a_density_that_counts_as_zero_in_all_rounds_or_in_none() {
    let with = |keys: &str| format!("[algorithm]\nkde = \"reference\"\nkde_bandwidth = \"median\"\n{keys}");
    let keys = ["u-dsvgd\"", "dsvgd\"\nfactors = \"paper\"", "p-dsvgd\"", "p-dsvgd\"\nfactors = \"with-prior\""];
    for keys in keys.map(|kind| format!("kind = \"{kind}")) {
        let message = error(&with(&keys));
        assert!(message.contains("the factors would lose their prior"), "{keys}: {message}");
        load_with(&with(&keys).replace("\"median\"", "0.55"), &[]).unwrap();
        load_with(&with(&keys).replace("\"reference\"", "\"exact\""), &[]).unwrap();
    }
    load_with(&with("kind = \"dsvgd\""), &[]).unwrap();
}

#[test]
fn an_unknown_word_is_answered_with_the_nearest_and_the_list() {
    let models: Vec<String> = MODEL_KINDS.iter().map(|kind| format!("`{}`", kind.name)).collect();
    for (text, hint) in [
        ("[algorithm]\nkind = \"dsvdg\"", "did you mean `dsvgd`?"),
        ("[data]\nkind = \"minst\"", "did you mean `mnist`?"),
        ("[model]\nkind = \"bn\"", &format!("one of {}; did you mean `bnn`?", models.join(", "))),
        ("[kernel]\nbandwidth = \"refrence\"", "did you mean `reference`?"),
        ("backend = \"gpu\"", "one of `flex`, `ndarray`, `wgpu`, `cuda`; did you mean `wgpu`?"),
        ("preset = \"publication\"", "one of `sound`, `paper`, `reference`"),
    ] {
        let message = error(text);
        assert!(message.contains(hint), "{text}: {message}");
    }
    let overrides = Overrides { backend: Some("cude".into()), ..Overrides::default() };
    let message = Config::load(Source { name: "e.toml", text: "" }, &overrides).unwrap_err().to_string();
    assert!(message.starts_with("--backend: ") && message.contains("did you mean `cuda`?"), "{message}");
}

#[test]
fn a_missing_key_is_answered_with_what_needs_it() {
    let message = error("[data]\nkind = \"csv\"\npath = \"t.csv\"");
    let expected =
        "e.toml: `data.target` is missing: [data] kind `csv` needs it. It must be a column's name or its number from 0";
    assert_eq!(message, expected);
    assert!(error("[data]\nkind = \"csv\"\npath = \"\"\ntarget = 0").contains("text that is not empty"));
}

#[test]
fn what_is_not_toml_is_answered_with_line_and_column() {
    let message = error("seed = 1\nrounds = \n[data]");
    assert!(message.starts_with("e.toml, line 2, column 1") && message.contains("not valid TOML"), "{message}");
    assert!(error("seed = 1\nseed = 2").contains("line 2"));
}

#[test]
fn set_without_an_equals_sign_is_answered_with_an_example() {
    assert!(error_with("", &["rounds"]).contains("--set takes `key=value`"));
}

#[test]
fn keys_that_are_wrong_together_are_answered_with_both() {
    let csv = "[data]\nkind = \"csv\"\npath = \"t\"\ntarget = 0\n";
    for (text, part) in [
        ("[algorithm]\nkind = \"dsvgd\"\n[schedule]\nclients = 2".to_string(), "`schedule.clients` is 2; it must be 1"),
        ("[schedule]\nclients = 11\n[algorithm]\nkind = \"fedavg\"".to_string(), "only `partition.clients` = 10"),
        ("[model]\nkind = \"mixture\"".to_string(), "cannot be fitted to data kind `digits`"),
        ("[data]\nkind = \"mixture-1d\"".to_string(), "needs model kind `mixture`"),
        (
            "[model]\nkind = \"mixture\"\n[data]\nkind = \"mixture-2d\"".to_string(),
            "`newton-dsvgd` needs the curvature of the likelihood",
        ),
        ("[model]\nkind = \"blr\"".to_string(), "`digits` has ten"),
        ("[partition]\nkind = \"by-column\"".to_string(), "`data.client_column`"),
        (
            "[partition]\nkind = \"superclass-labels\"".to_string(),
            "needs data kind `cifar100`; data kind `digits` has no superclasses",
        ),
        ("[model]\nkind = \"blr\"\n[data]\nkind = \"cifar100\"".to_string(), "`cifar100` has a hundred"),
        (format!("{csv}task = \"regression\"\n[partition]\nkind = \"pfedgp\""), "assigns rows by label"),
        (format!("{csv}task = \"regression\"\n[model]\nkind = \"blr\""), "needs model kind `bnn`"),
        (format!("{csv}task = \"regression\"\n[partition]\nkind = \"dirichlet\""), "assigns rows by label"),
    ] {
        let message = error(&text);
        assert!(message.contains(part), "{text}: {message}");
    }
    load("[model]\nkind = \"mixture\"\n[data]\nkind = \"mixture-2d\"\n[algorithm]\nkind = \"dsvgd\"");
    load(&format!("{csv}client_column = \"who\"\n[partition]\nkind = \"by-column\""));
    load("[schedule]\nclients = 5\n[algorithm]\nkind = \"fedavg\"");
}

#[test]
fn an_error_is_found_even_where_set_overrides_it() {
    assert!(error_with("rounds = 0", &["rounds=5"]).contains("line 1"));
}

#[test]
fn the_config_of_a_run_on_rows_of_its_own_is_read_again_although_it_names_other_data() {
    // The rows had two classes; the file has the default data set in their place, which has ten.
    let text = "[model]\nkind = \"blr\"";
    assert!(error(text).contains("`digits` has ten"));
    let config = Config::of_run(Source { name: "config.toml", text }).unwrap();
    assert_eq!(config.model.kind().name, "blr");
    // A key that nobody can mean is refused as before.
    let message = Config::of_run(Source { name: "config.toml", text: "roundz = 3" }).unwrap_err().to_string();
    assert!(message.contains("did you mean `rounds`"), "{message}");
}

#[test]
fn an_algorithm_from_outside_has_its_keys_checked_and_its_runs_read_again() {
    const KEYS: &[Key] = &[key("keep", Accepts::Float(Interval::DECAY), Literal::Float(0.5), "Share that is kept.")];
    const KIND: Kind = Kind { name: "outside", about: "From another crate.", keys: KEYS };
    let load = |text| {
        let source = Source { name: "e.toml", text };
        ConfigLoader::default().with_algorithm(KIND).load(source, &Overrides::default())
    };
    let (config, resolved) = load("[algorithm]\nkind = \"outside\"").unwrap();
    assert_eq!(config.algorithm.name(), "outside");
    let text = resolved.to_toml();
    assert!(text.contains("[algorithm]\nkind = \"outside\"\nkeep = 0.5\n"), "{text}");
    assert_eq!(Config::of_run(Source { name: "config.toml", text: &text }).unwrap(), config);
    // A key of another section that the file of an earlier version does not have has its default; a damaged one is named.
    let earlier = text.replace("seconds = 0.0\n", "");
    assert!(earlier != text);
    assert_eq!(Config::of_run(Source { name: "run/config.toml", text: &earlier }).unwrap(), config);
    let damaged = text.replace("seconds = 0.0\n", "seconds = true\n");
    let message = Config::of_run(Source { name: "run/config.toml", text: &damaged }).unwrap_err().to_string();
    assert!(message.contains("run/config.toml") && message.contains("`stop.seconds`"), "{message}");
    // Without the program that registers it the kind does not exist, and nothing can be run.
    assert!(error(&text).contains("`algorithm.kind` cannot be \"outside\""));
    let message = load("[algorithm]\nkind = \"outside\"\nkeep = 1.5").unwrap_err().to_string();
    assert!(message.contains("`algorithm.keep` cannot be 1.5"), "{message}");
    let known = load("[algorithm]\nkind = \"fedavg\"").unwrap().0;
    let message = known.own_algorithm::<FedAvgConfig>(KIND).unwrap_err().to_string();
    assert!(message.contains("\"fedavg\"") && message.contains("\"outside\""), "{message}");
}

#[test]
fn an_algorithm_from_outside_has_a_name_and_keys_of_its_own() {
    const KEEP: Key = key("keep", Accepts::Float(Interval::DECAY), Literal::Float(0.5), "Share that is kept.");
    const DSVGD: Kind = Kind { name: "dsvgd", about: "", keys: &[] };
    const NAMELESS: Kind = Kind { name: "", about: "", keys: &[] };
    const WRONG: Kind =
        Kind { name: "outside", about: "", keys: &[Key { default: Some(Literal::Float(-1.0)), ..KEEP }] };
    const TWICE: Kind = Kind { name: "outside", about: "", keys: &[KEEP, KEEP] };
    const SPACED: Kind = Kind { name: "outside", about: "", keys: &[Key { name: "a b", ..KEEP }] };
    const PAPER: Kind = Kind { name: "outside", about: "", keys: &[KEEP.paper(Literal::Float(3.0))] };
    const TAG: Kind = Kind { name: "outside", about: "", keys: &[Key { name: "kind", ..KEEP }] };
    for (kind, words) in [
        (DSVGD, "there is an algorithm kind `dsvgd` already"),
        (NAMELESS, "the name `` must be of small letters"),
        (Kind { name: "Out side", ..TWICE }, "the name `Out side` must be of small letters"),
        (WRONG, "the default of `keep` of kind `outside` must be a number"),
        (TWICE, "kind `outside` has two keys `keep`"),
        (SPACED, "a key of kind `outside`: the name `a b` must be of small letters"),
        (PAPER, "the default of `keep` of kind `outside` must be a number"),
        (TAG, "kind `outside` has two keys `kind`"),
    ] {
        let source = Source { name: "e.toml", text: "" };
        let error = ConfigLoader::default().with_algorithm(kind).load(source, &Overrides::default()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// `section.key` of every key.
fn paths() -> Vec<String> {
    let kinds = schema().sections.iter().filter(|section| section.default_kind.is_some());
    schema().keys().map(|(path, _)| path).chain(kinds.map(|section| section.path("kind"))).collect()
}

/// Text that is often nearly a config.
fn nearly_a_config() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "\\PC{0,40}",
        "[a-z_.\"\\[\\]={}0-9é ]{0,40}",
        proptest::sample::select(paths()).prop_flat_map(|path| {
            let value =
                prop_oneof!["-?[0-9]{1,20}", "-?[0-9.e]{1,8}", "\"[a-z-]{0,12}\"", "\\[[0-9., ]{0,9}\\]", "\\PC{0,9}"];
            value.prop_map(move |value| format!("{path} = {value}"))
        }),
        proptest::sample::select(schema().sections.clone()).prop_map(|section| format!("[{}]", section.name)),
    ];
    proptest::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_text_and_no_set_makes_the_program_panic(text in nearly_a_config(), set in nearly_a_config()) {
        if let Ok((config, resolved)) = load_with(&text, &[&set]) {
            prop_assert_eq!(&resolve(&resolved.to_toml()).table, &resolved.table);
            prop_assert_eq!(Config::from_resolved(&resolved).unwrap(), config);
        }
    }

    #[test]
    fn any_single_value_is_accepted_as_it_stands_or_refused_by_name(
        path in proptest::sample::select(paths()),
        value in prop_oneof![
            any::<i64>().prop_map(|n| n.to_string()),
            any::<f64>().prop_map(|x| toml::Value::Float(x).to_string()),
            "\\PC{0,30}",
            "\\[[0-9.,\\-]{0,9}\\]",
        ],
    ) {
        let set = format!("{path}={value}");
        match load_with("", &[&set]) {
            Ok((_, resolved)) => prop_assert_eq!(&resolve(&resolved.to_toml()).table, &resolved.table),
            // A lone kind may miss or contradict other keys.
            Err(message) => prop_assert!(message.contains('`'), "{}: {}", set, message),
        }
    }
}

#[test]
fn a_method_that_cannot_choose_is_refused_and_keys_of_a_schedule_that_is_not_asked_are_noted() {
    let message = error("[algorithm]\nkind = \"pmd\"\nparticles = 1");
    assert!(message.contains("`algorithm.particles` must be 2 or more"), "{message}");
    let text = "[algorithm]\nkind = \"dsgld\"\n[schedule]\nkind = \"random\"\nclients = 2";
    let (_, resolved) = Config::load(Source { name: "e.toml", text }, &Overrides::default()).unwrap();
    let note = resolved.notes.iter().find(|note| note.contains("dsgld")).unwrap();
    assert!(note.starts_with("`schedule.kind`, `schedule.clients` have no effect: algorithm kind `dsgld`"), "{note}");
}

#[test]
fn stopping_and_calibration_do_not_look_at_parameters_of_which_a_part_is_untrained() {
    let keys = "partition.validation = 0.1\nstop.patience = 3";
    for kind in ["fedper", "pfedgp"] {
        let message = error(&format!("algorithm.kind = \"{kind}\"\n{keys}"));
        assert!(message.contains(&format!("algorithm kind `{kind}` leaves a part untrained")), "{message}");
    }
    let message = error("algorithm.kind = \"local-svgd\"\npartition.calibration = 0.2");
    assert!(message.contains("algorithm kind `local-svgd` leaves a part untrained; it must be 0"), "{message}");
    let message = error("algorithm.kind = \"local-svgd\"\nfederation.robust = \"norm-clip\"");
    assert!(message.contains("clients send no parameters; it must be \"none\""), "{message}");
}
