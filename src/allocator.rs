//! Settings of the C library's allocator for large blocks. They are a part of the command, not of the library; tests have
//! them from `.cargo/config.toml`.
//!
//! Scores and particles of a large set are blocks of tens of megabytes. glibc returns such blocks to the kernel and
//! allocates them again in every step, and the kernel zeroes each page again. That took half of an SVGD step of 100
//! particles of a network 784-100-10 (docs/performance.md). With these settings freed blocks below 32 MiB, the most
//! that glibc allows, are kept. The heap grows in large pieces: untouched memory costs nothing, and glibc does not
//! return a thread's piece each time that all of it is free.

/// Makes the allocator keep freed blocks of up to 32 MiB. Call it first, before there is a second thread.
///
/// It does nothing with another C library, or where the user has set `GLIBC_TUNABLES`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub fn keep_freed_blocks() {
    const LARGEST: libc::c_int = 32 << 20;
    const PIECE: libc::c_int = 64 << 20;
    let is_set = |settings: std::ffi::OsString| settings.to_string_lossy().contains("glibc.malloc.");
    if std::env::var_os("GLIBC_TUNABLES").is_some_and(is_set) {
        return;
    }
    // SAFETY: `mallopt` takes two integers, stores one of them in the allocator's settings under the allocator's lock,
    // and accesses no memory of ours; the parameters are those that mallopt(3) defines. A value that it refuses changes
    // nothing. Its one condition, that no other thread allocates meanwhile, holds: the caller is the first line of
    // `main`.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST);
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
        libc::mallopt(libc::M_TOP_PAD, PIECE);
    }
}

/// Does nothing: these settings are glibc's.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_freed_blocks() {}

/// The program without dependencies (`scripts/static.sh`) has musl as its C library, whose own allocator returns most blocks to the
/// kernel at once.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
