//! What the experiment showed, measured or predicted alike.

use super::GentleSpec;
use cede_units::Duration;
use serde::Serialize;

/// From one sample to the next.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);
/// What the flow is given to find its place before anything is judged.
const SETTLING_S: f64 = 10.0;
/// Shares and rates are judged over this many samples: a second.
const WINDOW: usize = 10;
/// The uTP flow has made way below this share.
const YIELDED_SHARE: f64 = 0.1;
/// The link is the uTP flow's own again above this part of its rate.
const OWN_PART: f64 = 0.95;

/// One interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// Its end, in seconds since the beginning.
    pub t_s: f64,
    /// Its length, in seconds.
    pub span_s: f64,
    /// How long a packet that came to the bottleneck had to wait.
    pub queue_ms: f64,
    /// What left the bottleneck, as a part of its rate.
    pub utilisation: f64,
    /// uTP at its receiver, in Mbit/s.
    pub utp_mbps: f64,
    /// TCP at its receiver, in Mbit/s.
    pub tcp_mbps: f64,
}

/// What the experiment showed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Showing {
    /// Alone, after ten seconds: the mean queueing delay.
    pub alone_queue_ms: f64,
    /// Alone, after ten seconds: the part of the link that is used.
    pub alone_utilisation: f64,
    /// Seconds from the TCP flow's start until uTP's share of a second is below a tenth; none where it never was.
    pub yielded_after_s: Option<f64>,
    /// uTP's share from then to the TCP flow's end.
    pub share_beside: f64,
    /// Mean rate of the TCP flow in the second half of its presence.
    pub joined_tcp_mbps: f64,
    /// Mean queueing delay in the second half of the TCP flow's presence.
    pub joined_queue_ms: f64,
    /// Seconds from the TCP flow's end until uTP has 95 % of what its rate was when alone, over a second; none where it never has.
    pub own_again_after_s: Option<f64>,
    /// Mean queueing delay in the last ten seconds.
    pub again_queue_ms: f64,
    /// Interval by interval.
    pub samples: Vec<Sample>,
}

impl Showing {
    pub(super) fn of(spec: &GentleSpec, samples: Vec<Sample>) -> Self {
        let joins = spec.alone.as_secs_f64();
        let leaves = joins + spec.joined.as_secs_f64();
        let end = spec.duration().as_secs_f64();
        let settling = SETTLING_S.min(joins / 2.0);
        let alone = between(&samples, settling, joins);
        let joined = between(&samples, joins, leaves);
        let again = between(&samples, leaves, end + 1.0);
        let late = |from: f64, to: f64| between(&samples, from, to);
        let own = mean(&alone, |sample| sample.utp_mbps);
        let yielded = first_window(&joined, |window| share(window) < YIELDED_SHARE);
        let beside = joined.get(yielded.unwrap_or(0)..).unwrap_or_default();
        let own_again =
            first_window(&again, |window| mean(window, |sample| sample.utp_mbps) >= OWN_PART * own);
        let after =
            |index: Option<usize>, phase: &[Sample], from: f64| index.map(|index| phase[index].t_s - from);
        Self {
            alone_queue_ms: mean(&alone, |sample| sample.queue_ms),
            alone_utilisation: mean(&alone, |sample| sample.utilisation),
            yielded_after_s: after(yielded, &joined, joins),
            share_beside: share(beside),
            joined_tcp_mbps: mean(&late(f64::midpoint(joins, leaves), leaves), |sample| sample.tcp_mbps),
            joined_queue_ms: mean(&late(f64::midpoint(joins, leaves), leaves), |sample| sample.queue_ms),
            own_again_after_s: after(own_again, &again, leaves),
            again_queue_ms: mean(&late(end - 10.0, end + 1.0), |sample| sample.queue_ms),
            samples,
        }
    }
}

fn between(samples: &[Sample], from: f64, to: f64) -> Vec<Sample> {
    samples.iter().copied().filter(|sample| sample.t_s > from && sample.t_s <= to).collect()
}

/// The mean over time: where the machine stalls, intervals are not all of one length.
fn mean(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    let whole: f64 = samples.iter().map(|sample| sample.span_s).sum();
    samples.iter().map(|sample| value(sample) * sample.span_s).sum::<f64>() / whole.max(1e-9)
}

/// uTP's part of what arrived.
fn share(samples: &[Sample]) -> f64 {
    let (utp, tcp) = (mean(samples, |sample| sample.utp_mbps), mean(samples, |sample| sample.tcp_mbps));
    if utp + tcp > 0.0 { utp / (utp + tcp) } else { 0.0 }
}

/// The last sample of the first window for which this holds.
fn first_window(samples: &[Sample], holds: impl Fn(&[Sample]) -> bool) -> Option<usize> {
    samples.windows(WINDOW).position(holds).map(|start| start + WINDOW - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Alone at 9.5 for 30 s with 98 ms of queue; gives way within 5 s of a join at 30 s; back 8 s after its end at 70 s.
    fn samples() -> Vec<Sample> {
        let sample = |k: u32| {
            let t_s = f64::from(k) / 10.0;
            let (utp_mbps, tcp_mbps, queue_ms) = match t_s {
                t if t <= 30.0 => (9.5, 0.0, 98.0),
                t if t <= 35.0 => (6.0, 3.5, 500.0),
                t if t <= 70.0 => (0.1, 9.4, 900.0),
                t if t <= 78.0 => (5.0, 0.0, 10.0),
                _ => (9.5, 0.0, 98.0),
            };
            Sample {
                t_s,
                span_s: 0.1,
                queue_ms,
                utilisation: (utp_mbps + tcp_mbps) / 9.6,
                utp_mbps,
                tcp_mbps,
            }
        };
        (1..=1100).map(sample).collect()
    }

    #[test]
    fn phases_are_told_apart() {
        let showing = Showing::of(&GentleSpec::default(), samples());
        let close = |a: f64, b: f64| (a - b).abs() < 0.3;
        assert!(close(showing.alone_queue_ms, 98.0) && close(showing.again_queue_ms, 98.0));
        assert!(close(showing.alone_utilisation, 9.5 / 9.6));
        // A second's window of which a tenth may still be of the time before.
        assert!(close(showing.yielded_after_s.unwrap(), 5.9), "{:?}", showing.yielded_after_s);
        assert!(close(showing.own_again_after_s.unwrap(), 8.9), "{:?}", showing.own_again_after_s);
        assert!(showing.share_beside < 0.03 && close(showing.joined_queue_ms, 900.0));
    }

    #[test]
    fn a_flow_that_never_yields_and_never_returns_shows_it() {
        let stubborn = samples().into_iter().map(|sample| {
            let utp_mbps = if sample.t_s < 70.0 { 9.0 } else { 1.0 };
            Sample { utp_mbps, tcp_mbps: 0.5, ..sample }
        });
        let showing = Showing::of(&GentleSpec::default(), stubborn.collect());
        assert_eq!((showing.yielded_after_s, showing.own_again_after_s), (None, None));
        assert!(showing.share_beside > 0.9);
    }
}
