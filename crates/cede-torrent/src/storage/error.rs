//! What goes wrong with files.

use std::path::PathBuf;
use std::{fmt, io};

/// What went wrong with a file.
#[derive(Debug)]
pub struct StorageError {
    /// Which.
    pub path: PathBuf,
    /// What was tried: "read", "write" and so on.
    pub action: &'static str,
    /// What the system says.
    pub error: io::Error,
}

impl StorageError {
    /// Is there no room left?
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Is nothing to be written there?
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self.error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
    }

    /// Does the file end before what was to be read of it?
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        self.error.kind() == io::ErrorKind::UnexpectedEof
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (action, path) = (self.action, self.path.display());
        if self.is_cut_short() {
            // The system only says that there is no more.
            return write!(f, "cannot {action} {path}: it is shorter than it was when it was checked");
        }
        write!(f, "cannot {action} {path}: {}", self.error)
    }
}

impl std::error::Error for StorageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
