//! One panel: how much room it needs, and its shapes.

use super::labels::Crowd;
use super::look::Look;
use super::{axes, data, labels, legend};
use crate::drawing::{Anchor, Frame, Shape, Text, Weight};
use crate::figure::{Legend, Panel, Series};
use crate::font;
use crate::geometry::{Point, Rect};
use crate::scale::{Projection, Range};
use crate::style::Paint;

const TITLE: (f64, f64) = (13.0, 17.0);
/// What stands in the place of data.
const NOTHING: &str = "nothing measured";

/// A panel with what the figure decided for it.
pub(super) struct Plan<'a> {
    pub(super) panel: &'a Panel,
    pub(super) slots: &'a [usize],
    pub(super) looks: Vec<Look>,
    pub(super) ranges: (Range, Range),
    pub(super) x_labels: bool,
    pub(super) y_labels: bool,
    pub(super) shared_legend: bool,
    pub(super) plot_height: f64,
}

impl Plan<'_> {
    /// Room left of the plot area.
    pub(super) fn left_room(&self) -> f64 {
        axes::left_room(&self.panel.y, self.ranges.1, self.plot_height, self.y_labels)
    }

    /// Room over the plot area: title and legend.
    pub(super) fn head_room(&self, width: f64) -> f64 {
        let title = self.title_lines(width).len() as f64 * TITLE.1;
        let legend = if self.legend_above() { legend::height(&self.legend(), width) } else { 0.0 };
        title + legend + 7.0
    }

    /// Room under the plot area: tick labels, heading and legend.
    pub(super) fn foot_room(&self, width: f64) -> f64 {
        let legend = if self.panel.legend == Legend::Below {
            6.0 + legend::height(&self.legend(), width)
        } else {
            0.0
        };
        axes::foot_room(&self.panel.x, self.x_labels) + legend
    }

    fn title_lines(&self, width: f64) -> Vec<String> {
        font::wrap(&self.panel.title, TITLE.0, Weight::Bold, width)
    }

    pub(super) fn legend(&self) -> Vec<legend::Entry> {
        legend::entries(self.panel, self.slots, &self.looks)
    }

    fn legend_above(&self) -> bool {
        self.panel.legend == Legend::Auto && !self.shared_legend && self.legend().len() > 1
    }

    /// Draws everything about a plot area; `left` is where the panel's room begins.
    pub(super) fn draw(&self, rect: Rect, left: f64, shapes: &mut Vec<Shape>) -> Frame {
        let projection = Projection { rect, x: self.ranges.0, y: self.ranges.1 };
        let x_ticks = axes::x_ticks(&self.panel.x, projection.x, rect.w);
        let y_ticks = axes::y_ticks(&self.panel.y, projection.y, rect.h);
        data::regions(self.panel, &projection, shapes);
        axes::grid(&projection, &x_ticks, &y_ticks, shapes);
        let mut crowd = Crowd::default();
        data::draw(self.panel, (self.slots, &self.looks), &projection, &mut crowd, shapes);
        axes::frame(&projection, &x_ticks, &y_ticks, shapes);
        if self.shows_nothing() {
            let middle = Point::new(rect.x + rect.w / 2.0, rect.y + rect.h / 2.0);
            let text = Text::new(NOTHING, middle, TITLE.0).anchor(Anchor::Middle).paint(Paint::Muted);
            shapes.push(Shape::Text(text));
        } else {
            axes::tick_labels(&projection, (&x_ticks, self.x_labels), (&y_ticks, self.y_labels), shapes);
        }
        self.headings(rect, left, shapes);
        self.title_and_legend(rect, shapes);
        if self.panel.legend == Legend::Inside {
            legend::draw_inside(&self.legend(), rect, &mut crowd, shapes);
        }
        labels::draw(self.panel, &projection, &mut crowd, shapes);
        Frame { projection, slots: self.slots.to_vec() }
    }

    /// Series were asked for, and none has a point: the ticks would be made up.
    fn shows_nothing(&self) -> bool {
        let is_there = |&(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
        let is_empty = |series: &Series| !series.points.iter().any(is_there) && series.band.is_empty();
        let Panel { series, .. } = self.panel;
        !series.is_empty() && series.iter().all(is_empty)
    }

    fn headings(&self, rect: Rect, left: f64, shapes: &mut Vec<Shape>) {
        if self.x_labels {
            axes::x_heading(&self.panel.x, rect, shapes);
        }
        if self.y_labels {
            axes::y_heading(&self.panel.y, rect, left, shapes);
        }
    }

    /// The title and a legend above stand directly on the plot area.
    fn title_and_legend(&self, rect: Rect, shapes: &mut Vec<Shape>) {
        let mut y = rect.y - self.head_room(rect.w);
        for line in self.title_lines(rect.w) {
            shapes.push(Shape::Text(Text::new(line, Point::new(rect.x, y + TITLE.0), TITLE.0).bold()));
            y += TITLE.1;
        }
        if self.legend_above() {
            legend::draw_rows(&self.legend(), Rect { y, ..rect }, shapes);
        }
        if self.panel.legend == Legend::Below {
            let y = rect.bottom() + axes::foot_room(&self.panel.x, self.x_labels) + 6.0;
            legend::draw_rows(&self.legend(), Rect { y, ..rect }, shapes);
        }
    }
}
