//! A fixed window, a fixed rate, or both: no congestion control. For tests, and for calibrating links.
//!
//! Source: none.
//!
//! *What it leaves out:* any reaction to loss, delay or timeouts. Not for networks that others use.
//! *How it was validated:* the conformance suite, as far as it applies to a controller that does not respond.

use crate::entry::Entry;
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings};
use crate::{Allowance, Controller, Feedback, Path, Phase, Snapshot, Timeout};
use alloc::boxed::Box;
use cede_units::{Bytes, Rate};

const PARAMS: &[ParamDoc] = &[
    ParamDoc {
        name: "cwnd",
        kind: ParamKind::Bytes { min: Bytes(0), max: Bytes(1 << 40) },
        default: "0 B",
        doc: "The window; 0 B takes the largest that the path allows.",
    },
    ParamDoc {
        name: "rate",
        kind: ParamKind::Rate { min: Rate::from_bits_per_sec(0), max: Rate::from_mbit(1_000_000) },
        default: "0 bit/s",
        doc: "The pacing rate; 0 bit/s leaves pacing off.",
    },
    ParamDoc {
        name: "burst",
        kind: ParamKind::Bytes { min: Bytes(1), max: Bytes(1 << 31) },
        default: "3000 B",
        doc: "How much may leave back to back under the rate.",
    },
];

pub(crate) const ENTRY: Entry = Entry {
    name: "fixed",
    summary: "A fixed window or rate that reacts to nothing; for tests and calibration.",
    formula: "cwnd = constant; rate = constant",
    source: "none",
    params: PARAMS,
    responsive: false,
    experimental: false,
    build,
};

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Fixed {
    allowance: Allowance,
    max_cwnd_bytes: u64,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let asked = settings.bytes("cwnd");
    let largest = path.max_cwnd_bytes.max(u64::from(path.mss_bytes));
    let cwnd_bytes = if asked == 0 { largest } else { asked.min(largest) };
    let rate = settings.rate("rate");
    Ok(Box::new(Fixed {
        allowance: Allowance {
            cwnd_bytes: cwnd_bytes.max(1),
            pacing_rate: (rate.bits_per_sec() > 0).then_some(rate),
            burst_bytes: settings.bytes("burst") as u32,
        },
        max_cwnd_bytes: path.max_cwnd_bytes,
    }))
}

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, _: &Feedback<'_>) -> Allowance {
        self.allowance
    }

    fn on_timeout(&mut self, _: &Timeout) -> Allowance {
        self.allowance
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        let largest = self.max_cwnd_bytes.max(u64::from(mss_bytes)).max(1);
        self.allowance.cwnd_bytes = self.allowance.cwnd_bytes.min(largest);
        self.allowance
    }

    fn allowance(&self) -> Allowance {
        self.allowance
    }

    fn answers_marks(&self) -> bool {
        false
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd_bytes: self.allowance.cwnd_bytes as f64,
            pacing_rate: self.allowance.pacing_rate,
            phase: Phase::Named("fixed"),
            ..Snapshot::default()
        }
    }
}
