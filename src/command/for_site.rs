//! Work for a site, on its own backend and threads.

use std::path::Path;

use super::threads::on_threads;
use crate::cli::CliError;
use crate::experiment::at_site::SiteClient;
use crate::remote::Limits;
use crate::site::{SiteConfig, SiteRows};

/// Opens a site, and does some work for it on its own backend and threads.
///
/// # Errors
/// The site's own file, its rows or its backend is unusable, the threads cannot be started, or the error of the work.
pub(super) fn for_site(
    file: &Path,
    work: impl FnOnce(SiteClient, Limits) -> Result<(), CliError> + Send,
) -> Result<(), CliError> {
    let site = SiteConfig::load(file)?;
    let rows = SiteRows::open(&site).map_err(|error| CliError::Usage(format!("{}: {error}", file.display())))?;
    let (threads, limits) = (site.threads, Limits::of(site.limits.bytes()));
    on_threads(threads, || work(SiteClient::new(site, rows)?, limits)).map_err(CliError::Failed)?
}
