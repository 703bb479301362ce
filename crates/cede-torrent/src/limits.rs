//! Limits that torrents have together.
//!
//! What is read is paid for out of one bucket, by whoever comes first. What is sent is divided: whoever used less than its part has
//! that, with room to begin again, and the others share the rest alike. The parts come to no more than the limit. Limits that torrents
//! have for themselves hold besides.

use crate::bucket::Bucket;
use crate::session::Session;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The upload limit is divided anew so often. libtorrent's way to keep a limit sends twice in that time.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What was sent since the last look counts as much as all before.
const NEWEST: f64 = 0.5;
/// Whoever used so much of its part could do with more.
const HUNGRY: f64 = 0.7;
/// Others keep what they used and a quarter of it.
const HEADROOM: f64 = 1.25;
/// And at least so much of an equal part, to begin with.
const LEAST: f64 = 0.05;

/// Limits of all torrents of a process.
pub struct Limits {
    up: Cell<Option<u64>>,
    pub(crate) down: Rc<RefCell<Bucket>>,
    members: RefCell<Vec<Member>>,
    looked: Cell<Instant>,
}

struct Member {
    session: Session,
    /// Octets that it had sent when it was looked at last, and per second then.
    sent: u64,
    rate: f64,
    /// Its part, in octets per second.
    part: f64,
}

impl Limits {
    /// Octets per second, sent and read.
    #[must_use]
    pub fn new(up: Option<u64>, down: Option<u64>) -> Self {
        let (down, members) = (Rc::new(RefCell::new(Bucket::new(down))), RefCell::default());
        Self { up: Cell::new(up), down, members, looked: Cell::new(Instant::now()) }
    }

    /// Octets per second that are sent, where there is a limit.
    #[must_use]
    pub const fn up(&self) -> Option<u64> {
        self.up.get()
    }

    /// Octets per second that are read, where there is a limit.
    #[must_use]
    pub fn down(&self) -> Option<u64> {
        self.down.borrow().rate()
    }

    /// Changes the upload limit; without one nobody is held back any more.
    pub fn set_up(&self, up: Option<u64>) {
        self.up.set(up);
        match up {
            Some(up) => self.divide(up as f64, 0.0),
            None => self.members.borrow_mut().iter_mut().for_each(Member::release),
        }
    }

    /// Changes the download limit.
    pub fn set_down(&self, down: Option<u64>) {
        self.down.borrow_mut().set_rate(down);
    }

    /// One more torrent, until it leaves.
    pub fn join(&self, session: &Session) {
        session.read_from(self.down.clone());
        let sent = session.sent();
        self.part();
        self.members.borrow_mut().push(Member { session: session.clone(), sent, rate: 0.0, part: 0.0 });
        // The newcomer has what an idle one has until the next look, or everything where it is alone.
        if let Some(up) = self.up.get() {
            self.divide(up as f64, 0.0);
        }
    }

    /// Lets go of those that have left, and so of their files.
    pub fn part(&self) {
        self.members.borrow_mut().retain(|member| !member.session.has_left());
    }

    /// Divides the upload limit by what was sent, if it is time to. To be called several times a second.
    pub fn look(&self) {
        let passed = self.looked.get().elapsed();
        let Some(up) = self.up.get().filter(|_| passed >= LOOK_EVERY) else { return };
        self.looked.set(Instant::now());
        self.divide(up as f64, passed.as_secs_f64());
    }

    fn divide(&self, up: f64, passed: f64) {
        self.part();
        let mut members = self.members.borrow_mut();
        let wants: Vec<f64> = members.iter_mut().map(|member| member.want(passed)).collect();
        for (member, part) in members.iter_mut().zip(shares(up, &wants)) {
            if (part - member.part).abs() > 0.01 * member.part {
                member.part = part;
                member.session.set_part(Some((part as u64).max(1)));
            }
        }
    }
}

impl Member {
    /// Sends as fast as it can.
    fn release(&mut self) {
        (self.rate, self.part) = (0.0, 0.0);
        self.sent = self.session.sent();
        self.session.set_part(None);
    }

    /// Octets per second that it will use, as far as is to be seen: without end where it used up its part and has no limit of its own.
    fn want(&mut self, passed: f64) -> f64 {
        if passed <= 0.0 {
            return self.part;
        }
        let sent = self.session.sent();
        let newest = (sent - std::mem::replace(&mut self.sent, sent)) as f64 / passed;
        self.rate += NEWEST * (newest - self.rate);
        let own = self.session.own_up().map_or(f64::INFINITY, |limit| limit as f64);
        if self.rate >= HUNGRY * self.part { own } else { own.min(HEADROOM * self.rate) }
    }
}

/// Divides `all` among those who want so much: nobody gets less than the smaller of its want and an equal part, and what nobody wants
/// is everybody's alike.
fn shares(all: f64, wants: &[f64]) -> Vec<f64> {
    let floor = LEAST * all / wants.len().max(1) as f64;
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by(|a, b| wants[*a].total_cmp(&wants[*b]));
    let (mut parts, mut rest) = (vec![0.0; wants.len()], all);
    for (served, at) in order.into_iter().enumerate() {
        let equal = rest / (wants.len() - served) as f64;
        parts[at] = wants[at].max(floor).min(equal);
        rest -= parts[at];
    }
    let spare = rest / wants.len().max(1) as f64;
    parts.into_iter().map(|part| part + spare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_little_has_it_and_the_rest_is_shared_alike() {
        const ALL: f64 = 1_000.0;
        assert_eq!(shares(ALL, &[f64::INFINITY]), [1_000.0]);
        assert_eq!(shares(ALL, &[f64::INFINITY, f64::INFINITY]), [500.0, 500.0]);
        assert_eq!(shares(ALL, &[100.0, f64::INFINITY, f64::INFINITY]), [100.0, 450.0, 450.0]);
        assert_eq!(shares(ALL, &[0.0, f64::INFINITY]), [25.0, 975.0], "one at rest can begin again");
        assert_eq!(shares(ALL, &[100.0, 200.0]), [450.0, 550.0]);
        assert_eq!(shares(ALL, &[]), [0.0; 0]);
        for wants in [vec![3.0, 900.0, 400.0, 2_000.0], vec![1e9; 7], vec![0.0; 3]] {
            let sum: f64 = shares(ALL, &wants).iter().sum();
            assert!((sum - ALL).abs() < 1e-6, "{wants:?}: {sum}");
        }
    }
}
