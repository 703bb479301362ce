//! The queue: so many torrents are fetched at a time, and the others wait for their turn.
//!
//! Those that are given, or are checked and were all there, do not count, nor do those that have stood still for half an hour, lest a torrent whose peers are gone keeps all
//! others waiting. Where there is no limit nobody waits, and the order is what clients are told.

use super::entry::Entry;
use super::roster::Daemon;
use super::terms::Arguments;
use crate::failure::Failure;
use serde_json::Map;
use std::rc::Rc;
use std::time::Duration;

/// Who stands still is looked for so often.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Where torrents go in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    Top,
    Up,
    Down,
    Bottom,
}

impl Move {
    /// The order that asks for it.
    pub fn named(method: &str) -> Option<Self> {
        Some(match method {
            "queue-move-top" => Self::Top,
            "queue-move-up" => Self::Up,
            "queue-move-down" => Self::Down,
            "queue-move-bottom" => Self::Bottom,
            _ => return None,
        })
    }
}

impl Daemon {
    /// All of them, in the order of the queue.
    pub fn queue(&self) -> Vec<Rc<Entry>> {
        let mut entries = self.entries();
        entries.sort_by_key(|entry| rank(entry));
        entries
    }

    /// The place behind all others.
    pub fn last_place(&self) -> u64 {
        self.entries().iter().map(|entry| entry.kept.borrow().place + 1).max().unwrap_or(0)
    }

    fn has_room(&self) -> bool {
        let fetched = |entry: &&Rc<Entry>| entry.is_under_way() && !entry.is_given() && !entry.is_stalled();
        let most = self.terms.get().queue;
        most.is_none_or(|most| self.entries().iter().filter(fetched).count() < most)
    }

    /// Begins a torrent, or has it wait for its turn. One that is all there does not wait.
    pub fn begin_in_turn(self: &Rc<Self>, entry: &Rc<Entry>) {
        if entry.is_under_way() || entry.is_given() || self.has_room() {
            self.start(entry);
        } else {
            // What it ended by before is over, as it is where it begins at once.
            entry.error.take();
            entry.waits.set(true);
            entry.note_change();
        }
    }

    /// Those that wait begin, as far as there is room.
    pub fn advance(self: &Rc<Self>) {
        if self.is_ending.get() {
            return;
        }
        for entry in self.queue().into_iter().filter(|entry| entry.waits.get()) {
            if !self.has_room() {
                break;
            }
            self.start(&entry);
        }
    }

    /// The same from time to time, as some stand still.
    pub async fn keep_advancing(self: Rc<Self>) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.advance();
        }
    }

    /// Changes the order.
    pub fn move_in_queue(self: &Rc<Self>, chosen: &[Rc<Entry>], to: Move) -> Result<Arguments, Failure> {
        let is_chosen = |entry: &Rc<Entry>| chosen.iter().any(|other| Rc::ptr_eq(other, entry));
        let order = moved(self.queue(), is_chosen, to);
        let places = (0..).zip(order);
        let changed = places.filter(|(place, entry)| entry.kept.borrow().place != *place).collect::<Vec<_>>();
        changed.iter().for_each(|(place, entry)| entry.kept.borrow_mut().place = *place);
        // All of them, whatever becomes of one.
        let recorded: Vec<_> = changed.iter().map(|(_, entry)| self.record(entry)).collect();
        recorded.into_iter().collect::<Result<(), Failure>>().map(|()| Map::new())
    }
}

/// Those with the lowest come first.
pub fn rank(entry: &Entry) -> (u64, u32) {
    (entry.kept.borrow().place, entry.id)
}

/// The same with those that are chosen elsewhere; what is chosen stays in its own order.
fn moved<T>(all: Vec<T>, is_chosen: impl Fn(&T) -> bool, to: Move) -> Vec<T> {
    match to {
        Move::Top | Move::Bottom => {
            let (chosen, others): (Vec<T>, Vec<T>) = all.into_iter().partition(is_chosen);
            let halves = if to == Move::Top { [chosen, others] } else { [others, chosen] };
            halves.into_iter().flatten().collect()
        }
        Move::Up => one_up(all, is_chosen),
        Move::Down => {
            let mut all = one_up(all.into_iter().rev().collect(), is_chosen);
            all.reverse();
            all
        }
    }
}

/// Each that is chosen changes places with the one before it, unless that is chosen too.
fn one_up<T>(mut all: Vec<T>, is_chosen: impl Fn(&T) -> bool) -> Vec<T> {
    for at in 1..all.len() {
        if is_chosen(&all[at]) && !is_chosen(&all[at - 1]) {
            all.swap(at - 1, at);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_moves_and_keeps_its_order() {
        let after = |chosen: &[u32], to| moved(vec![0, 1, 2, 3, 4], |one| chosen.contains(one), to);
        assert_eq!(after(&[3, 1], Move::Top), [1, 3, 0, 2, 4]);
        assert_eq!(after(&[3, 1], Move::Bottom), [0, 2, 4, 1, 3]);
        assert_eq!(after(&[3, 1], Move::Up), [1, 0, 3, 2, 4]);
        assert_eq!(after(&[0, 1, 4], Move::Up), [0, 1, 2, 4, 3], "nobody is before the first");
        assert_eq!(after(&[2, 3], Move::Up), [0, 2, 3, 1, 4]);
        assert_eq!(after(&[2, 3], Move::Down), [0, 1, 4, 2, 3]);
        assert_eq!(after(&[4], Move::Down), [0, 1, 2, 3, 4]);
        assert_eq!(after(&[], Move::Top), [0, 1, 2, 3, 4]);
    }
}
