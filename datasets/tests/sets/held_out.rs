//! The rows that clients do not train on: their test rows, and those for validation and calibration.

use super::partitions::{assign, assigned, classes_of, with_counts, with_tests};
use fedstein_datasets::partition::{ByColumn, CyclicLabels, FedwbaReference, Iid, LabelRatio, PartitionScheme};
use fedstein_datasets::{PartitionConfig, Targets, partition};
use rand::{SeedableRng, rngs::ChaCha8Rng};
use std::collections::HashSet;

#[test]
fn the_reference_split_of_fedwba_gives_the_same_rows_to_all_even_clients() {
    let (train, test) = (with_counts(&[6000; 10]), with_counts(&[1000; 10]));
    let config = PartitionConfig {
        scheme: PartitionScheme::FedwbaReference(FedwbaReference { clients: 51, labels: 5 }),
        validation: 0.1,
        calibration: 0.1,
    };
    let partition = with_tests(&config, &train, &test, 1);
    for client in 0..51 {
        let first = client % 2;
        assert_eq!(partition.clients()[client], partition.clients()[first]);
        assert_eq!(partition.validation(client), partition.validation(first));
        assert_eq!(partition.calibration(client), partition.calibration(first));
        assert_eq!(assigned(&partition, client).len(), 10_000);
        assert_eq!(classes_of(&train, &assigned(&partition, client)), (5 * first..5 * first + 5).collect::<Vec<_>>());
        assert_eq!(partition.test(client).len(), 5000);
    }
    let notes = partition.notes.join("\n");
    assert!(
        notes.contains("not disjoint: 26 clients hold the same 10000 rows of the classes c0, c1, c2, c3, c4"),
        "{notes}"
    );
    assert!(
        notes.contains("not disjoint: 25 clients")
            && notes.contains("40000 of 60000 training rows belong to no client"),
        "{notes}"
    );
    // More clients than rows are allowed where rows are shared.
    assert_eq!(
        assign(&PartitionScheme::FedwbaReference(FedwbaReference { clients: 20, labels: 1 }), &with_counts(&[1, 1]), 1)
            .unwrap()
            .clients()
            .len(),
        20
    );
}

#[test]
fn a_client_is_tested_on_the_largest_sample_with_its_class_proportions() {
    let (train, test) = (with_counts(&[4000, 4000]), with_counts(&[300, 500]));
    let config = PartitionScheme::LabelRatio(LabelRatio { clients: 4, ratio: vec![1.0, 9.0] }).into();
    let partition = with_tests(&config, &train, &test, 1);
    for client in 0..4 {
        let ones = partition.test(client).iter().filter(|&&row| test.labels().unwrap()[row] == 1).count();
        let zeros = partition.test(client).len() - ones;
        // 9 : 1 of 300 and 500: all 300 and a ninth of them; 1 : 9: all 500 and a ninth.
        assert_eq!((zeros, ones), if client % 2 == 0 { (300, 33) } else { (55, 500) });
    }
}

#[test]
fn clients_without_test_rows_are_named_and_those_of_a_column_keep_their_own() {
    let mut train = with_counts(&[3, 3]);
    train.clients = Some(vec![3, 0, 3, 1, 1, 3]);
    let mut test = with_counts(&[2, 2]);
    let config = PartitionConfig::from(PartitionScheme::ByColumn(ByColumn {}));
    let assigned = || partition(&config, &train, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    let error =
        assigned().with_tests(&config, &train, &test, &mut ChaCha8Rng::seed_from_u64(1)).unwrap_err().to_string();
    assert!(error.contains("`by-column`") && error.contains("the test rows have no clients"), "{error}");
    test.clients = Some(vec![3, 3, 0, 2]);
    let partition = with_tests(&config, &train, &test, 1);
    assert_eq!([partition.test(0), partition.test(1), partition.test(2)], [&[2][..], &[], &[0, 1]]);
    assert!(partition.notes.contains(&"no test rows for client 1".to_owned()), "{:?}", partition.notes);

    let config = PartitionScheme::CyclicLabels(CyclicLabels { clients: 2, labels: 1 }).into();
    let partition = with_tests(&config, &with_counts(&[3, 3]), &with_counts(&[2, 0]), 1);
    assert_eq!([partition.test(0).len(), partition.test(1).len()], [2, 0]);
    let notes = partition.notes.join("\n");
    assert!(notes.contains("no test rows of the classes c1") && notes.contains("no test rows for client 1"), "{notes}");
}

#[test]
fn iid_clients_of_a_regression_are_tested_on_all_test_rows() {
    let mut data = with_counts(&[6]);
    data.targets = Targets::Real { values: vec![0.5; 6] };
    let config =
        PartitionConfig { scheme: PartitionScheme::Iid(Iid { clients: 2 }), validation: 0.34, calibration: 0.0 };
    let partition = with_tests(&config, &data, &data, 1);
    let held_out = [partition.validation(0), partition.validation(1)].concat();
    assert_eq!(partition.pooled(6), (0..6).filter(|row| !held_out.contains(row)).collect::<Vec<_>>());
    for client in 0..2 {
        assert_eq!(partition.test(client), [0, 1, 2, 3, 4, 5]);
        assert_eq!((partition.clients()[client].len(), partition.validation(client).len()), (2, 1));
    }
}

#[test]
fn a_row_of_several_clients_is_held_out_of_all_of_them() {
    // Clients 0 and 3 have the classes 0, 1, 2 and 9, 0, 1: their rows are others, and some are the same.
    let train = with_counts(&[140; 10]);
    let config = PartitionConfig {
        scheme: PartitionScheme::FedwbaReference(FedwbaReference { clients: 4, labels: 3 }),
        validation: 0.2,
        calibration: 0.1,
    };
    let partition = partition(&config, &train, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    let rows = |of: &dyn Fn(usize) -> Vec<usize>| (0..4).flat_map(of).collect::<HashSet<usize>>();
    let trained = rows(&|client| partition.clients()[client].clone());
    let validation = rows(&|client| partition.validation(client).to_vec());
    let calibration = rows(&|client| partition.calibration(client).to_vec());
    assert!(trained.is_disjoint(&validation) && trained.is_disjoint(&calibration));
    assert!(validation.is_disjoint(&calibration));
    for client in 0..4 {
        let [held, of_calibration] = [partition.validation(client), partition.calibration(client)].map(<[usize]>::len);
        assert!((81..=87).contains(&held) && (39..=45).contains(&of_calibration), "{client}: {held}, {of_calibration}");
        assert_eq!(assigned(&partition, client).len(), 420);
    }
    let notes = partition.notes.join("\n");
    assert!(notes.contains("not disjoint: 280 rows belong to clients that have other classes besides"), "{notes}");
}
