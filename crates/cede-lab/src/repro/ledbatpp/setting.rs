//! The published test bed, its script, and duels with BBR.
//!
//! Source: the README and the plots of meng-tong/libutp (2020): 50 Mbit/s, 30 ms round trip, 750 kB of buffer; CUBIC from 0
//! to 150 s, BBR from 200 to 300 s, Proteus-P from 350 to 450 s, and the contender from 50 s on.
//!
//! What they leave open. The rivals run over the model TCP with Linux's acknowledgements and timeouts of 200 ms and more,
//! Proteus-P and the contenders over uTP. BBR is the draft's, without allowance for aggregated acknowledgements and without
//! pacing margin, as in the Linux of the time (before 5.0); the duels have today's too. Repetitions move every start
//! by up to a second.

use crate::scenario::Scenario;
use std::fmt::Write as _;

/// The bottleneck's rate.
pub const CAPACITY_MBPS: f64 = 50.0;
/// The base round-trip time in milliseconds.
pub const RTT_MS: u32 = 30;
/// The buffer: 4 bandwidth-delay products.
pub const BUFFER_BYTES: u32 = 750_000;
/// The target of LEDBAT++ in milliseconds.
pub const TARGET_MS: u32 = 60;
/// The target of libutp's LEDBAT in milliseconds.
pub const LEDBAT_TARGET_MS: u32 = 100;
/// When the script ends.
pub const END_S: u32 = 450;

/// BBR as in the draft and in Linux before 5.0.
pub const BBR: &str = "{ name = \"bbr\", aggregation = false, pacing_margin = 0.0 }";
/// BBR as in Linux 6.12.
pub const BBR_TODAY: &str = "{ name = \"bbr\" }";

/// When a duel's rival joins, and when the duel ends.
pub const DUEL_JOIN_S: u32 = 50;
/// See [`DUEL_JOIN_S`].
pub const DUEL_END_S: u32 = 250;

/// The contender's name in every run.
pub const CONTENDER: &str = "x";

/// A scavenger under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    /// LEDBAT as in libutp.
    Ledbat,
    /// LEDBAT++ as in the fork of libutp.
    PlusPlus,
    /// LEDBAT++ as in the draft; not part of what was published.
    PlusPlusDraft,
    /// PCC Proteus as a scavenger.
    ProteusS,
}

impl Contender {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ledbat, Self::PlusPlus, Self::PlusPlusDraft, Self::ProteusS];

    /// How people call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Ledbat => "LEDBAT (libutp)",
            Self::PlusPlus => "LEDBAT++ (libutp)",
            Self::PlusPlusDraft => "LEDBAT++ (draft)",
            Self::ProteusS => "Proteus-S",
        }
    }

    /// Its target in milliseconds, where it has one.
    #[must_use]
    pub const fn target_ms(self) -> Option<u32> {
        match self {
            Self::Ledbat => Some(LEDBAT_TARGET_MS),
            Self::PlusPlus | Self::PlusPlusDraft => Some(TARGET_MS),
            Self::ProteusS => None,
        }
    }

    /// Its controller, as the scenario format has it.
    #[must_use]
    pub const fn controller(self) -> &'static str {
        match self {
            Self::Ledbat => "{ name = \"ledbat-libutp\" }",
            Self::PlusPlus => "{ name = \"ledbat++-libutp\" }",
            Self::PlusPlusDraft => "{ name = \"ledbat++\" }",
            Self::ProteusS => "{ name = \"proteus-s\" }",
        }
    }
}

/// A stretch of the script.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Phase {
    /// Its beginning in seconds.
    pub from_s: f64,
    /// Its end in seconds.
    pub to_s: f64,
    /// The flow beside the contender.
    pub rival: Option<&'static str>,
    /// What it is.
    pub title: &'static str,
}

impl Phase {
    const fn new(from_s: f64, to_s: f64, rival: Option<&'static str>, title: &'static str) -> Self {
        Self { from_s, to_s, rival, title }
    }
}

/// The contender beside CUBIC.
pub const BESIDE_CUBIC: Phase = Phase::new(50.0, 150.0, Some("cubic"), "beside CUBIC");
/// Alone for the first time.
pub const ALONE: Phase = Phase::new(150.0, 200.0, None, "alone");
/// Beside BBR.
pub const BESIDE_BBR: Phase = Phase::new(200.0, 300.0, Some("bbr"), "beside BBR");
/// Alone for the second time.
pub const ALONE_AGAIN: Phase = Phase::new(300.0, 350.0, None, "alone again");
/// Beside Proteus-P.
pub const BESIDE_PROTEUS: Phase = Phase::new(350.0, 450.0, Some("proteus-p"), "beside Proteus-P");
/// The contender's phases in order.
pub const PHASES: [Phase; 5] = [BESIDE_CUBIC, ALONE, BESIDE_BBR, ALONE_AGAIN, BESIDE_PROTEUS];

/// A flow of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Its name.
    pub name: &'static str,
    /// uTP; TCP otherwise.
    pub utp: bool,
    /// Its controller, as the scenario format has it.
    pub controller: String,
    /// When it starts.
    pub start_s: u32,
    /// When it stops offering data.
    pub stop_s: Option<u32>,
}

/// One run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Who takes part.
    pub flows: Vec<Flow>,
    /// The base round-trip time in milliseconds.
    pub rtt_ms: u32,
    /// How long it lasts.
    pub duration_s: u32,
    /// Which repetition it is: the seed, and 0 without random starts.
    pub repetition: u32,
}

impl Setting {
    /// The script with this contender.
    #[must_use]
    pub fn script(contender: Contender, repetition: u32) -> Self {
        let tcp = |name, controller: &str, start_s, stop_s| Flow {
            name,
            utp: false,
            controller: controller.to_string(),
            start_s,
            stop_s: Some(stop_s),
        };
        let utp = |name, controller: &str, start_s| Flow {
            name,
            utp: true,
            controller: controller.to_string(),
            start_s,
            stop_s: None,
        };
        let flows = vec![
            utp(CONTENDER, contender.controller(), 50),
            tcp("cubic", "{ name = \"cubic\" }", 0, 150),
            tcp("bbr", BBR, 200, 300),
            utp("proteus-p", "{ name = \"proteus-p\" }", 350),
        ];
        Self { flows, rtt_ms: RTT_MS, duration_s: END_S, repetition }
    }

    /// A contender that has the link for itself, until BBR joins.
    #[must_use]
    pub fn duel(controller: &str, bbr: &str, rtt_ms: u32, repetition: u32) -> Self {
        let flow = |name, utp, controller: &str, start_s| Flow {
            name,
            utp,
            controller: controller.to_string(),
            start_s,
            stop_s: None,
        };
        let flows = vec![flow(CONTENDER, true, controller, 0), flow("bbr", false, bbr, DUEL_JOIN_S)];
        Self { flows, rtt_ms, duration_s: DUEL_END_S, repetition }
    }

    /// Four bandwidth-delay products, and not less than the published buffer.
    #[must_use]
    pub fn buffer_bytes(&self) -> u32 {
        let bdp_bytes = CAPACITY_MBPS * 1e6 / 8.0 * f64::from(self.rtt_ms) / 1e3;
        BUFFER_BYTES.max((4.0 * bdp_bytes) as u32)
    }

    /// The scenario as text, for `cede run`.
    #[must_use]
    pub fn to_toml(&self) -> String {
        // Four passes of access links take 4 ms.
        let delay_us = (self.rtt_ms.saturating_sub(4)) * 500;
        let mut text = format!(
            "name = \"ledbatpp\"\nduration = \"{} s\"\nseed = {}\n\n[link]\nrate = \"50 Mbit/s\"\ndelay = \"{delay_us} us\"\n\
             buffer = \"{} B\"\n\n[record]\ninterval = \"1 s\"\nqueue = false\nevents = false\n",
            self.duration_s,
            self.repetition,
            self.buffer_bytes()
        );
        for flow in &self.flows {
            self.write_flow(&mut text, flow);
        }
        text
    }

    fn write_flow(&self, text: &mut String, flow: &Flow) {
        let jitter_ms = if self.repetition == 0 { 0 } else { 1000 };
        let stop = flow.stop_s.map_or_else(String::new, |stop_s| format!("stop = \"{stop_s} s\"\n"));
        let protocol = if flow.utp { "utp" } else { "tcp" };
        let own = if flow.utp { "" } else { "ack = \"linux\"\nmin_rto = \"200 ms\"\n" };
        let _ = write!(
            text,
            "\n[[flow]]\nname = \"{}\"\nprotocol = \"{protocol}\"\ncontroller = {}\nstart = \"{} s\"\n{stop}\
             start_jitter = \"{jitter_ms} ms\"\n[flow.{protocol}]\nsend_buffer = \"16 MB\"\nreceive_buffer = \"16 MB\"\n{own}",
            flow.name, flow.controller, flow.start_s,
        );
    }

    /// The scenario of this run.
    ///
    /// # Panics
    /// Where a controller's parameters are outside what the format allows, which those of the experiments are not.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        let text = self.to_toml();
        Scenario::parse("ledbatpp", &text)
            .unwrap_or_else(|problems| panic!("{text}\n{}", crate::scenario::render(&problems)))
    }
}

/// A duel with BBR that asks what decides it.
#[derive(Clone, PartialEq, Debug)]
pub struct Duel {
    /// What it varies.
    pub series: Series,
    /// The value of what is varied, where it is a number.
    pub x: f64,
    /// In words.
    pub title: String,
    /// The contender's controller.
    pub controller: String,
    /// BBR's.
    pub bbr: &'static str,
    /// The base round-trip time.
    pub rtt_ms: u32,
}

/// What a duel varies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Series {
    /// The target of LEDBAT++, in ms.
    Target,
    /// The base round-trip time, in ms.
    Rtt,
    /// Something that is no number.
    Other,
}

const TARGETS_MS: [u32; 8] = [15, 22, 30, 38, 45, 52, 60, 90];
const RTTS_MS: [u32; 7] = [10, 20, 30, 40, 60, 90, 120];

/// LEDBAT++ of the fork, with more parameters.
fn fork(extra: &str) -> String {
    format!("{{ name = \"ledbat++-libutp\"{extra} }}")
}

/// All duels.
#[must_use]
pub fn duels() -> Vec<Duel> {
    let targets = TARGETS_MS.into_iter().map(|target_ms| Duel {
        series: Series::Target,
        x: f64::from(target_ms),
        title: format!("target of {target_ms} ms"),
        controller: fork(&format!(", target = \"{target_ms} ms\"")),
        bbr: BBR,
        rtt_ms: RTT_MS,
    });
    let rtts = RTTS_MS.into_iter().map(|rtt_ms| Duel {
        series: Series::Rtt,
        x: f64::from(rtt_ms),
        title: format!("base RTT of {rtt_ms} ms"),
        controller: fork(""),
        bbr: BBR,
        rtt_ms,
    });
    targets.chain(rtts).chain(others()).collect()
}

/// What no number stands for.
fn others() -> [Duel; 5] {
    let other = |title: &str, controller: String, bbr| Duel {
        series: Series::Other,
        x: f64::NAN,
        title: title.to_string(),
        controller,
        bbr,
        rtt_ms: RTT_MS,
    };
    [
        other("LEDBAT++ without slowdowns", fork(", slowdowns = false"), BBR),
        other(
            "LEDBAT with a target of 60 ms",
            "{ name = \"ledbat-libutp\", target = \"60 ms\" }".into(),
            BBR,
        ),
        other("LEDBAT (target of 100 ms)", Contender::Ledbat.controller().into(), BBR),
        other("LEDBAT++ as in the draft", Contender::PlusPlusDraft.controller().into(), BBR),
        other("LEDBAT++ beside BBR of Linux 6.12", fork(""), BBR_TODAY),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_cc::ParamValue;
    use cede_units::Duration;

    #[test]
    fn every_run_is_a_scenario() {
        for contender in Contender::ALL {
            for repetition in [0, 1] {
                let scenario = Setting::script(contender, repetition).scenario();
                assert_eq!(scenario.flows.len(), 4, "{}", contender.title());
            }
        }
        for duel in duels() {
            let setting = Setting::duel(&duel.controller, duel.bbr, duel.rtt_ms, 1);
            assert_eq!(setting.scenario().flows.len(), 2, "{}", duel.title);
        }
    }

    #[test]
    fn targets_are_those_of_the_controllers() {
        for contender in Contender::ALL {
            let scenario = Setting::script(contender, 0).scenario();
            let spec = &scenario.flows[0].controller;
            let settings = cede_cc::registry::resolve(&spec.name, &spec.params).unwrap();
            let shown = settings.iter().find(|(name, _)| *name == "target").map(|(_, value)| value.clone());
            let ms = |ms: u32| ParamValue::Duration(Duration::from_millis(u64::from(ms)));
            assert_eq!(shown, contender.target_ms().map(ms), "{}", contender.title());
        }
    }

    #[test]
    fn the_buffer_is_four_bandwidth_delay_products_where_that_is_more() {
        let buffer = |rtt_ms| Setting::duel(BBR, BBR, rtt_ms, 0).buffer_bytes();
        assert_eq!((buffer(10), buffer(30), buffer(60)), (750_000, 750_000, 1_500_000));
    }
}
