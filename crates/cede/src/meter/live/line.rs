//! The picture as a line, for people and for programs.

use super::picture::Picture;
use crate::meter::{data, many};
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

/// Hosts of a line of JSON.
const HOSTS_MAX: usize = 100;

/// Rates, what was left out, and the host whose queue was longest since the last line.
pub fn text(picture: &Picture) -> String {
    let now = |row: &&super::picture::Row| row.now.as_ref().map_or(-1.0, |now| now.time_mean_ms);
    let worst = picture.rows.iter().filter(|row| row.now.is_some()).max_by(|a, b| now(a).total_cmp(&now(b)));
    let worst = worst.map_or_else(String::new, |row| {
        format!(
            ", longest queue {:.1} ms at {} ({:.1} ms in the window)",
            now(&row),
            row.host.address,
            row.host.all.time_mean_ms
        )
    });
    let counters = &picture.counters;
    let mut out = format!(
        "{:7.1} s  {:.0} packets/s, {:.2} Mbit/s, {}, {}{worst}",
        picture.running_s,
        picture.packets_per_s,
        picture.bits_per_s / 1e6,
        many(picture.rows.len() as u64, "host"),
        many(picture.flows as u64, "flow")
    );
    if !picture.is_up() {
        out += &format!(", {} down", picture.down);
    }
    for (count, what) in [
        (picture.lost, "packets lost before us"),
        (counters.evicted, "flows given up"),
        (counters.thinned, "samples left out"),
    ] {
        if count > 0 {
            out += &format!(", {count} {what}");
        }
    }
    out + "\n"
}

/// The same and the hosts, the worst first, as one line of JSON.
pub fn json(picture: &Picture) -> String {
    let host = |row: &super::picture::Row| {
        let mut host = data::host(&row.host);
        host["now"] = row.now.as_ref().map(data::summary).into();
        host
    };
    let line = json!({
        "unix_s": SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64()),
        "running_s": picture.running_s,
        "packets_per_s": picture.packets_per_s,
        "bits_per_s": picture.bits_per_s,
        "interface_up": picture.is_up(),
        "lost_packets": picture.lost,
        "flows_remembered": picture.flows,
        "memory_bytes": picture.memory_bytes,
        "counters": data::counters(&picture.counters),
        "hosts_in_all": picture.rows.len(),
        "hosts": picture.rows.iter().take(HOSTS_MAX).map(host).collect::<Vec<_>>(),
    });
    format!("{line}\n")
}
