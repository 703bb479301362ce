//! What the system tells of one of its TCP connections: octets of `inet_diag_msg` and `tcp_info` (`linux/inet_diag.h`, `linux/tcp.h`),
//! which are part of Linux's promise to programs and only ever grow at their end.

use cede_units::Duration;
use std::net::{IpAddr, SocketAddr};

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLMSG_ERROR`.
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// `INET_DIAG_INFO`, the attribute that holds `tcp_info`.
const INFO: u16 = 2;
const HEADER_BYTES: usize = 16;
const MESSAGE_BYTES: usize = 72;
/// A question is a header and `inet_diag_req_v2`.
pub(super) const QUESTION_BYTES: usize = HEADER_BYTES + 56;

/// `TCP_CA_Recovery`: losses are being repaired.
const RECOVERY: u8 = 3;
/// `TCP_CA_CWR`: congestion was marked.
const MARKED: u8 = 2;

/// One moment of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Told {
    /// Octets that were written and have not been acknowledged, among them those that have not left.
    pub unacked_bytes: u64,
    /// Of these, octets that have not left yet.
    pub unsent_bytes: u64,
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// The smallest of the last minutes; zero where the kernel is too old to tell.
    pub min_rtt: Duration,
    /// Segments that have come, modulo 2³²; zero where the kernel is too old to tell. Each that acknowledges has moved `srtt` once.
    pub segments_in: u32,
    /// Payload octets of a full segment.
    pub mss_bytes: u32,
    /// Timeouts in a row.
    pub timeouts: u8,
    /// Losses are being repaired.
    pub in_recovery: bool,
    /// The window is being reduced since a router has marked segments.
    pub is_marked: bool,
}

/// Why there is no [`Told`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Silence {
    /// The answer is to another question.
    Another,
    /// The system's error number.
    Refused(i32),
    /// Nothing that can be read.
    Unreadable,
}

/// One connection of the system's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Which {
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// The device that it is bound to.
    pub device: Option<u32>,
    /// The system's name of its socket: what others wait or have come for between the same addresses is not meant.
    pub cookie: Option<u64>,
}

/// Asks for a connection.
pub(super) fn question(number: u32, which: &Which) -> [u8; QUESTION_BYTES] {
    let Which { local, peer, device, cookie } = *which;
    let mut octets = [0; QUESTION_BYTES];
    let mut put = |at: usize, part: &[u8]| octets[at..at + part.len()].copy_from_slice(part);
    put(0, &(QUESTION_BYTES as u32).to_ne_bytes());
    put(4, &BY_FAMILY.to_ne_bytes());
    put(6, &REQUEST.to_ne_bytes());
    put(8, &number.to_ne_bytes());
    let (from, to) = (local.ip().to_canonical(), peer.ip().to_canonical());
    let family = if from.is_ipv4() { 2 } else { 10 };
    put(16, &[family, TCP, 1 << (INFO - 1), 0]);
    // In any state.
    put(20, &u32::MAX.to_ne_bytes());
    put(24, &local.port().to_be_bytes());
    put(26, &peer.port().to_be_bytes());
    for (at, address) in [(28, from), (44, to)] {
        match address {
            IpAddr::V4(address) => put(at, &address.octets()),
            IpAddr::V6(address) => put(at, &address.octets()),
        }
    }
    put(60, &device.unwrap_or_else(|| scope(peer).max(scope(local))).to_ne_bytes());
    // Two words of the machine's, the low one first; all ones are whichever socket it is.
    let cookie = cookie.unwrap_or(u64::MAX);
    put(64, &(cookie as u32).to_ne_bytes());
    put(68, &((cookie >> 32) as u32).to_ne_bytes());
    octets
}

const fn scope(address: SocketAddr) -> u32 {
    match address {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(address) => address.scope_id(),
    }
}

/// Octets read in the machine's order; none where there are too few.
struct Octets<'a>(&'a [u8]);

impl Octets<'_> {
    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    fn u16(&self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_ne_bytes)
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_ne_bytes)
    }
}

/// What an answer to the question of this number says.
pub(super) fn answer(number: u32, datagram: &[u8]) -> Result<Told, Silence> {
    let octets = Octets(datagram);
    let (kind, asked) = (octets.u16(4).ok_or(Silence::Unreadable)?, octets.u32(8));
    if asked != Some(number) {
        return Err(Silence::Another);
    }
    match kind {
        BY_FAMILY => told(datagram).ok_or(Silence::Unreadable),
        ERROR => {
            Err(Silence::Refused(octets.u32(HEADER_BYTES).map_or(0, |code| (code as i32).wrapping_neg())))
        }
        _ => Err(Silence::Unreadable),
    }
}

fn told(datagram: &[u8]) -> Option<Told> {
    let octets = Octets(datagram);
    let unacked = octets.u32(HEADER_BYTES + 60)?;
    let info = Octets(attribute(datagram.get(HEADER_BYTES + MESSAGE_BYTES..)?, INFO)?);
    let state = *info.0.get(1)?;
    Some(Told {
        unacked_bytes: u64::from(unacked),
        // Since Linux 4.6.
        unsent_bytes: u64::from(info.u32(144).unwrap_or(0)),
        srtt: Duration::from_micros(u64::from(info.u32(68)?)),
        min_rtt: Duration::from_micros(u64::from(info.u32(148).unwrap_or(0))),
        segments_in: info.u32(140).unwrap_or(0),
        mss_bytes: info.u32(16)?,
        timeouts: *info.0.get(2)?,
        in_recovery: state >= RECOVERY,
        is_marked: state == MARKED,
    })
}

/// The attribute of a kind.
fn attribute(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let octets = Octets(rest);
        let (len, kind) = (usize::from(octets.u16(0)?), octets.u16(2)?);
        let value = rest.get(4..len)?;
        if kind == wanted {
            return Some(value);
        }
        rest = rest.get(len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer as Linux lays it out.
    fn datagram(number: u32, unacked: u32, info: &[u8]) -> Vec<u8> {
        let mut octets = vec![0; HEADER_BYTES + MESSAGE_BYTES];
        octets[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        octets[8..12].copy_from_slice(&number.to_ne_bytes());
        octets[HEADER_BYTES + 60..HEADER_BYTES + 64].copy_from_slice(&unacked.to_ne_bytes());
        // Something else before it, of a length that is filled up to a multiple of four.
        octets.extend_from_slice(&[5, 0, 8, 0, 77, 0, 0, 0]);
        octets.extend_from_slice(&(4 + info.len() as u16).to_ne_bytes());
        octets.extend_from_slice(&INFO.to_ne_bytes());
        octets.extend_from_slice(info);
        octets
    }

    fn info() -> Vec<u8> {
        let mut info = vec![0; 232];
        (info[1], info[2]) = (RECOVERY, 1);
        for (at, value) in [(16, 1_448_u32), (68, 12_345), (140, 66), (144, 700), (148, 9_876)] {
            info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        info
    }

    #[test]
    fn an_answer_tells_of_the_connection() {
        let told = Told {
            unacked_bytes: 9_000,
            unsent_bytes: 700,
            srtt: Duration::from_micros(12_345),
            min_rtt: Duration::from_micros(9_876),
            segments_in: 66,
            mss_bytes: 1_448,
            timeouts: 1,
            in_recovery: true,
            is_marked: false,
        };
        assert_eq!(answer(7, &datagram(7, 9_000, &info())), Ok(told));
        assert_eq!(answer(8, &datagram(7, 9_000, &info())), Err(Silence::Another));
        // An older kernel's, which ends before what it does not know.
        let old = Told { unsent_bytes: 0, min_rtt: Duration::ZERO, segments_in: 0, ..told };
        assert_eq!(answer(7, &datagram(7, 9_000, &info()[..104])), Ok(old));
        let mut refused = vec![0; 36];
        refused[4..6].copy_from_slice(&ERROR.to_ne_bytes());
        refused[8..12].copy_from_slice(&7_u32.to_ne_bytes());
        refused[16..20].copy_from_slice(&(-2_i32).to_ne_bytes());
        assert_eq!(answer(7, &refused), Err(Silence::Refused(2)));
    }

    #[test]
    fn what_is_cut_or_made_up_is_unreadable() {
        let whole = datagram(7, 9_000, &info());
        for len in 0..whole.len() {
            let cut = answer(7, &whole[..len]);
            assert!(matches!(cut, Err(Silence::Unreadable | Silence::Another)), "{len}: {cut:?}");
        }
        bolero::check!().with_type::<Vec<u8>>().for_each(|octets| {
            let _ = answer(7, octets);
            let mut framed = datagram(7, 1, &[]);
            framed.truncate(HEADER_BYTES + MESSAGE_BYTES);
            framed.extend_from_slice(octets);
            let _ = answer(7, &framed);
        });
    }

    #[test]
    fn a_connection_of_a_mapped_address_is_asked_for_as_ipv4s() {
        let mapped: SocketAddr = "[::ffff:10.0.0.1]:80".parse().unwrap();
        let plain: SocketAddr = "10.0.0.1:80".parse().unwrap();
        let peer: SocketAddr = "10.0.0.2:6881".parse().unwrap();
        let which = |local, peer| Which { local, peer, device: None, cookie: None };
        assert_eq!(question(1, &which(mapped, peer)), question(1, &which(plain, peer)));
        let on_a_link: SocketAddr = "[fe80::1%3]:80".parse().unwrap();
        assert_eq!(question(1, &which(on_a_link, on_a_link))[60..64], 3_u32.to_ne_bytes());
    }
}
