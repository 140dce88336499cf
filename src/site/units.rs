//! Notes on columns that look as if sites had written them in different units.

use super::agree::{Agreement, Means};
use super::describe::Description;
use super::encode;
use super::measure::Deviations;
use crate::report::quoted;
use crate::statistics::median;

/// The fewest training rows of a site whose columns are compared.
const ENOUGH_ROWS: usize = 20;
/// A mean this many standard deviations from the usual one is noted, and a standard deviation that is this many times the
/// usual one, or 1/this.
const FAR: f64 = 5.0;
/// The number of columns that a note names.
const NAMED: usize = 5;

/// Mean and standard deviation of a column at one site.
#[derive(Clone, Copy, Debug)]
struct Moments {
    mean: f64,
    sd: f64,
}

/// A note for each site whose columns are far from those of the others, with their means.
///
/// # Arguments
/// - `sites`: all sites, in the order of the clients.
/// - `told`: their answers of the second exchange, in the same order; empty where there was none.
pub fn unlike(sites: &[Description], agreed: &Agreement, told: &[Deviations]) -> Vec<String> {
    let (Some(means), Some(first)) = (&agreed.means, sites.first()) else { return Vec::new() };
    let all: Vec<(&Description, Vec<Moments>)> = sites
        .iter()
        .zip(told)
        .filter(|(site, _)| site.rows >= ENOUGH_ROWS)
        .filter_map(|(site, told)| Some((site, moments(site, first, agreed, (means, told))?)))
        .collect();
    if all.len() < 2 {
        return Vec::new();
    }
    let numbers = agreed.encoding.as_ref().map(|encoding| encoding.are_numbers());
    let names = agreed.encoding.as_ref().map_or(agreed.features.clone(), |encoding| encoding.names());
    // A real target comes after the features.
    let width = means.features.len();
    let name = |column: usize| match &names {
        _ if column == width => "the target".to_owned(),
        Some(names) => format!("`{}`", quoted(&names[column])),
        None => format!("feature {column}"),
    };
    let is_number = |column: &usize| *column == width || numbers.as_ref().is_none_or(|numbers| numbers[*column]);
    let features: Vec<usize> = (0..all[0].1.len()).filter(is_number).collect();
    let note = |(at, (site, own)): (usize, &(&Description, Vec<Moments>))| {
        let far: Vec<String> = features
            .iter()
            .filter_map(|feature| {
                let others: Vec<Moments> =
                    all.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, (_, of))| of[*feature]).collect();
                let usual = usual(own[*feature], &others)?;
                let (mean, sd) = (own[*feature].mean, own[*feature].sd);
                Some(format!("{} ({mean:.4} ± {sd:.4}, usually {:.4} ± {:.4})", name(*feature), usual.mean, usual.sd))
            })
            .collect();
        let more = if far.len() > NAMED { ", \u{2026}" } else { "" };
        (!far.is_empty()).then(|| {
            format!(
                "{}: its columns are far from those of the other sites: {}{more}; does it use other units?",
                quoted(&site.name),
                far[..far.len().min(NAMED)].join(", ")
            )
        })
    };
    all.iter().enumerate().filter_map(note).collect()
}

/// The moments that a column usually has, where those of a site are far from them.
fn usual(own: Moments, others: &[Moments]) -> Option<Moments> {
    let usual = match others {
        [other] => *other,
        // With its own moments among them, the median of three sites is not one of the site that is unlike the others.
        _ => {
            let of = |what: fn(&Moments) -> f64| median(&mut others.iter().chain([&own]).map(what).collect::<Vec<_>>());
            Moments { mean: of(|moments| moments.mean), sd: of(|moments| moments.sd) }
        }
    };
    // A column that is constant everywhere else is usual in nothing.
    if usual.sd <= 0.0 {
        return None;
    }
    let is_far = (own.mean - usual.mean).abs() > FAR * usual.sd
        || own.sd > FAR * usual.sd
        || (own.sd > 0.0 && own.sd * FAR < usual.sd);
    is_far.then_some(usual)
}

/// The moments of each agreed feature at a site, and of a real target; `None` where it does not tell the sums of all.
fn moments(
    site: &Description,
    first: &Description,
    agreed: &Agreement,
    (means, told): (&Means, &Deviations),
) -> Option<Vec<Moments>> {
    let sums = site.sums.as_ref()?;
    let places = encode::places(site, first);
    let rows = site.rows as f64;
    let mut own: Vec<f64> = match &agreed.encoding {
        None => places.iter().map(|column| sums.features[*column].sum.value() / rows).collect(),
        Some(encoding) => {
            let tallies: Vec<_> = places.iter().map(|column| encode::tally(site, *column)).collect();
            encoding.means(&[&tallies], site.rows)
        }
    };
    let of_target = [means.target.is_some(), sums.target.is_some(), told.target.is_some()];
    let are_all = of_target == [true; 3] || of_target == [false; 3];
    if !are_all || own.len() != told.features.len() || own.len() != means.features.len() {
        return None;
    }
    // The mean square around the mean of all sites is the variance plus the square of the distance of the means.
    let of = |((mean, all), squares): ((&f64, &f64), &crate::datasets::ExactSum)| {
        let variance = squares.value() / rows - (mean - all).powi(2);
        Moments { mean: *mean, sd: variance.max(0.0).sqrt() }
    };
    own.extend(sums.target.as_ref().map(|target| target.sum.value() / rows));
    let (all, squares) = (means.features.iter().chain(&means.target), told.features.iter().chain(&told.target));
    Some(own.iter().zip(all).zip(squares).map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::super::agree::agree;
    use super::super::describe::describe;
    use super::super::describe::tests::{classes, rows, site};
    use super::super::measure::measure;
    use super::super::scale::means_for;
    use super::*;
    use crate::datasets::{Normalise, Targets};
    use ndarray::Array2;

    /// The notes on sites with creatinine in these units, beside an age, and two classes.
    fn notes(units: &[f32]) -> Vec<String> {
        let labels: Vec<usize> = (0..40).map(|row| row % 2).collect();
        notes_with(units, |_| classes(&labels, &["no", "yes"]))
    }

    /// The same with targets, given by site.
    fn notes_with(units: &[f32], targets: impl Fn(usize) -> Targets) -> Vec<String> {
        let of_site = |(index, unit): (usize, &f32)| {
            let value = |(row, column): (usize, usize)| match column {
                0 => 40.0 + ((7 * row + index) % 30) as f32,
                _ => unit * (0.7 + 0.01 * ((11 * row + 3 * index) % 40) as f32),
            };
            let cells = Array2::from_shape_fn((40, 2), value);
            (site(index), rows(&format!("print {index}"), cells, &["age", "creatinine"], targets(index)))
        };
        let sites: Vec<_> = units.iter().enumerate().map(of_site).collect();
        let described: Vec<Description> = sites.iter().map(|(site, rows)| describe(site, rows, 7)).collect();
        let agreed = agree(&described).unwrap();
        let means = means_for(&agreed, Normalise::Standard).unwrap().unwrap();
        let told: Vec<Deviations> = sites
            .iter()
            .map(|(site, rows)| measure(site, rows, agreed.features.as_deref(), &means, None).unwrap())
            .collect();
        unlike(&described, &agreed, &told)
    }

    #[test]
    fn sites_that_are_alike_have_no_note() {
        assert_eq!(notes(&[1.0, 1.0, 1.0]), [""; 0]);
        assert_eq!(notes(&[1.0, 1.1]), [""; 0]);
    }

    #[test]
    fn a_site_with_another_unit_is_named_with_the_column() {
        let told = notes(&[1.0, 88.4, 1.0, 1.0]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("site-1: ") && told[0].contains("`creatinine` (7") && !told[0].contains("age"),
            "{told:?}"
        );
        // A real target, here a thousand times as large at the last site.
        let target = |index: usize| {
            let unit = if index == 2 { 1000.0 } else { 1.0 };
            Targets::Real { values: (0..40).map(|row| unit * (450.0 + f64::from(7 * row % 30))).collect() }
        };
        let told = notes_with(&[1.0, 1.0, 1.0], target);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("site-2: ") && told[0].contains("the target (46"), "{told:?}");
        assert!(!told[0].contains("age") && !told[0].contains("creatinine"), "{told:?}");
        // Of two sites it is not known which is unlike.
        let told = notes(&[1.0, 88.4]);
        assert_eq!(told.len(), 2, "{told:?}");
    }
}
