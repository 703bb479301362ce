//! How much a process may have open: files, and connections with them.

use std::io;

/// Connections and open files of many torrents are more than the 256 to 1,024 that a process begins with by custom.
#[cfg(unix)]
const OPEN_FILES: u64 = 8_192;

/// Has the system let this process open more files, as far as it may by itself. How many it may have open then, connections among them,
/// where there is a limit.
pub fn allow_many_files() -> Option<u64> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let wanted = limit.maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
        if limit.current.is_some_and(|current| current < wanted) {
            // Where that is not granted, connections fail as they would have.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
        }
        getrlimit(Resource::Nofile).current
    }
    #[cfg(not(unix))]
    None
}

/// Whether nothing could be opened because too much is open, here or in the whole system.
pub(crate) fn is_too_many(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}
