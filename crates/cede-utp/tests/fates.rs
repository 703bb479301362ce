//! The contract with controllers: of every transmission one thing is told, and once: acknowledged, lost, forgotten, or under way
//! when a timeout came; but that what was given up has arrived after all.
#![allow(missing_docs)]

mod common;

use cede_cc::{Allowance, Controller, Feedback, PacketFact, Sent, Snapshot, Tag, Timeout};
use cede_units::{Duration, Stream};
use cede_utp::{Config, Mtu};
use common::{Fate, Setup, World, ms};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// What has become of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Nothing,
    Acked,
    Lost,
    Forgotten,
    TimedOut,
}

type Ledger = Arc<Mutex<BTreeMap<Tag, Told>>>;

/// A fixed window that gives every transmission a tag of its own, and writes down what it hears of each.
struct Bookkeeper {
    window_bytes: u64,
    ledger: Ledger,
}

impl Bookkeeper {
    fn book(&self, packets: &[PacketFact], told: Told) {
        let mut ledger = self.ledger.lock().unwrap();
        for packet in packets {
            let before = ledger.insert(packet.tag, told);
            // What was given up may arrive all the same, before it is sent again.
            let in_time = before == Some(Told::Nothing);
            let in_vain =
                matches!(before, Some(Told::Lost | Told::Forgotten | Told::TimedOut)) && told == Told::Acked;
            assert!(in_time || in_vain, "{before:?}, then {told:?}: {packet:?}");
        }
    }
}

impl Controller for Bookkeeper {
    fn name(&self) -> &'static str {
        "bookkeeper"
    }

    fn on_sent(&mut self, _: &Sent) -> Tag {
        let mut ledger = self.ledger.lock().unwrap();
        let tag = ledger.len() as Tag + 1;
        ledger.insert(tag, Told::Nothing);
        tag
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        self.book(feedback.acked, Told::Acked);
        self.book(feedback.lost, Told::Lost);
        self.allowance()
    }

    fn on_forgotten(&mut self, packet: &PacketFact) {
        self.book(core::slice::from_ref(packet), Told::Forgotten);
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        if !timeout.idle {
            let mut ledger = self.ledger.lock().unwrap();
            ledger
                .values_mut()
                .filter(|told| **told == Told::Nothing)
                .for_each(|told| *told = Told::TimedOut);
        }
        self.allowance()
    }

    fn on_mss(&mut self, _: u32) -> Allowance {
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.window_bytes)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }
}

/// A connection over a path that loses and delays as the seed has it, and carries what the cell says, and what its controller is told.
fn connected(seed: u64, random: &mut Stream) -> (World, Rc<Cell<usize>>, Ledger) {
    let configs = [Config::libutp(), Config::default(), Config::internet()];
    let mut config = configs[random.below(3) as usize].clone();
    (config.mtu, config.rack) = (Mtu::SEARCH_IPV4, random.chance(0.7));
    config.receive_buffer_bytes = 20_000;
    let setup = Setup { configs: [config.clone(), config], seed, ..Setup::default() };
    let ledger = Ledger::default();
    let controller = Bookkeeper { window_bytes: 3000 << random.below(5), ledger: ledger.clone() };
    let mut world = World::connected_with(&setup, Box::new(controller));
    let [loss, late] = [random.below(12), random.below(20)];
    let mut fates = Stream::named(seed, "network");
    let passes = Rc::new(Cell::new(1300));
    let now_passes = Rc::clone(&passes);
    world.judge = Box::new(move |seen| match fates.below(100) {
        // What a peer of another make has to get as it is, the network cuts.
        _ if seen.udp_bytes > now_passes.get() && !seen.may_fragment => Fate::Drop,
        draw if draw < loss => Fate::Drop,
        draw if draw < loss + late => Fate::Late(ms(fates.below(25))),
        _ => Fate::Deliver,
    });
    (world, passes, ledger)
}

/// What was told of each transmission. The writer writes in spells, so that there are tails to be probed; the reader rests in some of
/// them, until its window is shut; and the path narrows while something is under way, with a router's word or without.
fn transfer(seed: u64) -> Vec<Told> {
    let mut random = Stream::named(seed, "fates");
    let (mut world, passes, ledger) = connected(seed, &mut random);
    let mut total = 0;
    for spell in 0..10 {
        let octets = random.below(40_000);
        world.sides[0].to_write += octets;
        total += octets;
        world.sides[1].reads = random.chance(0.7);
        world.run_for(ms(random.below(40)));
        if spell == 5 {
            passes.set(900);
            if random.chance(0.5) {
                let now = world.local(0);
                world.sides[0].connection.packet_too_big(now, random.chance(0.5).then_some(900));
            }
        }
        world.run_for(ms(random.below(2000)));
    }
    world.sides[1].reads = true;
    let end = world.now + Duration::from_secs(3600);
    let arrived = world.run_until(end, |world| {
        world.sides[1].received == total && world.sides[0].connection.snapshot().unacked_bytes == 0
    });
    assert!(arrived, "seed {seed} stalls");
    ledger.lock().unwrap().values().copied().collect()
}

#[test]
fn of_every_transmission_one_thing_is_told() {
    let mut all = Vec::new();
    for seed in 0..200 {
        let told = transfer(seed);
        assert!(!told.contains(&Told::Nothing), "seed {seed}: {told:?}");
        all.extend(told);
    }
    for told in [Told::Acked, Told::Lost, Told::Forgotten, Told::TimedOut] {
        assert!(all.contains(&told), "{told:?} never happens here");
    }
}
