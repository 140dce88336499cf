//! Federations whose clients are sites, each with a file of its own: the server has no rows, every message travels as bytes,
//! and every site is built anew from its disk for each message.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fedstein::backend::Flex;
use fedstein::datasets::{Dataset, Header, Normalise, Reading, Targets, Task, TrainTest};
use fedstein::error::RunError;
use fedstein::experiment::at_site::SiteClient;
use fedstein::experiment::{ConfigLoader, Experiment, Outcome, Overrides, Quiet, Source, run, serve};
use fedstein::remote::{Content, Parcel, Threads, open};
use fedstein::site::{SiteConfig, SiteData, SiteLimits, SiteRows, Tell};
use ndarray::Array2;
use tempfile::TempDir;

use crate::common::{algorithms_that, values};
use crate::faults::harness::{K, text};

/// Rows of K clients with very different numbers of rows: training and test rows, each with its client.
fn rows(task: Task) -> (Dataset, Dataset) {
    let set = |count: usize, phase: f32| {
        let wave =
            |row: usize, column: usize| ((row * 7 + column * 3) as f32 * 0.37 + phase).sin() * (1 + column) as f32;
        let features =
            Array2::from_shape_fn((count, 4), |(row, column)| if column == 3 { 2.5 } else { wave(row, column) });
        let sum = |row: usize| features[[row, 0]] + features[[row, 1]];
        let targets = match task {
            Task::Classification => Targets::Classes {
                labels: (0..count).map(|row| usize::from(sum(row) > 0.3)).collect(),
                names: vec!["no".into(), "yes".into()],
            },
            Task::Regression => Targets::Real { values: (0..count).map(|row| f64::from(sum(row)) + 0.1).collect() },
        };
        let clients = (0..count).map(|row| if row % 3 == 0 { 0 } else { row % K }).collect();
        Dataset {
            name: "waves".into(),
            features,
            feature_shape: vec![4],
            feature_names: Some(["a", "b", "c", "d"].map(String::from).to_vec()),
            targets,
            clients: Some(clients),
            client_names: None,
            groups: None,
            lines: None,
        }
    };
    (set(130, 0.0), set(60, 0.5))
}

/// Writes the rows of a client as a CSV file: client 0 with the columns in their order, any other in another order.
fn write(path: &Path, data: &Dataset, client: usize) {
    let mut text = String::from(if client == 0 { "a,b,c,d,target\n" } else { "d,target,c,b,a\n" });
    let of_client = |row: &usize| data.clients.as_ref().unwrap()[*row] == client;
    for row in (0..data.rows()).filter(of_client) {
        let target = match &data.targets {
            Targets::Classes { labels, names } => names[labels[row]].clone(),
            Targets::Real { values } => values[row].to_string(),
            Targets::None { .. } => unreachable!(),
        };
        let x = data.features.row(row);
        text += &match client {
            0 => format!("{},{},{},{},{target}\n", x[0], x[1], x[2], x[3]),
            _ => format!("{},{target},{},{},{}\n", x[3], x[2], x[1], x[0]),
        };
    }
    fs::write(path, text).unwrap();
}

/// The sites of K clients under a directory.
pub fn sites(dir: &Path, task: Task) -> Vec<SiteConfig> {
    let (train, test) = rows(task);
    let site = |client: usize| {
        let (path, test_path) = (dir.join(format!("{client}.csv")), dir.join(format!("{client}-test.csv")));
        write(&path, &train, client);
        write(&test_path, &test, client);
        SiteConfig {
            name: format!("site-{client}"),
            index: client,
            state: dir.join(format!("state-{client}")),
            backend: "flex".into(),
            threads: 0,
            data: SiteData {
                path,
                test_path: test_path.display().to_string(),
                validation_path: String::new(),
                calibration_path: String::new(),
                target: "target".into(),
                task,
                header: Header::Yes,
                delimiter: ",".into(),
                name_column: String::new(),
                reading: Reading::default(),
                test_fraction: 0.2,
                split: fedstein::datasets::source::TestSplit::Random,
                validation_fraction: 0.0,
                calibration_fraction: 0.0,
            },
            tell: Tell { categories: true, class_counts: true, min_rows: 1, products: true, statistics: true },
            limits: SiteLimits { megabytes: 64, numbers: 1 << 20, steps: 1000 },
        }
    };
    (0..K).map(site).collect()
}

/// Every message to a site, by its address, with the answer.
pub type Seen = Arc<Mutex<Vec<(usize, Parcel, Parcel)>>>;
/// What becomes of a site's answer to a message, by the site's address.
type OnTheWay = Arc<dyn Fn(usize, Parcel, Parcel) -> Parcel + Send + Sync>;

/// A carrier to sites that are built anew for each message.
fn carrier(sites: &[SiteConfig], on_the_way: &OnTheWay) -> Threads {
    let site = |(peer, site): (usize, &SiteConfig)| {
        let (site, on_the_way) = (site.clone(), on_the_way.clone());
        let rows = SiteRows::read(&site).unwrap();
        let answer = move |parcel: Parcel| {
            let answer = SiteClient::new(site.clone(), rows.clone()).unwrap().answer(parcel.clone());
            on_the_way(peer, parcel, answer)
        };
        Box::new(answer) as Box<dyn FnMut(Parcel) -> Parcel + Send>
    };
    // The address of a site is not its index.
    Threads::new(sites.iter().rev().enumerate().map(site).collect())
}

/// The config of a run in one process, and that of a federation of sites.
pub fn configs(kind: &str, more: &str, task: Task) -> [String; 2] {
    let text = text(kind, more);
    let data = "data = { kind = \"twonorm\", rows = 120, test_fraction = 0.33333 }";
    let partition = format!("partition = {{ clients = {K} }}");
    assert!(text.contains(data) && text.contains(&partition));
    let word = if task == Task::Regression { "regression" } else { "classification" };
    let here = text.replace(&partition, "partition = { kind = \"by-column\" }");
    let federation = text.replace(data, &format!("data = {{ kind = \"sites\", task = \"{word}\" }}"));
    [here, federation]
}

fn in_one_process(text: &str, task: Task) -> Result<Outcome, RunError> {
    let (train, test) = rows(task);
    let data = TrainTest::from_rows(train, test, Normalise::Standard)?;
    let source = Source { name: "one process", text };
    let (config, _) = ConfigLoader::default().with_data(&data).load(source, &Overrides::default())?;
    run::<Flex>(&Experiment::new(config, "data").with_data(data), &Quiet, None)
}

/// A federation of sites whose messages are kept in `seen`.
pub fn federation(text: &str, sites: &[SiteConfig], seen: &Seen) -> Result<Outcome, RunError> {
    let seen = seen.clone();
    let keep = move |peer, parcel, answer: Parcel| {
        seen.lock().unwrap().push((peer, parcel, answer.clone()));
        answer
    };
    federation_of(text, sites, Arc::new(keep))
}

/// A federation of sites whose answers may be changed on the way.
pub fn federation_of(text: &str, sites: &[SiteConfig], on_the_way: OnTheWay) -> Result<Outcome, RunError> {
    let source = Source { name: "federation", text };
    let (config, _) = ConfigLoader::default().load(source, &Overrides::default())?;
    serve::<Flex>(&config, &carrier(sites, &on_the_way), &Quiet, None)
}

/// What does not depend on clocks: the bits of the particles, the posterior with the scores of the clients' predictors, and
/// of each round its number, its clients and the bytes in both directions.
type Essence = (Vec<u64>, String, Vec<(usize, Vec<usize>, [u64; 2])>);

fn essence(outcome: &Outcome) -> Essence {
    let particles = values(&outcome.particles).into_iter().map(f64::to_bits).collect();
    let round = |round: &fedstein::experiment::RoundRecord| {
        (round.round, round.clients.clone(), [round.uplink_bytes, round.downlink_bytes])
    };
    (particles, format!("{:?} {:?}", outcome.posterior, outcome.personal), outcome.rounds.iter().map(round).collect())
}

/// Asserts that a federation of sites has the bits of a run in one process.
pub fn compare(kind: &str, more: &str, task: Task) {
    compare_texts(configs(kind, more, task), (kind, more), task);
}

/// The same for the config of a run in one process and that of a federation; `what` says what they are.
fn compare_texts([here, elsewhere]: [String; 2], (kind, more): (&str, &str), task: Task) {
    let dir = TempDir::new().unwrap();
    let seen = Seen::default();
    let sites = sites(dir.path(), task);
    let together = in_one_process(&here, task).unwrap_or_else(|error| panic!("{kind} {more}: {error}"));
    let apart = federation(&elsewhere, &sites, &seen).unwrap_or_else(|error| panic!("{kind} {more}: {error}"));
    let ([here, elsewhere], what) = ([&together, &apart].map(essence), format!("{kind} {more}"));
    assert_eq!(here.2, elsewhere.2, "{what}: the rounds differ");
    assert!(here.0 == elsewhere.0, "{what}: the particles differ");
    assert!(
        here.1 == elsewhere.1,
        "{what}: the posteriors or the clients' scores differ:\n{}\n{}",
        here.1,
        elsewhere.1
    );
    let visits = together.rounds.iter().map(|round| round.clients.len()).sum::<usize>();
    assert!(seen.lock().unwrap().len() >= visits + 2 * K, "{kind}: the messages did not travel");
}

#[test]
fn a_federation_of_sites_does_what_a_run_in_one_process_does_to_the_bit_for_every_algorithm() {
    for kind in algorithms_that(|can| !can.centralised) {
        compare(kind, "", Task::Classification);
    }
}

#[test]
fn so_it_does_with_features_in_the_basis_of_their_principal_axes() {
    for (kind, from) in [("newton-dsvgd", "all-clients"), ("fedavg", "all-clients"), ("dsvgd", "first-client")] {
        let keys = format!(", rotate = \"principal\", rotate_from = \"{from}\" }}");
        for task in [Task::Classification, Task::Regression] {
            let texts = configs(kind, "", task).map(|text| {
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                let data = lines.iter_mut().find(|line| line.trim().starts_with("data = {")).unwrap();
                *data = data.replace(" }", &keys);
                lines.join("\n")
            });
            compare_texts(texts, (kind, from), task);
        }
    }
}

#[test]
fn so_it_does_with_classes_of_equal_weight() {
    for kind in ["newton-dsvgd", "fedavg"] {
        let weighted = |text: String| match text.contains("twonorm") {
            true => text.replace("kind = \"twonorm\",", "kind = \"twonorm\", class_weights = \"balanced\","),
            false => text.replace("kind = \"sites\",", "kind = \"sites\", class_weights = \"balanced\","),
        };
        let texts = configs(kind, "", Task::Classification).map(weighted);
        assert!(texts.iter().all(|text| text.contains("balanced")));
        compare_texts(texts, (kind, "class weights"), Task::Classification);
    }
}

#[test]
fn so_it_does_with_predictors_of_the_clients_and_their_frequencies_of_classes() {
    for (kind, weights) in [("newton-dsvgd", "none"), ("dsvgd", "balanced"), ("fedavg", "none")] {
        let scores = [false, true].map(|corrected| {
            let more = format!("[evaluation]\npersonal = true\nprior_correction = {corrected}");
            let weights = format!("class_weights = \"{weights}\", ");
            let texts = configs(kind, &more, Task::Classification)
                .map(|text| text.replace("data = { ", &format!("data = {{ {weights}")));
            assert!(texts.iter().all(|text| text.contains("class_weights")));
            compare_texts(texts.clone(), (kind, &more), Task::Classification);
            let outcome = in_one_process(&texts[0], Task::Classification).unwrap();
            outcome.personal.unwrap().0.last.numbers["personal_nll"].unwrap()
        });
        assert!(scores[0] != scores[1], "{kind}: the correction has no effect");
    }
}

#[test]
fn so_it_does_with_layers_that_all_particles_share() {
    for layers in ["[1]", "[2]", "[1, 2]"] {
        let texts = configs("fedwba", "", Task::Classification)
            .map(|text| text.replace("kind = \"fedwba\"", &format!("kind = \"fedwba\"\nshared_layers = {layers}")));
        assert!(texts.iter().all(|text| text.contains("shared_layers")));
        compare_texts(texts, ("fedwba", layers), Task::Classification);
    }
}

#[test]
fn so_it_does_in_half_precision_and_for_regressions() {
    compare("newton-dsvgd", "[federation]\nwire = \"f16\"", Task::Classification);
    compare("dsvgd", "[federation]\nwire = \"bf16\"", Task::Classification);
    for kind in ["newton-dsvgd", "dsvgd", "fedavg", "fedwba"] {
        compare(kind, "", Task::Regression);
    }
}

#[test]
fn a_map_for_fewer_classes_than_the_sites_have_is_refused_before_a_site_takes_part() {
    let dir = TempDir::new().unwrap();
    let mut sites = sites(dir.path(), Task::Classification);
    for (index, site) in sites.iter_mut().enumerate() {
        let line = |row: usize| format!("{row}.5,{index}.25,1.0,2.0,kind-{}\n", row % 101);
        let lines: String = (0..404).map(line).collect();
        fs::write(&site.data.path, format!("a,b,c,d,target\n{lines}")).unwrap();
        (site.data.test_path, site.data.calibration_fraction) = (String::new(), 0.25);
    }
    let [_, text] = configs("fedavg", "[calibration]\nmap = \"vector\"", Task::Classification);
    let seen = Seen::default();
    let error = federation(&text, &sites, &seen).unwrap_err().to_string();
    assert!(error.contains("\"vector\" is for at most 100 classes, and the data have 101"), "{error}");
    let begins =
        |(_, parcel, _): &(usize, Parcel, Parcel)| matches!(open(parcel.clone()).unwrap().content, Content::Begin(_));
    assert!(!seen.lock().unwrap().iter().any(begins));
}
