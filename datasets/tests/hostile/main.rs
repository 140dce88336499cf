//! Files that somebody has damaged, by accident or on purpose: thousands of seeded mutations of good files of every
//! format, plain and gzipped, and the files that make each reader take the most memory for its size. No panic, every
//! error names the file and the place in it, and memory stays within the multiples of docs/reliability.md.
//!
//! The same properties are fuzzed by the targets in `fuzz/`; this is the part that runs with every `cargo test`.

#[path = "../mutation/mod.rs"]
mod mutation;
#[path = "../peak/mod.rs"]
mod peak;

use fedstein_datasets::columns::{Categorical, DateFormat, Missing, Rule};
use fedstein_datasets::format::cifar::{self, Layout};
use fedstein_datasets::format::csv::{self, CsvOptions, Numbered};
use fedstein_datasets::format::idx::{self, Idx};
use fedstein_datasets::format::table::{self, TargetColumn};
use fedstein_datasets::format::{libsvm, splits};
use fedstein_datasets::{DataError, Header, Reading, Task, read_features};
use flate2::{Compression, write::GzEncoder};
use mutation::mutated;
use peak::peak;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use std::io::Write;
use std::path::Path;
use tempfile::TempDir;

/// The number of mutations per format.
const CASES: usize = 2_000;
/// The bytes that a reader allocates for any file: its buffers and a message.
const ROOM: usize = 1 << 18;

/// A format: a reader, good files, and the messages about a file as a whole, which name no line or byte.
struct Format {
    name: &'static str,
    read: fn(&Path) -> Result<(), DataError>,
    good: Vec<Vec<u8>>,
    whole: &'static [&'static str],
    /// The bound of the memory: this multiple of the unpacked file, plus [`ROOM`] and these bytes.
    times: usize,
    room: usize,
}

fn sign(label: i64) -> Option<usize> {
    [-1, 1].contains(&label).then_some(usize::from(label == 1))
}

fn read_table(path: &Path, task: Task) -> Result<(), DataError> {
    let (header, client) = (Header::Auto, if task == Task::Regression { "0" } else { "" });
    let reading = &Reading::default();
    let options = CsvOptions {
        delimiter: b',',
        header,
        target: "-1",
        client,
        task,
        reading,
        first: None,
        may_lack_groups: false,
    };
    csv::read(path, &options, &mut Numbered::default()).map(|_| ())
}

fn read_texts(path: &Path) -> Result<(), DataError> {
    let reading = &Reading {
        categorical: Categorical::Rule(Rule::Auto),
        date: vec!["0".into()],
        date_format: DateFormat::new("DD.MM.YYYY"),
        missing: Missing::Indicator,
        ..Reading::default()
    };
    let (header, task) = (Header::Yes, Task::Classification);
    let options = CsvOptions {
        delimiter: b',',
        header,
        target: "-1",
        client: "",
        task,
        reading,
        first: None,
        may_lack_groups: false,
    };
    csv::read(path, &options, &mut Numbered::default()).map(|_| ())
}

fn formats() -> Vec<Format> {
    let text = |files: &[&str]| files.iter().map(|file| file.as_bytes().to_vec()).collect::<Vec<_>>();
    let idx = |dims: &[usize], data: &[u8]| Idx { dims: dims.to_vec(), data: data.to_vec() }.to_bytes();
    const IDX: &[&str] = &["idx"];
    const CSV: &[&str] = &["no data rows", "column", "not a table"];
    const TABLE: &[&str] = &["no data rows"];
    let cifar = |labels: &[u8]| [labels, &[7; cifar::PIXELS]].concat().repeat(2);
    vec![
        Format {
            name: "idx images",
            read: |path| idx::read(path, idx::IMAGES).map(|_| ()),
            good: vec![idx(&[3, 2, 2], &[9; 12]), idx(&[1, 1, 1], &[0])],
            whole: IDX,
            times: 4,
            room: 0,
        },
        Format {
            name: "idx labels",
            read: |path| idx::read(path, idx::LABELS).map(|_| ()),
            good: vec![idx(&[12], &[1; 12])],
            whole: IDX,
            times: 4,
            room: 0,
        },
        Format {
            name: "cifar10",
            read: |path| cifar::read(path, Layout::Cifar10).map(|_| ()),
            good: vec![cifar(&[3])],
            whole: TABLE,
            times: 4,
            room: 0,
        },
        Format {
            name: "cifar100",
            read: |path| cifar::read(path, Layout::Cifar100).map(|_| ()),
            good: vec![cifar(&[3, 99])],
            whole: TABLE,
            times: 4,
            room: 0,
        },
        Format {
            name: "csv classification",
            read: |path| read_table(path, Task::Classification),
            good: text(&["x,y,label\n1,2,a\n3,-4e2,b\n", "\"1\",\" 2\",\"a \"\"b\"\"\"\r\n\r\n3,4,\"c\nd\"\r\n"]),
            whole: CSV,
            times: 64,
            room: 0,
        },
        Format {
            name: "csv regression",
            read: |path| read_table(path, Task::Regression),
            good: text(&["who,x,y\nme,1,2\nyou,3,-4e2\n", "1,2,3\n4,5,6"]),
            whole: CSV,
            times: 64,
            room: 0,
        },
        Format {
            name: "csv with texts, dates and missing cells",
            read: read_texts,
            good: text(&["d,k,x,y\n1.5.2024,a,?,1\n2.5.2024,b,2,0\n", "d,y\n31.12.1999,west\n1.1.2000,"]),
            whole: CSV,
            times: 64,
            room: 0,
        },
        Format {
            name: "features",
            read: |path| read_features(path, 2, None, b',', &[]).map(|_| ()),
            good: text(&["a,b\n1,2\n", "1,2\n3,4\n"]),
            whole: CSV,
            times: 64,
            room: 0,
        },
        Format {
            name: "table",
            read: |path| table::read(path, 2, "-1 and +1", sign).map(|_| ()),
            good: text(&["1,2,1\n0.5,1e3,-1\n", "7,8,+1\r\n\r\n-1,-2,-1"]),
            whole: TABLE,
            times: 12,
            room: 0,
        },
        Format {
            name: "regression table",
            read: |path| table::read_regression(path, 2, TargetColumn::First).map(|_| ()),
            good: text(&["1999,2,1\n2000.5,1e3,-1\n"]),
            whole: TABLE,
            times: 12,
            room: 0,
        },
        Format {
            name: "table of clients",
            read: |path| table::read_of_clients(path, 23, 1, "-1 and +1", sign).map(|_| ()),
            good: text(&["0,0.5,1\n22,1e3,-1\n"]),
            whole: TABLE,
            times: 12,
            room: 0,
        },
        Format {
            name: "libsvm",
            read: |path| libsvm::read(path, 54, "-1 and +1", sign).map(|_| ()),
            good: text(&["+1 1:0.5 3:-2\n-1 2:7 54:1e3 # c\n\n1\n"]),
            whole: TABLE,
            times: 64,
            room: 4 << 20,
        },
        Format {
            name: "splits",
            read: |path| splits::read(path, 1, 10, "data.test_split").map(|_| ()),
            good: text(&["3 1\n\n9 0 2\r\n"]),
            whole: &["has the splits", "has no splits"],
            times: 32,
            room: 0,
        },
    ]
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Reads the bytes. Returns the reader's result and its peak memory.
fn read(format: &Format, dir: &TempDir, bytes: &[u8]) -> (Result<(), String>, usize) {
    let path = dir.path().join("bad.file");
    std::fs::write(&path, bytes).unwrap();
    let (result, most) = peak(|| (format.read)(&path));
    // A new file is cheaper than one written over, which some file systems flush to the disk.
    std::fs::remove_file(&path).unwrap();
    (result.map_err(|error| error.to_string()), most)
}

fn assert_names_the_place(format: &Format, message: &str, bytes: &[u8]) {
    let shown = String::from_utf8_lossy(bytes);
    assert!(message.contains("bad.file"), "{}: {message}", format.name);
    let places = ["line ", "row ", "record ", "damaged gzip", "come out of it"];
    let placed = places.iter().chain(format.whole).any(|place| message.contains(place));
    assert!(placed, "{}: `{message}` has no place, for {shown:?}", format.name);
    assert!(!message.chars().any(char::is_control), "{}: {message:?}", format.name);
    assert!(message.len() < 1_000, "{}: {message}", format.name);
}

#[test]
fn mutated_files_are_read_or_refused_with_their_place_within_bounded_memory() {
    let dir = TempDir::new().unwrap();
    for (number, format) in formats().iter().enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(number as u64);
        let mut refused = 0;
        for case in 0..CASES {
            let good = &format.good[case % format.good.len()];
            // Every fourth is packed and every eighth damaged as a stream.
            let (bytes, unpacked) = match case % 8 {
                0 => (mutated(&gzip(good), &mut rng), good.len()),
                4 => {
                    let bytes = mutated(good, &mut rng);
                    (gzip(&bytes), bytes.len())
                }
                _ => {
                    let bytes = mutated(good, &mut rng);
                    let length = bytes.len();
                    (bytes, length)
                }
            };
            let (result, most) = read(format, &dir, &bytes);
            let bound = format.times * unpacked + ROOM + format.room;
            assert!(most <= bound, "{}: {most} bytes held for {unpacked}", format.name);
            if let Err(message) = result {
                refused += 1;
                assert_names_the_place(format, &message, &bytes);
            }
        }
        // A mutation that is never noticed would be no test, one that always is would leave the reading untested.
        assert!((CASES / 20..CASES).contains(&refused), "{}: {refused} of {CASES} refused", format.name);
    }
}

/// Files that make a reader hold as much as it can for their size.
fn greedy() -> Vec<(&'static str, Vec<u8>)> {
    const SIZE: usize = 1 << 20;
    let fill = |piece: &str| piece.repeat(SIZE / piece.len()).into_bytes();
    let distinct = |line: &dyn Fn(usize) -> String| (0..SIZE / 8).map(line).collect::<String>().into_bytes();
    vec![
        ("delimiters", fill(",")),
        ("line ends", [fill("\n"), b"1,2\n3,4\n".to_vec()].concat()),
        ("a quoted field of line ends", [b"1,\"".to_vec(), fill("\n"), b"\"\n".to_vec()].concat()),
        ("names of columns", fill("a,")),
        ("two columns", fill("1,2\n")),
        ("labels that differ", distinct(&|i| format!("1,{i:x}\n"))),
        ("clients that differ", distinct(&|i| format!("{i:x},1,2\n"))),
        ("one column", fill("1\n")),
        ("three columns", fill("1,1,1\n")),
        ("one endless field", fill("1")),
        ("empty fields of the libsvm table", fill("-1\n")),
        ("an index a line", fill("1 1:1\n")),
        ("images", Idx { dims: vec![SIZE / 4, 2, 2], data: vec![0; SIZE] }.to_bytes()),
        ("labels", Idx { dims: vec![SIZE], data: vec![0; SIZE] }.to_bytes()),
        ("a header of 2^31 images", Idx { dims: vec![1 << 31, 1, 1], data: vec![0; SIZE] }.to_bytes()),
        ("records of both kinds of CIFAR", vec![0; 3073 * 3074]),
    ]
}

#[test]
fn the_greediest_files_stay_within_the_bound() {
    let dir = TempDir::new().unwrap();
    for format in formats() {
        let (mut worst, mut by) = (0.0, "");
        for (what, bytes) in greedy() {
            let (_, most) = read(&format, &dir, &bytes);
            let bound = format.times * bytes.len() + ROOM + format.room;
            assert!(most <= bound, "{}, {what}: {most} bytes held for {}", format.name, bytes.len());
            let times = most as f64 / bytes.len() as f64;
            if times > worst {
                (worst, by) = (times, what);
            }
        }
        println!("{}: {worst:.1} times the file, by {by}", format.name);
    }
}

#[test]
fn a_decompression_bomb_is_refused_before_it_has_unpacked_more_than_16_mib() {
    // 64 MiB of one byte: 65 kB packed, a thousand times less.
    for byte in *b"\n1,\0" {
        let bomb = gzip(&vec![byte; 64 << 20]);
        assert!(bomb.len() < 70_000);
        let dir = TempDir::new().unwrap();
        for format in formats() {
            let (result, most) = read(&format, &dir, &bomb);
            let message = result.unwrap_err();
            assert_names_the_place(&format, &message, b"");
            let unpacked = 16 << 20;
            assert!(most <= format.times * unpacked + ROOM + format.room, "{}: {most} bytes held", format.name);
        }
    }
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("bomb.gz");
    std::fs::write(&path, gzip(&vec![b'\n'; 64 << 20])).unwrap();
    let message = table::read(&path, 2, "-1 and +1", sign).unwrap_err().to_string();
    assert!(
        message.ends_with(
            "more than 16777216 bytes come out of it; that is too much for its size. If it is right, unpack it with \
             gunzip first"
        ),
        "{message}"
    );
}

#[test]
fn a_well_compressed_file_of_a_few_mebibytes_is_read() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("same.csv.gz");
    let packed = gzip("0,0,1\n0,0,-1\n".repeat(1 << 20).as_bytes());
    assert!(packed.len() < 100_000, "13 MiB pack into {} bytes", packed.len());
    std::fs::write(&path, packed).unwrap();
    assert_eq!(table::read(&path, 2, "-1 and +1", sign).unwrap().1.len(), 2 << 20);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_to_its_end_and_a_directory_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("pipe");
    if !std::process::Command::new("mkfifo").arg(&path).status().is_ok_and(|status| status.success()) {
        return; // no such command here
    }
    let writer = path.clone();
    let thread = std::thread::spawn(move || std::fs::write(writer, "1,2,1\n3,4,-1\n").unwrap());
    assert_eq!(table::read(&path, 2, "-1 and +1", sign).unwrap().1, [1, 0]);
    thread.join().unwrap();
    for format in formats() {
        let message = (format.read)(dir.path()).unwrap_err().to_string();
        assert!(message.contains("is a directory"), "{}: {message}", format.name);
    }
}

#[test]
fn names_of_columns_and_classes_cannot_drive_a_terminal() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("bad.file");
    let complaint = |text: &str, target: &str| {
        std::fs::write(&path, text).unwrap();
        let (header, task) = (Header::Yes, Task::Classification);
        let reading = &Reading::default();
        let options = CsvOptions {
            delimiter: b',',
            header,
            target,
            client: "",
            task,
            reading,
            first: None,
            may_lack_groups: false,
        };
        csv::read(&path, &options, &mut Numbered::default()).unwrap_err().to_string()
    };
    let field = complaint("\u{1b}[2Jx,y\nno,1\n", "y");
    assert!(field.contains(r"column 1 (\u{1b}[2Jx): `no` is not a finite number"), "{field}");
    let listed = complaint("\u{1b}[2Jx,y\n1,1\n", "z");
    assert!(listed.contains(r"the header has `\u{1b}[2Jx`, `y`"), "{listed}");
    let long = complaint(&format!("{},y\nno,1\n", "x".repeat(100_000)), "y");
    assert!(long.len() < 500, "{} bytes of message", long.len());
}

/// The text in CSV quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A class's name, with marks that need quotes; no cell that stands for a missing value.
fn label() -> impl Strategy<Value = String> {
    "[a-z,\"\n;#]{0,6}[a-z]".prop_filter("missing", |label| !["na", "nan", "null"].contains(&label.trim()))
}

fn finite() -> impl Strategy<Value = f32> {
    any::<f32>().prop_filter("finite", |x| x.is_finite())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_csv_reads_back_as_it_was_written(
        rows in prop::collection::vec((finite(), finite(), label()), 1..20), packed: bool,
    ) {
        let text: String = rows.iter().map(|(a, b, label)| format!("{a},{},{b:e}\n", quoted(label))).collect();
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("x.csv");
        std::fs::write(&path, if packed { gzip(text.as_bytes()) } else { text.into_bytes() }).unwrap();
        let mut numbered = Numbered::default();
        let (header, task) = (Header::No, Task::Classification);
        let reading = &Reading::default();
        let options =
            CsvOptions { delimiter: b',', header, target: "1", client: "", task, reading, first: None, may_lack_groups: false };
        let table = csv::read(&path, &options, &mut numbered).unwrap();
        let (names, place) = numbered.classes.sorted();
        for (row, (a, b, label)) in rows.iter().enumerate() {
            prop_assert_eq!([table.features[[row, 0]], table.features[[row, 1]]], [*a, *b]);
            prop_assert_eq!(&names[place[table.labels[row]]], label.trim());
        }
    }

    #[test]
    fn tables_and_libsvm_read_back_as_they_were_written(
        rows in prop::collection::vec((finite(), finite(), any::<bool>(), 0usize..23), 1..20), packed: bool,
    ) {
        let dir = TempDir::new().unwrap();
        let write = |text: String| {
            let path = dir.path().join("x");
            std::fs::write(&path, if packed { gzip(text.as_bytes()) } else { text.into_bytes() }).unwrap();
            path
        };
        let label = |positive: bool| if positive { 1 } else { -1 };
        let expected: Vec<f32> = rows.iter().flat_map(|&(a, b, ..)| [a, b]).collect();
        let labels: Vec<usize> = rows.iter().map(|row| usize::from(row.2)).collect();
        let path = write(rows.iter().map(|(a, b, y, _)| format!("{a},{b:e},{}\n", label(*y))).collect());
        let (x, y) = table::read(&path, 2, "", sign).unwrap();
        prop_assert_eq!((x.iter().copied().collect::<Vec<_>>(), &y), (expected.clone(), &labels));

        let path = write(rows.iter().map(|(a, b, y, k)| format!("{k},{a},{b},{}\n", label(*y))).collect());
        let table = table::read_of_clients(&path, 23, 2, "", sign).unwrap();
        prop_assert_eq!((table.features, table.labels), (x.clone(), y));
        prop_assert_eq!(table.clients, rows.iter().map(|row| row.3).collect::<Vec<_>>());

        let path = write(rows.iter().map(|(a, b, y, _)| format!("{} 2:{a} 7:{b}\n", label(*y))).collect());
        let (x, y) = libsvm::read(&path, 7, "", sign).unwrap();
        prop_assert_eq!(x.rows().into_iter().flat_map(|row| [row[1], row[6]]).collect::<Vec<f32>>(), expected);
        prop_assert!(x.columns().into_iter().enumerate().all(|(j, c)| [1, 6].contains(&j) || c.iter().all(|x| *x == 0.0)));
        prop_assert_eq!(y, labels);
    }

    #[test]
    fn a_list_of_splits_reads_back_as_it_was_written(tests in prop::collection::btree_set(0usize..30, 1..20)) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("x");
        let line: Vec<String> = tests.iter().rev().map(usize::to_string).collect();
        std::fs::write(&path, format!("0\n{}\n", line.join(" "))).unwrap();
        prop_assert_eq!(splits::read(&path, 1, 30, "k").unwrap(), tests.into_iter().collect::<Vec<_>>());
    }
}
