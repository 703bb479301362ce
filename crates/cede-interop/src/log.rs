//! What a run has found so far, line by line in a file, so that one that was cut short can go on.
//!
//! A line is a subject (peer, version, case or experiment), a kind, and what belongs to it, with tabs between them.

use crate::matrix::Verdict;
use crate::quirks::Finding;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Mutex;

/// A log that is written while it is read.
pub struct Log {
    known: HashMap<String, Vec<String>>,
    file: Mutex<File>,
}

impl Log {
    /// Opens a log. What it says is kept where the run `resumes`.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &Path, resumes: bool) -> io::Result<Self> {
        let text = if resumes { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
        let file =
            OpenOptions::new().create(true).append(resumes).truncate(!resumes).write(true).open(path)?;
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let fields = |rest: &str| rest.split('\t').map(str::to_owned).collect();
        let known = lines.map(|(subject, rest)| (subject.to_owned(), fields(rest))).collect();
        Ok(Self { known, file: Mutex::new(file) })
    }

    /// What an earlier run made of a transfer.
    #[must_use]
    pub fn verdict(&self, subject: &str) -> Option<Verdict> {
        let fields: Vec<&str> = self.known.get(subject)?.iter().map(String::as_str).collect();
        Some(match fields[..] {
            ["ok", seconds, remark] => Verdict::Ok {
                seconds: seconds.parse().ok()?,
                remark: (!remark.is_empty()).then(|| remark.to_owned()),
            },
            ["shortened", bytes, seconds, what] => Verdict::Shortened {
                bytes: bytes.parse().ok()?,
                seconds: seconds.parse().ok()?,
                what: what.to_owned(),
            },
            ["theirs", what, among_them] => {
                Verdict::Theirs { what: what.to_owned(), among_them: among_them.to_owned() }
            }
            // Whatever was ours or not there then may have changed since.
            _ => return None,
        })
    }

    /// What an earlier run found in an experiment.
    #[must_use]
    pub fn finding(&self, subject: &str) -> Option<Finding> {
        match self.known.get(subject)?.as_slice() {
            [kind, text] if kind == "seen" => Some(Ok(text.clone())),
            _ => None,
        }
    }

    /// Keeps what a transfer came to.
    ///
    /// # Errors
    /// The system's.
    pub fn keep_verdict(&self, subject: &str, verdict: &Verdict) -> io::Result<()> {
        match verdict {
            Verdict::Ok { seconds, remark } => {
                self.keep(&[subject, "ok", &seconds.to_string(), remark.as_deref().unwrap_or("")])
            }
            Verdict::Shortened { bytes, seconds, what } => {
                self.keep(&[subject, "shortened", &bytes.to_string(), &seconds.to_string(), what])
            }
            Verdict::Theirs { what, among_them } => self.keep(&[subject, "theirs", what, among_them]),
            Verdict::Ours { what, controls } => self.keep(&[subject, "ours", what, controls]),
            Verdict::Skipped { why } => self.keep(&[subject, "skipped", why]),
        }
    }

    /// Keeps what an experiment came to.
    ///
    /// # Errors
    /// The system's.
    pub fn keep_finding(&self, subject: &str, finding: &Finding) -> io::Result<()> {
        match finding {
            Ok(seen) => self.keep(&[subject, "seen", seen]),
            Err(what) => self.keep(&[subject, "failed", what]),
        }
    }

    fn keep(&self, fields: &[&str]) -> io::Result<()> {
        let fields: Vec<String> = fields.iter().map(|field| field.replace(['\t', '\n', '\r'], " ")).collect();
        let mut file = self.file.lock().expect("no panic holds it");
        writeln!(file, "{}", fields.join("\t"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_known_to_a_run_that_resumes_and_to_no_other() {
        let path = std::env::temp_dir().join(format!("cede-interop-log-{}", std::process::id()));
        let verdicts = [
            Verdict::Ok { seconds: 0.125, remark: None },
            Verdict::Ok { seconds: 2.0, remark: Some("a\tb\nc".into()) },
            Verdict::Theirs { what: "x".into(), among_them: "y".into() },
            Verdict::Shortened { bytes: 10, seconds: 1.5, what: "z".into() },
            Verdict::Ours { what: "x".into(), controls: "y".into() },
        ];
        let log = Log::open(&path, false).unwrap();
        for (n, verdict) in verdicts.iter().enumerate() {
            log.keep_verdict(&format!("case {n}"), verdict).unwrap();
        }
        log.keep_finding("quirk", &Ok("seen so".into())).unwrap();
        drop(log);
        let log = Log::open(&path, true).unwrap();
        assert_eq!(log.verdict("case 0"), Some(verdicts[0].clone()));
        let cleaned = Verdict::Ok { seconds: 2.0, remark: Some("a b c".into()) };
        assert_eq!(log.verdict("case 1"), Some(cleaned));
        assert_eq!(log.verdict("case 2"), Some(verdicts[2].clone()));
        assert_eq!(log.verdict("case 3"), Some(verdicts[3].clone()));
        assert_eq!((log.verdict("case 4"), log.verdict("case 5")), (None, None), "ours is tried again");
        assert_eq!(log.finding("quirk"), Some(Ok("seen so".into())));
        drop(log);
        assert_eq!(Log::open(&path, false).unwrap().verdict("case 0"), None);
        std::fs::remove_file(&path).unwrap();
    }
}
