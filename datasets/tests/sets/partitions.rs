//! Every partition is a disjoint cover without empty clients, is seeded, and matches its definition.

use fedstein_datasets::partition::{
    ByColumn, CyclicLabels, Dirichlet, FedwbaReference, Iid, LabelRatio, LabelsPerClient, Pfedgp, SuperclassLabels,
};
use fedstein_datasets::source::Cifar100;
use fedstein_datasets::{
    Cut, DataConfig, DataError, Dataset, Normalise, Partition, PartitionConfig, PartitionScheme, Targets, load,
    partition,
};
use ndarray::Array2;
use proptest::prelude::*;
use rand::{SeedableRng, rngs::ChaCha8Rng};
use std::sync::LazyLock;

pub(super) fn labelled(labels: Vec<usize>, classes: usize) -> Dataset {
    Dataset {
        name: "test".into(),
        features: Array2::zeros((labels.len(), 1)),
        feature_shape: vec![1],
        feature_names: None,
        targets: Targets::Classes { labels, names: (0..classes).map(|c| format!("c{c}")).collect() },
        clients: None,
        client_names: None,
        groups: None,
        lines: None,
    }
}

/// `counts[c]` rows of class c, one class after the other.
pub(super) fn with_counts(counts: &[usize]) -> Dataset {
    let labels = counts.iter().enumerate().flat_map(|(class, &n)| std::iter::repeat_n(class, n)).collect();
    labelled(labels, counts.len())
}

pub(super) fn assign(config: &PartitionScheme, data: &Dataset, seed: u64) -> Result<Partition, DataError> {
    partition(&config.clone().into(), data, &mut ChaCha8Rng::seed_from_u64(seed))
}

pub(super) fn message(config: PartitionScheme, data: &Dataset) -> String {
    assign(&config, data, 1).unwrap_err().to_string()
}

/// Training, validation and calibration rows of a client, ascending.
pub(super) fn assigned(partition: &Partition, client: usize) -> Vec<usize> {
    let mut rows = [&partition.clients()[client], partition.validation(client), partition.calibration(client)].concat();
    rows.sort_unstable();
    rows
}

fn assert_cover(partition: &Partition, rows: usize) {
    let mut seen = vec![0; rows];
    for client in partition.clients() {
        assert!(!client.is_empty(), "an empty client");
        assert!(client.windows(2).all(|pair| pair[0] < pair[1]), "not ascending");
        for &row in client {
            seen[row] += 1;
        }
    }
    assert!(seen.iter().all(|&times| times == 1), "not a disjoint cover");
}

pub(super) fn any_config() -> impl Strategy<Value = PartitionScheme> {
    let clients = 1usize..60;
    prop_oneof![
        clients.clone().prop_map(|clients| PartitionScheme::Iid(Iid { clients })),
        (clients.clone(), 1usize..8).prop_map(|(clients, labels)| PartitionScheme::LabelsPerClient(LabelsPerClient {
            clients,
            labels,
            cut: Cut::Equal
        })),
        (clients.clone(), 1usize..8).prop_map(|(clients, labels)| PartitionScheme::LabelsPerClient(LabelsPerClient {
            clients,
            labels,
            cut: Cut::Random
        })),
        (clients.clone(), 1usize..8)
            .prop_map(|(clients, labels)| PartitionScheme::CyclicLabels(CyclicLabels { clients, labels })),
        (clients.clone(), 1usize..8).prop_map(|(clients, labels)| PartitionScheme::Pfedgp(Pfedgp { clients, labels })),
        (clients.clone(), 0.0f64..10.0, 0.1f64..10.0)
            .prop_map(|(clients, a, b)| { PartitionScheme::LabelRatio(LabelRatio { clients, ratio: vec![a, b] }) }),
        proptest::collection::vec(0.0f64..50.0, 3..60)
            .prop_map(|ratio| { PartitionScheme::LabelRatio(LabelRatio { clients: ratio.len(), ratio }) }),
        (clients, -4.0f64..4.0)
            .prop_map(|(clients, log)| PartitionScheme::Dirichlet(Dirichlet { clients, alpha: 10f64.powf(log) })),
    ]
}

/// The refusal of a config of [`any_config`] on some data.
struct Refusal {
    /// Whether such data are always refused, or only where the draws leave a client without rows.
    is_certain: bool,
    /// The text of the message.
    words: String,
}

/// The refusal that the documentation of [`PartitionScheme`] announces, worked out from the numbers alone.
fn refusal(config: &PartitionScheme, data: &Dataset) -> Option<Refusal> {
    let certain = |words: String| Some(Refusal { is_certain: true, words });
    let clients = config.clients().unwrap();
    if clients > data.rows() {
        return certain(format!("partition.clients = {clients}: there are only {} training rows", data.rows()));
    }
    let classes = data.classes().unwrap();
    let mut counts = vec![0; classes];
    data.labels().unwrap().iter().for_each(|&label| counts[label] += 1);
    counts.retain(|&count| count > 0);
    let present = counts.len();
    match config {
        PartitionScheme::LabelsPerClient(LabelsPerClient { labels, .. })
        | PartitionScheme::CyclicLabels(CyclicLabels { labels, .. })
        | PartitionScheme::Pfedgp(Pfedgp { labels, .. }) => {
            if *labels > present {
                certain(format!("partition.labels = {labels}: must be from 1 to {present}"))
            } else if clients * labels < present {
                certain(format!("partition kind `{}`: {clients} clients with {labels} labels each", config.kind()))
            } else {
                // A holder goes without rows of a class where there are fewer rows than holders; under pfedgp's weights
                // from 0.4 to 0.6 also where there are up to half as many again, and all clients may hold a class.
                let scarce = counts.iter().any(|&count| 2 * count < 3 * clients + 2);
                let words = format!("partition kind `{}`: client", config.kind());
                scarce.then_some(Refusal { is_certain: false, words })
            }
        }
        PartitionScheme::LabelRatio(_) if classes != 2 => {
            certain(format!("partition kind `label-ratio`: it mixes two classes, these data have {classes}"))
        }
        PartitionScheme::LabelRatio(LabelRatio { ratio, .. }) if ratio.iter().sum::<f64>() == 0.0 => {
            certain("partition.ratio = ".into())
        }
        _ => None,
    }
}

/// A partition, or `None` where it was refused with the expected message. Any other result fails the test.
pub(super) fn assigned_or_refused(
    config: &PartitionScheme,
    data: &Dataset,
    seed: u64,
) -> Result<Option<Partition>, TestCaseError> {
    match (assign(config, data, seed), refusal(config, data)) {
        (Ok(_), Some(Refusal { is_certain: true, words })) => {
            Err(TestCaseError::fail(format!("{config:?}: accepted, expected `{words}`")))
        }
        (Ok(assigned), _) => Ok(Some(assigned)),
        (Err(error), Some(Refusal { words, .. })) if error.to_string().starts_with(&words) => Ok(None),
        (Err(error), expected) => {
            let expected = expected.map(|refusal| refusal.words);
            Err(TestCaseError::fail(format!("{config:?}: `{error}`, expected {expected:?}")))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_partition_is_a_seeded_disjoint_cover_or_a_clear_refusal(
        config in any_config(),
        labels in (2usize..7).prop_flat_map(|classes| {
            (Just(classes), proptest::collection::vec(0..classes, 0..300))
        }),
        seed: u64,
    ) {
        let data = labelled(labels.1, labels.0);
        let Some(assigned) = assigned_or_refused(&config, &data, seed)? else { return Ok(()) };
        assert_cover(&assigned, data.rows());
        prop_assert_eq!(&assigned, &assign(&config, &data, seed).unwrap());
        let counts = assigned.counts(&data.targets);
        prop_assert_eq!(counts.iter().flatten().sum::<usize>(), data.rows());
    }

    #[test]
    fn each_client_has_the_configured_number_of_labels(
        clients in 1usize..40, labels in 1usize..10, classes in 2usize..11, seed: u64,
    ) {
        prop_assume!(labels <= classes && clients * labels >= classes);
        let data = with_counts(&vec![200; classes]);
        for config in [
            PartitionScheme::LabelsPerClient(LabelsPerClient { clients, labels, cut: Cut::Equal }),
            PartitionScheme::CyclicLabels(CyclicLabels { clients, labels }),
        ] {
            let assigned = assign(&config, &data, seed).unwrap();
            assert_cover(&assigned, data.rows());
            for counts in assigned.counts(&data.targets) {
                prop_assert_eq!(counts.iter().filter(|&&count| count > 0).count(), labels);
            }
            // A class's rows are shared equally by its holders.
            let counts = assigned.counts(&data.targets);
            for class in 0..classes {
                let held: Vec<usize> = counts.iter().map(|c| c[class]).filter(|&count| count > 0).collect();
                prop_assert!(held.iter().max().unwrap() - held.iter().min().unwrap() <= 1);
            }
        }
    }
}

#[test]
fn another_seed_gives_another_partition() {
    let data = with_counts(&[100, 100]);
    for config in [
        PartitionScheme::Iid(Iid { clients: 4 }),
        PartitionScheme::LabelsPerClient(LabelsPerClient { clients: 4, labels: 1, cut: Cut::Equal }),
        PartitionScheme::CyclicLabels(CyclicLabels { clients: 4, labels: 1 }),
        PartitionScheme::LabelRatio(LabelRatio { clients: 4, ratio: vec![1.0, 9.0] }),
        PartitionScheme::Dirichlet(Dirichlet { clients: 4, alpha: 1.0 }),
    ] {
        assert_ne!(assign(&config, &data, 1).unwrap(), assign(&config, &data, 2).unwrap(), "{config:?}");
    }
}

#[test]
fn iid_blocks_have_the_sizes_of_the_specification() {
    let assigned = assign(&PartitionScheme::Iid(Iid { clients: 7 }), &with_counts(&[50, 50]), 1).unwrap();
    let sizes: Vec<usize> = assigned.clients().iter().map(Vec::len).collect();
    // floor(n(k+1)/K) - floor(nk/K) for n = 100, K = 7
    assert_eq!(sizes, [14, 14, 14, 15, 14, 14, 15]);
}

#[test]
fn one_to_nine_is_exact_and_alternates() {
    // 80 % of Covertype; the client-selection paper divides it among 30 and 120 clients.
    let data = with_counts(&[226_641, 238_169]);
    for clients in [30, 120] {
        let config = PartitionScheme::LabelRatio(LabelRatio { clients, ratio: vec![1.0, 9.0] });
        let assigned = assign(&config, &data, 1).unwrap();
        // Every row is used, none is left out to make the mix exact.
        assert_cover(&assigned, data.rows());
        assert!(assigned.notes.is_empty(), "{:?}", assigned.notes);
        for (client, counts) in assigned.counts(&data.targets).iter().enumerate() {
            // Both counts are rounded to whole rows.
            let (major, minor) = (counts[client % 2] as f64, counts[1 - client % 2] as f64);
            let tenth = (major + minor) / 10.0;
            assert!((minor - tenth).abs() < 1.0, "client {client} of {clients}: {major} to {minor}");
        }
    }
}

#[test]
fn cyclic_labels_follow_the_order_of_the_classes_that_have_rows() {
    // Digits 0 to 8 of ten, as in the client-selection paper: class 9 has no client.
    let mut counts = vec![60; 9];
    counts.push(0);
    let data = with_counts(&counts);
    let held = |clients, labels| -> Vec<Vec<usize>> {
        let assigned = assign(&PartitionScheme::CyclicLabels(CyclicLabels { clients, labels }), &data, 1).unwrap();
        assert_cover(&assigned, data.rows());
        let counts = assigned.counts(&data.targets);
        counts.iter().map(|counts| (0..10).filter(|&class| counts[class] > 0).collect()).collect()
    };
    for clients in [27, 120] {
        for (client, hand) in held(clients, 3).iter().enumerate() {
            let first = 3 * (client % 3);
            assert_eq!(*hand, [first, first + 1, first + 2], "client {client}");
        }
    }
    assert_eq!(held(3, 4), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![0, 1, 2, 8]]);
    let assigned = assign(&PartitionScheme::CyclicLabels(CyclicLabels { clients: 27, labels: 3 }), &data, 1).unwrap();
    // 60 rows a class, nine holders: 6 or 7 each
    assert!(assigned.counts(&data.targets).iter().flatten().all(|count| [0, 6, 7].contains(count)));
}

#[test]
fn an_unattainable_ratio_is_approximated_with_a_note() {
    let data = with_counts(&[990, 10]);
    let assigned =
        assign(&PartitionScheme::LabelRatio(LabelRatio { clients: 4, ratio: vec![1.0, 9.0] }), &data, 1).unwrap();
    assert_cover(&assigned, 1000);
    assert!(assigned.notes[0].contains("990 rows of class c0 and 10 of class c1"), "{:?}", assigned.notes);
}

#[test]
fn figure_5_of_the_dsvgd_paper_assigns_40_40_10_10_percent() {
    let config = PartitionScheme::LabelRatio(LabelRatio { clients: 4, ratio: vec![40.0, 40.0, 10.0, 10.0] });
    let assigned = assign(&config, &with_counts(&[1000, 2000]), 1).unwrap();
    let counts = assigned.counts(&with_counts(&[1000, 2000]).targets);
    assert_eq!(counts, [[400, 200], [400, 200], [100, 800], [100, 800]]);
}

#[test]
fn dirichlet_with_many_clients_ends_and_notes_the_clients_with_few_rows() {
    let data = with_counts(&[100; 3]);
    let assigned = assign(&PartitionScheme::Dirichlet(Dirichlet { clients: 300, alpha: 0.001 }), &data, 1).unwrap();
    assert_cover(&assigned, 300);
    assert!(assigned.clients().iter().all(|rows| rows.len() == 1));
    assert!(assigned.notes[0].contains("had no rows (alpha = 0.001, 300 clients"), "{:?}", assigned.notes[0]);
    assert!(assigned.notes.len() <= 21);
    assert!(assigned.table(&data.targets).contains("note: client"));
}

#[test]
fn a_large_alpha_gives_even_shares_and_a_small_one_does_not() {
    let data = with_counts(&[1000, 1000]);
    let spread = |alpha| {
        let assigned = assign(&PartitionScheme::Dirichlet(Dirichlet { clients: 10, alpha }), &data, 1).unwrap();
        let sizes: Vec<usize> = assigned.clients().iter().map(Vec::len).collect();
        sizes.iter().max().unwrap() - sizes.iter().min().unwrap()
    };
    // The sd of a share is about sqrt(0.09 / (10 alpha)); at 1e4 that is one row of a thousand.
    assert!(spread(1e4) < 30, "{}", spread(1e4));
    assert!(spread(0.1) > 200, "{}", spread(0.1));
    for alpha in [f64::MIN_POSITIVE, 1e-300, 1e300, f64::MAX] {
        assert_cover(&assign(&PartitionScheme::Dirichlet(Dirichlet { clients: 10, alpha }), &data, 1).unwrap(), 2000);
    }
}

#[test]
fn natural_clients_are_kept_and_those_without_rows_left_out() {
    let mut data = with_counts(&[3, 3]);
    assert!(message(PartitionScheme::ByColumn(ByColumn {}), &data).contains("`test` does not come with clients"));
    data.clients = Some(vec![3, 0, 3, 1, 1, 3]);
    let assigned = assign(&PartitionScheme::ByColumn(ByColumn {}), &data, 1).unwrap();
    assert_eq!(assigned.clients(), [vec![1], vec![3, 4], vec![0, 2, 5]]);
    assert!(assigned.notes[0].starts_with("1 of the data's clients"), "{:?}", assigned.notes);
    // A client is called by its number in the data, not by its place.
    assert_eq!(assigned.names(), ["0", "1", "3"]);
    data.clients = Some(vec![2, 0, 2, 1, 1, 2]);
    assert!(assign(&PartitionScheme::ByColumn(ByColumn {}), &data, 1).unwrap().names().is_empty());
}

#[test]
fn errors_state_both_numbers_and_a_remedy() {
    let data = with_counts(&[5, 5, 5]);
    assert!(message(PartitionScheme::Iid(Iid { clients: 16 }), &data).contains("16: there are only 15 training rows"));
    assert!(message(PartitionScheme::Iid(Iid { clients: 0 }), &data).contains("at least 1"));
    let labels =
        |clients, labels| PartitionScheme::LabelsPerClient(LabelsPerClient { clients, labels, cut: Cut::Equal });
    assert!(message(labels(2, 1), &data).contains("no client would hold c"));
    assert!(message(labels(2, 4), &data).contains("must be from 1 to 3"));
    assert!(message(labels(2, 0), &data).contains("must be from 1 to 3"));
    let cyclic = |clients, labels| PartitionScheme::CyclicLabels(CyclicLabels { clients, labels });
    assert!(message(cyclic(2, 1), &data).starts_with("partition kind `cyclic-labels`: 2 clients with 1 labels each"));
    assert!(message(cyclic(2, 1), &data).contains("no client would hold c2"));
    assert!(message(cyclic(2, 4), &data).contains("must be from 1 to 3"));
    let ratio = |ratio| PartitionScheme::LabelRatio(LabelRatio { clients: 4, ratio });
    assert!(message(ratio(vec![1.0, 9.0]), &data).contains("two classes, these data have 3"));
    let two = with_counts(&[5, 5]);
    for bad in [vec![1.0], vec![1.0, 2.0, 3.0], vec![-1.0, 2.0], vec![0.0, 0.0], vec![f64::NAN, 1.0]] {
        assert!(message(ratio(bad), &two).contains("two numbers, e.g. [1, 9], or one per client (4)"));
    }
    for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(message(PartitionScheme::Dirichlet(Dirichlet { clients: 2, alpha }), &data).contains("above 0"));
    }
    let mut real = data.clone();
    real.targets = Targets::Real { values: vec![0.0; 15] };
    assert!(message(labels(3, 1), &real).contains("use iid or by-column"));
    assert_cover(&assign(&PartitionScheme::Iid(Iid { clients: 3 }), &real, 1).unwrap(), 15);
}

#[test]
fn configs_have_the_words_of_the_documentation() {
    let (clients, labels) = (3, 2);
    for (text, scheme) in [
        (r#"{"kind":"iid","clients":3,"validation":0.0,"calibration":0.0}"#, PartitionScheme::Iid(Iid { clients })),
        (
            r#"{"kind":"labels-per-client","clients":3,"labels":2,"cut":"equal","validation":0.0,"calibration":0.0}"#,
            PartitionScheme::LabelsPerClient(LabelsPerClient { clients, labels, cut: Cut::Equal }),
        ),
        (
            r#"{"kind":"superclass-labels","clients":3,"labels":2,"validation":0.0,"calibration":0.0}"#,
            PartitionScheme::SuperclassLabels(SuperclassLabels { clients, labels }),
        ),
        (
            r#"{"kind":"pfedgp","clients":3,"labels":2,"validation":0.0,"calibration":0.0}"#,
            PartitionScheme::Pfedgp(Pfedgp { clients, labels }),
        ),
        (
            r#"{"kind":"fedwba-reference","clients":3,"labels":2,"validation":0.0,"calibration":0.0}"#,
            PartitionScheme::FedwbaReference(FedwbaReference { clients, labels }),
        ),
        (
            r#"{"kind":"cyclic-labels","clients":3,"labels":2,"validation":0.0,"calibration":0.0}"#,
            PartitionScheme::CyclicLabels(CyclicLabels { clients, labels }),
        ),
        (
            r#"{"kind":"label-ratio","clients":3,"ratio":[1.0,9.0],"validation":0.0,"calibration":0.0}"#,
            PartitionScheme::LabelRatio(LabelRatio { clients, ratio: vec![1.0, 9.0] }),
        ),
        (
            r#"{"kind":"dirichlet","clients":3,"alpha":0.5,"validation":0.0,"calibration":0.0}"#,
            PartitionScheme::Dirichlet(Dirichlet { clients, alpha: 0.5 }),
        ),
        (r#"{"kind":"by-column","validation":0.0,"calibration":0.0}"#, PartitionScheme::ByColumn(ByColumn {})),
    ] {
        assert!(text.contains(scheme.kind()));
        let config = PartitionConfig::from(scheme);
        assert_eq!(serde_json::from_str::<PartitionConfig>(text).unwrap(), config);
        assert_eq!(serde_json::to_string(&config).unwrap(), text);
    }
    let whole_numbers = r#"{"kind":"label-ratio","clients":30,"ratio":[1,9],"validation":0,"calibration":0}"#;
    let expected =
        PartitionConfig::from(PartitionScheme::LabelRatio(LabelRatio { clients: 30, ratio: vec![1.0, 9.0] }));
    assert_eq!(serde_json::from_str::<PartitionConfig>(whole_numbers).unwrap(), expected);
}

/// FNV-1a over the rows of every client, a client's end marked.
fn fingerprint(partition: &Partition) -> u64 {
    let numbers = partition.clients().iter().flat_map(|rows| rows.iter().map(|&row| row as u64).chain([u64::MAX]));
    numbers
        .flat_map(u64::to_le_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn a_seed_gives_the_same_partition_as_in_0_1() {
    // Computed by the version before clients had validation and test rows of their own.
    let seven = labelled((0..500).map(|row| (row * row + 3 * row + row / 7) % 7).collect(), 7);
    let two = labelled((0..500).map(|row| usize::from((row * row + row / 3) % 5 < 2)).collect(), 2);
    for (config, data, expected) in [
        (PartitionScheme::Iid(Iid { clients: 7 }), &seven, 0x8820_1aa7_eadb_8375),
        (
            PartitionScheme::LabelsPerClient(LabelsPerClient { clients: 9, labels: 3, cut: Cut::Equal }),
            &seven,
            0x14aa_0d7f_c3df_760d,
        ),
        (PartitionScheme::CyclicLabels(CyclicLabels { clients: 9, labels: 3 }), &seven, 0x3500_d2df_2daf_9645),
        (PartitionScheme::LabelRatio(LabelRatio { clients: 6, ratio: vec![1.0, 9.0] }), &two, 0x36aa_7636_b152_96a5),
        (
            PartitionScheme::LabelRatio(LabelRatio { clients: 4, ratio: vec![40.0, 40.0, 10.0, 10.0] }),
            &two,
            0xaea8_9111_5d80_1739,
        ),
        (PartitionScheme::Dirichlet(Dirichlet { clients: 8, alpha: 0.3 }), &seven, 0xda3f_64bd_1f60_cc55),
        (PartitionScheme::Dirichlet(Dirichlet { clients: 100, alpha: 0.01 }), &seven, 0x5c84_232e_ed9a_1109),
    ] {
        assert_eq!(fingerprint(&assign(&config, data, 7).unwrap()), expected, "{config:?}");
        // Nor do rows that are held out change what a client is assigned.
        let held_out = PartitionConfig { scheme: config.clone(), validation: 0.3, calibration: 0.0 };
        let held_out = partition(&held_out, data, &mut ChaCha8Rng::seed_from_u64(7)).unwrap();
        for (client, rows) in assign(&config, data, 7).unwrap().clients().iter().enumerate() {
            assert_eq!(assigned(&held_out, client), *rows);
        }
    }
}

pub(super) fn with_tests(config: &PartitionConfig, train: &Dataset, test: &Dataset, seed: u64) -> Partition {
    let assigned = partition(config, train, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
    assigned.with_tests(config, train, test, &mut ChaCha8Rng::seed_from_u64(seed + 1)).unwrap()
}

/// The classes of some rows, ascending, each once.
pub(super) fn classes_of(data: &Dataset, rows: &[usize]) -> Vec<usize> {
    let mut classes: Vec<usize> = rows.iter().map(|&row| data.labels().unwrap()[row]).collect();
    classes.sort_unstable();
    classes.dedup();
    classes
}

/// CIFAR-100's classes with so many rows each.
fn hundred(rows: usize) -> Dataset {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("cifar100")).unwrap();
        for file in ["train.bin", "test.bin"] {
            std::fs::write(dir.path().join("cifar100").join(file), [0; 3074]).unwrap();
        }
        let normalise = Normalise::None;
        let config = DataConfig::Cifar100(Cifar100 { classes: vec![], normalise, train_limit: 0, test_limit: 0 });
        let data = load(&config, dir.path(), &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        let Targets::Classes { names, .. } = data.train.targets else { panic!() };
        names
    });
    let mut data = with_counts(&[rows; 100]);
    let Targets::Classes { labels, .. } = data.targets else { panic!() };
    data.targets = Targets::Classes { labels, names: NAMES.clone() };
    data
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_classes_of_a_client_are_of_distinct_superclasses(clients in 10usize..60, labels in 10usize..=20, seed: u64) {
        let data = hundred(70);
        let superclasses = data.superclasses().unwrap();
        let assigned = assign(&PartitionScheme::SuperclassLabels(SuperclassLabels { clients, labels }), &data, seed).unwrap();
        assert_cover(&assigned, data.rows());
        for rows in assigned.clients() {
            let held = classes_of(&data, rows);
            prop_assert_eq!(held.len(), labels);
            let mut of: Vec<usize> = held.iter().map(|&class| superclasses[class]).collect();
            of.sort_unstable();
            of.dedup();
            prop_assert_eq!(of.len(), labels);
        }
        // Every class is assigned as often as every other, up to one or two assignments of its superclass.
        let counts = assigned.counts(&data.targets);
        let holders: Vec<usize> = (0..100).map(|c| counts.iter().filter(|counts| counts[c] > 0).count()).collect();
        prop_assert!(holders.iter().max().unwrap() - holders.iter().min().unwrap() <= 2, "{:?}", holders);
    }
}

#[test]
fn a_random_cut_gives_every_holder_a_row_and_unequal_shares() {
    let data = with_counts(&[600; 10]);
    let config = PartitionScheme::LabelsPerClient(LabelsPerClient { clients: 50, labels: 5, cut: Cut::Random });
    let assigned = assign(&config, &data, 1).unwrap();
    assert_cover(&assigned, 6000);
    let counts = assigned.counts(&data.targets);
    assert!(counts.iter().all(|counts| counts.iter().filter(|&&count| count > 0).count() == 5));
    // 25 holders of 600 rows: 24 each in equal shares; of random ones the largest is about 600 H(25)/25 = 92.
    let most = counts.iter().flatten().max().unwrap();
    let least = counts.iter().flatten().filter(|&&count| count > 0).min().unwrap();
    assert!((60..200).contains(most) && *least < 5, "{most} {least}");
}

#[test]
fn pfedgp_divides_a_class_in_similar_shares_and_its_test_rows_in_the_same() {
    let (train, test) = (with_counts(&[5000; 10]), with_counts(&[1000; 10]));
    let config = PartitionConfig {
        scheme: PartitionScheme::Pfedgp(Pfedgp { clients: 10, labels: 2 }),
        validation: 0.2,
        calibration: 0.0,
    };
    let partition = with_tests(&config, &train, &test, 3);
    for client in 0..10 {
        for class in classes_of(&train, &assigned(&partition, client)) {
            let count = |data: &Dataset, rows: &[usize]| {
                rows.iter().filter(|&&row| data.labels().unwrap()[row] == class).count() as f64
            };
            let share = count(&train, &assigned(&partition, client)) / 5000.0;
            // Two holders with weights from 0.4 to 0.6.
            assert!((0.4..=0.6).contains(&share), "{share}");
            assert!((count(&test, partition.test(client)) - 1000.0 * share).abs() <= 1.0);
            assert!((count(&train, partition.validation(client)) - 1000.0 * share).abs() <= 1.0);
        }
    }
}

#[test]
fn impossible_labels_and_shares_are_refused_by_key() {
    let data = with_counts(&[50, 50, 50]);
    let message = message(PartitionScheme::SuperclassLabels(SuperclassLabels { clients: 5, labels: 2 }), &data);
    assert!(message.contains("no superclasses; cifar100 has"), "{message}");
    let assign = |config: PartitionScheme, data: &Dataset| assign(&config, data, 1).unwrap_err().to_string();
    let message = assign(PartitionScheme::SuperclassLabels(SuperclassLabels { clients: 5, labels: 21 }), &hundred(10));
    assert!(message.contains("partition.labels = 21: must be from 1 to 20, the number of superclasses"), "{message}");
    for config in [
        PartitionScheme::Pfedgp(Pfedgp { clients: 5, labels: 4 }),
        PartitionScheme::FedwbaReference(FedwbaReference { clients: 5, labels: 4 }),
    ] {
        let message = assign(config, &data);
        assert!(message.contains("partition.labels = 4: must be from 1 to 3, the number of classes"), "{message}");
    }
    assert!(
        assign(PartitionScheme::Pfedgp(Pfedgp { clients: 1, labels: 1 }), &data)
            .starts_with("partition kind `pfedgp`: 1 clients")
    );
    for validation in [-0.1, 1.0, f64::NAN] {
        let config = PartitionConfig { scheme: PartitionScheme::Iid(Iid { clients: 2 }), validation, calibration: 0.0 };
        let error = partition(&config, &data, &mut ChaCha8Rng::seed_from_u64(1)).unwrap_err().to_string();
        assert!(error.contains("partition.validation") && error.contains("less than 1"), "{error}");
    }
    for (validation, calibration) in [(0.0, -0.1), (0.0, 1.0), (0.0, f64::NAN), (0.5, 0.5)] {
        let config = PartitionConfig { scheme: PartitionScheme::Iid(Iid { clients: 2 }), validation, calibration };
        let error = partition(&config, &data, &mut ChaCha8Rng::seed_from_u64(1)).unwrap_err().to_string();
        assert!(error.contains("partition.calibration") && error.contains("less than 1"), "{error}");
    }
    let config = PartitionScheme::CyclicLabels(CyclicLabels { clients: 3, labels: 1 }).into();
    let assigned = partition(&config, &data, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    let other = assigned.with_tests(&config, &data, &with_counts(&[1, 1]), &mut ChaCha8Rng::seed_from_u64(1));
    assert!(other.unwrap_err().to_string().contains("classes"));
}
