//! Vehicles classified by 23 sensors, which are the clients (M. Duarte, Y. H. Hu, *Vehicle classification in
//! distributed sensor networks*, 2004). Only the training part that the repository litian96/ditto once held is
//! available: published numbers, on some 43,700 rows, cannot be reproduced with it.

use super::files::find_gzipped_file;
use super::kind::{Rows, Source};
use super::set::manual_file;
use super::signs::{SIGN_NAMES, SIGNS, sign};
use super::{DataFile, DataSet, Origin};
use crate::format::table;
use crate::leave_out::{self, LEAVE_OUT, LeftOut};
use crate::prepare::{NORMALISE, TEST_FRACTION, TEST_LIMIT, TRAIN_LIMIT};
use crate::{DataError, DataProperties, Dataset, Normalise, Targets, split};
use fedstein_schema::Kind;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

const CLIENTS: usize = 23;
/// The number of features, 50 acoustic and 50 seismic.
const WIDTH: usize = 100;

/// Vehicles by 23 sensors, two classes: 1,860 rows of 100 numbers with their natural clients, split within each
/// client. Manual download. Only the training part that one repository once held is available; published numbers cannot
/// be reproduced with it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Vehicle {
    /// The share of each client's rows for testing; a client keeps at least one for training. Not used with `leave_out`.
    pub test_fraction: f64,
    /// The sensors, by their numbers from 0, whose rows are the test rows; empty for a split of each client's rows.
    pub leave_out: Vec<String>,
    /// The scale of the features; `auto` is `none`: the publisher standardised each client's.
    pub normalise: Normalise,
    /// The number of training rows to keep, 0 for all; they are drawn from all clients together, so that one may lose
    /// all its rows.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

impl Source for Vehicle {
    const KIND: Kind = Kind {
        name: "vehicle",
        about: "Vehicles by 23 sensors, which are the natural clients: 1,860 rows (a part) of 100 features, 2 classes; manual download. Scale `auto`: `none`.",
        keys: &[
            NORMALISE,
            TEST_FRACTION.doc("Share of each client's rows held out for the test, drawn with `seed`."),
            LEAVE_OUT.doc("Sensors, by their numbers from 0, that take no part in the training: all of their rows are test rows, and no others; `test_fraction` is then not used. `[]`: none."),
            TRAIN_LIMIT,
            TEST_LIMIT,
        ],
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "vehicles by 23 sensors, which are the clients: 1,860 rows (a part) of 100 features, 2 classes",
        source: "M. Duarte, Y. H. Hu, Vehicle classification in distributed sensor networks, 2004; the training part of litian96/ditto",
        licence: "none stated",
        origin: Origin::Download,
        files: FILES,
        manual_download: Some(HOW),
    };

    fn properties(&self) -> DataProperties {
        let unseen_clients = !self.leave_out.is_empty();
        DataProperties { natural_clients: true, unseen_clients, ..DataProperties::classes(2) }
    }

    fn read(&self, data_dir: &Path, rng: &mut impl Rng) -> Result<Rows, DataError> {
        let rows = read(data_dir)?;
        match self.leave_out.is_empty() {
            true => split::within_clients(&rows, self.test_fraction, rng).map(Rows::from),
            false => {
                let LeftOut { train, test, notes } = leave_out::split(&rows, &self.leave_out)?;
                Ok(Rows { notes, ..(train, test).into() })
            }
        }
    }
}

/// All rows with their natural clients.
fn read(data_dir: &Path) -> Result<Dataset, DataError> {
    let path = find_gzipped_file(data_dir, "vehicle", "vehicle-23-ditto-train.csv")?;
    let table = table::read_of_clients(&path, CLIENTS, WIDTH, SIGNS, sign)?;
    Ok(Dataset {
        name: "vehicle".to_owned(),
        features: table.features,
        feature_shape: vec![WIDTH],
        feature_names: None,
        targets: Targets::Classes { labels: table.labels, names: SIGN_NAMES.map(str::to_owned).to_vec() },
        clients: Some(table.clients),
        client_names: None,
        groups: None,
        lines: None,
    })
}

const HOW: &str = "\
     vehicle/vehicle-23-ditto-train.csv.gz, gzipped or not: no header, one row per line, comma-separated numbers, the client \
     0 to 22, 100 features and the label -1 or +1\n  \
     from data/vehicle/data/train/mytrain.json of https://github.com/litian96/ditto, commit \
     602f571de561f7796104860108dfa91182bfbcd8: docs/data.md, \"Manual downloads\"";

const FILES: &[DataFile] = &[manual_file!(
    "vehicle/vehicle-23-ditto-train.csv",
    1673047,
    "3f915012d0ae6e7f99c1ab7f51876e4160971cbc4adf3c30a953fd1c999a1182"
)];
