//! Two of which neither wants anything of anybody part (BEP 21): libtorrent does so, and whoever stays takes a place from others.

mod common;

use cede_bt::engine::{Action, CloseReason, ConnId};
use cede_bt::extension::UPLOAD_ONLY;
use cede_bt::wire::{Handshake, Message, Reserved};
use cede_bt::{Bitfield, Disposition, Engine, Profile, Transport};
use cede_units::Instant;
use cede_wire::Payload;
use common::{geometry, setup};

const NOW: Instant = Instant::from_secs(1);

/// One that has nothing or everything, and a caller that has the first piece.
fn pair(complete: bool) -> (Engine<usize>, ConnId) {
    let mut engine = Engine::new(setup(0, complete, Profile::LIBTORRENT, Disposition::ALL));
    engine.start(NOW);
    let conn = engine.accept(NOW, 1, Transport::Tcp).unwrap();
    let reserved = Reserved::default().with(Reserved::EXTENDED);
    let handshake = Handshake { reserved, info_hash: [7; 20], peer_id: [9; 20] };
    engine.received(NOW, conn, Payload::copy_from(&handshake.encode()));
    let mut have = Bitfield::none(geometry().pieces());
    have.insert(0);
    assert_eq!(tell(&mut engine, conn, &Message::Bitfield(have.to_octets())), []);
    (engine, conn)
}

/// Why connections end when a peer says something.
fn tell(engine: &mut Engine<usize>, conn: ConnId, message: &Message) -> Vec<CloseReason> {
    engine.received(NOW, conn, Payload::copy_from(&message.to_vec()));
    ends(engine)
}

fn ends(engine: &mut Engine<usize>) -> Vec<CloseReason> {
    let actions = std::iter::from_fn(|| engine.poll_action());
    actions
        .filter_map(|action| if let Action::Close { reason, .. } = action { Some(reason) } else { None })
        .collect()
}

/// A server gives everything. Why connections end then.
fn fetch_everything(engine: &mut Engine<usize>) -> Vec<CloseReason> {
    let (source, mut ends) = (engine.add_source(), Vec::new());
    while let Some(range) = engine.claim(source, 1 << 16) {
        let payload = Payload::Pattern { start: range.start, len: (range.end - range.start) as u32 };
        engine.delivered(NOW, source, range.start, payload);
        while let Some(action) = engine.poll_action() {
            match action {
                Action::Check { piece } => engine.checked(NOW, piece, true),
                Action::Close { reason, .. } => ends.push(reason),
                _ => {}
            }
        }
    }
    ends
}

fn words(upload_only: bool) -> [Message; 2] {
    let number = u8::from(upload_only);
    let handshake = format!("d1:mde11:upload_onlyi{number}ee").into_bytes();
    [Message::Extended(0, handshake), Message::Extended(UPLOAD_ONLY, vec![number])]
}

#[test]
fn who_wants_nothing_leaves_a_peer_that_wants_nothing() {
    for (word, wants) in words(true).iter().zip(&words(false)) {
        let (mut engine, conn) = pair(true);
        assert_eq!(tell(&mut engine, conn, wants), []);
        assert_eq!(tell(&mut engine, conn, &Message::Extended(0, b"d1:mdee".to_vec())), []);
        assert_eq!(tell(&mut engine, conn, word), [CloseReason::BothComplete]);
    }
}

/// It stays as long as something is wanted of it, and is left then, unless it has thought better of it.
#[test]
fn a_peer_that_wants_nothing_is_left_once_everything_is_here() {
    for ((word, takes_back), stays_so) in words(true).iter().zip(&words(false)).zip([true, false]) {
        let (mut engine, conn) = pair(false);
        assert_eq!(tell(&mut engine, conn, word), []);
        // A handshake that says nothing of it alters nothing.
        assert_eq!(tell(&mut engine, conn, &Message::Extended(0, b"d1:mdee".to_vec())), []);
        assert!(engine.connections().all(|view| view.upload_only));
        if !stays_so {
            assert_eq!(tell(&mut engine, conn, takes_back), []);
        }
        let ends = fetch_everything(&mut engine);
        assert!(engine.is_upload_only());
        assert_eq!(ends, if stays_so { vec![CloseReason::BothComplete] } else { vec![] });
    }
}
