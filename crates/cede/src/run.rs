//! `cede run`: any scenario.

use crate::cli::RunArgs;
use crate::execute::{Job, execute};
use crate::failure::Failure;
use crate::scenarios;
use cede_lab::record;
use cede_lab::scenario::Overrides;
use std::path::{Path, PathBuf};

/// Reads the scenario and runs it.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let seed = args.seed.map(|seed| format!("seed={seed}"));
    let overrides = Overrides::new(args.set.iter().cloned().chain(seed));
    let loaded = scenarios::load(&args.scenario, &overrides)?;
    let folder = match &args.output {
        Some(folder) => folder.clone(),
        None => PathBuf::from("cede-out").join(&loaded.scenario.name),
    };
    execute(&Job {
        repeat: repeat(args, overrides.texts(), &folder),
        loaded: &loaded,
        folder,
        record: record::Options { formats: args.format.clone(), capture: args.pcap.map(Into::into) },
        plots: &args.plot,
        json: args.json,
    })
}

/// The command that repeats the run. What came through standard input is in the run folder.
fn repeat(args: &RunArgs, overrides: &[String], folder: &Path) -> String {
    let mut words = vec!["cede".to_string(), "run".to_string()];
    if args.scenario == "-" {
        words.push(quoted(&folder.join("scenario.toml").display().to_string()));
    } else {
        words.push(quoted(&args.scenario));
        overrides.iter().for_each(|text| words.extend(["-s".to_string(), quoted(text)]));
    }
    words.join(" ")
}

/// A word as a POSIX shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("link.loss=0.1"), "link.loss=0.1");
        assert_eq!(quoted("flow.*.stop=5 s"), "'flow.*.stop=5 s'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
