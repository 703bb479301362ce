//! A report as one HTML file that needs nothing else.
//!
//! The page has no links to fetch and forbids itself any network access. It suits light and dark screens and
//! paper. Without its script everything can be read; with it, figures tell the values under the pointer and
//! code can be copied. All text is escaped; prose knows three kinds of markup, see [`Section::prose`].

mod hover;
mod prose;

use crate::escape::markup;
use crate::figure::Figure;
use crate::svg;
use crate::table::{Align, Cell, Table, Verdict};

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// From this many sections on, the page begins with a list of them.
const CONTENTS_FROM: usize = 3;

/// A page: title, lead, sections.
///
/// ```
/// use cede_plot::html::{Report, Section};
/// let page = Report::new("What yields to what")
///     .lead("Two flows share a link.")
///     .section(Section::new("Setting").prose("Made with `seed 1`.").code("shell", "run --seed 1"))
///     .to_html();
/// assert!(page.starts_with("<!doctype html>"));
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    title: String,
    lead: String,
    facts: Vec<(String, String)>,
    footer: String,
    sections: Vec<Section>,
}

impl Report {
    /// A page without sections.
    pub fn new(title: impl Into<String>) -> Self {
        let (lead, footer) = (String::new(), String::new());
        Report { title: title.into(), lead, facts: Vec::new(), footer, sections: Vec::new() }
    }

    /// The paragraphs under the title, with the markup of [`Section::prose`].
    pub fn lead(mut self, text: impl Into<String>) -> Self {
        self.lead = text.into();
        self
    }

    /// A fact about the report, shown in a line under the lead: seed, version, duration.
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.facts.push((name.into(), value.into()));
        self
    }

    /// Small print at the end of the page, with the markup of [`Section::prose`].
    pub fn footer(mut self, text: impl Into<String>) -> Self {
        self.footer = text.into();
        self
    }

    /// Adds a section.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// The page.
    pub fn to_html(&self) -> String {
        let title = markup(&self.title);
        let sections: String = self.sections.iter().enumerate().map(|(k, s)| s.numbered(k + 1)).collect();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'unsafe-inline'\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n\
             <div class=\"lead\">{}</div>\n{}</header>\n{}{sections}{}</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            prose::paragraphs(&self.lead),
            self.fact_list(),
            self.contents(),
            self.small_print(),
        )
    }

    fn fact_list(&self) -> String {
        let pair = |(name, value): &(String, String)| {
            format!("<div><dt>{}</dt><dd>{}</dd></div>", markup(name), markup(value))
        };
        let pairs: String = self.facts.iter().map(pair).collect();
        if pairs.is_empty() { pairs } else { format!("<dl class=\"facts\">{pairs}</dl>\n") }
    }

    fn contents(&self) -> String {
        if self.sections.len() < CONTENTS_FROM {
            return String::new();
        }
        let item = |(k, s): (usize, &Section)| {
            format!("<li><a href=\"#s{}\">{}</a></li>", k + 1, markup(&s.heading))
        };
        let items: String = self.sections.iter().enumerate().map(item).collect();
        format!("<nav aria-label=\"Contents\"><ol>{items}</ol></nav>\n")
    }

    fn small_print(&self) -> String {
        let text = prose::paragraphs(&self.footer);
        if text.is_empty() { text } else { format!("<footer>{text}</footer>\n") }
    }
}

/// A heading and what stands under it, in the order in which it was added.
#[derive(Clone, Debug)]
pub struct Section {
    heading: String,
    body: String,
}

impl Section {
    /// An empty section. Within [`Section::details`] the heading is what opens and closes it.
    pub fn new(heading: impl Into<String>) -> Self {
        Section { heading: heading.into(), body: String::new() }
    }

    /// Paragraphs, set apart by empty lines. Markup: `` `code` ``, `**strong**` and `[text](address)`, the
    /// address being `http(s)`, within the page (`#`) or relative; everything else is text.
    pub fn prose(mut self, text: impl AsRef<str>) -> Self {
        self.body += &prose::paragraphs(text.as_ref());
        self
    }

    /// A list of points, with the same markup.
    pub fn list<T: AsRef<str>>(mut self, items: impl IntoIterator<Item = T>) -> Self {
        let items: String =
            items.into_iter().map(|i| format!("<li>{}</li>", prose::inline(i.as_ref()))).collect();
        self.body += &format!("<ul>{items}</ul>\n");
        self
    }

    /// A figure with a read-out of the values under the pointer.
    pub fn figure(mut self, figure: &Figure) -> Self {
        let drawing = figure.drawing();
        let data = hover::data(figure, &drawing);
        self.body += &format!(
            "<figure class=\"plot\">\n<div class=\"sheet\">{}</div>\n\
             <script type=\"application/json\">{data}</script>\n</figure>\n",
            svg::inline(&drawing)
        );
        self
    }

    /// A table.
    pub fn table(mut self, table: &Table) -> Self {
        self.body += &table_html(table);
        self
    }

    /// A block of code; the label says what it is ("shell", "TOML") and may be empty.
    pub fn code(mut self, label: impl AsRef<str>, text: impl AsRef<str>) -> Self {
        let label = markup(label.as_ref());
        let text = markup(text.as_ref().trim_end());
        self.body += &format!(
            "<div class=\"code\"><span class=\"label\">{label}</span><pre><code>{text}</code></pre></div>\n"
        );
        self
    }

    /// A part that is closed until its heading is clicked.
    pub fn details(mut self, part: &Section) -> Self {
        let summary = markup(&part.heading);
        self.body += &format!("<details><summary>{summary}</summary>\n{}</details>\n", part.body);
        self
    }

    fn numbered(&self, number: usize) -> String {
        let heading = markup(&self.heading);
        let heading = if heading.is_empty() { heading } else { format!("<h2>{heading}</h2>\n") };
        format!("<section id=\"s{number}\">\n{heading}{}</section>\n", self.body)
    }
}

fn table_html(table: &Table) -> String {
    let caption = match table.caption.is_empty() {
        true => String::new(),
        false => format!("<caption>{}</caption>", markup(&table.caption)),
    };
    let classes: Vec<&str> = table.alignments().into_iter().map(class).collect();
    let head = |(h, class): (&String, &&str)| format!("<th scope=\"col\"{class}>{}</th>", markup(h));
    let heads: String = table.headings.iter().zip(&classes).map(head).collect();
    let cell = |(c, class): (&Cell, &&str)| format!("<td{class}>{}</td>", cell_html(c));
    let row = |cells: &Vec<Cell>| {
        format!("<tr>{}</tr>\n", cells.iter().zip(&classes).map(cell).collect::<String>())
    };
    let rows: String = table.rows.iter().map(row).collect();
    format!(
        "<div class=\"wide\"><table>{caption}\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

const fn class(align: Align) -> &'static str {
    match align {
        Align::Right => " class=\"r\"",
        Align::Centre => " class=\"c\"",
        Align::Left | Align::Auto => "",
    }
}

fn cell_html(cell: &Cell) -> String {
    let class = match cell {
        Cell::Text(_) | Cell::Number(..) => return markup(&cell.display()),
        Cell::Verdict(Verdict::Holds) => "holds",
        Cell::Verdict(Verdict::Fails) => "fails",
        Cell::Verdict(Verdict::Open) => "open",
    };
    format!("<span class=\"verdict {class}\">{}</span>", markup(&cell.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Panel, Series};

    fn page() -> String {
        let bad = "</script><img src=x onerror=alert(1)>\"'&";
        let figure =
            Figure::new(bad).panel(Panel::new(bad).series(Series::line(bad, [(0.0, 1.0), (1.0, f64::NAN)])));
        let section = Section::new(bad).prose(bad).list([bad]).figure(&figure).code(bad, bad);
        let table = Table::new([bad]).caption(bad).row([bad.into()]).row([Verdict::Open.into()]);
        let section = section.table(&table).details(&Section::new(bad).prose(bad));
        Report::new(bad).lead(bad).fact(bad, bad).footer(bad).section(section).to_html()
    }

    #[test]
    fn nothing_gets_out_of_its_place() {
        let page = page();
        assert!(!page.contains("<img"), "{page}");
        assert_eq!(page.matches("</script>").count(), 2, "the figure's data and the page's script");
        assert_eq!(page.matches("<script").count(), 2);
    }

    #[test]
    fn nothing_is_fetched() {
        let page = page();
        let addresses = page.matches("http://").count();
        assert_eq!(
            addresses,
            page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count() + SCRIPT.matches("http://").count()
        );
        assert!(!page.contains("https://") && !page.contains("@import") && !page.contains("url("));
    }

    #[test]
    fn contents_come_with_many_sections() {
        let report =
            |n: u32| (0..n).fold(Report::new("t"), |r, k| r.section(Section::new(format!("part {k}"))));
        assert!(!report(2).to_html().contains("<nav"));
        assert!(report(3).to_html().contains("<a href=\"#s2\">part 1</a>"));
    }

    #[test]
    fn cells_have_their_dress() {
        let table = Table::new(["n", "v"]).row([Cell::number(1.0, 1), Verdict::Fails.into()]);
        let html = table_html(&table);
        assert!(html.contains("<td class=\"r\">1.0</td>") && html.contains("verdict fails"));
    }
}
