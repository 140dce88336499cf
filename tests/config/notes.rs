//! Notes on keys that are accepted and have no effect, and on defaults that do not suit the rest of a config.

use fedstein::datasets::{Dataset, Normalise, Targets, TrainTest};
use fedstein::experiment::ConfigLoader;
use fedstein::experiment::schema::{Overrides, Source};

use super::load_with;

/// The notes on a config, one a line.
fn notes(text: &str) -> String {
    load_with(text, &[]).unwrap().1.notes.join("\n")
}

#[test]
fn a_logistic_regression_without_a_constant_on_a_table_of_ones_own_has_a_note() {
    let notes = |data: &str, bias: bool| {
        let text = format!("[data]\n{data}\n[model]\nkind = \"blr\"\nbias = {bias}");
        load_with(&text, &["optimizer.lr=0.05"]).unwrap().1.notes.join("\n")
    };
    let own = "kind = \"csv\"\npath = \"t.csv\"\ntarget = \"label\"";
    assert!(notes(own, false).contains("`model.bias = true` adds one"), "{}", notes(own, false));
    assert_eq!((notes(own, true), notes("kind = \"twonorm\"", false)), (String::new(), String::new()));
}

#[test]
fn defaults_that_are_for_another_model_or_method_have_a_note() {
    let regression = "[data]\nkind = \"twonorm\"\n[model]\nkind = \"blr\"\n";
    assert!(notes(regression).contains("`optimizer.lr` = 0.001 is a step size for networks"), "{}", notes(regression));
    assert_eq!(notes(&format!("{regression}[optimizer]\nlr = 0.001")), "");
    let averaging = "[algorithm]\nkind = \"fedavg\"";
    assert!(notes(averaging).contains("`fedavg` then has nothing to average"), "{}", notes(averaging));
    for more in ["[schedule]\nclients = 1", "[schedule]\nclients = 5"] {
        assert_eq!(notes(&format!("{averaging}\n{more}")), "");
    }
    assert_eq!(notes("preset = \"reference\"\n[algorithm]\nkind = \"fedwba\""), "");
    assert_eq!(notes("[algorithm]\nkind = \"dsvgd\""), "");
}

#[test]
fn keys_of_densities_and_predictives_that_are_not_used_are_noted() {
    let found = notes(
        "[algorithm]\nkind = \"dsvgd\"\nkde = \"off\"\nkde_damping = 0.5\ndistill_steps = 7\nkde_bandwidth = 3.0",
    );
    let unused = "`algorithm.distill_steps`, `algorithm.kde_bandwidth`, `algorithm.kde_damping` have no effect";
    assert!(found.contains(unused), "{found}");
    assert_eq!(notes("[algorithm]\nkind = \"dsvgd\"\nkde_damping = 0.5"), "");
    // A toy's divergence is that of densities with this bandwidth.
    let toy =
        "data.kind = \"mixture-1d\"\nmodel.kind = \"mixture\"\npartition.clients = 2\n[algorithm]\nkde = \"off\"\n";
    for kind in ["dsvgd", "u-dsvgd"] {
        let found = notes(&format!("{toy}kde_bandwidth = 0.3\nkde_damping = 0.5\nkind = \"{kind}\""));
        assert!(found.contains("`algorithm.kde_damping` has no effect") && !found.contains("kde_bandwidth"), "{found}");
    }
    let blr = "data.kind = \"twonorm\"\nmodel = { kind = \"blr\", probit_lambda = 3.0, predictive = ";
    assert!(notes(&format!("{blr}\"mean\" }}")).contains("`model.probit_lambda` has no effect"));
    assert!(!notes(&format!("{blr}\"probit\" }}")).contains("probit_lambda"));
}

#[test]
fn keys_without_their_counterpart_are_noted_and_with_it_are_not() {
    let late = "faults = { kinds = [\"straggler\"], delay = ";
    let asked = "faults.kinds = [\"dropout\"]\nfaults.requests = ";
    let hip = "schedule.kind = \"hip\"\nschedule.softmax_temperature = 2.0";
    let trimmed = "federation.robust = \"trimmed\"\nschedule.clients = 5";
    assert!(!notes("optimizer.reset = \"never\"").contains("optimizer.reset"));
    for (key, text, counterpart) in [
        ("calibration.level", "calibration.level = 0.8", "partition.calibration = 0.2"),
        ("data.rotate_from", "data.rotate_from = \"first-client\"", "data.rotate = \"principal\""),
        ("model.gamma_shape", "model.gamma_shape = 3.0", "model.weight_precision = \"learned\""),
        ("stop.metric", "stop.metric = \"brier\"", "stop.patience = 5\npartition.validation = 0.1"),
        ("model.weight_precision", "model.weight_precision = 9.0\nalgorithm.kind = \"fedavg\"", ""),
        ("federation.deadline", "federation.deadline = 5.0", "faults.kinds = [\"straggler\"]"),
        ("faults.factor", "faults.factor = 7.0", "faults.kinds = [\"huge-norm\"]"),
        ("faults.requests", &format!("{asked}[\"scores\"]"), "evaluation.personal = true"),
        ("faults.requests", &format!("{asked}[\"question\"]"), "evaluation.discrepancy = true"),
        ("optimizer.reset", "optimizer.reset = \"never\"\noptimizer.kind = \"sgd\"", ""),
        ("optimizer.reset", "optimizer.reset = \"never\"\nalgorithm.kind = \"svgd\"", ""),
        ("schedule.softmax_temperature", hip, "schedule.negative = \"softmax\""),
        ("federation.robust_clip", "federation.robust_clip = 2.0", "federation.robust = \"norm-clip\""),
        ("federation.robust_trim", "federation.robust_trim = 0.4\nalgorithm.kind = \"fedavg\"", trimmed),
        ("faults.delay", &format!("federation.deadline = 30.0\n{late}5.0 }}"), ""),
    ] {
        let alone = notes(text);
        assert!(alone.contains(&format!("`{key}`")) && alone.contains("no effect"), "{text}: {alone}");
        if !counterpart.is_empty() {
            let both = notes(&format!("{text}\n{counterpart}"));
            assert!(!both.contains(&format!("`{key}`")), "{text}, {counterpart}: {both}");
        }
    }
    assert!(!notes(&format!("federation.deadline = 30.0\n{late}60.0 }}")).contains("faults.delay"));
    assert!(notes("evaluation.kde_bandwidth = 0.3").contains("`evaluation.kde_bandwidth` has no effect"));
    assert!(!notes("model.weight_precision = 9.0").contains("weight_precision"));
    // A key of the prior has an effect where the particles start at draws from it.
    let rare = "data.kind = \"twonorm\"\nmodel = { kind = \"blr\", gamma_rate = 3.0 }\nalgorithm.kind = ";
    let shared = notes(&format!("{rare}\"fedavg\""));
    assert!(!shared.contains("gamma_rate"), "{shared}");
    let own = notes(&format!("{rare}\"pfedbayes\""));
    assert!(own.contains("`model.gamma_rate` has no effect: algorithm kind `pfedbayes` does not use"), "{own}");
    // The noise of a regression has a prior, which only some methods use.
    let noise = "data.kind = \"uci-regression\"\nmodel.gamma_shape = 3.0\nalgorithm.kind = ";
    let averaged = notes(&format!("{noise}\"fedavg\""));
    assert!(averaged.contains("`model.gamma_shape` has no effect: algorithm kind `fedavg` does not use"), "{averaged}");
    assert!(!notes(&format!("{noise}\"dsvgd\"")).contains("gamma_shape"));
    let start = "model.init = \"kaiming-uniform\"\nalgorithm.kind = ";
    let own = notes(&format!("{start}\"pfedbayes\""));
    assert!(own.contains("`model.init` has no effect: algorithm kind `pfedbayes` starts at"), "{own}");
    assert!(!notes(&format!("{start}\"pfedvem\"")).contains("model.init"));
    // A classification has no noise, and the method has no prior: one note.
    let both = notes("model.gamma_shape = 3.0\nmodel.weight_precision = 2.0\nalgorithm.kind = \"fedavg\"");
    assert_eq!(both.matches("no effect").count(), 1, "{both}");
    let csv = "data = { kind = \"csv\", path = \"t.csv\", target = \"y\", client_column = \"ward\"";
    let unused = |more: &str| notes(&format!("{csv}{more}"));
    let note = "`data.client_column` has no effect: the clients are those of `partition.kind` = \"iid\", and without this \
                key the column is a feature; `partition.kind` = \"by-column\" makes the values of the column the clients";
    assert_eq!(unused(" }\npartition.kind = \"iid\""), note);
    let feature = unused(", categorical = [\"ward\"] }\npartition.kind = \"iid\"");
    assert!(feature.contains("`data.client_column` has no effect") && !feature.contains("a feature"), "{feature}");
    assert!(unused(", test_path = \"u.csv\", split = \"by-client\" }").contains("`data.client_column` has no effect"));
    for more in [" }\npartition.kind = \"by-column\"", ", split = \"by-client\" }", ", leave_out = [\"north\"] }"] {
        assert!(!unused(more).contains("client_column"), "{more}: {}", unused(more));
    }
    let sites = "data = { kind = \"sites\", task = \"regression\"";
    let note = "`data.task` has no effect: the sites' own files say it, and `data.test_path` is empty";
    assert_eq!(notes(&format!("{sites} }}")), note);
    assert_eq!(notes(&format!("{sites}, test_path = \"t.csv\", target = \"y\" }}")), "");
    let sent = "federation.wire = \"f16\"\nstop.uplink_mib = 3.0";
    let note = "`federation.wire`, `stop.uplink_mib` have no effect: server and clients of algorithm kind `local-svgd` send \
                each other no parameters";
    assert_eq!(notes(&format!("algorithm.kind = \"local-svgd\"\n{sent}")), note);
    assert_eq!(notes(sent), "");
    // At sites replies come late by themselves, with an injected delay in addition.
    let sites = "data.kind = \"sites\"\nfederation.deadline = 30.0";
    assert_eq!(notes(sites), "");
    assert!(!notes(&format!("{sites}\n{late}5.0 }}")).contains("faults.delay"));
    // The default of `[data]` has classes, and says nothing of a program's own rows.
    let features = ndarray::Array2::from_shape_fn((12, 2), |(row, column)| (row * 3 + column) as f32);
    let values = (0..12).map(f64::from).collect();
    let rows = |values| Dataset::new("mine", features.clone(), Targets::Real { values }).unwrap();
    let data = TrainTest::from_rows(rows(values), rows((0..12).map(f64::from).collect()), Normalise::Standard).unwrap();
    let source = Source { name: "e.toml", text: "model.gamma_shape = 3.0" };
    let (_, resolved) = ConfigLoader::default().with_data(&data).load(source, &Overrides::default()).unwrap();
    assert!(!resolved.notes.join("\n").contains("gamma_shape"), "{:?}", resolved.notes);
}

#[test]
fn a_cosine_that_ends_before_the_run_is_noted_unless_it_was_asked_for() {
    let cosine = |keys: &str| notes(&format!("rounds = 60\n[lr_schedule]\nkind = \"cosine\"\n{keys}"));
    assert!(cosine("").contains("`lr_schedule.rounds` is 10 by default: of the 60 rounds"), "{}", cosine(""));
    assert_eq!(cosine("rounds = 20"), "");
}
