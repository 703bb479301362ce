//! A raster of braille cells, two dots wide and four high.

use super::row::{Row, Style};
use crate::geometry::Point;

/// One character of the plot area.
#[derive(Clone, Copy)]
struct Cell {
    dots: u8,
    sign: Option<char>,
    style: Style,
}

const EMPTY: Cell = Cell { dots: 0, sign: None, style: Style::Plain };

/// Bit of each dot in a braille pattern, by row and column (Unicode, block "Braille Patterns").
const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

pub(super) struct Canvas {
    columns: usize,
    rows: usize,
    cells: Vec<Cell>,
}

impl Canvas {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Canvas { columns, rows, cells: vec![EMPTY; columns * rows] }
    }

    fn cell(&mut self, column: usize, row: usize) -> Option<&mut Cell> {
        let inside = column < self.columns && row < self.rows;
        inside.then(|| &mut self.cells[row * self.columns + column])
    }

    /// Sets one dot.
    pub(super) fn dot(&mut self, x: usize, y: usize, style: Style) {
        if let Some(cell) = self.cell(x / 2, y / 4) {
            cell.dots |= BITS[y % 4][x % 2];
            cell.style = style;
        }
    }

    /// Joins two places, both in dots.
    pub(super) fn line(&mut self, from: Point, to: Point, style: Style) {
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let steps = dx.abs().max(dy.abs()).round().max(1.0) as usize;
        for step in 0..=steps {
            let t = step as f64 / steps as f64;
            let (x, y) = ((from.x + dx * t).round(), (from.y + dy * t).round());
            if x >= 0.0 && y >= 0.0 {
                self.dot(x as usize, y as usize, style);
            }
        }
    }

    /// Puts a character in place of the cell's dots.
    pub(super) fn sign(&mut self, column: usize, row: usize, sign: char, style: Style) {
        if let Some(cell) = self.cell(column, row) {
            (cell.sign, cell.style) = (Some(sign), style);
        }
    }

    /// Puts a character where nothing is yet.
    pub(super) fn sign_if_empty(&mut self, column: usize, row: usize, sign: char, style: Style) {
        if self.is_empty(column, row) {
            self.sign(column, row, sign, style);
        }
    }

    pub(super) fn is_empty(&self, column: usize, row: usize) -> bool {
        let inside = column < self.columns && row < self.rows;
        inside && {
            let cell = self.cells[row * self.columns + column];
            cell.dots == 0 && cell.sign.is_none()
        }
    }

    /// Whether no dot of data is in a stretch of a row.
    pub(super) fn is_free(&self, from: usize, to: usize, row: usize) -> bool {
        let stretch = row * self.columns + from..row * self.columns + to.min(self.columns);
        row < self.rows && self.cells.get(stretch).is_some_and(|cells| cells.iter().all(|c| c.dots == 0))
    }

    /// Appends a row of the canvas to a line.
    pub(super) fn write_row(&self, row: usize, line: &mut Row) {
        for cell in &self.cells[row * self.columns..(row + 1) * self.columns] {
            let braille = char::from_u32(0x2800 + u32::from(cell.dots)).filter(|_| cell.dots != 0);
            let shown = cell.sign.or(braille).unwrap_or(' ');
            line.push(shown.encode_utf8(&mut [0; 4]), cell.style);
        }
    }
}
