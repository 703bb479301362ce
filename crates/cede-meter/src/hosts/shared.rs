//! What directions of one clock tell each other: how it runs, and where the queue was empty.
//!
//! uTP's stamps are those of one clock for all flows of a socket, so that one slope, counted from one moment, makes all of them
//! straight, and what one of them saw of an empty queue holds for the others. TCP's connections have offsets of their own but run as
//! their host does: what a long one tells of the drift holds for those that are too short, or whose queue is never empty.
//!
//! **What it leaves out.** Sockets of one host do not tell each other: behind one address there may be several hosts. Where TCP's
//! tellers differ, none is believed; where hop limits do, they are not of one host.
//!
//! **How it was validated.** Synthetic flows (`tests/hosts.rs`), and captures whose times were stretched (`docs/bufferbloat.md`).

use crate::clocks::clock::DRIFT_SPAN_US_MIN;
use crate::clocks::sliding::Slots;
use crate::clocks::told::Told;
use crate::clocks::track::{NEAR_BASE_US, Track};
use crate::config::Base;
use crate::hosts::direction::{Depth, Direction};
use crate::hosts::several::{SAME_CLOCK_US, SAME_DRIFT_PPM};
use crate::hosts::source::Source;
use crate::report::Protocol;
use crate::store::sender::Sender;
use core::cell::OnceCell;

/// So many flows that tell a drift are enough, of so many that are asked.
const TELLERS: usize = 3;
const ASKED_MAX: usize = 8;

/// What the longest of these directions tell, where they are long enough; else others.
fn told_by(source: &Source<'_>, senders: impl Iterator<Item = Sender>) -> Option<Told> {
    let mut all: Vec<(f64, Sender)> =
        senders.map(|sender| (source.span_if_told_us(&sender), sender)).filter(|it| it.0 > 0.0).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (long, short) = all.split_at(all.partition_point(|it| it.0 >= DRIFT_SPAN_US_MIN));
    told_by_longest(source, long).or_else(|| told_by_longest(source, short))
}

fn told_by_longest(source: &Source<'_>, senders: &[(f64, Sender)]) -> Option<Told> {
    let ask = |&(_, sender): &(f64, Sender)| {
        let Direction { about, reading, .. } = Direction::read(source, sender, Depth::Direct, None);
        let origin = reading.direct.pieces.first()?.points.first().copied();
        Some(Told { drift_ppm: reading.drift_found?, origin, hop_limit: about.hop_limit.0 })
    };
    let mut told: Vec<Told> = senders.iter().take(ASKED_MAX).filter_map(ask).take(TELLERS).collect();
    told.sort_by(|a, b| a.drift_ppm.total_cmp(&b.drift_ppm));
    let (least, most) = (told.first()?.drift_ppm, told.last()?.drift_ppm);
    (most - least <= SAME_DRIFT_PPM).then(|| told[told.len() / 2])
}

/// What a host's flows tell each other of how its clock runs, once that is asked for.
pub(crate) struct HostClock<'a> {
    pub source: &'a Source<'a>,
    pub host: &'a [Sender],
    told: OnceCell<Option<Told>>,
}

impl<'a> HostClock<'a> {
    pub(crate) const fn new(source: &'a Source<'a>, host: &'a [Sender]) -> Self {
        Self { source, host, told: OnceCell::new() }
    }

    fn told(&self) -> Option<&Told> {
        let find = || {
            let tcp = self.host.iter().filter(|sender| sender.protocol() == Protocol::Tcp);
            let told = if self.host.len() > 1 { told_by(self.source, tcp.copied()) } else { None };
            told.map(|told| Told { origin: None, ..told })
        };
        self.told.get_or_init(find).as_ref()
    }

    /// As the flow itself and its socket tell, without the company that it had.
    pub(crate) fn read_alone(&self, sender: Sender) -> Direction {
        if sender.protocol() == Protocol::Tcp {
            return self.read_connection(sender, Depth::Direct);
        }
        let is_of_socket = |other: &&Sender| sender.shares_base_with(other);
        let group: Vec<Sender> = self.host.iter().filter(is_of_socket).copied().collect();
        Shared::of(self.source, &group, Base::Whole).read(self.source, sender)
    }

    /// Reads a TCP connection, by what others told where it tells no drift itself.
    pub(crate) fn read_connection(&self, sender: Sender, depth: Depth) -> Direction {
        let read = |told| Direction::read(self.source, sender, depth, told);
        if self.source.span_if_long_us(&sender) == 0.0 {
            return read(self.told());
        }
        let direction = read(None);
        let is_told = direction.reading.drift_found.is_some() || self.told().is_none();
        if is_told { direction } else { read(self.told()) }
    }
}

/// Whether two bases differ by no more than queues explain.
fn is_of_one_clock(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME_CLOCK_US
}

/// The least of the bases that directions of one clock have.
#[derive(Default)]
pub(crate) struct Lowest {
    pub base: Option<f64>,
    /// Whether one of them met it again.
    pub is_confirmed: bool,
    /// It is below all of them, as others of the host tell.
    is_told: bool,
}

impl Lowest {
    pub(crate) fn add(&mut self, track: &Track) {
        let Some(own) = track.only_base() else { return };
        let base = *self.base.get_or_insert(own);
        // One that met its own queue again says nothing of a lower base.
        self.is_confirmed &= own >= base - NEAR_BASE_US;
        self.is_confirmed |= own <= base + NEAR_BASE_US && !track.is_unconfirmed();
        self.base = Some(base.min(own));
    }

    /// Others of the host, one of which may have met it again, tell where it is.
    pub(crate) const fn tell(&mut self, base: f64, is_confirmed: bool) {
        *self = Self { base: Some(base), is_confirmed, is_told: true };
    }

    /// By how much it is below a direction's own, where these can be compared.
    pub(crate) fn is_below(&self, own: f64) -> Option<f64> {
        self.base.filter(|base| is_of_one_clock(own, *base)).map(|base| own - base)
    }
}

/// What all uTP flows of one socket saw of one clock.
#[derive(Default)]
pub(crate) struct Shared {
    pub told: Option<Told>,
    /// Where there are several.
    pub lowest: Lowest,
    /// For a base that slides.
    pub slots: Option<Slots>,
}

impl Shared {
    /// Each is read for itself, as they may be many.
    pub(crate) fn of(source: &Source<'_>, group: &[Sender], base: Base) -> Self {
        let mut shared = Self::default();
        if group.len() < 2 {
            return shared;
        }
        shared.told = told_by(source, group.iter().copied());
        let read = |&sender| Direction::read(source, sender, Depth::Direct, shared.told.as_ref());
        group.iter().map(read).for_each(|direction| shared.lowest.add(&direction.reading.direct));
        let Base::Sliding(window_us) = base else { return shared };
        let mut slots = Slots::default();
        for Direction { reading, .. } in group.iter().map(read) {
            let own = reading.direct.only_base().filter(|own| shared.lowest.is_below(*own).is_some());
            let seen = own.and_then(|_| reading.direct.only_slots(window_us));
            seen.iter().for_each(|seen| slots.add(seen));
        }
        shared.slots = Some(slots);
        shared
    }

    /// Reads a direction of the socket, by what the others told.
    pub(crate) fn read(&self, source: &Source<'_>, sender: Sender) -> Direction {
        let mut direction = Direction::read(source, sender, Depth::Direct, self.told.as_ref());
        self.lower_base(&mut direction);
        direction
    }

    /// Takes for a direction what other flows of its socket told of an empty queue.
    pub(crate) fn lower_base(&self, direction: &mut Direction) {
        let reading = &mut direction.reading;
        if let Some(above) = reading.direct.only_base().and_then(|own| self.lowest.is_below(own)) {
            reading.lower_base(above, self.lowest.is_confirmed);
            reading.direct.shared.clone_from(&self.slots);
            direction.is_base_told |= self.lowest.is_told;
        }
    }
}
