//! Numbers as people read them: three digits, a unit, and always as wide.

use cede_units::{Duration, Rate};

/// Three significant digits of a value, with the unit whose factor fits.
fn scaled(value: f64, units: &[(f64, &'static str)]) -> String {
    // What would be rounded up to a thousand belongs to the next unit.
    let fits = |&&(scale, _): &&(f64, &str)| value >= scale * 0.9995;
    let &(scale, unit) = units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
    let number = value / scale;
    let decimals = match number {
        _ if scale == 1.0 && number.fract() == 0.0 => 0,
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    };
    format!("{number:.decimals$} {unit}")
}

/// "1 file", "2 files".
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// "1.05 MB".
pub fn amount(bytes: u64) -> String {
    scaled(bytes as f64, &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")])
}

/// "94.1 Mbit/s".
pub fn rate(rate: Rate) -> String {
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
    scaled(rate.bits_per_sec() as f64, &units)
}

/// "12.3 MB in 4.5 s, 21.9 Mbit/s".
pub fn moved(bytes: u64, span: Duration) -> String {
    let mean = Rate::from_bytes_over(bytes, span);
    format!("{} in {:.1} s, {}", amount(bytes), span.as_secs_f64(), rate(mean))
}

/// "12.3 ms".
pub fn span(span: Duration) -> String {
    let ms = span.as_millis_f64();
    match ms {
        9999.5.. => format!("{:.1} s", ms / 1e3),
        99.95.. => format!("{ms:.0} ms"),
        9.995.. => format!("{ms:.1} ms"),
        _ => format!("{ms:.2} ms"),
    }
}

/// Hexadecimal digits.
pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_the_unit_that_fits() {
        assert_eq!(amount(0), "0 B");
        assert_eq!(amount(999), "999 B");
        assert_eq!(amount(1000), "1.00 kB");
        assert_eq!(amount(999_999), "1.00 MB");
        assert_eq!(amount(12_345_678), "12.3 MB");
        assert_eq!(rate(Rate::from_mbit(940)), "940 Mbit/s");
        assert_eq!(span(Duration::from_micros(1234)), "1.23 ms");
        assert_eq!(span(Duration::from_secs(75)), "75.0 s");
    }
}
