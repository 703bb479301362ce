use super::*;
use cede_units::Stream;

fn fact(number: u64, bytes: u32) -> PacketFact {
    PacketFact {
        number,
        bytes,
        sent_at: cede_units::Instant::ZERO,
        retransmitted: false,
        tag: 0,
        record: cede_cc::SendRecord::default(),
    }
}

fn board(sizes: &[u32]) -> Scoreboard {
    let mut board = Scoreboard::new(1000);
    for &bytes in sizes {
        let offset = board.next();
        let payload = Payload::Pattern { start: offset, len: bytes };
        board.push(fact(board.next_number(), bytes), &Outgoing { offset, payload, fin: false });
    }
    board
}

fn numbers(facts: &[PacketFact]) -> Vec<u64> {
    facts.iter().map(|fact| fact.number).collect()
}

fn lost_after(board: &mut Scoreboard, blocks: &[(u64, u64)]) -> Vec<u64> {
    let (mut acked, mut lost) = (Facts::default(), Vec::new());
    for &(start, end) in blocks {
        board.sack(start, end, &mut acked);
    }
    board.detect_losses(&mut lost);
    numbers(&lost)
}

#[test]
fn check_3_is_lost_by_three_runs_or_more_than_two_segments() {
    // HighACK 1000; SACKed 2000-3000, 4000-5000, 6000-7000: 1000 is lost by three runs, 3000 is not.
    let mut whole = board(&[1000; 8]);
    whole.acknowledge(1000, &mut Facts::default());
    assert_eq!(lost_after(&mut whole, &[(2000, 3000), (4000, 5000), (6000, 7000)]), [1]);
    // One octet more makes 2001 above 3000, which is more than two segments.
    let mut odd = board(&[1000, 1000, 1000, 1000, 1000, 1000, 1001, 999]);
    odd.acknowledge(1000, &mut Facts::default());
    assert_eq!(lost_after(&mut odd, &[(2000, 3000), (4000, 5000), (6000, 7001)]), [1, 3]);
}

#[test]
fn what_was_not_lost_after_all_is_under_way_again() {
    let mut board = board(&[1000; 10]);
    assert_eq!(lost_after(&mut board, &[(3000, 6000)]), [0, 1, 2]);
    assert_eq!((board.pipe_bytes(), board.resent()), (4_000, 0));
    board.resend(0, false);
    assert_eq!((board.pipe_bytes(), board.resent()), (5_000, 1));
    board.unmark_lost();
    assert_eq!(board.pipe_bytes(), 7_000, "1 and 2; 0 left again and counts for that");
    assert!([0, 1, 2].iter().all(|&number| !board.is_to_resend(number)));
    board.acknowledge(1000, &mut Facts::default());
    assert_eq!((board.pipe_bytes(), board.resent()), (6_000, 0));
}

#[test]
fn pipe_counts_what_is_neither_lost_nor_sacked_and_what_was_resent() {
    let mut board = board(&[1000; 10]);
    assert_eq!(board.pipe_bytes(), 10_000);
    assert_eq!(lost_after(&mut board, &[(2000, 5000)]), [0, 1]);
    assert_eq!(board.pipe_bytes(), 5_000);
    assert_eq!(board.next_lost(), Some(0));
    board.resend(0, false);
    assert_eq!((board.next_lost(), board.pipe_bytes()), (Some(1), 6_000));
    board.resend(1, false);
    assert_eq!((board.next_lost(), board.next_hole()), (None, None));
    // A rescue counts nowhere.
    assert_eq!(board.highest_unsacked(), Some(9));
    board.resend(9, true);
    assert_eq!(board.pipe_bytes(), 7_000);
    // The hole filled, and a segment found lost whose retransmission is counted once.
    let mut acked = Facts::default();
    assert!(board.acknowledge(5000, &mut acked));
    assert_eq!((numbers(&acked), board.pipe_bytes()), (alloc::vec![0, 1], 5_000));
}

#[test]
fn rule_3_resends_holes_that_are_not_lost_yet() {
    let mut board = board(&[1000; 4]);
    assert!(lost_after(&mut board, &[(1000, 2000), (3000, 4000)]).is_empty());
    assert_eq!((board.next_lost(), board.next_hole()), (None, Some(0)));
    board.resend(0, false);
    // Neither SACKed nor lost, and sent again: counted twice.
    assert_eq!((board.next_hole(), board.pipe_bytes()), (Some(2), 3_000));
}

#[test]
fn a_timeout_takes_everything_for_lost_and_forgets_only_where_told() {
    for (forget, resent) in [(false, alloc::vec![0, 3]), (true, alloc::vec![0, 1, 2, 3])] {
        let mut board = board(&[1000; 4]);
        lost_after(&mut board, &[(1000, 3000)]);
        board.mark_all_lost(forget);
        assert_eq!(board.pipe_bytes(), 0);
        let mut seen = Vec::new();
        while let Some(number) = board.next_lost() {
            board.resend(number, false);
            seen.push(number);
        }
        assert_eq!(seen, resent);
        // What was delivered once is not reported again.
        let mut acked = Facts::default();
        board.acknowledge(4000, &mut acked);
        assert_eq!(numbers(&acked), [0, 3]);
        assert_eq!(board.pipe_bytes(), 0);
    }
}

#[test]
fn blocks_outside_the_window_and_parts_of_segments_say_nothing() {
    let mut board = board(&[1000; 4]);
    board.acknowledge(1000, &mut Facts::default());
    let mut acked = Facts::default();
    for (start, end) in [(0, 2000), (3000, 5000), (3000, 3000), (3000, 2000), (2500, 3500), (2001, 3000)] {
        assert_eq!(board.sack(start, end, &mut acked), 0, "{start}-{end}");
    }
    assert_eq!(board.sack(1500, 3500, &mut acked), 1);
    assert_eq!(numbers(&acked), [2]);
}

/// The RFC's definitions, by walks over everything.
#[derive(Default)]
struct Model {
    /// Offset, octets, SACKed, lost, resent.
    segments: Vec<(u64, u64, bool, bool, bool)>,
    first: usize,
}

impl Model {
    fn is_lost(&self, index: usize) -> bool {
        let above = &self.segments[index + 1..];
        let bytes: u64 = above.iter().filter(|segment| segment.2).map(|segment| segment.1).sum();
        let starts = |i: &usize| above[*i].2 && (*i == 0 || !above[*i - 1].2);
        bytes > 2000 || (0..above.len()).filter(starts).count() >= 3
    }

    fn pipe(&self) -> u64 {
        let outstanding = self.segments[self.first..].iter().filter(|segment| !segment.2);
        outstanding.map(|segment| segment.1 * (u64::from(!segment.3) + u64::from(segment.4))).sum()
    }
}

#[test]
fn random_histories_agree_with_the_walks_of_the_rfc() {
    let mut random = Stream::named(7, "scoreboard");
    for _ in 0..300 {
        random_history(&mut random);
    }
}

fn random_history(random: &mut Stream) {
    let (mut board, mut model) = (board(&[]), Model::default());
    let (mut acked, mut lost) = (Facts::default(), Vec::new());
    for _ in 0..200 {
        match random.below(5) {
            0 | 1 => push_both(
                &mut board,
                &mut model,
                if random.chance(0.8) { 1000 } else { 1 + random.below(999) },
            ),
            2 => sack_both(&mut board, &mut model, random, &mut acked),
            3 => resend_both(&mut board, &mut model),
            _ => acknowledge_both(&mut board, &mut model, random, &mut acked),
        }
        lost.clear();
        board.detect_losses(&mut lost);
        for index in model.first..model.segments.len() {
            if !model.segments[index].2 && !model.segments[index].3 && model.is_lost(index) {
                model.segments[index].3 = true;
                assert_eq!(lost.remove(0).number, index as u64);
            }
        }
        assert!(lost.is_empty());
        assert_eq!(board.pipe_bytes(), model.pipe());
        assert_eq!(board.first_number(), model.first as u64);
    }
}

fn push_both(board: &mut Scoreboard, model: &mut Model, bytes: u64) {
    let offset = board.next();
    let payload = Payload::Pattern { start: offset, len: bytes as u32 };
    board.push(fact(board.next_number(), bytes as u32), &Outgoing { offset, payload, fin: false });
    model.segments.push((offset, bytes, false, false, false));
}

fn sack_both(board: &mut Scoreboard, model: &mut Model, random: &mut Stream, acked: &mut Facts) {
    let outstanding = (model.segments.len() - model.first) as u64;
    if outstanding < 2 {
        return;
    }
    let start = model.first + 1 + random.below(outstanding - 1) as usize;
    let end = (start + 1 + random.below(4) as usize).min(model.segments.len());
    let last = model.segments[end - 1];
    *acked = Facts::default();
    board.sack(model.segments[start].0, last.0 + last.1, acked);
    let fresh: Vec<u64> = (start..end).filter(|&i| !model.segments[i].2).map(|i| i as u64).collect();
    assert_eq!(numbers(acked), fresh);
    model.segments[start..end].iter_mut().for_each(|segment| segment.2 = true);
}

fn resend_both(board: &mut Scoreboard, model: &mut Model) {
    let expected = (model.first..model.segments.len())
        .find(|&i| !model.segments[i].2 && model.segments[i].3 && !model.segments[i].4);
    let number = board.next_lost();
    assert_eq!(number, expected.map(|i| i as u64));
    if let Some(number) = number {
        board.resend(number, false);
        model.segments[number as usize].4 = true;
    }
}

fn acknowledge_both(board: &mut Scoreboard, model: &mut Model, random: &mut Stream, acked: &mut Facts) {
    let mut first = model.first + random.below(4) as usize;
    first = first.min(model.segments.len());
    // A receiver acknowledges as far as it has everything.
    while first < model.segments.len() && model.segments[first].2 {
        first += 1;
    }
    let una = model.segments.get(first).map_or(board.next(), |segment| segment.0);
    *acked = Facts::default();
    board.acknowledge(una, acked);
    let fresh: Vec<u64> = (model.first..first).filter(|&i| !model.segments[i].2).map(|i| i as u64).collect();
    assert_eq!(numbers(acked), fresh);
    model.first = first;
}
