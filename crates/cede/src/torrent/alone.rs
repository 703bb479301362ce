//! Why nobody is connected, once that has lasted: a person may be able to help.

use crate::carry::numbers;
use cede_torrent::calls::{Miss, Misses};
use cede_torrent::session::Encryption;
use std::time::{Duration, Instant};

/// Calls take ten seconds to fail where nobody answers.
const PATIENCE: Duration = Duration::from_secs(15);

/// For how long nobody has been connected, and what has been said of it.
pub struct Alone {
    since: Instant,
    /// How long it is waited until more is said.
    patience: Duration,
    said: Misses,
}

impl Alone {
    /// From now on.
    pub fn new(now: Instant) -> Self {
        Self { since: now, patience: PATIENCE, said: Misses::new() }
    }

    /// Somebody is there, or nobody is needed.
    pub fn is_over(&mut self, now: Instant) {
        *self = Self::new(now);
    }

    /// What there is to say now: after a while, and after twice that, as long as there is something new.
    pub fn look(&mut self, now: Instant, misses: &Misses, encryption: Encryption) -> Option<String> {
        if now - self.since < self.patience || *misses == self.said || misses.is_empty() {
            return None;
        }
        (self.since, self.patience, self.said) = (now, self.patience * 2, misses.clone());
        Some(text(misses, encryption))
    }
}

fn text(misses: &Misses, encryption: Encryption) -> String {
    let called = numbers::count(misses.values().sum(), "peer");
    let why = misses.iter().map(|(miss, count)| format!("{count} {}", reason(*miss, encryption)));
    format!("nobody is connected; {called} called: {}", why.collect::<Vec<_>>().join(", "))
}

const fn reason(miss: Miss, encryption: Encryption) -> &'static str {
    match (miss, encryption) {
        (Miss::Filtered, _) => "left alone (--ip-filter)",
        (Miss::Silent, _) => "without an answer",
        (Miss::Unreachable, _) => "to which there is no way from here",
        (Miss::Refused, _) => "where nobody takes connections",
        (Miss::HungUp, Encryption::Off) => {
            "hung up (may not have this torrent, or take enciphered connections alone: --encryption allow)"
        }
        (Miss::HungUp, _) => "hung up (may not have this torrent)",
        (Miss::Clear, _) => "without encryption, which --encryption require asks for",
        (Miss::Ignorant, _) => "could not tell what the link stands for",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_nobody_is_there_is_said_once_and_again_where_it_changes() {
        let mut now = Instant::now();
        let mut alone = Alone::new(now);
        let silent = Misses::from([(Miss::Silent, 1)]);
        assert_eq!(alone.look(now + PATIENCE / 2, &silent, Encryption::Allow), None);
        now += PATIENCE;
        assert_eq!(alone.look(now, &Misses::new(), Encryption::Allow), None, "nobody was called");
        let said = alone.look(now, &silent, Encryption::Allow).unwrap();
        assert_eq!(said, "nobody is connected; 1 peer called: 1 without an answer");
        let more = Misses::from([(Miss::Silent, 2), (Miss::Clear, 1)]);
        assert_eq!(alone.look(now + PATIENCE, &more, Encryption::Require), None, "not so soon");
        now += PATIENCE * 2;
        assert_eq!(alone.look(now, &silent, Encryption::Require), None, "that is known");
        let said = alone.look(now, &more, Encryption::Require).unwrap();
        let wanted =
            "3 peers called: 2 without an answer, 1 without encryption, which --encryption require asks for";
        assert!(said.ends_with(wanted), "{said}");
        // Somebody came and left: it begins anew.
        alone.is_over(now);
        assert_eq!(alone.look(now + PATIENCE / 2, &more, Encryption::Allow), None);
        assert!(alone.look(now + PATIENCE, &more, Encryption::Allow).is_some());
    }
}
