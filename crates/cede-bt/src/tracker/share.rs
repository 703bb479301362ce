//! Places that strangers take, of which nobody gets all.
//!
//! Source: dynamic thresholds, by which switches share a buffer among ports (Choudhury and Hahne, 1998): who has fewer than are
//! free is given another. One alone gets half, two get a third each, and some are always free for who comes next.
//! How it was validated: the tests below, and those of the book ([`super::book`]).

use alloc::collections::BTreeMap;
use core::net::IpAddr;

/// Who takes places: an address of IPv4, or a network of IPv6 with 64 bits, as one host may have all of that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Holder {
    /// An address.
    V4(u32),
    /// The front of an address.
    V6(u64),
}

impl Holder {
    /// Whoever is at an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

/// Why somebody is given no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoPlace {
    /// None is free.
    Full,
    /// It has as many as are free.
    Share,
}

/// Places that are taken, and by whom.
#[derive(Clone, Debug, Default)]
pub struct Places {
    taken: usize,
    by: BTreeMap<Holder, usize>,
}

impl Places {
    /// None is taken.
    #[must_use]
    pub const fn new() -> Self {
        Self { taken: 0, by: BTreeMap::new() }
    }

    /// Whether there is one for a holder, of `most`.
    ///
    /// # Errors
    /// [`NoPlace`].
    pub fn check(&self, holder: Holder, most: usize) -> Result<(), NoPlace> {
        let free = most.saturating_sub(self.taken);
        match self.by.get(&holder) {
            _ if free == 0 => Err(NoPlace::Full),
            Some(&held) if held >= free => Err(NoPlace::Share),
            _ => Ok(()),
        }
    }

    /// A holder takes one.
    pub fn take(&mut self, holder: Holder) {
        self.taken += 1;
        *self.by.entry(holder).or_default() += 1;
    }

    /// A holder gives one back that it took.
    pub fn give_back(&mut self, holder: Holder) {
        let Some(held) = self.by.get_mut(&holder) else { return };
        self.taken -= 1;
        *held -= 1;
        if *held == 0 {
            self.by.remove(&holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_all() {
        let [one, other, third] = [1, 2, 3].map(|last| Holder::of(IpAddr::from([192, 0, 2, last])));
        let mut places = Places::new();
        let fill = |places: &mut Places, holder| {
            let mut got = 0;
            while places.check(holder, 12).is_ok() {
                places.take(holder);
                got += 1;
            }
            got
        };
        assert_eq!([fill(&mut places, one), fill(&mut places, other), fill(&mut places, third)], [6, 3, 2]);
        assert_eq!(places.check(one, 12), Err(NoPlace::Share));
        assert_eq!(places.check(one, 11), Err(NoPlace::Full));
        (0..6).for_each(|_| places.give_back(one));
        assert_eq!((places.taken, places.by.len()), (5, 2));
    }

    #[test]
    fn one_host_is_one_holder() {
        let of = |text: &str| Holder::of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
