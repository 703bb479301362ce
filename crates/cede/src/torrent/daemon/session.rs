//! What all torrents have in common: it is told, and changed.

use super::change::refuse_unknown;
use super::common::{DOWN, IDLE, QUEUE, RATIO, STARTS_ADDED, UP, is_on};
use super::roster::Daemon;
use super::terms::{Arguments, STALLED, UNIT_BYTES, VERSION, VERSION_MINIMUM};
use crate::failure::Failure;
use crate::torrent::swarm_args::EncryptionArg;
use serde_json::{Map, json};
use std::rc::Rc;

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
