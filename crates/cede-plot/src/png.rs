//! The display list as pixels.

use crate::drawing::{Anchor, Drawing, Shape, Stroke, Text};
use crate::font;
use crate::geometry::{Point, Rect};
use crate::style::{Marker, Paint};
use std::fmt;
use tiny_skia::{FillRule, LineCap, LineJoin, Path, PathBuilder, Pixmap, StrokeDash, Transform};

/// Most pixels on a side.
pub const MOST_PIXELS: u32 = 16_384;
/// Pixels to a metre at one pixel to the unit: 96 to an inch, as CSS has it.
const PER_METRE: f64 = 96.0 / 0.0254;

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq)]
pub enum PngError {
    /// The scale is not a positive number.
    Scale(f64),
    /// The picture would have this many pixels across and down.
    TooLarge(f64, f64),
    /// The encoder's complaint.
    Encoding(String),
}

impl fmt::Display for PngError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PngError::Scale(scale) => write!(f, "a picture cannot have {scale} pixels to a unit"),
            PngError::TooLarge(w, h) => {
                write!(f, "a picture of {w} by {h} pixels exceeds {MOST_PIXELS} on a side")
            }
            PngError::Encoding(why) => write!(f, "the picture could not be encoded: {why}"),
        }
    }
}

impl std::error::Error for PngError {}

pub(crate) fn encode(drawing: &Drawing, scale: f64) -> Result<Vec<u8>, PngError> {
    if !(scale.is_finite() && scale > 0.0) {
        return Err(PngError::Scale(scale));
    }
    let (w, h) = ((drawing.width * scale).round().max(1.0), (drawing.height * scale).round().max(1.0));
    let most = f64::from(MOST_PIXELS);
    let pixels = if w <= most && h <= most { Pixmap::new(w as u32, h as u32) } else { None };
    let mut canvas = Canvas {
        pixels: pixels.ok_or(PngError::TooLarge(w, h))?,
        transform: Transform::from_scale(scale as f32, scale as f32),
    };
    canvas.pixels.fill(colour(Paint::Paper, 1.0));
    drawing.shapes.iter().for_each(|shape| canvas.shape(shape));
    compress(&canvas.pixels, scale)
}

/// The paper is opaque, so the alpha channel is left out.
fn compress(pixels: &Pixmap, scale: f64) -> Result<Vec<u8>, PngError> {
    let rgb: Vec<u8> = pixels.data().chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]).collect();
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let per_metre = (PER_METRE * scale).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: per_metre,
        yppu: per_metre,
        unit: png::Unit::Meter,
    }));
    let complaint = |error: png::EncodingError| PngError::Encoding(error.to_string());
    let mut writer = encoder.write_header().map_err(complaint)?;
    writer.write_image_data(&rgb).map_err(complaint)?;
    writer.finish().map_err(complaint)?;
    Ok(out)
}

fn colour(paint: Paint, opacity: f64) -> tiny_skia::Color {
    let [r, g, b] = paint.rgb();
    tiny_skia::Color::from_rgba8(r, g, b, (opacity * 255.0).round() as u8)
}

fn ink(paint: Paint, opacity: f64) -> tiny_skia::Paint<'static> {
    let mut ink = tiny_skia::Paint::default();
    ink.set_color(colour(paint, opacity));
    ink.anti_alias = true;
    ink
}

struct Canvas {
    pixels: Pixmap,
    transform: Transform,
}

impl Canvas {
    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Lines { runs, stroke } => self.lines(runs, stroke),
            Shape::Areas { rings, paint, opacity } => {
                let path = polygons(rings.iter().map(|ring| ring.as_slice()));
                self.fill(path, &ink(*paint, *opacity));
            }
            Shape::Block { rect, paint, opacity, radius } => {
                self.fill(rounded(*rect, *radius), &ink(*paint, *opacity));
            }
            Shape::Marks { at, marker, radius, rim, paint } => {
                self.marks(marks(at, *marker, *radius), *rim, *paint);
            }
            Shape::Text(text) => self.text(text),
        }
    }

    fn fill(&mut self, path: Option<Path>, ink: &tiny_skia::Paint) {
        if let Some(path) = path {
            self.pixels.fill_path(&path, ink, FillRule::Winding, self.transform, None);
        }
    }

    fn lines(&mut self, runs: &[Vec<Point>], stroke: &Stroke) {
        let dash: Vec<f32> = stroke.dash.iter().map(|v| *v as f32).collect();
        let round = dash.is_empty() && matches!(stroke.paint, Paint::Series(_));
        let style = tiny_skia::Stroke {
            width: stroke.width as f32,
            line_cap: if round { LineCap::Round } else { LineCap::Butt },
            line_join: LineJoin::Round,
            dash: StrokeDash::new(dash, 0.0),
            ..tiny_skia::Stroke::default()
        };
        // Each run by itself: a dash starts afresh with each, as in SVG.
        for run in runs {
            let mut path = PathBuilder::new();
            trace(run, &mut path);
            if let Some(path) = path.finish() {
                self.pixels.stroke_path(&path, &ink(stroke.paint, 1.0), &style, self.transform, None);
            }
        }
    }

    /// The rim is the outer half of a stroke under the fill.
    fn marks(&mut self, path: Option<Path>, rim: f64, paint: Paint) {
        let Some(path) = path else { return };
        if rim > 0.0 {
            let rim = tiny_skia::Stroke { width: (rim * 2.0) as f32, ..tiny_skia::Stroke::default() };
            self.pixels.stroke_path(&path, &ink(Paint::Paper, 1.0), &rim, self.transform, None);
        }
        self.fill(Some(path), &ink(paint, 1.0));
    }

    fn text(&mut self, text: &Text) {
        let Some(outline) = font::outline(&text.content, text.size, text.weight) else { return };
        let width = font::width(&text.content, text.size, text.weight) as f32;
        let shift = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -width / 2.0,
            Anchor::End => -width,
        };
        let turn = if text.turned { Transform::from_rotate(-90.0) } else { Transform::identity() };
        let place = Transform::from_translate(shift, 0.0)
            .post_concat(turn)
            .post_translate(text.at.x as f32, text.at.y as f32)
            .post_concat(self.transform);
        if text.halo {
            let rim =
                tiny_skia::Stroke { width: 3.0, line_join: LineJoin::Round, ..tiny_skia::Stroke::default() };
            self.pixels.stroke_path(&outline, &ink(Paint::Paper, 0.85), &rim, place, None);
        }
        self.pixels.fill_path(&outline, &ink(text.paint, 1.0), FillRule::Winding, place, None);
    }
}

fn trace(points: &[Point], path: &mut PathBuilder) {
    for (i, p) in points.iter().enumerate() {
        let (x, y) = (p.x as f32, p.y as f32);
        if i == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
    }
}

fn polygons<'a>(rings: impl Iterator<Item = &'a [Point]>) -> Option<Path> {
    let mut path = PathBuilder::new();
    for ring in rings {
        trace(ring, &mut path);
        path.close();
    }
    path.finish()
}

fn marks(at: &[Point], marker: Marker, radius: f64) -> Option<Path> {
    let mut path = PathBuilder::new();
    for p in at {
        match marker.corners() {
            None => path.push_circle(p.x as f32, p.y as f32, radius as f32),
            Some(corners) => {
                let place = |c: &(f64, f64)| Point::new(p.x + c.0 * radius, p.y + c.1 * radius);
                trace(&corners.iter().map(place).collect::<Vec<_>>(), &mut path);
                path.close();
            }
        }
    }
    path.finish()
}

/// A rectangle whose corners are cut by quarter circles, as near as one quadratic curve comes.
fn rounded(rect: Rect, radius: f64) -> Option<Path> {
    let (x, y, w, h) = (rect.x as f32, rect.y as f32, rect.w as f32, rect.h as f32);
    let mut path = PathBuilder::new();
    if radius <= 0.0 {
        path.push_rect(tiny_skia::Rect::from_xywh(x, y, w, h)?);
        return path.finish();
    }
    let r = (radius as f32).min(w / 2.0).min(h / 2.0);
    path.move_to(x + r, y);
    path.line_to(x + w - r, y);
    path.quad_to(x + w, y, x + w, y + r);
    path.line_to(x + w, y + h - r);
    path.quad_to(x + w, y + h, x + w - r, y + h);
    path.line_to(x + r, y + h);
    path.quad_to(x, y + h, x, y + h - r);
    path.line_to(x, y + r);
    path.quad_to(x, y, x + r, y);
    path.close();
    path.finish()
}
