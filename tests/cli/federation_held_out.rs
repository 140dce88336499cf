//! `fedstein train --sites` with rows that are not trained on: validation and calibration rows of the sites, and test
//! rows at the server.

use super::federation::{K, line, place, rows, runs_at};

#[test]
fn validation_rows_of_the_sites_are_scored_in_the_place_of_the_test_rows_and_change_no_bit() {
    let place = place();
    place.refuses(
        &line("--set evaluation.rows=validation"),
        &["no site tells of validation rows", "data.validation_fraction"],
    );
    for site in 0..K {
        let file = format!("{site}/site.toml");
        place.write(&file, place.text(&file) + "validation_fraction = 0.25\n");
    }
    place.works(&line("--out runs/test"));
    place.works(&line("--set evaluation.rows=validation --out runs/validation"));
    assert!(place.bytes("runs/test/particles.safetensors") == place.bytes("runs/validation/particles.safetensors"));
    let rows = |run: &str| place.json(&format!("runs/{run}/summary.json"))["evaluation"]["rows"].as_u64().unwrap();
    // A quarter of 40, 100 and 160 rows; 30 test rows of each site.
    assert_eq!((rows("validation"), rows("test")), (10 + 25 + 40, 3 * 30));
    assert!(place.text("runs/test/partition.txt").ends_with("2 ward-2 120 40 30\n"));
    // Both the server and the sites say which rows these are.
    let words = "metrics are of 75 validation rows, not of the test rows";
    assert!(place.json("runs/validation/summary.json")["notes"].to_string().contains(words));
    let results = runs_at(&place, "2").into_iter().map(|run| format!("2/state/{run}/results"));
    let cards = results.map(|results| place.text(&format!("{results}/report/MODEL_CARD.md"))).collect::<Vec<_>>();
    let of = |words: &str| cards.iter().filter(|card| card.contains(words)).count();
    assert_eq!([of("On 30 test rows, which"), of("On 40 validation rows, held out")], [1, 1], "{cards:?}");
    assert_eq!(of("120 training and 40 validation rows of"), 1, "{cards:?}");
    // A site without rows of this kind has no report, but a model all the same.
    place.write("0/site.toml", place.text("0/site.toml").replace("validation_fraction = 0.25\n", ""));
    place.write("new.csv", self::rows(0, 4, 0.3));
    place.works(&line("--set evaluation.rows=validation --out runs/others"));
    let results = runs_at(&place, "0").into_iter().map(|run| format!("0/state/{run}/results"));
    let bare: Vec<String> = results.filter(|results| !place.names(results).contains(&"report".to_owned())).collect();
    assert_eq!(bare.len(), 1, "{bare:?}");
    let [of_site, of_server] =
        [&bare[0][..], "runs/others"].map(|run| place.works(&format!("predict {run} --input new.csv")).stdout);
    assert_eq!(of_site, of_server);
    place.refuses(
        &line("--set evaluation.rows=validation --set data.test_path=0/test.csv --set data.target=outcome"),
        &["scores rows of the sites", "data.test_path"],
    );
}

#[test]
fn of_fewer_held_out_rows_than_it_allows_a_site_tells_nothing_and_reports_on_them_itself() {
    let place = place();
    let file = place.text("1/site.toml");
    place.write("1/site.toml", file.clone() + "validation_fraction = 0.3\n");
    place.works(&line("--set rounds=2 --out runs/told"));
    // 30 validation and 30 test rows, of 100 and of a file.
    place.write("1/site.toml", file + "validation_fraction = 0.3\n[tell]\nmin_rows = 31\n");
    place.works(&line("--set rounds=2 --out runs/few"));
    let bytes = |run: &str| place.bytes(&format!("runs/{run}/particles.safetensors"));
    assert!(bytes("told") == bytes("few"));
    let rows = |run: &str| place.json(&format!("runs/{run}/summary.json"))["evaluation"]["rows"].as_u64().unwrap();
    assert_eq!((rows("told"), rows("few")), (90, 60));
    assert!(place.text("runs/told/partition.txt").contains("\n1 ward-1 70 30 30\n"));
    assert!(place.text("runs/few/partition.txt").contains("\n1 ward-1 70 0 0\n"));
    // The site's own results of both runs are on its 30 test rows.
    let cards = runs_at(&place, "1").into_iter().map(|run| format!("1/state/{run}/results/report/MODEL_CARD.md"));
    assert_eq!(cards.filter(|card| place.text(card).contains("On 30 test rows")).count(), 2);
    place.refuses(&line("--set evaluation.rows=validation"), &["no site tells of validation rows", "tell.min_rows"]);
}

#[test]
fn calibration_rows_of_the_sites_give_a_temperature_and_sets_and_no_score_is_kept() {
    let place = place();
    place.works(&line("--out runs/without"));
    for site in 0..K {
        let file = format!("{site}/site.toml");
        place.write(&file, place.text(&file) + "calibration_fraction = 0.25\n");
    }
    place.works(&line("--set calibration.conformal=lac --out runs/a"));
    let (model, summary) = (place.json("runs/a/model.json"), place.json("runs/a/summary.json"));
    // A quarter of 40, 100 and 160 rows; 30 test rows of each site.
    let calibration = &summary["calibration"];
    assert_eq!((&calibration["rows"], &calibration["clients"]), (&75.into(), &K.into()));
    assert_eq!(calibration["sets"]["all"]["rows"], 90);
    let clients = calibration["sets"]["clients"].as_array().unwrap();
    let names: Vec<&str> = clients.iter().map(|client| client["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ward-0", "ward-1", "ward-2"]);
    let covered = |of: &serde_json::Value| of["covered"].as_u64().unwrap();
    assert_eq!(clients.iter().map(covered).sum::<u64>(), covered(&calibration["sets"]["all"]));
    assert!(model["calibration"]["temperature"].as_f64().unwrap() > 0.0);
    assert!(place.text("runs/a/partition.txt").ends_with("2 ward-2 120 0 40 30\n"));
    assert!(place.text("runs/a/report/report.html").contains("Client, worst first"));
    // The sets of all test rows, by the kept threshold, from the global particles.
    let header = "pulse,flow\n".to_owned();
    let features = |site: usize| {
        let text = place.text(&format!("{site}/test.csv"));
        text.lines().skip(1).map(|line| format!("{}\n", line.rsplit_once(',').unwrap().0)).collect::<String>()
    };
    place.write("new.csv", header + &(0..K).map(features).collect::<String>());
    let sets = super::place::cells(&place.works("predict runs/a --input new.csv").stdout);
    let truth: Vec<String> = (0..K)
        .flat_map(|site| place.table(&format!("{site}/test.csv")).into_iter().skip(1).map(|row| row[2].clone()))
        .collect();
    let held = sets[1..].iter().zip(&truth).filter(|(row, truth)| row[4].split('|').any(|name| name == *truth)).count();
    assert_eq!((held as u64, truth.len()), (covered(&calibration["sets"]["all"]), 90));
    // A site predicts the same with its own results.
    let own = runs_at(&place, "0").into_iter().map(|run| format!("0/state/{run}/results"));
    let own: Vec<String> =
        own.filter(|results| place.json(&format!("{results}/model.json")).get("calibration").is_some()).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    let at_site = super::place::cells(&place.works(&format!("predict {} --input new.csv", own[0])).stdout);
    assert_eq!(at_site, sets);
    // Its own report has the sets of its test rows, as the server counts them.
    let of_site = &place.json(&format!("{}/summary.json", own[0]))["calibration"];
    for count in ["rows", "covered", "empty", "single"] {
        assert_eq!(of_site["sets"]["all"][count], clients[0][count], "{count}");
    }
    assert_eq!(of_site["sets"]["all"]["rows"], 30);
    assert_eq!(of_site["temperature"]["nll_after"], calibration["temperature"]["nll_after"]);
    let own_nll = place.json(&format!("{}/summary.json", own[0]))["evaluation"]["nll"].as_f64().unwrap();
    let before = of_site["temperature"]["test"][0]["nll"].as_f64().unwrap();
    assert!(
        (own_nll - before).abs() < 1e-9
            && of_site["sets"].get("clients").is_none_or(|of| of.as_array().unwrap().is_empty())
    );
    assert!(place.text(&format!("{}/report/report.html", own[0])).contains("Calibration rows"));
    place.works(&format!("evaluate {} --input 0/test.csv --out evaluated --level 0.9", own[0]));
    let again = &place.json("evaluated/report/report.json")["run"]["calibration"]["sets"];
    assert_eq!(again["all"]["covered"], of_site["sets"]["all"]["covered"]);
    assert!(place.json("runs/without/summary.json").get("calibration").is_none());
}

#[test]
fn sites_fit_vector_scaling_and_isotonic_regression_from_sums_and_counts() {
    let place = place();
    for site in 0..K {
        let file = format!("{site}/site.toml");
        // 49, 91 and 133 of 70, 130 and 190 rows, of which 178 are of the rarer class: over 100 of them are held out.
        place.write(&file, place.text(&file) + "calibration_fraction = 0.7\n");
        place.write(&format!("{site}/rows.csv"), rows(site, 70 + 60 * site, 0.3));
    }
    for (map, title) in [("vector", "Vector scaling"), ("isotonic", "Isotonic regression")] {
        let line = |out: &str| line(&format!("--set calibration.map={map} --out runs/{out}"));
        place.works(&line(map));
        let (model, summary) =
            (place.json(&format!("runs/{map}/model.json")), place.json(&format!("runs/{map}/summary.json")));
        assert!(model["calibration"][map].is_object() || model["calibration"][map].is_array(), "{model}");
        assert_eq!(model["calibration"]["rows"], 273);
        let of_map = &summary["calibration"]["map"];
        assert!(of_map["nll_after"].as_f64().unwrap() < of_map["nll_before"].as_f64().unwrap());
        // The sums of the sites' test rows are those of `evaluate` on the same rows in one place.
        let header = "pulse,flow,outcome\n".to_owned();
        let rows = |site: usize| place.text(&format!("{site}/test.csv")).split_once('\n').unwrap().1.to_owned();
        place.write("all.csv", header + &(0..K).map(rows).collect::<String>());
        place.works(&format!("evaluate runs/{map} --input all.csv --target outcome --backend flex"));
        let report = place.json(&format!("runs/{map}/evaluate/all/report/report.json"));
        let of_rows = &report["run"]["calibration"];
        for at in [0, 1] {
            for metric in ["nll", "brier", "ece"] {
                let [got, want] = [&of_map["test"], &of_rows["map"]["test"]].map(|of| of[at][metric].as_f64().unwrap());
                super::place::assert_near(got, want, 1e-5);
            }
        }
        assert_eq!(of_rows["sets"]["all"]["covered"], summary["calibration"]["sets"]["all"]["covered"]);
        assert!(place.text(&format!("runs/{map}/report/report.html")).contains(title));
        // Again, with the sites' answers in another order: the same bits.
        place.works(&line(&format!("{map}-again")));
        let again = place.bytes(&format!("runs/{map}-again/model.json"));
        assert!(again == place.bytes(&format!("runs/{map}/model.json")));
    }
}

#[test]
fn a_map_for_which_all_sites_together_have_too_few_rows_of_a_class_is_a_temperature() {
    let place = place();
    for site in 0..K {
        let file = format!("{site}/site.toml");
        place.write(&file, place.text(&file) + "calibration_fraction = 0.7\n");
    }
    // 210 rows are enough for two classes of 100, and of the 136 that are well 95 to 97 are held out.
    place.works(&line("--set calibration.map=isotonic --out runs/few"));
    let notes = place.json("runs/few/summary.json")["notes"].to_string();
    let words = "calibration rows are of the class well, and each class needs 100; a temperature was fitted instead";
    assert!(notes.contains(words), "{notes}");
    let kept = &place.json("runs/few/model.json")["calibration"];
    assert!(kept["rows"] == 210 && kept["temperature"].is_number(), "{kept}");
}

#[test]
fn test_rows_at_the_server_are_predicted_there_and_change_no_bit_of_the_training() {
    let place = place();
    for site in 0..K {
        let file = format!("{site}/site.toml");
        place.write(&file, place.text(&file) + "[tell]\nproducts = true\n");
    }
    let line = |rest: &str| line(&format!("--set data.rotate=principal {rest}"));
    place.works(&line("--out runs/at-sites"));
    // The features are rotated, and the columns of the server's file are in another order.
    let public = rows(1, 50, 2.3);
    let swapped: String = public
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            format!("{},{},{}\n", cells[2], cells[1], cells[0])
        })
        .collect();
    place.write("public.csv", &swapped);
    let keys = "--set data.test_path=public.csv --set data.target=outcome";
    place.works(&line(&format!("{keys} --out runs/here")));
    assert!(place.bytes("runs/at-sites/particles.safetensors") == place.bytes("runs/here/particles.safetensors"));
    let summary = place.json("runs/here/summary.json");
    assert!(summary["evaluation"]["rows"] == 50 && summary["evaluation"]["ace"].is_number(), "{summary}");
    assert!(
        summary.get("sites").is_none() && !place.table("runs/here/rounds.csv")[0].contains(&"scored_clients".into())
    );
    // `fedstein predict` computes the same probabilities from the rows alone.
    let features: String = public.lines().map(|line| format!("{}\n", line.rsplit_once(',').unwrap().0)).collect();
    place.write("features.csv", features);
    place.works("predict runs/here --input features.csv --out p.csv");
    let (predicted, kept) = (place.table("p.csv"), place.table("runs/here/predictions.csv"));
    assert_eq!((predicted.len(), kept.len()), (51, 51));
    for (predicted, kept) in predicted[1..].iter().zip(&kept[1..]) {
        let close = |a: &String, b: &String| (a.parse::<f64>().unwrap() - b.parse::<f64>().unwrap()).abs() < 1e-6;
        assert!(close(&predicted[2], &kept[1]) && close(&predicted[3], &kept[2]), "{predicted:?}, {kept:?}");
    }
    place.write("public.csv", swapped.replace("ill", "dead"));
    place.refuses(&line(keys), &["the file of data.test_path", "`dead`", "no site has rows of it"]);
    place.write("public.csv", swapped.replace("pulse", "puls"));
    place.refuses(&line(keys), &["the file of data.test_path: it has no column `pulse`"]);
    place.refuses(&line("--set data.test_path=public.csv"), &["data.target", "the column to predict"]);
    place.refuses(&line("--set data.test_path=none.csv --set data.target=outcome"), &["data.test_path", "none.csv"]);
}
