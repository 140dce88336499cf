//! What `fedstein study` refuses: mistakes in the file, in the tables that it names and on the command line, and
//! directories that are not its own.

use std::fs;

use super::place::Place;
use super::study::{METHODS, TINY, methods};

#[test]
fn a_study_writes_only_into_its_own_directory() {
    let place = Place::new();
    let text = format!("seeds = 1\nmetrics = [\"nll\"]\n{TINY}{METHODS}");
    place.write("a/mine.toml", &text).write("b/mine.toml", format!("# Another.\n{text}"));
    place.write("notes/other.txt", "mine").write("taken", "a file");
    place.refuses("study a/mine.toml --out notes", &["`notes` is not empty", "--out"]);
    place.refuses("study a/mine.toml --out taken", &["`taken` is not a directory", "--out"]);
    place.works("study a/mine.toml --quiet");
    place.refuses("study b/mine.toml", &["`studies/mine` is the directory of another study", "a/mine.toml", "--out"]);
    // The same file with one more variant runs that variant alone.
    place.write(
        "a/mine.toml",
        format!("{text}[vary.method.scaffold]\nalgorithm.kind = \"scaffold\"\noptimizer.kind = \"sgd\"\n"),
    );
    let more = place.works("study a/mine.toml").stderr;
    assert!(more.contains("3 runs, 2 of them kept from before"), "{more}");
    // A file that was moved is known by its text.
    fs::rename(place.path("a/mine.toml"), place.path("moved.toml")).unwrap();
    let moved = place.works("study moved.toml --out studies/mine").stderr;
    assert!(moved.contains("3 runs, 3 of them kept from before"), "{moved}");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(place.path("studies/mine"), place.path("link")).unwrap();
        place.refuses("study moved.toml --out link", &["`link` is a link"]);
    }
}

/// The message about a study of this text.
fn refused(place: &Place, text: &str, words: &[&str]) -> String {
    place.write("s.toml", text);
    place.refuses("study s.toml", words)
}

#[test]
fn mistakes_are_refused_with_their_line_and_a_remedy() {
    let place = Place::new();
    let refused = |text: &str, words: &[&str]| refused(&place, text, words);
    place.refuses("study nowhere.toml", &["nowhere.toml"]);
    refused("seeds = = 3", &["s.toml, line 1, column 9", "not valid TOML"]);
    refused("seed = 3\n[vary.m.a]", &["s.toml, line 1", "unknown key `seed`", "[set]"]);
    refused(
        "metric = [\"nll\"]\n[vary.m.a]",
        &["line 1", "unknown key `metric`", "did you mean `metrics`?", "`baseline`"],
    );
    refused("[model]\nhidden = [5]\n[vary.m.a]", &["line 1", "`model`", "keys of all runs stand in [set]"]);
    refused("seeds = 0\n[vary.m.a]", &["line 1", "`seeds` cannot be 0", "a whole number from 1"]);
    refused("set = 3\n[vary.m.a]", &["line 1", "`set`", "a table of keys"]);
    refused("seeds = 3", &["s.toml", "nothing varies", "[vary.method.newton]"]);
    refused("base = \"no.toml\"\n[vary.m.a]", &["line 1", "`base`", "no.toml"]);

    // Axes and variants.
    refused("[vary]\nm = 3", &["line 2", "`vary.m` cannot be 3", "a table of variants"]);
    refused("[vary.m]", &["line 1", "`vary.m` has no variants"]);
    refused("[vary.m]\nkey = \"rounds\"\nvalues = []", &["line 1", "`vary.m.values` is missing", "such as [5, 20]"]);
    refused("[vary.m]\nvalues = [3]", &["line 1", "`vary.m.key` is missing", "algorithm.particles"]);
    refused("[vary.m]\nkey = \"rounds\"\nvalue = [3]", &["line 3", "`vary.m.value`", "`key` and `values`"]);
    refused("[vary.m]\nkey = \"round\"\nvalues = [3]", &["line 3", "unknown key `round`", "`rounds`"]);
    refused("[vary.m]\nkey = \"rounds\"\nvalues = [3, 0]", &["line 3", "`rounds` cannot be 0"]);
    refused("[vary.m]\nkey = \"rounds\"\nvalues = [3, 3]", &["line 3", "`vary.m.values` has 3 twice"]);
    refused("[vary.seed]\nkey = \"rounds\"\nvalues = [3]", &["line 1", "cannot be named `seed`"]);
    refused("[vary.m.a]\n[vary.m.a]", &["line 2", "not valid TOML", "`a` is there already, on a line above"]);
    refused(
        "[vary.m.a]\nalgorithm.particels = 3",
        &["line 2", "`algorithm.particels`", "did you mean `algorithm.particles`?"],
    );
    refused("[vary.m.a]\nalgorithm.kind = \"fedavgg\"", &["line 2", "`algorithm.kind`", "`fedavg`"]);
    refused("[vary.m.a]\nseed = 3", &["line 2", "`seed` is not set in a study", "`seeds`"]);
    refused("[set]\nname = \"x\"\n[vary.m.a]", &["line 2", "`name` is not set in a study"]);
    refused("[set]\nrouds = 3\n[vary.m.a]", &["line 2", "unknown key `rouds`", "`rounds`"]);
    refused(
        "[vary.m.a]\nrounds = 3\n[vary.n.b]\nrounds = 4",
        &["line 4", "`rounds` varies in [vary.m] and in [vary.n]"],
    );
    let same =
        refused("[vary.m.a]\nrounds = 3\n[vary.m.b]\n[vary.m.c]\nrounds = 3", &["line 1", "`a` and `c` are the same"]);
    assert!(same.contains("vary.m"), "{same}");
    refused(
        "[vary.m.a]\nalgorithm.kind = \"fedavg\"\nalgorithm.particles = 3",
        &["s.toml, line 3", "`algorithm.particles` is not used by algorithm kind `fedavg`"],
    );
    refused(
        "[set]\nalgorithm.kind = \"fedavg\"\nalgorithm.particles = 3\n[vary.m.a]",
        &["s.toml, line 3", "`algorithm.particles` is not used by algorithm kind `fedavg`"],
    );
    refused(
        "[set]\nalgorithm.kind = \"fedavg\"\n[vary.m]\nkey = \"algorithm.particles\"\nvalues = [3, 4]",
        &["s.toml, line 5", "`algorithm.particles` is not used by algorithm kind `fedavg`", "`newton-dsvgd`"],
    );
    refused(
        "[set]\nalgorithm.particles = 3\n[vary.m.a]\nalgorithm.kind = \"fedavg\"",
        &["s.toml, line 2", "`algorithm.particles` is not used by algorithm kind `fedavg`"],
    );
    refused(
        "[vary.m.a]\nalgorithm.kind = \"scaffold\"\n[vary.m.b]\n[vary.n.c]",
        &["s.toml, line 2: algorithm kind `scaffold`", "optimizer kind `sgd`"],
    );
    refused(
        "[vary.m.a]\nalgorithm.kind = \"dsvgd\"\n[vary.n.c]\n[vary.n.d]\nschedule.clients = 2",
        &["s.toml, lines 2 and 5: algorithm kind `dsvgd` moves one client a round, but `schedule.clients` is 2"],
    );
    place.write("base.toml", "[model]\nhiden = [5]\n");
    refused("base = \"base.toml\"\n[vary.m.a]", &["base.toml, line 2", "`model.hiden`", "`model.hidden`"]);
    place.write("base.toml", "[algorithm]\nkind = \"fedavg\"\nparticles = 5\n");
    refused("base = \"base.toml\"\n[vary.m.a]", &["base.toml, line 3", "`algorithm.particles` is not used"]);

    let many = "[vary.m]\nkey = \"rounds\"\nvalues = [1, 2]\n[vary.n]\nkey = \"partition.clients\"\nvalues = [1, 2]\n";
    refused(&format!("seeds = 50000\n{many}"), &["s.toml", "200000 runs", "at most 100000"]);
}

#[test]
fn mistakes_in_samples_metrics_claims_and_the_command_line_are_refused() {
    let place = Place::new();
    let refused = |text: &str, words: &[&str]| refused(&place, text, words);
    // An axis that is a sample.
    let three = "[vary.m]\nkey = \"rounds\"\nvalues = [3, 4, 5]";
    refused(&format!("pooled = \"n\"\n{three}"), &["line 1", "`pooled`: there is no axis `n`; there are `m`"]);
    refused(
        "pooled = \"m\"\n[vary.m]\nkey = \"rounds\"\nvalues = [3, 4]",
        &["line 1", "[vary.m] has 2 variants; a sample has 3 or more"],
    );
    let beside = format!("pooled = \"m\"\n{three}\n[vary.smallest]\nkey = \"partition.clients\"\nvalues = [3]");
    refused(&beside, &["line 1", "pooled.csv has a column `smallest`"]);
    refused(&format!("baseline = \"3\"\npooled = \"m\"\n{three}"), &["line 2", "the baseline is one of [vary.m]"]);
    // Metrics, baseline, claims.
    refused("metrics = [\"acuracy\"]\n[vary.m.a]", &["line 1", "`acuracy` is not a metric; did you mean `accuracy`?"]);
    refused("metrics = [\"nll\", \"nll\"]\n[vary.m.a]", &["line 1", "`nll` stands there twice"]);
    refused("metrics = [\"rmse\"]\n[vary.m.a]", &["line 1", "`rmse` is a metric of a regression", "no run"]);
    refused("metrics = [\"personal_nll\"]\n[vary.m.a]", &["line 1", "evaluation.personal = true"]);
    refused("baseline = \"newtn\"\n[vary.m.newton]", &["line 1", "no variant `newtn`; did you mean `newton`?"]);
    let twice = "baseline = \"3\"\n[vary.m]\nkey = \"rounds\"\nvalues = [3]\n[vary.n]\nkey = \"partition.clients\"\nvalues = [3]";
    refused(twice, &["line 1", "several axes have a variant `3`", "\"m=3\""]);
    let claim = |claim: &str| format!("claims = [\"{claim}\"]\n[vary.m.a]\n[vary.m.b]\nrounds = 3\n");
    refused(&claim("a beats b"), &["line 1", "\"A better than B in METRIC\""]);
    refused(&claim("a in nll"), &["line 1", "\"A better than B in METRIC\""]);
    refused(&claim("a better than x in nll"), &["line 1", "[vary.m] has no variant `x`", "`a`, `b`"]);
    refused(&claim("a better than a in nll"), &["line 1", "`a` is compared with itself"]);
    refused(&claim("a better than b in nl"), &["line 1", "`nl` is not a metric"]);
    refused(&claim("a better than b in entropy"), &["line 1", "neither small nor large values of `entropy`"]);
    // Also where the metrics are the usual ones.
    refused(&claim("a better than b in rmse"), &["line 1", "`rmse` is a metric of a regression", "no run"]);
    refused(&claim("a better than b in personal_nll"), &["line 1", "evaluation.personal = true"]);
    refused("metrics = [\"density\"]\n[vary.m.a]", &["line 1", "`density` is not a metric"]);

    // The command line.
    place.write("s.toml", methods("seeds = 2"));
    place.refuses("study s.toml --only nothing", &["no run of the study has `nothing`", "`clients=2/newton`"]);
    place.refuses("study s.toml --seeds 0", &["--seeds", "1..="]);
    place.refuses("study s.toml --backend gpu", &["flex, ndarray, wgpu, cuda"]);
    place.write("s.toml", "[set]\ndata.kind = \"mnist\"\n[vary.m.a]\n");
    place.refuses(
        "study s.toml --data-dir nowhere",
        &["data that are not there", "fedstein data fetch mnist", "--data-dir"],
    );
}

#[test]
fn a_mistake_that_only_the_table_shows_is_found_before_the_first_run() {
    let place = Place::new();
    let table = |ward: &str, cell: &str| {
        let row = |i: usize| format!("{},{},{}\n", i % 13, ["north", ward, "east"][i % 3], ["ill", "well"][i % 2]);
        format!("age,ward,outcome\n{}{cell},east,ill\n", (0..90).map(row).collect::<String>())
    };
    place.write("a.csv", table("south", "4")).write("b.csv", table("south", "four"));
    place.write("c.csv", table("south", "5").replace("5,east,ill", "5,east,dead"));
    let base = "[data]\nkind = \"csv\"\npath = \"a.csv\"\ntarget = \"outcome\"\nclient_column = \"ward\"\n\
                [partition]\nkind = \"by-column\"\n";
    place.write("base.toml", base);
    let study = |axis: &str| {
        let set = "[set]\nrounds = 1\nalgorithm.local_steps = 2\nalgorithm.particles = 3\n";
        place.write("s.toml", format!("base = \"base.toml\"\nseeds = 2\nmetrics = [\"nll\"]\n{set}{axis}"));
    };
    for (axis, words) in [
        (
            "[vary.left_out]\nkey = \"data.leave_out\"\nvalues = [\"north\", \"nrth\"]\n",
            &["s.toml, line 10: data.leave_out = ", "nrth", "north"][..],
        ),
        (
            "[vary.texts.none]\n[vary.texts.group]\ndata.categorical = [\"grpp\"]\n",
            &["s.toml, line 10: ", "`grpp`", "(data.categorical)"],
        ),
        (
            "[vary.positive.none]\n[vary.positive.other]\ndata.positive = \"illl\"\n",
            &["s.toml, line 10: data.positive = ", "illl"],
        ),
        (
            "[vary.table]\nkey = \"data.path\"\nvalues = [\"a.csv\", \"b.csv\"]\n",
            &["s.toml, line 10: ", "b.csv: line 92, column 1 (age): `four`"],
        ),
        (
            "[vary.clients.natural]\n[vary.clients.many]\npartition.kind = \"iid\"\npartition.clients = 900\n",
            &["s.toml, line 11: partition.clients = 900: there are only"],
        ),
        (
            // The second table has three classes.
            "model.kind = \"blr\"\n[vary.table]\nkey = \"data.path\"\nvalues = [\"a.csv\", \"c.csv\"]\n",
            &["s.toml, line 8: model.kind = \"blr\" separates two classes, but the data set `c` has 3"],
        ),
    ] {
        study(axis);
        place.refuses("study s.toml", words);
    }
    // Without a mistake it runs, and goes on from what is kept.
    study("[vary.left_out]\nkey = \"data.leave_out\"\nvalues = [\"north\", \"south\"]\n");
    place.works("study s.toml --quiet");
    let again = place.works("study s.toml").stderr;
    assert!(again.contains("4 runs, 4 of them kept from before"), "{again}");
}

#[test]
fn one_study_at_a_time_works_in_a_directory_and_what_a_killed_one_leaves_is_nobodys() {
    let place = Place::new();
    place.write("one.toml", format!("metrics = [\"nll\"]\nseeds = 1\n{TINY}{METHODS}"));
    place.write("two.toml", format!("title = \"Other\"\nmetrics = [\"nll\"]\nseeds = 1\n{TINY}{METHODS}"));
    fs::create_dir(place.path("out")).unwrap();
    let lock = fedstein::checkpoint::lock::Lock::take(&place.path("out")).unwrap();
    let words = ["`out` is in use by process", "--out"];
    place.refuses("study one.toml --out out", &words);
    drop(lock);
    place.write("out/run.lock", "process 4711 on elsewhere").write("out/.study.json.4711-0.tmp", "{");
    place.works("study one.toml --out out --quiet");
    assert!(!place.path("out/run.lock").exists());
    place.refuses("study two.toml --out out", &["is the directory of another study"]);
    place.write("out/study.json", "{");
    place.refuses("study one.toml --out out", &["`study.json` that is not a study's", "EOF"]);
}
