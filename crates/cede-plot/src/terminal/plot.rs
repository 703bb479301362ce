//! A panel's data on a canvas of braille dots.

use super::canvas::Canvas;
use super::row::{Style, fit, width};
use crate::decimate;
use crate::figure::{Kind, Panel, Series};
use crate::geometry::{Point, Rect};
use crate::scale::{Projection, ranges};
use crate::series::stairs;
use crate::style::Marker;

/// Columns between two marks on a line where there is no colour.
const MARK_EVERY: usize = 12;

pub(super) struct Plot<'a> {
    panel: &'a Panel,
    slots: &'a [usize],
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) projection: Projection,
    pub(super) canvas: Canvas,
}

impl<'a> Plot<'a> {
    /// An empty plot of so many characters; both at least 1.
    pub(super) fn new(panel: &'a Panel, slots: &'a [usize], columns: usize, rows: usize) -> Self {
        let (x, y) = ranges(panel);
        let rect = Rect::new(0.0, 0.0, (columns * 2 - 1) as f64, (rows * 4 - 1) as f64);
        let projection = Projection { rect, x, y };
        Plot { panel, slots, columns, rows, projection, canvas: Canvas::new(columns, rows) }
    }

    pub(super) fn draw(&mut self, colour: bool) {
        for (series, slot) in self.panel.series.iter().zip(self.slots) {
            self.draw_series(series, *slot);
        }
        if !colour && self.panel.series.len() > 1 {
            (0..self.panel.series.len()).for_each(|k| self.mark_line(k));
        }
        for line in &self.panel.lines {
            if line.upright {
                self.draw_vertical(line.at);
            } else {
                self.draw_horizontal(line.at, &line.label);
            }
        }
    }

    /// The column of an x value, if it is shown.
    pub(super) fn column_of(&self, value: f64) -> Option<usize> {
        let x = self.projection.x_of(value);
        (x.is_finite() && (0.0..=self.projection.rect.w).contains(&x)).then(|| x.round() as usize / 2)
    }

    /// The row of a y value, if it is shown.
    pub(super) fn row_of(&self, value: f64) -> Option<usize> {
        let y = self.projection.y_of(value);
        (y.is_finite() && (0.0..=self.projection.rect.h).contains(&y)).then(|| y.round() as usize / 4)
    }

    fn runs(&self, points: impl Iterator<Item = (f64, f64)>) -> Vec<Vec<Point>> {
        let runs = decimate::runs(points.map(|p| self.projection.place(p)));
        runs.iter().flat_map(|run| decimate::clip_run(run, self.projection.rect)).collect()
    }

    fn line_of(&self, series: &Series) -> Vec<Vec<Point>> {
        match series.kind {
            Kind::Points | Kind::Band => Vec::new(),
            Kind::Line | Kind::LinePoints => self.runs(series.points.iter().copied()),
            Kind::Steps => self.runs(stairs(&series.points)),
        }
    }

    fn draw_series(&mut self, series: &Series, slot: usize) {
        self.draw_runs(&self.line_of(series), slot);
        if series.kind == Kind::Band {
            self.draw_runs(&self.runs(series.band.iter().map(|b| (b.0, b.1))), slot);
            self.draw_runs(&self.runs(series.band.iter().map(|b| (b.0, b.2))), slot);
        }
        let sparse = series.points.len() * 3 <= self.columns;
        if series.kind == Kind::Points || (series.kind == Kind::LinePoints && sparse) {
            series.points.iter().for_each(|p| self.mark(self.projection.place(*p), series, slot));
        }
    }

    fn draw_runs(&mut self, runs: &[Vec<Point>], slot: usize) {
        for run in runs {
            if let [only] = run[..] {
                self.canvas.line(only, only, Style::Slot(slot));
            }
            run.windows(2).for_each(|pair| self.canvas.line(pair[0], pair[1], Style::Slot(slot)));
        }
    }

    fn mark(&mut self, at: Point, series: &Series, slot: usize) {
        if at.is_finite() && self.projection.rect.contains(at) {
            let glyph = series.marker.unwrap_or(Marker::of_slot(slot)).glyph();
            let (column, row) = (at.x.round() as usize / 2, at.y.round() as usize / 4);
            self.canvas.sign(column, row, glyph, Style::Slot(slot));
        }
    }

    /// Sets marks along a line, those of different lines in different columns.
    fn mark_line(&mut self, k: usize) {
        let series = &self.panel.series[k];
        let runs = self.line_of(series);
        let offset = (MARK_EVERY / 2 + k * MARK_EVERY / self.panel.series.len()) % MARK_EVERY;
        for column in (offset..self.columns).step_by(MARK_EVERY) {
            let x = column as f64 * 2.0;
            if let Some(y) = height_at(&runs, x).filter(|_| series.kind != Kind::LinePoints) {
                self.mark(Point::new(x, y), series, self.slots[k]);
            }
        }
    }

    fn draw_horizontal(&mut self, value: f64, label: &str) {
        let Some(row) = self.row_of(value) else { return };
        let label = fit(label, self.columns);
        let start = self.columns - width(&label);
        let beside = [row.checked_sub(1), Some(row + 1)].into_iter().flatten();
        let place = beside.filter(|r| *r < self.rows).find(|r| self.canvas.is_free(start, self.columns, *r));
        for column in 0..self.columns {
            self.canvas.sign_if_empty(column, row, '╌', Style::Dim);
        }
        let Some(row) = place else { return };
        label.chars().zip(start..).for_each(|(c, column)| self.canvas.sign(column, row, c, Style::Dim));
    }

    fn draw_vertical(&mut self, value: f64) {
        if let Some(column) = self.column_of(value) {
            (0..self.rows).for_each(|row| self.canvas.sign_if_empty(column, row, '┊', Style::Dim));
        }
    }
}

/// The height of a line at `x`, between the points on both sides.
fn height_at(runs: &[Vec<Point>], x: f64) -> Option<f64> {
    let pair = runs.iter().flat_map(|run| run.windows(2)).find(|pair| pair[0].x <= x && x <= pair[1].x)?;
    let span = pair[1].x - pair[0].x;
    let t = if span > 0.0 { (x - pair[0].x) / span } else { 0.0 };
    Some(pair[0].y + t * (pair[1].y - pair[0].y))
}
