//! Network namespaces with a bottleneck of the kernel's between them, a delay line, and flows of each kind.

mod delay;
mod namespaces;
mod pattern;
mod traffic;

pub(crate) use delay::DelayLine;
pub(crate) use namespaces::{Bottleneck, Namespaces, Place, RECEIVER, SENDER};
pub(crate) use pattern::Pattern;
pub(crate) use traffic::Bulk;

use cede_units::{Duration, Rate};
use std::{fmt, io};

/// A full packet with its Ethernet header, as the bottleneck's queue counts it.
const FRAME_BYTES: u64 = 1_514;

/// The shortest buffer, in time, that holds a full packet at this rate: behind a shorter one the bottleneck passes none.
#[must_use]
pub fn shortest_buffer(rate: Rate) -> Duration {
    rate.time_to_send(FRAME_BYTES)
}

/// Why there is no measurement.
#[derive(Debug)]
pub enum NetnsError {
    /// It cannot be run here: no root, no Linux, no tools, or a kernel that lacks something.
    Impossible(String),
    /// The system, or a flow, failed.
    Io(io::Error),
    /// The caller did not want to go on.
    Interrupted,
}

impl fmt::Display for NetnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Impossible(why) => write!(f, "network namespaces cannot be used here: {why}"),
            Self::Io(error) => write!(f, "the experiment failed: {error}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for NetnsError {}

impl From<io::Error> for NetnsError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The second: a kernel without the congestion control that was asked for, or without a device.
            io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound => Self::Impossible(error.to_string()),
            _ => Self::Io(error),
        }
    }
}
