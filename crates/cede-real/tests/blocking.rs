//! Sockets for threads without a runtime.
#![allow(missing_docs)]
#![cfg(feature = "blocking")]

use cede_real::StreamConfig;
use cede_real::blocking::{Error, Patience, Socket, Stream};
use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

const SOON: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(60);

/// A socket, and both ends of a stream to it.
fn pair() -> (Socket, Stream, Stream) {
    let socket = Socket::bind("127.0.0.1:0", StreamConfig::default()).unwrap();
    let peer = socket.local_addr().to_string();
    let near = Stream::connect(&peer, StreamConfig::with_controller("ledbat++"), LONG.into()).unwrap();
    let far = socket.accept(LONG.into()).unwrap();
    (socket, near, far)
}

#[test]
fn a_megabyte_arrives_both_ways_at_once_and_ends() {
    const OCTETS: usize = 1 << 20;
    let (_socket, near, far) = pair();
    let whole: Vec<u8> = (0..OCTETS).map(|i| ((i * i) >> 7) as u8).collect();
    let send = |stream: &Stream| {
        let mut sent = 0;
        while sent < OCTETS {
            sent += stream.write(&whole[sent..], LONG.into()).unwrap();
        }
        stream.finish(LONG.into()).unwrap();
    };
    let hear = |stream: &Stream| {
        let (mut heard, mut room) = (Vec::<u8>::new(), vec![0; 100_000]);
        loop {
            match stream.read(&mut room, LONG.into()).unwrap() {
                0 => return heard == whole,
                n => heard.extend(&room[..n]),
            }
        }
    };
    thread::scope(|scope| {
        let heard = [&near, &far].map(|stream| scope.spawn(|| hear(stream)));
        for stream in [&near, &far] {
            scope.spawn(|| send(stream));
        }
        assert_eq!(heard.map(|heard| heard.join().unwrap()), [true, true]);
    });
    assert_eq!(near.view().statistics().bytes_acked, OCTETS as u64);
}

#[test]
fn nobody_waits_longer_than_it_said_not_even_for_its_turn() {
    let (socket, near, far) = pair();
    thread::scope(|scope| {
        let other = scope.spawn(|| near.read(&mut [0], LONG.into()).map_err(|e| e.to_string()));
        thread::sleep(SOON);
        assert!(matches!(near.read(&mut [0], Duration::ZERO.into()), Err(Error::TooLate)));
        let waited = near.read(&mut [0], SOON.into()).unwrap_err();
        assert_eq!(waited.to_string(), "it took longer than was allowed");
        assert!(matches!(socket.accept(SOON.into()), Err(Error::TooLate)));
        assert_eq!(near.write(b"abc", LONG.into()).unwrap(), 3);
        // The other one's turn is not over yet: nobody has waited for its end.
        assert!(!other.is_finished());
        assert_eq!(far.write(b"d", LONG.into()).unwrap(), 1);
        assert_eq!(other.join().unwrap(), Ok(1));
    });
}

#[test]
fn whoever_waits_is_asked_whether_to_go_on() {
    let (socket, ..) = pair();
    let mut asked = 0;
    let mut go_on = || {
        asked += 1;
        asked < 3
    };
    let waited = socket.accept(Patience::while_asked(None, &mut go_on));
    assert!(matches!(waited, Err(Error::Interrupted)));
    assert_eq!(asked, 3);
    let mut for_ever = || true;
    let waited = socket.accept(Patience::while_asked(Some(SOON), &mut for_ever));
    assert!(matches!(waited, Err(Error::TooLate)));
}

#[test]
fn what_was_written_arrives_although_its_handle_is_gone() {
    let (_socket, near, far) = pair();
    assert_eq!(near.write(b"farewell", LONG.into()).unwrap(), 8);
    drop(near);
    let mut room = [0; 20];
    assert_eq!(far.read(&mut room, LONG.into()).unwrap(), 8);
    assert_eq!(far.read(&mut room, LONG.into()).unwrap(), 0);
}

#[test]
fn failures_say_what_they_are() {
    let (socket, near, far) = pair();
    far.abort();
    let Err(Error::Io(error)) = near.read(&mut [0], LONG.into()) else { panic!("a reset") };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(matches!(near.finish(LONG.into()), Err(Error::Io(_))));
    assert!(matches!(socket.connect("no port", None, LONG.into()), Err(Error::Name(_))));
    assert!(matches!(socket.connect("[::1]:9", None, LONG.into()), Err(Error::Connect(_))));
    let taken = Socket::bind(&socket.local_addr().to_string(), StreamConfig::default());
    assert!(matches!(taken, Err(Error::Bind(_))));
    let unknown = StreamConfig::with_controller("unknown");
    let error = Stream::connect("127.0.0.1:9", unknown, LONG.into()).unwrap_err();
    assert!(error.to_string().contains("unknown"), "{error}");
}
