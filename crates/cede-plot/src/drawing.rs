//! The display list: one layout makes it, and each picture format draws it, so the pictures agree.
//!
//! Units are SVG user units, x to the right, y down. All shapes are clipped already.

use crate::geometry::{Point, Rect};
use crate::scale::Projection;
use crate::style::{Marker, Paint};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke {
    pub(crate) paint: Paint,
    pub(crate) width: f64,
    pub(crate) dash: &'static [f64],
}

impl Stroke {
    pub(crate) fn solid(paint: Paint, width: f64) -> Self {
        Stroke { paint, width, dash: &[] }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Regular,
    Bold,
}

/// One line of text; `at` is on the baseline.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) at: Point,
    pub(crate) content: String,
    pub(crate) size: f64,
    pub(crate) weight: Weight,
    pub(crate) anchor: Anchor,
    /// Turned a quarter counter-clockwise about `at`, to be read from the right.
    pub(crate) turned: bool,
    pub(crate) paint: Paint,
    /// A rim in the colour of the paper, so that the text reads over data.
    pub(crate) halo: bool,
}

impl Text {
    pub(crate) fn new(content: impl Into<String>, at: Point, size: f64) -> Self {
        Text {
            at,
            content: content.into(),
            size,
            weight: Weight::Regular,
            anchor: Anchor::Start,
            turned: false,
            paint: Paint::Ink,
            halo: false,
        }
    }

    pub(crate) fn paint(mut self, paint: Paint) -> Self {
        self.paint = paint;
        self
    }

    pub(crate) fn anchor(mut self, anchor: Anchor) -> Self {
        self.anchor = anchor;
        self
    }

    pub(crate) fn bold(mut self) -> Self {
        self.weight = Weight::Bold;
        self
    }

    pub(crate) fn turned(mut self) -> Self {
        self.turned = true;
        self
    }

    pub(crate) fn halo(mut self) -> Self {
        self.halo = true;
        self
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Open polylines in one style.
    Lines { runs: Vec<Vec<Point>>, stroke: Stroke },
    /// Filled polygons in one style.
    Areas { rings: Vec<Vec<Point>>, paint: Paint, opacity: f64 },
    /// A filled rectangle with rounded corners.
    Block { rect: Rect, paint: Paint, opacity: f64, radius: f64 },
    /// The same mark at each point, about it a rim of paper of this width.
    Marks { at: Vec<Point>, marker: Marker, radius: f64, rim: f64, paint: Paint },
    /// One line of text.
    Text(Text),
}

/// Where a panel's plot area came to stand, for those who read values back from a picture.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) projection: Projection,
    /// The slot of each series.
    pub(crate) slots: Vec<usize>,
}

/// A laid-out figure.
#[derive(Clone, Debug)]
pub(crate) struct Drawing {
    pub(crate) title: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) frames: Vec<Frame>,
}
