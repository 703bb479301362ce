//! What holds for one torrent alone: limits, and when giving it ends.

use super::terms::{Arguments, UNIT_BYTES, said};
use crate::failure::Failure;
use crate::torrent::duty::Until;
use cede_units::Duration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Which of two ends of giving holds, by Transmission's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Mode {
    /// That of all torrents.
    #[default]
    Session = 0,
    /// Its own.
    Own = 1,
    /// None.
    Endless = 2,
}

impl Mode {
    const fn of<T: Copy>(self, own: T, session: Option<T>) -> Option<T> {
        match self {
            Self::Session => session,
            Self::Own => Some(own),
            Self::Endless => None,
        }
    }
}

/// A limit that is switched on and was never said, in octets per second.
pub const FIRST_LIMIT: u64 = 100_000;
/// The same of the minutes for which nobody takes anything, and of how often what is there is given: Transmission's.
pub const FIRST_IDLE_MIN: u64 = 30;
pub const FIRST_RATIO: f64 = 2.0;

/// A limit, and whether it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// Octets per second.
    pub rate: u64,
    /// See there.
    pub holds: bool,
}

impl Default for Limit {
    fn default() -> Self {
        Self { rate: FIRST_LIMIT, holds: false }
    }
}

impl Limit {
    fn now(self) -> Option<u64> {
        self.holds.then_some(self.rate)
    }
}

/// What one torrent has of its own.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Own {
    /// What is sent.
    pub up: Limit,
    /// What is received.
    pub down: Limit,
    /// So many times what is there is given.
    pub ratio: f64,
    /// Whether.
    pub ratio_mode: Mode,
    /// Minutes for which nobody need take anything.
    pub idle_min: u64,
    /// Whether.
    pub idle_mode: Mode,
    /// Octets that had been sent when it was begun again after its end, and count for that no more.
    pub counted_from: u64,
}

impl Default for Own {
    fn default() -> Self {
        Self {
            up: Limit::default(),
            down: Limit::default(),
            ratio: FIRST_RATIO,
            ratio_mode: Mode::default(),
            idle_min: FIRST_IDLE_MIN,
            idle_mode: Mode::default(),
            counted_from: 0,
        }
    }
}

/// What orders change.
pub const KEYS: [&str; 8] = [
    "uploadLimit",
    "uploadLimited",
    "downloadLimit",
    "downloadLimited",
    "seedRatioLimit",
    "seedRatioMode",
    "seedIdleLimit",
    "seedIdleMode",
];

impl Own {
    /// The same after an order.
    pub fn after(mut self, arguments: &Arguments) -> Result<Self, Failure> {
        for (rate, switch, limit) in [
            ("uploadLimit", "uploadLimited", &mut self.up),
            ("downloadLimit", "downloadLimited", &mut self.down),
        ] {
            limit.rate = kilobytes(arguments, rate)?.unwrap_or(limit.rate);
            limit.holds = arguments.get(switch).map_or(limit.holds, is_true);
        }
        self.ratio = ratio(arguments)?.unwrap_or(self.ratio);
        self.ratio_mode = mode(arguments, "seedRatioMode")?.unwrap_or(self.ratio_mode);
        self.idle_min = minutes(arguments, "seedIdleLimit")?.unwrap_or(self.idle_min);
        self.idle_mode = mode(arguments, "seedIdleMode")?.unwrap_or(self.idle_mode);
        Ok(self)
    }

    /// When giving it ends, where `sent` octets had been sent before this run, and this holds for all.
    pub fn until(&self, session: Until, sent: u64) -> Until {
        let idle = Duration::from_secs(60 * self.idle_min);
        Until {
            ratio: self.ratio_mode.of(self.ratio, session.ratio),
            time: session.time,
            idle: self.idle_mode.of(idle, session.idle),
            sent_before: sent.saturating_sub(self.counted_from),
        }
    }

    /// Octets per second that are sent and received at most.
    pub fn limits(&self) -> (Option<u64>, Option<u64>) {
        (self.up.now(), self.down.now())
    }

    /// What clients are told of it.
    pub fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "uploadLimit" => (self.up.rate / UNIT_BYTES).into(),
            "uploadLimited" => self.up.holds.into(),
            "downloadLimit" => (self.down.rate / UNIT_BYTES).into(),
            "downloadLimited" => self.down.holds.into(),
            "seedRatioLimit" => json!(self.ratio),
            "seedRatioMode" => (self.ratio_mode as u8).into(),
            "seedIdleLimit" => self.idle_min.into(),
            "seedIdleMode" => (self.idle_mode as u8).into(),
            _ => return None,
        })
    }
}

/// Switches are numbers, too, for some clients.
pub fn is_true(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| value.as_i64().is_some_and(|number| number != 0))
}

/// A rate in octets per second that is said in kB/s.
pub fn kilobytes(arguments: &Arguments, key: &str) -> Result<Option<u64>, Failure> {
    let rate = |said: &Value| said.as_u64().filter(|rate| *rate > 0)?.checked_mul(UNIT_BYTES);
    said(arguments, key, rate, "kB/s from 1 on")
}

/// How often what is there is to be given.
pub fn ratio(arguments: &Arguments) -> Result<Option<f64>, Failure> {
    let ratio = |said: &Value| said.as_f64().filter(|ratio| ratio.is_finite() && *ratio >= 0.0);
    said(arguments, "seedRatioLimit", ratio, "a number, such as 1.5")
}

/// For how long.
pub fn minutes(arguments: &Arguments, key: &str) -> Result<Option<u64>, Failure> {
    /// A century: more would not be a span of time here.
    const MOST: u64 = 100 * 366 * 24 * 60;
    let minutes = |said: &Value| said.as_u64().filter(|minutes| (1..=MOST).contains(minutes));
    said(arguments, key, minutes, "minutes from 1 on")
}

fn mode(arguments: &Arguments, key: &str) -> Result<Option<Mode>, Failure> {
    let mode = |said: &Value| match said.as_u64()? {
        0 => Some(Mode::Session),
        1 => Some(Mode::Own),
        2 => Some(Mode::Endless),
        _ => None,
    };
    said(arguments, key, mode, "0 (as for all), 1 (its own) or 2 (without end)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(own: Own, order: &Value) -> Result<Own, Failure> {
        own.after(order.as_object().unwrap())
    }

    #[test]
    fn an_order_changes_what_it_names() {
        let own = after(Own::default(), &json!({ "uploadLimit": 20, "uploadLimited": true })).unwrap();
        assert_eq!(own.limits(), (Some(20_000), None));
        let own = after(own, &json!({ "downloadLimit": 7, "uploadLimited": 0 })).unwrap();
        assert_eq!((own.limits(), own.up.rate, own.down.rate), ((None, None), 20_000, 7_000));
        let kept: Own = serde_json::from_value(serde_json::to_value(own).unwrap()).unwrap();
        assert_eq!(kept, own);
        for order in [
            json!({ "uploadLimit": 0 }),
            json!({ "uploadLimit": "x" }),
            json!({ "seedRatioMode": 3 }),
            json!({ "seedRatioLimit": -1 }),
            json!({ "seedRatioLimit": "1" }),
            json!({ "seedIdleLimit": 0 }),
            json!({ "seedIdleLimit": u64::MAX }),
        ] {
            assert!(matches!(after(own, &order), Err(Failure::Usage(_))), "{order}");
        }
        let own =
            after(Own::default(), &json!({ "downloadLimited": true, "seedRatioMode": 1, "seedIdleMode": 1 }));
        let own = own.unwrap();
        assert_eq!(own.limits(), (None, Some(FIRST_LIMIT)), "none was said");
        let until = own.until(Until::default(), 0);
        assert_eq!((until.ratio, until.idle), (Some(2.0), Some(Duration::from_secs(30 * 60))));
    }

    #[test]
    fn its_own_end_comes_before_that_of_all() {
        let session = Until { ratio: Some(2.0), idle: Some(Duration::from_secs(60)), ..Until::default() };
        let until = |order: &Value| after(Own::default(), order).unwrap().until(session, 500);
        assert_eq!(until(&json!({})), Until { sent_before: 500, ..session });
        let own = until(&json!({ "seedRatioLimit": 0.5, "seedRatioMode": 1, "seedIdleMode": 2 }));
        assert_eq!((own.ratio, own.idle), (Some(0.5), None));
        let own = until(&json!({ "seedRatioMode": 2, "seedIdleLimit": 3, "seedIdleMode": 1 }));
        assert_eq!((own.ratio, own.idle), (None, Some(Duration::from_secs(180))));
        let again = Own { counted_from: 400, ..Own::default() };
        assert_eq!(again.until(session, 500).sent_before, 100);
    }
}
