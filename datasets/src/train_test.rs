//! The training and test rows of a data set in the same scale, which are the input of a run. They come from
//! [`load`](crate::load) or from a user's own rows.

use crate::columns::codes::{self, FarValues, shortest};
use crate::{
    DataError, Dataset, Encoding, FeatureScale, Normalisation, Normalise, NumberedColumns, TargetScale, Targets, split,
    units,
};
use ndarray::ArrayView1;
use rand::Rng;

/// Training and test rows of one data set.
#[derive(Clone, Debug)]
pub struct TrainTest {
    /// The training rows. Features are scaled; real targets are in the original scale.
    pub train: Dataset,
    /// The test rows, scaled in the same way.
    pub test: Dataset,
    /// The scales, for further rows and for predictions in the original scale.
    pub normalisation: Normalisation,
    /// Notes for the reader of results, one sentence each, such as that the files hold only a part of the set.
    pub notes: Vec<String>,
    /// How the columns of a table became the features, before they were scaled; `None` where they are the features.
    pub encoding: Option<Encoding>,
    /// The names of the columns beside the features that the configuration gives by their numbers.
    pub numbered_columns: NumberedColumns,
}

impl TrainTest {
    /// Scales your own training and test rows with the statistics of the training rows.
    ///
    /// # Arguments
    /// - `train`, `test`: unscaled rows, such as those of [`Dataset::new`], with the same columns and classes. Either
    ///   both have natural clients or neither; where both have names of clients, these are the same, in the same order.
    /// - `normalise`: `Auto` is `Standard`, or `None` where the rows are likelihoods without targets. `Unit` and
    ///   `Published` need a data set whose pixels are known and are refused.
    ///
    /// # Errors
    /// [`DataError::Rows`] where the two do not fit together or one has no rows, [`DataError::Config`] for a scale that
    /// cannot be computed from the rows.
    ///
    /// # Example
    /// ```
    /// use fedstein_datasets::{Dataset, Normalise, Targets, TrainTest};
    /// use ndarray::array;
    ///
    /// # fn main() -> Result<(), fedstein_datasets::DataError> {
    /// let targets = |labels| Targets::Classes { labels, names: vec!["alder".into(), "birch".into()] };
    /// let train = Dataset::new("trees", array![[1.0, 20.0], [2.0, 10.0], [3.0, 30.0]], targets(vec![0, 1, 1]))?
    ///     .with_feature_names(vec!["height".into(), "width".into()])?
    ///     .with_clients(vec![0, 0, 1])?; // the client of each row, for partition kind `by-column`
    /// let test = Dataset::new("trees", array![[2.0, 20.0]], targets(vec![0]))?
    ///     .with_feature_names(vec!["height".into(), "width".into()])?
    ///     .with_clients(vec![1])?;
    /// let data = TrainTest::from_rows(train, test, Normalise::Auto)?;
    /// assert_eq!(data.test.features, array![[0.0, 0.0]]); // the means of the training rows
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_rows(train: Dataset, test: Dataset, normalise: Normalise) -> Result<Self, DataError> {
        fit_together(&train, &test)?;
        let is_toy = matches!(train.targets, Targets::None { .. });
        let normalise = match normalise {
            Normalise::Auto if is_toy => Normalise::None,
            Normalise::Auto => Normalise::Standard,
            asked => asked,
        };
        let scale = normalise.of_any_data(&train.features).filter(|scale| !is_toy || *scale == FeatureScale::Identity);
        let scale = scale.ok_or_else(|| {
            let takes = if is_toy { "auto or none" } else { "auto, none, minmax, standard or mnist" };
            let problem = format!("the rows of `{}` can be scaled by {takes}", train.name);
            DataError::config("normalise", normalise.word(), problem)
        })?;
        let codes = notes_of_codes(&train);
        let mut data = Self::scaled(train, test, scale)?;
        data.notes.extend(codes);
        Ok(data)
    }

    /// Splits your own rows at random into training and test rows, and scales both as [`TrainTest::from_rows`] does.
    ///
    /// # Arguments
    /// - `test_fraction`: the share of the rows for testing, between 0 and 1.
    ///
    /// # Errors
    /// A fraction that is not strictly between 0 and 1, fewer than two rows; those of [`TrainTest::from_rows`].
    pub fn split(
        rows: &Dataset,
        test_fraction: f64,
        normalise: Normalise,
        rng: &mut impl Rng,
    ) -> Result<Self, DataError> {
        let (train, test) = split::train_test(rows, test_fraction, rng)?;
        Self::from_rows(train, test, normalise)
    }

    /// Checks that training and test rows fit together, as [`TrainTest::from_rows`] does, and the scale of their features: the
    /// fields are public, and may have changed since.
    ///
    /// # Errors
    /// [`DataError::Rows`] with the first field that does not fit.
    pub fn check(&self) -> Result<(), DataError> {
        fit_together(&self.train, &self.test)?;
        match self.normalisation.features.fits(self.train.width()) {
            true => Ok(()),
            false => Err(DataError::Rows {
                name: self.train.name.clone(),
                problem: format!("the scale of the features does not belong to {} of them", self.train.width()),
            }),
        }
    }

    /// Applies a scale of the features to both, and computes that of a real target from the training rows.
    ///
    /// # Errors
    /// The rows have another number of columns than the scale.
    pub(crate) fn scaled(mut train: Dataset, mut test: Dataset, scale: FeatureScale) -> Result<Self, DataError> {
        scale.apply(&mut train.features)?;
        scale.apply(&mut test.features)?;
        let target = TargetScale::of(&train.targets);
        let normalisation = Normalisation { features: scale, target };
        let coarse = normalisation.features.coarse_notes(train.feature_names.as_deref());
        let notes = coarse.into_iter().chain(units::note(&train, &[], &test)).collect();
        let numbered_columns = NumberedColumns::default();
        Ok(Self { train, test, normalisation, notes, encoding: None, numbered_columns })
    }
}

/// What may stand for missing values in rows with columns, and not with pixels.
fn notes_of_codes(train: &Dataset) -> Vec<String> {
    let is_table = train.feature_shape.len() == 1;
    let called = |at: usize| train.feature_names.as_ref().map_or_else(|| at.to_string(), |names| names[at].clone());
    let columns = train.features.columns().into_iter().enumerate().filter(|_| is_table);
    let codes =
        |values: &mut dyn Iterator<Item = f64>| Some(FarValues::of(values)?.written(|value, _| shortest(value)));
    let of = |cells: ArrayView1<f32>| codes(&mut cells.iter().map(|cell| f64::from(*cell)));
    let features: Vec<_> = columns.filter_map(|(at, cells)| Some((called(at), of(cells)?))).collect();
    let targets = match &train.targets {
        Targets::Real { values } => codes(&mut values.iter().copied()),
        _ => None,
    };
    let targets: Vec<_> = targets.map(|codes| ("target".to_owned(), codes)).into_iter().collect();
    let remedy = "replace them, such as by the mean of the others, and add a column that says where they were";
    let of_features = codes::note(&features, "the training rows", remedy);
    of_features.into_iter().chain(codes::note(&targets, "the training rows", "leave these rows out")).collect()
}

/// Checks that a model of the training rows can be tested on the test rows.
fn fit_together(train: &Dataset, test: &Dataset) -> Result<(), DataError> {
    train.check()?;
    test.check()?;
    let refuse = |problem: String| Err(DataError::Rows { name: test.name.clone(), problem });
    if test.width() != train.width() || test.feature_shape != train.feature_shape {
        return refuse(format!(
            "test rows have the shape {:?}, training rows {:?}",
            test.feature_shape, train.feature_shape
        ));
    }
    if test.feature_names != train.feature_names {
        return refuse("test rows have other feature names than the training rows".to_owned());
    }
    let same_targets = match (&train.targets, &test.targets) {
        (Targets::Classes { names: train, .. }, Targets::Classes { names: test, .. }) => train == test,
        (Targets::Real { .. }, Targets::Real { .. }) | (Targets::None { .. }, Targets::None { .. }) => true,
        _ => false,
    };
    if !same_targets {
        return refuse("test rows have other targets than the training rows; both need the same classes".to_owned());
    }
    if test.clients.is_some() != train.clients.is_some() {
        return refuse("either both training and test rows have natural clients, or neither have".to_owned());
    }
    if let (Some(train), Some(test)) = (&train.client_names, &test.client_names)
        && train != test
    {
        return refuse(
            "test rows have other names of clients than the training rows; a client has the same number and name in both"
                .to_owned(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ColumnScale;
    use ndarray::{Array2, array};
    use rand::{SeedableRng, rngs::ChaCha8Rng};

    fn rows(features: Array2<f32>) -> Dataset {
        let values = features.column(0).iter().map(|&x| f64::from(x) * 10.0).collect();
        Dataset::new("mine", features, Targets::Real { values }).unwrap()
    }

    #[test]
    fn the_scale_is_that_of_the_training_rows_and_targets_stay_as_they_are() {
        let data = TrainTest::from_rows(rows(array![[1.], [3.]]), rows(array![[2.], [5.]]), Normalise::Minmax).unwrap();
        assert_eq!((data.train.features, data.test.features), (array![[0.], [1.]], array![[0.5], [2.]]));
        assert_eq!(data.test.targets, Targets::Real { values: vec![20.0, 50.0] });
        let target = data.normalisation.target.unwrap();
        assert_eq!((target.mean, target.sd), (20.0, 10.0));
    }

    #[test]
    fn values_that_may_stand_for_missing_ones_have_a_note_in_a_table() {
        let of = |shape: &[usize]| {
            let age = |row: usize| if row % 50 == 7 { 999.0 } else { (row * 7 % 60) as f32 };
            let features = Array2::from_shape_fn((200, 2), |(row, column)| [row as f32, age(row)][column]);
            rows(features).with_feature_shape(shape.to_vec()).unwrap()
        };
        let notes = |shape: &[usize]| TrainTest::from_rows(of(shape), of(shape), Normalise::Auto).unwrap().notes;
        let [note] = &notes(&[2])[..] else { panic!("{:?}", notes(&[2])) };
        let found = "values of the training rows far beyond all others of their column: `1` (999 in 4 rows, all others 0 to 59)";
        assert!(note.starts_with(found), "{note}");
        assert!(notes(&[1, 1, 2]).is_empty());
    }

    #[test]
    fn a_column_of_which_f32_keeps_too_few_digits_has_a_note() {
        let column = |offset: f64| Array2::from_shape_fn((40, 1), |(row, _)| (offset + row as f64) as f32);
        let notes = |offset| {
            TrainTest::from_rows(rows(column(offset)), rows(column(offset)), Normalise::Standard).unwrap().notes
        };
        // Neighbours in f32 are 128 apart at 1.7e9, 1/8 at 1.7e6 and 2⁻¹³ at 2021.
        assert!(notes(2021.0).is_empty() && notes(0.0).is_empty());
        for offset in [1.7e6, 1.7e9] {
            let [note] = &notes(offset)[..] else { panic!("no note at {offset}") };
            assert!(note.contains("feature 0") && note.contains("subtract a constant"), "{note}");
        }
    }

    #[test]
    fn rows_that_do_not_fit_together_are_refused() {
        let message = |test: Dataset| {
            TrainTest::from_rows(rows(array![[1.], [3.]]), test, Normalise::Auto).unwrap_err().to_string()
        };
        assert_eq!(message(rows(array![[1., 2.]])), "rows of `mine`: test rows have the shape [2], training rows [1]");
        let names = || vec!["a".to_owned(), "b".to_owned()];
        let classes = Targets::Classes { labels: vec![0], names: names() };
        assert!(message(Dataset::new("mine", array![[1.]], classes).unwrap()).contains("other targets"));
        assert!(message(rows(array![[1.]]).with_clients(vec![0]).unwrap()).contains("natural clients"));
        assert!(message(rows(array![[1.]]).with_feature_names(vec!["x".into()]).unwrap()).contains("feature names"));
        let of_clients = |names: [&str; 2]| {
            let numbered = rows(array![[1.], [3.]]).with_clients(vec![0, 1]).unwrap();
            numbered.with_client_names(names.map(str::to_owned).to_vec()).unwrap()
        };
        let together = |test| TrainTest::from_rows(of_clients(["north", "south"]), test, Normalise::Auto);
        assert!(together(of_clients(["north", "south"])).is_ok());
        let error = together(of_clients(["south", "north"])).unwrap_err().to_string();
        assert!(error.contains("other names of clients"), "{error}");
        // The fields are public: what a constructor would refuse is refused here as well.
        let mut short = rows(array![[1.]]);
        short.targets = Targets::Real { values: vec![] };
        assert!(message(short).contains("0 targets for 1 row"));
        let large = Dataset::new("mine", array![[1.]], Targets::Real { values: vec![1e160] }).unwrap_err().to_string();
        assert!(large.contains("row 0 has the target 1e160; targets must be finite, and below 3.4e38"), "{large}");
        let mut data = TrainTest::from_rows(rows(array![[1.], [3.]]), rows(array![[2.]]), Normalise::Auto).unwrap();
        assert!(data.check().is_ok());
        let scale = FeatureScale::PerColumn { by: ColumnScale::Standard, shift: vec![0.0; 7], scale: vec![1.0; 7] };
        let wide = Normalisation { features: scale, ..data.normalisation.clone() };
        let error = TrainTest { normalisation: wide, ..data.clone() }.check().unwrap_err().to_string();
        assert!(error.contains("the scale of the features does not belong to 1 of them"), "{error}");
        data.test.features = array![[2., 7.]];
        assert!(data.check().is_err());
    }

    #[test]
    fn scales_that_need_a_known_data_set_are_refused() {
        for normalise in [Normalise::Unit, Normalise::Published] {
            let error = TrainTest::from_rows(rows(array![[1.], [3.]]), rows(array![[2.]]), normalise).unwrap_err();
            assert!(error.to_string().starts_with(&format!("normalise = {}", normalise.word())), "{error}");
        }
        let toy = || Dataset::new("toy", array![[1.], [2.]], Targets::None { rows: 2 }).unwrap();
        assert!(TrainTest::from_rows(toy(), toy(), Normalise::Minmax).is_err());
        assert_eq!(TrainTest::from_rows(toy(), toy(), Normalise::Auto).unwrap().train.features, array![[1.], [2.]]);
    }

    #[test]
    fn one_set_of_rows_is_split_at_random() {
        let all = rows(Array2::from_shape_fn((10, 2), |(row, column)| (row * 2 + column) as f32));
        let split = |seed| TrainTest::split(&all, 0.3, Normalise::None, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
        assert_eq!((split(1).train.rows(), split(1).test.rows()), (7, 3));
        assert_eq!(split(1).test.features, split(1).test.features);
        let error = TrainTest::split(&all, 1.0, Normalise::None, &mut ChaCha8Rng::seed_from_u64(1)).unwrap_err();
        assert!(error.to_string().contains("test_fraction"), "{error}");
    }
}
