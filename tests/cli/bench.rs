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
