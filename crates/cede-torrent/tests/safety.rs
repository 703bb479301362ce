//! Hostile and unlucky circumstances, through whole sessions: a full disk, a poisoning peer, peers that lie and flood.
//! (Names that lead out of the folder: `cede-bt`'s metainfo tests; links: `storage.rs`; kill -9: `cede`'s tests of the command.)

mod support;

use cede_bt::wire::{BlockRef, Handshake, Message, Reserved};
use cede_torrent::check::{Watch, check};
use cede_torrent::session::{Choices, SessionError};
use cede_torrent::storage::{Allocation, Storage};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use support::{LIMIT, Member, PIECE, Scratch, choices, run, torrent, until};

/// Set for who has a mount namespace of its own.
const INSIDE: &str = "CEDE_SAFETY_INSIDE";

/// Runs the test again in a mount namespace of its own; true for who is inside.
fn has_own_mounts(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let unshare = |rest: &[&str]| {
        let mut command = Command::new("unshare");
        command.arg("--mount").args(rest);
        command
    };
    let probe = "mount -t tmpfs -o size=64k none /mnt";
    let works =
        unshare(&["sh", "-c", probe]).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !works {
        println!("SKIPPED: the system lets nobody mount a small file system (root is needed)");
        return false;
    }
    let exe = std::env::current_exe().unwrap().display().to_string();
    let status = unshare(&[&exe, "--exact", test, "--nocapture"]).env(INSIDE, "1").status().unwrap();
    assert!(status.success(), "{test} failed in its namespace");
    false
}

fn mount(options: &str, at: &std::path::Path) {
    let status = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(at).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_full_disk_ends_the_download_and_it_goes_on_where_there_is_room() {
    if !has_own_mounts("a_full_disk_ends_the_download_and_it_goes_on_where_there_is_room") {
        return;
    }
    run(async {
        let (info, content) = torrent(&[400_000, 400_000]);
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        seed.start();
        let scratch = Scratch::new();
        mount("size=300k", &scratch.0);
        let storage = Arc::new(Storage::new(&scratch.0, &info, &[]).unwrap());
        let nothing = vec![false; info.piece_count() as usize];
        let mut leech = Member::resumed(&info, &storage, &nothing, choices(2, 5)).await;
        let mut driver = leech.driver.take().unwrap();
        leech.session.add_peers(&[seed.address]);
        let ended = tokio::time::timeout(LIMIT, driver.run()).await.expect("it goes on without room");
        let Err(SessionError::Storage(error)) = ended else { panic!("{ended:?}") };
        assert!(error.is_full(), "{error}");
        assert!(SessionError::Storage(error).to_string().contains("make room"));
        // Whatever it has offered to others is there.
        let offered = leech.session.whole();
        drop(driver);
        let whole = check(&storage, &info, &[], &Watch::default());
        assert!(offered.iter().zip(&whole).all(|(offered, there)| !offered || *there));
        assert!(whole.iter().any(|there| *there) && whole.iter().any(|there| !there));
        mount("remount,size=4m", &scratch.0);
        let mut again = Member::resumed(&info, &storage, &whole, choices(3, 5)).await;
        again.start();
        again.session.add_peers(&[seed.address]);
        again.done().await;
        assert_eq!(again.content(content.len()), content);
    });
}

/// The memory of a process is a plain file that cannot be read at its beginning, as on a disk that is damaged there.
#[test]
fn what_cannot_be_read_is_taken_for_missing_and_told_of() {
    if !has_own_mounts("what_cannot_be_read_is_taken_for_missing_and_told_of") {
        return;
    }
    let (info, content) = torrent(&[2 * PIECE, 2 * PIECE]);
    let scratch = Scratch::new();
    Storage::new(&scratch.0, &info, &[]).unwrap().write(0, &content).unwrap();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    let found = |storage: &Storage| {
        let watch = Watch::default();
        (check(storage, &info, &[], &watch), watch.unread.into_inner())
    };
    let (whole, unread) = found(&storage);
    assert!(whole.iter().all(|there| *there) && unread.is_none());
    let path = storage.path_of(1);
    let memory = format!("/proc/{}/mem", std::process::id());
    let status = Command::new("mount").args(["--bind", &memory]).arg(&path).status().unwrap();
    assert!(status.success());
    let (whole, unread) = found(&Storage::new(&scratch.0, &info, &[]).unwrap());
    assert_eq!(whole, [true, true, false, false]);
    let error = unread.expect("nobody hears of it");
    assert!(error.path == path && error.to_string().contains("cannot read"), "{error}");
    // What is not there at all is no such case.
    let (_, unread) = found(&Storage::new(&Scratch::new().0, &info, &[]).unwrap());
    assert!(unread.is_none());
}

/// What nobody could find at the end of a download is not fetched to its end.
#[test]
fn files_that_are_taken_away_end_a_download() {
    run(async {
        let (info, content) = torrent(&[600_000]);
        let giver = Choices { upload_limit: Some(150_000), ..choices(1, 5) };
        let mut seed = Member::new(&info, Some(&content), &[], giver).await;
        seed.start();
        let mut leech = Member::new(&info, None, &[], choices(2, 5)).await;
        let (path, mut driver) = (leech.storage.path_of(0), leech.driver.take().unwrap());
        leech.session.add_peers(&[seed.address]);
        let take_away = async {
            while leech.session.view().pieces < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            std::fs::remove_file(&path).unwrap();
            std::future::pending::<()>().await;
        };
        let ended = tokio::time::timeout(LIMIT, async {
            tokio::select! { ended = driver.run() => ended, () = take_away => Ok(()) }
        });
        let Ok(Err(SessionError::Storage(error))) = ended.await else { panic!("it went on") };
        assert!(error.path == path && error.to_string().contains("moved or removed"), "{error}");
        // It was noticed on the way.
        assert!(leech.session.view().pieces < info.piece_count());
    });
}

#[test]
fn a_file_that_is_gone_at_the_end_is_missed_then() {
    run(async {
        let (info, content) = torrent(&[4 * PIECE, 4 * PIECE]);
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        seed.start();
        let scratch = Scratch::new();
        let storage = Arc::new(Storage::new(&scratch.0, &info, &[]).unwrap());
        storage.write(0, &content[..4 * PIECE]).unwrap();
        let half: Vec<bool> = (0..info.piece_count()).map(|piece| piece < 4).collect();
        let mut leech = Member::resumed(&info, &storage, &half, choices(2, 5)).await;
        std::fs::remove_file(storage.path_of(0)).unwrap();
        let mut driver = leech.driver.take().unwrap();
        leech.session.add_peers(&[seed.address]);
        let ended = tokio::time::timeout(LIMIT, driver.run()).await.expect("nobody misses it");
        let Err(SessionError::Storage(error)) = ended else { panic!("{ended:?}") };
        assert!(error.path == storage.path_of(0) && !leech.session.is_done(), "{error}");
    });
}

#[test]
fn what_was_set_aside_in_vain_is_given_back() {
    if !has_own_mounts("what_was_set_aside_in_vain_is_given_back") {
        return;
    }
    run(async {
        let (info, _) = torrent(&[100_000, 100_000, 400_000]);
        let scratch = Scratch::new();
        mount("size=300k", &scratch.0);
        let there = scratch.0.join("t/f1");
        std::fs::create_dir(scratch.0.join("t")).unwrap();
        std::fs::write(&there, "mine").unwrap();
        let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
        assert!(storage.make_room(Allocation::Full, &[]).unwrap_err().is_full());
        let files: Vec<_> =
            std::fs::read_dir(scratch.0.join("t")).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files, [there]);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn who_poisons_pieces_is_banned_by_address_and_the_download_ends_well() {
    run(async {
        let (info, content) = torrent(&[500_000]);
        let poison: Vec<u8> = content.iter().map(|octet| octet ^ 1).collect();
        let other = IpAddr::from(Ipv4Addr::new(127, 0, 0, 2));
        let mut liar = Member::at(other, &info, Some(&poison), &[], choices(1, 5)).await;
        let mut honest = Member::new(&info, Some(&content), &[], choices(2, 5)).await;
        let mut leech = Member::new(&info, None, &[], choices(3, 5)).await;
        leech.start();
        liar.start();
        leech.session.add_peers(&[liar.address]);
        let banned = async {
            while leech.session.view().banned.is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LIMIT, banned).await.expect("the liar is not banned");
        assert_eq!((leech.session.view().banned, leech.session.view().pieces), (vec![liar.address], 0));
        // From another port of the same address nobody is heard; from elsewhere they are.
        assert_eq!(answer_to(leech.address, other, info.info_hash()).await, 0);
        assert_eq!(answer_to(leech.address, Ipv4Addr::LOCALHOST.into(), info.info_hash()).await, 68);
        honest.start();
        leech.session.add_peers(&[honest.address]);
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
    });
}

/// How many octets of a handshake come back to one that is sent from an address.
async fn answer_to(to: SocketAddr, from: IpAddr, info_hash: [u8; 20]) -> usize {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from, 0)).unwrap();
    let mut stream = socket.connect(to).await.unwrap();
    let handshake = Handshake { reserved: Reserved::default(), info_hash, peer_id: [77; 20] }.encode();
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let _ = stream.write_all(&handshake).await;
    let mut answer = [0; 68];
    match tokio::time::timeout(LIMIT, stream.read_exact(&mut answer)).await.expect("neither heard nor closed")
    {
        Ok(_) => answer.len(),
        Err(_) => 0,
    }
}

/// A peer on a thread of its own that takes one connection, says what it is told to, and then reads until the end. The octets
/// that it reads.
fn fake(info_hash: [u8; 20], said: Vec<u8>) -> (SocketAddr, std::thread::JoinHandle<u64>) {
    let reserved = Reserved::default().with(Reserved::FAST);
    speaker(Handshake { reserved, info_hash, peer_id: [66; 20] }, said)
}

/// The same with a handshake of its own.
fn speaker(handshake: Handshake, said: Vec<u8>) -> (SocketAddr, std::thread::JoinHandle<u64>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut words = handshake.encode().to_vec();
    words.extend(said);
    let thread = std::thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let _ = stream.write_all(&words);
        let (mut buffer, mut heard) = ([0; 4096], 0);
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            heard += n as u64;
        }
        heard
    });
    (address, thread)
}

fn octets_of(messages: &[Message]) -> Vec<u8> {
    let mut octets = Vec::new();
    messages.iter().for_each(|message| message.encode(&mut octets));
    octets
}

#[test]
fn who_claims_everything_and_gives_nothing_delays_no_download() {
    run(async {
        let (info, content) = torrent(&[500_000]);
        let (liar, _) = fake(info.info_hash(), octets_of(&[Message::HaveAll, Message::Unchoke]));
        let mut honest = Member::new(&info, Some(&content), &[], choices(2, 5)).await;
        let mut leech = Member::new(&info, None, &[], choices(3, 5)).await;
        leech.start();
        honest.start();
        leech.session.add_peers(&[liar]);
        let asked = async {
            while leech.session.view().peers.is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LIMIT, asked).await.unwrap();
        leech.session.add_peers(&[honest.address]);
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
    });
}

/// Without the fast extension a request that is taken back is forgotten: who never answers has nothing to do, and gets the next.
#[test]
fn several_who_answer_nothing_keep_no_download_from_its_end() {
    run(async {
        let (info, content) = torrent(&[500_000]);
        let everything = Message::Bitfield(vec![0xff, 0xff, 0xff, 0xfe]);
        let words = octets_of(&[everything, Message::Unchoke]);
        let mut leech = Member::new(&info, None, &[], choices(3, 5)).await;
        leech.start();
        for number in [66, 67, 68] {
            let (reserved, info_hash) = (Reserved::default(), info.info_hash());
            let (mute, _) = speaker(Handshake { reserved, info_hash, peer_id: [number; 20] }, words.clone());
            leech.session.add_peers(&[mute]);
        }
        let asked = async {
            while leech.session.view().peers.len() < 3 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LIMIT, asked).await.unwrap();
        let mut honest = Member::new(&info, Some(&content), &[], choices(2, 5)).await;
        honest.start();
        leech.session.add_peers(&[honest.address]);
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
    });
}

/// Says something to a seed and returns once the seed has hung up.
async fn hung_up_on(messages: Vec<u8>) -> bool {
    let (info, content) = torrent(&[500_000]);
    let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
    seed.start();
    let (address, thread) = fake(info.info_hash(), messages);
    seed.session.add_peers(&[address]);
    // A seed dials as well; the fake reads until it is closed.
    let ended = tokio::task::spawn_blocking(move || thread.join().is_ok());
    tokio::time::timeout(LIMIT, ended).await.is_ok_and(|joined| joined.unwrap())
}

#[test]
fn messages_that_are_too_long_end_the_connection() {
    run(async {
        for id in [0_u8, 4, 5, 6, 7, 20, 99] {
            let mut octets = octets_of(&[Message::HaveNone]);
            octets.extend(0x7fff_ffff_u32.to_be_bytes());
            octets.push(id);
            assert!(hung_up_on(octets).await, "message {id}");
        }
    });
}

#[test]
fn requests_for_too_much_end_the_connection() {
    run(async {
        let block = BlockRef { piece: 0, begin: 0, len: 1 << 20 };
        assert!(hung_up_on(octets_of(&[Message::HaveNone, Message::Request(block)])).await);
    });
}

/// So many connections from 127.0.0.`host` that say so much, each of which stays open as long as it is kept.
async fn crowd(host: u8, to: SocketAddr, count: usize, words: &[u8]) -> Vec<tokio::net::TcpStream> {
    use tokio::io::AsyncWriteExt;
    let mut streams = Vec::new();
    for _ in 0..count {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(Ipv4Addr::new(127, 0, 0, host).into(), 0)).unwrap();
        let mut stream = socket.connect(to).await.unwrap();
        stream.write_all(words).await.unwrap();
        streams.push(stream);
    }
    streams
}

/// Whether somebody else gets the content within so many seconds although one address has opened connections by the dozen.
async fn is_served_beside(count: usize, greets: bool, seconds: u64) -> bool {
    let (info, content) = torrent(&[500_000]);
    let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
    seed.start();
    let handshake =
        Handshake { reserved: Reserved::default(), info_hash: info.info_hash(), peer_id: [66; 20] };
    let words = if greets { handshake.encode().to_vec() } else { Vec::new() };
    let crowd = crowd(2, seed.address, count, &words).await;
    // All have been heard.
    tokio::time::sleep(Duration::from_millis(500)).await;
    until(|| !greets || !seed.session.view().peers.is_empty()).await;
    let mut leech = Member::new(&info, None, &[], choices(2, 5)).await;
    leech.start();
    leech.session.add_peers(&[seed.address]);
    let is_served = tokio::time::timeout(Duration::from_secs(seconds), leech.done()).await.is_ok();
    drop(crowd);
    is_served && leech.content(content.len()) == content
}

#[cfg(target_os = "linux")]
#[test]
fn one_address_does_not_take_all_places() {
    run(async {
        // The profile of these tests has fifty places; a hundred callers may be about to speak.
        assert!(is_served_beside(60, true, 30).await);
        assert!(is_served_beside(150, false, 10).await);
    });
}

/// Whoever says that it wants something and asks for nothing has no slot for long, from however many connections.
#[cfg(target_os = "linux")]
#[test]
fn who_is_interested_and_asks_for_nothing_holds_up_nobody_for_long() {
    run(async {
        let (info, content) = torrent(&[500_000]);
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        seed.start();
        let mut crowds = Vec::new();
        for host in [2, 3, 4] {
            let (reserved, info_hash) = (Reserved::default(), info.info_hash());
            for number in 0..60 {
                let peer_id = [host, number].repeat(10).try_into().unwrap();
                let mut words = Handshake { reserved, info_hash, peer_id }.encode().to_vec();
                words.extend(octets_of(&[Message::Interested]));
                crowds.extend(crowd(host, seed.address, 1, &words).await);
            }
        }
        until(|| seed.session.view().peers.len() >= 40).await;
        let mut leech = Member::new(&info, None, &[], choices(2, 5)).await;
        leech.start();
        let began = std::time::Instant::now();
        leech.session.add_peers(&[seed.address]);
        leech.done().await;
        // A slot is had within 10 s where the machine is busy as well, and in a round trip then.
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        println!("{:?}", began.elapsed());
        assert_eq!(leech.content(content.len()), content);
        drop(crowds);
    });
}

#[test]
fn who_floods_with_requests_delays_nobody() {
    run(async {
        let (info, content) = torrent(&[500_000]);
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        seed.start();
        let block = |n: u32| BlockRef { piece: n % 30, begin: 0, len: 16_384 - n / 30 % 1_000 };
        let requests = (0..30_000).map(|n| Message::Request(block(n)));
        let words: Vec<Message> =
            [Message::HaveNone, Message::Interested].into_iter().chain(requests).collect();
        let (flooder, _) = fake(info.info_hash(), octets_of(&words));
        seed.session.add_peers(&[flooder]);
        let mut leech = Member::new(&info, None, &[], choices(2, 5)).await;
        leech.start();
        leech.session.add_peers(&[seed.address]);
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
    });
}

/// A peer on a thread of its own that says nothing of any use as fast as it can. It counts the octets of that.
fn babbler(info_hash: [u8; 20]) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, said) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let count = said.clone();
    let handshake = Handshake { reserved: Reserved::default(), info_hash, peer_id: [66; 20] };
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&handshake.encode()).unwrap();
        let words = octets_of(&[Message::KeepAlive]).repeat(16_384);
        while let Ok(n) = stream.write(&words) {
            count.fetch_add(n as u64, Ordering::Relaxed);
        }
    });
    (address, said)
}

/// It took its part of what may be read for as long as it was there, and had 100 MB read in no time.
#[test]
fn who_babbles_without_end_is_let_go() {
    run(async {
        let (info, content) = torrent(&[4_000_000]);
        let (babbler, said) = babbler(info.info_hash());
        let mut leech = Member::new(&info, None, &[], choices(2, 5)).await;
        leech.start();
        leech.session.add_peers(&[babbler]);
        until(|| said.load(Ordering::Relaxed) > 100_000).await;
        until(|| leech.session.view().peers.is_empty()).await;
        let mut honest = Member::new(&info, Some(&content), &[], choices(3, 5)).await;
        honest.start();
        leech.session.add_peers(&[honest.address]);
        leech.done().await;
        let said = said.load(Ordering::Relaxed);
        // Most of it has never been read: the system's buffers are large.
        assert!(said < 50_000_000, "{said}");
        assert_eq!(leech.content(content.len()), content);
    });
}
