//! Work on the thread pool, without Python's lock.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::OnceLock;

use fedstein::command::STACK;
use pyo3::prelude::*;

use crate::errors::RunFailed;

/// The process that started the pool. A forked child has a copy of the pool without its threads.
static OWNER: OnceLock<u32> = OnceLock::new();

/// Starts the pool, once.
///
/// # Errors
/// The pool's threads are in the process from which this one was forked.
pub fn enter() -> PyResult<()> {
    OWNER.get_or_init(|| {
        // An error means that there is a pool already, which serves as well.
        let _ = rayon::ThreadPoolBuilder::new().stack_size(STACK).build_global();
        process::id()
    });
    if is_owner() {
        return Ok(());
    }
    Err(RunFailed::new_err(
        "fedstein was used before this process was forked, and its threads are not in the copy; start processes with \
         multiprocessing.get_context(\"spawn\")",
    ))
}

/// Whether this process has started the pool.
pub fn is_owner() -> bool {
    OWNER.get() == Some(&process::id())
}

/// Does some work. A panic is returned as its message.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic))
}

/// Does some work on a thread of the pool, so that work which it splits starts at once there. A panic is returned as its
/// message.
pub fn on_worker<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    caught(|| rayon::scope(|_| work()))
}

/// Does some work on the pool while other Python threads run. Ctrl-C waits for its end.
///
/// # Errors
/// The pool is in another process, or the work panicked.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    enter()?;
    py.detach(|| on_worker(work)).map_err(|message| panicked(&message))
}

/// The exception of a panic.
pub fn panicked(message: &str) -> PyErr {
    RunFailed::new_err(format!("internal error (please report this): {message}"))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a thread panicked".into())
}
