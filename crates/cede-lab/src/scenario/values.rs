//! From a value of the document to a value with a type, as the option's kind asks.

use super::document::{Node, Value, shortened};
use super::flow::{Distribution, ProtocolKind, TcpAck, TrafficKind, UtpAck};
use super::model::{Buffer, PieKind, QueueKind, Routing, TopologyKind};
use super::schema::{Kind, PACKETS_MAX, RATE_MAX_BITS, SIZE_MAX_BYTES, TIME_MAX_HOURS};
use super::words::Words;
use cede_units::{Bytes, Duration, ParseQuantityError, Rate};

/// What is wrong with a value: the rest of a sentence that begins with the option's key.
pub(crate) type Complaint = String;

/// A type that options are read into.
pub(crate) trait FromNode: Sized {
    /// The value in this node, or what is wrong with it. `kind` holds the limits.
    fn from_node(node: &Node, kind: &Kind) -> Result<Self, Complaint>;
}

/// A clock's offset in nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct OffsetNs(pub i64);
/// A clock's drift in parts per billion.
#[derive(Clone, Copy)]
pub(crate) struct DriftPpb(pub i64);
/// A number of packets.
#[derive(Clone, Copy)]
pub(crate) struct Packets(pub u64);

fn text_of(node: &Node) -> Result<&str, Complaint> {
    match &node.value {
        Value::Text(text) => Ok(text),
        Value::Integer(number) => Err(format!("lacks its unit: {number}")),
        Value::Number(number) => Err(format!("lacks its unit: {number}")),
        _ => Err(format!("is {}", node.describe())),
    }
}

/// What is wrong with a text that should be a quantity.
fn complaint_of(error: &ParseQuantityError) -> Complaint {
    match error {
        ParseQuantityError::NotANumber { text, .. } if text.starts_with('-') => {
            format!("is negative: \"{}\"", shortened(text))
        }
        ParseQuantityError::NotANumber { text, .. } => format!("is no quantity: \"{}\"", shortened(text)),
        ParseQuantityError::BareNumber { text, .. } => format!("lacks its unit: \"{}\"", shortened(text)),
        ParseQuantityError::UnknownUnit { unit, .. } => {
            format!("has the unknown unit \"{}\"", shortened(unit))
        }
        ParseQuantityError::OutOfRange { text } => format!("is out of range: \"{}\"", shortened(text)),
    }
}

fn quantity<T: core::str::FromStr<Err = ParseQuantityError>>(text: &str) -> Result<T, Complaint> {
    text.parse().map_err(|error| complaint_of(&error))
}

impl FromNode for String {
    fn from_node(node: &Node, kind: &Kind) -> Result<Self, Complaint> {
        let Value::Text(text) = &node.value else { return Err(format!("is {}", node.describe())) };
        match kind {
            Kind::Name => check_name(text)?,
            Kind::Word { words } if words.iter().all(|(word, _)| word != text) => {
                return Err(format!("is no known word: \"{}\"", shortened(text)));
            }
            _ => {}
        }
        Ok(text.clone())
    }
}

/// Names stand in file names and in the paths of metrics, so they have no dots, spaces or slashes.
fn check_name(text: &str) -> Result<(), Complaint> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+');
    if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
        return Err(format!("is no name: \"{}\"", shortened(text)));
    }
    if text.chars().all(|c| c.is_ascii_digit()) {
        return Err(format!("consists of digits alone: \"{text}\""));
    }
    Ok(())
}

impl FromNode for Vec<String> {
    fn from_node(node: &Node, _: &Kind) -> Result<Self, Complaint> {
        let Value::List(items) = &node.value else { return Err(format!("is {}", node.describe())) };
        items.iter().map(|item| String::from_node(item, &Kind::Text)).collect()
    }
}

impl FromNode for Duration {
    fn from_node(node: &Node, kind: &Kind) -> Result<Self, Complaint> {
        let time = bounded_time(text_of(node)?)?;
        if time.is_zero() && matches!(kind, Kind::Span) {
            return Err("must be above zero".to_string());
        }
        Ok(time)
    }
}

fn bounded_time(text: &str) -> Result<Duration, Complaint> {
    let time: Duration = quantity(text)?;
    if time > Duration::from_secs(TIME_MAX_HOURS * 3600) {
        return Err(format!("is too long: \"{}\"", shortened(text)));
    }
    Ok(time)
}

/// Splits a sign off.
fn signed(text: &str) -> (i64, &str) {
    let text = text.trim();
    match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    }
}

impl FromNode for OffsetNs {
    fn from_node(node: &Node, _: &Kind) -> Result<Self, Complaint> {
        let (sign, text) = signed(text_of(node)?);
        // The limit of times keeps the cast exact.
        Ok(Self(sign * bounded_time(text)?.as_nanos() as i64))
    }
}

impl FromNode for DriftPpb {
    fn from_node(node: &Node, _: &Kind) -> Result<Self, Complaint> {
        const MOST_PPB: f64 = 1e8;
        let (sign, text) = signed(text_of(node)?);
        let (number, unit) =
            cede_units::parse::split_number(text, "").map_err(|error| complaint_of(&error))?;
        let scale = match unit {
            "ppm" => 1e3,
            "ppb" => 1.0,
            "" => return Err(format!("lacks its unit: \"{}\"", shortened(text))),
            other => return Err(format!("has the unknown unit \"{}\"", shortened(other))),
        };
        let ppb = number * scale;
        if ppb > MOST_PPB {
            return Err(format!("is out of range: \"{}\"", shortened(text)));
        }
        Ok(Self(sign * (ppb + 0.5) as i64))
    }
}

impl FromNode for Rate {
    fn from_node(node: &Node, _: &Kind) -> Result<Self, Complaint> {
        let rate: Self = quantity(text_of(node)?)?;
        match rate.bits_per_sec() {
            0 => Err("must be above zero".to_string()),
            bits if bits > RATE_MAX_BITS => Err(format!("is out of range: {rate}")),
            _ => Ok(rate),
        }
    }
}

impl FromNode for Bytes {
    fn from_node(node: &Node, kind: &Kind) -> Result<Self, Complaint> {
        let size: Self = quantity(text_of(node)?)?;
        let (min, max) = if let Kind::Size { min, max } = kind { (*min, *max) } else { (0, SIZE_MAX_BYTES) };
        if size.0 < min || size.0 > max {
            return Err(format!("is out of range: {size}"));
        }
        Ok(size)
    }
}

/// A number of packets where the text is one: "100 packets", "100p".
fn packets_in(text: &str) -> Option<Result<u64, Complaint>> {
    let (number, unit) = cede_units::parse::split_number(text, "").ok()?;
    if !matches!(unit, "packets" | "packet" | "p") {
        return None;
    }
    // Up to a thousand million, so the cast back and forth tells whole numbers.
    let whole = number as u64;
    Some(match whole {
        _ if whole as f64 != number => Err(format!("is no whole number of packets: \"{}\"", shortened(text))),
        0 => Err("must be above zero".to_string()),
        _ if whole > PACKETS_MAX => Err(format!("is out of range: \"{}\"", shortened(text))),
        _ => Ok(whole),
    })
}

impl FromNode for Packets {
    fn from_node(node: &Node, _: &Kind) -> Result<Self, Complaint> {
        let text = text_of(node)?;
        match packets_in(text) {
            Some(packets) => packets.map(Self),
            None => Err(format!("is no number of packets: \"{}\"", shortened(text))),
        }
    }
}

impl FromNode for Buffer {
    fn from_node(node: &Node, _: &Kind) -> Result<Self, Complaint> {
        let text = text_of(node)?;
        if let Some(packets) = packets_in(text) {
            return packets.map(Self::Packets);
        }
        let (number, unit) =
            cede_units::parse::split_number(text, "").map_err(|error| complaint_of(&error))?;
        match unit {
            "" => Err(format!("lacks its unit: \"{}\"", shortened(text))),
            _ if number == 0.0 => Err("must be above zero".to_string()),
            "BDP" | "bdp" if number <= 1e6 => Ok(Self::Bdp(number)),
            "BDP" | "bdp" => Err(format!("is out of range: \"{}\"", shortened(text))),
            _ if text.parse::<Duration>().is_ok() => bounded_time(text).map(Self::Time),
            _ => {
                let kind = Kind::Size { min: 1, max: SIZE_MAX_BYTES };
                Bytes::from_node(node, &kind).map(Self::Bytes)
            }
        }
    }
}

impl FromNode for f64 {
    fn from_node(node: &Node, kind: &Kind) -> Result<Self, Complaint> {
        let number = match node.value {
            Value::Number(number) => number,
            Value::Integer(number) => number as Self,
            _ => return Err(format!("is {}", node.describe())),
        };
        let (min, max) = match kind {
            Kind::Probability => (0.0, 1.0),
            Kind::Number { min, max } => (*min, *max),
            _ => (Self::MIN, Self::MAX),
        };
        // Not-a-number is in no range.
        if number >= min && number <= max { Ok(number) } else { Err(format!("is out of range: {number}")) }
    }
}

impl FromNode for i64 {
    fn from_node(node: &Node, kind: &Kind) -> Result<Self, Complaint> {
        let Value::Integer(number) = node.value else { return Err(format!("is {}", node.describe())) };
        match kind {
            Kind::Integer { min, max } if number < *min || number > *max => {
                Err(format!("is out of range: {number}"))
            }
            _ => Ok(number),
        }
    }
}

impl FromNode for bool {
    fn from_node(node: &Node, _: &Kind) -> Result<Self, Complaint> {
        match node.value {
            Value::Switch(switch) => Ok(switch),
            _ => Err(format!("is {}", node.describe())),
        }
    }
}

/// One of the words of a kind.
pub(crate) fn word_of<T: Words>(node: &Node) -> Result<T, Complaint> {
    let Value::Text(text) = &node.value else { return Err(format!("is {}", node.describe())) };
    T::from_word(text).ok_or_else(|| format!("is no known word: \"{}\"", shortened(text)))
}

macro_rules! read_as_word {
    ($($type:ty),+) => {
        $(impl FromNode for $type {
            fn from_node(node: &Node, _: &Kind) -> Result<Self, Complaint> {
                word_of(node)
            }
        })+
    };
}
read_as_word!(
    TopologyKind,
    Routing,
    QueueKind,
    PieKind,
    ProtocolKind,
    TcpAck,
    UtpAck,
    Distribution,
    TrafficKind
);
