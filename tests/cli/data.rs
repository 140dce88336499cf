//! `fedstein data`, and where data sets are looked for.

use std::collections::BTreeSet;

use fedstein::datasets::DATA_KINDS;

use super::place::{Mnist, Place, TINY, works};

/// Every data set.
fn sets() -> Vec<&'static str> {
    DATA_KINDS.iter().map(|kind| kind.name).collect()
}

#[test]
fn list_names_the_directory_and_every_set_with_its_state() {
    let place = Place::new();
    Mnist::new().write(&place, "mine");
    let printed = place.works("data list --data-dir mine").stdout;
    let mut lines = printed.lines();
    assert_eq!(lines.next(), Some("data directory: mine"));
    let listed: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    let names: BTreeSet<&str> = listed.iter().map(|words| words[0]).collect();
    assert_eq!((names, listed.len()), (sets().into_iter().collect(), sets().len()));
    let state = |name: &str| listed.iter().find(|words| words[0] == name).unwrap()[1..].join(" ");
    assert!(state("mnist").starts_with("here "), "{printed}");
    assert!(state("fashion-mnist").starts_with("to be fetched "), "{printed}");
    assert!(state("digits").starts_with("built in "), "{printed}");
    assert!(state("twonorm").starts_with("generated "), "{printed}");
}

#[test]
fn info_shows_source_licence_files_and_checksums_of_every_set() {
    let place = Place::new();
    for set in sets() {
        let printed = place.works(&format!("data info {set}")).stdout;
        assert!(printed.starts_with(&format!("{set}\n")), "{printed}");
        for word in ["source ", "licence ", "state "] {
            assert!(printed.contains(word), "{printed}");
        }
    }
    let printed = place.works("data info mnist").stdout;
    assert!(printed.contains("data/mnist/train-images-idx3-ubyte.gz  9912422 bytes  sha256 440fcabf"), "{printed}");
    assert!(printed.contains("missing"), "{printed}");
    place.write("data/mnist/train-images-idx3-ubyte.gz", "half");
    let printed = place.works("data info mnist").stdout;
    assert!(printed.contains("damaged: 4 bytes"), "{printed}");
}

#[test]
fn an_unknown_set_is_refused_with_the_nearest_and_the_list() {
    let place = Place::new();
    for verb in ["info", "fetch"] {
        let words = ["`mnsit`", "did you mean `mnist`?", "mnist, fashion-mnist, cifar10"];
        place.refuses(&format!("data {verb} mnsit"), &words);
        let message = place.refuses(&format!("data {verb} zzz"), &["`zzz`", "mnist, fashion-mnist, cifar10"]);
        assert!(!message.contains("did you mean"), "{message}");
    }
}

#[test]
fn what_is_built_in_or_generated_needs_no_download() {
    let place = Place::new();
    for set in ["digits", "twonorm", "csv"] {
        let printed = place.works(&format!("data fetch {set}")).stdout;
        assert!(printed.contains("nothing to fetch"), "{printed}");
    }
    assert!(place.names(".").is_empty());
}

#[test]
fn data_lie_in_the_option_else_the_variable_else_data() {
    let place = Place::new();
    Mnist::new().write(&place, "mine");
    let train = format!("{TINY} --set data.kind=mnist --set partition.clients=3 --quiet");
    place.refuses(&train, &["data/mnist/train-images-idx3-ubyte.gz", "fedstein data fetch mnist", "--data-dir"]);
    works(place.command(&format!("{train} --out a")).env("FEDSTEIN_DATA", "mine"));
    works(place.command(&format!("{train} --out b --data-dir mine")).env("FEDSTEIN_DATA", "elsewhere"));
    assert_eq!(place.bytes("a/particles.safetensors"), place.bytes("b/particles.safetensors"));
}

#[test]
fn a_file_in_another_form_is_not_fetched() {
    let place = Place::new();
    place.write("data/covertype/covtype.binary.csv.gz", "mine");
    let done = place.works("data fetch covertype");
    assert_eq!(done.stdout, "data/covertype/covtype.binary.csv.gz\n");
    assert!(done.stderr.starts_with("covertype/covtype.data.gz: data/covertype/covtype.binary.csv.gz is used instead"));
}
