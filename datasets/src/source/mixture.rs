//! The toy densities of the DSVGD paper (R. Kassab, O. Simeone, 2022): every row is a client's likelihood.

use super::DataSet;
use super::kind::{Rows, Source};
use crate::prepare::{NORMALISE, TEST_LIMIT, TRAIN_LIMIT};
use crate::properties::TargetKind;
use crate::synthetic::mixture;
use crate::{DataError, DataProperties, Normalise};
use fedstein_schema::Kind;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

const DSVGD: &str = "R. Kassab, O. Simeone, Federated generalized Bayesian learning via distributed Stein variational gradient descent, 2022";

const PROPERTIES: DataProperties =
    DataProperties { natural_clients: true, ..DataProperties::of_target(TargetKind::Likelihoods) };

/// The 1-D toy of the DSVGD paper: two rows, one likelihood each ([`mixture`]); train and test are the same.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Mixture1d {
    /// `auto` or `none`: a row is a likelihood, not a sample.
    pub normalise: Normalise,
    /// 0: both rows are needed.
    pub train_limit: usize,
    /// 0: both rows are needed.
    pub test_limit: usize,
}

impl Source for Mixture1d {
    const KIND: Kind = Kind {
        name: "mixture-1d",
        about: "Toy density of [D] Fig. 2: two clients with a 1-d likelihood each; generated. Scale `auto`: `none`.",
        keys: &[NORMALISE, TRAIN_LIMIT, TEST_LIMIT],
    };
    const SET: DataSet = DataSet::generated(
        Self::KIND.name,
        "toy of the DSVGD paper's Fig. 2: two clients with a 1-d likelihood each",
        DSVGD,
    );

    fn properties(&self) -> DataProperties {
        PROPERTIES
    }

    fn read(&self, _: &Path, _: &mut impl Rng) -> Result<Rows, DataError> {
        check(self.normalise, (self.train_limit, self.test_limit))?;
        let rows = mixture::dataset(Self::KIND.name, &mixture::paper_1d());
        Ok(Rows::from((rows.clone(), rows)))
    }
}

/// The 2-D toy of the DSVGD paper: two rows, one likelihood each ([`mixture`]); train and test are the same.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Mixture2d {
    /// `auto` or `none`: a row is a likelihood, not a sample.
    pub normalise: Normalise,
    /// 0: both rows are needed.
    pub train_limit: usize,
    /// 0: both rows are needed.
    pub test_limit: usize,
}

impl Source for Mixture2d {
    const KIND: Kind = Kind {
        name: "mixture-2d",
        about: "Toy density of [D] Fig. 10: two clients with a 2-d likelihood each; generated. Scale `auto`: `none`.",
        keys: &[NORMALISE, TRAIN_LIMIT, TEST_LIMIT],
    };
    const SET: DataSet = DataSet::generated(
        Self::KIND.name,
        "toy of the DSVGD paper's Fig. 10: two clients with a 2-d likelihood each",
        DSVGD,
    );

    fn properties(&self) -> DataProperties {
        PROPERTIES
    }

    fn read(&self, _: &Path, _: &mut impl Rng) -> Result<Rows, DataError> {
        check(self.normalise, (self.train_limit, self.test_limit))?;
        let rows = mixture::dataset(Self::KIND.name, &mixture::paper_2d());
        Ok(Rows::from((rows.clone(), rows)))
    }
}

/// Refuses to scale or to leave out rows that are likelihoods.
fn check(normalise: Normalise, limits: (usize, usize)) -> Result<(), DataError> {
    if !matches!(normalise, Normalise::Auto | Normalise::None) {
        let problem = "a row of a mixture is a likelihood; it takes auto or none";
        return Err(DataError::config("data.normalise", normalise.word(), problem));
    }
    if limits != (0, 0) {
        let problem = "a mixture has one row per client and needs them all; it takes 0";
        return Err(DataError::config("data.train_limit, data.test_limit", format!("{limits:?}"), problem));
    }
    Ok(())
}
