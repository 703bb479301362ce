//! From flows to hosts: whose queue it was.
//!
//! A host's delay is its uplink's, whoever caused it, so the samples of all flows that an address sent are put together
//! in the order of time. uTP flows from one socket share a clock, and with it the base: what one of them saw when the
//! queue was empty holds for the others. TCP's connections each have an offset of their own; what queue they saw at the same time
//! tells where each begins ([`crate::hosts::company`]).

use crate::clocks::shelf::Shelf;
use crate::clocks::track::Track;
use crate::config::{Base, Config};
use crate::hosts::company::InCompany;
use crate::hosts::direction::{Depth, Direction, is_short};
use crate::hosts::senders::senders;
use crate::hosts::several::Likeness;
use crate::hosts::shared::{Lowest, Shared};
use crate::hosts::source::Source;
use crate::hosts::together::{PART_THAT_COUNTS, Together};
use crate::intake::Counters;
use crate::packet::key::Socket;
use crate::report::{Estimator, Flags, FlowReport, HostReport, Protocol, Report};
use crate::stats::delay::Delay;
use crate::stats::order;
use crate::stats::summary::{Scratch, Summary};
use crate::store::sender::Sender;
use crate::store::stock::{self, NEAR, Reader};
use core::ops::Range;

/// Octets that a sample takes while its host is analysed: as a point, as a delay, and as a value whose rank is sought, which its
/// length has made room for.
const ANALYSIS_BYTES_DIRECT: usize = 40;
const ANALYSIS_BYTES_ECHOED: usize = 16;
/// So many of a direction's samples there are for each that turns out to be one.
const SAMPLES_LOST_MAX: u64 = 4;
/// Estimates are compared by the middle of so many pairs.
const PAIRS_MIN: usize = 5;
/// Of the memory there is, one such part is kept from one direction to the next.
const ROOMS_PART: usize = 16;
/// With this there is hardly anything left.
const STRIDE_MAX: usize = 1 << 16;

/// A sample of queueing delay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueueSample {
    /// Who sent the packet.
    pub source: Socket,
    /// Who it was for.
    pub destination: Socket,
    /// What carried it.
    pub protocol: Protocol,
    /// How the delay was inferred.
    pub estimator: Estimator,
    /// When, and how long.
    pub delay: Delay,
}

/// What is made beside the report.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wants {
    /// Nothing, which is faster: of most directions no more is looked at than their hosts' figures need.
    Nothing,
    /// Flows' reports.
    Flows,
    /// These, and samples.
    Samples,
}

/// What is handed out on the way to a report.
pub trait Visitor {
    /// What this one looks at; asked once.
    fn wants(&self) -> Wants {
        Wants::Samples
    }

    /// A sample; those of one direction and estimator follow each other in the order of time.
    fn sample(&mut self, sample: &QueueSample) {
        let _ = sample;
    }

    /// A direction of a flow, after its samples.
    fn flow(&mut self, flow: &FlowReport) {
        let _ = flow;
    }
}

/// Wants nothing but the report.
impl Visitor for () {
    fn wants(&self) -> Wants {
        Wants::Nothing
    }
}

/// What is to be found out.
struct Asked<'a> {
    config: &'a Config,
    wants: Wants,
    /// Of which times delays are shown; all others tell what these are counted from.
    within_us: Option<Range<u64>>,
}

/// Memory that one host leaves to the next: what the system gives anew it clears first.
#[derive(Default)]
struct Desk {
    /// Of uTP, and behind them those of TCP: so are a host's directions in order.
    delays: Vec<Delay>,
    utp: usize,
    /// Of all hosts so far.
    odd_clocks: u64,
    scratch: Scratch,
}

impl Desk {
    /// Begins with a host.
    fn clear(&mut self) {
        self.delays.clear();
        self.utp = 0;
    }

    /// All samples of a host together, those of uTP and those of TCP; `None` for too few.
    fn sum_up(&mut self, samples_min: u64) -> Option<[Option<Summary>; 3]> {
        let (utp, tcp) = self.delays.split_at(self.utp);
        (self.delays.len() as u64 >= samples_min).then(|| self.scratch.sum_up([utp, tcp]))
    }
}

/// Makes the report, in so many octets beside what is there.
pub(crate) fn report(
    flows: &Reader<'_>,
    room: usize,
    config: &Config,
    counters: Counters,
    visitor: &mut impl Visitor,
) -> Report {
    let mut report = Report {
        counters,
        hosts: Vec::new(),
        hosts_with_too_little: 0,
        other_udp_flows: 0,
        timeless_tcp_flows: 0,
        odd_tcp_clocks: 0,
    };
    let senders = senders(flows, config, &mut report);
    let within_us = config.selection.within_us(report.counters.first_ns);
    let asked = Asked { config, wants: visitor.wants(), within_us };
    let (mut desk, shelf) = (Desk::default(), Shelf::new(room / ROOMS_PART));
    for host in hosts(&senders, flows) {
        let source = Source::new(flows, host, stride(host, flows, room), &shelf);
        report.counters.thinned += left_out(host, &source);
        match analyse(&source, host, &asked, &mut desk, visitor) {
            Some(host) => report.hosts.push(host),
            None => report.hosts_with_too_little += 1,
        }
    }
    report.odd_tcp_clocks = desk.odd_clocks;
    report
        .hosts
        .sort_by(|a, b| b.all.time_mean_ms.total_cmp(&a.all.time_mean_ms).then(a.address.cmp(&b.address)));
    report
}

/// The directions of one host after the other.
fn hosts<'a>(senders: &'a [Sender], flows: &Reader<'_>) -> impl Iterator<Item = &'a [Sender]> {
    let mut near = Near::default();
    senders.chunk_by(Sender::is_beside).inspect(move |host| near.bring(senders, host.len(), flows))
}

/// How far the memory of directions, which are looked at one after the other, was brought near.
#[derive(Default)]
struct Near {
    begin: usize,
    end: usize,
}

impl Near {
    /// Before so many of them are looked at: several together, where these are not near yet. Of more than that, the first ones.
    fn bring(&mut self, senders: &[Sender], count: usize, flows: &Reader<'_>) {
        if self.begin + count > self.end {
            let next = senders[self.begin..].iter().map(|sender| sender.place());
            flows.stock.bring_near(next, stock::Part::Whole);
            self.end = self.begin + NEAR;
        }
        self.begin += count;
    }

    /// As [`Self::bring`], of a host's, where they did not come near with others' before, as few did.
    fn bring_if_far(&mut self, host: &[Sender], count: usize, flows: &Reader<'_>) {
        if host.len() > NEAR && count <= NEAR {
            self.bring(host, count, flows);
        } else {
            self.begin += count;
        }
    }
}

/// Of how many samples one is looked at, so that a host's analysis has the room that it takes. Of each direction at least one
/// is.
fn stride(host: &[Sender], flows: &Reader<'_>, room: usize) -> usize {
    let bytes = |stride: usize| -> usize {
        let bytes_of = |sender: &Sender| {
            let (direct, echoed) = flows.samples(sender.place(), sender.side());
            direct.div_ceil(stride) * ANALYSIS_BYTES_DIRECT + echoed.div_ceil(stride) * ANALYSIS_BYTES_ECHOED
        };
        host.iter().map(bytes_of).sum()
    };
    let mut stride = bytes(1).div_ceil(room.max(1)).max(1);
    while stride > 1 && stride < STRIDE_MAX && bytes(stride) > room {
        stride += stride.div_ceil(4);
    }
    stride
}

fn left_out(host: &[Sender], source: &Source<'_>) -> u64 {
    if source.stride == 1 {
        return 0;
    }
    let of = |sender: &Sender| source.flows.samples(sender.place(), sender.side()).0 - source.samples(sender);
    host.iter().map(of).sum::<usize>() as u64
}

/// By more than 10 ms and a fifth in the middle, of each echoed delay and the direct one at its time or before.
fn disagree(direct: &[Delay], echoed: &[Delay]) -> bool {
    let mut known = direct.iter().peekable();
    let (mut last, mut pairs) = (None, Vec::with_capacity(echoed.len()));
    for delay in echoed {
        while let Some(next) = known.next_if(|next| next.time_us <= delay.time_us) {
            last = Some(next.queue_us);
        }
        pairs.extend(last.map(|direct_us| (direct_us, delay.queue_us)));
    }
    if pairs.len() < PAIRS_MIN {
        return false;
    }
    let middle = pairs.len() / 2;
    let mut median = |of: fn(&(f64, f64)) -> f64| {
        of(pairs.select_nth_unstable_by(middle, |a, b| of(a).total_cmp(&of(b))).1)
    };
    let apart_us = median(|(direct, echoed)| echoed - direct).abs();
    apart_us > 10_000.0 && apart_us > 0.2 * median(|(direct, echoed)| direct.max(*echoed))
}

/// What one host's flows say together; `None` where that is too little.
fn analyse(
    source: &Source<'_>,
    host: &[Sender],
    asked: &Asked<'_>,
    desk: &mut Desk,
    visitor: &mut impl Visitor,
) -> Option<HostReport> {
    let together = gather(source, host, asked, desk, visitor);
    desk.odd_clocks += together.odd_clocks;
    let [all, utp, tcp] = desk.sum_up(asked.config.samples_min)?;
    Some(HostReport {
        address: source.flows.stock.key(host[0].place()).address(host[0].side()).ip(),
        flows: together.flows,
        all: all?,
        utp,
        tcp,
        clock_hz: together.clock_hz,
        round_trip: together.round_trip(),
        flags: together.flags(),
    })
}

/// Lays one host's delays on the desk, those over uTP first, and hands out its flows; what they say besides.
fn gather(
    source: &Source<'_>,
    host: &[Sender],
    asked: &Asked<'_>,
    desk: &mut Desk,
    visitor: &mut impl Visitor,
) -> Together {
    desk.clear();
    let (mut together, clock) = (Together::default(), InCompany::new(source, host, asked.config.base));
    let samples = |sender: &Sender| source.samples(sender) as u64;
    let all = host.iter().map(samples).sum::<u64>();
    // A series that grew would be moved.
    desk.delays.reserve_exact(all as usize);
    let may_count = |sender: &Sender| samples(sender) * PART_THAT_COUNTS * SAMPLES_LOST_MAX >= all;
    let mut near = Near::default();
    for group in host.chunk_by(Sender::shares_base_with) {
        near.bring_if_far(host, group.len(), source.flows);
        let told = clock.told(group);
        if told.is_none() && asked.is_one_pass(source, group, &may_count) {
            add_group(&clock, group, asked, &mut desk.delays, &mut together);
        } else {
            let shared = told.unwrap_or_else(|| Shared::of(source, group, asked.config.base));
            let (delays, out) = (&mut desk.delays, (&mut together, &mut *visitor));
            hand_out_group(&clock, (group, &shared), (asked, &may_count), delays, out);
        }
        if group[0].protocol() == Protocol::Utp {
            desk.utp = desk.delays.len();
        }
    }
    together
}

impl Asked<'_> {
    /// How much of a direction is looked at: all, where that is handed out, or may flag the host.
    fn depth(&self, may_count: bool) -> Depth {
        let is_whole = self.wants > Wants::Nothing || may_count || self.config.estimator == Estimator::Echoed;
        if is_whole { Depth::Whole } else { Depth::Direct }
    }

    /// Puts the delays of the times asked for behind what is there; whether all that there are, are few ([`is_short`]).
    fn take(&self, track: &mut Track, delays: &mut Vec<Delay>, shelf: &Shelf) -> bool {
        track.take_delays_within(self.within_us.as_ref(), self.config.base, (delays, shelf), is_short)
    }

    /// Adds what a direction of so many samples says to its host, unless none are of the times asked for.
    fn add(&self, together: &mut Together, report: &FlowReport, samples: u64, likeness: &Likeness) {
        if self.within_us.is_none() || samples > 0 {
            together.add(report, samples, likeness);
        }
    }

    /// What a window's base is, how a clock runs, and what is handed out, all have to be read for first.
    fn is_one_pass(
        &self,
        source: &Source<'_>,
        group: &[Sender],
        may_count: &impl Fn(&Sender) -> bool,
    ) -> bool {
        let is_short = |sender: &Sender| source.span_if_told_us(sender) == 0.0;
        group.iter().all(|sender| self.depth(may_count(sender)) == Depth::Direct)
            && (group.len() < 2
                || !matches!(self.config.base, Base::Sliding(_)) && group.iter().all(is_short))
    }
}

/// Hands out directions that may share their base, and adds their delays.
fn hand_out_group(
    clock: &InCompany<'_>,
    (group, shared): (&[Sender], &Shared),
    (asked, may_count): (&Asked<'_>, &impl Fn(&Sender) -> bool),
    delays: &mut Vec<Delay>,
    (together, visitor): (&mut Together, &mut impl Visitor),
) {
    for &sender in group {
        let mut direction = clock.read(sender, asked.depth(may_count(&sender)), shared.told.as_ref());
        let likeness = direction.likeness();
        shared.lower_base(&mut direction);
        let (mut report, samples) =
            hand_out_all(&mut direction, asked, (delays, clock.source.shelf), visitor);
        // Whether estimates agree is not asked of small ones where nothing is handed out.
        if !may_count(&sender) {
            report.flags = report.flags.without(Flags::ESTIMATORS_DISAGREE);
        }
        asked.add(together, &report, samples as u64, &likeness);
    }
}

/// As [`hand_out_group`], where nothing is handed out, and no direction of several is long enough to tell how its clock runs: each is
/// read once.
fn add_group(
    clock: &InCompany<'_>,
    group: &[Sender],
    asked: &Asked<'_>,
    delays: &mut Vec<Delay>,
    together: &mut Together,
) {
    let (mut lowest, begin) = (Lowest::default(), delays.len());
    let are_several = group.len() > 1;
    let mut parts = Vec::with_capacity(if are_several { group.len() } else { 0 });
    let mut near = Near::default();
    for &sender in group {
        if group.len() > NEAR {
            near.bring(group, 1, clock.source.flows);
        }
        let mut direction = clock.read(sender, Depth::Direct, None);
        let (likeness, track) = (direction.likeness(), &mut direction.reading.direct);
        let (own, is_unconfirmed) = (track.only_base(), track.is_unconfirmed());
        lowest.add(track);
        let before = delays.len();
        let is_short = asked.take(track, delays, clock.source.shelf);
        let mut report = direction.report(&delays[before..], is_short);
        if are_several {
            parts.push(Part { end: delays.len(), own, is_unconfirmed });
            // What the least of all is worth is not known yet.
            report.flags = report.flags.without(Flags::BASE_NOT_REVISITED);
        }
        asked.add(together, &report, (delays.len() - before) as u64, &likeness);
    }
    if are_several {
        count_from(&lowest, &parts, begin, (asked.config.base, delays, together));
    }
}

/// What a direction of a group comes to: where its delays end, its own base, and what that is worth.
struct Part {
    end: usize,
    own: Option<f64>,
    is_unconfirmed: bool,
}

/// Counts the delays of all parts, the first of which begins at a place, from the lowest of their bases.
fn count_from(
    lowest: &Lowest,
    parts: &[Part],
    mut begin: usize,
    (base, delays, together): (Base, &mut [Delay], &mut Together),
) {
    for part in parts {
        let above = part.own.and_then(|own| lowest.is_below(own));
        if let Some(above_us) = above.filter(|&above_us| base == Base::Whole && above_us > 0.0) {
            delays[begin..part.end].iter_mut().for_each(|delay| delay.queue_us += above_us);
        }
        if above.map_or(part.is_unconfirmed, |_| !lowest.is_confirmed) {
            together.flag((part.end - begin) as u64, Flags::BASE_NOT_REVISITED);
        }
        begin = part.end;
    }
}

/// Hands out samples and report of a direction, and adds to the host's delays; the report, and how many direct samples it is of.
fn hand_out_all(
    direction: &mut Direction,
    asked: &Asked<'_>,
    (delays, shelf): (&mut Vec<Delay>, &Shelf),
    visitor: &mut impl Visitor,
) -> (FlowReport, usize) {
    let take = |track: &mut Track| {
        let mut delays = Vec::new();
        let is_short = asked.take(track, &mut delays, shelf);
        order::put_in_order(&mut delays);
        (delays, is_short)
    };
    let (direct, is_short) = take(&mut direction.reading.direct);
    let (echoed, _) = take(&mut direction.reading.echoed);
    let direction = &*direction;
    if asked.wants == Wants::Samples {
        hand_out(direction, Estimator::Direct, &direct, visitor);
        hand_out(direction, Estimator::Echoed, &echoed, visitor);
    }
    let mut report = direction.report(&direct, is_short);
    if asked.wants > Wants::Nothing {
        (report.direct, report.echoed) = (Summary::of(&direct), Summary::of(&echoed));
    }
    report.flags.set_if(disagree(&direct, &echoed), Flags::ESTIMATORS_DISAGREE);
    // One of other times is none of those asked for.
    if asked.within_us.is_none() || !direct.is_empty() || !echoed.is_empty() {
        visitor.flow(&report);
    }
    let samples = direct.len();
    delays.extend(match asked.config.estimator {
        Estimator::Direct => direct,
        Estimator::Echoed => echoed,
    });
    (report, samples)
}

fn hand_out(direction: &Direction, estimator: Estimator, delays: &[Delay], visitor: &mut impl Visitor) {
    let about = &direction.about;
    let (source, destination, protocol) = (about.source(), about.destination(), about.protocol());
    for &delay in delays {
        visitor.sample(&QueueSample { source, destination, protocol, estimator, delay });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_samples_suffice_to_tell_that_estimates_disagree() {
        let delays =
            |count: u64, queue_us| (0..count).map(move |k| Delay { time_us: k * 90_000, queue_us }).collect();
        let found = |count, echoed_us| {
            let [direct, echoed]: [Vec<Delay>; 2] = [delays(count, 200_000.0), delays(count, echoed_us)];
            disagree(&direct, &echoed)
        };
        assert!(found(8, 30_000.0) && !found(8, 195_000.0) && !found(4, 30_000.0));
    }
}
