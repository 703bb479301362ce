//! A byte stream as a queue of payloads, for what waits to be sent and what waits to be read.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use cede_wire::Payload;

/// Beyond this many chunks, small neighbours are copied into one, so that a stream of tiny packets cannot make the
/// queue much larger than its octets.
const CHUNKS_BEFORE_COPYING: usize = 64;
/// Neighbours of at most this many octets together are copied into one.
const COPIED_CHUNK_BYTES: u32 = 2048;

/// A queue of octets; a word of memory while nothing ever was in it.
#[derive(Debug, Default)]
pub(crate) struct Chunks(Option<Box<Queue>>);

/// What is in it.
#[derive(Debug, Default)]
struct Queue {
    queue: VecDeque<Payload>,
    bytes: u64,
}

impl Chunks {
    pub fn len_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |queue| queue.bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.len_bytes() == 0
    }

    /// Appends a payload, joined to the last one where that needs no copy.
    pub fn push(&mut self, payload: Payload) {
        if !payload.is_empty() {
            self.0.get_or_insert_default().push(payload);
        }
    }

    /// The first chunk, whole.
    pub fn pop(&mut self) -> Option<Payload> {
        self.0.as_mut()?.pop()
    }

    /// The first `n` octets as one payload, or all where there are fewer; copied only where they lie in several
    /// chunks that do not continue each other.
    pub fn take(&mut self, n: u32) -> Payload {
        self.0.as_mut().map_or(Payload::Empty, |queue| queue.take(n))
    }

    /// Copies from the front into `out`, and returns how many octets.
    pub fn copy_out(&mut self, out: &mut [u8]) -> usize {
        self.0.as_mut().map_or(0, |queue| queue.copy_out(out))
    }

    /// Gives the memory back where nothing is in it.
    pub fn release(&mut self) {
        if self.is_empty() {
            self.clear();
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

impl Queue {
    fn push(&mut self, payload: Payload) {
        self.bytes += u64::from(payload.len());
        let rest = match self.queue.back_mut() {
            Some(last) => last.try_extend(payload),
            None => Err(payload),
        };
        if let Err(payload) = rest {
            self.push_apart(payload);
        }
    }

    fn push_apart(&mut self, payload: Payload) {
        if self.queue.len() >= CHUNKS_BEFORE_COPYING
            && let Some(last) = self.queue.back_mut()
            && last.len() + payload.len().min(COPIED_CHUNK_BYTES) <= COPIED_CHUNK_BYTES
            && payload.len() <= COPIED_CHUNK_BYTES
        {
            *last = joined(last, &payload);
        } else {
            if self.queue.capacity() == 0 {
                // Most often the application takes one before there is another.
                self.queue.reserve_exact(1);
            }
            self.queue.push_back(payload);
        }
    }

    fn pop(&mut self) -> Option<Payload> {
        let payload = self.queue.pop_front()?;
        self.bytes -= u64::from(payload.len());
        Some(payload)
    }

    fn take(&mut self, n: u32) -> Payload {
        let Some(first) = self.queue.front_mut() else { return Payload::Empty };
        let mut taken = first.split_to(n);
        if first.is_empty() {
            self.queue.pop_front();
        }
        self.bytes -= u64::from(taken.len());
        if taken.len() < n && self.bytes > 0 {
            taken = self.take_across(&taken, n);
        }
        taken
    }

    /// Gathers the rest of `n` octets behind `head` from further chunks.
    fn take_across(&mut self, head: &Payload, n: u32) -> Payload {
        let total = (u64::from(n)).min(u64::from(head.len()) + self.bytes) as u32;
        let mut gathered = vec![0; total as usize];
        let mut filled = head.copy_to(&mut gathered);
        while filled < gathered.len() {
            let part = self.take_from_first((gathered.len() - filled) as u32);
            if part.is_empty() {
                break;
            }
            filled += part.copy_to(&mut gathered[filled..]);
        }
        Payload::from_shared(Arc::from(gathered))
    }

    fn take_from_first(&mut self, n: u32) -> Payload {
        let Some(first) = self.queue.front_mut() else { return Payload::Empty };
        let part = first.split_to(n);
        if first.is_empty() {
            self.queue.pop_front();
        }
        self.bytes -= u64::from(part.len());
        part
    }

    fn copy_out(&mut self, out: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < out.len() && self.bytes > 0 {
            let room = u32::try_from(out.len() - filled).unwrap_or(u32::MAX);
            filled += self.take_from_first(room).copy_to(&mut out[filled..]);
        }
        filled
    }
}

/// Both payloads in a buffer of their own.
fn joined(front: &Payload, back: &Payload) -> Payload {
    let mut octets = vec![0; (front.len() + back.len()) as usize];
    let middle = front.copy_to(&mut octets);
    back.copy_to(&mut octets[middle..]);
    Payload::from_shared(Arc::from(octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn packets_are_cut_across_chunks_without_losing_octets() {
        let mut chunks = Chunks::default();
        let stream: Vec<u8> = (0..=255).collect();
        stream.chunks(7).for_each(|piece| chunks.push(Payload::copy_from(piece)));
        let mut out = Vec::new();
        while !chunks.is_empty() {
            out.extend(chunks.take(10).to_vec());
        }
        assert_eq!(out, stream);
        assert!(chunks.take(5).is_empty());
    }

    #[test]
    fn patterns_merge_and_are_cut_without_memory() {
        let mut chunks = Chunks::default();
        chunks.push(Payload::Pattern { start: 0, len: 100 });
        chunks.push(Payload::Pattern { start: 100, len: 100 });
        assert!(matches!(chunks.take(150), Payload::Pattern { start: 0, len: 150 }));
        assert_eq!(chunks.len_bytes(), 50);
    }

    #[test]
    fn tiny_payloads_are_gathered() {
        let mut chunks = Chunks::default();
        (0..100_000_u32).for_each(|i| chunks.push(Payload::copy_from(&[i as u8])));
        let len = chunks.0.as_ref().unwrap().queue.len();
        assert!(len <= CHUNKS_BEFORE_COPYING + 100_000 / 1024, "{len}");
        let mut out = vec![0; 100_000];
        assert_eq!(chunks.copy_out(&mut out), 100_000);
        assert!(out.iter().enumerate().all(|(i, &octet)| octet == i as u8));
    }
}
