//! Round trips, timed one at a time.

/// Round trips between the observer and the other end, one at a time: the time from a packet of this direction to
/// the first packet back that answers it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rtt {
    /// What an answer must reach, and when the question was seen (lower 32 bits); `None` where none is pending.
    pub pending: Option<(u32, u32)>,
    pub count: u32,
    pub min_us: u32,
    pub sum_us: u64,
    /// Sum of squares, in units of 1024 us.
    pub squares: u64,
    /// TCP: the latest clock reading of this direction.
    pub clock: u32,
    /// TCP: where the ticks begin.
    pub lead: Lead,
}

/// The greatest difference between the time of a question and the stamp of its answer, in microseconds modulo 2^32 for a
/// clock of [`rate::RATE_ASSUMED_HZ`](crate::clocks::rate::RATE_ASSUMED_HZ). An answer given at once, at the end of a tick, has it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lead {
    pub us: u32,
    /// Answers within a tick of it.
    pub count: u32,
    /// How far they are below it, together.
    below_us: u64,
}

impl Lead {
    const TICK_US: i32 = 1_000;

    /// Notes the stamp of an answer to a question that was seen at a time.
    pub(crate) fn note(&mut self, since_us: u32, clock: u32) {
        let us = since_us.wrapping_sub(clock.wrapping_mul(Self::TICK_US.unsigned_abs()));
        self.join(Self { us, count: 1, below_us: 0 });
    }

    fn join(&mut self, other: Self) {
        let above = other.us.wrapping_sub(self.us).cast_signed();
        let (mut greater, less) = if self.count == 0 || above > 0 { (other, *self) } else { (*self, other) };
        if less.count > 0 && above.unsigned_abs() <= Self::TICK_US.unsigned_abs() {
            greater.count += less.count;
            greater.below_us += less.below_us + u64::from(less.count) * u64::from(above.unsigned_abs());
        }
        *self = greater;
    }

    /// Whether these may lie anywhere within a tick, so that the greatest of them is near its end. Where acknowledgements are many in a tick, each
    /// that asks is the first one after a turn of its sender's clock, which is always at the same place within the other one's tick.
    pub(crate) fn is_spread(&self) -> bool {
        /// Standard deviations of a mean of what lies anywhere within a tick.
        const FAR: f64 = 2.0;
        let count = f64::from(self.count);
        let mean = self.below_us as f64 / count / f64::from(Self::TICK_US);
        let expected = (count - 1.0) / (2.0 * (count + 1.0));
        mean >= expected - FAR / (12.0 * count).sqrt()
    }
}

impl Rtt {
    /// Adds a round trip, unless it is none: the observer's clock was set back meanwhile.
    pub(crate) fn add(&mut self, us: u32) -> Option<u32> {
        if us.cast_signed() < 0 {
            return None;
        }
        self.min_us = if self.count == 0 { us } else { self.min_us.min(us) };
        self.count += 1;
        self.sum_us += u64::from(us);
        self.squares += u64::from(us >> 10).pow(2);
        Some(us)
    }

    /// The same, where nothing is waited for, and what comes next may ask.
    pub(crate) const fn without_question(self) -> Self {
        Self { pending: None, clock: 0, ..self }
    }

    /// What is waited for alone.
    pub(crate) fn without_trips(self) -> Self {
        Self { pending: self.pending, clock: self.clock, ..Self::default() }
    }

    /// The mean over time, in microseconds: of one trip at a time, long ones are as rare as they are long. `None` for few.
    pub(crate) fn over_time_us(&self) -> Option<f64> {
        const FEW: u32 = 20;
        let mean = self.sum_us as f64 / f64::from(self.count.max(1));
        let weighted = self.squares as f64 * 1024.0 * 1024.0 / self.sum_us.max(1) as f64;
        (self.count >= FEW).then(|| mean.max(weighted))
    }

    /// Puts what was timed later behind what is here.
    pub(crate) fn append(&mut self, later: &Self) {
        self.min_us = match (self.count, later.count) {
            (_, 0) => self.min_us,
            (0, _) => later.min_us,
            _ => self.min_us.min(later.min_us),
        };
        self.lead.join(later.lead);
        self.count += later.count;
        self.sum_us += later.sum_us;
        self.squares += later.squares;
    }
}
