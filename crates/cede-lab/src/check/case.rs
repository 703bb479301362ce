//! What a case of the battery is, and what comes of it.

use super::bench::Bench;
use crate::run::RunError;
use serde::Serialize;
use std::fmt;

/// What a group of cases is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Filling an idle link without filling its buffer.
    Alone,
    /// Giving way, and coming back.
    Yields,
    /// Losses that mean no congestion.
    Loss,
    /// A path that shakes, reorders and changes.
    Path,
    /// Clocks that run apart.
    Clock,
    /// Acknowledgements that come late, in batches, or through a queue.
    Feedback,
    /// Several flows of the same kind.
    Sharing,
    /// Buffers that are too small or too large.
    Buffers,
    /// Bottlenecks that manage their queue, police or send bursts.
    Queues,
    /// An application that pauses.
    Application,
}

impl Family {
    /// What the family's cases begin with.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Yields => "yields",
            Self::Loss => "loss",
            Self::Path => "path",
            Self::Clock => "clock",
            Self::Feedback => "feedback",
            Self::Sharing => "sharing",
            Self::Buffers => "buffers",
            Self::Queues => "queues",
            Self::Application => "application",
        }
    }
}

/// A pinned scenario, or a few that belong together, with its marks.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name: `FAMILY/WHAT`.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// What the world is like, in a line.
    pub world: &'static str,
    /// What it guards against, with the public incident where there is one.
    pub story: &'static str,
    /// Runs it and measures.
    pub(super) measure: Measure,
}

/// How a case is measured.
pub(super) type Measure = fn(&Bench<'_>) -> Result<Vec<Finding>, RunError>;

/// A bound on a figure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// No less than this.
    AtLeast(f64),
    /// No more than this.
    AtMost(f64),
}

impl Mark {
    /// Whether a figure is within the bound; not-a-number never is.
    #[must_use]
    pub fn holds(self, measured: f64) -> bool {
        match self {
            Self::AtLeast(bound) => measured >= bound,
            Self::AtMost(bound) => measured <= bound,
        }
    }

    /// How far a figure is within the bound, as a ratio: 1 on the bound, more within, less beyond.
    #[must_use]
    pub fn margin(self, measured: f64) -> f64 {
        match self {
            _ if measured.is_nan() => 0.0,
            Self::AtLeast(bound) => measured / bound.max(f64::MIN_POSITIVE),
            Self::AtMost(bound) => bound / measured.max(f64::MIN_POSITIVE),
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "≥ {}", short(*bound)),
            Self::AtMost(bound) => write!(f, "≤ {}", short(*bound)),
        }
    }
}

/// Why there is no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// What was waited for did not happen while the run lasted.
    Never,
    /// There was nothing to measure, or nothing to measure it by.
    Nothing,
}

/// A measured figure against its mark.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// What was measured, with its unit.
    pub what: &'static str,
    /// The figure; infinite where what was waited for never happened, not-a-number where there was nothing to measure. Both
    /// are `null` in JSON.
    pub measured: f64,
    /// Why there is no number, where there is none; left out in JSON otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
    /// Its bound.
    pub mark: Mark,
    /// Whether it is within the bound.
    pub holds: bool,
}

impl Finding {
    pub(super) fn new(what: &'static str, measured: f64, mark: Mark) -> Self {
        // A ratio to nothing is infinite too, and would pass for plenty.
        let is_ratio_to_nothing = measured.is_infinite() && matches!(mark, Mark::AtLeast(_));
        let measured = if is_ratio_to_nothing { f64::NAN } else { measured };
        let missing = match measured {
            _ if measured.is_nan() => Some(Missing::Nothing),
            _ if measured.is_infinite() => Some(Missing::Never),
            _ => None,
        };
        Self { what, measured, missing, mark, holds: mark.holds(measured) }
    }

    /// The figure and its bound, as short as they can be.
    #[must_use]
    pub fn figure(&self) -> String {
        let measured = match self.missing {
            Some(Missing::Never) => "never".to_string(),
            Some(Missing::Nothing) => "nothing".to_string(),
            None => short(self.measured),
        };
        format!("{measured} ({})", self.mark)
    }
}

/// About three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 99.5 => format!("{value:.0}"),
        size if size >= 9.95 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_hold_on_their_bound_and_never_of_nothing() {
        assert!(Mark::AtLeast(0.8).holds(0.8) && !Mark::AtLeast(0.8).holds(0.79));
        assert!(Mark::AtMost(100.0).holds(100.0) && !Mark::AtMost(100.0).holds(100.1));
        assert!(!Mark::AtLeast(0.0).holds(f64::NAN) && !Mark::AtMost(1e9).holds(f64::NAN));
        assert!(Mark::AtMost(100.0).margin(50.0) > 1.0 && Mark::AtLeast(2.0).margin(1.0) < 1.0);
        assert_eq!(Finding::new("share", 0.125, Mark::AtMost(0.1)).figure(), "0.12 (≤ 0.10)");
    }

    #[test]
    fn json_tells_never_from_nothing() {
        let json =
            |measured: f64, mark| serde_json::to_value(Finding::new("seconds", measured, mark)).unwrap();
        let most = Mark::AtMost(10.0);
        assert_eq!(
            json(f64::INFINITY, most),
            serde_json::json!({ "what": "seconds", "measured": null, "missing": "never", "mark": { "at-most": 10.0 }, "holds": false })
        );
        assert_eq!(json(f64::NAN, most)["missing"], "nothing");
        assert_eq!(json(1.0 / 0.0, Mark::AtLeast(0.5))["missing"], "nothing", "of nothing");
        let number = json(2.0, most);
        assert!(number["measured"] == 2.0 && number.get("missing").is_none(), "{number}");
        assert_eq!(Finding::new("seconds", f64::INFINITY, most).figure(), "never (≤ 10.0)");
    }
}
