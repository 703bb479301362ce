//! Hole punching: two peers whose routers let in nothing but answers are introduced to each other by a third that is connected to both,
//! and call each other over uTP at the same time, so that each call seems the answer to the other.
//!
//! Source: BEP 55. A peer that was heard of from another one (BEP 11, flag 8) and could not be reached is asked for at that other, the
//! relay. The limits are ours: a relay can have us call nobody but those whom we asked it for, and a few others in a minute, none of
//! them in a private network unless it is in one itself; and we introduce as many. What it leaves out: relays that have not told of the peer. How it was validated: the tests
//! below, a fuzz target, and transfers between two routers in `crates/cede/tests/torrent_punch.rs`, with ours and with libtorrent.

mod message;

pub use message::{Message, Reason};

use crate::gateway::is_behind;
use alloc::collections::{BTreeMap, BTreeSet};
use cede_units::{Duration, Instant};
use core::net::{IpAddr, SocketAddr};

/// Peers that are remembered to have been told of by one.
const MAX_TOLD: usize = 100;
/// Peers that are asked for, and are not asked for again yet.
const MAX_ASKED: usize = 100;
/// A relay has so long to introduce us.
const PATIENCE: Duration = Duration::from_secs(30);
/// A peer is not asked for again sooner.
const REST: Duration = Duration::from_secs(120);
/// In a minute, one relay has us call so many that we have not asked it for, and all of them so many.
const CALLS_OF_ONE: u32 = 5;
const CALLS: u32 = 20;
/// In a minute, we ask relays so often,
const ASKS: u32 = 20;
/// one peer asks us so often, and is introduced to so many that ask for it.
const INTRODUCTIONS: u32 = 10;

/// What may be done so many times a minute.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    left: u32,
    per_minute: u32,
    /// Since when what is used comes back.
    since: Instant,
}

impl Allowance {
    const fn new(per_minute: u32, now: Instant) -> Self {
        Self { left: per_minute, per_minute, since: now }
    }

    /// Whether it may be done once more; then it is.
    fn spend(&mut self, now: Instant) -> bool {
        let each = Duration::from_secs(60) / u64::from(self.per_minute);
        let back = now.since(self.since).as_nanos() / each.as_nanos();
        self.since += each * back;
        self.left = u32::try_from(back).unwrap_or(u32::MAX).saturating_add(self.left).min(self.per_minute);
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

/// A peer that we are connected to and that introduces others.
#[derive(Debug)]
struct Relay {
    told: BTreeSet<SocketAddr>,
    calls: Allowance,
    asks: Allowance,
    introductions: Allowance,
}

/// A peer that a relay is asked for.
#[derive(Debug)]
struct Asked<C> {
    relay: C,
    at: Instant,
    is_answered: bool,
}

/// What one member of a swarm knows of holes. `C` is what it calls its connections by.
#[derive(Debug)]
pub struct Puncher<C> {
    relays: BTreeMap<C, Relay>,
    asked: BTreeMap<SocketAddr, Asked<C>>,
    calls: Allowance,
    asks: Allowance,
}

impl<C: Copy + Ord> Puncher<C> {
    /// One that knows nobody.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        let (calls, asks) = (Allowance::new(CALLS, now), Allowance::new(ASKS, now));
        Self { relays: BTreeMap::new(), asked: BTreeMap::new(), calls, asks }
    }

    /// A peer that punches holes, at `host`, tells of another that does.
    pub fn learn(&mut self, now: Instant, (relay, host): (C, IpAddr), target: SocketAddr) {
        let told = &mut self.relay(now, relay).told;
        if told.len() < MAX_TOLD && is_fit(host, target) {
            told.insert(target);
        }
    }

    fn relay(&mut self, now: Instant, relay: C) -> &mut Relay {
        let (calls, introductions) = (Allowance::new(CALLS_OF_ONE, now), Allowance::new(INTRODUCTIONS, now));
        let asks = introductions;
        self.relays.entry(relay).or_insert(Relay { told: BTreeSet::new(), calls, asks, introductions })
    }

    /// A connection is over.
    pub fn leave(&mut self, relay: C) {
        self.relays.remove(&relay);
    }

    /// A peer could not be reached: who is to be asked to introduce us, if anybody.
    pub fn unreached(&mut self, now: Instant, target: SocketAddr) -> Option<C> {
        self.asked.retain(|_, asked| now.since(asked.at) < REST);
        let is_resting = self.asked.contains_key(&target) || self.asked.len() >= MAX_ASKED;
        if is_resting { None } else { self.ask(now, target) }
    }

    fn ask(&mut self, now: Instant, target: SocketAddr) -> Option<C> {
        let relay =
            self.relays.iter().find(|(_, relay)| relay.told.contains(&target)).map(|(name, _)| *name)?;
        if !self.asks.spend(now) {
            return None;
        }
        self.asked.insert(target, Asked { relay, at: now, is_answered: false });
        Some(relay)
    }

    /// A relay does not introduce us: who is to be asked in its place, if anybody.
    pub fn refused(&mut self, now: Instant, relay: C, target: SocketAddr) -> Option<C> {
        let asked = self.asked.get_mut(&target).filter(|asked| asked.relay == relay && !asked.is_answered)?;
        asked.is_answered = true;
        self.relays.get_mut(&relay)?.told.remove(&target);
        self.ask(now, target)
    }

    /// Whether a peer is to be called over uTP because a relay, at `host`, has introduced us. One whom we have asked for may be at another
    /// port than was told of.
    pub fn introduced(&mut self, now: Instant, (relay, host): (C, IpAddr), target: SocketAddr) -> bool {
        if !is_fit(host, target) {
            return false;
        }
        let is_meant = |(peer, asked): &(&SocketAddr, &mut Asked<C>)| {
            let is_late = asked.is_answered || now.since(asked.at) > PATIENCE;
            asked.relay == relay && peer.ip() == target.ip() && !is_late
        };
        if let Some((_, asked)) = self.asked.iter_mut().find(is_meant) {
            asked.is_answered = true;
            return true;
        }
        self.relay(now, relay).calls.spend(now) && self.calls.spend(now)
    }

    /// Whether a peer that asks to be introduced is answered at all.
    pub fn may_ask(&mut self, now: Instant, asker: C) -> bool {
        self.relay(now, asker).asks.spend(now)
    }

    /// Whether a peer is introduced to one more that asks for it.
    pub fn may_introduce(&mut self, now: Instant, target: C) -> bool {
        self.relay(now, target).introductions.spend(now)
    }
}

/// Whether somebody at `host` may have us call a peer: one that can be, and none in a private network unless it is in one itself.
fn is_fit(host: IpAddr, target: SocketAddr) -> bool {
    is_peer(target) && (!is_private(target.ip()) || is_private(host))
}

/// Whether a peer can be at an address.
#[must_use]
pub fn is_peer(address: SocketAddr) -> bool {
    let is_one = match address.ip().to_canonical() {
        IpAddr::V4(ip) => !ip.is_broadcast() && !ip.is_multicast() && ip.octets()[0] != 0,
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast(),
    };
    is_one && address.port() != 0
}

/// Whether an address means something in one network alone: private (RFC 1918, 4193), of a carrier (RFC 6598), of a link, of this machine.
pub(crate) fn is_private(host: IpAddr) -> bool {
    match host.to_canonical() {
        IpAddr::V4(ip) => is_behind(ip) || ip.is_loopback() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const RELAY: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(198, 51, 100, 1));
    const AT: Instant = Instant::from_secs(1_000);

    fn peer(number: u32) -> SocketAddr {
        SocketAddr::new(core::net::Ipv4Addr::from_bits(0x0b00_0000 + number).into(), 6881)
    }

    fn puncher() -> Puncher<u32> {
        let mut puncher = Puncher::new(AT);
        for relay in [1, 2] {
            puncher.learn(AT, (relay, RELAY), peer(1));
        }
        puncher
    }

    #[test]
    fn relays_that_told_of_a_peer_are_asked_for_it_one_after_the_other() {
        let mut puncher = puncher();
        assert_eq!(puncher.unreached(AT, peer(2)), None);
        assert_eq!(puncher.unreached(AT, peer(1)), Some(1));
        // It is being asked for.
        assert_eq!(puncher.unreached(AT, peer(1)), None);
        assert_eq!(puncher.refused(AT, 2, peer(1)), None);
        assert_eq!(puncher.refused(AT, 1, peer(1)), Some(2));
        puncher.leave(2);
        assert_eq!(puncher.refused(AT, 2, peer(1)), None);
        assert_eq!(puncher.unreached(AT + REST, peer(1)), None);
    }

    #[test]
    fn whom_we_asked_for_is_called_once_at_whatever_port_and_however_many_others_were() {
        let mut puncher = puncher();
        while puncher.introduced(AT, (1, RELAY), peer(7)) {}
        assert_eq!(puncher.unreached(AT, peer(1)), Some(1));
        let elsewhere = SocketAddr::new(peer(1).ip(), 7_000);
        assert!(!puncher.introduced(AT, (1, RELAY), peer(2)));
        assert!(puncher.introduced(AT, (1, RELAY), elsewhere));
        assert!(!puncher.introduced(AT, (1, RELAY), elsewhere));
        // After a rest it may be asked for again, and whoever is late is as one that was not asked.
        assert_eq!(puncher.unreached(AT + REST, peer(1)), Some(1));
        let late = AT + REST + PATIENCE + Duration::from_nanos(1);
        while puncher.introduced(late, (1, RELAY), peer(7)) {}
        assert!(!puncher.introduced(late, (1, RELAY), peer(1)));
    }

    #[test]
    fn a_relay_has_us_call_few_others_and_all_of_them_not_many() {
        let mut puncher = puncher();
        let count = |puncher: &mut Puncher<u32>, relay, at| {
            (0..100).filter(|k| puncher.introduced(at, (relay, RELAY), peer(100 + k))).count()
        };
        let counts: Vec<usize> = (1..8).map(|relay| count(&mut puncher, relay, AT)).collect();
        assert_eq!(counts, [5, 5, 5, 5, 0, 0, 0]);
        let later = AT + Duration::from_secs(60);
        assert_eq!(count(&mut puncher, 1, later), 5);
        // One that comes back before its minute is over has no more than its share.
        puncher.leave(1);
        assert!((0..40).map(|k| count(&mut puncher, 10 + k, later)).sum::<usize>() == 15);
    }

    #[test]
    fn nobody_has_us_call_what_is_no_peer_or_in_a_network_that_he_is_not_in() {
        let private = [
            "10.1.2.3",
            "192.168.1.1",
            "127.0.0.1",
            "169.254.1.1",
            "100.64.0.1",
            "::1",
            "fe80::1",
            "fd00::1",
        ];
        let never = ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "0.1.2.3", "::ffff:0.0.0.0"];
        for (text, from_private) in
            private.map(|it| (it, true)).into_iter().chain(never.map(|it| (it, false)))
        {
            let target = SocketAddr::new(text.parse().unwrap(), 6881);
            assert!(!is_fit(RELAY, target), "{text}");
            assert_eq!(is_fit("192.168.7.1".parse().unwrap(), target), from_private, "{text}");
            let mut puncher = puncher();
            puncher.learn(AT, (1, RELAY), target);
            assert_eq!(puncher.unreached(AT, target), None, "{text}");
            assert!(!puncher.introduced(AT, (1, RELAY), target), "{text}");
        }
        assert!(!is_fit(RELAY, SocketAddr::new(peer(1).ip(), 0)));
        assert!(is_fit(RELAY, peer(1)) && is_fit(RELAY, "[2001:db8::1]:1".parse().unwrap()));
    }

    #[test]
    fn what_is_remembered_and_asked_is_bounded() {
        let mut puncher = puncher();
        for number in 0..10_000 {
            puncher.learn(AT, (3, RELAY), peer(number));
        }
        assert_eq!(puncher.relays[&3].told.len(), MAX_TOLD);
        let asked = (0..10_000).filter(|number| puncher.unreached(AT, peer(*number)).is_some()).count();
        assert_eq!(asked, ASKS as usize);
        let answered = (0..100).filter(|_| puncher.may_ask(AT, 4)).count();
        let introduced = (0..100).filter(|_| puncher.may_introduce(AT, 4)).count();
        assert_eq!((answered, introduced), (INTRODUCTIONS as usize, INTRODUCTIONS as usize));
    }
}
