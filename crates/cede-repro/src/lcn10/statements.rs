//! The paper's 35 statements that can be checked: its word, ours, and what ns-2 and ns-3 say.
//!
//! Ours is what the claims with the statement's number measured. The others' words are those of the runs behind
//! `tests/data/lcn10-simulators.csv` (see [`super::simulators`]); "both" are ns-2 and ns-3.

use super::claim::{Claim, Judgement};
use super::plan::FigureNumber;
use super::setting::{BASE_RTT_MS, BUFFER_PACKETS, CAPACITY_MBPS, Choices, TARGET_MS};
use cede_cc::{Params, Settings, registry};
use cede_plot::{Cell, Table, Verdict};

/// A statement of the paper.
struct Statement {
    number: u32,
    place: &'static str,
    says: &'static str,
    others: &'static str,
}

const fn statement(number: u32, place: &'static str, says: &'static str, others: &'static str) -> Statement {
    Statement { number, place, says, others }
}

const STATEMENTS: &[Statement] = &[
    statement(
        1,
        "abstract, V-A, VI",
        "LEDBAT has the lowest priority, then NICE, then LP",
        "ns-2: at N = 5 with LP of 32 bits 95.2, 86, 75 % left to TCP, at N = 10 90.7, 72-74, 63; with LP of 64 bits or a known rate NICE and LP are within a few points (71-80)",
    ),
    statement(
        2,
        "II, Fig. 1",
        "LP is a sawtooth like Reno's and infers; NICE is smooth around capacity; LEDBAT settles at its target",
        "LEDBAT and NICE: yes. LP: only with 32 bits (ns-2: eta 0.82 alone); else it collapses to 0.10, in ns-3 to 0.38",
    ),
    statement(
        3,
        "II-A",
        "LP: weight 1/8, threshold 0.15; the window goes to zero where congestion persists",
        "Linux's code: to one packet",
    ),
    statement(
        4,
        "II-B",
        "NICE: threshold 0.2, fraction 0.5; the window may be a fraction",
        "no fractions in either",
    ),
    statement(
        5,
        "III-A",
        "10 Mbit/s, 25 ms one way, 100 packets of 1500 octets, 120 s, all start together",
        "used",
    ),
    statement(6, "III-B", "F over 20 RTT = 1 s; B at each enqueue; P_l per packet sent", "used"),
    statement(7, "IV-A", "25 ms are T = 20 % of the buffer, 120 ms 100 %", "arithmetic: 20.8 %"),
    statement(
        8,
        "IV-A, Fig. 2",
        "every metric is flat in G = 1 to 10",
        "yes: 99.03-99.04 % (ns-2), 98.98-99.04 % (ns-3)",
    ),
    statement(9, "Fig. 2a", "eta is 1 for every T", "yes: 0.998 with SACK, 0.995 without"),
    statement(10, "Fig. 2b, T1", "the share of TCP is shaky for T = 2 to 18 %", "no: 99 % throughout, both"),
    statement(11, "Fig. 2b, T2", "LEDBAT yields completely for T = 18 to 65 %", "yes: 99.0 to 95.5 %"),
    statement(
        12,
        "Fig. 2b, T3",
        "the share of TCP falls to about zero at T = 100 %",
        "it falls; at 100 % it is 33 to 47 %, not zero, in both",
    ),
    statement(13, "Fig. 2b, T4", "about half each beyond T = 100 %", "yes: 45 to 58 %"),
    statement(
        14,
        "Fig. 2c, d",
        "F is 1 where the split is even and 1/2 where it is not; over short times it is lower",
        "yes",
    ),
    statement(
        15,
        "Fig. 2e",
        "the queue grows with the target",
        "up to T = 97 % (0.68 to 0.85), then it falls to 0.74",
    ),
    statement(
        16,
        "Fig. 2f",
        "losses grow, are largest at T = 100 %, and are two Renos' beyond",
        "they grow (0.147 to 0.167 %); no peak: 0.171 % at 150 %; two Renos: 0.194 %",
    ),
    statement(17, "IV-A", "T3 is narrow, small changes turn the outcome", "yes: 94 % at T = 70, 50 % at 90"),
    statement(
        18,
        "IV-B, Fig. 3",
        "gains that differ by up to ten matter little",
        "yes with the clamp (0.97-1.00), no without (0.73)",
    ),
    statement(
        19,
        "IV-B, Fig. 3",
        "F falls to 1/2 at once where targets differ",
        "yes: 0.65-0.67 at 1.1, 0.58 at 1.2, 0.536 at 2",
    ),
    statement(
        20,
        "IV-B",
        "losses appear once both targets exceed the buffer (ratio 5); unfairness stays",
        "yes: first at 5 (0.001 %), 0.008 % at 10",
    ),
    statement(
        21,
        "V-A, Fig. 4a",
        "NICE and LEDBAT use the spare capacity fully; eta of LP and Reno falls with N",
        "octets on the wire: 0.999 throughout; goodput falls by P_l alone (1.2 % at N = 10)",
    ),
    statement(
        22,
        "V-A, Fig. 4b",
        "N = 10: TCP has 90 % beside LEDBAT (1 % each); NICE 3 % each; LP 5 % each",
        "LEDBAT 0.93 %: yes. NICE 2.6-2.8 %: yes. LP 2.0 (64 bits), 2.9 (rate known), 3.7 (32 bits), 3.2 (ns-3): no",
    ),
    statement(
        23,
        "Fig. 4c",
        "F is near 1/(N+1) for LEDBAT and NICE",
        "LEDBAT 0.110 of 0.091, NICE 0.164-0.171",
    ),
    statement(
        24,
        "Fig. 4d",
        "the N are fair among themselves, NICE's less",
        "LEDBAT 1.000, NICE 0.997-1.000, LP of 32 bits 0.82",
    ),
    statement(
        25,
        "Fig. 4e",
        "queue: Reno's and LP's falls with N, NICE's rises slowly, LEDBAT's is flat",
        "LP falls (0.66 to 0.59; ns-3 0.676 to 0.636), NICE rises (0.69 to 0.74), LEDBAT flat (0.685 to 0.708); Reno's rises (0.695 to 0.767)",
    ),
    statement(
        26,
        "Fig. 4f",
        "LP loses as Reno does; the delay-based ones clearly less",
        "LP 0.3-0.43 % against Reno's 1.2 %: no; LEDBAT 0.09 %, NICE 0.13-0.17 %: yes",
    ),
    statement(
        27,
        "V-B, Fig. 5a",
        "the mix's eta is 1, Reno's falls with N; Reno's B is 2/3, the mix's reaches it from two of each on",
        "mix 0.97-0.99 (LP of 32 bits); Reno's eta does not fall, its B is 0.71 to 0.79; the mix's B is 0.24 to 0.39",
    ),
    statement(
        28,
        "Fig. 5b",
        "the mix loses less than Reno and is less fair, but fairer than in Fig. 4c",
        "yes",
    ),
    statement(
        29,
        "Fig. 5c",
        "with one flow each LP has as much as LEDBAT; with more LP dominates and F falls",
        "with LP of 32 bits 31 %, then 45-60 %; of 64 bits 5 to 21 %; rate known 7 to 15 %: LEDBAT dominates",
    ),
    statement(
        30,
        "V-B",
        "LEDBAT often forces a single LP flow into low priority",
        "yes: LP 13 to 59 % over runs with 32 bits, 2 to 7 % in the others",
    ),
    statement(
        31,
        "V-C, Fig. 6",
        "only NICE is fair under different RTTs, at lower eta",
        "roughly: at the ratio 10 Vegas 0.82-0.85, NICE 0.62 (0.83-0.87 at 2 to 5), others 0.51-0.66; eta of NICE stays at 0.99",
    ),
    statement(
        32,
        "V-C",
        "Reno and LP are unfair and inefficient",
        "unfair at 10 (0.53); phase effects in between (the long flow wins at 2, F 0.76-0.99 at 5)",
    ),
    statement(33, "V-C", "LEDBAT: eta 1, the long flow starves", "yes: 0.99, F 0.774 to 0.512"),
    statement(
        34,
        "V-A, V-B",
        "gamma = 1/tau in V-A, gamma = 1 in V-B",
        "the text contradicts itself; gamma = 1/tau used",
    ),
    statement(35, "IV-A", "25 ms are the draft's mandatory target", "since RFC 6817: 100 ms at most"),
];

/// The statements about the protocols and the setting themselves, which need no run.
pub(super) fn definitions() -> Vec<Claim> {
    let claim = |number: u32, place, says, criterion, judgement| {
        Claim::new(FigureNumber::Fig1, place, says, criterion, judgement).of(number)
    };
    let defaults = |name: &str| registry::resolve(name, &Params::new()).ok();
    vec![
        claim(
            3,
            "II-A",
            "TCP-LP smooths delays with 1/8 and has a threshold of 0.15.",
            "the defaults of the controller `lp`",
            equal(defaults("lp").as_ref(), &[("weight", 0.125), ("threshold", 0.15)]),
        )
        .note("where congestion persists its window goes to one packet; the paper says zero"),
        claim(
            4,
            "II-B",
            "NICE has a threshold of 0.2, a fraction of 0.5, and windows below one packet.",
            "the defaults of the controller `nice`",
            equal(defaults("nice").as_ref(), &[("threshold", 0.2), ("fraction", 0.5), ("max_fwnd", 48.0)]),
        ),
        claim(
            5,
            "III-A",
            "10 Mbit/s, 25 ms one way, a buffer of 100 packets, 120 s.",
            "the scenario of every figure",
            setting_is_the_papers(),
        )
        .note("besides the simultaneous starts nine repetitions have starts jittered by up to 100 ms"),
        claim(
            6,
            "III-B",
            "Short-term fairness is over 20 round trips.",
            "20 base RTTs are the second that it is measured over",
            Judgement::new(format!("{:.1} s", 20.0 * BASE_RTT_MS / 1e3), Some(20.0 * BASE_RTT_MS == 1000.0)),
        ),
        claim(
            34,
            "V-A, V-B",
            "gamma is 1/tau in V-A and 1 in V-B.",
            "the two agree in some unit of time",
            Judgement::new(
                format!("1/tau is {:.0} per s or {:.2} per ms", 1e3 / TARGET_MS, 1.0 / TARGET_MS),
                Some([1e3 / TARGET_MS, 1.0 / TARGET_MS].contains(&1.0)),
            ),
        )
        .note("gamma = 1/tau is used throughout"),
        claim(
            35,
            "IV-A",
            "25 ms are the target that the draft prescribes.",
            "the default of the controller `ledbat-draft`",
            Judgement::new(
                format!("{TARGET_MS} ms"),
                defaults("ledbat-draft").map(|set| set.duration("target").as_millis_f64() == TARGET_MS),
            ),
        )
        .note("RFC 6817: 100 ms at most"),
    ]
}

fn equal(settings: Option<&Settings>, wanted: &[(&str, f64)]) -> Judgement {
    let Some(settings) = settings else { return Judgement::open("no such controller") };
    let shown: Vec<String> =
        wanted.iter().map(|(name, _)| format!("{name} {}", settings.number(name))).collect();
    Judgement::new(shown.join(", "), Some(wanted.iter().all(|&(name, value)| settings.number(name) == value)))
}

fn setting_is_the_papers() -> Judgement {
    let duration_s = Choices::PRIMARY.duration_s;
    let found = [CAPACITY_MBPS, BASE_RTT_MS / 2.0, BUFFER_PACKETS, f64::from(duration_s)];
    let text = format!("{} Mbit/s, {} ms, {} packets, {} s", found[0], found[1], found[2], found[3]);
    Judgement::new(text, Some(found == [10.0, 25.0, 100.0, 120.0]))
}

fn verdicts(claims: &[&Claim]) -> Cell {
    let verdict = |claim: &&&Claim| claim.judgement.verdict;
    let all = |wanted: Verdict| claims.iter().all(|claim| verdict(&claim) == wanted);
    match claims {
        [] => Verdict::Open.into(),
        [one] => one.judgement.verdict.into(),
        _ if all(Verdict::Holds) => Verdict::Holds.into(),
        _ if all(Verdict::Fails) => Verdict::Fails.into(),
        _ => {
            let held = claims.iter().filter(|claim| claim.judgement.verdict == Verdict::Holds).count();
            Cell::from(format!("{held} of {} hold", claims.len()))
        }
    }
}

/// All statements, each with what the claims about it measured.
pub(super) fn table(claims: &[&Claim]) -> Table {
    let mut table = Table::new(["no.", "paper", "its word", "ours", "verdict", "ns-2 and ns-3"]);
    for statement in STATEMENTS {
        let about: Vec<&Claim> =
            claims.iter().copied().filter(|claim| claim.statement == statement.number).collect();
        let ours: Vec<&str> = about.iter().map(|claim| claim.judgement.measured.as_str()).collect();
        let ours = if ours.is_empty() { "–".to_string() } else { ours.join(" | ") };
        table.push([
            Cell::from(statement.number.to_string()),
            statement.place.into(),
            statement.says.into(),
            ours.into(),
            verdicts(&about),
            statement.others.into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_35_in_order() {
        let numbers: Vec<u32> = STATEMENTS.iter().map(|statement| statement.number).collect();
        assert_eq!(numbers, (1..=35).collect::<Vec<u32>>());
    }

    #[test]
    fn the_definitions_are_the_papers_but_for_the_contradiction() {
        for claim in definitions() {
            let wanted = if claim.statement == 34 { Verdict::Fails } else { Verdict::Holds };
            assert_eq!(claim.judgement.verdict, wanted, "{}", claim.says);
        }
    }

    #[test]
    fn several_verdicts_are_counted() {
        let claim =
            |holds| Claim::new(FigureNumber::Fig1, "", "", "", Judgement::new("x", Some(holds))).of(1);
        let claims = [claim(true), claim(false)];
        let table = table(&claims.iter().collect::<Vec<&Claim>>());
        assert!(table.to_markdown().contains("1 of 2 hold"), "{}", table.to_markdown());
        assert_eq!(table.len(), 35);
    }
}
