//! Sessions on the loopback: over both transports, in the clear and enciphered, from part of a torrent and among several.

mod support;

use cede_bt::Profile;
use cede_bt::disposition::Transport;
use cede_bt::metainfo::Info;
use cede_bt::mse::{Accept, Handshake, Secrets};
use cede_torrent::check::{Watch, check};
use cede_torrent::session::{Choices, Encryption};
use std::sync::Arc;
use support::{LIMIT, Member, PIECE, choices, padded_torrent, run, torrent, torrent_v2};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LENGTHS: [usize; 4] = [300_000, 0, 5, 450_000];

/// A seed and a leecher exchange a torrent; the leecher's view at the end.
async fn exchange(seed: Choices, leech: Choices) -> cede_torrent::session::View {
    let (info, content) = torrent(&LENGTHS);
    hand_over(&info, &content, [seed, leech]).await.session.view()
}

/// A leecher that has had all of a torrent from a seed.
async fn hand_over(info: &Arc<Info>, content: &[u8], [seed, leech]: [Choices; 2]) -> Member {
    let mut seed = Member::new(info, Some(content), &[], seed).await;
    let mut leech = Member::new(info, None, &[], leech).await;
    seed.start();
    leech.start();
    leech.session.add_peers(&[seed.address]);
    leech.done().await;
    assert_eq!(leech.content(content.len()), content);
    leech
}

#[test]
fn a_torrent_arrives_over_the_transport_that_both_have() {
    run(async {
        for (ours, theirs, expected) in
            [(5, 31, Transport::Tcp), (10, 31, Transport::Utp), (31, 10, Transport::Utp)]
        {
            let view = exchange(choices(1, theirs), choices(2, ours)).await;
            let other = 1 - expected as usize;
            assert!(view.totals.downloaded[expected as usize] >= 750_000, "{ours} {theirs}: {view:?}");
            assert_eq!(view.totals.downloaded[other], 0, "{ours} {theirs}");
        }
    });
}

#[test]
fn a_torrent_of_v2_arrives_and_bad_pieces_of_it_do_not() {
    run(async {
        let (metainfo, content) = torrent_v2(&[PIECE, 5, 0, 3 * PIECE + 7, 2 * PIECE]);
        let info = Arc::new(metainfo.info);
        for transports in [5, 10] {
            let leech = hand_over(&info, &content, [1, 2].map(|id| choices(id, transports))).await;
            assert_eq!(leech.session.view().bytes, info.total_bytes);
        }
        let watch = Watch::default();
        let member = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        let checked = || check(&member.storage, &info, &[], &watch);
        assert!(checked().iter().all(|is_whole| *is_whole));
        // The last octet of the second file is in a piece of its own.
        member.storage.write(PIECE as u64 + 4, &[!content[PIECE + 4]]).unwrap();
        let whole = checked();
        assert!(!whole[1] && whole.iter().filter(|is_whole| !**is_whole).count() == 1, "{whole:?}");
    });
}

/// What fills pieces up is known to everybody. But in the middle of a piece it comes with the rest, and others may ask for it.
#[test]
fn padding_at_the_end_of_pieces_is_not_sent() {
    run(async {
        let lengths =
            [(5, false), (2 * PIECE - 5, true), (20_000, false), (100, true), (7, false), (90_000, true)];
        let (info, content) = padded_torrent(&lengths, 2 * PIECE);
        for transports in [5, 10] {
            let leech = hand_over(&info, &content, [1, 2].map(|id| choices(id, transports))).await;
            let view = leech.session.view();
            // The last two pieces are nothing but padding.
            let sent = 5 + 20_107 + (90_000 - (2 * PIECE as u64 - 20_107));
            assert_eq!(view.totals.downloaded.iter().sum::<u64>(), sent);
            assert_eq!((view.bytes, info.total_bytes), (sent, sent));
            assert!(leech.storage.path_of(1).symlink_metadata().is_err());
            let there = check(&leech.storage, &info, &[], &Watch::default());
            assert!(there.iter().all(|is_whole| *is_whole), "{there:?}");
        }
    });
}

#[test]
fn both_transports_may_race_or_take_turns() {
    run(async {
        for profile in Profile::ALL {
            let profile = |id| Choices { profile, ..choices(id, 31) };
            let view = exchange(profile(1), profile(2)).await;
            assert_eq!(view.pieces, view.bytes.div_ceil(16_384) as u32);
        }
    });
}

/// With uTorrent's rules TCP is closed where uTP is there as well, whoever was first.
#[test]
fn of_transports_that_race_utp_stays() {
    run(async {
        for (seed_id, leech_id) in [(1, 2), (2, 1)] {
            let of = |id| Choices { profile: Profile::UTORRENT3, ..choices(id, 31) };
            // TCP, which is there first, is not to be through with it by then.
            let leech = Choices { download_limit: Some(1_000_000), ..of(leech_id) };
            let [tcp, utp] = exchange(of(seed_id), leech).await.totals.downloaded;
            assert!(utp > tcp, "{tcp} over TCP, {utp} over uTP");
        }
    });
}

#[test]
fn what_passes_may_be_enciphered_over_either_transport() {
    run(async {
        let with = |id, transports, encryption| Choices { encryption, ..choices(id, transports) };
        use Encryption::{Allow, Off, Prefer, Require};
        for transports in [5, 10] {
            for (seed, leech) in [(Allow, Require), (Require, Prefer), (Off, Prefer), (Prefer, Off)] {
                exchange(with(1, transports, seed), with(2, transports, leech)).await;
            }
        }
    });
}

/// A peer is called again after a minute at the soonest; one that has only hung up on the clear is not to wait for that.
#[test]
fn who_hangs_up_on_the_clear_is_called_enciphered_at_once() {
    run(async {
        for transports in [5, 10, 31] {
            for profile in [Profile::LIBTORRENT, Profile::UTORRENT3] {
                let with = |id, encryption| Choices { encryption, profile, ..choices(id, transports) };
                let (seed, leech) = (with(1, Encryption::Require), with(2, Encryption::Allow));
                let exchanged =
                    tokio::time::timeout(std::time::Duration::from_secs(30), exchange(seed, leech)).await;
                assert!(exchanged.is_ok(), "{transports} {}", profile.name);
            }
        }
    });
}

/// Nor is one that has hung up in the clear and enciphered, as whoever takes us for the process before us does for a moment; it is not
/// called without end.
#[test]
fn who_hangs_up_without_a_word_is_called_again_soon_where_nobody_else_is_there() {
    run(async {
        let (info, content) = torrent(&LENGTHS);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let deaf = listener.local_addr().unwrap();
        let mut leech = Member::new(&info, None, &[], choices(2, 5)).await;
        leech.start();
        leech.session.add_peers(&[deaf]);
        let soon = std::time::Duration::from_secs(30);
        for call in 0..5 {
            let called = tokio::time::timeout(soon, listener.accept()).await;
            assert!(called.is_ok(), "call {call}");
        }
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        seed.start();
        leech.session.add_peers(&[seed.address]);
        leech.done().await;
    });
}

/// RC4 takes as long as all the rest of a transfer: where the caller leaves the choice, it is not used unless it is wanted.
#[test]
fn what_is_only_allowed_is_not_taken_of_who_offers_both() {
    run(async {
        let (info, content) = torrent(&LENGTHS);
        for (encryption, offer, is_enciphered) in [
            (Encryption::Allow, Accept::EITHER, false),
            (Encryption::Allow, Accept::RC4, true),
            (Encryption::Prefer, Accept::EITHER, true),
            (Encryption::Prefer, Accept::PLAIN, false),
        ] {
            let seed = Choices { encryption, ..choices(1, 5) };
            let mut seed = Member::new(&info, Some(&content), &[], seed).await;
            seed.start();
            let secrets = Secrets { private: [7; 20], padding: vec![1; 9] };
            let mut handshake = Handshake::open(info.info_hash(), offer, secrets);
            let mut stream = tokio::net::TcpStream::connect(seed.address).await.unwrap();
            let outcome = loop {
                stream.write_all(&handshake.take_output()).await.unwrap();
                let mut buffer = [0; 2048];
                let n = stream.read(&mut buffer).await.unwrap();
                assert!(n > 0, "{encryption:?} {offer:?}");
                if let Some(outcome) = handshake.receive(&buffer[..n]).unwrap() {
                    break outcome;
                }
            };
            assert_eq!(outcome.ciphers.is_some(), is_enciphered, "{encryption:?} {offer:?}");
        }
        // Who prefers it has it of whoever allows it.
        let prefers = Choices { encryption: Encryption::Prefer, ..choices(2, 5) };
        assert!(exchange(choices(1, 5), prefers).await.peers.iter().all(|peer| peer.is_enciphered));
    });
}

#[test]
fn who_requires_encryption_gets_nothing_from_who_has_none() {
    run(async {
        let (info, content) = torrent(&LENGTHS);
        let with = |id, encryption| Choices { encryption, ..choices(id, 5) };
        let mut seed = Member::new(&info, Some(&content), &[], with(1, Encryption::Require)).await;
        let mut leech = Member::new(&info, None, &[], with(2, Encryption::Off)).await;
        seed.start();
        leech.start();
        leech.session.add_peers(&[seed.address]);
        // The seed closes the connection: wait until the leecher has noticed that it has none.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        assert_eq!((leech.session.view().pieces, seed.session.view().peers.len()), (0, 0));
    });
}

/// A seed as libtorrent is one over TCP: it answers a request at a time, writes the head of a block and then its content, and leaves
/// Nagle's algorithm on. When it was asked for each block.
#[cfg(target_os = "linux")]
async fn seed_in_two_writes(
    mut stream: tokio::net::TcpStream,
    info_hash: [u8; 20],
    content: &[u8],
) -> Vec<std::time::Instant> {
    use cede_bt::wire::{self, Decoder, Item, Message, Reserved, WireLimits};
    let reserved = Reserved::default().with(Reserved::FAST).with(Reserved::EXTENDED);
    let handshake = wire::Handshake { reserved, info_hash, peer_id: [9; 20] }.encode().to_vec();
    let introduction = Message::Extended(0, b"d1:mde4:reqqi1ee".to_vec()).to_vec();
    let words = [handshake, Message::HaveAll.to_vec(), introduction, Message::Unchoke.to_vec()].concat();
    stream.write_all(&words).await.unwrap();
    let (mut ear, mut buffer, mut asked) = (Decoder::new(WireLimits::of(1)), [0; 2048], Vec::new());
    while let Some(n) = stream.read(&mut buffer).await.ok().filter(|n| *n > 0) {
        let mut heard = cede_wire::Payload::copy_from(&buffer[..n]);
        while let Some(item) = ear.next(&mut heard).unwrap() {
            let Item::Message(Message::Request(block)) = item else { continue };
            asked.push(std::time::Instant::now());
            stream.write_all(&wire::piece_header(block)).await.unwrap();
            stream.write_all(&content[block.begin as usize..][..block.len as usize]).await.unwrap();
        }
    }
    asked
}

/// Each block would wait for the acknowledgement of its head, 40 ms.
#[cfg(target_os = "linux")]
#[test]
fn a_seed_that_waits_for_acknowledgements_gets_them() {
    run(async {
        let (info, content) = support::torrent_in(&[64 * PIECE], 64 * PIECE);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, hash, octets) = (listener.local_addr().unwrap(), info.info_hash(), content.clone());
        let seed = tokio::task::spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            seed_in_two_writes(stream, hash, &octets).await
        });
        let mut leech = Member::new(&info, None, &[], choices(2, 5)).await;
        leech.start();
        leech.session.add_peers(&[address]);
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
        drop(leech);
        let asked = seed.await.unwrap();
        let mut gaps: Vec<_> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort();
        // The system delays none of the first ones, and other programs delay some.
        let middle = gaps[gaps.len() / 2];
        assert!(gaps.len() == 63 && middle < std::time::Duration::from_millis(20), "{middle:?} of {gaps:?}");
    });
}

#[test]
fn some_files_are_enough() {
    run(async {
        let (info, content) = torrent(&[100_000, 100_000, 100_000]);
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        let mut leech = Member::new(&info, None, &[false, true, false], choices(2, 5)).await;
        seed.start();
        leech.start();
        leech.session.want_files();
        leech.session.add_peers(&[seed.address]);
        leech.done().await;
        assert_eq!(std::fs::read(leech.storage.path_of(1)).unwrap(), content[100_000..200_000]);
        assert!(!leech.storage.path_of(0).exists() && !leech.storage.path_of(2).exists());
        let whole = check(&leech.storage, &info, &[], &Watch::default());
        assert_eq!(whole, leech.session.whole(), "the ends of pieces in other files are there, too");
        assert_eq!(whole.iter().filter(|is_whole| **is_whole).count(), 7);
    });
}

#[test]
fn a_swarm_finishes_together() {
    run(async {
        let (info, content) = torrent(&[1_000_000]);
        let mut members = vec![Member::new(&info, Some(&content), &[], choices(1, 31)).await];
        for id in 2..7 {
            let transports = [5, 10, 31, 13, 14][usize::from(id) - 2];
            members.push(Member::new(&info, None, &[], choices(id, transports)).await);
        }
        let addresses: Vec<_> = members.iter().map(|member| member.address).collect();
        for member in &mut members {
            member.start();
            member.session.add_peers(&addresses);
        }
        for member in &members {
            member.done().await;
            assert_eq!(member.content(content.len()), content);
        }
    });
}

#[test]
fn a_limit_on_reading_is_kept() {
    run(async {
        let (info, content) = torrent(&[400_000]);
        let limited = Choices { download_limit: Some(200_000), ..choices(2, 5) };
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        let mut leech = Member::new(&info, None, &[], limited).await;
        let began = std::time::Instant::now();
        seed.start();
        leech.start();
        leech.session.add_peers(&[seed.address]);
        leech.done().await;
        // A quarter of a second's worth may come at once. However slow the machine, it is never faster.
        assert!(began.elapsed().as_secs_f64() > (400_000.0 - 50_000.0) / 200_000.0 * 0.9);
        assert!(began.elapsed() < LIMIT);
    });
}

#[test]
fn a_torrent_without_hashes_is_refused() {
    run(async {
        let (info, _) = torrent(&[5]);
        let mut lacking = (*info).clone();
        lacking.pieces.clear();
        let scratch = support::Scratch::new();
        let storage = Arc::new(cede_torrent::storage::Storage::new(&scratch.0, &info, &[]).unwrap());
        let refused =
            cede_torrent::session::Session::new(&Arc::new(lacking), &storage, &[], None, choices(1, 5));
        assert!(refused.is_err_and(|error| error.to_string().contains("lacks the hashes")));
    });
}
