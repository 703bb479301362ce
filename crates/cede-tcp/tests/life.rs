//! A connection from its first segment to its last.

mod support;

use cede_tcp::{Config, Connection, Event, Failure, Segment, State};
use cede_units::{Duration, Instant};
use cede_wire::Payload;
use cede_wire::tcp::Flags;
use support::{Net, Verdict, clear, controller, fixed_window};

const DELAY: Duration = Duration::from_millis(25);

fn net(config: &Config) -> Net {
    let mut net = Net::new(config.clone(), config.clone(), DELAY);
    net.connect(controller("reno", config));
    net
}

#[test]
fn a_megabyte_arrives_whole_and_both_ends_close() {
    for config in [Config::default(), Config::newreno(), Config::linux()] {
        let mut net = net(&config);
        net.client.to_send = 1_000_000;
        net.run(Instant::from_secs(60), &mut clear);
        assert_eq!((net.server.received, net.server.intact), (1_000_000, true));
        assert_eq!(net.client().statistics().retransmissions, 0);
        assert_eq!(net.client.events, [Event::Connected, Event::PeerFinished, Event::Closed]);
        let server = [Event::Connected, Event::Readable, Event::PeerFinished, Event::Closed];
        assert!(server.iter().all(|event| net.server.events.contains(event)));
        assert!(net.client().is_closed() && net.server().is_closed());
        assert!(net.client().poll_timeout().is_none() && net.server().poll_timeout().is_none());
    }
}

#[test]
fn who_only_receives_is_at_rest_until_it_closes() {
    let mut net = net(&Config::default());
    net.client.to_send = 1_000_000;
    net.run(net.now + DELAY * 9, &mut clear);
    assert!(net.server.received > 0);
    assert_eq!((net.server().is_at_rest(), net.client().is_at_rest()), (true, false));
    net.run(Instant::from_secs(60), &mut clear);
    assert!(net.server.received == 1_000_000 && net.server().is_closed());
}

#[test]
fn full_segments_fill_1500_octet_packets_with_and_without_timestamps() {
    for (config, head) in [(Config::default(), 32), (Config::newreno(), 20)] {
        let mut net = net(&config);
        net.client.to_send = 100_000;
        let mut largest = 0;
        net.run(Instant::from_secs(10), &mut |passing| {
            if !passing.payload.is_empty() {
                assert_eq!(passing.segment.encode().len(), head);
                largest = largest.max(20 + head + passing.payload.len() as usize);
            }
            Verdict::Deliver
        });
        assert_eq!(largest, 1500);
    }
}

#[test]
fn lost_syns_are_sent_again_and_the_window_begins_at_one_segment() {
    for lost_from_client in [true, false] {
        let mut net = net(&Config { timestamps: false, ..Config::default() });
        net.client.to_send = 100_000;
        let (mut syns, mut burst, mut first_data_at) = (0, 0, None);
        net.run(Instant::from_secs(30), &mut |passing| {
            if passing.segment.flags.has(Flags::SYN) && passing.from_client == lost_from_client {
                syns += 1;
                return if syns == 1 { Verdict::Drop } else { Verdict::Deliver };
            }
            if !passing.payload.is_empty() {
                let at = *first_data_at.get_or_insert(passing.now);
                burst += u32::from(passing.now == at);
            }
            Verdict::Deliver
        });
        assert_eq!(net.server.received, 100_000);
        assert!(syns >= 2);
        if lost_from_client {
            assert_eq!(burst, 1, "RFC 5681, section 3.1");
        }
    }
}

#[test]
fn a_silent_peer_fails_the_connection_with_backoff() {
    let config = Config::default();
    let mut net = net(&config);
    let mut times = Vec::new();
    net.run(Instant::from_secs(1000), &mut |passing| {
        times.push(passing.now.as_nanos() / 1_000_000_000);
        Verdict::Drop
    });
    // 1, 2, 4, 8, 16, 32 s apart.
    assert_eq!(times, [1, 2, 4, 8, 16, 32, 64]);
    assert_eq!(net.client.events, [Event::Failed(Failure::TimedOut)]);
    assert!(net.client().is_closed());
}

#[test]
fn a_peer_that_falls_silent_fails_the_connection() {
    let mut net = net(&Config { retries_max: 4, ..Config::default() });
    net.client.to_send = 1 << 20;
    net.run(Instant::from_millis(1120), &mut clear);
    net.run(Instant::from_secs(1000), &mut |_| Verdict::Drop);
    assert_eq!(net.client.events.last(), Some(&Event::Failed(Failure::TimedOut)));
    assert_eq!(net.client().statistics().timeouts, 4);
}

#[test]
fn a_refused_connection_fails_at_once() {
    let config = Config::default();
    let mut random = cede_units::Stream::named(5, "refused");
    let mut client =
        Connection::connect(config.clone(), controller("reno", &config), support::PORTS, &mut random);
    let syn = client.poll_transmit(Instant::ZERO).unwrap();
    let (syn, _) = Segment::decode(&syn.head).unwrap();
    let answer = Connection::refuse(&syn, 0).unwrap();
    let (reset, _) = Segment::decode(&answer.head).unwrap();
    assert!(Connection::refuse(&reset, 0).is_none());
    client.handle(Instant::from_millis(50), &reset, Payload::Empty);
    assert_eq!(client.poll_event(), Some(Event::Failed(Failure::Refused)));
    assert!(client.is_closed() && client.write_slice(b"x").is_err());
}

#[test]
fn an_abort_resets_the_peer() {
    let mut net = net(&Config::default());
    net.client.to_send = 5_000;
    net.client.closes = false;
    net.run(Instant::from_secs(2), &mut clear);
    net.client().abort();
    assert!(!net.client().is_closed(), "the RST has not left yet");
    net.run(Instant::from_secs(3), &mut clear);
    assert!(net.client().is_closed() && net.server().is_closed());
    assert_eq!(net.server.events.last(), Some(&Event::Failed(Failure::Reset)));
}

#[test]
fn each_direction_closes_on_its_own() {
    let mut net = net(&Config::default());
    net.client.to_send = 10_000;
    net.server.closes = false;
    net.run(Instant::from_secs(2), &mut clear);
    assert_eq!(net.client().state(), State::FinWait2);
    assert_eq!(net.server().state(), State::CloseWait);
    // The server still sends, and the client still reads.
    net.server.to_send = 500_000;
    net.server.closes = true;
    net.run(Instant::from_secs(20), &mut clear);
    assert_eq!((net.client.received, net.client.intact), (500_000, true));
    assert!(net.client().is_closed() && net.server().is_closed());
}

#[test]
fn both_ends_closing_at_once_pass_through_closing() {
    let mut net = net(&Config::default());
    net.client.closes = false;
    net.run(Instant::from_secs(2), &mut clear);
    net.client().close();
    net.server().close();
    let mut seen = Vec::new();
    net.drive(&mut clear);
    for ms in 2000..2200 {
        net.run(Instant::from_millis(ms), &mut clear);
        seen.push(net.client().state());
    }
    assert!(seen.contains(&State::FinWait1) && seen.contains(&State::TimeWait));
    net.run(Instant::from_secs(9), &mut clear);
    assert!(net.client().is_closed() && net.server().is_closed());
}

#[test]
fn a_lost_fin_is_sent_again_and_its_repetition_answered() {
    let mut net = net(&Config { time_wait: Duration::from_secs(5), ..Config::default() });
    net.client.to_send = 100_000;
    let mut fins = [0, 0];
    net.run(Instant::from_secs(60), &mut |passing| {
        if passing.segment.flags.has(Flags::FIN) {
            let count = &mut fins[usize::from(passing.from_client)];
            *count += 1;
            return if *count == 1 { Verdict::Drop } else { Verdict::Deliver };
        }
        Verdict::Deliver
    });
    assert!(fins[0] >= 2 && fins[1] >= 2);
    assert_eq!(net.server.received, 100_000);
    assert!(net.client().is_closed() && net.server().is_closed());
}

#[test]
fn a_reader_that_stops_closes_the_window_and_opens_it_again() {
    let config = Config { receive_window_bytes: 20_000, ..Config::default() };
    let mut net = net(&config);
    net.client.to_send = 200_000;
    net.server.reads = false;
    net.run(Instant::from_secs(100), &mut clear);
    // Two windows are held, and the connection lives on probes.
    let statistics = net.client().statistics();
    let held = statistics.data_bytes_sent - statistics.retransmitted_bytes;
    assert!((30_000..=40_001).contains(&held), "{held}");
    assert_eq!(net.client().statistics().timeouts, 0, "probes are no congestion");
    net.server.reads = true;
    net.run(Instant::from_secs(160), &mut clear);
    assert_eq!((net.server.received, net.server.intact), (200_000, true));
    assert!(net.client().is_closed());
}

#[test]
fn a_tuned_window_is_small_before_a_slow_reader_and_follows_a_fast_one() {
    let config = Config { receive_tuning: true, ..Config::default() };
    let mut slow = net(&config);
    slow.client.to_send = 4_000_000;
    slow.server.reads = false;
    slow.run(Instant::from_secs(20), &mut clear);
    let statistics = slow.client().statistics();
    let held = statistics.data_bytes_sent - statistics.retransmitted_bytes;
    assert!((60_000..=65_600).contains(&held), "{held}");
    // It goes on as soon as it is read.
    slow.server.reads = true;
    slow.run(Instant::from_secs(100), &mut clear);
    assert_eq!((slow.server.received, slow.server.intact), (4_000_000, true));
    // Whoever reads at once gets it as soon as with the largest window.
    let [tuned, open] = [true, false].map(|receive_tuning| {
        let mut net = net(&Config { receive_tuning, ..Config::default() });
        net.client.to_send = 4_000_000;
        (1..400).find(|step| {
            net.run(Instant::from_millis(50 * step), &mut clear);
            net.server.received == 4_000_000
        })
    });
    assert!(open.is_some() && tuned <= open.map(|step| step + 4), "{tuned:?} {open:?}");
}

#[test]
fn a_lost_window_update_is_probed_for() {
    let config = Config { receive_window_bytes: 20_000, ..Config::default() };
    let mut net = net(&config);
    net.client.to_send = 200_000;
    net.server.reads = false;
    net.run(Instant::from_secs(20), &mut clear);
    net.server.reads = true;
    let mut lost = 0;
    net.run(Instant::from_secs(200), &mut |passing| {
        lost += u32::from(!passing.from_client);
        if !passing.from_client && lost == 1 { Verdict::Drop } else { Verdict::Deliver }
    });
    assert_eq!((net.server.received, net.server.intact), (200_000, true));
}

#[test]
fn a_smaller_mss_of_the_peer_binds_the_sender_and_its_controller() {
    let (client, server) = (Config::default(), Config { mss_bytes: 576, ..Config::default() });
    let mut net = Net::new(client.clone(), server, DELAY);
    net.connect(fixed_window(100_000, &client));
    net.client.to_send = 50_000;
    let mut largest = 0;
    net.run(Instant::from_secs(10), &mut |passing| {
        largest = largest.max(passing.payload.len());
        Verdict::Deliver
    });
    assert_eq!((largest, net.server.received), (564, 50_000));
}

#[test]
fn options_are_used_only_where_both_sides_offer_them() {
    for (client, server) in [(Config::default(), Config::newreno()), (Config::newreno(), Config::default())] {
        let mut net = Net::new(client.clone(), server, DELAY);
        net.connect(controller("reno", &client));
        net.client.to_send = 300_000;
        let mut index = 0;
        net.run(Instant::from_secs(60), &mut |passing| {
            if !passing.segment.flags.has(Flags::SYN) {
                assert!(
                    passing.segment.options.timestamps.is_none() && passing.segment.options.sack.is_empty()
                );
            }
            index += u32::from(!passing.payload.is_empty());
            if index == 30 { Verdict::Drop } else { Verdict::Deliver }
        });
        assert_eq!((net.server.received, net.server.intact), (300_000, true));
    }
}
