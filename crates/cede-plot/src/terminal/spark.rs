//! A line of small bars.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The values as bars of eight heights, at most `width` of them, from the least value to the greatest.
///
/// More values than columns are averaged column by column; a column without a finite value is blank.
///
/// ```
/// assert_eq!(cede_plot::terminal::sparkline(&[0.0, 1.0, 2.0, f64::NAN, 7.0], 10), "▁▂▃ █");
/// ```
pub fn sparkline(values: &[f64], width: usize) -> String {
    let columns = width.min(values.len());
    let means: Vec<Option<f64>> = (0..columns).map(|k| mean(slice(values, k, columns))).collect();
    let finite = || means.iter().flatten().copied();
    let (lo, hi) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    means.iter().map(|mean| mean.map_or(' ', |m| bar(m, lo, hi))).collect()
}

fn slice(values: &[f64], k: usize, columns: usize) -> &[f64] {
    &values[k * values.len() / columns..(k + 1) * values.len() / columns]
}

fn mean(values: &[f64]) -> Option<f64> {
    let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    let share = 1.0 / finite.len() as f64;
    (!finite.is_empty()).then(|| finite.iter().map(|v| v * share).sum())
}

fn bar(value: f64, lo: f64, hi: f64) -> char {
    let share = if hi > lo { (value / 2.0 - lo / 2.0) / (hi / 2.0 - lo / 2.0) } else { 0.5 };
    BARS[((share * 7.0).round() as usize).min(7)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_input_is_averaged_to_the_width() {
        let ramp: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(sparkline(&ramp, 8), "▁▂▃▄▅▆▇█");
    }

    #[test]
    fn degenerate_input() {
        assert_eq!(sparkline(&[], 10), "");
        assert_eq!(sparkline(&[1.0], 0), "");
        assert_eq!(sparkline(&[3.0, 3.0], 10), "▅▅");
        assert_eq!(sparkline(&[f64::NAN, f64::INFINITY], 10), "  ");
        assert_eq!(sparkline(&[-1.7e308, 1.7e308], 2), "▁█");
    }
}
