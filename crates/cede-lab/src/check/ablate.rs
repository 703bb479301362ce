//! What each part of a controller is worth: the battery with one part switched off, or set to another of its words.
//!
//! *What it leaves out:* parts that are numbers; two parts off at a time.
//! *How it was validated:* unit test below.

use super::{Findings, Subject};
use cede_cc::registry::Entry;
use cede_cc::{ParamKind, Settings};

/// A part of a controller set otherwise, as `PARAMETER=VALUE`: every switch the other way, every other word.
#[must_use]
pub fn ablations(entry: &Entry) -> Vec<String> {
    let Ok(defaults) = Settings::resolve(&Subject::new(entry).params, entry.params) else {
        return Vec::new();
    };
    let otherwise = |doc: &cede_cc::ParamDoc| -> Vec<String> {
        match doc.kind {
            ParamKind::Switch => {
                let other = if defaults.switch(doc.name) { "off" } else { "on" };
                vec![format!("{}={other}", doc.name)]
            }
            ParamKind::Word(words) => {
                let others = words.iter().filter(|word| **word != defaults.word(doc.name));
                others.map(|word| format!("{}={word}", doc.name)).collect()
            }
            _ => Vec::new(),
        }
    };
    entry.params.iter().flat_map(otherwise).collect()
}

/// A case that one of two batteries passed and the other did not, with the figures of both.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// The case.
    pub case: &'static str,
    /// Whether the second passed it.
    pub gained: bool,
    /// What was measured, and the figure of the first and of the second battery.
    pub what: String,
}

/// Where two batteries of the same cases differ.
#[must_use]
pub fn differences(before: &[Findings], after: &[Findings]) -> Vec<Difference> {
    let pairs = before.iter().zip(after).filter(|(before, after)| before.passed != after.passed);
    let difference = |(before, after): (&Findings, &Findings)| {
        let failed = if after.passed { before } else { after };
        // The figure that fails in one of them, in both.
        let index = failed.findings.iter().position(|finding| !finding.holds).unwrap_or(0);
        let [first, second] = [before, after].map(|side| side.findings.get(index));
        let what = first.zip(second).map_or(String::new(), |(first, second)| {
            let bare = first.figure();
            let bare = bare.split(" (").next().unwrap_or_default().to_string();
            format!("{} {bare} → {}", first.what, second.figure())
        });
        Difference { case: after.case, gained: after.passed, what }
    };
    pairs.map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_cc::registry::find;

    #[test]
    fn every_switch_and_every_other_word_is_a_part() {
        let parts = ablations(find("ledbat++").expect("it is there"));
        for part in ["signal=owd", "slowdowns=off", "hold_base=on", "filter=ewma", "filter=latest"] {
            assert!(parts.iter().any(|found| found == part), "{part} of {parts:?}");
        }
        assert!(parts.iter().all(|part| part != "signal=rtt"), "its default");
    }
}
