//! What holds for all torrents.

use super::args::DaemonArgs;
use super::own::{FIRST_IDLE_MIN, FIRST_LIMIT, FIRST_RATIO, is_true, kilobytes, minutes, ratio};
use super::terms::{Arguments, said};
use crate::failure::Failure;
use crate::torrent::duty::Until;
use cede_units::Duration;
use serde_json::Value;

/// What `session-set` changes: numbers, and what switches each on.
pub const UP: [&str; 2] = ["speed-limit-up", "speed-limit-up-enabled"];
pub const DOWN: [&str; 2] = ["speed-limit-down", "speed-limit-down-enabled"];
pub const RATIO: [&str; 2] = ["seedRatioLimit", "seedRatioLimited"];
pub const IDLE: [&str; 2] = ["idle-seeding-limit", "idle-seeding-limit-enabled"];
pub const QUEUE: [&str; 2] = ["download-queue-size", "download-queue-enabled"];
pub const STARTS_ADDED: &str = "start-added-torrents";

/// Whether an order, or else what holds now, has a number hold.
pub fn is_on(arguments: &Arguments, [_, switch]: [&str; 2], now: bool) -> bool {
    arguments.get(switch).map_or(now, is_true)
}

/// So many torrents are fetched at a time where that is switched on and was never said: Transmission's.
const FIRST_QUEUE: usize = 5;

/// What holds for all torrents from now on. Limits are those of [`cede_torrent::limits`].
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Limits in octets per second, as they were when they held last.
    pub last_up: u64,
    pub last_down: u64,
    /// When giving ends.
    pub until: Until,
    /// As often, and after as many minutes, as it ended last.
    pub ratio: f64,
    pub idle_min: u64,
    /// So many torrents are fetched at a time, and the number that was said last.
    pub queue: Option<usize>,
    pub queue_size: usize,
    /// Torrents that are added run, unless it is said that they are not to.
    pub starts_added: bool,
}

impl Terms {
    /// Those that options ask for.
    pub fn of(args: &DaemonArgs) -> Self {
        let (swarm, until) = (&args.swarm, args.until);
        Self {
            last_up: swarm.up.unwrap_or(FIRST_LIMIT),
            last_down: swarm.down.unwrap_or(FIRST_LIMIT),
            until: until.into(),
            ratio: until.seed_ratio.unwrap_or(FIRST_RATIO),
            idle_min: FIRST_IDLE_MIN,
            queue: args.queue,
            queue_size: args.queue.unwrap_or(FIRST_QUEUE),
            starts_added: true,
        }
    }

    /// The same after an order. Who says a number alone means it to be kept until it is switched on.
    pub fn after(mut self, arguments: &Arguments) -> Result<Self, Failure> {
        self.last_up = kilobytes(arguments, UP[0])?.unwrap_or(self.last_up);
        self.last_down = kilobytes(arguments, DOWN[0])?.unwrap_or(self.last_down);
        self.ratio = ratio(arguments)?.unwrap_or(self.ratio);
        self.idle_min = minutes(arguments, IDLE[0])?.unwrap_or(self.idle_min);
        self.queue_size = queue_size(arguments, QUEUE[0])?.unwrap_or(self.queue_size);
        let idle = Duration::from_secs(60 * self.idle_min);
        self.until.ratio = is_on(arguments, RATIO, self.until.ratio.is_some()).then_some(self.ratio);
        self.until.idle = is_on(arguments, IDLE, self.until.idle.is_some()).then_some(idle);
        self.queue = is_on(arguments, QUEUE, self.queue.is_some()).then_some(self.queue_size);
        self.starts_added = arguments.get(STARTS_ADDED).map_or(self.starts_added, is_true);
        Ok(self)
    }
}

/// How many torrents are fetched at a time.
fn queue_size(arguments: &Arguments, key: &str) -> Result<Option<usize>, Failure> {
    let size = |said: &Value| usize::try_from(said.as_u64()?).ok().filter(|size| *size > 0);
    said(arguments, key, size, "torrents from 1 on")
}
