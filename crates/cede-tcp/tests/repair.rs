//! Finding and repairing losses: the worked examples and numbered checks of the TCP baselines.

mod support;

use cede_tcp::{Config, Connection, InitialWindow, RepairMode, Segment};
use cede_units::{Duration, Instant, Stream};
use cede_wire::Payload;
use cede_wire::tcp::{Flags, Options};
use support::script::{SMSS, Script};
use support::{Net, PORTS, Verdict, controller, fixed_window};

fn newreno() -> Config {
    Config { initial_window: InitialWindow::Segments(10), sack: false, ..Config::newreno() }
}

fn sack() -> Config {
    Config { initial_window: InitialWindow::Segments(10), ..Config::default() }
}

#[test]
fn check_2_newreno_follows_its_worked_example_event_by_event() {
    let mut script = Script::new(&newreno(), "reno");
    assert_eq!(script.sent(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    // Segment 1 is lost. Duplicates 1 and 2 let 11 and 12 out (RFC 3042).
    assert_eq!(script.ack(0, &[]), [11]);
    assert_eq!(script.ack(0, &[]), [12]);
    // The third: ssthresh is half of 10000, 11 and 12 not counted; cwnd = ssthresh + 3 SMSS; segment 1 again.
    assert_eq!(script.ack(0, &[]), [1]);
    assert_eq!(script.window(), 8_000);
    assert_eq!(script.connection.snapshot().controller.ssthresh_bytes, Some(5_000.0));
    for (dup, expected) in [(4, vec![]), (5, vec![]), (6, vec![]), (7, vec![]), (8, vec![13]), (9, vec![14])]
    {
        assert_eq!(script.ack(0, &[]), expected, "duplicate {dup}");
        assert_eq!(script.window(), 5_000 + dup * SMSS);
    }
    assert_eq!(script.ack(0, &[]), [15]);
    assert_eq!(script.ack(0, &[]), [16]);
    // Full acknowledgement: 4000 in flight, cwnd = min(5000, 4000 + 1000).
    assert_eq!(script.ack(12, &[]), [17]);
    assert_eq!(script.window(), 5_000);
    assert_eq!(script.connection.snapshot().repair, RepairMode::Open);
}

#[test]
fn newreno_partial_acknowledgements_resend_and_deflate() {
    let mut script = Script::new(&newreno(), "reno");
    assert_eq!(script.sent().len(), 10);
    // 1 and 4 are lost: eight duplicates from 2, 3, 5 to 10, of which three precede the entry.
    for _ in 0..8 {
        script.ack(0, &[]);
    }
    // ssthresh 5000 + 3 + 5 more duplicates; 12 outstanding with the two of limited transmit, 13 has left.
    assert_eq!(script.window(), 13_000);
    // Partial: three segments; the window loses 3000 and gains 1000; 4 goes again, and one new one.
    assert_eq!(script.ack(3, &[]), [4, 14]);
    assert_eq!(script.window(), 11_000);
    // Full.
    assert_eq!(script.connection.snapshot().repair, RepairMode::Recovery);
    script.ack(13, &[]);
    assert_eq!(script.connection.snapshot().repair, RepairMode::Open);
    assert_eq!(script.connection.statistics().recoveries, 1);
}

#[test]
fn newreno_bursts_at_the_end_of_a_recovery_are_capped_whatever_the_controller_allows() {
    // A fixed window stands for a controller that allows 40 segments throughout.
    let mut script = Script::with(&newreno(), |config| fixed_window(40_000, config));
    assert_eq!(script.sent().len(), 40);
    assert_eq!(
        (script.ack(0, &[]), script.ack(0, &[]), script.ack(0, &[])),
        (vec![41], vec![42], vec![1, 43])
    );
    // Full: of 43 one is outstanding; cwnd = FlightSize + SMSS, and grows from there as in slow start.
    assert_eq!(script.ack(42, &[]), [44]);
    assert_eq!(script.window(), 2_000);
    assert_eq!(script.ack(43, &[]), [45, 46]);
    assert_eq!(script.ack(45, &[]), [47, 48, 49]);
}

#[test]
fn newreno_restarts_the_timer_at_the_first_partial_acknowledgement_only() {
    let mut script = Script::new(&newreno(), "reno");
    assert_eq!(script.sent().len(), 10);
    let mut deadlines = Vec::new();
    for acknowledged in [0, 0, 0, 2, 4, 6] {
        script.ack(acknowledged, &[]);
        deadlines.push(script.connection.poll_timeout().unwrap());
    }
    // The entry and the first partial one restart it; the RTO is the floor of 200 ms throughout.
    assert!(deadlines[1] < deadlines[2] && deadlines[2] < deadlines[3]);
    assert!(deadlines[3] == deadlines[4] && deadlines[4] == deadlines[5]);
}

#[test]
fn newreno_does_not_recover_twice_for_what_a_timeout_resends() {
    let mut script = Script::new(&newreno(), "reno");
    assert_eq!(script.sent().len(), 10);
    script.now += Duration::from_secs(5);
    script.connection.handle_timeout(script.now);
    assert_eq!(script.sent(), [1]);
    assert_eq!(script.ack(1, &[]), [2, 3]);
    // Duplicates of segments that had arrived: recover is not covered, so nothing happens.
    for _ in 0..5 {
        assert!(script.ack(1, &[]).is_empty());
    }
    assert_eq!(script.connection.statistics().recoveries, 0);
    assert_eq!(script.connection.snapshot().repair, RepairMode::Loss);
}

#[test]
fn sack_repairs_by_next_seg_within_pipe() {
    let mut script = Script::new(&sack(), "reno");
    assert_eq!(script.sent().len(), 10);
    // 1, 3 and 5 are lost. Limited transmit by pipe: what is SACKed makes room.
    assert_eq!(script.ack(0, &[(2, 2)]), [11]);
    assert_eq!(script.ack(0, &[(4, 4), (2, 2)]), [12]);
    // Third run: 1 is lost. Flight 10000 without 11 and 12, so the window is 5000; 1 goes at once.
    assert_eq!(script.ack(0, &[(6, 6), (4, 4), (2, 2)]), [1]);
    assert_eq!(script.window(), 5_000);
    let snapshot = script.connection.snapshot();
    // Outstanding 12, three SACKed, 1 lost and sent again.
    assert_eq!((snapshot.pipe_bytes, snapshot.repair), (9_000, RepairMode::Recovery));
    // 7 arrives: now 3 is lost too (three SACKed runs, or more than 2000 octets above), pipe 9000 - 1000 - 1000.
    assert!(script.ack(0, &[(6, 7), (4, 4), (2, 2)]).is_empty());
    assert_eq!(script.connection.snapshot().pipe_bytes, 7_000);
    // 8: 5 is lost as well.
    assert!(script.ack(0, &[(6, 8), (4, 4), (2, 2)]).is_empty());
    assert_eq!(script.connection.snapshot().pipe_bytes, 5_000);
    // 9: pipe 4000, one goes; 10: another; then new data.
    assert_eq!(script.ack(0, &[(6, 9), (4, 4), (2, 2)]), [3]);
    assert_eq!(script.ack(0, &[(6, 10), (4, 4), (2, 2)]), [5]);
    assert_eq!(script.ack(0, &[(6, 11), (4, 4), (2, 2)]), [13]);
    assert_eq!(script.ack(0, &[(6, 12), (4, 4), (2, 2)]), [14]);
    assert_eq!(script.ack(2, &[(6, 12), (4, 4)]), [15]);
    assert_eq!(script.ack(4, &[(6, 12)]), [16]);
    // RecoveryPoint was the end of 12.
    assert_eq!(script.connection.snapshot().repair, RepairMode::Recovery);
    script.ack(12, &[]);
    assert_eq!(script.connection.snapshot().repair, RepairMode::Open);
    assert_eq!(script.connection.statistics().retransmissions, 3);
}

#[test]
fn proportional_reduction_sends_one_for_two_delivered() {
    // A window of 10 that is halved: while pipe exceeds ssthresh, deliveries 1, 2, 3, 4, 5 give 1, 1, 2, 2, 3 segments.
    let mut script = Script::new(&Config { prr: true, limited_transmit: false, ..sack() }, "reno");
    assert_eq!(script.sent().len(), 10);
    // 1 is lost; 2, 3 and 4 arrive at once, and with them the entry: three delivered, but the repair comes first.
    assert_eq!(script.ack(0, &[(2, 4)]), [1, 11]);
    assert_eq!(script.connection.snapshot().pipe_bytes, 8_000);
    // With 7 delivered pipe is down at ssthresh, where it is then held: 8 lets one go.
    let mut sent = 2;
    for (delivered, total) in [(4, 2), (5, 3), (6, 3), (7, 3), (8, 4)] {
        sent += script.ack(0, &[(2, delivered + 1)]).len();
        assert_eq!(sent, total, "{delivered}");
    }
    // The end: the window is the controller's.
    script.ack(10, &[]);
    let snapshot = script.connection.snapshot();
    assert_eq!((script.window() as f64, snapshot.repair), (snapshot.controller.cwnd_bytes, RepairMode::Open));
}

#[test]
fn rate_halving_sends_at_most_one_for_an_acknowledgement_and_does_not_make_up_for_lost_ones() {
    let config = Config { rate_halving: true, prr: true, limited_transmit: false, ..sack() };
    let mut script = Script::new(&config, "reno");
    assert_eq!(script.sent().len(), 10);
    // 1 is lost: 6 are under way, and the window is one more.
    assert_eq!(script.ack(0, &[(2, 4)]), [1]);
    // Each second acknowledgement takes one off, down to ssthresh, 5.
    for (delivered, sent) in [(5, vec![]), (6, vec![11]), (7, vec![]), (8, vec![12])] {
        assert_eq!(script.ack(0, &[(2, delivered)]), sent, "{delivered}");
    }
    assert_eq!(script.connection.snapshot().window_bytes, 5_000);
    // The acknowledgement of 9 is lost: the window falls with what is under way.
    assert_eq!(script.ack(0, &[(2, 10)]), [13]);
    assert_eq!(script.connection.snapshot().window_bytes, 4_000);
    // From where it has come to, slow start goes up to the controller's window.
    assert_eq!(script.ack(10, &[]), [14]);
    assert_eq!(script.connection.snapshot().repair, RepairMode::Open);
    assert_eq!(script.connection.snapshot().window_bytes, 4_000);
    assert_eq!(script.ack(11, &[]), [15, 16]);
    assert_eq!(script.connection.snapshot().window_bytes, 5_000);
}

#[test]
fn sack_without_limited_transmit_sends_nothing_new_before_the_entry() {
    let mut script = Script::new(&Config { limited_transmit: false, ..sack() }, "reno");
    assert_eq!(script.sent().len(), 10);
    assert!(script.ack(0, &[(2, 2)]).is_empty());
    assert!(script.ack(0, &[(2, 3)]).is_empty());
    assert_eq!(script.ack(0, &[(2, 4)]), [1]);
}

#[test]
fn rules_3_and_4_resend_where_there_is_no_new_data() {
    let config = Config { mss_bytes: 1000, timestamps: false, ..sack() };
    let mut script = Script::new(&config, "reno");
    // Only eight segments in all.
    let mut random = Stream::named(1, "script");
    let config = script.connection.config().clone();
    script.connection = Connection::connect(config.clone(), controller("reno", &config), PORTS, &mut random);
    let syn = script.connection.poll_transmit(script.now).unwrap();
    script.isn = Segment::decode(&syn.head).unwrap().0.seq;
    let options = Options { mss: Some(1000), sack_permitted: true, ..Options::default() };
    script.hand(0, Flags::SYN.with(Flags::ACK), options);
    script.connection.write(Payload::Pattern { start: 0, len: 8_000 }).unwrap();
    assert_eq!(script.sent(), [1, 2, 3, 4, 5, 6, 7, 8]);
    // 1, 6 and 8 are lost.
    script.ack(0, &[(2, 2)]);
    script.ack(0, &[(2, 3)]);
    assert_eq!(script.ack(0, &[(2, 4)]), [1]);
    script.ack(0, &[(2, 5)]);
    // 7 arrives: 6 has but one run above it and is not lost; rule 3 sends it as there is nothing new.
    assert_eq!(script.ack(0, &[(7, 7), (2, 5)]), [6]);
    // 1 arrives: HighACK is beyond RescueRxt, and the highest un-SACKed segment goes once.
    assert_eq!(script.ack(5, &[(7, 7)]), [8]);
    assert!(script.ack(7, &[]).is_empty());
    script.ack(8, &[]);
    assert!(script.connection.is_drained());
    assert_eq!(script.connection.statistics().timeouts, 0);
}

#[test]
fn a_timeout_keeps_or_forgets_what_was_sacked() {
    for (forget, expected) in [(false, vec![1, 4, 5]), (true, vec![1, 2, 3])] {
        let mut script = Script::new(&Config { sack_forgotten_at_timeout: forget, ..sack() }, "reno");
        assert_eq!(script.sent().len(), 10);
        script.ack(0, &[(2, 3)]);
        script.now += Duration::from_secs(5);
        script.connection.handle_timeout(script.now);
        let mut resent = script.sent();
        let next = if forget { 1 } else { 3 };
        resent.extend(script.ack(next, &[]));
        assert_eq!(resent, expected);
    }
}

#[test]
fn the_timer_restarts_with_acknowledgements_and_doubles_when_it_expires() {
    let mut script = Script::new(&sack(), "reno");
    script.sent();
    let deadline = |script: &Script| script.connection.poll_timeout().unwrap().since(script.now);
    assert_eq!(deadline(&script), Duration::from_secs(1));
    script.ack(1, &[]);
    assert_eq!(deadline(&script), Duration::from_secs(1));
    for backed_off in [2, 4, 8] {
        script.now = script.connection.poll_timeout().unwrap();
        script.connection.handle_timeout(script.now);
        assert_eq!(script.sent().len(), 1);
        assert_eq!(deadline(&script), Duration::from_secs(backed_off));
    }
    // Karn: the answer to what was sent four times gives no sample, and the backoff stays.
    script.ack(2, &[]);
    assert_eq!(deadline(&script), Duration::from_secs(8));
}

/// Retransmissions as (time since the first, segment), of a transfer in which these data segments are dropped.
fn repair_times(config: &Config, drops: &'static [u64]) -> (Vec<(Duration, u32)>, Net) {
    let mut net = Net::new(config.clone(), config.clone(), Duration::from_millis(25));
    net.connect(fixed_window(40 * 1448, config));
    net.client.to_send = 400_000;
    let (mut seen, mut again) = (std::collections::HashSet::new(), Vec::<(Instant, u32)>::new());
    net.run(Instant::from_secs(60), &mut |passing| {
        if passing.payload.is_empty() || !passing.from_client {
            return Verdict::Deliver;
        }
        if !seen.insert(passing.segment.seq.0) {
            again.push((passing.now, passing.segment.seq.0));
        }
        if drops.contains(&passing.data_index) { Verdict::Drop } else { Verdict::Deliver }
    });
    assert_eq!((net.server.received, net.server.intact), (400_000, true));
    let first = again[0].0;
    (again.into_iter().map(|(at, seq)| (at.since(first), seq)).collect(), net)
}

#[test]
fn check_7_newreno_repairs_one_loss_a_round_trip_and_sack_all_in_one() {
    const DROPS: &[u64] = &[50, 53, 56, 59, 62];
    let rtt = Duration::from_millis(50);
    let (newreno, net) =
        repair_times(&Config { rto_min: Duration::from_secs(1), ..Config::newreno() }, DROPS);
    assert_eq!(newreno.len(), 5);
    for (i, (at, _)) in newreno.iter().enumerate() {
        assert_eq!(*at, rtt * i as u64, "{newreno:?}");
    }
    assert_eq!(net.client.connection.unwrap().statistics().timeouts, 0);

    let config = Config { ack_policy: cede_tcp::AckPolicy::Every, ..Config::default() };
    let (sack, net) = repair_times(&config, DROPS);
    assert_eq!(sack.len(), 5);
    assert!(sack.iter().all(|(at, _)| *at < rtt), "{sack:?}");
    let statistics = *net.client.connection.unwrap().statistics();
    assert_eq!((statistics.timeouts, statistics.recoveries, statistics.losses), (0, 1, 5));
}

#[test]
fn a_lost_retransmission_is_repaired_by_the_timer() {
    // Sixteen segments after the loss the entry follows; drop the retransmission as well.
    let config = Config::default();
    let mut net = Net::new(config.clone(), config.clone(), Duration::from_millis(25));
    net.connect(controller("cubic", &config));
    net.client.to_send = 1_000_000;
    let (mut dropped, mut count) = (None, 0);
    net.run(Instant::from_secs(60), &mut |passing| {
        if passing.data_index == 60 && !passing.payload.is_empty() {
            dropped = Some(passing.segment.seq);
        }
        if dropped == Some(passing.segment.seq) && !passing.payload.is_empty() && count < 2 {
            count += 1;
            return Verdict::Drop;
        }
        Verdict::Deliver
    });
    assert_eq!((net.server.received, net.server.intact, count), (1_000_000, true, 2));
    assert_eq!(net.client().statistics().timeouts, 1);
}

#[test]
fn check_5_alone_on_a_bottleneck_the_saw_tooth_fills_it() {
    for (name, config) in
        [("reno", Config::newreno()), ("reno", Config::default()), ("cubic", Config::linux())]
    {
        let mut net = Net::new(config.clone(), config.clone(), Duration::from_millis(25));
        net.connect(controller(name, &config));
        net.link = Some((cede_units::Rate::from_mbit(10), 100 * 1500));
        net.client.to_send = u64::MAX;
        net.client.closes = false;
        net.run(Instant::from_secs(31), &mut support::clear);
        let (before, mut windows) = (net.server.received, Vec::new());
        for ms in (31_000..91_000).step_by(50) {
            net.run(Instant::from_millis(ms), &mut support::clear);
            let snapshot = net.client().snapshot();
            if snapshot.repair == RepairMode::Open {
                windows.push(snapshot.controller.cwnd_bytes / f64::from(snapshot.mss_bytes));
            }
        }
        let payload = f64::from(config.payload_bytes()) / 1500.0;
        let efficiency = (net.server.received - before) as f64 * 8.0 / (10e6 * 60.0 * payload);
        assert!(efficiency > 0.99, "{name} {efficiency} {:?}", net.client().statistics());
        let statistics = *net.client().statistics();
        // Without SACK the overshoot of slow start outlasts RFC 6582's impatience, and half of what is sent again then
        // had arrived.
        let (timeouts, needless) = if config.sack { (0, 3) } else { (1, 150) };
        assert_eq!(statistics.timeouts, timeouts, "{name} {statistics:?}");
        assert!(statistics.retransmissions <= net.drops + needless, "{name} {statistics:?} {}", net.drops);
        if name == "reno" {
            // BDP 41.7 + buffer 100 packets, and half of it.
            let (low, high) = windows.iter().fold((f64::MAX, 0.0_f64), |(l, h), &w| (l.min(w), h.max(w)));
            assert!((68.0..75.0).contains(&low) && (139.0..146.0).contains(&high), "{low} {high}");
        }
    }
}
