//! The `fedstein` command: parses the arguments, executes the command, and maps an error to an exit code.

#![deny(unsafe_code)]

mod allocator;
mod headless;

use std::io::Write;
use std::process::ExitCode;

use fedstein::command::{STACK, execute};

fn main() -> ExitCode {
    allocator::keep_freed_blocks();
    headless::choose_no_display();
    survive_file_limits();
    // The command itself runs on a worker thread: work that it splits then starts at once on this thread, where a call
    // from outside the pool would wake a worker and wait for it, in every step.
    let run = || fedstein::cli::run(std::env::args_os(), execute);
    match rayon::ThreadPoolBuilder::new().num_threads(threads()).stack_size(STACK).build_global() {
        Ok(()) => rayon::scope(|_| run()),
        // Without a pool every parallel computation would panic.
        Err(error) => {
            // A failure is ignored: the stream may be closed.
            let _ = writeln!(
                std::io::stderr(),
                "error: cannot start the threads: {error}; is the number of processes limited? `RAYON_NUM_THREADS=1` starts one"
            );
            ExitCode::FAILURE
        }
    }
}

/// Makes a write beyond the largest size of a file (`ulimit -f`) an error, which names the file. Without this the signal
/// that comes with it ends the process, and nothing says why.
fn survive_file_limits() {
    // Without a handler the limit still holds.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}

/// The number of threads: 0, which stands for that of `RAYON_NUM_THREADS` or of the machine, unless the variable asks for
/// many more than the machine has. Idle threads look for work, and thousands of them leave no time for it.
fn threads() -> usize {
    let most = 64.max(4 * std::thread::available_parallelism().map_or(1, usize::from));
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse::<usize>().ok());
    match asked.filter(|asked| *asked > most) {
        None => 0,
        Some(asked) => {
            let _ = writeln!(
                std::io::stderr(),
                "note: RAYON_NUM_THREADS = {asked}: {most} threads are used, which are enough here"
            );
            most
        }
    }
}
