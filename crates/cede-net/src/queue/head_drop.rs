//! Head-drop: a packet that finds the queue full pushes out the oldest.
//!
//! Source: T. V. Lakshman, A. Neidhardt, T. J. Ott, "The drop from front strategy in TCP and in TCP over ATM", IEEE
//! INFOCOM 1996; Linux calls it `pfifo_head_drop`. The sender hears of the loss a whole queue earlier than with
//! drop-tail.
//!
//! What it leaves out: nothing; a packet larger than the whole limit is refused, as it would not fit an empty queue.
//!
//! How it was validated: the tests below, and the conservation law in the tests of the link.

use super::{Fifo, QueueLimit, Verdicts};
use crate::log::{DropCause, LinkLog};
use cede_units::Instant;

/// Makes room for a packet of `bytes` by dropping from the head; says whether there is room now.
pub(crate) fn make_room<T, L: LinkLog<T>>(
    fifo: &mut Fifo<T>,
    limit: QueueLimit,
    now: Instant,
    bytes: u32,
    in_service: Option<u32>,
    verdicts: &mut Verdicts<'_, T, L>,
) -> bool {
    while !limit.admits(fifo.len(), fifo.bytes(), bytes, in_service) {
        let Some(oldest) = fifo.pop() else { return false };
        verdicts.drop(oldest, now, DropCause::PushedOut);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Desk, waiting};
    use super::*;

    #[test]
    fn the_oldest_makes_room_for_the_newest() {
        let (mut fifo, mut desk) = (Fifo::default(), Desk::default());
        let limit = QueueLimit::Bytes(3_000);
        for token in 0..5 {
            assert!(make_room(&mut fifo, limit, Instant::ZERO, 1_000, None, &mut desk.verdicts()));
            fifo.push(waiting(token, 1_000, Instant::ZERO));
        }
        assert_eq!(desk.dropped(), [(0, DropCause::PushedOut), (1, DropCause::PushedOut)]);
        assert_eq!(fifo.pop().map(|packet| packet.token), Some(2));
    }

    #[test]
    fn what_would_not_fit_an_empty_queue_is_refused() {
        let (mut fifo, mut desk) = (Fifo::<u64>::default(), <Desk>::default());
        let limit = QueueLimit::Bytes(3_000);
        assert!(!make_room(&mut fifo, limit, Instant::ZERO, 3_001, None, &mut desk.verdicts()));
    }
}
