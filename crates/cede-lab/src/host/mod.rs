//! A host of the laboratory: sockets of uTP and TCP, with an application behind each that sends a pattern or checks it.
//!
//! [`Socket`] is one end of a flow with its application; its transport, uTP or TCP, is the room behind it.

mod socket;
mod transport;

pub use socket::Socket;
pub use transport::SocketSetup;
pub(crate) use transport::{IPV4_BYTES, UTP_OVERHEAD_BYTES, wrap};

use cede_net::{Host, Input, Output};
use cede_units::{Duration, Instant};

/// A host: its sockets, by port.
#[derive(Default)]
pub struct LabHost {
    sockets: Vec<Socket>,
    deadlines: Vec<Instant>,
    /// What the host's clock showed when the world began; sockets count from there.
    origin: Instant,
}

impl LabHost {
    /// A host with these sockets.
    #[must_use]
    pub fn new(mut sockets: Vec<Socket>) -> Self {
        sockets.sort_by_key(|socket| socket.port());
        Self { deadlines: vec![Instant::NEVER; sockets.len()], sockets, origin: Instant::ZERO }
    }

    /// The socket at a port.
    #[must_use]
    pub fn socket(&self, port: u16) -> Option<&Socket> {
        self.place(port).map(|index| &self.sockets[index])
    }

    /// What the host's clock showed when the world began.
    #[must_use]
    pub const fn origin(&self) -> Instant {
        self.origin
    }

    fn place(&self, port: u16) -> Option<usize> {
        match &self.sockets[..] {
            [only] => (only.port() == port).then_some(0),
            sockets => sockets.binary_search_by_key(&port, |socket| socket.port()).ok(),
        }
    }

    fn begin(&mut self, now: Instant) {
        self.origin = now;
        let since_start = Duration::from_nanos(now.as_nanos());
        self.sockets.iter_mut().for_each(|socket| socket.delay(since_start));
    }
}

impl Host for LabHost {
    fn handle(&mut self, now: Instant, input: Input, output: &mut Output) {
        match input {
            Input::Datagram(datagram) => {
                if let Some(index) = self.place(datagram.destination.port) {
                    self.deadlines[index] = self.sockets[index].handle(now, Some(datagram), output);
                }
            }
            Input::Start => {
                self.begin(now);
                for (socket, deadline) in self.sockets.iter_mut().zip(&mut self.deadlines) {
                    *deadline = socket.handle(now, None, output);
                }
            }
            Input::Timeout => {
                for (socket, deadline) in self.sockets.iter_mut().zip(&mut self.deadlines) {
                    if *deadline <= now {
                        *deadline = socket.handle(now, None, output);
                    }
                }
            }
        }
        output.wake_at = self.deadlines.iter().copied().min().filter(|&at| at != Instant::NEVER);
    }
}
