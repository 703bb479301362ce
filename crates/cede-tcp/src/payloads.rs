//! A queue of payloads whose first stands in the queue itself.
//!
//! A run of octets that continues the last one is joined to it, so most streams have one payload waiting, or none: what waits at a
//! connection is then found with the connection, and not in memory of its own that is far from everything.

use alloc::collections::VecDeque;
use cede_wire::Payload;

/// Payloads in their order. None of them is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payloads {
    /// Empty where there is none.
    first: Payload,
    rest: VecDeque<Payload>,
}

impl Payloads {
    pub(crate) fn len(&self) -> usize {
        usize::from(!self.first.is_empty()) + self.rest.len()
    }

    /// Appends `payload`, joined to the last one where that costs no copy.
    pub(crate) fn push(&mut self, payload: Payload) {
        if payload.is_empty() {
            return;
        }
        if self.first.is_empty() {
            self.first = payload;
            return;
        }
        let last = self.rest.back_mut().unwrap_or(&mut self.first);
        if let Err(payload) = last.try_extend(payload) {
            self.rest.push_back(payload);
        }
    }

    /// Takes the first one off.
    pub(crate) fn pop(&mut self) -> Option<Payload> {
        if self.first.is_empty() {
            return None;
        }
        let next = self.rest.pop_front().unwrap_or_default();
        Some(core::mem::replace(&mut self.first, next))
    }

    /// Takes at most `n` octets off the first one.
    pub(crate) fn pop_up_to(&mut self, n: u32) -> Option<Payload> {
        if n >= self.first.len() {
            return self.pop();
        }
        Some(self.first.split_to(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn they_come_in_their_order_however_they_are_taken() {
        let mut payloads = Payloads::default();
        for octets in [b"abc".as_slice(), b"", b"de", b"fgh"] {
            payloads.push(Payload::copy_from(octets));
        }
        assert_eq!(payloads.len(), 3);
        let taken: Vec<Vec<u8>> =
            core::iter::from_fn(|| payloads.pop_up_to(2)).map(|payload| payload.to_vec()).collect();
        assert_eq!(taken, [b"ab".as_slice(), b"c", b"de", b"fg", b"h"]);
        assert!(payloads.len() == 0 && payloads.pop().is_none());
    }

    #[test]
    fn what_continues_is_one_payload_also_behind_others() {
        let mut payloads = Payloads::default();
        payloads.push(Payload::copy_from(b"abc"));
        for start in [0, 100, 200] {
            payloads.push(Payload::Pattern { start, len: 100 });
        }
        assert_eq!(payloads.len(), 2);
        assert_eq!(payloads.pop().map(|payload| payload.to_vec()), Some(b"abc".to_vec()));
        assert!(matches!(payloads.pop(), Some(Payload::Pattern { start: 0, len: 300 })));
    }
}
