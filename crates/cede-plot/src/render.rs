//! Figures as pictures: one layout, drawn in each format.

use crate::drawing::Drawing;
use crate::figure::Figure;
use crate::{layout, png, svg};

impl Figure {
    /// A self-contained SVG document on a light background.
    pub fn to_svg(&self) -> String {
        svg::document(&self.drawing())
    }

    /// A PNG picture with `scale` pixels to an SVG unit (2 is right for most screens).
    ///
    /// The typeface is part of the program: no installed font is needed.
    ///
    /// # Errors
    /// [`png::PngError`] if the scale is not a positive number or the picture would have more than
    /// 16,384 pixels on a side.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>, png::PngError> {
        png::encode(&self.drawing(), scale)
    }

    pub(crate) fn drawing(&self) -> Drawing {
        layout::lay_out(self)
    }
}
