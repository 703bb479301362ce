//! What a queue does at once, and what a clock that is set does, told apart by the round trips through both.

mod common;

use cede_meter::{Config, Estimator, Flags, FlowReport, QueueSample};
use cede_wire::utp::Kind;
use common::{A, B, Found, Tap, Tcp, utp};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The way from B's queue to the observer, and as long back.
const WAY_US: u64 = 20_000;
/// What a full packet takes at 1 Mbit/s.
const PACKET_US: u64 = 12_000;

/// A packet of B's: when it was sent, and how long it queued.
#[derive(Clone, Copy)]
struct Sent {
    at_us: u64,
    queue_us: u64,
}

impl Sent {
    const fn arrives_us(&self) -> u64 {
        self.at_us + self.queue_us + WAY_US
    }
}

/// A sender that fills a window of so many packets at once whenever it may send, and keeps it full: for 16 s of each 25.
fn on_and_off(window: u64, until_s: u64) -> Vec<Sent> {
    let mut sent = Vec::new();
    for period in 0..until_s.div_ceil(25) {
        let begins_us = 10_000_000 + period * 25_000_000;
        for k in 0..16_000_000 / PACKET_US {
            let at_us = begins_us + k.saturating_sub(window) * PACKET_US;
            sent.push(Sent { at_us, queue_us: k.min(window) * PACKET_US });
        }
    }
    sent
}

/// A packet each 20 ms through a queue that grows to 15 ms and empties every two seconds.
fn sawtooth(seconds: u64) -> Vec<Sent> {
    (0..seconds * 50).map(|k| Sent { at_us: 10_000_000 + k * 20_000, queue_us: (k % 100) * 150 }).collect()
}

/// What the observer beside A notes down of a packet.
#[derive(Clone)]
struct Note {
    /// By a clock that nobody sets.
    true_us: u64,
    is_of_b: bool,
    tcp: Tcp,
    utp: Vec<u8>,
}

/// B's packets and A's answers, in the order in which they pass the observer.
fn notes(sent: &[Sent]) -> Vec<Note> {
    let mut notes = Vec::new();
    let ms = |at_us: u64| (at_us / 1_000) as u32;
    for (k, packet) in sent.iter().enumerate() {
        let (arrives, seq) = (packet.arrives_us(), k as u32 * 100);
        // What B has heard of A when it sends.
        let known = sent[..k].partition_point(|other| other.arrives_us() + WAY_US <= packet.at_us);
        let heard = sent[..known].last().map_or(0, Sent::arrives_us);
        let of_b = utp(Kind::Data, 8, (k as u16, 4), (packet.at_us as u32, WAY_US as u32), 100);
        let data = Tcp { seq, ack: 1, flags: 0x10, clock: ms(packet.at_us), echo: ms(heard), len: 100 };
        notes.push(Note { true_us: arrives, is_of_b: true, tcp: data, utp: of_b });
        let took = (arrives - packet.at_us) as u32;
        let of_a = utp(Kind::State, 7, (5, k as u16), (arrives as u32, took), 0);
        let ack =
            Tcp { seq: 1, ack: seq + 100, flags: 0x10, clock: ms(arrives), echo: ms(packet.at_us), len: 0 };
        notes.push(Note { true_us: arrives + 10, is_of_b: false, tcp: ack, utp: of_a });
    }
    notes.sort_by_key(|note| note.true_us);
    notes
}

/// What the meter finds in them, by a clock that shows other times.
fn found(notes: &[Note], is_tcp: bool, shown_us: impl Fn(u64) -> u64) -> Found {
    let mut tap = Tap::new(Config::default());
    for note in notes {
        let (from, to) = if note.is_of_b { (B, A) } else { (A, B) };
        let at = shown_us(note.true_us);
        if is_tcp { tap.tcp(at, from, to, &note.tcp) } else { tap.utp(at, from, to, &note.utp) }
    }
    tap.found()
}

/// The delays of B's packets are those of the queue.
fn assert_true(found: &Found, sent: &[Sent], told: &str) {
    let mut sent = sent.to_vec();
    sent.sort_by_key(Sent::arrives_us);
    let queue_us = found.queue_us(B.0, Estimator::Direct);
    assert_eq!(queue_us.len(), sent.len(), "{told}");
    // Where the observer's clock was set back the samples are not in the order of their packets.
    let in_order = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values
    };
    let truths = in_order(sent.iter().map(|packet| packet.queue_us as f64).collect());
    for (queue_us, truth) in in_order(queue_us).into_iter().zip(truths) {
        assert!((queue_us - truth).abs() < 2_000.0, "{told}: {queue_us} for {truth}");
    }
}

/// Somebody else's packets in a flow, or such as were altered on the way: what they say is of no clock, and nobody counts from it.
#[test]
fn a_few_stamps_of_no_clock_change_nothing() {
    let sent = sawtooth(20);
    for is_tcp in [true, false] {
        let all = notes(&sent);
        let usual = found(&all, is_tcp, |at| at);
        for ahead_us in [1_000_000, 9_000_000, 1_700_000_000, u32::MAX - 5_000_000] {
            for (count, behind) in [(1, 700), (3, 700), (1, 0), (1, all.len() - 60)] {
                let mut notes = all.clone();
                let mut forged = notes.iter().skip(behind).find(|note| note.is_of_b).expect("one").clone();
                let at_us = forged.true_us as u32;
                forged.tcp.clock = at_us.wrapping_add(ahead_us) / 1_000;
                forged.utp = utp(Kind::Data, 8, (9, 4), (at_us.wrapping_add(ahead_us), 20_000), 100);
                (0..count).for_each(|_| notes.insert(behind + 1, forged.clone()));
                let (told, found) =
                    (format!("{is_tcp} {ahead_us} {count} {behind}"), found(&notes, is_tcp, |at| at));
                let (flow, before) = (found.flow(B.0), usual.flow(B.0));
                assert_eq!(flow.flags, before.flags, "{told}");
                let mean = |flow: &FlowReport| flow.direct.expect("samples").time_mean_ms;
                assert!((mean(flow) - mean(before)).abs() < 0.2, "{told}: {flow:?}");
            }
        }
    }
}

/// Who answers with its next message does so after as long whatever the queue is: round trips that do not change show no clock.
#[test]
fn a_queue_that_comes_at_once_beside_rare_messages_is_no_clock() {
    for (period_us, queue_us) in [
        (1_000_000, 400_000),
        (1_000_000, 900_000),
        (2_000_000, 150_000),
        (300_000, 250_000),
        (100_000, 145_000),
    ] {
        // Others fill it between two messages, and keep it full.
        let packet = |k: u64| Sent {
            at_us: 10_000_000 + k * period_us,
            queue_us: if k < 80 { k % 7 * 1_000 } else { queue_us - k % 7 * 1_000 },
        };
        let sent: Vec<Sent> = (0..200).map(packet).collect();
        for is_tcp in [true, false] {
            let (told, found) =
                (format!("{is_tcp} {period_us} {queue_us}"), found(&notes(&sent), is_tcp, |at| at));
            assert_true(&found, &sent, &told);
            assert!(!found.flow(B.0).flags.has(Flags::CLOCK_STEP), "{told}");
        }
    }
}

#[test]
fn a_window_that_drains_is_no_clock() {
    let sent = on_and_off(175, 75);
    for is_tcp in [true, false] {
        for from_s in [0, 5, 10, 30, 40] {
            // The capture begins in the middle, mostly while the window is full.
            let later: Vec<Sent> =
                sent.iter().filter(|p| p.arrives_us() >= 10_000_000 + from_s * 1_000_000).copied().collect();
            let both = notes(&later);
            let one: Vec<Note> = both.iter().filter(|note| note.is_of_b).cloned().collect();
            for notes in [both, one] {
                let (told, found) = (format!("{is_tcp} {from_s}"), found(&notes, is_tcp, |at| at));
                assert_true(&found, &later, &told);
                let flags = found.flow(B.0).flags;
                assert!(!flags.has(Flags::CLOCK_STEP) && !flags.has(Flags::BEYOND_ROUND_TRIPS), "{told}");
            }
        }
    }
}

/// A second connection between the same two sockets, with numbers of its own, asks now and then, and says what it measured when
/// it was answered last.
fn with_questions(sent: &[Sent], queue_us: impl Fn(u64) -> u64) -> Vec<Note> {
    let mut notes = notes(sent);
    let mut measured = WAY_US;
    for k in 0..60 {
        let asked_us = sent[k * 50].arrives_us() + 5;
        let question = utp(Kind::Data, 500, (40_000 + k as u16, 9), (asked_us as u32, measured as u32), 57);
        let answered_us = asked_us + WAY_US;
        measured = queue_us(answered_us) + WAY_US;
        let stamps = (answered_us as u32, WAY_US as u32);
        let answer = utp(Kind::State, 501, (10, 40_000 + k as u16), stamps, 0);
        let of = |true_us, is_of_b, utp| Note { true_us, is_of_b, utp, ..notes[0].clone() };
        let both = [of(asked_us, false, question), of(answered_us + measured, true, answer)];
        notes.extend(both);
    }
    notes.sort_by_key(|note| note.true_us);
    notes
}

/// What one connection's packets acknowledge answers none of the other's questions, and a queue that comes at once stays a queue;
/// and what one measured a second ago says nothing of the packets that the other got since.
#[test]
fn connections_between_the_same_sockets_are_told_apart() {
    // A burst of others each eight seconds, behind which the queue drains.
    let queue_us = |at_us: u64| {
        let k = (at_us - 10_000_000) / 20_000;
        if k < 200 { 0 } else { 90_000 + 130_000_u64.saturating_sub(k % 400 * 2_000) }
    };
    let of = |at_us| Sent { at_us, queue_us: queue_us(at_us) };
    let sent: Vec<Sent> = (0..3_000).map(|k| of(10_000_000 + k * 20_000)).collect();
    let found = found(&with_questions(&sent, queue_us), false, |at| at);
    let flow = found.flow(B.0);
    assert!(!flow.flags.has(Flags::CLOCK_STEP));
    let shortest_ms = flow.round_trip.expect("round trips").min_ms;
    assert!((40.0..60.0).contains(&shortest_ms), "{shortest_ms}");
    let truths: BTreeMap<u64, u64> =
        sent.iter().map(|packet| (packet.arrives_us(), packet.queue_us)).collect();
    for estimator in [Estimator::Direct, Estimator::Echoed] {
        let of_b = |it: &&QueueSample| it.source.address == IpAddr::from(B.0) && it.estimator == estimator;
        let (mut compared, samples) = (0, found.seen.samples.iter().filter(of_b));
        for delay in samples.map(|sample| sample.delay) {
            let Some(truth) = truths.get(&delay.time_us) else { continue };
            compared += 1;
            assert!((delay.queue_us - *truth as f64).abs() < 2_000.0, "{estimator:?}: {delay:?} for {truth}");
        }
        assert!(compared > 2_900, "{estimator:?}: {compared}");
    }
}

#[test]
fn the_observers_clock_is_set_for_both_directions() {
    for (seconds, part) in [(60, 0.8), (60, 0.3), (200, 0.5)] {
        let sent = sawtooth(seconds);
        let notes = notes(&sent);
        let at_us = 10_000_000 + (seconds as f64 * part * 1e6) as u64 + 7_000;
        for set_ms in [150_i64, 700, 5_000, 25_000, 3_600_000, 86_400_000, -150, -700, -5_000, -3_600_000] {
            let shown_us = |at: u64| {
                // Long enough after the epoch to be set back by an hour.
                ((1 << 40) + at).wrapping_add_signed(if at > at_us { set_ms * 1_000 } else { 0 })
            };
            for is_tcp in [true, false] {
                let (told, found) =
                    (format!("{is_tcp} {seconds} {part} {set_ms}"), found(&notes, is_tcp, shown_us));
                for host in [A.0, B.0] {
                    let flow = found.flow(host);
                    assert!(flow.flags.has(Flags::CLOCK_STEP), "{told} {host:?}: {flow:?}");
                    assert!(!flow.flags.has(Flags::BEYOND_ROUND_TRIPS), "{told}: {flow:?}");
                    assert!(flow.clock_hz.is_none_or(|hz| hz == 1_000.0), "{told}: {flow:?}");
                }
                assert_true(&found, &sent, &told);
                let most = found.queue_us(A.0, Estimator::Direct).into_iter().fold(0.0, f64::max);
                assert!(most < 2_000.0, "{told}: {most}");
            }
        }
    }
}

/// B's clock of 1000 Hz in slow start, which fills the buffer by a second each second: of three seconds nobody could tell it from 500 Hz.
#[test]
fn a_clock_in_slow_start_is_the_usual_one_and_other_flows_tell_it() {
    let slow_start = |hz: u64, seconds: u64| {
        (0..seconds * 100)
            .map(move |k| (10_000_000 + k * 20_000, ((10_000_000 + k * 10_000) * hz / 1_000_000) as u32))
    };
    let play = |tap: &mut Tap, port: u16, packets: &mut dyn Iterator<Item = (u64, u32)>| {
        for (at, clock) in packets {
            tap.tcp(at, (B.0, port), A, &Tcp { seq: 1, ack: 1, flags: 0x10, clock, echo: 0, len: 0 });
        }
    };
    let mut tap = Tap::new(Config::default());
    play(&mut tap, 80, &mut slow_start(1_000, 3));
    let found = tap.found();
    let flow = found.flow(B.0);
    assert!(flow.flags.has(Flags::RATE_ASSUMED) && flow.clock_hz == Some(1_000.0), "{flow:?}");
    let most = found.queue_us(B.0, Estimator::Direct).into_iter().fold(0.0, f64::max);
    assert!((most - 2_990_000.0).abs() < 2_000.0, "{most}");
    // A long flow of a host whose clock has 500 ticks lends its rate to what is too short to tell.
    let mut tap = Tap::new(Config::default());
    play(&mut tap, 80, &mut (0..1_500).map(|k| (10_000_000 + k * 40_000, 7 + (k * 20) as u32)));
    play(&mut tap, 81, &mut (0..300).map(|k| (12_000_000 + k * 10_000, 9 + (k * 5) as u32)));
    let found = tap.found();
    for flow in found.seen.flows.iter().filter(|flow| flow.source.address == core::net::IpAddr::from(B.0)) {
        assert_eq!(
            (flow.clock_hz, flow.flags.has(Flags::RATE_ASSUMED)),
            (Some(500.0), flow.source.port == 81)
        );
    }
    assert!(found.report().hosts[0].all.max_ms < 10.0);
}

#[test]
fn clocks_that_stand_still_are_told_as_the_reason() {
    let mut tap = Tap::new(Config::default());
    for k in 0..100 {
        tap.tcp(
            1_000_000 + k * 100_000,
            B,
            A,
            &Tcp { seq: 1, ack: 1, flags: 0x10, clock: 7, echo: 0, len: 0 },
        );
    }
    let found = tap.found();
    assert_eq!((found.report().hosts.len(), found.report().odd_tcp_clocks), (0, 1));
}

/// Two segments whose acknowledgement is lost, and comes again with the next burst: it tells nothing of them, and no clock was set.
#[test]
fn an_acknowledgement_of_long_ago_is_no_step_of_a_clock() {
    let mut tap = Tap::new(Config::default());
    let mut send = |at: u64, queue: u64, number: u32, answered: Option<u64>| {
        let (sent, seq) = (at - 20_000 - queue, number * 100);
        let (stamp, echo) = ((sent / 1_000) as u32 + 77_777, (sent / 1_000) as u32 + 5_000);
        tap.tcp(at, B, A, &Tcp { seq, ack: 1, flags: 0x10, clock: stamp, echo, len: 100 });
        if let Some(at) = answered {
            let clock = (at / 1_000) as u32 + 5_000;
            tap.tcp(at, A, B, &Tcp { seq: 1, ack: seq + 100, flags: 0x10, clock, echo: stamp, len: 0 });
        }
    };
    for k in 0..100 {
        let at = 100_000_000 + u64::from(k) * 50_000;
        send(at, 0, k, Some(at + 10));
    }
    send(125_000_000, 0, 100, None);
    send(125_000_100, 0, 101, Some(140_000_000));
    for k in 102..302 {
        let at = 140_000_000 + u64::from(k) * 50_000;
        send(at, 3_000_000, k, Some(at + 10));
    }
    let found = tap.found();
    let flow = found.flow(B.0);
    assert!(!flow.flags.has(Flags::CLOCK_STEP), "{flow:?}");
    for estimator in [Estimator::Direct, Estimator::Echoed] {
        let queue_us = found.queue_us(B.0, estimator);
        let off_us = queue_us.last().map(|last| (last - 3e6).abs());
        assert!(off_us.is_some_and(|off_us| off_us < 2_000.0), "{estimator:?} {off_us:?}");
    }
}
