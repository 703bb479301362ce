//! What all orders have in common.

use crate::failure::Failure;
use serde_json::{Map, Value};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The version of the protocol, and the oldest whose clients are served.
pub const VERSION: u32 = 16;
pub const VERSION_MINIMUM: u32 = 1;
/// A torrent that has moved something within that, or of which something has become, is active.
pub const RECENTLY_S: u64 = 60;
/// A torrent that has moved nothing for so long keeps nobody waiting.
pub const STALLED: Duration = Duration::from_secs(30 * 60);
/// Octets in what a rate is told in.
pub const UNIT_BYTES: u64 = 1_000;

/// Arguments, of a request or an answer.
pub type Arguments = Map<String, Value>;

/// What an order says of this, where it says something: read so, or else what is `wanted` is told.
pub fn said<T>(
    arguments: &Arguments,
    key: &str,
    read: impl FnOnce(&Value) -> Option<T>,
    wanted: &str,
) -> Result<Option<T>, Failure> {
    let Some(said) = arguments.get(key) else { return Ok(None) };
    read(said).map(Some).ok_or_else(|| Failure::Usage(format!("{key}: take {wanted}")))
}

/// Seconds since 1970.
pub fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64)
}
