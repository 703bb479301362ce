//! The nodes that ours knows of: those that have answered, eight for each distance from ours.

use super::{Id, distance, secure};
use crate::holepunch::is_private;
use crate::tracker::share::Holder;
use alloc::vec::Vec;
use cede_units::{Duration, Instant};
use core::net::SocketAddr;

/// Nodes of one distance.
pub(super) const WIDTH: usize = 8;
/// Distances: by how many bits at the beginning two ids are alike.
const DISTANCES: usize = 160;
/// A node that has said nothing for so long is asked whether it is there.
const QUIET: Duration = Duration::from_secs(15 * 60);
/// So many questions without an answer, and another one takes its place.
const FAILURES: u8 = 2;

#[derive(Clone, Copy, Debug)]
struct Contact {
    id: Id,
    address: SocketAddr,
    heard: Instant,
    failures: u8,
}

impl Contact {
    const fn is_gone(&self) -> bool {
        self.failures >= FAILURES
    }

    fn fits(&self) -> bool {
        secure::fits(&self.id, self.address.ip())
    }
}

/// Whether a contact makes room for another one, whose id follows from its address or does not (BEP 42).
fn gives_way(known: &Contact, fits: bool) -> bool {
    known.is_gone() || fits && !known.fits()
}

/// Who would be missed least: one that is gone, then one whose id does not fit.
fn least(row: &mut [Contact]) -> Option<&mut Contact> {
    row.iter_mut().min_by_key(|known| (!known.is_gone(), known.fits()))
}

#[derive(Debug)]
pub(super) struct Table {
    own: Id,
    /// By how many leading bits are those of our id.
    rows: Vec<Vec<Contact>>,
}

impl Table {
    pub fn new(own: Id) -> Self {
        Self { own, rows: alloc::vec![Vec::new(); DISTANCES] }
    }

    fn row(&self, id: &Id) -> Option<usize> {
        let gap = distance(&self.own, id);
        let at = gap.iter().position(|octet| *octet != 0)?;
        Some(at * 8 + gap[at].leading_zeros() as usize)
    }

    /// A node has answered.
    pub fn heard(&mut self, now: Instant, id: Id, address: SocketAddr) {
        let fresh = Contact { id, address, heard: now, failures: 0 };
        if self.row(&id).is_some() {
            self.drop_others_at(&fresh);
            self.place(fresh);
        }
    }

    fn place(&mut self, fresh: Contact) {
        let Some(row) = self.row(&fresh.id).map(|row| &mut self.rows[row]) else { return };
        if let Some(known) = row.iter_mut().find(|known| known.id == fresh.id) {
            // Whoever is there keeps its id: another address with it is believed once that one says nothing, or where the id is its own.
            if known.address == fresh.address || gives_way(known, fresh.fits()) {
                *known = fresh;
            }
        } else if row.len() < WIDTH {
            row.push(fresh);
        } else if let Some(old) = least(row).filter(|old| gives_way(old, fresh.fits())) {
            *old = fresh;
        }
    }

    /// Our id is another one from now on.
    pub fn rename(&mut self, own: Id) {
        let old = core::mem::replace(self, Self::new(own));
        old.rows.into_iter().flatten().for_each(|contact| self.place(contact));
    }

    /// One host of the Internet is one node: who begins again has another id, and many ids are no more than one. Of IPv6 a network of 64
    /// bits is one host: one machine may have all of that, and takes another address in it from time to time (RFC 8981).
    fn drop_others_at(&mut self, fresh: &Contact) {
        let ip = fresh.address.ip();
        let is_same = |known: &Contact| {
            known.address == fresh.address
                || !is_private(ip) && Holder::of(known.address.ip()) == Holder::of(ip)
        };
        for contacts in &mut self.rows {
            contacts.retain(|known| known.id == fresh.id || !is_same(known));
        }
    }

    /// Whether a node that is not known yet would find a place.
    pub fn wants(&self, id: &Id, address: SocketAddr) -> bool {
        let Some(row) = self.row(id).map(|row| &self.rows[row]) else { return false };
        let fits = secure::fits(id, address.ip());
        row.iter().all(|known| known.id != *id)
            && (row.len() < WIDTH || row.iter().any(|known| gives_way(known, fits)))
    }

    /// Whether there is one at this address that has not failed.
    pub fn knows(&self, address: SocketAddr) -> bool {
        self.rows.iter().flatten().any(|contact| contact.address == address && !contact.is_gone())
    }

    /// A node has not answered.
    pub fn missed(&mut self, address: SocketAddr) {
        for contact in self.rows.iter_mut().flatten().filter(|contact| contact.address == address) {
            contact.failures = contact.failures.saturating_add(1);
        }
    }

    /// The nodes nearest to a place that have not failed, nearest first.
    pub fn near(&self, target: &Id, count: usize) -> Vec<(Id, SocketAddr)> {
        let known = self.rows.iter().flatten().filter(|contact| !contact.is_gone());
        let mut near: Vec<(Id, SocketAddr)> = known.map(|contact| (contact.id, contact.address)).collect();
        near.sort_by_key(|(id, _)| distance(id, target));
        near.truncate(count);
        near
    }

    pub fn is_empty(&self) -> bool {
        self.rows.iter().flatten().all(Contact::is_gone)
    }

    /// One that is to be asked whether it is there: the one that has been silent for longest, or that has failed once.
    pub fn doubtful(&self, now: Instant) -> Option<SocketAddr> {
        let is_doubtful = |contact: &&Contact| {
            !contact.is_gone() && (contact.failures > 0 || now.since(contact.heard) >= QUIET)
        };
        let doubtful = self.rows.iter().flatten().filter(is_doubtful);
        doubtful.min_by_key(|contact| contact.heard).map(|contact| contact.address)
    }
}
