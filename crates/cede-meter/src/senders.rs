//! Who sent what there are samples of, in the order in which it is analysed: there may be a million flows.

use crate::flow::{Flow, Marks};
use crate::key::{Address, Side};
use crate::pool::Pool;
use crate::report::{Protocol, Report};
use crate::stock::{Place, Reader};
use crate::{glance, reading, utp};
use core::hash::BuildHasher;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// A direction: from the highest bits on the rank of the address that sends, whether it is TCP, its port, the flow's place
/// (32 bits) and the side. So directions in order are those of one host, and among these of one socket, next to each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Sender(u128);

impl Sender {
    const HOST: u32 = 50;
    const PROTOCOL: u32 = 49;
    const PORT: u32 = 33;
    /// Octets that a flow takes while the report is made: both directions, and an address that no other has.
    pub(crate) const FLOW_BYTES: usize = 2 * size_of::<Self>() + 2 * size_of::<Address>();

    fn new(host: u32, flows: &Reader<'_>, place: Place, side: Side) -> Self {
        let key = flows.stock.key(place);
        let socket = u128::from(key.is_tcp()) << Self::PROTOCOL | u128::from(key.port(side)) << Self::PORT;
        Self(u128::from(host) << Self::HOST | socket | u128::from(place.bits()) << 1 | side as u128)
    }

    const fn host(self) -> u32 {
        (self.0 >> Self::HOST) as u32
    }

    pub(crate) const fn place(self) -> Place {
        Place::from_bits((self.0 >> 1) as u32)
    }

    pub(crate) const fn side(self) -> Side {
        (self.0 & 1) as Side
    }

    pub(crate) const fn protocol(self) -> Protocol {
        if self.0 >> Self::PROTOCOL & 1 == 1 { Protocol::Tcp } else { Protocol::Utp }
    }

    /// Whether both are of one host.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.host() == other.host()
    }

    /// Whether both have one clock and one base: uTP from one socket.
    pub(crate) fn shares_base_with(&self, other: &Self) -> bool {
        self.protocol() == Protocol::Utp && self.0 >> Self::PORT == other.0 >> Self::PORT
    }
}

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

    /// Each one's place among all in order.
    fn ranks(self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.all.len() as u32).collect();
        order.sort_unstable_by_key(|&number| self.all[number as usize]);
        let mut ranks = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&number, rank)| ranks[number as usize] = rank);
        ranks
    }
}

/// Who sent what can be analysed, in order.
pub(crate) fn senders(flows: &Reader<'_>, only: Option<Protocol>, report: &mut Report) -> Vec<Sender> {
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
                senders.push(Sender::new(addresses.number(key.address(side)), flows, place, side));
            }
        }
    }
    let ranks = addresses.ranks();
    for sender in &mut senders {
        let number = sender.host();
        sender.0 ^= u128::from(number ^ ranks[number as usize]) << Sender::HOST;
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
            && utp::is_utp(flow, |side| reading::stamps_follow_time(&flow.sides[side], pool));
    if is_told { has_samples } else { [false; 2] }
}
