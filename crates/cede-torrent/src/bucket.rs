//! A token bucket: what is read is paid for out of it, and out of one above that several have together.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

/// What may be read, where there is a limit.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    rate: Option<u64>,
    tokens: f64,
    at: Option<Instant>,
    above: Option<Rc<RefCell<Bucket>>>,
}

impl Bucket {
    /// So many octets per second, or as much as comes.
    pub fn new(rate: Option<u64>) -> Self {
        Self { rate, ..Self::default() }
    }

    /// The same limit, below another that holds as well.
    pub fn below(self, above: Rc<RefCell<Self>>) -> Self {
        Self { above: Some(above), ..self }
    }

    /// Whether there is a limit, here or above.
    pub fn is_limited(&self) -> bool {
        self.rate.is_some() || self.above.as_ref().is_some_and(|above| above.borrow().is_limited())
    }

    /// What there is of a limit.
    pub const fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// Changes the limit. Nothing is saved up, or owed, from before.
    pub const fn set_rate(&mut self, rate: Option<u64>) {
        (self.rate, self.tokens, self.at) = (rate, 0.0, None);
    }

    /// How many octets may be read now; none as long as it is not worth a read.
    pub fn allowance(&mut self) -> usize {
        let above = self.above.as_ref().map_or(usize::MAX, |above| above.borrow_mut().allowance());
        self.own_allowance().min(above)
    }

    fn own_allowance(&mut self) -> usize {
        let Some(rate) = self.rate else { return usize::MAX };
        let (now, burst) = (Instant::now(), (rate as f64 / 4.0).max(16_384.0));
        let passed = self.at.replace(now).map_or(0.0, |at| (now - at).as_secs_f64());
        self.tokens = (self.tokens + passed * rate as f64).min(burst);
        worth(self.tokens, rate)
    }

    pub fn spend(&mut self, octets: usize) {
        if self.rate.is_some() {
            self.tokens -= octets as f64;
        }
        if let Some(above) = &self.above {
            above.borrow_mut().spend(octets);
        }
    }
}

/// What there is, or nothing where it is less than comes in a millisecond (a block at most): whoever reads the little that came since
/// the last read does nothing else.
fn worth(tokens: f64, rate: u64) -> usize {
    let least = (rate / 1000).clamp(1, 16_384) as f64;
    if tokens < least { 0 } else { tokens as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two limits the narrower one holds, and what is read below is paid for above.
    #[test]
    fn a_limit_holds_below_another() {
        let above = Rc::new(RefCell::new(Bucket::new(Some(1_000_000_000))));
        let mut below = Bucket::new(None).below(above.clone());
        assert!(below.is_limited() && below.rate().is_none());
        above.borrow_mut().tokens = 50_000.0;
        assert_eq!(below.own_allowance(), usize::MAX);
        assert!((50_000..60_000_000).contains(&below.allowance()));
        below.set_rate(Some(2_000_000));
        (below.tokens, below.at) = (3_000.0, Some(Instant::now()));
        let allowed = below.allowance();
        assert!((3_000..50_000).contains(&allowed), "{allowed}");
        below.spend(60_000_000);
        assert_eq!((below.own_allowance(), above.borrow_mut().allowance()), (0, 0));
        below.set_rate(None);
        assert_eq!(below.allowance(), 0, "owed above");
    }

    #[test]
    fn what_is_little_is_left_until_there_is_more() {
        assert_eq!(
            [0.9, 1999.0, 2000.0, 40_000.5].map(|tokens| worth(tokens, 2_000_000)),
            [0, 0, 2000, 40_000]
        );
        assert_eq!([-5.0, 0.9, 1.0].map(|tokens| worth(tokens, 500)), [0, 0, 1]);
        assert_eq!([16_383.0, 16_384.0].map(|tokens| worth(tokens, 1_000_000_000)), [0, 16_384]);
    }
}
