//! Whether there is memory for a swarm.

use crate::failure::Failure;
use cede_lab::swarm::Swarm;

/// What a peer takes before it knows anybody, and each of its connections, roundly (`cargo bench -p cede-repro --bench swarm -- large`
/// has the whole).
const PEER_BYTES: u64 = 100_000;
const CONNECTION_BYTES: u64 = 3_500;

/// Octets that the peers take at the least, and with all connections that they may have.
fn taken(swarm: &Swarm) -> (u64, u64) {
    let peers: u64 = swarm.groups.iter().map(|group| u64::from(group.count)).sum();
    let connections: u64 = swarm
        .groups
        .iter()
        .map(|group| {
            u64::from(group.count) * u64::from(group.profile.connections_max).min(peers.saturating_sub(1))
        })
        .sum();
    let least = peers * PEER_BYTES;
    (least, least + connections * CONNECTION_BYTES)
}

/// Octets that the system has for programs, where it says so.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Refuses what has no room, in the place of being ended by the system in the midst of it, and says what may have none.
pub fn check(swarm: &Swarm) -> Result<Option<String>, Failure> {
    let Some(there) = available() else { return Ok(None) };
    judge(taken(swarm), there)
}

fn judge((least, most): (u64, u64), there: u64) -> Result<Option<String>, Failure> {
    let size = |octets: u64| format!("{:.1} GB", octets as f64 / 1e9);
    if least > there {
        let text = format!(
            "so many peers take {} at the least, and {} are free: give the groups a smaller `count`",
            size(least),
            size(there)
        );
        return Err(Failure::Failed(text));
    }
    Ok((most > there).then(|| {
        format!("these peers may take {} once they are connected, and {} are free\n", size(most), size(there))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_refused_and_what_may_have_none_is_said() {
        const GB: u64 = 1_000_000_000;
        assert!(judge((10 * GB, 20 * GB), 20 * GB).unwrap().is_none());
        assert!(judge((10 * GB, 20 * GB), 15 * GB).unwrap().unwrap().contains("15.0 GB"));
        let refused = judge((10 * GB, 20 * GB), 9 * GB).unwrap_err();
        assert!(refused.text().unwrap().contains("`count`"), "{refused:?}");
    }
}
