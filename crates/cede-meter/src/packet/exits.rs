//! By which of a machine's interfaces packets leave, where a capture does not say.
//!
//! A packet that was seen at two interfaces came by the one and left by the other, or went on from there to a third (a container's, the bridge that
//! it is on, the network's). So the one where packets are seen last is where few are seen to go on from.
//!
//! **What it leaves out.** More than four interfaces that one direction passes; packets whose times at two of them are in no order.

use crate::packet::view::Place;

/// Interfaces that are told apart.
const PLACES: usize = 4;
/// So many packets are seen to leave before it is believed.
const LEFT_MIN: u16 = 2;
/// Of packets that leave there, more than so many to each that goes on: times of two interfaces may be in the wrong order now and then.
const LEFT_TO_CAME: u16 = 4;
/// And as long as there are more than so many it remains the way out.
const LEFT_TO_CAME_STILL: u16 = 2;
/// Where so many were counted, half of all are forgotten: ways change. A queue that grows, or programs that write what they captured at each
/// interface by itself, show hundreds at the one before the first of them is seen at the other.
const COUNT_MAX: u16 = 4_000;

#[derive(Clone, Copy, Default, Debug)]
struct Count {
    interface: Place,
    /// Packets that were seen elsewhere after they were seen here, and before.
    came: u16,
    left: u16,
}

impl Count {
    const fn is_exit(&self, left_to_came: u16) -> bool {
        self.left >= LEFT_MIN && self.came.saturating_mul(left_to_came) < self.left
    }
}

/// What is known of one direction.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Exits {
    places: [Count; PLACES],
    exit: Option<Place>,
}

impl Exits {
    /// Notes a packet that was seen at one interface, and then at another.
    pub(crate) fn note(&mut self, came: Place, left: Place) {
        if let Some(place) = self.place(came) {
            place.came += 1;
        }
        if let Some(place) = self.place(left) {
            place.left += 1;
        }
        if self.places.iter().any(|place| place.came.max(place.left) >= COUNT_MAX) {
            let halve = |place: &mut Count| (place.came, place.left) = (place.came / 2, place.left / 2);
            self.places.iter_mut().for_each(halve);
        }
        self.choose();
    }

    fn choose(&mut self) {
        let remains = |place: &Count| Some(place.interface) == self.exit && place.is_exit(LEFT_TO_CAME_STILL);
        if !self.places.iter().any(remains) {
            let exits = self.places.iter().filter(|place| place.is_exit(LEFT_TO_CAME));
            self.exit = exits.max_by_key(|place| place.left).map(|place| place.interface);
        }
    }

    /// Where an interface is counted; one of which nothing is known takes an empty place.
    fn place(&mut self, interface: Place) -> Option<&mut Count> {
        let is_empty = |place: &Count| place.came == 0 && place.left == 0;
        let known = self.places.iter().position(|place| place.interface == interface && !is_empty(place));
        let at = known.or_else(|| self.places.iter().position(is_empty))?;
        self.places[at].interface = interface;
        Some(&mut self.places[at])
    }

    /// Where packets leave, once it is sure.
    pub(crate) const fn exit(&self) -> Option<Place> {
        self.exit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(exits: &mut Exits, [came, left]: [u32; 2]) {
        exits.note(Place::numbered(came), Place::numbered(left));
    }

    #[test]
    fn packets_leave_where_they_are_seen_last() {
        let mut exits = Exits::default();
        assert_eq!(exits.exit(), None);
        // From a container by a bridge to the network; one in ten in the wrong order.
        for k in 0..200 {
            let order = if k % 10 == 9 { [[3, 2], [1, 3]] } else { [[1, 2], [2, 3]] };
            order.iter().for_each(|order| note(&mut exits, *order));
            assert_eq!(exits.exit(), (k > 0).then_some(Place::numbered(3)), "{k}");
        }
    }

    #[test]
    fn what_has_no_order_tells_nothing() {
        let mut exits = Exits::default();
        for k in 0..100_u32 {
            note(&mut exits, [k % 2, 1 - k % 2]);
            assert!(k < 3 || exits.exit().is_none(), "{k} {exits:?}");
        }
        // More places than are told apart.
        (0..100).for_each(|k| note(&mut exits, [k, 100 + k]));
    }
}
