//! Repairs of what was not lost: segments that overtook one another (RFC 2883, RFC 3522, RFC 8985 section 6.2 step 4), event by event.
//! Acknowledgements come a millisecond after one another; the smallest round trip is that of the first.

mod support;

use cede_tcp::{AckPolicy, Config, RepairMode, TimeoutReason};
use cede_units::{Duration, Instant, Stream};
use cede_wire::tcp::{Flags, Options, SackBlocks};
use support::script::Script;
use support::{Net, Passing, Verdict, controller, fixed_window};

const US: fn(u64) -> Duration = Duration::from_micros;

fn by_time() -> Config {
    Config { rack: true, prr: true, rto_min: Duration::from_millis(200), ..Config::default() }
}

/// A sender with a window of so many segments, whatever happens.
fn sender(segments: u64) -> Script {
    Script::with(&by_time(), |config| fixed_window(segments * 1000, config))
}

/// The first segment was overtaken and taken for lost, left again and has arrived since, of all that was outstanding.
/// Answers what the window was before.
fn repaired(sender: &mut Script) -> u64 {
    assert_eq!(sender.sent().len(), 8);
    // 2 overtakes 1, which comes right after: an order that segments do not keep is known.
    sender.ack(0, &[(2, 2)]);
    let last = *sender.ack(2, &[]).last().unwrap();
    sender.ack(2, &[(4, 4)]);
    let window = sender.window();
    let (reason, span, sent) = sender.wait();
    assert_eq!((reason, span, sent), (TimeoutReason::Reordering, US(250), vec![3]));
    assert_eq!(sender.connection.snapshot().repair, RepairMode::Recovery);
    sender.ack(last + 1, &[]);
    assert_eq!(sender.connection.snapshot().repair, RepairMode::Open);
    window
}

#[test]
fn a_report_that_a_repetition_arrived_twice_widens_the_window_for_reordering() {
    let mut sender = sender(8);
    repaired(&mut sender);
    let una = sender.outstanding().start;
    // Below the acknowledgement: what arrived twice.
    sender.ack(una - 1, &[(3, 3)]);
    assert_eq!(sender.connection.statistics().reported_twice, 1);
    sender.ack(una - 1, &[(una + 1, una + 1)]);
    let (reason, span, sent) = sender.wait();
    assert_eq!((reason, span, sent), (TimeoutReason::Reordering, US(500), vec![una]), "two quarters");
}

#[test]
fn a_report_of_what_never_left_again_says_nothing() {
    let mut sender = sender(8);
    sender.sent();
    sender.ack(0, &[(2, 2)]);
    sender.ack(2, &[]);
    // The network doubled the first.
    sender.ack(2, &[(1, 1)]);
    let una = sender.outstanding().start;
    sender.ack(una - 1, &[(una + 1, una + 1)]);
    assert_eq!(sender.wait().1, US(250));
}

#[test]
fn a_repair_all_of_which_arrived_twice_is_taken_back() {
    for name in ["reno", "cubic"] {
        let config = Config { initial_window: cede_tcp::InitialWindow::Segments(8), ..by_time() };
        let mut sender = Script::new(&config, name);
        let before = repaired(&mut sender);
        assert!(sender.window() < before, "{name}: {} of {before}", sender.window());
        let una = sender.outstanding().start;
        sender.ack(una - 1, &[(3, 3)]);
        assert!(sender.window() >= before, "{name}: {} of {before}", sender.window());
        assert_eq!(sender.connection.statistics().taken_back, 1);
        // A second report has nothing to take back.
        sender.ack(una - 1, &[(3, 3)]);
        assert_eq!(sender.connection.statistics().taken_back, 1);
    }
}

#[test]
fn a_repair_that_mended_something_is_not_taken_back() {
    let mut sender = sender(8);
    sender.sent();
    sender.ack(0, &[(3, 3)]);
    sender.ack(0, &[(3, 5)]);
    let counts = *sender.connection.statistics();
    assert_eq!((counts.recoveries, counts.retransmissions), (1, 2), "1 and 2 left again");
    let last = sender.outstanding().end - 1;
    sender.ack(last, &[(2, 2)]);
    assert_eq!(sender.connection.statistics().taken_back, 0, "one of two");
}

#[test]
fn a_report_within_what_is_selectively_acknowledged_counts_as_well() {
    let mut sender = sender(8);
    sender.sent();
    sender.ack(0, &[(3, 3)]);
    // 1 and 2 leave again; 2 comes, and comes again. What left with it is lost, then, and leaves more than once.
    sender.ack(0, &[(3, 5)]);
    sender.ack(0, &[(2, 5)]);
    sender.ack(0, &[(2, 2), (2, 5)]);
    assert_eq!(sender.connection.statistics().reported_twice, 1);
    let last = sender.outstanding().end - 1;
    let counts = *sender.connection.statistics();
    for _ in 1..counts.retransmissions {
        assert_eq!(sender.connection.statistics().taken_back, 0);
        sender.ack(last, &[(1, 1)]);
    }
    assert_eq!(sender.connection.statistics().taken_back, 1);
}

#[test]
fn late_is_what_is_late_by_what_arrived_last_and_not_by_what_left_last() {
    let mut sender = sender(3);
    // The script lets a millisecond pass before each.
    let ack_after = |sender: &mut Script, us: u64, segments: u64, sacked: &[(u64, u64)]| {
        sender.now = Instant::from_nanos(sender.now.as_nanos() + 1000 * us - 1_000_000);
        sender.ack(segments, sacked)
    };
    assert_eq!(sender.sent(), [1, 2, 3]);
    assert_eq!(ack_after(&mut sender, 1000, 1, &[]), [4]);
    assert_eq!(ack_after(&mut sender, 100, 2, &[]), [5]);
    assert_eq!(ack_after(&mut sender, 100, 3, &[]), [6]);
    // The last comes first, after 1 ms, and then the one before it, after 1.14: the first may take that long, and a quarter.
    assert_eq!(ack_after(&mut sender, 1000, 3, &[(6, 6)]), [7]);
    assert_eq!(ack_after(&mut sender, 40, 3, &[(5, 6)]), [8]);
    let (reason, span, sent) = sender.wait();
    assert_eq!((reason, span, sent[0]), (TimeoutReason::Reordering, US(1000 + 1140 + 250 - 2240), 4));
}

#[test]
fn where_segments_are_far_out_of_order_a_window_grows_by_selective_acknowledgements_as_well() {
    for (overtaken, grows) in [(3, false), (6, true)] {
        let config = Config { initial_window: cede_tcp::InitialWindow::Segments(8), ..by_time() };
        let mut sender = Script::new(&config, "reno");
        sender.sent();
        sender.ack(0, &[(overtaken, overtaken)]);
        let last = *sender.ack(overtaken, &[]).last().unwrap();
        sender.ack(last - 2, &[]);
        let before = sender.window();
        sender.ack(last - 2, &[(last, last)]);
        assert_eq!(sender.window() > before, grows, "by {}", overtaken - 1);
    }
}

/// A path of 40 ms over which each segment may come up to 30 ms later than it would: how long 2 MB take, and the sender.
fn over_jitter(client: &Config, server: Config) -> (f64, Net) {
    let mut net = Net::new(client.clone(), server, Duration::from_millis(20));
    net.link = Some((cede_units::Rate::from_mbit(20), 500_000));
    net.connect(controller("cubic", client));
    net.client.to_send = 4_000_000;
    net.client.closes = true;
    let mut random = Stream::named(1, "jitter");
    let mut twice = 0;
    let mut finished = Instant::ZERO;
    while net.server.received < 4_000_000 && net.now < Instant::from_secs(100) {
        finished = net.now + Duration::from_millis(10);
        net.run(finished, &mut |passing: &Passing| {
            if !passing.from_client {
                let Some(&(start, _)) = passing.segment.options.sack.as_slice().first() else {
                    return Verdict::Deliver;
                };
                twice += u64::from(passing.segment.ack.offset_from(start) > 0);
                return Verdict::Deliver;
            }
            Verdict::Delay(Duration::from_micros(random.below(30_000)))
        });
    }
    assert!(net.server.intact);
    assert_eq!(twice > 0, net.server.config.rack, "reports of what arrived twice: {twice}");
    (finished.as_secs_f64(), net)
}

#[test]
fn a_path_that_reorders_is_learnt_of_by_reports_and_filled() {
    let linux = Config { ack_policy: AckPolicy::Every, ..Config::linux_4_18() };
    let (span, mut net) = over_jitter(&linux, linux.clone());
    let counts = *net.client().statistics();
    assert!(span < 8.0, "{span} s, {counts:?}");
    assert!(counts.reported_twice > 0 && counts.taken_back > 0 && counts.timeouts == 0, "{counts:?}");
    // Without timestamps the reports alone tell.
    let bare = Config { timestamps: false, ..Config::linux_4_18() };
    let (span, mut net) = over_jitter(&bare, linux.clone());
    let counts = *net.client().statistics();
    assert!(span < 8.0 && counts.taken_back > 0, "{span} s, {counts:?}");
    let with_reports = counts.retransmissions;
    // A receiver that reports nothing leaves the window for reordering as it was; stamps alone tell that repairs were in vain.
    let silent = Config { rack: false, ..Config::linux_4_18() };
    let (_, mut net) = over_jitter(&linux, silent);
    let counts = *net.client().statistics();
    assert!(
        counts.retransmissions > 5 * with_reports && counts.reported_twice == 0,
        "{with_reports}, {counts:?}"
    );
}

#[test]
fn nothing_is_taken_back_where_segments_keep_their_order() {
    let linux = Config {
        timestamp_granularity: Duration::from_micros(1),
        send_buffer_bytes: 16 << 20,
        receive_window_bytes: 16 << 20,
        ..Config::linux_4_18()
    };
    // The last has repetitions of one repair under way when the next begins.
    for (name, loss, mbit, room) in [
        ("reno", 0.02, 5, 15_000),
        ("cubic", 0.05, 5, 15_000),
        ("bbr", 0.1, 20, 50_000),
        ("bbr", 0.0, 50, 20_000),
    ] {
        let mut net = Net::new(linux.clone(), linux.clone(), Duration::from_millis(20));
        net.link = Some((cede_units::Rate::from_mbit(mbit), room));
        net.connect(controller(name, &linux));
        net.client.to_send = 1 << 30;
        let mut random = Stream::named(1, "loss");
        net.run(Instant::from_secs(30), &mut |passing: &Passing| {
            let is_lost = passing.from_client && random.chance(loss);
            if is_lost { Verdict::Drop } else { Verdict::Deliver }
        });
        let counts = *net.client().statistics();
        assert!(counts.recoveries > 5, "{name}: {counts:?}");
        assert_eq!(counts.taken_back, 0, "{name}: {counts:?}");
    }
}

/// 40 ms over 20 Mbit/s, and from the third second on, for `bad_ms`, what `then` says of each segment; the window before that, the
/// smallest in these two seconds, and the sender after them.
fn gone_bad(name: &str, bad_ms: u64, then: impl Fn() -> Verdict) -> (u64, u64, Net) {
    // Nothing overflows.
    let linux = Config { receive_window_bytes: 200_000, ..Config::linux_4_18() };
    let mut net = Net::new(linux.clone(), linux.clone(), Duration::from_millis(20));
    net.link = Some((cede_units::Rate::from_mbit(20), 500_000));
    net.connect(controller(name, &linux));
    net.client.to_send = 1 << 30;
    net.run(Instant::from_secs(2), &mut support::clear);
    let before = net.client().snapshot().window_bytes;
    let mut smallest = before;
    for step in 0..200 {
        let is_bad = 10 * step < bad_ms;
        net.run(Instant::from_millis(2_000 + 10 * (step + 1)), &mut |passing: &Passing| {
            if passing.from_client && is_bad { then() } else { Verdict::Deliver }
        });
        smallest = smallest.min(net.client().snapshot().window_bytes);
    }
    (before, smallest, net)
}

#[test]
fn a_timeout_that_only_slowness_caused_is_taken_back() {
    for name in ["reno", "cubic"] {
        let (before, smallest, mut net) =
            gone_bad(name, 2_000, || Verdict::Delay(Duration::from_millis(700)));
        let counts = *net.client().statistics();
        assert!(counts.timeouts > 0 && smallest < 3_000, "{name}: {smallest} {counts:?}");
        assert!(counts.taken_back > 0 && counts.retransmissions < 20, "{name}: {counts:?}");
        let after = net.client().snapshot().window_bytes;
        assert!(after >= before, "{name}: {after} of {before}");
    }
}

#[test]
fn a_timeout_after_which_all_was_lost_is_not_taken_back() {
    for name in ["reno", "cubic"] {
        let (before, _, mut net) = gone_bad(name, 1_000, || Verdict::Drop);
        let counts = *net.client().statistics();
        assert!(counts.timeouts > 0 && counts.taken_back == 0, "{name}: {counts:?}");
        assert!(net.client().snapshot().window_bytes < before, "{name}");
    }
}

#[test]
fn reports_of_what_arrived_twice_take_a_timeout_back() {
    let config = Config { initial_window: cede_tcp::InitialWindow::Segments(8), ..by_time() };
    let mut sender = Script::new(&config, "cubic");
    assert_eq!(sender.sent().len(), 8);
    sender.ack(4, &[]);
    let before = sender.window();
    // The tail is probed for, and then the first of what is outstanding leaves again.
    while sender.connection.statistics().timeouts == 0 {
        sender.wait();
    }
    assert_eq!((sender.window(), sender.connection.snapshot().repair), (1000, RepairMode::Loss));
    let (resent, una) = (sender.connection.statistics().retransmissions, sender.outstanding().start);
    let last = sender.outstanding().end - 1;
    sender.ack(last, &[]);
    assert!(sender.window() < before);
    // As many reports as there were repetitions.
    for left in (0..resent).rev() {
        assert_eq!(sender.connection.statistics().taken_back, 0, "{left} to come");
        sender.ack(last, &[(una, una)]);
    }
    assert_eq!(sender.connection.statistics().taken_back, 1);
    assert!(sender.window() >= before, "{} of {before}", sender.window());
}

#[test]
fn a_probe_of_a_closed_window_that_arrived_twice_gives_nothing_back() {
    let config = Config { initial_window: cede_tcp::InitialWindow::Segments(8), ..by_time() };
    let mut sender = Script::new(&config, "cubic");
    sender.offers = 0;
    // A loss that was one, long ago.
    assert_eq!(sender.sent().len(), 8);
    sender.ack(0, &[(2, 5)]);
    let last = sender.outstanding().end - 1;
    sender.ack(last, &[]);
    // The window of the handshake is used up, and closes.
    let mut acked = 1000 * last;
    for _ in 0..100 {
        if sender.connection.snapshot().peer_window_bytes == 0 {
            break;
        }
        acked += sender.connection.snapshot().flight_bytes;
        sender.hand(acked, Flags::ACK, Options::default());
        sender.sent();
    }
    let window = sender.window();
    // An octet is sent into it, and again when the timer runs out.
    assert!((0..20).any(|_| sender.wait().0 == TimeoutReason::Retransmission));
    let snapshot = sender.connection.snapshot();
    assert_eq!((snapshot.repair, snapshot.flight_bytes), (RepairMode::Loss, 1));
    assert_eq!(sender.connection.statistics().timeouts, 0, "no sign of congestion");
    let mut twice = SackBlocks::NONE;
    let edge = |octets: u64| sender.isn.add(1 + octets as u32);
    twice.push(edge(acked), edge(acked + 1)).unwrap();
    sender.hand(acked + 1, Flags::ACK, Options { sack: twice, ..Options::default() });
    assert!(sender.window() <= window, "{} of {window}", sender.window());
    assert_eq!(sender.connection.statistics().taken_back, 0);
}
