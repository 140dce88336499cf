//! How the command's allocator treats large blocks; a part of the program, not of the library.
//!
//! Scores and particles of a large set are blocks of tens of megabytes. glibc gives such blocks back to the kernel and asks
//! for them again in every step, and the kernel zeroes each page anew: that was half of an SVGD step of 100 particles of a
//! network 784-100-10 (docs/performance.md). Freed blocks below 32 MiB, which is as much as glibc allows, are kept instead.
//! Memory that has never been touched costs nothing, so that room to grow is asked for in large pieces, which also keeps
//! glibc from giving up a thread's piece whenever all in it is free.

/// Has the allocator keep freed blocks of up to 32 MiB. Call it first, before there is a second thread.
///
/// Nothing happens with another C library, or where the user has settings of one's own in `GLIBC_TUNABLES`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub fn keep_freed_blocks() {
    const LARGEST: libc::c_int = 32 << 20;
    const PIECE: libc::c_int = 64 << 20;
    let is_set = |settings: std::ffi::OsString| settings.to_string_lossy().contains("glibc.malloc.");
    if std::env::var_os("GLIBC_TUNABLES").is_some_and(is_set) {
        return;
    }
    // SAFETY: `mallopt` takes two plain numbers, stores one of them in the allocator's settings under the allocator's lock,
    // and touches no memory of ours; the parameters are those that mallopt(3) defines. A value that it refuses changes
    // nothing. Its one condition, that no other thread allocates meanwhile, holds: the caller is the first line of `main`.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST);
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
        libc::mallopt(libc::M_TOP_PAD, PIECE);
    }
}

/// Nothing: another allocator has other habits.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_freed_blocks() {}
