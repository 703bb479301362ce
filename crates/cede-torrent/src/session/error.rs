//! How a session ends before its time.

use crate::storage::StorageError;

/// How a run ended.
#[derive(Debug)]
pub enum SessionError {
    /// A file could not be read or written. What is there stays.
    Storage(StorageError),
    /// The torrent is of a kind that cannot be downloaded.
    Unsupported(&'static str),
}

impl std::fmt::Display for SessionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Storage(error) if error.is_full() => {
                write!(f, "{error}; what has come so far stays: make room and start again")
            }
            Self::Storage(error) if error.is_cut_short() => {
                write!(f, "{error}; start again, and what is still there is given")
            }
            Self::Storage(error) => error.fmt(f),
            Self::Unsupported(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for SessionError {}
