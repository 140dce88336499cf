//! `fedstein site FILE --stdio`: answers a server over standard input and output.

use std::io::{self, BufReader, BufWriter};
use std::path::Path;

use super::for_site::for_site;
use crate::backend::{Backend, OnBackend};
use crate::cli::CliError;
use crate::experiment::at_site::SiteClient;
use crate::remote::{Limits, Parcel};
use crate::site::{SiteConfig, SiteRows};

/// Runs the command until the server closes the connection.
///
/// # Errors
/// The site's own file, its rows or its backend is unusable, or a stream fails.
pub(super) fn serve(file: &Path) -> Result<(), CliError> {
    for_site(file, |site, rows| Job { site, rows })
}

/// The site, which waits for its backend to be opened.
struct Job {
    site: SiteConfig,
    rows: SiteRows,
}

impl OnBackend for Job {
    type Output = Result<(), CliError>;

    fn run<B: Backend>(self) -> Self::Output {
        let limits = Limits::of(self.site.limits.bytes());
        let mut client = SiteClient::<B>::new(self.site, self.rows);
        let (mut from, mut to) = (BufReader::new(io::stdin().lock()), BufWriter::new(io::stdout().lock()));
        while let Some(parcel) = Parcel::read(&mut from, limits)? {
            client.answer(parcel).write(&mut to)?;
        }
        Ok(())
    }
}
