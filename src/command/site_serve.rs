//! `fedstein site FILE --stdio`: answers a server over standard input and output.

use std::io::{self, BufReader, BufWriter};
use std::path::Path;

use super::for_site::for_site;
use crate::cli::CliError;
use crate::remote::Parcel;

/// Runs the command until the server closes the connection.
///
/// # Errors
/// The site's own file, its rows or its backend is unusable, or a stream fails.
pub(super) fn serve(file: &Path) -> Result<(), CliError> {
    for_site(file, |mut client, limits| {
        let (mut from, mut to) = (BufReader::new(io::stdin().lock()), BufWriter::new(io::stdout().lock()));
        while let Some(parcel) = Parcel::read_or_skip(&mut from, limits)? {
            let answer = match parcel {
                Ok(parcel) => client.answer(parcel),
                Err(large) => client.refuse(&large),
            };
            answer.write(&mut to)?;
        }
        Ok(())
    })
}
