//! The rows of a site as it reads them: which of them it trains on, and which it holds out.

use std::collections::BTreeSet;

use ndarray::{ArrayView1, Axis};

use super::config::{SiteConfig, SiteData, SiteLimits, Tell};
use super::rows_key::{Key, key};
use crate::datasets::columns::{CellKind, Columns};
use crate::datasets::share::rounded;
use crate::datasets::source::{Cells, HeldOutFiles};
use crate::datasets::split::of_size;
use crate::datasets::{DataError, Dataset, note_on_groups, note_on_shared_groups, unit_count};
use crate::random::{Purpose, Streams};
use crate::report::quoted;

/// The rows of a site in their own units, as cells, and the fingerprint of the file that they come from.
#[derive(Debug, Clone)]
pub struct SiteRows {
    /// The training rows.
    pub train: Dataset,
    /// The rows held out to choose settings with.
    pub validation: Dataset,
    /// The rows held out to calibrate probabilities on.
    pub calibration: Dataset,
    /// The test rows.
    pub test: Dataset,
    /// What the cells are.
    pub columns: Columns,
    /// What was left out of the files as they were read, one sentence each.
    pub notes: Vec<String>,
    /// The sha256 of the file `data.path`, in hexadecimal digits.
    pub sha256: String,
    /// The sha256 of what all rows follow from: the contents of the files, and the keys by which they are read.
    pub fingerprint: String,
    /// The key under which they are not [kept](Self::keep) yet.
    pub(super) unkept: Option<String>,
}

impl SiteRows {
    /// Whether a server may be told what there is in the columns of texts; also where there are none. That of
    /// `data.name_column` has the site's name, which is told in any case.
    pub fn may_tell_texts(&self, site: &SiteConfig) -> bool {
        site.tell.categories || self.secret_texts(site).next().is_none()
    }

    /// The columns of texts but that of `data.name_column`.
    fn secret_texts(&self, site: &SiteConfig) -> impl Iterator<Item = usize> {
        let kinds = &self.columns.kinds;
        let of_name = kinds.len().checked_sub(1).filter(|_| !site.data.name_column.is_empty());
        let is_secret = move |(at, kind): &(usize, &CellKind)| **kind == CellKind::Category && Some(*at) != of_name;
        kinds.iter().enumerate().filter(is_secret).map(|(at, _)| at)
    }

    /// The columns of texts of which fewer training rows, or groups, than `tell.min_rows` have a value, with their number: their
    /// texts are not told, whatever else is.
    pub fn few_texts(&self, site: &SiteConfig) -> Vec<(usize, usize)> {
        let with_value = |at: usize| (at, units_with_value(self.train.features.column(at), &self.train));
        self.secret_texts(site).map(with_value).filter(|(_, units)| *units < site.tell.min_rows).collect()
    }

    /// Checks that the rows with so many features are no more numbers than the site computes with.
    ///
    /// # Errors
    /// They are more than `limits.numbers`.
    pub fn must_hold(&self, width: usize, limits: SiteLimits) -> Result<(), String> {
        let sets = [&self.train, &self.validation, &self.calibration, &self.test];
        let rows: usize = sets.iter().map(|rows| rows.rows()).sum();
        match rows.checked_mul(width) {
            Some(numbers) if numbers <= limits.numbers => Ok(()),
            _ => Err(format!(
                "the server asks for {width} features of this site's rows: more than limits.numbers of this site, {}",
                limits.numbers
            )),
        }
    }

    /// Reads a site's rows. Without a file of test rows they are split by the site's index alone, so that a test row of
    /// one run is not a training row of the next.
    ///
    /// # Errors
    /// A file is missing or damaged, has no such column, or does not fit the task.
    pub fn read(site: &SiteConfig) -> Result<Self, DataError> {
        Self::read_as(site, key(site)?)
    }

    /// The rows whose files had this key before they were read.
    pub(super) fn read_as(site: &SiteConfig, key: Key) -> Result<Self, DataError> {
        let mut rng = Streams::new(0).rng(Purpose::Data, 0, site.index);
        let SiteData { validation_path, validation_fraction, calibration_path, calibration_fraction, .. } = &site.data;
        let files = HeldOutFiles { validation: validation_path, calibration: calibration_path };
        let mut cells = site.data.table().site_rows(files, &mut rng)?;
        if !site.data.name_column.is_empty() {
            cells = cells.with_name(&site.data.path, &site.data.name_column, &site.name)?;
        }
        let Cells { train, test, validation, calibration, columns, mut notes, .. } = cells;
        let all = unit_count(&train);
        // Rows of a file, or a share of all training rows, drawn by a stream of its own.
        let hold_out = |file: Option<Dataset>, train: Dataset, share: f64, stream: usize| {
            if let Some(rows) = file {
                return (train, rows);
            }
            let size = rounded(share, all).min(unit_count(&train).saturating_sub(1));
            of_size(&train, size, &mut Streams::new(0).rng(Purpose::Data, stream, site.index))
        };
        let (train, validation) = hold_out(validation, train, *validation_fraction, 1);
        let (mut train, calibration) = hold_out(calibration, train, *calibration_fraction, 2);
        let held_out = [("validation", &validation), ("calibration", &calibration)];
        notes.extend(note_on_groups(&train, &held_out, &test));
        let of_files = [("validation", validation_path, &validation), ("calibration", calibration_path, &calibration)];
        let with_file = of_files.into_iter().filter(|(_, path, _)| !path.is_empty());
        notes.extend(with_file.filter_map(|(name, _, rows)| note_on_shared_groups(&train, (name, rows))));
        notes.extend(without_few_cells(&mut train, &columns, site.tell));
        let unkept = Some(key.text);
        let (sha256, fingerprint) = (key.sha256, key.fingerprint);
        Ok(Self { train, validation, calibration, test, columns, notes, sha256, fingerprint, unkept })
    }
}

/// Makes the cells of a column missing where fewer training rows, or groups, than `tell.min_rows` have a value: a sum over
/// them would say much about each.
///
/// # Returns
/// A sentence for each such column.
fn without_few_cells(train: &mut Dataset, columns: &Columns, tell: Tell) -> Vec<String> {
    let few = tell.few();
    if !columns.missing.is_filled() || unit_count(train) < few {
        return Vec::new();
    }
    let present = |column| units_with_value(column, train);
    let present: Vec<usize> = train.features.axis_iter(Axis(1)).map(present).collect();
    let hidden = present.into_iter().enumerate().filter(|(_, present)| *present > 0 && *present < few);
    let mut sentences = Vec::new();
    for (at, present) in hidden {
        train.features.column_mut(at).fill(f32::NAN);
        sentences.push(format!(
            "{}, fewer than tell.min_rows = {few}; it is missing in training, and nothing of it is told.",
            with_values(train, at, present)
        ));
    }
    sentences
}

/// The number of training rows, or groups, that have a value in a column.
fn units_with_value(column: ArrayView1<'_, f32>, train: &Dataset) -> usize {
    let present = (0..column.len()).filter(|row| !column[*row].is_nan());
    match &train.groups {
        Some(groups) => present.map(|row| groups[row]).collect::<BTreeSet<_>>().len(),
        None => present.count(),
    }
}

/// How many of the training rows, or groups, have a value in a column, as the beginning of a sentence.
pub(super) fn with_values(train: &Dataset, at: usize, present: usize) -> String {
    let units = if train.groups.is_some() { "groups" } else { "training rows" };
    let have = if present == 1 { "has" } else { "have" };
    let column = column_called(train.feature_names.as_deref(), at);
    format!("{column}: {present} of {} {units} {have} a value", unit_count(train))
}

/// The name of a feature column for a message.
pub(super) fn column_called(names: Option<&[String]>, at: usize) -> String {
    match names {
        Some(names) => format!("Column `{}`", quoted(&names[at])),
        None => format!("Feature {at}"),
    }
}
