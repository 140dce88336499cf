//! `fedstein predict --client` and `evaluate --client`: a client's personal predictor. What it must give is known from the
//! training: `clients.csv` has the scores of every client's predictor on its own test rows.

use std::fs;
use std::process::Command;

use super::place::{Mnist, Place, assert_near, cells, numbers, prices, works};

const WARDS: [&str; 3] = ["North, East", "St. Mary's", "south"];
const CLASSES: [&str; 3] = ["cat", "dog", "eel"];
/// Two rounds of 5 steps.
const SHORT: &str = "train --set rounds=2 --set algorithm.local_steps=5 --set data.rotate=none";
/// The step size of methods that are defined by plain gradient steps.
const PLAIN: &str = "--set optimizer.kind=sgd";
/// Clients by name, with a predictor each.
const NAMED: &str = "--quiet --set data.kind=csv --set data.path=rows.csv --set data.test_path=more.csv --set data.target=kind --set data.client_column=ward --set partition.kind=by-column --set model.hidden=[8] --set evaluation.personal=true";

/// Row `i` of a table of pets that overlap; it belongs to ward i mod 3, and the wards have other shares and places of them.
fn row(i: usize) -> [String; 4] {
    let ward = i % 3;
    let kind = [0, ward, 1, ward, 2, ward, (i / 7) % 3][i / 3 % 7];
    let noise = ((i * 7919 % 211) as f64 / 211.0 - 0.5) * 3.0;
    let width = kind as f64 - 1.0 + [0.0, 0.8, -0.8][ward] + noise;
    let height = (i * 104_729 % 97) as f64 / 97.0;
    [format!("{width:.3}"), CLASSES[kind].to_owned(), format!("{height:.3}"), WARDS[ward].to_owned()]
}

/// These rows as a file.
fn table(rows: impl Iterator<Item = usize>) -> String {
    let line = |[width, kind, height, ward]: [String; 4]| format!("{width},{kind},{height},\"{ward}\"\n");
    format!("width,kind,height,ward\n{}", rows.map(|i| line(row(i))).collect::<String>())
}

/// Training rows, test rows, and the test rows of each ward as a file of its own.
fn tables() -> Place {
    let place = Place::new();
    place.write("rows.csv", table(0..90)).write("more.csv", table(200..263));
    for ward in 0..WARDS.len() {
        place.write(&format!("of-{ward}.csv"), table((200..263).filter(|i| i % 3 == ward)));
    }
    place
}

/// A short run over clients with names.
fn named(keys: &str) -> Place {
    let place = tables();
    place.works(&train(keys));
    place
}

fn train(keys: &str) -> String {
    format!("{SHORT} {NAMED} --out run {keys}")
}

/// A line with `--client`, whose name may have spaces.
fn of_client(place: &Place, line: &str, client: &str) -> Command {
    let mut command = place.command(line);
    command.args(["--client", client]);
    command
}

fn predict(place: &Place, ward: usize) -> String {
    works(&mut of_client(place, &format!("predict run --input of-{ward}.csv"), WARDS[ward])).stdout
}

/// Accuracy and NLL of predictions of a ward's test rows.
fn scores(predictions: &str, ward: usize) -> (f64, f64) {
    let (mut right, mut nll, table) = (0, 0.0, cells(predictions));
    let truth: Vec<String> = (200..263).filter(|i| i % 3 == ward).map(|i| row(i)[1].clone()).collect();
    assert_eq!(table.len(), truth.len() + 1);
    for (cells, kind) in table[1..].iter().zip(&truth) {
        right += usize::from(cells[0] == *kind);
        nll -= numbers(&cells[2..5])[CLASSES.iter().position(|class| class == kind).unwrap()].ln();
    }
    (right as f64 / truth.len() as f64, nll / truth.len() as f64)
}

/// Accuracy and NLL of a client in `clients.csv`.
fn of_run(place: &Place, client: usize) -> (f64, f64) {
    let text = place.text("run/clients.csv");
    let line = text.lines().nth(client + 1).unwrap();
    // A name may have a comma; the numbers after it are rows, visits and six metrics: accuracy, NLL, ECE, MCE, Brier score and RMSE.
    let cells: Vec<&str> = line.rsplitn(8, ',').collect();
    (cells[5].parse().unwrap(), cells[4].parse().unwrap())
}

/// Checks that the predictions of every client's test rows have the scores that the run gave its predictor.
#[track_caller]
fn assert_scores_of_run(place: &Place, what: &str) {
    let mut seen = Vec::new();
    for (ward, name) in WARDS.iter().enumerate() {
        let (accuracy, nll) = scores(&predict(place, ward), ward);
        let (of_accuracy, of_nll) = of_run(place, ward);
        assert_near(accuracy, of_accuracy, 1e-12);
        assert!((nll - of_nll).abs() < 1e-12, "{what}, {name}: NLL {nll}, in clients.csv {of_nll}");
        seen.push(nll);
    }
    assert!(seen[0] != seen[1] && seen[1] != seen[2], "{what}: the clients must differ for this test, {seen:?}");
}

#[test]
fn predictions_of_a_clients_test_rows_have_its_scores_of_every_personalised_method() {
    let personalised = [
        "fedper",
        "per-fedavg",
        "pfedme",
        "fedwba",
        "pfedbayes",
        "pfedvem",
        "pfedgp",
        "local-svgd",
        "dsvgd",
        "newton-dsvgd",
    ];
    for kind in personalised {
        // Of methods with one client a round, all three have trained.
        let steps = if ["per-fedavg", "pfedme"].contains(&kind) { PLAIN } else { "" };
        let place = named(&format!("--set algorithm.kind={kind} {steps} --set rounds=3"));
        assert_scores_of_run(&place, kind);
    }
}

#[test]
fn a_client_alone_has_the_predictor_of_svgd_on_its_rows() {
    let place = tables();
    let keys = "--set data.client_column= --set data.ignore=[\"ward\"] --set partition.kind=iid --set partition.clients=1 --set optimizer.reset=never";
    place.works(&train(&format!("{keys} --set algorithm.kind=local-svgd")));
    place.works(&format!("{SHORT} {NAMED} --out all {keys} --set evaluation.personal=false --set algorithm.kind=svgd"));
    let of_svgd = place.json("all/summary.json")["evaluation"]["nll"].as_f64().unwrap();
    assert_near(of_run(&place, 0).1, of_svgd, 1e-12);
    let summary = place.json("run/summary.json");
    assert!((summary["evaluation"]["nll"].as_f64().unwrap() - of_svgd).abs() > 0.01, "the server learns nothing");
}

#[test]
fn a_report_sets_the_clients_of_two_runs_side_by_side() {
    let place = named("--set rounds=3 --set name=together");
    place
        .works(&format!("{SHORT} {NAMED} --out alone --set algorithm.kind=local-svgd --set rounds=3 --set name=alone"));
    place.works("report run --compare alone --out both");
    let compared = &place.json("both/report.json")["run"]["compare"][0]["clients"];
    let lines = |run: &str| place.table(&format!("{run}/clients.csv"));
    let (here, there) = (lines("run"), lines("alone"));
    for (client, line) in here.iter().enumerate().skip(1) {
        let nll = |line: &[String]| line[line.len() - 5].parse::<f64>().unwrap();
        let pairs = compared["clients"].as_array().unwrap();
        let pair = pairs.iter().find(|pair| pair["index"] == client - 1).unwrap();
        assert_near(pair["difference"].as_f64().unwrap(), nll(line) - nll(&there[client]), 1e-12);
    }
    let page = place.text("both/report.html");
    assert!(page.contains("Clients, compared with alone") && page.contains(" of 3 clients ha"));
    // The particles of each client alone are nobody's on the server.
    assert!(page.contains("alone: Algorithm kind `local-svgd` publishes parameters of which a part stays untrained"));
    assert!(!place.text("both/curves.svg").contains("alone"));
    // Other clients: the same rows, assigned in another way.
    place.works(&format!("{SHORT} {NAMED} --out other --set seed=2 --set name=other"));
    place.works("report run --compare other --out others");
    assert!(place.json("others/report.json")["run"]["compare"][0]["clients"].is_null());
}

#[test]
fn so_have_those_of_a_run_with_other_rows_precisions_and_messages() {
    for keys in [
        "--set algorithm.kind=fedwba --set data.rotate=principal",
        "--set algorithm.kind=fedper --set federation.wire=f16 --set partition.validation=0.2",
        "--set algorithm.kind=per-fedavg --set optimizer.kind=sgd --set algorithm.inner_lr=0.5 --set data.class_weights=balanced",
        "--set algorithm.kind=pfedvem --set precision=f64 --set evaluation.chunk=4",
        "--set algorithm.kind=newton-dsvgd --set evaluation.prior_correction=true",
        "--set algorithm.kind=fedavg --set evaluation.prior_correction=true --set data.class_weights=balanced",
        "--set algorithm.kind=fedper --set optimizer.reset=never --set evaluation.personal=true --set checkpoint.every_seconds=0",
    ] {
        let place = named(&format!("{keys} --set rounds=3"));
        assert_scores_of_run(&place, keys);
        let common = works(&mut place.command("predict run --input of-1.csv")).stdout;
        assert!(common != predict(&place, 1), "{keys}: the client's personal predictor is another");
    }
}

#[test]
fn the_predictor_of_a_client_is_the_same_to_the_bit_without_the_states_of_the_others() {
    let place = named("--set algorithm.kind=fedwba --set rounds=3");
    let before = predict(&place, 1);
    let others = |name: &&String| name.starts_with("client-") && !name.starts_with("client-1-");
    let names = place.names("run/checkpoint");
    let others: Vec<&String> = names.iter().filter(others).collect();
    assert_eq!(others.len(), 2, "{names:?}");
    others.iter().for_each(|name| fs::remove_file(place.path(&format!("run/checkpoint/{name}"))).unwrap());
    assert_eq!(predict(&place, 1), before);
    assert!(!of_client(&place, "predict run --input of-0.csv", WARDS[0]).output().unwrap().status.success());
}

#[test]
fn a_client_of_a_regression_has_its_own_mean_and_deviation() {
    let place = Place::new();
    let with_ward = |text: String| {
        let line = |(at, line): (usize, &str)| match at {
            0 => format!("{line},ward\n"),
            _ => format!("{line},{}\n", ["north", "south"][at % 2]),
        };
        text.lines().enumerate().map(line).collect::<String>()
    };
    let test = with_ward(prices(31));
    let of_north: String =
        test.lines().filter(|line| !line.ends_with("south")).map(|line| format!("{line}\n")).collect();
    place.write("rows.csv", with_ward(prices(60))).write("more.csv", &test).write("north.csv", &of_north);
    let keys = NAMED.replace("data.target=kind", "data.target=price --set data.task=regression");
    place.works(&format!("{SHORT} {keys} --set algorithm.kind=fedper --out run"));
    let line = "predict run --input north.csv --columns aleatoric_sd,epistemic_sd";
    let table = cells(&works(&mut of_client(&place, line, "north")).stdout);
    assert_eq!(table[0].join(","), "mean,sd,aleatoric_sd,epistemic_sd");
    let truth: Vec<f64> =
        of_north.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().parse().unwrap()).collect();
    let square = |(cells, truth): (&Vec<String>, &f64)| (numbers(cells)[0] - truth).powi(2);
    let mse = table[1..].iter().zip(&truth).map(square).sum::<f64>() / truth.len() as f64;
    let of_run: f64 = place.table("run/clients.csv")[1].last().unwrap().parse().unwrap();
    assert_near(mse.sqrt(), of_run, 1e-9);
}

#[test]
fn everything_else_of_predict_is_as_without_a_client() {
    let place = tables();
    let keys = "--set algorithm.kind=fedper --set data.id=height --set data.header=yes";
    place.works(&train(keys));
    let plain = works(&mut of_client(&place, "predict run --input of-2.csv", "south")).stdout;
    let table = cells(&plain);
    assert_eq!(table[0].join(","), "height,prediction,confidence,p_0,p_1,p_2");
    assert_eq!(table[1][0], row(200)[2], "the first row of the south is 200");
    let line = "predict run --input of-2.csv --columns entropy,mutual_information,outside --format jsonl --out p.jsonl";
    works(&mut of_client(&place, line, "south"));
    let text = place.text("p.jsonl");
    assert_eq!(text.lines().count(), table.len() - 1);
    for (line, cells) in text.lines().zip(&table[1..]) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let p = numbers(&cells[3..]);
        assert_eq!(line["id"]["height"], cells[0]);
        assert_eq!(line["probabilities"]["eel"].as_f64(), Some(p[2]));
        assert_near(line["entropy"].as_f64().unwrap(), -p.iter().map(|p| p * p.ln()).sum::<f64>(), 1e-12);
        assert_near(line["mutual_information"].as_f64().unwrap(), 0.0, 1e-7); // one parameter vector
        assert_eq!(line["outside"], serde_json::json!([]));
    }
    let other = if cfg!(feature = "ndarray") { "ndarray" } else { "flex" };
    let other =
        works(&mut of_client(&place, &format!("predict run --input of-2.csv --backend {other}"), "south")).stdout;
    for (row, want) in cells(&other).iter().zip(&table).skip(1) {
        numbers(&row[2..]).iter().zip(numbers(&want[2..])).for_each(|(got, want)| assert_near(*got, want, 1e-5)); // f32
    }
    place.refuses_command(
        &mut of_client(&place, "predict run --input of-2.csv --out p.jsonl", "south"),
        &["--out `p.jsonl` exists"],
    );
}

#[test]
fn clients_without_names_are_known_by_numbers_and_data_sets_are_found_again() {
    let place = Place::new();
    Mnist::new().write(&place, "sets");
    let keys = "--quiet --set data.kind=mnist --set partition.clients=2 --set algorithm.kind=fedper --set evaluation.personal=true";
    place.works(&format!("{SHORT} {keys} --data-dir sets --out run"));
    let pixels: Vec<String> = (0..784).map(|_| "0".to_owned()).collect();
    place.write("new.csv", format!("{}\n", pixels[..16].join(",")));
    let own = place.works("predict run --input new.csv --client 1 --data-dir sets").stdout;
    assert_eq!(own.lines().count(), 2);
    assert!(own != place.works("predict run --input new.csv --client 0 --data-dir sets").stdout);
    let variable = works(of_client(&place, "predict run --input new.csv", "1").env("FEDSTEIN_DATA", "sets")).stdout;
    assert_eq!(variable, own);
    place.refuses(
        "predict run --input new.csv --client 1",
        &["rows of the training, which cannot be read", "data/mnist"],
    );
    for name in ["2", "-1", "01", "client 1"] {
        let words = [format!("--client: there is no client `{name}`"), "numbered from 0 to 1".into()];
        let line = "predict run --input new.csv --data-dir sets";
        let mut command = place.command(line);
        place.refuses_command(command.arg(format!("--client={name}")), &[&words[0], &words[1]]);
    }
    place.refuses("predict run --input new.csv --data-dir sets", &["--client"]);
}

#[test]
fn an_unknown_name_is_refused_with_those_that_there_are() {
    let place = named("--set algorithm.kind=fedper");
    for name in ["North", "0", ""] {
        let words = [&*format!("--client: there is no client `{name}`"), "`North, East`, `St. Mary's`, `south`"];
        place.refuses_command(&mut of_client(&place, "predict run --input more.csv --out p.csv", name), &words);
    }
    let place = Place::new();
    let line = |i: usize| format!("{}.5,{},ward-{:02}\n", i % 7, CLASSES[i / 20 % 3], i % 20);
    let text = format!("width,kind,ward\n{}", (0..120).map(line).collect::<String>());
    place.write("rows.csv", &text).write("more.csv", &text);
    place.works(&train("--set algorithm.kind=fedper"));
    let message = place.refuses("predict run --input more.csv --client ward", &["`ward-11` and 8 more"]);
    assert!(!message.contains("ward-12"), "{message}");
}

#[test]
fn a_client_that_has_never_trained_predicts_with_the_published_particles_and_a_note_says_so() {
    // Two rounds with one client each.
    for (kind, keys) in [("pfedme", PLAIN), ("newton-dsvgd", ""), ("u-dsvgd", "")] {
        untrained(kind, keys);
    }
}

fn untrained(kind: &str, keys: &str) {
    let place = named(&format!("--set algorithm.kind={kind} {keys}"));
    assert_scores_of_run(&place, kind);
    let own = works(&mut of_client(&place, "predict run --input of-2.csv", "south"));
    let note =
        "note: client south has no predictor of its own and predicts with the global particles: it has never trained";
    assert!(own.stderr.contains(note), "{}", own.stderr);
    let common = cells(&place.works("predict run --input of-2.csv").stdout);
    for (row, want) in cells(&own.stdout).iter().zip(&common).skip(1) {
        numbers(&row[1..]).iter().zip(numbers(&want[1..])).for_each(|(got, want)| assert_near(*got, want, 1e-6)); // f32
    }
    let trained = works(&mut of_client(&place, "predict run --input of-0.csv", WARDS[0]));
    assert!(!trained.stderr.contains("never trained"), "{}", trained.stderr);
}

#[test]
fn a_method_with_one_predictor_for_all_is_refused_with_those_that_have_more() {
    let asked = "predict run --input more.csv --client south";
    let place = named("--set algorithm.kind=fedavg --set evaluation.personal=false");
    let words = ["`fedavg` has one predictor for all clients", "leave --client out", "fedwba, fedper, per-fedavg"];
    place.refuses(asked, &words);
    place.refuses(&asked.replace("predict", "evaluate"), &words);
    let place = named("--set algorithm.kind=fedavg");
    place.refuses(
        asked,
        &["client south has no predictor of its own", "(algorithm kind `fedavg`)", "leave --client out"],
    );
    let place = named("--set algorithm.kind=svgd --set evaluation.personal=false");
    place.refuses(asked, &["`svgd` has one predictor for all clients"]);
    // A personalised method keeps its predictors whether they are scored or not.
    let place = named("--set algorithm.kind=fedper");
    let scored = predict(&place, 2);
    // Its published head is untrained.
    let words = "algorithm kind `fedper` publishes parameters of which a part stays untrained";
    assert!(place.works("predict run --input more.csv").stderr.contains(words));
    assert!(place.text("run/summary.json").contains(words));
    assert!(!place.works("predict run --input more.csv --client south").stderr.contains(words));
    let printed = place.works("evaluate run --input more.csv --out judged").stdout;
    assert!(printed.contains("rows of more.csv: 63") && printed.contains("say nothing of the method"), "{printed}");
    assert!(!printed.contains("accuracy"), "{printed}");
    let place = named("--set algorithm.kind=fedper --set evaluation.personal=false");
    assert_eq!(predict(&place, 2), scored);
}

#[test]
fn frequencies_of_classes_that_a_feature_tells_need_no_correction() {
    let note = "clients differ in how frequent their classes are";
    for (keys, noted) in [("", true), ("--set data.categorical=[\"ward\"]", false)] {
        let place = named(&format!("--set algorithm.kind=fedavg {keys}"));
        assert_eq!(place.text("run/summary.json").contains(note), noted, "{keys}");
    }
}

#[test]
fn states_that_are_not_kept_or_not_those_of_the_results_are_refused() {
    let asked = "predict run --input more.csv --client south";
    for keys in ["--set checkpoint.keep=false", "--set checkpoint.enabled=false"] {
        let place = named(&format!("--set algorithm.kind=fedper {keys}"));
        place.refuses(asked, &["run has no checkpoint", "`checkpoint.enabled = true`", "`checkpoint.keep = true`"]);
    }
    let place = named("--set algorithm.kind=fedper");
    fs::create_dir(place.path("first")).unwrap();
    for name in place.names("run").iter().filter(|name| !["checkpoint", "report"].contains(&&***name)) {
        place.write(&format!("first/{name}"), place.bytes(&format!("run/{name}")));
    }
    // More rounds, of which the results are not there: those of the second round beside the checkpoint of the fourth.
    place.works("train --quiet --resume run --set rounds=4");
    assert_scores_of_run(&place, "a run that was continued");
    fs::rename(place.path("run/checkpoint"), place.path("first/checkpoint")).unwrap();
    place.refuses(
        "predict first --input more.csv --client south",
        &["results of first are those of round 2", "checkpoint is of round 4", "fedstein train --resume first"],
    );
    // A damaged state is a failure of the machine, not of the user.
    let place = named("--set algorithm.kind=fedper --set rounds=3");
    let names = place.names("run/checkpoint");
    let state = names.iter().find(|name| name.starts_with("client-2-")).unwrap();
    place.write(&format!("run/checkpoint/{state}"), "damaged");
    place.fails(asked, &[state]);
}

#[test]
fn the_states_of_another_round_than_the_best_are_refused() {
    let rounds = "--set algorithm.kind=fedwba --set evaluation.personal=false --set partition.validation=0.2";
    let asked = "predict run --input more.csv --client south";
    // So large a step makes the rounds worse.
    let place = named(&format!("{rounds} --set rounds=12 --set stop.patience=2 --set optimizer.lr=3"));
    let facts = place.json("run/summary.json")["facts"].to_string();
    let last = place.table("run/rounds.csv").len() - 1;
    assert!(facts.contains("best round") && !facts.contains(&format!("[\"best round\",\"{last}\"]")), "{facts}");
    place.refuses(asked, &["(stop.patience)", &format!("round {last}; train without `stop.patience`")]);
    // Where the best round is the last one, the states are its own.
    let place = named(&format!("{rounds} --set rounds=1 --set stop.patience=2"));
    place.works(asked);
}

#[test]
fn rows_or_keys_that_are_not_those_of_the_training_are_refused() {
    let asked = "predict run --input of-2.csv --client south";
    let place = named("--set algorithm.kind=fedper");
    place.write("rows.csv", table(1..91));
    place.refuses(asked, &["the training and test rows are not those that run was trained with"]);
    fs::remove_file(place.path("rows.csv")).unwrap();
    place.refuses(asked, &["rows of the training, which cannot be read again", "rows.csv"]);
    place.write("rows.csv", table(0..90)).works(asked);
    let config = place.text("run/config.toml");
    place.write("run/config.toml", config.replace("seed = 1", "seed = 2"));
    place.refuses(asked, &["run/config.toml is not what the run was trained with", "seed: 1 → 2"]);
}

#[test]
fn the_states_of_sites_are_at_the_sites() {
    let place = tables();
    let data = "--set data.kind=csv --set data.path=rows.csv --set data.test_path=more.csv --set data.target=kind --set data.client_column=ward --set partition.kind=by-column --set model.hidden=[8] --set algorithm.kind=fedper --set evaluation.personal=true --set rounds=2 --set algorithm.local_steps=5 --set data.rotate=none";
    place.works(&format!("site split {data} --out sites"));
    place.works("train --quiet sites/run.toml --sites sites/0/site.toml,sites/1/site.toml,sites/2/site.toml --out run");
    place.refuses(
        "predict run --input of-2.csv --client south",
        &["the clients of run are sites", "`<state>/<run>/results`", "leave --client out"],
    );
    let runs = place.names("sites/2/state");
    let run = runs.iter().find(|name| place.path(&format!("sites/2/state/{name}/results")).is_dir()).unwrap();
    place.refuses(
        &format!("predict sites/2/state/{run}/results --input of-2.csv --client south"),
        &["a site's own results, without the states of clients", "leave --client out"],
    );
}

#[test]
fn temperature_and_sets_are_of_the_published_particles_and_not_of_a_client() {
    let place = named("--set algorithm.kind=fedwba --set rounds=3 --set partition.calibration=0.3");
    assert!(place.json("run/model.json")["calibration"]["temperature"].is_number());
    assert!(place.works("predict run --input of-0.csv").stdout.lines().next().unwrap().ends_with(",set"));
    let own = works(&mut of_client(&place, "predict run --input of-0.csv", WARDS[0]));
    assert!(own.stdout.starts_with("prediction,confidence,p_0,p_1,p_2\n"), "{}", own.stdout);
    let note = "note: the run's temperature and prediction sets are those of the global particles";
    assert!(own.stderr.contains(note), "{}", own.stderr);
    // At T = 1, with which clients.csv is made.
    assert_scores_of_run(&place, "with calibration rows");
    let words = ["--level 0.9: prediction sets are learned from", "leave --level out, or --client"];
    place.refuses_command(&mut of_client(&place, "predict run --input of-0.csv --level 0.9", WARDS[0]), &words);
    place.refuses_command(&mut of_client(&place, "evaluate run --input of-0.csv --level 0.9", WARDS[0]), &words);
}

#[test]
fn a_clients_predictor_is_evaluated_with_a_report_of_its_own() {
    let place = named("--set algorithm.kind=pfedbayes --set rounds=3 --set partition.calibration=0.3");
    works(&mut place.command("evaluate run --input of-1.csv"));
    let printed = works(&mut of_client(&place, "evaluate run --input of-1.csv --by kind", WARDS[1])).stdout;
    assert!(printed.contains("\nrows of of-1.csv, predictor of client St. Mary's: 21\n"), "{printed}");
    let report = "run/evaluate/of-1-client-St--Mary-s/report";
    assert!(printed.ends_with(&format!("\nreport  {report}/report.html\n")), "{printed}");
    let json = place.json(&format!("{report}/report.json"));
    let (accuracy, nll) = of_run(&place, 1);
    assert_near(json["overall"]["accuracy"].as_f64().unwrap(), accuracy, 1e-12);
    assert_near(json["overall"]["nll"].as_f64().unwrap(), nll, 1e-12);
    assert!(json["run"]["calibration"].is_null(), "{json}");
    assert_eq!(json["title"], "run on of-1.csv, client St. Mary's");
    assert!(json["run"]["facts"]["predictor"] == "that of client St. Mary's");
    // Beside that of the global particles, which has other numbers.
    let common = place.json("run/evaluate/of-1/report/report.json");
    assert!(common["overall"]["nll"] != json["overall"]["nll"] && !common["run"]["calibration"].is_null());
    place.refuses_command(
        &mut of_client(&place, "evaluate run --input of-1.csv", WARDS[1]),
        &["exists and is not empty", "--force"],
    );
    works(&mut of_client(&place, "evaluate run --input of-1.csv --force", WARDS[1]));
}
