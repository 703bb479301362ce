//! A1 to A20: what the paper says, and whether it holds.
//!
//! Where the paper gives a number, the criterion is that number with a margin that is stated; where it gives an order, the
//! order of the means over repetitions.

use super::draw::points;
use super::results::{CAPACITIES, CHURN, ONE_WAY, PER_HOST, Results, TARGETS, pair_key, single_flow_key};
use crate::known;
use crate::swarms::{Claim, Class, Measured, Shown, correlation, line_fit, show};
use cede_lab::swarm::mean;

/// A claim that one function judges.
type Judge = fn(&Results) -> (String, Option<bool>);

/// Number, place, statement, criterion, judge.
type Row = (&'static str, &'static str, &'static str, &'static str, Judge);

const CLAIMS: [Row; 20] = [
    (
        "A1",
        "2.1, Fig 1",
        "one uTP flow on 5 Mbit/s uses the whole capacity, and the delay is the target, for 25 and for 100 ms",
        "mean of what dequeues leave in the seed's queue, as the paper logs it, within 2 ms of the target, throughput at least 97 %",
        target_delay,
    ),
    (
        "A2",
        "2.2, Tab 1",
        "13 and 14: uTP both ways, always",
        "every octet between the two over uTP",
        |results| carried(results, 13, 14, 1),
    ),
    ("A3", "2.2, Tab 1", "5 and 31: TCP both ways", "every octet between the two over TCP", |results| {
        carried(results, 5, 31, 0)
    }),
    (
        "A4",
        "2.2, 3.2",
        "with 31 both connections are attempted, uTP is kept and TCP closed",
        "connections over TCP became ready and were given up as duplicates",
        race,
    ),
    ("A5", "3.2", "all 31: about 80 % of the octets over uTP", "70 to 90 %", mostly_utp),
    (
        "A6",
        "3.2, Fig 2",
        "in all homogeneous swarms about 80 % of dequeues leave a queue behind",
        "70 to 90 % in each of the three",
        busy,
    ),
    ("A7", "3.2", "all TCP: one-way queueing of up to 400 ms on average", "mean of 320 to 480 ms", tcp_queue),
    ("A8", "3.2", "uTP limits the queue, TCP fills it", "mean queue: 10 below 31 below 5", queue_order),
    (
        "A9",
        "3.2, 3.4, 4",
        "mean completion: 31 before 10 before 5; all uTP only slightly longer than 31",
        "T(31) < T(10) < T(5), and T(10) within 10 % of T(31)",
        |results| completion_order(results, 1),
    ),
    (
        "A10",
        "3.2",
        "shapes differ between repetitions, the order does not",
        "the order of the three is the same in every repetition",
        same_order,
    ),
    (
        "A11",
        "3.3, Fig 3",
        "the share of octets follows the share of peers",
        "TCP's share of octets within 10 points of its share of peers in each mix",
        share_follows,
    ),
    (
        "A12",
        "3.3",
        "uTP peers' queues grow with the presence of TCP peers",
        "mean queue of uTP peers grows from 25 to 50 to 75 % of TCP peers",
        utp_queue_grows,
    ),
    (
        "A13",
        "3.3",
        "completion of TCP and uTP peers is nearly equal in every mix, TCP peers slightly ahead",
        "within 5 %, and TCP not later by more than 1 %",
        fair_classes,
    ),
    (
        "A14",
        "3.3",
        "a little TCP shortens completion, a lot lengthens it",
        "T(25 % TCP peers) < T(10) and < T(75 % TCP peers)",
        a_little_tcp,
    ),
    (
        "A15",
        "3.4, Fig 4",
        "with TCP, completion is linear in TCP's share of octets; without, it is longer again",
        "correlation above 0.8 for shares above 1 %, and T(10) above the regression's value at 0",
        linear,
    ),
    (
        "A16",
        "3.4, Fig 4",
        "completion grows with the mean queue, which grows with TCP's share",
        "both correlations above 0.7 for shares above 1 %",
        by_queue,
    ),
    ("A17", "3.4, 5", "31 gives the shortest completion of all", "T(31) below all others", shortest),
    ("A18", "3.1", "nothing changes at 2 and 5 Mbit/s", "A9's order at each capacity", capacities),
    (
        "A19",
        "3.3, 4",
        "without preference and use in both directions TCP peers finish later than uTP peers (their study with ns-2)",
        "mean completion of TCP peers later by more than 1 % in the control swarm",
        control,
    ),
    (
        "A20",
        "5",
        "left for the future: several peers per host, targets and capacities that differ, churn",
        "no claim: what was measured",
        questions,
    ),
];

pub(super) fn claims(results: &Results) -> Vec<Claim> {
    CLAIMS
        .iter()
        .map(|&(id, place, says, criterion, judge)| Claim::new(id, place, says, criterion, judge(results)))
        .collect()
}

pub(super) fn means(runs: &[Measured], of: impl Fn(&Measured) -> f64) -> Vec<f64> {
    runs.iter().map(of).collect()
}

/// The mean over repetitions; not a number where there are none.
fn average(runs: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    if runs.is_empty() { f64::NAN } else { mean(&means(runs, of)) }
}

fn completion(runs: &[Measured]) -> f64 {
    average(runs, |run| run.mean_s)
}

fn target_delay(results: &Results) -> (String, Option<bool>) {
    let judged = [25.0, 100.0].map(|target: f64| {
        let runs = results.of(&single_flow_key(target as u32));
        let queue = average(runs, |run| run.seed_queue_ms);
        // A full packet of 1,500 octets carries 1,452.
        let used = average(runs, |run| 25e6 * 8.0 / run.mean_s / 5e6 * 1500.0 / 1452.0);
        (queue, used, (queue - target).abs() <= 2.0 && used >= 0.97)
    });
    let text = judged.map(|(queue, used, _)| {
        format!("{:.1} ms at {:.1} % of the capacity", Shown(queue), Shown(100.0 * used))
    });
    let numbers = judged.map(|(queue, ..)| queue);
    (text.join("; "), known(&numbers, judged.iter().all(|&(.., holds)| holds)))
}

/// Whether two leechers exchange everything over one transport.
fn carried(results: &Results, a: u8, b: u8, transport: usize) -> (String, Option<bool>) {
    let sizes = [10, 50, 100].map(|size| results.of(&pair_key(a, b, size)));
    let runs = sizes.iter().flat_map(|runs| runs.iter());
    let shares = shares_of_ways(runs.flat_map(|run| run.classes.iter().skip(1)), transport);
    let (name, ways) = (["TCP", "uTP"][transport], shares.len());
    let text = format!("{} % over {name}, in {ways} ways and sizes in which anything went", show(&shares, 1));
    (text, known(&shares, shares.iter().all(|&share| share > 99.9)))
}

/// The part of what leechers sent that went over a transport, in per cent. Of those that sent nothing there is none: where the seed
/// serves one of two first, the other may have nothing to give back.
fn shares_of_ways<'a>(leechers: impl Iterator<Item = &'a Class>, transport: usize) -> Vec<f64> {
    let sent = leechers.map(|class| (class.uploaded[transport], class.uploaded.iter().sum::<u64>()));
    sent.filter(|&(_, all)| all > 0).map(|(carried, all)| 100.0 * carried as f64 / all as f64).collect()
}

fn race(results: &Results) -> (String, Option<bool>) {
    let runs = results.homogeneous(31, 1);
    let sum =
        |of: &dyn Fn(&Class) -> u64| average(runs, |run| run.classes.iter().map(of).sum::<u64>() as f64);
    let duplicates = sum(&|class| class.duplicates);
    let ready = [sum(&|class| class.connections[0]), sum(&|class| class.connections[1])];
    let text = format!(
        "ends ready over TCP {:.0}, over uTP {:.0}; given up {:.0}",
        Shown(ready[0]),
        Shown(ready[1]),
        Shown(duplicates)
    );
    (text, known(&[duplicates], duplicates > 0.0))
}

fn mostly_utp(results: &Results) -> (String, Option<bool>) {
    let shares = means(results.homogeneous(31, 1), |run| 100.0 * (1.0 - run.tcp_share));
    let share = mean(&shares);
    (format!("{} %", show(&shares, 1)), known(&shares, (70.0..=90.0).contains(&share)))
}

fn busy(results: &Results) -> (String, Option<bool>) {
    let shares = [31, 10, 5].map(|mask| average(results.homogeneous(mask, 1), |run| 100.0 * run.busy_share));
    let text =
        format!("{:.0} (31), {:.0} (10), {:.0} (5) %", Shown(shares[0]), Shown(shares[1]), Shown(shares[2]));
    (text, known(&shares, shares.iter().all(|share| (70.0..=90.0).contains(share))))
}

fn tcp_queue(results: &Results) -> (String, Option<bool>) {
    let queues = means(results.homogeneous(5, 1), |run| run.queue_ms);
    (format!("{} ms", show(&queues, 0)), known(&queues, (320.0..=480.0).contains(&mean(&queues))))
}

fn queue_order(results: &Results) -> (String, Option<bool>) {
    let queue = |mask| average(results.homogeneous(mask, 1), |run| run.queue_ms);
    let [utp, both, tcp] = [queue(10), queue(31), queue(5)];
    let text = format!("{:.0} (10), {:.0} (31), {:.0} (5) ms", Shown(utp), Shown(both), Shown(tcp));
    (text, known(&[utp, both, tcp], utp < both && both < tcp))
}

fn completion_order(results: &Results, capacity: u64) -> (String, Option<bool>) {
    let [both, utp, tcp] = [31, 10, 5].map(|mask| completion(results.homogeneous(mask, capacity)));
    let text = format!("{:.0} (31), {:.0} (10), {:.0} (5) s", Shown(both), Shown(utp), Shown(tcp));
    (text, known(&[both, utp, tcp], both < utp && utp < tcp && utp < 1.1 * both))
}

fn same_order(results: &Results) -> (String, Option<bool>) {
    let swarms = [31, 10, 5].map(|mask| results.homogeneous(mask, 1));
    let repetitions = swarms.iter().map(|runs| runs.len()).min().unwrap_or(0);
    let orders: Vec<Vec<u32>> = (0..repetitions)
        .map(|repetition| {
            let mut order: Vec<(f64, u32)> = [31, 10, 5]
                .iter()
                .zip(&swarms)
                .map(|(&mask, runs)| (runs[repetition].mean_s, mask))
                .collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0));
            order.into_iter().map(|(_, mask)| mask).collect()
        })
        .collect();
    let same = orders.windows(2).all(|pair| pair[0] == pair[1]);
    (format!("{orders:?}"), (repetitions > 1).then_some(same))
}

fn mixes(results: &Results) -> [&[Measured]; 3] {
    [25, 50, 75].map(|percent| results.mixed(percent, 1))
}

fn share_follows(results: &Results) -> (String, Option<bool>) {
    let shares = mixes(results).map(|runs| average(runs, |run| 100.0 * run.tcp_share));
    let close = shares.iter().zip([25.0, 50.0, 75.0]).all(|(share, peers)| (share - peers).abs() <= 10.0);
    let text = format!(
        "{:.0}, {:.0}, {:.0} % of octets at 25, 50, 75 % of peers",
        Shown(shares[0]),
        Shown(shares[1]),
        Shown(shares[2])
    );
    (text, known(&shares, close))
}

fn utp_queue_grows(results: &Results) -> (String, Option<bool>) {
    let queues =
        mixes(results).map(|runs| average(runs, |run| run.class(2).map_or(f64::NAN, |c| c.queue_ms)));
    let text = format!("{:.0}, {:.0}, {:.0} ms", Shown(queues[0]), Shown(queues[1]), Shown(queues[2]));
    (text, known(&queues, queues[0] < queues[1] && queues[1] < queues[2]))
}

/// How much later TCP peers are complete than uTP peers, in per cent.
fn tcp_behind(runs: &[Measured]) -> f64 {
    average(runs, |run| {
        let of = |place: usize| run.class(place).map_or(f64::NAN, |class| mean(&class.completion_s));
        100.0 * (of(1) / of(2) - 1.0)
    })
}

fn fair_classes(results: &Results) -> (String, Option<bool>) {
    let behind = mixes(results).map(tcp_behind);
    let text = format!(
        "TCP peers later by {:+.1}, {:+.1}, {:+.1} %",
        Shown(behind[0]),
        Shown(behind[1]),
        Shown(behind[2])
    );
    (text, known(&behind, behind.iter().all(|late| (-5.0..=1.0).contains(late))))
}

fn a_little_tcp(results: &Results) -> (String, Option<bool>) {
    let none = completion(results.homogeneous(10, 1));
    let [few, half, most] = mixes(results).map(completion);
    let text = format!(
        "{:.0} (none), {:.0}, {:.0}, {:.0} s (25, 50, 75 %)",
        Shown(none),
        Shown(few),
        Shown(half),
        Shown(most)
    );
    (text, known(&[none, few, most], few < none && few < most))
}

fn linear(results: &Results) -> (String, Option<bool>) {
    let with_tcp: Vec<(f64, f64)> =
        points(results, 1).iter().filter(|point| point[0] > 1.0).map(|point| (point[0], point[2])).collect();
    let none = completion(results.homogeneous(10, 1));
    let Some((intercept, slope, r)) = line_fit(&with_tcp) else {
        return ("not measured".to_string(), None);
    };
    let text = format!(
        "{:.0} s + {:.2} s/%, correlation {:.2}; T(10) {:.0} s",
        Shown(intercept),
        Shown(slope),
        Shown(r),
        Shown(none)
    );
    (text, known(&[r, none], r > 0.8 && none > intercept))
}

fn by_queue(results: &Results) -> (String, Option<bool>) {
    let with_tcp: Vec<[f64; 3]> = points(results, 1).into_iter().filter(|point| point[0] > 1.0).collect();
    let time: Vec<_> = with_tcp.iter().map(|point| (point[1], point[2])).collect();
    let queue: Vec<_> = with_tcp.iter().map(|point| (point[0], point[1])).collect();
    let [time, queue] = [correlation(&time), correlation(&queue)];
    let text = format!("time by queue {:.2}, queue by share {:.2}", Shown(time), Shown(queue));
    (text, known(&[time, queue], time > 0.7 && queue > 0.7))
}

fn shortest(results: &Results) -> (String, Option<bool>) {
    let both = completion(results.homogeneous(31, 1));
    let others = [10, 5].map(|mask| completion(results.homogeneous(mask, 1)));
    let mixed = mixes(results).map(completion);
    let best = others.iter().chain(&mixed).copied().fold(f64::INFINITY, f64::min);
    (
        format!("{:.0} s; the best of the others {:.0} s", Shown(both), Shown(best)),
        known(&[both, best], both < best),
    )
}

fn capacities(results: &Results) -> (String, Option<bool>) {
    let judged = [2, 5].map(|capacity| completion_order(results, capacity));
    if results.homogeneous(31, 2).is_empty() {
        return ("not run".to_string(), None);
    }
    let text = format!("2 Mbit/s: {}; 5 Mbit/s: {}", judged[0].0, judged[1].0);
    let holds = judged.iter().map(|(_, holds)| *holds).collect::<Option<Vec<bool>>>();
    (text, holds.map(|all| all.into_iter().all(|holds| holds)))
}

fn control(results: &Results) -> (String, Option<bool>) {
    let (without, with) = (tcp_behind(results.of(ONE_WAY)), tcp_behind(results.mixed(50, 1)));
    let text =
        format!("TCP peers later by {:+.1} % (with both rules: {:+.1} %)", Shown(without), Shown(with));
    (text, known(&[without], without > 1.0))
}

fn questions(results: &Results) -> (String, Option<bool>) {
    let base = completion(results.homogeneous(31, 1));
    let against = |key| 100.0 * (completion(results.of(key)) / base - 1.0);
    let by_class = |key: &str, place: usize| {
        average(results.of(key), |run| run.class(place).map_or(f64::NAN, |class| mean(&class.completion_s)))
    };
    let text = format!(
        "beside 31: two peers per uplink {:+.0} %; targets 25/100 ms: {:.0}/{:.0} s; 1/2 Mbit/s: {:.0}/{:.0} s; churn {:+.0} %",
        Shown(against(PER_HOST)),
        Shown(by_class(TARGETS, 1)),
        Shown(by_class(TARGETS, 2)),
        Shown(by_class(CAPACITIES, 1)),
        Shown(by_class(CAPACITIES, 2)),
        Shown(against(CHURN))
    );
    (text, None)
}

#[cfg(test)]
mod tests {
    use super::super::results::Request;
    use super::*;
    use crate::swarms::assert_open;

    #[test]
    fn where_nothing_was_run_every_claim_is_open() {
        let request = Request { quick: false };
        let nothing = request.jobs().iter().map(|_| None).collect();
        assert_open(&claims(&Results::sorted(request, nothing)));
    }

    #[test]
    fn who_sent_nothing_has_no_share() {
        let sent = [[0, 5_000], [0, 0], [1_000, 3_000]];
        let classes = sent.map(|uploaded| Class { uploaded, ..Class::default() });
        assert_eq!(shares_of_ways(classes.iter(), 1), [100.0, 75.0]);
    }
}
