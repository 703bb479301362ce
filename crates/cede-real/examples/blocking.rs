//! uTP without tokio: two threads, each with a `std::net::UdpSocket` and a `cede_utp::Endpoint` driven by hand.
//!
//! `cargo run -p cede-real --example blocking [MEGABYTES]` sends a pattern over the loopback and checks every octet.
//! The loop of [`Host::turn`] is all that an endpoint needs: hand in what arrived and the time, send what it wants sent,
//! wait until its deadline. One datagram per system call, so this is simple rather than fast.

use cede_cc::{Params, registry};
use cede_units::{Duration, Stream};
use cede_utp::{Config, ConnectionError, Endpoint, Handle, Limits};
use cede_wire::{Payload, pattern_octet};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

fn main() -> io::Result<()> {
    let megabytes = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20_u64);
    let bytes = megabytes * 1_000_000;
    let receiver = Host::bind("127.0.0.1:0")?;
    let sender = Host::bind("127.0.0.1:0")?;
    let peer = receiver.socket.local_addr()?;
    let begun = Instant::now();
    let receiving = std::thread::spawn(move || receive(receiver));
    send(sender, peer, bytes)?;
    let heard = receiving.join().map_err(|_| io::Error::other("the receiver panicked"))??;
    assert_eq!(heard, bytes);
    println!("{megabytes} MB arrived whole in {:.2?}", begun.elapsed());
    Ok(())
}

/// A socket, a clock and an endpoint.
struct Host {
    socket: UdpSocket,
    clock: Instant,
    endpoint: Endpoint<SocketAddr>,
}

impl Host {
    fn bind(addr: &str) -> io::Result<Self> {
        let socket = UdpSocket::bind(addr)?;
        let seed = getrandom::u64().map_err(io::Error::other)?;
        let endpoint = Endpoint::new(Limits::default(), Stream::named(seed, "endpoint"));
        Ok(Self { socket, clock: Instant::now(), endpoint })
    }

    /// This host's own clock; a second ahead, so that no time is zero.
    fn now(&self) -> cede_units::Instant {
        cede_units::Instant::from_secs(1) + Duration::from_nanos(self.clock.elapsed().as_nanos() as u64)
    }

    /// Sends what the endpoint wants sent, waits for a datagram or the deadline, and hands in what came of it.
    fn turn(&mut self) -> io::Result<()> {
        self.transmit()?;
        self.wait()?;
        let now = self.now();
        self.endpoint.handle_timeout(now);
        while self.endpoint.poll_event().is_some() {}
        Ok(())
    }

    fn transmit(&mut self) -> io::Result<()> {
        let mut datagram = Vec::new();
        while let Some((peer, packet)) = self.endpoint.poll_transmit(self.now()) {
            datagram.clear();
            datagram.extend_from_slice(&packet.head);
            datagram.extend_from_slice(&packet.payload.to_vec());
            self.socket.send_to(&datagram, peer)?;
        }
        Ok(())
    }

    /// Receives one datagram, and those that have come with it, for as long as the deadline allows.
    fn wait(&mut self) -> io::Result<()> {
        let deadline = self.endpoint.poll_timeout().map(|at| at.since(self.now()).as_nanos());
        // No time at all would mean for ever.
        let pause = deadline.map(|ns| std::time::Duration::from_nanos(ns.max(1_000)));
        self.socket.set_nonblocking(false)?;
        self.socket.set_read_timeout(pause)?;
        let mut buffer = [0; 65_536];
        loop {
            match self.socket.recv_from(&mut buffer) {
                Ok((n, peer)) => {
                    let now = self.now();
                    self.endpoint.handle(now, peer, &buffer[..n], Payload::Empty);
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            self.socket.set_nonblocking(true)?;
        }
    }

    /// Takes turns until the connection has ended in good order and what it owes is sent.
    fn finish(&mut self, handle: Handle) -> io::Result<()> {
        while !self.endpoint.connection(handle).is_none_or(|connection| connection.is_closed()) {
            self.turn()?;
        }
        self.transmit()
    }
}

fn send(mut host: Host, peer: SocketAddr, bytes: u64) -> io::Result<()> {
    let config = Config::default();
    let ledbat = registry::build("ledbat", &Params::new(), &config.path()).map_err(io::Error::other)?;
    let handle =
        host.endpoint.connect(host.now(), peer, config, ledbat).ok_or_else(|| io::Error::other("no room"))?;
    let mut written = 0;
    while written < bytes {
        let Some(connection) = host.endpoint.connection_mut(handle) else { break };
        if let Some(error) = connection.error() {
            return Err(failed(error));
        }
        // A pattern's octets are a function of their place: nothing is held in memory for them.
        let len = (bytes - written).min(1 << 20) as u32;
        written += u64::from(connection.write(Payload::Pattern { start: written, len }).unwrap_or(0));
        host.turn()?;
    }
    if let Some(connection) = host.endpoint.connection_mut(handle) {
        connection.close();
    }
    host.finish(handle)?;
    if let Some(connection) = host.endpoint.connection(handle) {
        let s = connection.statistics();
        println!("{} packets, {} sent again, {} timeouts", s.packets_sent, s.retransmissions, s.timeouts);
    }
    Ok(())
}

fn receive(mut host: Host) -> io::Result<u64> {
    host.endpoint.listen(
        Config::default(),
        Box::new(|path| registry::build("ledbat", &Params::new(), path).expect("ledbat has defaults")),
    );
    let handle = loop {
        host.turn()?;
        if let Some(handle) = host.endpoint.accept() {
            break handle;
        }
    };
    let (mut heard, mut buffer) = (0, vec![0; 1 << 20]);
    while let Some(connection) = host.endpoint.connection_mut(handle) {
        let n = connection.read_slice(&mut buffer);
        let intact = buffer[..n].iter().zip(heard..).all(|(&octet, at)| octet == pattern_octet(at));
        assert!(intact, "octets differ after {heard}");
        heard += n as u64;
        if connection.is_at_end() {
            connection.close();
            break;
        }
        if let Some(error) = connection.error() {
            return Err(failed(error));
        }
        host.turn()?;
    }
    host.finish(handle)?;
    Ok(heard)
}

fn failed(error: ConnectionError) -> io::Error {
    io::Error::other(error)
}
