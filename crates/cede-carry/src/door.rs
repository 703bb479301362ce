//! Where those who connect show their key before anybody else has to do with them.

use crate::error::{SealError, WireError};
use crate::key::Key;
use crate::line::Line;
use crate::seal;
use crate::stop::{Stop, Stopper};
use cede_real::UtpStream;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// So many may be about to show a key at one time. Each costs two messages' room and a connection, for 15 s at most.
const MAX_WAITING: usize = 128;
/// How long whoever was refused may take to hear of it.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Lets those in who have the key, or everybody where there is none.
///
/// Nobody is turned away because others stand about: where there are too many, the one goes who has waited longest among
/// those of the address that most of them come from. (Of IPv6 the first 64 bits are an address here: the rest is anybody's
/// choice.) Somebody who keeps the door busy from one address thereby gets in his own way alone.
#[derive(Debug, Default)]
pub struct Door {
    key: Option<Key>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// In the order in which they came.
    guests: Vec<Guest>,
    next: u64,
}

#[derive(Debug)]
struct Guest {
    number: u64,
    from: IpAddr,
    leave: Stopper,
}

/// A guest's place, given back when it is dropped.
struct Place<'a> {
    door: &'a Door,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.door.lock().guests.retain(|guest| guest.number != self.number);
    }
}

impl Door {
    /// For those who have this key, or for everybody.
    #[must_use]
    pub fn new(key: Option<Key>) -> Self {
        Self { key, waiting: Mutex::default() }
    }

    /// The key that is asked for.
    #[must_use]
    pub const fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until who has connected has shown the key. Where there is none, it is let in at once.
    ///
    /// # Errors
    /// Those of [`seal::answer`], and [`SealError::Displaced`].
    pub async fn admit(&self, mut stream: UtpStream) -> Result<Line, WireError> {
        let Some(key) = &self.key else { return Ok(Line::new(stream)) };
        let (_place, mut displaced) = self.enter(stream.peer_addr());
        let answered = tokio::select! {
            answered = seal::answer(&mut stream, key) => Some(answered),
            () = displaced.asked() => None,
        };
        match answered {
            Some(Ok(agreed)) => Ok(Line::sealed(agreed.seal(stream))),
            Some(Err(error)) => {
                part(&Line::new(stream), displaced).await;
                Err(error)
            }
            None => {
                // Not even its end is to take up room.
                stream.abort();
                Err(SealError::Displaced.into())
            }
        }
    }

    /// Sends away all who have not shown the key yet: nobody waits for them any more.
    pub fn close(&self) {
        self.lock().guests.drain(..).for_each(|guest| guest.leave.ask());
    }

    fn enter(&self, from: SocketAddr) -> (Place<'_>, Stop) {
        let mut waiting = self.lock();
        if waiting.guests.len() >= MAX_WAITING {
            waiting.send_one_away();
        }
        let (number, leave) = (waiting.next, Stopper::new());
        let displaced = leave.stop();
        waiting.next += 1;
        waiting.guests.push(Guest { number, from: origin(from.ip()), leave });
        (Place { door: self, number }, displaced)
    }
}

/// Who was refused is to hear why. Until then it has its place at the door, which others may need: who acknowledges nothing would keep
/// a connection for a minute otherwise, however many of those it has.
async fn part(line: &Line, mut displaced: Stop) {
    let is_over = tokio::select! {
        over = timeout(LAST_WORD, line.ended()) => over.is_ok(),
        () = displaced.asked() => false,
    };
    if !is_over {
        line.abort();
    }
}

impl Waiting {
    /// The oldest of those of whom there are most.
    fn send_one_away(&mut self) {
        let alike = |from: IpAddr| self.guests.iter().filter(|guest| guest.from == from).count();
        let most = self.guests.iter().map(|guest| alike(guest.from)).max();
        let place = self.guests.iter().position(|guest| Some(alike(guest.from)) == most);
        if let Some(place) = place {
            self.guests.remove(place).leave.ask();
        }
    }
}

/// Whom an address belongs to.
fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter<'a>(door: &'a Door, from: &str) -> (Place<'a>, Stop) {
        door.enter(SocketAddr::new(from.parse().unwrap(), 1))
    }

    #[test]
    fn a_crowd_from_one_address_gets_in_its_own_way_alone() {
        let door = Door::new(None);
        let few = [enter(&door, "192.0.2.1"), enter(&door, "::ffff:192.0.2.1"), enter(&door, "2001:db8::1")];
        let crowd: Vec<_> = (0..3 * MAX_WAITING).map(|_| enter(&door, "198.51.100.7")).collect();
        assert!(few.iter().all(|(_, stop)| !stop.is_asked()));
        let gone = crowd.iter().take_while(|(_, stop)| stop.is_asked()).count();
        assert_eq!(gone, 3 * MAX_WAITING - (MAX_WAITING - few.len()));
        assert!(crowd[gone..].iter().all(|(_, stop)| !stop.is_asked()), "the oldest go first");
        assert_eq!(door.lock().guests.len(), MAX_WAITING);
        drop(crowd);
        assert_eq!(door.lock().guests.len(), few.len());
        door.close();
        assert!(few.iter().all(|(_, stop)| stop.is_asked()) && door.lock().guests.is_empty());
    }

    #[test]
    fn addresses_that_one_host_can_choose_among_are_one() {
        let of = |text: &str| origin(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.2"), of("192.0.2.1"));
    }
}
