//! `fedstein reproduce`: the list, a figure in its quick form, continuing after a stop, and refused input.

use super::place::{Mnist, Place, idx, numbers};

/// The quick form of one panel: two methods of Fig. 2.
const DENSITIES: &str = "reproduce dsvgd/fig2 --quick --only round-2 --out out";

fn column(table: &[Vec<String>], name: &str) -> Vec<String> {
    let at = table[0].iter().position(|cell| cell == name).unwrap_or_else(|| panic!("no column {name}"));
    table[1..].iter().map(|row| row[at].clone()).collect()
}

/// The rows of a figure's pictures, below the header; other rows about the runs have metrics `run:…`.
fn shown(place: &Place, name: &str) -> Vec<Vec<String>> {
    place
        .text(name)
        .lines()
        .filter(|line| !line.contains(",run:"))
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect()
}

/// A figure's CSV file without the seconds of its runs, which differ from one to the next.
fn timeless(place: &Place, name: &str) -> String {
    place.text(name).lines().filter(|line| !line.contains(",run:seconds,")).map(|line| format!("{line}\n")).collect()
}

/// A CSV file of `dsvgd/fig5` in full: the log-likelihoods of three series on Covertype, each one round for each seed.
fn three_series(values: &[[f64; 3]]) -> String {
    let mut text = "panel,series,case,seed,x,metric,value,scale\n".to_owned();
    for (seed, values) in (1..).zip(values) {
        let series = ["fedavg-reference-iid", "fedavg-reference-unequal", "dsvgd-reference-unequal"];
        for (series, value) in series.iter().zip(values) {
            text += &format!("covertype,{series},,{seed},1,log_likelihood,{value},full\n");
        }
    }
    text
}

#[test]
fn a_figure_from_its_kept_numbers_is_the_same_bytes() {
    let place = Place::new();
    place.works(&format!("{DENSITIES} --quiet"));
    place.works("reproduce dsvgd/fig5 --quick --only twonorm --out out --data-dir nowhere --quiet");
    for (figure, files) in [
        ("dsvgd/fig2", &["fig2.csv", "round-2.svg", "table.csv", "table.md"][..]),
        ("dsvgd/fig5", &["fig5.csv", "table.csv", "table.md", "twonorm.svg"][..]),
    ] {
        let csv = files[0].split('.').next().unwrap();
        place.works(&format!("reproduce {figure} --from out/{figure}/{csv}.csv --out again"));
        assert_eq!(place.names(&format!("again/{figure}")), files);
        for file in files {
            let [runs, kept] = ["out", "again"].map(|out| place.bytes(&format!("{out}/{figure}/{file}")));
            assert!(runs == kept, "{figure}/{file}");
        }
    }
    assert_eq!(place.names("again"), ["dsvgd"], "nothing is run");

    // A file of an earlier version contains only what the pictures show.
    let text = place.text("out/dsvgd/fig2/fig2.csv");
    let former: String = text.lines().filter(|line| !line.contains(",run:")).map(|line| format!("{line}\n")).collect();
    place.write("former.csv", former);
    place.works("reproduce dsvgd/fig2 --from former.csv --out former");
    assert_eq!(place.bytes("former/dsvgd/fig2/round-2.svg"), place.bytes("out/dsvgd/fig2/round-2.svg"));
    let table = place.text("former/dsvgd/fig2/table.md");
    let verdict = |what: &str| {
        let row = table.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {table}"));
        row.split(" | ").nth(6).unwrap().to_owned()
    };
    assert_eq!(verdict("KL after round 2"), "needs a run");
    assert_eq!(verdict("height of the right peak after round 2"), "not judged");
}

#[test]
fn seeds_of_several_machines_are_one_figure() {
    let place = Place::new();
    for (figure, part, files) in [
        ("dsvgd/fig5", "--only twonorm", &["fig5.csv", "table.csv", "twonorm.svg"][..]),
        // Densities that no seed has are in both files.
        ("dsvgd/fig2", "--only round-2", &["fig2.csv", "round-2.svg", "table.csv"][..]),
    ] {
        let of = |seeds: &str, out: &str| {
            place.works(&format!(
                "reproduce {figure} --quick {part} --seeds {seeds} --out {out} --data-dir nowhere --quiet"
            ));
            format!("{out}/{figure}/{}", files[0])
        };
        of("3", "whole");
        let (here, there) = (of("1-1", "here"), of("2-3", "there"));
        assert!(place.text(&format!("there/{figure}/table.md")).contains("seeds 2 to 3; "));
        // In any order.
        place.works(&format!("reproduce {figure} --from {there} --from {here} --out both"));
        for file in files {
            let [whole, both] = ["whole", "both"].map(|out| timeless(&place, &format!("{out}/{figure}/{file}")));
            assert!(whole == both, "{figure}/{file}");
        }
        let twice = of("3-4", "twice");
        let refused = format!("reproduce {figure} --from {there} --from {twice} --out no");
        place.refuses(&refused, &[&twice, "line ", "of seed 3, stands in ", &there]);
        place.refuses(
            &format!("reproduce {figure} --from {there} --from {here} --seeds 4-6 --out no"),
            &["--seeds 4-6", &there, &here, "has one of these seeds", "the largest there is 3"],
        );
        assert!(!place.path("no").exists());
    }
}

#[test]
fn seeds_are_a_number_or_a_range() {
    let place = Place::new();
    for seeds in ["0", "three", "4-3", "0-2", "1-", "1000001"] {
        place.refuses(&format!("reproduce dsvgd/fig2 --quick --seeds {seeds}"), &["--seeds", seeds, "such as 4-6"]);
    }
}

#[test]
fn an_order_is_checked_by_its_error_and_its_number_of_seeds() {
    let place = Place::new();
    let judged = |values: &[[f64; 3]]| {
        place.write("fig5.csv", three_series(values));
        place.works("reproduce dsvgd/fig5 --from fig5.csv --out out");
        let table = place.text("out/dsvgd/fig5/table.md");
        ["FedAvg is slowed", "with unequal labels DSVGD is ahead"].map(|what| {
            let row = table.lines().find(|line| line.starts_with("| covertype") && line.contains(what)).unwrap();
            let cells: Vec<&str> = row.split(" | ").collect();
            (cells[5].to_owned(), cells[6].replace('*', ""))
        })
    };
    // Differences 1, 2, 3: mean 2, standard error 1/√3. And 0, -1, -2 with mean -1 and the same error.
    let [slowed, ahead] = judged(&[[1.0, 0.0, 0.0], [2.0, 0.0, -1.0], [3.0, 0.0, -2.0]]);
    assert_eq!(slowed, ("+2.0000 ± 0.5774, 3 seeds".into(), "confirmed".into()));
    assert_eq!(ahead, ("-1.0000 ± 0.5774, 3 seeds".into(), "within error".into()));
    let [slowed, ahead] = judged(&[[0.0, 0.0, -1.0], [1.0, 0.0, -2.0], [2.0, 0.0, -3.0]]);
    assert_eq!((slowed.1.as_str(), ahead.1.as_str()), ("agrees", "contradicted"));
    let [slowed, ahead] = judged(&[[1.0, 0.0, -1.0], [1.0, 0.0, -1.0]]);
    assert_eq!((slowed.1.as_str(), ahead.1.as_str()), ("two seeds, agrees", "two seeds, contrary"));
    let [slowed, ahead] = judged(&[[1.0, 0.0, -1.0]]);
    assert_eq!((slowed.1.as_str(), ahead.1.as_str()), ("one seed, agrees", "one seed, contrary"));
}

#[test]
fn a_file_that_does_not_fit_its_figure_is_refused_by_its_row() {
    let place = Place::new();
    let good = three_series(&[[1.0, 0.0, 2.0]]);
    let refused = |from: &str, to: &str, words: &[&str]| {
        assert!(good.contains(from), "{from}");
        place.write("fig5.csv", good.replacen(from, to, 1));
        place.refuses("reproduce dsvgd/fig5 --from fig5.csv --out out", &[&["fig5.csv"], words].concat());
    };
    refused("panel,series", "panel,curve", &["line 1", "panel,series,case,seed,x,metric,value,scale"]);
    refused("covertype,", "cover,", &["line 2", "no panel `cover`"]);
    refused(
        "covertype,fedavg-reference-unequal",
        "covertype,fedavg-unequall",
        &["line 3", "no series `fedavg-unequall`"],
    );
    refused("-iid,,1", "-iid,b,1", &["line 2", "no case `b`"]);
    refused(",1,log", ",1.5,log", &["line 2", "x is a round", "1.5"]);
    refused(",1,log", ",999999999,log", &["line 2", "x is a round, 1 to 1000000", "999999999"]);
    refused("log_likelihood,1,", "run:clients,1e19,", &["line 2", "clients is a number of clients, at most 1000000"]);
    refused("log_likelihood", "accuracy", &["line 2", "log_likelihood", "`accuracy`"]);
    refused(",1,full", ",NaN,full", &["line 2", "value is a finite number, not `NaN`"]);
    refused(",2,full", ",2,quick", &["line 4", "scale is quick"]);
    refused("full", "whole", &["line 2", "quick, middle or full, not `whole`"]);
    refused("-reference-unequal,", "-reference-iid,", &["line 3", "twice"]);
    refused(&good[good.find('\n').unwrap() + 1..], "", &["no rows"]);
    place.refuses("reproduce dsvgd/fig5 --from nowhere.csv", &["nowhere.csv"]);
    place.refuses("reproduce dsvgd/fig5 --from fig5.csv --quick", &["--from", "--quick"]);
    assert!(!place.path("out").exists());
}

#[test]
fn the_list_has_every_figure_with_its_data_and_its_runs() {
    let place = Place::new();
    let printed = place.works("reproduce list --data-dir nowhere").stdout;
    let lines: Vec<&str> = printed.lines().skip(1).collect();
    let (dsvgd, selection) =
        ((2..=20).map(|n| format!("dsvgd/fig{n} ")), (2..=5).map(|n| format!("selection/fig{n} ")));
    let others =
        ["fig3", "table1", "table2", "table4", "table5", "table6", "table7"].map(|item| format!("fedwba/{item} "));
    let beyond = ["memory", "choices", "federations"].map(|item| format!("beyond/{item} "));
    let figures: Vec<String> = dsvgd.chain(selection).chain(others).chain(beyond).collect();
    assert_eq!(lines.len(), figures.len());
    for (line, figure) in lines.iter().zip(&figures) {
        assert!(line.starts_with(figure) && line.contains(" quick") && line.contains(" full; data: "), "{line}");
    }
    assert!(lines[2].contains("covertype (missing), twonorm (here)"), "{}", lines[2]);
    assert!(lines[19].contains(" middle"), "{}", lines[19]);
    assert_eq!(place.names("."), [] as [&str; 0]);
}

#[test]
fn a_quick_figure_writes_numbers_pictures_and_a_table_without_verdicts() {
    let place = Place::new();
    let printed = place.works(DENSITIES);
    assert!(printed.stdout.contains("table   out/dsvgd/fig2/table.md"), "{}", printed.stdout);
    assert!(printed.stderr.contains("run 2/2  round-2/dsvgd-printed  seed 1"), "{}", printed.stderr);
    assert_eq!(place.names("out"), ["dsvgd", "runs"]);
    assert_eq!(place.names("out/dsvgd/fig2"), ["fig2.csv", "round-2.svg", "table.csv", "table.md"]);

    let table = shown(&place, "out/dsvgd/fig2/fig2.csv");
    assert_eq!(table[0].join(","), "panel,series,case,seed,x,metric,value,scale");
    assert!(column(&table, "scale").iter().all(|scale| scale == "quick"));
    let series = column(&table, "series");
    for name in ["dsvgd", "dsvgd-printed", "exact", "local-1", "local-2"] {
        // θ from -8 to 8 in steps of 0.05.
        assert_eq!(series.iter().filter(|series| *series == name).count(), 321, "{name}");
    }
    // A density has mass one.
    let mass: f64 =
        numbers(&column(&table, "value")).iter().zip(&series).filter(|(_, s)| *s == "dsvgd").map(|(v, _)| v).sum();
    assert!((mass * 0.05 - 1.0).abs() < 1e-3, "{mass}");

    let svg = place.text("out/dsvgd/fig2/round-2.svg");
    assert!(svg.contains("quick, not the paper") && svg.contains("after round 2"));
    let table = place.text("out/dsvgd/fig2/table.md");
    assert!(table.contains("shown, not judged") && table.contains("| not judged |") && table.contains("| not run |"));
    assert!(!table.contains("confirmed |"), "{table}");
    assert!(place.text("out/dsvgd/fig2/table.csv").contains("KL after round 2,[R]"));
}

#[test]
fn finished_runs_are_not_run_again_and_incomplete_results_are() {
    let place = Place::new();
    place.works(DENSITIES);
    let before = timeless(&place, "out/dsvgd/fig2/fig2.csv");
    let again = place.works(DENSITIES).stderr;
    assert!(again.contains("2 runs (quick), 2 of them kept from before") && !again.contains("run 1/"), "{again}");
    assert!(timeless(&place, "out/dsvgd/fig2/fig2.csv") == before);

    // Killed while writing: a file that is cut off.
    let name = place.names("out/runs").remove(0);
    let kept = place.text(&format!("out/runs/{name}"));
    place.write(&format!("out/runs/{name}"), &kept[..kept.len() / 2]);
    let mended = place.works(DENSITIES).stderr;
    assert!(mended.contains("1 of them kept from before") && mended.contains("run 1/1"), "{mended}");
    assert!(timeless(&place, "out/dsvgd/fig2/fig2.csv") == before);

    // Another seed is another run; a part that is not asked for stays in the figure.
    let more = place.works("reproduce dsvgd/fig2 --quick --only round-2/dsvgd-printed --out out --seeds 2").stderr;
    assert!(more.contains("2 runs (quick), 1 of them kept from before"), "{more}");
    let seeds = |name: &str| {
        let table = shown(&place, "out/dsvgd/fig2/fig2.csv");
        let rows = column(&table, "series").into_iter().zip(column(&table, "seed"));
        let mut seeds: Vec<String> = rows.filter(|(series, _)| series == name).map(|(_, seed)| seed).collect();
        seeds.dedup();
        seeds
    };
    assert_eq!((seeds("dsvgd"), seeds("dsvgd-printed")), (vec!["1".to_owned()], vec!["1".to_owned(), "2".to_owned()]));
}

#[test]
fn runs_at_once_give_the_same_numbers() {
    let place = Place::new();
    place.works(&format!("{DENSITIES} --quiet"));
    let printed = place.works("reproduce dsvgd/fig2 --quick --only round-2 --out other --jobs 2 --quiet");
    assert_eq!((printed.stdout.as_str(), printed.stderr.as_str()), ("", ""));
    assert!(timeless(&place, "out/dsvgd/fig2/fig2.csv") == timeless(&place, "other/dsvgd/fig2/fig2.csv"));
}

#[test]
fn a_panel_over_rounds_of_generated_data_is_run_beside_one_whose_data_are_missing() {
    let place = Place::new();
    let words = ["covertype: looked for nowhere/covertype/covtype.data.gz", "fedstein data fetch covertype"];
    let message = place.refuses("reproduce dsvgd/fig5 --quick --data-dir nowhere", &words);
    assert!(message.contains("--data-dir or FEDSTEIN_DATA") && message.contains("--only twonorm"), "{message}");
    place.works("reproduce dsvgd/fig5 --quick --data-dir nowhere --only twonorm/fedavg --out out");
    assert_eq!(place.names("out/dsvgd/fig5"), ["fig5.csv", "table.csv", "table.md", "twonorm.svg"]);
    let table = shown(&place, "out/dsvgd/fig5/fig5.csv");
    let rounds = numbers(&column(&table, "x"));
    // Four kinds of FedAvg over the twelve rounds of the quick form.
    assert_eq!(rounds, (0..4).flat_map(|_| (1..=12).map(f64::from)).collect::<Vec<_>>());
    let table = place.text("out/dsvgd/fig5/table.md");
    assert!(
        table.contains("## Curves in numbers") && table.contains("| twonorm | FedAvg, iid | log_likelihood | 1 |"),
        "{table}"
    );
}

#[test]
fn a_table_shows_calibration_and_bytes_beside_every_target() {
    let place = Place::new();
    // Thirty training images per label: enough for five clients each.
    let labels: Vec<u8> = (0..300_u16).map(|row| (row % 10) as u8).collect();
    let pixels: Vec<u8> = labels.iter().flat_map(|label| [label * 20; 16]).collect();
    let images = idx(0x803, &[300, 4, 4], &pixels);
    let mnist = Mnist::new().with("train-images-idx3-ubyte", images);
    mnist.with("train-labels-idx1-ubyte", idx(0x801, &[300], &labels)).write(&place, "data");
    place.works("reproduce fedwba/table1 --quick --only mnist-k50/fedavg --out out --data-dir data");
    let table = place.text("out/fedwba/table1/table.md");
    let row = table.lines().find(|line| line.starts_with("| mnist-k50 | FedAvg: accuracy, Table 1 |")).unwrap();
    let header = table.lines().find(|line| line.starts_with("| panel | target |")).unwrap();
    let at = |name: &str| header.split(" | ").position(|cell| cell == name).unwrap();
    let cells: Vec<&str> = row.split(" | ").collect();
    // Weights and biases of 16-100-10, four bytes each, from one client: 10,840 bytes.
    assert_eq!(cells[at("client_uplink_mib")], "0.0103", "{row}");
    for name in ["personal_accuracy_mean_particle, best", "personal_nll", "personal_ece"] {
        assert!(cells[at(name)].parse::<f64>().is_ok(), "{name}: {row}");
    }
    assert!(place.text("out/fedwba/table1/table.csv").contains("FedAvg: accuracy, Table 1: beside it personal_ece"));
}

#[test]
fn mistakes_are_refused_with_a_remedy() {
    let place = Place::new();
    place.refuses("reproduce dsvgd/fg4", &["no figure `dsvgd/fg4`", "did you mean `dsvgd/fig4`?", "reproduce list"]);
    place.refuses("reproduce dsvgd/fig1", &["no figure `dsvgd/fig1`", "reproduce list"]);
    place.refuses("reproduce dsvgd/fig2 --quick --only nothing", &["nothing in `dsvgd/fig2`", "round-1/dsvgd"]);
    place.refuses("reproduce dsvgd/fig2 --middle", &["`dsvgd/fig2` has no middle form", "--quick"]);
    place.refuses("reproduce dsvgd/fig2 --quick --middle", &["--quick", "--middle"]);
    place.refuses("reproduce dsvgd/fig2 --seeds 0", &["--seeds", "from 1 to 1000000"]);
    place.refuses("reproduce dsvgd/fig2 --backend gpu", &["flex, ndarray, wgpu, cuda"]);
    place.write("taken", "a file");
    place.refuses("reproduce dsvgd/fig2 --quick --out taken", &["`taken` is not a directory"]);
}
