//! Where ticks stand, and how numbers read.
//!
//! Steps are 1, 2 or 5 times a power of ten; minor ticks cut a step in five (four for a step of 2).

/// Ticks of one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ticks {
    /// Values with their labels, ascending.
    pub major: Vec<(f64, String)>,
    /// Values without labels, ascending, none of them a major one.
    pub minor: Vec<f64>,
}

/// More ticks than this are never made, whatever was asked for.
const MOST: usize = 100;

/// A step of 1, 2 or 5 times 10^exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    mantissa: u8,
    exponent: i32,
}

impl Step {
    /// The least step that cuts `span` into at most `most` pieces.
    fn for_span(span: f64, most: usize) -> Step {
        let raw = (span / most.max(1) as f64).max(f64::MIN_POSITIVE * 1e10);
        let exponent = raw.log10().floor() as i32;
        let lead = raw / power(exponent);
        let fits = |m: &&u8| f64::from(**m) >= lead * (1.0 - 1e-9);
        match [1u8, 2, 5].iter().find(fits) {
            Some(&mantissa) => Step { mantissa, exponent },
            None => Step { mantissa: 1, exponent: exponent + 1 },
        }
    }

    fn value(self) -> f64 {
        f64::from(self.mantissa) * power(self.exponent)
    }

    /// `index` steps, as exact as a number can be: 3 steps of 0.1 are 0.3, not 0.30000000000000004.
    fn times(self, index: f64) -> f64 {
        let whole = index * f64::from(self.mantissa);
        if self.exponent < 0 { whole / power(-self.exponent) } else { whole * power(self.exponent) }
    }

    fn minor(self) -> Step {
        match self.mantissa {
            1 => Step { mantissa: 2, exponent: self.exponent - 1 },
            2 => Step { mantissa: 5, exponent: self.exponent - 1 },
            _ => Step { mantissa: 1, exponent: self.exponent },
        }
    }

    /// All multiples between `lo` and `hi`.
    fn multiples(self, lo: f64, hi: f64) -> Vec<f64> {
        let slack = 1e-9;
        let first = (lo / self.value() - slack).ceil();
        let count =
            ((hi / self.value() + slack).floor() - first + 1.0).clamp(0.0, (MOST * 5) as f64) as usize;
        (0..count).map(|k| self.times(first + k as f64)).collect()
    }
}

fn power(exponent: i32) -> f64 {
    10f64.powi(exponent)
}

/// The ends moved out to the next minor tick of about five steps.
pub(crate) fn round_out(lo: f64, hi: f64) -> (f64, f64) {
    let step = Step::for_span(hi - lo, 5).minor();
    let (down, up) = ((lo / step.value() + 1e-9).floor(), (hi / step.value() - 1e-9).ceil());
    let ends = (step.times(down), step.times(up));
    if ends.0.is_finite() && ends.1.is_finite() && ends.0 < ends.1 { ends } else { (lo, hi) }
}

/// The ends moved to the next minor tick of about five steps where that is very near.
pub(crate) fn snap(lo: f64, hi: f64) -> (f64, f64) {
    const NEAR: f64 = 0.005;
    let (out_lo, out_hi) = round_out(lo, hi);
    let near = |out: f64, end: f64| (out - end).abs() <= (hi - lo) * NEAR;
    (if near(out_lo, lo) { out_lo } else { lo }, if near(out_hi, hi) { out_hi } else { hi })
}

/// Ticks from `lo` to `hi` at multiples of a nice step, about `most` of them and never above `most + 1`.
pub fn linear(lo: f64, hi: f64, most: usize) -> Ticks {
    let most = most.clamp(1, MOST);
    let span = hi - lo;
    if !span.is_finite() || span <= 0.0 {
        return Ticks::default();
    }
    let step = Step::for_span(span, most);
    let values = step.multiples(lo, hi);
    let fine = step.minor().multiples(lo, hi);
    let tolerance = step.value() * 1e-6;
    let is_major = |v: f64| values.iter().any(|m| (m - v).abs() < tolerance);
    Ticks {
        minor: fine.into_iter().filter(|v| !is_major(*v)).collect(),
        major: labelled(&values, step.exponent, lo.abs().max(hi.abs())),
    }
}

fn labelled(values: &[f64], exponent: i32, greatest: f64) -> Vec<(f64, String)> {
    let decimals = (-exponent).max(0) as usize;
    let scientific = greatest >= 1e7 || decimals > 5;
    let label = |v: f64| if scientific { scientific_to(v, exponent) } else { number(v, decimals) };
    values.iter().map(|&v| (v, label(v))).collect()
}

/// Ticks from `lo` to `hi` at powers of ten, with 2 and 5 between them where there is room, at most
/// `most + 1`. A range within one decade has linear ticks. None unless `0 < lo < hi`.
pub fn log10(lo: f64, hi: f64, most: usize) -> Ticks {
    if !(lo > 0.0 && hi > lo && hi.is_finite()) {
        return Ticks::default();
    }
    let (first, last) = (lo.log10().floor() as i32, hi.log10().ceil() as i32);
    let inside = |v: f64| v >= lo * (1.0 - 1e-9) && v <= hi * (1.0 + 1e-9);
    let at = |leads: &[u8], stride: usize| -> Vec<f64> {
        let decades = (first..=last).filter(|e| e.rem_euclid(stride as i32) == 0);
        let values = decades.flat_map(|e| leads.iter().map(move |l| f64::from(*l) * power(e)));
        values.filter(|v| inside(*v)).collect()
    };
    let most = most.clamp(2, MOST);
    let choices: [&[u8]; 2] = [&[1, 2, 5], &[1]];
    let dense = choices.iter().map(|leads| at(leads, 1)).find(|values| values.len() <= most);
    let sparse =
        || (2..).map(|stride| at(&[1], stride)).find(|values| values.len() <= most).unwrap_or_default();
    let major = dense.unwrap_or_else(sparse);
    if major.len() < 2 {
        return linear(lo, hi, most);
    }
    let fine = if last - first <= 12 { at(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 1) } else { at(&[1], 1) };
    let minor = fine.into_iter().filter(|v| !major.contains(v)).collect();
    Ticks { major: power_labels(&major), minor }
}

/// Plain numbers if all are short, else powers of ten throughout.
fn power_labels(values: &[f64]) -> Vec<(f64, String)> {
    let plain = values.iter().all(|v| (0.000_999..=100_000.5).contains(v));
    values.iter().map(|&v| (v, if plain { short(v) } else { scientific(v, 0) })).collect()
}

/// A number with a fixed count of decimals, thousands set apart by commas, and a true minus sign.
///
/// ```
/// assert_eq!(cede_plot::ticks::number(-1234567.891, 1), "−1,234,567.9");
/// ```
pub fn number(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let text = format!("{:.*}", decimals.min(17), value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let is_zero = text.bytes().all(|b| b == b'0' || b == b'.');
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    format!("{sign}{}{rest}", grouped(whole))
}

fn not_finite(value: f64) -> String {
    match value {
        v if v.is_nan() => "–".into(),
        v if v > 0.0 => "∞".into(),
        _ => "−∞".into(),
    }
}

fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number in about four significant digits, without trailing zeros.
///
/// ```
/// assert_eq!(cede_plot::ticks::short(0.0512), "0.0512");
/// assert_eq!(cede_plot::ticks::short(123456.0), "123,456");
/// assert_eq!(cede_plot::ticks::short(3.2e9), "3.2×10⁹");
/// ```
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return number(value, 0);
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-4..7).contains(&magnitude) {
        return scientific(value, 3);
    }
    trimmed(number(value, (3 - magnitude).max(0) as usize))
}

fn trimmed(text: String) -> String {
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// `m×10ⁿ` with at most `decimals` decimals in the mantissa, or `10ⁿ` if that is 1.
fn scientific(value: f64, decimals: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return number(value, 0);
    }
    let text = format!("{:.*e}", decimals, value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = trimmed(mantissa.to_string());
    let sign = if value < 0.0 { "−" } else { "" };
    let lead = if mantissa == "1" { String::new() } else { format!("{mantissa}×") };
    format!("{sign}{lead}10{}", superscript(exponent))
}

/// Like [`scientific`], with the decimals that tell multiples of 10^`exponent` apart.
fn scientific_to(value: f64, exponent: i32) -> String {
    let magnitude = if value == 0.0 { exponent } else { value.abs().log10().floor() as i32 };
    scientific(value, (magnitude - exponent).clamp(0, 15) as usize)
}

fn superscript(digits: &str) -> String {
    let raise = |c: char| match c {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        other => other,
    };
    digits.chars().map(raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &Ticks) -> Vec<&str> {
        ticks.major.iter().map(|t| t.1.as_str()).collect()
    }

    #[test]
    fn steps_are_one_two_five() {
        assert_eq!(labels(&linear(0.0, 10.0, 5)), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&linear(0.0, 1.0, 5)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&linear(-3.0, 3.0, 7)), ["−3", "−2", "−1", "0", "1", "2", "3"]);
        assert_eq!(
            labels(&linear(0.0, 52_000.0, 6)),
            ["0", "10,000", "20,000", "30,000", "40,000", "50,000"]
        );
    }

    #[test]
    fn values_are_exact() {
        let ticks = linear(0.0, 0.35, 8);
        assert_eq!(
            ticks.major.iter().map(|t| t.0).collect::<Vec<_>>(),
            [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35]
        );
    }

    #[test]
    fn minor_ticks_cut_between_major_ones() {
        let ticks = linear(0.0, 10.0, 5);
        assert_eq!(ticks.minor, [0.5, 1.0, 1.5, 2.5, 3.0, 3.5, 4.5, 5.0, 5.5, 6.5, 7.0, 7.5, 8.5, 9.0, 9.5]);
    }

    #[test]
    fn never_more_than_asked_for() {
        for most in 1..12 {
            for scale in -40..40 {
                let hi = 1.37 * 10f64.powf(f64::from(scale) / 4.0);
                for lo in [0.0, -hi, hi * 0.9] {
                    let count = linear(lo, hi, most).major.len();
                    assert!(count <= most + 1, "{lo}..{hi}: {count} > {most}");
                }
            }
        }
    }

    #[test]
    fn hopeless_ranges_give_few_ticks_and_end() {
        for (lo, hi) in [
            (1e16, 1e16 + 2.0),
            (-1e300, 1e300),
            (1e-310, 2e-310),
            (f64::NAN, 1.0),
            (0.0, f64::INFINITY),
            (2.0, 1.0),
        ] {
            let ticks = linear(lo, hi, 6);
            assert!(ticks.major.len() <= 7 && ticks.minor.len() <= 60, "{lo}..{hi}");
        }
        assert_eq!(log10(0.0, 1.0, 5), Ticks::default());
        assert!(log10(1e-300, 1e300, 6).major.len() <= 7);
    }

    #[test]
    fn logarithmic_ticks_are_decades_or_finer() {
        assert_eq!(labels(&log10(1.0, 1000.0, 5)), ["1", "10", "100", "1,000"]);
        assert_eq!(labels(&log10(1.0, 30.0, 6)), ["1", "2", "5", "10", "20"]);
        assert_eq!(labels(&log10(1e-6, 1.0, 5)), ["10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"]);
        assert_eq!(labels(&log10(20.0, 24.0, 5)), ["20", "21", "22", "23", "24"]);
        assert_eq!(log10(1.0, 10.0, 2).minor, [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(number(1_000.0, 0), "1,000");
        assert_eq!(number(-0.04, 1), "0.0");
        assert_eq!(number(f64::NAN, 2), "–");
        assert_eq!(number(999_999.96, 1), "1,000,000.0");
        assert_eq!(short(12.3456), "12.35");
        assert_eq!(short(-0.5), "−0.5");
        assert_eq!(short(1e-7), "10⁻⁷");
        assert_eq!(labels(&linear(0.0, 4e7, 4)), ["0", "10⁷", "2×10⁷", "3×10⁷", "4×10⁷"]);
    }
}
