//! Work for a site, on its own backend and threads.

use std::path::Path;

use super::threads::on_threads;
use crate::backend::{OnBackend, dispatch};
use crate::cli::CliError;
use crate::site::{SiteConfig, SiteRows};

/// Opens a site, and does some work for it on its own backend and threads.
///
/// # Errors
/// The site's own file, its rows or its backend is unusable, the threads cannot be started, or the error of the work.
pub(super) fn for_site<J>(file: &Path, job: impl FnOnce(SiteConfig, SiteRows) -> J) -> Result<(), CliError>
where
    J: OnBackend<Output = Result<(), CliError>> + Send,
{
    let site = SiteConfig::load(file)?;
    let rows = SiteRows::open(&site).map_err(|error| CliError::Usage(format!("{}: {error}", file.display())))?;
    let (backend, threads) = (site.backend.clone(), site.threads);
    let job = job(site, rows);
    on_threads(threads, || dispatch(&backend, job)).map_err(CliError::Failed)??
}
