//! A line chart of braille dots between axes.

use super::plot::Plot;
use super::row::{Row, Style, fit, width};
use crate::figure::{Panel, Scale, Series};
use crate::scale::{Range, ranges};
use crate::style::Marker;
use crate::ticks::{self, Ticks};

const LEAST_ROWS: usize = 3;
/// The axis line and the labels under it.
const AXIS_LINES: usize = 2;

/// The panel in at most `columns` by `lines` characters, each line ending with a line feed.
///
/// Shown are title, legend, axes with ticks and units, lines, points, steps, the outline of bands that stand
/// alone, reference lines and the names of regions; the shading about a line is left out. Where there is no
/// room for everything, headings go first. With `colour`, lines have ANSI colours; without, marks.
pub fn chart(panel: &Panel, columns: usize, lines: usize, colour: bool) -> String {
    charts(std::slice::from_ref(panel), columns, lines, colour)
}

/// Several panels, one under the other, each in at most `columns` by `lines` characters: their plot areas
/// line up, equal names share a colour, and an empty line stands between two.
pub fn charts(panels: &[Panel], columns: usize, lines: usize, colour: bool) -> String {
    let slots = crate::series::slots(panels);
    let sketches: Vec<Sketch> = panels
        .iter()
        .zip(&slots)
        .map(|(panel, slots)| Sketch::new(panel, slots, (columns, lines), colour))
        .collect();
    let gutter = sketches.iter().map(Sketch::gutter).max().unwrap_or(0).min(columns / 2);
    let drawn = sketches.into_iter().map(|sketch| sketch.draw(gutter, (columns, lines), colour));
    drawn.collect::<Vec<_>>().join("\n")
}

/// A panel for which the lines have been dealt out, but not yet the columns.
struct Sketch<'a> {
    panel: &'a Panel,
    slots: &'a [usize],
    parts: Parts,
    rows: usize,
    y_ticks: Ticks,
}

impl<'a> Sketch<'a> {
    fn new(panel: &'a Panel, slots: &'a [usize], (columns, lines): (usize, usize), colour: bool) -> Self {
        let parts = Parts::choose(panel, slots, (columns, lines), colour);
        let rows = lines.saturating_sub(parts.lines()).max(1);
        let y_ticks = axis_ticks(&panel.y.ticks, ranges(panel).1, (rows / 2).clamp(2, 8));
        Sketch { panel, slots, parts, rows, y_ticks }
    }

    /// Columns for the labels of the y axis.
    fn gutter(&self) -> usize {
        self.y_ticks.major.iter().map(|tick| width(&tick.1) + 1).max().unwrap_or(0)
    }

    fn draw(self, gutter: usize, (columns, lines): (usize, usize), colour: bool) -> String {
        let mut plot =
            Plot::new(self.panel, self.slots, columns.saturating_sub(gutter + 1).max(1), self.rows);
        plot.draw(colour);
        let page = Page { panel: self.panel, plot, gutter, columns, y_ticks: self.y_ticks };
        let mut out = String::new();
        page.rows(self.parts).iter().take(lines).for_each(|row| row.write(columns, colour, &mut out));
        out
    }
}

/// The lines about the plot for which there is room.
struct Parts {
    head: Vec<Row>,
    strip: bool,
    heading: bool,
}

impl Parts {
    fn choose(panel: &Panel, slots: &[usize], (columns, lines): (usize, usize), colour: bool) -> Self {
        let head = head_rows(panel, slots, columns, colour);
        let labelled = panel.lines.iter().any(|line| line.upright && !line.label.is_empty());
        let strip = labelled || !panel.regions.is_empty();
        let mut parts = Parts { head, strip, heading: !panel.x.heading().is_empty() };
        let full = |parts: &Parts| parts.lines() + LEAST_ROWS > lines;
        parts.heading &= !full(&parts);
        parts.strip &= !full(&parts);
        while full(&parts) && parts.head.pop().is_some() {}
        parts
    }

    fn lines(&self) -> usize {
        self.head.len() + usize::from(self.strip) + AXIS_LINES + usize::from(self.heading)
    }
}

/// The title, then the y axis' heading and the legend.
fn head_rows(panel: &Panel, slots: &[usize], columns: usize, colour: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    if !panel.title.is_empty() {
        rows.push(Row::default());
        rows[0].push(&fit(&panel.title, columns), Style::Bold);
    }
    let mut line = Row::default();
    line.push(&panel.y.heading(), Style::Dim);
    let named = panel.series.iter().zip(slots).filter(|(series, _)| !series.name.is_empty());
    for (series, slot) in named {
        let (key, style) = key(series, *slot, colour);
        if line.width() > 0 && line.width() + 3 + width(&key) + 1 + width(&series.name) > columns {
            rows.push(std::mem::take(&mut line));
        }
        line.push(if line.width() > 0 { "   " } else { "" }, Style::Plain);
        line.push(&key, style);
        line.push(&format!(" {}", series.name), Style::Plain);
    }
    rows.extend((line.width() > 0).then_some(line));
    rows
}

fn key(series: &Series, slot: usize, colour: bool) -> (String, Style) {
    let glyph = series.marker.unwrap_or(Marker::of_slot(slot)).glyph();
    let key = if colour { "━━".to_string() } else { format!("─{glyph}─") };
    (key, Style::Slot(slot))
}

fn axis_ticks(fixed: &[(f64, String)], range: Range, most: usize) -> Ticks {
    if !fixed.is_empty() {
        let major = fixed.iter().filter(|t| range.contains(t.0)).cloned().collect();
        return Ticks { major, minor: Vec::new() };
    }
    match range.scale {
        Scale::Linear => ticks::linear(range.lo, range.hi, most),
        Scale::Log10 => ticks::log10(range.lo, range.hi, most),
    }
}

struct Page<'a> {
    panel: &'a Panel,
    plot: Plot<'a>,
    gutter: usize,
    columns: usize,
    y_ticks: Ticks,
}

impl Page<'_> {
    fn rows(&self, parts: Parts) -> Vec<Row> {
        let mut rows = parts.head;
        rows.extend(parts.strip.then(|| self.strip()));
        rows.extend((0..self.plot.rows).map(|row| self.plot_row(row)));
        rows.extend(self.x_axis());
        rows.extend(parts.heading.then(|| self.x_heading()));
        rows
    }

    /// The names of regions and upright lines, over the columns that they concern.
    fn strip(&self) -> Row {
        let regions = self.panel.regions.iter().filter_map(|region| {
            let range = self.plot.projection.x;
            let from = self.plot.column_of(region.from.max(range.lo))?;
            let to = self.plot.column_of(region.to.min(range.hi))?;
            Some((from, span(&region.label, to.checked_sub(from)? + 1)))
        });
        let upright = self.panel.lines.iter().filter(|line| line.upright);
        let lines =
            upright.filter_map(|line| Some((self.plot.column_of(line.at)?, format!("┊{}", line.label))));
        let mut labels: Vec<(usize, String)> = regions.chain(lines).collect();
        labels.sort();
        let mut row = Row::default();
        for (column, label) in labels {
            let start = self.gutter + 1 + column;
            if start >= row.width() {
                row.pad_to(start);
                row.push(&label, Style::Dim);
            }
        }
        row
    }

    fn plot_row(&self, row: usize) -> Row {
        let tick = self.y_ticks.major.iter().find(|tick| self.plot.row_of(tick.0) == Some(row));
        let room = self.gutter.saturating_sub(1);
        let label = tick.map_or(String::new(), |tick| fit(&tick.1, room));
        let mut line = Row::default();
        line.pad_to(room - width(&label));
        line.push(&label, Style::Plain);
        line.pad_to(self.gutter);
        line.push(if tick.is_some() { "┤" } else { "│" }, Style::Dim);
        self.plot.canvas.write_row(row, &mut line);
        line
    }

    /// The axis line with its ticks, and the labels under it.
    fn x_axis(&self) -> [Row; 2] {
        let most = (self.plot.columns / 10).clamp(2, 12);
        let ticks = axis_ticks(&self.panel.x.ticks, self.plot.projection.x, most);
        let place = |(value, label): &(f64, String)| Some((self.plot.column_of(*value)?, label.clone()));
        let placed: Vec<(usize, String)> = ticks.major.iter().filter_map(place).collect();
        let (mut rule, mut labels) = (Row::default(), Row::default());
        rule.pad_to(self.gutter);
        rule.push("└", Style::Dim);
        for column in 0..self.plot.columns {
            let is_tick = placed.iter().any(|(at, _)| *at == column);
            rule.push(if is_tick { "┬" } else { "─" }, Style::Dim);
        }
        placed.iter().for_each(|(column, label)| self.push_label(*column, label, &mut labels));
        [rule, labels]
    }

    /// Puts a label under its tick, unless it would run into the one before.
    fn push_label(&self, column: usize, label: &str, labels: &mut Row) {
        let centred = (self.gutter + 1 + column).saturating_sub(width(label) / 2);
        let start = centred.min(self.columns.saturating_sub(width(label)));
        if labels.width() == 0 || start > labels.width() {
            labels.pad_to(start);
            labels.push(label, Style::Plain);
        }
    }

    fn x_heading(&self) -> Row {
        let heading = fit(&self.panel.x.heading(), self.columns);
        let mut row = Row::default();
        row.pad_to(self.gutter + 1 + self.plot.columns.saturating_sub(width(&heading)) / 2);
        row.push(&heading, Style::Dim);
        row
    }
}

/// A label in the middle of a line as long as its region: `├── TCP ──┤`.
fn span(label: &str, columns: usize) -> String {
    if columns < 4 {
        return fit(label, columns);
    }
    let room = columns - 2;
    let label =
        if label.is_empty() { String::new() } else { format!(" {} ", fit(label, room.saturating_sub(2))) };
    let label = if width(&label) > room { String::new() } else { label };
    let free = room - width(&label);
    format!("├{}{label}{}┤", "─".repeat(free / 2), "─".repeat(free - free / 2))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::figure::Axis;

    pub(in crate::terminal) fn without_escapes(text: &str) -> String {
        let mut out = String::new();
        let mut parts = text.split("\x1b[");
        out += parts.next().unwrap_or("");
        parts.for_each(|part| out += part.split_once('m').map_or("", |(_, rest)| rest));
        out
    }

    fn panel() -> Panel {
        let wave = |phase: f64| {
            (0..500).map(move |i| (f64::from(i) / 10.0, 5.0 + 4.0 * (f64::from(i) / 40.0 + phase).sin()))
        };
        Panel::new("Sending rate")
            .x(Axis::new("time").unit("s"))
            .y(Axis::new("rate").unit("Mbit/s"))
            .series(Series::line("LEDBAT", wave(0.0)))
            .series(Series::line("CUBIC", wave(2.0)))
            .series(Series::points("losses", [(10.0, 1.0), (30.0, 2.0)]))
            .region(20.0, 40.0, "both active")
            .hline(10.0, "capacity")
            .vline(5.0, "start")
    }

    #[test]
    fn never_larger_than_asked() {
        for columns in 0..90 {
            for lines in [0, 1, 2, 3, 5, 8, 13, 24] {
                for colour in [false, true] {
                    let text = without_escapes(&chart(&panel(), columns, lines, colour));
                    assert!(text.lines().count() <= lines, "{columns} x {lines}");
                    assert!(text.lines().all(|line| width(line) <= columns), "{columns} x {lines}:\n{text}");
                }
            }
        }
    }

    #[test]
    fn everything_is_named() {
        let text = chart(&panel(), 80, 20, false);
        for part in [
            "Sending rate",
            "rate (Mbit/s)",
            "─●─ LEDBAT",
            "─■─ CUBIC",
            "▲",
            "time (s)",
            "both active",
            "┊start",
            "capacity",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert_eq!(text.lines().count(), 20);
    }

    #[test]
    fn colours_only_on_demand() {
        assert!(!chart(&panel(), 60, 15, false).contains('\x1b'));
        let text = chart(&panel(), 60, 15, true);
        assert!(text.contains("\x1b[38;5;33m") && text.contains("\x1b[38;5;202m"));
        assert!(
            text.lines()
                .all(|line| !line.contains('\x1b') || line.ends_with("\x1b[0m") || !line.ends_with('m'))
        );
    }

    #[test]
    fn a_flat_line_is_drawn_in_its_row() {
        let panel = Panel::new("")
            .y(Axis::new("").range(0.0, 10.0))
            .series(Series::line("", [(0.0, 10.0), (9.0, 10.0)]));
        let text = chart(&panel, 30, 8, false);
        let first = text.lines().next().unwrap_or("");
        assert!(first.starts_with("10 ┤⠉⠉⠉"), "{text}");
        assert!(text.lines().skip(1).all(|line| !line.contains('⠉')), "{text}");
    }

    #[test]
    fn degenerate_panels() {
        let log = || Axis::new("").log10();
        let panels = [
            Panel::new(""),
            Panel::new("").series(Series::line("", [(1.0, 1.0)])),
            Panel::new("").series(Series::line("nan", [(f64::NAN, 1.0), (1.0, f64::INFINITY)])),
            Panel::new("")
                .x(log())
                .y(log())
                .series(Series::steps("", [(-1.0, 0.0), (1.0, 1e300), (2.0, 1e-300)])),
            Panel::new("").series(Series::band("b", [(0.0, -1e308, 1e308), (1.0, 0.0, 1.0)])),
        ];
        for panel in panels {
            assert!(chart(&panel, 40, 10, false).lines().count() == 10);
        }
    }
}
