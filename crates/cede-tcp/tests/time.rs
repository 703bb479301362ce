//! Timestamps, RTT samples and one-way delays.

mod support;

use cede_cc::{Allowance, Controller, Feedback, Sent, Snapshot, Tag, Timeout};
use cede_tcp::{AckPolicy, Config, Connection, Segment};
use cede_units::{Duration, Instant, Seq32, Stream};
use cede_wire::Payload;
use cede_wire::tcp::{Flags, Options, Timestamps};
use std::sync::{Arc, Mutex};
use support::{Net, PORTS, Verdict, clear, fixed_window};

/// What one acknowledgement told of time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    rtt: Option<Duration>,
    forward_ns: Option<i64>,
    reverse_ns: Option<i64>,
    app_limited: bool,
    tags: bool,
}

/// A fixed window that writes down what it is told, and tags packets with their numbers.
struct Recorder {
    cwnd_bytes: u64,
    samples: Samples,
    idles: Arc<Mutex<u32>>,
}

impl Controller for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn on_sent(&mut self, sent: &Sent) -> Tag {
        sent.number as Tag + 1
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        self.samples.lock().unwrap().push(Sample {
            rtt: feedback.rtt,
            forward_ns: feedback.one_way_delay_ns,
            reverse_ns: feedback.reverse_delay_ns,
            app_limited: feedback.app_limited,
            tags: feedback.acked.iter().all(|fact| u64::from(fact.tag) == fact.number + 1),
        });
        assert!(feedback.acked.is_sorted_by_key(|fact| fact.number));
        assert_eq!(
            feedback.acked_bytes,
            feedback.acked.iter().map(|fact| u64::from(fact.bytes)).sum::<u64>()
        );
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        *self.idles.lock().unwrap() += u32::from(timeout.idle);
        self.allowance()
    }

    fn on_mss(&mut self, _: u32) -> Allowance {
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.cwnd_bytes)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }
}

type Samples = Arc<Mutex<Vec<Sample>>>;

fn recorder(segments: u64) -> (Box<dyn Controller>, Samples, Arc<Mutex<u32>>) {
    let (samples, idles) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
    let recorder = Recorder { cwnd_bytes: segments * 1448, samples: samples.clone(), idles: idles.clone() };
    (Box::new(recorder), samples, idles)
}

/// Runs a transfer in which the second half of the way there takes 20 ms more, and returns the samples.
fn samples_of_a_queue(granularity: Duration) -> Vec<Sample> {
    let config =
        Config { timestamp_granularity: granularity, ack_policy: AckPolicy::Every, ..Config::default() };
    let mut net = Net::new(config.clone(), config, Duration::from_micros(25_300));
    let (controller, samples, _) = recorder(4);
    net.connect(controller);
    net.client.to_send = 200 * 1448;
    net.run(Instant::from_secs(60), &mut |passing| {
        let queued = passing.from_client && passing.data_index >= 100;
        if queued { Verdict::Delay(Duration::from_millis(20)) } else { Verdict::Deliver }
    });
    assert_eq!(net.server.received, 200 * 1448);
    let samples = samples.lock().unwrap().clone();
    assert!(samples.iter().all(|sample| sample.tags));
    samples
}

#[test]
fn one_way_delays_show_a_queue_on_the_way_there_and_only_there() {
    for (granularity_us, tolerance_ns) in [(1, 1_000), (1000, 1_000_000)] {
        let samples = samples_of_a_queue(Duration::from_micros(granularity_us));
        let (before, after) = (samples[10], samples[150]);
        let rise = after.forward_ns.unwrap() - before.forward_ns.unwrap();
        assert!((rise - 20_000_000).abs() <= tolerance_ns, "{rise}");
        let change = after.reverse_ns.unwrap() - before.reverse_ns.unwrap();
        assert!(change.abs() <= tolerance_ns, "{change}");
        // The clocks' offsets cancel: both ways together are the round trip.
        let sum = before.forward_ns.unwrap() + before.reverse_ns.unwrap();
        assert!((sum - 50_600_000).abs() <= 2 * tolerance_ns, "{sum}");
        // RTT samples come from our own clock and are exact whatever the timestamps' resolution.
        assert_eq!(before.rtt, Some(Duration::from_micros(50_600)));
        assert_eq!(after.rtt, Some(Duration::from_micros(70_600)));
    }
}

#[test]
fn without_timestamps_there_are_no_one_way_delays() {
    let config = Config::newreno();
    let mut net = Net::new(config.clone(), config, Duration::from_millis(25));
    let (controller, samples, _) = recorder(4);
    net.connect(controller);
    net.client.to_send = 100_000;
    net.run(Instant::from_secs(60), &mut clear);
    let samples = samples.lock().unwrap();
    assert!(samples.len() > 50);
    assert!(samples.iter().all(|sample| sample.forward_ns.is_none() && sample.rtt.is_some()));
}

#[test]
fn idleness_and_the_application_s_limit_are_told() {
    let config = Config::default();
    let mut net = Net::new(config.clone(), config, Duration::from_millis(25));
    let (controller, samples, idles) = recorder(10);
    net.connect(controller);
    net.client.closes = false;
    net.client.to_send = 1448 * 100;
    net.run(Instant::from_secs(3), &mut clear);
    assert_eq!(*idles.lock().unwrap(), 0);
    {
        let samples = samples.lock().unwrap();
        assert!(samples[..20].iter().all(|sample| !sample.app_limited));
        assert!(samples.last().unwrap().app_limited);
    }
    net.client.to_send += 1448;
    net.run(Instant::from_secs(5), &mut clear);
    assert_eq!(*idles.lock().unwrap(), 1);
    net.client.to_send += 1448;
    net.drive(&mut clear);
    net.run(Instant::from_millis(5_900), &mut clear);
    net.client.to_send += 1448;
    net.run(Instant::from_secs(7), &mut clear);
    // The two pauses since were two seconds, and less than a timeout.
    assert_eq!(*idles.lock().unwrap(), 2);
}

#[test]
fn what_a_window_below_a_segment_holds_back_does_not_come_after_idleness() {
    let config = Config::default();
    let mut net = Net::new(config.clone(), config, Duration::from_millis(25));
    let (controller, samples, idles) = recorder(0);
    net.connect(controller);
    net.client.to_send = 3 * 1448;
    // One segment a minute, with a timeout of a second.
    net.run(Instant::from_secs(130), &mut clear);
    assert_eq!((samples.lock().unwrap().len(), *idles.lock().unwrap()), (3, 0));
}

/// What is told of 100 segments over 50.6 ms while the channel does this to them.
fn samples_of_a_repair(repair: &mut dyn FnMut(&support::Passing<'_>) -> Verdict) -> Vec<Sample> {
    let config = Config::default();
    let mut net = Net::new(config.clone(), config, Duration::from_micros(25_300));
    let (controller, samples, _) = recorder(20);
    net.connect(controller);
    net.client.to_send = 100 * 1448;
    net.run(Instant::from_secs(60), repair);
    assert_eq!(net.server.received, 100 * 1448);
    samples.lock().unwrap().clone()
}

#[test]
fn a_round_trip_sample_of_a_resent_segment_is_exact_in_spite_of_the_tick() {
    let samples = samples_of_a_repair(&mut |passing| {
        let lost = passing.from_client && passing.data_index == 50 && !passing.payload.is_empty();
        if lost { Verdict::Drop } else { Verdict::Deliver }
    });
    // The repair takes more than a round trip after the segment first left; no sample shows that.
    assert!(samples.len() > 50);
    assert!(samples.iter().all(|sample| sample.rtt == Some(Duration::from_micros(50_600))));
}

#[test]
fn an_acknowledgement_of_a_first_transmission_that_was_only_late_gives_no_sample() {
    let samples = samples_of_a_repair(&mut |passing| {
        let late = passing.from_client && passing.data_index == 50 && !passing.payload.is_empty();
        if late { Verdict::Delay(Duration::from_millis(40)) } else { Verdict::Deliver }
    });
    let told: Vec<_> = samples.iter().filter_map(|sample| sample.rtt).collect();
    assert!(told.len() < samples.len(), "the segment was sent again, and its first transmission arrived");
    assert!(told.iter().all(|&rtt| rtt == Duration::from_micros(50_600)), "{told:?}");
}

/// A receiver whose peer is the test.
struct Script {
    connection: Connection,
    now: Instant,
}

impl Script {
    fn new(config: Config) -> Self {
        let now = Instant::from_secs(1);
        let stamps = Some(Timestamps { value: 99, echo: 0 });
        let options =
            Options { mss: Some(1460), timestamps: stamps, sack_permitted: true, ..Options::default() };
        let syn = segment(0, Flags::SYN, options);
        let controller = fixed_window(1 << 20, &config);
        let mut random = Stream::named(1, "time");
        let mut connection = Connection::accept(now, config, controller, &syn, &mut random).unwrap();
        let answer = connection.poll_transmit(now).unwrap();
        let (answer, _) = Segment::decode(&answer.head).unwrap();
        assert_eq!(answer.options.timestamps.unwrap().echo, 99);
        let mut third = segment(1, Flags::ACK, stamp(99));
        third.ack = answer.seq.add(1);
        connection.handle(now, &third, Payload::Empty);
        assert!(connection.poll_transmit(now).is_none());
        Self { connection, now }
    }

    /// Hands over 1000 octets of data from `offset` on with this timestamp, and returns what is answered.
    fn data(&mut self, offset: u64, value: u32) -> Option<Segment> {
        let mut segment = segment(1 + offset as u32, Flags::ACK, stamp(value));
        segment.ack = self.ack();
        self.connection.handle(self.now, &segment, Payload::Pattern { start: offset, len: 1000 });
        let transmit = self.connection.poll_transmit(self.now)?;
        Some(Segment::decode(&transmit.head).unwrap().0)
    }

    /// The number that acknowledges our SYN and nothing else, from the RST that an abort would send.
    fn ack(&self) -> Seq32 {
        let mut random = Stream::named(1, "time");
        Seq32(random.next_u32()).add(1)
    }
}

fn stamp(value: u32) -> Options {
    Options { timestamps: Some(Timestamps { value, echo: 0 }), ..Options::default() }
}

fn segment(seq: u32, flags: Flags, options: Options) -> Segment {
    let (src_port, dst_port) = (PORTS.local, PORTS.remote);
    Segment { src_port, dst_port, seq: Seq32(seq), ack: Seq32(0), flags, window: 1000, options }
}

fn echo(answer: Option<Segment>) -> u32 {
    answer.unwrap().options.timestamps.unwrap().echo
}

#[test]
fn check_8_a_delayed_acknowledgement_echoes_the_first_of_its_two_segments() {
    let mut script = Script::new(Config::default());
    assert!(script.data(0, 100).is_none());
    assert_eq!(echo(script.data(1000, 101)), 100);
    assert!(script.data(2000, 105).is_none());
    assert_eq!(echo(script.data(3000, 106)), 105);
}

#[test]
fn out_of_order_segments_are_not_echoed_but_the_one_that_fills_the_gap_is() {
    let mut script = Script::new(Config { ack_policy: AckPolicy::Every, ..Config::default() });
    assert_eq!(echo(script.data(0, 100)), 100);
    assert_eq!(echo(script.data(2000, 102)), 100);
    assert_eq!(echo(script.data(3000, 103)), 100);
    assert_eq!(echo(script.data(1000, 110)), 110);
    // What is older than that comes from before a wrap.
    assert_eq!(script.connection.statistics().old_timestamps, 0);
    let answer = script.data(4000, 109);
    assert_eq!((echo(answer), script.connection.statistics().old_timestamps), (110, 1));
    assert_eq!(script.connection.statistics().received_bytes, 4000);
    // After 24 days of silence nothing is older.
    script.now += Duration::from_secs(25 * 86_400);
    assert_eq!(echo(script.data(4000, 109)), 109);
}

#[test]
fn a_repetition_in_vain_does_not_make_what_left_before_it_old() {
    let mut script = Script::new(Config { rack: true, ack_policy: AckPolicy::Every, ..Config::default() });
    script.data(0, 100);
    assert_eq!(echo(script.data(1000, 101)), 101);
    // The first again, later than the third has left, and before that arrives.
    let answer = script.data(0, 150);
    let blocks = answer.unwrap().options.sack;
    let [(start, end)] = *blocks.as_slice() else { panic!("{blocks:?}") };
    assert_eq!((end.distance_from(start), answer.unwrap().ack.distance_from(start)), (1000, 2000), "twice");
    assert_eq!(echo(script.data(2000, 102)), 102);
    assert_eq!(script.connection.statistics().old_timestamps, 0);
}

#[test]
fn segments_without_the_agreed_timestamp_are_dropped() {
    let mut script = Script::new(Config::default());
    let mut bare = segment(1, Flags::ACK, Options::default());
    bare.ack = script.ack();
    script.connection.handle(script.now, &bare, Payload::Pattern { start: 0, len: 1000 });
    assert_eq!(script.connection.statistics().received_bytes, 0);
}

#[test]
fn sack_blocks_answer_gaps_newest_first() {
    let mut script = Script::new(Config::default());
    let edges = |answer: Option<Segment>| -> Vec<(u32, u32)> {
        answer.unwrap().options.sack.as_slice().iter().map(|&(start, end)| (start.0 - 1, end.0 - 1)).collect()
    };
    assert_eq!(edges(script.data(2000, 100)), [(2000, 3000)]);
    assert_eq!(edges(script.data(4000, 100)), [(4000, 5000), (2000, 3000)]);
    assert_eq!(edges(script.data(3000, 100)), [(2000, 5000)]);
    for offset in [6000, 8000, 10_000] {
        script.data(offset, 100);
    }
    // Three beside timestamps.
    assert_eq!(edges(script.data(12_000, 100)), [(12_000, 13_000), (10_000, 11_000), (8000, 9000)]);
}
