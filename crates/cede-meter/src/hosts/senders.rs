//! Who sent what there are samples of, in the order in which it is analysed: there may be a million flows.

use crate::clocks::{
    glance,
    stamps::{stamps_follow_time, stamps_may_follow_time},
};
use crate::config::Config;
use crate::packet::Marks;
use crate::packet::key::{Address, Side};
use crate::pseudonyms::Pseudonyms;
use crate::report::{Protocol, Report};
use crate::store::flow::Flow;
use crate::store::place::Place;
use crate::store::pool::Pool;
use crate::store::sender::Sender;
use crate::store::stock::Reader;
use core::hash::BuildHasher;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Addresses by number.
#[derive(Default)]
struct Addresses {
    hash: RandomState,
    table: HashTable<u32>,
    all: Vec<Address>,
}

impl Addresses {
    fn number(&mut self, address: Address) -> u32 {
        let Self { hash, table, all } = self;
        let hash_of = |address: Address| hash.hash_one(address);
        let found = table.entry(
            hash_of(address),
            |&number| all[number as usize] == address,
            |&number| hash_of(all[number as usize]),
        );
        let next = all.len() as u32;
        let number = *found.or_insert(next).get();
        if number == next {
            all.push(address);
        }
        number
    }

    /// Each one's place among all in order, in that of pseudonyms where they have some.
    fn ranks(mut self, pseudonyms: Option<&Pseudonyms>) -> Vec<u32> {
        if let Some(pseudonyms) = pseudonyms {
            self.all.iter_mut().for_each(|address| *address = Address::of(pseudonyms.of(address.ip())));
        }
        let mut order: Vec<u32> = (0..self.all.len() as u32).collect();
        order.sort_unstable_by_key(|&number| self.all[number as usize]);
        let mut ranks = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&number, rank)| ranks[number as usize] = rank);
        ranks
    }
}

/// Who sent what can be analysed, in order.
pub(crate) fn senders(flows: &Reader<'_>, config: &Config, report: &mut Report) -> Vec<Sender> {
    let only = config.protocol;
    let mut senders = Vec::with_capacity(2 * flows.stock.len());
    let mut addresses = Addresses::default();
    for place in flows.stock.places_near() {
        let key = flows.stock.key(place);
        if only.is_none_or(|only| (only == Protocol::Tcp) == key.is_tcp()) {
            let tells = told_at_a_glance(flows, place).unwrap_or_else(|| flows.with(place, tells_something));
            // One whose samples were given up is not silent by itself.
            if tells == [false; 2] && !flows.marks(place).has(Marks::EVICTED) {
                report.other_udp_flows += u64::from(!key.is_tcp());
                report.timeless_tcp_flows += u64::from(key.is_tcp());
            }
            for side in [0, 1].into_iter().filter(|&side| tells[side]) {
                senders.push(Sender::new(addresses.number(key.address(side)), key, place, side));
            }
        }
    }
    let ranks = addresses.ranks(config.pseudonyms.as_ref());
    for sender in &mut senders {
        *sender = sender.with_host(ranks[sender.host() as usize]);
    }
    senders.sort_unstable();
    senders
}

/// Which sides of a flow have samples that tell something, where that is known without the state of a long flow.
fn told_at_a_glance(flows: &Reader<'_>, place: Place) -> Option<[bool; 2]> {
    let (embryo, pool) = flows.short(place)?;
    if embryo.key.is_tcp() { Some(embryo.has_samples()) } else { glance::utp_sides(embryo, pool) }
}

/// As [`told_at_a_glance`].
fn tells_something(flow: &Flow, pool: &Pool) -> [bool; 2] {
    let has_samples = [0, 1].map(|side: Side| flow.sides[side].direct.len() > 0);
    let is_told = flow.key.is_tcp()
        || has_samples.contains(&true)
            && flow.is_utp(|side| stamps_follow_time(side, pool), |side| stamps_may_follow_time(side, pool));
    if is_told { has_samples } else { [false; 2] }
}
