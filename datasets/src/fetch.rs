//! Downloads the files of a data set. A file is either absent or whole and checked: bytes go to `FILE.part`, are
//! summed, flushed to the disk, and only then take the final name. A `.part` that stays behind is resumed next time.

use crate::DataError;
use crate::registry::{self, DataFile, DataSet, FileStatus};
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// What [`fetch`] is doing, for a progress bar or a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The file is there already and its checksum is right. (Of a set without a download: it is there.)
    Present {
        /// Path below the data directory.
        file: &'a str,
    },
    /// A mirror answers.
    Started {
        /// Path below the data directory.
        file: &'a str,
        /// The mirror's address.
        url: &'a str,
        /// Bytes that an earlier try left behind and that are kept.
        resumed: u64,
        /// Bytes of the whole file.
        total: u64,
    },
    /// Bytes have come.
    Received {
        /// Path below the data directory.
        file: &'a str,
        /// Bytes so far.
        bytes: u64,
        /// Bytes of the whole file.
        total: u64,
    },
    /// A mirror failed; the next try follows, if there is one.
    Failed {
        /// Path below the data directory.
        file: &'a str,
        /// The mirror's address.
        url: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// The file is complete, checked and in its place.
    Done {
        /// Path below the data directory.
        file: &'a str,
    },
}

const REDIRECTS: usize = 5;
/// Tries of one mirror, as long as each brings new bytes.
const RESUMES: usize = 4;

/// Fetches every file of a set that is not there yet, mirror after mirror. Sets without files are done at once; of a
/// set without a download ([`DataSet::by_hand`]), whose files may be the user's own copies, it is only looked whether
/// they are there.
///
/// # Returns
/// The files' final paths.
///
/// # Errors
/// A set without a download some of whose files are not there, a file name that leaves the data directory, a directory
/// that cannot be written, and for each file that no mirror gave whole and with the publisher's checksum one line a
/// mirror with the reason.
pub fn fetch(set: &DataSet, data_dir: &Path, report: &mut dyn FnMut(Progress)) -> Result<Vec<PathBuf>, DataError> {
    if let Some(how) = set.by_hand {
        return look(set, how, data_dir, report);
    }
    let agent = agent();
    let mut paths = Vec::with_capacity(set.files.len());
    for file in set.files {
        let path = data_dir.join(safe(file.path)?);
        if is_whole(&path, file)? {
            report(Progress::Present { file: file.path });
        } else {
            fetch_file(&agent, file, &path, report)?;
            report(Progress::Done { file: file.path });
        }
        paths.push(path);
    }
    Ok(paths)
}

/// The files of a set without a download, in whichever form they are there.
fn look(
    set: &DataSet,
    how: &str,
    data_dir: &Path,
    report: &mut dyn FnMut(Progress),
) -> Result<Vec<PathBuf>, DataError> {
    let (mut paths, mut missing) = (Vec::with_capacity(set.files.len()), Vec::new());
    for (file, state) in registry::status(set, data_dir) {
        let path = match state {
            FileStatus::Missing => {
                missing.push(data_dir.join(file.path));
                continue;
            }
            FileStatus::Alternative(path) | FileStatus::Part(path) => path,
            FileStatus::Present | FileStatus::WrongSize { .. } => data_dir.join(file.path),
        };
        report(Progress::Present { file: file.path });
        paths.push(path);
    }
    if missing.is_empty() {
        return Ok(paths);
    }
    Err(DataError::ByHand { set: set.name.to_owned(), missing, how: how.to_owned() })
}

/// A path below the data directory, or an error.
fn safe(name: &str) -> Result<&Path, DataError> {
    let path = Path::new(name);
    let plain = !name.is_empty()
        && !name.contains(['\\', ':', '\0'])
        && path.components().all(|part| matches!(part, Component::Normal(_)));
    if plain { Ok(path) } else { Err(DataError::UnsafeName { name: name.to_owned() }) }
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        // Redirects are followed by hand, where their scheme is checked.
        .max_redirects(0)
        .accept_encoding("identity")
        .user_agent(concat!("fedstein/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .timeout_per_read(Some(Duration::from_secs(60)))
        .build()
        .new_agent()
}

/// Why one try at one mirror failed.
enum Failure {
    /// The mirror's fault; the next one may do better.
    Mirror(String),
    /// The file came whole and is not the publisher's.
    Checksum(String),
    /// This machine's fault; no mirror will do better.
    Here(DataError),
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Failure::Here(error)
    }
}

fn fetch_file(
    agent: &ureq::Agent,
    file: &DataFile,
    path: &Path,
    report: &mut dyn FnMut(Progress),
) -> Result<(), DataError> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|e| DataError::io(directory, e))?;
    }
    let part = part_of(path);
    // A link that somebody put there would lead the bytes to where it points.
    if fs::symlink_metadata(&part).is_ok_and(|meta| !meta.is_file()) {
        remove(&part)?;
    }
    let (mut attempts, mut wrong) = (Vec::new(), None);
    for &url in file.mirrors {
        let mut before = length(&part);
        for _ in 0..RESUMES {
            let resumed = before > 0;
            let failure = match download(agent, file, url, &part, report).and_then(|()| settle(&part, path, file)) {
                Ok(()) => return Ok(()),
                Err(Failure::Here(error)) => return Err(error),
                Err(failure) => failure,
            };
            let (reason, again) = match failure {
                Failure::Checksum(found) => {
                    let reason = format!("wrong checksum {found}");
                    wrong = Some(found);
                    // The old piece may have been the bad one.
                    (reason, resumed)
                }
                Failure::Mirror(reason) => (reason, length(&part) > before),
                Failure::Here(error) => return Err(error),
            };
            report(Progress::Failed { file: file.path, url, reason: &reason });
            attempts.push(format!("{url}: {reason}"));
            before = length(&part);
            if !again {
                break;
            }
        }
    }
    let path = path.to_path_buf();
    Err(match wrong {
        Some(found) => DataError::Checksum { path, expected: file.sha256.to_owned(), found, attempts },
        None => DataError::Fetch { path, attempts },
    })
}

/// Brings `part` to the file's full length, from where it is if the mirror can.
fn download(
    agent: &ureq::Agent,
    file: &DataFile,
    url: &str,
    part: &Path,
    report: &mut dyn FnMut(Progress),
) -> Result<(), Failure> {
    let mut have = length(part);
    if have > file.bytes {
        remove(part)?;
        have = 0;
    }
    if have == file.bytes && have > 0 {
        return Ok(());
    }
    let response = get(agent, url, have)?;
    let status = response.status().as_u16();
    let resumed = match status {
        206 if starts_at(&response, have) => have,
        200 => 0,
        206 | 416 => {
            remove(part)?;
            return Err(Failure::Mirror(format!("status {status}: it will not resume at byte {have}")));
        }
        _ => return Err(Failure::Mirror(format!("status {status}"))),
    };
    announced(&response, file.bytes - resumed)?;
    report(Progress::Started { file: file.path, url, resumed, total: file.bytes });

    let failed = |e| DataError::io(part, e);
    let mut options = OpenOptions::new();
    let options = options.create(true).write(true).append(resumed > 0).truncate(resumed == 0);
    let mut out = options.open(part).map_err(failed)?;
    let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = resumed;
    loop {
        let count = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => {
                out.sync_all().map_err(failed)?;
                return Err(Failure::Mirror(format!("broke off after {bytes} of {} bytes: {e}", file.bytes)));
            }
        };
        if bytes + count as u64 > file.bytes {
            drop(out);
            remove(part)?;
            return Err(Failure::Mirror(format!("sends more than the {} bytes of the file", file.bytes)));
        }
        out.write_all(&buffer[..count]).map_err(failed)?;
        bytes += count as u64;
        report(Progress::Received { file: file.path, bytes, total: file.bytes });
    }
    out.sync_all().map_err(failed)?;
    if bytes < file.bytes {
        return Err(Failure::Mirror(format!("ended after {bytes} of {} bytes", file.bytes)));
    }
    Ok(())
}

/// Refuses an answer that announces another length than is wanted, before a byte of it is written.
fn announced(response: &ureq::http::Response<ureq::Body>, wanted: u64) -> Result<(), Failure> {
    match response.body().content_length() {
        Some(length) if length != wanted => {
            Err(Failure::Mirror(format!("announces {length} bytes where {wanted} are expected")))
        }
        _ => Ok(()),
    }
}

/// Asks for the bytes from `start` on, through at most [`REDIRECTS`] redirects, http or https only.
fn get(agent: &ureq::Agent, url: &str, start: u64) -> Result<ureq::http::Response<ureq::Body>, Failure> {
    let mut url = url.to_owned();
    if !may_follow("", &url) {
        return Err(Failure::Mirror("refused: a mirror's address begins with http:// or https://".to_owned()));
    }
    for _ in 0..=REDIRECTS {
        let mut request = agent.get(&url);
        if start > 0 {
            request = request.header("Range", format!("bytes={start}-"));
        }
        let response = request.call().map_err(|e| Failure::Mirror(e.to_string()))?;
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(response);
        }
        let location = response.headers().get("location").and_then(|value| value.to_str().ok());
        let location = location.ok_or_else(|| Failure::Mirror("a redirect that leads nowhere".to_owned()))?;
        let next = resolve(&url, location);
        if !may_follow(&url, &next) {
            return Err(Failure::Mirror(format!("refused a redirect to {next}: {}", scheme_wanted(&url))));
        }
        url = next;
    }
    Err(Failure::Mirror(format!("more than {REDIRECTS} redirects")))
}

/// Whether one may go from an address to the next: http to http or https, https to https only.
fn may_follow(from: &str, to: &str) -> bool {
    to.starts_with("https://") || (to.starts_with("http://") && !from.starts_with("https://"))
}

/// What [`may_follow`] allows from here, in words.
fn scheme_wanted(from: &str) -> &'static str {
    if from.starts_with("https://") { "from https only https is followed" } else { "only http and https are followed" }
}

/// The address a redirect leads to.
fn resolve(base: &str, location: &str) -> String {
    let scheme_end = base.find("://").map_or(0, |at| at + 3);
    let host_end = base[scheme_end..].find('/').map_or(base.len(), |at| scheme_end + at);
    let has_scheme = location.split(['/', '?', '#']).next().is_some_and(|start| start.contains(':'));
    if has_scheme {
        location.to_owned()
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{}{rest}", &base[..scheme_end])
    } else if location.starts_with('/') {
        format!("{}{location}", &base[..host_end])
    } else {
        let directory = base[host_end..].rfind('/').map_or("/", |at| &base[host_end..=host_end + at]);
        format!("{}{directory}{location}", &base[..host_end])
    }
}

/// Whether a partial answer starts where it was asked to.
fn starts_at(response: &ureq::http::Response<ureq::Body>, start: u64) -> bool {
    let range = response.headers().get("content-range").and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {start}-")))
}

/// Checks a complete part and gives it the final name; a wrong one is removed.
fn settle(part: &Path, path: &Path, file: &DataFile) -> Result<(), Failure> {
    let found = sha256(part)?;
    if found != file.sha256 {
        remove(part)?;
        return Err(Failure::Checksum(found));
    }
    fs::rename(part, path).map_err(|e| DataError::io(path, e))?;
    // The rename itself must survive a power cut too; not every file system can be asked.
    if let Some(Ok(directory)) = path.parent().map(File::open) {
        let _ = directory.sync_all();
    }
    Ok(())
}

fn is_whole(path: &Path, file: &DataFile) -> Result<bool, DataError> {
    Ok(length(path) == file.bytes && path.is_file() && sha256(path)? == file.sha256)
}

fn sha256(path: &Path) -> Result<String, DataError> {
    let mut file = File::open(path).map_err(|e| DataError::io(path, e))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(|e| DataError::io(path, e))? {
            0 => {
                return Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
            }
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

fn remove(path: &Path) -> Result<(), DataError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(DataError::io(path, e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_data_directory_are_refused() {
        for name in ["../x", "a/../../x", "/etc/passwd", "", "a\\..\\x", "C:x", "./x"] {
            assert!(safe(name).is_err(), "{name}");
        }
        assert!(safe("mnist/train.gz").is_ok());
    }

    #[test]
    fn a_redirect_never_leaves_http_and_https_nor_falls_back_from_https() {
        assert!(may_follow("http://a.org/x", "http://b.org/x") && may_follow("http://a.org/x", "https://b.org/x"));
        assert!(may_follow("https://a.org/x", "https://b.org/x"));
        assert!(!may_follow("https://a.org/x", "http://a.org/x"));
        for other in ["file:///etc/passwd", "ftp://a.org/x", "data:,x", "//a.org/x", "HTTP:x", "httpx://a", ""] {
            assert!(!may_follow("http://a.org/x", other) && !may_follow("https://a.org/x", other), "{other}");
        }
    }

    #[test]
    fn redirects_are_resolved_against_where_they_come_from() {
        let base = "https://a.org/b/c.gz";
        assert_eq!(resolve(base, "https://x.org/y"), "https://x.org/y");
        assert_eq!(resolve(base, "//x.org/y"), "https://x.org/y");
        assert_eq!(resolve(base, "/y"), "https://a.org/y");
        assert_eq!(resolve(base, "y?t=1:2"), "https://a.org/b/y?t=1:2");
        assert_eq!(resolve("http://a.org", "y"), "http://a.org/y");
        assert_eq!(resolve(base, "file:///etc/passwd"), "file:///etc/passwd");
    }
}
