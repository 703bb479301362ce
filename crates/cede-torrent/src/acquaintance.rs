//! Asking trackers over UDP, which give a connection id first: one that is good for a minute, so that who is asked again within
//! that answers at once.
//!
//! Source: BEP 15. An id is kept with the socket that it was given to, as a tracker may make it of the asker's port, too, and
//! nobody else uses either meanwhile. How it was validated: against the tracker of this crate and made-up ones in the
//! tests, and opentracker.

use crate::origin::Origin;
use cede_bt::tracker::http::refusal;
use cede_bt::tracker::udp::{Asked, CONNECTION_USED_S, Request, Response};
use cede_bt::tracker::{Announce, Answer};
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout};

/// BEP 15 waits 15 s and doubles that eight times; a person waits for two.
const UDP_TRIES: u32 = 2;
const PATIENCE: Duration = Duration::from_secs(15);
/// Who has answered within the last minute answers sooner, or has forgotten us.
const PATIENCE_WITH_KNOWN: Duration = Duration::from_secs(3);
/// Sockets that are kept open.
const MAX_KEPT: usize = 16;

/// Trackers that have given us a connection id of late.
#[derive(Clone, Debug, Default)]
pub struct Acquaintances(Rc<RefCell<Vec<Acquaintance>>>);

#[derive(Debug)]
struct Acquaintance {
    way: (Origin, SocketAddr),
    socket: UdpSocket,
    connection: u64,
    since: Instant,
}

impl Acquaintances {
    /// Asks the tracker at an address from an origin.
    pub(crate) async fn ask(
        &self,
        way: (Origin, SocketAddr),
        announce: &Announce,
        path: &str,
    ) -> io::Result<Answer> {
        if let Some(known) = self.take(way) {
            // One that refuses may have begun anew, and not know its ids any more.
            if let Ok(Ok(answer)) = timeout(PATIENCE_WITH_KNOWN, known.announce(announce, path)).await {
                self.keep(known);
                return Ok(answer);
            }
        }
        for attempt in 0..UDP_TRIES {
            let exchange = async {
                let known = Acquaintance::make(way).await?;
                let answer = known.announce(announce, path).await?;
                io::Result::Ok((known, answer))
            };
            if let Ok(outcome) = timeout(PATIENCE * (1 << attempt), exchange).await {
                let (known, answer) = outcome?;
                self.keep(known);
                return Ok(answer);
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "the tracker does not answer"))
    }

    fn take(&self, way: (Origin, SocketAddr)) -> Option<Acquaintance> {
        let mut kept = self.0.borrow_mut();
        kept.retain(Acquaintance::is_good);
        let at = kept.iter().position(|known| known.way == way)?;
        Some(kept.swap_remove(at))
    }

    fn keep(&self, known: Acquaintance) {
        let mut kept = self.0.borrow_mut();
        kept.retain(Acquaintance::is_good);
        if kept.len() < MAX_KEPT {
            kept.push(known);
        }
    }
}

impl Acquaintance {
    /// Asks for a connection id.
    async fn make(way: (Origin, SocketAddr)) -> io::Result<Self> {
        let (origin, address) = way;
        let socket = UdpSocket::bind(origin.towards(address)?).await?;
        socket.connect(address).await?;
        let known = Self { way, socket, connection: 0, since: Instant::now() };
        match known.call(Request::Connect, "").await? {
            Response::Connect(connection) => Ok(Self { connection, since: Instant::now(), ..known }),
            _ => Err(something_else()),
        }
    }

    fn is_good(&self) -> bool {
        self.since.elapsed() < Duration::from_secs(CONNECTION_USED_S.into())
    }

    async fn announce(&self, announce: &Announce, path: &str) -> io::Result<Answer> {
        match self.call(Request::Announce(announce.clone()), path).await? {
            Response::Announce(answer) => Ok(answer),
            _ => Err(something_else()),
        }
    }

    /// Asks, and waits for the answer to exactly that.
    async fn call(&self, request: Request, path: &str) -> io::Result<Response> {
        let transaction = getrandom::u32().map_err(io::Error::other)?;
        let asked = Asked { connection: self.connection, transaction, request };
        self.socket.send(&asked.encode_towards(path)).await?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let n = self.socket.recv(&mut buffer).await?;
            match Response::decode(&buffer[..n], self.way.1.is_ipv6()) {
                Ok((heard, Response::Error(why))) if heard == transaction => {
                    return Err(io::Error::other(refusal(&why, None)));
                }
                Ok((heard, response)) if heard == transaction => return Ok(response),
                _ => {}
            }
        }
    }
}

fn something_else() -> io::Error {
    io::Error::other("the tracker answers something else than was asked")
}
