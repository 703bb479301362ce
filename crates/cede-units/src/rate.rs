//! Rates and amounts of data.

use crate::Duration;
use core::fmt;

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rate(u64);

/// An amount of data in octets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub u64);

impl Rate {
    /// `bits` per second.
    #[must_use]
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits)
    }

    /// `mbit` million bits per second.
    #[must_use]
    pub const fn from_mbit(mbit: u64) -> Self {
        Self(mbit * 1_000_000)
    }

    /// The rate that moves `bytes` in `span`; zero for an empty span.
    #[must_use]
    pub fn from_bytes_over(bytes: u64, span: Duration) -> Self {
        if span.is_zero() {
            return Self(0);
        }
        Self((bytes as f64 * 8e9 / span.as_nanos() as f64) as u64)
    }

    /// Bits per second.
    #[must_use]
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// Millions of bits per second, for display and metrics.
    #[must_use]
    pub fn as_mbit_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// How long `bytes` take to serialise, rounded up to a whole nanosecond so that a link never sends faster than
    /// its rate. A rate of zero never finishes: [`Duration::MAX`].
    #[must_use]
    pub const fn time_to_send(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // Up to 2.3 GB the product fits in 64 bits, whose division is several times cheaper than that of 128.
        match bytes.checked_mul(8_000_000_000) {
            Some(bit_ns) => Duration::from_nanos(bit_ns.div_ceil(self.0)),
            None => Duration::from_nanos((bytes as u128 * 8_000_000_000).div_ceil(self.0 as u128) as u64),
        }
    }

    /// The octets that pass in `span`, rounded down.
    #[must_use]
    pub const fn bytes_in(self, span: Duration) -> u64 {
        (self.0 as u128 * span.as_nanos() as u128 / 8_000_000_000) as u64
    }

    /// `self * factor`; negative factors give zero.
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

/// Picks the largest of `units` that divides `value`, so that what is printed parses back to the same value.
fn largest_exact(value: u64, units: &[(u64, &'static str)]) -> (u64, &'static str) {
    let fits = |&&(scale, _): &&(u64, &str)| value != 0 && value.is_multiple_of(scale);
    let &(scale, unit) = units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
    (value / scale, unit)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s"), (1, "bit/s")];
        let (value, unit) = largest_exact(self.0, &UNITS);
        write!(f, "{value} {unit}")
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 7] = [
            (1 << 30, "GiB"),
            (1_000_000_000, "GB"),
            (1 << 20, "MiB"),
            (1_000_000, "MB"),
            (1 << 10, "KiB"),
            (1_000, "kB"),
            (1, "B"),
        ];
        let (value, unit) = largest_exact(self.0, &UNITS);
        write!(f, "{value} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn serialisation_takes_eight_bits_an_octet_and_rounds_up() {
        assert_eq!(Rate::from_mbit(10).time_to_send(1500), Duration::from_micros(1200));
        assert_eq!(Rate::from_bits_per_sec(3).time_to_send(1), Duration::from_nanos(2_666_666_667));
        assert_eq!(Rate::from_bits_per_sec(0).time_to_send(1), Duration::MAX);
        assert_eq!(Rate::from_mbit(1).time_to_send(4_000_000_000), Duration::from_secs(32_000));
    }

    #[test]
    fn octets_in_a_span_invert_the_time_to_send() {
        assert_eq!(Rate::from_mbit(10).bytes_in(Duration::from_micros(1200)), 1500);
    }

    #[test]
    fn printed_quantities_name_an_exact_unit() {
        assert_eq!(Rate::from_mbit(10).to_string(), "10 Mbit/s");
        assert_eq!(Rate::from_bits_per_sec(1_500_000).to_string(), "1500 kbit/s");
        assert_eq!(Bytes(65_536).to_string(), "64 KiB");
        assert_eq!(Bytes(1_500).to_string(), "1500 B");
    }
}
