//! `fedstein study`: its runs and files, continuing after a stop, and tables that change.

use std::fs;
use std::time::{Duration, Instant};

use super::place::{Place, assert_near, cells, numbers, pets};

/// Keys that make runs short.
pub const TINY: &str =
    "[set]\nrounds = 2\nalgorithm.local_steps = 5\npartition.kind = \"iid\"\ndata.rotate = \"none\"\n";

/// Two methods, at two and at four clients.
pub const METHODS: &str =
    "[vary.method.newton]\nalgorithm.particles = 4\n[vary.method.fedavg]\nalgorithm.kind = \"fedavg\"\n";
const CLIENTS: &str = "[vary.clients]\nkey = \"partition.clients\"\nvalues = [2, 4]\n";

/// The study of both, with these lines at its top.
pub fn methods(top: &str) -> String {
    format!("{top}\n{TINY}{METHODS}{CLIENTS}")
}

/// A column of a CSV file, of the rows in which other columns have these values.
fn column(place: &Place, file: &str, name: &str, only: &[(&str, &str)]) -> Vec<String> {
    let table = place.table(file);
    let at = |name: &str| table[0].iter().position(|head| head == name).unwrap_or_else(|| panic!("no column {name}"));
    let rows = table[1..].iter().filter(|row| only.iter().all(|(name, value)| row[at(name)] == *value));
    rows.map(|row| row[at(name)].clone()).collect()
}

#[test]
fn a_study_has_every_run_every_mean_and_every_picture() {
    let place = Place::new();
    let top = "title = \"Two methods\"\nbaseline = \"fedavg\"\nseeds = 3\nmetrics = [\"nll\", \"accuracy\"]\nclaims = [\"newton better than fedavg in nll\"]";
    place.write("methods.toml", methods(top));
    let printed = place.works("study methods.toml --jobs 2");
    assert!(printed.stderr.contains("Two methods: 12 runs, 0 of them kept from before"), "{}", printed.stderr);
    assert!(printed.stderr.contains("clients=4/newton  seed 3"), "{}", printed.stderr);
    assert!(printed.stdout.contains("table   studies/methods/table.md"), "{}", printed.stdout);
    let files = "accuracy.svg claims.md nll.svg results.csv rounds-clients-2-accuracy.svg rounds-clients-2-nll.svg \
                 rounds-clients-4-accuracy.svg rounds-clients-4-nll.svg runs study.json study.toml table.csv table.md table.tex";
    assert_eq!(place.names("studies/methods"), files.split_whitespace().collect::<Vec<_>>());
    assert_eq!(place.names("studies/methods/runs").len(), 12);
    assert_eq!(place.text("studies/methods/study.toml"), methods(top));

    let results = "studies/methods/results.csv";
    let heads = "method,clients,seed,nll,accuracy,rounds,uplink_mib,downlink_mib,seconds";
    assert_eq!(place.table(results)[0].join(","), heads);
    assert_eq!(column(&place, results, "seed", &[]).join(""), "123".repeat(4));
    // A run of the study is the run of `train` with its keys.
    place.works(
        "train --set rounds=2 --set algorithm.local_steps=5 --set algorithm.particles=4 --set partition.clients=4 \
         --set partition.kind=iid --set data.rotate=none --set optimizer.kind=adam --seed 2 --quiet --out run",
    );
    let optimizer = "[vary.method.newton]\nalgorithm.particles = 4\noptimizer.kind = \"adam\"\n";
    place.write("adam.toml", format!("metrics = [\"nll\"]\nseeds = 2\n{TINY}partition.clients = 4\n{optimizer}"));
    place.works("study adam.toml --quiet");
    let nll = numbers(&column(&place, "studies/adam/results.csv", "nll", &[("seed", "2")]));
    let config = place.text("run/config.toml");
    assert!(config.contains("kind = \"adam\""), "{config}");
    assert_eq!(place.json("run/summary.json")["evaluation"]["nll"].as_f64(), Some(nll[0]));

    // Means and differences follow from the rows.
    let table = "studies/methods/table.csv";
    let of = |method: &str| numbers(&column(&place, results, "nll", &[("method", method), ("clients", "4")]));
    let cell = |name: &str| {
        let only = [("method", "newton"), ("clients", "4"), ("metric", "nll")];
        column(&place, table, name, &only).remove(0)
    };
    let number = |name: &str| cell(name).parse::<f64>().unwrap();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let sd = |values: &[f64]| {
        (values.iter().map(|value| (value - mean(values)).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
    };
    let (newton, fedavg) = (of("newton"), of("fedavg"));
    let differences: Vec<f64> = newton.iter().zip(&fedavg).map(|(a, b)| a - b).collect();
    // scipy.stats.t.ppf(0.975, 2) / sqrt(3)
    let width = 4.302652729749462 / 3.0_f64.sqrt();
    assert_near(number("mean"), mean(&newton), 1e-12);
    assert_near(number("sd"), sd(&newton), 1e-12);
    assert_near(number("high") - number("mean"), width * sd(&newton), 1e-12);
    assert_near(number("difference"), mean(&differences), 1e-12);
    assert_near(number("difference") - number("difference_low"), width * sd(&differences), 1e-12);
    assert_eq!((cell("seeds"), cell("common_seeds")), ("3".into(), "3".into()));
    assert!((0.0..=1.0).contains(&number("p")) && !cell("verdict").is_empty());
    let of_baseline = column(&place, table, "difference", &[("method", "fedavg")]);
    assert!(of_baseline.len() == 4 && of_baseline.iter().all(String::is_empty), "{of_baseline:?}");

    let page = place.text("studies/methods/table.md");
    for words in ["# Two methods", "12 of 12 results", "## Accuracy (higher is better)", "| less fedavg |", "nll.svg"] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
    assert!(place.text("studies/methods/nll.svg").contains(">clients=4</text>"));
    assert!(place.text("studies/methods/rounds-clients-4-nll.svg").contains("3 seeds, mean \u{b1} SEM"));
}

#[test]
fn an_axis_that_is_a_sample_has_means_over_its_variants_and_differences_by_variant() {
    let place = Place::new();
    let axis = "[vary.rate]\nkey = \"partition.clients\"\nvalues = [2, 3, 4]\n";
    let top = "baseline = \"fedavg\"\nseeds = 2\nmetrics = [\"nll\"]\npooled = \"rate\"\n";
    place.write("s.toml", format!("{top}{TINY}{METHODS}{axis}"));
    place.works("study s.toml --quiet --jobs 2");
    let pooled = "studies/s/pooled.csv";
    let heads = "method,metric,variants,mean,sd,smallest,largest,low,high,further_low,further_high,difference,\
                 difference_low,difference_high,common_variants,p,verdict";
    assert_eq!(place.table(pooled)[0].join(","), heads);
    assert_eq!(column(&place, pooled, "method", &[]), ["newton", "fedavg"]);
    // The mean of a variant over its seeds, from the runs.
    let of = |method: &str, rate: &str| {
        let values = numbers(&column(&place, "studies/s/results.csv", "nll", &[("method", method), ("rate", rate)]));
        assert_eq!(values.len(), 2);
        (values[0] + values[1]) / 2.0
    };
    let means = |method: &str| ["2", "3", "4"].map(|rate| of(method, rate));
    let mean_and_sd = |v: [f64; 3]| {
        let mean = (v[0] + v[1] + v[2]) / 3.0;
        (mean, (v.map(|x| (x - mean).powi(2)).iter().sum::<f64>() / 2.0).sqrt())
    };
    let number = |name: &str| column(&place, pooled, name, &[("method", "newton")])[0].parse::<f64>().unwrap();
    let (newton, fedavg) = (means("newton"), means("fedavg"));
    let (mean, sd) = mean_and_sd(newton);
    // scipy.stats.t.ppf(0.975, 2)
    let t = 4.302652729749462;
    assert_near(number("mean"), mean, 1e-12);
    assert_near(number("sd"), sd, 1e-12);
    assert_near(number("high") - mean, t * sd / 3.0_f64.sqrt(), 1e-11);
    assert_near(mean - number("further_low"), t * sd * (4.0_f64 / 3.0).sqrt(), 1e-11);
    assert_eq!(number("smallest"), newton.into_iter().fold(f64::INFINITY, f64::min));
    assert_eq!(number("largest"), newton.into_iter().fold(0.0, f64::max));
    let (mean, sd) = mean_and_sd([0, 1, 2].map(|at| newton[at] - fedavg[at]));
    assert_near(number("difference"), mean, 1e-12);
    assert_near(number("difference") - number("difference_low"), t * sd / 3.0_f64.sqrt(), 1e-11);
    assert_eq!((number("variants"), number("common_variants")), (3.0, 3.0));
    assert!(column(&place, pooled, "difference", &[("method", "fedavg")])[0].is_empty());
    let page = place.text("studies/s/table.md");
    assert!(page.contains("Over all of rate:") && page.contains("| a further one | less fedavg |"), "{page}");

    // Of two variants there is no telling.
    place.works("study s.toml --quiet --out few --only rate=2/");
    place.works("study s.toml --quiet --out few --only rate=3/");
    let few = |name: &str| column(&place, "few/pooled.csv", name, &[("method", "newton")]).remove(0);
    assert_eq!(["variants", "further_low", "p", "verdict"].map(few), ["2", "", "", "too few variants"]);
    assert!(!few("difference").is_empty() && place.text("few/table.md").contains("| too few variants |"));
    // Of one there is no interval either.
    place.works("study s.toml --quiet --out one --only rate=4/");
    assert_eq!(column(&place, "one/pooled.csv", "low", &[("method", "newton")]), [""]);

    // Without the key the file of it goes.
    place.write("s.toml", format!("{}{TINY}{METHODS}{axis}", top.replace("pooled = \"rate\"\n", "")));
    place.works("study s.toml --quiet");
    assert!(!place.path(pooled).exists() && !place.text("studies/s/table.md").contains("Over all"));
}

#[test]
fn one_seed_has_means_without_intervals() {
    let place = Place::new();
    place.write("one.toml", methods("baseline = \"fedavg\"\nmetrics = [\"accuracy\"]"));
    place.works("study one.toml --seeds 1 --quiet --only clients=2");
    let row = |method: &str| {
        let page = place.text("studies/one/table.md");
        page.lines().find(|line| line.starts_with(&format!("| {method} | 2 |"))).unwrap().to_owned()
    };
    assert!(row("newton").contains(" | - | - | ") && row("newton").ends_with("| - | - | too few seeds |"));
    // What was not asked for has no number.
    assert!(place.text("studies/one/table.md").contains("| newton | 4 | 0 | - | - | - |"));
    assert!(place.text("studies/one/table.tex").contains("newton & 4 & -- \\\\"));
    // What the study does not ask for any more is gone; a picture of one's own stays.
    assert!(place.bytes("studies/one/accuracy.svg").starts_with(b"<svg"));
    place
        .write("studies/one/mine.svg", "<svg/>")
        .write("one.toml", methods("baseline = \"fedavg\"\nmetrics = [\"nll\"]"));
    place.works("study one.toml --seeds 1 --quiet --only clients=2");
    let names = place.names("studies/one");
    for (name, is_there) in [("nll.svg", true), ("mine.svg", true), ("accuracy.svg", false)] {
        assert_eq!(names.iter().any(|found| found == name), is_there, "{name} in {names:?}");
    }
    // The same runs count when there are more seeds.
    let more = place.works("study one.toml --seeds 2 --only clients=2").stderr;
    assert!(more.contains("4 runs, 2 of them kept from before"), "{more}");
}

#[test]
fn a_study_that_was_killed_carries_out_only_the_missing_runs() {
    let place = Place::new();
    place.write("long.toml", methods("seeds = 20\nmetrics = [\"nll\"]").replace("rounds = 2", "rounds = 8"));
    let mut child = place.command("study long.toml --quiet").spawn().unwrap();
    let kept =
        || fs::read_dir(place.path("studies/long/runs")).map_or(0, |entries| entries.flatten().filter(is_kept).count());
    let begun = Instant::now();
    while kept() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(300), "no run ends");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let done = kept();
    assert!((3..80).contains(&done), "{done} runs were kept");
    assert!(!place.path("studies/long/table.md").exists(), "it must be stopped before its end for this test");
    let seeds = done.div_ceil(4) + 1;
    let resumed = place.works(&format!("study long.toml --seeds {seeds}")).stderr;
    let words = format!("{} runs, {done} of them kept from before", 4 * seeds);
    assert!(resumed.contains(&words) && resumed.contains(&format!("run 1/{}", 4 * seeds - done)), "{words}: {resumed}");
    let before = timeless(&place, "studies/long/results.csv");
    assert_eq!(before.len(), 4 * seeds + 1);
    let again = place.works(&format!("study long.toml --seeds {seeds}")).stderr;
    assert!(
        again.contains(&format!("{n} runs, {n} of them kept", n = 4 * seeds)) && !again.contains("run 1/"),
        "{again}"
    );
    // The same as without a stop.
    place.works(&format!("study long.toml --seeds {seeds} --jobs 2 --out other --quiet"));
    assert_eq!(timeless(&place, "other/results.csv"), before);
    for file in ["table.csv", "table.md", "table.tex", "nll.svg"] {
        assert!(place.bytes(&format!("studies/long/{file}")) == place.bytes(&format!("other/{file}")), "{file}");
    }
}

#[test]
fn a_run_of_a_study_that_was_killed_goes_on_from_its_checkpoint_to_the_same_bits_and_notes() {
    let place = Place::new();
    // The notes of these runs come with a round: that densities are one-hot.
    let keys = "rounds = 60\nalgorithm.local_steps = 5\npartition.kind = \"iid\"\ndata.rotate = \"none\"\n";
    let method = "[vary.method.dsvgd]\nalgorithm.kind = \"dsvgd\"\nalgorithm.particles = 4\n";
    place.write(
        "one.toml",
        format!("seeds = 1\nmetrics = [\"nll\"]\n[set]\n{keys}checkpoint.every_seconds = 0\n{method}"),
    );
    let mut child = place.command("study one.toml --quiet").spawn().unwrap();
    let checkpoint = |name: &str| {
        let places = fs::read_dir(place.path("studies/one/runs")).into_iter().flatten().flatten();
        places.map(|entry| entry.path().join(name)).any(|file| file.exists())
    };
    let begun = Instant::now();
    while !checkpoint("round-5.json") {
        assert!(begun.elapsed() < Duration::from_secs(300), "no checkpoint");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(checkpoint("notes.json"), "it must be stopped before its end for this test");
    let resumed = place.works("study one.toml").stderr;
    assert!(resumed.contains("seed 1  continuing after round ") && resumed.contains("0 of them kept"), "{resumed}");
    place.works("study one.toml --out whole --quiet");
    let kept = |runs: &str| {
        // The result, and no directory of checkpoints beside it.
        let names = place.names(runs);
        assert!(names.len() == 1 && names[0].ends_with(".json"), "{names:?}");
        let mut kept = place.json(&format!("{runs}/{}", names[0]));
        kept["seconds"] = 0.into();
        kept
    };
    let whole = kept("whole/runs");
    assert!(whole["notes"].to_string().contains("densities are one-hot"), "{}", whole["notes"]);
    assert_eq!(kept("studies/one/runs"), whole);
}

fn is_kept(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy().into_owned();
    name.ends_with(".json") && !name.starts_with('.')
}

/// The lines of a file of runs without their seconds.
fn timeless(place: &Place, file: &str) -> Vec<String> {
    place.text(file).lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned()).collect()
}

#[test]
fn a_table_that_changed_is_run_again() {
    let place = Place::new();
    let own = "[set]\nrounds = 1\nalgorithm.local_steps = 2\nalgorithm.particles = 3\npartition.clients = 2\n\
               data.kind = \"csv\"\ndata.target = \"kind\"\n[vary.table]\nkey = \"data.path\"\nvalues = [\"a.csv\", \"b.csv\"]\n";
    place.write("tables.toml", format!("seeds = 1\n{own}"));
    let message = place.refuses("study tables.toml", &["tables.toml", "`data.path`", "a.csv"]);
    assert!(message.contains("cannot read"), "{message}");
    place.write("a.csv", pets(60)).write("b.csv", pets(90));
    let run = || {
        let printed = place.works("study tables.toml").stderr;
        (printed, timeless(&place, "studies/tables/results.csv"))
    };
    let (printed, first) = run();
    assert!(printed.contains("2 runs, 0 of them kept"), "{printed}");
    assert!(run().0.contains("2 runs, 2 of them kept"));
    place.write("b.csv", pets(80));
    let (printed, changed) = run();
    assert!(printed.contains("2 runs, 1 of them kept"), "{printed}");
    assert!(changed[1] == first[1] && changed[2] != first[2], "{first:?} {changed:?}");
    // The earlier table is back.
    place.write("b.csv", pets(90));
    let (printed, back) = run();
    assert!(printed.contains("2 runs, 2 of them kept") && back == first, "{printed}");
    assert!(place.text("studies/tables/table.md").contains("## Expected calibration error"), "the metrics of the task");
}

#[test]
fn a_key_that_a_method_does_not_use_changes_nothing_for_it() {
    let place = Place::new();
    let particles = "[vary.particles]\nkey = \"algorithm.particles\"\nvalues = [2, 4]\n";
    let two = "[vary.method.newton]\n[vary.method.fedavg]\nalgorithm.kind = \"fedavg\"\n";
    for (name, axes) in [("before", format!("{particles}{two}")), ("after", format!("{two}{particles}"))] {
        place.write(&format!("{name}.toml"), format!("seeds = 1\nmetrics = [\"nll\"]\n{TINY}{axes}"));
        let printed = place.works(&format!("study {name}.toml")).stderr;
        assert!(printed.contains("3 runs, 0 of them kept"), "{printed}");
        let nll = |method: &str| column(&place, &format!("studies/{name}/results.csv"), "nll", &[("method", method)]);
        assert_eq!(nll("fedavg")[0], nll("fedavg")[1]);
        assert_ne!(nll("newton")[0], nll("newton")[1]);
        assert!(place.text(&format!("studies/{name}/table.md")).contains("3 of the 4 combinations of variants"));
    }
}

#[test]
fn a_run_that_ended_early_has_the_results_of_its_best_round() {
    let place = Place::new();
    let keys = "algorithm.kind = \"dsvgd\"\nalgorithm.particles = 4\nalgorithm.local_steps = 20\nalgorithm.distill_steps = 20\noptimizer.lr = 0.05\nrounds = 40\nstop.patience = 3\npartition.validation = 0.2\n";
    place.write(
        "early.toml",
        format!("seeds = 1\nmetrics = [\"nll\"]\nbase = \"base.toml\"\n[vary.method.early]\n{keys}"),
    );
    place.write(
        "base.toml",
        "name = \"base\"\nseed = 7\n[partition]\nkind = \"labels-per-client\"\nlabels = 3\n[model]\nkind = \"bnn\"\nhidden = [50]\n",
    );
    let printed = place.works("study early.toml").stderr;
    let set: String = keys.lines().map(|line| format!(" --set {}", line.replace([' ', '"'], ""))).collect();
    place.works(&format!("train base.toml{set} --seed 1 --quiet --out run"));
    let summary = place.json("run/summary.json");
    let best = summary["facts"].as_array().unwrap().iter().find(|fact| fact[0] == "best round").unwrap()[1].clone();
    let rounds = column(&place, "studies/early/results.csv", "rounds", &[]);
    assert_ne!(best.as_str().unwrap(), rounds[0], "the best round must not be the last for this test");
    let nll = numbers(&column(&place, "studies/early/results.csv", "nll", &[]));
    assert_eq!(summary["evaluation"]["nll"].as_f64(), Some(nll[0]));
    let accuracy = summary["evaluation"]["accuracy"].as_f64().unwrap();
    assert!(printed.contains(&format!("  accuracy {accuracy:.3}  ")), "{accuracy}: {printed}");
}

#[test]
fn claims_are_held_not_held_or_undecided() {
    let place = Place::new();
    // Steps of this size leave the network as it was drawn.
    let text = format!(
        "seeds = 3\nmetrics = [\"accuracy\"]\nclaims = [\"taught better than drawn in accuracy\", \"drawn better than taught in nll\", \
         \"taught better than slow better than drawn in accuracy\"]\n{TINY}partition.clients = 2\n\
         [vary.steps.taught]\n[vary.steps.slow]\noptimizer.lr = 1e-9\n[vary.steps.drawn]\noptimizer.lr = 1e-12\n"
    );
    place.write("claims.toml", text.replace("local_steps = 5", "local_steps = 50"));
    let printed = place.works("study claims.toml --jobs 2").stdout;
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("held      taught better than drawn in accuracy: +"), "{printed}");
    assert!(lines[1].starts_with("not held  drawn better than taught in nll: +"), "{printed}");
    // The last two are equal to the digit: not the claimed order, and no error.
    assert!(lines[2].starts_with("undecided taught better than slow"), "{printed}");
    let page = place.text("studies/claims/claims.md");
    assert!(page.contains("| taught better than drawn in accuracy |  | **held** | +"), "{page}");
    assert!(page.contains("| **not held** | +") && page.contains("| **undecided** | +"), "{page}");
    // Pictures of metrics that the study has no more are removed.
    assert!(place.path("studies/claims/accuracy.svg").exists());
    place.write("studies/claims/uplink_mib.svg", "<svg/>").write("studies/claims/personal_nll.svg", "<svg/>");
    let printed = place.works("study claims.toml --seeds 2").stdout;
    assert!(!place.path("studies/claims/uplink_mib.svg").exists());
    assert!(!place.path("studies/claims/personal_nll.svg").exists());
    assert!(printed.lines().take(3).all(|line| line.starts_with("undecided")), "{printed}");
    assert!(place.text("studies/claims/claims.md").contains("| fewer than three seeds in common |"));
}

#[test]
fn names_are_escaped_in_latex_and_in_csv() {
    let place = Place::new();
    let names = "[vary.\"share_of_rows\".\"50% & more, {x}\"]\n[vary.\"share_of_rows\".\"~#1_$\"]\npartition.clients = 3\n\
         [vary.\"share_of_rows\".\"[1]\"]\npartition.clients = 4\n";
    place.write("names.toml", format!("title = \"100% & more\"\nseeds = 1\nmetrics = [\"signed_gap\"]\n{TINY}{names}"));
    place.works("study names.toml --quiet");
    let tex = place.text("studies/names/table.tex");
    assert!(tex.contains("\nshare\\_of\\_rows & signed\\_gap \\\\\n"), "{tex}");
    assert!(tex.contains("\n50\\% \\& more, \\{x\\} & $"), "{tex}");
    assert!(tex.contains("\n{}[1] & $"), "{tex}");
    assert!(tex.contains("\n\\textasciitilde{}\\#1\\_\\$ & $"), "{tex}");
    assert!(tex.starts_with("% 100% & more:"), "{tex}");
    assert!(place.text("studies/names/results.csv").contains("\n\"50% & more, {x}\",1,"));
    assert!(place.text("studies/names/signed_gap.svg").contains("50% &amp; more, {x}"));
}

#[test]
fn a_run_that_fails_does_not_stop_the_others() {
    let place = Place::new();
    let steps = "[vary.steps]\nkey = \"optimizer.lr\"\nvalues = [0.001, 1e30]\n";
    place.write("fails.toml", format!("seeds = 1\nmetrics = [\"nll\"]\n{TINY}optimizer.kind = \"sgd\"\n{steps}"));
    let mut command = place.command("study fails.toml");
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("1 of 2 runs failed; the tables show the others"), "{stderr}");
    let page = place.text("studies/fails/table.md");
    assert!(page.contains("1 of 2 results are there") && page.contains("## Runs that failed"), "{page}");
    assert!(page.contains("| 1e30 | 0 | - |"), "{page}");
}

#[test]
fn the_example_runs_as_it_stands() {
    let place = Place::new();
    for file in ["studies/digits-methods.toml", "digits/newton-bnn.toml"] {
        let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("configs").join(file);
        place.write(&format!("configs/{file}"), fs::read(from).unwrap());
    }
    let printed = place.works("study configs/studies/digits-methods.toml --seeds 1 --only labels=3 --jobs 2");
    assert!(printed.stderr.contains("2 runs, 0 of them kept"), "{}", printed.stderr);
    assert!(printed.stdout.contains("newton better than fedavg in nll (labels=3): -"), "{}", printed.stdout);
    let rows = cells(&place.text("studies/digits-methods/results.csv"));
    assert_eq!(rows.len(), 3, "{rows:?}");
}
