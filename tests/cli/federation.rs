//! `fedstein train --sites`: a server and its sites as processes of one machine, some of them killed, and the results
//! that each site keeps.

#[cfg(target_os = "linux")]
use std::{
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use super::place::{Place, works};

/// The number of sites.
pub const K: usize = 3;

/// Rows of a site: two features and a class that follows from them.
pub fn rows(site: usize, count: usize, phase: f64) -> String {
    let line = |row: usize| {
        let angle = phase + (row * (site + 2)) as f64;
        let (x, y) = (angle.sin() * 2.0, (angle * 1.7).cos() + site as f64);
        format!("{x:.4},{y:.4},{}\n", if x + 0.5 * y > 0.4 { "ill" } else { "well" })
    };
    format!("pulse,flow,outcome\n{}", (0..count).map(line).collect::<String>())
}

const RUN: &str = "name = \"wards\"\nrounds = 6\nseed = 3\n[data]\nkind = \"sites\"\n[model]\nhidden = [5]\n[algorithm]\n\
                   kind = \"newton-dsvgd\"\nparticles = 4\nlocal_steps = 20\nbatch = 16\n";

/// A place with three sites of different sizes, and the config of a run.
pub fn place() -> Place {
    let place = Place::new();
    for site in 0..K {
        let text = format!(
            "name = \"ward-{site}\"\nindex = {site}\n[data]\npath = \"rows.csv\"\ntest_path = \"test.csv\"\ntarget = \"outcome\"\n"
        );
        place.write(&format!("{site}/site.toml"), text);
        place.write(&format!("{site}/rows.csv"), rows(site, 40 + 60 * site, 0.3));
        place.write(&format!("{site}/test.csv"), rows(site, 30, 7.1));
    }
    place.write("run.toml", RUN);
    place
}

/// The runs of which a site keeps something; beside them it keeps its rows as a table.
pub fn runs_at(place: &Place, site: &str) -> Vec<String> {
    let mut names = place.names(&format!("{site}/state"));
    names.retain(|name| name != "rows");
    names
}

/// Whether only its owner can read a directory, where the system has such permissions.
fn is_private(directory: &std::path::Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(directory).unwrap().permissions().mode() & 0o777 == 0o700
    }
    #[cfg(not(unix))]
    directory.is_dir()
}

#[test]
fn checkpoints_and_split_rows_can_be_read_by_their_owner_alone_and_a_choice_of_his_stays() {
    let place = Place::new();
    let config = "rounds = 2\ndata = { kind = \"twonorm\", rows = 200 }\nmodel = { kind = \"blr\" }\n\
                  partition = { clients = 2 }\ncheckpoint = { every_seconds = 0 }\nalgorithm = { local_steps = 2 }\n";
    place.write("run.toml", config);
    place.works("train run.toml --quiet --out runs/a");
    assert!(is_private(&place.path("runs/a/checkpoint")));
    place.works("site split run.toml --out sites");
    assert!(is_private(&place.path("sites/0")) && is_private(&place.path("sites/1")));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let checkpoint = place.path("runs/a/checkpoint");
        std::fs::set_permissions(&checkpoint, std::fs::Permissions::from_mode(0o750)).unwrap();
        place.works("train --resume runs/a --set rounds=3 --quiet");
        assert_eq!(std::fs::metadata(&checkpoint).unwrap().permissions().mode() & 0o777, 0o750);
    }
}

pub fn line(rest: &str) -> String {
    format!("train run.toml --quiet --sites 0/site.toml,1/site.toml,2/site.toml {rest}")
}

#[test]
fn three_sites_train_together_and_no_row_and_no_path_reaches_the_server() {
    let place = place();
    place.works(&line("--out runs/a"));
    assert_eq!(place.table("runs/a/rounds.csv").len(), 1 + 6);
    let card = place.text("runs/a/report/MODEL_CARD.md");
    assert!(card.contains("`fedstein train config.toml --sites ") && !card.contains("the same bits"), "{card}");
    for name in place.names("runs/a") {
        let path = place.path(&format!("runs/a/{name}"));
        if path.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
            assert!(!text.contains("rows.csv") && !text.contains("1.9"), "{name}: {text}");
        }
    }
    // Each site keeps its own state, which no other user can read.
    for site in 0..K {
        let runs = runs_at(&place, &site.to_string());
        assert_eq!(runs.len(), 1, "{runs:?}");
        for directory in ["", "/results"] {
            assert!(is_private(&place.path(&format!("{site}/state/{}{directory}", runs[0]))), "{directory}");
        }
    }
    // The same run again has the same particles: another run number, the same bits.
    place.works(&line("--out runs/b"));
    assert!(place.bytes("runs/a/particles.safetensors") == place.bytes("runs/b/particles.safetensors"));
    assert_eq!(runs_at(&place, "0").len(), 2);
}

#[test]
#[cfg(feature = "ndarray")]
fn a_site_computes_on_its_own_backend_and_not_on_the_servers() {
    let place = place();
    let site = place.text("1/site.toml");
    place.write("1/site.toml", format!("backend = \"ndarray\"\n{site}"));
    place.works(&line("--out runs/a"));
    for (site, backend) in [("0", "flex on "), ("1", "ndarray on ")] {
        let summary = place.json(&format!("{site}/state/{}/results/summary.json", runs_at(&place, site)[0]));
        let facts = summary["facts"].to_string();
        assert!(facts.contains(&format!("[\"backend\",\"{backend}")), "{site}: {facts}");
    }
}

#[test]
fn what_is_wrong_with_the_sites_is_said_before_anything_is_written() {
    let place = place();
    place.write("1/rows.csv", rows(1, 100, 0.3).replace("flow", "Flow"));
    place.write("1/test.csv", rows(1, 30, 0.3).replace("flow", "Flow"));
    place.refuses(&line(""), &["only site `ward-0` has `flow`", "if `Flow` is the column `flow`"]);
    place.write("1/rows.csv", rows(1, 100, 0.3)).write("1/test.csv", rows(1, 30, 7.1));
    place.refuses(&line("").replace("2/site.toml", "1/site.toml"), &["`index` 1 is claimed by two sites"]);
    place.refuses(&line("").replace("2/site.toml", "none.toml"), &["none.toml"]);
    let site = place.text("2/site.toml");
    place.write("2/site.toml", format!("state = \"../1/state\"\n{site}"));
    let words = ["1/site.toml and 2/site.toml keep their states in the same directory", "give each its own `state`"];
    place.refuses(&line(""), &words);
    place.write("2/site.toml", site.replace("ward-2", "ward-0"));
    place.refuses(&line(""), &["clients 0 and 2 are both named `ward-0`"]);
    place.write("2/site.toml", site);
    place.refuses(&line("--set partition.calibration=0.2"), &["partition.calibration", "data.calibration_fraction"]);
    place.refuses(&line("--set calibration.map=vector"), &["[calibration]", "data.calibration_fraction"]);
    place.refuses(&line("--set algorithm.kind=svgd"), &["needs all rows in one place", "dsvgd"]);
    place.refuses(&line("--set data.kind=digits"), &["`data.kind` must be \"sites\""]);
    // A config with clients of its own, which takes no number of them.
    place.write("own.toml", "data = { kind = \"vehicle\" }\npartition = { kind = \"by-column\" }");
    place.refuses(&line("").replace("run.toml", "own.toml"), &["`data.kind` must be \"sites\", not \"vehicle\""]);
    place.refuses(&line("--set data.normalise=minmax"), &["minmax", "\"standard\", \"none\""]);
    place.refuses("train run.toml", &["--sites"]);
    place.refuses(&line("--set data.rotate=principal"), &["site `ward-0` tells no sums of products", "tell.products"]);
    place.refuses(&line("--set data.class_weights=balanced"), &["site `ward-0` does not tell", "tell.class_counts"]);
    let corrected = "--set evaluation.personal=true --set evaluation.prior_correction=true";
    place.refuses(
        &line(corrected),
        &["site `ward-0` does not tell", "tell.class_counts", "evaluation.prior_correction = false"],
    );
    place.write("2/rows.csv", rows(2, 9, 0.3));
    place.refuses(&line(""), &["no sums are told (", "tell.min_rows) by site `ward-2`"]);
}

/// The ids of the processes that a process has started.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let from_main = std::fs::read_to_string(path).unwrap_or_default();
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let of_tasks = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let all: String = of_tasks.fold(from_main, |all, more| format!("{all} {more}"));
    all.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_site_that_is_killed_at_any_moment_is_started_again_and_the_run_has_the_same_bits() {
    let place = place();
    let long = "--set rounds=24 --set algorithm.local_steps=60";
    works(&mut place.command(&line(&format!("{long} --out runs/calm"))));
    let (mut killed, mut told) = (0, false);
    for trial in 0u64..6 {
        let out = format!("runs/killed-{trial}");
        let mut command = place.command(&line(&format!("{long} --out {out}")).replace("--quiet ", ""));
        let server = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        for step in 0..4u64 {
            // The first kills come before the first round.
            sleep(Duration::from_millis(3 + (trial * 37 + step * 53) % 160));
            let sites = children(server.id());
            if let Some(site) = sites.get((trial + step) as usize % sites.len().max(1)) {
                killed += usize::from(Command::new("kill").args(["-9", &site.to_string()]).status().unwrap().success());
            }
        }
        let output = server.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}");
        told |= printed.contains("had ended, and is started again");
        let same =
            place.bytes("runs/calm/particles.safetensors") == place.bytes(&format!("{out}/particles.safetensors"));
        assert!(same, "trial {trial}: the particles differ");
    }
    assert!(killed >= 6 && told, "only {killed} were killed, or nothing was said of it");
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_is_killed_resumes_with_its_sites_to_the_same_bits() {
    let place = place();
    let long = "--set rounds=30 --set algorithm.local_steps=60 --set checkpoint.every_seconds=0";
    works(&mut place.command(&line(&format!("{long} --out runs/calm"))));
    let lines = |out: &str| {
        std::fs::read_to_string(place.path(&format!("{out}/rounds.csv"))).map_or(0, |text| text.lines().count())
    };
    for (trial, rounds) in [3, 9, 16].into_iter().enumerate() {
        let out = format!("runs/killed-{trial}");
        let mut server = place.command(&line(&format!("{long} --out {out}"))).spawn().unwrap();
        while lines(&out) <= rounds {
            sleep(Duration::from_millis(3));
            assert!(server.try_wait().unwrap().is_none(), "the run ended before it was killed");
        }
        assert!(Command::new("kill").args(["-9", &server.id().to_string()]).status().unwrap().success());
        server.wait().unwrap();
        let how = format!("stopped: fedstein train --resume {out} --sites …, with the files of its sites");
        assert!(place.works("runs runs").stdout.contains(&how), "{how}");
        let sites = "0/site.toml,1/site.toml,2/site.toml";
        for (sites, words) in [
            ("", "--sites a.toml,b.toml"),
            ("--sites 0/site.toml,1/site.toml", "--sites names 2 files, and the run has 3 sites"),
        ] {
            // A site of the killed server may still write.
            let refused = place.command(&format!("train --quiet --resume {out} {sites}")).output().unwrap();
            let message = String::from_utf8_lossy(&refused.stderr);
            assert!(refused.status.code() == Some(2) && message.contains(words), "{message}");
        }
        place.works(&format!("train --quiet --resume {out} --sites {sites}"));
        let same =
            place.bytes("runs/calm/particles.safetensors") == place.bytes(&format!("{out}/particles.safetensors"));
        assert!(same, "trial {trial}: the particles differ");
        assert_eq!(lines(&out), 31);
    }
}

/// The directories of the results that the sites of a place keep, in the order of the sites.
fn results(place: &Place, sites: &[&str]) -> Vec<String> {
    let of = |site: &&str| {
        let runs = runs_at(place, site);
        assert_eq!(runs.len(), 1, "{site}: {runs:?}");
        format!("{site}/state/{}/results", runs[0])
    };
    sites.iter().map(of).collect()
}

#[test]
fn the_sites_of_configs_run_as_they_stand_and_keep_their_own_results() {
    let place = Place::new();
    let configs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/sites");
    let names = ["north", "east", "south"];
    let files = ["run.toml".to_owned()]
        .into_iter()
        .chain(names.iter().flat_map(|site| ["site.toml", "rows.csv.gz"].map(|file| format!("{site}/{file}"))));
    for file in files {
        place.write(&file, std::fs::read(configs.join(&file)).unwrap());
    }
    let line = "--sites north/site.toml,east/site.toml,south/site.toml --set rounds=6 --set algorithm.local_steps=40";
    place.works(&format!("train run.toml --quiet {line} --out runs/a"));
    let summary = place.json("runs/a/summary.json");
    for (index, (site, results)) in names.iter().zip(results(&place, &names)).enumerate() {
        // The site's own predictions give the metrics that the server has of it.
        let mut expected = vec!["config.toml", "model.json", "particles.safetensors", "predictions.csv", "report"];
        expected.extend(["summary.json", "test_lines.csv", "uncertainty.csv"]);
        assert_eq!(place.names(&results), expected, "{site}");
        let table = place.table(&format!("{results}/predictions.csv"));
        let right = |row: &&Vec<String>| {
            let probabilities: Vec<f64> = row[1..].iter().map(|cell| cell.parse().unwrap()).collect();
            let most = probabilities.iter().copied().fold(0.0, f64::max);
            probabilities[row[0].parse::<usize>().unwrap()] == most
        };
        let rows = table.len() - 1;
        let accuracy = table[1..].iter().filter(right).count() as f64 / rows as f64;
        let told = &summary["sites"][index];
        assert_eq!(
            (told["name"].as_str().unwrap(), told["evaluation"]["rows"].as_u64().unwrap()),
            (*site, rows as u64)
        );
        assert!((told["evaluation"]["accuracy"].as_f64().unwrap() - accuracy).abs() < 1e-12, "{site}: {accuracy}");
        // What they keep is read by the other commands: the same particles predict the same.
        assert!(
            place.bytes(&format!("{results}/particles.safetensors")) == place.bytes("runs/a/particles.safetensors")
        );
        assert!(place.text(&format!("{results}/report/report.html")).contains(site), "{site}");
        let card = place.text(&format!("{results}/report/MODEL_CARD.md"));
        assert!(card.contains("these are the results of one of them") && card.contains("only the server"), "{card}");
        assert!(!card.contains("simulated") && !card.contains("the same bits"), "{card}");
        place.works(&format!("report {results} --out again-{site}"));
        assert!(place.path(&format!("again-{site}/report.html")).exists());
        let pixels: Vec<String> = (0..64).map(|pixel| format!("row{}_col{}", pixel / 8, pixel % 8)).collect();
        place.write("new.csv", format!("{}\n{}\n", pixels.join(","), vec!["7"; 64].join(",")));
        let at_site = place.works(&format!("predict {results} --input new.csv")).stdout;
        assert_eq!(at_site, place.works("predict runs/a --input new.csv").stdout, "{site}");
    }
}

#[test]
fn predictions_at_a_site_are_of_its_own_predictor() {
    let words = "these predictions are of the global particles";
    let kinds = [
        ("fedper", "", true),
        ("fedwba", "", true),
        ("newton-dsvgd", "--set evaluation.prior_correction=true", true),
        // It conditions on the training rows, which are not among the results.
        ("pfedgp", "", false),
    ];
    for (kind, more, has_own) in kinds {
        let place = place();
        let tell = place.text("1/site.toml") + "[tell]\nclass_counts = true\nmin_rows = 1\n";
        for site in 0..K {
            place.write(
                &format!("{site}/site.toml"),
                tell.replace("ward-1", &format!("ward-{site}")).replace("index = 1", &format!("index = {site}")),
            );
        }
        let personal = format!("--set algorithm.kind={kind} --set evaluation.personal=true --set schedule.clients=3");
        let run = RUN.split("[algorithm]").next().unwrap().to_owned() + "[algorithm]\nlocal_steps = 20\nbatch = 16\n";
        place.write("run.toml", run);
        place.works(&line(&format!("{personal} {more} --out runs/a")));
        let results = format!("1/state/{}/results", runs_at(&place, "1")[0]);
        assert!(place.text(&format!("{results}/report/MODEL_CARD.md")).contains("the client's own"));
        let predicted = place.works(&format!("predict {results} --input 1/test.csv"));
        let evaluated = place.works(&format!("evaluate {results} --input 1/test.csv --out again"));
        for printed in [&predicted.stderr, &evaluated.stderr] {
            assert_eq!(printed.contains(words), !has_own, "{kind}: {printed}");
        }
        // Those of new rows are those of the site's own rows, to the digits that are printed.
        let at_site = place.table(&format!("{results}/predictions.csv"));
        let again = place.table("again/predictions.csv");
        let apart = |(a, b): (&Vec<String>, &Vec<String>)| {
            let number = |text: &String| text.parse::<f64>().unwrap();
            a.iter().zip(b).map(|(a, b)| (number(a) - number(b)).abs()).fold(0.0, f64::max)
        };
        assert_eq!(at_site.len(), again.len());
        let apart = at_site.iter().zip(&again).skip(1).map(apart).fold(0.0, f64::max);
        assert_eq!(apart < 1e-5, has_own, "{kind}: {apart}");
        assert!(!place.works("predict runs/a --input 1/test.csv").stderr.contains(words));
        place.refuses("predict runs/a --input 1/test.csv --client ward-1", &["predict with its personal predictor"]);
    }
}

#[test]
fn texts_that_no_training_row_has_are_noted_where_the_rows_are() {
    let place = place();
    let with_texts = |rows: &str, text: &str| {
        let lines = rows.lines().enumerate().map(|(at, line)| match (at, at % 3) {
            (0, _) => format!("{line},unit\n"),
            (_, 0) => format!("{line},{text}\n"),
            _ => format!("{line},{}\n", ["east", "west"][at % 2]),
        });
        lines.collect::<String>()
    };
    for site in 0..K {
        let file = format!("{site}/site.toml");
        place.write(&file, place.text(&file) + "categorical = [\"unit\"]\n[tell]\ncategories = true\n");
        let [train, test] = ["rows", "test"].map(|name| format!("{site}/{name}.csv"));
        place.write(&train, with_texts(&place.text(&train), "north"));
        place.write(&test, with_texts(&place.text(&test), if site == 1 { "attic" } else { "north" }));
    }
    place.write("1/unseen.csv", with_texts(&rows(1, 12, 3.3), "cellar"));
    place.write(
        "1/site.toml",
        place.text("1/site.toml").replace("[data]", "[data]\nvalidation_path = \"unseen.csv\"\n"),
    );
    place.write("public.csv", with_texts(&rows(0, 30, 5.5), "roof"));
    let noted = |path: &str| place.json(&format!("{path}/summary.json"))["notes"].to_string();
    let words = |rows: &str, count: usize| {
        format!(
            "cells of the {rows} rows with a text that no training row has, whose features are all 0: {count} in column `unit`"
        )
    };
    place.works(&line("--out runs/a"));
    assert!(!noted("runs/a").contains("no training row"), "cells of a site are not told");
    for (site, results) in results(&place, &["0", "1", "2"]).iter().enumerate() {
        let noted = noted(results);
        assert_eq!(noted.contains(&words("test", 10)), site == 1, "{noted}");
        assert_eq!(noted.contains(&words("validation", 4)), site == 1, "{noted}");
    }
    let public = "--set data.test_path=public.csv --set data.target=outcome --set data.categorical=[\"unit\"]";
    place.works(&line(&format!("{public} --out runs/b")));
    assert!(noted("runs/b").contains(&words("test", 10)), "{}", noted("runs/b"));
}

#[test]
fn a_run_with_a_log_and_event_files_calls_the_sites_by_their_names() {
    let place = place();
    let line = line("--out runs/a --log log.jsonl --tensorboard events").replace("--quiet ", "");
    let shown = place.works(&line).stderr;
    let round = shown.lines().find(|line| line.starts_with("round 1/")).unwrap();
    assert!(round.contains("ward-0") && !round.contains("client 0"), "{shown}");
}

#[test]
fn a_damaged_file_of_a_site_is_named_and_without_it_the_run_goes_on_to_the_same_bits() {
    let place = place();
    place.works(&line("--out runs/whole"));
    let earlier = runs_at(&place, "0");
    place.works(&line("--set rounds=3 --out runs/a"));
    let run = runs_at(&place, "0").into_iter().find(|run| !earlier.contains(run)).unwrap();
    let sites = "0/site.toml,1/site.toml,2/site.toml";
    let resume = format!("train --quiet --resume runs/a --set rounds=6 --sites {sites}");
    for file in ["terms.json", "means.json"] {
        let path = format!("0/state/{run}/{file}");
        place.write(&path, "");
        let output = place.command(&resume).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(&format!("{file}` is damaged")) && stderr.contains("Remove this file"), "{stderr}");
        std::fs::remove_file(place.path(&path)).unwrap();
    }
    place.works(&resume);
    assert!(place.bytes("runs/a/particles.safetensors") == place.bytes("runs/whole/particles.safetensors"));
}

#[test]
fn a_federation_of_one_site_has_one_site() {
    let place = place();
    let printed = place.works("train run.toml --sites 0/site.toml --set rounds=1 --out runs/one");
    assert!(format!("{}{}", printed.stdout, printed.stderr).contains(" rows at 1 site, "), "{}", printed.stderr);
    let note = "the report is about the class `well`, the second in sorted order; data.positive = \"ill\"";
    assert!(printed.stderr.contains(note), "{}", printed.stderr);
    let printed =
        place.works("train run.toml --sites 0/site.toml --set rounds=1 --set data.positive=ill --out runs/ill");
    assert!(!printed.stderr.contains("the report is about"), "{}", printed.stderr);
    // A list as it is written in a sentence.
    let mut command = place.command("train run.toml --quiet --set rounds=1 --out runs/two --sites");
    works(command.arg("0/site.toml, 1/site.toml"));
}
