//! The second exchange: a site learns the means over all rows, and tells how far its own rows are from them.

use ndarray::{ArrayView1, Axis};
use serde::{Deserialize, Serialize};

use super::agree::Means;
use super::config::{NO_SUMS, NO_TEXTS, SiteConfig};
use super::encode;
use super::fit::{Holder, Misfit, columns};
use super::rows::SiteRows;
use crate::datasets::moments::squared_deviations;
use crate::datasets::{Encoding, ExactSum, Targets, unit_count};

/// What a site tells in the second exchange: exact sums over its training rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deviations {
    /// The index k of the client, from 0.
    pub index: usize,
    /// The squared deviations of each feature `[p]` from its mean, in the agreed order; empty where no means were sent.
    pub features: Vec<ExactSum>,
    /// Those of the target; `None` where no mean was sent.
    pub target: Option<ExactSum>,
}

/// How far the training rows of a site are from the means over all rows, and no more than its file allows. A site
/// answers once in a run: sums of deviations from other numbers would tell more about its rows.
///
/// # Arguments
/// - `features`: the agreed names `[p]`, if the files have headers.
/// - `means`: from [`super::means_for`].
/// - `encoding`: how the columns become features; `None` where they are the features.
///
/// # Errors
/// The site tells no sums, the features are not its own, or the means do not fit its rows.
pub fn measure(
    site: &SiteConfig,
    rows: &SiteRows,
    features: Option<&[String]>,
    means: &Means,
    encoding: Option<&Encoding>,
) -> Result<Deviations, Misfit> {
    let (client, train) = (site.index, &rows.train);
    let misfit = |problem: &str| Err(Misfit::new(Holder::Client(client), problem));
    if !site.tell.sums_of(unit_count(train)) {
        return misfit(&format!("it {NO_SUMS}"));
    }
    if !means.features.iter().chain(&means.target).all(|mean| mean.is_finite()) {
        return misfit("a mean that was sent is not finite");
    }
    // The counts of texts that a server guesses would say which there are.
    if !rows.may_tell_texts(site) {
        return misfit(&format!("it {NO_TEXTS}"));
    }
    let features = match (means.features.len(), encoding) {
        (0, _) => Vec::new(),
        (width, None) if rows.columns.are_features() => {
            let columns = columns(Holder::Client(client), train, features, width)?;
            let column = |column: &usize| train.features.index_axis(Axis(1), *column);
            deviations(columns.iter().map(column), &means.features)
        }
        (_, None) => return misfit("its columns are not numbers alone, and it was not told how they become features"),
        (width, Some(encoding)) if width == encoding.width() => {
            rows.must_hold(width, site.limits).map_err(|problem| Misfit::new(Holder::Client(client), problem))?;
            let own = encode::features(Holder::Client(client), (train, &rows.columns), features, encoding)?.features;
            deviations(own.axis_iter(Axis(1)), &means.features)
        }
        (width, Some(_)) => {
            return Err(Misfit::new(Holder::Client(client), format!("{width} means for other features")));
        }
    };
    let target = match (&train.targets, means.target) {
        (_, None) => None,
        (Targets::Real { values }, Some(mean)) => Some(squared_deviations(values.iter().copied(), mean)),
        (_, Some(_)) => return misfit("it holds a classification, and was sent the mean of a real target"),
    };
    if !features.iter().chain(&target).all(|sum| sum.value().is_finite()) {
        return misfit("the squared deviations of a column overflow; give the column another unit at all sites");
    }
    Ok(Deviations { index: client, features, target })
}

/// The sums of the squared deviations of each column from its mean.
fn deviations<'a>(columns: impl Iterator<Item = ArrayView1<'a, f32>>, means: &[f64]) -> Vec<ExactSum> {
    let sum =
        |(column, mean): (ArrayView1<'_, f32>, &f64)| squared_deviations(column.iter().map(|&x| f64::from(x)), *mean);
    columns.zip(means).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::super::config::Tell;
    use super::super::describe::tests::{classes, rows, site};
    use super::*;
    use ndarray::array;

    fn names(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(ToString::to_string).collect())
    }

    fn real() -> SiteRows {
        let targets = Targets::Real { values: vec![1.0, 4.0] };
        rows("print", array![[1., 10.], [2., 30.]], &["ph", "flow"], targets)
    }

    #[test]
    fn deviations_are_from_the_means_sent_in_the_agreed_order() {
        // flow: 9² + 11², ph: 2² + 3², target: 1² + 2².
        let means = Means { features: vec![19.0, -1.0], target: Some(2.0) };
        let told = measure(&site(3), &real(), names(&["flow", "ph"]).as_deref(), &means, None).unwrap();
        let values: Vec<f64> = told.features.iter().map(ExactSum::value).collect();
        assert_eq!((told.index, values), (3, vec![202.0, 13.0]));
        assert_eq!(told.target.unwrap().value(), 5.0);
        let means = Means { features: vec![], target: Some(2.0) };
        assert_eq!(measure(&site(3), &real(), None, &means, None).unwrap().features, []);
    }

    #[test]
    fn what_the_file_does_not_allow_is_not_measured() {
        let means = Means { features: vec![0.0, 0.0], target: None };
        for tell in [
            Tell { categories: true, class_counts: true, min_rows: 3, products: true, statistics: true },
            Tell { categories: true, class_counts: true, min_rows: 1, products: true, statistics: false },
        ] {
            let silent = SiteConfig { tell, ..site(3) };
            let message =
                measure(&silent, &real(), names(&["ph", "flow"]).as_deref(), &means, None).unwrap_err().to_string();
            assert_eq!(message, "client 3: it tells no sums (tell.statistics, tell.min_rows)");
        }
    }

    #[test]
    fn means_that_do_not_fit_the_rows_are_refused() {
        let message = |rows: &SiteRows, names: Option<Vec<String>>, features: &[f64], target: Option<f64>| {
            let means = Means { features: features.to_vec(), target };
            measure(&site(0), rows, names.as_deref(), &means, None).unwrap_err().problem
        };
        let own = || names(&["ph", "flow"]);
        assert!(message(&real(), own(), &[0.0, f64::NAN], None).contains("not finite"));
        assert!(message(&real(), own(), &[0.0, 1e200], None).contains("overflow"));
        assert!(message(&real(), own(), &[0.0, 0.0], Some(-1e300)).contains("overflow"));
        assert_eq!(message(&real(), own(), &[0.0; 3], None), "it has 2 features, all sites have agreed on 3");
        assert_eq!(message(&real(), names(&["ph"]), &[0.0; 2], None), "1 names for 2 agreed features");
        let twice = "it has no column `ph` for an agreed feature";
        assert_eq!(message(&real(), names(&["ph", "ph"]), &[0.0; 2], None), twice);
        assert!(message(&real(), names(&["a\u{1b}"]), &[0.0; 2], None).starts_with("it has no column `a\\u{1b}`"));
        assert!(message(&real(), None, &[0.0; 2], None).starts_with("its file has a header"));
        let trees = rows("print", array![[1.], [2.]], &[], classes(&[0, 1], &["alder", "oak"]));
        assert!(message(&trees, names(&["ph"]), &[0.0], None).starts_with("its file has no header"));
        assert!(message(&trees, None, &[0.0], Some(1.0)).starts_with("it holds a classification"));
    }
}
