//! What is wrong with a scenario, where, and what would be right.

use core::fmt;

/// The longest piece of a source line that is shown, in characters.
const SHOWN_CHARS: usize = 160;

/// No more problems than this are looked up and told: a file with more is none that was nearly right.
pub const MAX_PROBLEMS: usize = 20;

/// One thing that is wrong with a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The file's name, or `-s` for an override from the command line.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// How many characters the caret underlines, at least 1.
    pub width: usize,
    /// The line as it stands there, its control characters replaced.
    pub source_line: String,
    /// What is wrong.
    pub message: String,
    /// What is allowed, or what was probably meant; a line each.
    pub help: Vec<String>,
}

impl fmt::Display for Problem {
    /// The form of the Rust compiler's messages: what, where, the line with a caret under the place, help.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let indent = " ".repeat(self.column.saturating_sub(1).min(SHOWN_CHARS));
        writeln!(f, "error: {}", self.message)?;
        writeln!(f, "{gutter}--> {}:{}:{}", self.file, self.line, self.column)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{number} | {}", self.source_line)?;
        write!(f, "{gutter} | {indent}{}", "^".repeat(self.width))?;
        for help in &self.help {
            write!(f, "\n{gutter} = {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// All problems as one text, a blank line between two.
#[must_use]
pub fn render(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n")
}

/// A place in one of the texts that a scenario was read from, in octets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Origin {
    /// The index in [`Sources`].
    pub source: usize,
    /// The first octet.
    pub start: usize,
    /// One past the last octet.
    pub end: usize,
}

/// The texts that a scenario was read from: the file first, then one for each override.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources<'a> {
    texts: Vec<(&'a str, &'a str)>,
}

impl<'a> Sources<'a> {
    /// Adds a text and gives its index.
    pub(crate) fn add(&mut self, name: &'a str, text: &'a str) -> usize {
        self.texts.push((name, text));
        self.texts.len() - 1
    }

    /// A problem at this place.
    pub(crate) fn problem(&self, at: Origin, message: String, help: Vec<String>) -> Problem {
        let (name, text) = self.texts.get(at.source).copied().unwrap_or(("", ""));
        let start = floor_boundary(text, at.start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let source_line = text[line_start..].split('\n').next().unwrap_or("").trim_end_matches('\r');
        let column = text[line_start..start].chars().count() + 1;
        let marked = text[start..floor_boundary(text, at.end.max(start))].lines().next().unwrap_or("");
        Problem {
            file: name.to_string(),
            line: before.matches('\n').count() + 1,
            column,
            width: marked.chars().count().clamp(1, SHOWN_CHARS),
            source_line: printable(source_line),
            message,
            help,
        }
    }
}

/// The largest character boundary of `text` at or below `index`.
fn floor_boundary(text: &str, index: usize) -> usize {
    text.floor_char_boundary(index)
}

/// The line as it may be printed: no control characters, no endless line.
fn printable(line: &str) -> String {
    line.chars().take(SHOWN_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The candidate that was probably meant by `word`, if one is near enough: at most one edit in three letters, and
/// not a word that shares nothing with it. Of two as near, the one of its length: `ledbatpp` is `ledbat++`.
#[must_use]
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // The distance takes the product of the lengths in steps, so a word longer than any name is not looked up.
    if word.is_empty() || word.len() > 64 {
        return None;
    }
    let letters = word.chars().count();
    let allowed = (letters / 3).max(1).min(letters - 1);
    let apart = |c: &str| (edit_distance(word, c), c.chars().count().abs_diff(letters));
    let distances = candidates.into_iter().map(|c| (apart(c), c));
    distances.filter(|&((d, _), _)| d <= allowed).min().map(|(_, c)| c)
}

/// Help lines for an unknown word: the probable one, where there is one, and all that are allowed.
pub(crate) fn word_help(word: &str, candidates: &[&str]) -> Vec<String> {
    let guess = nearest(word, candidates.iter().copied()).map(|c| format!("did you mean `{c}`?"));
    let all = if candidates.is_empty() { "nothing".to_string() } else { candidates.join(", ") };
    guess.into_iter().chain([format!("allowed: {all}")]).collect()
}

/// The edit distance with swapped neighbours as one edit (optimal string alignment), capitals alike.
fn edit_distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|text| text.to_lowercase().chars().collect::<Vec<char>>());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substituted = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = substituted.min(row[j - 1] + 1).min(rows[i - 1][j] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_insertions_deletions_substitutions_and_swaps() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("dealy", "delay"), 1);
        assert_eq!(edit_distance("Rate", "rate"), 0);
    }

    #[test]
    fn only_a_near_word_is_suggested() {
        assert_eq!(nearest("dealy", ["rate", "delay"]), Some("delay"));
        assert_eq!(nearest("colour", ["rate", "delay"]), None);
        assert_eq!(nearest("b", ["a"]), None);
        assert_eq!(nearest("ledbatpp", ["ledbat", "ledbat++"]), Some("ledbat++"));
    }

    #[test]
    fn the_caret_counts_characters_not_octets() {
        let mut sources = Sources::default();
        sources.add("x.toml", "a = 1\n\"é\" = \"µ\" # \u{7}");
        let problem = sources.problem(
            Origin { source: 0, start: 13, end: 17 },
            "wrong".to_string(),
            vec!["allowed: x".to_string()],
        );
        let expected =
            "error: wrong\n --> x.toml:2:7\n  |\n2 | \"é\" = \"µ\" #  \n  |       ^^^\n  = allowed: x";
        assert_eq!(problem.to_string(), expected);
    }

    #[test]
    fn places_beyond_the_text_and_inside_characters_are_harmless() {
        let mut sources = Sources::default();
        sources.add("x", "é");
        for (start, end) in [(1, 1), (0, 1), (9, 12), (5, 2)] {
            let problem = sources.problem(Origin { source: 0, start, end }, String::new(), Vec::new());
            assert_eq!(problem.line, 1);
        }
    }
}
