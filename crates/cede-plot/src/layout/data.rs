//! Series, regions and reference lines as shapes.

use super::labels::Crowd;
use super::look::{Look, bead_places};
use crate::decimate::{clip_ring, clip_run, runs};
use crate::drawing::{Shape, Stroke};
use crate::figure::{Kind, Panel, Series};
use crate::geometry::{Point, Rect};
use crate::scale::Projection;
use crate::series::stairs;
use crate::style::{Marker, Paint};

pub(super) const MARK_RADIUS: f64 = 3.3;
pub(super) const MARK_RIM: f64 = 0.4;
const BEAD_RADIUS: f64 = 4.2;
const BEAD_RIM: f64 = 1.3;
pub(super) const BAND_OPACITY: f64 = 0.2;
const REGION_OPACITY: f64 = 0.13;
const REFERENCE_DASH: &[f64] = &[4.0, 3.0];

pub(super) fn regions(panel: &Panel, on: &Projection, shapes: &mut Vec<Shape>) {
    for region in &panel.regions {
        if let Some((from, to)) = on.columns_of(region.from, region.to) {
            let rect = Rect::new(from, on.rect.y, (to - from).max(0.5), on.rect.h);
            shapes.push(Shape::Block { rect, paint: Paint::Shade, opacity: REGION_OPACITY, radius: 0.0 });
        }
    }
}

/// Bands under reference lines under lines and marks.
pub(super) fn draw(
    panel: &Panel,
    (slots, looks): (&[usize], &[Look]),
    on: &Projection,
    crowd: &mut Crowd,
    shapes: &mut Vec<Shape>,
) {
    let series = || panel.series.iter().zip(slots.iter().copied());
    for (series, slot) in series() {
        let rings = band(&series.band, on);
        if !rings.is_empty() {
            shapes.push(Shape::Areas { rings, paint: Paint::Series(slot), opacity: BAND_OPACITY });
        }
    }
    reference_lines(panel, on, crowd, shapes);
    for ((series, slot), look) in series().zip(looks) {
        line(series, (slot, look), on, crowd, shapes);
        marks(series, (slot, look), on, crowd, shapes);
    }
}

/// The polygons between the low and the high edge, one for each stretch without a gap.
fn band(values: &[(f64, f64, f64)], on: &Projection) -> Vec<Vec<Point>> {
    let finite = |v: &(f64, f64, f64)| on.place((v.0, v.1)).is_finite() && on.place((v.0, v.2)).is_finite();
    let mut rings = Vec::new();
    for part in values.split(|v| !finite(v)).filter(|part| part.len() > 1) {
        let low = runs(part.iter().map(|v| on.place((v.0, v.1)))).concat();
        let high = runs(part.iter().map(|v| on.place((v.0, v.2)))).concat();
        let ring = clip_ring(low.into_iter().chain(high.into_iter().rev()).collect(), on.rect);
        rings.extend((ring.len() > 2).then_some(ring));
    }
    rings
}

fn reference_lines(panel: &Panel, on: &Projection, crowd: &mut Crowd, shapes: &mut Vec<Shape>) {
    for line in &panel.lines {
        let (x, y) = (on.x_of(line.at), on.y_of(line.at));
        let ends = match line.upright {
            true => [Point::new(x, on.rect.y), Point::new(x, on.rect.bottom())],
            false => [Point::new(on.rect.x, y), Point::new(on.rect.right(), y)],
        };
        if ends.iter().all(|p| p.is_finite() && on.rect.contains(*p)) {
            crowd.see_line(&ends);
            let stroke = Stroke { paint: Paint::Muted, width: 1.1, dash: REFERENCE_DASH };
            shapes.push(Shape::Lines { runs: vec![ends.to_vec()], stroke });
        }
    }
}

fn line(
    series: &Series,
    (slot, look): (usize, &Look),
    on: &Projection,
    crowd: &mut Crowd,
    shapes: &mut Vec<Shape>,
) {
    let all = match series.kind {
        Kind::Line | Kind::LinePoints => runs(series.points.iter().map(|p| on.place(*p))),
        Kind::Steps => runs(stairs(&series.points).map(|p| on.place(p))),
        Kind::Points | Kind::Band => return,
    };
    let shown: Vec<Vec<Point>> = all.iter().flat_map(|run| clip_run(run, on.rect)).collect();
    shown.iter().for_each(|run| crowd.see_line(run));
    let (lone, runs): (Vec<_>, Vec<_>) = shown.into_iter().partition(|run| run.len() == 1);
    let paint = Paint::Series(slot);
    let beads = look.beads.map(|marker| (marker, bead_places(&runs, slot, on.rect)));
    if let Some(dash) = look.dash.filter(|_| !runs.is_empty()) {
        shapes.push(Shape::Lines { runs, stroke: Stroke { paint, width: series.width, dash } });
    }
    if let Some((marker, at)) = beads.filter(|(_, at)| !at.is_empty()) {
        shapes.push(Shape::Marks { at, marker, radius: BEAD_RADIUS, rim: BEAD_RIM, paint });
    }
    if !lone.is_empty() && series.kind != Kind::LinePoints {
        shapes.push(Shape::Marks {
            at: lone.concat(),
            marker: Marker::Circle,
            radius: series.width,
            rim: 0.0,
            paint,
        });
    }
}

fn marks(
    series: &Series,
    (slot, look): (usize, &Look),
    on: &Projection,
    crowd: &mut Crowd,
    shapes: &mut Vec<Shape>,
) {
    let Some(marker) = look.marker else { return };
    let places = series.points.iter().map(|p| on.place(*p));
    let at: Vec<Point> = places.filter(|p| p.is_finite() && on.rect.contains(*p)).collect();
    at.iter().for_each(|p| crowd.see_mark(*p));
    if !at.is_empty() {
        shapes.push(Shape::Marks {
            at,
            marker,
            radius: MARK_RADIUS,
            rim: MARK_RIM,
            paint: Paint::Series(slot),
        });
    }
}
