//! What all torrents have in common: it is told, and changed.

use super::args::DaemonArgs;
use super::change::refuse_unknown;
use super::own::{FIRST_IDLE_MIN, FIRST_LIMIT, FIRST_RATIO, is_true, kilobytes, minutes, ratio};
use super::queue::STALLED;
use super::roster::Daemon;
use super::terms::{Arguments, UNIT_BYTES, VERSION, VERSION_MINIMUM};
use crate::failure::Failure;
use crate::torrent::duty::Until;
use crate::torrent::swarm_args::EncryptionArg;
use cede_units::Duration;
use serde_json::{Map, json};
use std::rc::Rc;

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
    fn after(mut self, arguments: &Arguments) -> Result<Self, Failure> {
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

/// `session-get`.
pub fn told(daemon: &Daemon) -> Arguments {
    let (limits, swarm) = (&daemon.hub.limits, &daemon.args.swarm);
    let terms = daemon.terms.get();
    let blocked = daemon.hub.listener.filter().ranges();
    let units = json!({
        "speed-units": ["kB/s", "MB/s", "GB/s", "TB/s"], "speed-bytes": UNIT_BYTES,
        "size-units": ["kB", "MB", "GB", "TB"], "size-bytes": 1000,
        "memory-units": ["KiB", "MiB", "GiB", "TiB"], "memory-bytes": 1024,
    });
    let told = json!({
        // Clients look for the version of Transmission whose protocol this is.
        "version": format!("3.00 (Cede {})", env!("CARGO_PKG_VERSION")),
        "rpc-version": VERSION, "rpc-version-minimum": VERSION_MINIMUM,
        "download-dir": daemon.folder.to_string_lossy(),
        "download-dir-free-space": cede_torrent::free_bytes(&daemon.folder).map_or(-1, |free| free as i64),
        "peer-port": daemon.hub.listener.port(), "peer-port-random-on-start": swarm.port == Some(0),
        "port-forwarding-enabled": !swarm.no_port_mapping,
        "dht-enabled": !swarm.no_dht, "pex-enabled": !swarm.no_pex, "lpd-enabled": !swarm.no_lsd,
        "utp-enabled": cede_bt::Transport::ALL.into_iter().any(|it| it == cede_bt::Transport::Utp && swarm.transport.attempts(it)),
        "speed-limit-up": terms.last_up / UNIT_BYTES, "speed-limit-up-enabled": limits.up().is_some(),
        "speed-limit-down": terms.last_down / UNIT_BYTES, "speed-limit-down-enabled": limits.down().is_some(),
        "alt-speed-enabled": false, "seedRatioLimited": terms.until.ratio.is_some(), "seedRatioLimit": terms.ratio,
        "idle-seeding-limit-enabled": terms.until.idle.is_some(), "idle-seeding-limit": terms.idle_min,
        "start-added-torrents": terms.starts_added, "incomplete-dir-enabled": false, "blocklist-enabled": blocked > 0, "blocklist-size": blocked,
        "download-queue-enabled": terms.queue.is_some(), "download-queue-size": terms.queue_size,
        "queue-stalled-enabled": true, "queue-stalled-minutes": STALLED.as_secs() / 60, "seed-queue-enabled": false,
        "rename-partial-files": false, "units": units,
        "peer-limit-global": daemon.hub.connections_at_most().0, "peer-limit-per-torrent": daemon.hub.connections_at_most().1,
        "encryption": encryption(swarm.encryption), "config-dir": daemon.store.folder().to_string_lossy(),
    });
    let mut told = told.as_object().cloned().unwrap_or_default();
    told.extend(never());
    told
}

/// How that is called there.
const fn encryption(asked: EncryptionArg) -> &'static str {
    match asked {
        EncryptionArg::Off | EncryptionArg::Allow => "tolerated",
        EncryptionArg::Prefer => "preferred",
        EncryptionArg::Require => "required",
    }
}

/// What clients read and is not here. Without it `transmission-remote -si` tells of no limits at all, and `transmission_rpc` fails.
fn never() -> Arguments {
    let told = json!({
        "alt-speed-down": 0, "alt-speed-up": 0, "alt-speed-time-enabled": false,
        "alt-speed-time-begin": 0, "alt-speed-time-end": 0, "alt-speed-time-day": 0,
        "incomplete-dir": "",
        "blocklist-url": "", "cache-size-mb": 0, "seed-queue-size": 0, "script-torrent-done-enabled": false, "script-torrent-done-filename": "",
        "trash-original-torrent-files": false,
    });
    told.as_object().cloned().unwrap_or_default()
}

/// What `session-set` changes: numbers, and what switches each on.
const UP: [&str; 2] = ["speed-limit-up", "speed-limit-up-enabled"];
const DOWN: [&str; 2] = ["speed-limit-down", "speed-limit-down-enabled"];
const RATIO: [&str; 2] = ["seedRatioLimit", "seedRatioLimited"];
const IDLE: [&str; 2] = ["idle-seeding-limit", "idle-seeding-limit-enabled"];
const QUEUE: [&str; 2] = ["download-queue-size", "download-queue-enabled"];
const STARTS_ADDED: &str = "start-added-torrents";

fn is_on(arguments: &Arguments, [_, switch]: [&str; 2], now: bool) -> bool {
    arguments.get(switch).map_or(now, is_true)
}

/// `session-set`: the limits of all torrents together, when giving them ends, and the queue, from now on.
pub fn set(daemon: &Rc<Daemon>, arguments: &Arguments) -> Result<Arguments, Failure> {
    refuse_unknown(arguments, &[UP, DOWN, RATIO, IDLE, QUEUE, [STARTS_ADDED; 2]].concat())?;
    let (limits, before) = (&daemon.hub.limits, daemon.terms.get());
    let terms = before.after(arguments)?;
    daemon.terms.set(terms);
    let up = is_on(arguments, UP, limits.up().is_some()).then_some(terms.last_up);
    let down = is_on(arguments, DOWN, limits.down().is_some()).then_some(terms.last_down);
    if up != limits.up() {
        limits.set_up(up);
    }
    if down != limits.down() {
        limits.set_down(down);
    }
    if terms.until != before.until {
        daemon.entries().iter().for_each(|entry| entry.apply_terms(terms.until));
    }
    daemon.advance();
    Ok(Map::new())
}

/// How many torrents are fetched at a time.
fn queue_size(arguments: &Arguments, key: &str) -> Result<Option<usize>, Failure> {
    let Some(said) = arguments.get(key) else { return Ok(None) };
    let size = said.as_u64().filter(|size| *size > 0).and_then(|size| usize::try_from(size).ok());
    size.map(Some).ok_or_else(|| Failure::Usage(format!("{key}: take torrents from 1 on")))
}
