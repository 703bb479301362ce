//! What is to be shown: figures, panels, axes, series and the marks about them. Nothing here is laid out.

use crate::style::{Dash, Marker};

/// A titled grid of panels.
#[derive(Clone, Debug)]
pub struct Figure {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) caption: String,
    pub(crate) columns: usize,
    pub(crate) width: Option<f64>,
    pub(crate) panel_height: Option<f64>,
    pub(crate) share_x: bool,
    pub(crate) share_y: bool,
    pub(crate) shared_legend: Option<bool>,
    pub(crate) panels: Vec<Panel>,
}

impl Figure {
    /// A figure without panels, one column wide.
    pub fn new(title: impl Into<String>) -> Self {
        Figure {
            title: title.into(),
            subtitle: String::new(),
            caption: String::new(),
            columns: 1,
            width: None,
            panel_height: None,
            share_x: false,
            share_y: false,
            shared_legend: None,
            panels: Vec::new(),
        }
    }

    /// A line or two under the title.
    pub fn subtitle(mut self, text: impl Into<String>) -> Self {
        self.subtitle = text.into();
        self
    }

    /// Small print under the panels: the setting, the seeds, the source.
    pub fn caption(mut self, text: impl Into<String>) -> Self {
        self.caption = text.into();
        self
    }

    /// How many panels stand side by side (at least 1); rows follow from the number of panels.
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = columns.max(1);
        self
    }

    /// Width of the whole picture in SVG units (CSS pixels), 240 to 4000. Default: 720, 960 or 1140 for 1, 2, more columns.
    pub fn width(mut self, width: f64) -> Self {
        self.width = Some(width);
        self
    }

    /// Height of each plot area in SVG units, without title and axis text, 40 to 4000.
    pub fn panel_height(mut self, height: f64) -> Self {
        self.panel_height = Some(height);
        self
    }

    /// Gives the panels of a column one x range, and tick labels only under the lowest.
    pub fn share_x(mut self) -> Self {
        self.share_x = true;
        self
    }

    /// Gives the panels of a row one y range, and tick labels only on the leftmost.
    pub fn share_y(mut self) -> Self {
        self.share_y = true;
        self
    }

    /// Whether one legend under the title serves all panels. Default: if all panels name the same series.
    pub fn shared_legend(mut self, shared: bool) -> Self {
        self.shared_legend = Some(shared);
        self
    }

    /// Adds a panel, row by row from the left.
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// Adds several panels.
    pub fn panels(mut self, panels: impl IntoIterator<Item = Panel>) -> Self {
        self.panels.extend(panels);
        self
    }

    /// The panels so far, for example to hand one to [`crate::terminal::chart`].
    pub fn panel_list(&self) -> &[Panel] {
        &self.panels
    }

    /// The title.
    pub fn title(&self) -> &str {
        &self.title
    }
}

/// One plot: axes, series, marks.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) lines: Vec<RefLine>,
    pub(crate) regions: Vec<Region>,
    pub(crate) legend: Legend,
}

impl Panel {
    /// A panel without series; the title may be empty.
    pub fn new(title: impl Into<String>) -> Self {
        Panel { title: title.into(), ..Panel::default() }
    }

    /// The horizontal axis.
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    /// The vertical axis.
    pub fn y(mut self, axis: Axis) -> Self {
        self.y = axis;
        self
    }

    /// Adds a series; later ones are drawn over earlier ones.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds several series.
    pub fn all_series(mut self, series: impl IntoIterator<Item = Series>) -> Self {
        self.series.extend(series);
        self
    }

    /// A horizontal reference line at a y value; the y range is widened to show it. The label may be empty.
    pub fn hline(mut self, y: f64, label: impl Into<String>) -> Self {
        self.lines.push(RefLine { upright: false, at: y, label: label.into() });
        self
    }

    /// A vertical reference line at an x value, shown if it lies in the x range. The label may be empty.
    pub fn vline(mut self, x: f64, label: impl Into<String>) -> Self {
        self.lines.push(RefLine { upright: true, at: x, label: label.into() });
        self
    }

    /// Shades x values from `from` to `to` over the full height. The label may be empty.
    pub fn region(mut self, from: f64, to: f64, label: impl Into<String>) -> Self {
        self.regions.push(Region { from: from.min(to), to: from.max(to), label: label.into() });
        self
    }

    /// Where the legend stands.
    pub fn legend(mut self, legend: Legend) -> Self {
        self.legend = legend;
        self
    }
}

/// Linear or logarithmic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal distances for equal differences.
    #[default]
    Linear,
    /// Equal distances for equal ratios; values of zero and below are not shown and break a line.
    Log10,
}

/// A label, a unit, a scale and a range.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) unit: String,
    pub(crate) scale: Scale,
    pub(crate) lo: Option<f64>,
    pub(crate) hi: Option<f64>,
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis whose range follows from the data.
    pub fn new(label: impl Into<String>) -> Self {
        Axis { label: label.into(), ..Axis::default() }
    }

    /// The unit, shown in parentheses after the label.
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = unit.into();
        self
    }

    /// Makes the axis logarithmic.
    pub fn log10(mut self) -> Self {
        self.scale = Scale::Log10;
        self
    }

    /// Fixes both ends, in either order; what lies outside is clipped.
    pub fn range(self, lo: f64, hi: f64) -> Self {
        self.from(lo).to(hi)
    }

    /// Fixes the lower end. Ignored if not finite, or not positive on a logarithmic axis.
    pub fn from(mut self, lo: f64) -> Self {
        self.lo = Some(lo);
        self
    }

    /// Fixes the upper end. Ignored if not finite, or not positive on a logarithmic axis.
    pub fn to(mut self, hi: f64) -> Self {
        self.hi = Some(hi);
        self
    }

    /// Fixes the ticks, each a value and its label, as for categories. Labels that would overlap are left out.
    pub fn ticks<L: Into<String>>(mut self, ticks: impl IntoIterator<Item = (f64, L)>) -> Self {
        self.ticks = ticks.into_iter().map(|(value, label)| (value, label.into())).collect();
        self
    }

    /// "label (unit)", "label" or "unit".
    pub(crate) fn heading(&self) -> String {
        match (self.label.is_empty(), self.unit.is_empty()) {
            (false, false) => format!("{} ({})", self.label, self.unit),
            (_, true) => self.label.clone(),
            (true, false) => self.unit.clone(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Line,
    Points,
    LinePoints,
    Steps,
    Band,
}

/// Named data and how to draw it.
///
/// A value that is not finite breaks a line and shows no point. Line series may hold millions of points: no
/// more is drawn than can be seen. Equal names in a figure share colour, dash and marker.
#[derive(Clone, Debug)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) band: Vec<(f64, f64, f64)>,
    pub(crate) slot: Option<usize>,
    pub(crate) dash: Option<Dash>,
    pub(crate) marker: Option<Marker>,
    pub(crate) width: f64,
}

impl Series {
    fn of(kind: Kind, name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let (band, width) = (Vec::new(), 1.6);
        Series { name: name.into(), kind, points, band, slot: None, dash: None, marker: None, width }
    }

    /// Points joined by straight lines, in the order given.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::of(Kind::Line, name, points.into_iter().collect())
    }

    /// Marks only.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::of(Kind::Points, name, points.into_iter().collect())
    }

    /// Marks joined by straight lines.
    pub fn line_points(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::of(Kind::LinePoints, name, points.into_iter().collect())
    }

    /// Each value holds until the next point's x.
    pub fn steps(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::of(Kind::Steps, name, points.into_iter().collect())
    }

    /// Shading alone, between a low and a high value at each x: (x, low, high), x not decreasing.
    pub fn band(name: impl Into<String>, range: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        Self::of(Kind::Band, name, Vec::new()).with_band(range)
    }

    /// Adds shading in the series' colour, as for least and greatest over seeds: (x, low, high), x not decreasing.
    pub fn with_band(mut self, range: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        self.band = range.into_iter().collect();
        self
    }

    /// Fixes colour, dash and marker to those of a slot. From 8 on colours come again, with other dashes and markers.
    pub fn slot(mut self, slot: usize) -> Self {
        self.slot = Some(slot);
        self
    }

    /// Draws the line with this dash in place of the slot's.
    pub fn dash(mut self, dash: Dash) -> Self {
        self.dash = Some(dash);
        self
    }

    /// Draws points with this marker in place of the slot's.
    pub fn marker(mut self, marker: Marker) -> Self {
        self.marker = Some(marker);
        self
    }

    /// Line width in SVG units; 1.6 unless set.
    pub fn width(mut self, width: f64) -> Self {
        self.width = if width.is_finite() { width.clamp(0.2, 20.0) } else { 1.6 };
        self
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RefLine {
    pub(crate) upright: bool,
    pub(crate) at: f64,
    pub(crate) label: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) label: String,
}

/// Where a panel's legend stands. A series without a name is never in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Legend {
    /// In a row over the plot if there are two entries or more, or in the figure's shared legend.
    #[default]
    Auto,
    /// In the corner of the plot that holds the least data.
    Inside,
    /// In rows under the plot.
    Below,
    /// None.
    None,
}
