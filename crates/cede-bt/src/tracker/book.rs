//! Who is where: the book that a tracker keeps of its torrents and their peers.
//!
//! Source: BEP 3, BEP 7 and the sheet of trackers in use. An announce is answered with random other peers of the torrent,
//! 50 unless the asker says otherwise. A peer that announces itself over IPv4 and over IPv6 is one peer at two addresses, until
//! it stops. Nobody can fill the book alone: an address (of IPv6 its network of 64 bits, which one host may have for itself)
//! is given a place only as long as it has fewer than are free ([`super::share`]). What it leaves out: statistics of traffic, which peers could forge anyway.
//! How it was validated: the tests below, and swarms of libtorrent, aria2 and Transmission that find each other by it.

use super::share::{Holder, NoPlace, Places};
use super::{Announce, Answer, Event, Tally};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use cede_units::{Duration, Instant, Stream};
use core::net::{IpAddr, SocketAddr};

/// What a tracker allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// What it tells peers to wait between two announces.
    pub interval: Duration,
    /// Peers in an answer where none are asked for.
    pub default_peers: usize,
    /// Peers in an answer at most.
    pub most_peers: usize,
    /// Torrents in the book; others are refused.
    pub torrents: usize,
    /// Peers of a torrent in the book; the one that was silent longest makes room.
    pub peers: usize,
    /// Peers at one address, of one torrent.
    pub peers_per_address: usize,
    /// Peers of all torrents in the book; others are refused.
    pub all_peers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(30 * 60),
            default_peers: 50,
            most_peers: 200,
            torrents: 100_000,
            peers: 5_000,
            peers_per_address: 400,
            all_peers: 500_000,
        }
    }
}

impl Limits {
    /// Who has been silent for longer is forgotten.
    fn patience(&self) -> Duration {
        (self.interval + self.interval).max(LEAST_PATIENCE)
    }
}

/// Why an announce was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There are too many torrents, or too many peers.
    Full,
    /// The address has as many places in the book as are left for all others.
    Share,
    /// The torrent is none of those that this tracker is for.
    Unknown,
    /// There are too many peers at the address.
    Crowd,
    /// Nobody can be told where the peer is.
    NoPort,
}

impl Refusal {
    /// What to tell the peer.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Full => "this tracker has as many torrents and peers as it takes",
            Self::Share => "this address has as many torrents and peers here as are left for all others",
            Self::Unknown => "this tracker is not for that torrent",
            Self::Crowd => "too many peers at this address",
            Self::NoPort => "no peer takes connections at port 0",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    /// By IPv4 and by IPv6.
    places: [Option<Place>; 2],
    is_seeder: bool,
    key: u32,
    /// Who brought it into the book.
    holder: Holder,
}

/// Where a peer is, and when it last said so.
#[derive(Clone, Copy, Debug)]
struct Place {
    address: SocketAddr,
    heard: Instant,
}

impl Peer {
    fn places(&self) -> impl Iterator<Item = Place> {
        self.places.into_iter().flatten()
    }

    fn is_at(&self, ip: IpAddr) -> bool {
        self.places().any(|place| place.address.ip() == ip)
    }

    fn heard(&self) -> Option<Instant> {
        self.places().map(|place| place.heard).max()
    }
}

#[derive(Clone, Debug)]
struct Torrent {
    peers: BTreeMap<[u8; 20], Peer>,
    completed: u32,
    /// Who brought it into the book.
    holder: Holder,
}

/// A peer that has been silent for less is never forgotten, however short the interval is: libtorrent, and whoever is built on it,
/// announces itself every five minutes at most, whatever a tracker says. Two of these, and a minute for what is late.
const LEAST_PATIENCE: Duration = Duration::from_secs(11 * 60);

/// Where a full book is looked through for what is over, so often at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The book.
#[derive(Clone, Debug)]
pub struct Book {
    limits: Limits,
    torrents: BTreeMap<[u8; 20], Torrent>,
    torrent_places: Places,
    peer_places: Places,
    /// When what is over was struck out last.
    looked: Option<Instant>,
    /// Only these, where there are any.
    allowed: Vec<[u8; 20]>,
    random: Stream,
}

impl Book {
    /// An empty book.
    #[must_use]
    pub const fn new(limits: Limits, random: Stream) -> Self {
        Self {
            limits,
            torrents: BTreeMap::new(),
            torrent_places: Places::new(),
            peer_places: Places::new(),
            looked: None,
            allowed: Vec::new(),
            random,
        }
    }

    /// The book is for these torrents alone.
    #[must_use]
    pub fn only(mut self, allowed: Vec<[u8; 20]>) -> Self {
        self.allowed = allowed;
        self
    }

    /// Enters an announce that came from an address, and answers it.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn announce(&mut self, now: Instant, from: IpAddr, announce: &Announce) -> Result<Answer, Refusal> {
        self.announce_among(now, from, announce, |_| true)
    }

    /// The same where the asker can only be told of some addresses.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn announce_among(
        &mut self,
        now: Instant,
        from: IpAddr,
        announce: &Announce,
        can_be_told: impl Fn(IpAddr) -> bool,
    ) -> Result<Answer, Refusal> {
        let holder = Holder::of(from);
        self.admit(now, holder, announce)?;
        let limits = self.limits;
        let torrent = self.torrents.entry(announce.info_hash).or_insert_with(|| {
            self.torrent_places.take(holder);
            Torrent { peers: BTreeMap::new(), completed: 0, holder }
        });
        torrent.forget(now, limits.patience(), &mut self.peer_places);
        torrent.enter(now, from, announce, limits, &mut self.peer_places)?;
        let wanted = announce.wanted.map_or(limits.default_peers, |wanted| wanted as usize);
        let wanted = if announce.event == Event::Stopped { 0 } else { wanted.min(limits.most_peers) };
        let others = torrent.others(announce, wanted, can_be_told, &mut self.random);
        let (peers, ids) = others.into_iter().unzip();
        let tally = torrent.tally();
        Ok(Answer {
            interval_s: u32::try_from(limits.interval.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX),
            seeders: Some(tally.seeders),
            leechers: Some(tally.leechers),
            peers,
            ids,
            ..Answer::default()
        })
    }

    /// Whether the book is for such an announce, and has room for its torrent.
    fn admit(&mut self, now: Instant, holder: Holder, announce: &Announce) -> Result<(), Refusal> {
        if announce.port == 0 {
            return Err(Refusal::NoPort);
        }
        let hash = &announce.info_hash;
        if !self.allowed.is_empty() && !self.allowed.contains(hash) {
            return Err(Refusal::Unknown);
        }
        let places = |book: &Self| match book.torrents.get(hash) {
            Some(torrent) if torrent.peers.contains_key(&announce.peer_id) => Ok(()),
            Some(_) => book.peer_places.check(holder, book.limits.all_peers),
            None => book
                .torrent_places
                .check(holder, book.limits.torrents)
                .and_then(|()| book.peer_places.check(holder, book.limits.all_peers)),
        };
        let is_worth_a_look = self.looked.is_none_or(|looked| now.since(looked) >= LOOK_EVERY);
        if places(self).is_err() && is_worth_a_look {
            self.expire(now);
        }
        places(self).map_err(|why| match why {
            NoPlace::Full => Refusal::Full,
            NoPlace::Share => Refusal::Share,
        })
    }

    /// What there is of a torrent.
    #[must_use]
    pub fn tally(&self, hash: &[u8; 20]) -> Tally {
        self.torrents.get(hash).map(Torrent::tally).unwrap_or_default()
    }

    /// Torrents in the book.
    pub fn torrents(&self) -> impl Iterator<Item = &[u8; 20]> {
        self.torrents.keys()
    }

    /// Strikes out peers that were silent for two intervals and eleven minutes, and torrents without peers.
    pub fn expire(&mut self, now: Instant) {
        let Self { limits, torrents, torrent_places, peer_places, .. } = self;
        torrents.retain(|_, torrent| {
            torrent.forget(now, limits.patience(), peer_places);
            if torrent.peers.is_empty() {
                torrent_places.give_back(torrent.holder);
            }
            !torrent.peers.is_empty()
        });
        self.looked = Some(now);
    }
}

impl Torrent {
    fn forget(&mut self, now: Instant, patience: Duration, peer_places: &mut Places) {
        self.peers.retain(|_, peer| {
            for place in &mut peer.places {
                place.take_if(|place| now.since(place.heard) > patience);
            }
            let is_kept = peer.places().next().is_some();
            if !is_kept {
                peer_places.give_back(peer.holder);
            }
            is_kept
        });
    }

    fn remove(&mut self, id: &[u8; 20], peer_places: &mut Places) {
        if let Some(peer) = self.peers.remove(id) {
            peer_places.give_back(peer.holder);
        }
    }

    fn enter(
        &mut self,
        now: Instant,
        from: IpAddr,
        announce: &Announce,
        limits: Limits,
        peer_places: &mut Places,
    ) -> Result<(), Refusal> {
        let known = self.peers.get(&announce.peer_id).copied();
        // Nobody moves or removes another's entry: the same address, or the same key, tells that it is the same peer.
        if known.is_some_and(|peer| !peer.is_at(from) && peer.key != announce.key) {
            return Ok(());
        }
        if announce.event == Event::Stopped {
            self.remove(&announce.peer_id, peer_places);
            return Ok(());
        }
        let address = SocketAddr::new(from, announce.port);
        if !known.is_some_and(|peer| peer.places().any(|place| place.address == address)) {
            self.vacate(address, peer_places);
        }
        let holder = known.map_or(Holder::of(from), |peer| peer.holder);
        if known.is_none() {
            self.make_room(from, limits, peer_places)?;
            peer_places.take(holder);
        }
        let is_seeder = announce.left == Some(0);
        if announce.event == Event::Completed && known.is_none_or(|peer| !peer.is_seeder) {
            self.completed = self.completed.saturating_add(1);
        }
        let mut places = known.map_or([None; 2], |peer| peer.places);
        places[usize::from(from.is_ipv6())] = Some(Place { address, heard: now });
        self.peers.insert(announce.peer_id, Peer { places, is_seeder, key: announce.key, holder });
        Ok(())
    }

    /// Somebody else is there now, such as the same peer begun anew: whoever was is told of no more.
    fn vacate(&mut self, address: SocketAddr, peer_places: &mut Places) {
        let is_there = |peer: &Peer| peer.places().any(|place| place.address == address);
        let Some((&id, peer)) = self.peers.iter_mut().find(|(_, peer)| is_there(peer)) else { return };
        for place in &mut peer.places {
            place.take_if(|place| place.address == address);
        }
        if peer.places().next().is_none() {
            self.remove(&id, peer_places);
        }
    }

    fn make_room(&mut self, from: IpAddr, limits: Limits, peer_places: &mut Places) -> Result<(), Refusal> {
        if self.peers.values().filter(|peer| peer.is_at(from)).count() >= limits.peers_per_address {
            return Err(Refusal::Crowd);
        }
        if self.peers.len() >= limits.peers {
            let silent = self.peers.iter().min_by_key(|(_, peer)| peer.heard()).map(|(id, _)| *id);
            silent.inspect(|id| self.remove(id, peer_places));
        }
        Ok(())
    }

    /// Random peers other than the asker; a seed is told of no seeds. Whoever has only begun may not be one: aria2 says that
    /// nothing is left as long as all it has is a magnet link.
    fn others(
        &self,
        announce: &Announce,
        wanted: usize,
        can_be_told: impl Fn(IpAddr) -> bool,
        random: &mut Stream,
    ) -> Vec<(SocketAddr, [u8; 20])> {
        let is_seed = announce.left == Some(0) && announce.event != Event::Started;
        let is_useful = |peer: &Peer| !(is_seed && peer.is_seeder);
        let others = self.peers.iter().filter(|(id, peer)| **id != announce.peer_id && is_useful(peer));
        let addresses = others.flat_map(|(id, peer)| peer.places().map(|place| (place.address, *id)));
        let mut peers: Vec<_> = addresses.filter(|(address, _)| can_be_told(address.ip())).collect();
        let count = wanted.min(peers.len());
        for at in 0..count {
            let other = at + random.below((peers.len() - at) as u64) as usize;
            peers.swap(at, other);
        }
        peers.truncate(count);
        peers
    }

    fn tally(&self) -> Tally {
        let seeders = self.peers.values().filter(|peer| peer.is_seeder).count() as u32;
        Tally { seeders, completed: self.completed, leechers: self.peers.len() as u32 - seeders }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn announce(id: u8, left: u64, event: Event) -> Announce {
        Announce {
            info_hash: [7; 20],
            peer_id: [id; 20],
            port: 1000 + u16::from(id),
            uploaded: 0,
            downloaded: 0,
            left: Some(left),
            event,
            key: id.into(),
            wanted: None,
        }
    }

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn book(limits: Limits) -> Book {
        Book::new(limits, Stream::named(1, "tracker"))
    }

    const NOW: Instant = Instant::ZERO;

    #[test]
    fn peers_hear_of_each_other_and_not_of_themselves() {
        let mut book = book(Limits::default());
        let first = book.announce(NOW, ip(1), &announce(1, 5, Event::Started)).unwrap();
        assert!(first.peers.is_empty());
        let second = book.announce(NOW, ip(2), &announce(2, 0, Event::Started)).unwrap();
        assert_eq!(second.peers, ["192.0.2.1:1001".parse().unwrap()]);
        assert_eq!((second.seeders, second.leechers, second.interval_s), (Some(1), Some(1), 1800));
        let third = book.announce(NOW, ip(3), &announce(3, 0, Event::Started)).unwrap();
        assert_eq!(third.peers.len(), 2, "it may have a magnet link alone");
        let third = book.announce(NOW, ip(3), &announce(3, 0, Event::Interval)).unwrap();
        assert_eq!(third.peers.len(), 1, "a seed is told of no seeds");
        let stopped = book.announce(NOW, ip(1), &announce(1, 0, Event::Stopped)).unwrap();
        assert!(stopped.peers.is_empty());
        assert_eq!(book.tally(&[7; 20]), Tally { seeders: 2, completed: 0, leechers: 0 });
    }

    /// Whoever begins anew has another name and is where it was: others are told of it once, and it is no crowd by itself.
    #[test]
    fn at_an_address_is_who_announced_there_last() {
        let mut book = book(Limits { peers_per_address: 2, ..Limits::default() });
        let six: IpAddr = "2001:db8::1".parse().unwrap();
        book.announce(NOW, six, &Announce { port: 6881, ..announce(1, 5, Event::Started) }).unwrap();
        for id in 1..=5 {
            book.announce(NOW, ip(1), &Announce { port: 6881, ..announce(id, 5, Event::Started) }).unwrap();
        }
        book.announce(NOW, ip(1), &announce(6, 5, Event::Started)).unwrap();
        let mut told = book.announce(NOW, ip(9), &announce(9, 5, Event::Started)).unwrap().peers;
        told.sort_unstable();
        let places =
            ["192.0.2.1:1006", "192.0.2.1:6881", "[2001:db8::1]:6881"].map(|text| text.parse().unwrap());
        assert_eq!(told, places);
        assert_eq!(book.tally(&[7; 20]).leechers, 4);
    }

    #[test]
    fn answers_are_random_and_as_long_as_asked() {
        let mut book = book(Limits::default());
        for id in 0..100 {
            book.announce(NOW, ip(id), &announce(id, 1, Event::Started)).unwrap();
        }
        let asker = announce(200, 1, Event::Interval);
        let ask = |book: &mut Book, wanted| {
            let mut peers = book.announce(NOW, ip(200), &Announce { wanted, ..asker.clone() }).unwrap().peers;
            peers.sort_unstable();
            peers.dedup();
            peers
        };
        let (one, other) = (ask(&mut book, None), ask(&mut book, None));
        assert_eq!((one.len(), other.len()), (50, 50));
        assert_ne!(one, other);
        assert_eq!((ask(&mut book, Some(3)).len(), ask(&mut book, Some(1000)).len()), (3, 100));
    }

    #[test]
    fn the_silent_are_forgotten_and_completions_counted_once() {
        let mut book = book(Limits::default());
        book.announce(NOW, ip(1), &announce(1, 5, Event::Started)).unwrap();
        book.announce(NOW, ip(1), &announce(1, 0, Event::Completed)).unwrap();
        book.announce(NOW, ip(1), &announce(1, 0, Event::Completed)).unwrap();
        assert_eq!(book.tally(&[7; 20]).completed, 1);
        book.expire(NOW + Duration::from_secs(3601));
        assert_eq!(book.torrents().count(), 0);
    }

    /// libtorrent takes no interval below five minutes, and misses an announce now and then.
    #[test]
    fn a_short_interval_does_not_have_those_forgotten_who_keep_to_their_own() {
        let mut book = book(Limits { interval: Duration::from_secs(5), ..Limits::default() });
        book.announce(NOW, ip(1), &announce(1, 0, Event::Started)).unwrap();
        let told = |book: &mut Book, after| {
            let now = NOW + Duration::from_secs(after);
            book.expire(now);
            let answer = book.announce(now, ip(2), &announce(2, 5, Event::Interval)).unwrap();
            (answer.interval_s, answer.peers.len())
        };
        assert_eq!(
            [301, 601, 660, 661].map(|after| told(&mut book, after)),
            [(5, 1), (5, 1), (5, 1), (5, 0)]
        );
    }

    #[test]
    fn a_peer_of_both_families_is_one_at_two_addresses() {
        let (mut book, v6) = (book(Limits::default()), IpAddr::from([0xfd78, 0, 0, 0, 0, 0, 0, 1]));
        let [here, there] = ["192.0.2.1:1001", "[fd78::1]:1001"].map(|text| text.parse().unwrap());
        let seed = announce(1, 0, Event::Started);
        book.announce(NOW, ip(1), &seed).unwrap();
        book.announce(NOW + Duration::from_secs(9), v6, &seed).unwrap();
        assert_eq!(book.tally(&[7; 20]).seeders, 1);
        let later = NOW + Duration::from_secs(3600);
        let asker = announce(2, 1, Event::Interval);
        let mut both = book.announce(later, ip(2), &asker).unwrap().peers;
        both.sort_unstable();
        assert_eq!(both, [here, there]);
        // Over UDP, one family has room for its own addresses alone.
        let told = |book: &mut Book, at| book.announce_among(at, ip(2), &asker, |ip| ip.is_ipv4()).unwrap();
        assert_eq!(told(&mut book, later).peers, [here]);
        // What is not said again is forgotten.
        assert_eq!(book.announce(later + Duration::from_secs(8), ip(2), &asker).unwrap().peers, [there]);
        let left = Announce { event: Event::Stopped, ..seed };
        book.announce(later, v6, &left).unwrap();
        assert_eq!(book.tally(&[7; 20]).seeders, 0);
    }

    #[test]
    fn peers_have_their_names_and_ports() {
        let mut book = book(Limits::default());
        for id in 1..4 {
            book.announce(NOW, ip(id), &announce(id, 1, Event::Started)).unwrap();
        }
        let answer = book.announce(NOW, ip(9), &announce(9, 1, Event::Started)).unwrap();
        let mut told: Vec<_> = answer.peers.iter().zip(&answer.ids).collect();
        told.sort_unstable();
        let wanted = [1, 2, 3].map(|id| (SocketAddr::new(ip(id), 1000 + u16::from(id)), [id; 20]));
        assert_eq!(told, wanted.each_ref().map(|(address, id)| (address, id)));
        let nowhere = Announce { port: 0, ..announce(5, 1, Event::Started) };
        assert_eq!(book.announce(NOW, ip(5), &nowhere), Err(Refusal::NoPort));
        assert_eq!(book.tally(&[7; 20]).leechers, 4);
    }

    #[test]
    fn nobody_fills_the_book_or_strikes_out_another() {
        let limits = Limits { torrents: 1, peers: 2, peers_per_address: 1, ..Limits::default() };
        let mut book = book(limits);
        book.announce(NOW, ip(1), &announce(1, 1, Event::Started)).unwrap();
        let crowd = book.announce(NOW, ip(1), &announce(2, 1, Event::Started));
        assert_eq!(crowd, Err(Refusal::Crowd));
        let other = Announce { info_hash: [8; 20], ..announce(1, 1, Event::Started) };
        assert_eq!(book.announce(NOW, ip(1), &other), Err(Refusal::Full));
        let forged = Announce { key: 99, ..announce(1, 1, Event::Stopped) };
        book.announce(NOW, ip(9), &forged).unwrap();
        assert_eq!(book.tally(&[7; 20]).leechers, 1);
        let later = NOW + Duration::from_secs(1);
        for (id, k) in [(2, 2), (3, 3)] {
            book.announce(later, ip(id), &announce(k, 1, Event::Started)).unwrap();
        }
        assert_eq!(book.tally(&[7; 20]).leechers, 2, "the most silent made room");
        let mut closed = Book::new(limits, Stream::named(1, "x")).only(vec![[9; 20]]);
        assert_eq!(closed.announce(NOW, ip(1), &announce(1, 1, Event::Started)), Err(Refusal::Unknown));
    }

    /// The `n`-th torrent or peer.
    fn numbered(n: u32) -> [u8; 20] {
        let mut octets = [0; 20];
        octets[..4].copy_from_slice(&n.to_be_bytes());
        octets
    }

    #[test]
    fn an_address_leaves_as_many_torrents_to_others_as_it_has() {
        let mut book = book(Limits { torrents: 100, ..Limits::default() });
        let about = |n| Announce { info_hash: numbered(n), ..announce(1, 1, Event::Started) };
        let taken = |book: &mut Book, from, torrents: core::ops::Range<u32>| {
            torrents.filter(|&n| book.announce(NOW, from, &about(n)).is_ok()).count()
        };
        assert_eq!(taken(&mut book, ip(1), 0..1_000), 50);
        assert_eq!(book.announce(NOW, ip(1), &about(999)), Err(Refusal::Share));
        // Whom it knows already goes on, and others come.
        assert_eq!(taken(&mut book, ip(1), 0..50), 50);
        assert_eq!(taken(&mut book, ip(2), 1_000..2_000), 25);
        // Addresses of one network are one holder.
        let of_network = |last| IpAddr::from([0xfd78, 0, 0, 0, 0, 0, 0, last]);
        let both =
            taken(&mut book, of_network(1), 2_000..3_000) + taken(&mut book, of_network(2), 3_000..4_000);
        assert_eq!(both, 13);
        // What is over makes room.
        let later = NOW + Duration::from_secs(3_601);
        assert!(book.announce(later, ip(1), &about(5_000)).is_ok());
        assert_eq!(book.torrents().count(), 1);
    }

    #[test]
    fn peers_of_all_torrents_are_bounded_and_shared_alike() {
        let mut book = book(Limits { all_peers: 8, ..Limits::default() });
        let about = |n: u32| Announce {
            info_hash: numbered(n / 3),
            peer_id: numbered(n),
            port: 1_000 + n as u16,
            ..announce(1, 1, Event::Started)
        };
        let taken =
            |book: &mut Book, from| (0..90).filter(|&n| book.announce(NOW, from, &about(n)).is_ok()).count();
        assert_eq!(taken(&mut book, ip(1)), 4);
        // Four are known, and belong to another address.
        assert_eq!(taken(&mut book, ip(2)), 4 + 2);
        let stopped = Announce { event: Event::Stopped, ..about(0) };
        book.announce(NOW, ip(1), &stopped).unwrap();
        assert!(book.announce(NOW, ip(3), &about(80)).is_ok(), "one has left");
    }

    #[test]
    fn a_full_book_is_looked_through_once_in_a_second_and_not_for_each_who_is_refused() {
        let mut book = book(Limits { torrents: 4, ..Limits::default() });
        let mut ask = |n: u32, after_ms| {
            let about = Announce { info_hash: numbered(n), ..announce(1, 1, Event::Started) };
            let answer = book.announce(NOW + Duration::from_millis(after_ms), ip(1), &about);
            (answer.is_ok(), book.looked.map(|looked| looked.since(NOW)))
        };
        let ms = |n| Some(Duration::from_millis(n));
        assert_eq!([ask(1, 0), ask(2, 0)], [(true, None); 2]);
        assert_eq!([ask(3, 10), ask(4, 900), ask(5, 1_009)], [(false, ms(10)); 3]);
        assert_eq!([ask(6, 1_010), ask(7, 2_000)], [(false, ms(1_010)); 2]);
    }
}
