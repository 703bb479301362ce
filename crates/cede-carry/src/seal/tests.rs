//! The handshake and the records beside what others have computed: the published vectors of the pattern, and this
//! protocol's own octets as a second implementation makes them.

use super::handshake::{be_called_with, builder, call_with};
use super::{MAGIC, PATTERN, VERSION};
use crate::key::Key;
use snow::Builder;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Of the vectors that come with the Noise implementation Cacophony and that others check themselves by: prologue, key,
/// both ephemeral secrets, and the messages in turn with what they carry.
const PROLOGUE: &str = "4a6f686e2047616c74";
const PSK: &str = "54686973206973206d7920417573747269616e20706572737065637469766521";
const EPHEMERALS: [&str; 2] = [
    "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
    "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
];
const MESSAGES: [(&str, &str); 6] = [
    (
        "4c756477696720766f6e204d69736573",
        "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944\
         fda936bec35a8adfdff198386f7d5475880897edaaf7495314c99095a2e4d66a",
    ),
    (
        "4d757272617920526f746862617264",
        "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843\
         4cd2a371993ba41ea11448024fca32766b169183c9e691a7a433279da7e729",
    ),
    ("462e20412e20486179656b", "bc44da303ae0beb08075fc4eb4e58235c67c2d1f53a4f2fff0bca7"),
    ("4361726c204d656e676572", "416d1af83e9fa6966ce4e871156b131aa9bd7e9a1d6f8794f4872a"),
    (
        "4a65616e2d426170746973746520536179",
        "8a7d81b77bcc6c072f2b807da066efba6b5fab9edf71a7faceb2c8454b0cfef608",
    ),
    (
        "457567656e2042f6686d20766f6e2042617765726b",
        "1e2ee010f72894824a25a867664ff298f2548a145dc4e9d27b1cad83f32fa7c54d69dc3279",
    ),
];

#[test]
fn the_pattern_gives_the_published_vectors() {
    assert_eq!(PATTERN, "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s");
    let key = Key::new(octets(PSK).try_into().unwrap());
    let (prologue, ephemerals) = (octets(PROLOGUE), EPHEMERALS.map(octets));
    let begin = |at: usize| {
        let builder = builder(&key, &prologue).unwrap();
        builder.fixed_ephemeral_key_for_testing_only(&ephemerals[at])
    };
    let (mut near, mut far) = (begin(0).build_initiator().unwrap(), begin(1).build_responder().unwrap());
    let (handshake, transport) = MESSAGES.split_at(2);
    for (turn, (payload, message)) in handshake.iter().enumerate() {
        let (from, to) = if turn == 0 { (&mut near, &mut far) } else { (&mut far, &mut near) };
        let (mut sent, mut heard) = ([0; 200], [0; 200]);
        let n = from.write_message(&octets(payload), &mut sent).unwrap();
        assert_eq!(sent[..n], octets(message));
        let n = to.read_message(&sent[..n], &mut heard).unwrap();
        assert_eq!(heard[..n], octets(payload));
    }
    let (mut near, mut far) = (near.into_transport_mode().unwrap(), far.into_transport_mode().unwrap());
    for (turn, (payload, message)) in transport.iter().enumerate() {
        let (from, to) = if turn % 2 == 0 { (&mut near, &mut far) } else { (&mut far, &mut near) };
        let (mut sent, mut heard) = ([0; 200], [0; 200]);
        let n = from.write_message(&octets(payload), &mut sent).unwrap();
        assert_eq!(sent[..n], octets(message));
        let n = to.read_message(&sent[..n], &mut heard).unwrap();
        assert_eq!(heard[..n], octets(payload));
    }
}

/// All that each end of a conversation writes, computed by PyPI's `noiseprotocol` 0.3.1: the key's octets are 37 i + 5, the
/// ephemeral secrets count from 1 and from 101 on, and "hello" is answered with "yes" before both directions end.
const UP: &str = "ce7365616c0d0a1a000107a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c\
                  be295239ced55d35c8a84c9eb4cc93460010eb6000c2c05e5e3c0f2b728c48468be8001574ded3a30248\
                  ba300b5876c27ed2d787601ed8f85a00106d571826a74ab2df848fe6f44f481b82";
const DOWN: &str = "ce7365616c0d0a1a0001005714769d116bf76436ae74bc793d2c30ad1903c59ac5273805c7e2698b410c\
                    36c1ebd9a903de4a1ac13927e402c5215200134a0c23c5590d1654cd2bb363e09c83ddafeb8d001039c9\
                    51c262734b44e9a5669a55990bb7";

fn key() -> Key {
    Key::new(std::array::from_fn(|at| (at * 37 + 5) as u8))
}

fn prologue() -> Vec<u8> {
    [&MAGIC[..], &VERSION.to_be_bytes()].concat()
}

/// Writes one side's octets into a pipe and collects what comes back.
async fn play(near: &mut DuplexStream, theirs: &str) -> Vec<u8> {
    let mut heard = Vec::new();
    near.write_all(&octets(theirs)).await.unwrap();
    near.shutdown().await.unwrap();
    near.read_to_end(&mut heard).await.unwrap();
    heard
}

#[tokio::test]
async fn the_initiator_writes_what_a_second_implementation_writes() {
    let (key, prologue, secret) = (key(), prologue(), std::array::from_fn::<u8, 32, _>(|at| at as u8 + 1));
    let (mut near, far) = duplex(1 << 16);
    let noise = builder(&key, &prologue).unwrap().fixed_ephemeral_key_for_testing_only(&secret);
    let noise = noise.build_initiator().unwrap();
    let initiator = async {
        let mut sealed = call_with(far, noise, &key).await.unwrap();
        sealed.write_all(b"hello").await.unwrap();
        let mut answer = String::new();
        sealed.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "yes");
        sealed.shutdown().await.unwrap();
    };
    let (heard, ()) = tokio::join!(play(&mut near, DOWN), initiator);
    assert_eq!(heard, octets(UP));
}

#[tokio::test]
async fn the_responder_writes_what_a_second_implementation_writes() {
    let (key, prologue, secret) = (key(), prologue(), std::array::from_fn::<u8, 32, _>(|at| at as u8 + 101));
    let (mut near, mut far) = duplex(1 << 16);
    let builder: Builder<'_> = builder(&key, &prologue).unwrap();
    let noise = builder.fixed_ephemeral_key_for_testing_only(&secret).build_responder().unwrap();
    let responder = async {
        let noise = be_called_with(&mut far, noise, &key).await.unwrap().into_transport_mode().unwrap();
        let mut sealed = super::handshake::confirmed(&mut far, noise).await.unwrap().seal(far);
        let mut question = String::new();
        sealed.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "hello");
        sealed.write_all(b"yes").await.unwrap();
        sealed.shutdown().await.unwrap();
    };
    let (heard, ()) = tokio::join!(play(&mut near, UP), responder);
    assert_eq!(heard, octets(DOWN));
}
