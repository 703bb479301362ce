//! Streams under a key beside everything that may happen to them on the way, and ends that have no key or another.

use cede_carry::greeting::{self, PATIENCE, be_greeted, greet};
use cede_carry::message::{Message, Purpose};
use cede_carry::seal::{self, MAX_RECORD_BYTES, SealError, Sealed, answer, call};
use cede_carry::{Door, FrameReader, FrameWriter, Key, Line, WireError};
use cede_real::UtpSocket;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

fn key() -> Key {
    Key::new([7; 32])
}

/// A responder's part.
async fn be_called(mut stream: DuplexStream, key: &Key) -> Result<Sealed<DuplexStream>, WireError> {
    answer(&mut stream, key).await.map(|agreed| agreed.seal(stream))
}

/// Two ends that have the same key.
async fn sealed() -> (Sealed<DuplexStream>, Sealed<DuplexStream>) {
    sealed_over(1 << 20).await
}

/// Two such ends, with room for so many octets between them.
async fn sealed_over(bytes: usize) -> (Sealed<DuplexStream>, Sealed<DuplexStream>) {
    let (near, far) = duplex(bytes);
    let key = key();
    let (near, far) = tokio::join!(call(near, &key), be_called(far, &key));
    (near.unwrap(), far.unwrap())
}

fn refused(outcome: Result<Sealed<DuplexStream>, WireError>) -> SealError {
    match outcome {
        Err(WireError::Seal(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Octets that repeat nowhere near.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[tokio::test]
async fn what_is_written_arrives_both_ways_and_each_direction_ends_by_itself() {
    let (mut near, mut far) = sealed().await;
    for bytes in [1, 8191, 8192, 8193, 65_536, 300_000] {
        let octets = pattern(bytes);
        let mut heard = vec![0; bytes];
        let (sent, read) = tokio::join!(near.write_all(&octets), far.read_exact(&mut heard));
        sent.unwrap();
        read.unwrap();
        assert!(heard == octets, "{bytes}");
    }
    near.shutdown().await.unwrap();
    assert_eq!(far.read(&mut [0; 10]).await.unwrap(), 0);
    assert_eq!(far.read(&mut [0; 10]).await.unwrap(), 0, "an end stays one");
    assert!(near.write(b"more").await.is_err());
    far.write_all(b"still here").await.unwrap();
    far.shutdown().await.unwrap();
    let mut rest = String::new();
    near.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "still here");
}

#[tokio::test]
async fn a_reader_with_little_room_and_a_writer_without_octets_are_served() {
    let (mut near, mut far) = sealed().await;
    assert_eq!(near.write(&[]).await.unwrap(), 0, "nothing is no end");
    near.write_all(&pattern(20_000)).await.unwrap();
    near.shutdown().await.unwrap();
    let (mut heard, mut piece) = (Vec::<u8>::new(), [0; 7]);
    loop {
        let n = far.read(&mut piece).await.unwrap();
        if n == 0 {
            break;
        }
        heard.extend(&piece[..n]);
    }
    assert!(heard == pattern(20_000));
    assert_eq!(far.received_bytes(), 20_000);
}

#[tokio::test]
async fn a_stream_that_takes_little_at_a_time_gets_it_all() {
    let (mut near, mut far) = sealed_over(100).await;
    let octets = pattern(100_000);
    let mut heard = Vec::new();
    let write = async {
        near.write_all(&octets).await.unwrap();
        near.flush().await.unwrap();
        near.shutdown().await.unwrap();
    };
    tokio::join!(write, async { far.read_to_end(&mut heard).await.unwrap() });
    assert!(heard == octets);
    assert_eq!(near.payload_bytes_of(u64::MAX), 100_000);
    assert_eq!(near.payload_bytes_of(0), 0);
}

/// What the near end writes for some octets in single records, and the far end, to which somebody else passes it on.
async fn recorded(payloads: &[&[u8]]) -> (Vec<Vec<u8>>, DuplexStream, Sealed<DuplexStream>) {
    let (near, mut wire) = duplex(1 << 20);
    let (mut onward, far) = duplex(1 << 20);
    let key = key();
    let pass = async {
        let (mut up, mut down) = ([0; 58], [0; 59]);
        wire.read_exact(&mut up).await.unwrap();
        onward.write_all(&up).await.unwrap();
        onward.read_exact(&mut down).await.unwrap();
        wire.write_all(&down).await.unwrap();
        let mut confirmation = [0; 18];
        wire.read_exact(&mut confirmation).await.unwrap();
        onward.write_all(&confirmation).await.unwrap();
    };
    let (near, far, ()) = tokio::join!(call(near, &key), be_called(far, &key), pass);
    let (mut near, far) = (near.unwrap(), far.unwrap());
    let mut records = Vec::new();
    for payload in payloads {
        near.write_all(payload).await.unwrap();
        let mut record = vec![0; payload.len() + 18];
        wire.read_exact(&mut record).await.unwrap();
        records.push(record);
    }
    near.shutdown().await.unwrap();
    let mut end = vec![0; 18];
    wire.read_exact(&mut end).await.unwrap();
    records.push(end);
    (records, onward, far)
}

/// What the far end reads of these records, and how it ends.
async fn hear(
    records: &[Vec<u8>],
    mut onward: DuplexStream,
    mut far: Sealed<DuplexStream>,
) -> (Vec<u8>, Option<SealError>) {
    onward.write_all(&records.concat()).await.unwrap();
    onward.shutdown().await.unwrap();
    let mut heard = Vec::new();
    let ended = far.read_to_end(&mut heard).await;
    let error =
        ended.err().map(|error| error.get_ref().unwrap().downcast_ref::<SealError>().unwrap().clone());
    if error.is_some() {
        assert!(far.read(&mut [0; 10]).await.is_err(), "what is broken stays so");
    }
    (heard, error)
}

const PIECES: [&[u8]; 3] = [b"one", b"two", b"three"];

#[tokio::test]
async fn what_nobody_touches_arrives() {
    let (records, onward, far) = recorded(&PIECES).await;
    assert_eq!(hear(&records, onward, far).await, (b"onetwothree".to_vec(), None));
}

#[tokio::test]
async fn every_changed_octet_of_a_record_is_noticed() {
    for place in 0..20 {
        let (mut records, onward, far) = recorded(&PIECES).await;
        records[1][place] ^= 1;
        let (heard, error) = hear(&records, onward, far).await;
        assert_eq!(heard, b"one", "{place}: nothing of it is believed");
        assert!(
            matches!(error, Some(SealError::Forged | SealError::Length(_) | SealError::CutOff)),
            "{place}: {error:?}"
        );
    }
}

#[tokio::test]
async fn records_that_change_places_come_twice_or_not_at_all_are_noticed() {
    for order in [&[1, 0, 2, 3][..], &[0, 0, 1, 2, 3], &[0, 2, 3], &[0, 3], &[3]] {
        let (records, onward, far) = recorded(&PIECES).await;
        let records: Vec<Vec<u8>> = order.iter().map(|&at| records[at].clone()).collect();
        let (heard, error) = hear(&records, onward, far).await;
        assert_eq!(error, Some(SealError::Forged), "{order:?}");
        assert!(b"onetwothree".starts_with(heard.as_slice()));
    }
}

#[tokio::test]
async fn a_cut_is_no_end_and_nothing_follows_one() {
    let whole = recorded(&PIECES).await.0.concat().len();
    for kept in [0, 1, 21, 30, whole - 18, whole - 1] {
        let (records, onward, far) = recorded(&PIECES).await;
        let cut = vec![records.concat()[..kept].to_vec()];
        let (heard, error) = hear(&cut, onward, far).await;
        assert_eq!(error, Some(SealError::CutOff), "{kept}");
        assert!(b"onetwothree".starts_with(heard.as_slice()));
    }
    for more in [vec![0], vec![0, 16], vec![1; 100]] {
        let (mut records, onward, far) = recorded(&PIECES).await;
        records.push(more);
        assert_eq!(hear(&records, onward, far).await.1, Some(SealError::Trailing));
    }
}

#[tokio::test]
async fn records_of_another_conversation_or_direction_are_noticed() {
    let (others, ..) = recorded(&PIECES).await;
    let (mut records, onward, far) = recorded(&PIECES).await;
    records[1].clone_from(&others[1]);
    assert_eq!(hear(&records, onward, far).await, (b"one".to_vec(), Some(SealError::Forged)));
    // What an end has written itself comes back to it.
    let (mut wire, near) = duplex(1 << 16);
    let key = key();
    let mirror = async {
        let mut opening = [0; 58];
        wire.read_exact(&mut opening).await.unwrap();
        let mut answer = opening[..10].to_vec();
        answer.push(0);
        answer.extend(&opening[10..]);
        wire.write_all(&answer).await.unwrap();
    };
    let (called, ()) = tokio::join!(call(near, &key), mirror);
    assert_eq!(refused(called), SealError::Forged);
}

#[tokio::test]
async fn lengths_that_no_record_has_are_refused_at_once() {
    for length in [0_u16, 1, 15, (MAX_RECORD_BYTES - 1) as u16, 0x7fff, u16::MAX] {
        let (_, mut onward, mut far) = recorded(&PIECES).await;
        onward.write_all(&length.to_be_bytes()).await.unwrap();
        // The stream stays open: more is not waited for.
        let read = timeout(Duration::from_secs(60), far.read(&mut [0; 10])).await.unwrap();
        assert!(read.unwrap_err().to_string().contains("cannot have"), "{length}");
    }
}

#[tokio::test]
async fn another_key_is_told_to_both_ends() {
    let (near, far) = duplex(1 << 16);
    let (ours, theirs) = (key(), Key::new([8; 32]));
    let (near, far) = tokio::join!(call(near, &ours), be_called(far, &theirs));
    let (near, far) = (refused(near), refused(far));
    assert_eq!(near, SealError::OtherKey(ours.fingerprint()));
    assert_eq!(far, SealError::OtherKey(theirs.fingerprint()));
    assert!(near.to_string().contains("give both the same"), "{near}");
}

#[tokio::test]
async fn an_end_without_a_key_and_one_with_it_tell_each_other() {
    // Frames in the clear to who has a key.
    let (near, far) = duplex(1 << 16);
    let key = key();
    let clear = async {
        let (reader, writer) = split(near);
        greet(&mut FrameReader::new(reader), &mut FrameWriter::new(writer), Purpose::Put).await
    };
    let (near, far) = tokio::join!(clear, be_called(far, &key));
    assert!(near.unwrap_err().to_string().contains("--key FILE"));
    assert_eq!(refused(far), SealError::NoKeyThere);
    // Who has a key to who answers in the clear.
    let (near, far) = duplex(1 << 16);
    let clear = async {
        let (reader, writer) = split(far);
        be_greeted(&mut FrameReader::new(reader), &mut FrameWriter::new(writer)).await
    };
    let (near, far) = tokio::join!(call(near, &key), clear);
    assert_eq!(refused(near), SealError::NoKeyThere);
    assert!(matches!(far, Err(WireError::Seal(SealError::KeyNeeded))), "{far:?}");
}

/// What a responder makes of an opening, and what it says.
async fn answered(opening: &[u8]) -> (SealError, Vec<u8>) {
    let (mut near, far) = duplex(1 << 16);
    near.write_all(opening).await.unwrap();
    near.shutdown().await.unwrap();
    let key = key();
    let error = refused(be_called(far, &key).await);
    let mut heard = Vec::new();
    near.read_to_end(&mut heard).await.unwrap();
    (error, heard)
}

#[tokio::test]
async fn strangers_are_told_that_a_key_is_wanted() {
    for opening in [&b""[..], b"x", b"\x13BitTorrent protocol", b"\xcese"] {
        let (error, heard) = answered(opening).await;
        assert!(matches!(error, SealError::NotSealed(_)), "{error:?}");
        assert_eq!(seal::is_sealed(&heard), Some(true), "a pipe without a key knows it");
        assert!(String::from_utf8_lossy(&heard).contains("under a key"));
    }
    let (error, heard) = answered(&[&seal::MAGIC[..], &[9, 9], &[0; 48]].concat()).await;
    assert_eq!((error, heard.last()), (SealError::Version(0x909), Some(&3)));
}

#[tokio::test]
async fn who_calls_learns_whom_it_has_met() {
    let verdict = |verdict: u8| [&seal::MAGIC[..], &seal::VERSION.to_be_bytes(), &[verdict]].concat();
    let fingerprint = key().fingerprint();
    for (answer, wanted) in [
        (Vec::new(), SealError::NotSealed(Vec::new())),
        (verdict(1), SealError::NoKeyThere),
        (verdict(2), SealError::OtherKey(fingerprint)),
        (verdict(99), SealError::Forged),
        ([&verdict(0)[..], &[1; 48]].concat(), SealError::Forged),
        ([&seal::MAGIC[..], &[9, 9, 3]].concat(), SealError::Version(0x909)),
        ([&seal::MAGIC[..], &[9, 9, 0]].concat(), SealError::Forged),
        (b"220 mail.\x1b[2J".to_vec(), SealError::NotSealed(b"220 mail.\x1b[2J".to_vec())),
        (
            [&greeting::MAGIC[..], &[0, 1]].concat(),
            SealError::NotSealed([&greeting::MAGIC[..], &[0, 1]].concat()),
        ),
    ] {
        let (mut near, far) = duplex(1 << 16);
        near.write_all(&answer).await.unwrap();
        near.shutdown().await.unwrap();
        let error = refused(call(far, &key()).await);
        assert_eq!(error, wanted);
        assert!(!error.to_string().contains('\x1b'), "{error}");
    }
}

#[tokio::test]
async fn a_recorded_opening_gets_no_further() {
    let (near, mut wire) = duplex(1 << 16);
    let key = key();
    let mut opening = [0; 58];
    {
        let calling = call(near, &key);
        tokio::pin!(calling);
        tokio::select! {
            _ = &mut calling => panic!("nobody has answered"),
            read = wire.read_exact(&mut opening) => drop(read.unwrap()),
        }
    }
    for confirmation in [vec![], vec![0, 16], [&[0, 16][..], &[0; 16]].concat(), vec![0xff; 18]] {
        let (mut again, far) = duplex(1 << 16);
        again.write_all(&[&opening[..], &confirmation].concat()).await.unwrap();
        again.shutdown().await.unwrap();
        let outcome = be_called(far, &key).await;
        assert!(outcome.is_err(), "{confirmation:?}");
        let mut heard = Vec::new();
        again.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard.len(), 59, "it was answered as the first time, and learnt nothing more");
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_slow_is_sent_away_in_the_same_time_as_who_is_silent() {
    for pause in [Duration::from_secs(3600), Duration::from_secs(2)] {
        let (mut near, far) = duplex(1 << 16);
        let began = Instant::now();
        let key = key();
        let drip = async {
            for octet in seal::MAGIC.iter().chain(&[0, 1]).chain(&[5; 48]) {
                if near.write_all(&[*octet]).await.is_err() {
                    break;
                }
                tokio::time::sleep(pause).await;
            }
        };
        tokio::select! {
            outcome = be_called(far, &key) => assert_eq!(refused(outcome), SealError::Silent),
            () = drip => panic!("it was heard out"),
        }
        assert!(began.elapsed() <= PATIENCE + Duration::from_secs(1), "{:?}", began.elapsed());
        // A pipe that waits for something to be typed is told, too.
        let mut told = [0; 8];
        near.read_exact(&mut told).await.unwrap();
        assert_eq!(told, seal::MAGIC);
    }
    // Who is called and says nothing.
    let (_near, far) = duplex(1 << 16);
    assert_eq!(refused(call(far, &key()).await), SealError::Silent);
}

#[tokio::test]
async fn frames_go_under_a_key_as_in_the_clear() {
    // Little room, so that nothing leaves by itself.
    let (near, far) = sealed_over(50).await;
    let (near, far) = (split(near), split(far));
    let (mut reader, mut writer) = (FrameReader::new(far.0), FrameWriter::new(near.1));
    let mut frame = pattern(5 + 100_000);
    let send = async {
        writer.send(&Message::Have(7)).await.unwrap();
        writer.send(&Message::Stored).await.unwrap();
        // And nothing behind it that would take it along.
        writer.send_data(&mut frame).await.unwrap();
    };
    let hear = async {
        assert_eq!(reader.next().await.unwrap(), Message::Have(7));
        assert_eq!(reader.next().await.unwrap(), Message::Stored);
        assert_eq!(reader.next().await.unwrap(), Message::Data);
        assert!(reader.data() == &pattern(5 + 100_000)[5..]);
    };
    let both = async { tokio::join!(send, hear) };
    timeout(Duration::from_secs(20), both).await.expect("everything has left once it was sent");
}

/// A socket at which a door is kept, and what comes of each who connects.
async fn kept_door() -> (Arc<UtpSocket>, mpsc::UnboundedReceiver<Result<Line, WireError>>) {
    let socket = Arc::new(UtpSocket::bind("127.0.0.1:0").await.unwrap());
    let (tell, told) = mpsc::unbounded_channel();
    let (kept, door) = (Arc::clone(&socket), Arc::new(Door::new(Some(key()))));
    tokio::spawn(async move {
        while let Ok(stream) = kept.accept().await {
            let (tell, door) = (tell.clone(), Arc::clone(&door));
            tokio::spawn(async move { tell.send(door.admit(stream).await) });
        }
    });
    (socket, told)
}

#[tokio::test]
async fn a_crowd_at_the_door_keeps_nobody_out() {
    let (socket, mut told) = kept_door().await;
    let strangers = UtpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut idle = Vec::new();
    for _ in 0..150 {
        let mut stream = strangers.connect(socket.local_addr()).await.unwrap();
        stream.write_all(&seal::MAGIC).await.unwrap();
        idle.push(stream);
    }
    let ours = UtpSocket::bind("127.0.0.1:0").await.unwrap();
    let stream = ours.connect(socket.local_addr()).await.unwrap();
    let mut line = Line::call(stream, Some(&key())).await.unwrap();
    line.write_all(b"hello").await.unwrap();
    line.shutdown().await.unwrap();
    let mut displaced = 0;
    let mut admitted = loop {
        match timeout(Duration::from_secs(60), told.recv()).await.unwrap().unwrap() {
            Ok(line) => break line,
            Err(WireError::Seal(SealError::Displaced)) => displaced += 1,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(admitted.is_sealed());
    assert!((1..=23).contains(&displaced), "those that were too many, and no others: {displaced}");
    let mut heard = String::new();
    admitted.read_to_string(&mut heard).await.unwrap();
    assert_eq!((heard.as_str(), admitted.received_bytes()), ("hello", 5));
    // The first of the crowd is gone, and knows it.
    assert!(timeout(Duration::from_secs(60), idle[0].read(&mut [0; 1])).await.unwrap().is_err());
}

/// Who was refused and stays on the line keeps a place at the door, and no other one: a socket has not many.
#[tokio::test]
async fn who_was_refused_and_stays_takes_no_more_places_than_there_are_at_the_door() {
    let (socket, _told) = kept_door().await;
    let strangers = UtpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut staying = Vec::new();
    for _ in 0..200 {
        let mut stream = strangers.connect(socket.local_addr()).await.unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut heard = [0; 256];
        let n = timeout(Duration::from_secs(60), stream.read(&mut heard)).await.unwrap().unwrap();
        assert!(n > 0, "it hears why");
        staying.push(stream);
    }
    let connections = socket.statistics().connections;
    assert!(connections <= 130, "{connections} of {}", staying.len());
}
