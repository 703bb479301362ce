//! Labels inside the plot area, where they hide least.

use crate::drawing::{Anchor, Shape, Text, Weight};
use crate::figure::Panel;
use crate::font;
use crate::geometry::{Point, Rect};
use crate::scale::Projection;
use crate::style::Paint;

const SIZE: f64 = 11.0;
const LINE: f64 = 15.0;
/// Distance between two places at which a line is looked at.
const SAMPLE_EVERY: f64 = 4.0;
/// A label over a label is worse than one over any amount of data.
const OVERLAP_COST: f64 = 1e6;

/// What stands in a plot area already.
#[derive(Default)]
pub(super) struct Crowd {
    dots: Vec<Point>,
    taken: Vec<Rect>,
}

impl Crowd {
    /// A mark hides as much as a short piece of line.
    pub(super) fn see_mark(&mut self, p: Point) {
        self.dots.extend([p, p]);
    }

    pub(super) fn see_line(&mut self, run: &[Point]) {
        self.dots.extend(run.first());
        for pair in run.windows(2) {
            let (dx, dy) = (pair[1].x - pair[0].x, pair[1].y - pair[0].y);
            let steps = (dx.hypot(dy) / SAMPLE_EVERY).ceil().max(1.0);
            let at = |k: f64| Point::new(pair[0].x + dx * k / steps, pair[0].y + dy * k / steps);
            self.dots.extend((1..=steps as usize).map(|k| at(k as f64)));
        }
    }

    fn cost(&self, rect: Rect) -> f64 {
        let overlaps = self.taken.iter().filter(|other| other.overlaps(rect)).count();
        let dots = self.dots.iter().filter(|dot| rect.contains(**dot)).count();
        overlaps as f64 * OVERLAP_COST + dots as f64
    }

    /// Takes the best of some places, the earlier one of two that are as good.
    pub(super) fn place(&mut self, candidates: &[Rect]) -> Option<Rect> {
        let costs: Vec<f64> = candidates.iter().map(|rect| self.cost(*rect)).collect();
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let best = candidates[costs.iter().position(|cost| *cost == least)?];
        self.taken.push(best);
        Some(best)
    }
}

/// The labels of regions and reference lines.
pub(super) fn draw(panel: &Panel, on: &Projection, crowd: &mut Crowd, shapes: &mut Vec<Shape>) {
    for region in panel.regions.iter().filter(|region| !region.label.is_empty()) {
        if let Some((from, to)) = on.columns_of(region.from, region.to) {
            put(&region.label, &region_places(&region.label, (from + to) / 2.0, on.rect), crowd, shapes);
        }
    }
    for line in panel.lines.iter().filter(|line| !line.label.is_empty()) {
        let (x, y) = (on.x_of(line.at), on.y_of(line.at));
        let places = match line.upright {
            true if x >= on.rect.x && x <= on.rect.right() => upright_places(&line.label, x, on.rect),
            false if y >= on.rect.y && y <= on.rect.bottom() => level_places(&line.label, y, on.rect),
            _ => continue,
        };
        put(&line.label, &places, crowd, shapes);
    }
}

fn put(label: &str, places: &[Rect], crowd: &mut Crowd, shapes: &mut Vec<Shape>) {
    let Some(rect) = crowd.place(places) else { return };
    let label = font::fit(label, SIZE, Weight::Regular, rect.w + 0.01);
    let at = Point::new(rect.x + rect.w / 2.0, rect.y + LINE * 0.76);
    shapes.push(Shape::Text(Text::new(label, at, SIZE).anchor(Anchor::Middle).paint(Paint::Muted).halo()));
}

fn label_width(label: &str, rect: Rect) -> f64 {
    font::width(label, SIZE, Weight::Regular).min(rect.w - 4.0)
}

/// A rectangle for one line of text, moved into the plot area.
fn inside(x: f64, y: f64, width: f64, rect: Rect) -> Rect {
    let x = x.clamp(rect.x + 2.0, (rect.right() - 2.0 - width).max(rect.x + 2.0));
    Rect::new(x, y.clamp(rect.y + 1.0, (rect.bottom() - LINE).max(rect.y + 1.0)), width, LINE)
}

/// At the top in the middle, or some lines lower, or at the bottom.
fn region_places(label: &str, middle: f64, rect: Rect) -> Vec<Rect> {
    let width = label_width(label, rect);
    let lines = (rect.h / LINE).floor().max(1.0) as usize;
    let at = |k: usize| inside(middle - width / 2.0, rect.y + 2.0 + k as f64 * LINE, width, rect);
    [0, 1, 2, lines - 1].map(at).to_vec()
}

/// Beside the line, at the top or some lines lower, right or left.
fn upright_places(label: &str, x: f64, rect: Rect) -> Vec<Rect> {
    let width = label_width(label, rect);
    let rows = (0..3).map(|k| rect.y + 2.0 + f64::from(k) * LINE).chain([rect.bottom() - LINE - 2.0]);
    rows.flat_map(|y| [x + 4.0, x - width - 4.0].map(|x| inside(x, y, width, rect))).collect()
}

/// Over or under the line, from its right end to its left one.
fn level_places(label: &str, y: f64, rect: Rect) -> Vec<Rect> {
    let width = label_width(label, rect);
    let free = (rect.w - width - 8.0).max(0.0);
    let xs = [1.0, 0.0, 0.75, 0.5, 0.25].map(|share| rect.x + 4.0 + free * share);
    let fits = |y: &f64| *y >= rect.y && y + LINE <= rect.bottom();
    let ys = [y - LINE - 1.0, y + 1.0].into_iter().filter(fits);
    let ys: Vec<f64> = ys.collect();
    xs.iter().flat_map(|x| ys.iter().map(|y| inside(*x, *y, width, rect))).collect()
}
