//! The passive meter where the observer's own uplink is full as well, and packets are seen behind its queue, as at a router: what a receiver
//! says passes the observer up to a second after the packet came that it is about.

use cede_lab::meter::PacketTap;
use cede_lab::record::{Octets, address};
use cede_lab::run::{Run, Watcher};
use cede_lab::scenario::Scenario;
use cede_meter::{Config, Estimator, Flags, FlowReport, Meter, Protocol, Visitor};
use cede_net::{Datagram, HostId};
use cede_repro::bufferbloat::measure::{DOWNLINK, Log, Measured, WAY, compare};
use cede_repro::bufferbloat::setting::{Case, Hidden, PACKET_MS, Seen, UPLINK_MBPS};
use cede_units::Instant;
use cede_wire::link::LinkType;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

const CUBIC: &str = "controller = \"cubic\"\nprotocol = \"tcp\"";
const CHIRP: &str = "controller = \"reno\"\nprotocol = \"tcp\"\n\
                     traffic = { kind = \"chirp\", period = \"12 s\", max = \"256 packets\" }";
const HEARTBEAT: &str = "traffic = { kind = \"heartbeat\", period = \"200 ms\", bytes = \"100 B\" }";
const UTP: &str = "";

/// A flow, once the one that is seen has met an empty queue.
fn beside(from: &str, to: &str, what: &str) -> String {
    format!(
        "[[flow]]\nname = \"{from}-{to}\"\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"5.13 s\"\n{what}\n"
    )
}

/// Two hosts with uplinks of 1 Mbit/s and a second of buffer, one of which sends to the other, by a clock that gains so much.
fn scenario(seen: &str, others: &[String], seconds: u32, drift_ppm: i32) -> Scenario {
    let others = others.concat();
    let text = format!(
        "name = \"own-queue\"\nduration = \"{seconds} s\"\n\n[topology]\nkind = \"star\"\n\n[uplink]\nrate = \"{UPLINK_MBPS} Mbit/s\"\n\
         delay = \"10 ms\"\nbuffer = \"1 s\"\n\n[downlink]\nrate = \"100 Mbit/s\"\ndelay = \"10 ms\"\n\
         buffer = \"1000 packets\"\n\n[[host]]\nname = \"elsewhere\"\n\n[[host]]\nname = \"observer\"\n\n[[host]]\n\
         name = \"remote\"\nclock_offset = \"-3 s\"\nclock_drift = \"{drift_ppm} ppm\"\n\n\
         [[flow]]\nname = \"seen\"\nfrom = \"remote\"\nto = \"observer\"\nstart = \"1 s\"\n{seen}\n\n{others}\n\
         [record]\nlinks = [\"remote-up\"]\n"
    );
    Scenario::parse("own-queue", &text).expect("it is sound")
}

/// Packets that passed between the two.
type Passed = Rc<RefCell<Vec<(Instant, Vec<u8>)>>>;

/// Where the observer sees them.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    /// Between its uplink and its downlink.
    Router,
    /// Before its uplink's queue.
    Host,
}

struct Seeing {
    place: Place,
    observer: HostId,
    remote: HostId,
    octets: Octets,
    passed: Passed,
}

impl PacketTap for Seeing {
    fn packet(&mut self, at: Instant, host: HostId, outbound: bool, datagram: &Datagram) {
        let is_answer = !outbound && host == self.remote && datagram.source.host == self.observer;
        let is_seen = match self.place {
            Place::Router => is_answer || !outbound && host == self.observer,
            Place::Host => host == self.observer,
        };
        if !is_seen {
            return;
        }
        let octets = self.octets.of(datagram);
        // Behind the observer's uplink are its propagation and the remote host's downlink, which is never full.
        let since = WAY + DOWNLINK.time_to_send(octets.len() as u64);
        let at = if is_answer { at.saturating_sub(since) } else { at };
        self.passed.borrow_mut().push((at, octets.to_vec()));
    }
}

struct Always;

impl Watcher for Always {
    fn progress(&mut self, _: Instant, _: Instant) -> bool {
        true
    }
}

#[derive(Default)]
struct Flows(Vec<FlowReport>);

impl Visitor for Flows {
    fn flow(&mut self, flow: &FlowReport) {
        self.0.push(flow.clone());
    }
}

/// What the meter says of all flows, and of the remote host's uTP beside the log of its queue.
fn watch(seen: Seen, scenario: &Scenario, place: Place) -> (Measured, Vec<FlowReport>) {
    let run = Run::new(scenario).without_tape();
    let [observer, remote] =
        ["observer", "remote"].map(|name| run.network().topology.host_id(name).expect("a host"));
    let uplink = run.network().watched.iter().position(|watched| watched.name == "remote-up").expect("it");
    let (passed, truth) = (Passed::default(), Rc::default());
    let seeing = Seeing { place, observer, remote, octets: Octets::default(), passed: Rc::clone(&passed) };
    let log = Log { uplink, truth: Rc::clone(&truth) };
    run.tap(Box::new(seeing)).tap_queues(Box::new(log)).go(&mut Always).expect("it runs");
    let mut passed = passed.take();
    passed.sort_by_key(|packet| packet.0);
    let mut meter = Meter::new(Config::default());
    for (at, octets) in passed {
        meter.packet(at.as_nanos(), LinkType::RAW, &octets, octets.len() as u32);
    }
    let mut flows = Flows::default();
    let _ = meter.report_to(&mut flows);
    let measured =
        compare(Case { seen, hidden: Hidden::Nothing }, &meter, IpAddr::V4(address(remote)), truth.take());
    (measured, flows.0)
}

/// What else is in the observer's uplink, and in the remote host's.
fn companies() -> Vec<(String, Vec<String>)> {
    let own = [
        ("nothing", vec![]),
        ("uTP", vec![beside("observer", "elsewhere", UTP)]),
        ("uTP back", vec![beside("observer", "remote", UTP)]),
        ("CUBIC", vec![beside("observer", "elsewhere", CUBIC)]),
        ("chirp", vec![beside("observer", "elsewhere", CHIRP)]),
        (
            "CUBIC and uTP back",
            vec![beside("observer", "elsewhere", CUBIC), beside("observer", "remote", UTP)],
        ),
    ];
    let hidden = [("nothing", None), ("chirp", Some(CHIRP)), ("CUBIC", Some(CUBIC))];
    let both = |(own, flows): &(&str, Vec<String>)| {
        hidden.map(|(name, what)| {
            let hidden = what.map(|what| beside("remote", "elsewhere", what));
            (format!("own {own}, hidden {name}"), flows.iter().cloned().chain(hidden).collect())
        })
    };
    own.iter().flat_map(both).collect()
}

#[test]
fn no_clock_is_taken_to_be_set_and_what_is_said_is_of_the_packet_that_it_is_about() {
    for (seen, what) in
        [(Seen::UtpBacklogged, UTP), (Seen::UtpHeartbeat, HEARTBEAT), (Seen::TcpBacklogged, CUBIC)]
    {
        for (company, others) in companies() {
            let told = format!("{}, {company}", seen.title());
            let (measured, flows) = watch(seen, &scenario(what, &others, 90, 0), Place::Router);
            assert!(flows.iter().all(|flow| !flow.flags.has(Flags::CLOCK_STEP)), "{told}: {flows:?}");
            // What begins in a queue, as uTP back beside hidden CUBIC, has another base.
            if !seen.is_utp() || company.contains("back, hidden CUBIC") {
                continue;
            }
            for estimator in [Estimator::Direct, Estimator::Echoed] {
                let estimate = measured.estimate(estimator).expect("samples");
                let errors_ms = [0.5, 0.95].map(|part| estimate.error_ms(part));
                println!("{told}: {estimator:?} {} {errors_ms:?}", estimate.samples.len());
                assert!(errors_ms[1] <= PACKET_MS, "{told}: {estimator:?} {errors_ms:?}");
            }
            assert!(
                flows
                    .iter()
                    .filter(|flow| flow.protocol == Protocol::Utp)
                    .all(|flow| !flow.flags.has(Flags::ESTIMATORS_DISAGREE)),
                "{told}"
            );
        }
    }
}

/// A queue in front of what the observer answers, before it sees that or behind, is none of what runs evenly.
#[test]
fn no_other_drift_is_told_of_less_than_a_minute_than_there_is() {
    let (mut told, mut runs) = (0, 0);
    for (seen, what) in
        [(Seen::UtpBacklogged, UTP), (Seen::UtpHeartbeat, HEARTBEAT), (Seen::TcpBacklogged, CUBIC)]
    {
        for (company, others) in companies() {
            for (place, ppm) in
                [(Place::Router, -100), (Place::Router, 0), (Place::Host, -100), (Place::Host, 0)]
            {
                let (_, flows) = watch(seen, &scenario(what, &others, 40, ppm), place);
                runs += 1;
                for flow in flows.iter().filter(|flow| flow.drift_ppm.is_some()) {
                    // What the observer sends is by its own clock.
                    let is_remote = flow.source.address == IpAddr::V4(address(HostId(2)));
                    let true_ppm = if is_remote { f64::from(-ppm) } else { 0.0 };
                    let found = flow.drift_ppm.unwrap_or_default();
                    assert!((found - true_ppm).abs() < 5.0, "{company} {place:?} {ppm}: {flow:?}");
                    told += 1;
                }
            }
        }
    }
    println!("{told} told in {runs} runs");
    assert!(told >= 20, "{told}");
}
