//! How many peers are asked for what is behind a link at a time.
//!
//! Whoever has it tells it within a second or so. Many of those that others tell of are not there any more, or take a connection
//! and say nothing, and each of them takes a while to be given up: they do not keep the others waiting for that long.

use std::time::Duration;
use tokio::time::Instant;

/// Peers that are asked at once and have not had [`STAGGER`] to answer.
const MAX_NEW: usize = 10;
/// Whoever has been asked for so long does not keep others from being asked,
const STAGGER: Duration = Duration::from_secs(1);
/// as long as there are fewer than so many in all.
const MAX_ASKED: usize = 40;

/// Since when those that are being asked are.
#[derive(Default)]
pub(crate) struct Asked(Vec<Instant>);

impl Asked {
    pub fn begin(&mut self, now: Instant) {
        self.0.push(now);
    }

    /// One that has been asked since then is through.
    pub fn end(&mut self, since: Instant) {
        if let Some(at) = self.0.iter().position(|other| *other == since) {
            self.0.remove(at);
        }
    }

    /// From when on another one may be asked; `None` where one of them has to be through first.
    pub fn room_at(&self, now: Instant) -> Option<Instant> {
        let new = || self.0.iter().filter(|since| now.duration_since(**since) < STAGGER);
        match new().count() {
            _ if self.0.len() >= MAX_ASKED => None,
            MAX_NEW.. => new().min().map(|oldest| *oldest + STAGGER),
            _ => Some(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_keeps_others_waiting_for_a_second() {
        let (mut asked, began) = (Asked::default(), Instant::now());
        (0..MAX_NEW).for_each(|_| asked.begin(began));
        assert_eq!(asked.room_at(began), Some(began + STAGGER));
        asked.end(began);
        assert_eq!(asked.room_at(began), Some(began));
        let later = began + STAGGER;
        let mut taken = MAX_NEW - 1;
        while asked.room_at(later + STAGGER * u32::try_from(taken).unwrap()).is_some() {
            asked.begin(later);
            taken += 1;
        }
        assert_eq!(taken, MAX_ASKED);
        asked.end(later);
        assert!(asked.room_at(later).is_some());
    }
}
