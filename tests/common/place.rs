//! A temporary directory in which the binary runs, and the checks of every run of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A short `fedstein train`: 2 rounds of 5 + 5 steps with 4 particles.
pub const TINY: &str = "train --set rounds=2 --set algorithm.local_steps=5 --set algorithm.particles=4 --set partition.kind=iid --set data.rotate=none";

/// A directory of a test's own, in which the binary runs.
pub struct Place(TempDir);

/// The output of a successful run.
pub struct Printed {
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, with the directories above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// Rows of a CSV file, its header first; no field of it may hold a comma.
    pub fn table(&self, name: &str) -> Vec<Vec<String>> {
        cells(&self.text(name))
    }

    /// The names in a directory, hidden ones too.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The binary with the arguments of a line, ready to run in this directory.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fedstein"));
        command.args(line.split_whitespace()).current_dir(self.0.path()).env_remove("FEDSTEIN_DATA");
        // As on a server without a display, where Mesa would complain on standard error.
        command.env_remove("XDG_RUNTIME_DIR").env_remove("WAYLAND_DISPLAY");
        command
    }

    /// Runs a line that must succeed.
    pub fn works(&self, line: &str) -> Printed {
        works(&mut self.command(line))
    }

    /// Runs a line that must be refused as the user's mistake (exit code 2) with all of `words` in the message and
    /// nothing else: no panic, nothing on standard output, no file or directory made, changed or removed.
    pub fn refuses(&self, line: &str, words: &[&str]) -> String {
        self.refuses_command(&mut self.command(line), words)
    }

    pub fn refuses_command(&self, command: &mut Command, words: &[&str]) -> String {
        self.ends(command, 2, words)
    }

    /// Runs a line with valid arguments that must fail (exit code 1), with the same conditions.
    pub fn fails(&self, line: &str, words: &[&str]) -> String {
        self.ends(&mut self.command(line), 1, words)
    }

    fn ends(&self, command: &mut Command, code: i32, words: &[&str]) -> String {
        let before = content(self.0.path());
        let output = command.output().unwrap();
        let stderr = text(&output.stderr);
        let description = describe(command, &output);
        assert_eq!(output.status.code(), Some(code), "{description}");
        assert!(output.stdout.is_empty(), "{description}");
        assert!(!stderr.contains("panicked"), "{description}");
        assert!(stderr.lines().any(|line| line.starts_with("error: ")), "{description}");
        for word in words {
            assert!(stderr.contains(word), "no \"{word}\" in {description}");
        }
        let after = content(self.0.path());
        let names = |files: &BTreeMap<PathBuf, Option<Vec<u8>>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&before), names(&after), "files before and after {description}");
        assert!(before == after, "a file was changed by {description}");
        stderr
    }
}

/// Runs a command that must succeed.
pub fn works(command: &mut Command) -> Printed {
    let output = command.output().unwrap();
    let description = describe(command, &output);
    assert!(output.status.success(), "{description}");
    assert!(!description.contains("panicked"), "{description}");
    Printed { stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// What the binary prints, with `/` in the paths of Windows.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let is_manual = || text.starts_with(".ie ");
    match cfg!(windows) && !is_manual() {
        // A quote in a string of JSON is none of a path.
        true => text.replace(r#"\""#, "\0").replace(r"\\", "/").replace('\\', "/").replace('\0', r#"\""#),
        false => text,
    }
}

/// A value of TOML as the binary shows it in a command.
pub fn in_shell(value: &str) -> String {
    if cfg!(windows) { format!("\"{}\"", value.replace('"', "'")) } else { format!("'{value}'") }
}

/// The command that a text shows on a line of its own, for [`Place::works`].
pub fn command_in(text: &str) -> String {
    let command = text.lines().find_map(|line| line.strip_prefix("fedstein "));
    // Windows has quotes around names with commas between them.
    command.unwrap_or_else(|| panic!("no command in {text}")).replace('"', "")
}

pub fn cells(csv: &str) -> Vec<Vec<String>> {
    csv.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// The numbers of some cells.
pub fn numbers(cells: &[String]) -> Vec<f64> {
    cells.iter().map(|cell| cell.parse().unwrap_or_else(|_| panic!("`{cell}` is not a number"))).collect()
}

#[track_caller]
pub fn assert_near(got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance, "got {got}, want {want} within {tolerance}");
}

/// Everything below a directory: files with their bytes, directories without.
fn content(directory: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content(&path));
            found.insert(path, None);
        } else {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, Some(bytes));
        }
    }
    found
}

fn describe(command: &Command, output: &Output) -> String {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{command:?}: {}\n--- stdout\n{stdout}--- stderr\n{stderr}", output.status)
}

/// A file of idx: magic number, dimensions, bytes.
pub fn idx(magic: u32, dims: &[u32], data: &[u8]) -> Vec<u8> {
    let header = std::iter::once(&magic).chain(dims).flat_map(|word| word.to_be_bytes());
    header.chain(data.iter().copied()).collect()
}

/// Bytes as gzip, in one stored block.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(bytes);
    packed.extend(crc32(bytes).to_le_bytes());
    packed.extend(u32::from(length).to_le_bytes());
    packed
}

/// The checksum of RFC 1952, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

/// A small MNIST: 30 training and 30 test images of 4 × 4, three per label.
pub struct Mnist {
    files: BTreeMap<String, Vec<u8>>,
}

impl Mnist {
    pub fn new() -> Self {
        let labels: Vec<u8> = (0..30).map(|row| row % 10).collect();
        let pixels: Vec<u8> = labels.iter().flat_map(|label| (0..16).map(move |i| (label * 16 + i) * 3 / 2)).collect();
        let files = ["train", "t10k"].into_iter().flat_map(|half| {
            let images = (format!("{half}-images-idx3-ubyte"), idx(0x803, &[30, 4, 4], &pixels));
            [images, (format!("{half}-labels-idx1-ubyte"), idx(0x801, &[30], &labels))]
        });
        Self { files: files.collect() }
    }

    /// Replaces a file's bytes, or adds a file under another name.
    pub fn with(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert(name.to_owned(), bytes.into());
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.files.remove(name).unwrap();
        self
    }

    pub fn file(&self, name: &str) -> &[u8] {
        &self.files[name]
    }

    /// Writes the files to `<directory>/mnist/`.
    pub fn write(&self, place: &Place, directory: &str) {
        for (name, bytes) in &self.files {
            place.write(&format!("{directory}/mnist/{name}"), bytes);
        }
    }
}

/// Two plain features and a label in words, `rows` rows; the features separate the labels.
pub fn pets(rows: usize) -> String {
    let row = |i: usize| {
        let (kind, centre) = [("cat", -2.0), ("dog", 0.0), ("eel", 2.0)][i % 3];
        let wobble = (i * 37 % 19) as f64 / 19.0 - 0.5;
        format!("{:.3},{kind},{:.3}\n", centre + wobble, wobble * centre)
    };
    format!("width,kind,height\n{}", (0..rows).map(row).collect::<String>())
}

/// `price = 100 + 20 size − 5 age`, nearly.
pub fn prices(rows: usize) -> String {
    let row = |i: usize| {
        let (size, age) = ((i * 7 % 23) as f64 / 10.0, (i * 11 % 17) as f64 / 10.0);
        format!("{size},{age},{:.3}\n", 100.0 + 20.0 * size - 5.0 * age + (i % 5) as f64 / 10.0)
    };
    format!("size,age,price\n{}", (0..rows).map(row).collect::<String>())
}
