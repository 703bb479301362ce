//! What one sees, in sentences.

use super::phases::{Phase, PhaseFlow, phases};
use super::{Subject, tables};
use crate::network::Watched;
use crate::scenario::Topology;
use cede_units::{Duration, Instant};

/// A change of share below this is none.
const NOTICEABLE: f64 = 0.02;

/// Sentences on what the run showed, with `**` around the names of flows and hard spaces before
/// units; none where flows come and go too often to
/// be told.
#[must_use]
pub fn story(subject: &Subject<'_>) -> Vec<String> {
    let phases = phases(subject);
    let several = subject.outcome.links.len() > 1;
    let link = several.then(|| subject.outcome.links[subject.main_link()].name.as_str());
    let teller =
        Teller { bottleneck: bottleneck(subject), link, end_s: subject.scenario.duration.as_secs_f64() };
    let first = phases.first().map(|phase| teller.beginning(phase));
    let later = phases.windows(2).map(|pair| teller.change(&pair[0], &pair[1]));
    first.into_iter().chain(later).chain(troubles(subject)).collect()
}

/// What went wrong with flows.
fn troubles(subject: &Subject<'_>) -> Vec<String> {
    let mut told = Vec::new();
    for flow in &subject.outcome.flows {
        if let Some(error) = &flow.error {
            told.push(format!("The connection of **{}** failed: {error}.", flow.name));
        }
        if !flow.intact {
            told.push(format!(
                "The data of **{}** arrived damaged, which a correct transport does not let happen.",
                flow.name
            ));
        }
    }
    told
}

/// The one bottleneck, where there is one.
fn bottleneck<'a>(subject: &Subject<'a>) -> Option<&'a Watched> {
    match subject.scenario.topology {
        Topology::Dumbbell(_) => subject.network.watched.first(),
        Topology::Star | Topology::Graph(_) => None,
    }
}

struct Teller<'a> {
    bottleneck: Option<&'a Watched>,
    /// The link whose queue is told of, where there are several.
    link: Option<&'a str>,
    end_s: f64,
}

impl Teller<'_> {
    fn beginning(&self, phase: &Phase) -> String {
        let active: Vec<&PhaseFlow> = phase.flows.iter().filter(|flow| flow.is_active).collect();
        let wait = self.wait(phase);
        let until = if phase.to_s < self.end_s {
            format!("Until {}", seconds(phase.to_s))
        } else {
            "From beginning to end".to_string()
        };
        match active[..] {
            [] => format!("{until} nobody sends."),
            [one] => {
                format!("{until} **{}** is alone: it carries {}{wait}.", one.name, self.rate(one, phase))
            }
            _ => {
                let carries =
                    |flow: &&PhaseFlow| format!("**{}** carries {}", flow.name, self.rate(flow, phase));
                format!("{until} {}{wait}.", list(active.iter().map(carries)))
            }
        }
    }

    fn change(&self, before: &Phase, now: &Phase) -> String {
        let changed = |wanted: bool| {
            let pairs = before.flows.iter().zip(&now.flows);
            list(
                pairs
                    .filter(|(b, n)| b.is_active != n.is_active && n.is_active == wanted)
                    .map(|(_, n)| bold(n)),
            )
        };
        let (came, left) = (changed(true), changed(false));
        let at = seconds(now.from_s);
        let event = match (came.is_empty(), left.is_empty()) {
            (false, true) => format!("At {at} {came} joins"),
            (true, false) => format!("At {at} {left} leaves"),
            (false, false) => format!("At {at} {came} joins and {left} leaves"),
            (true, true) => format!("From {at} on"),
        };
        let active: Vec<(&PhaseFlow, &PhaseFlow)> =
            before.flows.iter().zip(&now.flows).filter(|(_, n)| n.is_active).collect();
        if active.is_empty() {
            return format!("{event}, and nobody sends.");
        }
        let each = list(active.iter().map(|(before, now)| shift(before, now)));
        format!("{event}: {each}{}.", self.wait(now))
    }

    fn wait(&self, phase: &Phase) -> String {
        let Some(ms) = phase.queue_mean_ms else { return String::new() };
        let queue = self.link.map_or("the queue".to_string(), |link| format!("the queue of {link}"));
        format!("; packets wait {} in {queue} on average", milliseconds(ms))
    }

    fn rate(&self, flow: &PhaseFlow, phase: &Phase) -> String {
        let (rate, at) = (rate(flow), |s| Instant::ZERO + Duration::from_secs_f64(s));
        let Some(link) = self.bottleneck else { return rate };
        let capacity_mbps = link.mean_rate_mbps(at(phase.from_s), at(phase.to_s));
        format!("{rate}, {} of the link", tables::percent(flow.rate_mbps / capacity_mbps))
    }
}

fn shift(before: &PhaseFlow, now: &PhaseFlow) -> String {
    let verb = match now.share - before.share {
        _ if !before.is_active => "takes",
        change if change < -NOTICEABLE => "falls to",
        change if change > NOTICEABLE => "rises to",
        _ => "stays at",
    };
    let (share, rate) = (tables::percent(now.share), rate(now));
    format!("**{}** {verb} {share} of the traffic ({rate})", now.name)
}

fn rate(flow: &PhaseFlow) -> String {
    format!("{:.2}\u{a0}Mbit/s", flow.rate_mbps)
}

fn bold(flow: &PhaseFlow) -> String {
    format!("**{}**", flow.name)
}

fn milliseconds(ms: f64) -> String {
    if ms < 10.0 { format!("{ms:.1}\u{a0}ms") } else { format!("{ms:.0}\u{a0}ms") }
}

fn seconds(s: f64) -> String {
    let text = format!("{s:.1}");
    format!("{}\u{a0}s", text.strip_suffix(".0").unwrap_or(&text))
}

/// "a", "a and b", "a, b and c".
fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    match items.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_sim::LinkId;
    use cede_units::Rate;

    fn phase(from_s: f64, rates: [f64; 2], active: [bool; 2], queue: f64) -> Phase {
        let total = rates[0] + rates[1];
        let flow = |k: usize, name: &str| PhaseFlow {
            name: name.to_string(),
            is_active: active[k],
            rate_mbps: rates[k],
            share: rates[k] / total,
        };
        let flows = vec![flow(0, "a"), flow(1, "b")];
        Phase { from_s, to_s: from_s + 10.0, flows, queue_mean_ms: Some(queue) }
    }

    /// A link with these rates in Mbit/s, each from that second on.
    fn bottleneck(rates: &[(u64, u64)]) -> Watched {
        let rates = rates.iter().map(|&(s, mbit)| (Instant::from_secs(s), Rate::from_mbit(mbit))).collect();
        Watched { name: "bottleneck".to_string(), link: LinkId(0), rates, limit: None }
    }

    #[test]
    fn a_part_of_a_link_that_changes_is_one_of_what_it_had_meanwhile() {
        let link = bottleneck(&[(0, 10), (5, 30), (20, 90)]);
        let teller = Teller { bottleneck: Some(&link), link: None, end_s: 30.0 };
        let alone = phase(0.0, [10.0, 0.0], [true, false], 25.2);
        let told = spaced(&teller.beginning(&alone));
        assert!(told.contains("10.00 Mbit/s, 50 % of the link"), "20 Mbit/s on average: {told}");
    }

    /// With plain spaces between numbers and units.
    fn spaced(text: &str) -> String {
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn a_flow_that_yields_is_told_so() {
        let link = bottleneck(&[(0, 10)]);
        let teller = Teller { bottleneck: Some(&link), link: None, end_s: 30.0 };
        let alone = phase(0.0, [9.5, 0.0], [true, false], 25.2);
        let both = phase(10.0, [0.5, 9.0], [true, true], 180.0);
        assert_eq!(
            spaced(&teller.beginning(&alone)),
            "Until 10 s **a** is alone: it carries 9.50 Mbit/s, 95 % of the link; packets wait 25 ms in the queue on \
             average."
        );
        assert_eq!(
            spaced(&teller.change(&alone, &both)),
            "At 10 s **b** joins: **a** falls to 5.3 % of the traffic (0.50 Mbit/s) and **b** takes 95 % of the traffic \
             (9.00 Mbit/s); packets wait 180 ms in the queue on average."
        );
        assert!(
            spaced(&teller.change(&both, &alone)).starts_with("At 0 s **b** leaves: **a** rises to 100 %")
        );
    }

    #[test]
    fn lists_read_well() {
        let list = |items: &[&str]| super::list(items.iter().map(ToString::to_string));
        assert_eq!((list(&[]), list(&["a"])), (String::new(), "a".to_string()));
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
    }
}
