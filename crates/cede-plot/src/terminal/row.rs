//! One line of styled characters with a width that is kept.

use crate::style::SLOTS;
use unicode_width::UnicodeWidthChar;

/// Colours of the 256-colour terminal nearest to those of the pictures.
const SLOT_COLOURS: [u8; SLOTS] = [33, 202, 36, 175, 214, 117, 245, 178];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Bold,
    Dim,
    Slot(usize),
    Good,
    Bad,
}

impl Style {
    fn code(self) -> String {
        match self {
            Style::Plain => String::new(),
            Style::Bold => "1".into(),
            Style::Dim => "2".into(),
            Style::Slot(slot) => format!("38;5;{}", SLOT_COLOURS[slot % SLOTS]),
            Style::Good => "32".into(),
            Style::Bad => "31".into(),
        }
    }
}

/// How many columns a character takes; 0 for those that are not passed on.
fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// How many columns a text takes.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// The text, or as much of it as fits with an ellipsis.
pub(super) fn fit(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_string();
    }
    let mut out = String::new();
    let mut left = room.saturating_sub(1);
    for c in text.chars() {
        if columns(c) > left {
            break;
        }
        left -= columns(c);
        out.push(c);
    }
    if room > 0 { out + "…" } else { out }
}

/// A line of a terminal, filled from the left.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    cells: Vec<(char, Style)>,
    width: usize,
}

impl Row {
    pub(super) fn push(&mut self, text: &str, style: Style) {
        for c in text.chars().map(|c| if c.is_control() { ' ' } else { c }) {
            self.cells.push((c, style));
            self.width += columns(c);
        }
    }

    /// Fills with spaces up to a column.
    pub(super) fn pad_to(&mut self, column: usize) {
        while self.width < column {
            self.push(" ", Style::Plain);
        }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Writes the line, cut at `room` columns, without trailing spaces, with a line feed.
    pub(super) fn write(&self, room: usize, colour: bool, out: &mut String) {
        let mut left = room;
        let shown = self.cells.iter().take_while(|(c, _)| {
            let fits = columns(*c) <= left;
            left = left.saturating_sub(columns(*c));
            fits
        });
        let shown: Vec<_> = shown.copied().collect();
        let end = shown.iter().rposition(|(c, _)| *c != ' ').map_or(0, |i| i + 1);
        write_styled(&shown[..end], colour, out);
        out.push('\n');
    }
}

fn write_styled(cells: &[(char, Style)], colour: bool, out: &mut String) {
    let mut current = Style::Plain;
    for &(c, style) in cells {
        if colour && style != current && c != ' ' {
            switch(current, style, out);
            current = style;
        }
        out.push(c);
    }
    if colour {
        switch(current, Style::Plain, out);
    }
}

fn switch(from: Style, to: Style, out: &mut String) {
    if from != Style::Plain {
        *out += "\x1b[0m";
    }
    if to != Style::Plain {
        *out += &format!("\x1b[{}m", to.code());
    }
}
