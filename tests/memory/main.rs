//! Memory that does not grow. The tests are a binary of their own, because a resident size is that of the whole
//! process.

#[path = "../common/mod.rs"]
mod common;
mod passes;
mod soak;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Resident size of this process in bytes, on Linux.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// Held by one test at a time, so that the others allocate nothing meanwhile.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
