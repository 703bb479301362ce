//! Peers that know of each other from the distributed hash table alone: one of a few nodes on the loopback.
#![cfg(feature = "dht")]

mod support;

use cede_bt::Family;
use cede_bt::dht::message::{self, Asker, Message, Query};
use cede_bt::dht::secure;
use cede_torrent::dht::OurNode;
use cede_torrent::origin::Origin;
use mainline::{Dht, Id, Testnet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use support::{LIMIT, Member, choices, run, torrent};
use tokio::sync::mpsc::unbounded_channel;

/// Waits until the table knows somebody who has it.
fn until_known(nodes: &[String], info_hash: [u8; 20]) {
    let asker = Dht::builder().bootstrap(nodes).build().unwrap();
    let began = Instant::now();
    #[allow(deprecated, reason = "the other way needs an executor, and this thread has none")]
    while asker.get_peers(Id::from(info_hash)).next().is_none() {
        assert!(began.elapsed() < LIMIT, "nobody has told the table");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_seed_is_found_in_a_table_of_the_tests_own() {
    let Ok(table) = Testnet::builder(5).build() else {
        println!("SKIPPED: no sockets for a table");
        return;
    };
    run(async {
        let (info, content) = torrent(&[200_000]);
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        let mut leech = Member::new(&info, None, &[], choices(2, 5)).await;
        seed.start();
        leech.start();
        let (told, _nobody) = unbounded_channel();
        let port = |member: &Member| {
            let port = member.address.port();
            move |_| Some(port)
        };
        let node = || OurNode::start(Origin::default(), &table.bootstrap, None).unwrap();
        node().search(info.info_hash(), port(&seed), told).unwrap();
        let (nodes, hash) = (table.bootstrap.clone(), info.info_hash());
        tokio::task::spawn_blocking(move || until_known(&nodes, hash)).await.unwrap();
        let (found, mut peers) = unbounded_channel();
        // This one hears of the table later, as from a torrent that names nodes of it.
        let late = OurNode::start(Origin::default(), &["127.0.0.1:9".to_owned()], None).unwrap();
        late.search(info.info_hash(), port(&leech), found).unwrap();
        late.enter(table.bootstrap.clone()).unwrap();
        let heard = tokio::time::timeout(LIMIT, peers.recv()).await.expect("the table names nobody").unwrap();
        assert!(heard.contains(&seed.address), "{heard:?}");
        leech.session.add_peers(&heard);
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
    });
}

/// Neither knows of any other node, and the first to come finds nobody. Who looks is not told of, as behind a magnet link.
#[test]
fn two_that_know_of_each_other_alone_are_a_table() {
    // Neither the usual one, which the nodes of other tests have at all addresses, nor one that is given to who asks for any.
    const PORT: u16 = 26_881;
    let hosts = [Ipv4Addr::new(127, 6, 88, 1), Ipv4Addr::new(127, 6, 88, 2)];
    if hosts.iter().any(|host| UdpSocket::bind((*host, PORT)).is_err()) {
        println!("SKIPPED: the port is taken, or the loopback has one address alone");
        return;
    }
    let join = |at: usize, port: Option<u16>, found| {
        let others = [format!("{}:{PORT}", hosts[1 - at])];
        let node = OurNode::start(Origin::new(Some(hosts[at].into())), &others, Some(PORT)).unwrap();
        node.search([9; 20], move |_| port, found).unwrap();
    };
    run(async {
        let (told, _nobody) = unbounded_channel();
        join(0, Some(7000), told);
        tokio::time::sleep(Duration::from_secs(3)).await;
        let (found, mut peers) = unbounded_channel();
        join(1, None, found);
        let heard = tokio::time::timeout(Duration::from_secs(30), peers.recv()).await;
        assert_eq!(heard.expect("neither tells the other"), Some(vec![SocketAddr::from((hosts[0], 7000))]));
    });
}

/// libtorrent's transaction ids have two octets, those of others four: all are answered by our node, and what they announce is found.
#[test]
fn nodes_of_other_clients_are_answered_and_their_announces_are_found() {
    let info_hash = [7; 20];
    let nowhere = ["127.0.0.1:9".to_owned()];
    let node = OurNode::start(Origin::new(Some(Ipv4Addr::LOCALHOST.into())), &nowhere, None).unwrap();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect((Ipv4Addr::LOCALHOST, node.ports().v4.unwrap())).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let hear = |transaction: &[u8]| loop {
        let mut octets = [0; 2048];
        let len = socket.recv(&mut octets).expect("our node says nothing");
        match message::read(&octets[..len]).unwrap() {
            // It asks in its turn whether we are there.
            (_, Message::Query(..)) => {}
            (echo, said) => {
                assert_eq!(echo, transaction);
                break said;
            }
        }
    };
    let (asker, mut token) = (Asker::new([0x96; 20]), Vec::new());
    for transaction in [&b"aa"[..], b"aaaa", b"eight888"] {
        let query = Query::GetPeers(info_hash);
        socket.send(&message::ask(transaction, &asker, &query)).unwrap();
        let Message::Answer(answer) = hear(transaction) else { panic!("refused") };
        token = answer.token.unwrap();
    }
    socket
        .send(&message::ask(b"bb", &asker, &Query::Announce { info_hash, port: Some(7000), token }))
        .unwrap();
    assert!(matches!(hear(b"bb"), Message::Answer(_)));
    run(async {
        let (found, mut peers) = unbounded_channel();
        node.search(info_hash, |_| None, found).unwrap();
        let heard =
            tokio::time::timeout(LIMIT, peers.recv()).await.expect("what it was told is kept from us");
        assert_eq!(heard, Some(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 7000))]));
    });
}

/// BEP 42, both ways.
#[test]
fn ids_that_follow_from_addresses_are_those_of_the_mainline_crate() {
    for number in 1..5_000_u32 {
        let ip = Ipv4Addr::from_bits(number.wrapping_mul(0x9e37_79b9));
        assert!(secure::fits(Id::from_ipv4(ip).as_bytes(), ip.into()), "{ip}");
        let drawn = [number.to_le_bytes()[0]; 20];
        assert!(Id::from(secure::fitting(drawn, ip.into())).is_valid_for_ip(ip), "{ip}");
        // Carriers' networks are exempt with us alone.
        if !cede_bt::gateway::is_behind(ip) {
            assert_eq!(secure::fits(&drawn, ip.into()), Id::from(drawn).is_valid_for_ip(ip), "{ip}");
        }
    }
}

/// Two tables, of which ours is in both: somebody who is in that of IPv6 alone, and somebody who knows of ours over IPv4 alone, find each
/// other in that of IPv6, which the second has heard of over IPv4 (BEP 32).
#[test]
fn who_enters_one_table_hears_of_the_other() {
    if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        println!("SKIPPED: there is no IPv6 loopback");
        return;
    }
    let nobody = "127.0.0.1:9".to_owned();
    let between = OurNode::start(Origin::default(), &[nobody], None).unwrap();
    let ports = between.ports();
    let at = |ip: IpAddr, port: Option<u16>| SocketAddr::new(ip, port.unwrap()).to_string();
    let six = at(Ipv6Addr::LOCALHOST.into(), ports.v6);
    let last = OurNode::start(Origin::new(Some(Ipv6Addr::LOCALHOST.into())), &[six], None);
    let last = last.unwrap();
    assert_eq!(last.ports().v4, None);
    let four = at(Ipv4Addr::LOCALHOST.into(), ports.v4);
    let first = OurNode::start(Origin::default(), &[four], None).unwrap();
    run(async {
        let (told, _nobody) = unbounded_channel();
        let port = |family: Family| Some(if family == Family::V4 { 7004 } else { 7006 });
        first.search([9; 20], port, told).unwrap();
        let (found, mut peers) = unbounded_channel();
        last.search([9; 20], |_| None, found).unwrap();
        let heard = tokio::time::timeout(LIMIT, peers.recv()).await.expect("neither table names anybody");
        assert_eq!(heard, Some(vec![SocketAddr::from((Ipv6Addr::LOCALHOST, 7006))]));
        let (found, mut peers) = unbounded_channel();
        between.search([9; 20], |_| None, found).unwrap();
        let mut all = Vec::new();
        while all.len() < 2 {
            let heard = tokio::time::timeout(LIMIT, peers.recv()).await.expect("one table names nobody");
            all.extend(heard.unwrap());
        }
        all.sort();
        assert_eq!(all.iter().map(SocketAddr::port).collect::<Vec<_>>(), [7004, 7006]);
    });
}

#[test]
fn there_is_a_node_in_each_table_that_the_origin_leads_to() {
    let ports = |origin: Option<&str>, port| {
        let origin = Origin::new(origin.map(|text| text.parse().unwrap()));
        OurNode::start(origin, &["127.0.0.1:9".to_owned()], port).map(|node| node.ports())
    };
    let has_six = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    let families = |origin| {
        let ports = ports(origin, None).unwrap();
        [ports.v4.is_some(), ports.v6.is_some()]
    };
    assert_eq!(families(None), [true, has_six]);
    assert_eq!(families(Some("0.0.0.0")), [true, false]);
    assert_eq!(families(Some("127.0.0.1")), [true, false]);
    if !has_six {
        assert!(ports(Some("::1"), None).is_err());
        println!("SKIPPED: there is no IPv6 loopback");
        return;
    }
    assert_eq!(families(Some("::1")), [false, true]);
    // A port that is given and taken is not done without, in whichever family.
    let taken = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    assert!(ports(None, Some(port)).is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse));
}

/// Neither node knows of any other, and each hears of the other by a connection of peers alone (BEP 5): what the one tells its table, somebody
/// finds who knows of the other.
#[test]
fn a_peer_is_enough_to_enter_a_table() {
    let here = Origin::new(Some(Ipv4Addr::LOCALHOST.into()));
    let node = |entry: SocketAddr| OurNode::start(here, &[entry.to_string()], None).unwrap();
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    run(async {
        let (info, content) = torrent(&[200_000]);
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        let mut leech = Member::new(&info, None, &[], choices(2, 5)).await;
        let nodes = [node(nobody), node(nobody)];
        for (member, node) in [&seed, &leech].into_iter().zip(&nodes) {
            let met = node.clone();
            member.session.join_dht(node.ports(), move |at| met.meet(at));
        }
        seed.start();
        leech.start();
        leech.session.add_peers(&[seed.address]);
        let (told, _nobody) = unbounded_channel();
        nodes[1].search([9; 20], |_| Some(7000), told).unwrap();
        let third = node(SocketAddr::from((Ipv4Addr::LOCALHOST, nodes[0].ports().v4.unwrap())));
        let began = Instant::now();
        let heard = loop {
            // Anew, as whoever finds nobody looks again after a minute.
            let (found, mut peers) = unbounded_channel();
            third.search([9; 20], |_| None, found).unwrap();
            match tokio::time::timeout(Duration::from_secs(1), peers.recv()).await {
                Ok(heard) => break heard,
                Err(_) => assert!(began.elapsed() < LIMIT, "they are no table"),
            }
        };
        assert_eq!(heard, Some(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 7000))]));
    });
}
