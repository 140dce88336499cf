//! `fedstein site init`: the site's file that it writes for a table takes part in a run once the person who is responsible
//! has decided what is told.

use super::init::clinic;
use super::place::{Place, pets};

const RUN: &str = "name = \"wards\"\nrounds = 12\n[data]\nkind = \"sites\"\n[model]\nhidden = [4]\n[algorithm]\n\
                   kind = \"newton-dsvgd\"\nparticles = 3\nlocal_steps = 5\n[stop]\npatience = 2\n";

fn file(place: &Place, name: &str) -> toml::Table {
    place.text(name).parse().unwrap()
}

#[test]
fn a_table_with_texts_dates_ids_and_missing_cells_takes_part_once_its_texts_may_be_told() {
    let place = Place::new();
    for (index, name) in ["north", "south"].into_iter().enumerate() {
        place.write(&format!("{name}/cases.csv"), clinic(120 + 20 * index));
        let printed =
            place.works(&format!("site init {name}/cases.csv --index {index} --name {name} --out {name}/site.toml"));
        assert_eq!(
            printed.stdout,
            format!(
                "{name}/site.toml: classification of `outcome` (2 classes) from 4 columns, {} rows\n\
                 left out: `note`, `lab`, `void`; the file says why\nfedstein site check {name}/site.toml\n",
                120 + 20 * index
            )
        );
    }
    let written = place.text("north/site.toml");
    for words in [
        "name = \"north\"\n",
        "index = 0\n",
        // From the directory of the site's file.
        "path = \"cases.csv\"\n",
        "target = \"outcome\"\n",
        "id = [\"patient\"]\n",
        "categorical = [\"unit\"]\n",
        "date_format = \"DD.MM.YYYY\"\n",
        "missing = \"indicator\"\n",
        "validation_fraction = 0.1\n",
        "name_column = \"\"\n",
        "# It decides over `unit`: no run can begin until it is `true`,",
        "categories = false\n",
        "min_rows = 10\n",
    ] {
        assert!(written.contains(words), "no {words:?} in\n{written}");
    }
    assert!(!written.contains("positive") && !written.contains("client_column"), "{written}");
    assert!(written.lines().all(|line| line.chars().count() <= 112), "{written}");
    let printed = place.works("site check north/site.toml").stdout;
    assert!(printed.contains("number of validation rows: 10, of test rows: 24"), "{printed}");
    place.write("run.toml", RUN);
    let line = "train run.toml --quiet --sites north/site.toml,south/site.toml --out run";
    place.refuses(line, &["tell.categories"]);
    for name in ["north", "south"] {
        let path = format!("{name}/site.toml");
        place.write(&path, place.text(&path).replace("categories = false", "categories = true"));
    }
    place.works(line);
    let names =
        ["unit=east", "unit=north", "unit=west", "unit is missing", "dose", "dose is missing", "admitted", "smokes"];
    assert_eq!(place.json("run/model.json")["feature_names"], serde_json::json!(names));
    assert!(place.text("run/rounds.csv").contains("validation_nll"));
}

#[test]
fn the_column_of_a_place_is_left_out_and_few_rows_hold_none_out() {
    let place = Place::new();
    let row = |i: usize| format!("Ulm,{},{},{}\n", ["west", "east"][i % 2], i * 7 % 31, ["no", "yes"][i % 2]);
    place.write("cases.csv", format!("hospital,ward,age,died\n{}", (0..60).map(row).collect::<String>()));
    let printed = place.works("site init cases.csv --index 4 --target died").stdout;
    assert!(printed.contains("left out: `hospital`; the file says why\n"), "{printed}");
    let written = file(&place, "site.toml");
    assert_eq!((written["name"].as_str(), written["index"].as_integer()), (Some("site-4"), Some(4)));
    assert_eq!(written["data"]["ignore"][0].as_str(), Some("hospital"));
    assert_eq!(written["data"]["categorical"][0].as_str(), Some("ward"), "a place within the site");
    assert!(written["data"].get("validation_fraction").is_none());
    place.works("site check site.toml");
    // A table elsewhere is named by its whole path.
    place.write("data/pets.csv", pets(120)).write("sites/other.txt", "");
    place.works("site init data/pets.csv --index 1 --target kind --out sites/site.toml");
    let path = file(&place, "sites/site.toml")["data"]["path"].as_str().unwrap().to_owned();
    assert!(std::path::Path::new(&path).is_absolute() && path.ends_with("pets.csv"), "{path}");
    place.works("site check sites/site.toml");
}

#[test]
fn a_site_where_nobody_has_the_outcome_still_predicts_it_and_many_texts_are_asked_about() {
    let place = Place::new();
    let row = |i: usize| format!("Name {},{},{},no\n", i % 60, ["f", "m"][i % 2], i * 7 % 31);
    place.write("cases.csv", format!("called,sex,age,readmitted\n{}", (0..240).map(row).collect::<String>()));
    let printed = place.works("site init cases.csv --index 1").stdout;
    assert!(printed.contains("classification of `readmitted` (1 class) from 3 columns"), "{printed}");
    let written = place.text("site.toml");
    assert!(written.contains("`readmitted` has 1 value: no (240 rows).\n"), "{written}");
    let asked = "More than 50 texts would be told of `called`: are they names, or free text?";
    assert!(written.replace("\n# ", " ").contains(asked), "{written}");
}

#[test]
fn what_the_file_cannot_have_is_refused_and_nothing_is_replaced() {
    let place = Place::new();
    place.write("pets.csv", pets(40));
    place.refuses("site init pets.csv", &["--index"]);
    place.refuses("site init pets.csv --index 0 --name a/b", &["--name `a/b`", "it must be"]);
    place.refuses("site init pets.csv --index 1000000", &["--index 1000000", "999999"]);
    for command in ["site init pets.csv --index 0 --out pets.csv --force", "init pets.csv --out ./pets.csv --force"] {
        place.refuses(command, &["is the table; name another file"]);
    }
    assert_eq!(place.text("pets.csv"), pets(40));
    place.refuses("site init none.csv --index 0", &["none.csv"]);
    place.refuses("site init pets.csv --index 0 --target size", &["no column `size` for --target"]);
    place.refuses("site init pets.csv --index 0 --out none/site.toml", &["there is no directory `none`"]);
    place.write("site.toml", "kept");
    place.refuses("site init pets.csv --index 0", &["site.toml", "--force"]);
    assert_eq!(place.text("site.toml"), "kept");
    place.works("site init pets.csv --index 0 --target kind --force");
    let printed = place.works("site init pets.csv --index 0 --target kind --out -").stdout;
    assert_eq!(printed, place.text("site.toml"));
}

#[test]
fn texts_in_a_column_named_for_persons_are_told_to_nobody() {
    let place = Place::new();
    let row = |i: usize| format!("P{},Ms {},{},{}\n", i % 5, i % 4, i * 7 % 13, ["ill", "well"][i % 2]);
    place.write("cases.csv", format!("patient,surname,age,outcome\n{}", (0..12).map(row).collect::<String>()));
    place.works("site init cases.csv --index 0");
    let data = file(&place, "site.toml")["data"].as_table().unwrap().clone();
    assert_eq!(data["id"].as_array().unwrap().len(), 2, "{data}");
    assert!(!data.contains_key("categorical"), "{data}");
    let told = place.works("site check site.toml").stdout;
    assert!(!told.contains("P1") && !told.contains("Ms 1"), "{told}");
}
