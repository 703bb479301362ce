//! Octets of any kind as torrents, links and messages of trackers: nothing panics, limits hold, and what is read survives
//! the way back. The test run makes a bounded number of tries; `cargo bolero` runs these without an end.

use bolero::generator::bolero_generator::TypeGenerator;
use bolero::{ValueGenerator, check, produce};
use cede_bt::bencode::{Document, Form, Limits, Node};
use cede_bt::magnet::Magnet;
use cede_bt::merkle::leads_to;
use cede_bt::metainfo::{File, Info, Metainfo, Writer, check_component};
use cede_bt::mse::{Accept, Handshake, Secrets};
use cede_bt::tracker::{http, udp};
use cede_bt::wire::{HashRange, Message};
use cede_bt::{extension, gateway, holepunch, igd, layers, local, metadata, pex};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const TRIES: usize = 20_000;

fn octets_up_to(len: usize) -> impl ValueGenerator<Output = Vec<u8>> {
    produce::<Vec<u8>>().with().len(0..=len)
}

/// How many tries came how far: a generator whose octets are all refused would test little.
#[derive(Default)]
struct Tally(AtomicUsize, AtomicUsize);

impl Tally {
    fn count(&self, is_accepted: bool) {
        self.0.fetch_add(1, Relaxed);
        self.1.fetch_add(usize::from(is_accepted), Relaxed);
    }

    /// At least so many in a hundred must have been accepted.
    fn check(&self, percent: usize) {
        let (tries, accepted) = (self.0.load(Relaxed), self.1.load(Relaxed));
        println!("{accepted} of {tries} tries were accepted");
        assert!(accepted * 100 >= tries * percent);
    }
}

/// A value that can be bencoded.
#[derive(Clone, Debug, TypeGenerator)]
enum Value {
    Int(i64),
    Bytes(Vec<u8>),
    List(#[generator(produce::<Vec<u8>>().with().len(0..=6))] Vec<u8>),
    Dict(#[generator(produce::<Vec<(u8, i64)>>().with().len(0..=6))] Vec<(u8, i64)>),
}

impl Value {
    fn form(&self) -> Form {
        match self {
            Self::Int(int) => Form::Int(*int),
            Self::Bytes(bytes) => Form::Bytes(bytes.clone()),
            Self::List(items) => Form::List(items.iter().map(|item| Form::Bytes(vec![*item])).collect()),
            Self::Dict(entries) => {
                entries.iter().fold(Form::dict(), |dict, (key, value)| dict.with([*key], *value))
            }
        }
    }
}

fn form_of(node: Node<'_, '_>) -> Form {
    if node.is_dict() {
        return Form::Dict(node.entries().map(|(key, value)| (key.to_vec(), form_of(value))).collect());
    }
    if node.is_list() {
        return Form::List(node.items().map(form_of).collect());
    }
    match (node.int(), node.bytes()) {
        (Some(int), _) => Form::Int(int),
        (_, Some(bytes)) => Form::Bytes(bytes.to_vec()),
        // An integer beyond 64 bits.
        _ => Form::Raw(node.raw().to_vec()),
    }
}

#[test]
fn whatever_is_read_canonically_is_written_as_the_same_octets() {
    let tally = Tally::default();
    let values = produce::<Vec<Value>>().with().len(0..=6);
    check!().with_iterations(TRIES).with_generator((values, octets_up_to(3), produce::<u16>())).for_each(
        |(values, noise, at)| {
            let mut octets = Form::List(values.iter().map(Value::form).collect()).encode();
            let at = usize::from(*at) % (octets.len() + 1);
            // Sometimes with a few octets too many.
            if values.len() % 3 == 0 {
                octets.splice(at..at, noise.iter().copied());
            }
            let document = Document::parse(&octets, Limits::CANONICAL);
            tally.count(document.is_ok());
            if let Ok(document) = document {
                assert_eq!(form_of(document.root()).encode(), octets);
            }
            let _ = Document::parse(&octets, Limits { depth: 2, values: 5, canonical: false });
        },
    );
    tally.check(50);
}

#[test]
fn octets_of_any_kind_are_read_without_a_panic() {
    check!().with_iterations(TRIES).with_generator(octets_up_to(300)).for_each(|octets| {
        let _ = Document::parse_prefix(octets, Limits::MESSAGE);
        let _ = Metainfo::parse(octets);
        let _ = http::parse_answer(octets);
        let _ = udp::Asked::decode(octets);
        let _ = udp::Response::decode(octets, octets.len() % 2 == 0);
        let _ = extension::Extension::parse(octets);
        let _ = pex::parse(octets);
        if let Some(message) = holepunch::Message::parse(octets) {
            assert_eq!(holepunch::Message::parse(&message.encode()), Some(message));
        }
        let message = metadata::Message::parse(octets);
        if let Some(mut fetch) = metadata::Fetch::begin(metadata::Wanted::V1([0; 20]), 40_000) {
            fetch.due();
            message.map(|message| fetch.receive(&message));
        }
        let text = String::from_utf8_lossy(octets);
        let _ = Magnet::parse(&text);
        let _ = Magnet::parse(&format!("magnet:?xt=urn:btih:{}&{text}", "a".repeat(40)));
        let _ = http::parse_query(&text);
        let _ = http::parse_query(&format!("/announce?{text}"));
    });
}

/// An info dictionary with whatever values where known keys are expected.
#[derive(Clone, Debug, TypeGenerator)]
struct Torrent {
    name: u8,
    piece_length: u32,
    pieces: u8,
    #[generator(produce::<Vec<(u32, Vec<u8>)>>().with().len(1..=4).values((0..=u32::MAX, produce::<Vec<u8>>().with().len(0..=4))))]
    files: Vec<(u32, Vec<u8>)>,
    odd: Option<(u8, Value)>,
}

/// A name: mostly plain, sometimes a trick.
fn name(octet: u8) -> Vec<u8> {
    match octet {
        0 => b"..".to_vec(),
        1 => Vec::new(),
        2 => b"a/b".to_vec(),
        3 => b"/etc".to_vec(),
        4 => b".".to_vec(),
        5 => vec![0xff, 0xfe],
        octet => format!("n{octet}").into_bytes(),
    }
}

impl Torrent {
    fn encode(&self) -> Vec<u8> {
        let file = |(length, path): &(u32, Vec<u8>)| {
            let path = path.iter().map(|part| Form::Bytes(name(*part))).collect::<Vec<_>>();
            Form::dict().with("length", *length % 100_000).with("path", path)
        };
        let total: u64 = self.files.iter().map(|(length, _)| u64::from(length % 100_000)).sum();
        let piece_length = 1_000 + self.piece_length % 100_000;
        let count = if self.pieces == 0 { 1 } else { total.div_ceil(piece_length.into()) as usize };
        let info = Form::dict()
            .with("name", name(self.name))
            .with("piece length", piece_length)
            .with("pieces", vec![0; count * 20])
            .with("files", self.files.iter().map(file).collect::<Vec<_>>());
        let keys =
            ["name", "piece length", "pieces", "files", "length", "private", "meta version", "file tree"];
        let odd = |(key, value): &(u8, Value)| (keys[usize::from(*key) % keys.len()], value.form());
        match self.odd.as_ref().map(odd) {
            Some((key, value)) => info.with(key, value).encode(),
            None => info.encode(),
        }
    }
}

#[test]
fn no_torrent_leads_out_of_its_folder_or_contradicts_itself() {
    let tally = Tally::default();
    check!().with_iterations(TRIES).with_type::<Torrent>().for_each(|torrent| {
        let octets = torrent.encode();
        let info = Info::parse(&octets);
        tally.count(info.is_ok());
        let Ok(info) = info else { return };
        assert!(info.files.iter().flat_map(|file| &file.path).all(|part| check_component(part).is_ok()));
        assert!(info.files.iter().all(|file| file.path[0] == info.name));
        let pieces: u64 = (0..info.piece_count()).map(|piece| u64::from(info.piece_bytes(piece))).sum();
        assert_eq!(pieces, info.total_bytes);
        let mut offset = 0;
        for file in &info.files {
            assert_eq!(file.offset, offset);
            offset += file.length;
        }
    });
    tally.check(30);
}

/// A v2 torrent of files of 3, 1, 700 and 2 pieces, with its hashes.
fn torrent_v2() -> Info {
    let file = |(name, pieces): (&str, u64)| File {
        path: vec!["t".into(), name.into()],
        length: pieces * 16_384 - 1,
        offset: 0,
        is_padding: false,
        is_executable: false,
    };
    let files: Vec<File> = [("a", 3), ("b", 1), ("c", 700), ("d", 2)].into_iter().map(file).collect();
    let pieces = (0..706_u32).flat_map(|piece| [piece.to_be_bytes(); 8].concat()).collect();
    let writer =
        Writer { name: "t".into(), piece_length: 16_384, is_v2: true, pieces, files, ..Writer::default() };
    Metainfo::parse(&writer.encode()).unwrap().info
}

#[test]
fn requests_for_hashes_are_answered_truly_or_refused() {
    let (info, tally) = (torrent_v2(), Tally::default());
    let near = || produce::<u8>().with().bounds(0..=12_u8);
    let fields =
        (produce::<u8>(), near(), produce::<u16>(), near(), near(), produce::<u32>(), produce::<u8>());
    check!().with_iterations(TRIES).with_generator(fields).for_each(|fields| {
        let &(file, base, index, log, proofs, wild, spoiled) = fields;
        let mut range = HashRange {
            root: info.trees[usize::from(file) % 4].root,
            base: u32::from(base / 6),
            index: (u32::from(index) % 1024) >> log << log,
            length: 1 << log,
            proofs: u32::from(proofs),
        };
        match spoiled % 16 {
            0 => range.base = wild,
            1 => range.index = wild,
            2 => range.length = wild,
            3 => range.proofs = wild,
            4 => range.root[31] ^= 1,
            _ => {}
        }
        let answer = layers::Server::new(&info).answer(&info, &range);
        tally.count(matches!(answer, Message::Hashes(..)));
        let mut fetch = layers::Fetch::begin(&info);
        let due = fetch.due();
        match answer {
            Message::Hashes(told, hashes) => {
                assert!(told == range && hashes.len() <= 512 + 32);
                let (run, above) = hashes.split_at(range.length as usize);
                // Where less was asked for than leads to the root, it does not lead there.
                let is_whole =
                    above.len() as u32 + range.length.trailing_zeros() == info_levels(&info, &range);
                assert_eq!(leads_to(&range.root, range.base, range.index, run, above), is_whole);
                let progress = fetch.receive(&range, &hashes);
                assert_eq!(progress == layers::Progress::Failed, due.contains(&range) && !is_whole);
            }
            other => assert_eq!(other, Message::HashReject(range)),
        }
    });
    tally.check(1);
}

fn info_levels(info: &Info, range: &HashRange) -> u32 {
    info.trees.iter().find(|tree| tree.root == range.root).unwrap().levels()
}

#[test]
fn a_torrent_that_was_made_is_read_as_it_was_made() {
    let names = produce::<Vec<(u8, u16)>>().with().len(1..=8);
    check!().with_iterations(2_000).with_generator((names, produce::<bool>())).for_each(
        |(names, private)| {
            let (mut files, mut offset) = (Vec::new(), 0);
            for (index, (letter, length)) in names.iter().enumerate() {
                let (path, length) =
                    (vec!["t".into(), format!("{letter}"), format!("{index}")], u64::from(*length) + 1);
                let is_executable = letter % 2 == 0;
                files.push(File { path, length, offset, is_padding: false, is_executable });
                offset += length;
            }
            let writer = Writer {
                name: "t".into(),
                piece_length: 16_384,
                pieces: vec![1; 20 * offset.div_ceil(16_384) as usize],
                files,
                is_private: *private,
                trackers: vec![vec!["http://x/".into()]],
                ..Writer::default()
            };
            let read = Metainfo::parse(&writer.encode()).unwrap();
            assert_eq!((&read.info.files, read.info.is_private), (&writer.files, *private));
            assert_eq!((read.trackers, read.info.pieces), (writer.trackers, writer.pieces));
        },
    );
}

#[test]
fn a_link_that_was_written_is_read() {
    let text = || produce::<String>();
    let texts = produce::<Vec<String>>().with().len(0..=4);
    let link = (produce::<[u8; 20]>(), text(), texts, produce::<Vec<(u16, u16)>>().with().len(0..=4));
    check!().with_iterations(TRIES).with_generator(link).for_each(|(hash, name, trackers, ranges)| {
        let magnet = Magnet {
            hash_v1: Some(*hash),
            name: Some(name.clone()),
            // An empty one is none, and spaces around one are no part of it.
            trackers: trackers.iter().map(|text| format!("udp://{text}/")).collect(),
            selected: ranges.iter().map(|(a, b)| (u32::from(*a.min(b)), u32::from(*a.max(b)))).collect(),
            ..Magnet::default()
        };
        assert_eq!(Magnet::parse(&magnet.to_string()), Ok(magnet));
    });
}

#[test]
fn an_encryption_handshake_takes_octets_of_any_kind() {
    let parts = produce::<Vec<Vec<u8>>>().with().len(1..=12).values(octets_up_to(200));
    check!().with_iterations(300).with_generator((parts, produce::<bool>())).for_each(|(parts, opens)| {
        let secrets = Secrets { private: [9; 20], padding: vec![1; 5] };
        let mut handshake = match opens {
            true => Handshake::open([1; 20], Accept::EITHER, secrets),
            false => Handshake::answer(vec![[1; 20], [2; 20]], Accept::EITHER, secrets),
        };
        for part in parts {
            match handshake.receive(part) {
                Ok(None) => {}
                Ok(Some(outcome)) => assert!(outcome.info_hash.is_none(), "nobody guesses the hashes"),
                Err(_) => return,
            }
        }
    });
}

/// An announce into the local network whose lines are known ones, unknown ones, and octets.
fn called(lines: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut octets = b"BT-SEARCH * HTTP/1.1\r\n".to_vec();
    let port = (0, vec![0; 2]);
    for (kind, value) in lines.iter().chain([&port]) {
        match kind % 16 {
            0 => octets.extend(format!("Port: {}", value.len() * 4_000).bytes()),
            1..=4 => {
                octets.extend(b"infohash: ");
                let digits = value.iter().cycle().take(if value.is_empty() { 0 } else { 20 });
                octets.extend(digits.flat_map(|octet| format!("{octet:02X}").into_bytes()));
            }
            5..=8 => octets.extend([b"Cookie: ", &value[..]].concat()),
            9..=13 => octets.extend([b"x-more: ", &value[..]].concat()),
            _ => octets.extend(value),
        }
        octets.extend(b"\r\n");
    }
    octets.extend(b"\r\n\r\n");
    octets
}

/// Nobody is told of but where the datagram came from, and of few in a minute.
#[test]
fn what_a_network_calls_is_read_or_refused() {
    let tally = Tally::default();
    let lines = produce::<Vec<(u8, Vec<u8>)>>().with().len(0..=12);
    let octets = octets_up_to(300);
    check!().with_generator((lines, octets)).with_iterations(TRIES).for_each(|(lines, octets)| {
        let _ = local::Announce::parse(octets);
        let text = called(lines);
        let heard = local::Announce::parse(&text);
        tally.count(heard.is_some());
        let hash = heard.and_then(|heard| heard.hashes.first().copied()).unwrap_or_default();
        let (voice, mut search) = (local::Voice::new(7), local::Search::new(hash, Some(1)));
        let now = cede_units::Instant::from_secs(1_000);
        let mut told = 0;
        for host in 1..=50_u8 {
            let from = std::net::SocketAddr::from(([192, 0, 2, host], 9));
            if let Some(peer) = voice.hear(&text).and_then(|heard| search.receive(now, from, &heard)) {
                assert!(peer.ip() == from.ip() && peer.port() > 0);
                told += 1;
            }
        }
        assert!(told < 50);
    });
    tally.check(30);
}

/// Whatever a gateway answers: no port is believed that it was not asked for, and it is not asked more often than once in a while.
#[test]
fn a_gateway_may_answer_what_it_likes() {
    let tally = Tally::default();
    let answers = produce::<Vec<(u8, u16, Vec<u8>)>>().with().len(0..=12);
    check!().with_generator(answers).with_iterations(TRIES / 4).for_each(
        |answers: &Vec<(u8, u16, Vec<u8>)>| {
            let both = [gateway::Protocol::Tcp, gateway::Protocol::Udp];
            let mut now = cede_units::Instant::from_secs(1_000);
            let hosts: [std::net::IpAddr; 2] =
                [[192, 168, 1, 2].into(), [0x2001, 0xdb8, 0, 0, 0, 0, 0, 2].into()];
            let mut client = gateway::Client::new(hosts[answers.len() % 2], 6881, &both, [7; 12], now);
            let mut sent = 0;
            for (kind, at, octets) in answers {
                let Some(due) = client.poll_timeout() else { break };
                now = now.max(due);
                let Some(mut request) = client.poll_transmit(now) else { continue };
                sent += 1;
                // Mostly an answer to what was asked, with something else in one place.
                if kind % 8 > 0 {
                    request[1] |= 0x80;
                    request.resize(request.len().max(12), 1);
                    if let (Some(place), Some(octet)) =
                        (request.get_mut(usize::from(*at) % 64), octets.first())
                    {
                        *place = *octet;
                    }
                    client.receive(now, &request);
                } else {
                    client.receive(now, octets);
                }
            }
            assert!(client.grants().len() <= 2 && client.grants().iter().all(|grant| grant.port > 0));
            tally.count(!client.grants().is_empty());
            client.release(now);
            let mut left = 0;
            while let Some(due) = client.poll_timeout() {
                now = now.max(due);
                left += usize::from(client.poll_transmit(now).is_some());
            }
            assert!(sent <= answers.len() && left <= 4 * 2, "{left}");
        },
    );
    tally.check(20);
}

/// A description of tags and texts, of which some are those that matter.
#[test]
fn a_device_may_describe_itself_as_it_likes() {
    const PARTS: [&str; 12] = [
        "<service>",
        "</service>",
        "<serviceType>urn:schemas-upnp-org:service:WANIPConnection:1</serviceType>",
        "<controlURL>",
        "</controlURL>",
        "/control",
        "http://192.168.1.1:80/x",
        "http://192.0.2.9/x",
        "<x:service a=\"<\">",
        "</",
        "<",
        "\u{e9}>",
    ];
    let tally = Tally::default();
    let parts = produce::<Vec<u8>>().with().len(0..=24);
    let host = std::net::IpAddr::from([192, 168, 1, 1]);
    check!().with_generator((parts, octets_up_to(200))).with_iterations(TRIES).for_each(|(parts, octets)| {
        let _ = (igd::location(octets, host), igd::location(octets, std::net::Ipv6Addr::LOCALHOST.into()));
        let text = String::from_utf8_lossy(octets);
        let _ = (igd::error_code(&text), igd::external_address(&text), igd::admitted(&text));
        let around = ["<service>", PARTS[2], "<controlURL>"].concat();
        let parts: String = parts.iter().map(|part| PARTS[usize::from(*part) % PARTS.len()]).collect();
        for text in [text.into_owned(), parts.clone(), around + &parts] {
            let of = |kind| igd::Service::find(&text, "http://192.168.1.1:5000/desc.xml", kind);
            let found = of(igd::Kind::Translator);
            for found in found.iter().chain(&of(igd::Kind::Firewall)) {
                assert!(found.url.starts_with("http://192.168.1.1:"));
            }
            tally.count(found.is_some());
        }
    });
    tally.check(2);
}
