//! `fedstein init --study`: the study of models beside a config runs as it stands, and goes with a config that was there.

use super::place::{Place, prices};

/// Rows of two classes, too few of them for `init` to hold some out.
fn wards() -> String {
    let row = |i: usize| format!("{}.5,{},{}\n", i * 7 % 13, i * 5 % 11, ["well", "ill"][usize::from(i * 7 % 13 > 6)]);
    format!("lactate,age,outcome\n{}", (0..80).map(row).collect::<String>())
}

fn toml(place: &Place, name: &str) -> toml::Table {
    place.text(name).parse().unwrap()
}

/// One seed of the linear model. Every variant is checked before the first run.
const SHORT: &str = "--seeds 1 --only linear --quiet";

#[test]
fn a_study_of_models_is_written_beside_the_config_and_runs_as_it_stands() {
    let place = Place::new();
    let printed = place.write("wards.csv", wards()).works("init wards.csv --study").stdout;
    let last = "wards-models.toml: a study that compares models\nfedstein train wards.toml\n\
                fedstein study wards-models.toml --jobs 2\n";
    assert!(printed.ends_with(last), "{printed}");
    let study = toml(&place, "wards-models.toml");
    let linear = study["vary"]["model"]["linear"]["model"].as_table().unwrap();
    assert_eq!((linear["kind"].as_str(), linear["bias"].as_bool()), (Some("blr"), Some(true)));
    assert_eq!(study["set"]["partition"]["validation"].as_float(), Some(0.2));
    place.works(&format!("study wards-models.toml {SHORT}"));
    let results = place.text("studies/wards-models/results.csv");
    assert!(results.lines().count() == 2 && results.contains("linear"), "{results}");
    // Of two classes the ranking counts too.
    let table = place.text("studies/wards-models/table.md");
    assert!(table.contains("## Area under the ROC curve"), "{table}");

    // The keys of the best model can take the place of those of the config, and the study still compares all of them.
    let config = place.text("wards.toml").replace("kind = \"bnn\"\n", "kind = \"blr\"\nbias = true\n");
    let of_blr = config.lines().filter(|line| !line.starts_with("hidden")).map(|line| format!("{line}\n"));
    place.write("wards.toml", of_blr.collect::<String>());
    place.works(&format!("study wards-models.toml {SHORT} --out again"));
}

#[test]
fn a_config_that_was_there_stays_as_it_is() {
    let place = Place::new();
    place.write("in/prices.csv", prices(140)).works("init in/prices.csv --out in/prices.toml");
    let edited = place.text("in/prices.toml").replace("hidden = [50]", "hidden = [7]");
    place.write("in/prices.toml", &edited);
    let printed = place.works("init in/prices.csv --out in/prices.toml --study").stdout;
    assert!(printed.contains("in/prices.toml was there and stays as it is"), "{printed}");
    assert_eq!(place.text("in/prices.toml"), edited);
    // A regression with enough rows for validation.
    let study = toml(&place, "in/prices-models.toml");
    assert_eq!(study["vary"]["model"]["linear"]["model"]["hidden"].as_array().map(Vec::len), Some(0));
    assert!(study["set"].get("partition").is_none());
    place.works(&format!("study in/prices-models.toml {SHORT}"));
    assert!(place.text("studies/prices-models/table.md").contains("rmse"));
    assert!(study.get("metrics").is_none());
}

#[test]
fn a_study_that_was_there_is_not_replaced_and_no_config_is_written_without_it() {
    let place = Place::new();
    place.write("wards.csv", wards()).write("wards-models.toml", "");
    place.refuses("init wards.csv --study", &["--study `wards-models.toml` exists", "--force"]);
    assert_eq!(place.names("."), ["wards-models.toml", "wards.csv"]);
    place.refuses("init wards.csv --study --out -", &["--study", "leave out `--out -`"]);
}

/// Rows of three hospitals, and of a fourth with few.
fn hospitals() -> String {
    let row = |i: usize| {
        let hospital = if i < 10 { "tiny" } else { ["north", "east", "south"][i % 3] };
        format!("{}.5,{},{hospital},{}\n", i * 7 % 13, i * 5 % 11, ["well", "ill"][usize::from(i * 7 % 13 > 6)])
    };
    format!("lactate,age,hospital,outcome\n{}", (0..130).map(row).collect::<String>())
}

#[test]
fn each_client_with_enough_rows_is_left_out_in_turn_by_a_study_beside_the_config() {
    let place = Place::new();
    let printed = place.write("cases.csv", hospitals()).works("init cases.csv --study").stdout;
    let last = "cases-models.toml: a study that compares models\n\
                cases-left-out.toml: a study that leaves out each client in turn\nfedstein train cases.toml\n\
                fedstein study cases-models.toml --jobs 2\nfedstein study cases-left-out.toml --jobs 2\n";
    assert!(printed.ends_with(last), "{printed}");
    let text = place.text("cases-left-out.toml");
    assert!(
        text.contains("values = [\"east\", \"north\", \"south\"]") && text.contains("# One client has fewer"),
        "{text}"
    );
    place.works("study cases-left-out.toml --seeds 1 --quiet");
    // Each client is left out once.
    let results = place.text("studies/cases-left-out/results.csv");
    assert_eq!(results.lines().count(), 4, "{results}");
    let table = place.text("studies/cases-left-out/table.md");
    for client in ["east", "north", "south"] {
        let of_client = format!("take no part in the training (data.leave_out): `{client}`");
        assert!(table.contains(&format!("| {client} | 1 |")) && table.contains(&of_client), "{table}");
    }

    // Beside a config that stays, a study that is missing is written, and the other one stays.
    std::fs::remove_file(place.path("cases-left-out.toml")).unwrap();
    let models = format!("{}# mine\n", place.text("cases-models.toml"));
    let printed = place.write("cases-models.toml", &models).works("init cases.csv --study").stdout;
    assert!(printed.contains("cases-models.toml was there and stays as it is"), "{printed}");
    assert_eq!((place.text("cases-models.toml"), place.text("cases-left-out.toml")), (models, text));

    // A study without its config is no reason to write half of the files.
    let place = Place::new();
    place.write("cases.csv", hospitals()).write("cases-left-out.toml", "");
    place.refuses("init cases.csv --study", &["--study `cases-left-out.toml` exists", "--force"]);
    assert_eq!(place.names("."), ["cases-left-out.toml", "cases.csv"]);
}
