//! Callers of one port: which of the torrents that are to be had there they mean.
//!
//! Whoever calls says first which torrent it means, in the clear or enciphered, and has [`PATIENCE`] for it. Nobody fills the
//! room for that: [`MAX_HANDSHAKING`] callers at most, half of them from one address, and the oldest makes room.

use crate::agree::{Encryption, PATIENCE, converse, secrets};
use crate::link::{Link, Stream};
use crate::origin::canonical;
use cede_bt::engine::neighbourhood;
use cede_bt::mse::{Accept, Handshake};
use cede_bt::wire::{HANDSHAKE_HEAD_BYTES, Handshake as Greeting};
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// Connections whose peers have not said yet which torrent they mean; the oldest makes room for one more.
const MAX_HANDSHAKING: usize = 100;
/// Those of one address, or of one network of 64 bits in IPv6; likewise.
const MAX_HANDSHAKING_OF_ONE: usize = 50;

/// A torrent that may be called.
pub(crate) trait Callee {
    /// Whether connections are enciphered.
    fn encryption(&self) -> Encryption;
    /// Nothing is heard from this address.
    fn is_banned(&self, address: SocketAddr) -> bool;
    /// A caller means this torrent. Done when the connection is over.
    fn receive(self: Rc<Self>, link: Link, address: SocketAddr) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// What is to be had at a port, and who is at the door.
#[derive(Clone, Default)]
pub(crate) struct Reception {
    rooms: Rc<RefCell<Vec<Room>>>,
    greetings: Rc<RefCell<Greetings>>,
}

struct Room {
    /// What callers may mean it by.
    names: Vec<[u8; 20]>,
    callee: Rc<dyn Callee>,
}

/// Callers are led to a torrent as long as this is there.
pub(crate) struct Door {
    reception: Reception,
    callee: Rc<dyn Callee>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.reception.rooms.borrow_mut().retain(|room| !Rc::ptr_eq(&room.callee, &self.callee));
    }
}

impl Reception {
    /// From now on callers may mean this torrent, by one of its names.
    pub fn open(&self, names: Vec<[u8; 20]>, callee: Rc<dyn Callee>) -> Door {
        self.rooms.borrow_mut().push(Room { names, callee: callee.clone() });
        Door { reception: self.clone(), callee }
    }

    /// A peer has opened a connection. It is turned away where nothing is to be had, or not for it.
    pub fn admit(&self, stream: Stream, address: SocketAddr) {
        let address = canonical(address);
        if self.rooms.borrow().iter().all(|room| room.callee.is_banned(address)) {
            return;
        }
        self.greetings.borrow_mut().begin(neighbourhood(address.ip()), |number| {
            tokio::task::spawn_local(self.clone().greet(stream, address, number)).abort_handle()
        });
    }

    async fn greet(self, stream: Stream, address: SocketAddr, number: u64) {
        stream.no_delay();
        let told = listen(stream, self.terms()).await;
        self.greetings.borrow_mut().end(number);
        let Ok((name, link)) = told else { return };
        if let Some(callee) = self.callee(&name, &link, address) {
            callee.receive(link, address).await;
        }
    }

    /// Who is meant, if a connection of this kind is to be taken up.
    fn callee(&self, name: &[u8; 20], link: &Link, address: SocketAddr) -> Option<Rc<dyn Callee>> {
        let rooms = self.rooms.borrow();
        let callee = &rooms.iter().find(|room| room.names.contains(name))?.callee;
        let is_wanted = match callee.encryption() {
            Encryption::Off => !link.is_enciphered(),
            Encryption::Require => link.is_enciphered(),
            Encryption::Allow | Encryption::Prefer => true,
        };
        (is_wanted && !callee.is_banned(address)).then(|| callee.clone())
    }

    fn terms(&self) -> Terms {
        let rooms = self.rooms.borrow();
        let ciphered = || rooms.iter().filter(|room| room.callee.encryption() != Encryption::Off);
        let all = |encryption| ciphered().all(|room| room.callee.encryption() == encryption);
        Terms {
            ciphered: ciphered().flat_map(|room| room.names.clone()).collect(),
            accept: if all(Encryption::Require) { Accept::RC4 } else { Accept::EITHER },
            prefers_clear: all(Encryption::Allow),
        }
    }
}

/// How callers are answered.
struct Terms {
    /// Torrents of which connections may be enciphered.
    ciphered: Vec<[u8; 20]>,
    accept: Accept,
    /// What follows the handshake of the encryption is in the clear where the caller offers that.
    prefers_clear: bool,
}

/// Hears which torrent a caller means.
async fn listen(stream: Stream, terms: Terms) -> io::Result<([u8; 20], Link)> {
    if terms.ciphered.is_empty() {
        return in_the_clear(Link::plain(stream, Vec::new()), Vec::new()).await;
    }
    let handshake =
        Handshake::answer(terms.ciphered, terms.accept, secrets()?).in_the_clear_if(terms.prefers_clear);
    let (stream, outcome) = converse(stream, handshake).await?;
    match outcome.info_hash {
        Some(name) => Ok((name, Link::enciphered(stream, outcome.ciphers, outcome.early))),
        None => in_the_clear(Link::plain(stream, Vec::new()), outcome.early).await,
    }
}

/// The same of one that begins in the clear, of which some octets have been read already.
async fn in_the_clear(mut link: Link, mut head: Vec<u8>) -> io::Result<([u8; 20], Link)> {
    let hearing = async {
        loop {
            if let Some(name) = Greeting::torrent_of(&head).map_err(io::Error::other)? {
                return Ok((name, Link::plain(link.stream, head)));
            }
            let mut buffer = [0; HANDSHAKE_HEAD_BYTES];
            let n = link.receive(&mut buffer).await?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            head.extend_from_slice(&buffer[..n]);
        }
    };
    timeout(PATIENCE, hearing).await?
}

/// Callers that have not said yet what they want, the oldest first.
#[derive(Default)]
struct Greetings {
    list: Vec<(u64, IpAddr, AbortHandle)>,
    next: u64,
}

impl Greetings {
    /// One more, by its number. Whoever has taken longest to say something makes room, of the same host where that has too many.
    fn begin(&mut self, host: IpAddr, greet: impl FnOnce(u64) -> AbortHandle) {
        let same = |(_, other, _): &(u64, IpAddr, AbortHandle)| *other == host;
        let oldest = if self.list.iter().filter(|one| same(one)).count() >= MAX_HANDSHAKING_OF_ONE {
            self.list.iter().position(same)
        } else {
            (self.list.len() >= MAX_HANDSHAKING).then_some(0)
        };
        if let Some(oldest) = oldest {
            self.list.remove(oldest).2.abort();
        }
        self.next += 1;
        self.list.push((self.next, host, greet(self.next)));
    }

    fn end(&mut self, number: u64) {
        self.list.retain(|(other, ..)| *other != number);
    }
}
