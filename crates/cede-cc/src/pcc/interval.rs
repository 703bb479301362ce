//! One monitor interval: what left in it, what became of that, and the statistics of its RTT samples.
//!
//! Source: PCC-Uspace (30c2cfe), `pcc_monitor_interval_queue.cpp` and `PccUtilityManager::Compute...`. Sums take the place of
//! its lists of samples, so an interval is a value of fixed size; they are taken relative to the first sample, which keeps
//! their digits.
//!
//! A full packet's time at the interval's rate stands where that code has 1,500 octets: rates here are of payload.
//!
//! *What it leaves out:* the lists of samples, which nothing else reads.
//! *How it was validated:* check 2: the intervals of `tests/vectors/proteus.json`.

use cede_units::{Duration, Instant, math};

/// What is asked of an interval before it is over or evaluated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Needs {
    /// Reliable samples: 4 (`kMinReliableRtt`).
    pub samples: u32,
    /// The share of reliable samples up to which it is extended, once: 0.8 (`kMinReliabilityRatio`).
    pub reliable_share: f64,
}

/// The sums of a linear regression of RTT (us) on packet number.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Sums {
    n: f64,
    origin: (f64, f64),
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Sums {
    fn take(&mut self, x: f64, y: f64) {
        if self.n == 0.0 {
            self.origin = (x, y);
        }
        let (x, y) = (x - self.origin.0, y - self.origin.1);
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    fn mean_y(&self) -> f64 {
        self.origin.1 + self.y / self.n
    }

    /// Variances of x and y, and their covariance.
    fn moments(&self) -> (f64, f64, f64) {
        let (x, y) = (self.x / self.n, self.y / self.n);
        let moment = |sum: f64, product: f64| sum / self.n - product;
        (moment(self.xx, x * x).max(0.0), moment(self.yy, y * y).max(0.0), moment(self.xy, x * y))
    }
}

/// What an interval's samples say.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Statistics {
    /// What was sent, in Mbit/s.
    pub rate_mbit: f64,
    /// From the first packet to the end of the last.
    pub duration_us: f64,
    /// The share of octets lost.
    pub loss: f64,
    /// dRTT/dt by regression.
    pub gradient: f64,
    /// The regression's root mean square error over the mean RTT.
    pub error: f64,
    /// The mean RTT.
    pub rtt_us: f64,
    /// The RTT's standard deviation.
    pub deviation_us: f64,
    /// There were two reliable samples at least: without, the last three are zero.
    pub has_rtt: bool,
}

/// Whether an interval counts, and at what stage it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Purpose {
    /// It is to be evaluated.
    pub useful: bool,
    /// Opened in STARTING.
    pub starting: bool,
}

/// See the file's head. Packets are told apart by the serial number of their transmission, which is their tag.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Interval {
    /// What was to be sent, in bit/s.
    pub rate: f64,
    pub purpose: Purpose,
    /// How long it lasts at least.
    pub length: Duration,
    /// It has been extended for want of reliable samples.
    pub extended: bool,
    first_serial: u32,
    last_serial: u32,
    first_at: Instant,
    last_at: Instant,
    sent_bytes: u64,
    acked_bytes: u64,
    lost_bytes: u64,
    /// Of these what the last loss event told.
    doubtful_bytes: u64,
    samples: u32,
    reliable: u32,
    sums: Sums,
}

impl Interval {
    /// An interval that begins with the packet `serial`.
    pub(super) fn new(rate: f64, purpose: Purpose, length: Duration, serial: u32, now: Instant) -> Self {
        Self {
            rate,
            purpose,
            length,
            extended: false,
            first_serial: serial,
            last_serial: serial,
            first_at: now,
            last_at: now,
            sent_bytes: 0,
            acked_bytes: 0,
            lost_bytes: 0,
            doubtful_bytes: 0,
            samples: 0,
            reliable: 0,
            sums: Sums::default(),
        }
    }

    pub(super) fn on_sent(&mut self, serial: u32, bytes: u32, now: Instant) {
        self.last_serial = serial;
        self.last_at = now.max(self.last_at);
        self.sent_bytes = self.sent_bytes.saturating_add(u64::from(bytes));
    }

    pub(super) const fn contains(&self, serial: u32) -> bool {
        let length = self.last_serial.wrapping_sub(self.first_serial);
        serial.wrapping_sub(self.first_serial) <= length
    }

    pub(super) const fn lose(&mut self, bytes: u32) {
        self.lost_bytes = self.lost_bytes.saturating_add(bytes as u64);
        self.doubtful_bytes = self.doubtful_bytes.saturating_add(bytes as u64);
    }

    /// A loss event begins: what was lost before it was.
    pub(super) const fn begin_event(&mut self) {
        self.doubtful_bytes = 0;
    }

    /// Some of its losses may turn out to be none.
    pub(super) const fn is_doubtful(&self) -> bool {
        self.doubtful_bytes > 0
    }

    /// The last loss event was none: its packets arrived, which gives no sample.
    pub(super) const fn absolve(&mut self) {
        self.lost_bytes = self.lost_bytes.saturating_sub(self.doubtful_bytes);
        self.acked_bytes = self.acked_bytes.saturating_add(self.doubtful_bytes);
        self.doubtful_bytes = 0;
    }

    /// A packet arrived; it gives no sample.
    pub(super) const fn acknowledge(&mut self, bytes: u32) {
        self.acked_bytes = self.acked_bytes.saturating_add(bytes as u64);
    }

    /// A packet arrived, with an RTT.
    pub(super) fn sample(&mut self, serial: u32, bytes: u32, rtt: Duration, is_reliable: bool) {
        self.acknowledge(bytes);
        self.samples = self.samples.saturating_add(1);
        if is_reliable {
            self.reliable = self.reliable.saturating_add(1);
            let x = f64::from(serial.wrapping_sub(self.first_serial));
            self.sums.take(x, rtt.as_nanos() as f64 / 1e3);
        }
    }

    /// A packet's fate will never be told: it counts as not sent.
    pub(super) const fn forget(&mut self, bytes: u32) {
        self.sent_bytes = self.sent_bytes.saturating_sub(bytes as u64);
    }

    /// A timeout: everything whose fate is open is lost by it.
    pub(super) fn time_out(&mut self) {
        let known = self.acked_bytes.saturating_add(self.lost_bytes);
        self.doubtful_bytes = self.doubtful_bytes.saturating_add(self.sent_bytes.saturating_sub(known));
        self.give_up();
    }

    /// Everything whose fate is open is lost.
    pub(super) fn give_up(&mut self) {
        self.lost_bytes = self.lost_bytes.max(self.sent_bytes.saturating_sub(self.acked_bytes));
    }

    pub(super) const fn last_at(&self) -> Instant {
        self.last_at
    }

    pub(super) const fn has_enough_samples(&self, needs: &Needs) -> bool {
        self.reliable >= needs.samples
    }

    pub(super) fn is_reliable(&self, needs: &Needs) -> bool {
        f64::from(self.reliable) > needs.reliable_share * f64::from(self.samples)
    }

    pub(super) fn has_lasted(&self, now: Instant) -> bool {
        now.since(self.first_at) >= self.length
    }

    /// The fate of every packet is known, and enough samples have come in.
    pub(super) const fn is_available(&self, needs: &Needs) -> bool {
        self.has_enough_samples(needs) && self.acked_bytes.saturating_add(self.lost_bytes) >= self.sent_bytes
    }

    /// All packets left at one time: nothing can be said of their rate.
    pub(super) fn is_invalid(&self) -> bool {
        self.first_at == self.last_at
    }

    /// `packet_bytes` is a full packet. With `by_slope` the error is that of the regression's slope per packet; without,
    /// that of the gradient, as PCC-Uspace mixes the two.
    pub(super) fn statistics(&self, packet_bytes: f64, by_slope: bool) -> Statistics {
        let packet_us = packet_bytes * 8.0 / self.rate * 1e6;
        let duration_us = self.last_at.since(self.first_at).as_nanos() as f64 / 1e3 + packet_us;
        let sent = self.sent_bytes.max(1) as f64;
        let plain = Statistics {
            rate_mbit: self.sent_bytes as f64 * 8.0 / duration_us,
            duration_us,
            loss: (self.lost_bytes as f64 / sent).min(1.0),
            ..Statistics::default()
        };
        if self.sums.n < 2.0 {
            return plain;
        }
        let (var_x, var_y, covariance) = self.sums.moments();
        let slope = if var_x > 0.0 { covariance / var_x } else { 0.0 };
        let gradient = slope / packet_us;
        let rtt_us = self.sums.mean_y();
        let b = if by_slope { slope } else { gradient };
        let residue = (var_y - 2.0 * b * covariance + b * b * var_x).max(0.0);
        let error = math::sqrt(residue) / rtt_us.max(f64::MIN_POSITIVE);
        Statistics { gradient, error, rtt_us, deviation_us: math::sqrt(var_y), has_rtt: true, ..plain }
    }
}

#[cfg(test)]
pub(in crate::pcc) mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// The interval of a vector: ten packets of 1,500 octets at 10 Mbit/s, numbered from 100.
    pub(in crate::pcc) fn interval_of(case: &serde_json::Value) -> Interval {
        let rtts: alloc::vec::Vec<u64> =
            case["rtts_us"].as_array().unwrap().iter().map(|rtt| rtt.as_u64().unwrap()).collect();
        let purpose = Purpose { useful: true, starting: false };
        let rate = case["rate"].as_f64().unwrap() * 1e6;
        let mut interval = Interval::new(rate, purpose, us(0), 100, Instant::ZERO);
        let mut lost = case["bytes_lost"].as_u64().unwrap();
        for (i, &rtt) in rtts.iter().enumerate() {
            interval.on_sent(100 + i as u32, 1500, Instant::ZERO + us(1200 * i as u64));
            if lost > 0 {
                interval.lose(1500);
                lost -= 1500;
            }
            interval.sample(100 + i as u32, 1500, us(rtt), true);
        }
        interval
    }

    pub(in crate::pcc) fn vectors() -> alloc::vec::Vec<serde_json::Value> {
        let text = include_str!("../../tests/vectors/proteus.json");
        serde_json::from_str::<serde_json::Value>(text).unwrap().as_array().unwrap().clone()
    }

    #[test]
    fn only_the_last_events_losses_are_struck_out_and_a_timeouts_among_them() {
        let purpose = Purpose { useful: true, starting: false };
        let mut interval = Interval::new(1e6, purpose, us(0), 0, Instant::ZERO);
        (0..10).for_each(|serial| interval.on_sent(serial, 1000, Instant::ZERO));
        let loss = |interval: &Interval| (interval.lost_bytes, interval.is_doubtful());
        interval.lose(1000);
        interval.begin_event();
        interval.lose(2000);
        interval.absolve();
        assert_eq!((loss(&interval), interval.acked_bytes), ((1000, false), 2000));
        interval.begin_event();
        interval.time_out();
        assert_eq!(loss(&interval), (8000, true));
        interval.absolve();
        assert_eq!((loss(&interval), interval.acked_bytes), ((1000, false), 9000));
        interval.give_up();
        assert_eq!(loss(&interval), (1000, false));
    }

    #[test]
    fn check_2_the_statistics_of_intervals_have_the_vectors_values() {
        for case in vectors() {
            let found = interval_of(&case).statistics(1500.0, false);
            let near = |found: f64, key: &str| {
                let wanted = case[key].as_f64().unwrap();
                assert!((found - wanted).abs() < 1e-6 * wanted.abs().max(1e-3), "{key}: {found}, {wanted}");
            };
            near(found.rate_mbit, "rate_mbps");
            near(found.duration_us, "duration_us");
            near(found.loss, "loss");
            near(found.gradient, "gradient");
            near(found.error, "error");
            near(found.rtt_us, "avg_rtt_us");
            near(found.deviation_us, "dev_us");
            assert_eq!(found.error >= found.gradient.abs(), case["tolerable_general"].as_bool().unwrap());
        }
    }

    #[test]
    fn by_its_slope_a_straight_ramp_has_no_error() {
        let ramp = &vectors()[1];
        let found = interval_of(ramp).statistics(1500.0, true);
        assert!(found.error < 1e-6 && found.gradient > 0.08, "{found:?}");
    }

    #[test]
    fn serial_numbers_may_wrap() {
        let purpose = Purpose { useful: true, starting: false };
        let mut interval = Interval::new(1e6, purpose, us(0), u32::MAX, Instant::ZERO);
        for serial in [u32::MAX, 0, 1] {
            interval.on_sent(serial, 1500, Instant::ZERO);
        }
        assert!(interval.contains(0) && interval.contains(1) && interval.contains(u32::MAX));
        assert!(!interval.contains(2) && !interval.contains(u32::MAX - 1));
    }
}
