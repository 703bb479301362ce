//! TCP beside uTP: how a client keeps its own TCP from taking all of a link that its uTP yields on.
//!
//! Source: libtorrent 2.0.8, `peer_proportional`, its default, as read (`session_impl::on_tick`, `bandwidth_manager`,
//! `bandwidth_channel`, `peer_connection::wanted_transfer`). Once a second, for each direction alone, peers are counted whose
//! transfer waits for the network. Where five of them or more do, and one over uTP, all TCP together may move four times
//! its share of them of what the session moves, at least 5,000 octets/s up and 30,000 down. A connection asks for as much at a time as it
//! is about to move, and waits until it has been given all of that, or for ten seconds; what there is, is shared out alike twice a second.
//!
//! **What it leaves out.** Headers of TCP/IP, which libtorrent counts too.
//! **How it was validated.** The tests below; swarms beside real ones (`docs/swarms.md`).

use alloc::vec::Vec;
use cede_units::{Duration, Instant};

/// What holds TCP back beside uTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MixedRule {
    /// Nothing.
    Free,
    /// Its share of the peers.
    PeerProportional,
}

/// How often quotas are shared out.
pub(crate) const SHARE_OUT: Duration = Duration::from_millis(500);
/// Below so many peers that wait for the network nothing is held back.
const PEERS_MIN: u64 = 5;
/// What TCP may move in any case, octets/s: up and down.
const FLOORS: [u64; 2] = [5_000, 30_000];
/// So many times its share.
const FACTOR: u64 = 4;
/// What is saved up, in seconds of the limit.
const SAVED_S: i64 = 3;
/// So many times quotas are shared out before a request takes what it has.
const PATIENCE: u8 = 20;

/// A direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Up,
    Down,
}

impl Way {
    pub(crate) const BOTH: [Self; 2] = [Self::Up, Self::Down];
}

/// How many peers wait for the network in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Waiting {
    pub(crate) tcp: u64,
    pub(crate) utp: u64,
}

/// Octets that somebody asks for.
#[derive(Clone, Debug)]
struct Request {
    who: u32,
    wanted: u32,
    assigned: u32,
    patience: u8,
}

/// What all TCP together may move in one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lane {
    /// Octets per second; none for no limit.
    limit: Option<u64>,
    left: i64,
    queue: Vec<Request>,
    /// Octets of this second, over either transport, and their average over five.
    moved: u64,
    rate: u64,
}

impl Lane {
    pub(crate) const fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Somebody waits to be given something.
    pub(crate) const fn is_awaited(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(crate) const fn count(&mut self, octets: u32) {
        self.moved += octets as u64;
    }

    /// A second is over, in which so many peers waited.
    pub(crate) fn decide(&mut self, way: Way, waiting: Waiting) {
        self.rate = self.rate * 4 / 5 + self.moved / 5;
        self.moved = 0;
        let all = waiting.tcp + waiting.utp;
        let is_held = waiting.utp > 0 && all >= PEERS_MIN;
        let share = || self.rate * waiting.tcp.max(1) * FACTOR / all;
        self.limit = is_held.then(|| share().max(FLOORS[way as usize]));
    }

    /// Asks for octets: those that are given at once, all or none. Who was given none is named by [`Self::share_out`] later.
    pub(crate) fn ask(&mut self, who: u32, wanted: u32) -> u32 {
        let Some(limit) = self.limit else { return wanted };
        if self.left - i64::from(wanted) < limit as i64 {
            self.queue.push(Request { who, wanted, assigned: 0, patience: PATIENCE });
            return 0;
        }
        self.left -= i64::from(wanted);
        wanted
    }

    /// So long after the last time: gives to those who wait, and says to whom and how much.
    pub(crate) fn share_out(&mut self, after: Duration, given: &mut Vec<(u32, u32)>) {
        if self.queue.is_empty() {
            return;
        }
        let share = self.limit.map(|limit| {
            let more = limit as f64 * after.as_secs_f64().min(SAVED_S as f64);
            self.left = (self.left + more as i64).min(SAVED_S * limit as i64);
            self.left.max(0) / self.queue.len() as i64
        });
        for request in &mut self.queue {
            let lacking = request.wanted - request.assigned;
            let quota = share.map_or(lacking, |share| lacking.min(u32::try_from(share).unwrap_or(u32::MAX)));
            request.assigned += quota;
            request.patience = request.patience.saturating_sub(1);
            self.left -= share.map_or(0, |_| i64::from(quota));
        }
        self.queue.retain_mut(|request| {
            // Who has waited for so long takes what there is, once there is some.
            let is_late = request.patience == 0 && request.assigned > 0;
            let is_due = is_late || request.assigned == request.wanted;
            if is_due {
                given.push((request.who, request.assigned));
            }
            !is_due
        });
    }

    /// Somebody is gone, and what was set aside for it is there for others.
    pub(crate) fn leave(&mut self, who: u32) {
        let back = |request: &Request| if request.who == who { i64::from(request.assigned) } else { 0 };
        self.left += self.queue.iter().map(back).sum::<i64>();
        self.queue.retain(|request| request.who != who);
    }
}

/// What one connection may move before it asks again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) octets: u32,
    /// It has asked for more and waits.
    pub(crate) waits: bool,
    /// When it was last given something that it had waited for.
    pub(crate) given_at: Instant,
}

impl Quota {
    pub(crate) const NONE: Self = Self { octets: 0, waits: false, given_at: Instant::ZERO };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(way: Way, rate: u64, tcp: u64, utp: u64) -> Lane {
        let mut lane = Lane { rate: rate * 5 / 4, ..Lane::default() };
        lane.decide(way, Waiting { tcp, utp });
        lane
    }

    #[test]
    fn tcp_has_four_times_its_share() {
        assert_eq!(lane(Way::Up, 100_000, 1, 9).limit, Some(40_000));
        assert_eq!(lane(Way::Up, 100_000, 0, 10).limit, Some(40_000));
        assert_eq!(lane(Way::Up, 0, 1, 9).limit, Some(5_000));
        assert_eq!(lane(Way::Down, 0, 1, 9).limit, Some(30_000));
        // Few peers, or none over uTP.
        assert_eq!(lane(Way::Up, 100_000, 1, 3).limit, None);
        assert_eq!(lane(Way::Up, 100_000, 9, 0).limit, None);
    }

    #[test]
    fn a_rate_is_an_average_over_five_seconds() {
        let mut lane = Lane::default();
        for _ in 0..50 {
            lane.count(10_000);
            lane.decide(Way::Up, Waiting::default());
        }
        assert!((9_900..=10_000).contains(&lane.rate), "{}", lane.rate);
    }

    #[test]
    fn what_there_is_is_shared_alike_and_given_whole() {
        let mut lane = lane(Way::Up, 10_000, 1, 3 + 1);
        lane.limit = Some(8_000);
        assert_eq!((lane.ask(1, 1_000), lane.ask(2, 16_384)), (0, 0));
        let mut given = Vec::new();
        lane.share_out(SHARE_OUT, &mut given);
        assert_eq!(given, [(1, 1_000)]);
        // 3,000 are left of those 4,000, and 4,000 come each time.
        given.clear();
        let rounds = (0..20).position(|_| {
            lane.share_out(SHARE_OUT, &mut given);
            !given.is_empty()
        });
        assert_eq!((rounds, &*given), (Some(3), [(2, 16_384)].as_slice()));
    }

    #[test]
    fn after_ten_seconds_one_takes_what_it_has() {
        let mut lane = Lane { limit: Some(100), ..Lane::default() };
        lane.ask(7, 1_000_000);
        let mut given = Vec::new();
        let rounds = (1..100).find(|_| {
            lane.share_out(SHARE_OUT, &mut given);
            !given.is_empty()
        });
        assert!((19..=21).contains(&rounds.unwrap()), "{rounds:?}");
        assert!((900..=1_050).contains(&given[0].1), "{given:?}");
        assert!(!lane.is_awaited());
    }

    #[test]
    fn who_waits_when_the_limit_ends_has_what_it_wanted() {
        let mut lane = Lane { limit: Some(100), ..Lane::default() };
        lane.ask(7, 50_000);
        lane.limit = None;
        let mut given = Vec::new();
        lane.share_out(SHARE_OUT, &mut given);
        assert_eq!(given, [(7, 50_000)]);
    }
}
