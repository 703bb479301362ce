//! A relay between two ends on one machine that loses, reorders and duplicates datagrams.
//!
//! Whoever opens a connection talks to the relay's front, and what it says arrives from the relay's back. One end opens;
//! a relay serves one pair. What happens to the nth datagram of a direction depends on the seed alone, so that a run with
//! another implementation meets the same path, as far as it sends the same number of datagrams.

use cede_units::Stream;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// A datagram held back lets this many others pass,
const OVERTAKEN_BY: u32 = 3;
/// or waits this long where there are none.
const HELD_FOR: Duration = Duration::from_millis(5);
/// So that the relay itself loses nothing that it was not told to lose.
pub(crate) const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// What a relay does to datagrams, as shares of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Harm {
    /// Lost.
    pub loss: f64,
    /// Overtaken by three others.
    pub reordering: f64,
    /// Sent twice.
    pub duplication: f64,
}

/// What a relay has done.
#[derive(Default, Debug)]
pub struct Counts {
    /// Datagrams that went on.
    pub relayed: AtomicU64,
    /// Datagrams that were lost.
    pub lost: AtomicU64,
    /// Datagrams that others overtook.
    pub reordered: AtomicU64,
    /// Datagrams that went on twice.
    pub duplicated: AtomicU64,
}

/// A running relay; ends when dropped.
pub struct Relay {
    front: SocketAddr,
    counts: Arc<Counts>,
    tasks: [JoinHandle<()>; 2],
}

impl Relay {
    /// Starts a relay to `target`.
    ///
    /// # Errors
    /// The system's.
    pub fn start(target: SocketAddr, harm: Harm, seed: u64) -> io::Result<Self> {
        let [front, back] = [(); 2].map(|()| bind(target.ip(), Some(SOCKET_BUFFER_BYTES)));
        let (front, back) = (front?, back?);
        let (address, counts) = (front.local_addr()?, Arc::new(Counts::default()));
        let (front, back) = (Arc::new(front), Arc::new(back));
        let opener = Arc::new(std::sync::Mutex::new(None));
        let way = |from: &Arc<UdpSocket>, to: &Arc<UdpSocket>, name| Way {
            from: Arc::clone(from),
            to: Arc::clone(to),
            harm,
            chance: Stream::named(seed, name),
            held: None,
            counts: Arc::clone(&counts),
        };
        let (there, back_again) = (way(&front, &back, "relay/there"), way(&back, &front, "relay/back"));
        let learnt = Arc::clone(&opener);
        let tasks = [
            tokio::spawn(there.run(move |from| {
                *learnt.lock().expect("no panic holds it") = Some(from);
                Some(target)
            })),
            tokio::spawn(back_again.run(move |_| *opener.lock().expect("no panic holds it"))),
        ];
        Ok(Self { front: address, counts, tasks })
    }

    /// Where to open a connection to.
    #[must_use]
    pub fn front(&self) -> SocketAddr {
        self.front
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A UDP socket of `ip`, with buffers of this size as far as the system grants it, or of the system's default size.
///
/// # Errors
/// The system's.
pub fn bind(ip: IpAddr, buffer_bytes: Option<usize>) -> io::Result<UdpSocket> {
    let addr = SocketAddr::new(ip, 0);
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    if let Some(bytes) = buffer_bytes {
        // What the system does not grant is a matter of speed, not a failure.
        let _ = socket.set_recv_buffer_size(bytes);
        let _ = socket.set_send_buffer_size(bytes);
    }
    UdpSocket::from_std(socket.into())
}

/// One direction.
struct Way {
    from: Arc<UdpSocket>,
    to: Arc<UdpSocket>,
    harm: Harm,
    chance: Stream,
    held: Option<Held>,
    counts: Arc<Counts>,
}

/// A datagram that waits for others to pass.
struct Held {
    octets: Vec<u8>,
    to: SocketAddr,
    passing: u32,
}

impl Way {
    async fn run(mut self, mut target: impl FnMut(SocketAddr) -> Option<SocketAddr>) {
        let mut buffer = vec![0; 65_536];
        loop {
            let limit = if self.held.is_some() { HELD_FOR } else { Duration::from_secs(3600) };
            match tokio::time::timeout(limit, self.from.recv_from(&mut buffer)).await {
                Ok(Ok((len, from))) => match target(from) {
                    Some(to) => self.pass(&buffer[..len], to).await,
                    None => continue,
                },
                // What the system reports about earlier datagrams, as that a port has closed, is not the relay's affair.
                Ok(Err(_)) => tokio::task::yield_now().await,
                Err(_) => self.release().await,
            }
        }
    }

    /// All chances are drawn for each datagram, so that each datagram's depend on its number alone.
    async fn pass(&mut self, octets: &[u8], to: SocketAddr) {
        let [lost, late, twice] = [self.harm.loss, self.harm.reordering, self.harm.duplication]
            .map(|share| self.chance.chance(share));
        if lost {
            self.counts.lost.fetch_add(1, Relaxed);
            return;
        }
        if late && self.held.is_none() {
            self.counts.reordered.fetch_add(1, Relaxed);
            self.held = Some(Held { octets: octets.to_vec(), to, passing: OVERTAKEN_BY });
            return;
        }
        self.send(octets, to).await;
        if twice {
            self.counts.duplicated.fetch_add(1, Relaxed);
            self.send(octets, to).await;
        }
        if let Some(held) = &mut self.held {
            held.passing -= 1;
            if held.passing == 0 {
                self.release().await;
            }
        }
    }

    async fn release(&mut self) {
        if let Some(held) = self.held.take() {
            self.send(&held.octets, held.to).await;
        }
    }

    async fn send(&self, octets: &[u8], to: SocketAddr) {
        self.counts.relayed.fetch_add(1, Relaxed);
        let _ = self.to.send_to(octets, to).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// Sends one datagram after another through a relay, each with its number, and returns the numbers in the order of
    /// their arrival. The next leaves when a time without arrivals has passed or the last has arrived, so nothing is lost
    /// in between.
    async fn through(harm: Harm, seed: u64) -> Vec<u8> {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let (here, there) = (bind(local, None).unwrap(), bind(local, None).unwrap());
        let relay = Relay::start(there.local_addr().unwrap(), harm, seed).unwrap();
        for number in 0..100_u8 {
            here.send_to(&[number], relay.front()).await.unwrap();
        }
        let (mut arrived, mut buffer) = (Vec::new(), [0; 8]);
        while let Ok(Ok(_)) = tokio::time::timeout(Duration::from_secs(1), there.recv(&mut buffer)).await {
            arrived.push(buffer[0]);
        }
        arrived
    }

    #[tokio::test]
    async fn a_relay_without_harm_changes_nothing() {
        let none = Harm { loss: 0.0, reordering: 0.0, duplication: 0.0 };
        assert_eq!(through(none, 1).await, (0..100).collect::<Vec<u8>>());
    }

    #[tokio::test]
    async fn a_relay_that_loses_loses_the_same_for_the_same_seed() {
        let harm = Harm { loss: 0.2, reordering: 0.0, duplication: 0.1 };
        let first = through(harm, 2).await;
        assert_eq!(first, through(harm, 2).await);
        let mut distinct = first.clone();
        distinct.dedup();
        assert!(distinct.len() < 95 && distinct.len() < first.len(), "{first:?}");
    }

    #[tokio::test]
    async fn a_datagram_held_back_arrives_behind_others() {
        let harm = Harm { loss: 0.0, reordering: 0.1, duplication: 0.0 };
        let mut arrived = through(harm, 3).await;
        assert!(!arrived.is_sorted(), "{arrived:?}");
        arrived.sort_unstable();
        assert_eq!(arrived, (0..100).collect::<Vec<u8>>());
    }
}
