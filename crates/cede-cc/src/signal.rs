//! The parameter `signal`, which every controller has that listens to a delay.

use crate::instruments::Signal;
use crate::params::{ParamDoc, ParamKind, Settings};

pub(crate) const fn signal_param(default: &'static str) -> ParamDoc {
    ParamDoc {
        name: "signal",
        kind: ParamKind::Word(&["owd", "rtt"]),
        default,
        doc: "The delay that steers: owd, the one-way delay of what is sent, or rtt.",
    }
}

pub(crate) fn signal_of(settings: &Settings) -> Signal {
    if settings.word("signal") == "rtt" { Signal::RoundTrip } else { Signal::OneWay }
}
