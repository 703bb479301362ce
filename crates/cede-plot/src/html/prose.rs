//! Paragraphs with a little markup: code, strong, links.

use crate::escape::markup;

/// Paragraphs, set apart by empty lines.
pub(super) fn paragraphs(text: &str) -> String {
    let mut out = String::new();
    let mut paragraph = String::new();
    for line in text.lines().chain([""]) {
        if !line.trim().is_empty() {
            paragraph += line.trim();
            paragraph.push('\n');
        } else if !paragraph.is_empty() {
            out += &format!("<p>{}</p>\n", inline(paragraph.trim_end()));
            paragraph.clear();
        }
    }
    out
}

/// One stretch of text. A mark without its partner is text.
pub(super) fn inline(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(['`', '*', '[']) {
        out += &markup(&rest[..start]);
        rest = &rest[start..];
        let (html, length) =
            code(rest).or_else(|| strong(rest)).or_else(|| link(rest)).unwrap_or_else(|| {
                let mark = &rest[..1];
                (mark.to_string(), mark.len())
            });
        out += &html;
        rest = &rest[length..];
    }
    out + &markup(rest)
}

fn code(text: &str) -> Option<(String, usize)> {
    let (inner, _) = text.strip_prefix('`')?.split_once('`')?;
    Some((format!("<code>{}</code>", markup(inner)), inner.len() + 2)).filter(|_| !inner.is_empty())
}

fn strong(text: &str) -> Option<(String, usize)> {
    let (inner, _) = text.strip_prefix("**")?.split_once("**")?;
    let tight = !inner.is_empty() && inner.trim() == inner;
    tight.then(|| (format!("<strong>{}</strong>", markup(inner)), inner.len() + 4))
}

fn link(text: &str) -> Option<(String, usize)> {
    let (label, after) = text.strip_prefix('[')?.split_once("](")?;
    let (address, _) = after.split_once(')')?;
    let html = format!("<a href=\"{}\">{}</a>", markup(address), markup(label));
    (is_harmless(address) && !label.contains('[')).then_some((html, label.len() + address.len() + 4))
}

/// An address that cannot run a script: of the web, in the page, or a relative path.
fn is_harmless(address: &str) -> bool {
    let of_the_web = address.starts_with("https://") || address.starts_with("http://");
    of_the_web
        || (!address.contains(':') && !address.starts_with("//") && !address.contains(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_read() {
        assert_eq!(
            inline("a `b<c` **d** [e](#f) g"),
            "a <code>b&lt;c</code> <strong>d</strong> <a href=\"#f\">e</a> g"
        );
        assert_eq!(paragraphs("one\ntwo\n\n three "), "<p>one\ntwo</p>\n<p>three</p>\n");
        assert_eq!(paragraphs("  \n"), "");
    }

    #[test]
    fn what_is_not_markup_is_text() {
        assert_eq!(inline("5 * 3 ** 2 ** [a] (b) **** `x"), "5 * 3 ** 2 ** [a] (b) **** `x");
        assert_eq!(inline("[x](javascript:alert(1))"), "[x](javascript:alert(1))");
        assert_eq!(inline("[x](//host) [y](a\"b)"), "[x](//host) <a href=\"a&quot;b\">y</a>");
    }
}
