//! Two taps: where packets reach the router, and where those that passed the uplink are seen by the observer.

use crate::netns::{Namespaces, RECEIVER, SENDER};
use cede_meter::Meter;
use cede_repro::bufferbloat::measure::{Truth, compare};
use cede_repro::bufferbloat::{Measured, setting::Case};
use cede_units::{Duration, Instant};
use cede_wire::ip;
use cede_wire::link::LinkType;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Ethernet's header, of which nothing here has another.
const LINK_BYTES: usize = 14;
/// So much of a packet tells it from all others: stamps and numbers stand before it.
const TELLING_BYTES: usize = 72;

/// A packet by what does not change on the way, and when it was seen, in nanoseconds of the kernel's clock.
#[derive(Clone, Copy, Debug)]
struct Passage {
    packet: u64,
    at_ns: u64,
}

/// What was seen, on the clock of the first packet.
pub(super) struct Seen {
    meter: Meter,
    entered: Vec<Passage>,
    left: Vec<Passage>,
    /// Packets that the kernel had no room for.
    pub missed: u64,
    origin_ns: u64,
}

/// Taps that listen until they are ended.
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    entering: Listening<Vec<Passage>>,
    leaving: Listening<(Meter, Vec<Passage>)>,
    origin_ns: u64,
}

/// What a tap heard, and how many packets it missed.
type Listening<T> = JoinHandle<io::Result<(T, u64)>>;

impl Watch {
    /// Taps the router's port to the remote host, and the observer's.
    pub fn begin(namespaces: &Namespaces) -> io::Result<Self> {
        let stop = Arc::<AtomicBool>::default();
        let since_1970 = std::time::UNIX_EPOCH.elapsed().map_err(io::Error::other)?;
        let origin_ns = since_1970.as_nanos() as u64;
        let (entering, leaving) = (
            tap::open(namespaces.place("r"), "r0", Arc::clone(&stop))?,
            tap::open(namespaces.place("d"), "d0", Arc::clone(&stop))?,
        );
        let entering = thread::spawn(move || {
            let mut entered = Vec::new();
            let lost = entering.listen(&mut |at_ns, frame| entered.extend(of_sender(at_ns, frame)))?;
            Ok((entered, lost))
        });
        let leaving = thread::spawn(move || {
            let (mut meter, mut left) = (Meter::default(), Vec::new());
            let lost = leaving.listen(&mut |at_ns, frame| {
                left.extend(of_sender(at_ns, frame));
                if is_observed(frame) {
                    meter.packet(
                        at_ns.saturating_sub(origin_ns),
                        LinkType::ETHERNET,
                        frame,
                        frame.len() as u32,
                    );
                }
            })?;
            Ok(((meter, left), lost))
        });
        Ok(Self { stop, entering, leaving, origin_ns })
    }

    /// What was seen so far.
    pub fn end(self) -> io::Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        let lost = || io::Error::other("a tap has panicked");
        let (entered, unheard) = self.entering.join().map_err(|_| lost())??;
        let ((meter, left), unseen) = self.leaving.join().map_err(|_| lost())??;
        Ok(Seen { meter, entered, left, missed: unheard + unseen, origin_ns: self.origin_ns })
    }
}

/// A packet of the remote host's.
fn of_sender(at_ns: u64, frame: &[u8]) -> Option<Passage> {
    let packet = frame.get(LINK_BYTES..)?;
    (ip::Packet::parse(packet).ok()?.source == IpAddr::V4(SENDER))
        .then(|| Passage { packet: told(packet), at_ns })
}

/// What passes between remote host and observer; hidden traffic has other addresses.
fn is_observed(frame: &[u8]) -> bool {
    let Some(Ok(packet)) = frame.get(LINK_BYTES..).map(ip::Packet::parse) else { return false };
    [packet.source, packet.destination].contains(&IpAddr::V4(RECEIVER))
}

/// A number for a packet: of its octets without those that a router changes (time to live, checksum).
fn told(packet: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in [0..8, 9..10, 12..packet.len().min(TELLING_BYTES)] {
        hasher.write(packet.get(part).unwrap_or_default());
    }
    hasher.finish()
}

impl Seen {
    /// What the meter says, beside the queue.
    pub fn judge(self, case: Case) -> Measured {
        let truth = waits(&self.entered, &self.left, self.origin_ns);
        compare(case, &self.meter, IpAddr::V4(SENDER), truth)
    }
}

/// How long each packet that left had waited. Packets that look alike leave in the order in which they came.
fn waits(entered: &[Passage], left: &[Passage], origin_ns: u64) -> Vec<Truth> {
    let mut waiting: HashMap<u64, VecDeque<u64>> = HashMap::new();
    for passage in entered {
        waiting.entry(passage.packet).or_default().push_back(passage.at_ns);
    }
    let truth = |passage: &Passage| {
        let entered_ns = waiting.get_mut(&passage.packet)?.pop_front()?;
        let waited = Duration::from_nanos(passage.at_ns.saturating_sub(entered_ns));
        let at = Instant::from_nanos(passage.at_ns.saturating_sub(origin_ns));
        // A token bucket lets a packet wait for what it takes itself.
        Some(Truth { at, waited, took: Duration::ZERO })
    };
    left.iter().filter_map(truth).collect()
}

#[cfg(target_os = "linux")]
mod tap {
    use super::{Arc, AtomicBool, Ordering, io, thread};
    use crate::netns::Place;
    use netring::Capture;
    use std::time::Duration;

    /// The ring: a block that is not full is handed over after a while, so that their number says how long we may be held up:
    /// some twelve seconds.
    const BLOCK_BYTES: usize = 1 << 14;
    const BLOCKS: usize = 256;
    const BLOCK_TIMEOUT_MS: u32 = 50;
    const LOOK: Duration = Duration::from_millis(100);

    pub(super) struct Tap {
        capture: Capture,
        stop: Arc<AtomicBool>,
    }

    /// Opens a port of a namespace.
    pub(super) fn open(place: Place, port: &'static str, stop: Arc<AtomicBool>) -> io::Result<Tap> {
        let open = move || {
            place.go()?;
            let ring = Capture::builder().interface(port).block_size(BLOCK_BYTES).block_count(BLOCKS);
            ring.block_timeout_ms(BLOCK_TIMEOUT_MS).fill_rxhash(false).build().map_err(io::Error::other)
        };
        let opened =
            thread::spawn(open).join().map_err(|_| io::Error::other("opening a tap has panicked"))?;
        Ok(Tap { capture: opened?, stop })
    }

    impl Tap {
        /// Hands on what comes until it is to stop, and says how much the kernel had no room for.
        pub(super) fn listen(mut self, hear: &mut dyn FnMut(u64, &[u8])) -> io::Result<u64> {
            let mut is_last = false;
            while !is_last {
                // Traffic goes on: one more look, at the block that was being filled, is the last one.
                is_last = self.stop.load(Ordering::Relaxed);
                let Some(batch) = self.capture.next_batch_blocking(LOOK).map_err(io::Error::other)? else {
                    continue;
                };
                for packet in batch.iter() {
                    let time = packet.timestamp();
                    hear(u64::from(time.sec) * 1_000_000_000 + u64::from(time.nsec), packet.data());
                }
            }
            Ok(self.capture.cumulative_stats().map_or(0, |stats| u64::from(stats.drops)))
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod tap {
    use super::{Arc, AtomicBool, io};
    use crate::netns::Place;

    pub(super) struct Tap;

    /// There are none here.
    pub(super) fn open(_: Place, _: &'static str, _: Arc<AtomicBool>) -> io::Result<Tap> {
        Err(io::Error::new(io::ErrorKind::NotFound, "packet rings are Linux's"))
    }

    impl Tap {
        pub(super) fn listen(self, _: &mut dyn FnMut(u64, &[u8])) -> io::Result<u64> {
            Ok(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_known_again_behind_the_router_and_wait_in_order() {
        let mut packet = vec![0x45_u8; 60];
        let before = told(&packet);
        (packet[8], packet[10]) = (63, 7);
        assert_eq!(told(&packet), before, "a router changes these");
        packet[40] ^= 1;
        assert_ne!(told(&packet), before);
        let passage = |packet, at_ns| Passage { packet, at_ns };
        let entered = [passage(1, 100), passage(2, 110), passage(1, 120), passage(3, 130)];
        let left = [passage(1, 200), passage(1, 230), passage(3, 260), passage(9, 270)];
        let waits = waits(&entered, &left, 50);
        let waited: Vec<u64> = waits.iter().map(|truth| truth.waited.as_nanos()).collect();
        assert_eq!(waited, [100, 110, 130], "the second was dropped, and nobody saw the last one enter");
        assert_eq!(waits[0].at, Instant::from_nanos(150));
    }
}
