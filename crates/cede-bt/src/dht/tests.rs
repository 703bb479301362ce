use super::*;
use crate::bencode::{Document, Form, Limits, Node as Value};
use core::net::{Ipv4Addr, Ipv6Addr};

const SECOND: Duration = Duration::from_secs(1);

/// Nodes that hear each other at once, by their last octet.
struct World {
    at: fn(u8) -> SocketAddr,
    now: Instant,
    nodes: BTreeMap<SocketAddr, Node>,
    happened: Vec<(u8, Event)>,
}

fn at(host: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 6881))
}

/// Likewise, where anybody may be.
fn public(host: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(198, 51, 100, host), 6881))
}

/// Likewise, over IPv6.
fn public_six(host: u8) -> SocketAddr {
    SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, host.into(), 0, 0, 0, 1), 6881))
}

fn id(host: u8) -> Id {
    Sha1::new().chain_update([host]).finalize().into()
}

impl World {
    fn new(count: u8) -> Self {
        Self::of(count, at)
    }

    /// So many, of which each knows the first one's address alone.
    fn of(count: u8, at: fn(u8) -> SocketAddr) -> Self {
        let mut world = Self { at, now: Instant::ZERO, nodes: BTreeMap::new(), happened: Vec::new() };
        for host in 0..count {
            let mut node = Node::new(Family::of(at(host).ip()), id(host), id(host ^ 0x80));
            node.enter(world.now, &[at(0)][usize::from(host == 0)..]);
            world.nodes.insert(at(host), node);
            world.run(SECOND);
        }
        world.run(SECOND * 60);
        world
    }

    fn node(&mut self, host: u8) -> &mut Node {
        self.nodes.get_mut(&(self.at)(host)).unwrap()
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.nodes.values_mut().for_each(|node| node.tick(self.now, None));
            for _ in 0..50 {
                self.deliver();
            }
            self.now += Duration::from_millis(250);
        }
    }

    fn deliver(&mut self) {
        let sent: Vec<_> = self
            .nodes
            .iter_mut()
            .flat_map(|(from, node)| node.outgoing().into_iter().map(|out| (*from, out)))
            .collect();
        for (from, (to, octets)) in sent {
            if let Some(node) = self.nodes.get_mut(&to) {
                node.receive(self.now, from, &octets, None);
            }
        }
        for (address, node) in &mut self.nodes {
            let host = (0..=255).find(|host| (self.at)(*host) == *address).unwrap();
            self.happened.extend(node.events().into_iter().map(|event| (host, event)));
        }
    }

    fn told(&self, host: u8) -> Vec<SocketAddr> {
        let events = self.happened.iter().filter(|(to, _)| *to == host);
        let peers = events.filter_map(|(_, event)| match event {
            Event::Peers(_, peers) => Some(peers.clone()),
            Event::Entered | Event::Over { .. } | Event::Others(_) => None,
        });
        peers.flatten().collect()
    }
}

/// What a node answers to this query of a stranger, which is sent with that transaction id.
fn answer_to(
    node: &mut Node,
    from: SocketAddr,
    transaction: &[u8],
    query: &Query,
) -> Option<(Vec<u8>, Message)> {
    node.outgoing();
    node.receive(Instant::ZERO, from, &message::ask(transaction, &Asker::new(id(200)), query), None);
    node.outgoing().into_iter().filter(|(to, _)| *to == from).find_map(|(_, octets)| {
        let read = message::read(&octets)?;
        (!matches!(read.1, Message::Query(..))).then_some(read)
    })
}

#[test]
fn whoever_asks_is_answered_whatever_its_transaction_id() {
    let mut node = Node::new(Family::V4, id(1), id(2));
    for transaction in [&b""[..], b"a", b"aa", b"aaa", b"aaaa", b"eight888"] {
        for query in [Query::Ping, Query::FindNode(id(3)), Query::GetPeers(id(3))] {
            let answer = answer_to(&mut node, at(9), transaction, &query);
            let Some((echo, Message::Answer(answer))) = answer else {
                panic!("{transaction:?} {query:?}: {answer:?}")
            };
            assert_eq!((&echo[..], answer.id), (transaction, id(1)));
        }
    }
    assert_eq!(answer_to(&mut node, at(9), &[b'a'; 65], &Query::Ping), None);
}

#[test]
fn what_a_table_is_told_of_is_found_in_it() {
    for (count, at) in [
        (2, at as fn(u8) -> SocketAddr),
        (3, at),
        (60, at),
        (2, public),
        (60, public),
        (2, public_six),
        (60, public_six),
    ] {
        let mut world = World::of(count, at);
        let (now, last) = (world.now, count - 1);
        world.node(last).search(now, [7; 20], Some(7000));
        world.run(SECOND * 20);
        let known =
            world.happened.iter().any(|(_, event)| matches!(event, Event::Over { is_known: true, .. }));
        assert!(known, "{count}: {:?}", world.happened);
        world.node(last / 2).search(now, [7; 20], None);
        world.run(SECOND * 20);
        let now = world.now;
        let found = [world.told(last / 2), world.node(last / 2).told(now, &[7; 20])].concat();
        assert!(found.contains(&SocketAddr::new(at(last).ip(), 7000)), "{count}: {found:?}");
    }
}

#[test]
fn who_does_not_answer_is_not_waited_for_for_ever_nor_told_of() {
    let mut world = World::new(12);
    (6..12).for_each(|host| drop(world.nodes.remove(&at(host))));
    let now = world.now;
    world.node(3).search(now, [7; 20], Some(7000));
    world.run(SECOND * 1_200);
    let over = world.happened.iter().find(|(host, event)| *host == 3 && matches!(event, Event::Over { .. }));
    assert!(matches!(over, Some((_, Event::Over { is_known: true, answers: 1..=5, .. }))), "{over:?}");
    let near = world.node(3).table.near(&[7; 20], 100);
    assert!(near.iter().all(|(_, address)| (0..6).any(|host| at(host) == *address)), "{near:?}");
}

#[test]
fn a_peer_is_remembered_for_who_shows_the_token_alone() {
    let mut node = Node::new(Family::V4, id(1), id(2));
    let Some((_, Message::Answer(answer))) = answer_to(&mut node, at(9), b"aa", &Query::GetPeers([7; 20]))
    else {
        panic!("no answer")
    };
    let announce = |token: &[u8], port| Query::Announce { info_hash: [7; 20], port, token: token.to_vec() };
    let token = answer.token.unwrap();
    for (from, token) in [(at(9), &b"guess"[..]), (at(8), &token)] {
        let refused = answer_to(&mut node, from, b"aa", &announce(token, Some(70)));
        assert_eq!(refused, Some((b"aa".to_vec(), Message::Error(Some(from)))));
    }
    assert_eq!(node.told(Instant::ZERO, &[7; 20]), []);
    answer_to(&mut node, at(9), b"aa", &announce(&token, Some(70)));
    answer_to(&mut node, at(9), b"aa", &announce(&token, None));
    let told = node.told(Instant::ZERO, &[7; 20]);
    assert_eq!(told, [at(9), SocketAddr::new(at(9).ip(), 70)]);
    assert_eq!(node.told(Instant::from_secs(1800), &[7; 20]), []);
}

#[test]
fn what_others_say_grows_within_limits() {
    let mut node = Node::new(Family::V4, id(1), id(2));
    let token = node.store.token(Instant::ZERO, at(9));
    for torrent in 0..3_000_u32 {
        let mut info_hash = [0; 20];
        info_hash[..4].copy_from_slice(&torrent.to_le_bytes());
        node.store.add(Instant::ZERO, info_hash, SocketAddr::new(at(9).ip(), 1));
    }
    for port in 1..=1_000 {
        node.store.add(Instant::ZERO, [0; 20], SocketAddr::new(at(9).ip(), port));
        node.receive(
            Instant::ZERO,
            SocketAddr::new(at(9).ip(), port),
            &message::ask(b"t", &Asker::new(id((port % 256) as u8)), &Query::Ping),
            None,
        );
    }
    assert!(node.store.is_good(Instant::from_secs(300), at(9), &token));
    assert!(!node.store.is_good(Instant::from_secs(601), at(9), &token));
    assert_eq!(node.store.peers(Instant::ZERO, &[0; 20]).len(), 50);
    assert!(node.pending.len() <= OPEN && node.outbox.len() <= OUTBOX);
}

#[test]
fn nonsense_is_refused_or_passed_over() {
    let mut node = Node::new(Family::V4, id(1), id(2));
    let query = |name: &str, said: Form| {
        Form::dict().with("a", said).with("q", name).with("t", "aa").with("y", "q").encode()
    };
    let me = || Form::dict().with("id", &id(3)[..]);
    let odd = [
        (query("ping", Form::dict()), 203),
        (query("ping", Form::dict().with("id", "short")), 203),
        (query("get_peers", me()), 203),
        (
            query("announce_peer", me().with("info_hash", &id(4)[..]).with("port", 0_u32).with("token", "t")),
            203,
        ),
        (query("vote", me()), 204),
    ];
    for (octets, code) in odd {
        node.receive(Instant::ZERO, at(9), &octets, None);
        let sent = node.outgoing();
        let document = Document::parse(&sent[0].1, Limits::MESSAGE).unwrap();
        let said = document.root().get(b"e").into_iter().flat_map(Value::items).find_map(Value::int);
        assert_eq!((sent.len(), said), (1, Some(code)));
    }
    for octets in [&b""[..], b"d", b"de", b"i1e", b"d1:t2:aa1:y1:re", b"d1:rd2:id3:abce1:t2:aa1:y1:re"] {
        node.receive(Instant::ZERO, at(9), octets, None);
        assert_eq!(node.outgoing(), [], "{octets:?}");
    }
}

#[test]
fn one_host_of_the_internet_is_one_node() {
    let mut table = Table::new(id(0));
    let public = |port| SocketAddr::from((Ipv4Addr::new(198, 51, 100, 7), port));
    (1..100).for_each(|host: u8| table.heard(Instant::ZERO, id(host), public(host.into())));
    assert_eq!(table.near(&id(0), 100).len(), 1);
    (1..100).for_each(|host: u8| table.heard(Instant::ZERO, id(host), at(host)));
    let known = table.near(&id(0), 200).len();
    assert!((8..=8 * 8).contains(&known), "{known}");
}

#[test]
fn ids_follow_from_public_addresses_and_from_no_others() {
    for at in [public, public_six] {
        let mut world = World::of(12, at);
        for host in 0..12 {
            let node = world.node(host);
            assert!(secure::fits(&node.id(), at(host).ip()), "{host}");
            assert!(!node.table.near(&[0; 20], 100).is_empty(), "{host}");
        }
    }
    let mut world = World::new(12);
    assert!((0..12).all(|host| world.node(host).id() == id(host)));
}

/// What nobody has been asked for, and what one host alone says, moves nothing.
#[test]
fn an_address_is_believed_of_those_who_were_asked_alone() {
    let mut node = Node::new(Family::V4, id(1), id(2));
    let lie = Answer { id: id(3), asker: Some(public(99)), ..Answer::default() };
    for host in 0..50 {
        node.receive(Instant::ZERO, public(host), &message::reply(b"abcd", &lie), None);
    }
    assert_eq!(node.id(), id(1));
    let answers = |node: &mut Node, from, answer: &Answer| {
        node.ask(Instant::ZERO, from, Purpose::Presence, &Query::Ping);
        let (to, octets) = node.outgoing().pop().unwrap();
        let (transaction, _) = message::read(&octets).unwrap();
        node.receive(Instant::ZERO, to, &message::reply(&transaction, answer), None);
        to == from
    };
    let liars = |node: &mut Node, host: fn(u8) -> SocketAddr| {
        assert!((0..50).all(|number| answers(node, host(number), &lie)));
    };
    liars(&mut node, at);
    assert_eq!(node.id(), id(1), "in our own network");
    let honest = Answer { asker: Some(public(98)), ..lie.clone() };
    assert!(answers(&mut node, public(70), &honest));
    assert!(secure::fits(&node.id(), public(98).ip()), "nobody else has said anything yet");
    let settled = node.id();
    liars(&mut node, |port| SocketAddr::new(public(5).ip(), 1 + u16::from(port)));
    assert_eq!(node.id(), settled, "one host");
    liars(&mut node, public);
    assert!(secure::fits(&node.id(), public(99).ip()));
    assert_eq!(node.table.near(&id(1), 100).len(), 1, "who was known is");
}

/// Whoever draws ids that are near to a torrent is asked and told, and those whose ids follow from their addresses are, too.
#[test]
fn many_who_drew_near_ids_do_not_hide_the_others() {
    let near = |number: u16| {
        let mut id = [7; 20];
        id[2..4].copy_from_slice(&number.to_be_bytes());
        (id, SocketAddr::new(public((number % 100) as u8).ip(), 1_000 + number))
    };
    let far = |number: u8| (secure::fitting(id(number), public(number).ip()), public(number));
    let near: Vec<_> = (0..300).map(near).filter(|(id, at)| !secure::fits(id, at.ip())).collect();
    let far: Vec<_> = (100..110).map(far).collect();
    let mut lookup = Lookup::new([7; 20], &[&near[..], &far].concat(), &[]);
    while let Some(next) = lookup.next() {
        let (id, _) = near.iter().chain(&far).find(|(_, at)| *at == next).unwrap();
        lookup.answered(next, *id, Some(alloc::vec![1]), &[]);
    }
    assert!(lookup.is_over());
    let takers: Vec<_> = lookup.takers().map(|(at, _)| at).collect();
    let of = |nodes: &[(Id, SocketAddr)]| nodes.iter().filter(|(_, at)| takers.contains(at)).count();
    assert_eq!((of(&near), of(&far), takers.len()), (8, 8, 16));
}

#[test]
fn in_a_full_row_an_id_that_fits_takes_the_place_of_one_that_does_not() {
    let mut table = Table::new([0; 20]);
    let drawn = |host: u8| core::array::from_fn(|at| if at == 0 { 0x80 | host } else { host });
    (1..20).for_each(|host| table.heard(Instant::ZERO, drawn(host), public(host)));
    assert_eq!(table.near(&[0; 20], 100).len(), WIDTH);
    let fitting = |host: u8| secure::fitting(id(host), public(host).ip());
    let fits: Vec<u8> = (100..200).filter(|host| fitting(*host)[0] & 0x80 != 0).take(WIDTH + 1).collect();
    for host in &fits[..WIDTH] {
        assert!(table.wants(&fitting(*host), public(*host)));
        table.heard(Instant::ZERO, fitting(*host), public(*host));
    }
    let last = fits[WIDTH];
    assert!(!table.wants(&fitting(last), public(last)) && !table.wants(&drawn(20), public(20)));
    table.heard(Instant::ZERO, drawn(20), public(20));
    let near = table.near(&[0; 20], 100);
    assert!(near.len() == WIDTH && near.iter().all(|(id, at)| secure::fits(id, at.ip())));
}

/// Who asks is told of nodes of the family that it wants to hear of, or of that over which it asks (BEP 32), and of peers as many as
/// there is room for.
#[test]
fn each_is_told_of_nodes_of_the_family_that_it_wants() {
    let mut four = Node::new(Family::V4, id(1), id(2));
    let mut six = Node::new(Family::V6, id(3), id(4));
    for host in 10..200 {
        four.table.heard(Instant::ZERO, id(host), public(host));
        six.table.heard(Instant::ZERO, id(host), public_six(host));
    }
    for host in 0..60 {
        six.store.add(Instant::ZERO, [7; 20], public_six(host));
    }
    let asked = [
        (&[][..], [false, true]),
        (&[Family::V4], [true, false]),
        (&[Family::V6], [false, true]),
        (&Family::ALL, [true, true]),
    ];
    for (wants, told) in asked {
        let asker = Asker { wants: wants.to_vec(), ..Asker::new(id(200)) };
        let query = message::ask(&[b't'; 64], &asker, &Query::GetPeers([7; 20]));
        assert_eq!(message::read(&query).unwrap().1, Message::Query(asker, Query::GetPeers([7; 20])));
        for other in [None, Some(&four)] {
            six.receive(Instant::ZERO, public_six(9), &query, other);
            let sent = six.outgoing();
            assert!(sent[0].1.len() <= 1_024);
            let Some((_, Message::Answer(answer))) = message::read(&sent[0].1) else { panic!("{sent:?}") };
            let count = |family| answer.nodes.iter().filter(|(_, at)| Family::of(at.ip()) == family).count();
            let told = told.map(|is_told| 8 * usize::from(is_told));
            let expected = [told[0] * usize::from(other.is_some()), told[1]];
            assert_eq!(Family::ALL.map(count), expected, "{wants:?}");
            assert!((10..50).contains(&answer.peers.len()), "{}", answer.peers.len());
            assert_eq!(answer.peers[0], public_six(59), "the last");
        }
    }
}

/// A node that has nobody to begin with hears of some from our node in the other table, and of one that a peer has.
#[test]
fn nodes_that_are_told_of_are_met() {
    let mut world = World::of(12, public_six);
    let mut lone = Node::new(Family::V6, id(77), id(78));
    for number in 0..100 {
        lone.meet(SocketAddr::new(public_six(90).ip(), 1 + number));
        lone.meet(public(9));
    }
    assert_eq!(
        lone.met,
        [SocketAddr::new(public_six(90).ip(), 100)],
        "one host is one node, and each family has its own"
    );
    lone.meet(public_six(5));
    world.nodes.insert(public_six(77), lone);
    world.run(SECOND * 60);
    assert!(world.node(77).table.near(&[0; 20], 100).len() >= 8);
    for host in 0..100 {
        world.node(77).meet(public_six(host));
    }
    assert_eq!(world.node(77).met.len(), MET);
}

/// Names that are looked up in the background lead somewhere in any order, and some lead nowhere.
#[test]
fn nodes_to_begin_with_are_added_to() {
    for order in [[9, 10], [10, 9]] {
        let mut node = Node::new(Family::V4, id(1), id(2));
        order.iter().for_each(|host| node.enter(Instant::ZERO, &[public(*host), public_six(3)]));
        node.tick(Instant::ZERO, None);
        let asked: Vec<SocketAddr> = node.outgoing().into_iter().map(|(to, _)| to).collect();
        assert_eq!(asked, [public(order[1]), public(order[0])]);
        (0..=255).for_each(|host| node.enter(Instant::ZERO, &[public(host)]));
        assert_eq!((node.entries.len(), node.entries[0]), (ENTRIES, public(255)));
    }
}

/// Somebody over IPv4 who is in the other table, too, names nodes of it where our node looks around, if we have one there.
#[test]
fn nodes_of_the_other_family_are_handed_on() {
    for has_other in [false, true] {
        let node = Node::new(Family::V4, id(1), id(2));
        let mut node = if has_other { node.beside_another() } else { node };
        node.enter(Instant::ZERO, &[public(9)]);
        node.tick(Instant::ZERO, None);
        let (to, octets) = node.outgoing().pop().unwrap();
        let Some((transaction, Message::Query(asker, Query::FindNode(_)))) = message::read(&octets) else {
            panic!()
        };
        assert_eq!(asker.wants, &Family::ALL[..if has_other { 2 } else { 0 }]);
        let of_link = "[fe80::1]:6881".parse().unwrap();
        let nodes = alloc::vec![(id(5), public(5)), (id(6), public_six(6)), (id(7), of_link)];
        let answer = Answer { id: id(9), nodes, ..Answer::default() };
        node.receive(Instant::ZERO, to, &message::reply(&transaction, &answer), None);
        let others = has_other.then(|| Event::Others(alloc::vec![public_six(6)]));
        assert_eq!(node.events(), [&[Event::Entered], others.as_slice()].concat());
        let asked: Vec<SocketAddr> = node.outgoing().into_iter().map(|(to, _)| to).collect();
        assert_eq!(asked, [public(5)]);
    }
}

/// The first that is asked over IPv4 hears of the other table a little later than we ask.
#[test]
fn as_long_as_the_other_table_has_nobody_others_are_asked_for_it() {
    let mut six = Node::new(Family::V6, id(3), id(4));
    let mut four = Node::new(Family::V4, id(1), id(2)).beside_another();
    four.enter(Instant::ZERO, &[public(9)]);
    // When it looked around until then.
    let mut asked = |six: &Node, seconds: core::ops::Range<u64>| {
        let mut asked = Vec::new();
        for now in seconds.map(Instant::from_secs) {
            four.tick(now, Some(six));
            for (to, octets) in four.outgoing() {
                let Some((transaction, Message::Query(_, query))) = message::read(&octets) else { panic!() };
                asked.extend(matches!(query, Query::FindNode(_)).then_some(now.as_secs_f64() as u64));
                let answer = Answer { id: id(9), ..Answer::default() };
                four.receive(now, to, &message::reply(&transaction, &answer), Some(six));
            }
            four.events();
        }
        asked
    };
    // Those that are looked around for anyway, in a table of one, are among them.
    assert_eq!(asked(&six, 0..100), [0, 5, 15, 35, 65, 95]);
    six.table.heard(Instant::ZERO, id(5), public_six(5));
    assert_eq!(asked(&six, 100..200), [125, 155, 185]);
}

#[test]
fn a_network_of_ipv6_is_one_node() {
    let mut table = Table::new(id(0));
    let within =
        |host: u8| SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into()), 6881));
    (1..100).for_each(|host: u8| table.heard(Instant::ZERO, id(host), within(host)));
    assert_eq!(table.near(&id(0), 100), [(id(99), within(99))]);
    (1..100).for_each(|host: u8| table.heard(Instant::ZERO, id(host), public_six(host)));
    assert!(table.near(&id(0), 200).len() >= 8);
}
