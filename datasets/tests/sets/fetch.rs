//! Downloads against a server on the loopback interface: good, truncated, wrong, absent and misleading answers.

use fedstein_datasets::{DataError, DataFile, DataSet, Origin, Progress, fetch};
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// What the server does for the next request of a path; the last one repeats.
#[derive(Clone)]
enum Answer {
    /// 200 with the whole file, whatever range was requested.
    Whole(Vec<u8>),
    /// 206 where a range was requested, 200 otherwise.
    Ranged(Vec<u8>),
    /// The length of the whole file, and a connection that closes after this many bytes.
    Cut(Vec<u8>, usize),
    /// 404, the file is absent.
    Absent,
    /// 302, a redirect to this address.
    Redirect(String),
    /// 416, the range is refused.
    NoRange,
    /// 200 without a length.
    Endless(Vec<u8>),
    /// 200 that announces another length than it has bytes.
    Announces(Vec<u8>, usize),
    /// 206 that starts at another byte than requested.
    Elsewhere(Vec<u8>),
    /// 200 in chunks, the second with a length that is not a number.
    BadChunk(Vec<u8>),
}

type Log = Arc<Mutex<Vec<String>>>;

/// A server thread; returns its address and the log of `path range` lines.
fn serve(routes: Vec<(&'static str, Vec<Answer>)>) -> (String, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let log = Log::default();
    let seen = Arc::clone(&log);
    std::thread::spawn(move || {
        let mut routes = routes;
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = answer(stream, &mut routes, &seen);
        }
    });
    (address, log)
}

fn answer(mut stream: TcpStream, routes: &mut [(&'static str, Vec<Answer>)], log: &Log) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let path = lines.next().unwrap()?.split(' ').nth(1).unwrap_or("").to_owned();
    let mut start = None;
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        if let Some(range) = line.to_lowercase().strip_prefix("range: bytes=") {
            start = range.trim_end_matches('-').parse::<usize>().ok();
        }
    }
    log.lock().unwrap().push(format!("{path} {}", start.map_or("all".into(), |s| s.to_string())));
    let answers = &mut routes.iter_mut().find(|(name, _)| *name == path).expect("a known path").1;
    let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
    let head = |status: &str, length: usize, more: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n")
    };
    let (head, body) = match answer {
        Answer::Whole(bytes) => (head("200 OK", bytes.len(), ""), bytes),
        Answer::Ranged(bytes) => match start {
            Some(start) => {
                let range = format!("Content-Range: bytes {start}-{}/{}\r\n", bytes.len() - 1, bytes.len());
                (head("206 Partial Content", bytes.len() - start, &range), bytes[start..].to_vec())
            }
            None => (head("200 OK", bytes.len(), ""), bytes),
        },
        Answer::Cut(bytes, at) => (head("200 OK", bytes.len(), ""), bytes[..at].to_vec()),
        Answer::Absent => (head("404 Not Found", 0, ""), Vec::new()),
        Answer::Redirect(to) => (head("302 Found", 0, &format!("Location: {to}\r\n")), Vec::new()),
        Answer::NoRange => (head("416 Range Not Satisfiable", 0, ""), Vec::new()),
        Answer::Announces(bytes, length) => (head("200 OK", length, ""), bytes),
        Answer::Elsewhere(bytes) => {
            let range = format!("Content-Range: bytes 0-{}/{}\r\n", bytes.len() - 1, bytes.len());
            (head("206 Partial Content", bytes.len(), &range), bytes)
        }
        Answer::BadChunk(bytes) => {
            let chunk = [format!("{:x}\r\n", bytes.len() / 2).as_bytes(), &bytes[..bytes.len() / 2]].concat();
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
            (head.to_owned(), [&chunk[..], b"\r\nlots\r\n"].concat())
        }
        Answer::Endless(bytes) => ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_owned(), bytes),
    };
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)?;
    stream.flush()
}

fn content() -> Vec<u8> {
    (0..200_000u32).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn wrong() -> Vec<u8> {
    content().into_iter().rev().collect()
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A set of one file with these mirrors. The registry's texts are static, so these are leaked.
fn set_of(path: &'static str, mirrors: &[String]) -> DataSet {
    let mirrors: Vec<&'static str> = mirrors.iter().map(|url| &*url.clone().leak()).collect();
    let file = DataFile {
        path,
        bytes: content().len() as u64,
        sha256: sum(&content()).leak(),
        mirrors: mirrors.leak(),
        alternatives: &[],
        part: &[],
    };
    DataSet {
        name: "test",
        summary: "",
        source: "",
        licence: "",
        origin: Origin::Download,
        files: vec![file].leak(),
        manual_download: None,
    }
}

fn get(set: &DataSet, dir: &Path) -> Result<Vec<String>, DataError> {
    let mut events = Vec::new();
    fetch(set, dir, &mut |progress| match progress {
        Progress::Received { bytes, total, .. } => assert!(bytes <= total),
        Progress::Present { .. } => events.push("present".into()),
        Progress::Instead { .. } => events.push("instead".into()),
        Progress::Started { resumed, .. } => events.push(format!("started at {resumed}")),
        Progress::Failed { reason, .. } => events.push(format!("failed: {reason}")),
        Progress::Done { .. } => events.push("done".into()),
    })?;
    Ok(events)
}

/// Asserts that the directory holds the correct file and nothing else.
fn assert_whole(dir: &TempDir) {
    assert_eq!(std::fs::read(dir.path().join("test/file")).unwrap(), content());
    assert_eq!(std::fs::read_dir(dir.path().join("test")).unwrap().count(), 1);
}

#[test]
fn a_good_file_is_fetched_once_and_then_left_alone() {
    let (url, log) = serve(vec![("/file", vec![Answer::Whole(content())])]);
    let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &[format!("{url}/file")]));
    assert_eq!(get(&set, dir.path()).unwrap(), ["started at 0", "done"]);
    assert_whole(&dir);
    assert_eq!(get(&set, dir.path()).unwrap(), ["present"]);
    assert_eq!(log.lock().unwrap().len(), 1);
}

#[test]
fn a_truncated_answer_is_resumed_where_it_broke_off() {
    let (url, log) = serve(vec![("/file", vec![Answer::Cut(content(), 90_000), Answer::Ranged(content())])]);
    let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &[format!("{url}/file")]));
    let events = get(&set, dir.path()).unwrap();
    assert!(events[1].starts_with("failed: broke off after 90000 of 200000 bytes"), "{events:?}");
    assert_eq!(events[2..], ["started at 90000", "done"]);
    assert_eq!(*log.lock().unwrap(), ["/file all", "/file 90000"]);
    assert_whole(&dir);
}

#[test]
fn a_part_of_an_earlier_run_is_resumed_and_a_server_that_cannot_restarts() {
    for (answer, start) in [(Answer::Ranged(content()), 50_000), (Answer::Whole(content()), 0)] {
        let (url, _) = serve(vec![("/file", vec![answer])]);
        let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &[format!("{url}/file")]));
        std::fs::create_dir(dir.path().join("test")).unwrap();
        std::fs::write(dir.path().join("test/file.part"), &content()[..50_000]).unwrap();
        assert_eq!(get(&set, dir.path()).unwrap(), [format!("started at {start}"), "done".into()]);
        assert_whole(&dir);
    }
}

#[test]
fn a_truncation_that_stays_leaves_a_part_and_no_file() {
    let (url, _) = serve(vec![("/file", vec![Answer::Cut(content(), 90_000)])]);
    let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &[format!("{url}/file")]));
    let message = get(&set, dir.path()).unwrap_err().to_string();
    assert!(message.contains("could not fetch") && message.contains("test/file"), "{message}");
    assert!(!dir.path().join("test/file").exists());
    assert_eq!(std::fs::metadata(dir.path().join("test/file.part")).unwrap().len(), 90_000);
}

#[test]
fn a_wrong_file_is_removed_and_the_error_names_both_sums() {
    let (url, _) = serve(vec![("/file", vec![Answer::Whole(wrong())])]);
    let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &[format!("{url}/file")]));
    let error = get(&set, dir.path()).unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, DataError::Checksum { .. }), "{message}");
    assert!(message.contains(&sum(&content())) && message.contains(&sum(&wrong())), "{message}");
    assert_eq!(std::fs::read_dir(dir.path().join("test")).unwrap().count(), 0);
}

#[test]
fn after_a_wrong_an_absent_and_an_endless_answer_the_next_mirror_is_tried() {
    let mut longer = content();
    longer.extend([0; 100]);
    for bad in [Answer::Absent, Answer::Whole(wrong()), Answer::Whole(longer.clone()), Answer::Endless(longer)] {
        let (url, _) = serve(vec![("/bad", vec![bad]), ("/file", vec![Answer::Ranged(content())])]);
        let mirrors = [format!("{url}/bad"), format!("{url}/file")];
        let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &mirrors));
        assert_eq!(get(&set, dir.path()).unwrap().last().unwrap(), "done");
        assert_whole(&dir);
    }
}

#[test]
fn a_bad_part_is_thrown_away_and_the_same_mirror_asked_again() {
    let (url, log) = serve(vec![("/file", vec![Answer::Ranged(content())])]);
    let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &[format!("{url}/file")]));
    std::fs::create_dir(dir.path().join("test")).unwrap();
    std::fs::write(dir.path().join("test/file.part"), &wrong()[..50_000]).unwrap();
    get(&set, dir.path()).unwrap();
    assert_eq!(*log.lock().unwrap(), ["/file 50000", "/file all"]);
    assert_whole(&dir);
}

#[test]
fn a_part_that_is_too_long_or_not_accepted_is_started_afresh() {
    let (url, _) = serve(vec![("/no", vec![Answer::NoRange]), ("/file", vec![Answer::Ranged(content())])]);
    let mirrors = [format!("{url}/no"), format!("{url}/file")];
    for part in [vec![0; 300_000], content()[..10].to_vec()] {
        let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &mirrors));
        std::fs::create_dir(dir.path().join("test")).unwrap();
        std::fs::write(dir.path().join("test/file.part"), part).unwrap();
        get(&set, dir.path()).unwrap();
        assert_whole(&dir);
    }
}

#[test]
fn redirects_within_http_are_followed_and_others_refused() {
    let routes = vec![
        ("/evil", vec![Answer::Redirect("file:///etc/passwd".into())]),
        ("/loop", vec![Answer::Redirect("/loop".into())]),
        ("/moved/here", vec![Answer::Redirect("../file".into()), Answer::Redirect("/file".into())]),
        ("/moved/../file", vec![Answer::Absent]),
        ("/file", vec![Answer::Whole(content())]),
    ];
    let (url, _) = serve(routes);
    let mirrors = ["evil", "loop", "moved/here", "moved/here"].map(|path| format!("{url}/{path}"));
    let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &mirrors));
    let events = get(&set, dir.path()).unwrap();
    assert_eq!(events[0], "failed: refused a redirect to file:///etc/passwd: only http and https are followed");
    assert_eq!(events[1], "failed: more than 5 redirects");
    assert_eq!(events.last().unwrap(), "done");
    assert_whole(&dir);
}

#[test]
fn a_body_of_another_length_than_the_files_is_refused_before_it_is_written() {
    for (length, problem) in [(200_001, "announces 200001 bytes where 200000 are expected"), (17, "announces 17 bytes")]
    {
        let (url, log) = serve(vec![("/file", vec![Answer::Announces(content(), length)])]);
        let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &[format!("{url}/file")]));
        let message = get(&set, dir.path()).unwrap_err().to_string();
        assert!(message.contains(problem) && message.contains(&url), "{message}");
        assert_eq!(std::fs::read_dir(dir.path().join("test")).unwrap().count(), 0);
        assert_eq!(log.lock().unwrap().len(), 1);
    }
}

#[test]
fn an_endless_body_is_cut_off_at_the_files_length_and_nothing_stays() {
    let (url, _) = serve(vec![("/file", vec![Answer::Endless(vec![7; 1 << 22])])]);
    let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &[format!("{url}/file")]));
    let message = get(&set, dir.path()).unwrap_err().to_string();
    assert!(message.contains("sends more than the 200000 bytes of the file"), "{message}");
    assert_eq!(std::fs::read_dir(dir.path().join("test")).unwrap().count(), 0);
}

#[test]
fn a_part_from_elsewhere_and_a_broken_chunk_never_become_a_file() {
    for answer in [Answer::Elsewhere(content()), Answer::BadChunk(content())] {
        let (url, _) = serve(vec![("/file", vec![answer])]);
        let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &[format!("{url}/file")]));
        std::fs::create_dir(dir.path().join("test")).unwrap();
        std::fs::write(dir.path().join("test/file.part"), &content()[..50_000]).unwrap();
        let message = get(&set, dir.path()).unwrap_err().to_string();
        assert!(message.contains("could not fetch"), "{message}");
        assert!(!dir.path().join("test/file").exists(), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_the_part_is_not_written_through() {
    let (url, _) = serve(vec![("/file", vec![Answer::Whole(content())])]);
    let (dir, set) = (TempDir::new().unwrap(), set_of("test/file", &[format!("{url}/file")]));
    std::fs::create_dir(dir.path().join("test")).unwrap();
    std::fs::write(dir.path().join("outside"), "mine").unwrap();
    std::os::unix::fs::symlink(dir.path().join("outside"), dir.path().join("test/file.part")).unwrap();
    get(&set, dir.path()).unwrap();
    assert_whole(&dir);
    assert_eq!(std::fs::read_to_string(dir.path().join("outside")).unwrap(), "mine");
}

#[test]
fn mirrors_of_another_scheme_and_names_outside_the_directory_are_refused() {
    let dir = TempDir::new().unwrap();
    let message = get(&set_of("test/file", &["file:///etc/passwd".into()]), dir.path()).unwrap_err().to_string();
    assert!(message.contains("refused"), "{message}");
    for name in ["../outside", "/tmp/outside"] {
        let error = get(&set_of(name, &["http://127.0.0.1:9/".into()]), dir.path()).unwrap_err();
        assert!(matches!(error, DataError::UnsafeName { .. }), "{error}");
    }
}

#[test]
fn a_mirror_without_a_server_is_an_error_with_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/file", listener.local_addr().unwrap());
    drop(listener);
    let message =
        get(&set_of("test/file", std::slice::from_ref(&url)), TempDir::new().unwrap().path()).unwrap_err().to_string();
    assert!(message.contains(&url), "{message}");
}

#[test]
fn a_manual_download_names_the_missing_files_and_how_to_get_them() {
    let dir = TempDir::new().unwrap();
    let set = |name| fedstein_datasets::registry::find(name).unwrap();
    let message = |name| get(set(name), dir.path()).unwrap_err().to_string();
    let year = message("year-prediction");
    assert!(year.contains("https://archive.ics.uci.edu/dataset/203/yearpredictionmsd"), "{year}");
    assert!(year.contains("missing: ") && year.contains("year-prediction/YearPredictionMSD.txt\n"), "{year}");
    let raetsch = message("raetsch");
    assert!(raetsch.contains("raetsch/banana.csv.gz and 12 more (`fedstein data info raetsch`)"), "{raetsch}");
    assert!(raetsch.contains("the label -1 or +1"), "{raetsch}");
    assert!(message("uci-regression").contains("NAME.test-splits.txt.gz: line k has the rows of test split k"));
    assert!(message("vehicle").contains("the client 0 to 22, 100 features and the label -1 or +1"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_users_own_copy_is_used_with_any_size() {
    let dir = TempDir::new().unwrap();
    for (set, file) in [("year-prediction", "YearPredictionMSD.txt"), ("vehicle", "vehicle-23-ditto-train.csv")] {
        std::fs::create_dir(dir.path().join(set)).unwrap();
        let path = dir.path().join(set).join(file);
        std::fs::write(&path, "mine").unwrap();
        let set = fedstein_datasets::registry::find(set).unwrap();
        assert_eq!(get(set, dir.path()).unwrap(), ["present"]);
        assert_eq!(fetch(set, dir.path(), &mut |_| {}).unwrap(), [path]);
    }
}

#[test]
fn sets_without_files_are_done_at_once() {
    let digits = fedstein_datasets::registry::find("digits").unwrap();
    assert!(fetch(digits, Path::new("/nonexistent"), &mut |_| panic!("nothing to report")).unwrap().is_empty());
}
