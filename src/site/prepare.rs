//! The rows of a site in the form that the model of a federation takes.

use ndarray::Axis;

use super::agree::Agreement;
use super::describe::has_fractions;
use super::encode;
use super::fit::{Holder, Misfit, columns};
use super::rows::SiteRows;
use crate::datasets::columns::{Columns, places};
use crate::datasets::{Dataset, ModelCard, Targets, TrainTest};
use crate::report::quoted;

impl SiteRows {
    /// The training and test rows with columns in the agreed order, classes by their agreed numbers, and features in
    /// the agreed scale. As in one process, real targets stay in the units of the file; [`crate::rows::Table`] scales
    /// them.
    ///
    /// # Arguments
    /// - `client`: the index of this site.
    /// - `card`: what all sites have agreed on, from a server that is not trusted.
    ///
    /// # Errors
    /// The card is not consistent, or it has other columns, another task, or not all classes of this site.
    pub fn prepared(&self, client: usize, card: &ModelCard) -> Result<TrainTest, Misfit> {
        let holder = Holder::Client(client);
        let form = |rows, called| agreed_form(holder, (rows, &self.columns), called, card);
        let (train, mut notes) = form(&self.train, "the training rows")?;
        let (test, of_test) = form(&self.test, "the test rows")?;
        notes.extend(of_test);
        let (normalisation, encoding) = (card.normalisation.clone(), card.encoding.clone());
        let numbered_columns = card.numbered_columns.clone();
        Ok(TrainTest { train, test, normalisation, notes, encoding, numbered_columns })
    }
}

/// Rows with columns in the agreed order, classes by their agreed numbers, and features in the agreed scale; and notes on
/// their cells that are missing or have a text that no training row has.
///
/// # Arguments
/// - `called`: what the rows are called in a note.
///
/// # Errors
/// The card is not consistent, or it has other columns, another task, or not all classes of the rows.
pub fn agreed_form(
    holder: Holder,
    (own, own_columns): (&Dataset, &Columns),
    called: &str,
    card: &ModelCard,
) -> Result<(Dataset, Vec<String>), Misfit> {
    let invalid = |problem: String| Misfit::new(holder, format!("what was agreed is not valid: {problem}"));
    card.check().map_err(invalid)?;
    if card.classes.is_none() != card.normalisation.target.is_some() {
        return Err(invalid("a target is scaled in a regression, and only there".into()));
    }
    let names = card.column_names();
    let mut notes = Vec::new();
    let mut features = match &card.encoding {
        Some(encoding) => {
            let encoded = encode::features(holder, (own, own_columns), names.as_deref(), encoding)?;
            notes = encoded.notes(encoding, called);
            encoded.features
        }
        None if own_columns.are_features() => {
            let columns = columns(holder, own, names.as_deref(), card.features)?;
            own.features.select(Axis(1), &columns)
        }
        None => return Err(invalid("it does not say how columns that are not numbers alone become features".into())),
    };
    card.normalisation.features.apply(&mut features).map_err(|error| invalid(error.to_string()))?;
    let targets = targets(holder, &own.targets, card.classes.as_deref())?;
    let (groups, lines) = (own.groups.clone(), own.lines.clone());
    Ok((Dataset { features, targets, groups, lines, ..card.shape() }, notes))
}

/// Checks that rows have the agreed columns with the agreed content and no other classes, before a scale is known.
///
/// # Errors
/// As [`agreed_form`].
pub fn fits(holder: Holder, (own, own_columns): (&Dataset, &Columns), agreed: &Agreement) -> Result<(), Misfit> {
    let names = agreed.features.as_deref();
    match &agreed.encoding {
        Some(encoding) => drop(encode::features(holder, (own, own_columns), names, encoding)?),
        None => drop(columns(holder, own, names, agreed.width)?),
    }
    if agreed.encoding.is_none() && !own_columns.are_features() {
        return Err(Misfit::new(holder, "its columns are not numbers alone, and those of all sites are"));
    }
    targets(holder, &own.targets, agreed.classes.as_deref()).map(|_| ())
}

/// Targets with the agreed numbers of their classes.
fn targets(holder: Holder, own: &Targets, agreed: Option<&[String]>) -> Result<Targets, Misfit> {
    let misfit = |problem: String| Err(Misfit::new(holder, problem));
    match (own, agreed) {
        (Targets::Classes { labels, names }, Some(agreed)) => {
            if has_fractions(names) {
                return misfit("it holds a classification with fractions as classes".into());
            }
            match places(names, agreed) {
                Ok(places) => Ok(Targets::Classes {
                    labels: labels.iter().map(|label| places[*label]).collect(),
                    names: agreed.to_vec(),
                }),
                Err(name) => {
                    let remedy = match holder {
                        Holder::Client(_) => "has its file changed since it was described?",
                        Holder::Server => "no site has rows of it",
                    };
                    misfit(format!("its class `{}` is not one of the {} agreed; {remedy}", quoted(name), agreed.len()))
                }
            }
        }
        (Targets::Real { values }, None) => Ok(Targets::Real { values: values.clone() }),
        (Targets::Classes { .. }, None) => misfit("it holds a classification, all have agreed on a regression".into()),
        _ => misfit("it holds a regression, all have agreed on a classification".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::describe::tests::{classes, rows};
    use super::*;
    use crate::datasets::{ColumnScale, FeatureScale, Normalisation, TargetScale};
    use ndarray::array;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    /// A card of the features `flow` and `ph`, of which the first is shifted by 10 and the second by 1.
    fn card(targets: Targets) -> ModelCard {
        let target = matches!(targets, Targets::Real { .. }).then_some(TargetScale { mean: 1.0, sd: 2.0 });
        let scale = FeatureScale::PerColumn { by: ColumnScale::Standard, shift: vec![10., 1.], scale: vec![2., 4.] };
        let data = rows("", array![[0., 0.]], &["flow", "ph"], targets).train;
        ModelCard::of(&data, Normalisation { features: scale, target })
    }

    #[test]
    fn columns_classes_and_scale_are_the_agreed_ones() {
        let own = rows("", array![[1., 10.], [9., 30.]], &["ph", "flow"], classes(&[0, 1], &["beech", "oak"]));
        let data = own.prepared(1, &card(classes(&[0], &["alder", "beech", "oak"]))).unwrap();
        for set in [&data.train, &data.test] {
            assert_eq!(set.features, array![[0., 0.], [10., 2.]]);
            assert_eq!(set.feature_names, Some(names(&["flow", "ph"])));
            assert_eq!(set.targets, classes(&[1, 2], &["alder", "beech", "oak"]));
        }
    }

    #[test]
    fn real_targets_keep_their_units() {
        let real = || Targets::Real { values: vec![5.0] };
        let own = rows("", array![[1., 10.]], &["ph", "flow"], real());
        let data = own.prepared(1, &card(real())).unwrap();
        assert_eq!((data.train.targets, data.normalisation.target.unwrap().sd), (real(), 2.0));
    }

    #[test]
    fn what_does_not_fit_the_rows_is_refused_by_client() {
        let trees = |labels: &[&str]| rows("", array![[1., 10.]], &["ph", "flow"], classes(&[0], labels));
        let message = |own: &SiteRows, card: &ModelCard| own.prepared(2, card).unwrap_err().to_string();
        let two = || card(classes(&[0], &["alder", "oak"]));
        let class = "client 2: its class `brich` is not one of the 2 agreed; has its file changed";
        assert!(message(&trees(&["brich"]), &two()).starts_with(class));
        // A measurement may be the name of a class by mistake.
        let fractions = message(&trees(&["12.75"]), &two());
        assert!(fractions.contains("fractions as classes") && !fractions.contains("12.75"), "{fractions}");
        let real = || Targets::Real { values: vec![5.0] };
        assert!(message(&trees(&["oak"]), &card(real())).contains("agreed on a regression"));
        let own = rows("", array![[1., 10.]], &["ph", "flow"], real());
        assert!(message(&own, &two()).contains("agreed on a classification"));
        let mut renamed = two();
        renamed.feature_names = Some(names(&["flow", "pH"]));
        assert!(message(&trees(&["oak"]), &renamed).ends_with("it has no column `pH` for an agreed feature"));
    }

    #[test]
    fn a_card_that_is_not_consistent_is_refused() {
        let own = rows("", array![[1., 10.]], &["ph", "flow"], classes(&[0], &["oak"]));
        let message = |card: &ModelCard| own.prepared(2, card).unwrap_err().to_string();
        let two = || card(classes(&[0], &["alder", "oak"]));
        let mut wrong = two();
        wrong.normalisation.features =
            FeatureScale::PerColumn { by: ColumnScale::Standard, shift: vec![0.0], scale: vec![1.0] };
        assert!(message(&wrong).contains("what was agreed is not valid: `normalisation.features`"));
        wrong = two();
        wrong.normalisation.target = Some(TargetScale { mean: 0.0, sd: 1.0 });
        assert!(message(&wrong).contains("a target is scaled in a regression"));
    }
}
