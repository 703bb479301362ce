//! Whatever the channel does below a bound, the stream arrives whole and in order.

mod support;

use cede_tcp::{AckPolicy, Config, Connection, Segment};
use cede_units::{Duration, Instant, Seq32, Stream};
use cede_wire::Payload;
use cede_wire::tcp::{Flags, Options, SackBlocks, Timestamps};
use proptest::prelude::*;
use support::{Net, Passing, Verdict, controller};

/// How the channel treats segments, in thousandths.
#[derive(Clone, Copy, Debug)]
struct Weather {
    loss: u64,
    duplication: u64,
    reordering: u64,
    seed: u64,
}

impl Weather {
    fn verdict(&self, random: &mut Stream, _: &Passing) -> Verdict {
        let dice = random.below(1000);
        if dice < self.loss {
            Verdict::Drop
        } else if dice < self.loss + self.duplication {
            Verdict::Twice
        } else if dice < self.loss + self.duplication + self.reordering {
            Verdict::Delay(Duration::from_micros(random.below(60_000)))
        } else {
            Verdict::Deliver
        }
    }
}

fn weather() -> impl Strategy<Value = Weather> {
    (0..200_u64, 0..100_u64, 0..300_u64, any::<u64>())
        .prop_map(|(loss, duplication, reordering, seed)| Weather { loss, duplication, reordering, seed })
}

fn config() -> impl Strategy<Value = Config> {
    let policy = prop_oneof![Just(AckPolicy::Every), Just(AckPolicy::DELAYED), Just(AckPolicy::Linux)];
    (any::<[bool; 7]>(), policy, 3_000..200_000_u32, 100..2000_u16).prop_map(
        |(flags, ack_policy, window, mss)| {
            let [sack, timestamps, limited_transmit, nagle, forget, prr, rack] = flags;
            Config {
                sack,
                rack,
                timestamps,
                limited_transmit,
                prr,
                nagle,
                sack_forgotten_at_timeout: forget,
                ack_policy,
                receive_window_bytes: window,
                send_buffer_bytes: window,
                mss_bytes: mss,
                rto_min: Duration::from_millis(200),
                rto_max: Duration::from_secs(2),
                retries_max: 100,
                syn_retries_max: 100,
                ..Config::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_streams_arrive_whole_and_in_order_both_ways(
        weather in weather(),
        client in config(),
        server in config(),
        name in prop_oneof![Just("reno"), Just("cubic"), Just("ledbat"), Just("fixed")],
        there in 1..300_000_u64,
        back in 1..100_000_u64,
    ) {
        let full = 20 + usize::from(client.mss_bytes.min(server.mss_bytes));
        let mut net = Net::new(client.clone(), server, Duration::from_millis(10));
        net.connect(controller(name, &client));
        net.client.to_send = there;
        net.server.to_send = back;
        let mut random = Stream::named(weather.seed, "weather");
        let mut longest = 0;
        net.run(Instant::from_secs(3600), &mut |passing| {
            if !passing.payload.is_empty() {
                longest = longest.max(passing.segment.encode().len() + passing.payload.len() as usize);
            }
            weather.verdict(&mut random, passing)
        });
        prop_assert!(longest <= full, "a segment of {longest} octets, where {full} are one at most");
        prop_assert_eq!((net.server.received, net.server.intact), (there, true));
        prop_assert_eq!((net.client.received, net.client.intact), (back, true));
        prop_assert!(net.client().is_closed() && net.server().is_closed());
    }

    #[test]
    fn hostile_segments_neither_panic_nor_pile_up(seed in any::<u64>(), sack in any::<bool>(), rack in any::<bool>()) {
        let mut random = Stream::named(seed, "hostile");
        let config = Config { sack, rack, receive_window_bytes: 50_000, ..Config::default() };
        let mut net = Net::new(config.clone(), config.clone(), Duration::from_millis(10));
        net.connect(controller("reno", &config));
        net.client.to_send = 100_000;
        net.client.closes = random.chance(0.5);
        let mut last = None;
        net.run(Instant::from_millis(1_100), &mut |passing| {
            if !passing.from_client { last = Some(*passing.segment); }
            Verdict::Deliver
        });
        let now = net.now;
        let template = last.unwrap();
        for step in 0..300_u64 {
            let now = now + Duration::from_millis(step * random.below(20));
            let segment = hostile(&mut random, &template);
            let payload = Payload::Pattern { start: random.next_u64() >> 1, len: random.below(3000) as u32 };
            net.client().handle(now, &segment, payload);
            while net.client().poll_transmit(now).is_some() {}
            net.client().handle_timeout(now);
            while net.client().poll_event().is_some() {}
            let snapshot = net.client().snapshot();
            prop_assert!(snapshot.pipe_bytes <= 2 * snapshot.flight_bytes, "{:?}", snapshot);
        }
    }
}

/// A segment of the connection's peer, with fields that are right, nearly right, or anything.
fn hostile(random: &mut Stream, template: &Segment) -> Segment {
    let seq = near(random, template.seq);
    let ack = near(random, template.ack);
    let mut sack = SackBlocks::NONE;
    for _ in 0..random.below(5) {
        let start = near(random, template.ack);
        let end =
            if random.chance(0.7) { start.add(random.below(20_000) as u32) } else { near(random, start) };
        let _ = sack.push(start, end);
    }
    let flags = if random.chance(0.9) { Flags::ACK } else { Flags(random.next_u32() as u8 & !Flags::RST.0) };
    let stamps = template.options.timestamps.map(|stamps| Timestamps {
        value: stamps.value.wrapping_add(random.below(3) as u32),
        echo: if random.chance(0.8) { stamps.echo } else { random.next_u32() },
    });
    let window = random.next_u16();
    let options = Options { timestamps: stamps, sack, ..Options::default() };
    Segment { seq, ack, flags, window, options, ..*template }
}

fn near(random: &mut Stream, seq: Seq32) -> Seq32 {
    match random.below(10) {
        0 => Seq32(random.next_u32()),
        1..=3 => seq,
        4..=8 => seq.add(1448 * random.below(60) as u32),
        _ => seq.add(random.below(100_000) as u32).sub(50_000),
    }
}

/// Where both ends send, what one has received beyond a gap rides on its data, which are shorter by it.
#[test]
fn data_leave_room_for_what_is_reported_beside_them() {
    let config = Config::default();
    let mut net = Net::new(config.clone(), config.clone(), Duration::from_millis(10));
    net.connect(controller("cubic", &config));
    (net.client.to_send, net.server.to_send) = (2_000_000, 2_000_000);
    let mut random = Stream::named(5, "weather");
    let weather = Weather { loss: 20, duplication: 0, reordering: 0, seed: 5 };
    let mut lens = Vec::new();
    net.run(Instant::from_secs(600), &mut |passing| {
        let blocks = passing.segment.options.sack.as_slice().len();
        if blocks > 0 && !passing.payload.is_empty() {
            lens.push((blocks, passing.payload.len()));
        }
        weather.verdict(&mut random, passing)
    });
    let longest = |count| lens.iter().filter(|(blocks, _)| *blocks == count).map(|(_, len)| *len).max();
    assert_eq!([longest(1), longest(3)], [Some(1436), Some(1420)]);
}

/// A transfer over random loss keeps its memory bounded and does not depend on who asks first.
#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let config = Config::default();
        let mut net = Net::new(config.clone(), config.clone(), Duration::from_millis(10));
        net.connect(controller("cubic", &config));
        net.client.to_send = 2_000_000;
        let weather = Weather { loss: 20, duplication: 10, reordering: 20, seed: 11 };
        let mut random = Stream::named(weather.seed, "weather");
        net.run(Instant::from_secs(600), &mut |passing| weather.verdict(&mut random, passing));
        assert_eq!(net.server.received, 2_000_000);
        (*net.client().statistics(), *net.server().statistics(), net.drops)
    };
    assert_eq!(run(), run());
}

/// Real octets, written in odd pieces, arrive as they were.
#[test]
fn shared_octets_survive_loss() {
    let config = Config { rto_min: Duration::from_millis(200), ..Config::default() };
    let mut random = Stream::named(3, "shared");
    let octets: Vec<u8> = (0..200_000).map(|_| random.next_u32() as u8).collect();
    let mut client =
        Connection::connect(config.clone(), controller("reno", &config), support::PORTS, &mut random);
    let mut now = Instant::ZERO;
    let syn = client.poll_transmit(now).unwrap();
    let (syn, _) = Segment::decode(&syn.head).unwrap();
    let mut server =
        Connection::accept(now, config.clone(), controller("reno", &config), &syn, &mut random).unwrap();
    let (mut written, mut received) = (0, Vec::new());
    while received.len() < octets.len() {
        now += Duration::from_millis(1);
        if written < octets.len() {
            let end = (written + 1 + random.below(5_000) as usize).min(octets.len());
            written += client.write_slice(&octets[written..end]).unwrap() as usize;
        }
        exchange(now, &mut client, &mut server, &mut random);
        exchange(now, &mut server, &mut client, &mut random);
        let mut buffer = [0; 3000];
        let n = server.read_slice(&mut buffer);
        received.extend_from_slice(&buffer[..n]);
        assert!(now < Instant::from_secs(600), "stalled at {}", received.len());
    }
    assert_eq!(received, octets);
    assert!(client.statistics().retransmissions > 0);
}

fn exchange(now: Instant, from: &mut Connection, to: &mut Connection, random: &mut Stream) {
    from.handle_timeout(now);
    while let Some(transmit) = from.poll_transmit(now) {
        if !random.chance(0.05) {
            to.handle(now, &Segment::decode(&transmit.head).unwrap().0, transmit.payload);
        }
    }
}
