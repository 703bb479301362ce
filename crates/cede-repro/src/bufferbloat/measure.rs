//! A setting with the meter at the observer and the queue's log beside it.

use super::setting::{Case, Conditions, Household, UPLINK_MBPS};
use cede_lab::meter::{PacketTap, QueueTap};
use cede_lab::record::{Octets, address};
use cede_lab::run::{Run, RunError, Watcher};
use cede_lab::scenario::Scenario;
use cede_meter::{Config, Delay, Estimator, Meter, Protocol, QueueSample, Report, Summary, Visitor};
use cede_net::{Datagram, Dequeue, HostId};
use cede_units::{Duration, Instant, Rate};
use cede_wire::link::LinkType;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

const UPLINK: &str = "remote-up";
/// Propagation of uplink and downlink in the validation.
pub const WAY: Duration = Duration::from_millis(20);
/// The observer's downlink there, which is never full.
pub const DOWNLINK: Rate = Rate::from_mbit(100);
/// A sample that lies further than this from every packet's arrival belongs to none.
const MATCH: Duration = Duration::from_micros(50);

/// Times of the log are known no better.
const ROUNDING_US: f64 = 1.0;

/// A packet that left the uplink's queue: when it was seen by the observer, or would have been, and how long it had waited.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Truth {
    /// Arrival at the observer.
    pub at: Instant,
    /// How long the packet had waited.
    pub waited: Duration,
    /// How long its own transmission took then, which whoever comes meanwhile waits for; zero where none is told from the wait,
    /// as in a token bucket.
    pub took: Duration,
}

/// What one estimator made of a case.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimate {
    /// How the delays were inferred.
    pub estimator: Estimator,
    /// The samples of the remote host's packets, in the order of time.
    pub samples: Vec<Delay>,
    /// What they come to.
    pub summary: Summary,
    /// Inferred less true delay of each sample that belongs to a packet, in milliseconds, by rising amount.
    pub errors_ms: Vec<f64>,
    /// The true mean delay over the time that the samples cover, in milliseconds.
    pub true_mean_ms: f64,
}

impl Estimate {
    /// The error that this part of the samples does not exceed, in milliseconds.
    #[must_use]
    pub fn error_ms(&self, part: f64) -> f64 {
        let place = (part * self.errors_ms.len() as f64) as usize;
        self.errors_ms
            .get(place.min(self.errors_ms.len().saturating_sub(1)))
            .map_or(f64::NAN, |error| error.abs())
    }

    /// The mean over time that was inferred, as a part of the true one.
    #[must_use]
    pub fn mean_ratio(&self) -> f64 {
        self.summary.time_mean_ms / self.true_mean_ms
    }

    /// The mean over samples, as the paper has it, as a part of the true mean over time.
    #[must_use]
    pub fn sample_mean_ratio(&self) -> f64 {
        self.summary.sample_mean_ms / self.true_mean_ms
    }
}

/// What a case showed.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Which.
    pub case: Case,
    /// The queue's own log.
    pub truth: Vec<Truth>,
    /// The direct estimate, and the paper's.
    pub estimates: Vec<Estimate>,
    /// The longest wait there was, in milliseconds.
    pub longest_ms: f64,
}

impl Measured {
    /// What this estimator made of it.
    #[must_use]
    pub fn estimate(&self, estimator: Estimator) -> Option<&Estimate> {
        self.estimates.iter().find(|estimate| estimate.estimator == estimator)
    }
}

/// Feeds the meter with what passes the observer's port.
struct Observer {
    host: HostId,
    meter: Rc<RefCell<Meter>>,
    octets: Octets,
}

impl PacketTap for Observer {
    fn packet(&mut self, at: Instant, host: HostId, _outbound: bool, datagram: &Datagram) {
        if host == self.host {
            let octets = self.octets.of(datagram);
            self.meter.borrow_mut().packet(at.as_nanos(), LinkType::RAW, octets, octets.len() as u32);
        }
    }
}

/// Hears what leaves the queue of an uplink of the validation.
#[derive(Debug)]
pub struct Log {
    /// The uplink's place among the links that are measured.
    pub uplink: usize,
    /// What has left it, in the order of time.
    pub truth: Rc<RefCell<Vec<Truth>>>,
}

impl QueueTap for Log {
    fn dequeued(&mut self, link: usize, event: &Dequeue) {
        if link == self.uplink {
            let bytes = u64::from(event.bytes);
            let took = uplink().time_to_send(bytes);
            let at = event.at + took + WAY + DOWNLINK.time_to_send(bytes);
            self.truth.borrow_mut().push(Truth { at, waited: event.waited, took });
        }
    }
}

fn uplink() -> Rate {
    Rate::from_bits_per_sec((UPLINK_MBPS * 1e6) as u64)
}

struct Stopping<'a>(&'a (dyn Fn() -> bool + Sync));

impl Watcher for Stopping<'_> {
    fn progress(&mut self, _: Instant, _: Instant) -> bool {
        !(self.0)()
    }
}

struct Watched {
    meter: Meter,
    truth: Vec<Truth>,
    remote: IpAddr,
}

fn watch(scenario: &Scenario, stop: &(dyn Fn() -> bool + Sync)) -> Result<Watched, RunError> {
    let run = Run::new(scenario).without_tape();
    let names = ["observer", "remote"].map(|name| run.network().topology.host_id(name).unwrap_or_default());
    let uplink = run.network().watched.iter().position(|watched| watched.name == UPLINK).unwrap_or_default();
    let (meter, truth) =
        (Rc::new(RefCell::new(Meter::new(Config::default()))), Rc::new(RefCell::new(Vec::new())));
    let observer = Observer { host: names[0], meter: Rc::clone(&meter), octets: Octets::default() };
    let log = Log { uplink, truth: Rc::clone(&truth) };
    run.tap(Box::new(observer)).tap_queues(Box::new(log)).go(&mut Stopping(stop))?;
    let meter = meter.replace(Meter::default());
    let truth = truth.take();
    Ok(Watched { meter, truth, remote: IpAddr::V4(address(names[1])) })
}

/// Collects the samples of one host's packets.
struct Collect {
    remote: IpAddr,
    protocol: Protocol,
    samples: Vec<(Estimator, Delay)>,
}

impl Visitor for Collect {
    fn sample(&mut self, sample: &QueueSample) {
        if sample.source.address == self.remote && sample.protocol == self.protocol {
            self.samples.push((sample.estimator, sample.delay));
        }
    }
}

/// Runs a case of the validation.
///
/// # Errors
/// [`RunError::Interrupted`] once `stop` says so.
pub fn validate(
    case: Case,
    conditions: &Conditions,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Measured, RunError> {
    let watched = watch(&case.scenario(conditions), stop)?;
    Ok(compare(case, &watched.meter, watched.remote, watched.truth))
}

/// Holds what a meter says of the remote host against its queue's log, in the order of time.
#[must_use]
pub fn compare(case: Case, meter: &Meter, remote: IpAddr, truth: Vec<Truth>) -> Measured {
    let protocol = if case.seen.is_utp() { Protocol::Utp } else { Protocol::Tcp };
    let mut collect = Collect { remote, protocol, samples: Vec::new() };
    let _ = meter.report_to(&mut collect);
    let estimates = [Estimator::Direct, Estimator::Echoed].into_iter().filter_map(|estimator| {
        let of_this = collect.samples.iter().filter(|(by, _)| *by == estimator);
        let mut samples: Vec<Delay> = of_this.map(|(_, delay)| *delay).collect();
        samples.sort_by_key(|delay| delay.time_us);
        estimate(case, estimator, samples, &truth)
    });
    let longest_ms = truth.iter().map(|truth| truth.waited.as_millis_f64()).fold(0.0, f64::max);
    Measured { case, estimates: estimates.collect(), longest_ms, truth }
}

fn estimate(case: Case, estimator: Estimator, samples: Vec<Delay>, truth: &[Truth]) -> Option<Estimate> {
    let summary = Summary::of(&samples)?;
    let mut errors_ms: Vec<f64> = samples.iter().filter_map(|sample| error_ms(sample, truth)).collect();
    errors_ms.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let area = if case.seen.is_heartbeat() { area_for_anyone } else { area_between };
    let true_mean_ms = true_mean_ms(&samples, truth, area)?;
    Some(Estimate { estimator, samples, summary, errors_ms, true_mean_ms })
}

/// The area below the queue's delay from the first of two packets of its log, which came next to each other, to the second, in ms
/// times us.
type Area = fn(&Truth, &Truth) -> f64;

/// The true mean delay over the time that samples cover: between two that the meter bridges.
fn true_mean_ms(samples: &[Delay], truth: &[Truth], area: Area) -> Option<f64> {
    let (mut sum, mut covered_us) = (0.0, 0.0);
    for pair in samples.windows(2) {
        let (from, to) = (pair[0].time_us, pair[1].time_us);
        if !pair[0].is_bridged_to(&pair[1]) {
            continue;
        }
        // Of the packet at or before each end, and of all between.
        let [first, last] =
            [from, to].map(|us| truth.partition_point(|truth| truth.at.as_micros() <= us + 1));
        for step in truth.get(first.saturating_sub(1)..last)?.windows(2) {
            sum += area(&step[0], &step[1]);
            covered_us += us(step[1].at.since(step[0].at));
        }
    }
    (covered_us > 0.0).then(|| sum / covered_us)
}

fn us(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

/// Of what the packets of the log waited. Where the second came after the first had left, the queue was empty until it came: whoever
/// came behind the first, while that still waited, would have left with it.
///
/// It is what a flow sees that queues behind itself: its packets follow each other, and what they are themselves while they are sent
/// they do not wait for.
fn area_between(first: &Truth, second: &Truth) -> f64 {
    let [span_us, first_us, second_us, took_us] =
        [second.at.since(first.at), first.waited, second.waited, second.took].map(us);
    if second_us + took_us + ROUNDING_US >= span_us {
        return span_us * (first_us + second_us) / 2e3;
    }
    second_us * second_us / 2e3
}

/// Of what one would wait who came at any time: for the packet that is being sent, too, until it is; and for nothing while none is.
/// Who leaves just before a packet waits as long as it does, and who leaves just behind it, longer by its transmission.
///
/// It is what a heartbeat sees, which comes when it does. Where all packets are alike and the uplink is always busy, it is half a
/// packet's time more than what these wait ([`area_between`]).
fn area_for_anyone(first: &Truth, second: &Truth) -> f64 {
    let [span_us, took_us, waited_us] = [second.at.since(first.at), second.took, second.waited].map(us);
    if second.took.is_zero() {
        return area_between(first, second);
    }
    let sent_us = took_us.min(span_us);
    sent_us * (waited_us + sent_us / 2.0) / 1e3
}

/// Inferred less true delay; none where the sample belongs to no packet of the log.
fn error_ms(sample: &Delay, truth: &[Truth]) -> Option<f64> {
    let seen = Instant::from_micros(sample.time_us);
    let next = truth.partition_point(|truth| truth.at < seen);
    let near = truth.get(next.saturating_sub(1)..(next + 1).min(truth.len()))?;
    let apart = |truth: &Truth| truth.at.since(seen).as_nanos() + seen.since(truth.at).as_nanos();
    let packet = near.iter().min_by_key(|truth| apart(truth))?;
    (apart(packet) <= MATCH.as_nanos()).then(|| sample.queue_us / 1e3 - packet.waited.as_millis_f64())
}

/// What the meter says of a household.
///
/// # Errors
/// [`RunError::Interrupted`] once `stop` says so.
pub fn observe(house: &Household, stop: &(dyn Fn() -> bool + Sync)) -> Result<(IpAddr, Report), RunError> {
    let watched = watch(&house.scenario(), stop)?;
    Ok((watched.remote, watched.meter.report()))
}

#[cfg(test)]
mod tests {
    use super::super::setting::{Hidden, Seen};
    use super::*;

    #[test]
    fn the_meter_agrees_with_the_log_of_the_queue() {
        let case = Case { seen: Seen::UtpBacklogged, hidden: Hidden::Nothing };
        let measured = validate(case, &Conditions::USUAL, &|| false).unwrap();
        let direct = measured.estimate(Estimator::Direct).expect("samples");
        assert!(direct.samples.len() > 5_000, "{}", direct.samples.len());
        assert!(direct.errors_ms.len() * 10 > direct.samples.len() * 9, "{} matched", direct.errors_ms.len());
        assert!((direct.true_mean_ms - 100.0).abs() < 15.0, "{}", direct.true_mean_ms);
    }

    fn packet(at_ms: u64, waited_ms: u64, took_ms: u64) -> Truth {
        let [waited, took] = [waited_ms, took_ms].map(Duration::from_millis);
        Truth { at: Instant::from_millis(at_ms), waited, took }
    }

    #[test]
    fn the_true_mean_is_of_the_time_that_samples_cover() {
        let truth = |s: u64, ms| packet(s * 1_000, ms, 0);
        let log = [
            truth(1, 0),
            truth(2, 1_000),
            truth(3, 1_000),
            truth(10, 7_000),
            truth(30, 20_000),
            truth(31, 19_300),
        ];
        let sample = |s: u64| Delay { time_us: s * 1_000_000, queue_us: 0.0 };
        let mean = |seconds: &[u64]| {
            true_mean_ms(&seconds.iter().map(|&s| sample(s)).collect::<Vec<_>>(), &log, area_between)
        };
        assert_eq!(mean(&[1, 2, 3]), Some(750.0));
        assert_eq!(
            mean(&[1, 3, 30, 31]),
            Some((500.0 + 1_000.0 + 19_650.0) / 3.0),
            "nobody was looking from 3 to 30 s"
        );
        assert_eq!(mean(&[1]), None);
    }

    #[test]
    fn a_queue_is_empty_between_packets_that_did_not_meet_in_it() {
        let area = |first, second, span_ms| area_between(&packet(0, first, 12), &packet(span_ms, second, 12));
        assert_eq!(area(100, 88, 12), 12e3 * 94.0, "one behind the other");
        assert_eq!(area(100, 0, 12), 12e3 * 50.0, "as the other left");
        assert_eq!(area(100, 0, 4_000), 0.0, "whoever came behind the first would have left with it");
        assert_eq!(area(0, 50, 1_000), 1_250e3, "others came meanwhile");
    }

    /// What packets waited, by when they left, has the mean of what anybody waits, by when he comes.
    #[test]
    fn the_mean_of_a_burst_is_that_of_what_anybody_waits() {
        // A packet a millisecond for a second, each of which takes two: the queue rises for a second to one second, and falls for one.
        let burst = |at: u64| (0..1_000).map(move |k| packet(at + 2 * k + 2, k, 2));
        let log: Vec<Truth> = (0..20).flat_map(|k| burst(k * 5_000)).collect();
        let sum: f64 = log.windows(2).map(|pair| area_between(&pair[0], &pair[1])).sum();
        let anybody = 20.0 * (500.0 + 500.0) * 1e6;
        assert!((sum / anybody - 1.0).abs() < 0.01, "{sum} for {anybody}");
    }

    #[test]
    fn whoever_comes_at_any_time_waits_for_the_packet_that_is_being_sent() {
        let mean = |log: &[Truth], area| {
            let all = log.iter().map(|it| Delay { time_us: it.at.as_micros(), queue_us: 0.0 });
            true_mean_ms(&all.collect::<Vec<_>>(), log, area).expect("covered")
        };
        // Packets of 12 ms, three at once every 100 ms: one waits for 36 ms, or what is left of these.
        let burst = |k: u64| [12, 24, 36].map(|left| packet(k * 100 + left, left - 12, 12));
        let log: Vec<Truth> = (0..=500).flat_map(burst).collect();
        let met = mean(&log, area_for_anyone);
        assert!((met - 36.0 * 36.0 / 2.0 / 100.0).abs() < 0.01, "{met}");
        // One behind the other, each of which finds four.
        let log: Vec<Truth> = (0..100).map(|k| packet(k * 12, 48, 12)).collect();
        assert_eq!([area_between, area_for_anyone].map(|area| mean(&log, area)), [48.0, 54.0]);
        // A bucket says nothing of transmissions.
        assert_eq!(area_for_anyone(&packet(0, 50, 0), &packet(12, 50, 0)), 12e3 * 50.0);
    }

    #[test]
    fn errors_are_those_of_the_nearest_packet() {
        let truth = [10, 22, 34].map(|ms| packet(ms, ms, 12));
        let sample = |time_us| Delay { time_us, queue_us: 23_000.0 };
        assert_eq!(error_ms(&sample(22_010), &truth), Some(1.0));
        assert_eq!(error_ms(&sample(33_960), &truth), Some(-11.0));
        assert_eq!(error_ms(&sample(28_000), &truth), None, "nothing came then");
        assert_eq!(error_ms(&sample(28_000), &[]), None);
    }
}
