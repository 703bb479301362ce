//! The tracker of this crate, asked over HTTP and UDP by its own client; and a magnet link that is followed through it.

mod support;

use cede_bt::Disposition;
use cede_bt::engine::AnnounceEvent;
use cede_bt::metadata::Wanted;
use cede_bt::tracker::book::Limits;
use cede_bt::tracker::udp::{Asked, Request, Response};
use cede_bt::tracker::{Announce, Answer, Event};
use cede_bt::wire::{Handshake, Reserved};
use cede_torrent::acquaintance::Acquaintances;
use cede_torrent::announce::{self, Amounts, Identity, Trackers};
use cede_torrent::ask::Question;
use cede_torrent::calls::Calls;
use cede_torrent::fetch::{Download, download};
use cede_torrent::magnet::{Seeker, fetch};
use cede_torrent::origin::Origin;
use cede_torrent::server::{Entry, Over, Tracker};
use cede_torrent::session::{Choices, Encryption, Wish};
use std::cell::{Cell, RefCell};
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use support::{LIMIT, Member, PIECE, choices, run, torrent, torrent_v2};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::sync::mpsc;

type Entries = Rc<RefCell<Vec<Entry>>>;

/// A tracker that runs, and what it has heard.
fn start(only: Vec<[u8; 20]>) -> (SocketAddr, Entries) {
    start_at("127.0.0.1:0", only)
}

fn start_at(address: &str, only: Vec<[u8; 20]>) -> (SocketAddr, Entries) {
    let entries = Entries::default();
    let log = entries.clone();
    let log = Box::new(move |entry: &Entry| log.borrow_mut().push(entry.clone()));
    let tracker = Tracker::bind(address.parse().unwrap(), Limits::default(), only, log).unwrap();
    let address = tracker.local_addr().unwrap();
    tokio::task::spawn_local(async move { tracker.run().await });
    (address, entries)
}

fn announcement(id: u8, left: u64) -> Announce {
    Announce {
        info_hash: [9; 20],
        peer_id: [id; 20],
        port: 1000 + u16::from(id),
        uploaded: 1,
        downloaded: 2,
        left: Some(left),
        event: Event::Started,
        key: 5,
        wanted: None,
    }
}

async fn ask(url: &str, id: u8, left: u64) -> Result<Answer, String> {
    ask_from(url, id, left, Origin::default()).await
}

async fn ask_from(url: &str, id: u8, left: u64, origin: Origin) -> Result<Answer, String> {
    let announce = announcement(id, left);
    let acquaintances = Acquaintances::default();
    let question =
        Question { url: url.to_owned(), is_named: true, announce, tracker_id: None, origin, acquaintances };
    let (late, mut come) = mpsc::unbounded_channel();
    let asked = cede_torrent::ask::ask(question, move |answer: Answer| drop(late.send(answer)));
    let mut answer = asked.await.map_err(|refusal| refusal.why)?;
    if let Some(late) = come.recv().await {
        answer.peers.extend(late.peers);
    }
    Ok(answer)
}

/// A machine has several addresses: the tracker answers from the one that was asked.
#[test]
fn answers_over_udp_come_from_the_address_that_was_asked() {
    for everywhere in ["0.0.0.0:0", "[::]:0"] {
        run(async {
            let (address, entries) = start_at(everywhere, Vec::new());
            let url = format!("udp://127.0.0.2:{}", address.port());
            ask(&url, 1, 7).await.unwrap();
            let heard: Vec<_> =
                entries.borrow().iter().map(|entry| (entry.over, entry.result.clone())).collect();
            assert_eq!(heard, [(Over::Udp, Ok(0))]);
        });
    }
}

#[test]
fn peers_that_ask_over_http_and_udp_find_each_other() {
    run(async {
        let (address, entries) = start(Vec::new());
        let (http, udp) = (format!("http://{address}/announce"), format!("udp://{address}/announce"));
        let first = ask(&http, 1, 7).await.unwrap();
        assert_eq!((first.peers.len(), first.leechers, first.interval_s), (0, Some(1), 1800));
        let second = ask(&udp, 2, 0).await.unwrap();
        assert_eq!(second.peers, ["127.0.0.1:1001".parse().unwrap()]);
        let third = ask(&http, 3, 7).await.unwrap();
        assert_eq!((third.peers.len(), third.seeders, third.leechers), (2, Some(1), Some(2)));
        let heard: Vec<_> = entries.borrow().iter().map(|entry| (entry.over, entry.result.clone())).collect();
        assert_eq!(heard, [(Over::Http, Ok(0)), (Over::Udp, Ok(1)), (Over::Http, Ok(2))]);
        assert_eq!(entries.borrow()[1].announce, Some(announcement(2, 0)));
    });
}

/// Nobody answers at the first tracker of a tier, which takes UDP's patience to find out: the next is asked meanwhile.
#[test]
fn a_tracker_that_is_silent_does_not_keep_the_next_from_being_asked() {
    run(async {
        let (address, _) = start(Vec::new());
        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let urls = [format!("udp://{}", silent.local_addr().unwrap()), format!("http://{address}/announce")];
        let identity =
            Identity { info_hash: [9; 20], peer_id: [1; 20], port: 1, key: 5, origin: Origin::default() };
        let (wishes, wished) = mpsc::unbounded_channel();
        let (notes, mut noted) = mpsc::unbounded_channel();
        let _ = wishes.send(Wish { event: AnnounceEvent::Started, want: 50 });
        let tiers = vec![urls.to_vec().into()];
        tokio::task::spawn_local(announce::run(tiers, identity, Amounts::default, wished, notes));
        // Whoever waited for the silent one would tell first that it did not answer.
        let note = tokio::time::timeout(LIMIT, noted.recv()).await.unwrap().unwrap();
        assert_eq!((note.url, note.result.is_ok()), (urls[1].clone(), true));
    });
}

/// A tracker that refuses everybody, and how often it has been asked.
async fn refusing(body: &'static str) -> (String, Rc<Cell<u32>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/announce", listener.local_addr().unwrap());
    let asked = Rc::new(Cell::new(0));
    let count = asked.clone();
    tokio::task::spawn_local(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            count.set(count.get() + 1);
            let mut query = [0; 4096];
            let _ = stream.read(&mut query).await;
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all((head + body).as_bytes()).await;
        }
    });
    (url, asked)
}

/// A tracker says in minutes when it wants to be asked again, or "never"; whatever happens meanwhile, the others of its tier are asked.
#[test]
fn a_tracker_that_refuses_is_left_alone_as_long_as_it_wants() {
    run(async {
        let (later, later_asked) = refusing("d14:failure reason4:busy8:retry ini60ee").await;
        let (never, never_asked) = refusing("d14:failure reason4:gone8:retry in5:nevere").await;
        let (plain, plain_asked) = refusing("d14:failure reason3:odde").await;
        let identity =
            Identity { info_hash: [9; 20], peer_id: [1; 20], port: 1, key: 5, origin: Origin::default() };
        let (wishes, wished) = mpsc::unbounded_channel();
        let (notes, mut noted) = mpsc::unbounded_channel();
        let tiers = vec![vec![later.clone(), never.clone(), plain.clone()].into()];
        tokio::task::spawn_local(announce::run(tiers, identity, Amounts::default, wished, notes));
        let mut said = Vec::new();
        for (event, count) in [(AnnounceEvent::Started, 3), (AnnounceEvent::Completed, 1)] {
            let _ = wishes.send(Wish { event, want: 50 });
            for _ in 0..count {
                let note = tokio::time::timeout(LIMIT, noted.recv()).await.unwrap().unwrap();
                said.push((note.url, note.result.unwrap_err()));
            }
        }
        let (busy, gone) =
            ("and wants to be asked again in 60 min: busy", "and wants not to be asked again: gone");
        let expected =
            [(later, busy), (never, gone), (plain.clone(), "refuses: odd"), (plain, "refuses: odd")];
        for ((url, why), (of, words)) in said.iter().zip(&expected) {
            assert!(url == of && why.ends_with(words), "{said:?}");
        }
        assert_eq!((later_asked.get(), never_asked.get(), plain_asked.get()), (1, 1, 2));
    });
}

/// A tracker that takes its time hears of the goodbye behind everything else.
/// A torrent, which anybody may have made, has nothing else on this machine asked; a person may.
#[test]
fn a_torrent_s_tracker_on_this_machine_is_asked_at_its_usual_path_alone() {
    run(async {
        let (url, asked) = refusing("d14:failure reason4:busye").await;
        let elsewhere = url.replace("/announce", "/reboot?now=1");
        let identity =
            Identity { info_hash: [9; 20], peer_id: [1; 20], port: 1, key: 5, origin: Origin::default() };
        let (wishes, wished) = mpsc::unbounded_channel();
        let (notes, mut noted) = mpsc::unbounded_channel();
        let _ = wishes.send(Wish { event: AnnounceEvent::Started, want: 50 });
        let strangers = vec![elsewhere.clone()].into();
        let named = Trackers { urls: vec![elsewhere.clone()], are_named: true };
        let tiers = vec![strangers, named, vec![url].into()];
        tokio::task::spawn_local(announce::run(tiers, identity, Amounts::default, wished, notes));
        let mut said = Vec::new();
        for _ in 0..3 {
            let note = tokio::time::timeout(LIMIT, noted.recv()).await.unwrap().unwrap();
            said.push((note.url == elsewhere, note.result.unwrap_err().contains("asked at /announce alone")));
        }
        said.sort_unstable();
        assert_eq!(said, [(false, false), (true, false), (true, true)]);
        assert_eq!(asked.get(), 2);
    });
}

#[test]
fn a_goodbye_waits_for_what_was_said_before_it() {
    run(async {
        let slow = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/announce", slow.local_addr().unwrap());
        let heard: Rc<RefCell<Vec<&str>>> = Rc::default();
        let events = heard.clone();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        tokio::task::spawn_local(async move {
            let mut begun = Some(begun);
            loop {
                let (mut stream, _) = slow.accept().await.unwrap();
                let (events, begun) = (events.clone(), begun.take());
                tokio::task::spawn_local(async move {
                    let mut request = [0; 2048];
                    let n = stream.read(&mut request).await.unwrap();
                    let event = ["started", "stopped"]
                        .into_iter()
                        .find(|event| String::from_utf8_lossy(&request[..n]).contains(event));
                    if begun.is_some_and(|begun| begun.send(()).is_ok()) {
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    }
                    events.borrow_mut().extend(event);
                    stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nd8:intervali60e5:peers0:e").await.unwrap();
                });
            }
        });
        let identity =
            Identity { info_hash: [9; 20], peer_id: [1; 20], port: 1, key: 5, origin: Origin::default() };
        let (wishes, wished) = mpsc::unbounded_channel();
        let (notes, _noted) = mpsc::unbounded_channel();
        let _ = wishes.send(Wish { event: AnnounceEvent::Started, want: 50 });
        let run = announce::run(vec![vec![url].into()], identity, Amounts::default, wished, notes);
        let running = tokio::task::spawn_local(run);
        has_begun.await.unwrap();
        drop(wishes);
        tokio::time::timeout(LIMIT, running).await.unwrap().unwrap();
        assert_eq!(*heard.borrow(), ["started", "stopped"]);
    });
}

#[test]
fn refusals_reach_the_asker() {
    run(async {
        let (address, _) = start(vec![[8; 20]]);
        for url in [format!("http://{address}/announce"), format!("udp://{address}")] {
            let why = ask(&url, 1, 7).await.unwrap_err();
            assert!(why.contains("not for that torrent"), "{url}: {why}");
        }
        let why = ask(&format!("http://{address}/elsewhere"), 1, 7).await;
        assert!(why.unwrap_err().contains("/announce"));
        for url in ["udp://localhost", "udp://[::1]/announce", "udp://localhost:/x"] {
            let why = ask(url, 1, 7).await.unwrap_err();
            assert!(why.contains("has a port"), "{url}: {why}");
        }
    });
}

/// A server that gives one answer to whatever it is asked, once; where.
fn server(head: &str, body: &[u8]) -> SocketAddr {
    let mut answer =
        format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())
            .into_bytes();
    answer.extend_from_slice(body);
    server_of(answer)
}

/// The same with an answer that may be none.
fn server_of(answer: Vec<u8>) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        use std::io::{BufRead, BufReader, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        lines.take_while(|line| !line.is_empty()).for_each(drop);
        let _ = stream.write_all(&answer);
    });
    address
}

#[test]
fn a_server_that_is_no_tracker_is_named_by_its_status_and_a_refusal_by_its_words() {
    run(async {
        let cases = [
            ("404 Not Found", &b"<html>"[..], "404 Not Found"),
            ("503 Service Unavailable", b"d14:failure reason4:busye", "refuses: busy"),
            ("200 OK", b"<html>", "answer is none"),
        ];
        for (head, body, expected) in cases {
            let url = format!("http://{}/announce", server(head, body));
            let why = ask(&url, 1, 7).await.unwrap_err();
            assert!(why.contains(expected), "{head}: {why}");
        }
        let cases = [
            (&b""[..], "the server hung up"),
            (b"\x13BitTorrent protocol\n\n", "no HTTP"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "no HTTP"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nd", "the server hung up"),
            (&[&b"HTTP/1.1 200 OK\r\n\r\n"[..], &[b'd'; 2 << 20]].concat(), "longer than 1048576 octets"),
        ];
        for (answer, expected) in cases {
            let why =
                ask(&format!("http://{}/announce", server_of(answer.to_vec())), 1, 7).await.unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
        let gone =
            download(&format!("http://{}/x", server("410 Gone", b"d1:ai1ee")), Origin::default()).await;
        assert!(gone.unwrap_err().contains("410 Gone"));
    });
}

/// A server may send on to another, to a magnet link, or to what is not fetched; and on and on.
#[test]
fn servers_that_send_on_are_followed_as_far_as_makes_sense() {
    let to = |place: &str| format!("302 Found\r\nLocation: {place}");
    run(async {
        let end = format!("http://{}/t", server("200 OK", b"d1:ai1ee"));
        let begin = format!("http://{}/s", server(&to(&end), b"moved"));
        match download(&begin, Origin::default()).await {
            Ok(Download::Octets(octets)) => assert_eq!(octets, b"d1:ai1ee"),
            _ => panic!("nothing came"),
        }
        let link = "magnet:?xt=urn:btih:0123456789abcdef0123456789abcdef01234567&dn=a";
        match download(&format!("http://{}/s", server(&to(link), b"")), Origin::default()).await {
            Ok(Download::Magnet(found)) => assert_eq!(found, link),
            _ => panic!("no link"),
        }
        // Spaces and letters that no URL has stand in some all the same.
        for begin in [format!("http://{}/a b?k=\u{e4}", server("200 OK", b"d1:ai1ee")), {
            let odd = format!("http://{}/\u{e4} b", server("200 OK", b"d1:ai1ee"));
            format!("http://{}/s", server(&to(&odd), b""))
        }] {
            let fetched = download(&begin, Origin::default()).await;
            assert_eq!(fetched, Ok(Download::Octets(b"d1:ai1ee".to_vec())), "{begin}");
        }
        let mut url = format!("http://{}/s", server(&to("http://127.0.0.1:1/?passkey=secret"), b""));
        for _ in 0..5 {
            url = format!("http://{}/s", server(&to(&url), b""));
        }
        for (url, expected) in [
            (
                format!("http://{}/s", server(&to("file:///etc/hosts"), b"")),
                "file:///etc/hosts, which is neither",
            ),
            (url, "more than 5 times, at last to http://127.0.0.1:1/?..."),
        ] {
            let why = download(&url, Origin::default()).await.expect_err("it cannot be had");
            assert!(why.contains(expected), "{why}");
        }
    });
}

/// Peers in the long form may be named by their hosts.
#[test]
fn peers_that_are_listed_by_name_are_looked_up() {
    run(async {
        let body = b"d8:intervali60e5:peersld2:ip9:localhost4:porti7eed2:ip9:192.0.2.14:porti8eed2:ip9:x.invalid4:porti9eeee";
        let answer = ask(&format!("http://{}/announce", server("200 OK", body)), 1, 7).await.unwrap();
        assert!(answer.peers.contains(&"192.0.2.1:8".parse().unwrap()), "{answer:?}");
        assert!(answer.peers.iter().any(|peer| peer.ip().is_loopback() && peer.port() == 7), "{answer:?}");
        assert!(answer.peers.iter().all(|peer| peer.port() != 9) && answer.named.is_empty(), "{answer:?}");
    });
}

/// A tracker that has addresses of both families comes to know us by both.
#[test]
fn a_tracker_is_asked_over_both_families() {
    let found: Vec<_> = ("localhost", 1).to_socket_addrs().into_iter().flatten().collect();
    let has_v6 = std::net::UdpSocket::bind("[::1]:0").is_ok();
    if !has_v6 || !found.iter().any(SocketAddr::is_ipv6) || !found.iter().any(SocketAddr::is_ipv4) {
        println!("skipped: localhost is not to be had by both families here");
        return;
    }
    run(async {
        let (address, entries) = start_at("[::]:0", Vec::new());
        for (id, scheme) in [(1, "http"), (2, "udp")] {
            entries.borrow_mut().clear();
            let url = format!("{scheme}://localhost:{}/announce", address.port());
            ask(&url, id, 7).await.unwrap();
            let mut heard: Vec<bool> =
                entries.borrow().iter().map(|entry| entry.from.ip().to_canonical().is_ipv6()).collect();
            heard.sort_unstable();
            assert_eq!(heard, [false, true], "{scheme}");
        }
        let answer = ask(&format!("http://localhost:{}/announce", address.port()), 3, 7).await.unwrap();
        let mut peers: Vec<String> = answer.peers.iter().map(ToString::to_string).collect();
        peers.sort_unstable();
        peers.dedup();
        assert_eq!(peers, ["127.0.0.1:1001", "127.0.0.1:1002", "[::1]:1001", "[::1]:1002"]);
    });
}

/// A scheme means the same in whatever case it is written (RFC 3986, section 3.1), and what is none of them is told in words.
#[test]
fn a_tracker_is_known_by_its_scheme_in_any_case() {
    run(async {
        let (address, entries) = start(Vec::new());
        for scheme in ["HTTP", "Http", "UDP", "Udp"] {
            entries.borrow_mut().clear();
            ask(&format!("{scheme}://{address}/announce"), 1, 7).await.unwrap();
            assert_eq!(entries.borrow().len(), 1, "{scheme}");
        }
        let why = ask(&format!("wss://{address}/announce"), 1, 7).await.unwrap_err();
        assert_eq!(why, "the URL is neither of http, https nor udp");
        let why = ask("http:///announce", 1, 7).await.unwrap_err();
        assert_eq!(why, "that is no URL that can be asked");
    });
}

/// Whoever is given an address asks from no other, and not where it does not lead.
#[test]
fn a_tracker_is_asked_from_the_address_that_was_given() {
    run(async {
        let (address, entries) = start(Vec::new());
        let from = |text: &str| Origin::new(Some(text.parse().unwrap()));
        for scheme in ["http", "udp"] {
            entries.borrow_mut().clear();
            let url = format!("{scheme}://{address}/announce");
            ask_from(&url, 1, 7, from("127.0.0.9")).await.unwrap();
            let heard: Vec<String> =
                entries.borrow().iter().map(|entry| entry.from.ip().to_canonical().to_string()).collect();
            assert_eq!(heard, ["127.0.0.9"], "{scheme}");
            let why = ask_from(&url, 1, 7, from("::1")).await.unwrap_err();
            assert!(why.contains("no address that the one to go out from leads to"), "{why}");
            let why = ask_from(&url, 1, 7, from("192.0.2.77")).await.unwrap_err();
            assert!(why.contains("assign requested address"), "{why}");
        }
    });
}

#[test]
fn what_a_server_keeps_compressed_comes_as_it_was() {
    use std::io::Write;
    let pack = |octets: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(octets).unwrap();
        packed.finish().unwrap()
    };
    run(async {
        let (info, _) = torrent(&[200_000]);
        let much = vec![0; cede_bt::metainfo::MAX_FILE_BYTES + 1];
        // Whatever it is called (RFC 9110, section 8.4.1).
        for name in ["gzip", "x-gzip", "GZip"] {
            let head = format!("200 OK\r\nContent-Encoding: {name}");
            let url = format!("http://{}/t", server(&head, &pack(&info.raw)));
            let Ok(Download::Octets(octets)) = download(&url, Origin::default()).await else {
                panic!("no octets of {name}")
            };
            assert_eq!(octets, info.raw);
            // Little that stands for more than any torrent may have is not unpacked to its end.
            let url = format!("http://{}/t", server(&head, &pack(&much)));
            let why = download(&url, Origin::default()).await.unwrap_err();
            assert_eq!(why, "the answer is too long", "{name}");
        }
    });
}

/// Trackers that know people by a key in the URL hear of it over UDP, too (BEP 41).
#[test]
fn a_tracker_over_udp_is_told_the_rest_of_its_url() {
    run(async {
        for (rest, told) in [
            ("/key/announce", "/key/announce"),
            ("/announce?passkey=k#f", "/announce?passkey=k"),
            ("?passkey=k", "?passkey=k"),
            ("/", ""),
            ("", ""),
        ] {
            let tracker = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let url = format!("udp://{}{rest}", tracker.local_addr().unwrap());
            let answering = async {
                let mut buffer = [0; 2048];
                loop {
                    let (n, from) = tracker.recv_from(&mut buffer).await.unwrap();
                    let asked = Asked::decode(&buffer[..n]).unwrap();
                    let (response, is_last) = match asked.request {
                        Request::Announce(_) => (Response::Announce(Answer::default()), true),
                        _ => (Response::Connect(3), false),
                    };
                    tracker.send_to(&response.encode(asked.transaction, false), from).await.unwrap();
                    if is_last {
                        return buffer[98..n].to_vec();
                    }
                }
            };
            let (heard, answer) = tokio::join!(answering, ask(&url, 1, 7));
            answer.unwrap();
            let head = [2, told.len() as u8];
            assert_eq!(
                heard,
                [&head[..2 * usize::from(!told.is_empty())], told.as_bytes()].concat(),
                "{url}"
            );
        }
    });
}

/// Answers over UDP, and notes what it was asked, the connection ids and ports among it. What it has given is good until it forgets.
async fn answer_udp(tracker: UdpSocket, heard: Rc<RefCell<Vec<(u64, u16)>>>, forgets_after: usize) {
    let (mut buffer, mut given, mut answered) = ([0; 2048], 0, 0);
    loop {
        let (n, from) = tracker.recv_from(&mut buffer).await.unwrap();
        let Asked { connection, transaction, request } = Asked::decode(&buffer[..n]).unwrap();
        heard.borrow_mut().push((connection, from.port()));
        let response = match request {
            Request::Connect => {
                given += 1;
                Response::Connect(given)
            }
            _ if answered == forgets_after && connection == 1 => Response::Error("who are you?".into()),
            _ => {
                answered += 1;
                Response::Announce(Answer { interval_s: 60, ..Answer::default() })
            }
        };
        tracker.send_to(&response.encode(transaction, false), from).await.unwrap();
    }
}

/// A connection id is good for a minute (BEP 15): it is used again, from the same port, and asked for anew where it is refused.
#[test]
fn a_tracker_over_udp_gives_a_connection_id_once() {
    run(async {
        let tracker = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let url = format!("udp://{}", tracker.local_addr().unwrap());
        let heard = Rc::default();
        tokio::task::spawn_local(answer_udp(tracker, Rc::clone(&heard), 2));
        let acquaintances = Acquaintances::default();
        for id in 1..=4 {
            let (url, announce, origin) = (url.clone(), announcement(id, 0), Origin::default());
            let acquaintances = acquaintances.clone();
            let question =
                Question { url, is_named: false, announce, tracker_id: None, origin, acquaintances };
            cede_torrent::ask::ask(question, drop).await.unwrap();
        }
        let heard = heard.borrow();
        let ids: Vec<u64> = heard.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [0, 1, 1, 1, 0, 2, 2]);
        assert!(heard[..4].iter().all(|(_, port)| *port == heard[0].1), "{heard:?}");
    });
}

#[test]
fn whatever_is_sent_to_the_tracker_it_goes_on() {
    run(async {
        let (address, _) = start(Vec::new());
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        for octets in [&b""[..], b"x", &[0; 16], &[255; 98]] {
            udp.send_to(octets, address).await.unwrap();
        }
        let many =
            format!("GET /scrape?{} HTTP/1.1\r\n\r\n", "info_hash=aaaaaaaaaaaaaaaaaaaa&".repeat(9_000));
        for (request, status) in [
            ("POST / HTTP/1.1\r\n\r\n", "40"),
            ("nonsense\r\n\r\n", "40"),
            ("GET /elsewhere?port=1 HTTP/1.0\r\n\r\n", "404"),
            (&many, "414 URI Too Long"),
        ] {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        }
        ask(&format!("udp://{address}"), 1, 7).await.unwrap();
    });
}

/// BEP 15 has an answer for what is not understood; whoever has no connection id may be somewhere else than its datagrams say.
#[test]
fn what_is_not_understood_is_refused_to_who_has_an_id_and_no_refusal_is_longer_than_its_request() {
    run(async {
        let (address, _) = start(Vec::new());
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        udp.connect(address).await.unwrap();
        let mut buffer = [0; 2048];
        let connect = Asked { connection: 0, transaction: 7, request: Request::Connect };
        udp.send(&connect.encode()).await.unwrap();
        let len = udp.recv(&mut buffer).await.unwrap();
        let Ok((7, Response::Connect(id))) = Response::decode(&buffer[..len], false) else { panic!() };
        let request = |id: u64, action: u32, more: usize| {
            [&id.to_be_bytes()[..], &action.to_be_bytes(), &9_u32.to_be_bytes(), &vec![0; more]].concat()
        };
        // No answers to these: the next one that comes is to the scrape.
        for octets in [request(id ^ 1, 9, 0), request(id ^ 1, 1, 5), request(id, 1, 0)[..15].to_vec()] {
            udp.send(&octets).await.unwrap();
        }
        for (octets, is_refused) in [
            (request(id ^ 1, 2, 0), true),
            (request(id ^ 1, 2, 20), true),
            (request(id, 9, 0), true),
            (request(id, 0, 0), true),
            (request(id, 1, 80), true),
            (request(id, 2, 20), false),
        ] {
            udp.send(&octets).await.unwrap();
            let len = udp.recv(&mut buffer).await.unwrap();
            let (transaction, response) = Response::decode(&buffer[..len], false).unwrap();
            assert_eq!((transaction, matches!(response, Response::Error(_))), (9, is_refused), "{octets:?}");
            assert!(len <= octets.len(), "{len} octets for {}: {response:?}", octets.len());
        }
    });
}

/// Other clients show the words of a refusal where the answer is one (200), and the number of any other status in their place.
#[test]
fn what_is_wrong_with_an_announce_stands_in_an_answer() {
    run(async {
        let (address, entries) = start(vec![[8; 20]]);
        let id = "%01".repeat(20);
        for (query, word) in [
            ("port=1".to_owned(), "info_hash"),
            (format!("info_hash=%01&peer_id={id}&port=1"), "info_hash"),
            (format!("info_hash={id}&port=1"), "peer_id"),
            (format!("info_hash={id}&peer_id={id}&port=65536"), "port"),
            (format!("info_hash={id}&peer_id={id}&port=1"), "not for that torrent"),
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!("GET /announce?{query} HTTP/1.1\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK"), "{query}: {head}");
            assert!(body.starts_with("d14:failure reason") && body.contains(word), "{query}: {body}");
            assert!(entries.borrow_mut().pop().unwrap().result.unwrap_err().contains(word), "{query}");
        }
    });
}

/// Who asks over HTTP is told where it is (BEP 24), of IPv4 as such where the tracker is at a socket for both.
#[test]
fn askers_hear_where_they_are() {
    run(async {
        let (everywhere, _) = start_at("[::]:0", Vec::new());
        for (host, told) in
            [("127.0.0.1", &b"4:\x7f\0\0\x01"[..]), ("::1", b"16:\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01")]
        {
            let address = SocketAddr::new(host.parse().unwrap(), everywhere.port());
            let mut stream = TcpStream::connect(address).await.unwrap();
            let id = "%01".repeat(20);
            let request = format!("GET /announce?info_hash={id}&peer_id={id}&port=1 HTTP/1.1\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            let expected = [b"11:external ip", told].concat();
            assert!(answer.windows(expected.len()).any(|part| part == expected), "{host}: {answer:?}");
        }
    });
}

/// A connection to a tracker from an address of this machine.
async fn connect_from(from: [u8; 4], address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(address).await.unwrap()
}

/// Whoever opens connections and says nothing takes half of them, not all; and those of many addresses end for whoever asks.
#[test]
fn who_is_silent_does_not_keep_others_from_the_tracker() {
    run(async {
        let (address, _) = start(Vec::new());
        let mut idle = Vec::new();
        for _ in 0..600 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        for k in 0..600_u16 {
            let [high, low] = k.to_be_bytes();
            idle.push(connect_from([127, 9, high, low], address).await);
        }
        let mut other = connect_from([127, 0, 0, 9], address).await;
        other.write_all(b"GET /scrape HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        other.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
    });
}

#[test]
fn a_swarm_meets_at_the_tracker_and_says_goodbye() {
    run(async {
        let (info, content) = torrent(&[200_000]);
        let (address, entries) = start(Vec::new());
        let mut announcing = Vec::new();
        let mut members = Vec::new();
        for id in 1..4 {
            let content = (id == 1).then_some(&content[..]);
            let mut member = Member::new(&info, content, &[], choices(id, 31)).await;
            let tier =
                vec![if id == 2 { format!("udp://{address}") } else { format!("http://{address}/announce") }];
            let (notes, mut noted) = mpsc::unbounded_channel::<announce::Note>();
            let session = member.session.clone();
            tokio::task::spawn_local(async move {
                while let Some(note) = noted.recv().await {
                    session.add_peers(&note.result.unwrap().peers);
                }
            });
            let (_, closed) = mpsc::unbounded_channel();
            let wishes = std::mem::replace(&mut member.wishes, closed);
            let port = member.address.port();
            let identity = Identity {
                info_hash: info.info_hash(),
                peer_id: [id; 20],
                port,
                key: id.into(),
                origin: Origin::default(),
            };
            let left = u64::from(content.is_none());
            let amounts = move || Amounts { left, ..Amounts::default() };
            announcing.push(tokio::task::spawn_local(announce::run(
                vec![tier.into()],
                identity,
                amounts,
                wishes,
                notes,
            )));
            member.start();
            // So that none comes to an empty book.
            while entries.borrow().len() < usize::from(id) {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            members.push(member);
        }
        // The seed is done at once; it stays until the others are.
        for member in &members {
            member.done().await;
        }
        members.iter().for_each(|member| member.session.leave());
        for task in announcing {
            tokio::time::timeout(LIMIT, task).await.unwrap().unwrap();
        }
        let count = |event| {
            let entries = entries.borrow();
            entries
                .iter()
                .flat_map(|entry| &entry.announce)
                .filter(|announce| announce.event == event)
                .count()
        };
        let stopped = count(Event::Stopped);
        assert_eq!((stopped, count(Event::Completed)), (3, 2));
    });
}

/// Whoever looks for a torrent over TCP, and waits nowhere.
fn seeker(wanted: Wanted, info_hash: [u8; 20], encryption: Encryption) -> Seeker {
    Seeker {
        wanted,
        info_hash,
        peer_id: [2; 20],
        client: "cede test".to_owned(),
        disposition: Disposition::TCP,
        encryption,
        listener: None,
        calls: Calls::default(),
    }
}

#[test]
fn a_magnet_link_leads_to_its_torrent() {
    run(async {
        // More than one part of 16 KiB.
        let (v1, content) = torrent(&[14_000_000 / 800 * 800]);
        assert!(v1.raw.len() > 16_384);
        let (v2, content_v2) = torrent_v2(&[5 * PIECE, 7, 1000 * PIECE + 1]);
        let v2 = Arc::new(v2.info);
        use Encryption::{Allow, Off, Prefer, Require};
        for (transports, theirs, ours, is_v2) in [
            (5, Off, Off, false),
            (5, Require, Allow, false),
            (5, Allow, Require, true),
            (10, Require, Prefer, false),
            (10, Off, Prefer, true),
            (10, Require, Allow, false),
        ] {
            let (info, content) = if is_v2 { (&v2, &content_v2) } else { (&v1, &content) };
            let wanted = if is_v2 { Wanted::V2(info.hash_v2.unwrap()) } else { Wanted::V1(info.hash_v1) };
            let giver = Choices { encryption: theirs, ..choices(1, transports) };
            let mut seed = Member::new(info, Some(content), &[], giver).await;
            seed.start();
            let stranger = Member::new(info, None, &[], choices(3, transports)).await;
            let seeker = Seeker {
                disposition: Disposition(transports),
                listener: Some(stranger.listener.clone()),
                ..seeker(wanted, info.info_hash(), ours)
            };
            let (found, mut peers) = mpsc::unbounded_channel();
            // One that nobody answers at, and one that has it.
            found.send(vec!["127.0.0.1:1".parse().unwrap(), seed.address]).unwrap();
            drop(found);
            let fetched = tokio::time::timeout(LIMIT, fetch(&seeker, &mut peers)).await.unwrap();
            assert_eq!(fetched.0.unwrap().unwrap(), **info);
            assert_eq!((fetched.1.len(), fetched.1[0]), (2, seed.address), "who has told is called first");
        }
    });
}

#[test]
fn a_link_to_nothing_ends() {
    run(async {
        let seeker = seeker(Wanted::V1([1; 20]), [1; 20], Encryption::Allow);
        let (found, mut peers) = mpsc::unbounded_channel();
        found.send(vec!["127.0.0.1:1".parse().unwrap()]).unwrap();
        drop(found);
        assert_eq!(tokio::time::timeout(LIMIT, fetch(&seeker, &mut peers)).await.unwrap().0, None);
    });
}

/// Many take a connection and say nothing, and are waited for no longer than others have to be.
#[test]
fn who_says_nothing_does_not_keep_others_from_being_asked() {
    run(async {
        let (info, content) = torrent(&[3 * PIECE]);
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 31)).await;
        seed.start();
        let mut silent = Vec::new();
        for _ in 0..36 {
            silent.push(TcpListener::bind("127.0.0.1:0").await.unwrap());
        }
        let mut addresses: Vec<SocketAddr> = silent.iter().map(|door| door.local_addr().unwrap()).collect();
        addresses.push(seed.address);
        let seeker = seeker(Wanted::V1(info.info_hash()), info.info_hash(), Encryption::Off);
        let (found, mut peers) = mpsc::unbounded_channel();
        found.send(addresses).unwrap();
        // Not even the third ten of the silent are given up by then, each of which takes ten seconds.
        let soon = Duration::from_secs(28);
        let told = tokio::time::timeout(soon, fetch(&seeker, &mut peers)).await.unwrap().0;
        assert_eq!(told.unwrap().unwrap(), *info);
    });
}

/// Who only says that it is alive holds one of the places of those that are asked for as long as who says nothing, not for a minute.
#[test]
fn who_says_nothing_to_the_point_is_not_heard_for_long() {
    run(async {
        let info_hash = [7; 20];
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let seeker = seeker(Wanted::V1(info_hash), info_hash, Encryption::Off);
        let (found, mut peers) = mpsc::unbounded_channel();
        found.send(vec![door.local_addr().unwrap()]).unwrap();
        let alive = async {
            let (mut stream, _) = door.accept().await.unwrap();
            let handshake = Handshake {
                reserved: Reserved::default().with(Reserved::EXTENDED),
                info_hash,
                peer_id: [9; 20],
            };
            stream.write_all(&handshake.encode()).await.unwrap();
            let (mut said, mut heard) = (0, [0; 2048]);
            loop {
                let listening = tokio::time::timeout(Duration::from_millis(500), stream.read(&mut heard));
                if listening.await.is_ok_and(|read| read.is_ok_and(|n| n == 0)) {
                    return said;
                }
                stream.write_all(&[0; 4]).await.unwrap();
                said += 1;
            }
        };
        let said = tokio::select! {
            said = alive => said,
            _ = fetch(&seeker, &mut peers) => panic!("there may be others"),
        };
        assert!((10..60).contains(&said), "{said}");
    });
}

/// Who is starting, or looks for the same, can tell later.
#[test]
fn a_peer_that_could_not_tell_is_asked_again_as_long_as_others_may_come() {
    run(async {
        let (info, content) = torrent(&[3 * PIECE]);
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 31)).await;
        seed.start();
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = door.local_addr().unwrap();
        let behind = seed.address;
        tokio::task::spawn_local(async move {
            drop(door.accept().await.unwrap());
            let (mut caller, _) = door.accept().await.unwrap();
            let mut seed = TcpStream::connect(behind).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut caller, &mut seed).await;
        });
        let seeker = seeker(Wanted::V1(info.info_hash()), info.info_hash(), Encryption::Off);
        let (found, mut peers) = mpsc::unbounded_channel();
        found.send(vec![at]).unwrap();
        let told = tokio::time::timeout(LIMIT, fetch(&seeker, &mut peers)).await.unwrap().0;
        assert_eq!(told.unwrap().unwrap(), *info);
    });
}
