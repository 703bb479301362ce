//! Octets of any kind: nothing panics, nothing is believed that is too long, and what decodes survives the way back.
//! `cargo bolero` runs these without an end; the test run makes a bounded number of tries.

use bolero::{ValueGenerator, check, produce};
use cede_carry::message::{
    HEAD_BYTES, MAX_BODY_BYTES, MAX_DATA_BYTES, Message, Purpose, data_head, decode_head,
};
use cede_carry::{FrameReader, KEY_BYTES, Key, WireError, greeting, seal};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const TRIES: usize = 50_000;

fn octets_up_to(len: usize) -> impl ValueGenerator<Output = Vec<u8>> {
    produce::<Vec<u8>>().with().len(0..=len)
}

#[test]
fn heads_never_announce_more_than_there_may_be() {
    check!().with_iterations(TRIES).with_type::<[u8; HEAD_BYTES]>().for_each(|head| {
        if let Ok((kind, bytes)) = decode_head(*head) {
            let is_data = Message::decode(kind, &[]) == Ok(Message::Data);
            assert!(bytes <= if is_data { MAX_DATA_BYTES } else { MAX_BODY_BYTES });
        }
    });
}

#[test]
fn any_body_is_a_message_that_is_written_the_same_way_or_none() {
    let accepted = AtomicUsize::new(0);
    // Small octets, since lengths and switches are: anything else is refused at the first of them.
    let body = produce::<Vec<u8>>().with().values(0_u8..3).len(0..=64_usize);
    let generator = (1_u8..=17, body);
    check!().with_iterations(TRIES).with_generator(generator).for_each(|(kind, body)| {
        let Ok(message) = Message::decode(*kind, body) else { return };
        if message == Message::Data {
            return;
        }
        accepted.fetch_add(1, Relaxed);
        let frame = message.encode();
        let (head, rest) = frame.split_first_chunk().unwrap();
        assert_eq!(decode_head(*head), Ok((*kind, rest.len())));
        assert_eq!(rest, body, "{message:?}");
    });
    assert!(accepted.load(Relaxed) > 100, "{accepted:?} of {TRIES} were messages");
}

#[test]
fn what_is_damaged_in_one_octet_is_another_message_or_none() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let hello = Message::Hello(Purpose::Get { name: "name".into() }).encode();
    let generator = (0..hello.len(), produce::<u8>());
    check!().with_iterations(5_000).with_generator(generator).for_each(|(place, octet)| {
        let mut octets = hello.clone();
        octets[*place] = *octet;
        let heard = runtime.block_on(FrameReader::new(octets.as_slice()).next());
        match heard {
            Ok(Message::Data) => {}
            // A shorter length leaves the rest to the next frame.
            Ok(message) => assert!(octets.starts_with(&message.encode()), "{message:?}"),
            Err(error) => assert!(matches!(error, WireError::Decode(_) | WireError::Lost(_)), "{error}"),
        }
    });
}

#[test]
fn data_come_as_they_were_sent_however_the_stream_cuts_them() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let generator = (octets_up_to(2_000), 1_usize..50);
    check!().with_iterations(1_000).with_generator(generator).for_each(|(data, room)| {
        runtime.block_on(async {
            let (mut near, far) = tokio::io::duplex(*room);
            let mut frame = data_head(data.len()).to_vec();
            frame.extend(data);
            frame.extend(Message::Alive.encode());
            let sent = tokio::spawn(async move {
                tokio::io::AsyncWriteExt::write_all(&mut near, &frame).await.unwrap();
            });
            let mut reader = FrameReader::new(far);
            assert_eq!(reader.next().await.unwrap(), Message::Data);
            assert_eq!(reader.data(), data);
            assert_eq!(reader.next().await.unwrap(), Message::Alive);
            sent.await.unwrap();
        });
    });
}

/// What a runtime without a clock that moves by itself does with octets that come from anybody.
fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

#[test]
fn heads_of_records_never_announce_more_than_there_may_be() {
    for head in 0..=u16::MAX {
        let bytes = seal::record_bytes(head.to_be_bytes());
        let is_record = (16..=8192 + 16).contains(&head);
        assert_eq!(bytes.ok(), is_record.then_some(usize::from(head) + 2));
        assert!(!is_record || usize::from(head) + 2 <= seal::MAX_RECORD_BYTES);
    }
}

#[test]
fn no_octets_of_strangers_get_past_a_key() {
    let (runtime, key) = (paused(), Key::new([7; 32]));
    let beginnings =
        [&[][..], &seal::MAGIC, &[&seal::MAGIC[..], &[0, 1]].concat(), &greeting::MAGIC].map(<[u8]>::to_vec);
    let generator = (0..beginnings.len(), octets_up_to(200));
    check!().with_iterations(5_000).with_generator(generator).for_each(|(beginning, octets)| {
        let opening = [&beginnings[*beginning][..], octets].concat();
        runtime.block_on(async {
            // As who was called, and as who called: a whole conversation at once, and its end.
            for is_called in [true, false] {
                let (mut near, mut far) = tokio::io::duplex(1 << 16);
                near.write_all(&opening).await.unwrap();
                near.shutdown().await.unwrap();
                let error = match is_called {
                    true => seal::answer(&mut far, &key).await.err(),
                    false => seal::call(&mut far, &key).await.err(),
                };
                assert!(matches!(error, Some(WireError::Seal(_) | WireError::Lost(_))), "{error:?}");
            }
        });
    });
}

#[test]
fn records_that_nobody_sealed_are_no_data_wherever_they_are_cut() {
    let runtime = paused();
    let generator = (octets_up_to(100), 1_usize..50, produce::<bool>());
    check!().with_iterations(2_000).with_generator(generator).for_each(|(octets, piece, is_shaped)| {
        runtime.block_on(async {
            let key = Key::new([7; 32]);
            let (near, mut wire) = tokio::io::duplex(1 << 16);
            let (near, agreed) = tokio::join!(seal::call(near, &key), seal::answer(&mut wire, &key));
            agreed.unwrap();
            // As they come, or with a head that fits.
            let head = ((octets.len() as u16).to_be_bytes(), *is_shaped && octets.len() >= 16);
            let record = if head.1 { [&head.0[..], octets].concat() } else { octets.clone() };
            let mut near = near.unwrap();
            let write = async {
                for piece in record.chunks(*piece) {
                    let _ = wire.write_all(piece).await;
                }
                let _ = wire.shutdown().await;
            };
            let mut heard = Vec::new();
            let ((), read) = tokio::join!(write, near.read_to_end(&mut heard));
            assert!(read.is_err() && heard.is_empty(), "{heard:?}");
        });
    });
}

#[test]
fn any_text_is_a_key_that_is_written_the_same_way_or_none() {
    check!().with_iterations(TRIES).with_type::<[u8; KEY_BYTES]>().for_each(|octets| {
        let text = Key::new(*octets).to_text();
        assert_eq!(Key::parse(&text).map(|key| key.to_text()), Ok(text));
    });
    let generator = produce::<String>();
    check!().with_iterations(TRIES).with_generator(generator).for_each(|text| {
        for text in [text.clone(), format!("cedekey1{text}")] {
            if let Ok(key) = Key::parse(&text) {
                assert_eq!(key.to_text(), text.trim().to_lowercase());
            }
        }
    });
}
