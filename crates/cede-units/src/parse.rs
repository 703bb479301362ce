//! Quantities as people write them: "10 Mbit/s", "25 ms", "64 KiB".
//!
//! A bare number where a unit is needed is refused: the reader of "rate = 10" cannot know of what.
//! k, M and G are powers of 1000; Ki, Mi and Gi powers of 1024. Rates count bits unless the unit says bytes.

use crate::{Bytes, Duration, Rate};
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

/// Why a text is not the quantity that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParseQuantityError {
    /// The text does not begin with a number that is zero or more.
    NotANumber {
        /// What stood there.
        text: String,
        /// Examples of what is allowed.
        allowed: &'static str,
    },
    /// A number without its unit.
    BareNumber {
        /// What stood there.
        text: String,
        /// The units that are allowed.
        allowed: &'static str,
    },
    /// A unit that this quantity does not have.
    UnknownUnit {
        /// The unit that stood there.
        unit: String,
        /// The units that are allowed.
        allowed: &'static str,
    },
    /// The number does not fit, or vanishes when it is rounded.
    OutOfRange {
        /// What stood there.
        text: String,
    },
}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber { text, allowed } => {
                write!(f, "\"{text}\" is no quantity; write for instance {allowed}")
            }
            Self::BareNumber { text, allowed } => write!(f, "\"{text}\" lacks its unit; allowed: {allowed}"),
            Self::UnknownUnit { unit, allowed } => write!(f, "unknown unit \"{unit}\"; allowed: {allowed}"),
            Self::OutOfRange { text } => write!(f, "\"{text}\" is out of range"),
        }
    }
}

impl core::error::Error for ParseQuantityError {}

type Unit = (&'static str, f64);

const TIME_UNITS: &[Unit] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
const TIME_ALLOWED: &str = "ns, us, ms, s, min, h (\"25 ms\")";

const RATE_UNITS: &[Unit] = &[
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("bit", 1.0),
    ("kbit", 1e3),
    ("Mbit", 1e6),
    ("Gbit", 1e9),
    ("bps", 1.0),
    ("kbps", 1e3),
    ("Mbps", 1e6),
    ("Gbps", 1e9),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("B/s", 8.0),
    ("kB/s", 8e3),
    ("MB/s", 8e6),
    ("GB/s", 8e9),
    ("KiB/s", 8192.0),
    ("MiB/s", 8_388_608.0),
    ("GiB/s", 8_589_934_592.0),
];
const RATE_ALLOWED: &str = "bit/s, kbit/s, Mbit/s, Gbit/s, kB/s, MB/s, KiB/s, MiB/s (\"10 Mbit/s\")";

const SIZE_UNITS: &[Unit] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];
const SIZE_ALLOWED: &str = "B, kB, MB, GB, KiB, MiB, GiB (\"64 KiB\")";

/// Splits "25 ms" into the number 25 and the unit "ms".
///
/// # Errors
/// [`ParseQuantityError::NotANumber`] where no number of zero or more stands in front.
pub fn split_number<'a>(text: &'a str, allowed: &'static str) -> Result<(f64, &'a str), ParseQuantityError> {
    let text = text.trim();
    let is_numeric = |c: char| c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '+');
    let end = text.find(|c| !is_numeric(c)).unwrap_or(text.len());
    let digits: String = text[..end].chars().filter(|&c| c != '_').collect();
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok((number, text[end..].trim())),
        _ => Err(ParseQuantityError::NotANumber { text: text.to_string(), allowed }),
    }
}

/// Reads `text` in one of `units` and rounds it to a whole number of the base unit.
fn parse_in(text: &str, units: &[Unit], allowed: &'static str) -> Result<u64, ParseQuantityError> {
    let (number, unit) = split_number(text, allowed)?;
    if unit.is_empty() {
        return Err(ParseQuantityError::BareNumber { text: text.trim().to_string(), allowed });
    }
    let Some(&(_, scale)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(ParseQuantityError::UnknownUnit { unit: unit.to_string(), allowed });
    };
    let value = number * scale + 0.5;
    let vanished = number > 0.0 && value < 1.0;
    if vanished || value >= 9.2e18 {
        return Err(ParseQuantityError::OutOfRange { text: text.trim().to_string() });
    }
    Ok(value as u64)
}

impl FromStr for Duration {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_in(text, TIME_UNITS, TIME_ALLOWED).map(Self::from_nanos)
    }
}

impl FromStr for Rate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_in(text, RATE_UNITS, RATE_ALLOWED).map(Self::from_bits_per_sec)
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_in(text, SIZE_UNITS, SIZE_ALLOWED).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_parse_as_people_write_them() {
        assert_eq!("25 ms".parse(), Ok(Duration::from_millis(25)));
        assert_eq!("2.5ms".parse(), Ok(Duration::from_micros(2500)));
        assert_eq!("2 min".parse(), Ok(Duration::from_secs(120)));
        assert_eq!("10 Mbit/s".parse(), Ok(Rate::from_mbit(10)));
        assert_eq!("10M".parse(), Ok(Rate::from_mbit(10)));
        assert_eq!("1.5Gbps".parse(), Ok(Rate::from_bits_per_sec(1_500_000_000)));
        assert_eq!("1 MiB/s".parse(), Ok(Rate::from_bits_per_sec(8_388_608)));
        assert_eq!("64 KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!("1_000 B".parse(), Ok(Bytes(1_000)));
    }

    #[test]
    fn a_bare_number_is_refused_with_a_hint() {
        let error = "10".parse::<Rate>().unwrap_err();
        assert!(matches!(error, ParseQuantityError::BareNumber { .. }));
        assert!(error.to_string().contains("Mbit/s"), "{error}");
    }

    #[test]
    fn wrong_units_and_impossible_numbers_are_refused() {
        assert!(matches!("10 ms".parse::<Rate>(), Err(ParseQuantityError::UnknownUnit { .. })));
        assert!(matches!("-3 ms".parse::<Duration>(), Err(ParseQuantityError::NotANumber { .. })));
        assert!(matches!("fast".parse::<Rate>(), Err(ParseQuantityError::NotANumber { .. })));
        assert!(matches!("99999999999 GB".parse::<Bytes>(), Err(ParseQuantityError::OutOfRange { .. })));
        assert!(matches!("0.1 ns".parse::<Duration>(), Err(ParseQuantityError::OutOfRange { .. })));
    }

    #[test]
    fn what_is_printed_parses_back() {
        for ns in [0, 1, 1_500, 25_000_000, 120_000_000_000] {
            let span = Duration::from_nanos(ns);
            assert_eq!(span.to_string().parse(), Ok(span));
        }
        for bits in [0, 1, 1_500_000, 10_000_000, 3_000_000_000] {
            let rate = Rate::from_bits_per_sec(bits);
            assert_eq!(rate.to_string().parse(), Ok(rate));
        }
        for octets in [0, 1, 1_500, 65_536, 750_000] {
            assert_eq!(Bytes(octets).to_string().parse(), Ok(Bytes(octets)));
        }
    }
}
