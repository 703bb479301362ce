//! What the page's script must know to tell the values under the pointer.
//!
//! A series is thinned to one point for each unit of width, numbers to six digits; series whose x values fall
//! back are left out, for there a nearest x says little.

use crate::drawing::{Drawing, Frame};
use crate::escape::json_in_html;
use crate::figure::{Axis, Figure, Kind, Panel, Scale, Series};
use crate::scale::Range;

/// A JSON object that is safe within a `script` element.
pub(super) fn data(figure: &Figure, drawing: &Drawing) -> String {
    let panels: Vec<String> = figure.panels.iter().zip(&drawing.frames).map(|(p, f)| panel(p, f)).collect();
    format!("{{\"p\":[{}]}}", panels.join(","))
}

fn panel(panel: &Panel, frame: &Frame) -> String {
    let on = &frame.projection;
    let rect = [on.rect.x, on.rect.y, on.rect.w, on.rect.h].map(number).join(",");
    let falls_back = |s: &Series| s.points.windows(2).any(|pair| pair[1].0 < pair[0].0);
    let told = panel.series.iter().zip(&frame.slots).filter(|(s, _)| !falls_back(s));
    let list: Vec<String> = told.filter_map(|(s, slot)| series(s, *slot, frame)).collect();
    let (x, y) = (axis(&panel.x, on.x), axis(&panel.y, on.y));
    format!("{{\"r\":[{rect}],\"x\":{x},\"y\":{y},\"s\":[{}]}}", list.join(","))
}

fn axis(axis: &Axis, range: Range) -> String {
    let log = u8::from(range.scale == Scale::Log10);
    let (label, unit) = (json_in_html(&axis.label), json_in_html(&axis.unit));
    format!("[{},{},{log},{label},{unit}]", number(range.lo), number(range.hi))
}

fn series(series: &Series, slot: usize, frame: &Frame) -> Option<String> {
    let points = thinned(&series.points, frame);
    if points.is_empty() {
        return None;
    }
    let list =
        |pick: fn(&(f64, f64)) -> f64| points.iter().map(|p| number(pick(p))).collect::<Vec<_>>().join(",");
    let (xs, ys) = (list(|p| p.0), list(|p| p.1));
    let steps = u8::from(series.kind == Kind::Steps);
    let name = json_in_html(&series.name);
    Some(format!("{{\"n\":{name},\"c\":{},\"k\":{steps},\"x\":[{xs}],\"y\":[{ys}]}}", slot % crate::SLOTS))
}

/// The first point of each unit of width, and what breaks the line.
fn thinned(points: &[(f64, f64)], frame: &Frame) -> Vec<(f64, f64)> {
    let on = &frame.projection;
    let mut out: Vec<(f64, f64)> = Vec::new();
    let mut column = f64::NEG_INFINITY;
    let mut broken = true;
    for &(x, y) in points.iter().filter(|p| on.x.contains(p.0)) {
        let here = on.x_of(x).floor();
        let gap = !y.is_finite();
        if (here > column && !gap) || gap != broken {
            out.push((x, y));
            column = here;
        }
        broken = gap;
    }
    out
}

/// A JSON number of six significant digits; `null` for what is not finite.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "null".into();
    }
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    let plain = rounded == 0.0 || (1e-5..1e15).contains(&rounded.abs());
    if plain { rounded.to_string() } else { format!("{rounded:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_valid() {
        assert_eq!(
            [1.0, 0.1 + 0.2, -123456.789, 1e300, f64::NAN].map(number),
            ["1", "0.3", "-123457", "1e300", "null"]
        );
    }

    #[test]
    fn long_series_are_thinned_and_gaps_kept() {
        let points = (0..100_000).map(|i| (f64::from(i), if i == 50_000 { f64::NAN } else { 1.0 }));
        let figure = Figure::new("").panel(Panel::new("").series(Series::line("a", points)));
        let text = data(&figure, &figure.drawing());
        assert!(text.len() < 20_000, "{}", text.len());
        assert_eq!(text.matches("null").count(), 1);
    }

    #[test]
    fn a_path_that_turns_back_is_left_out() {
        let figure =
            Figure::new("").panel(Panel::new("").series(Series::line("a", [(1.0, 1.0), (0.0, 2.0)])));
        assert!(data(&figure, &figure.drawing()).contains("\"s\":[]"));
    }
}
