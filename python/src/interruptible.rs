//! Work that Ctrl-C does not wait for: another thread works while the calling one looks at Python's signals.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use fedstein::command::STACK;
use pyo3::prelude::*;

use crate::errors::RunFailed;
use crate::pool::{caught, enter, is_owner, on_worker, panicked};

/// The longest time between two looks at Python's signals.
pub const LOOK: Duration = Duration::from_millis(50);

/// As [`interruptible`], for work that is told whether its result is still wanted.
///
/// # Errors
/// As [`interruptible`].
fn interruptible_if<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    enter()?;
    let is_wanted = Arc::new(AtomicBool::new(true));
    let (to, mut from) = channel();
    let still = is_wanted.clone();
    let started = thread::Builder::new().name("fedstein-call".into()).stack_size(STACK);
    let started = started.spawn(move || {
        // Nobody receives what is not wanted any more.
        let _ = to.send(caught(|| work(&still)));
    });
    started.map_err(|error| RunFailed::new_err(format!("cannot start a thread: {error}")))?;
    loop {
        let (done, back) = py.detach(move || (from.recv_timeout(LOOK), from));
        match done {
            Ok(done) => return done.map_err(|message| panicked(&message)),
            Err(RecvTimeoutError::Timeout) => from = back,
            Err(RecvTimeoutError::Disconnected) => return Err(panicked("a thread ended without a result")),
        }
        py.check_signals().inspect_err(|_| is_wanted.store(false, Relaxed))?;
    }
}

/// Does some work on a thread of its own while other Python threads run. If a signal's handler raises, that is raised at
/// once. The work then goes on, and what it returns is dropped, so it must not write files.
///
/// # Errors
/// The pool is in another process, the work panicked, or a signal's handler raised.
pub fn interruptible<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    interruptible_if(py, |_| work())
}

/// The same on a thread of the pool, for work that is split over it. Work that has not begun when it is interrupted is not
/// done.
///
/// # Errors
/// As [`interruptible`].
pub fn interruptible_on_pool<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let done = interruptible_if(py, |is_wanted| on_worker(|| is_wanted.load(Relaxed).then(work)))?;
    done.map_err(|message| panicked(&message))?.ok_or_else(|| panicked("work was not done"))
}

/// A thread that has Python's lock, and reads what Python has.
pub struct Reading<'py> {
    pub py: Python<'py>,
    /// Whether it has come in by the door.
    is_counted: bool,
}

impl Reading<'_> {
    /// Does some work while other Python threads run.
    ///
    /// # Errors
    /// The work panicked.
    pub fn compute<T: Send>(&self, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        let Self { py, is_counted } = *self;
        let done = py.detach(|| {
            if is_counted {
                leave();
            }
            let done = caught(work);
            if is_counted {
                come_in();
            }
            done
        });
        done.map_err(|message| panicked(&message))
    }
}

/// Does some work that reads Python's arrays where they are, as [`interruptible`] does. The work has Python's lock but for
/// what it does with [`Reading::compute`].
///
/// # Errors
/// As [`interruptible`], and those of the work.
pub fn reading<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Reading<'_>) -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    enter()?;
    if door().is_closed {
        // What Python calls at its end works here.
        return caught(|| work(&Reading { py, is_counted: false })).map_err(|message| panicked(&message)).flatten();
    }
    interruptible(py, move || {
        come_in();
        let done = caught(|| Python::attach(|py| work(&Reading { py, is_counted: true })));
        leave();
        done.map_err(|message| panicked(&message)).flatten()
    })?
}

/// The threads that have Python's lock or wait for it. An interpreter that ends is closed to them: it would end a thread
/// that takes the lock, in the middle of Rust's code.
struct Door {
    is_closed: bool,
    inside: usize,
}

static DOOR: Mutex<Door> = Mutex::new(Door { is_closed: false, inside: 0 });
static LEFT: Condvar = Condvar::new();

/// How long an interpreter that ends waits for threads that have its lock. They need microseconds, but for large arrays.
const LAST: Duration = Duration::from_secs(1);

fn door() -> MutexGuard<'static, Door> {
    DOOR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Before a thread takes Python's lock. Never returns once the interpreter ends; the thread then ends with the process.
fn come_in() {
    let mut door = door();
    while door.is_closed {
        door = LEFT.wait(door).unwrap_or_else(PoisonError::into_inner);
    }
    door.inside += 1;
}

fn leave() {
    door().inside -= 1;
    LEFT.notify_all();
}

/// Called when the interpreter begins to end: no thread takes its lock from now on.
///
/// # Errors
/// None.
#[pyfunction]
pub fn interpreter_ends(py: Python<'_>) {
    if !is_owner() {
        return;
    }
    py.detach(|| {
        let mut door = door();
        door.is_closed = true;
        drop(LEFT.wait_timeout_while(door, LAST, |door| door.inside > 0));
    });
}
