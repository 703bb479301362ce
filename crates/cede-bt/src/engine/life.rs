//! What happens with time, and what the disk answers.

use super::sources::Source;
use super::stage::Stage;
use super::{Action, AnnounceEvent, CloseReason, Engine, PeerAddress, TICK};
use crate::bitfield::Bitfield;
use crate::choker::{ChokerRule, Occasion};
use crate::picker::Turns;
use crate::pipeline::PipelineRule;
use crate::wire::Message;
use alloc::vec::Vec;
use cede_units::{Duration, Instant};

/// How often those that could not be reached are looked at, in ticks.
const RETRY_TICKS: u64 = 10;

impl<A: PeerAddress> Engine<A> {
    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.timers.tick_at <= now {
            self.tick(now);
        }
        self.share_out_at_half(now);
        if self.timers.round_at <= now {
            self.timers.round_at = now + self.profile.choker.interval();
            self.rechoke(now, Occasion::Round);
        }
        if self.timers.announce_at <= now {
            self.look_for_peers(now);
        }
    }

    /// A piece has been checked against its hash.
    pub fn checked(&mut self, now: Instant, piece: u32, good: bool) {
        if !self.picker.lacks(piece) {
            return;
        }
        let origin = self.picker.checked(piece, good);
        if good {
            self.on_piece(now, piece);
        } else {
            self.totals.bad_pieces += 1;
            self.on_bad_piece(now, piece, &origin);
            self.ask_everybody(now);
        }
        self.forget_departed();
    }

    /// Wants these pieces and no others.
    pub fn want(&mut self, now: Instant, wanted: Bitfield) {
        self.picker.want(wanted);
        self.complete = self.picker.is_complete();
        for index in self.list.clone() {
            if let Some(conn) = self.slots[index as usize].as_deref_mut() {
                conn.wanted = conn.have.iter().filter(|&piece| self.picker.lacks(piece)).count() as u32;
            }
            self.tell_interest(now, index);
        }
        self.ask_everybody(now);
    }

    /// Asks for pieces in these turns from now on. What has been asked for comes as it comes.
    pub fn take_turns(&mut self, turns: Turns) {
        self.picker.take_turns(turns);
        for index in self.list.clone() {
            self.drop_plans(index);
        }
    }

    fn tick(&mut self, now: Instant) {
        // Mainline's pipelines follow the rate by themselves: a coarser look is enough.
        let slow = self.profile.choker == ChokerRule::Mainline4;
        let step = if slow { TICK * 10 } else { TICK };
        self.timers.tick_at = now + step;
        self.dials.tokens = self.profile.dials_per_second.unwrap_or(u32::MAX);
        for index in self.list.clone() {
            self.look_at(now, step, index);
        }
        self.decide_shares(now);
        self.end_stale_handshakes(now);
        self.look_for_unused_slots(now);
        self.look_at_suspects(now);
        self.tend_offers(now, true);
        let ticks = now.as_nanos() / step.as_nanos();
        if slow || ticks.is_multiple_of(RETRY_TICKS) {
            self.retry(now);
        } else {
            self.dial(now);
        }
        // Last: the driver is to forget where a caller called from before anybody is called again.
        self.settle_twins(now);
    }

    fn look_at(&mut self, now: Instant, step: Duration, index: u32) {
        let (keepalive, silence) = (self.profile.keepalive, self.profile.silence_max);
        let (is_seed, patience) = (self.complete, self.profile.seed_patience);
        let by_second = self.profile.pipeline == PipelineRule::Libtorrent;
        let Some(conn) = self.at(index) else { return };
        if now.since(conn.times.heard_at) > silence {
            return self.close(now, index, CloseReason::Silent);
        }
        let idle_since = conn.asks_nothing_since().map(|at| at.max(conn.times.content_at));
        if let (true, Some(patience), Some(at)) = (is_seed, patience, idle_since)
            && now.since(at) > patience
        {
            return self.close(now, index, CloseReason::AsksNothing);
        }
        if by_second {
            conn.pipeline.on_second(conn.peer_choking);
        }
        conn.refusals.forget_old(now);
        conn.tally.chatter.forget(step);
        let quiet = now.since(conn.times.said_at) >= keepalive && conn.out.is_empty();
        if quiet {
            self.say(now, index, &Message::KeepAlive);
        }
        self.look_for_lateness(now, index);
        self.ask(now, index);
    }

    /// Whoever opens a connection and says nothing does not keep its place.
    fn end_stale_handshakes(&mut self, now: Instant) {
        let patience = Duration::from_secs(60);
        let stale = |conn: &super::Conn<A>| {
            conn.stage == Stage::Handshaking && now.since(conn.times.heard_at) > patience
        };
        let stale: Vec<u32> =
            self.slots.iter().flatten().filter(|conn| stale(conn)).map(|conn| conn.id.index).collect();
        stale.into_iter().for_each(|index| self.close(now, index, CloseReason::Silent));
    }

    /// A good piece: everybody hears of it.
    fn on_piece(&mut self, now: Instant, piece: u32) {
        let complete = self.picker.is_complete();
        for place in 0..self.list.len() {
            let index = self.list[place];
            let Some(conn) = self.slots[index as usize].as_deref_mut() else { continue };
            if conn.have.has(piece) {
                conn.wanted = conn.wanted.saturating_sub(1);
            }
            Message::Have(piece).encode(&mut conn.out.control);
            conn.times.said_at = now;
            conn.tally.chatter.note_pieces(1);
            self.totals.haves_sent += 1;
            self.join_ring(index);
            self.tell_interest(now, index);
        }
        if complete && !self.complete {
            self.on_complete(now);
        }
    }

    fn on_complete(&mut self, now: Instant) {
        self.complete = true;
        // What is under way of a block has come from elsewhere.
        let parts = self.slots.iter_mut().flatten().map(|conn| core::mem::take(&mut conn.tally.part));
        self.totals.cut += parts.map(u64::from).sum::<u64>();
        self.totals.cut += self.sources.iter_mut().map(Source::drop_part).sum::<u64>();
        self.act(Action::Announce { event: AnnounceEvent::Completed, want: 0 });
        self.act(Action::Complete);
        for index in self.list.clone() {
            if self.at(index).is_some_and(|conn| conn.is_sated()) {
                self.close(now, index, CloseReason::BothComplete);
            }
        }
    }
}
