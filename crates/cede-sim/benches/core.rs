//! The event core alone: a dumbbell of toy hosts that keep a window of packets under way, under each scheduler.
//!
//! Prints CPU nanoseconds per packet hop (6 hops per data packet and its answer) and the ratio to the heap. Run with
//! `cargo bench -p cede-sim`.

use cede_net::{Address, Datagram, Host, HostId, Input, LinkConfig, Output, QueueLimit};
use cede_sim::schedule::{Heap, Scheduler, Tournament, Wheel};
use cede_sim::{Clock, Topology, World};
use cede_units::{Duration, Instant, Rate};
use cede_wire::{Head, Payload};

struct Toy {
    me: HostId,
    peer: HostId,
    window: u32,
}

impl Toy {
    fn packet(&self, to: HostId, payload: u32) -> Datagram {
        Datagram {
            source: Address::new(self.me, 1),
            destination: Address::new(to, 1),
            network_overhead_bytes: 20,
            head: Head::new(&[0; 20]).expect("20 octets fit"),
            payload: Payload::Pattern { start: 0, len: payload },
            ..Datagram::default()
        }
    }
}

impl Host for Toy {
    fn handle(&mut self, now: Instant, input: Input, output: &mut Output) {
        match input {
            Input::Start if self.window > 0 => {
                output.sends.extend((0..self.window).map(|_| self.packet(self.peer, 1_452)));
            }
            Input::Datagram(datagram) => {
                let answer = if datagram.payload.is_empty() { 1_452 } else { 0 };
                output.sends.push(self.packet(datagram.source.host, answer));
            }
            _ => {}
        }
        // A retransmission timer that always moves away, as those of busy connections do.
        output.wake_at = (self.window > 0).then_some(now + Duration::from_millis(500));
    }
}

fn dumbbell(flows: u32, rate: Rate) -> Topology {
    let wire = |rate, ms, limit| LinkConfig::new(rate, Duration::from_millis(ms), limit);
    let access = wire(Rate::from_mbit(10_000), 1, QueueLimit::Unlimited);
    let mut topology = Topology::new();
    for flow in 0..flows {
        for (side, middle) in [("left", "a"), ("right", "b")] {
            let name = format!("{side}-{flow:03}");
            topology.host(&name, Clock::default());
            topology.link(&format!("{name} up"), &name, middle, access);
            topology.link(&format!("{name} down"), middle, &name, access);
        }
    }
    topology.link("there", "a", "b", wire(rate, 23, QueueLimit::Unlimited));
    topology.link("back", "b", "a", wire(rate, 23, QueueLimit::Unlimited));
    topology
}

fn run<S: Scheduler>(flows: u32, rate: Rate, window: u32, seconds: u64) -> f64 {
    let topology = dumbbell(flows, rate);
    let host = |me: HostId, name: &str| {
        let sends = name.starts_with("left");
        let peer = HostId(if sends { me.0 + flows } else { me.0 - flows });
        Toy { me, peer, window: if sends { window } else { 0 } }
    };
    let mut world: World<Toy, (), S> = topology.build_with(1, (), host).expect("the topology is sound");
    let link = topology.link_id("there").expect("the link exists");
    let start = std::time::Instant::now();
    world.run_until(Instant::from_secs(seconds));
    let hops = world.link_counters(link).served_packets * 6;
    start.elapsed().as_nanos() as f64 / hops as f64
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    println!("{:<34} {:>12} {:>12} {:>12}", "ns per packet hop (median of 5)", "tournament", "wheel", "heap");
    for (flows, mbit, window, seconds) in [(11, 10, 20, 1_200), (100, 1_000, 80, 20), (1_000, 10_000, 80, 2)]
    {
        let rate = Rate::from_mbit(mbit);
        let time = |run: &dyn Fn() -> f64| median((0..5).map(|_| run()).collect());
        let tournament = time(&|| run::<Tournament>(flows, rate, window, seconds));
        let wheel = time(&|| run::<Wheel>(flows, rate, window, seconds));
        let heap = time(&|| run::<Heap>(flows, rate, window, seconds));
        let label = format!("{flows} flows, {mbit} Mbit/s");
        println!("{label:<34} {tournament:>12.1} {wheel:>12.1} {heap:>12.1}");
        println!(
            "{:<34} {:>12.2} {:>12.2} {:>12.2}",
            "  ratio to the heap",
            tournament / heap,
            wheel / heap,
            1.0
        );
    }
}
