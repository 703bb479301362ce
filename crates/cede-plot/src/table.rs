//! Tables, independent of where they are shown.

use crate::ticks;

/// Where a column's text stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Right if every cell is a number, else left.
    #[default]
    Auto,
    /// At the left edge.
    Left,
    /// In the middle.
    Centre,
    /// At the right edge.
    Right,
}

/// What came of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not hold.
    Fails,
    /// The data do not decide it.
    Open,
}

impl Verdict {
    /// "holds", "does not hold" or "open".
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "does not hold",
            Verdict::Open => "open",
        }
    }

    /// A one-column sign that needs no colour.
    pub(crate) fn sign(self) -> char {
        match self {
            Verdict::Holds => '✓',
            Verdict::Fails => '✗',
            Verdict::Open => '?',
        }
    }
}

impl From<bool> for Verdict {
    fn from(holds: bool) -> Self {
        if holds { Verdict::Holds } else { Verdict::Fails }
    }
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number and how many decimals to show.
    Number(f64, usize),
    /// A verdict, coloured where the medium has colour.
    Verdict(Verdict),
}

impl Cell {
    /// A number shown with this many decimals.
    pub fn number(value: f64, decimals: usize) -> Self {
        Cell::Number(value, decimals)
    }

    /// What a reader sees, without colour.
    pub fn display(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(value, decimals) => ticks::number(*value, *decimals),
            Cell::Verdict(verdict) => format!("{} {}", verdict.sign(), verdict.words()),
        }
    }

    /// What a program reads: numbers in full, without thousands marks.
    fn raw(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(value, _) => value.to_string(),
            Cell::Verdict(verdict) => verdict.words().to_string(),
        }
    }

    fn is_number(&self) -> bool {
        match self {
            Cell::Number(..) => true,
            Cell::Text(text) => matches!(text.as_str(), "" | "–" | "-"),
            Cell::Verdict(_) => false,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_string())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<Verdict> for Cell {
    fn from(verdict: Verdict) -> Self {
        Cell::Verdict(verdict)
    }
}

/// Numbers without decimals.
macro_rules! cell_from_integer {
    ($($integer:ty)*) => {$(
        impl From<$integer> for Cell {
            fn from(value: $integer) -> Self {
                Cell::Number(f64::from(value), 0)
            }
        }
    )*};
}
cell_from_integer!(u8 u16 u32 i32);

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Cell::Number(value as f64, 0)
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Cell::Number(value as f64, 0)
    }
}

impl From<f64> for Cell {
    /// A number in about four significant digits.
    fn from(value: f64) -> Self {
        let shown = ticks::short(value);
        let decimals = shown.split_once('.').map_or(0, |(_, rest)| rest.len());
        if shown.contains('×') { Cell::Text(shown) } else { Cell::Number(value, decimals) }
    }
}

/// A table: headings, rows of cells, an optional caption.
///
/// ```
/// use cede_plot::{Cell, Table, Verdict};
/// let table = Table::new(["flow", "rate (Mbit/s)", "expectation"])
///     .row(["LEDBAT".into(), Cell::number(0.41, 2), Verdict::Holds.into()])
///     .row(["CUBIC".into(), Cell::number(9.32, 2), Verdict::Open.into()]);
/// assert!(table.to_markdown().contains("| LEDBAT |"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub(crate) caption: String,
    pub(crate) headings: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
    aligns: Vec<Align>,
}

impl Table {
    /// A table without rows.
    pub fn new<H: Into<String>>(headings: impl IntoIterator<Item = H>) -> Self {
        Table { headings: headings.into_iter().map(Into::into).collect(), ..Table::default() }
    }

    /// A line that says what the table shows.
    pub fn caption(mut self, text: impl Into<String>) -> Self {
        self.caption = text.into();
        self
    }

    /// Fixes the alignment of a column, counted from 0.
    pub fn align(mut self, column: usize, align: Align) -> Self {
        if column >= self.aligns.len() {
            self.aligns.resize(column + 1, Align::Auto);
        }
        self.aligns[column] = align;
        self
    }

    /// Adds a row. Missing cells are empty; cells beyond the headings are dropped.
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.push(cells);
        self
    }

    /// Like [`Table::row`], for building in a loop.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut row: Vec<Cell> = cells.into_iter().take(self.headings.len()).collect();
        row.resize(self.headings.len(), Cell::Text(String::new()));
        self.rows.push(row);
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The alignments of all columns, none of them [`Align::Auto`]. To be found once for a table, which may have a million rows.
    pub(crate) fn alignments(&self) -> Vec<Align> {
        (0..self.headings.len()).map(|column| self.alignment(column)).collect()
    }

    fn alignment(&self, column: usize) -> Align {
        match self.aligns.get(column).copied().unwrap_or_default() {
            Align::Auto if self.is_numeric(column) => Align::Right,
            Align::Auto => Align::Left,
            fixed => fixed,
        }
    }

    fn is_numeric(&self, column: usize) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row[column].is_number())
    }

    /// A GitHub-flavoured Markdown table, its columns aligned in the source too.
    pub fn to_markdown(&self) -> String {
        let shown = |row: &Vec<Cell>| row.iter().map(|c| markdown_cell(&c.display())).collect();
        let head: Vec<String> = self.headings.iter().map(|h| markdown_cell(h)).collect();
        let body: Vec<Vec<String>> = self.rows.iter().map(shown).collect();
        let widest = |k: usize| body.iter().map(|r| &r[k]).chain([&head[k]]).map(|s| s.chars().count()).max();
        let widths: Vec<usize> = (0..head.len()).map(|k| widest(k).unwrap_or(0).max(3)).collect();
        let columns: Vec<(Align, usize)> = self.alignments().into_iter().zip(widths).collect();
        let mut out = markdown_line(&head, &columns);
        let rules: Vec<String> = columns.iter().map(|&(align, width)| rule(align, width)).collect();
        out += &format!("| {} |\n", rules.join(" | "));
        body.iter().for_each(|row| out += &markdown_line(row, &columns));
        out
    }

    /// Comma-separated values (RFC 4180): headings first, numbers in full precision.
    pub fn to_csv(&self) -> String {
        let line =
            |cells: Vec<String>| cells.iter().map(|c| csv_field(c)).collect::<Vec<_>>().join(",") + "\r\n";
        let rows = self.rows.iter().map(|row| line(row.iter().map(Cell::raw).collect()));
        std::iter::once(line(self.headings.clone())).chain(rows).collect()
    }
}

fn rule(align: Align, width: usize) -> String {
    let dashes = |count: usize| "-".repeat(count);
    match align {
        Align::Right => dashes(width - 1) + ":",
        Align::Centre => format!(":{}:", dashes(width - 2)),
        _ => dashes(width),
    }
}

fn markdown_line(cells: &[String], columns: &[(Align, usize)]) -> String {
    let pad = |(cell, &(align, width)): (&String, &(Align, usize))| match align {
        Align::Right => format!("{cell:>width$}"),
        Align::Centre => format!("{cell:^width$}"),
        Align::Left | Align::Auto => format!("{cell:<width$}"),
    };
    let padded: Vec<String> = cells.iter().zip(columns).map(pad).collect();
    format!("| {} |\n", padded.join(" | "))
}

/// Escapes what Markdown would read as a column's end, a new line or markup.
fn markdown_cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '~' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\n' | '\r' | '\t' => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

fn csv_field(text: &str) -> String {
    let quoted = text.contains([',', '"', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ');
    if quoted { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        Table::new(["name", "rate"])
            .row(["a|b <c>".into(), Cell::number(1234.5, 1)])
            .row(["say \"x\", y".into(), Cell::number(-2.0, 1)])
            .row(["short".into()])
    }

    #[test]
    fn markdown_is_escaped_and_aligned() {
        let text = sample().to_markdown();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "| name        |    rate |");
        assert_eq!(lines[1], "| ----------- | ------: |");
        assert_eq!(lines[2], "| a\\|b &lt;c> | 1,234.5 |");
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn csv_is_quoted_where_needed() {
        assert_eq!(sample().to_csv(), "name,rate\r\na|b <c>,1234.5\r\n\"say \"\"x\"\", y\",-2\r\nshort,\r\n");
    }

    #[test]
    fn alignment_follows_the_cells() {
        let table = sample().align(0, Align::Centre);
        assert_eq!((table.alignments()[0], table.alignments()[1]), (Align::Centre, Align::Right));
        assert_eq!(Table::new(["x"]).alignments(), [Align::Left]);
    }

    #[test]
    fn tables_without_rows_or_columns_are_fine() {
        assert_eq!(Table::new(["x"]).to_markdown(), "| x   |\n| --- |\n");
        assert_eq!(Table::new([""; 0]).row(["lost".into()]).len(), 1);
        assert_eq!(Cell::from(Verdict::Fails).display(), "✗ does not hold");
        assert_eq!(Cell::from(7u64).display(), "7");
        assert_eq!(Cell::from(0.12345).display(), "0.1235");
    }
}
