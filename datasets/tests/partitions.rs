//! Every partition is a disjoint cover without empty clients, seeded, and what its name says.

use fedstein_datasets::{DataError, Dataset, Partition, PartitionConfig, Targets, partition};
use ndarray::Array2;
use proptest::prelude::*;
use rand::{SeedableRng, rngs::ChaCha8Rng};

fn labelled(labels: Vec<usize>, classes: usize) -> Dataset {
    Dataset {
        name: "test".into(),
        features: Array2::zeros((labels.len(), 1)),
        feature_shape: vec![1],
        feature_names: None,
        targets: Targets::Classes { labels, names: (0..classes).map(|c| format!("c{c}")).collect() },
        clients: None,
    }
}

/// `counts[c]` rows of class c, one class after the other.
fn with_counts(counts: &[usize]) -> Dataset {
    let labels = counts.iter().enumerate().flat_map(|(class, &n)| std::iter::repeat_n(class, n)).collect();
    labelled(labels, counts.len())
}

fn deal(config: &PartitionConfig, data: &Dataset, seed: u64) -> Result<Partition, DataError> {
    partition(config, data, &mut ChaCha8Rng::seed_from_u64(seed))
}

fn message(config: PartitionConfig, data: &Dataset) -> String {
    deal(&config, data, 1).unwrap_err().to_string()
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

fn any_config() -> impl Strategy<Value = PartitionConfig> {
    let clients = 1usize..60;
    prop_oneof![
        clients.clone().prop_map(|clients| PartitionConfig::Iid { clients }),
        (clients.clone(), 1usize..8).prop_map(|(clients, labels)| PartitionConfig::LabelsPerClient { clients, labels }),
        (clients.clone(), 1usize..8).prop_map(|(clients, labels)| PartitionConfig::CyclicLabels { clients, labels }),
        (clients.clone(), 0.0f64..10.0, 0.1f64..10.0)
            .prop_map(|(clients, a, b)| { PartitionConfig::LabelRatio { clients, ratio: vec![a, b] } }),
        proptest::collection::vec(0.0f64..50.0, 3..60)
            .prop_map(|ratio| { PartitionConfig::LabelRatio { clients: ratio.len(), ratio } }),
        (clients, -4.0f64..4.0)
            .prop_map(|(clients, log)| PartitionConfig::Dirichlet { clients, alpha: 10f64.powf(log) }),
    ]
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
        match deal(&config, &data, seed) {
            Ok(dealt) => {
                assert_cover(&dealt, data.rows());
                prop_assert_eq!(&dealt, &deal(&config, &data, seed).unwrap());
                let counts = dealt.counts(&data.targets);
                prop_assert_eq!(counts.iter().flatten().sum::<usize>(), data.rows());
            }
            Err(error) => prop_assert!(error.to_string().contains("partition"), "{}", error),
        }
    }

    #[test]
    fn a_client_has_the_labels_it_was_promised(
        clients in 1usize..40, labels in 1usize..10, classes in 2usize..11, seed: u64,
    ) {
        prop_assume!(labels <= classes && clients * labels >= classes);
        let data = with_counts(&vec![200; classes]);
        for config in [PartitionConfig::LabelsPerClient { clients, labels }, PartitionConfig::CyclicLabels { clients, labels }] {
            let dealt = deal(&config, &data, seed).unwrap();
            assert_cover(&dealt, data.rows());
            for counts in dealt.counts(&data.targets) {
                prop_assert_eq!(counts.iter().filter(|&&count| count > 0).count(), labels);
            }
            // A class's rows are shared equally by its holders.
            let counts = dealt.counts(&data.targets);
            for class in 0..classes {
                let held: Vec<usize> = counts.iter().map(|c| c[class]).filter(|&count| count > 0).collect();
                prop_assert!(held.iter().max().unwrap() - held.iter().min().unwrap() <= 1);
            }
        }
    }
}

#[test]
fn another_seed_deals_other_rows() {
    let data = with_counts(&[100, 100]);
    for config in [
        PartitionConfig::Iid { clients: 4 },
        PartitionConfig::LabelsPerClient { clients: 4, labels: 1 },
        PartitionConfig::CyclicLabels { clients: 4, labels: 1 },
        PartitionConfig::LabelRatio { clients: 4, ratio: vec![1.0, 9.0] },
        PartitionConfig::Dirichlet { clients: 4, alpha: 1.0 },
    ] {
        assert_ne!(deal(&config, &data, 1).unwrap(), deal(&config, &data, 2).unwrap(), "{config:?}");
    }
}

#[test]
fn iid_blocks_have_the_sizes_of_the_specification() {
    let dealt = deal(&PartitionConfig::Iid { clients: 7 }, &with_counts(&[50, 50]), 1).unwrap();
    let sizes: Vec<usize> = dealt.clients().iter().map(Vec::len).collect();
    // floor(n(k+1)/K) - floor(nk/K) for n = 100, K = 7
    assert_eq!(sizes, [14, 14, 14, 15, 14, 14, 15]);
}

#[test]
fn one_to_nine_is_exact_and_alternates() {
    // 80 % of Covertype; the client-selection paper deals it to 30 and to 120 clients.
    let data = with_counts(&[226_641, 238_169]);
    for clients in [30, 120] {
        let config = PartitionConfig::LabelRatio { clients, ratio: vec![1.0, 9.0] };
        let dealt = deal(&config, &data, 1).unwrap();
        // Every row is used, none is left out to make the mix exact.
        assert_cover(&dealt, data.rows());
        assert!(dealt.notes.is_empty(), "{:?}", dealt.notes);
        for (client, counts) in dealt.counts(&data.targets).iter().enumerate() {
            // Both counts are rounded to whole rows.
            let (major, minor) = (counts[client % 2] as f64, counts[1 - client % 2] as f64);
            let tenth = (major + minor) / 10.0;
            assert!((minor - tenth).abs() < 1.0, "client {client} of {clients}: {major} to {minor}");
        }
    }
}

#[test]
fn cyclic_hands_follow_the_order_of_the_classes_that_have_rows() {
    // Digits 0 to 8 of ten, as in the client-selection paper: class 9 is nobody's.
    let mut counts = vec![60; 9];
    counts.push(0);
    let data = with_counts(&counts);
    let held = |clients, labels| -> Vec<Vec<usize>> {
        let dealt = deal(&PartitionConfig::CyclicLabels { clients, labels }, &data, 1).unwrap();
        assert_cover(&dealt, data.rows());
        let counts = dealt.counts(&data.targets);
        counts.iter().map(|counts| (0..10).filter(|&class| counts[class] > 0).collect()).collect()
    };
    for clients in [27, 120] {
        for (client, hand) in held(clients, 3).iter().enumerate() {
            let first = 3 * (client % 3);
            assert_eq!(*hand, [first, first + 1, first + 2], "client {client}");
        }
    }
    assert_eq!(held(3, 4), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![0, 1, 2, 8]]);
    let dealt = deal(&PartitionConfig::CyclicLabels { clients: 27, labels: 3 }, &data, 1).unwrap();
    // 60 rows a class, nine holders: 6 or 7 each
    assert!(dealt.counts(&data.targets).iter().flatten().all(|count| [0, 6, 7].contains(count)));
}

#[test]
fn a_ratio_that_no_cover_reaches_is_approached_and_noted() {
    let data = with_counts(&[990, 10]);
    let dealt = deal(&PartitionConfig::LabelRatio { clients: 4, ratio: vec![1.0, 9.0] }, &data, 1).unwrap();
    assert_cover(&dealt, 1000);
    assert!(dealt.notes[0].contains("990 rows of class c0 and 10 of class c1"), "{:?}", dealt.notes);
}

#[test]
fn figure_5_of_the_dsvgd_paper_deals_40_40_10_10_percent() {
    let config = PartitionConfig::LabelRatio { clients: 4, ratio: vec![40.0, 40.0, 10.0, 10.0] };
    let dealt = deal(&config, &with_counts(&[1000, 2000]), 1).unwrap();
    let counts = dealt.counts(&with_counts(&[1000, 2000]).targets);
    assert_eq!(counts, [[400, 200], [400, 200], [100, 800], [100, 800]]);
}

#[test]
fn dirichlet_with_many_clients_ends_and_says_who_was_short() {
    let data = with_counts(&[100; 3]);
    let dealt = deal(&PartitionConfig::Dirichlet { clients: 300, alpha: 0.001 }, &data, 1).unwrap();
    assert_cover(&dealt, 300);
    assert!(dealt.clients().iter().all(|rows| rows.len() == 1));
    assert!(dealt.notes[0].contains("had no rows (alpha = 0.001, 300 clients"), "{:?}", dealt.notes[0]);
    assert!(dealt.notes.len() <= 21);
    assert!(dealt.table(&data.targets).contains("note: client"));
}

#[test]
fn a_large_alpha_deals_evenly_and_a_small_one_does_not() {
    let data = with_counts(&[1000, 1000]);
    let spread = |alpha| {
        let dealt = deal(&PartitionConfig::Dirichlet { clients: 10, alpha }, &data, 1).unwrap();
        let sizes: Vec<usize> = dealt.clients().iter().map(Vec::len).collect();
        sizes.iter().max().unwrap() - sizes.iter().min().unwrap()
    };
    // The sd of a share is about sqrt(0.09 / (10 alpha)); at 1e4 that is one row of a thousand.
    assert!(spread(1e4) < 30, "{}", spread(1e4));
    assert!(spread(0.1) > 200, "{}", spread(0.1));
    for alpha in [f64::MIN_POSITIVE, 1e-300, 1e300, f64::MAX] {
        assert_cover(&deal(&PartitionConfig::Dirichlet { clients: 10, alpha }, &data, 1).unwrap(), 2000);
    }
}

#[test]
fn natural_clients_are_kept_and_those_without_rows_left_out() {
    let mut data = with_counts(&[3, 3]);
    assert!(message(PartitionConfig::ByColumn {}, &data).contains("`test` does not come with clients"));
    data.clients = Some(vec![3, 0, 3, 1, 1, 3]);
    let dealt = deal(&PartitionConfig::ByColumn {}, &data, 1).unwrap();
    assert_eq!(dealt.clients(), [vec![1], vec![3, 4], vec![0, 2, 5]]);
    assert!(dealt.notes[0].starts_with("1 of the data's clients"), "{:?}", dealt.notes);
}

#[test]
fn refusals_say_both_numbers_and_what_would_be_right() {
    let data = with_counts(&[5, 5, 5]);
    assert!(message(PartitionConfig::Iid { clients: 16 }, &data).contains("16: there are only 15 training rows"));
    assert!(message(PartitionConfig::Iid { clients: 0 }, &data).contains("at least 1"));
    let labels = |clients, labels| PartitionConfig::LabelsPerClient { clients, labels };
    assert!(message(labels(2, 1), &data).contains("nobody would hold c"));
    assert!(message(labels(2, 4), &data).contains("must be from 1 to 3"));
    assert!(message(labels(2, 0), &data).contains("must be from 1 to 3"));
    let cyclic = |clients, labels| PartitionConfig::CyclicLabels { clients, labels };
    assert!(message(cyclic(2, 1), &data).starts_with("partition `cyclic-labels`: 2 clients with 1 labels each"));
    assert!(message(cyclic(2, 1), &data).contains("nobody would hold c2"));
    assert!(message(cyclic(2, 4), &data).contains("must be from 1 to 3"));
    let ratio = |ratio| PartitionConfig::LabelRatio { clients: 4, ratio };
    assert!(message(ratio(vec![1.0, 9.0]), &data).contains("two classes, these data have 3"));
    let two = with_counts(&[5, 5]);
    for bad in [vec![1.0], vec![1.0, 2.0, 3.0], vec![-1.0, 2.0], vec![0.0, 0.0], vec![f64::NAN, 1.0]] {
        assert!(message(ratio(bad), &two).contains("two numbers, e.g. [1, 9], or one a client (4)"));
    }
    for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(message(PartitionConfig::Dirichlet { clients: 2, alpha }, &data).contains("above 0"));
    }
    let mut real = data.clone();
    real.targets = Targets::Real { values: vec![0.0; 15] };
    assert!(message(labels(3, 1), &real).contains("use iid or by-column"));
    assert_cover(&deal(&PartitionConfig::Iid { clients: 3 }, &real, 1).unwrap(), 15);
}

#[test]
fn configs_have_the_words_of_the_documentation() {
    for (text, config) in [
        (r#"{"kind":"iid","clients":3}"#, PartitionConfig::Iid { clients: 3 }),
        (
            r#"{"kind":"labels-per-client","clients":3,"labels":2}"#,
            PartitionConfig::LabelsPerClient { clients: 3, labels: 2 },
        ),
        (r#"{"kind":"cyclic-labels","clients":3,"labels":2}"#, PartitionConfig::CyclicLabels { clients: 3, labels: 2 }),
        (
            r#"{"kind":"label-ratio","clients":3,"ratio":[1.0,9.0]}"#,
            PartitionConfig::LabelRatio { clients: 3, ratio: vec![1.0, 9.0] },
        ),
        (r#"{"kind":"dirichlet","clients":3,"alpha":0.5}"#, PartitionConfig::Dirichlet { clients: 3, alpha: 0.5 }),
        (r#"{"kind":"by-column"}"#, PartitionConfig::ByColumn {}),
    ] {
        assert_eq!(serde_json::from_str::<PartitionConfig>(text).unwrap(), config);
        assert_eq!(serde_json::to_string(&config).unwrap(), text);
        assert!(text.contains(config.kind()));
    }
    let whole_numbers = r#"{"kind":"label-ratio","clients":30,"ratio":[1,9]}"#;
    let expected = PartitionConfig::LabelRatio { clients: 30, ratio: vec![1.0, 9.0] };
    assert_eq!(serde_json::from_str::<PartitionConfig>(whole_numbers).unwrap(), expected);
}
