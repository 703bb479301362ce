//! The display list as SVG.

use crate::drawing::{Anchor, Drawing, Shape, Stroke, Text, Weight};
use crate::escape::markup;
use crate::geometry::{Point, Rect};
use crate::style::{Marker, Paint};
use std::fmt::Write;

/// Faces in order of preference. The layout measures with the first; the others are about as wide or narrower.
pub(crate) const FONTS: &str = "'Noto Sans','Open Sans','Segoe UI','Helvetica Neue',Arial,'Liberation Sans','DejaVu Sans Condensed',sans-serif";

/// A document of its own, in the colours for a light background.
pub(crate) fn document(drawing: &Drawing) -> String {
    let xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    xml.to_string() + &Writer { out: String::new(), on_page: false }.element(drawing) + "\n"
}

/// An element within an HTML page that sets the colours as CSS custom properties.
pub(crate) fn inline(drawing: &Drawing) -> String {
    Writer { out: String::new(), on_page: true }.element(drawing)
}

struct Writer {
    out: String,
    on_page: bool,
}

impl Writer {
    fn element(mut self, drawing: &Drawing) -> String {
        let (w, h, title) = (num(drawing.width), num(drawing.height), markup(&drawing.title));
        self.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             role=\"img\" aria-label=\"{title}\" font-family=\"{FONTS}\" fill=\"none\" stroke-linejoin=\"round\">\n"
        ));
        if !self.on_page {
            // On a page a title would pop up as a tool tip over the read-out.
            self.add(format_args!("<title>{title}</title>\n"));
            let paper = self.colour("fill", Paint::Paper);
            self.add(format_args!("<rect width=\"{w}\" height=\"{h}\" {paper}/>\n"));
        }
        drawing.shapes.iter().for_each(|shape| self.shape(shape));
        self.out.push_str("</svg>");
        self.out
    }

    fn add(&mut self, text: std::fmt::Arguments) {
        self.out.write_fmt(text).expect("a string takes all that is written to it");
    }

    /// `name="colour"`, or a style that refers to the page's colour for the role.
    fn colour(&self, name: &str, paint: Paint) -> String {
        match self.on_page {
            false => format!("{name}=\"{}\"", paint.hex()),
            true => format!("style=\"{name}:var({},{})\"", paint.variable(), paint.hex()),
        }
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Lines { runs, stroke } => self.lines(runs, stroke),
            Shape::Areas { rings, paint, opacity } => self.areas(rings, *paint, *opacity),
            Shape::Block { rect, paint, opacity, radius } => self.block(*rect, *paint, *opacity, *radius),
            Shape::Marks { at, marker, radius, rim, paint } => {
                let d: String = at.iter().map(|p| mark_path(*p, *marker, *radius)).collect();
                self.marks(&d, *rim, *paint);
            }
            Shape::Text(text) => self.text(text),
        }
    }

    fn lines(&mut self, runs: &[Vec<Point>], stroke: &Stroke) {
        let colour = self.colour("stroke", stroke.paint);
        let width = num(stroke.width);
        let lengths: Vec<String> = stroke.dash.iter().map(|v| num(*v)).collect();
        let ends = match lengths.is_empty() {
            true => String::from(" stroke-linecap=\"round\""),
            false => format!(" stroke-dasharray=\"{}\"", lengths.join(" ")),
        };
        // A grid or frame line must end where it ends.
        let ends = if matches!(stroke.paint, Paint::Series(_)) || !lengths.is_empty() {
            ends
        } else {
            String::new()
        };
        let d: String = runs.iter().map(|run| path(run)).collect();
        self.add(format_args!("<path {colour} stroke-width=\"{width}\"{ends} d=\"{d}\"/>\n"));
    }

    fn areas(&mut self, rings: &[Vec<Point>], paint: Paint, opacity: f64) {
        let colour = self.colour("fill", paint);
        let d: String = rings.iter().map(|ring| path(ring) + "z").collect();
        self.add(format_args!("<path {colour} fill-opacity=\"{}\" d=\"{d}\"/>\n", num(opacity)));
    }

    fn block(&mut self, rect: Rect, paint: Paint, opacity: f64, radius: f64) {
        let colour = self.colour("fill", paint);
        let (x, y, w, h) = (num(rect.x), num(rect.y), num(rect.w), num(rect.h));
        let round = if radius > 0.0 { format!(" rx=\"{}\"", num(radius)) } else { String::new() };
        self.add(format_args!(
            "<rect {colour} fill-opacity=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"{round}/>\n",
            num(opacity)
        ));
    }

    /// The rim is the outer half of a stroke under the fill.
    fn marks(&mut self, d: &str, rim: f64, paint: Paint) {
        let colour = match self.on_page {
            false => format!("fill=\"{}\" stroke=\"{}\"", paint.hex(), Paint::Paper.hex()),
            true => format!(
                "style=\"fill:var({},{});stroke:var({},{})\"",
                paint.variable(),
                paint.hex(),
                Paint::Paper.variable(),
                Paint::Paper.hex()
            ),
        };
        let width = num(rim * 2.0);
        self.add(format_args!(
            "<path {colour} stroke-width=\"{width}\" paint-order=\"stroke\" d=\"{d}\"/>\n"
        ));
    }

    fn text(&mut self, text: &Text) {
        let (x, y) = (num(text.at.x), num(text.at.y));
        let mut more = String::new();
        match text.anchor {
            Anchor::Start => {}
            Anchor::Middle => more += " text-anchor=\"middle\"",
            Anchor::End => more += " text-anchor=\"end\"",
        }
        if text.weight == Weight::Bold {
            more += " font-weight=\"700\"";
        }
        if text.turned {
            more += &format!(" transform=\"rotate(-90 {x} {y})\"");
        }
        let content = markup(&text.content);
        let size = num(text.size);
        if text.halo {
            let rim = self.colour("stroke", Paint::Paper);
            self.add(format_args!(
                "<text {rim} stroke-width=\"3\" stroke-opacity=\"0.85\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{more} \
                 aria-hidden=\"true\">{content}</text>\n"
            ));
        }
        let colour = self.colour("fill", text.paint);
        self.add(format_args!(
            "<text {colour} x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{more}>{content}</text>\n"
        ));
    }
}

/// Two decimals at most: a fiftieth of a pixel on a screen with two pixels to the unit.
fn num(v: f64) -> String {
    let text = format!("{v:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

fn path(points: &[Point]) -> String {
    let mut out = String::with_capacity(points.len() * 13 + 1);
    for (i, p) in points.iter().enumerate() {
        out.push(if i == 0 { 'M' } else { ' ' });
        out += &num(p.x);
        out.push(' ');
        out += &num(p.y);
    }
    out
}

fn mark_path(at: Point, marker: Marker, radius: f64) -> String {
    match marker.corners() {
        Some(corners) => {
            let place = |c: &(f64, f64)| Point::new(at.x + c.0 * radius, at.y + c.1 * radius);
            path(&corners.iter().map(place).collect::<Vec<_>>()) + "z"
        }
        None => {
            let (r, d) = (num(radius), num(2.0 * radius));
            format!("M{} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z", num(at.x - radius), num(at.y))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [num(1.0), num(-0.001), num(12.345), num(0.5)],
            ["1", "0", "12.35", "0.5"].map(String::from)
        );
    }
}
