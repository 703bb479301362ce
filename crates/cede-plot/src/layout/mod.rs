//! From what is to be shown to a display list: one pass for all picture formats.

mod axes;
mod data;
mod labels;
mod legend;
mod panel;

use crate::drawing::{Drawing, Point, Rect, Shape, Text, Weight};
use crate::figure::{Figure, Legend};
use crate::style::Paint;
use crate::{font, scale, series};
use legend::Entry;
use panel::Plan;

/// Room about the whole picture.
const MARGIN: f64 = 18.0;
/// Text sizes and the distance from one baseline to the next.
const TITLE: (f64, f64) = (17.0, 22.0);
const SUBTITLE: (f64, f64) = (12.5, 17.0);
const CAPTION: (f64, f64) = (11.0, 15.0);
/// Room between the panels.
const ROW_GAP: f64 = 16.0;
const COLUMN_GAP: f64 = 14.0;

/// Lays out a figure.
pub(crate) fn lay_out(figure: &Figure) -> Drawing {
    let mut sheet = Sheet { shapes: Vec::new(), width: page_width(figure), y: MARGIN };
    sheet.paragraph(&figure.title, TITLE, Weight::Bold, Paint::Ink);
    sheet.paragraph(&figure.subtitle, SUBTITLE, Weight::Regular, Paint::Muted);
    let slots = series::slots(&figure.panels);
    let shared = shared_legend(figure, &slots);
    if !shared.is_empty() {
        let rect = Rect::new(MARGIN, sheet.y + 6.0, sheet.inner_width(), 0.0);
        sheet.y += 6.0 + legend::draw_rows(&shared, rect, &mut sheet.shapes);
    }
    sheet.y += 8.0;
    let mut plans = plans(figure, &slots, !shared.is_empty());
    let frames = sheet.grid(figure, &mut plans);
    if !figure.caption.is_empty() {
        sheet.y += 10.0;
        sheet.paragraph(&figure.caption, CAPTION, Weight::Regular, Paint::Muted);
    }
    let (width, height) = (sheet.width, (sheet.y + MARGIN - 4.0).ceil());
    Drawing { title: figure.title.clone(), width, height, shapes: sheet.shapes, frames }
}

fn page_width(figure: &Figure) -> f64 {
    let usual = match figure.columns.min(figure.panels.len()) {
        0 | 1 => 720.0,
        2 => 960.0,
        _ => 1140.0,
    };
    figure.width.filter(|w| w.is_finite()).map_or(usual, |w| w.clamp(240.0, 4000.0)).round()
}

fn plot_height(figure: &Figure) -> f64 {
    let usual = match figure.columns.min(figure.panels.len()) {
        0 | 1 => 230.0,
        2 => 210.0,
        _ => 190.0,
    };
    figure.panel_height.filter(|h| h.is_finite()).map_or(usual, |h| h.clamp(40.0, 4000.0)).round()
}

/// The entries of the legend under the title; none if each panel has its own.
fn shared_legend(figure: &Figure, slots: &[Vec<usize>]) -> Vec<Entry> {
    let lists: Vec<Vec<Entry>> = figure
        .panels
        .iter()
        .zip(slots)
        .filter(|(panel, _)| panel.legend == Legend::Auto)
        .map(|(panel, slots)| legend::entries(panel, slots))
        .collect();
    let names = |list: &Vec<Entry>| list.iter().map(|e| e.name.clone()).collect::<Vec<_>>();
    let alike = lists.len() > 1 && lists[0].len() > 1 && lists.iter().all(|l| names(l) == names(&lists[0]));
    let mut shared: Vec<Entry> = Vec::new();
    if figure.shared_legend.unwrap_or(alike) {
        for entry in lists.into_iter().flatten() {
            if shared.iter().all(|known| known.name != entry.name) {
                shared.push(entry);
            }
        }
    }
    shared
}

fn plans<'a>(figure: &'a Figure, slots: &'a [Vec<usize>], shared_legend: bool) -> Vec<Plan<'a>> {
    let columns = figure.columns;
    let mut ranges: Vec<_> = figure.panels.iter().map(scale::ranges).collect();
    let own = ranges.clone();
    for (k, (x, y)) in ranges.iter_mut().enumerate() {
        let alike = |j: usize| figure.panels[j].x.scale == x.scale && j % columns == k % columns;
        if figure.share_x {
            *x = (0..own.len()).filter(|j| alike(*j)).fold(*x, |range, j| range.union(own[j].0));
        }
        let alike = |j: usize| figure.panels[j].y.scale == y.scale && j / columns == k / columns;
        if figure.share_y {
            *y = (0..own.len()).filter(|j| alike(*j)).fold(*y, |range, j| range.union(own[j].1));
        }
    }
    let plan = |k: usize| Plan {
        panel: &figure.panels[k],
        slots: &slots[k],
        ranges: ranges[k],
        x_labels: !figure.share_x || k + columns >= figure.panels.len(),
        y_labels: !figure.share_y || k.is_multiple_of(columns),
        shared_legend,
        plot_height: plot_height(figure),
    };
    (0..figure.panels.len()).map(plan).collect()
}

/// A page filled from the top.
struct Sheet {
    shapes: Vec<Shape>,
    width: f64,
    y: f64,
}

impl Sheet {
    fn inner_width(&self) -> f64 {
        self.width - 2.0 * MARGIN
    }

    fn paragraph(&mut self, text: &str, (size, leading): (f64, f64), weight: Weight, paint: Paint) {
        for line in font::wrap(text, size, weight, self.inner_width()) {
            let at = Point::new(MARGIN, self.y + size);
            let text = Text { weight, ..Text::new(line, at, size).paint(paint) };
            self.shapes.push(Shape::Text(text));
            self.y += leading;
        }
    }

    /// Places the panels so that plot areas line up in rows and columns, and draws them.
    fn grid(&mut self, figure: &Figure, plans: &mut [Plan]) -> Vec<crate::drawing::Frame> {
        let columns = figure.columns.min(plans.len().max(1));
        let lefts: Vec<f64> = (0..columns)
            .map(|c| plans.iter().skip(c).step_by(columns).map(|p| p.left_room()).fold(0.0, f64::max))
            .collect();
        let taken = lefts.iter().sum::<f64>() + COLUMN_GAP * columns as f64;
        let plot_width = ((self.inner_width() - taken) / columns as f64).max(30.0).floor();
        let mut frames = Vec::new();
        for row in plans.chunks(columns) {
            let tallest = |room: fn(&Plan, f64) -> f64| row.iter().map(|p| room(p, plot_width)).fold(0.0, f64::max);
            let (head, foot) = (tallest(|p, w| p.head_room(w)).round(), tallest(|p, w| p.foot_room(w)).round());
            let mut x = MARGIN;
            for (plan, left) in row.iter().zip(&lefts) {
                let top = (self.y + head).round();
                let rect = Rect::new((x + left).round(), top, plot_width, plan.plot_height);
                frames.push(plan.draw(rect, x, &mut self.shapes));
                x += left + plot_width + COLUMN_GAP;
            }
            self.y += head + row[0].plot_height + foot + ROW_GAP;
        }
        self.y -= if plans.is_empty() { 0.0 } else { ROW_GAP };
        frames
    }
}
