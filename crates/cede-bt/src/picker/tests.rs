use super::begun::EARLIER_RUN;
use super::*;
use crate::geometry::BLOCK_BYTES;

const STRICT: PickerRule = PickerRule {
    random_first: 0,
    partials: PartialRule::Strict,
    end_game: EndGame::Everyone,
    whole_within: None,
};

fn picker(pieces: u32, rule: PickerRule) -> Picker {
    let geometry = Geometry::new(u64::from(pieces) * 4 * u64::from(BLOCK_BYTES), 4 * BLOCK_BYTES).unwrap();
    Picker::new(geometry, rule, Bitfield::none(pieces), Stream::named(1, "picker"))
}

fn set(pieces: u32, of: &[u32]) -> Bitfield {
    let mut set = Bitfield::none(pieces);
    of.iter().for_each(|&piece| {
        set.insert(piece);
    });
    set
}

fn picked(picker: &mut Picker, theirs: &Bitfield, wanted: u32) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    picker.pick(theirs, (9, Order::RarestFirst), wanted, &mut out);
    out.iter().map(|block| (block.piece, block.begin / BLOCK_BYTES)).collect()
}

#[test]
fn the_rarest_piece_comes_first_and_then_what_has_been_begun() {
    let mut picker = picker(5, STRICT);
    for (piece, peers) in [(0, 3), (1, 2), (2, 1), (3, 4), (4, 4)] {
        (0..peers).for_each(|_| picker.gain(piece));
    }
    assert_eq!(picked(&mut picker, &set(5, &[0, 1, 3]), 2), [(1, 0), (1, 1)]);
    // Piece 2 is rarer, but piece 1 has been begun.
    assert_eq!(picked(&mut picker, &set(5, &[0, 1, 2]), 9), [(1, 2), (1, 3)]);
    assert_eq!(picked(&mut picker, &set(5, &[0, 1, 2]), 1), [(2, 0)]);
    // A seed is not asked for what was begun with others.
    assert_eq!(picked(&mut picker, &Bitfield::all(5), 1), [(0, 0)]);
    // Unless there is nothing else.
    let rest = (0..40).map(|_| picked(&mut picker, &Bitfield::all(5), 1)).filter(|block| !block.is_empty());
    assert_eq!(rest.count(), 5 * 4 - 6);
}

#[test]
fn libtorrent_begins_a_rarer_piece_before_it_goes_on() {
    let mut picker = picker(3, PickerRule { partials: PartialRule::EquallyRare, ..STRICT });
    for (piece, peers) in [(0, 2), (1, 1), (2, 2)] {
        (0..peers).for_each(|_| picker.gain(piece));
    }
    assert_eq!(picked(&mut picker, &set(3, &[0]), 1), [(0, 0)]);
    assert_eq!(picked(&mut picker, &set(3, &[0, 1]), 1), [(1, 0)]);
    assert_eq!(picked(&mut picker, &set(3, &[0, 2]), 1), [(0, 1)]);
}

#[test]
fn listed_pieces_are_finished_one_after_another() {
    let rule = PickerRule { partials: PartialRule::Listed, ..STRICT };
    let mut ours = picker(9, rule);
    (0..9).for_each(|piece| assert_eq!(picked(&mut ours, &set(9, &[piece]), 1), [(piece, 0)]));
    let rest: Vec<u32> =
        (0..27).flat_map(|_| picked(&mut ours, &Bitfield::all(9), 1)).map(|(piece, _)| piece).collect();
    let mut order = rest.clone();
    order.dedup();
    assert!(order.len() == 9 && !order.is_sorted(), "{rest:?}");
    // While rarity does not matter yet, the order is that of the numbers.
    let mut first = picker(9, PickerRule { random_first: 4, ..rule });
    [7, 2, 5]
        .into_iter()
        .for_each(|piece| assert_eq!(picked(&mut first, &set(9, &[piece]), 1), [(piece, 0)]));
    assert_eq!(picked(&mut first, &Bitfield::all(9), 9), [(2, 1), (2, 2), (2, 3)]);
    assert_eq!(picked(&mut first, &Bitfield::all(9), 1), [(5, 1)]);
}

#[test]
fn late_peers_are_asked_for_the_commonest() {
    let mut picker = picker(3, PickerRule { partials: PartialRule::Listed, ..STRICT });
    for (piece, peers) in [(0, 2), (1, 1), (2, 3)] {
        (0..peers).for_each(|_| picker.gain(piece));
    }
    let mut out = Vec::new();
    picker.pick(&Bitfield::all(3), (9, Order::CommonestFirst), 1, &mut out);
    picker.pick(&Bitfield::all(3), (9, Order::RarestFirst), 1, &mut out);
    assert_eq!(out.iter().map(|block| block.piece).collect::<Vec<_>>(), [2, 1]);
    // Among those that have been begun likewise.
    picker.pick(&Bitfield::all(3), (9, Order::CommonestFirst), 1, &mut out);
    assert_eq!(out[2].piece, 2);
}

#[test]
fn the_end_game_may_begin_with_the_last_piece() {
    let mut picker = picker(2, PickerRule { end_game: EndGame::AllBegun, ..STRICT });
    assert_eq!(picked(&mut picker, &set(2, &[0]), 4).len(), 4);
    assert!(!picker.is_end_game());
    assert_eq!(picked(&mut picker, &set(2, &[1]), 1).len(), 1);
    assert!(picker.is_end_game());
    let mut again = Vec::new();
    // Piece 1 has blocks that nobody has been asked for: it is no piece to ask for twice.
    picker.pick_again(&Bitfield::all(2), &[], 9, &mut again);
    assert!(again.len() == 1 && again[0].piece == 0);
    let owes = again.clone();
    picker.pick_again(&Bitfield::all(2), &owes, 9, &mut again);
    assert_eq!(again.len(), 1);
}

#[test]
fn the_end_game_asks_everybody_for_everything_once() {
    let mut picker = picker(1, STRICT);
    let all = Bitfield::all(1);
    assert_eq!(picked(&mut picker, &all, 9).len(), 4);
    assert!(picker.is_end_game());
    let (mut again, owes) = (Vec::new(), [BlockRef { piece: 0, begin: 0, len: BLOCK_BYTES }]);
    picker.pick_again(&all, &owes, 9, &mut again);
    again.sort();
    assert_eq!(again.iter().map(|block| block.begin / BLOCK_BYTES).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(picker.arrive(again[0], 7), Some(Arrival { others: 1, whole: false }));
    assert_eq!(picker.arrive(again[0], 8), None);
}

#[test]
fn libtorrents_end_game_asks_one_more_peer_that_is_idle() {
    let mut picker = picker(1, PickerRule { end_game: EndGame::Strict, ..STRICT });
    let all = Bitfield::all(1);
    assert_eq!(picked(&mut picker, &all, 9).len(), 4);
    let mut again = Vec::new();
    picker.pick_again(&all, &[BlockRef { piece: 0, begin: 0, len: BLOCK_BYTES }], 9, &mut again);
    assert!(again.is_empty());
    for count in 1..=4 {
        picker.pick_again(&all, &[], 9, &mut again);
        assert_eq!(again.len(), count);
    }
    picker.pick_again(&all, &[], 9, &mut again);
    assert_eq!(again.len(), 4);
}

#[test]
fn a_bad_piece_is_wanted_again_and_those_who_sent_it_are_named() {
    let mut picker = picker(2, STRICT);
    picker.gain(0);
    let mut out = Vec::new();
    picker.pick(&set(2, &[0]), (1, Order::RarestFirst), 9, &mut out);
    for (block, peer) in out.iter().zip([5, 6, 5, 6]) {
        picker.arrive(*block, peer).unwrap();
    }
    assert_eq!(picker.checked(0, false), Origin { peers: alloc::vec![5, 6], shared: false });
    assert!(picker.lacks(0) && !picker.is_complete());
    out.clear();
    picker.pick(&set(2, &[0]), (1, Order::RarestFirst), 9, &mut out);
    out.iter().for_each(|block| {
        assert!(picker.awaits(*block, 5) && picker.arrive(*block, 5).is_some() && !picker.awaits(*block, 5));
    });
    picker.checked(0, true);
    assert_eq!((picker.missing(), picker.have().has(0)), (1, true));
    picker.want(set(2, &[0]));
    assert!(picker.is_complete());
}

#[test]
fn free_blocks_are_counted_whatever_happens() {
    let mut random = Stream::named(3, "happens");
    let mut picker = picker(8, STRICT);
    let mut owed: Vec<BlockRef> = Vec::new();
    for _ in 0..5_000 {
        let theirs = set(8, &[random.below(8) as u32, random.below(8) as u32]);
        match random.below(4) {
            0 => picker.pick(&theirs, (3, Order::RarestFirst), 1 + random.below(4) as u32, &mut owed),
            1 if !owed.is_empty() => {
                let block = owed.swap_remove(random.below(owed.len() as u64) as usize);
                picker.release(&[block]);
            }
            2 if !owed.is_empty() => {
                let block = owed.swap_remove(random.below(owed.len() as u64) as usize);
                if picker.arrive(block, 1).is_some_and(|arrival| arrival.whole) {
                    picker.checked(block.piece, random.chance(0.3));
                }
            }
            _ => picker.gain(random.below(8) as u32),
        }
        let counted: u32 = picker.partials.iter().map(|partial| partial.free).sum();
        let naive = picker.partials.iter().flat_map(|partial| &partial.blocks);
        assert_eq!(picker.free, counted);
        assert_eq!(counted as usize, naive.filter(|&&block| block == Block::Free).count());
    }
}

fn whole(picker: &mut Picker, theirs: &Bitfield, blocks: u32, outstanding: u32) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    picker.pick_whole(theirs, (9, Order::RarestFirst), blocks, |_| outstanding, &mut out);
    out.iter().map(|block| (block.piece, block.begin / BLOCK_BYTES)).collect()
}

#[test]
fn a_fast_peer_takes_the_rarest_piece_whole() {
    let mut picker = picker(3, PickerRule { partials: PartialRule::Listed, ..STRICT });
    for (piece, peers) in [(0, 2), (1, 1), (2, 2)] {
        (0..peers).for_each(|_| picker.gain(piece));
    }
    assert_eq!(whole(&mut picker, &Bitfield::all(3), 4, 0), [(1, 0), (1, 1), (1, 2), (1, 3)]);
    // Piece 0 is somebody else's, but for one who has asked for all of it that is outstanding.
    assert_eq!(picked(&mut picker, &set(3, &[0]), 1), [(0, 0)]);
    assert_eq!(whole(&mut picker, &set(3, &[0]), 4, 0), []);
    assert_eq!(whole(&mut picker, &set(3, &[0]), 3, 0), [(0, 1), (0, 2), (0, 3)], "its run is long enough");
    assert_eq!(picked(&mut picker, &set(3, &[2]), 2), [(2, 0), (2, 1)]);
    assert_eq!(whole(&mut picker, &set(3, &[2]), 4, 2), [(2, 2), (2, 3)]);
}

#[test]
fn a_faster_one_takes_neighbours_along_that_nobody_has_begun() {
    let mut picker = picker(9, PickerRule { partials: PartialRule::Listed, ..STRICT });
    (0..9).for_each(|piece| (0..2).for_each(|_| picker.gain(piece)));
    assert_eq!(picked(&mut picker, &set(9, &[2]), 1), [(2, 0)]);
    // Three pieces' worth around piece 4, of which 2 is begun: 3, 4 and 5.
    picker.lose_all(&set(9, &[4]));
    let pieces: Vec<u32> = whole(&mut picker, &Bitfield::all(9), 12, 0).iter().map(|it| it.0).collect();
    assert_eq!(pieces, [3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5]);
}

#[test]
fn where_much_has_been_begun_nobody_takes_whole_pieces() {
    let mut picker = picker(20, PickerRule { partials: PartialRule::Listed, ..STRICT });
    (0..14).for_each(|piece| drop(picked(&mut picker, &set(20, &[piece]), 1)));
    assert_eq!(whole(&mut picker, &Bitfield::all(20), 4, 1), []);
}

#[test]
fn while_there_is_little_to_offer_nothing_is_begun_whole_before_the_begun_is_asked_for() {
    let mut picker = picker(6, PickerRule { partials: PartialRule::Listed, random_first: 4, ..STRICT });
    (0..6).for_each(|piece| (0..3).for_each(|_| picker.gain(piece)));
    // The rarest has not been begun; somebody else's piece 3 has.
    picker.lose_all(&set(6, &[5]));
    assert_eq!(picked(&mut picker, &set(6, &[3]), 1), [(3, 0)]);
    let all = Bitfield::all(6);
    assert_eq!(whole(&mut picker, &all, 4, 0), []);
    assert_eq!(picked(&mut picker, &all, 1), [(3, 1)]);
    // Who has been asked for both is given the rest at once.
    assert_eq!(whole(&mut picker, &all, 4, 2), [(3, 2), (3, 3)]);
    let fresh = whole(&mut picker, &all, 4, 0);
    assert_eq!(fresh.len(), 4);
    assert!(fresh.iter().all(|&(piece, _)| piece == fresh[0].0 && piece != 3), "{fresh:?}");
}

#[test]
fn what_an_earlier_run_began_is_asked_for_where_it_ended_and_nobody_is_charged_with_it() {
    let mut first = picker(3, STRICT);
    (0..3).for_each(|piece| first.gain(piece));
    let mut asked = Vec::new();
    first.pick(&set(3, &[1]), (9, Order::RarestFirst), 3, &mut asked);
    for block in [asked[0], asked[2]] {
        first.arrive(block, 7);
    }
    first.pick(&set(3, &[2]), (9, Order::RarestFirst), 1, &mut asked);
    let left = first.unfinished();
    // Of piece 2 something was asked for, and nothing came.
    assert_eq!(left, [Begun { piece: 1, blocks: set(4, &[0, 2]) }]);
    assert_eq!(first.unfinished_bytes(), u64::from(2 * BLOCK_BYTES));

    let mut second = picker(3, STRICT);
    (0..3).for_each(|piece| second.gain(piece));
    assert!(second.resume(&left[0]));
    assert_eq!(second.unfinished(), left);
    assert_eq!(picked(&mut second, &set(3, &[1]), 9), [(1, 1), (1, 3)]);
    assert!(!second.has_free(1));
    for number in [1, 3] {
        let block = second.geometry.block(1, number);
        assert_eq!(second.arrive(block, 9), Some(Arrival { others: 0, whole: number == 3 }));
    }
    // Not of peer 9 alone.
    assert_eq!(second.checked(1, false).peers, [EARLIER_RUN, 9]);
    assert_eq!(picked(&mut second, &set(3, &[1]), 9).len(), 4);
}

#[test]
fn what_is_no_part_of_a_piece_is_not_gone_on_with() {
    let have = set(3, &[0]);
    let geometry = Geometry::new(9 * u64::from(BLOCK_BYTES), 4 * BLOCK_BYTES).unwrap();
    let mut picker = Picker::new(geometry, STRICT, have, Stream::named(1, "picker"));
    let begun = |piece, blocks| Begun { piece, blocks };
    for bad in [
        begun(0, set(4, &[1])),
        begun(1, set(4, &[])),
        begun(1, Bitfield::all(4)),
        begun(1, set(5, &[1])),
        begun(2, set(4, &[0])),
        begun(3, set(4, &[0])),
        begun(u32::MAX, set(0, &[])),
    ] {
        assert!(!picker.resume(&bad), "{bad:?}");
    }
    assert!(picker.resume(&begun(1, set(4, &[1]))));
    assert!(!picker.resume(&begun(1, set(4, &[2]))), "it has been begun");
    assert_eq!(picker.unfinished(), [begun(1, set(4, &[1]))]);
}

/// The piece that whoever has `theirs` is asked for next. It comes at once, and is right.
fn fetched(picker: &mut Picker, theirs: &[u32]) -> Option<u32> {
    let open = set(6, theirs);
    let turns = picker.before_others(&open);
    let asked =
        turns.iter().chain([&open]).map(|open| picked(picker, open, 4)).find(|asked| !asked.is_empty());
    let piece = asked?[0].0;
    for number in 0..4 {
        let block = picker.geometry.block(piece, number);
        picker.arrive(block, 1);
    }
    picker.checked(piece, true);
    Some(piece)
}

#[test]
fn what_comes_first_is_asked_for_before_what_is_rarer() {
    let mut picker = picker(6, STRICT);
    for piece in 0..6 {
        (0..=piece).for_each(|_| picker.gain(piece));
    }
    // Pieces 4 and 5 come before all others, 0 after them.
    picker.take_turns(Turns { tiers: vec![set(6, &[4, 5]), set(6, &[1, 2, 3, 4, 5])], in_order: false });
    assert_eq!(fetched(&mut picker, &[0, 1, 5]), Some(5));
    assert_eq!(fetched(&mut picker, &[0, 1, 3]), Some(1), "the rarest of those that are not last");
    assert_eq!(fetched(&mut picker, &[0, 1]), Some(0), "there is nothing else to be had");
    assert_eq!(fetched(&mut picker, &[2, 3, 4]), Some(4));
    assert_eq!(picker.turns.tiers.len(), 1, "the first tier is here");
    assert_eq!(fetched(&mut picker, &[2, 3]), Some(2));
    assert_eq!(fetched(&mut picker, &[3]), Some(3));
    assert_eq!(picker.turns.tiers, [], "nothing comes before anything");
}

#[test]
fn pieces_come_in_order_whatever_their_rarity() {
    for rule in [STRICT, PickerRule { random_first: 4, partials: PartialRule::Listed, ..STRICT }] {
        let mut picker = picker(6, rule);
        for piece in 0..6 {
            (piece..6).for_each(|_| picker.gain(piece));
        }
        picker.take_turns(Turns { tiers: Vec::new(), in_order: true });
        let mut asked = Vec::new();
        for _ in 0..6 {
            picker.pick(&Bitfield::all(6), (9, Order::InOrder), 4, &mut asked);
        }
        assert_eq!(
            asked.iter().map(|block| block.piece).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5].map(|it| [it; 4]).concat()
        );
        // A server as well.
        let mut claimed = Vec::new();
        asked.drain(8..).for_each(|block| picker.release(&[block]));
        picker.leave_untouched();
        picker.claim(&Bitfield::all(6), (3, None), 1, &mut claimed);
        assert_eq!(claimed[0].piece, 2);
    }
}

/// What nobody has been asked for, or owes any more, of a piece that was begun does not wait for all that lies behind it.
#[test]
fn in_order_a_server_is_asked_for_the_rest_of_what_was_begun_first() {
    let mut picker = picker(6, STRICT);
    (0..6).for_each(|piece| picker.gain(piece));
    picker.take_turns(Turns { tiers: Vec::new(), in_order: true });
    let mut asked = Vec::new();
    for _ in 0..3 {
        picker.pick(&Bitfield::all(6), (9, Order::InOrder), 4, &mut asked);
    }
    // A peer goes that has sent the first block of piece 1, and owes the others.
    picker.arrive(asked[4], 1);
    asked[5..8].iter().for_each(|block| picker.release(&[*block]));
    let mut claimed = Vec::new();
    picker.claim(&Bitfield::all(6), (3, None), 1, &mut claimed);
    assert!(claimed.iter().map(|block| block.piece).eq([1; 3]), "{claimed:?}");
    claimed.clear();
    picker.claim(&Bitfield::all(6), (3, Some(2)), 1, &mut claimed);
    assert_eq!(claimed[0].piece, 3);
}
