//! What the flows of one host saw at the same time: one queue.
//!
//! A flow that begins while a queue stands takes the least that it meets for an empty one, and shows too little throughout.
//! Others of its host have seen less: what is left of its readings without the delays that these had at the same moments is the
//! constant in them, whatever the queue does. A delay is not counted from too low a point so, as theirs are not either.
//! That is good to a packet or so, as what lies between two packets is on average, but not for flows whose packets follow others' at a
//! fixed distance. A queue keeps packets in order: whoever left it before another one entered it before that one, which bounds the
//! constant from both sides, the closer the more packets there are.
//!
//! Round trips hold it in check: a packet that answers was in the queue for part of its round trip only, so a base is too high
//! by no more than the flow's shortest round trip is longer than the host's. By itself that says nothing, and is not used: answers
//! are late, too, where acknowledgements are delayed, and where the queue is that of the other direction, as behind whoever downloads.
//!
//! A uTP socket has one base for all its flows, so that what one of them is told holds for all, and none is believed to have waited for
//! longer than the shortest round trip of any.
//!
//! Connections that stamp by one clock are told by those that have gone, too ([`super::one_clock`]).
//!
//! **What it leaves out.** Flows without others at the same time, or without round trips (one direction captured): they keep their base
//! and its flag. A base that slides. Where flows have queues of their own (FQ-CoDel), readings less the
//! others' delays vary, and nothing is done; with a few packets while these queues hardly change, and as long a queue the other
//! way, that does not show.
//!
//! **How it was validated.** Synthetic flows (`tests/company.rs`), and captures beside each packet's true delay (`docs/bufferbloat.md`).

use crate::clocks::clock::Point;
use crate::clocks::shelf::Shelf;
use crate::clocks::told::Told;
use crate::clocks::track::NEAR_BASE_US;
use crate::config::Base;
use crate::hosts::direction::{Depth, Direction};
use crate::hosts::one_clock::{Higher, Stamps};
use crate::hosts::shared::{HostClock, Shared};
use crate::hosts::source::Source;
use crate::report::Protocol;
use crate::stats::delay::Delay;
use crate::store::sender::Sender;
use core::cell::OnceCell;
use core::cmp::Reverse;

/// So many flows are what others are held against, each with so many samples; or more of them, as long as these have few together.
const KEPT: usize = 16;
const KEPT_MAX: usize = 256;
const FEW_SAMPLES: usize = 1 << 16;
const SAMPLES_MIN: usize = 50;
/// Fewer tell where they saw an empty queue, if nothing of what is between.
const FEW_SAMPLES_MIN: usize = 8;
/// So many flows of a uTP socket are asked whether they are told.
const ASKED_MAX: usize = 4;
/// Who never waited for much longer than the shortest round trip saw no queue. Less than that of a queue is nobody's concern.
const NEAR_US: f64 = 10_000.0;
/// Delays so near each other in time, and so much alike, tell what it was between them.
const GAP_US_MAX: f64 = 250_000.0;
const CHANGE_US_MAX: f64 = 100_000.0;
/// It takes so many comparisons, half of which are this near their middle, and makes more than twice as much of a difference. Of a
/// difference so many times as long, more is near.
const PAIRS_MIN: usize = 3;
const PAIRS_ENOUGH: usize = 16;
const PAIRS_MAX: usize = 512;
const SPREAD_US_MAX: f64 = 10_000.0;
const SPREADS_FAR: f64 = 50.0;
const SPREADS_MIN: f64 = 2.0;
/// It takes so many packets on either side to tell by their order, of which one of so many may have been out of it, and what it leaves open
/// must be less than that.
const ORDERED_MIN: usize = 16;
const ORDERED_MAX: usize = 1 << 14;
const ODD_PART: usize = 200;
const ODD_MAX: usize = 3;
const ORDERED_OPEN_US_MAX: f64 = 10_000.0;
/// Where it leaves open so many ticks at most, those who were told themselves are not asked.
const SURE_TICKS: f64 = 3.0;

/// Delays of a host's long flows, in the order of time, each counted from the lowest point that any of them tells.
struct Company {
    delays: Vec<Met>,
    /// Whether one of them saw the queue empty more than once.
    is_confirmed: bool,
    shortest_us: f64,
    /// The coarsest tick of their clocks.
    tick_us: f64,
    /// Whether any of them saw a queue.
    has_queue: bool,
    /// Of connections that were not told.
    stamps: Vec<Stamps>,
}

/// A delay of a flow, and whether others told where the flow's begin: that is not exact.
struct Met {
    delay: Delay,
    is_told: bool,
}

/// By how much a direction's base is above where the others' is, and what that leaves open.
struct Above {
    us: f64,
    spread_us: f64,
}

/// What is known of where a direction's base should be.
struct Known {
    /// By those who were there with it.
    above: Option<Above>,
    /// By those who stamp as it does.
    higher: Option<Higher>,
}

impl Company {
    /// `None` where no flow of the host saw a longer way than others, or nobody can tell of a queue.
    fn of(clock: &HostClock<'_>) -> Option<Self> {
        let timed = |sender: &Sender| {
            let (round_trip_us, span_us) = clock.source.round_trip_us(sender, FEW_SAMPLES_MIN)?;
            Some((round_trip_us, span_us, *sender))
        };
        let mut long: Vec<(f64, f64, Sender)> = clock.host.iter().filter_map(timed).collect();
        let shortest_us = long.iter().map(|flow| flow.0).reduce(f64::min)?;
        let is_far = |flow: (f64, f64)| flow.0 > shortest_us + NEAR_US;
        let is_asked = |sender: &Sender| {
            let few = clock.source.round_trip_us(sender, PAIRS_MIN);
            few.map_or_else(|| clock.source.is_short(sender), is_far)
        };
        if !clock.host.iter().any(is_asked) {
            return None;
        }
        // Who can have seen least of a queue that was not counted comes first, and of like ones who was there longest.
        let missed = |round_trip_us: f64| ((round_trip_us - shortest_us) / NEAR_US).max(1.0).log2() as u32;
        long.sort_by(|a, b| missed(a.0).cmp(&missed(b.0)).then(b.1.total_cmp(&a.1)));
        let mut company = Self::new(shortest_us);
        for (number, (round_trip_us, _, sender)) in long.into_iter().take(KEPT_MAX).enumerate() {
            if number >= KEPT && company.delays.len() > FEW_SAMPLES {
                break;
            }
            let (direction, may_have_missed) = (clock.read_alone(sender), missed(round_trip_us) > 0);
            if clock.source.samples(&sender) >= SAMPLES_MIN {
                company.add(direction, may_have_missed, clock.source.shelf);
            } else if !may_have_missed {
                company.stamps.extend(Stamps::of(&direction));
            }
        }
        (company.has_queue || !company.stamps.is_empty()).then_some(company)
    }

    const fn new(shortest_us: f64) -> Self {
        Self {
            delays: Vec::new(),
            is_confirmed: false,
            shortest_us,
            tick_us: 0.0,
            has_queue: false,
            stamps: Vec::new(),
        }
    }

    /// Takes a flow in; one that may have begun in a queue only where it is known by how much.
    fn add(&mut self, mut direction: Direction, may_have_missed: bool, shelf: &Shelf) {
        let known = self.known(&direction);
        let is_known = known.above.is_some() || known.higher.is_some();
        if !is_known && may_have_missed && !self.delays.is_empty() {
            return;
        }
        let told_us = self.believed_us(&direction, &known, direction.shortest_us());
        match told_us {
            Some(above_us) => direction.reading.lower_base(above_us, self.is_confirmed),
            None => self.stamps.extend(Stamps::of(&direction)),
        }
        let (track, mut delays) = (&mut direction.reading.direct, Vec::new());
        self.is_confirmed |= !track.is_unconfirmed();
        self.tick_us = self.tick_us.max(track.tick_us);
        track.take_delays(Base::Whole, &mut delays, shelf);
        self.has_queue |= delays.iter().any(|delay| delay.queue_us > NEAR_US);
        let is_told = told_us.is_some();
        self.delays.extend(delays.into_iter().map(|delay| Met { delay, is_told }));
        self.delays.sort_by_key(|met| met.delay.time_us);
    }

    /// Lowers a direction's base to where the others tell that it is.
    fn mend(&self, direction: &mut Direction) {
        if let Some(above_us) = self.tells(direction, direction.shortest_us()) {
            direction.reading.lower_base(above_us, self.is_confirmed);
            direction.is_base_told = true;
        }
    }

    /// By how much a direction's base is to be lowered, of whose sender the shortest round trip is told.
    fn tells(&self, direction: &Direction, shortest_us: Option<f64>) -> Option<f64> {
        self.believed_us(direction, &self.known(direction), shortest_us)
    }

    fn known(&self, direction: &Direction) -> Known {
        let stamps = if direction.about.start_was_seen() { Stamps::of(direction) } else { None };
        Known {
            above: if self.has_queue { self.above(direction) } else { None },
            higher: stamps.and_then(|stamps| stamps.above(&self.stamps)),
        }
    }

    /// By how much the base is to be lowered, where that can be so. One clock tells it to the tick, unless its drift is not known, or
    /// who had it was in a queue as well.
    fn believed_us(&self, direction: &Direction, known: &Known, shortest_us: Option<f64>) -> Option<f64> {
        let most_us = shortest_us? - self.shortest_us + NEAR_US;
        let can_be = |above_us: &f64| *above_us <= most_us;
        let tick_us = direction.reading.direct.tick_us;
        let by_company = known.above.as_ref().and_then(|above| above.tells(direction)).filter(can_be);
        let by_clock = known.higher.as_ref().and_then(|higher| higher.tells(tick_us)).filter(can_be);
        let is_exact = known.higher.as_ref().is_some_and(|higher| higher.open_us <= tick_us);
        match (by_clock, by_company) {
            (Some(us), Some(other_us)) if is_exact && other_us <= us + NEAR_US => Some(us),
            (by_clock, by_company) => by_company.or(by_clock),
        }
    }

    fn above(&self, direction: &Direction) -> Option<Above> {
        let [piece] = &direction.reading.direct.pieces[..] else { return None };
        let mut constants = self.constants(&piece.points);
        if constants.len() < PAIRS_MIN {
            return None;
        }
        let middle = median(&mut constants);
        constants.iter_mut().for_each(|other| *other = (*other - middle).abs());
        let spread_us = median(&mut constants);
        let zero = direction.reading.direct.only_zero()?;
        let above = Above { us: zero - middle, spread_us };
        let tells = above.tells(direction).is_some();
        // Packets of a clock without ticks are among others', whose clocks may have some.
        let tick_us = direction.reading.direct.tick_us.max(self.tick_us);
        let ordered = if tells { self.ordered(&piece.points, tick_us) } else { None };
        let is_near = spread_us <= SPREAD_US_MAX.max(above.us / SPREADS_FAR);
        match ordered {
            Some(ordered) if is_near => Some(Above { us: zero - ordered, spread_us }),
            // However much lies between two of the others' packets, as where these come in bursts.
            Some(ordered) => Some(Above { us: zero - ordered, spread_us: 0.0 }),
            None => is_near.then_some(above),
        }
    }

    /// What is left of a direction's readings without the others' delays: at its packets, or at theirs where few of its own are between
    /// two of them that tell, as beside a LEDBAT sender that gives way.
    fn constants(&self, points: &[Point]) -> Vec<f64> {
        let each = points.iter().step_by(points.len() / PAIRS_MAX + 1);
        let own: Vec<f64> = each.filter_map(|point| Some(point.x - self.at(point.t)?)).collect();
        if own.len() >= PAIRS_ENOUGH {
            return own;
        }
        let beside = self.beside(points);
        let each = beside.iter().step_by(beside.len() / PAIRS_MAX + 1);
        let left = |Delay { time_us, queue_us }: Delay| Some(reading_at(points, time_us as f64)? - queue_us);
        let others: Vec<f64> = each.filter_map(|met| left(met.delay)).collect();
        if others.len() > own.len() { others } else { own }
    }

    /// The others' delays between the first of these packets and the last.
    fn beside(&self, points: &[Point]) -> &[Met] {
        let [Some(first), Some(last)] = [points.first(), points.last()] else { return &[] };
        let [begin, end] =
            [first, last].map(|point| self.delays.partition_point(|met| met.delay.time_us < point.time_us()));
        self.delays.get(begin..end).unwrap_or_default()
    }

    /// The constant in the readings of packets with which these entered the queue in the order in which they left it. `None` where
    /// nearly all of them do so with none, as where flows have queues of their own, or where much is left open.
    fn ordered(&self, points: &[Point], tick_us: f64) -> Option<f64> {
        let beside = self.beside(points);
        let stride = beside.len() / ORDERED_MAX + 1;
        let each = || beside.iter().step_by(stride);
        let untold = each().filter(|met| !met.is_told);
        bounds(points, untold)
            .and_then(|bounds| bounds.middle(tick_us, SURE_TICKS * tick_us))
            .or_else(|| bounds(points, each()).and_then(|bounds| bounds.middle(tick_us, ORDERED_OPEN_US_MAX)))
    }

    /// The delay at a time.
    fn at(&self, t: f64) -> Option<f64> {
        let next = self.delays.partition_point(|met| (met.delay.time_us as f64) < t);
        let [before, after] = [self.delays.get(next.checked_sub(1)?)?.delay, self.delays.get(next)?.delay];
        let point = |delay: Delay| Point { t: delay.time_us as f64, x: delay.queue_us };
        between(point(before), point(after), t)
    }
}

/// What packets of a direction would have read at a time.
fn reading_at(points: &[Point], t: f64) -> Option<f64> {
    let next = points.partition_point(|point| point.t < t);
    between(*points.get(next.checked_sub(1)?)?, *points.get(next)?, t)
}

/// On a line from one to the next, where these tell what was between them.
fn between(before: Point, after: Point, t: f64) -> Option<f64> {
    let (gap_us, change_us) = (after.t - before.t, after.x - before.x);
    let is_told = gap_us <= GAP_US_MAX && change_us.abs() <= CHANGE_US_MAX;
    is_told.then(|| before.x + change_us * (t - before.t) / gap_us.max(1.0))
}

impl Above {
    /// Whether it is more than what is left open.
    fn tells(&self, direction: &Direction) -> Option<f64> {
        let open_us = (NEAR_BASE_US + direction.reading.direct.tick_us).max(SPREADS_MIN * self.spread_us);
        (self.us > open_us).then_some(self.us)
    }
}

/// The flows of one host, each of which may be mended by the company that it had.
pub(crate) struct InCompany<'a> {
    pub source: &'a Source<'a>,
    clock: HostClock<'a>,
    base: Base,
    company: OnceCell<Option<Company>>,
}

impl<'a> InCompany<'a> {
    pub(crate) const fn new(source: &'a Source<'a>, host: &'a [Sender], base: Base) -> Self {
        Self { source, clock: HostClock::new(source, host), base, company: OnceCell::new() }
    }

    fn company(&self) -> Option<&Company> {
        let is_asked = self.base == Base::Whole && self.clock.host.len() > 1;
        if is_asked { self.company.get_or_init(|| Company::of(&self.clock)).as_ref() } else { None }
    }

    /// What the flows of a uTP socket share, where the host's others tell that all of them began in a queue.
    pub(crate) fn told(&self, group: &[Sender]) -> Option<Shared> {
        let source = self.source;
        if group[0].protocol() == Protocol::Tcp || group.len() == self.clock.host.len() {
            return None;
        }
        let company = self.company()?;
        let is_near = |shortest_us: f64| shortest_us < company.shortest_us + NEAR_BASE_US;
        if group.iter().filter_map(|sender| source.round_trip_us(sender, 1)).any(|flow| is_near(flow.0)) {
            return None;
        }
        let mut asked = group.to_vec();
        asked.sort_by_key(|sender| Reverse(source.samples(sender)));
        asked.truncate(ASKED_MAX);
        let mut shared = Shared::of(source, group, self.base);
        let directions: Vec<Direction> = asked.iter().map(|sender| shared.read(source, *sender)).collect();
        let shortest_us = directions.iter().filter_map(Direction::shortest_us).reduce(f64::min);
        if shortest_us.is_none_or(is_near) {
            return None;
        }
        let base = |direction: &Direction| {
            Some(direction.reading.direct.only_base()? - company.tells(direction, shortest_us)?)
        };
        let base = directions.iter().find_map(base)?;
        shared.lowest.tell(base, company.is_confirmed);
        Some(shared)
    }

    /// Reads a direction, of a socket with others by what these told.
    pub(crate) fn read(&self, sender: Sender, depth: Depth, socket: Option<&Told>) -> Direction {
        let Self { clock, .. } = self;
        if sender.protocol() == Protocol::Utp {
            return Direction::read(clock.source, sender, depth, socket);
        }
        let mut direction = clock.read_connection(sender, depth);
        self.company().iter().for_each(|company| company.mend(&mut direction));
        direction
    }
}

/// What a constant is at most and at least, if order is kept.
struct Bounds {
    most: f64,
    least: f64,
}

impl Bounds {
    /// The middle, where no more than so much is left open.
    fn middle(&self, tick_us: f64, open_us_max: f64) -> Option<f64> {
        // Stamps are up to a tick old, by which the two overlap; and so are those of the others.
        let open_us = self.most - self.least + 2.0 * tick_us;
        (0.0..=open_us_max).contains(&open_us).then(|| f64::midpoint(self.most, self.least))
    }
}

/// Of the constant in the readings of packets among others; `None` for few.
fn bounds<'a>(points: &[Point], others: impl Iterator<Item = &'a Met>) -> Option<Bounds> {
    let (mut most, mut least) = (Vec::new(), Vec::new());
    for Met { delay, .. } in others {
        let t = delay.time_us as f64;
        let entered = t - delay.queue_us;
        let later = points.partition_point(|point| point.t < t);
        // A reading less its constant is a delay; so the constant is when a packet entered less when it was sent.
        let after_sent = |point: &Point| entered - (point.t - point.x);
        let before = later.checked_sub(1).and_then(|before| points.get(before));
        let Some((before, after)) = before.zip(points.get(later)) else { continue };
        if after.t > t && after.t - before.t <= GAP_US_MAX {
            most.push(after_sent(before));
            least.push(after_sent(after));
        }
    }
    if most.len() < ORDERED_MIN {
        return None;
    }
    let few = (most.len() / ODD_PART).min(ODD_MAX);
    let most = *most.select_nth_unstable_by(few, f64::total_cmp).1;
    let least = *least.select_nth_unstable_by(few, |a, b| b.total_cmp(a)).1;
    Some(Bounds { most, least })
}

fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}
