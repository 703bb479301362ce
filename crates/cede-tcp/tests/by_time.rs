//! Losses found by time (RFC 8985), event by event. Acknowledgements come a millisecond after one another; the smallest round trip is
//! that of the first.

mod support;

use cede_tcp::{Config, RepairMode, TimeoutReason};
use cede_units::Duration;
use support::fixed_window;
use support::script::Script;

const US: fn(u64) -> Duration = Duration::from_micros;

/// A sender with a window of so many segments, whatever happens, and a smallest timeout of 200 ms.
fn sender(segments: u64) -> Script {
    let config = Config { rack: true, rto_min: Duration::from_millis(200), ..Config::default() };
    Script::with(&config, |config| fixed_window(segments * 1000, config))
}

#[test]
fn one_segment_that_overtakes_another_is_enough_once_that_is_late() {
    let mut sender = sender(2);
    assert_eq!(sender.sent(), [1, 2]);
    // Another leaves for the one that has arrived; the first gets a quarter of the round trip more.
    assert_eq!(sender.ack(0, &[(2, 2)]), [3]);
    assert_eq!(sender.connection.snapshot().repair, RepairMode::Open);
    assert_eq!(sender.wait(), (TimeoutReason::Reordering, US(250), vec![1]));
    assert_eq!(sender.connection.snapshot().repair, RepairMode::Recovery);
    let counts = *sender.connection.statistics();
    assert_eq!((counts.recoveries, counts.timeouts, counts.losses), (1, 0, 1));
    assert_eq!(sender.ack(3, &[]), [4, 5]);
    assert_eq!(sender.connection.snapshot().repair, RepairMode::Open);
}

#[test]
fn what_was_sent_again_is_found_lost_again() {
    let mut sender = sender(2);
    sender.sent();
    sender.ack(0, &[(2, 2)]);
    sender.wait();
    // 3, which left before the repetition, says nothing of it; 4, which left after it, does, and nothing is waited for any more.
    assert_eq!(sender.ack(0, &[(2, 3)]), [4]);
    assert_eq!(sender.ack(0, &[(2, 4)]), [1, 5]);
    let counts = *sender.connection.statistics();
    assert_eq!((counts.recoveries, counts.timeouts, counts.losses, counts.retransmissions), (1, 0, 2, 2));
}

#[test]
fn three_segments_leave_no_doubt_unless_segments_were_seen_out_of_order() {
    let mut sender = sender(4);
    assert_eq!(sender.sent(), [1, 2, 3, 4]);
    assert_eq!(sender.ack(0, &[(2, 4)])[..1], [1]);
    // The first comes after all: out of order.
    let mut other = self::sender(8);
    other.sent();
    assert_eq!(other.ack(0, &[(2, 2)]), [9]);
    assert_eq!(other.ack(4, &[]), [10, 11, 12]);
    assert_eq!(other.ack(9, &[(11, 12)])[..1], [13]);
    assert_eq!(other.connection.statistics().retransmissions, 0);
    let (reason, span, sent) = other.wait();
    assert_eq!((reason, span, sent[0]), (TimeoutReason::Reordering, US(250), 10));
}

#[test]
fn what_is_found_beyond_a_repair_begins_another() {
    let mut sender = sender(6);
    assert_eq!(sender.sent(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(sender.ack(0, &[(2, 4)])[..1], [1]);
    // 7 and 8 left after the repair began, and 7 is lost as well.
    sender.ack(6, &[(8, 8)]);
    assert_eq!(sender.connection.snapshot().repair, RepairMode::Open);
    assert_eq!(sender.wait().2[..1], [7]);
    assert_eq!(sender.connection.snapshot().repair, RepairMode::Recovery);
    assert_eq!(sender.connection.statistics().timeouts, 0);
}

/// With three segments of which the last is lost: two round trips and the slack.
#[test]
fn a_probe_repeats_the_last_segment_and_what_goes_beyond_it_says_that_it_was_lost() {
    let config = Config { rack: true, rto_min: Duration::from_millis(200), ..Config::default() };
    let mut sender = Script::bare(&config, "reno");
    sender.write(5);
    assert_eq!(sender.sent(), [1, 2, 3, 4, 5]);
    assert_eq!(sender.ack(3, &[]), []);
    assert_eq!(sender.wait(), (TimeoutReason::TailProbe, US(4000), vec![5]));
    // 4 was lost too: it is found as soon as the probe is SACKed.
    assert_eq!(sender.ack(3, &[(5, 5)]), [4]);
    sender.ack(5, &[]);
    let window = sender.window();
    let counts = *sender.connection.statistics();
    assert_eq!((counts.tail_probes, counts.timeouts, counts.losses), (1, 0, 1));
    // Whether the probe or the segment arrived, what is beyond it tells: nothing was said of two.
    sender.write(1);
    assert_eq!(sender.sent(), [6]);
    sender.ack(6, &[]);
    assert_eq!(sender.connection.statistics().losses, 2);
    assert_eq!(sender.connection.statistics().timeouts, 0);
    assert!(sender.window() <= window + 1000);
}

#[test]
fn a_lone_segment_is_probed_for_in_the_place_of_the_timeout_and_two_that_arrive_are_no_loss() {
    let config = Config { rack: true, rto_min: Duration::from_millis(200), ..Config::default() };
    let mut sender = Script::bare(&config, "reno");
    sender.write(2);
    assert_eq!(sender.sent(), [1, 2]);
    sender.ack(1, &[]);
    let timeout = sender.connection.snapshot().rto;
    assert_eq!(sender.wait(), (TimeoutReason::TailProbe, timeout, vec![2]));
    sender.ack(2, &[]);
    let window = sender.window();
    // The second of the two.
    sender.ack(2, &[]);
    sender.write(1);
    sender.sent();
    sender.ack(3, &[]);
    let counts = *sender.connection.statistics();
    assert_eq!((counts.tail_probes, counts.timeouts, counts.losses), (1, 0, 0));
    assert!(sender.window() >= window);
}

#[test]
fn a_probe_is_new_data_where_there_are_some_and_a_timeout_follows_where_nothing_comes_of_it() {
    let mut sender = sender(2);
    assert_eq!(sender.sent(), [1, 2]);
    assert_eq!(sender.ack(1, &[]), [3]);
    assert_eq!(sender.wait(), (TimeoutReason::TailProbe, US(4000), vec![4]));
    let timeout = sender.connection.snapshot().rto;
    assert_eq!(sender.wait(), (TimeoutReason::Retransmission, timeout, vec![2, 3]));
    let counts = *sender.connection.statistics();
    assert_eq!((counts.tail_probes, counts.timeouts, counts.recoveries), (1, 1, 0));
}

#[test]
fn without_selective_acknowledgements_losses_are_counted() {
    let config = Config { rack: true, sack: false, ..Config::default() };
    let mut sender = Script::with(&config, |config| fixed_window(10_000, config));
    sender.sent();
    assert_eq!(
        (sender.ack(0, &[]), sender.ack(0, &[]), sender.ack(0, &[])),
        (vec![11], vec![12], vec![1, 13])
    );
    assert_eq!(sender.connection.statistics().tail_probes, 0);
}
