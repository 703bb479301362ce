//! Datagrams on their way in, and how they reach a connection without being copied.
//!
//! What the kernel has put together of several packets is large: it is received into a buffer that payloads then share,
//! so each octet is copied once, to the reader. What is small is copied out, or a few octets would keep a large buffer.
//! A peer can make others keep at most [`MAX_LENT`] buffers this way: beyond that everything is copied.

use crate::udp::{BUFFERS, Fill, Udp, without_labels};
use crate::way::Way;
use cede_utp::Payload;
use cede_wire::utp::HEADER_BYTES;
use quinn_udp::RecvMeta;
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::sync::Arc;
use std::time::Duration;

/// The largest datagram, and the largest that the kernel puts together of several.
const BUFFER_BYTES: usize = 65_536;
/// Batches of at least this many octets are shared: a buffer then holds twice its payload at most, where all is kept.
const SHARED_BYTES: usize = BUFFER_BYTES / 2;
/// Buffers per socket that payloads may share.
const MAX_LENT: usize = 32;
/// Lent buffers that are asked whether they are free again when one is needed.
const ASKED: usize = 4;

/// Room for what one call receives.
pub(crate) struct Inbox {
    /// One buffer beside the other. Only what is used of them becomes memory.
    plain: Box<[u8]>,
    /// What takes the place of a plain buffer once a large batch has come in it.
    shared: [Option<Arc<[u8]>>; BUFFERS],
    /// Buffers of which parts may still be in use.
    lent: VecDeque<Arc<[u8]>>,
    metas: [RecvMeta; BUFFERS],
    filled: usize,
}

/// A datagram that has arrived.
pub(crate) struct Arrival<'a> {
    pub way: Way,
    /// When, by the system's clock, the kernel got it, or the first of those that it was put together with.
    pub stamp: Option<Duration>,
    pub octets: &'a [u8],
    /// The buffer that it may share, and where it begins there.
    shared: Option<(&'a Arc<[u8]>, usize)>,
}

impl<'a> Arrival<'a> {
    /// Head and payload for an endpoint, the payload without a copy where that can be.
    pub fn split(&self) -> (&'a [u8], Payload) {
        match (self.shared, self.octets.split_at_checked(HEADER_BYTES)) {
            // The second octet of a header announces extensions; what follows them is for the endpoint to find.
            (Some((buffer, start)), Some((head, payload))) if head[1] == 0 => {
                (head, Payload::from_part(buffer, (start + HEADER_BYTES) as u32, payload.len() as u32))
            }
            _ => (self.octets, Payload::Empty),
        }
    }
}

impl Inbox {
    pub fn new() -> Self {
        Self {
            plain: vec![0; BUFFERS * BUFFER_BYTES].into_boxed_slice(),
            shared: std::array::from_fn(|_| None),
            lent: VecDeque::new(),
            metas: [RecvMeta::default(); BUFFERS],
            filled: 0,
        }
    }

    /// Receives what is there, as far as there is room for it. Where `asks`, the system is asked even if nothing has
    /// arrived as far as the runtime knows.
    ///
    /// # Errors
    /// `WouldBlock` where nothing is there, and the system's errors; the inbox is empty then.
    pub fn fill(&mut self, udp: &Udp, asks: bool) -> io::Result<Fill> {
        self.renew();
        let Self { plain, shared, metas, .. } = self;
        let mut rooms = plain.chunks_exact_mut(BUFFER_BYTES).zip(shared.iter_mut());
        let mut buffers: [IoSliceMut<'_>; BUFFERS] = std::array::from_fn(|_| {
            IoSliceMut::new(match rooms.next() {
                // Those in place are not lent.
                Some((_, Some(shared))) => Arc::get_mut(shared).unwrap_or_default(),
                Some((plain, None)) => plain,
                None => &mut [],
            })
        });
        let (filled, fill) = udp.receive(&mut buffers, metas, asks)?;
        self.filled = filled;
        Ok(fill)
    }

    /// Puts free buffers in the places of those that have been lent.
    fn renew(&mut self) {
        if self.lent.len() >= MAX_LENT {
            self.lent.retain(|buffer| Arc::strong_count(buffer) > 1);
        }
        for (place, meta) in self.shared.iter_mut().zip(&self.metas[..self.filled]) {
            let was_lent = place.as_mut().is_some_and(|buffer| Arc::get_mut(buffer).is_none());
            let deserves_one = place.is_none() && meta.len >= SHARED_BYTES;
            if was_lent || deserves_one {
                let spare = spare(&mut self.lent);
                self.lent.extend(place.replace(spare));
            }
        }
        self.filled = 0;
    }

    /// What the last call received.
    pub fn arrivals(&self) -> impl Iterator<Item = Arrival<'_>> {
        let may_lend = self.lent.len() < MAX_LENT;
        let rooms = self.plain.chunks_exact(BUFFER_BYTES).zip(&self.shared);
        self.metas[..self.filled].iter().zip(rooms).flat_map(move |(meta, (plain, shared))| {
            let (way, stride) = (Way::back_to(without_labels(meta.addr), meta.dst_ip), meta.stride.max(1));
            let octets = shared.as_deref().unwrap_or(plain);
            let lent = shared.as_ref().filter(|_| may_lend && meta.len >= SHARED_BYTES);
            (0..meta.len).step_by(stride).map(move |start| Arrival {
                way,
                stamp: meta.timestamp,
                octets: &octets[start..meta.len.min(start + stride)],
                shared: lent.map(|buffer| (buffer, start)),
            })
        })
    }
}

/// A buffer that nobody else holds: the oldest that were lent are the likeliest to have been read.
fn spare(lent: &mut VecDeque<Arc<[u8]>>) -> Arc<[u8]> {
    for _ in 0..ASKED {
        let Some(mut buffer) = lent.pop_front() else { break };
        if Arc::get_mut(&mut buffer).is_some() {
            return buffer;
        }
        lent.push_back(buffer);
    }
    std::iter::repeat_n(0, BUFFER_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox_with(len: usize, stride: usize) -> Inbox {
        let mut inbox = Inbox::new();
        inbox.filled = 1;
        (inbox.metas[0].len, inbox.metas[0].stride) = (len, stride);
        inbox
    }

    #[test]
    fn coalesced_datagrams_are_told_apart() {
        let inbox = inbox_with(3500, 1000);
        let sizes: Vec<_> = inbox.arrivals().map(|arrival| arrival.octets.len()).collect();
        assert_eq!(sizes, [1000, 1000, 1000, 500]);
    }

    #[test]
    fn large_batches_are_shared_and_small_ones_are_not() {
        let mut inbox = inbox_with(SHARED_BYTES, 1000);
        assert!(inbox.arrivals().all(|arrival| arrival.split().1.is_empty()), "a plain buffer cannot be");
        inbox.renew();
        (inbox.filled, inbox.metas[0].len) = (1, SHARED_BYTES);
        let payloads: Vec<_> = inbox.arrivals().map(|arrival| arrival.split().1).collect();
        assert!(payloads[1..].iter().rev().skip(1).all(|payload| payload.len() == 980));
        inbox.metas[0].len = SHARED_BYTES - 1;
        assert!(inbox.arrivals().all(|arrival| arrival.split().1.is_empty()));
    }

    #[test]
    fn payloads_that_nobody_reads_keep_no_more_than_so_many_buffers() {
        let mut inbox = inbox_with(BUFFER_BYTES, BUFFER_BYTES);
        let mut held = Vec::new();
        for _ in 0..10 * MAX_LENT {
            inbox.renew();
            inbox.filled = 1;
            held.extend(
                inbox.arrivals().map(|arrival| arrival.split().1).filter(|payload| !payload.is_empty()),
            );
        }
        assert!(held.len() <= MAX_LENT + BUFFERS && held.len() >= MAX_LENT, "{}", held.len());
        held.clear();
        inbox.renew();
        inbox.filled = 1;
        assert!(inbox.arrivals().all(|arrival| !arrival.split().1.is_empty()), "they are free again");
        assert!(inbox.lent.len() <= MAX_LENT);
    }
}
