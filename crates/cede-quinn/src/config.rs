//! What a user chooses.

use crate::adapter::QuicController;
use crate::sample::AckDelay;
use cede_cc::registry;
use cede_cc::{Controller, ParamError, Params, Path};
use quinn_proto::congestion::{self, ControllerFactory};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Controllers that are refused, each with the reason. What they do here nevertheless is measured by the example `compare`.
pub const UNFIT: &[(&str, &str)] = &[
    ("ledbat-libutp", ONE_WAY),
    ("ledbat-libtorrent", ONE_WAY),
    ("ledbat++-libutp", ONE_WAY),
    ("lp-linux", STAMPS),
    ("lp-linux26", STAMPS),
    ("bbr", PACING),
    ("vivace", PACING),
    ("proteus-p", PACING),
    ("proteus-s", PACING),
    ("proteus-h", PACING),
    ("reno", "it does not yield; quinn has its own (NewReno)"),
    ("cubic", "it does not yield; quinn has its own (Cubic)"),
    ("fixed", "it does not respond to congestion, which RFC 9002 demands of what travels the internet"),
];

const ONE_WAY: &str = "it is defined on the one-way delay alone, which QUIC does not measure";
const STAMPS: &str = "it computes on TCP's time stamps, which QUIC does not have, and is Reno without them";
const PACING: &str = "it steers by the sending rate and needs each packet's fate, and quinn 0.11 offers neither: it \
    paces at 1.25 windows per RTT and reports losses as a sum";

const DEFAULT_MAX_WINDOW_BYTES: u64 = 64 << 20;

/// Why a controller cannot be had.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The name or a parameter is not known, or a value is out of range; the text says what is allowed.
    Parameter(ParamError),
    /// The controller cannot work over quinn.
    Unfit {
        /// Its name.
        name: &'static str,
        /// Why.
        why: &'static str,
    },
    /// `signal = owd`: QUIC does not measure one-way delay.
    NoOneWayDelay,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(error) => error.fmt(f),
            Self::Unfit { name, why } => write!(f, "{name} cannot be used over quinn: {why}"),
            Self::NoOneWayDelay => {
                f.write_str("QUIC does not measure one-way delay: leave `signal` out, or say `rtt`")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Parameter(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ParamError> for Error {
    fn from(error: ParamError) -> Self {
        Self::Parameter(error)
    }
}

/// Builds background controllers for quinn's connections: hand it to `TransportConfig::congestion_controller_factory`.
#[derive(Clone, Debug)]
pub struct Scavenger {
    name: &'static str,
    params: Params,
    ack_delay: AckDelay,
    max_window_bytes: u64,
}

impl Scavenger {
    /// LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): 60 ms of queueing at most, slowdowns that find the base RTT.
    #[must_use]
    pub fn ledbat_plus_plus() -> Self {
        Self::of("ledbat++")
    }

    /// LEDBAT (RFC 6817) on the RTT: 100 ms of queueing, both ways together.
    #[must_use]
    pub fn ledbat_on_rtt() -> Self {
        Self::of("ledbat")
    }

    /// TCP-NICE, with a window of two packets at least.
    #[must_use]
    pub fn nice() -> Self {
        Self::of("nice")
    }

    /// The controller that `cede list controllers` knows by this name, with parameters as `cede explain NAME` tells.
    ///
    /// # Errors
    /// [`Error`], with what is allowed.
    pub fn named(name: &str, params: &Params) -> Result<Self, Error> {
        let entry = registry::require(name)?;
        if let Some((name, why)) = UNFIT.iter().find(|(unfit, _)| *unfit == entry.name) {
            return Err(Error::Unfit { name, why });
        }
        Self::even_if_unfit(name, params)
    }

    /// As [`Scavenger::named`], but gives those too that [`UNFIT`] lists, for experiments. Not for use.
    ///
    /// # Errors
    /// [`Error`], except [`Error::Unfit`].
    pub fn even_if_unfit(name: &str, params: &Params) -> Result<Self, Error> {
        let entry = registry::require(name)?;
        let params = registry::on_rtt(entry, params)?.ok_or(Error::NoOneWayDelay)?;
        registry::resolve(entry.name, &params)?;
        // What a single parameter's range does not say (one that must not exceed another) shows in building.
        (entry.build)(&params, &path(1200, DEFAULT_MAX_WINDOW_BYTES))?;
        Ok(Self {
            name: entry.name,
            params,
            // Over the recovered samples TCP-LP uses two thirds of an idle link, over the raw ones nineteen twentieths.
            ack_delay: if entry.name == "lp" { AckDelay::Included } else { AckDelay::Removed },
            max_window_bytes: DEFAULT_MAX_WINDOW_BYTES,
        })
    }

    /// Sets a parameter, in the words of `cede explain NAME`: `set("target", "25 ms")`. A later value takes the place of an earlier one.
    ///
    /// # Errors
    /// [`Error`], with what is allowed.
    pub fn set(self, parameter: &str, value: &str) -> Result<Self, Error> {
        let entry = registry::require(self.name)?;
        let mut params = Params::new();
        let others = self.params.iter().filter(|(name, _)| *name != parameter);
        others.for_each(|(name, value)| params.set(name, value.clone()));
        params.parse_and_set(entry.params, parameter, value)?;
        let Self { params, .. } = Self::even_if_unfit(self.name, &params)?;
        Ok(Self { params, ..self })
    }

    fn of(name: &'static str) -> Self {
        let params = match registry::find(name) {
            Some(entry) => registry::on_rtt(entry, &Params::new()).ok().flatten().unwrap_or_default(),
            None => Params::new(),
        };
        Self { name, params, ack_delay: AckDelay::default(), max_window_bytes: DEFAULT_MAX_WINDOW_BYTES }
    }

    /// Chooses what is done about the peer's acknowledgement delay.
    #[must_use]
    pub const fn ack_delay(mut self, ack_delay: AckDelay) -> Self {
        self.ack_delay = ack_delay;
        self
    }

    /// The largest window, in octets. Memory is quinn's `send_window`; this bounds what may be under way.
    #[must_use]
    pub const fn max_window_bytes(mut self, bytes: u64) -> Self {
        self.max_window_bytes = bytes;
        self
    }

    /// The controller's name in the registry of `cede-cc`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    fn controller(&self, mtu: u16) -> Option<Box<dyn Controller>> {
        registry::build(self.name, &self.params, &path(mtu, self.max_window_bytes)).ok()
    }
}

impl ControllerFactory for Scavenger {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        match self.controller(current_mtu) {
            Some(controller) => Box::new(QuicController::new(controller, self.ack_delay, now, current_mtu)),
            // Parameters are checked when a `Scavenger` is made, so this does not happen; if it did, a connection
            // with quinn's own careful controller would be better than none.
            None => Arc::new(congestion::NewRenoConfig::default()).build(now, current_mtu),
        }
    }
}

/// The initial window is RFC 9002's (section 7.2): ten packets, but no more than 14,720 octets or two packets.
fn path(mtu: u16, max_window_bytes: u64) -> Path {
    let mss_bytes = u32::from(mtu).max(1);
    let initial_cwnd_bytes = (10 * mss_bytes).min((2 * mss_bytes).max(14_720));
    Path { mss_bytes, initial_cwnd_bytes, max_cwnd_bytes: max_window_bytes.max(u64::from(2 * mss_bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_cc::ParamValue;

    #[test]
    fn every_controller_is_either_offered_or_refused_with_a_reason() {
        for entry in registry::all() {
            let refused = UNFIT.iter().any(|(name, why)| *name == entry.name && !why.is_empty());
            match Scavenger::named(entry.name, &Params::new()) {
                Ok(scavenger) => {
                    assert!(!refused, "{} is in both lists", entry.name);
                    assert!(scavenger.controller(1200).is_some());
                }
                Err(Error::Unfit { name, .. }) => assert!(refused && name == entry.name),
                Err(other) => panic!("{}: {other}", entry.name),
            }
        }
        for (name, _) in UNFIT {
            assert!(registry::find(name).is_some(), "{name} is no controller");
        }
    }

    #[test]
    fn the_three_by_name_steer_by_the_rtt() {
        for scavenger in [Scavenger::ledbat_plus_plus(), Scavenger::ledbat_on_rtt(), Scavenger::nice()] {
            let named = Scavenger::named(scavenger.name(), &Params::new()).expect("it is offered");
            assert_eq!(scavenger.params, named.params);
            let settings = registry::resolve(scavenger.name(), &scavenger.params).expect("they are checked");
            for (name, value) in settings.iter() {
                assert!(name != "signal" || *value == ParamValue::Word("rtt".into()), "{}", scavenger.name());
            }
        }
    }

    #[test]
    fn parameters_are_set_one_by_one_and_the_last_word_counts() {
        let set = |parameter: &str, value: &str| Scavenger::ledbat_plus_plus().set(parameter, value);
        let scavenger =
            set("target", "25 ms").and_then(|it| it.max_window_bytes(9_999).set("target", "30 ms"));
        let scavenger = scavenger.expect("both are in range");
        let target = ParamValue::Duration(cede_units::Duration::from_millis(30));
        assert_eq!((scavenger.params.get("target"), scavenger.max_window_bytes), (Some(&target), 9_999));
        assert_eq!(scavenger.params.get("signal"), Some(&ParamValue::Word("rtt".into())), "as before");
        assert_eq!(set("signal", "owd").unwrap_err(), Error::NoOneWayDelay);
        assert!(set("traget", "25 ms").unwrap_err().to_string().contains("target"));
        assert!(set("target", "25").unwrap_err().to_string().contains("a time from"));
    }

    #[test]
    fn what_cannot_be_is_an_error_that_says_why() {
        let params = |name: &str, text: &str| {
            let mut params = Params::new();
            params.parse_and_set(registry::require("ledbat").unwrap().params, name, text).unwrap();
            params
        };
        assert_eq!(Scavenger::named("ledbat", &params("signal", "owd")).unwrap_err(), Error::NoOneWayDelay);
        let text = Scavenger::named("proteus-s", &Params::new()).unwrap_err().to_string();
        assert!(text.contains("proteus-s") && text.contains("paces"), "{text}");
        let text = Scavenger::named("ledbad", &Params::new()).unwrap_err().to_string();
        assert!(text.contains("ledbat++"), "{text}");
        assert!(Scavenger::named("ledbat", &params("target", "25 ms")).is_ok());
    }
}
