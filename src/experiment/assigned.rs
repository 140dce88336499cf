//! The rows of an experiment, assigned to its clients.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::datasets::moments::ColumnSum;
use crate::datasets::{self, Partition, Rotation, TargetScale, Targets, TrainTest, note_on_equal_rows};
use crate::error::RunError;
use crate::federation::prior_correction::PriorCorrection;
use crate::protocol::ClientId;
use crate::random::{Purpose, Streams};

use super::assemble::with_evaluated_rows;
use super::config::Config;
use super::{class_weights, prior_correction, rare_classes, rotation};

/// Rows in the form that models take, and whose they are.
pub(super) struct Assigned {
    pub data: TrainTest,
    pub partition: Partition,
    /// The basis of the features, where `data.rotate` asks for one.
    pub rotation: Option<Rotation>,
    /// How often a training row of each class counts, `[C]`; `None` for once.
    pub class_weights: Option<Vec<f64>>,
    /// What corrects the predictions of each client, where that is asked for.
    pub corrections: BTreeMap<ClientId, PriorCorrection>,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
}

/// A real target in the scale of the rows that clients train on, as at sites: without those that are held out for validation
/// or calibration. A scale that a program has chosen itself stays.
fn scaled_by_trained_rows(mut data: TrainTest, partition: &Partition) -> TrainTest {
    let Targets::Real { values } = &data.train.targets else { return data };
    let trained: BTreeSet<usize> = partition.clients().iter().flatten().copied().collect();
    if trained.len() < values.len() && data.normalisation.target == TargetScale::of(&data.train.targets) {
        let values = trained.into_iter().map(|row| values[row]).collect();
        data.normalisation.target = TargetScale::of(&Targets::Real { values });
    }
    data
}

/// The note on a real target that is the same number in all rows that clients train on; `None` where it is not.
fn note_on_constant(targets: &Targets, partition: &Partition) -> Option<String> {
    let Targets::Real { values } = targets else { return None };
    let trained = partition.clients().iter().flatten().map(|row| values[*row]);
    TargetScale::constant_note(&[&ColumnSum::of(trained)])
}

/// Reads and assigns the rows that all of these configs have, and builds the model of each for them: what is wrong with them is
/// found without a run. `[data]` and `[partition]` of the configs are the same; the seed of the first counts.
///
/// # Errors
/// Those of a run before its first round, with the index of the config.
pub(crate) fn check_rows(configs: &[&Config], data_dir: &Path) -> Result<(), (usize, RunError)> {
    let Some(first) = configs.first() else { return Ok(()) };
    let assigned = assigned(first, None, data_dir, Streams::new(first.seed)).map_err(|error| (0, error))?;
    let check = |(at, config): (usize, &&Config)| config.model(&assigned.data.train).map_err(|error| (at, error));
    configs.iter().enumerate().try_for_each(|of| check(of).map(drop))
}

/// Reads the data set of `[data]`, or takes `own` rows, and assigns them to clients as `[partition]` says.
///
/// # Errors
/// The data cannot be read, partitioned or rotated.
pub(super) fn assigned(
    config: &Config,
    own: Option<&TrainTest>,
    data_dir: &Path,
    streams: Streams,
) -> Result<Assigned, RunError> {
    let data = match own {
        Some(data) => data.clone(),
        None => datasets::load(&config.data()?, data_dir, &mut streams.rng(Purpose::Data, 0, 0))?,
    };
    let scheme = config.partition()?;
    let partition = datasets::partition(&scheme, &data.train, &mut streams.rng(Purpose::Partition, 0, 0))?;
    let data = scaled_by_trained_rows(data, &partition);
    let data = with_evaluated_rows(config, data, &partition)?;
    let (trained, evaluated) = (&data.train.targets, &data.test.targets);
    let rare = rare_classes::note(config, trained, &data.test)?;
    let untrained = rare_classes::note_on_untrained(trained, evaluated);
    let constant = note_on_constant(trained, &partition);
    // Of a table its own reader says it.
    let equal = own.and_then(|data| note_on_equal_rows(&data.train, &data.test));
    // The test rows have a random stream of their own, so that they do not depend on how many numbers the partition
    // drew.
    let mut rng = streams.rng(Purpose::Partition, 1, 0);
    let partition = partition.with_tests(&scheme, &data.train, &data.test, &mut rng)?;
    let names = match &data.train.targets {
        Targets::Classes { names, .. } => names.as_slice(),
        _ => &[],
    };
    let rows = partition.counts(&data.train.targets);
    let counts = || Ok(rows.clone());
    let (class_weights, weighted) = class_weights::of(config, counts, names)?.unzip();
    let (prior, corrected) = prior_correction::class_prior(config, counts, class_weights.as_deref())?.unzip();
    let corrections = prior_correction::of_clients(rows.into_iter().enumerate(), prior.as_ref());
    let notes = data
        .notes
        .iter()
        .chain(&partition.notes)
        .chain(weighted.iter().flatten())
        .chain(&corrected)
        .chain(&rare)
        .chain(&untrained)
        .chain(&constant)
        .chain(&equal)
        .cloned()
        .collect();
    let rotation = rotation::of(config, &data, &partition)?;
    let data = match &rotation {
        Some(rotation) => rotation::applied(rotation, data)?,
        None => data,
    };
    Ok(Assigned { data, partition, rotation, class_weights, corrections, notes })
}
