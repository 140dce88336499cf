//! The client as a feature: the column that says of each new row of a finished run whose it is.

use super::config::Config;
use super::finished::Finished;
use crate::datasets::DataConfig;
use crate::datasets::columns::{CellKind, Column};
use crate::error::RunError;
use crate::report::ClientNames;

/// The name of the column of the clients, where it is a feature: `None` where a row does not say of which client it is.
///
/// # Errors
/// An internal error of the configuration.
pub(super) fn column(config: &Config) -> Result<Option<String>, RunError> {
    let (DataConfig::Csv(csv), scheme) = (config.data()?, config.partition()?.scheme) else { return Ok(None) };
    let is_feature = scheme.properties().natural_clients && csv.client_is_feature();
    Ok(is_feature.then(|| csv.client_column.clone()))
}

impl Finished {
    /// The column that says of a new row that it is of this client: that of the clients, by its name, where it is a feature
    /// of the run; `None` where it is none.
    ///
    /// # Errors
    /// It is one, and there is no such client.
    pub fn rows_of_client(&self, config: &Config, name: &str) -> Result<Option<&str>, RunError> {
        let Some(column) = self.client_feature(config)? else { return Ok(None) };
        let names = ClientNames::new(column.categories.clone());
        self.numbered(name, &names, names.as_slice().len())?;
        Ok(column.name.as_deref())
    }

    /// The column of the clients, where it is a feature and they are those that it names.
    pub(super) fn client_feature(&self, config: &Config) -> Result<Option<&Column>, RunError> {
        let Some(name) = column(config)? else { return Ok(None) };
        let is_it = |column: &&Column| column.kind == CellKind::Category && column.name.as_ref() == Some(&name);
        Ok(self.card.encoding.as_ref().and_then(|encoding| encoding.columns.iter().find(is_it)))
    }
}
