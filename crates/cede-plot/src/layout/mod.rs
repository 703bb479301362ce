//! From what is to be shown to a display list: one pass for all picture formats.

mod axes;
mod data;
mod labels;
mod legend;
mod look;
mod panel;

use crate::drawing::{Drawing, Shape, Text, Weight};
use crate::figure::{Figure, Legend};
use crate::geometry::{Point, Rect};
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
    let mut plans = plans(figure, &slots);
    let shared = shared_legend(figure, &mut plans);
    if !shared.is_empty() {
        let rect = Rect::new(MARGIN, sheet.y + 6.0, sheet.inner_width(), 0.0);
        sheet.y += 6.0 + legend::draw_rows(&shared, rect, &mut sheet.shapes);
    }
    sheet.y += 8.0;
    let frames = sheet.grid(figure, &plans);
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
fn shared_legend(figure: &Figure, plans: &mut [Plan]) -> Vec<Entry> {
    let auto = plans.iter().filter(|plan| plan.panel.legend == Legend::Auto);
    let lists: Vec<Vec<Entry>> = auto.map(Plan::legend).collect();
    let names = |list: &Vec<Entry>| list.iter().map(|e| e.name.clone()).collect::<Vec<_>>();
    let alike = lists.len() > 1 && lists[0].len() > 1 && lists.iter().all(|l| names(l) == names(&lists[0]));
    let mut shared: Vec<Entry> = Vec::new();
    if figure.shared_legend.unwrap_or(alike) {
        for entry in lists.into_iter().flatten() {
            if shared.iter().all(|known| known.name != entry.name) {
                shared.push(entry);
            }
        }
        plans.iter_mut().for_each(|plan| plan.shared_legend = true);
    }
    shared
}

fn plans<'a>(figure: &'a Figure, slots: &'a [Vec<usize>]) -> Vec<Plan<'a>> {
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
    let height = plot_height(figure);
    let rough = look::rough_names(&figure.panels, &ranges, height);
    let looks = |k: usize| {
        let panel = &figure.panels[k];
        let alone = look::stands_alone(panel, &figure.panels);
        look::looks(panel, &slots[k], ranges[k], height, (&rough, alone))
    };
    let plan = |k: usize| Plan {
        panel: &figure.panels[k],
        slots: &slots[k],
        looks: looks(k),
        ranges: ranges[k],
        x_labels: !figure.share_x || k + columns >= figure.panels.len(),
        y_labels: !figure.share_y || k.is_multiple_of(columns),
        shared_legend: false,
        plot_height: height,
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
    fn grid(&mut self, figure: &Figure, plans: &[Plan]) -> Vec<crate::drawing::Frame> {
        let columns = figure.columns.min(plans.len().max(1));
        let lefts: Vec<f64> = (0..columns)
            .map(|c| plans.iter().skip(c).step_by(columns).map(|p| p.left_room()).fold(0.0, f64::max))
            .collect();
        let taken = lefts.iter().sum::<f64>() + COLUMN_GAP * columns as f64;
        let plot_width = ((self.inner_width() - taken) / columns as f64).max(30.0).floor();
        let mut frames = Vec::new();
        for row in plans.chunks(columns) {
            let tallest =
                |room: fn(&Plan, f64) -> f64| row.iter().map(|p| room(p, plot_width)).fold(0.0, f64::max);
            let (head, foot) =
                (tallest(|p, w| p.head_room(w)).round(), tallest(|p, w| p.foot_room(w)).round());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::Anchor;
    use crate::figure::{Axis, Panel, Series};

    /// The room that a text takes, a little less than the line's height so that touching lines pass.
    fn extent(text: &Text) -> Rect {
        let width = font::width(&text.content, text.size, text.weight);
        let back = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let height = text.size * 0.72;
        match text.turned {
            false => Rect::new(text.at.x - back, text.at.y - height, width, height),
            true => Rect::new(text.at.x - height, text.at.y - width + back, height, width),
        }
    }

    fn texts(drawing: &Drawing) -> Vec<(&str, Rect)> {
        let all = drawing.shapes.iter();
        all.filter_map(|shape| match shape {
            Shape::Text(text) => Some((text.content.as_str(), extent(text))),
            _ => None,
        })
        .collect()
    }

    fn check(figure: &Figure) {
        let drawing = lay_out(figure);
        let page = Rect::new(0.0, 0.0, drawing.width, drawing.height);
        let texts = texts(&drawing);
        for (i, (content, rect)) in texts.iter().enumerate() {
            let corners = [Point::new(rect.x, rect.y), Point::new(rect.right(), rect.bottom())];
            assert!(corners.iter().all(|c| page.contains(*c)), "{content:?} leaves the page");
            for (other, other_rect) in &texts[..i] {
                assert!(!rect.overlaps(*other_rect), "{content:?} lies on {other:?}");
            }
        }
    }

    fn busy_panel(k: u32, long: bool) -> Panel {
        let title = if long {
            "A title of many words that will not fit on a single line of a small panel"
        } else {
            "Title"
        };
        let value = move |i: u32| (f64::from(i) * 137.0, f64::from(i * i % 97) * f64::from(k + 1) * 1234.5);
        Panel::new(title)
            .x(Axis::new("a quantity").unit("units"))
            .y(Axis::new("another quantity").unit("Mbit/s"))
            .series(Series::line("first of the series", (0..300).map(value)))
            .series(Series::line_points(format!("series {k}"), (0..20).map(value)))
            .hline(5e4, "limit")
            .vline(1e4, "begin")
            .region(1.5e4, 3e4, "interval")
    }

    #[test]
    fn no_text_lies_on_another_or_leaves_the_page() {
        for columns in 1..=4 {
            for long in [false, true] {
                let panels = (0..columns as u32 * 2).map(|k| busy_panel(k, long));
                let figure = Figure::new("A figure")
                    .subtitle("of some panels")
                    .caption("Small print.")
                    .columns(columns);
                let figure = figure.panels(panels).width(300.0 * columns as f64);
                check(&figure);
                check(&figure.clone().share_x().share_y());
                check(&figure.shared_legend(true));
            }
        }
    }

    #[test]
    fn logarithmic_and_named_ticks_keep_apart() {
        let names = (0..12u8).map(|i| (f64::from(i), format!("category {i}")));
        let named = Panel::new("")
            .x(Axis::new("").ticks(names))
            .series(Series::points("", [(0.0, 1.0), (11.0, 2.0)]));
        let log = || Axis::new("value").unit("s").log10();
        let decades =
            |hi: f64| Panel::new("").x(log()).y(log()).series(Series::line("", [(1e-3, hi), (hi, 1e-9)]));
        for width in [240.0, 400.0, 720.0] {
            let panels = [named.clone(), decades(1e-2), decades(1.0), decades(1e9), decades(1e200)];
            check(&Figure::new("").panels(panels).width(width));
        }
    }

    #[test]
    fn plot_areas_line_up() {
        let drawing = lay_out(&Figure::new("").columns(3).panels((0..6).map(|k| busy_panel(k, k == 4))));
        let rects: Vec<Rect> = drawing.frames.iter().map(|frame| frame.projection.rect).collect();
        for k in 0..3 {
            assert_eq!((rects[k].x, rects[k].w), (rects[k + 3].x, rects[k + 3].w));
            assert_eq!((rects[0].y, rects[3].y), (rects[k].y, rects[k + 3].y));
        }
    }

    #[test]
    fn a_legend_is_shared_only_if_all_panels_name_the_same() {
        let drawing = |names: [&str; 2]| {
            let panel =
                |name: &str| Panel::new("").all_series([Series::line("a", []), Series::line(name, [])]);
            lay_out(&Figure::new("").panels(names.map(panel)))
        };
        let count = |names| texts(&drawing(names)).iter().filter(|text| text.0 == "a").count();
        assert_eq!((count(["b", "b"]), count(["b", "c"])), (1, 2));
    }
}
