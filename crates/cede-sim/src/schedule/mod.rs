//! Which link or host acts next.
//!
//! Sources of events are numbered; each has at most one pending event, which [`Scheduler::set`] moves. Equal times are
//! told apart by the source's number, so every implementation gives the same order, and two of them cross-check the
//! third: [`Tournament`] (the default), [`Heap`] and [`Wheel`].

mod heap;
mod tournament;
mod wheel;

pub use heap::Heap;
pub use tournament::Tournament;
pub use wheel::Wheel;

use cede_units::Instant;

/// An ordered set of at most one pending event per source.
pub trait Scheduler {
    /// A scheduler for sources `0..sources`, none of which has a pending event.
    fn with_sources(sources: usize) -> Self;

    /// Sets the time of a source's pending event, replacing the one it had; [`Instant::NEVER`] takes it away.
    fn set(&mut self, source: u32, at: Instant);

    /// The last time at which events are served.
    fn horizon(&self) -> Instant {
        Instant::from_nanos(u64::MAX - 1)
    }

    /// The source whose event is next, and its time: the smallest time, among equals the smallest source. `None` where
    /// nothing is pending. The event stays until it is set anew.
    fn next(&mut self) -> Option<(u32, Instant)>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use cede_units::Stream;

    /// Drives a scheduler through a pseudo-random history and returns what it gave out.
    fn history<S: Scheduler>(sources: usize, spread_ns: u64) -> Vec<(u32, Instant)> {
        let mut random = Stream::named(1, "history");
        let mut scheduler = S::with_sources(sources);
        let mut served = Vec::new();
        for source in 0..sources {
            scheduler.set(source as u32, Instant::from_nanos(random.below(spread_ns)));
        }
        for _ in 0..20_000 {
            let Some((source, at)) = scheduler.next() else { break };
            served.push((source, at));
            // Now and then a source falls silent, wakes another, or moves another's event either way.
            let jump = |random: &mut Stream| Instant::from_nanos(at.as_nanos() + random.below(spread_ns));
            let again = if random.chance(0.01) { Instant::NEVER } else { jump(&mut random) };
            scheduler.set(source, again);
            if random.chance(0.3) {
                let other = random.below(sources as u64) as u32;
                scheduler.set(other, jump(&mut random));
            }
        }
        served
    }

    #[test]
    fn all_schedulers_serve_the_same_order() {
        for sources in [1, 2, 3, 7, 64, 65, 1_000] {
            for spread_ns in [3, 1_000, 50_000_000, 40_000_000_000_000] {
                let tournament = history::<Tournament>(sources, spread_ns);
                assert!(tournament.windows(2).all(|pair| pair[0].1 <= pair[1].1));
                assert_eq!(tournament, history::<Heap>(sources, spread_ns), "{sources} {spread_ns}");
                assert_eq!(tournament, history::<Wheel>(sources, spread_ns), "{sources} {spread_ns}");
            }
        }
    }

    #[test]
    fn ties_go_to_the_smallest_source_whatever_the_order_of_setting() {
        fn check<S: Scheduler>() {
            let mut scheduler = S::with_sources(5);
            for source in [3, 1, 4, 0, 2] {
                scheduler.set(source, Instant::from_secs(1));
            }
            for expected in 0..5 {
                assert_eq!(scheduler.next(), Some((expected, Instant::from_secs(1))));
                scheduler.set(expected, Instant::NEVER);
            }
            assert_eq!(scheduler.next(), None);
        }
        check::<Tournament>();
        check::<Heap>();
        check::<Wheel>();
    }
}
