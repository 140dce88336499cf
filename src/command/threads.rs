//! The threads on which commands work.

/// The stack size in bytes of a thread that runs commands: the usual size of a main thread.
pub const STACK: usize = 8 << 20;

/// Does some work on a pool of this many threads; 0 stands for the pool that is there.
///
/// # Errors
/// The threads cannot be started: a sentence.
pub fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    if threads == 0 {
        return Ok(work());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK).build();
    Ok(pool.map_err(|error| format!("cannot start {threads} threads: {error}"))?.install(work))
}
