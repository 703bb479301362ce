//! Opening connections and taking them up, over TCP and uTP on one port number, in the clear or enciphered.

use super::conn::{self, Shared};
use super::{Inner, State, canonical};
use crate::link::{Link, Stream};
use crate::listener::Listener;
use crate::reach::{self, Encryption, Reach};
use cede_bt::Transport;
use cede_bt::engine::{ConnId, neighbourhood};
use cede_bt::metainfo::Info;
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// Connections whose peers have not shown yet what they speak; the oldest makes room for one more.
const MAX_HANDSHAKING: usize = 100;
/// Those of one address, or of one network of 64 bits in IPv6; likewise.
const MAX_HANDSHAKING_OF_ONE: usize = 50;
/// After a failure to take up a connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Takes up connections until the session ends.
pub(super) async fn listen(inner: Rc<Inner>, listener: Rc<Listener>) {
    let tcp = async {
        let Some(tcp) = &listener.tcp else { return std::future::pending().await };
        loop {
            match tcp.accept().await {
                Ok((stream, address)) => admit(&inner, Stream::Tcp(stream), address),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    };
    let utp = async {
        let Some(utp) = &listener.utp else { return std::future::pending().await };
        while let Ok(stream) = utp.accept().await {
            let address = stream.peer_addr();
            admit(&inner, Stream::Utp(Box::new(stream)), address);
        }
    };
    tokio::join!(tcp, utp);
}

/// A peer has opened a connection.
fn admit(inner: &Rc<Inner>, stream: Stream, address: SocketAddr) {
    let mut state = inner.state.borrow_mut();
    let address = canonical(address);
    if state.is_banned(address) {
        return;
    }
    state.greetings.begin(neighbourhood(address.ip()), |number| {
        tokio::task::spawn_local(greet(inner.clone(), stream, address, number)).abort_handle()
    });
}

/// Callers that have not shown yet what they speak, the oldest first.
#[derive(Default)]
pub(crate) struct Greetings {
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

/// What callers may mean a torrent by: its info-hash, and for a hybrid one the beginning of its v2 hash.
fn hashes(info: &Info) -> ([u8; 20], Option<[u8; 20]>) {
    (info.info_hash(), info.hash_v2.and_then(|hash| hash.first_chunk().copied()))
}

async fn greet(inner: Rc<Inner>, stream: Stream, address: SocketAddr, number: u64) {
    let transport = stream.transport();
    reach::no_delay(&stream);
    let link = match inner.choices.encryption {
        Encryption::Off => Some(Link::plain(stream, Vec::new())),
        encryption => reach::answer(stream, hashes(&inner.info), encryption).await.ok(),
    };
    inner.state.borrow_mut().greetings.end(number);
    if let Some((shared, link)) = link.and_then(|link| take_up(&inner, link, address, transport)) {
        conn::run(inner.clone(), shared, link).await;
        // Over uTP a peer calls from the port that it is reached at.
        if transport == Transport::Tcp {
            inner.state.borrow_mut().engine.forget_caller(address);
        }
    }
}

/// Offers the engine a connection whose peer has shown what it speaks.
fn take_up(
    inner: &Rc<Inner>,
    link: Link,
    address: SocketAddr,
    transport: Transport,
) -> Option<(Rc<RefCell<Shared>>, Link)> {
    let mut state = inner.state.borrow_mut();
    if !state.engine.make_room(inner.now(), address.ip()) {
        return None;
    }
    // Whoever has made room is told to go.
    inner.pump(&mut state);
    let id = state.engine.accept(inner.now(), address, transport)?;
    let mut shared = Shared::new(id, address);
    shared.is_enciphered = link.is_enciphered();
    let shared = Inner::enter(&mut state, shared);
    inner.pump(&mut state);
    Some((shared, link))
}

/// The engine wants a connection.
pub(super) fn dial(
    inner: &Rc<Inner>,
    state: &mut State,
    id: ConnId,
    address: SocketAddr,
    transport: Transport,
) {
    let shared = Inner::enter(state, Shared::new(id, address));
    let task = tokio::task::spawn_local(open(inner.clone(), shared.clone(), transport));
    shared.borrow_mut().dial = Some(task.abort_handle());
}

async fn open(inner: Rc<Inner>, shared: Rc<RefCell<Shared>>, transport: Transport) {
    let (id, address) = {
        let shared = shared.borrow();
        (shared.id, shared.address)
    };
    let was_deaf = inner.state.borrow().deaf.contains(&address);
    let link = reach(&inner, address, transport, was_deaf).await;
    {
        let mut state = inner.state.borrow_mut();
        let now = inner.now();
        let is_known = Inner::conn(&state, id).is_some();
        if link.is_err() || !is_known {
            if let Some(place) = state.conns.get_mut(id.index()) {
                place.take_if(|conn| conn.borrow().id == id);
            }
            state.engine.closed(now, id);
            inner.pump(&mut state);
            return;
        }
        // From here on the connection is not opened any more: to close it lets it say its last words.
        shared.borrow_mut().dial = None;
        shared.borrow_mut().is_enciphered = link.as_ref().is_ok_and(Link::is_enciphered);
        state.engine.connected(now, id);
        inner.pump(&mut state);
    }
    if let Ok(link) = link {
        let is_plain = !link.is_enciphered();
        let was_heard = conn::run(inner.clone(), shared, link).await;
        if is_plain && !was_heard {
            call_enciphered(&inner, address, was_deaf);
        }
    }
}

/// A peer has hung up on the clear: where it may be called enciphered, and was not, it is called so at once.
fn call_enciphered(inner: &Rc<Inner>, address: SocketAddr, was_deaf: bool) {
    let mut state = inner.state.borrow_mut();
    let is_noted = state.note_deaf(address);
    let has_a_way = matches!(inner.choices.encryption, Encryption::Allow | Encryption::Prefer);
    if is_noted && !was_deaf && has_a_way {
        state.engine.call_again(inner.now(), address);
        inner.pump(&mut state);
    }
}

/// Opens a stream to a peer, as the torrent's choices and what is known of the peer want it.
async fn reach(inner: &Inner, address: SocketAddr, transport: Transport, is_deaf: bool) -> io::Result<Link> {
    let listener = inner.state.borrow().listener.clone();
    let (info_hash, encryption) = (inner.info.info_hash(), inner.choices.encryption);
    Reach { listener: listener.as_deref(), info_hash, encryption, is_deaf }.open(address, transport).await
}
