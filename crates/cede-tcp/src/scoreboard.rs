//! What has been sent and not yet acknowledged, and what is known of it.
//!
//! Source: RFC 6675, sections 2 to 4 (Update, IsLost, SetPipe, NextSeg), by segments in place of octets: losses,
//! retransmissions and selective acknowledgements all concern whole segments, whose boundaries never change.
//!
//! The RFC defines IsLost and pipe by walks over the whole window at each acknowledgement. Here both are kept up to
//! date: segments lie in a ring by number; IsLost is monotone (what lies below a lost segment is lost), so one cursor,
//! with the amount SACKed above it, says it for all; and each run of SACKed segments is leapt over by links that
//! shorten as they are followed. Every segment is touched a bounded number of times, however large the window.
//!
//! **What it leaves out.** A block that covers a segment in part says nothing of it. What a block of RFC 2883 says of a segment
//! that arrived twice is not kept here.
//!
//! **How it was validated.** The IsLost examples of RFC 6675's rule, and random histories against the RFC's own walks
//! (tests below).

use crate::facts::Facts;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use cede_cc::PacketFact;
use cede_units::Instant;
use cede_wire::Payload;

/// RFC 6675, section 2: so many discontiguous SACKed runs above a segment, or more than one segment less in octets,
/// mean that it is lost.
const DUP_THRESH: u32 = 3;

/// A sent segment's marks.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// Selectively acknowledged.
    sacked: bool,
    /// Reported to the controller as acknowledged; stays where a timeout forgets the selective acknowledgement.
    delivered: bool,
    /// Taken for lost.
    lost: bool,
    /// Retransmitted in this episode of repair: counted in pipe once more.
    resent: bool,
    /// Carries FIN.
    fin: bool,
}

/// A sent segment.
#[derive(Clone, Debug)]
struct Record {
    fact: PacketFact,
    offset: u64,
    payload: Payload,
    marks: Marks,
    /// Where the segment is SACKed: a higher number below which all are SACKed from here on.
    skip: u64,
}

impl Record {
    /// The offset after its last octet, FIN included.
    const fn end(&self) -> u64 {
        self.offset + self.fact.bytes as u64 + self.marks.fin as u64
    }

    /// One where it was sent again and nothing is known of that yet.
    const fn resent(&self) -> u64 {
        (self.marks.resent && !self.marks.sacked) as u64
    }

    /// What it counts in pipe.
    const fn pipe_bytes(&self) -> u64 {
        if self.marks.sacked {
            return 0;
        }
        self.fact.bytes as u64 * (!self.marks.lost as u64 + self.marks.resent as u64)
    }
}

/// A segment about to leave, new or again.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// Stream offset of its first octet.
    pub(crate) offset: u64,
    pub(crate) payload: Payload,
    pub(crate) fin: bool,
}

/// The sent, unacknowledged segments. Offsets count the stream's octets from 0, FIN as one more.
#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    records: VecDeque<Record>,
    first_number: u64,
    una: u64,
    next: u64,
    pipe_bytes: u64,
    /// Segments sent again in this episode of which nothing is known yet.
    resent: u64,
    /// Payload octets of a full segment.
    mss_bytes: u32,
    /// Un-SACKed segments below this number are lost.
    loss_cursor: u64,
    /// SACKed octets, and runs of SACKed segments, at or above the cursor.
    sacked_above_bytes: u64,
    sacked_above_runs: u32,
    /// The number after the highest SACKed segment.
    high_sacked: u64,
    /// HighRxt: un-SACKed segments below this number have been sent again in this episode.
    resend_cursor: u64,
}

impl Scoreboard {
    pub(crate) const fn new(mss_bytes: u32) -> Self {
        Self {
            records: VecDeque::new(),
            first_number: 0,
            una: 0,
            next: 0,
            pipe_bytes: 0,
            resent: 0,
            mss_bytes,
            loss_cursor: 0,
            sacked_above_bytes: 0,
            sacked_above_runs: 0,
            high_sacked: 0,
            resend_cursor: 0,
        }
    }

    /// SND.UNA as a stream offset.
    pub(crate) const fn una(&self) -> u64 {
        self.una
    }

    /// SND.NXT as a stream offset.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// The number of the first unacknowledged segment.
    pub(crate) const fn first_number(&self) -> u64 {
        self.first_number
    }

    /// The number that the next new segment will have.
    pub(crate) fn next_number(&self) -> u64 {
        self.first_number + self.records.len() as u64
    }

    /// Nothing is outstanding.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// FlightSize (RFC 5681): octets sent and not cumulatively acknowledged.
    pub(crate) const fn flight_bytes(&self) -> u64 {
        self.next - self.una
    }

    /// RFC 6675's estimate of the octets under way.
    pub(crate) const fn pipe_bytes(&self) -> u64 {
        self.pipe_bytes
    }

    /// How many segments that were sent again are under way.
    pub(crate) const fn resent(&self) -> u64 {
        self.resent
    }

    /// One is, or the first unacknowledged segment was sent again.
    pub(crate) fn has_repeated(&self) -> bool {
        self.resent > 0 || self.records.front().is_some_and(|record| record.fact.retransmitted)
    }

    /// Payload octets of a full segment.
    pub(crate) const fn mss_bytes(&self) -> u32 {
        self.mss_bytes
    }

    pub(crate) const fn set_mss_bytes(&mut self, mss_bytes: u32) {
        self.mss_bytes = mss_bytes;
    }

    fn index(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first_number).map(|index| index as usize)
    }

    fn record(&self, number: u64) -> Option<&Record> {
        self.records.get(self.index(number)?)
    }

    fn record_mut(&mut self, number: u64) -> Option<&mut Record> {
        let index = self.index(number)?;
        self.records.get_mut(index)
    }

    fn is_sacked(&self, number: u64) -> bool {
        self.record(number).is_some_and(|record| record.marks.sacked)
    }

    /// Enters a new segment with the fact that its sending made.
    pub(crate) fn push(&mut self, fact: PacketFact, outgoing: &Outgoing) {
        let marks = Marks { fin: outgoing.fin, ..Marks::default() };
        let (offset, payload) = (outgoing.offset, outgoing.payload.clone());
        let record = Record { fact, offset, payload, marks, skip: 0 };
        self.next = record.end();
        self.pipe_bytes += record.pipe_bytes();
        self.records.push_back(record);
    }

    /// Takes off what lies below `una`, which must not lie beyond [`Self::next`]. Segments that had not been SACKed
    /// are added to `acked`. Answers whether the acknowledgement advanced.
    pub(crate) fn acknowledge(&mut self, una: u64, acked: &mut Facts) -> bool {
        let advanced = una > self.una;
        self.una = self.una.max(una);
        while self.records.front().is_some_and(|record| record.end() <= una) {
            self.pop_front(acked);
        }
        if advanced && self.records.is_empty() {
            // An empty ring begins again where it began: a connection with little under way stays in the same lines of memory.
            self.records.clear();
        }
        self.resend_cursor = self.resend_cursor.max(self.first_number);
        advanced
    }

    fn pop_front(&mut self, acked: &mut Facts) {
        if self.loss_cursor == self.first_number {
            self.cross_sacked();
        }
        let Some(record) = self.records.pop_front() else { return };
        self.first_number += 1;
        self.loss_cursor = self.loss_cursor.max(self.first_number);
        self.pipe_bytes -= record.pipe_bytes();
        self.resent -= record.resent();
        if !record.marks.delivered && record.fact.bytes > 0 {
            acked.push(record.fact);
        }
    }

    /// Moves the loss cursor over one segment where that is SACKed.
    fn cross_sacked(&mut self) -> bool {
        let at = self.loss_cursor;
        let Some(record) = self.record(at).filter(|record| record.marks.sacked) else { return false };
        self.sacked_above_bytes -= u64::from(record.fact.bytes);
        self.sacked_above_runs -= u32::from(!self.is_sacked(at + 1));
        self.loss_cursor = at + 1;
        true
    }

    /// Takes in one SACK block of stream offsets; segments that it newly covers are added to `acked`. Answers how
    /// many segments that were.
    pub(crate) fn sack(&mut self, start: u64, end: u64, acked: &mut Facts) -> u32 {
        if start < self.una || end > self.next || start >= end {
            return 0;
        }
        let mut number = self.next_unsacked(self.number_at(start));
        let mut count = 0;
        while self.record(number).is_some_and(|record| record.end() <= end) {
            self.mark_sacked(number, acked);
            count += 1;
            number = self.next_unsacked(number + 1);
        }
        count
    }

    /// The number of the first segment that begins at or after `offset`.
    fn number_at(&self, offset: u64) -> u64 {
        let Some(front) = self.records.front() else { return self.first_number };
        // With full segments throughout, the place is known.
        let guess = (offset.saturating_sub(front.offset) / u64::from(self.mss_bytes)) as usize;
        let index = match self.records.get(guess) {
            Some(record) if record.offset == offset => guess,
            _ => self.records.partition_point(|record| record.offset < offset),
        };
        self.first_number + index as u64
    }

    /// The first un-SACKed segment from `number` on. Links passed on the way are made to point there.
    fn next_unsacked(&mut self, number: u64) -> u64 {
        let mut end = number;
        while let Some(record) = self.record(end).filter(|record| record.marks.sacked) {
            end = record.skip;
        }
        let mut at = number;
        while at < end {
            let Some(record) = self.record_mut(at) else { break };
            at = core::mem::replace(&mut record.skip, end);
        }
        end
    }

    fn mark_sacked(&mut self, number: u64, acked: &mut Facts) {
        let neighbours = u32::from(number > self.loss_cursor && self.is_sacked(number - 1))
            + u32::from(self.is_sacked(number + 1));
        let Some(record) = self.record_mut(number) else { return };
        let (pipe_bytes, resent, fact) = (record.pipe_bytes(), record.resent(), record.fact);
        record.marks.sacked = true;
        record.skip = number + 1;
        if !core::mem::replace(&mut record.marks.delivered, true) && fact.bytes > 0 {
            acked.push(fact);
        }
        self.pipe_bytes -= pipe_bytes;
        self.resent -= resent;
        self.high_sacked = self.high_sacked.max(number + 1);
        if number >= self.loss_cursor {
            self.sacked_above_bytes += u64::from(fact.bytes);
            // One more run, unless it lengthens a neighbour or joins two.
            self.sacked_above_runs = self.sacked_above_runs + 1 - neighbours;
        }
    }

    /// Moves the loss cursor up as far as IsLost reaches, and adds the segments found lost to `lost`.
    pub(crate) fn detect_losses(&mut self, lost: &mut Vec<PacketFact>) {
        loop {
            while self.cross_sacked() {}
            if !self.has_many_sacked() || self.loss_cursor >= self.next_number() {
                return;
            }
            self.mark_lost(self.loss_cursor, lost);
            self.loss_cursor += 1;
        }
    }

    /// Takes the first outstanding segment for lost, whatever IsLost says.
    pub(crate) fn mark_first_lost(&mut self, lost: &mut Vec<PacketFact>) {
        self.mark_lost(self.first_number, lost);
        if self.loss_cursor == self.first_number && !self.cross_sacked() {
            self.loss_cursor += 1;
        }
    }

    fn mark_lost(&mut self, number: u64, lost: &mut Vec<PacketFact>) {
        let Some(record) = self.record_mut(number) else { return };
        if record.marks.lost || record.marks.sacked {
            return;
        }
        let before = record.pipe_bytes();
        record.marks.lost = true;
        let (after, fact) = (record.pipe_bytes(), record.fact);
        if fact.bytes > 0 {
            lost.push(fact);
        }
        self.pipe_bytes -= before - after;
    }

    /// When the transmission of segment `number` left that is under way: neither delivered nor taken for lost.
    pub(crate) fn under_way_since(&self, number: u64) -> Option<Instant> {
        let record = self.record(number)?;
        let Marks { sacked, lost, resent, .. } = record.marks;
        (!sacked && (!lost || resent)).then_some(record.fact.sent_at)
    }

    /// Takes the transmission of segment `number` that is under way for lost, be it the first or a later one.
    pub(crate) fn mark_lost_again(&mut self, number: u64, lost: &mut Vec<PacketFact>) {
        let Some(record) = self.record_mut(number) else { return };
        let (before, resent) = (record.pipe_bytes(), record.resent());
        (record.marks.lost, record.marks.resent) = (true, false);
        let fact = record.fact;
        if fact.bytes > 0 {
            lost.push(fact);
        }
        self.pipe_bytes -= before;
        self.resent -= resent;
    }

    /// Nothing was lost after all that has not left again: it is under way still.
    pub(crate) fn unmark_lost(&mut self) {
        for record in &mut self.records {
            let before = record.pipe_bytes();
            record.marks.lost &= record.marks.resent;
            self.pipe_bytes += record.pipe_bytes() - before;
        }
    }

    /// Whether segment `number` was taken for lost and has not left again.
    pub(crate) fn is_to_resend(&self, number: u64) -> bool {
        self.record(number).is_some_and(|record| {
            let Marks { sacked, lost, resent, .. } = record.marks;
            lost && !resent && !sacked
        })
    }

    /// Something is SACKed.
    pub(crate) const fn has_sacked(&self) -> bool {
        self.high_sacked > self.first_number
    }

    /// What is known of the newest segment.
    pub(crate) fn last_fact(&self) -> Option<PacketFact> {
        self.records.back().map(|record| record.fact)
    }

    /// Three segments or more are SACKed.
    pub(crate) fn has_many_sacked(&self) -> bool {
        let limit_bytes = u64::from((DUP_THRESH - 1) * self.mss_bytes);
        self.sacked_above_runs >= DUP_THRESH || self.sacked_above_bytes > limit_bytes
    }

    /// A timeout: everything that is not SACKed is lost, and where `forget` is set so is everything else. A SACKed
    /// first segment shows that the receiver went back on its word (RFC 2018, section 8): then nothing of it counts.
    pub(crate) fn mark_all_lost(&mut self, forget: bool) {
        let forget = forget || self.is_sacked(self.first_number);
        for record in &mut self.records {
            record.marks.sacked &= !forget;
            record.marks.lost = !record.marks.sacked;
            record.marks.resent = false;
        }
        (self.pipe_bytes, self.resent) = (0, 0);
        self.loss_cursor = self.next_number();
        (self.sacked_above_bytes, self.sacked_above_runs) = (0, 0);
        self.high_sacked = if forget { self.first_number } else { self.high_sacked };
        self.resend_cursor = self.first_number;
    }

    /// An episode of repair begins: nothing has been sent again in it.
    pub(crate) const fn begin_episode(&mut self) {
        self.resend_cursor = self.first_number;
    }

    /// NextSeg rule 1: the lowest lost segment not yet sent again.
    pub(crate) fn next_lost(&mut self) -> Option<u64> {
        if self.resend_cursor >= self.loss_cursor {
            return None;
        }
        let number = self.next_unsacked(self.resend_cursor);
        (number < self.loss_cursor).then_some(number)
    }

    /// NextSeg rule 3: the lowest segment not yet sent again with something SACKed above it.
    pub(crate) fn next_hole(&mut self) -> Option<u64> {
        if self.resend_cursor >= self.high_sacked {
            return None;
        }
        let number = self.next_unsacked(self.resend_cursor);
        (number < self.high_sacked).then_some(number)
    }

    /// NextSeg rule 4: the highest un-SACKed segment.
    pub(crate) fn highest_unsacked(&self) -> Option<u64> {
        self.records.iter().rev().find(|record| !record.marks.sacked).map(|record| record.fact.number)
    }

    /// What segment `number` carries.
    pub(crate) fn outgoing(&self, number: u64) -> Option<Outgoing> {
        let record = self.record(number)?;
        Some(Outgoing { offset: record.offset, payload: record.payload.clone(), fin: record.marks.fin })
    }

    /// What is known of segment `number`, to be completed with what its sending makes.
    pub(crate) fn fact_mut(&mut self, number: u64) -> Option<&mut PacketFact> {
        self.record_mut(number).map(|record| &mut record.fact)
    }

    /// Segment `number` leaves again. A `rescue` (rule 4) counts neither in pipe nor in HighRxt.
    pub(crate) fn resend(&mut self, number: u64, rescue: bool) -> Option<()> {
        if !rescue {
            self.resend_cursor = self.resend_cursor.max(number + 1);
        }
        let record = self.record_mut(number)?;
        let before = (record.pipe_bytes(), record.resent());
        record.marks.resent |= !rescue;
        record.fact.retransmitted = true;
        let (grown, more) = (record.pipe_bytes() - before.0, record.resent() - before.1);
        self.pipe_bytes += grown;
        self.resent += more;
        Some(())
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.mss_bytes);
    }
}

#[cfg(test)]
mod tests;
