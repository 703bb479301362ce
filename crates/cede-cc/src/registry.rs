//! Every controller there is, by name: what it does, its formula and source, its parameters, and how to build it.

pub use crate::entry::{Build, Entry};
use crate::ledbat::{draft, fledbat, libtorrent, libutp, plus_plus, plus_plus_libutp, rfc6817};
use crate::params::{ParamError, ParamValue, Params, Settings};
use crate::{Controller, Path};
use crate::{bbr, cede, cubic, fixed, lp, lp_linux, nice, pcc, reno, vegas};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;

const ALL: &[Entry] = &[
    rfc6817::ENTRY,
    draft::ENTRY,
    libutp::ENTRY,
    libtorrent::ENTRY,
    fledbat::ENTRY,
    plus_plus::ENTRY,
    plus_plus_libutp::ENTRY,
    cede::ENTRY,
    lp::ENTRY,
    lp_linux::ENTRY,
    lp_linux::ENTRY_26,
    nice::ENTRY,
    vegas::ENTRY,
    reno::ENTRY,
    cubic::ENTRY,
    bbr::ENTRY,
    pcc::VIVACE_ENTRY,
    pcc::PROTEUS_P_ENTRY,
    pcc::PROTEUS_S_ENTRY,
    pcc::PROTEUS_H_ENTRY,
    fixed::ENTRY,
];

/// Every controller.
#[must_use]
pub const fn all() -> &'static [Entry] {
    ALL
}

/// The controller called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

/// As [`find`], with an error that lists the names there are.
///
/// # Errors
/// [`ParamError::UnknownController`].
pub fn require(name: &str) -> Result<&'static Entry, ParamError> {
    find(name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
        ParamError::UnknownController { name: name.to_owned(), allowed: names.join(", ") }
    })
}

/// Builds the controller called `name` for a path.
///
/// # Errors
/// [`ParamError`], which says what is allowed, for an unknown controller or parameter, a parameter that is given
/// twice, and a value of the wrong kind or out of range.
pub fn build(name: &str, params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    (require(name)?.build)(params, path)
}

/// Checks parameters without building anything, and answers with all settings, defaults included.
///
/// # Errors
/// As [`build`].
pub fn resolve(name: &str, params: &Params) -> Result<Settings, ParamError> {
    Settings::resolve(params, require(name)?.params)
}

/// The parameters with `signal = rtt`, where the controller has that one: for transports that tell no one-way delays. None where they ask for
/// those.
///
/// # Errors
/// [`ParamError`], where `rtt` is none of its words.
pub fn on_rtt(entry: &Entry, params: &Params) -> Result<Option<Params>, ParamError> {
    let mut params = params.clone();
    if entry.params.iter().any(|param| param.name == "signal") {
        match params.get("signal") {
            None => params.parse_and_set(entry.params, "signal", "rtt")?,
            Some(ParamValue::Word(word)) if word == "owd" => return Ok(None),
            Some(_) => {}
        }
    }
    Ok(Some(params))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, path};
    use cede_units::{Duration, Instant, Rate};

    #[test]
    fn every_controller_builds_from_its_defaults_under_its_own_name() {
        for entry in all() {
            let controller = build(entry.name, &Params::new(), &path(1448)).unwrap();
            assert_eq!(controller.name(), entry.name);
            assert!(!entry.summary.is_empty() && !entry.formula.is_empty() && !entry.source.is_empty());
            assert!(entry.params.iter().all(|p| !p.doc.is_empty() && p.doc.ends_with('.')), "{}", entry.name);
        }
    }

    #[test]
    fn names_of_controllers_and_parameters_are_unique() {
        for (i, entry) in all().iter().enumerate() {
            assert!(all()[..i].iter().all(|other| other.name != entry.name), "{}", entry.name);
            for (j, param) in entry.params.iter().enumerate() {
                assert!(entry.params[..j].iter().all(|other| other.name != param.name), "{}", param.name);
            }
        }
    }

    #[test]
    fn every_parameter_can_be_set_to_each_end_of_its_range() {
        for entry in all() {
            for params in entry.at_the_ends(&path(1448)) {
                assert!(build(entry.name, &params, &path(1448)).is_ok(), "{} {params:?}", entry.name);
            }
        }
    }

    /// The window in octets and the rate after forty packets of a path without a queue, of which the thirtieth was marked or not.
    fn after_a_mark(entry: &Entry, marked: bool) -> (u64, Option<Rate>) {
        let mut controller = build(entry.name, &Params::new(), &path(1448)).unwrap();
        for number in 0..40 {
            let mut one = ack(number, 1448);
            one.feedback.now = Instant::from_millis(1000 + 5 * number);
            (one.feedback.in_flight_before_bytes, one.feedback.in_flight_bytes) = (20 * 1448, 19 * 1448);
            (one.feedback.delivered_bytes, one.feedback.next_number) = (1448 * (number + 1), number + 20);
            let rtt = Some(Duration::from_millis(100));
            (one.feedback.rtt, one.feedback.rtt_min) = (rtt, rtt);
            one.feedback.one_way_delay_ns = Some(50_000_000);
            one.feedback.ce_marked = u32::from(marked && number == 30);
            controller.on_feedback(&one.feedback());
        }
        let allowance = controller.allowance();
        (allowance.cwnd_bytes, allowance.pacing_rate)
    }

    #[test]
    fn who_says_that_it_answers_marks_does_and_nobody_else() {
        for entry in all() {
            let (plain, marked) = (after_a_mark(entry, false), after_a_mark(entry, true));
            let yields = marked.0 < plain.0 || marked.1 < plain.1;
            assert_eq!(yields, entry.answers_marks(), "{}: {plain:?} {marked:?}", entry.name);
            assert!(yields || marked == plain, "{}", entry.name);
        }
    }

    /// Windows in octets while a queue comes and goes, where the peer's clock is ahead by so much.
    fn windows_where_clocks_differ(entry: &Entry, ahead_ns: i64) -> Vec<f64> {
        let mut controller = build(entry.name, &Params::new(), &path(1448)).unwrap();
        let mut after = |number: u64| {
            // 160 ms at most, in steps of a millisecond.
            let queue_ms = 160_u64.saturating_sub(number.abs_diff(200));
            let mut one = ack(number, 1448);
            one.feedback.now = Instant::from_millis(1000 + 20 * number);
            (one.feedback.in_flight_before_bytes, one.feedback.in_flight_bytes) = (1 << 20, 1 << 20);
            (one.feedback.delivered_bytes, one.feedback.next_number) = (1448 * (number + 1), number + 4);
            let rtt = Duration::from_millis(80 + queue_ms);
            (one.feedback.rtt, one.feedback.rtt_min, one.feedback.srtt) = (Some(rtt), Some(rtt), rtt);
            one.feedback.one_way_delay_ns = Some(40_000_000 + 1_000_000 * queue_ms as i64 + ahead_ns);
            one.feedback.reverse_delay_ns = Some(40_000_000 - ahead_ns);
            controller.on_feedback(&one.feedback());
            controller.snapshot().cwnd_bytes
        };
        (0..500).map(&mut after).collect()
    }

    #[test]
    fn how_far_apart_clocks_are_says_nothing() {
        // Linux's TCP-LP is known for being deceived by it.
        for entry in all().iter().filter(|entry| !entry.name.starts_with("lp-linux")) {
            let together = windows_where_clocks_differ(entry, 0);
            // Timestamps of TCP count 2^32 ticks from anywhere, of a millisecond with most hosts and of a tenth of a second with some.
            for ahead_ns in [1, -1, 100, -100].map(|tick_ms: i64| (tick_ms << 32) * 1_000_000) {
                let apart = windows_where_clocks_differ(entry, ahead_ns);
                let same = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * a;
                let differs = together.iter().zip(&apart).position(|pair| !same(pair));
                assert_eq!(differs, None, "{}, {ahead_ns} ns", entry.name);
            }
        }
    }

    #[test]
    fn an_alpha_above_beta_is_refused_with_what_beta_is() {
        let params = |alpha, beta| {
            let number = ParamValue::Number;
            Params::new().with("alpha", number(alpha)).with("beta", number(beta))
        };
        for name in ["vegas", "nice"] {
            assert!(build(name, &params(2.0, 2.0), &path(1448)).is_ok());
            let error = build(name, &params(5.0, 2.0), &path(1448)).err().unwrap();
            let text = alloc::string::ToString::to_string(&error);
            assert!(
                text.contains("\"alpha\" cannot be 5 here; allowed: a number up to \"beta\", which is 2"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_unknown_controller_is_refused_with_the_names_there_are() {
        let error = build("rneo", &Params::new(), &path(1448)).err().unwrap();
        assert!(alloc::string::ToString::to_string(&error).contains("reno, cubic"), "{error}");
    }
}
