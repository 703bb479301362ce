//! The one typeface: widths for the layout, outlines for pixels.
//!
//! Noto Sans is a little wider than the faces an SVG viewer may put in its place (see [`crate::svg`]), so a
//! layout that fits here fits there.

use crate::drawing::Weight;
use std::sync::OnceLock;
use tiny_skia::PathBuilder;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// The raised minus is missing from the face; the plain one is drawn smaller and higher in its place.
const RAISED_MINUS: char = '⁻';
const RAISED_SIZE: f64 = 0.62;
const RAISED_BY: f64 = 0.34;
/// Width of a character that the face lacks, in em.
const UNKNOWN_WIDTH: f64 = 0.6;

fn face(weight: Weight) -> Option<&'static Face<'static>> {
    static REGULAR: OnceLock<Option<Face<'static>>> = OnceLock::new();
    static BOLD: OnceLock<Option<Face<'static>>> = OnceLock::new();
    match weight {
        Weight::Regular => REGULAR.get_or_init(|| Face::parse(ttf_noto_sans::REGULAR, 0).ok()).as_ref(),
        Weight::Bold => BOLD.get_or_init(|| Face::parse(ttf_noto_sans::BOLD, 0).ok()).as_ref(),
    }
}

/// A glyph with its place relative to the text's own: scale and rise in em.
struct Glyph {
    id: Option<GlyphId>,
    scale: f64,
    rise: f64,
    advance: f64,
}

fn glyph(face: &Face<'static>, c: char) -> Glyph {
    let (shown, scale, rise) =
        if c == RAISED_MINUS { ('−', RAISED_SIZE, RAISED_BY) } else { (c, 1.0, 0.0) };
    let id = face.glyph_index(shown);
    let advance = id.and_then(|id| face.glyph_hor_advance(id)).map(f64::from);
    let em = f64::from(face.units_per_em());
    Glyph { id, scale, rise, advance: advance.map_or(UNKNOWN_WIDTH, |a| a / em) * scale }
}

/// Width of one line of text.
pub(crate) fn width(text: &str, size: f64, weight: Weight) -> f64 {
    let advance = |c: char| face(weight).map_or(UNKNOWN_WIDTH, |face| glyph(face, c).advance);
    text.chars().map(advance).sum::<f64>() * size
}

/// The text if it fits, else as much of it as fits with an ellipsis.
pub(crate) fn fit(text: &str, size: f64, weight: Weight, room: f64) -> String {
    if width(text, size, weight) <= room {
        return text.to_string();
    }
    let mut kept: Vec<char> = text.chars().collect();
    while kept.pop().is_some() {
        let shorter = format!("{}…", kept.iter().collect::<String>().trim_end());
        if width(&shorter, size, weight) <= room {
            return shorter;
        }
    }
    String::new()
}

/// The text broken into lines between words; a word wider than the room is shortened.
pub(crate) fn wrap(text: &str, size: f64, weight: Weight, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let joined = lines.last().map(|line| format!("{line} {word}"));
        match joined.filter(|line| width(line, size, weight) <= room) {
            Some(line) => *lines.last_mut().expect("a joined line has a last line") = line,
            None => lines.push(fit(word, size, weight, room)),
        }
    }
    lines
}

/// The outlines of one line of text whose baseline starts at the origin, y down.
pub(crate) fn outline(text: &str, size: f64, weight: Weight) -> Option<tiny_skia::Path> {
    let face = face(weight)?;
    let em = f64::from(face.units_per_em());
    let mut pen = Pen { path: PathBuilder::new(), x: 0.0, y: 0.0, scale: 0.0 };
    let mut x = 0.0;
    for c in text.chars() {
        let glyph = glyph(face, c);
        (pen.x, pen.y) = (x as f32, (-glyph.rise * size) as f32);
        pen.scale = (size * glyph.scale / em) as f32;
        if let Some(id) = glyph.id {
            face.outline_glyph(id, &mut pen);
        }
        x += glyph.advance * size;
    }
    pen.path.finish()
}

struct Pen {
    path: PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_face_has_what_figures_need() {
        for weight in [Weight::Regular, Weight::Bold] {
            let face = face(weight).expect("the embedded face parses");
            for c in "−×µμ±≤≥→²σ°–—…·⁰¹²³⁴⁵⁶⁷⁸⁹⁻∞≈τΔ".chars() {
                assert!(glyph(face, c).id.is_some(), "{c} is missing");
            }
        }
    }

    #[test]
    fn lines_are_wrapped_and_shortened_to_fit() {
        let text = "Queueing delay of a scavenger flow beside one loss-based flow";
        let lines = wrap(text, 12.0, Weight::Regular, 150.0);
        assert!(lines.len() > 2 && lines.iter().all(|l| width(l, 12.0, Weight::Regular) <= 150.0));
        assert_eq!(lines.join(" "), text);
        let short = fit(text, 12.0, Weight::Bold, 80.0);
        assert!(short.ends_with('…') && width(&short, 12.0, Weight::Bold) <= 80.0);
        assert_eq!(fit("abc", 12.0, Weight::Regular, 1.0), "");
    }
}
