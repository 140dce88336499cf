//! Rows that lie at the sites of a federation, and nowhere else.

use super::{DataSet, Origin, Rows, Source};
use crate::format::csv::Task;
use crate::prepare::NORMALISE;
use crate::properties::TargetKind;
use crate::source::csv::TASK;
use crate::{DataError, DataProperties, Normalise};
use fedstein_schema::{Key, Kind};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Rows at the sites of a federation: each site reads its own.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Sites {
    /// The type of the target.
    pub task: Task,
    /// The scale of the features; `auto` is `standard`, over the training rows of all sites.
    pub normalise: Normalise,
    /// Always 0: all rows of a site are kept.
    #[serde(skip, default)]
    pub train_limit: usize,
    /// Always 0: all rows of a site are kept.
    #[serde(skip, default)]
    pub test_limit: usize,
}

const KEYS: &[Key] = &[TASK, NORMALISE];

impl Source for Sites {
    const KIND: Kind = Kind {
        name: "sites",
        about: "Rows at the sites of a federation, each with a file of its own (docs/federation.md); `fedstein train --sites`. `[partition]` is not used. Scale `auto`: `standard` over all sites; `minmax`, `unit` and `published` are refused.",
        keys: KEYS,
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "rows at the sites of a federation, which never leave them",
        source: "each site's",
        licence: "each site's",
        origin: Origin::Own,
        files: &[],
        manual_download: None,
    };

    fn properties(&self) -> DataProperties {
        let target = match self.task {
            Task::Classification => TargetKind::Classes(None),
            Task::Regression => TargetKind::Real,
        };
        DataProperties { target, natural_clients: false, superclasses: false }
    }

    fn auto_scale(&self) -> Normalise {
        Normalise::Standard
    }

    fn read(&self, _: &Path, _: &mut impl Rng) -> Result<Rows, DataError> {
        let problem = "the rows are at sites, which a run in one process does not ask; name the sites' own files with \
                       `--sites a.toml,b.toml`";
        Err(DataError::config("data.kind", Self::KIND.name, problem))
    }
}
