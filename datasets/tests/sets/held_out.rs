//! The rows that clients do not train on: their test rows, and those for validation and calibration.

use super::partitions::{
    any_config, assign, assigned, assigned_or_refused, classes_of, labelled, with_counts, with_tests,
};
use fedstein_datasets::partition::{ByColumn, CyclicLabels, FedwbaReference, Iid, LabelRatio, PartitionScheme};
use fedstein_datasets::{Dataset, Partition, PartitionConfig, Targets, partition};
use proptest::prelude::*;
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

#[test]
fn rows_of_a_class_with_few_rows_at_each_client_are_held_out_in_its_share() {
    // 30 clients with 18 rows of one class and 2 of the other, of which a fifth of the rows is 4 at each and 12 in all.
    let data = Dataset {
        clients: Some((0..600).map(|row| row / 20).collect()),
        client_names: Some((0..30).map(|client| format!("h{client}")).collect()),
        ..labelled((0..600).map(|row| usize::from(row % 20 >= 18)).collect(), 2)
    };
    let held = |seed: u64, of: fn(&Partition, usize) -> &[usize], (validation, calibration): (f64, f64)| {
        let config = PartitionConfig { scheme: PartitionScheme::ByColumn(ByColumn {}), validation, calibration };
        let partition = partition(&config, &data, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
        let rows: Vec<usize> = (0..30).flat_map(|client| of(&partition, client).to_vec()).collect();
        assert_eq!(rows.len(), 120);
        rows.iter().filter(|row| *row % 20 >= 18).count()
    };
    let seeds = 1..=40;
    let validation: usize = seeds.clone().map(|seed| held(seed, Partition::validation, (0.2, 0.0))).sum();
    let calibration: usize = seeds.map(|seed| held(seed, Partition::calibration, (0.25, 0.2))).sum();
    // At each client one of the two at most, with the probability 0.4: 12 ± 2.7 in all.
    for held in [validation, calibration] {
        assert!((held as f64 / 40.0 - 12.0).abs() < 2.0, "{held}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn training_and_validation_rows_are_those_assigned_and_one_row_stays(
        config in any_config(),
        labels in (2usize..7).prop_flat_map(|classes| {
            (Just(classes), proptest::collection::vec(0..classes, 1..300))
        }),
        share in 0.0f64..1.0,
        seed: u64,
    ) {
        let data = labelled(labels.1, labels.0);
        let Some(all) = assigned_or_refused(&config, &data, seed)? else { return Ok(()) };
        let config = PartitionConfig { scheme: config, validation: share, calibration: 0.0 };
        let held = partition(&config, &data, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
        for (client, rows) in all.clients().iter().enumerate() {
            prop_assert_eq!(&assigned(&held, client), rows);
            prop_assert!(!held.clients()[client].is_empty());
            let expected = ((rows.len() as f64 * share + 0.5) as usize).min(rows.len() - 1);
            prop_assert_eq!(held.validation(client).len(), expected);
            // Every class gives its share of the rows that are held out, to within a row.
            let counts = |rows: &[usize], class| rows.iter().filter(|&&row| data.labels().unwrap()[row] == class).count();
            for class in 0..labels.0 {
                let (out, of) = (counts(held.validation(client), class) as f64, counts(rows, class) as f64);
                prop_assert!((out - of * share).abs() <= 1.5, "{} of {} at {}", out, of, share);
            }
        }
        prop_assert_eq!(&held, &partition(&config, &data, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap());
    }

    #[test]
    fn calibration_rows_are_neither_trained_nor_validated_on_and_leave_the_validation_rows_as_they_were(
        config in any_config(),
        labels in (2usize..8).prop_flat_map(|classes| {
            (Just(classes), proptest::collection::vec(0..classes, 1..300))
        }),
        (validation, calibration) in (0.0f64..0.5, 0.0f64..0.5),
        seed: u64,
    ) {
        let data = labelled(labels.1, labels.0);
        let Some(all) = assigned_or_refused(&config, &data, seed)? else { return Ok(()) };
        let with = |calibration| {
            let config = PartitionConfig { scheme: config.clone(), validation, calibration };
            partition(&config, &data, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap()
        };
        let (without, held) = (with(0.0), with(calibration));
        prop_assert_eq!(&held, &with(calibration));
        for (client, rows) in all.clients().iter().enumerate() {
            // Each row once: `assigned` lists training, validation and calibration rows.
            prop_assert_eq!(&assigned(&held, client), rows);
            prop_assert_eq!(held.validation(client), without.validation(client));
            let kept = rows.len() - held.validation(client).len();
            let expected = ((rows.len() as f64 * calibration + 0.5) as usize).min(kept - 1);
            prop_assert_eq!(held.calibration(client).len(), expected);
            let counts = |rows: &[usize], class| rows.iter().filter(|&&row| data.labels().unwrap()[row] == class).count();
            for class in 0..labels.0 {
                let (out, of) = (counts(held.calibration(client), class) as f64, counts(rows, class) as f64);
                prop_assert!((out - of * calibration).abs() <= 3.0, "{} of {} at {}", out, of, calibration);
            }
        }
        let calibrating = held.calibrating();
        prop_assert!(held.pooled(data.rows()).iter().all(|row| calibrating.binary_search(row).is_err()));
    }

    #[test]
    fn a_client_is_tested_on_exactly_the_classes_assigned_to_it(
        config in any_config(),
        (classes, train, test) in (2usize..7).prop_flat_map(|classes| {
            let labels = |least| proptest::collection::vec(0..classes, least..200);
            (Just(classes), labels(1), labels(0))
        }),
        validation in 0.0f64..0.9,
        seed in 0u64..1_000_000,
    ) {
        let (train, test) = (labelled(train, classes), labelled(test, classes));
        if assigned_or_refused(&config, &train, seed)?.is_none() { return Ok(()) }
        let label = matches!(config, PartitionScheme::LabelsPerClient(_) | PartitionScheme::CyclicLabels(_));
        let everything = matches!(config, PartitionScheme::Iid(_));
        let shared = matches!(config, PartitionScheme::Pfedgp(_));
        let config = PartitionConfig { scheme: config, validation, calibration: 0.0 };
        let partition = with_tests(&config, &train, &test, seed);
        let mut seen = vec![0; test.rows()];
        for client in 0..partition.clients().len() {
            let rows = partition.test(client);
            prop_assert!(rows.windows(2).all(|pair| pair[0] < pair[1]));
            rows.iter().for_each(|&row| seen[row] += 1);
            let held = classes_of(&train, &assigned(&partition, client));
            if everything {
                prop_assert_eq!(rows.len(), test.rows());
            } else {
                prop_assert!(classes_of(&test, rows).iter().all(|class| held.contains(class)));
            }
            if label {
                let all = (0..test.rows()).filter(|&row| held.contains(&test.labels().unwrap()[row]));
                prop_assert_eq!(rows, all.collect::<Vec<_>>());
            }
        }
        if shared {
            // Disjoint, and no row of a class that is assigned is left out.
            let assigned = classes_of(&train, &(0..train.rows()).collect::<Vec<_>>());
            for (row, times) in seen.into_iter().enumerate() {
                prop_assert_eq!(times, usize::from(assigned.contains(&test.labels().unwrap()[row])));
            }
        }
        prop_assert_eq!(&partition, &with_tests(&config, &train, &test, seed));
    }
}
