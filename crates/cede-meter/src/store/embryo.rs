//! Flows of few packets, kept as what these said: most flows on a backbone stay that short, and cost a third of what the
//! state of a long one does. A flow that outgrows this form, or says what has no room in it, is played into that state
//! ([`Flow`]). So is each one while the report is made: short flows tell as much as if they had always had it.
//!
//! **How it was validated.** Random packets in both forms (below), and every test of the meter.

use crate::packet::key::{Key, Side};
use crate::packet::length::Length;
use crate::packet::{Marks, Packet, Said, tcp, utp};
use crate::store::flow::{Flow, Totals};
use crate::store::hops::HopLimit;
use crate::store::place::ENTRIES_MAX;
use crate::store::pool::{NONE, Pool, WORDS};

const ENTRY_WORDS: usize = 5;
const ENTRIES_PER_BLOCK: usize = WORDS / ENTRY_WORDS;
/// Blocks that they take.
pub(crate) const BLOCKS_MAX: usize = ENTRIES_MAX.div_ceil(ENTRIES_PER_BLOCK);
/// In the second octet of an entry's last word, beside TCP's flags or uTP's kind: who sent it, and whether there is an echo.
const FROM_HIGH: u8 = 0x80;
const ECHOES: u8 = 0x40;
/// Bits of [`Embryo::state`]: each side has said its clock, and has echoed the other one's; the flow has another form, and the
/// place is free.
const HAS_CLOCK: [u8; 2] = [1, 2];
const HAS_ECHO: [u8; 2] = [4, 8];
const GONE: u8 = 16;
/// Not all packets of a side have the same hop limit.
const HAS_HOP_LIMITS: [u8; 2] = [32, 64];

type Entry = [u32; ENTRY_WORDS];

/// A flow of few packets.
#[derive(Clone, Debug)]
pub(crate) struct Embryo {
    pub key: Key,
    pub first_us: u64,
    /// Of each side's packets on the wire, and when the last one came, in microseconds after the first of all.
    bytes: [u32; 2],
    last_us: [u32; 2],
    /// First and last block of the entries.
    log: [u32; 2],
    /// TCP: the first readings that each side said of its clock, and of the other one's. Others are counted from them.
    clocks: [u32; 2],
    echoes: [u32; 2],
    packets: [u8; 2],
    hop_limits: [u8; 2],
    entries: u8,
    foreign: u8,
    pub marks: Marks,
    state: u8,
}

/// Entries that were taken out of their blocks.
pub(crate) struct Entries([Entry; ENTRIES_MAX], usize);

impl Embryo {
    pub(crate) const fn new(key: Key, first_us: u64) -> Self {
        Self {
            key,
            first_us,
            bytes: [0; 2],
            last_us: [0; 2],
            log: [NONE; 2],
            clocks: [0; 2],
            echoes: [0; 2],
            packets: [0; 2],
            hop_limits: [0; 2],
            entries: 0,
            foreign: 0,
            marks: Marks::NONE,
            state: 0,
        }
    }

    pub(crate) const fn is_gone(&self) -> bool {
        self.state & GONE != 0
    }

    pub(crate) fn last_us(&self) -> u64 {
        self.first_us + u64::from(self.last_us[0].max(self.last_us[1]))
    }

    /// The first and the last block of what is kept of its packets; [`NONE`] where there is none.
    pub(crate) const fn ends(&self) -> [u32; 2] {
        self.log
    }

    /// At least as many as there are samples of either direction.
    pub(crate) const fn entries(&self) -> usize {
        self.entries as usize
    }

    /// Takes a packet in; `None` where there is no room for what it says, and nothing was taken.
    #[inline]
    pub(crate) fn take(&mut self, packet: &Packet, pool: &mut Pool) -> Option<()> {
        let since_us = u32::try_from(packet.time_us.checked_sub(self.first_us)?).ok()?;
        let side = packet.side;
        let packets = self.packets[side].checked_add(1)?;
        let bytes = self.bytes[side].checked_add(packet.bytes)?;
        let marks = packet.marks(|| self.utp_last_us(pool));
        match packet.said {
            Said::Silent => {}
            Said::Foreign => self.foreign = self.foreign.checked_add(1)?,
            Said::Tcp(said) => {
                let rest = self.of_tcp(packet, &said)?;
                self.push(since_us, rest, pool)?;
            }
            Said::Utp(said) => self.push(since_us, of_utp(packet, &said), pool)?,
        }
        (self.packets[side], self.bytes[side], self.last_us[side]) = (packets, bytes, since_us);
        self.note_hop_limit(packet);
        self.marks.set(marks);
        Some(())
    }

    /// When uTP was last seen.
    #[cold]
    fn utp_last_us(&self, pool: &Pool) -> Option<u64> {
        if self.key.is_tcp() {
            return None;
        }
        let mut last_us = None;
        self.each_entry(pool, |entry| last_us = last_us.max(Some(self.first_us + u64::from(entry[0]))));
        last_us
    }

    /// Keeps the first; none is zero.
    #[inline]
    fn note_hop_limit(&mut self, packet: &Packet) {
        let known = &mut self.hop_limits[packet.side];
        if packet.said.reading(packet.time_us).is_none() || *known == packet.hop_limit {
            return;
        }
        if *known == 0 {
            *known = packet.hop_limit;
        } else {
            self.state |= HAS_HOP_LIMITS[packet.side];
        }
    }

    // What is returned stays in registers.
    #[inline(always)]
    fn of_tcp(&mut self, packet: &Packet, said: &tcp::Said) -> Option<[u32; ENTRY_WORDS - 1]> {
        let (clock, echo) = self.since(packet.side, said)?;
        let payload_len = u16::try_from(said.payload_len).ok()?;
        let echoes = if said.echo == 0 { 0 } else { ECHOES };
        Some([
            said.seq,
            said.ack,
            pair(clock, echo),
            tail(payload_len, said.flags & tcp::FLAGS | echoes, packet),
        ])
    }

    /// What a side says of its clock and of the other one's as distances from the first that it said.
    fn since(&mut self, side: usize, said: &tcp::Said) -> Option<(u16, u16)> {
        if self.state & HAS_CLOCK[side] == 0 {
            self.clocks[side] = said.clock;
        }
        if self.state & HAS_ECHO[side] == 0 {
            self.echoes[side] = said.echo;
        }
        let clock = distance(self.clocks[side], said.clock)?;
        let echo = if said.echo == 0 { 0 } else { distance(self.echoes[side], said.echo)? };
        self.state |= HAS_CLOCK[side] | if said.echo == 0 { 0 } else { HAS_ECHO[side] };
        Some((clock, echo))
    }

    /// TCP: whether there are samples of each direction.
    pub(crate) fn has_samples(&self) -> [bool; 2] {
        HAS_CLOCK.map(|bit| self.state & bit != 0)
    }

    /// Which sides have samples, as far as is known before it is known whether it is uTP.
    pub(crate) fn sampled(&self) -> [bool; 2] {
        match (self.entries, self.key.is_tcp()) {
            (0, _) => [false; 2],
            (_, true) => self.has_samples(),
            (_, false) => self.packets.map(|packets| packets > 0),
        }
    }

    #[inline(always)]
    fn push(&mut self, since_us: u32, rest: [u32; ENTRY_WORDS - 1], pool: &mut Pool) -> Option<()> {
        let used = usize::from(self.entries);
        if used == ENTRIES_MAX {
            return None;
        }
        let at = used % ENTRIES_PER_BLOCK * ENTRY_WORDS;
        if at == 0 {
            let block = pool.take();
            match self.log[1] {
                NONE => self.log[0] = block,
                last => pool.block_mut(last).next = block,
            }
            self.log[1] = block;
        }
        let words = &mut pool.block_mut(self.log[1]).words[at..at + ENTRY_WORDS];
        words[0] = since_us;
        words[1..].copy_from_slice(&rest);
        self.entries += 1;
        Some(())
    }

    /// What is kept of the packets.
    pub(crate) fn copy_entries(&self, pool: &Pool) -> Entries {
        let mut entries = Entries([[0; ENTRY_WORDS]; ENTRIES_MAX], self.entries());
        let words = pool.chain(self.log[0]).flat_map(|block| block.words.as_chunks().0);
        entries.0.iter_mut().zip(words).for_each(|(entry, words)| *entry = *words);
        entries
    }

    /// Hands over what is kept of the packets, one after the other.
    // A loop for each protocol: in either one it is known what packets say.
    #[inline(always)]
    pub(crate) fn each(&self, pool: &Pool, mut take: impl FnMut(&Packet)) {
        if self.key.is_tcp() {
            self.each_entry(
                pool,
                #[inline(always)]
                |entry| take(&self.packet(entry, self.said_tcp(entry))),
            );
        } else {
            self.each_entry(
                pool,
                #[inline(always)]
                |entry| take(&self.packet(entry, said_utp(entry))),
            );
        }
    }

    #[inline(always)]
    fn each_entry(&self, pool: &Pool, mut take: impl FnMut(&Entry)) {
        let mut left = self.entries();
        for block in pool.chain(self.log[0]) {
            block.words.as_chunks().0.iter().take(left).for_each(&mut take);
            left = left.saturating_sub(ENTRIES_PER_BLOCK);
        }
    }

    /// The flow as it would be had it never had this form; its samples are put into `pool`.
    pub(crate) fn grown(&self, entries: &Entries, pool: &mut Pool) -> Flow {
        let mut flow = Flow::new(self.key, self.first_us);
        for entry in &entries.0[..entries.1] {
            let said = if self.key.is_tcp() { self.said_tcp(entry) } else { said_utp(entry) };
            flow.take(&self.packet(entry, said), pool);
        }
        flow.marks = self.marks;
        flow.foreign = self.foreign.into();
        for (k, side) in flow.sides.iter_mut().enumerate() {
            side.totals = self.totals(k);
        }
        flow
    }

    /// What a side sent.
    pub(crate) fn totals(&self, side: Side) -> Totals {
        let packets = u32::from(self.packets[side]);
        let last_us = if packets > 0 { self.first_us + u64::from(self.last_us[side]) } else { 0 };
        let are_alike = self.state & HAS_HOP_LIMITS[side] == 0;
        let hop_limit = HopLimit::of(self.hop_limits[side], packets, are_alike);
        Totals { packets, bytes: self.bytes[side].into(), last_us, hop_limit }
    }

    #[inline(always)]
    fn packet(&self, entry: &Entry, said: Said) -> Packet {
        let [since_us, .., last] = *entry;
        Packet {
            side: side(entry),
            time_us: self.first_us + u64::from(since_us),
            said,
            length: Length::from_units(last as u8),
            bytes: 0,
            hop_limit: 0,
            opens: false,
        }
    }

    #[inline(always)]
    fn said_tcp(&self, entry: &Entry) -> Said {
        let [_, seq, ack, readings, last] = *entry;
        let (side, bits) = (side(entry), (last >> 8) as u8);
        let reading =
            |first: u32, distance: u32| first.wrapping_add_signed((distance as u16).cast_signed().into());
        let clock = reading(self.clocks[side], readings >> 16);
        let echo = if bits & ECHOES != 0 { reading(self.echoes[side], readings) } else { 0 };
        Said::Tcp(tcp::Said { seq, ack, flags: bits & tcp::FLAGS, clock, echo, payload_len: last >> 16 })
    }

    /// The same in another pool.
    pub(crate) fn moved(&self, from: &Pool, to: &mut Pool) -> Self {
        let mut moved = Self { entries: 0, log: [NONE; 2], ..self.clone() };
        let entries = self.copy_entries(from);
        for [since_us, rest @ ..] in &entries.0[..entries.1] {
            // There is room for as many as there were.
            let _ = moved.push(*since_us, *rest, to);
        }
        moved
    }

    /// Gives up what was kept of the packets.
    pub(crate) fn forget_samples(&mut self, pool: &mut Pool) {
        self.free(pool);
        self.marks.set(Marks::EVICTED);
    }

    /// As [`Flow::begin_again`].
    pub(crate) fn begin_again(&mut self, from: Side, pool: &mut Pool) {
        let entries = self.copy_entries(pool);
        let state = self.state & !(HAS_CLOCK[from] | HAS_ECHO[from]);
        self.free(pool);
        self.state = state;
        for [since_us, rest @ ..] in entries.0[..entries.1].iter().filter(|entry| side(entry) != from) {
            // There is room for as many as there were.
            let _ = self.push(*since_us, *rest, pool);
        }
    }

    /// The place is free from now on.
    pub(crate) fn leave(&mut self, pool: &mut Pool) {
        self.free(pool);
        self.state |= GONE;
    }

    fn free(&mut self, pool: &mut Pool) {
        pool.release_chain(self.log[0]);
        (self.log, self.entries) = ([NONE; 2], 0);
        self.state = 0;
    }
}

/// Who sent a packet.
#[inline(always)]
const fn side(entry: &Entry) -> Side {
    ((entry[ENTRY_WORDS - 1] >> 15) & 1) as Side
}

#[inline(always)]
fn said_utp(&[_, a, b, c, last]: &Entry) -> Said {
    let (id, bits) = ((last >> 16) as u16, (last >> 8) as u8);
    utp::Said::unpack([a, b, c], id, bits & !FROM_HIGH).map_or(Said::Foreign, Said::Utp)
}

fn distance(first: u32, reading: u32) -> Option<u16> {
    i16::try_from(reading.wrapping_sub(first).cast_signed()).ok().map(i16::cast_unsigned)
}

const fn pair(high: u16, low: u16) -> u32 {
    (high as u32) << 16 | low as u32
}

fn tail(upper: u16, bits: u8, packet: &Packet) -> u32 {
    let side = if packet.side == 0 { 0 } else { FROM_HIGH };
    pair(upper, u16::from_be_bytes([bits | side, packet.length.units()]))
}

fn of_utp(packet: &Packet, said: &utp::Said) -> [u32; ENTRY_WORDS - 1] {
    let ([a, b, c], upper, bits) = said.pack();
    [a, b, c, tail(upper, bits, packet)]
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::packet::key::{Address, End};
    use cede_units::Stream;

    pub(crate) fn key(is_tcp: bool) -> Key {
        let end = |last: u32, port| End { address: Address::v4(0x0a00_0000 | last), port };
        Key::of(end(1, 6881), end(2, 6882), is_tcp).0
    }

    /// Mostly what a short flow says; now and then anything.
    pub(crate) fn packet(stream: &mut Stream, is_tcp: bool, time_us: u64) -> Packet {
        let mut word = |usual: u64| match stream.below(60) {
            0 => stream.below(1 << 32) as u32,
            _ => 1_000_000 + stream.below(usual) as u32,
        };
        let said = if is_tcp {
            let (seq, ack, clock) = (word(9_000), word(9_000), word(20_000));
            let echo = if word(8) % 8 == 0 { 0 } else { word(20_000) };
            let (flags, payload_len) = (word(64) as u8 & 0x3b, word(2_000) % 70_000);
            Said::Tcp(tcp::Said { seq, ack, clock, echo, flags, payload_len })
        } else {
            let words = [word(1 << 20), word(1 << 20), word(1 << 20)];
            utp::Said::unpack(words, word(3) as u16, (word(5) % 5) as u8).map_or(Said::Foreign, Said::Utp)
        };
        let silent = if is_tcp { Said::Silent } else { Said::Foreign };
        let said = if word(10) % 10 == 0 { silent } else { said };
        let (bytes, opens) = (word(1_600) % 1_600, word(9) % 9 == 0);
        let side = word(2) as usize % 2;
        let hop_limit = 60 + side as u8 + u8::from(word(80) % 80 == 0);
        Packet { side, time_us, bytes, length: Length::of(bytes), hop_limit, opens, said }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{key, packet};
    use super::*;
    use cede_units::Stream;

    #[test]
    fn a_short_flow_grows_into_what_it_would_have_been() {
        let mut stream = Stream::named(7, "embryo");
        let (mut outgrown, mut whole, mut mixed) = (0, 0, 0);
        for round in 0..3_000 {
            let key = key(round % 2 == 0);
            let mut time_us = 1_700_000_000_000_000;
            let (mut embryo, mut flow) = (Embryo::new(key, time_us), Flow::new(key, time_us));
            let (mut log, mut pools) = (Pool::default(), [Pool::default(), Pool::default()]);
            for _ in 0..stream.below(40) {
                let packet = packet(&mut stream, key.is_tcp(), time_us);
                if embryo.take(&packet, &mut log).is_none() {
                    outgrown += 1;
                    break;
                }
                flow.take(&packet, &mut pools[0]);
                let is_long = stream.chance(0.01);
                time_us += stream.below(if is_long { 1 << 33 } else { 100_000 });
            }
            let moved = embryo.moved(&log, &mut Pool::default());
            assert_eq!((moved.entries, moved.bytes), (embryo.entries, embryo.bytes));
            let mut grown = embryo.grown(&embryo.copy_entries(&log), &mut pools[1]);
            for (side, bit) in
                HAS_HOP_LIMITS.into_iter().enumerate().filter(|(_, bit)| embryo.state & bit != 0)
            {
                mixed += 1;
                assert_eq!(grown.sides[side].totals.hop_limit_ahead(), 0, "{bit}");
                grown.sides[side].totals.hop_limit = flow.sides[side].totals.hop_limit;
            }
            whole += u32::from(embryo.entries > 10);
            assert_eq!(format!("{grown:?}{:?}", pools[1]), format!("{flow:?}{:?}", pools[0]));
            embryo.leave(&mut log);
            assert!(log.bytes() == 0 && embryo.is_gone());
        }
        assert!(outgrown > 300 && whole > 300 && mixed > 100, "{outgrown} {whole} {mixed}");
    }
}
