//! The command line of `fedstein bench`; the workloads have their own tests.

use serde_json::Value;

use super::place::Place;

#[test]
fn an_unknown_workload_is_refused_with_the_list() {
    let place = Place::new();
    let all = ["W1 (", "W2 (", "W3 (", "W4 (", "W5 (", "W6 (", "W7 (", "W8 (", "\"W9\""];
    place.refuses("bench --only W1,W9", &all);
    place.refuses("bench --only speed", &["\"speed\"", "choose from W1"]);
}

#[test]
fn invalid_arguments_of_bench_are_refused() {
    let place = Place::new();
    place.refuses("bench --threads 0", &["--threads", "1..=1024"]);
    for seconds in ["0", "-1", "nan", "1e9", "long"] {
        place.refuses(&format!("bench --seconds={seconds}"), &["--seconds", "0.01 to 3600"]);
    }
    place.refuses("bench --growth --only W1", &["--growth", "--only"]);
    place.refuses("bench --only W3 --json no/such/times.jsonl", &["cannot write no/such/times.jsonl"]);
    // Nothing is measured for a file that cannot be written, or is not replaced.
    place.refuses("bench --growth -", &["--growth draws a picture into a file"]);
    place.refuses("bench --growth no/such/g.svg", &["--growth `no/such/g.svg`", "no directory `no/such`"]);
    place.refuses("bench --record no/such/b.json", &["--record `no/such/b.json`", "no directory `no/such`"]);
    place.write("notes.txt", "of the user");
    place.refuses("bench --growth notes.txt", &["--growth `notes.txt`", "not a picture of this command"]);
}

#[test]
fn a_bench_prints_a_table_and_appends_one_record_per_line() {
    let place = Place::new();
    place.write("times.jsonl", "{\"name\": \"before\"}\n");
    let printed = place.works("bench --only w3 --seconds 0.01 --threads 1 --json times.jsonl").stdout;
    for word in
        ["backend    flex", "GFLOP/s", "GB/s", "W3 blr L=200 N=6", "W3 blr L=200 N=100", "µs a step", "achieved"]
    {
        assert!(printed.contains(word), "{word}: {printed}");
    }
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
    let records: Vec<Value> =
        place.text("times.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = records.iter().filter_map(|record| record["name"].as_str()).collect();
    assert_eq!(names, ["before", "W3 blr L=200 N=6", "W3 blr L=200 N=100"]);
    assert_eq!((&records[1]["impl"], &records[1]["threads"]), (&Value::from("fedstein/flex"), &Value::from(1)));
}

#[test]
fn nothing_is_appended_to_a_file_of_something_else() {
    let place = Place::new();
    let words = ["--json `rounds.csv` exists and has no lines of this command", "choose another file"];
    for text in ["round,accuracy\n1,0.5\n", "{\n  \"title\": \"of another program\"\n}\n", "\n", "[1]\n"] {
        place.write("rounds.csv", text).refuses("bench --only W3 --json rounds.csv", &words);
    }
    place.refuses("bench --only W3 --json -", &["--json appends to a file", "times.jsonl"]);
    place.refuses("bench --only W3 --json .", &["--json `.` is a directory"]);
    let words = ["--json `new.json` is the file of the bands too"];
    for option in ["--record", "--check"] {
        place.refuses(&format!("bench --only W3 --json new.json {option} ./new.json"), &words);
    }
    // Bands that are refused leave no empty file of lines.
    place.write("bands.json", "{}");
    place.refuses("bench --only W3 --json new.jsonl --check bands.json", &["bands.json is not a file of"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(place.path("rounds.csv"), place.path("link")).unwrap();
        place.refuses("bench --only W3 --json link", &["--json `link` is a link"]);
    }
}

#[test]
fn bands_are_recorded_and_a_line_that_leaves_its_band_fails_the_check() {
    let place = Place::new();
    let bench = "bench --only w3 --seconds 0.01 --threads 1";
    place.works(&format!("{bench} --record bands.json"));
    let bands: Value = serde_json::from_str(&place.text("bands.json")).unwrap();
    assert_eq!((&bands["backend"], &bands["threads"]), (&Value::from("flex"), &Value::from(1)));
    let band = &bands["bands"]["W3 blr L=200 N=6"];
    let (low, high) = (band["low"].as_f64().unwrap(), band["high"].as_f64().unwrap());
    assert!(0.0 < low && (high / low - 1.44).abs() < 0.01, "{band}");

    // A wide band holds, a band far below does not; a line without one is named. Times themselves are not tested.
    let file = |[low, high]: [f64; 2]| {
        let line = format!("\"W3 blr L=200 N=6\": {{\"low\": {low:e}, \"high\": {high:e}}}");
        format!("{{\"processor\": \"any\", \"backend\": \"flex\", \"threads\": 1, \"bands\": {{{line}}}}}")
    };
    place.write("wide.json", file([1e-9, 1e9]));
    let printed = place.works(&format!("{bench} --check wide.json")).stdout;
    assert!(printed.contains("ratio") && printed.contains("no band"), "{printed}");
    place.write("low.json", file([1e-9, 2e-9]));
    let output = place.command(&format!("{bench} --check low.json")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("error: outside the bands of low.json: W3 blr L=200 N=6 (slower)"), "{stderr}");
    assert_eq!(place.text("low.json"), file([1e-9, 2e-9]));
}

#[test]
fn a_file_of_bands_that_does_not_fit_is_refused_before_anything_is_measured() {
    let place = Place::new();
    place.refuses("bench --check bands.json", &["cannot read bands.json"]);
    place.write("bands.json", "{}");
    place.refuses("bench --check bands.json", &["bands.json is not a file of `fedstein bench --record`", "processor"]);
    let text = r#"{"processor": "any", "backend": "ndarray", "threads": 1, "bands": {}}"#;
    place.write("bands.json", text);
    place.refuses("bench --threads 1 --check bands.json", &["bands.json: its bands are of backend ndarray with 1"]);
    place.refuses("bench --threads 1 --record bands.json", &["bands.json: its bands are of backend ndarray with 1"]);
    assert_eq!(place.text("bands.json"), text);
    place.write("bands.json", text.replace("{}", r#"{"W3": {"low": 2.0, "high": 1.0}}"#));
    place.refuses("bench --check bands.json", &["the band of \"W3\" is 2 to 1", "the least first"]);
    place.refuses("bench --check bands.json --record bands.json", &["--check", "--record"]);
}
