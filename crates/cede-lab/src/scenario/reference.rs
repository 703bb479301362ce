//! The reference of the scenario format, generated from the tables that drive its reading.

use super::metric_names::METRICS;
use super::schema::{Fallback, Kind, OptionDoc, TableDoc};
use super::swarm_tables::SWARM_TABLES;
use super::tables::TABLES;
use crate::record;
use crate::swarm::TABLE_FILES;
use core::fmt::Write;

const OPENING: &str = "\
# The scenario format

A scenario is a TOML file. Generated from the table that the parser reads by; do not edit.

* A quantity is a text with its unit: `\"10 Mbit/s\"`, `\"25 ms\"`, `\"64 KiB\"`. A bare number in its place is an error.
  k, M and G are powers of 1000; Ki, Mi and Gi powers of 1024. Rates count bits unless the unit says bytes.
* Unknown keys, wrong units and impossible values are errors, each with its line and what is allowed there.
* `-s KEY=VALUE` on the command line sets an option: `-s link.rate=\"5 Mbit/s\"`, `-s flow.0.controller.target=\"25 ms\"`
  (the first flow), `-s flow.ledbat.start=\"5 s\"` (the flow of that name), `-s 'flow.*.stop=60 s'` (every flow).
";

const SWARM_OPENING: &str = "\
# The swarm format

A swarm file is a TOML file with a table `[swarm]`; `cede run FILE` runs it. Generated from the table that the parser reads
by; do not edit.

* Quantities, errors and `-s KEY=VALUE` are those of [scenario files](scenario.md): `-s swarm.content=\"10 MB\"`,
  `-s group.leecher.count=40` (the group of that name), `-s 'group.*.uplink=5 Mbit/s'` (every group).
* Peers are named `NN-GROUP-MMMMM`: the group's place, its name, the peer's number in it.

The run folder holds:

| file | what it holds |
|---|---|
| `swarm.toml` | the file that was run; overrides are in `summary.json` |
| `summary.md`, `summary.json` | a few numbers, TCP's share being that on the uplinks, headers included, or of blocks where a group has no uplink; the second with every peer, the seed of the random numbers, the overrides, the files, of which it tells alone until the run has ended, as one that was interrupted |
| `peers.csv` | a row per peer: arrival, completion, departure, octets up and down by transport, connections, HAVEs, requests, redundant and cut octets, mean RTT estimate; what a complete leecher had down is the content, the redundant and the cut octets; of a peer that comes back, over all of its stays |
| `links.csv` | a row per uplink, and per downlink where there are any: dequeues, queue, octets by transport, drops |
| `tracker.csv` | a row per announce |
| `pieces.csv` | unless `pieces = false`, a row per piece and peer: when it was there, and its HAVEs were handed to the connections |
| `unchokes.csv` | unless `unchokes = false`, a row per unchoke and choke, peer by peer: who, whom, and whether requests waited |
| `rounds.csv` | likewise, a row per peer: rounds of its choker |
| `payloads.csv` | unless `sends = false`, a row per peer and size: data packets that left with so many octets |
| `gaps.csv` | likewise, percentiles of the time between a peer's sends of data packets |
| `rtts.csv` | unless `rtt = false`, percentiles of a peer's smoothed RTTs, one sample each time that data leave: over uTP for each packet, over TCP for all segments that leave at once |
| `queue.csv` | with `queue = true`, a row per dequeue of each uplink and downlink from `measure_from` on, in the order of time |
| `packets.pcapng` | with `packets`, or `--pcap`: the octets of packets, for `cede inspect`, `cede meter` and Wireshark |

What each column is stands [at the end](#columns-of-the-tables); `cede explain served_bytes`, and so on, says it too.
";

/// The reference of swarm files as Markdown.
#[must_use]
pub fn swarm_reference() -> String {
    let mut out = SWARM_OPENING.to_string();
    SWARM_TABLES.iter().for_each(|table| push_table(&mut out, table));
    out.push_str(
        "\n## Columns of the tables\n\nTimes are those of the simulated world, from its beginning.\n",
    );
    for table in TABLE_FILES {
        push_columns(&mut out, table.name, table.columns.iter().copied());
    }
    out
}

/// What the columns of a table mean.
fn push_columns<'a>(out: &mut String, table: &str, columns: impl Iterator<Item = (&'a str, &'a str)>) {
    let _ = write!(out, "\n`{table}`:\n\n");
    for (name, meaning) in columns {
        let _ = writeln!(out, "* `{name}`: {meaning}");
    }
}

/// The reference as Markdown: every table, key, kind of value, default, example and meaning, and every metric.
#[must_use]
pub fn reference() -> String {
    let mut out = OPENING.to_string();
    for table in TABLES {
        push_table(&mut out, table);
    }
    push_links_of_a_graph_note(&mut out);
    push_metrics(&mut out);
    out.push_str("\n## Columns of the tables\n\n`cede explain waited_ms`, and so on, says it too.\n");
    for (name, columns) in record::TABLES {
        push_columns(&mut out, name, columns.iter().map(|it| (it.name, it.meaning)));
    }
    out
}

fn push_table(out: &mut String, table: &TableDoc) {
    let heading = match table.path {
        "" | "swarm_file" => "Top of the file".to_string(),
        _ => format!("`{}`", table.heading),
    };
    // Writing into a string cannot fail.
    let _ = write!(out, "\n## {heading}\n\n{}\n", table.meaning);
    if !table.shared.is_empty() && table.path != "link" {
        out.push_str("\nBesides the keys below it has those of `[link]`.\n");
    }
    let shown: &mut dyn Iterator<Item = &OptionDoc> =
        if table.path == "link" { &mut table.options() } else { &mut table.own.iter() };
    push_options(out, shown);
}

fn push_options(out: &mut String, options: &mut dyn Iterator<Item = &OptionDoc>) {
    let mut options = options.peekable();
    if options.peek().is_none() {
        return;
    }
    out.push_str("\n| key | value | default | example | meaning |\n|---|---|---|---|---|\n");
    let mut words = String::new();
    for option in options {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            option.key,
            kind_text(&option.kind),
            fallback_text(option),
            example_text(option),
            option.meaning
        );
        push_words(&mut words, option);
    }
    out.push_str(&words);
}

/// The words of an option and their meanings, as a list behind the table.
fn push_words(out: &mut String, option: &OptionDoc) {
    if let Kind::Word { words } = option.kind {
        let _ = write!(out, "\n`{}`:\n\n", option.key);
        for (word, meaning) in words {
            let _ = writeln!(out, "* `\"{word}\"`: {meaning}");
        }
    }
}

fn kind_text(kind: &Kind) -> String {
    match kind {
        Kind::Number { min, max } => format!("number, {min} to {max}"),
        Kind::Integer { min, max } if *max == i64::MAX => format!("whole number, {min} or more"),
        Kind::Integer { min, max } => format!("whole number, {min} to {max}"),
        Kind::Size { min, max } => {
            format!("size, {} to {}", cede_units::Bytes(*min), cede_units::Bytes(*max))
        }
        Kind::Probability => "probability, 0 to 1".to_string(),
        Kind::Rate | Kind::Span => format!("{}, above 0", kind.name()),
        _ => kind.name().to_string(),
    }
}

fn literal(kind: &Kind, text: &str) -> String {
    let quoted = !kind.is_bare() && !matches!(kind, Kind::Names | Kind::Assertions);
    if quoted { format!("`\"{text}\"`") } else { format!("`{text}`") }
}

fn fallback_text(option: &OptionDoc) -> String {
    match option.fallback {
        Fallback::Required => "**required**".to_string(),
        Fallback::Value(text) => literal(&option.kind, text),
        Fallback::Absent(meaning) => meaning.to_string(),
    }
}

fn example_text(option: &OptionDoc) -> String {
    if option.example.is_empty() { String::new() } else { literal(&option.kind, option.example) }
}

fn push_links_of_a_graph_note(out: &mut String) {
    out.push_str(
        "\n## Names of links and hosts\n\n\
         | topology | links | hosts |\n|---|---|---|\n\
         | dumbbell | `bottleneck`, `return` | `FLOW-sender`, `FLOW-receiver` |\n\
         | star | `HOST-up`, `HOST-down` | the `[[host]]` entries |\n\
         | graph | the `[[link]]` names, and `NAME-back` with `both_ways` | the `[[node]]` entries |\n",
    );
}

fn push_metrics(out: &mut String) {
    out.push_str(
        "\n## Assertions\n\n\
         `METRIC < NUMBER`, with `<`, `<=`, `>` or `>=`; the metric's name says the number's unit. An assertion on a \
         flow with a `count` must hold for each replicate; `flow.NAME-1` means the first. `queue.LEAF` and `link.LEAF` \
         without a link mean the bottleneck of a dumbbell. Time before `warmup` does not count.\n\n\
         | metric | unit | meaning | formula |\n|---|---|---|---|\n",
    );
    for metric in METRICS {
        let unit = if metric.unit == "1" { "ratio" } else { metric.unit };
        let _ =
            writeln!(out, "| `{}` | {} | {} | {} |", metric.pattern(), unit, metric.summary, metric.formula);
    }
}
