//! What the columns of the meter's tables mean.

/// What each column of `--csv` is called, of hosts, flows (`--flows`) and samples (`--series`), and what it means.
pub const COLUMNS: [(&str, &str); 23] = [
    ("host", "Address of the host that sent, or its pseudonym."),
    ("protocols", "What it was seen with: uTP, TCP, or both."),
    ("flows", "Flows of the host."),
    ("from", "Address and port of the sender."),
    ("to", "Address and port of the receiver."),
    ("protocol", "What the flow speaks: uTP or TCP."),
    ("packets", "Packets of this direction of the flow."),
    ("samples", "Queueing delays that were told, by the estimator that was asked for."),
    ("mean_ms", "Mean over time of the queueing delay, in milliseconds: the figure to look at."),
    (
        "sample_mean_ms",
        "Mean over samples of the queueing delay, in milliseconds, as the paper has it. Who sends least when the queue is longest, as LEDBAT does, makes it too small.",
    ),
    ("p50_ms", "Median of the queueing delay over samples, in milliseconds."),
    ("p95_ms", "Queueing delay that 95 % of the samples do not exceed, in milliseconds."),
    ("p99_ms", "Queueing delay that 99 % of the samples do not exceed, in milliseconds."),
    ("max_ms", "Longest queueing delay, in milliseconds."),
    ("above_100ms_s", "Seconds with a queueing delay of more than 100 ms."),
    ("covered_s", "Seconds that samples cover: nothing can be seen while a host is silent."),
    (
        "rtt_min_ms",
        "Shortest round trip between the observer and the host, in milliseconds; empty where none was seen.",
    ),
    ("clock_hz", "Ticks a second of the host's TCP timestamps; empty where none was told."),
    (
        "drift_ppm",
        "How much faster the observer's clock runs than the sender's, in parts per million, where that could be told and was taken out.",
    ),
    ("flags", "What may be wrong with the figures, by spaces: cede explain NAME for each."),
    ("time_us", "When the packet was seen, in microseconds since 1970 (UTC)."),
    ("estimator", "How the delay was inferred: direct or echoed, as --estimator says."),
    ("queue_us", "The queueing delay, in microseconds."),
];

/// What people's tables call columns that programs' call otherwise.
const HEADINGS: [(&str, &str); 12] = [
    ("by", "protocols"),
    ("mean", "mean_ms"),
    ("by sample", "sample_mean_ms"),
    ("p50", "p50_ms"),
    ("p95", "p95_ms"),
    ("p99", "p99_ms"),
    ("max", "max_ms"),
    ("above 100 ms", "above_100ms_s"),
    ("seconds covered", "covered_s"),
    ("min RTT", "rtt_min_ms"),
    ("clock Hz", "clock_hz"),
    ("drift ppm", "drift_ppm"),
];

/// The headings of the table for people that [`COLUMNS`] does not have, and what they mean.
pub fn headings() -> impl Iterator<Item = (&'static str, &'static str)> {
    let meaning = |column| COLUMNS.iter().find(move |(name, _)| *name == column);
    HEADINGS.iter().filter_map(move |&(heading, column)| Some((heading, meaning(column)?.1)))
}
