//! Room for points that one direction leaves to the next: what the system gives anew it clears first, a page at a time, which takes
//! longer than most of what is done with a point.

use crate::clocks::clock::Point;
use core::cell::RefCell;
use core::ops::{Deref, DerefMut};

/// So many rooms are in use at a time: a direction's own points, and what is held against them.
const ROOMS_MAX: usize = 8;

/// Rooms that are free.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    free: RefCell<Vec<Vec<Point>>>,
    /// Points that all of them together have room for.
    points_max: usize,
}

impl Shelf {
    /// One that keeps no more than so many octets.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { free: RefCell::default(), points_max: bytes_max / size_of::<Point>() }
    }

    /// Room for so many points, for good, unless it is put back.
    pub(crate) fn take(&self, count: usize) -> Vec<Point> {
        let mut points = self.free.borrow_mut().pop().unwrap_or_default();
        points.reserve_exact(count);
        points
    }

    /// Room for so many points that comes back by itself.
    pub(crate) fn lend(&self, count: usize) -> Lent<'_> {
        Lent { points: self.take(count), shelf: Some(self) }
    }

    /// Keeps a room for whoever comes next.
    pub(crate) fn put(&self, mut points: Vec<Point>) {
        points.clear();
        let mut free = self.free.borrow_mut();
        let kept: usize = free.iter().map(Vec::capacity).sum();
        if free.len() < ROOMS_MAX && kept + points.capacity() <= self.points_max {
            free.push(points);
        }
    }
}

/// Points in a room of a shelf's, to which it goes back.
#[derive(Debug, Default)]
pub(crate) struct Lent<'a> {
    points: Vec<Point>,
    shelf: Option<&'a Shelf>,
}

impl Deref for Lent<'_> {
    type Target = Vec<Point>;

    fn deref(&self) -> &Vec<Point> {
        &self.points
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut Vec<Point> {
        &mut self.points
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.shelf.iter().for_each(|shelf| shelf.put(core::mem::take(&mut self.points)));
    }
}

/// Points in room of their own.
impl From<Vec<Point>> for Lent<'_> {
    fn from(points: Vec<Point>) -> Self {
        Self { points, shelf: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_come_back_up_to_what_is_allowed() {
        let shelf = Shelf::new(1_000 * size_of::<Point>());
        let at = {
            let mut lent = shelf.lend(300);
            lent.push(Point { t: 1.0, x: 2.0 });
            lent.as_ptr()
        };
        let again = shelf.take(200);
        assert!(again.is_empty() && again.as_ptr() == at && again.capacity() >= 300);
        shelf.put(again);
        shelf.put(Vec::with_capacity(900));
        assert_eq!(shelf.free.borrow().len(), 1, "the other one is more than is kept");
        drop(Lent::from(vec![Point { t: 1.0, x: 2.0 }]));
        assert_eq!(shelf.free.borrow().len(), 1, "what is no shelf's goes to none");
    }
}
