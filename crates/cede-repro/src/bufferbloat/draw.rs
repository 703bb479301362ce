//! The pictures: inferred and true delay over time, errors, and the peers.

use super::execute::Results;
use super::measure::{Measured, Truth};
use super::peers::{Peer, distribution};
use super::setting::Hidden;
use cede_meter::{Delay, Estimator};
use cede_plot::{Axis, Dash, Figure, Panel, Series};

/// More points than these are not drawn: the longest delay of each interval stands for the others.
const DRAWN: usize = 600;

/// The paper's Fig. 2.
pub(super) fn validation(results: &Results) -> Figure {
    inferred_and_true("Inferred and true queueing delay", &results.cases).caption(
        "1 Mbit/s, 6 s of buffer, the remote clock 3 s behind and 60 ppm fast. Wide: the wait of every packet that left the \
         queue. Narrow: inferred from the packets that pass the observer.",
    )
}

/// The same with real sockets.
pub(super) fn real_validation(results: &Results) -> Figure {
    inferred_and_true("Inferred and true queueing delay in network namespaces", &results.real).caption(
        "The kernel's TCP and real uTP through the kernel's token bucket: 1 Mbit/s, 6 s of buffer. Wide: each packet's time \
         between the router's two ports. Narrow: inferred from the packets that pass the observer.",
    )
}

fn inferred_and_true(title: &str, cases: &[Measured]) -> Figure {
    Figure::new(title)
        .subtitle(
            "What the observer infers of what it sees, over the log of the queue, hidden traffic included",
        )
        .columns(Hidden::ALL.len())
        .panel_height(150.0)
        .shared_legend(true)
        .panels(cases.iter().map(over_time))
}

fn over_time(measured: &Measured) -> Panel {
    let delay = |truth: &Truth| Delay {
        time_us: truth.at.as_micros(),
        queue_us: truth.waited.as_nanos() as f64 / 1e3,
    };
    let log: Vec<Delay> = measured.truth.iter().map(delay).collect();
    // Who comes after a packet has left finds what others left, or nothing.
    let emptied = |last: &Delay, next: &Delay| {
        let (drained_us, came_us) =
            (last.time_us as f64 + last.queue_us, next.time_us as f64 - next.queue_us);
        let empty = |at_us: f64| Delay { time_us: at_us as u64, queue_us: 0.0 };
        if drained_us < came_us { vec![empty(drained_us), empty(came_us)] } else { Vec::new() }
    };
    let drained = |last: &Delay, next: &Delay| match last.drained_before(next) {
        None if !last.is_bridged_to(next) => vec![Delay { queue_us: f64::NAN, ..*next }],
        drained => Vec::from_iter(drained),
    };
    let inferred = measured.estimate(Estimator::Direct).map(|estimate| thinned(&estimate.samples, drained));
    Panel::new(measured.case.title())
        .x(Axis::new("time").unit("s").from(0.0))
        .y(Axis::new("delay").unit("ms").from(0.0))
        .series(Series::line("true", thinned(&log, emptied)).slot(7).width(3.0))
        .all_series(inferred.map(|points| Series::line("inferred", points).slot(0).width(1.2)))
}

/// The largest of every so many; before a silence of a second all that says when it began, with what was `between`.
fn thinned(delays: &[Delay], between: impl Fn(&Delay, &Delay) -> Vec<Delay>) -> Vec<(f64, f64)> {
    const SILENCE_US: u64 = 1_000_000;
    let group = delays.len().div_ceil(DRAWN).max(1);
    let point = |delay: &Delay| (delay.time_us as f64 / 1e6, delay.queue_us / 1e3);
    let mut points = Vec::new();
    let mut before: Option<&Delay> = None;
    for run in delays.chunk_by(|last, next| next.time_us - last.time_us <= SILENCE_US) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        points
            .extend(before.into_iter().flat_map(|before| between(before, first)).map(|delay| point(&delay)));
        let largest = |part: &[Delay]| part.iter().copied().max_by(|a, b| a.queue_us.total_cmp(&b.queue_us));
        points.push(point(first));
        points.extend(run.chunks(group).filter_map(largest).map(|delay| point(&delay)));
        points.push(point(last));
        before = Some(last);
    }
    points
}

/// The distribution of the errors: a panel for each transport and estimator, so that no panel has more lines than there are
/// colours.
pub(super) fn errors(cases: &[Measured]) -> Figure {
    let transports = [(true, "LEDBAT"), (false, "TCP")];
    let estimators = [
        (Estimator::Direct, "the observer's clock less the stamp"),
        (Estimator::Echoed, "the paper's equations"),
    ];
    let panels = transports
        .into_iter()
        .flat_map(|transport| estimators.map(|estimator| errors_of(cases, transport, estimator)));
    Figure::new("How far the inferred delay is from the true one")
        .caption("Amounts of the errors of all samples. A packet of 1,500 octets takes 12 ms; TCP's clock ticks each millisecond.")
        .columns(2)
        .panel_height(240.0)
        .panels(panels)
}

fn errors_of(
    cases: &[Measured],
    (is_utp, transport): (bool, &str),
    (estimator, name): (Estimator, &str),
) -> Panel {
    let of_transport = cases.iter().filter(|measured| measured.case.seen.is_utp() == is_utp);
    let series = of_transport.enumerate().filter_map(|(slot, measured)| {
        let estimate = measured.estimate(estimator)?;
        let curve = distribution(estimate.errors_ms.iter().map(|error| error.abs().max(1e-3)));
        let step = curve.len().div_ceil(DRAWN).max(1);
        Some(Series::steps(measured.case.title(), curve.into_iter().step_by(step)).slot(slot).width(1.2))
    });
    Panel::new(format!("{transport}: {name}"))
        .x(Axis::new("error").unit("ms").log10().range(1e-3, 100.0))
        .y(Axis::new("part of the samples").range(0.0, 1.0))
        .all_series(series)
        .vline(super::setting::PACKET_MS, "a packet")
}

/// The paper's Fig. 3.
pub(super) fn peers(results: &Results) -> Figure {
    Figure::new("Queueing delay of many peers")
        .caption(if results.request.captured.is_some() {
            "Peers with at least 50 samples in the captures that were given."
        } else {
            "A simulated population: uplinks of 256 kbit/s to 10 Mbit/s with 50 ms to 4 s of buffer, a third limited by the \
             application, in a tenth of the houses a hidden upload. Each peer is seen for a minute under uTP, then under TCP."
        })
        .columns(2)
        .panel_height(300.0)
        .panels([distributions(&results.peers), scatter(&results.peers)])
}

/// What a logarithmic axis shows at least, in milliseconds.
const LEAST_MS: f64 = 0.1;

fn distributions(peers: &[Peer]) -> Panel {
    let means = |of: fn(&Peer) -> Option<f64>| {
        distribution(peers.iter().filter_map(of).map(|mean| mean.max(LEAST_MS)))
    };
    Panel::new("Mean delay per peer")
        .x(Axis::new("delay").unit("ms").log10())
        .y(Axis::new("part of the peers").range(0.0, 1.0))
        .series(Series::steps("uTP", means(|peer| peer.utp_ms)).slot(0))
        .series(Series::steps("TCP", means(|peer| peer.tcp_ms)).slot(1))
        .vline(100.0, "target")
}

fn scatter(peers: &[Peer]) -> Panel {
    let both = peers.iter().filter_map(Peer::both).map(|(utp, tcp)| (utp.max(LEAST_MS), tcp.max(LEAST_MS)));
    let both: Vec<(f64, f64)> = both.collect();
    let (low, high) = both.iter().fold((1.0_f64, 1000.0_f64), |(low, high), (utp, tcp)| {
        (low.min(*utp).min(*tcp), high.max(*utp).max(*tcp))
    });
    let axis = |label: &str| Axis::new(label).unit("ms").log10().range(low, high);
    let twice = [(low, 2.0 * low), (high / 2.0, high)];
    Panel::new("The same peer under both")
        .x(axis("delay under uTP"))
        .y(axis("delay under TCP"))
        .series(Series::points("a peer", both).slot(2))
        .series(Series::line("y = x", [(low, low), (high, high)]).slot(6).width(1.0))
        .series(Series::line("y = 2x", twice).slot(6).dash(Dash::Dotted).width(1.0))
}
