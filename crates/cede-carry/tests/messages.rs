//! Each message survives the way, and conversations begin as they should.

use cede_carry::bench::{ControllerSpec, Limit, Plan, Sample};
use cede_carry::file::{Modified, Offer};
use cede_carry::greeting::{MAGIC, be_greeted, greet};
use cede_carry::message::{
    HEAD_BYTES, MAX_HOLE_BYTES, MAX_TEXT_BYTES, Message, Purpose, VERSION, decode_head,
};
use cede_carry::{FrameReader, FrameWriter, WireError};
use cede_units::{Duration, Rate};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};

fn plan() -> Plan {
    let params = vec![("target".to_owned(), "25 ms".to_owned())];
    Plan {
        streams: 4,
        reverse: true,
        limit: Limit::Bytes(1 << 40),
        interval: Duration::from_secs(1),
        rate: Some(Rate::from_mbit(10)),
        controller: Some(ControllerSpec { name: "ledbat".to_owned(), params }),
    }
}

fn messages() -> Vec<Message> {
    let sample = Sample {
        at: Duration::from_millis(1),
        bytes: 2,
        retransmissions: 3,
        cwnd_bytes: 4,
        rtt: Duration::from_millis(5),
        queueing_delay: Some(Duration::from_millis(6)),
        is_queue_estimated: true,
    };
    let modified = Some(Modified { seconds: -5, nanos: 999_999_999 });
    let time = Plan { limit: Limit::Time(Duration::from_secs(9)), rate: None, controller: None, ..plan() };
    vec![
        Message::Hello(Purpose::Test(plan())),
        Message::Hello(Purpose::Test(time)),
        Message::Hello(Purpose::Join { session: u64::MAX, index: 7 }),
        Message::Hello(Purpose::Put),
        Message::Hello(Purpose::Get { name: "Übung".to_owned() }),
        Message::Hello(Purpose::Relay),
        Message::Welcome(9),
        Message::Refused("no".to_owned()),
        Message::Alive,
        Message::Failed(String::new()),
        Message::Offer(Offer { name: "x".to_owned(), bytes: Some(u64::MAX), modified }),
        Message::Offer(Offer::default()),
        Message::Have(8),
        Message::Digest([7; 32]),
        Message::Begin(6),
        Message::Data,
        Message::Hole(MAX_HOLE_BYTES),
        Message::End { bytes: 5, digest: [4; 32] },
        Message::Stored,
        Message::Start,
        Message::Report(vec![sample, Sample::default()]),
        Message::Finish,
    ]
}

#[test]
fn every_message_survives_the_way() {
    for message in messages() {
        let frame = message.encode();
        let (head, body) = frame.split_first_chunk::<HEAD_BYTES>().unwrap();
        let (kind, bytes) = decode_head(*head).unwrap();
        assert_eq!(bytes, body.len());
        assert_eq!(Message::decode(kind, body), Ok(message));
    }
}

#[test]
fn every_message_but_data_that_is_cut_or_goes_on_is_none() {
    for message in messages().into_iter().filter(|message| *message != Message::Data) {
        let frame = message.encode();
        let (kind, body) = (frame[0], &frame[HEAD_BYTES..]);
        for cut in 0..body.len() {
            assert!(Message::decode(kind, &body[..cut]).is_err(), "{message:?} cut at {cut}");
        }
        assert!(Message::decode(kind, &[body, &[0]].concat()).is_err(), "{message:?} goes on");
    }
}

#[test]
fn texts_of_any_length_fit() {
    let long = "ü".repeat(5_000);
    let frame = Message::Failed(long).encode();
    let Ok(Message::Failed(text)) = Message::decode(frame[0], &frame[HEAD_BYTES..]) else { panic!() };
    assert!(text.len() <= MAX_TEXT_BYTES && text.len() > MAX_TEXT_BYTES - 4);
}

#[test]
fn plans_that_cannot_be_carried_out_are_none() {
    assert!(plan().check().is_ok());
    for wrong in [
        Plan { streams: 0, ..plan() },
        Plan { streams: 1000, ..plan() },
        Plan { limit: Limit::Bytes(0), ..plan() },
        Plan { limit: Limit::Time(Duration::ZERO), ..plan() },
        Plan { interval: Duration::ZERO, ..plan() },
        Plan { rate: Some(Rate::from_bits_per_sec(0)), ..plan() },
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
}

/// What both sides of a greeting make of it, where the first is given by its octets.
async fn heard_of(opening: &[u8]) -> (Result<Purpose, WireError>, Vec<u8>) {
    let (mut near, far) = duplex(4096);
    near.write_all(opening).await.unwrap();
    near.shutdown().await.unwrap();
    let (reader, writer) = split(far);
    let heard = be_greeted(&mut FrameReader::new(reader), &mut FrameWriter::new(writer)).await;
    let mut answer = vec![0; 4096];
    let n = near.read(&mut answer).await.unwrap();
    answer.truncate(n);
    (heard, answer)
}

#[tokio::test]
async fn strangers_are_told_what_this_is() {
    for opening in [&b"\x13BitTorrent protocol"[..], b"GET / HTTP/1.1\r\n\r\n", b"\xceced", b"x"] {
        let (heard, answer) = heard_of(opening).await;
        assert!(matches!(heard, Err(WireError::Stranger(_))), "{heard:?}");
        assert!(String::from_utf8(answer).unwrap().contains("protocol of cede"));
    }
}

#[tokio::test]
async fn another_version_is_told_ours() {
    let (heard, answer) = heard_of(&[&MAGIC[..], &(VERSION + 1).to_be_bytes()].concat()).await;
    assert!(matches!(heard, Err(WireError::Version { theirs }) if theirs == VERSION + 1), "{heard:?}");
    assert_eq!(answer, [&MAGIC[..], &VERSION.to_be_bytes()].concat());
    assert!(heard.unwrap_err().to_string().contains("same release"));
}

/// What the one who connects makes of an answer.
async fn answered_with(answer: &[u8]) -> Result<u64, WireError> {
    let (mut near, far) = duplex(4096);
    near.write_all(answer).await.unwrap();
    near.shutdown().await.unwrap();
    let (reader, writer) = split(far);
    greet(&mut FrameReader::new(reader), &mut FrameWriter::new(writer), Purpose::Put).await
}

#[tokio::test]
async fn who_connects_learns_whom_it_has_met() {
    let greeting = [&MAGIC[..], &VERSION.to_be_bytes()].concat();
    let with = |message: Message| [greeting.clone(), message.encode()].concat();
    assert_eq!(answered_with(&with(Message::Welcome(7))).await.unwrap(), 7);
    let refused = answered_with(&with(Message::Refused("full\x1b[2J".into()))).await.unwrap_err();
    assert_eq!(refused.to_string(), "the other end refuses: full.[2J");
    let newer = answered_with(&[&MAGIC[..], &[9, 9]].concat()).await.unwrap_err();
    assert!(matches!(newer, WireError::Version { theirs: 0x909 }));
    let stranger = answered_with(b"220 mail.example.org").await.unwrap_err();
    assert!(stranger.to_string().contains("220 mail"), "{stranger}");
    assert!(matches!(answered_with(b"").await, Err(WireError::Lost(_))));
    assert!(matches!(answered_with(&with(Message::Stored)).await, Err(WireError::Unexpected)));
}

#[tokio::test]
async fn behind_half_a_frame_nothing_is_sent() {
    let (near, mut far) = duplex(16);
    let mut writer = FrameWriter::new(near);
    let mut frame = vec![0; 100];
    let cut = tokio::time::timeout(std::time::Duration::from_millis(20), writer.send_data(&mut frame)).await;
    assert!(cut.is_err());
    let mut sixteen = [0; 16];
    far.read_exact(&mut sixteen).await.unwrap();
    assert!(writer.send(&Message::Alive).await.is_err());
}
