//! The rehearsal of a federation: `fedstein site split`, and the sites that it makes.

use super::place::{Place, command_in};

#[test]
fn results_that_leave_out_a_site_say_so_in_their_files() {
    let place = Place::new();
    place.works("site split --set partition.clients=4 --set algorithm.particles=2 --set model.hidden=[4] --out sites");
    let files = "sites/0/site.toml,sites/1/site.toml";
    let keys = "--set algorithm.local_steps=2 --set rounds=1";
    place.works(&format!("train sites/run.toml --quiet {keys} --sites {files} --out runs/one"));
    // The site's own results can be written no more.
    let names = place.names("sites/1/state");
    let run = names.iter().find(|name| *name != "rows").unwrap();
    let results = place.path(&format!("sites/1/state/{run}/results"));
    std::fs::remove_dir_all(&results).unwrap();
    std::fs::write(&results, "").unwrap();
    let printed = place.works(&format!("train --resume runs/one --set rounds=2 --sites {files}"));
    let words = "the results leave out the rows of site-1: no scores came after the last round";
    assert!(printed.stderr.contains(words), "{}", printed.stderr);
    assert!(place.json("runs/one/summary.json")["notes"].to_string().contains(words));
    assert!(place.text("runs/one/report/report.html").contains(words));
}

#[test]
fn the_rows_of_an_experiment_are_split_into_sites_that_train_to_its_bits() {
    let place = Place::new();
    let keys = "--set rounds=3 --set partition.clients=4 --set algorithm.local_steps=5 --set algorithm.particles=4";
    place.works(&format!("train --quiet {keys} --out runs/here"));
    let printed = place.works(&format!("site split {keys} --out rehearsal")).stdout;
    assert!(printed.starts_with("4 sites in rehearsal."), "{printed}");
    assert_eq!(place.names("rehearsal"), ["0", "1", "2", "3", "run.toml"]);
    assert_eq!(place.names("rehearsal/2"), ["site.toml", "test.csv", "train.csv"]);
    // The command that it prints works as it stands.
    let command = command_in(&printed);
    place.works(&format!("{command} --quiet --out runs/sites"));
    assert!(place.bytes("runs/here/particles.safetensors") == place.bytes("runs/sites/particles.safetensors"));
    let (here, sites) = (place.json("runs/here/summary.json"), place.json("runs/sites/summary.json"));
    assert_eq!(sites["sites"].as_array().unwrap().len(), 4, "{sites}");
    assert!(here["evaluation"]["accuracy"].is_number() && sites["evaluation"]["accuracy"].is_number());
    assert!(place.text("runs/sites/report/report.html").contains("site-2"));
    place.refuses(&format!("site split {keys} --out rehearsal"), &["`rehearsal` exists"]);
    place.refuses(&format!("site split {keys} --out ."), &["name a new directory"]);
    place
        .refuses(&format!("site split {keys} --out a,b"), &["`a,b` has a comma, which separates the files of --sites"]);
    place.refuses("site split --set algorithm.kind=svgd --out other", &["all rows in one place"]);
    place.refuses(
        "site split --set data.kind=mixture-1d --set partition.clients=2 --set model.kind=mixture --set algorithm.kind=dsvgd --out other",
        &["toy density"],
    );
    // Clients with one row each hold none out.
    let rows: String = (0..10).map(|i| format!("{},{}\n", i * 7 % 13, ["a", "b"][i % 2])).collect();
    place.write("few.csv", format!("x,y\n{rows}"));
    place.refuses(
        "site split --set data.kind=csv --set data.path=few.csv --set data.target=y --set partition.kind=iid \
         --set partition.clients=8 --set partition.validation=0.2 --set stop.patience=2 --out other",
        &["stop.patience", "too few rows to hold one out"],
    );
    // A process that was killed leaves this.
    place.write("runs/.parts.4711/0/train.csv", "target,x\n");
    place.write("runs/.parts.mine/0/train.csv", "target,x\n");
    let noted = place.works("site split --set partition.clients=4 --set algorithm.particles=2 --out runs/parts").stderr;
    assert!(noted.contains("`runs/.parts.4711` was left by a `site split` that was killed"), "{noted}");
    assert!(!noted.contains(".parts.mine"), "{noted}");
}

#[test]
fn a_class_that_only_held_out_rows_have_is_refused_before_sites_are_written() {
    let place = Place::new();
    let row = |i: usize| format!("{},{},{}\n", i * 7 % 13, i * 5 % 11, if i == 7 { "rare" } else { ["a", "b"][i % 2] });
    place.write("table.csv", "x,z,y\n".to_owned() + &(0..40).map(row).collect::<String>());
    let keys = "--set data.kind=csv --set data.path=table.csv --set data.target=y --set partition.clients=2 --set rounds=1 \
                --set partition.validation=0.4 --set algorithm.particles=2 --set algorithm.local_steps=1";
    // Of eight seeds some hold the only row out, for the test or for validation.
    let refused = (1..=8).filter(|seed| {
        let split = place.command(&format!("site split {keys} --set seed={seed} --out sites-{seed}")).output().unwrap();
        let is_refused = String::from_utf8_lossy(&split.stderr).contains("the class `rare` is in held-out rows alone");
        let ended = (split.status.code(), place.path(&format!("sites-{seed}")).exists());
        assert_eq!(ended, if is_refused { (Some(2), false) } else { (Some(0), true) });
        is_refused
    });
    let refused = refused.count();
    assert!((1..8).contains(&refused), "{refused}");
}

#[test]
fn test_rows_of_clients_without_training_rows_are_noted_as_lost() {
    let place = Place::new();
    // Six clients have one row each; which of them are test rows depends on the seed.
    let client = |i: usize| if i % 10 == 7 { format!("solo-{i}") } else { ["A", "B"][i % 2].to_owned() };
    let row =
        |i: usize| format!("{},{},{},{}\n", i * 7 % 13, i * 5 % 11, client(i), ["a", "b"][usize::from(i * 7 % 13 > 6)]);
    place.write("table.csv", "x,z,c,y\n".to_owned() + &(0..60).map(row).collect::<String>());
    let keys = "--set data.kind=csv --set data.path=table.csv --set data.target=y --set data.client_column=c \
                --set partition.kind=by-column --set data.test_fraction=0.4";
    let printed = place.works(&format!("site split {keys} --out sites"));
    let sites = place.names("sites").len() - 1;
    let rows = |name: &str| {
        let files = (0..sites).map(|site| format!("sites/{site}/{name}.csv"));
        files.filter(|file| place.path(file).exists()).map(|file| place.text(&file).lines().count() - 1).sum::<usize>()
    };
    let lost = 60 - rows("train") - rows("test");
    assert!(lost > 1 && lost == 8 - sites, "{lost} {sites}");
    let words = format!("{lost} of the {} test rows are at no site", rows("test") + lost);
    assert!(printed.stderr.contains(&words), "{}", printed.stderr);
}

#[test]
fn a_method_for_classes_is_refused_on_a_regression_before_anything_is_written() {
    let place = Place::new();
    place.write("table.csv", "a,y\n".to_owned() + &(0..40).map(|i| format!("{i},{}\n", i * i)).collect::<String>());
    let keys = "--set data.kind=csv --set data.path=table.csv --set data.target=y --set data.task=regression \
                --set partition.clients=2 --set algorithm.kind=pfedgp";
    for command in ["site split", "train"] {
        place.refuses(
            &format!("{command} {keys} --out sites"),
            &["`pfedgp` predicts classes, and the target of data kind `csv` is a number"],
        );
        assert!(!place.path("sites").exists());
    }
}

#[test]
fn the_sites_of_a_regression_with_held_out_rows_train_to_its_bits() {
    let place = Place::new();
    let row = |i: usize| format!("{},{},{}\n", i * 7 % 13, i * 5 % 11, 400 + (i * i) % 97);
    place.write("table.csv", "a,b,y\n".to_owned() + &(0..90).map(row).collect::<String>());
    let keys = "--set data.kind=csv --set data.path=table.csv --set data.target=y --set data.task=regression --set model.hidden=[4] \
                --set data.rotate=principal --set partition.validation=0.2 --set partition.calibration=0.1 --set rounds=2 \
                --set partition.clients=3 --set algorithm.local_steps=5 --set algorithm.particles=3";
    place.works(&format!("train --quiet {keys} --out runs/here"));
    let printed = place.works(&format!("site split {keys} --out rehearsal")).stdout;
    let command = command_in(&printed);
    place.works(&format!("{command} --quiet --out runs/sites"));
    assert!(place.bytes("runs/here/particles.safetensors") == place.bytes("runs/sites/particles.safetensors"));
    // The target has the scale of the rows that are trained on: 51 of 72, as the sites' files have them.
    let trained: Vec<f64> = (0..3)
        .flat_map(|site| {
            let text = place.text(&format!("rehearsal/{site}/train.csv"));
            text.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect::<Vec<f64>>()
        })
        .collect();
    let mean = trained.iter().sum::<f64>() / trained.len() as f64;
    let kept = place.json("runs/here/model.json")["normalisation"]["target"]["mean"].as_f64().unwrap();
    assert!((kept - mean).abs() < 1e-9 && trained.len() < 60, "{kept} {mean} {}", trained.len());
}

#[test]
fn the_sites_of_a_table_with_a_positive_class_weights_and_groups_train_to_its_bits() {
    let place = Place::new();
    let row = |i: usize| {
        format!("P{},{},{},{}\n", i / 3, i * 7 % 13, i * 5 % 11, ["alive", "dead"][usize::from(i * 7 % 13 > 6)])
    };
    // Features have the names that the sites' files would give the other columns.
    place.write("table.csv", "patient,group,target,outcome\n".to_owned() + &(0..60).map(row).collect::<String>());
    let keys = "--set data.kind=csv --set data.path=table.csv --set data.target=outcome --set data.positive=alive \
                --set data.group_column=patient --set data.class_weights=balanced --set rounds=2 --set partition.clients=3 --set algorithm.local_steps=5 --set algorithm.particles=4";
    place.works(&format!("train --quiet {keys} --out runs/here"));
    assert_eq!(place.json("runs/here/model.json")["classes"], serde_json::json!(["dead", "alive"]));
    let printed = place.works(&format!("site split {keys} --out rehearsal")).stdout;
    // Of 20 patients with three visits each, 16 are for training: 5, 5 and 6 of them at a site.
    assert_eq!([0, 1, 2].map(|site| place.text(&format!("rehearsal/{site}/train.csv")).lines().count()), [16, 16, 19]);
    assert!(place.text("rehearsal/0/train.csv").starts_with("target_,group_,group,target\n"));
    assert!(place.text("rehearsal/0/site.toml").contains("group_column = \"group_\"\n"));
    let command = command_in(&printed);
    place.works(&format!("{command} --quiet --out runs/sites"));
    assert_eq!(place.json("runs/sites/model.json")["classes"], serde_json::json!(["dead", "alive"]));
    assert!(place.bytes("runs/here/particles.safetensors") == place.bytes("runs/sites/particles.safetensors"));
}

#[test]
fn the_partition_of_a_federation_is_not_used_and_its_clients_are_its_sites() {
    let place = Place::new();
    place.works("site split --set partition.clients=4 --set algorithm.particles=4 --out rehearsal");
    place.write("sites.toml", "data.kind = \"sites\"\npartition.kind = \"by-column\"\nrounds = 1\n");
    let files = "rehearsal/0/site.toml,rehearsal/1/site.toml";
    place.works(&format!("train sites.toml --quiet --sites {files} --out runs/two"));
    place.refuses(
        &format!("train sites.toml --sites {files} --set schedule.clients=9 --out runs/nine"),
        &["`schedule.clients` is 9, but there are only 2 sites"],
    );
}

#[test]
fn a_site_refuses_what_is_too_large_and_need_not_hold_test_rows_out() {
    let place = Place::new();
    place.works("site split --set partition.clients=4 --set algorithm.particles=4 --out rehearsal");
    place.write("sites.toml", "data.kind = \"sites\"\nrounds = 1\n");
    let files = "rehearsal/0/site.toml,rehearsal/1/site.toml";
    // A site that reads no more than a MiB refuses the first particles of a larger model.
    let site = place.text("rehearsal/1/site.toml");
    place.write("rehearsal/1/site.toml", format!("{site}\n[limits]\nmegabytes = 1\n"));
    let large = "--set model.hidden=[400] --set algorithm.particles=20";
    let refused =
        place.command(&format!("train sites.toml --sites {files} {large} --out runs/large")).output().unwrap();
    let error = String::from_utf8(refused.stderr).unwrap();
    let words = "error: rehearsal/1/site.toml: the message has 2272608 bytes of arrays: more than limits.megabytes of this site";
    assert!(refused.status.code() == Some(2) && error.contains(words), "{error}");
    // A site that holds no rows out for the test trains, and gives no scores.
    let site = site.lines().filter(|line| !line.starts_with("test_path")).collect::<Vec<_>>().join("\n");
    place.write("rehearsal/1/site.toml", site.replace("[data]", "[data]\ntest_fraction = 0"));
    place.works(&format!("train sites.toml --quiet --set rounds=4 --sites {files} --out runs/none"));
    let sites = &place.json("runs/none/summary.json")["sites"];
    let rows = |site: usize| sites[site]["evaluation"]["rows"].as_u64().unwrap();
    assert!(rows(0) > 0 && rows(1) == 0, "{sites}");
}

#[test]
fn no_other_command_trains_on_rows_at_sites() {
    let place = Place::new();
    let only = ["the rows are at sites: only `fedstein train CONFIG.toml --sites"];
    place.write("sites.toml", "data.kind = \"sites\"\n");
    place.refuses("site split sites.toml --out other", &only);
    place.write("study.toml", "base = \"sites.toml\"\nmetrics = [\"nll\"]\n[vary.lr]\na = { optimizer.lr = 0.1 }\nb = { optimizer.lr = 0.2 }\n");
    place.refuses("study study.toml --out studies", &only);
    assert!(!place.path("studies").exists());
}

#[test]
fn rows_with_a_class_that_no_site_may_have_are_not_split() {
    let place = Place::new();
    let rows: String = (0..20).map(|row| format!("{row},{}\n", if row % 2 == 0 { "=cmd()" } else { "no" })).collect();
    place.write("formula.csv", format!("a,y\n{rows}"));
    place.refuses(
        "site split --set data.kind=csv --set data.path=formula.csv --set data.target=y --set partition.clients=2 --out other",
        &["the class `=cmd()` is a formula for a spreadsheet"],
    );
    assert!(!place.path("other").exists());
}

#[test]
fn what_a_federation_would_refuse_is_not_written() {
    let place = Place::new();
    // Of six clients with ten rows each some have none for testing, and none has one for calibration.
    let row = |i: usize| format!("{},{},{}\n", ["a", "b", "c", "d", "e", "f"][i % 6], i * 7 % 13, i * 5 % 11 > 5);
    place.write("table.csv", "site,x,y\n".to_owned() + &(0..60).map(row).collect::<String>());
    let keys = "--set data.kind=csv --set data.path=table.csv --set data.target=y --set data.client_column=site \
                --set data.test_fraction=0.05 --set partition.kind=by-column --set partition.calibration=0.04 --set calibration.conformal=aps \
                --set backend=ndarray --set rounds=2 --set algorithm.local_steps=5 --set algorithm.particles=4";
    place.works(&format!("train --quiet {keys} --out here"));
    let printed = place.works(&format!("site split {keys} --out rehearsal")).stdout;
    let without_tests = |site: &usize| !place.names(&format!("rehearsal/{site}")).contains(&"test.csv".to_owned());
    assert!((0..6).any(|site| without_tests(&site)));
    for site in 0..6 {
        let text = place.text(&format!("rehearsal/{site}/site.toml"));
        assert_eq!(text.contains("test_fraction = 0.0"), without_tests(&site), "{text}");
        assert!(text.contains("backend = \"ndarray\""), "{text}");
    }
    place.works(&format!("{} --quiet --out there", command_in(&printed)));
    assert!(place.bytes("here/particles.safetensors") == place.bytes("there/particles.safetensors"));
    let same = "site split --set data.kind=twonorm --set data.rows=100 --set partition.kind=fedwba-reference \
                --set partition.clients=3 --set partition.labels=1 --out same";
    place.refuses(same, &["`site-0` and `site-2` have the same rows", "two sites with the same file"]);
}
