//! How long files and functions are, net of tests. Works on formatted code: a block ends where a closing brace stands
//! as far to the left as the line that opened it.

use std::fs;
use std::path::Path;

/// A function and its length.
pub struct FunctionLength {
    /// The file.
    pub path: String,
    /// The function.
    pub name: String,
    /// Lines from its signature to its closing brace.
    pub lines: usize,
}

/// A file net of its test modules.
pub struct Source {
    /// The file, from the root.
    pub path: String,
    /// Lines.
    pub lines: usize,
    /// Its functions.
    pub functions: Vec<FunctionLength>,
}

/// All Rust files under the crates' `src` folders and in `xtask`.
pub fn sources(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    collect(root, &root.join("crates"), &mut found);
    collect(root, &root.join("xtask"), &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | "tests" | "benches" | "examples") {
                collect(root, &path, found);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let relative = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            found.push(measure(relative, &fs::read_to_string(&path).unwrap_or_default()));
        }
    }
}

fn measure(path: String, text: &str) -> Source {
    let lines = without_tests(text);
    let mut functions = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        if let Some(name) = function_name(line) {
            let length = block_length(&lines[start..]);
            functions.push(FunctionLength { path: path.clone(), name, lines: length });
        }
    }
    Source { path, lines: lines.len(), functions }
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Leaves out each item that `#[cfg(test)]` stands before.
fn without_tests(text: &str) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push(line);
            continue;
        }
        let depth = indentation(line);
        let mut first = lines.next();
        while first.is_some_and(|line| !line.trim_end().ends_with(['{', ';', '}'])) {
            first = lines.next();
        }
        if first.is_some_and(|line| line.trim_end().ends_with('{')) {
            lines.by_ref().find(|line| indentation(line) == depth && line.trim_start().starts_with('}'));
        }
    }
    kept
}

fn function_name(line: &str) -> Option<String> {
    let code = line.trim_start();
    if code.starts_with("//") {
        return None;
    }
    let (before, after) = code.split_once("fn ")?;
    let is_signature = before
        .split_whitespace()
        .all(|word| matches!(word, "const" | "async" | "unsafe" | "extern") || word.starts_with("pub"));
    let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (is_signature && !name.is_empty()).then_some(name)
}

/// Lines of the block that begins here; 1 for a declaration without a body.
fn block_length(lines: &[&str]) -> usize {
    let depth = indentation(lines[0]);
    for (index, line) in lines.iter().enumerate() {
        let here = indentation(line) == depth;
        let ends = line.trim_end().ends_with(['}', ';']);
        let closes = index > 0 && line.trim_start().starts_with('}');
        let declaration = index == 0 && ends;
        if here && ends && (closes || declaration) {
            return index + 1;
        }
        if here && index > 0 && line.trim_start().starts_with(')') && line.trim_end().ends_with(';') {
            return index + 1;
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "\
fn short() {
    1
}

impl Thing {
    pub(crate) const fn longer(
        &self,
    ) -> u8 {
        if true {
            1
        } else {
            2
        }
    }
    fn declared(&self);
}

#[cfg(test)]
mod tests {
    fn hidden() {
        1
    }
}
";

    #[test]
    fn functions_are_measured_and_tests_left_out() {
        let source = measure("x.rs".into(), CODE);
        let found: Vec<(&str, usize)> =
            source.functions.iter().map(|function| (function.name.as_str(), function.lines)).collect();
        assert_eq!(found, [("short", 3), ("longer", 9), ("declared", 1)]);
        assert_eq!(source.lines, 17);
    }
}
