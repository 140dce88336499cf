//! `fedstein data`: lists, describes and downloads data sets.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use crate::cli::{CliError, Data, print_text};
use crate::datasets::registry::{FileStatus, Origin, find, is_usable, sets, status};
use crate::datasets::{DataSet, Progress, fetch};
use crate::experiment::schema::did_you_mean;

/// Runs the command.
///
/// # Errors
/// There is no such data set, or it cannot be downloaded, or standard output cannot be written.
pub(super) fn data(typed: Data) -> Result<(), CliError> {
    let dir = typed.data_dir();
    match &typed {
        Data::List { .. } => {
            let lines: String =
                sets().iter().map(|set| format!("{:<16}{:<20}{}\n", set.name, state(set, dir), set.summary)).collect();
            print_text(&format!("data directory: {}\n{lines}", dir.display()))
        }
        Data::Info { name, .. } => print_text(&info(named(name)?, dir)),
        Data::Fetch { name, .. } => {
            let set = named(name)?;
            if set.origin != Origin::Download {
                return print_text(&format!("{}: {}, there is nothing to fetch\n", set.name, state(set, dir)));
            }
            // A failing mirror is not the user's mistake, so this is not a usage error.
            let paths = fetch(set, dir, &mut show).map_err(|error| CliError::Failed(error.to_string()))?;
            let lines: String = paths.iter().map(|path| format!("{}\n", path.display())).collect();
            print_text(&lines)
        }
    }
}

fn named(name: &str) -> Result<&'static DataSet, CliError> {
    find(name)
        .map_err(|error| CliError::Usage(format!("{error}{}", did_you_mean(name, sets().iter().map(|set| set.name)))))
}

fn state(set: &DataSet, dir: &Path) -> &'static str {
    match set.origin {
        Origin::Embedded => "built in",
        Origin::Generated => "generated",
        Origin::Own => "your file",
        Origin::Download => {
            let (files, own) = (status(set, dir), set.manual_download.is_some());
            let count = files.iter().filter(|(_, status)| is_usable(set, status)).count();
            let part = files.iter().any(|(_, status)| matches!(status, FileStatus::Part(_)));
            match (count == files.len(), own) {
                (true, _) if part => "here, a part",
                (true, _) => "here",
                (false, true) if count > 0 => "partly here",
                (false, true) => "manual download",
                (false, false) => "to be fetched",
            }
        }
    }
}

fn info(set: &DataSet, dir: &Path) -> String {
    let mut text = format!(
        "{}\n  {}\n  source   {}\n  licence  {}\n  state    {}\n",
        set.name,
        set.summary,
        set.source,
        set.licence,
        state(set, dir)
    );
    for (file, status) in status(set, dir) {
        let state = match status {
            FileStatus::Present => "here".to_owned(),
            FileStatus::Alternative(path) => format!("{} is used instead", path.display()),
            FileStatus::Part(path) => format!("{} is used instead, with a part of its rows", path.display()),
            FileStatus::Missing => "missing".to_owned(),
            FileStatus::WrongSize { bytes } if set.manual_download.is_some() => format!("another copy: {bytes} bytes"),
            FileStatus::WrongSize { bytes } => format!("damaged: {bytes} bytes"),
        };
        let sum = match file.is_known() {
            true => format!("{} bytes  sha256 {}", file.bytes, file.sha256),
            false => "size and checksum not known".to_owned(),
        };
        let _ = writeln!(text, "  {}  {sum}  {state}", dir.join(file.path).display());
    }
    if let Some(how) = set.manual_download {
        let _ = writeln!(text, "  manual   {how}");
    }
    text
}

/// Shows progress on standard error: one line per event, and one line that counts a download's bytes.
fn show(progress: Progress) {
    let mut stderr = io::stderr().lock();
    // A failed write is ignored, because standard error may be closed.
    let _ = match progress {
        Progress::Present { file } => writeln!(stderr, "{file}: already here"),
        Progress::Instead { file, path } => {
            writeln!(
                stderr,
                "{file}: {} is used instead, unchecked; without it the file would be fetched",
                path.display()
            )
        }
        Progress::Started { file, url, .. } => writeln!(stderr, "{file}: from {url}"),
        Progress::Received { bytes, total, .. } if bytes == total => writeln!(stderr, "  {total} bytes"),
        Progress::Received { .. } => Ok(()),
        Progress::Failed { file, url, reason } => writeln!(stderr, "{file}: {url} failed: {reason}"),
        Progress::Done { file } => writeln!(stderr, "{file}: complete, checksum correct"),
    };
}
