//! Room for callers: nobody fills all places by opening connections.
//!
//! For drivers that face the open network ([`Engine::make_room`]); whoever does not ask has the profile's bound alone. One host
//! has half of the places that there are at most, which is plenty for several clients behind one address. Where it has them, or all
//! are taken, the connection that has been good for nothing for the longest time makes room, first of all one that has never been good for
//! anything: whoever is honest says within a round trip or two that it wants something, and asks when it may. Who is served, or waits
//! for it, stays. Where none has been good for nothing for long enough, the host with the most connections, if it has two more than the
//! newcomer's, gives up one over which no content has ever moved. A host that has let slots go by and comes again stands behind everybody: for it
//! nobody makes room, and it makes room for anybody. Whoever wants something keeps a quarter of its places for calls of its own.
//!
//! Connections that we have opened make room for none of these, but for calls of our own (`turnover`).

use super::chatter::CHATTER_MAX;
use super::conn::{Conn, ConnId};
use super::hosts::Hosts;
use super::{CloseReason, Engine, PeerAddress};
use cede_units::{Duration, Instant};
use core::net::{IpAddr, Ipv6Addr};

/// One over which content never moved, and neither wants anything or a slot was not used, has that long: a few round trips.
const USELESS_MAX: Duration = Duration::from_secs(3);
/// The same where half of the places are taken by such: they are called in faster than they can be told from others.
const USELESS_MAX_IN_A_RUSH: Duration = Duration::from_millis(250);
/// A connection over which neither wants anything any more has that long.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(20);
/// One over which somebody wants something and nothing comes, where its host has others.
const BARREN_SHARED_MAX: Duration = Duration::from_secs(60);
/// And where it has not.
const BARREN_MAX: Duration = Duration::from_secs(300);

/// Hosts are remembered for so long for the slots that they let go by.
const IDLERS_FOR: Duration = Duration::from_secs(600);

/// Hosts of callers that had slots, used none and are gone, and how many slots that were.
#[derive(Debug, Default)]
pub(super) struct Idlers(Hosts);

impl Idlers {
    fn unused(&self, now: Instant, host: IpAddr) -> u32 {
        let found = self.0.get(host).filter(|(since, _)| now.since(*since) < IDLERS_FOR);
        found.map_or(0, |(_, unused)| unused)
    }
}

/// Who gets an IPv6 address gets 64 bits of them.
#[must_use]
pub fn neighbourhood(host: IpAddr) -> IpAddr {
    match host {
        IpAddr::V4(_) => host,
        IpAddr::V6(host) => Ipv6Addr::from_bits(host.to_bits() >> 64 << 64).into(),
    }
}

impl<A: PeerAddress> Conn<A> {
    fn came_from(&self, host: IpAddr) -> bool {
        neighbourhood(self.address.host()) == host
    }

    pub(super) fn moved_nothing(&self) -> bool {
        self.download.total() == 0 && self.upload.total() == 0 && !self.out.has_blocks()
    }

    /// It has never been good for anything, and nothing says that it will be.
    pub(super) fn seems_useless(&self) -> bool {
        let wants_nothing = !self.interested && !self.peer_interested;
        self.moved_nothing() && wants_nothing || self.lets_slots_go_by()
    }

    /// It could have asked for something, or its host before it, and never has.
    fn lets_slots_go_by(&self) -> bool {
        self.moved_nothing() && self.tally.unused_slots > 0
    }

    /// How long it has been good for nothing, beyond what it may.
    pub(super) fn overstay(
        &self,
        now: Instant,
        useless_max: Duration,
        hosts_others: bool,
    ) -> Option<Duration> {
        let barren = now.since(self.times.content_at);
        let allowed = match (self.interested || self.peer_interested, hosts_others) {
            _ if self.lets_slots_go_by() => Duration::ZERO,
            _ if self.seems_useless() => useless_max,
            (false, _) => IDLE_MAX,
            (true, true) => BARREN_SHARED_MAX,
            (true, false) => BARREN_MAX,
        };
        (barren >= allowed).then(|| barren - allowed)
    }
}

impl<A: PeerAddress> Engine<A> {
    /// Whether there is room for a connection that somebody opens from `host`. Where there is none, it is made if it can be.
    pub fn make_room(&mut self, now: Instant, host: IpAddr) -> bool {
        let host = neighbourhood(host);
        let (all, ours) = (self.profile.connections_max, self.callers_from(host));
        let is_crowded = ours >= all.div_ceil(2);
        let callers_max = all.saturating_sub(self.kept_for_calls()) as usize;
        if !is_crowded && self.taken(now) < all && self.callers().count() < callers_max {
            return true;
        }
        if self.dials.idlers.unused(now, host) > 0 {
            return false;
        }
        let useless_max = self.useless_max();
        let worst = self
            .callers()
            .filter(|conn| !is_crowded || conn.came_from(host))
            .filter_map(|conn| {
                let others = self.callers_from(neighbourhood(conn.address.host())) > 1;
                Some((conn.seems_useless(), conn.overstay(now, useless_max, others)?, conn.id.index))
            })
            .max();
        let worst = worst.map(|(.., index)| index).or_else(|| self.surplus(ours, is_crowded));
        let Some(index) = worst else { return false };
        self.close(now, index, CloseReason::Crowded);
        true
    }

    /// A caller begins with what its host has let go by, and said for nothing.
    pub(super) fn recall(&mut self, now: Instant, index: u32) {
        let Some(host) = self.peek(index).map(|conn| neighbourhood(conn.address.host())) else { return };
        let (unused, chatter) = (self.dials.idlers.unused(now, host), self.dials.chatterers.of(now, host));
        if let Some(conn) = self.at(index) {
            (conn.tally.unused_slots, conn.tally.chatter) = (unused, chatter);
        }
    }

    /// A caller is gone.
    pub(super) fn remember(&mut self, now: Instant, conn: &Conn<A>) {
        if conn.opened_by_us {
            return;
        }
        let host = neighbourhood(conn.address.host());
        if conn.lets_slots_go_by() {
            self.dials.idlers.0.note(now, host, conn.tally.unused_slots);
        } else if !conn.moved_nothing() {
            self.dials.idlers.0.forget(host);
        }
    }

    /// All that came has been looked at, and so many octets of no use are left: whether that is too much.
    pub(super) fn weigh_chatter(&mut self, now: Instant, id: ConnId, octets: u32) {
        let most = CHATTER_MAX + 2 * self.geometry.pieces().div_ceil(8);
        let Some(conn) = (octets > most).then(|| self.conn(id)).flatten() else { return };
        let (host, is_caller) = (neighbourhood(conn.address.host()), !conn.opened_by_us);
        if is_caller {
            self.dials.chatterers.note(now, host, most);
        }
        self.close(now, id.index, CloseReason::Misbehaved);
    }

    /// Of the host that has the most connections the one that has been good for nothing for the longest time, where a host that has so
    /// many is to have one more.
    fn surplus(&self, ours: u32, is_crowded: bool) -> Option<u32> {
        let count = |conn: &Conn<A>| self.callers_from(neighbourhood(conn.address.host()));
        let most = self.callers().map(&count).max().filter(|&most| !is_crowded && most > ours + 1)?;
        let idle = self.callers().filter(|conn| conn.moved_nothing() && count(conn) == most);
        // The earliest call stands lowest.
        idle.map(|conn| (conn.id.generation, conn.id.index)).min().map(|(_, index)| index)
    }

    /// Places that callers do not get: whoever wants something calls others, and is not to be kept from it by those who call.
    const fn kept_for_calls(&self) -> u32 {
        if self.complete { 0 } else { self.profile.connections_max / 4 }
    }

    fn callers(&self) -> impl Iterator<Item = &Conn<A>> {
        self.slots.iter().flatten().map(|conn| &**conn).filter(|conn| !conn.opened_by_us)
    }

    fn useless_max(&self) -> Duration {
        let useless = self.callers().filter(|conn| conn.seems_useless()).count();
        let is_rush = useless >= self.profile.connections_max.div_ceil(2) as usize;
        if is_rush { USELESS_MAX_IN_A_RUSH } else { USELESS_MAX }
    }

    /// Connections that were opened from a host.
    fn callers_from(&self, host: IpAddr) -> u32 {
        self.callers().filter(|conn| conn.came_from(host)).count() as u32
    }
}
