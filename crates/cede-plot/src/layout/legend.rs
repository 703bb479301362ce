//! Keys and names of series, in rows or in a box.

use super::data::{BAND_OPACITY, MARK_RADIUS, MARK_RIM};
use super::labels::Crowd;
use super::look::Look;
use crate::drawing::{Shape, Stroke, Text, Weight};
use crate::figure::{Kind, Panel};
use crate::font;
use crate::geometry::{Point, Rect};
use crate::style::{Marker, Paint};

const SIZE: f64 = 11.5;
const LINE: f64 = 17.0;
const KEY: f64 = 24.0;
const KEY_GAP: f64 = 6.0;
const ENTRY_GAP: f64 = 18.0;

/// What a key shows of a series, and its name.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    slot: usize,
    line: Option<(f64, &'static [f64])>,
    marker: Option<Marker>,
    band: bool,
}

impl Entry {
    fn width(&self) -> f64 {
        KEY + KEY_GAP + font::width(&self.name, SIZE, Weight::Regular)
    }

    fn draw(&self, at: Point, room: f64, shapes: &mut Vec<Shape>) {
        let paint = Paint::Series(self.slot);
        let middle = at.y + LINE / 2.0;
        if self.band {
            let rect = Rect::new(at.x, middle - 5.0, KEY, 10.0);
            shapes.push(Shape::Block { rect, paint, opacity: BAND_OPACITY * 1.4, radius: 1.0 });
        }
        if let Some((width, dash)) = self.line {
            let ends = vec![Point::new(at.x, middle), Point::new(at.x + KEY, middle)];
            shapes.push(Shape::Lines {
                runs: vec![ends],
                stroke: Stroke { paint, width: width.min(4.0), dash },
            });
        }
        if let Some(marker) = self.marker {
            let at = vec![Point::new(at.x + KEY / 2.0, middle)];
            shapes.push(Shape::Marks { at, marker, radius: MARK_RADIUS, rim: MARK_RIM, paint });
        }
        let name = font::fit(&self.name, SIZE, Weight::Regular, room - KEY - KEY_GAP);
        let baseline = Point::new(at.x + KEY + KEY_GAP, middle + SIZE * 0.36);
        shapes.push(Shape::Text(Text::new(name, baseline, SIZE)));
    }
}

/// One entry for each name in a panel.
pub(super) fn entries(panel: &Panel, slots: &[usize], looks: &[Look]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let named = panel.series.iter().zip(slots).zip(looks).filter(|((series, _), _)| !series.name.is_empty());
    for ((series, &slot), look) in named {
        let line = look.dash.map(|dash| (series.width, dash));
        let marker = look.marker.or(look.beads);
        let band = !series.band.is_empty() || series.kind == Kind::Band;
        match entries.iter_mut().find(|entry| entry.name == series.name) {
            Some(known) => {
                known.line = known.line.or(line);
                known.marker = known.marker.or(marker);
                known.band |= band;
            }
            None => entries.push(Entry { name: series.name.clone(), slot, line, marker, band }),
        }
    }
    entries
}

/// Entries in reading order, cut into rows.
fn rows(entries: &[Entry], width: f64) -> Vec<&[Entry]> {
    let mut rows = Vec::new();
    let (mut start, mut used) = (0, 0.0);
    for (k, entry) in entries.iter().enumerate() {
        if k > start && used + entry.width() > width {
            rows.push(&entries[start..k]);
            (start, used) = (k, 0.0);
        }
        used += entry.width() + ENTRY_GAP;
    }
    if start < entries.len() {
        rows.push(&entries[start..]);
    }
    rows
}

/// Height of the rows for so much width.
pub(super) fn height(entries: &[Entry], width: f64) -> f64 {
    rows(entries, width).len() as f64 * LINE
}

/// Draws rows from the top left corner of a rectangle as wide as the rows may be; returns their height.
pub(super) fn draw_rows(entries: &[Entry], rect: Rect, shapes: &mut Vec<Shape>) -> f64 {
    let mut y = rect.y;
    for row in rows(entries, rect.w) {
        let mut x = rect.x;
        for entry in row {
            entry.draw(Point::new(x, y), rect.w, shapes);
            x += entry.width() + ENTRY_GAP;
        }
        y += LINE;
    }
    y - rect.y
}

/// Draws a box in the corner with the least data.
pub(super) fn draw_inside(entries: &[Entry], plot: Rect, crowd: &mut Crowd, shapes: &mut Vec<Shape>) {
    const PAD: f64 = 6.0;
    let widest = entries.iter().map(Entry::width).fold(0.0, f64::max).min(plot.w - 2.0 * PAD - 12.0);
    let (w, h) = (widest + 2.0 * PAD, entries.len() as f64 * LINE + 2.0 * PAD - 4.0);
    let (left, middle, right) = (plot.x + 6.0, plot.x + (plot.w - w) / 2.0, plot.right() - w - 6.0);
    let (top, bottom) = (plot.y + 6.0, plot.bottom() - h - 6.0);
    let corners =
        [(right, top), (left, top), (right, bottom), (left, bottom), (middle, top), (middle, bottom)];
    let places = corners.map(|(x, y)| Rect::new(x, y, w, h));
    let Some(rect) = crowd.place(&places).filter(|_| !entries.is_empty()) else { return };
    shapes.push(Shape::Block { rect: rect.grown(1.0), paint: Paint::Grid, opacity: 0.9, radius: 4.0 });
    shapes.push(Shape::Block { rect, paint: Paint::Paper, opacity: 0.92, radius: 3.0 });
    for (k, entry) in entries.iter().enumerate() {
        let at = Point::new(rect.x + PAD, rect.y + PAD - 2.0 + k as f64 * LINE);
        entry.draw(at, widest, shapes);
    }
}
