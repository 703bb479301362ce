//! Room for calls of our own: nobody who takes our calls, and is good for nothing, keeps us from calling others.
//!
//! For drivers that face the open network ([`Engine::make_room_for_calls`]); whoever does not ask has the profile's bound alone. Where all places
//! are taken and somebody waits to be called, a connection that we have opened makes room as a caller's would, though not before
//! [`IDLE_MAX`]: first of all one over which neither has ever wanted anything. Where none has been good for nothing for so long, the host with the
//! most connections, if it has two more than the one that waits, gives up one over which no content has ever moved. Of those that wait the
//! first of the host with the fewest connections is called. libtorrent gives up some of its peers every five minutes, and has one connection
//! to a host.

use super::conn::Conn;
use super::crowd::{IDLE_MAX, neighbourhood};
use super::stage::Stage;
use super::{CloseReason, Engine, PeerAddress};
use alloc::collections::BTreeMap;
use cede_units::{Duration, Instant};
use core::net::IpAddr;

/// A connection of a host that has several more than another that waits is given as long to be good for something.
const SURPLUS_MIN: Duration = Duration::from_secs(3);

/// How many of our connections lead to each host.
type Counts = BTreeMap<IpAddr, u32>;

impl<A: PeerAddress> Engine<A> {
    /// Makes room for a call where there is none, and makes it. To be asked every second or so.
    pub fn make_room_for_calls(&mut self, now: Instant) {
        let is_room = self.may_call(now) && self.taken(now) < self.profile.connections_max;
        if self.complete || is_room {
            return;
        }
        let mut counts = Counts::new();
        for conn in self.called() {
            *counts.entry(neighbourhood(conn.address.host())).or_default() += 1;
        }
        let of = |host: IpAddr| counts.get(&neighbourhood(host)).copied().unwrap_or(0);
        let Some(least) = self.dials.bring_forward(|address| of(address.host())) else { return };
        let Some(index) = self.barren(now, &counts).or_else(|| self.in_surplus(now, least, &counts)) else {
            return;
        };
        self.close(now, index, CloseReason::Crowded);
        self.dial(now);
    }

    fn called(&self) -> impl Iterator<Item = &Conn<A>> {
        let open = self.slots.iter().flatten().map(|conn| &**conn);
        open.filter(|conn| conn.opened_by_us && conn.stage != Stage::Dialling)
    }

    /// The one that has been good for nothing for the longest time, beyond what it may.
    fn barren(&self, now: Instant, counts: &Counts) -> Option<u32> {
        let worst = self.called().filter_map(|conn| {
            let has_others = counts.get(&neighbourhood(conn.address.host())).is_some_and(|count| *count > 1);
            Some((conn.seems_useless(), conn.overstay(now, IDLE_MAX, has_others)?, conn.id.index))
        });
        worst.max().map(|(.., index)| index)
    }

    /// Of the host with the most connections the oldest over which nothing has moved, where another that waits has so few.
    fn in_surplus(&self, now: Instant, least: u32, counts: &Counts) -> Option<u32> {
        let most = counts.values().copied().max().filter(|most| *most > least + 1)?;
        let count = |conn: &Conn<A>| counts.get(&neighbourhood(conn.address.host())).copied();
        let is_idle = |conn: &&Conn<A>| {
            conn.moved_nothing()
                && now.since(conn.times.content_at) >= SURPLUS_MIN
                && count(conn) == Some(most)
        };
        let idle = self.called().filter(is_idle);
        idle.map(|conn| (conn.id.generation, conn.id.index)).min().map(|(_, index)| index)
    }
}
