//! Downloads the files of a data set. A file is either absent or complete and verified: bytes are written to
//! `FILE.part`, checked against the checksum, flushed to the disk, and only then the file is renamed. An interrupted
//! download leaves a `.part` file, which the next one resumes.

use crate::DataError;
use crate::registry::{self, DataFile, DataSet, FileStatus};
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// The progress of [`fetch`], for a progress bar or a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The file is present and its checksum is correct. (The checksum of a manually downloaded file is not computed.)
    Present {
        /// The path below the data directory.
        file: &'a str,
    },
    /// The file is there in another form, which is used.
    Instead {
        /// The path below the data directory.
        file: &'a str,
        /// The path of the other form.
        path: &'a Path,
    },
    /// A download from a mirror begins.
    Started {
        /// The path below the data directory.
        file: &'a str,
        /// The mirror's address.
        url: &'a str,
        /// The number of bytes from an earlier attempt that are kept.
        resumed: u64,
        /// The number of bytes of the whole file.
        total: u64,
    },
    /// Bytes were received.
    Received {
        /// The path below the data directory.
        file: &'a str,
        /// The number of bytes so far.
        bytes: u64,
        /// The number of bytes of the whole file.
        total: u64,
    },
    /// A mirror failed. The next attempt follows, if there is one.
    Failed {
        /// The path below the data directory.
        file: &'a str,
        /// The mirror's address.
        url: &'a str,
        /// The reason.
        reason: &'a str,
    },
    /// The file is complete, verified and has its final name.
    Done {
        /// The path below the data directory.
        file: &'a str,
    },
}

const REDIRECTS: usize = 5;
/// The number of attempts with one mirror, as long as each of them receives new bytes.
const RESUMES: usize = 4;

/// Downloads the missing files of a set, trying one mirror after the other; a file that is there in another form, such as
/// unpacked, is not missing. For a set without files nothing is done.
/// The files of a manually downloaded set ([`DataSet::manual_download`]) may be the user's own copies: it is only
/// checked that they are present.
///
/// # Returns
/// The files' final paths, or those of the other forms.
///
/// # Errors
/// A file of a manually downloaded set is missing, a file name leads outside the data directory, or the directory
/// cannot be written. If no mirror delivers a file completely and with the publisher's checksum, the error has one line
/// per mirror with the reason.
pub fn fetch(set: &DataSet, data_dir: &Path, report: &mut dyn FnMut(Progress)) -> Result<Vec<PathBuf>, DataError> {
    if let Some(how) = set.manual_download {
        return check_manual(set, how, data_dir, report);
    }
    let agent = agent();
    let mut paths = Vec::with_capacity(set.files.len());
    for (file, state) in registry::status(set, data_dir) {
        let path = data_dir.join(safe(file.path)?);
        if let FileStatus::Alternative(path) = state {
            report(Progress::Instead { file: file.path, path: &path });
            paths.push(path);
            continue;
        }
        if is_whole(&path, &file)? {
            report(Progress::Present { file: file.path });
        } else {
            fetch_file(&agent, &file, &path, report)?;
            report(Progress::Done { file: file.path });
        }
        paths.push(path);
    }
    Ok(paths)
}

/// The files of a manually downloaded set, in the form in which they are present.
fn check_manual(
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
    Err(DataError::ManualDownload { set: set.name.to_owned(), missing, how: how.to_owned() })
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
        // Redirects are followed by `get`, which checks their scheme.
        .max_redirects(0)
        .accept_encoding("identity")
        .user_agent(concat!("fedstein/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .timeout_per_read(Some(Duration::from_secs(60)))
        .build()
        .new_agent()
}

/// The reason why an attempt with a mirror failed.
enum Failure {
    /// The mirror failed; the next one may succeed.
    Mirror(String),
    /// The file was received completely, but its checksum is not the publisher's.
    Checksum(String),
    /// This machine failed; no mirror would succeed.
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
    // Through a symbolic link, the bytes would be written to another place.
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
                    // The part from the earlier attempt may have been damaged.
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

/// Downloads the rest of the file into `part`, or the whole file if the mirror cannot resume.
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

/// Refuses a response whose announced length is not the expected one, before a byte of it is written.
fn announced(response: &ureq::http::Response<ureq::Body>, wanted: u64) -> Result<(), Failure> {
    match response.body().content_length() {
        Some(length) if length != wanted => {
            Err(Failure::Mirror(format!("announces {length} bytes where {wanted} are expected")))
        }
        _ => Ok(()),
    }
}

/// Requests the bytes from `start` on, through at most [`REDIRECTS`] redirects, http or https only.
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

/// Whether a redirect between two addresses is followed: http to http or https, https to https only.
fn may_follow(from: &str, to: &str) -> bool {
    to.starts_with("https://") || (to.starts_with("http://") && !from.starts_with("https://"))
}

/// What [`may_follow`] allows from here, in words.
fn scheme_wanted(from: &str) -> &'static str {
    if from.starts_with("https://") { "from https only https is followed" } else { "only http and https are followed" }
}

/// The address of a redirect.
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

/// Whether a partial response starts at the requested byte.
fn starts_at(response: &ureq::http::Response<ureq::Body>, start: u64) -> bool {
    let range = response.headers().get("content-range").and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {start}-")))
}

/// Verifies a complete part and renames it; a part with a wrong checksum is removed.
fn settle(part: &Path, path: &Path, file: &DataFile) -> Result<(), Failure> {
    let found = sha256(part)?;
    if found != file.sha256 {
        remove(part)?;
        return Err(Failure::Checksum(found));
    }
    fs::rename(part, path).map_err(|e| DataError::io(path, e))?;
    // The rename is flushed to the disk as well, on file systems that support it.
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
