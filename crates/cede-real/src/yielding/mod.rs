//! TCP that yields: a connection of the system's of which one of our controllers says how much may be under way.
//!
//! Linux has no scavenger that every machine offers (`tcp_lp` is a module that few have), and its TCP fills whatever buffer stands before
//! the narrowest link. This needs neither module nor privileges: what is written to the system's TCP is held back by a window, which
//! a controller steers by the round-trip times that the system measures. The system's own window stays in force, so that no more
//! leaves than by its rules, and often less.
//!
//! ```no_run
//! use cede_real::{ControllerChoice, Yielding};
//! use tokio::io::AsyncWriteExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let yielding = Yielding::new(ControllerChoice::named("ledbat++"))?;
//! let mut stream = yielding.over(tokio::net::TcpStream::connect("192.0.2.1:9000").await?);
//! stream.write_all(&[0; 1 << 20]).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The system is asked of each connection that writes, every few milliseconds ([`LOOKS`]), over a netlink socket that all connections share
//! (`sock_diag(7)`, as `ss` does). The round-trip time contains what queues on the way back, and the peer's delay of acknowledgements.
//!
//! **What it leaves out.** What we receive: there the peer's TCP decides. Controllers that steer by rate, by single packets' times or by one-way
//! delay ([`OFFERED`] has the others).
//! **How it was validated.** The tests beside it, without a network; through a real bottleneck `crates/cede/tests/tcp_yields.rs`.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod diag;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "nobody.rs"]
mod diag;
mod steer;
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), expect(dead_code))]
mod told;

use crate::clock::Clock;
use crate::config::ControllerChoice;
use cede_cc::{Controller, ParamError, Path, Snapshot, registry};
use cede_units::Duration;
use diag::{Diag, which};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use steer::Steer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use told::Which;

/// Controllers that can steer here: those ruled by a window, on the round-trip time, that need no word of single packets.
pub const OFFERED: &[&str] = &["ledbat", "ledbat-draft", "fledbat", "ledbat++"];

/// The system is asked again after a quarter of a round trip, within these bounds; of a peer that takes nothing less often, every 100 ms in the end.
pub const LOOKS: std::ops::RangeInclusive<Duration> = Duration::from_millis(2)..=Duration::from_millis(5);

/// The largest window: more than the system's own buffers.
const MAX_WINDOW_BYTES: u64 = 16 << 20;

/// Why TCP cannot be made to yield.
#[derive(Debug)]
#[non_exhaustive]
pub enum YieldingError {
    /// The name or a parameter is not known, or a value is out of range; the text says what is allowed.
    Parameter(ParamError),
    /// The controller cannot steer a TCP of the system's.
    Unfit(String),
    /// The system does not tell of its connections.
    System(io::Error),
}

impl fmt::Display for YieldingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(error) => error.fmt(f),
            Self::Unfit(name) => write!(
                f,
                "{name} cannot steer the system's TCP, which tells round-trip times and no more; these can: {}",
                OFFERED.join(", ")
            ),
            Self::System(error) => write!(f, "the system does not tell of its TCP connections: {error}"),
        }
    }
}

impl std::error::Error for YieldingError {}

/// Makes connections yield.
#[derive(Clone)]
pub struct Yielding {
    choice: ControllerChoice,
    diag: Arc<Diag>,
}

impl fmt::Debug for Yielding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Yielding").field(&self.choice).finish()
    }
}

impl Yielding {
    /// By this controller, each connection by one of its own. Custom ones are given round-trip times and no one-way delays.
    ///
    /// # Errors
    /// [`YieldingError`]. On other systems than Linux always.
    pub fn new(choice: ControllerChoice) -> Result<Self, YieldingError> {
        let choice = on_rtt(choice)?;
        choice.build(&path(1_448)).map_err(YieldingError::Parameter)?;
        let diag = Diag::open().map_err(YieldingError::System)?;
        Ok(Self { choice, diag: Arc::new(diag) })
    }

    /// The connection, which yields from now on.
    #[must_use]
    pub fn over(&self, stream: TcpStream) -> YieldingTcp {
        let yielding = self.clone();
        let ends = stream.local_addr().and_then(|local| Ok((local, stream.peer_addr()?)));
        let which = ends.ok().map(|(local, peer)| which(&stream, local, peer));
        let clock = Clock::new();
        YieldingTcp { stream, which, yielding, clock, steering: Steering::NotYet, pause: None }
    }

    fn controller(&self, mss_bytes: u32) -> Option<Box<dyn Controller>> {
        self.choice.build(&path(mss_bytes)).ok()
    }
}

/// The choice on the round-trip time.
fn on_rtt(choice: ControllerChoice) -> Result<ControllerChoice, YieldingError> {
    let ControllerChoice::Named { name, params } = choice else { return Ok(choice) };
    let entry = registry::require(&name).map_err(YieldingError::Parameter)?;
    if !OFFERED.contains(&entry.name) {
        return Err(YieldingError::Unfit(name));
    }
    let params = registry::on_rtt(entry, &params).map_err(YieldingError::Parameter)?;
    let params = params.ok_or_else(|| {
        let [parameter, given, allowed] = ["signal", "owd", "rtt"].map(str::to_owned);
        YieldingError::Parameter(ParamError::Conflict { name: parameter, given, allowed })
    })?;
    Ok(ControllerChoice::Named { name, params })
}

/// The first window is RFC 6928's.
fn path(mss_bytes: u32) -> Path {
    let mss_bytes = mss_bytes.max(1);
    let initial_cwnd_bytes = (10 * mss_bytes).min((2 * mss_bytes).max(14_600));
    Path { mss_bytes, initial_cwnd_bytes, max_cwnd_bytes: MAX_WINDOW_BYTES }
}

/// Where the steering of a connection stands.
enum Steering {
    /// Nothing has been written.
    NotYet,
    /// The system was asked at a time.
    By(Box<Steer>, cede_units::Instant),
    /// The system tells no more: the connection is the system's alone.
    Over,
}

/// A TCP connection that yields in what it sends.
pub struct YieldingTcp {
    stream: TcpStream,
    /// What to ask for, where the system tells our address and the peer's.
    which: Option<Which>,
    yielding: Yielding,
    clock: Clock,
    steering: Steering,
    /// Until the system is asked again, where nothing may be written.
    pause: Option<Pin<Box<Sleep>>>,
}

impl YieldingTcp {
    /// The connection beneath.
    #[must_use]
    pub const fn as_tcp(&self) -> &TcpStream {
        &self.stream
    }

    /// Where its controller stands; none before anything was written. Delays are of the round-trip time.
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot> {
        match &self.steering {
            Steering::By(steer, _) => Some(steer.snapshot()),
            Steering::NotYet | Steering::Over => None,
        }
    }

    /// Asks the system, if it is time to.
    fn look(&mut self) {
        let now = self.clock.now();
        if let Steering::By(steer, at) = &self.steering
            && now.since(*at) < steer.every(now)
        {
            return;
        }
        let told = self.which.map(|which| self.yielding.diag.ask(&which));
        let Some(Ok(told)) = told else {
            self.steering = Steering::Over;
            return;
        };
        match &mut self.steering {
            Steering::By(steer, at) => {
                steer.hear(now, told);
                *at = now;
            }
            Steering::NotYet => {
                let controller = self.yielding.controller(told.mss_bytes);
                self.steering = controller.map_or(Steering::Over, |controller| {
                    Steering::By(Box::new(Steer::new(now, controller, told)), now)
                });
            }
            Steering::Over => {}
        }
    }

    /// How much of so much may be written now; none where that is nothing yet, and the task will be woken.
    fn poll_room(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<usize> {
        loop {
            if !matches!(self.steering, Steering::Over) {
                self.look();
            }
            let Steering::By(steer, _) = &mut self.steering else { return Poll::Ready(wanted) };
            let room = steer.room(wanted);
            if room > 0 || wanted == 0 {
                self.pause = None;
                return Poll::Ready(room);
            }
            let again = steer.every(self.clock.now());
            let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(again.into())));
            if pause.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.pause = None;
        }
    }
}

impl AsyncRead for YieldingTcp {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for YieldingTcp {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        let room = std::task::ready!(self.poll_room(cx, octets.len()));
        let written = std::task::ready!(Pin::new(&mut self.stream).poll_write(cx, &octets[..room]))?;
        let now = self.clock.now();
        if let Steering::By(steer, _) = &mut self.steering {
            steer.wrote(now, written);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket};

    #[test]
    fn who_cannot_steer_is_refused_with_those_who_can() {
        for entry in cede_cc::registry::all() {
            let offered = OFFERED.contains(&entry.name);
            match on_rtt(ControllerChoice::named(entry.name)) {
                Ok(choice) => assert!(offered && choice.build(&path(1_448)).is_ok(), "{}", entry.name),
                Err(error) => assert!(!offered && error.to_string().contains("ledbat++"), "{error}"),
            }
        }
        let one_way = ControllerChoice::written("ledbat", [("signal", "owd")]).unwrap();
        let refused = on_rtt(one_way).unwrap_err().to_string();
        assert!(refused.contains("signal") && refused.contains("rtt"), "{refused}");
        let unknown = on_rtt(ControllerChoice::named("ledbad")).unwrap_err().to_string();
        assert!(unknown.contains("ledbat"), "{unknown}");
    }

    /// Writes and reads over the loopback, over IPv4 and IPv6: what arrives is what was sent, and both ends know how they stand.
    #[tokio::test]
    async fn what_is_sent_arrives_in_both_directions() {
        let yielding = match Yielding::new(ControllerChoice::named("ledbat++")) {
            Ok(yielding) => yielding,
            Err(YieldingError::System(error)) => return println!("SKIPPED: {error}"),
            Err(other) => panic!("{other}"),
        };
        let content: Vec<u8> =
            (0..3_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for place in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(place).await else { continue };
            let calling = TcpStream::connect(listener.local_addr().unwrap());
            let (called, accepted) = tokio::join!(calling, listener.accept());
            let (one, other) = (yielding.over(called.unwrap()), yielding.over(accepted.unwrap().0));
            let (mut reads, mut writes) = tokio::io::split(one);
            let (mut reads_too, mut answers) = tokio::io::split(other);
            let (mut came, mut back) = (Vec::new(), Vec::new());
            let (first, second, third, fourth) = tokio::join!(
                async { writes.write_all(&content).await.and(writes.shutdown().await) },
                reads_too.read_to_end(&mut came),
                async { answers.write_all(&content[1..]).await.and(answers.shutdown().await) },
                reads.read_to_end(&mut back),
            );
            assert!(first.and(third).is_ok() && second.is_ok() && fourth.is_ok());
            assert!(came == content && back == content[1..]);
            let known = reads.unsplit(writes).snapshot().expect("the system was asked");
            assert!(known.cwnd_bytes > 0.0);
        }
    }

    /// A connection that has written, its peer, and who waited for that one.
    async fn written(
        calling: TcpSocket,
        waiting: TcpSocket,
        octets: usize,
    ) -> Option<(YieldingTcp, TcpStream, TcpListener)> {
        let Ok(yielding) = Yielding::new(ControllerChoice::named("ledbat++")) else { return None };
        for socket in [&calling, &waiting] {
            // Segments as short as on a real way.
            nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::TcpMaxSeg, &1_000).unwrap();
        }
        waiting.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let waiting = waiting.listen(1 << 20).unwrap();
        let (called, accepted) =
            tokio::join!(calling.connect(waiting.local_addr().unwrap()), waiting.accept());
        let mut writes = yielding.over(accepted.unwrap().0);
        writes.write_all(&vec![0; octets]).await.unwrap();
        Some((writes, called.unwrap(), waiting))
    }

    #[tokio::test]
    async fn one_that_is_bound_to_a_device_is_found() {
        let (calling, waiting) = (TcpSocket::new_v4().unwrap(), TcpSocket::new_v4().unwrap());
        if let Err(error) = waiting.bind_device(Some(b"lo")) {
            return println!("SKIPPED: {error}");
        }
        let Some((writes, _peer, _waiting)) = written(calling, waiting, 100).await else { return };
        assert!(writes.snapshot().is_some(), "the system's alone");
    }

    /// Where it was, the system finds who waits at the same port, and as much that waits there as may.
    #[tokio::test]
    async fn one_that_was_reset_is_not_taken_for_who_waits_there() {
        let (calling, waiting) = (TcpSocket::new_v4().unwrap(), TcpSocket::new_v4().unwrap());
        let Some((mut writes, peer, _waiting)) = written(calling, waiting, 1_500).await else { return };
        socket2::SockRef::from(&peer).set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop(peer);
        let writing = async { while writes.write(&[0; 1_500]).await.is_ok() {} };
        tokio::time::timeout(std::time::Duration::from_secs(20), writing).await.expect("it waits for ever");
    }
}
