//! Segmentation offload as a model: segments that leave in a row travel as one, as they do between a kernel with TSO or
//! GSO and a device that cuts them late, and as captures on such hosts show them.
//!
//! **What it leaves out.** The receiver's own gathering (GRO) and the sender's limit on bursts (TCP small queues).
//! **How it was validated.** The tests below; claims B10 and B11 of the P2P 2010 study.

use cede_net::Datagram;
use cede_wire::Payload;
use cede_wire::tcp::Segment;

/// Joins the segments from place `first` on where one continues the other, up to `limit_bytes` of payload.
pub(super) fn merge(sends: &mut Vec<Datagram>, first: usize, limit_bytes: u32) {
    if sends.len() < first + 2 {
        return;
    }
    let tail = sends.split_off(first);
    for datagram in tail {
        match sends[first..].last_mut() {
            Some(last) if continues(last, &datagram, limit_bytes) => append(last, datagram.payload),
            _ => sends.push(datagram),
        }
    }
}

fn continues(last: &Datagram, next: &Datagram, limit_bytes: u32) -> bool {
    let fits = last.payload.len() + next.payload.len() <= limit_bytes;
    if !fits || last.payload.is_empty() || next.payload.is_empty() || last.destination != next.destination {
        return false;
    }
    let heads = (Segment::decode(&last.head), Segment::decode(&next.head));
    let (Ok((a, _)), Ok((b, _))) = heads else { return false };
    a.seq.add(last.payload.len()) == b.seq && a.ack == b.ack
}

fn append(last: &mut Datagram, payload: Payload) {
    if let Err(payload) = last.payload.try_extend(payload) {
        let mut octets = last.payload.to_vec();
        octets.extend(payload.to_vec());
        last.payload = Payload::from_shared(octets.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Seq32;

    fn segment(seq: u32, len: u32) -> Datagram {
        let head = Segment { seq: Seq32(seq), ..Segment::decode(&[0; 20]).map_or_else(|_| blank(), |s| s.0) };
        let payload = Payload::Pattern { start: u64::from(seq), len };
        Datagram { head: head.encode(), payload, ..Datagram::default() }
    }

    fn blank() -> Segment {
        use cede_wire::tcp::{Flags, Options};
        Segment {
            src_port: 1,
            dst_port: 2,
            seq: Seq32(0),
            ack: Seq32(0),
            flags: Flags::ACK,
            window: 0,
            options: Options::default(),
        }
    }

    #[test]
    fn what_continues_travels_as_one() {
        let mut sends =
            vec![segment(0, 7), segment(100, 10), segment(110, 10), segment(120, 10), segment(500, 1)];
        merge(&mut sends, 1, 25);
        let lens: Vec<u32> = sends.iter().map(|datagram| datagram.payload.len()).collect();
        assert_eq!(lens, [7, 20, 10, 1]);
    }
}
