//! Grid, frame, ticks and headings of a plot area.

use crate::drawing::{Anchor, Shape, Stroke, Text, Weight};
use crate::figure::{Axis, Scale};
use crate::font;
use crate::geometry::{Point, Rect};
use crate::scale::{Projection, Range};
use crate::style::Paint;
use crate::ticks::{self, Ticks};

const LABEL: f64 = 11.0;
const HEADING: f64 = 12.0;
const TICK_LENGTH: f64 = 4.0;
/// From the frame to the labels.
const LABEL_GAP: f64 = 7.0;
/// Room for the heading of the y axis.
const Y_HEADING: f64 = 19.0;
const X_HEADING: f64 = 18.0;
/// Least distance between two labels on the x axis, and between two minor lines.
const LABEL_APART: f64 = 10.0;
const MINOR_APART: f64 = 7.0;
/// Room for each label of the y axis.
const Y_LABEL_EVERY: f64 = 27.0;

fn label_width(label: &str) -> f64 {
    font::width(label, LABEL, Weight::Regular)
}

fn auto_ticks(range: Range, most: usize) -> Ticks {
    match range.scale {
        Scale::Linear => ticks::linear(range.lo, range.hi, most),
        Scale::Log10 => ticks::log10(range.lo, range.hi, most),
    }
}

fn fixed_ticks(axis: &Axis, range: Range) -> Option<Ticks> {
    let major = axis.ticks.iter().filter(|tick| range.contains(tick.0)).cloned().collect();
    (!axis.ticks.is_empty()).then(|| Ticks { major, minor: Vec::new() })
}

pub(super) fn y_ticks(axis: &Axis, range: Range, height: f64) -> Ticks {
    let most = (height / Y_LABEL_EVERY).floor().clamp(2.0, 10.0) as usize;
    fixed_ticks(axis, range).unwrap_or_else(|| auto_ticks(range, most))
}

/// As many ticks as have room for their labels.
pub(super) fn x_ticks(axis: &Axis, range: Range, width: f64) -> Ticks {
    if let Some(fixed) = fixed_ticks(axis, range) {
        return thinned(fixed, range, width);
    }
    let most = (width / 55.0).floor().clamp(2.0, 12.0) as usize;
    let choices = (2..=most).rev().map(|most| auto_ticks(range, most));
    choices.into_iter().find(|ticks| has_room(ticks, range, width)).unwrap_or_else(|| auto_ticks(range, 1))
}

fn has_room(ticks: &Ticks, range: Range, width: f64) -> bool {
    ticks.major.windows(2).all(|pair| {
        let apart = (range.share(pair[1].0) - range.share(pair[0].0)) * width;
        apart >= (label_width(&pair[0].1) + label_width(&pair[1].1)) / 2.0 + LABEL_APART
    })
}

/// Leaves out the labels that would run into the one before.
fn thinned(mut ticks: Ticks, range: Range, width: f64) -> Ticks {
    ticks.major.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut end = f64::NEG_INFINITY;
    for (value, label) in &mut ticks.major {
        let middle = range.share(*value) * width;
        let half = label_width(label) / 2.0;
        if middle - half < end + LABEL_APART {
            label.clear();
        } else {
            end = middle + half;
        }
    }
    ticks
}

pub(super) fn left_room(axis: &Axis, range: Range, height: f64, labels: bool) -> f64 {
    if !labels {
        return 8.0;
    }
    let ticks = y_ticks(axis, range, height);
    let widest = ticks.major.iter().map(|tick| label_width(&tick.1)).fold(0.0, f64::max);
    let heading = if axis.heading().is_empty() { 0.0 } else { Y_HEADING };
    (widest + LABEL_GAP + heading + 1.0).ceil()
}

pub(super) fn foot_room(axis: &Axis, labels: bool) -> f64 {
    match (labels, axis.heading().is_empty()) {
        (false, _) => 6.0,
        (true, true) => LABEL_GAP + LABEL + 3.0,
        (true, false) => LABEL_GAP + LABEL + 3.0 + X_HEADING,
    }
}

/// A coordinate on which a line one unit wide is sharp.
fn crisp(v: f64) -> f64 {
    v.floor() + 0.5
}

fn upright(x: f64, rect: Rect) -> Vec<Point> {
    vec![Point::new(crisp(x), rect.y), Point::new(crisp(x), rect.bottom())]
}

fn level(y: f64, rect: Rect) -> Vec<Point> {
    vec![Point::new(rect.x, crisp(y)), Point::new(rect.right(), crisp(y))]
}

/// Minor lines where they are not too close, then major lines.
pub(super) fn grid(on: &Projection, x: &Ticks, y: &Ticks, shapes: &mut Vec<Shape>) {
    let minor_xs: Vec<f64> = x.minor.iter().map(|v| on.x_of(*v)).collect();
    let minor_ys: Vec<f64> = y.minor.iter().map(|v| on.y_of(*v)).collect();
    let mut minor = Vec::new();
    if apart(&minor_xs) {
        minor.extend(minor_xs.iter().map(|x| upright(*x, on.rect)));
    }
    if apart(&minor_ys) {
        minor.extend(minor_ys.iter().map(|y| level(*y, on.rect)));
    }
    let xs = x.major.iter().map(|tick| upright(on.x_of(tick.0), on.rect));
    let ys = y.major.iter().map(|tick| level(on.y_of(tick.0), on.rect));
    push_lines(minor, Paint::MinorGrid, shapes);
    push_lines(xs.chain(ys).collect(), Paint::Grid, shapes);
}

fn apart(places: &[f64]) -> bool {
    places.windows(2).all(|pair| (pair[1] - pair[0]).abs() >= MINOR_APART)
}

fn push_lines(runs: Vec<Vec<Point>>, paint: Paint, shapes: &mut Vec<Shape>) {
    if !runs.is_empty() {
        shapes.push(Shape::Lines { runs, stroke: Stroke::solid(paint, 1.0) });
    }
}

/// The two axis lines with tick marks outside.
pub(super) fn frame(on: &Projection, x: &Ticks, y: &Ticks, shapes: &mut Vec<Shape>) {
    let (left, bottom) = (crisp(on.rect.x), crisp(on.rect.bottom()));
    let corner = Point::new(left, bottom);
    let mut runs = vec![vec![Point::new(left, on.rect.y), corner, Point::new(on.rect.right() + 0.5, bottom)]];
    runs.extend(x.major.iter().map(|tick| {
        let x = crisp(on.x_of(tick.0));
        vec![Point::new(x, bottom), Point::new(x, bottom + TICK_LENGTH)]
    }));
    runs.extend(y.major.iter().map(|tick| {
        let y = crisp(on.y_of(tick.0));
        vec![Point::new(left - TICK_LENGTH, y), Point::new(left, y)]
    }));
    push_lines(runs, Paint::Frame, shapes);
}

pub(super) fn tick_labels(on: &Projection, x: (&Ticks, bool), y: (&Ticks, bool), shapes: &mut Vec<Shape>) {
    let baseline = on.rect.bottom() + LABEL_GAP + LABEL - 1.0;
    for (value, label) in x.0.major.iter().filter(|tick| x.1 && !tick.1.is_empty()) {
        let text = Text::new(label, Point::new(on.x_of(*value), baseline), LABEL);
        shapes.push(Shape::Text(text.anchor(Anchor::Middle).paint(Paint::Muted)));
    }
    let edge = on.rect.x - LABEL_GAP;
    let mut lowest = f64::INFINITY;
    for (value, label) in y.0.major.iter().filter(|tick| y.1 && !tick.1.is_empty()) {
        let baseline = on.y_of(*value) + LABEL * 0.36;
        if baseline <= lowest - LABEL * 1.1 {
            let text = Text::new(label, Point::new(edge, baseline), LABEL);
            shapes.push(Shape::Text(text.anchor(Anchor::End).paint(Paint::Muted)));
            lowest = baseline;
        }
    }
}

pub(super) fn x_heading(axis: &Axis, rect: Rect, shapes: &mut Vec<Shape>) {
    let heading = font::fit(&axis.heading(), HEADING, Weight::Regular, rect.w + 40.0);
    let at = Point::new(rect.x + rect.w / 2.0, rect.bottom() + LABEL_GAP + LABEL + X_HEADING - 2.0);
    push_heading(Text::new(heading, at, HEADING), shapes);
}

pub(super) fn y_heading(axis: &Axis, rect: Rect, left: f64, shapes: &mut Vec<Shape>) {
    let heading = font::fit(&axis.heading(), HEADING, Weight::Regular, rect.h + 30.0);
    let at = Point::new(left + HEADING - 1.0, rect.y + rect.h / 2.0);
    push_heading(Text::new(heading, at, HEADING).turned(), shapes);
}

fn push_heading(text: Text, shapes: &mut Vec<Shape>) {
    if !text.content.is_empty() {
        shapes.push(Shape::Text(text.anchor(Anchor::Middle)));
    }
}
