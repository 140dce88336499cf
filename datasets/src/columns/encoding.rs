//! The features of a table's cells: one-hot encoded texts, and the values of missing cells. What they are is learned
//! from training rows, kept in `model.json`, and applied to any rows.

use crate::columns::tally::times;
use crate::columns::{CellKind, Columns, Missing, Names, Places, Tally, text};
use crate::moments::ColumnSum;
use crate::{DataError, Dataset, ExactSum};
use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the columns of a table become the features of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoding {
    /// The columns of the table that are features, in their order.
    pub columns: Vec<Column>,
}

/// How one column becomes features. A number is one feature, a category one for each text; a feature that says whether
/// the cell is missing follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The name in the header, if there is one.
    pub name: Option<String>,
    /// What the cells hold.
    pub kind: CellKind,
    /// The texts of a category, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// The features of a missing cell: the mean over the training rows, for each text of a category. `None` where no
    /// cell may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Vec<f64>>,
    /// Whether a feature says that the cell is missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub indicator: bool,
    /// The text of every row of a file of new rows without this column; `None` where a file must have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Features, and what in their cells was not known from the training rows.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The features `[rows, p]`.
    pub features: Array2<f32>,
    /// The number of missing cells of each column of the table.
    pub missing: Vec<usize>,
    /// The number of cells of each column with a text that no training row has.
    pub unknown: Vec<usize>,
}

impl Encoded {
    /// What the cells of some rows lack, one sentence each.
    ///
    /// # Arguments
    /// - `rows`: what the rows are called.
    pub fn notes(&self, encoding: &Encoding, rows: &str) -> Vec<String> {
        let listed = |counts: &[usize]| {
            let some = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            some.map(|(at, count)| format!("{count} in column {}", encoding.called(at))).collect::<Vec<_>>().join(", ")
        };
        let mut notes = Vec::new();
        if self.missing.iter().any(|count| *count > 0) {
            notes.push(format!(
                "missing cells of {rows} have the means of the training rows: {}",
                listed(&self.missing)
            ));
        }
        if self.unknown.iter().any(|count| *count > 0) {
            notes.push(format!(
                "cells of {rows} with a text that no training row has, whose features are all 0: {}",
                listed(&self.unknown)
            ));
        }
        notes
    }
}

impl Column {
    /// The number of features.
    fn width(&self) -> usize {
        self.own() + usize::from(self.indicator)
    }

    /// The number of features without that of missing cells.
    fn own(&self) -> usize {
        if self.kind == CellKind::Category { self.categories.len() } else { 1 }
    }

    /// The names of the features, where the column has one.
    fn names(&self) -> Option<Vec<String>> {
        let name = self.name.as_ref()?;
        let mut names: Vec<String> = match self.kind {
            CellKind::Category => self.categories.iter().map(|text| format!("{name}={text}")).collect(),
            _ => vec![name.clone()],
        };
        if self.indicator {
            names.push(format!("{name} is missing"));
        }
        Some(names)
    }

    /// The column that some training rows call for; the rows may be at several places.
    fn learn(name: Option<String>, kind: CellKind, parts: &[&Tally], missing: Missing) -> Self {
        let counts = Tally::texts(parts);
        let mut texts = Names::default();
        counts.keys().for_each(|text| {
            texts.id(text);
        });
        let (categories, place) = texts.sorted();
        let fill = missing.is_filled().then(|| match kind {
            CellKind::Category => {
                let mut rows = vec![0; categories.len()];
                counts.values().zip(&place).for_each(|(count, place)| rows[*place] += count);
                let present = Tally::present(parts).max(1) as f64;
                rows.into_iter().map(|rows: usize| rows as f64 / present).collect()
            }
            _ => vec![Tally::mean(parts)],
        });
        let indicator = missing == Missing::Indicator && Tally::missing(parts) > 0;
        Self { name, kind, categories, fill, indicator, default: None }
    }

    /// The means of the features over the training rows of all parts, of which there are `rows`.
    fn means(&self, parts: &[&Tally], rows: usize) -> Vec<f64> {
        let missing = Tally::missing(parts);
        let fill = |feature: usize| self.fill.as_ref().map_or(0.0, |fill| fill[feature] as f32);
        let mut means = match self.kind {
            CellKind::Category => {
                let mut sums = vec![ExactSum::default(); self.categories.len()];
                let places = Places::of(&self.categories);
                for (text, count) in Tally::texts(parts) {
                    if let Some(place) = places.find(&text) {
                        times(&mut sums[place], count, 1.0);
                    }
                }
                sums.iter_mut().enumerate().for_each(|(feature, sum)| times(sum, missing, fill(feature)));
                sums.iter().map(|sum| sum.value() / rows as f64).collect()
            }
            _ => vec![self.mean_of_numbers(parts, rows, missing, fill(0))],
        };
        if self.indicator {
            means.push(missing as f64 / rows as f64);
        }
        means
    }

    fn mean_of_numbers(&self, parts: &[&Tally], rows: usize, missing: usize, fill: f32) -> f64 {
        let mut all = ColumnSum { sum: ExactSum::default(), constant: None };
        let there = || parts.iter().filter(|part| part.present > 0);
        there().for_each(|part| all.sum.merge(&part.sum.sum));
        times(&mut all.sum, missing, fill);
        let first = there().next().map_or(Some(f64::from(fill)), |part| part.sum.constant);
        let same = first.is_some() && there().all(|part| part.sum.constant == first);
        all.constant = first.filter(|value| same && (missing == 0 || *value == f64::from(fill)));
        ColumnSum::mean(&[&all], rows)
    }

    /// Writes the features of a cell.
    fn write(&self, cell: f32, place: &[Option<usize>], features: &mut [f32]) -> Result<Cell, ()> {
        let (own, rest) = features.split_at_mut(self.own());
        if cell.is_nan() {
            let fill = self.fill.as_ref().ok_or(())?;
            own.iter_mut().zip(fill).for_each(|(feature, fill)| *feature = *fill as f32);
            rest.fill(1.0);
            return Ok(Cell::Missing);
        }
        rest.fill(0.0);
        if self.kind != CellKind::Category {
            own.fill(cell);
            return Ok(Cell::Known);
        }
        own.fill(0.0);
        match place.get(cell as usize).copied().flatten() {
            Some(place) => {
                own[place] = 1.0;
                Ok(Cell::Known)
            }
            None => Ok(Cell::Unknown),
        }
    }
}

/// What a cell is to the rows that an encoding was learned from.
#[derive(Clone, Copy, PartialEq)]
enum Cell {
    Known,
    Missing,
    Unknown,
}

impl Encoding {
    /// The encoding that training rows call for.
    ///
    /// # Arguments
    /// - `names`: the names of the columns `[p]`, if there is a header.
    /// - `kinds`: `[p]`.
    /// - `parts`: the tallies `[p]` of the training rows at each place.
    pub fn learn(names: Option<&[String]>, kinds: &[CellKind], parts: &[&[Tally]], missing: Missing) -> Self {
        let column = |(at, kind): (usize, &CellKind)| {
            let parts: Vec<&Tally> = parts.iter().map(|part| &part[at]).collect();
            Column::learn(names.map(|names| names[at].clone()), *kind, &parts, missing)
        };
        Self { columns: kinds.iter().enumerate().map(column).collect() }
    }

    /// The encoding of the training rows of one table.
    ///
    /// # Errors
    /// [`DataError::Columns`] where almost every row has another text in a column that was found to be one of texts, where no
    /// feature is left, or where two have one name.
    pub fn of_rows(cells: &Dataset, columns: &Columns, file: &std::path::Path) -> Result<Self, DataError> {
        let tallies = tallies(cells, columns);
        let encoding = Self::learn(cells.feature_names.as_deref(), &columns.kinds, &[&tallies], columns.missing);
        let refuse = |problem| Err(DataError::Columns { path: file.to_path_buf(), problem });
        if let Some(at) = encoding.columns.iter().position(|column| {
            columns.automatic && column.categories.len() > FEW && 2 * column.categories.len() > cells.rows()
        }) {
            let (name, texts) = (encoding.called(at), encoding.columns[at].categories.len());
            return refuse(format!(
                "column {name} holds {texts} different texts in {} rows; name it in data.id or data.ignore, or in \
                 data.categorical if it is a feature all the same",
                cells.rows()
            ));
        }
        if encoding.width() == 0 {
            return refuse("all cells of all feature columns are missing in the training rows".into());
        }
        let (names, mut seen) = (encoding.names().unwrap_or_default(), std::collections::HashSet::new());
        match names.iter().find(|name| !seen.insert(*name)) {
            Some(name) => refuse(format!(
                "two features are called `{}`, of a column's name, its text or `is missing`; rename a column",
                text(name.as_bytes())
            )),
            None => Ok(encoding),
        }
    }

    /// The number of features p.
    pub fn width(&self) -> usize {
        self.columns.iter().map(Column::width).sum()
    }

    /// The names of the features `[p]`, if there is a header.
    pub fn names(&self) -> Option<Vec<String>> {
        let names = self.columns.iter().map(Column::names).collect::<Option<Vec<_>>>()?;
        Some(names.concat())
    }

    /// Whether each feature is that of a number or a date, `[p]`, rather than one of a text, of yes and no, or of missing
    /// cells.
    pub fn are_numbers(&self) -> Vec<bool> {
        let of = |column: &Column| {
            let is_number = matches!(column.kind, CellKind::Number | CellKind::Date);
            let own = column.own();
            (0..column.width()).map(move |feature| is_number && feature < own)
        };
        self.columns.iter().flat_map(of).collect()
    }

    /// The names of the columns, if there is a header.
    pub fn column_names(&self) -> Option<Vec<String>> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// A column for a message: its name, or its number among the feature columns.
    pub(crate) fn called(&self, column: usize) -> String {
        match &self.columns[column].name {
            Some(name) => format!("`{}`", text(name.as_bytes())),
            None => format!("{} of the features", column + 1),
        }
    }

    /// The means of the features over the training rows at all places, with the bits of one table with all rows.
    ///
    /// # Arguments
    /// - `parts`: the tallies of the encoding's columns at each place.
    /// - `rows`: the number of rows of all places.
    pub fn means(&self, parts: &[&[Tally]], rows: usize) -> Vec<f64> {
        let column = |(at, column): (usize, &Column)| {
            column.means(&parts.iter().map(|part| &part[at]).collect::<Vec<_>>(), rows)
        };
        self.columns.iter().enumerate().flat_map(column).collect()
    }

    /// The features of some cells.
    ///
    /// # Arguments
    /// - `cells`: `[rows, columns]`.
    /// - `texts`: the texts of each column that is a category, to which its cells refer.
    ///
    /// # Errors
    /// A message that names the first column with a missing cell in which none may be.
    pub fn apply(&self, cells: ArrayView2<'_, f32>, texts: &BTreeMap<usize, Vec<String>>) -> Result<Encoded, String> {
        let (columns, width) = (&self.columns, self.width());
        if cells.ncols() != columns.len() {
            return Err(format!("{} columns, the model was trained on {}", cells.ncols(), columns.len()));
        }
        let none = Vec::new();
        let found = |(at, column)| found(column, texts.get(&at).unwrap_or(&none));
        let places: Vec<Vec<Option<usize>>> = columns.iter().enumerate().map(found).collect();
        let mut features = Array2::zeros((cells.nrows(), width));
        let (mut missing, mut unknown) = (vec![0; columns.len()], vec![0; columns.len()]);
        for (cells, mut row) in cells.axis_iter(Axis(0)).zip(features.axis_iter_mut(Axis(0))) {
            let Some(mut rest) = row.as_slice_mut() else { break };
            for (at, (column, cell)) in columns.iter().zip(cells).enumerate() {
                let (own, others) = rest.split_at_mut(column.width());
                match column.write(*cell, &places[at], own) {
                    Ok(Cell::Known) => {}
                    Ok(Cell::Missing) => missing[at] += 1,
                    Ok(Cell::Unknown) => unknown[at] += 1,
                    Err(()) => return Err(format!("a cell of column {} is missing", self.called(at))),
                }
                rest = others;
            }
        }
        Ok(Encoded { features, missing, unknown })
    }

    /// Rows with their features in place of their cells.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn encoded(&self, cells: Dataset, columns: &Columns) -> Result<(Dataset, Encoded), String> {
        let mut encoded = self.apply(cells.features.view(), &columns.texts)?;
        let features = std::mem::take(&mut encoded.features);
        let (feature_shape, feature_names) = (vec![self.width()], self.names());
        Ok((Dataset { features, feature_shape, feature_names, ..cells }, encoded))
    }

    /// Checks that the parts are consistent with each other. They may come from an untrusted source.
    ///
    /// # Errors
    /// A message that names the first column that is not.
    pub fn check(&self) -> Result<(), String> {
        for (at, column) in self.columns.iter().enumerate() {
            let wrong = |problem: &str| Err(format!("column {at}, from 0, {problem}"));
            if column.kind != CellKind::Category && !column.categories.is_empty() {
                return wrong("has categories and is none");
            }
            if column.default.as_ref().is_some_and(|text| !column.categories.contains(text)) {
                return wrong("has a default text that is none of its categories");
            }
            let distinct: std::collections::HashSet<&String> = column.categories.iter().collect();
            if distinct.len() != column.categories.len() {
                return wrong("has a category twice");
            }
            match &column.fill {
                Some(fill) if fill.len() != column.own() => return wrong("has `fill` for another number of features"),
                Some(fill) if !fill.iter().all(|x| (*x as f32).is_finite()) => {
                    return wrong("has a `fill` that is not finite");
                }
                None if column.indicator => return wrong("has an indicator and no `fill`"),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The number of texts of a column about which nobody wonders.
const FEW: usize = 20;

/// The category of each text of a column.
fn found(column: &Column, texts: &[String]) -> Vec<Option<usize>> {
    let places = Places::of(&column.categories);
    texts.iter().map(|text| places.find(text)).collect()
}

/// What is counted and summed over some rows, for each column.
pub fn tallies(cells: &Dataset, columns: &Columns) -> Vec<Tally> {
    let each = cells.features.axis_iter(Axis(1)).zip(&columns.kinds).enumerate();
    each.map(|(at, (cells, kind))| Tally::of(*kind, cells, columns.texts_of(at))).collect()
}
