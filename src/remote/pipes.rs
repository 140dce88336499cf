//! Sites in child processes, which read parcels on standard input and write answers to standard output.

use std::io::{BufReader, BufWriter};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::carrier::{Arrival, Carrier, Lost, Peer};
use super::parcel::{Limits, Parcel};

/// The time between two looks at a process that is about to end, and their number.
const LOOK: Duration = Duration::from_millis(5);
const LOOKS: usize = 200;

/// A carrier to child processes of this machine, one for each site. A process that has ended is started again with the
/// next parcel.
#[derive(Debug)]
pub struct Pipes {
    program: PathBuf,
    sites: Vec<Site>,
    /// What the processes write, each with the number of the process.
    arrived: Sender<(u64, Arrival)>,
    from: Mutex<Receiver<(u64, Arrival)>>,
    started: AtomicU64,
    restarted: Mutex<Vec<Peer>>,
}

#[derive(Debug)]
struct Site {
    /// The site's own file.
    file: PathBuf,
    process: Mutex<Option<Process>>,
    /// The number of bytes of arrays that an answer may have.
    bytes: Arc<AtomicU64>,
}

/// The flag of a process that Ctrl-C does not reach, of the Windows API.
#[cfg(windows)]
const NEW_PROCESS_GROUP: u32 = 0x0000_0200;

/// A running process, which is ended when this is dropped.
#[derive(Debug)]
struct Process {
    /// The number of the process among all that were started.
    number: u64,
    child: Child,
    /// To the thread that writes to its standard input.
    to: Sender<Parcel>,
    /// Whether it has closed its standard output: it has ended, or is about to.
    has_ended: Arc<AtomicBool>,
}

impl Pipes {
    /// A carrier to the sites of these files. Each is served by `PROGRAM site FILE --stdio`, which is started with the first
    /// parcel to it.
    pub fn new(program: PathBuf, files: Vec<PathBuf>) -> Self {
        let (arrived, from) = channel();
        let site = |file| Site { file, process: Mutex::new(None), bytes: Arc::default() };
        Self {
            program,
            sites: files.into_iter().map(site).collect(),
            arrived,
            from: Mutex::new(from),
            started: AtomicU64::new(0),
            restarted: Mutex::default(),
        }
    }

    /// Starts the process of a site, a thread that writes to it, and one that reads what it writes.
    fn start(&self, peer: Peer) -> Result<Process, String> {
        let site = &self.sites[peer];
        let mut command = Command::new(&self.program);
        command.arg("site").arg(&site.file).arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C ends the server, which ends its sites: they get no signal of their own.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        #[cfg(windows)]
        std::os::windows::process::CommandExt::creation_flags(&mut command, NEW_PROCESS_GROUP);
        let cannot = |error| format!("cannot start `{}`: {error}", self.program.display());
        let mut child = command.spawn().map_err(cannot)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the process of the site has no pipes".into());
        };
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let (to, parcels) = channel::<Parcel>();
        thread::spawn(move || {
            let mut input = BufWriter::new(input);
            // A process that takes no more has ended, which the other thread notices.
            parcels.into_iter().try_for_each(|parcel| parcel.write(&mut input))
        });
        let has_ended = Arc::new(AtomicBool::new(false));
        let (arrived, bytes, ended) = (self.arrived.clone(), site.bytes.clone(), has_ended.clone());
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let lost = |reason| Err(Lost { reason, was_killed: false });
                let what = match Parcel::read_within(&mut output, || Limits::of(bytes.load(Ordering::Relaxed))) {
                    Ok(Some(parcel)) => Ok(parcel),
                    Ok(None) => lost("its process has ended".to_owned()),
                    Err(error) => lost(format!("its answer is refused: {error}")),
                };
                let is_last = what.is_err();
                // Whoever hears of the end and sends again must reach another process.
                ended.store(is_last, Ordering::SeqCst);
                if arrived.send((number, Arrival { from: peer, what })).is_err() || is_last {
                    return;
                }
            }
        });
        Ok(Process { number, child, to, has_ended })
    }

    /// Whether the process of a site, which has closed its standard output, was ended by a signal.
    fn was_killed(&self, peer: Peer) -> bool {
        for _ in 0..LOOKS {
            let status = self.process(peer).as_mut().and_then(|process| process.child.try_wait().ok().flatten());
            if let Some(status) = status {
                return status.code().is_none();
            }
            thread::sleep(LOOK);
        }
        false
    }

    fn process(&self, peer: Peer) -> MutexGuard<'_, Option<Process>> {
        self.sites[peer].process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Carrier for Pipes {
    fn peers(&self) -> usize {
        self.sites.len()
    }

    fn name(&self, peer: Peer) -> String {
        self.sites.get(peer).map_or_else(|| format!("site {peer}"), |site| site.file.display().to_string())
    }

    fn send(&self, to: Peer, parcel: &Parcel, limits: Limits) -> Result<(), String> {
        let site = self.sites.get(to).ok_or("there is no such site")?;
        site.bytes.store(limits.bytes, Ordering::Relaxed);
        let mut process = self.process(to);
        if let Some(running) = process.as_mut()
            && !running.has_ended.load(Ordering::SeqCst)
            && running.to.send(parcel.clone()).is_ok()
        {
            return Ok(());
        }
        let had_ended = process.take().is_some();
        let started = self.start(to)?;
        if had_ended {
            self.restarted.lock().unwrap_or_else(PoisonError::into_inner).push(to);
        }
        let sent = started.to.send(parcel.clone());
        *process = Some(started);
        sent.map_err(|_| "its process takes no message".into())
    }

    fn receive(&self, wait: Duration) -> Vec<Arrival> {
        let from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(first) = from.recv_timeout(wait) else { return Vec::new() };
        let all = std::iter::once(first).chain(from.try_iter());
        // What a process wrote before another took its place is of no use, nor is its end.
        let running = |peer| self.process(peer).as_ref().map(|process| process.number);
        let of_now = all.filter(|(number, arrival)| running(arrival.from) == Some(*number));
        let arrival = |(_, Arrival { from, what }): (u64, Arrival)| {
            let what = what.map_err(|lost| Lost { was_killed: self.was_killed(from), ..lost });
            Arrival { from, what }
        };
        of_now.map(arrival).collect()
    }

    fn restarted(&self) -> Vec<Peer> {
        std::mem::take(&mut *self.restarted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A site commits before it answers, so that it can be ended at any moment. What has ended cannot be ended again.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
