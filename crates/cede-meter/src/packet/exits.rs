//! By which of a machine's interfaces packets leave, where a capture does not say.
//!
//! A packet that was seen at two interfaces came by the one and left by the other, or went on from there to a third (a container's, the bridge that
//! it is on, the network's). So the one where packets are seen last is beyond some other, and has none beyond it. How many were seen at each by
//! itself tells nothing: as long as a queue between two of them grows, few of those that came have left.
//!
//! **What it leaves out.** More than four interfaces that one direction passes; packets whose times at two of them are in no order.

use crate::packet::twins::WAIT_US_MAX;
use crate::packet::view::Place;

/// Interfaces that are told apart.
const PLACES: usize = 4;
/// One is beyond another where more than so many packets are seen on the way there to each on the way back: times of two interfaces may be in the
/// wrong order now and then.
const THERE_TO_BACK: u16 = 4;
/// And as long as there are more than so many what was the way out remains it.
const THERE_TO_BACK_STILL: u16 = 2;
/// Where so many were counted, half of all are forgotten: ways change.
const COUNT_MAX: u8 = 200;
/// Packets that take by so much longer from one place to another than others do have waited between the two.
const WAIT_US_MIN: u32 = 1_000;

/// What is known of one direction.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Exits {
    places: [Place; PLACES],
    known: u8,
    /// Packets that were seen at one place and next at another.
    seen: [[u8; PLACES]; PLACES],
    exit: Option<Place>,
    /// Until when the exit is that of what else goes there, unless packets are seen to go on from it.
    taken_over_until_us: u64,
    /// How long packets took at least and at most to the exit, by the clocks of those who saw them.
    took_us: Option<[u32; 2]>,
}

impl Exits {
    /// Those of a direction of which nothing was seen yet, where others' packets leave there on their way to the same host. If its own have not
    /// within the longest time that any router keeps a packet, it has another way.
    pub(crate) fn like_others(exit: Option<Place>, now_us: u64) -> Self {
        Self { exit, taken_over_until_us: exit.map_or(0, |_| now_us + WAIT_US_MAX), ..Self::default() }
    }

    /// Whether nothing of its own tells where they leave.
    pub(crate) const fn is_taken_over(&self) -> bool {
        self.taken_over_until_us > 0
    }

    /// Notes a packet that was seen at one interface, and then at another, and when. Of less than `seen_min` nothing is believed.
    pub(crate) fn note(&mut self, places: [Place; 2], seen_min: u8, [came_us, now_us]: [u64; 2]) {
        let exit = self.exit;
        let [Some(came), Some(left)] = places.map(|place| self.number(place)) else { return };
        self.seen[came][left] += 1;
        if self.seen[came][left] >= COUNT_MAX {
            self.seen.as_flattened_mut().iter_mut().for_each(|count| *count /= 2);
        }
        self.choose(seen_min, now_us);
        if self.exit != exit {
            self.took_us = None;
        }
        if self.exit == Some(places[1]) {
            let us = u32::try_from(now_us.saturating_sub(came_us)).unwrap_or(u32::MAX);
            let [least, most] = self.took_us.unwrap_or([us; 2]);
            self.took_us = Some([least.min(us), most.max(us)]);
        }
    }

    /// Whether packets that are seen there wait before they leave, as far as was seen.
    pub(crate) fn wait_between(&self, place: Place) -> bool {
        let has_waited = self.took_us.is_some_and(|[least, most]| most - least >= WAIT_US_MIN);
        has_waited && self.exit != Some(place) && self.goes_on_from(place)
    }

    fn choose(&mut self, seen_min: u8, now_us: u64) {
        let known = 0..usize::from(self.known);
        let is_exit = |place: &usize, ratio| {
            let mut others = known.clone();
            let is_last = !others.clone().any(|other| self.is_beyond(other, *place, THERE_TO_BACK, seen_min));
            is_last && others.any(|other| self.is_beyond(*place, other, ratio, seen_min))
        };
        let before = self.exit.and_then(|exit| self.find(exit));
        let still = before.filter(|place| is_exit(place, THERE_TO_BACK_STILL));
        let came = |place: &usize| self.seen.iter().map(|from| u16::from(from[*place])).sum::<u16>();
        let exits = known.clone().filter(|place| is_exit(place, THERE_TO_BACK));
        let goes_on =
            |place: usize| known.clone().any(|other| self.is_beyond(other, place, THERE_TO_BACK, seen_min));
        if still.is_none() && now_us < self.taken_over_until_us && !before.is_some_and(goes_on) {
            return;
        }
        self.exit = still.or_else(|| exits.max_by_key(came)).map(|place| self.places[place]);
        self.taken_over_until_us = 0;
    }

    /// Whether packets go there from another place, and not back.
    fn is_beyond(&self, place: usize, other: usize, ratio: u16, seen_min: u8) -> bool {
        let (there, back) = (self.seen[other][place], self.seen[place][other]);
        there >= seen_min && u16::from(back) * ratio < u16::from(there)
    }

    /// Whether packets that are seen there leave by the exit, as others did.
    pub(crate) fn goes_on_from(&self, place: Place) -> bool {
        let exit = self.exit.and_then(|exit| self.find(exit));
        let (Some(exit), Some(from)) = (exit, self.find(place)) else { return false };
        exit == from || self.is_beyond(exit, from, THERE_TO_BACK_STILL, 1)
    }

    /// The number of a place that is known.
    fn find(&self, place: Place) -> Option<usize> {
        self.places[..usize::from(self.known)].iter().position(|known| *known == place)
    }

    /// The number of a place; one of which nothing is known has the next one.
    fn number(&mut self, place: Place) -> Option<usize> {
        let number = self.find(place).unwrap_or(self.known.into());
        *self.places.get_mut(number)? = place;
        self.known = self.known.max(number as u8 + 1);
        Some(number)
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
        exits.note([came, left].map(Place::numbered), 2, [0, 0]);
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
    fn a_queue_that_grows_between_two_hides_neither() {
        let mut exits = Exits::default();
        // From one side of a router to the bridge on the other at once, by hundreds, of which two have left by its port.
        (0..300).for_each(|_| note(&mut exits, [1, 2]));
        assert_eq!(exits.exit(), Some(Place::numbered(2)));
        (0..2).for_each(|_| note(&mut exits, [2, 3]));
        assert_eq!(exits.exit(), Some(Place::numbered(3)));
    }

    #[test]
    fn others_way_is_taken_until_another_one_is_seen() {
        let told = |note: [u32; 2], now_us: u64| {
            let mut exits = Exits::like_others(Some(Place::numbered(3)), 0);
            (0..9).for_each(|_| exits.note(note.map(Place::numbered), 2, [now_us, now_us]));
            exits.exit()
        };
        let [near, far] = [2, 3].map(|place| Some(Place::numbered(place)));
        // On the way there, there, and on from there; and not there for ten seconds.
        assert_eq!([told([1, 2], 9_000_000), told([1, 3], 1_000), told([3, 2], 1_000)], [far, far, near]);
        assert_eq!(told([1, 2], 10_000_001), near);
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
