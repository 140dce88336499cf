//! A table as it comes from a ward: ids, texts, dates, missing cells, a decimal comma.

use super::place::{Place, TINY, assert_near, cells, numbers, pets, prices};

/// Rows of patients; every fifth dose and every seventh ward is missing. Ids have the number `first` and more.
pub fn patients(first: usize, rows: usize) -> String {
    let row = |i: usize| {
        let (dose, ward) = ((i * 37 % 41) as f64 / 10.0, ["west", "east", "north"][i * 5 % 3]);
        let dose_cell = if i.is_multiple_of(5) { "NA".to_owned() } else { format!("{dose:.1}").replace('.', ",") };
        let ward_cell = if i.is_multiple_of(7) { "" } else { ward };
        let (day, month) = (1 + i % 28, 1 + i % 12);
        let smokes = if i.is_multiple_of(3) { "yes" } else { "no" };
        let outcome = if dose + f64::from(u8::from(ward == "west")) > 2.0 { "ill" } else { "well" };
        format!(
            "P-{i:03};{ward_cell};{dose_cell};seen twice, by two;{day:02}.{month:02}.2024;{smokes};s{};{outcome}\n",
            i % 2
        )
    };
    let rows: String = (first..first + rows).map(row).collect();
    format!("patient;ward;dose;note;admitted;smokes;site;outcome\n{rows}")
}

pub const KEYS: &str = "target = \"outcome\"\ndelimiter = \";\"\nignore = [\"note\"]\nid = \"patient\"\ncategorical = [\"ward\"]\n\
                    boolean = [\"smokes\"]\ndate = [\"admitted\"]\ndate_format = \"DD.MM.YYYY\"\ndecimal = \",\"\n\
                    missing = \"indicator\"\n";

const SMALL: &str = "[model]\nhidden = [5]\n[algorithm]\nparticles = 4\nlocal_steps = 20\nbatch = 16\n";

/// A config of these rows in one table, split by its column `site`.
pub fn config(keys: &str, more: &str) -> String {
    format!(
        "name = \"ward\"\nrounds = 4\nseed = 3\n[data]\nkind = \"csv\"\npath = \"table.csv\"\nclient_column = \"site\"\n\
         {more}{keys}[partition]\nkind = \"by-column\"\n{SMALL}"
    )
}

#[test]
fn a_table_with_everything_trains_reports_and_predicts_with_its_ids() {
    let place = Place::new();
    place.write("table.csv", patients(0, 80)).write("run.toml", config(KEYS, ""));
    let printed = place.works("train run.toml --out run");
    assert!(printed.stderr.contains("missing cells of the training rows have the means of the training rows:"));
    let note = "the report is about the class `well`, the second in sorted order; data.positive = \"ill\" makes it about `ill`";
    assert!(printed.stderr.contains(note), "{}", printed.stderr);
    let card = place.json("run/model.json");
    let names =
        ["ward=east", "ward=north", "ward=west", "ward is missing", "dose", "dose is missing", "admitted", "smokes"];
    assert_eq!(card["feature_names"], serde_json::json!(names));
    assert_eq!(card["encoding"]["columns"][0]["categories"], serde_json::json!(["east", "north", "west"]));
    assert!(place.text("run/report/report.html").contains("</html>"));
    let columns = "The columns are `ward`, `dose`, `admitted`, `smokes`. The file also needs the columns of `data.id`, `patient`,";
    assert!(place.text("run/report/MODEL_CARD.md").contains(columns), "{}", place.text("run/report/MODEL_CARD.md"));
    assert!(place.json("run/summary.json")["notes"].to_string().contains("in column `dose`"));

    // Columns in another order, without target, site and note; the last row has a ward that nobody knows.
    let new = "smokes;dose;patient;admitted;ward\nno;1,5;\"P-9;1\";05.02.2024;west\nYES;;P-902;1.3.2024;?\n\
               no;2;P-903;29.02.2024;cellar\n";
    let printed = place.write("new.csv", new).works("predict run --input new.csv");
    let table = cells(&printed.stdout);
    assert_eq!(table[0].join(","), "patient,prediction,confidence,p_0,p_1");
    assert_eq!(table[1..].iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["P-9;1", "P-902", "P-903"]);
    for row in &table[1..] {
        let p = numbers(&row[3..]);
        assert!((p[0] + p[1] - 1.0).abs() < 1e-6, "{row:?}");
    }
    let [missing, unknown] = &printed.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{}", printed.stderr) };
    assert_eq!(
        *missing,
        "note: missing cells of new.csv have the means of the training rows: 1 in column `ward`, 1 in column `dose`"
    );
    assert!(unknown.ends_with("whose features are all 0: 1 in column `ward`"), "{unknown}");

    // The same rows as another hospital writes them.
    let other = "smokes,dose,patient,admitted,ward\nno,1.5,P-9;1,02/05/2024,west\nYES,,P-902,03/01/2024,?\n\
                 no,2,P-903,02/29/2024,cellar\n";
    let line = "predict run --input other.csv --delimiter , --decimal . --date-format MM/DD/YYYY";
    assert_eq!(cells(&place.write("other.csv", other).works(line).stdout), table);
    place.refuses("predict run --input other.csv --decimal !", &["--decimal \"!\": it must be one of `.`, `,`"]);
    place.refuses("predict run --input other.csv --delimiter ab", &["--delimiter \"ab\"", "one ASCII character"]);

    // The run repeats from its own config to the bit.
    place.works("train run/config.toml --quiet --out again");
    assert!(place.bytes("run/particles.safetensors") == place.bytes("again/particles.safetensors"));
}

#[test]
fn predictions_of_the_test_rows_are_those_of_the_run() {
    let place = Place::new();
    let test = patients(200, 20);
    place.write("table.csv", patients(0, 80)).write("test.csv", &test);
    place.write("run.toml", config(KEYS, "test_path = \"test.csv\"\n"));
    place.works("train run.toml --quiet --out run");
    let table = cells(&place.works("predict run --input test.csv").stdout);
    let of_run = place.table("run/predictions.csv");
    assert_eq!(table.len(), of_run.len());
    for ((row, run), line) in table[1..].iter().zip(&of_run[1..]).zip(test.lines().skip(1)) {
        assert!(line.starts_with(&format!("{};", row[0])));
        let (got, want) = (numbers(&row[3..]), numbers(&run[1..]));
        // Single precision, in batches of other sizes.
        assert!(got.iter().zip(&want).all(|(got, want)| (got - want).abs() < 1e-6), "{got:?} {want:?}");
    }
}

#[test]
fn each_refused_cell_names_the_key_that_accepts_it() {
    let place = Place::new();
    place.write("table.csv", patients(0, 80));
    let keys = |without: &str| -> String {
        KEYS.lines().filter(|line| !line.starts_with(without)).map(|line| format!("{line}\n")).collect()
    };
    for (without, words) in [
        ("ignore", ["column 4 (note): `seen twice, by two` is not", "data.ignore = [\"note\"]"]),
        ("id", ["column 1 (patient): `P-000` is not a finite number", "data.categorical = [\"patient\"]"]),
        ("categorical", ["line 3, column 2 (ward): `north` is not", "data.categorical = [\"ward\"]"]),
        ("boolean", ["column 6 (smokes): `yes` is not a finite number", "data.boolean = [\"smokes\"]"]),
        ("date =", ["(admitted): `01.01.2024` is not a finite number", "data.date = [\"admitted\"]"]),
        ("date_format", ["`01.01.2024` is not a date YYYY-MM-DD", "data.date_format"]),
        ("decimal", ["line 3, column 3 (dose): `3,7` is not a finite number", "data.decimal = \",\""]),
        ("missing", ["line 2, column 2 (ward): an empty cell is not a category", "data.missing = \"mean\""]),
    ] {
        place.write("run.toml", config(&keys(without), ""));
        place.refuses("train run.toml", &[&["table.csv"], &words[..]].concat());
    }
    place.write("run.toml", config(KEYS, ""));
    place.refuses("train run.toml --set data.id=nobody", &["no column `nobody` (data.id): the header has `patient`"]);
    place.refuses("train run.toml --set data.missing=median", &["data.missing", "`mean`", "`drop`"]);
    place.refuses(
        "train run.toml --set data.ignore=2.5",
        &["data.ignore", "a column's name or number, or a list of them"],
    );
    place.refuses("train run.toml --set data.date_format=DD.MM", &["data.date_format = DD.MM", "YYYY, MM and DD once"]);
}

#[test]
fn columns_of_texts_are_found_with_auto_and_rows_are_dropped_with_a_note() {
    let place = Place::new();
    place.write("table.csv", patients(0, 80)).write("run.toml", config(KEYS, ""));
    let line = "train run.toml --out run --set data.categorical=auto --set data.boolean=[] --set data.missing=drop";
    let printed = place.works(line);
    // 80 rows without multiples of 5 and of 7: 80 − 16 − 12 + 3.
    assert!(printed.stderr.contains("data.missing = \"drop\" leaves out 25 of the 80 rows of"), "{}", printed.stderr);
    let names = ["ward=east", "ward=north", "ward=west", "dose", "admitted", "smokes=no", "smokes=yes"];
    assert_eq!(place.json("run/model.json")["feature_names"], serde_json::json!(names));
    let row = "ward;dose;admitted;smokes;patient\nwest;;01.01.2024;no;P\n";
    place.write("new.csv", row);
    place.refuses(
        "predict run --input new.csv",
        &["line 2, column 2 (dose)", "data.missing = \"mean\" or \"indicator\""],
    );
}

#[test]
fn a_note_names_classes_with_few_test_rows() {
    let place = Place::new();
    let table = |kinds: &[(&str, usize)]| -> String {
        let kind = |(kind, count): &(&str, usize)| (0..*count).map(|i| format!("{i},{kind}\n")).collect::<String>();
        format!("x,kind\n{}", kinds.iter().map(kind).collect::<String>())
    };
    place.write("all.csv", table(&[("a", 40), ("b", 30), ("c", 20), ("d", 10)]));
    place.write("test.csv", table(&[("a", 20), ("b", 5), ("c", 4)]));
    let line =
        format!("{TINY} --set data.kind=csv --set data.path=all.csv --set data.target=kind --set partition.clients=2");
    let printed = place.works(&format!("{line} --set data.test_path=test.csv --out run"));
    let note = "of the 29 rows that are evaluated, fewer than 5 are of class `c` (4), `d` (0): AUROC and calibration say little about them";
    assert!(printed.stderr.contains(note) && !printed.stderr.contains("by-class"), "{}", printed.stderr);
    assert!(place.text("run/report/MODEL_CARD.md").contains("AUROC and calibration say little"));
    // The tenth part of the rows by class: 4, 3, 2 and 1.
    let printed = place.works(&format!("{line} --set data.test_fraction=0.1 --set data.split=by-class --out by-class"));
    assert!(
        printed.stderr.contains(
            "of the 10 rows that are evaluated, fewer than 5 are of class `a` (4), `b` (3), `c` (2), `d` (1)"
        )
    );
    let printed = place.works(&format!("{line} --set data.test_fraction=0.1 --out random"));
    assert!(printed.stderr.contains("data.split = \"by-class\" gives each class its share"), "{}", printed.stderr);
}

/// The rows of a site, without its column.
fn of_site(text: &str, site: &str) -> String {
    let keep = |line: &&str| line.contains(&format!(";{site};")) || line.starts_with("patient");
    let without = |line: &str| {
        let mut cells: Vec<&str> = line.split(';').collect();
        cells.remove(6);
        cells.join(";") + "\n"
    };
    text.lines().filter(keep).map(without).collect()
}

/// Two sites with the rows of a table, their files with these keys, and the config of a run over them.
fn write_sites(place: &Place, keys: &str, train: &str, test: &str) {
    for site in 0..2 {
        let name = format!("s{site}");
        let keys = format!("path = \"rows.csv\"\ntest_path = \"test.csv\"\n{keys}");
        place.write(
            &format!("{site}/site.toml"),
            format!("name = \"{name}\"\nindex = {site}\n[data]\n{keys}[tell]\ncategories = true\n"),
        );
        place.write(&format!("{site}/rows.csv"), of_site(train, &name));
        place.write(&format!("{site}/test.csv"), of_site(test, &name));
    }
    place.write("sites.toml", format!("name = \"ward\"\nrounds = 4\nseed = 3\n[data]\nkind = \"sites\"\n{SMALL}"));
}

#[test]
fn the_client_may_be_a_feature_of_one_table_and_of_sites() {
    let place = Place::new();
    let (train, test) = (patients(0, 80), patients(200, 20));
    place.write("table.csv", &train).write("test.csv", &test);
    let named = KEYS.replace("[\"ward\"]", "[\"ward\", \"site\"]");
    place.write("run.toml", config(&named, "test_path = \"test.csv\"\n"));
    place.works("train run.toml --quiet --out one");
    let names = place.json("one/model.json")["feature_names"].clone();
    assert!(names.as_array().unwrap().ends_with(&["site=s0".into(), "site=s1".into()]), "{names}");

    write_sites(&place, &format!("name_column = \"site\"\n{KEYS}"), &train, &test);
    let line = "train sites.toml --quiet --sites 0/site.toml,1/site.toml";
    place.works(&format!("{line} --out apart"));
    assert!(place.bytes("one/particles.safetensors") == place.bytes("apart/particles.safetensors"));
    assert_eq!(place.json("one/model.json")["encoding"], place.json("apart/model.json")["encoding"]);

    let told = place.works("site check 0/site.toml").stdout;
    assert!(told.contains("with the feature `site`: the level of this site"), "{told}");

    // New rows name their client; one that is not known has none of these features.
    let of = |site: &str| {
        place.write("new.csv", test.replace(";s1;", &format!(";{site};")));
        place.works("predict one --input new.csv")
    };
    let (known, unknown) = (of("s1"), of("s9"));
    assert!(known.stdout != unknown.stdout && of("s0").stdout != known.stdout);
    let note = "a text that no training row has, whose features are all 0: 10 in column `site`";
    assert!(unknown.stderr.contains(note) && !known.stderr.contains(note), "{}", unknown.stderr);
    place.write("new.csv", of_site(&test, "s1"));
    place.refuses("predict one --input new.csv", &["`site`"]);

    // A site's own results know where its rows are, and the server's do not.
    let run = place.names("1/state").into_iter().find(|name| name != "rows").unwrap();
    let keys = "--set data.delimiter=; --set data.decimal=, --set data.date_format=DD.MM.YYYY --set data.id=patient";
    place.works(&format!("{line} {keys} --out server"));
    place.refuses("predict server --input new.csv", &["`site`"]);
    let here = place.works(&format!("predict 1/state/{run}/results --input new.csv"));
    place.write(
        "named.csv",
        of_site(&test, "s1")
            .replace(";ill\n", ";s1;ill\n")
            .replace(";well\n", ";s1;well\n")
            .replace(";outcome", ";site;outcome"),
    );
    assert_eq!(place.works("predict server --input named.csv").stdout, here.stdout);

    let site = place.text("1/site.toml");
    place.write("1/site.toml", site.replace("name_column = \"site\"", "name_column = \"ward\""));
    place.refuses(line, &["data.name_column: it has a column `ward` already; name that one in data.categorical"]);
    place.write("1/site.toml", site.replace("name_column = \"site\"\n", ""));
    place
        .refuses(line, &["only site `s0` has `site`; with `data.name_column = \"site\"` all sites must have this key"]);
}

#[test]
fn the_option_client_says_whose_rows_these_are_where_the_client_is_a_feature() {
    let place = Place::new();
    let test = patients(200, 20);
    let of_s1 = |line: &&str| line.starts_with("patient;") || line.contains(";s1;");
    let full: String = test.lines().filter(of_s1).map(|line| format!("{line}\n")).collect();
    place.write("table.csv", patients(0, 80)).write("bare.csv", of_site(&test, "s1"));
    place.write("full.csv", &full).write("both.csv", &test);
    let named = KEYS.replace("[\"ward\"]", "[\"ward\", \"site\"]");
    place.write("run.toml", config(&named, ""));
    place.works("train run.toml --quiet --out one");
    place.works("train run.toml --quiet --out own --set algorithm.kind=fedper --set evaluation.personal=true");
    let stranger = 2 + test.lines().skip(1).position(|line| line.contains(";s0;")).unwrap();
    for run in ["one", "own"] {
        let bare = place.works(&format!("predict {run} --input bare.csv --client s1"));
        let note = "bare.csv has no column `site`: all of its rows are of `s1`";
        assert!(bare.stderr.contains(note), "{}", bare.stderr);
        assert_eq!(bare.stdout, place.works(&format!("predict {run} --input full.csv --client s1")).stdout);
        assert_ne!(bare.stdout, place.works(&format!("predict {run} --input bare.csv --client s0")).stdout);
        let words =
            format!("both.csv: line {stranger}, column 7 (site): `s0` is not `s1`, which --client says of every row");
        place.refuses(&format!("predict {run} --input both.csv --client s1"), &[&words]);
        // A row of nobody is not taken for one of the client with means in the place of its level.
        let blank = full.replacen(";s1;", ";;", 1);
        place.write("blank.csv", blank);
        let words = "blank.csv: line 2, column 7 (site): ";
        place.refuses(&format!("predict {run} --input blank.csv --client s1"), &[words, "which --client says"]);
        let words = format!("--client: there is no client `s9`; those of {run} are `s0`, `s1`");
        place.refuses(&format!("predict {run} --input bare.csv --client s9"), &[&words]);
    }
    // Where all clients have one predictor, it is that of the global particles; else it is the client's own.
    let global = |run: &str| place.works(&format!("predict {run} --input full.csv")).stdout;
    let asked = |run: &str| place.works(&format!("predict {run} --input bare.csv --client s1"));
    let (one, own) = (asked("one"), asked("own"));
    assert_eq!(one.stdout, global("one"));
    assert_ne!(own.stdout, global("own"));
    let note = "all clients of one have one predictor, in which the client is a feature: --client says that the rows are of `s1`";
    assert!(one.stderr.contains(note) && !own.stderr.contains("one predictor"), "{}{}", one.stderr, own.stderr);
    for (run, whose) in [("one", "client"), ("own", "predictor of client")] {
        let printed = place.works(&format!("evaluate {run} --input bare.csv --client s1")).stdout;
        assert!(printed.contains(&format!("rows of bare.csv, {whose} s1: ")), "{printed}");
        let facts = &place.json(&format!("{run}/evaluate/bare-client-s1/report/report.json"))["run"]["facts"];
        assert_eq!(facts.get("predictor").is_some(), run == "own", "{facts}");
    }
    // Where the clients are others than those that the column names, it says nothing of them.
    place.works("train run.toml --quiet --out alike --set partition.kind=iid --set partition.clients=2");
    place.refuses("predict alike --input bare.csv --client 1", &["has one predictor for all clients"]);
}

#[test]
fn a_column_without_a_name_is_a_feature_of_sites_and_their_results() {
    let place = Place::new();
    let unnamed = |text: String| text.replace("ward;dose;note", "ward;;note");
    write_sites(&place, KEYS, &unnamed(patients(0, 80)), &unnamed(patients(200, 20)));
    place.works("train sites.toml --quiet --sites 0/site.toml,1/site.toml --out apart");
    let summary = place.json("apart/summary.json");
    for site in 0..2 {
        assert_eq!(summary["sites"][site]["evaluation"]["rows"], 10);
        let run = place.names(&format!("{site}/state")).into_iter().find(|name| name != "rows").unwrap();
        assert!(place.path(&format!("{site}/state/{run}/results/report/report.html")).is_file());
    }
}

#[test]
fn sites_with_texts_and_missing_cells_have_the_particles_of_one_table() {
    let place = Place::new();
    let (train, test) = (patients(0, 80), patients(200, 20));
    place.write("table.csv", &train).write("test.csv", &test);
    place.write("run.toml", config(KEYS, "test_path = \"test.csv\"\n"));
    place.works("train run.toml --quiet --out one");
    write_sites(&place, KEYS, &train, &test);
    let line = "train sites.toml --quiet --sites 0/site.toml,1/site.toml";
    place.works(&format!("{line} --out apart"));
    assert!(place.bytes("one/particles.safetensors") == place.bytes("apart/particles.safetensors"));
    let (one, apart) = (place.json("one/model.json"), place.json("apart/model.json"));
    for part in ["encoding", "normalisation", "feature_names", "classes"] {
        assert_eq!(one[part], apart[part], "{part}");
    }
    for file in ["sites.toml", "apart/model.json", "apart/summary.json", "apart/rounds.csv"] {
        assert!(!place.text(file).contains("P-0"), "{file}");
    }

    // New rows at the server: the run's config says how the file is written.
    let server = "--set data.delimiter=; --set data.decimal=, --set data.date_format=DD.MM.YYYY --set data.id=patient";
    place.works(&format!("{line} {server} --out server"));
    let (here, there) = (place.works("predict one --input test.csv"), place.works("predict server --input test.csv"));
    assert_eq!(here.stdout, there.stdout);

    let checked = place.works("site check 0/site.toml 1/site.toml").stdout;
    for words in [
        "columns that are not numbers: ward (texts), admitted (dates), smokes (yes or no)",
        "texts of `ward` in the training rows: east, north, west",
        "as the model takes them: ward=east, ward=north, ward=west, ward is missing, dose, dose is missing, admitted, smokes",
    ] {
        assert!(checked.contains(words), "no {words:?} in {checked}");
    }
    assert!(!checked.contains("P-0"), "{checked}");
    place.write("1/site.toml", place.text("1/site.toml").replace("\"indicator\"", "\"drop\""));
    let checked = place.works("site check 1/site.toml").stdout;
    assert!(checked.contains("please note:\n  - data.missing = \"drop\" leaves out"), "{checked}");
    let secret = place.text("1/site.toml").replace("categories = true", "categories = false");
    place.write("1/site.toml", secret);
    place.refuses(line, &["the texts of columns of categories, which one-hot encoding over all sites needs, are not told (tell.categories = false) by site `s1`"]);
}

/// Rows of a large and two small classes.
const KINDS: &str = "-0.7,-0.2,a 1.7,0.7,a -1.6,0,a -0.6,0.1,a -1.6,0.2,a 0.2,1.6,a 0.3,0.5,a -1.5,2.3,a -1.9,1.1,a \
     -0.3,-0.9,a -0.7,-0.7,a 0.4,-0.1,a 1.5,-1.8,a 0,-0.9,a 0.8,-2.1,a -0.3,0.2,a -1.5,1,a 0.2,1,a 1,-1,a \
     -0.8,-0.2,a 0.7,0.9,a -0.7,-0.6,a -0.8,-0.6,a -0.2,-0.1,a 3.3,-0.1,b 0.9,0.9,b 0.2,0,b 1.2,1.2,b \
     -0.1,1.8,b 0.8,0.6,b 0.5,2.2,c 0.8,1.7,c -0.3,1.8,c";

/// `LogisticRegression(C=2, fit_intercept=False, class_weight=..., solver="newton-cg", tol=1e-14)` of scikit-learn 1.9.1 on
/// these rows with a further feature of ones: penalised maximum likelihood with the prior N(0, 2) of every weight.
#[test]
fn one_particle_of_a_linear_model_with_weights_of_the_classes_is_the_fit_of_scikit_learn() {
    let place = Place::new();
    place.write("kinds.csv", format!("x1,x2,kind\n{}\n", KINDS.replace(' ', "\n")));
    place.write("grid.csv", "x1,x2,kind\n0,0,a\n1,1,b\n-1,2,c\n");
    let run = "train --quiet --set rounds=60 --set algorithm.kind=svgd --set algorithm.particles=1 --set algorithm.local_steps=100 \
               --set algorithm.batch=33 --set optimizer.kind=sgd --set optimizer.lr=0.05 --set precision=f64 --set model.kind=bnn \
               --set model.hidden=[] --set model.weight_precision=0.5 --set data.kind=csv --set data.path=kinds.csv \
               --set data.test_path=grid.csv --set data.target=kind --set data.normalise=none --set data.rotate=none";
    let fits = [
        ("none", [[0.86417057, 0.10256978], [0.35974642, 0.43883376], [0.58089444, 0.11294044]]),
        ("balanced", [[0.68979304, 0.2687071], [0.12126859, 0.58499972], [0.18635661, 0.09635341]]),
    ];
    for (weights, fit) in fits {
        place.works(&format!("{run} --set data.class_weights={weights} --out {weights}"));
        let table = place.table(&format!("{weights}/predictions.csv"));
        for (row, expected) in table[1..].iter().zip(fit) {
            let p = numbers(&row[1..]);
            assert_near(p[0], expected[0], 2e-8);
            assert_near(p[1], expected[1], 2e-8);
        }
    }
    let notes = place.json("balanced/summary.json")["notes"].to_string();
    assert!(notes.contains("`a` 0.458, `b` 1.833, `c` 3.667"), "{notes}");
    assert!(!place.json("none/summary.json")["notes"].to_string().contains("class_weights"));
}

#[test]
fn rows_are_split_by_class_from_the_command_line_as_from_a_file() {
    let place = Place::new();
    place.write("pets.csv", pets(60));
    let split = |word: &str| {
        format!(
            "{TINY} --set data.kind=csv --set data.path=pets.csv --set data.target=kind --set data.split={word} --out {word}"
        )
    };
    place.works(&split("by-class"));
    place.refuses(&split("raetsch"), &["--set: `data.split`", "`random`, `by-class`, `by-client`"]);
}

#[test]
fn weights_of_classes_need_classes_and_a_method_that_weighs() {
    let place = Place::new();
    let regression =
        "--set data.kind=csv --set data.path=prices.csv --set data.target=price --set data.task=regression";
    place.write("prices.csv", prices(30));
    let weights = "--set data.class_weights=balanced --out run";
    place.refuses(&format!("{TINY} {regression} {weights}"), &["data.class_weights", "no classes", "\"none\""]);
    place.refuses(&format!("train --set algorithm.kind=pfedgp {weights}"), &["pfedgp", "data.class_weights"]);
    place.refuses("train --set data.class_weights=half --out run", &["data.class_weights", "balanced"]);
}

#[test]
fn a_correction_of_frequencies_needs_predictors_of_clients_that_have_not_learned_them() {
    let place = Place::new();
    place.write("prices.csv", prices(30));
    let regression =
        "--set data.kind=csv --set data.path=prices.csv --set data.target=price --set data.task=regression";
    let corrected = "--set evaluation.prior_correction=true --out run";
    place.refuses(&format!("{TINY} {corrected}"), &["evaluation.prior_correction", "`evaluation.personal` = true"]);
    let personal = format!("--set evaluation.personal=true {corrected}");
    place.refuses(&format!("{TINY} {regression} {personal}"), &["no classes", "must be false"]);
    for kind in ["fedper", "fedwba", "pfedgp"] {
        let line = format!("train --set algorithm.kind={kind} {personal}");
        place.refuses(
            &line,
            &[kind, "learn how frequent their classes are", "`evaluation.prior_correction` must be false"],
        );
    }
    place.refuses(&format!("train --set algorithm.kind=svgd {personal}"), &["svgd", "one place", "must be false"]);
}

#[test]
fn a_run_whose_clients_differ_in_their_classes_has_a_note_about_the_correction() {
    let place = Place::new();
    let noted = |out: &str, keys: &str| {
        place.works(&format!("{TINY} --set evaluation.personal=true {keys} --out {out}"));
        place.json(&format!("{out}/summary.json"))["notes"].to_string().contains("evaluation.prior_correction = true")
    };
    assert!(noted("labels", "--set partition.kind=labels-per-client --set partition.labels=3"));
    assert!(!noted("corrected", "--set partition.kind=labels-per-client --set evaluation.prior_correction=true"));
    assert!(!noted("alike", "--set partition.kind=iid"));
    assert!(!noted("own", "--set partition.kind=labels-per-client --set algorithm.kind=fedwba"));
}

#[test]
fn a_client_that_is_left_out_is_scored_and_takes_no_part() {
    let place = Place::new();
    place.write("table.csv", patients(0, 80)).write("run.toml", config(KEYS, "leave_out = \"s1\"\n"));
    let printed = place.works("train run.toml --out run");
    assert!(
        printed.stderr.contains("1 of the data's clients hold no training row and are left out (`s1`)"),
        "{}",
        printed.stderr
    );
    let summary = place.json("run/summary.json");
    assert_eq!(summary["evaluation"]["rows"], 40);
    assert!(summary["notes"].to_string().contains("the test rows are those of clients that take no part"), "{summary}");
    let card = place.text("run/report/MODEL_CARD.md");
    assert!(card.contains("The numbers are those of clients that took no part in the training"), "{card}");
    // Its rows are every other line of the file.
    let lines: Vec<String> = place.table("run/test_lines.csv")[1..].iter().map(|row| row[0].clone()).collect();
    assert_eq!(lines, (0..40).map(|row| (2 * row + 3).to_string()).collect::<Vec<_>>());

    // And those of the others are the lines between, all at their client.
    let others = place.table("run/train_lines.csv");
    let expected = (0..40).map(|row| [(2 * row + 2).to_string(), "s0".into(), "training".into()].to_vec());
    assert_eq!(others[1..].to_vec(), expected.collect::<Vec<_>>());

    // The same rows in two files give the same run, but for the classes and clients of the other file.
    let rows = patients(0, 80);
    let of = |site: &str| {
        let own = rows.lines().filter(|line| line.contains(&format!(";{site};")) || line.starts_with("patient"));
        own.map(|line| format!("{line}\n")).collect::<String>()
    };
    place.write("s0.csv", of("s0")).write("s1.csv", of("s1"));
    let two = config(KEYS, "test_path = \"s1.csv\"\n").replace("table.csv", "s0.csv");
    place.write("two.toml", two).works("train two.toml --out two");
    assert_eq!(place.json("two/summary.json")["evaluation"], summary["evaluation"]);
}

#[test]
fn a_client_that_is_left_out_has_no_predictor_of_its_own() {
    let place = Place::new();
    place.write("table.csv", patients(0, 80)).write("run.toml", config(KEYS, "leave_out = [\"s1\"]\n"));
    for (keys, mentions) in [
        ("--set evaluation.personal=true", &["data.leave_out", "`evaluation.personal`"][..]),
        ("--set partition.validation=0.2 --set evaluation.rows=validation", &["data.leave_out", "`evaluation.rows`"]),
        ("--set algorithm.kind=pfedgp", &["data.leave_out", "`pfedgp` has no predictor for them"]),
        ("--set data.leave_out=s7", &["data.leave_out", "no row is of a client `s7`; there are `s0`, `s1`"]),
        ("--set data.test_path=table.csv", &["data.leave_out", "data.test_path"]),
        ("--set data.leave_out=true", &["data.leave_out", "a client's name, or a list of them"]),
    ] {
        place.refuses(&format!("train run.toml --out run {keys}"), mentions);
    }
    place.refuses("site split run.toml --out sites", &["data.leave_out", "at no site"]);
}

#[test]
fn a_regression_of_one_number_has_a_note_with_it() {
    let place = Place::new();
    let table = |last: &str| {
        let rows: String = (0..59).map(|row| format!("{},5\n", row * 7 % 13)).collect();
        format!("x,dose\n{rows}3,{last}\n")
    };
    let train = "train --quiet --set data.kind=csv --set data.path=t.csv --set data.target=dose --set data.task=regression \
                 --set data.test_path=u.csv --set partition.clients=2 --set rounds=1 --set algorithm.local_steps=2";
    let notes = |out: &str| {
        place.works(&format!("{train} --out {out}"));
        place.json(&format!("{out}/summary.json"))["notes"].to_string()
    };
    place.write("t.csv", table("5")).write("u.csv", table("5"));
    let note = "the target is 5 in all training rows: there is nothing to learn but this number";
    assert!(notes("same").contains(note), "{}", notes("again"));
    place.write("t.csv", table("6"));
    assert!(!notes("other").contains("nothing to learn"));
}
