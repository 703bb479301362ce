//! Large pages of memory for what holds much of it.
//!
//! A swarm of hundreds of peers holds tens of thousands of connections, and each packet touches a few places of two of
//! them: on pages of 4 KiB most of the time goes into looking pages up. The C library asks the kernel for large pages
//! only where a variable says so when the program begins, so the program begins once more, as the same process. Where
//! the C library is another one, or the kernel refuses, nothing changes.
//!
//! It asks for them in its first heap alone, and gives each thread another one: so all threads share the first, or swarms that
//! run side by side would be on pages of 4 KiB again.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// glibc 2.35 and later.
const VARIABLE: &str = "GLIBC_TUNABLES";
const LARGE_PAGES: &str = "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1";

/// Sees to it that memory comes in large pages: returns where that is so or cannot be.
pub fn prefer_large() {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) || std::env::var_os(VARIABLE).is_some() {
        return;
    }
    let Ok(me) = std::env::current_exe() else { return };
    // Does not come back where it succeeds.
    let _ = Command::new(me).args(std::env::args_os().skip(1)).env(VARIABLE, LARGE_PAGES).exec();
}
