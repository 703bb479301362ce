//! What peers are told of us and of each other, seen by peers that are nothing but a socket: our port, which a router may have changed, and
//! introductions to those whom nobody reaches.

mod support;

use cede_bt::extension::{Extension, Hearsay, UT_HOLEPUNCH, UT_PEX};
use cede_bt::holepunch::{self, Reason};
use cede_bt::pex::{Contact, Told};
use cede_bt::wire::{Decoder, Handshake, Item, Message, Reserved, WireLimits};
use cede_wire::Payload;
use std::net::{Ipv4Addr, SocketAddr};
use support::{LIMIT, Member, choices, run, torrent, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// The beginning of a uTP SYN: its type and the version.
const SYN: u8 = 0x41;

struct Peer {
    stream: TcpStream,
    ear: Decoder,
    heard: Payload,
}

impl Peer {
    /// Says that it is there, and takes connections at a port.
    async fn greet(mut stream: TcpStream, info_hash: [u8; 20], id: u8, port: u16) -> Self {
        let reserved = Reserved::default().with(Reserved::EXTENDED);
        let handshake = Handshake { reserved, info_hash, peer_id: [id; 20] };
        let hearsay = Hearsay { exchanges: true, punches: true };
        let extension = Message::Extended(0, Extension::ours("bare", Some(port), None, hearsay, Some(false)));
        let words = [&handshake.encode()[..], &extension.to_vec()].concat();
        stream.write_all(&words).await.unwrap();
        Self { stream, ear: Decoder::new(WireLimits::default()), heard: Payload::default() }
    }

    async fn say(&mut self, name: u8, text: Vec<u8>) {
        self.stream.write_all(&Message::Extended(name, text).to_vec()).await.unwrap();
    }

    /// The next message of that extension.
    async fn hears(&mut self, name: u8) -> Vec<u8> {
        let waiting = async {
            loop {
                while let Some(item) = self.ear.next(&mut self.heard).unwrap() {
                    if let Item::Message(Message::Extended(id, text)) = item
                        && id == name
                    {
                        return text;
                    }
                }
                let mut octets = [0; 4096];
                let len = self.stream.read(&mut octets).await.unwrap();
                assert!(len > 0, "the connection has ended");
                self.heard = Payload::copy_from(&octets[..len]);
            }
        };
        tokio::time::timeout(LIMIT, waiting).await.expect("nothing is said")
    }

    async fn hears_port(&mut self) -> Option<u16> {
        Extension::parse(&self.hears(0).await).unwrap().port
    }

    async fn hears_upload_only(&mut self) -> Option<bool> {
        Extension::parse(&self.hears(0).await).unwrap().upload_only
    }

    async fn hears_hole(&mut self) -> holepunch::Message {
        holepunch::Message::parse(&self.hears(UT_HOLEPUNCH).await).unwrap()
    }
}

#[test]
fn peers_are_told_of_the_port_that_a_router_leads_to_ours() {
    run(async {
        let (info, content) = torrent(&[100_000]);
        let mut member = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        member.listener.set_outer_port(Some(7_001));
        member.start();
        let waiting = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        member.session.add_peers(&[waiting.local_addr().unwrap()]);
        let (stream, _) = waiting.accept().await.unwrap();
        let mut called = Peer::greet(stream, info.info_hash(), 2, 7).await;
        assert_eq!(called.hears_port().await, Some(7_001));
        member.listener.set_outer_port(Some(7_002));
        assert_eq!(called.hears_port().await, Some(7_002));
        let stream = TcpStream::connect(member.address).await.unwrap();
        let mut caller = Peer::greet(stream, info.info_hash(), 3, 8).await;
        assert_eq!(caller.hears_port().await, Some(7_002));
        member.listener.set_outer_port(None);
        assert_eq!(called.hears_port().await, Some(member.address.port()));
    });
}

#[test]
fn peers_are_told_that_nothing_more_is_wanted() {
    run(async {
        let (info, content) = torrent(&[100_000, 100_000]);
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        let mut leech = Member::new(&info, None, &[true, false], choices(2, 5)).await;
        leech.session.want_files();
        seed.start();
        leech.start();
        let stream = TcpStream::connect(leech.address).await.unwrap();
        let mut peer = Peer::greet(stream, info.info_hash(), 3, 7).await;
        assert_eq!(peer.hears_upload_only().await, Some(false));
        leech.session.add_peers(&[seed.address]);
        assert_eq!(peer.hears_upload_only().await, Some(true));
        leech.done().await;
        let stream = TcpStream::connect(seed.address).await.unwrap();
        let mut newcomer = Peer::greet(stream, info.info_hash(), 4, 8).await;
        assert_eq!(newcomer.hears_upload_only().await, Some(true));
    });
}

/// Who has the few pieces that it was told of would hang up.
#[test]
fn who_seems_to_have_nothing_does_not_say_that_it_wants_nothing() {
    run(async {
        let (info, content) = torrent(&[100_000]);
        let mut member = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        member.session.super_seed();
        member.start();
        let stream = TcpStream::connect(member.address).await.unwrap();
        let mut peer = Peer::greet(stream, info.info_hash(), 2, 7).await;
        assert_eq!(peer.hears_upload_only().await, Some(false));
    });
}

/// A peer that was told of and cannot be reached is asked for at whoever told of it, and called over uTP once we are introduced.
#[test]
fn whoever_tells_of_a_peer_that_nobody_reaches_introduces_us() {
    run(async {
        let (info, _) = torrent(&[100_000]);
        let mut member = Member::new(&info, None, &[], choices(1, 31)).await;
        member.start();
        let stream = TcpStream::connect(member.address).await.unwrap();
        let mut relay = Peer::greet(stream, info.info_hash(), 2, 7).await;
        relay.hears(0).await;
        let target = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = target.local_addr().unwrap();
        let contact = Contact { address, is_seed: true, is_utp: true, punches: true, is_reached: false };
        relay.say(UT_PEX, Told::default().update(&[contact]).unwrap()).await;
        assert_eq!(relay.hears_hole().await, holepunch::Message::Rendezvous(address));
        // What came before was of the calls that have failed.
        let mut octets = [0; 2048];
        while target.try_recv(&mut octets).is_ok() {}
        relay.say(UT_HOLEPUNCH, holepunch::Message::Connect(address).encode()).await;
        let (len, from) = tokio::time::timeout(LIMIT, target.recv_from(&mut octets)).await.unwrap().unwrap();
        assert_eq!((len >= 20, octets[0], from), (true, SYN, member.address));
    });
}

/// We are called by two, and one asks for the other, for itself, for nobody and for an address that is none.
#[test]
fn peers_that_ask_for_each_other_are_introduced() {
    run(async {
        let (info, content) = torrent(&[100_000]);
        let mut member = Member::new(&info, Some(&content), &[], choices(1, 31)).await;
        member.start();
        let mut peers = Vec::new();
        for (id, port) in [(2, 7_102), (3, 7_103)] {
            let stream = TcpStream::connect(member.address).await.unwrap();
            let mut peer = Peer::greet(stream, info.info_hash(), id, port).await;
            peer.hears(0).await;
            peers.push(peer);
        }
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let [asker, other] = &mut peers[..] else { unreachable!("two") };
        // They have called over TCP: their own words are all that is known of where they are over uTP.
        asker.say(UT_HOLEPUNCH, holepunch::Message::Rendezvous(at(7_103)).encode()).await;
        assert_eq!(asker.hears_hole().await, holepunch::Message::Connect(at(7_103)));
        assert_eq!(other.hears_hole().await, holepunch::Message::Connect(at(7_102)));
        for (port, reason) in
            [(7_102, Reason::NoSelf), (7_104, Reason::NotConnected), (0, Reason::NoSuchPeer)]
        {
            asker.say(UT_HOLEPUNCH, holepunch::Message::Rendezvous(at(port)).encode()).await;
            assert_eq!(asker.hears_hole().await, holepunch::Message::Error(at(port), reason));
        }
        let stream = TcpStream::connect(member.address).await.unwrap();
        let mut unable = Peer::greet(stream, info.info_hash(), 4, 7_105).await;
        let silent = Extension::ours("mute", Some(7_105), None, Hearsay::default(), None);
        unable.say(0, silent).await;
        let is_heard =
            || member.session.view().peers.iter().any(|peer| peer.client.as_deref() == Some("mute"));
        until(is_heard).await;
        asker.say(UT_HOLEPUNCH, holepunch::Message::Rendezvous(at(7_105)).encode()).await;
        assert_eq!(asker.hears_hole().await, holepunch::Message::Error(at(7_105), Reason::NoSupport));
    });
}
