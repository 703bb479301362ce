//! The search for the path's MTU.
//!
//! Source: libtorrent's scheme (`utp_stream.cpp`): ordinary packets have the largest size known to pass, a probe has
//! the middle between that and the smallest size known to fail, leaves with "don't fragment" set, and only while the
//! window is worth more than three ordinary packets. The first two probes have sizes that most paths carry instead: a
//! frame's, and what the least MTU of IPv6 leaves (RFC 8899 section 5.1.2 begins with 1200 octets likewise). Beyond a frame
//! two sizes alone are tried, the largest and a jumbo frame's: each probe that is lost leaves a gap for a round trip, and other
//! sizes are rare. The step at which the search ends (16 octets) and its repetition
//! after 30 minutes are libutp's. libutp itself begins with the largest size instead, so that its first packets of a
//! path that cannot carry them are lost or fragmented: that is why it is not followed.
//!
//! Where this goes beyond libtorrent: a probe carries no more payload than an ordinary packet and is filled up with
//! extensions that mean nothing (RFC 8899 section 4.1 calls this a probe with padding). A packet keeps its payload when
//! it is sent again, so a probe made large by its payload would never arrive on a path that silently drops what is
//! large, fragments included, and nothing behind it could be delivered. This one leaves again as an ordinary packet.
//! A lost probe is no sign of congestion.
//!
//! Black holes that open later than the search are noticed by what is repeated in vain (`connection/parts.rs`): the search
//! begins anew, from the floor.
//!
//! **What it leaves out.** A path that grows before the search begins anew by itself.
//! **How it was validated.** A path that drops larger packets is found to within a step, in few probes; transfers
//! across one that does so silently never wait for a timeout (`tests/mtu.rs`).

use cede_units::Duration;
use cede_wire::utp::HEADER_BYTES;

/// The search ends when the bounds are this close (libutp).
const STEP_BYTES: u16 = 16;
/// The pause before the search begins anew (libutp).
pub(crate) const RESTART: Duration = Duration::from_secs(30 * 60);
/// What a router may claim in earnest (libutp).
const CREDIBLE_MTU_BYTES: core::ops::Range<u32> = 576..8192;
const HEADER: u16 = HEADER_BYTES as u16;
/// RFC 8200 section 5: 1280 octets less IPv6 and UDP headers.
const LIKELY_BYTES: u16 = 1232;
/// What is usually meant by a jumbo frame: 9000 octets less IPv6 and UDP headers.
const JUMBO_BYTES: u16 = 8952;

/// How the payload of full packets is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mtu {
    /// Always this many payload octets. For worlds whose path is known.
    Fixed(u16),
    /// A search between two sizes, in octets of UDP payload (header and payload of uTP), as libtorrent does it: what
    /// is sent in the ordinary way has the largest size known to pass, and single probes find out about larger ones.
    Search {
        /// A size that every path carries.
        floor_bytes: u16,
        /// The largest size that is worth a probe.
        ceiling_bytes: u16,
    },
    /// The same with libtorrent's own probes: each has the middle of what is not known. Six of them come within 16 octets
    /// of an Ethernet frame, and each needs a window of more than three packets: many connections that share a narrow
    /// link send packets of half a frame for minutes.
    Halving {
        /// A size that every path carries.
        floor_bytes: u16,
        /// The largest size that is worth a probe.
        ceiling_bytes: u16,
    },
}

impl Mtu {
    /// 1382 octets, libutp's full packet over IPv4: 1430 octets with all headers.
    pub const DEFAULT: Self = Self::Fixed(1382);
    /// What every path over IPv4 carries, in octets of UDP payload: 576 (RFC 791) less IP and UDP headers.
    pub const FLOOR_IPV4_BYTES: u16 = 548;
    /// The search over IPv4: from what every path carries to an Ethernet frame.
    pub const SEARCH_IPV4: Self = Self::Search { floor_bytes: Self::FLOOR_IPV4_BYTES, ceiling_bytes: 1472 };
    /// The search over IPv6: from the least MTU of RFC 8200 section 5 less IP and UDP headers to an Ethernet frame.
    pub const SEARCH_IPV6: Self = Self::Search { floor_bytes: 1232, ceiling_bytes: 1452 };
}

/// Where the search stands. Sizes are octets of UDP payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PathMtu {
    /// No search.
    Fixed { payload_bytes: u16 },
    /// Between the largest size known to pass and the largest not known to fail.
    Searching { floor: u16, ceiling: u16, limits: (u16, u16), steps: Steps, probe: Option<Probe> },
}

/// Which sizes are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Steps {
    /// Those that most paths carry first; this one is a frame's.
    Likely { frame: u16 },
    /// The middle of what is not known (libtorrent).
    Middle,
}

/// The probe under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    number: u64,
    bytes: u16,
}

impl PathMtu {
    pub fn new(mtu: Mtu) -> Self {
        match mtu {
            Mtu::Fixed(payload_bytes) => Self::Fixed { payload_bytes: payload_bytes.max(1) },
            Mtu::Search { floor_bytes, ceiling_bytes } | Mtu::Halving { floor_bytes, ceiling_bytes } => {
                let floor = floor_bytes.max(HEADER + 1);
                let limits = (floor, ceiling_bytes.max(floor));
                let halving = matches!(mtu, Mtu::Halving { .. });
                let steps = if halving { Steps::Middle } else { Steps::Likely { frame: limits.1 } };
                Self::Searching { floor, ceiling: limits.1, limits, steps, probe: None }
            }
        }
    }

    /// Payload octets of an ordinary full packet.
    #[inline]
    pub fn payload_bytes(&self) -> u32 {
        match *self {
            Self::Fixed { payload_bytes } => u32::from(payload_bytes),
            Self::Searching { floor, .. } => u32::from(floor - HEADER),
        }
    }

    /// Payload octets that every path carries, where larger ones are looked for.
    pub fn least_payload_bytes(&self) -> u32 {
        match *self {
            Self::Fixed { payload_bytes } => u32::from(payload_bytes),
            Self::Searching { limits, .. } => u32::from(limits.0 - HEADER),
        }
    }

    /// Payload octets that a controller counts in. For libtorrent that is the middle of what is not known: its smallest window
    /// is a probe's, and leaves a little to grow to what a probe needs.
    pub fn mss_bytes(&self) -> u32 {
        match *self {
            Self::Searching { floor, ceiling, steps: Steps::Middle, .. } => {
                u32::from(floor.midpoint(ceiling) - HEADER)
            }
            _ => self.payload_bytes(),
        }
    }

    /// The size of a probe, where one is due for this window.
    #[inline]
    pub fn probe_due(&self, cwnd_bytes: u64) -> Option<u16> {
        match *self {
            Self::Searching { floor, probe: None, .. } if cwnd_bytes > 3 * u64::from(floor) => {
                self.next_size()
            }
            _ => None,
        }
    }

    /// The next size to try; none where the search has ended.
    fn next_size(&self) -> Option<u16> {
        let Self::Searching { floor, ceiling, limits, steps, .. } = *self else { return None };
        if ceiling - floor <= STEP_BYTES {
            return None;
        }
        let Steps::Likely { frame } = steps else {
            return Some(floor.midpoint(ceiling));
        };
        if floor >= frame {
            let larger = if ceiling == limits.1 { ceiling } else { JUMBO_BYTES };
            return (floor + 1..=ceiling).contains(&larger).then_some(larger);
        }
        Some(match ceiling {
            _ if ceiling >= frame => frame,
            _ if (floor + 1..ceiling).contains(&LIKELY_BYTES) => LIKELY_BYTES,
            _ => floor + (ceiling - floor).div_ceil(2),
        })
    }

    /// A probe of this size leaves as packet `number`.
    pub fn sent_probe(&mut self, number: u64, bytes: u16) {
        if let Self::Searching { probe, .. } = self {
            *probe = Some(Probe { number, bytes });
        }
    }

    /// The size that packet `number` is to have, where it is the probe.
    pub fn probe_bytes(&self, number: u64) -> Option<u16> {
        match self {
            Self::Searching { probe: Some(probe), .. } if probe.number == number => Some(probe.bytes),
            _ => None,
        }
    }

    /// The number of the probe under way.
    pub fn probe_number(&self) -> Option<u64> {
        match self {
            Self::Searching { probe, .. } => probe.map(|probe| probe.number),
            Self::Fixed { .. } => None,
        }
    }

    /// Packet `number` was acknowledged; true where that raised the size of ordinary packets. Unlike libutp, which
    /// waits for the cumulative acknowledgement, a selective one will do: it proves the same.
    pub fn acked(&mut self, number: u64) -> bool {
        match self {
            Self::Searching { floor, probe, .. } if probe.is_some_and(|p| p.number == number) => {
                let passed = probe.take().map_or(0, |p| p.bytes);
                let raised = passed > *floor;
                *floor = passed.max(*floor);
                raised
            }
            _ => false,
        }
    }

    /// Packet `number` was lost; true where it was the probe, whose size is then taken for too large.
    pub fn lost(&mut self, number: u64) -> bool {
        match self {
            Self::Searching { floor, ceiling, probe, .. } if probe.is_some_and(|p| p.number == number) => {
                let failed = probe.take().map_or(u16::MAX, |p| p.bytes);
                *ceiling = (*ceiling).min(failed - 1).max(*floor);
                true
            }
            _ => false,
        }
    }

    /// What becomes of the probe under way can no longer be told: another packet is being repaired.
    pub fn forget_probe(&mut self) {
        if let Self::Searching { probe, .. } = self {
            *probe = None;
        }
    }

    /// A router or the local system refused a packet as too large, and may have named the size (of UDP payload) that
    /// would pass. True where the size of ordinary packets shrank.
    pub fn too_big(&mut self, next_hop_bytes: Option<u32>) -> bool {
        let Self::Searching { floor, ceiling, limits, probe, .. } = self else { return false };
        let named = next_hop_bytes.filter(|bytes| CREDIBLE_MTU_BYTES.contains(bytes));
        if named.is_none() && probe.is_none() {
            // An ordinary packet did not fit, or one that was cut when larger ones did: the search begins anew below its size.
            let shrank = *floor > limits.0;
            *ceiling = if shrank { *floor - 1 } else { *ceiling };
            *floor = limits.0;
            return shrank;
        }
        let fits = named.map_or(floor.midpoint(*ceiling), |bytes| bytes as u16);
        // Whatever size is named, the probe's was refused: or else it would be tried again for ever.
        let fits = probe.take().map_or(fits, |probe| fits.min(probe.bytes - 1));
        *ceiling = fits.clamp(limits.0, *ceiling);
        let shrank = *floor > *ceiling;
        *floor = (*floor).min(*ceiling);
        shrank
    }

    /// Datagrams of this size are worth a probe from now on, where they were not before.
    pub fn raise_limit(&mut self, bytes: u16) {
        if let Self::Searching { ceiling, limits, .. } = self
            && bytes > limits.1
        {
            // Below the old limit, a size that has failed stays out of the search until it begins anew.
            *ceiling = if *ceiling == limits.1 { bytes } else { *ceiling };
            limits.1 = bytes;
        }
    }

    /// True where the search has ended and will begin again after [`RESTART`].
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Searching { .. }) && self.next_size().is_none()
    }

    /// Begins the search anew; true where the size of ordinary packets shrank.
    pub fn restart(&mut self) -> bool {
        let Self::Searching { floor, ceiling, limits, probe, .. } = self else { return false };
        let shrank = *floor > limits.0;
        (*floor, *ceiling, *probe) = (limits.0, limits.1, None);
        shrank
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_largest_size_that_passes_is_found_within_a_step() {
        for passes in (548..=1472).step_by(7) {
            let mut mtu = PathMtu::new(Mtu::SEARCH_IPV4);
            let mut probes = 0;
            while let Some(bytes) = mtu.probe_due(1 << 20) {
                probes += 1;
                mtu.sent_probe(probes, bytes);
                let fits = u32::from(bytes) <= passes;
                let told = if fits { mtu.acked(probes) } else { mtu.lost(probes) };
                assert!(told);
            }
            let found = mtu.payload_bytes() + u32::from(HEADER);
            assert!(found <= passes && passes - found <= u32::from(STEP_BYTES), "{passes}: {found}");
            assert!(probes <= 8 && mtu.is_settled());
        }
    }

    /// The sizes of a real connection: libtorrent 2.0.8 over a path that carries an Ethernet frame. It goes on to 1471; our
    /// probes are padded, and padding takes eight octets.
    #[test]
    fn halving_tries_libtorrents_sizes() {
        let mut mtu = PathMtu::new(Mtu::Halving { floor_bytes: 548, ceiling_bytes: 1472 });
        let mut sizes = Vec::new();
        while let Some(bytes) = mtu.probe_due(1 << 20) {
            sizes.push(bytes);
            mtu.sent_probe(1, bytes);
            assert!(mtu.acked(1));
        }
        assert_eq!(sizes, [1010, 1241, 1356, 1414, 1443, 1457]);
    }

    #[test]
    fn beyond_a_frame_two_sizes_are_tried() {
        for (passes, found) in [(1472, 1472), (3000, 1472), (9000, 8952), (16_000, 16_000)] {
            let mut mtu = PathMtu::new(Mtu::SEARCH_IPV4);
            mtu.raise_limit(16_000);
            let mut probes = 0;
            while let Some(bytes) = mtu.probe_due(1 << 20) {
                probes += 1;
                mtu.sent_probe(probes, bytes);
                assert!(if bytes <= passes { mtu.acked(probes) } else { mtu.lost(probes) });
            }
            assert_eq!((mtu.payload_bytes(), mtu.is_settled()), (found - 20, true), "{passes}");
            assert!(probes <= 3, "{passes}: {probes}");
        }
    }

    #[test]
    fn small_windows_send_no_probe() {
        assert_eq!(PathMtu::new(Mtu::SEARCH_IPV4).probe_due(3 * 548), None);
        assert_eq!(PathMtu::new(Mtu::DEFAULT).probe_due(1 << 20), None);
    }

    #[test]
    fn routers_are_believed_within_reason() {
        let mut mtu = PathMtu::new(Mtu::SEARCH_IPV4);
        assert!(!mtu.too_big(Some(1000)));
        assert!(mtu.probe_due(1 << 20).unwrap() < 1000);
        assert!(!mtu.too_big(Some(60)));
        assert!(mtu.payload_bytes() >= 528);
        let mut fixed = PathMtu::new(Mtu::DEFAULT);
        assert!(!fixed.too_big(Some(600)));
    }
}
