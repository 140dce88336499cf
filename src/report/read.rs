//! Files that may come from anybody: read whole, as text, and quoted in messages.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most that is read of what has no length: a pipe, a device.
const WITHOUT_LENGTH: u64 = 1 << 31;

/// The whole of a file. A pipe is read too, but a device that never ends is refused after 2 GiB rather than read until
/// the memory is full.
///
/// # Errors
/// The file cannot be read, or does not end.
pub fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    let most = if meta.is_file() { meta.len().max(WITHOUT_LENGTH) } else { WITHOUT_LENGTH };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {most} bytes, and no end")));
    }
    Ok(bytes)
}

/// A file of text.
///
/// # Errors
/// As [`read_whole`], and bytes that are no UTF-8, with their line.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_whole(path)?).map_err(|error| {
        let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
        io::Error::new(io::ErrorKind::InvalidData, format!("line {line}: not UTF-8 text"))
    })
}

/// The line, from 1, of a byte.
pub(super) fn line_of(bytes: &[u8], at: usize) -> usize {
    1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count()
}

/// Foreign text as a message quotes it: on one line, without control characters, cut after 60 characters.
pub fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_none_is_told_its_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"a\nb\xff").unwrap();
        assert_eq!(read_text(file.path()).unwrap_err().to_string(), "line 2: not UTF-8 text");
        std::fs::write(file.path(), "ä\n").unwrap();
        assert_eq!(read_text(file.path()).unwrap(), "ä\n");
    }

    #[test]
    fn quoted_text_is_short_and_plain() {
        assert_eq!(quoted("p_0"), "p_0");
        assert_eq!(quoted("\u{1b}[2J\n"), r"\u{1b}[2J\n");
        assert_eq!(quoted(&"ä".repeat(1000)), format!("{}…", "ä".repeat(60)));
    }
}
