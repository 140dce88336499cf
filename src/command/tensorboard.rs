//! `fedstein train --tensorboard`: the metrics of every round as an event file of TensorBoard.
//!
//! An event file is a sequence of records: length, checksum of the length, an `Event` as protocol buffer, checksum of the
//! event. Of the messages in TensorFlow's `event.proto` and `summary.proto`, a run needs six fields.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::output;
use crate::cli::CliError;
use crate::experiment::progress::Observer;
use crate::machine;
use crate::report::RoundRecord;

/// The first event of every file.
const VERSION: &str = "brain.Event:2";

/// An observer that also writes an event file.
pub(super) struct Events {
    inner: Box<dyn Observer>,
    dir: PathBuf,
    out: Mutex<Option<File>>,
}

impl Events {
    /// Event files in `dir`, where TensorBoard shows the files of one run as one. A file is new in any case: nothing that
    /// exists is changed.
    ///
    /// # Errors
    /// There is something else than a directory, or none can be made.
    pub fn new(dir: &Path, inner: Box<dyn Observer>) -> Result<Self, CliError> {
        if dir.exists() && !dir.is_dir() {
            return Err(CliError::Usage(format!(
                "--tensorboard `{}` is not a directory; name one, or a new one",
                dir.display()
            )));
        }
        if !dir.is_dir() {
            output::check_new_place("--tensorboard", dir)?;
        }
        Ok(Self { inner, dir: dir.to_path_buf(), out: Mutex::new(None) })
    }

    /// A new file with its first event.
    fn open(&self) -> io::Result<File> {
        fs::create_dir_all(&self.dir)?;
        let (seconds, host) = (now(), machine::name().unwrap_or_else(|| "localhost".into()));
        let mut file = (0..100).find_map(|number| {
            let name = format!("events.out.tfevents.{seconds:.0}.{host}.{}.{number}", std::process::id());
            match OpenOptions::new().write(true).create_new(true).open(self.dir.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                opened => Some(opened),
            }
        });
        let mut file = file.take().unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))?;
        file.write_all(&record(&version_event(seconds)))?;
        Ok(file)
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The metrics, the bytes and the seconds of a round, by the names of the columns of `rounds.csv`.
fn scalars(record: &RoundRecord) -> Vec<(&str, f64)> {
    let metrics = record.metrics.iter().filter_map(|(name, value)| Some((&**name, (*value)?)));
    let others = [
        ("uplink_bytes", record.uplink_bytes as f64),
        ("downlink_bytes", record.downlink_bytes as f64),
        ("round_seconds", record.round_seconds),
    ];
    metrics.chain(others).filter(|(_, value)| value.is_finite()).collect()
}

/// An `Event` with the version of the file.
fn version_event(seconds: f64) -> Vec<u8> {
    let mut event = double(1, seconds);
    event.extend(bytes(3, VERSION.as_bytes()));
    event
}

/// An `Event` with a `Summary` of numbers by name at a step.
fn scalar_event(seconds: f64, step: usize, values: &[(&str, f64)]) -> Vec<u8> {
    let mut summary = Vec::new();
    for (name, value) in values {
        let mut of_value = bytes(1, name.as_bytes());
        of_value.push(2 << 3 | 5);
        of_value.extend((*value as f32).to_le_bytes());
        summary.extend(bytes(1, &of_value));
    }
    let mut event = double(1, seconds);
    event.push(2 << 3);
    event.extend(varint(step as u64));
    event.extend(bytes(5, &summary));
    event
}

/// A field of 64 bits.
fn double(field: u8, value: f64) -> Vec<u8> {
    let mut out = vec![field << 3 | 1];
    out.extend(value.to_le_bytes());
    out
}

/// A field with a text or a message.
fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    out.extend(varint(content.len() as u64));
    out.extend(content);
    out
}

/// A whole number in groups of seven bits, the lowest first.
fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// An event as a record of the file.
fn record(event: &[u8]) -> Vec<u8> {
    let length = (event.len() as u64).to_le_bytes();
    let mut out = length.to_vec();
    out.extend(checksum(&length));
    out.extend(event);
    out.extend(checksum(event));
    out
}

/// The checksum of a record: CRC-32C, rotated and moved by a constant, so that the checksum of a checksum is not 0.
fn checksum(of: &[u8]) -> [u8; 4] {
    crc32c::crc32c(of).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

impl Observer for Events {
    fn inner(&self) -> Option<&dyn Observer> {
        Some(&*self.inner)
    }

    fn started(&self, rounds: usize, note: &str) {
        match self.open() {
            Ok(file) => *self.out.lock().unwrap_or_else(PoisonError::into_inner) = Some(file),
            Err(error) => {
                let dir = self.dir.display();
                self.inner.note(&format!("--tensorboard `{dir}`: {error}; there is no event file"));
            }
        }
        self.inner.started(rounds, note);
    }

    fn finished_round(&self, round: &RoundRecord) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let event = record(&scalar_event(now(), round.round, &scalars(round)));
        // A file that cannot be written does not end the run.
        if out.as_mut().is_some_and(|file| file.write_all(&event).is_err()) {
            *out = None;
            self.inner.note(&format!("--tensorboard `{}`: the event file cannot be written", self.dir.display()));
        }
        drop(out);
        self.inner.finished_round(round);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The bytes that RecordWriter of TensorBoard 2.21.0 writes for these events.
    const FILE: &str = "1800000000000000a37f4b220900001060b813da411a0d627261696e2e4576656e743a32150f8ae42b00000000000000\
                        861bc34b0900006060b813da4110ac022a1d0a0a0a036e6c6c15cdcccc3d0a0f0a086163637572616379150000803fde\
                        721cfd1a00000000000000129bd82d0900008060b813da4110012a0d0a0b0a047a65726f1500000000ee4e7188";

    #[test]
    fn a_file_has_the_bytes_of_tensorboards_own_writer() {
        let events = [
            version_event(1_750_000_000.25),
            scalar_event(1_750_000_001.5, 300, &[("nll", 0.1), ("accuracy", 1.0)]),
            scalar_event(1_750_000_002.0, 1, &[("zero", 0.0)]),
        ];
        let found: String = events.iter().flat_map(|event| record(event)).map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, FILE);
    }
}
