//! A table between rules of box-drawing characters.

use super::row::{Row, Style, fit, width};
use crate::table::{Align, Cell, Table, Verdict};

const GAP: usize = 2;
const NARROWEST: usize = 4;

/// The table with aligned columns, no line wider than `width` columns.
///
/// Columns that are too wide for that are narrowed, widest first, and their words wrapped. A word is shortened only where no
/// other column can be narrowed between its words. Every line ends with a line feed.
pub fn table(table: &Table, room: usize, colour: bool) -> String {
    let columns = columns(table, room);
    let widths = columns.iter().map(|column| column.width);
    let total = (widths.sum::<usize>() + GAP * columns.len().saturating_sub(1)).min(room);
    let mut out = String::new();
    let rule = |out: &mut String, sign: &str| {
        let mut row = Row::default();
        row.push(&sign.repeat(total), Style::Dim);
        row.write(room, colour, out);
    };
    write_caption(table, room, colour, &mut out);
    rule(&mut out, "━");
    let headings: Vec<(String, Style)> = table.headings.iter().map(|h| (h.clone(), Style::Bold)).collect();
    write_cells(&headings, &columns, (room, colour), &mut out);
    rule(&mut out, "─");
    for cells in &table.rows {
        let cells: Vec<(String, Style)> = cells.iter().map(|c| (c.display(), style(c))).collect();
        write_cells(&cells, &columns, (room, colour), &mut out);
    }
    rule(&mut out, "━");
    out
}

fn write_caption(table: &Table, room: usize, colour: bool, out: &mut String) {
    for line in wrap(&table.caption, room.max(1)).iter().filter(|line| !line.is_empty()) {
        let mut row = Row::default();
        row.push(line, Style::Bold);
        row.write(room, colour, out);
    }
}

fn style(cell: &Cell) -> Style {
    match cell {
        Cell::Verdict(Verdict::Holds) => Style::Good,
        Cell::Verdict(Verdict::Fails) => Style::Bad,
        Cell::Verdict(Verdict::Open) => Style::Dim,
        Cell::Text(_) | Cell::Number(..) => Style::Plain,
    }
}

/// How a column is set. Looking at it once is enough: a table may have a million rows.
struct Column {
    width: usize,
    align: Align,
}

fn columns(table: &Table, room: usize) -> Vec<Column> {
    let column = |(width, align)| Column { width, align };
    column_widths(table, room).into_iter().zip(table.alignments()).map(column).collect()
}

fn column_widths(table: &Table, room: usize) -> Vec<usize> {
    let natural = |k: usize| {
        let cells = table.rows.iter().map(|row| width(&row[k].display()));
        cells.chain([width(&table.headings[k])]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..table.headings.len()).map(natural).collect();
    let free = room.saturating_sub(GAP * widths.len().saturating_sub(1));
    if widths.iter().sum::<usize>() > free {
        let words: Vec<usize> = (0..widths.len()).map(|k| longest_word(table, k).max(NARROWEST)).collect();
        narrow(&mut widths, &words, free);
        narrow(&mut widths, &vec![NARROWEST; words.len()], free);
    }
    widths
}

/// Narrows the widest columns, each to its least width at most, until all have room.
fn narrow(widths: &mut [usize], least: &[usize], free: usize) {
    while widths.iter().sum::<usize>() > free {
        let wide = widths.iter_mut().zip(least).filter(|(width, least)| **width > **least);
        let Some((widest, _)) = wide.max() else { break };
        *widest -= 1;
    }
}

/// The longest word of a column.
fn longest_word(table: &Table, k: usize) -> usize {
    let of = |text: &str| text.split_whitespace().map(width).max().unwrap_or(0);
    let cells = table.rows.iter().map(|row| of(&row[k].display()));
    cells.chain([of(&table.headings[k])]).max().unwrap_or(0)
}

/// Writes a table row, of several lines if a cell had to be wrapped.
fn write_cells(
    cells: &[(String, Style)],
    columns: &[Column],
    (room, colour): (usize, bool),
    out: &mut String,
) {
    let wrapped: Vec<Vec<String>> =
        cells.iter().zip(columns).map(|((text, _), column)| wrap(text, column.width)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..height {
        let mut row = Row::default();
        let mut start = 0;
        for ((lines, column), (_, style)) in wrapped.iter().zip(columns).zip(cells) {
            let text = lines.get(line).map_or("", String::as_str);
            row.pad_to(start + indent(column.align, column.width.saturating_sub(width(text))));
            row.push(text, *style);
            start += column.width + GAP;
        }
        row.write(room, colour, out);
    }
}

fn indent(align: Align, free: usize) -> usize {
    match align {
        Align::Right => free,
        Align::Centre => free / 2,
        Align::Left | Align::Auto => 0,
    }
}

/// Lines of at most `room` columns, broken between words; a longer word is shortened.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let needed = width(&lines[last]) + 1 + width(word);
        if lines[last].is_empty() {
            lines[last] = fit(word, room);
        } else if needed <= room {
            lines[last] += &format!(" {word}");
        } else {
            lines.push(fit(word, room));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        Table::new(["flow", "rate (Mbit/s)", "what was expected of it", ""])
            .caption("Rates over the last half of the run")
            .row([
                "LEDBAT".into(),
                Cell::number(0.41, 2),
                "yields to the loss-based flow".into(),
                Verdict::Holds.into(),
            ])
            .row(["CUBIC".into(), Cell::number(1234.5, 2), "fills the link".into(), Verdict::Fails.into()])
    }

    #[test]
    fn columns_are_aligned() {
        let text = table(&sample(), 100, false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "━".repeat(width(lines[1])));
        assert_eq!(lines[2], "flow    rate (Mbit/s)  what was expected of it");
        assert_eq!(lines[4], "LEDBAT           0.41  yields to the loss-based flow  ✓ holds");
        assert_eq!(lines[5], "CUBIC        1,234.50  fills the link                 ✗ does not hold");
    }

    #[test]
    fn never_wider_than_asked() {
        for room in 0..100 {
            let text = table(&sample(), room, false);
            assert!(text.lines().all(|line| width(line) <= room), "{room}:\n{text}");
        }
    }

    #[test]
    fn words_are_whole_as_long_as_others_can_be_wrapped() {
        let note = "which may be broken anywhere between its words";
        let table = |room| {
            let row = ["198.51.100.7:51413".into(), "a client 1.2".into(), note.into()];
            table(&Table::new(["address", "client", "note"]).row(row), room, false)
        };
        for room in [37, 45, 60] {
            let text = table(room);
            assert!(text.contains("198.51.100.7:51413") && !text.contains('…'), "{room}:\n{text}");
        }
        assert!(table(30).contains("198.51.10"), "{}", table(30));
    }

    #[test]
    fn colour_changes_nothing_else() {
        let coloured = table(&sample(), 60, true);
        assert!(coloured.contains("\x1b[32m✓ holds\x1b[0m"));
        assert_eq!(crate::terminal::chart::tests::without_escapes(&coloured), table(&sample(), 60, false));
    }

    #[test]
    fn control_characters_are_not_passed_on() {
        let text = table(&Table::new(["a\x1b[31mb"]).row(["c\x07d".into()]), 40, false);
        assert!(!text.contains('\x1b') && !text.contains('\x07'));
    }
}
