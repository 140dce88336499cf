//! Vehicles told apart by 23 sensors, which are the clients (M. Duarte, Y. H. Hu, *Vehicle classification in
//! distributed sensor networks*, 2004). Only the training part that the repository litian96/ditto once held is known
//! to us: published numbers, on some 43,700 rows, cannot be reproduced with it.

use super::put_there_packed;
use crate::format::table;
use crate::{DataError, Dataset, Targets};
use std::path::Path;

const CLIENTS: usize = 23;
/// 50 acoustic and 50 seismic.
const WIDTH: usize = 100;

/// All rows with their natural clients.
pub(crate) fn read(data_dir: &Path) -> Result<Dataset, DataError> {
    let path = put_there_packed(data_dir, "vehicle", "vehicle-23-ditto-train.csv")?;
    let table = table::read_of_clients(&path, CLIENTS, WIDTH, super::SIGNS, super::sign)?;
    Ok(Dataset {
        name: "vehicle".to_owned(),
        features: table.features,
        feature_shape: vec![WIDTH],
        feature_names: None,
        targets: Targets::Classes { labels: table.labels, names: super::SIGN_NAMES.map(str::to_owned).to_vec() },
        clients: Some(table.clients),
    })
}
