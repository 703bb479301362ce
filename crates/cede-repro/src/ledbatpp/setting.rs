//! The published test bed, its script, and duels with BBR.
//!
//! Source: the README and the plots of meng-tong/libutp (2020): 50 Mbit/s, 30 ms round trip, 750 kB of buffer; CUBIC from 0
//! to 150 s, BBR from 200 to 300 s, Proteus-P from 350 to 450 s, and the contender from 50 s on.
//!
//! What they leave open. The rivals run over the model TCP with Linux's acknowledgements and timeouts of 200 ms and more,
//! Proteus-P and the contenders over uTP. BBR is the draft's, without allowance for aggregated acknowledgements and without
//! pacing margin, as in the Linux of the time (before 5.0); the duels have today's too. Repetitions move every start
//! by up to a second.

use cede_lab::scenario::Scenario;
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
/// How often a duel is looked at: BBR's window changes several times a second.
const DUEL_SAMPLE_MS: u32 = 100;

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
    /// The bottleneck's rate in Mbit/s.
    pub rate_mbps: u32,
    /// The base round-trip time in milliseconds.
    pub rtt_ms: u32,
    /// How long it lasts.
    pub duration_s: u32,
    /// From one sample to the next, in milliseconds.
    pub sample_ms: u32,
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
        let rate_mbps = CAPACITY_MBPS as u32;
        Self { flows, rate_mbps, rtt_ms: RTT_MS, duration_s: END_S, sample_ms: 1000, repetition }
    }

    /// A contender that has the link for itself, until BBR joins.
    #[must_use]
    pub fn duel(duel: &Duel, repetition: u32) -> Self {
        let flow = |name, utp, controller: &str, start_s| Flow {
            name,
            utp,
            controller: controller.to_string(),
            start_s,
            stop_s: None,
        };
        let flows =
            vec![flow(CONTENDER, true, &duel.controller, 0), flow("bbr", false, &duel.bbr, DUEL_JOIN_S)];
        let (rate_mbps, rtt_ms) = (duel.rate_mbps, duel.rtt_ms);
        Self { flows, rate_mbps, rtt_ms, duration_s: DUEL_END_S, sample_ms: DUEL_SAMPLE_MS, repetition }
    }

    /// Four bandwidth-delay products, and not less than the published buffer's time.
    #[must_use]
    pub fn buffer_bytes(&self) -> u32 {
        4 * self.rate_mbps * 1000 / 8 * self.rtt_ms.max(RTT_MS)
    }

    /// The scenario as text, for `cede run`.
    #[must_use]
    pub fn to_toml(&self) -> String {
        // Four passes of access links take 4 ms.
        let delay_us = (self.rtt_ms.saturating_sub(4)) * 500;
        let mut text = format!(
            "name = \"ledbatpp\"\nduration = \"{} s\"\nseed = {}\n\n[link]\nrate = \"{} Mbit/s\"\ndelay = \"{delay_us} us\"\n\
             buffer = \"{} B\"\n\n[record]\ninterval = \"{} ms\"\nqueue = false\nevents = false\n",
            self.duration_s,
            self.repetition,
            self.rate_mbps,
            self.buffer_bytes(),
            self.sample_ms,
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
            .unwrap_or_else(|problems| panic!("{text}\n{}", cede_lab::scenario::render(&problems)))
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
    pub bbr: String,
    /// The bottleneck's rate in Mbit/s.
    pub rate_mbps: u32,
    /// The base round-trip time.
    pub rtt_ms: u32,
}

/// What a duel varies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Series {
    /// The target of LEDBAT++ in ms, at this rate in Mbit/s.
    Target(u32),
    /// The base round-trip time, in ms.
    Rtt,
    /// The bandwidth-delay products that BBR allows itself.
    Gain,
    /// The rounds over which BBR remembers a bandwidth.
    Memory,
    /// How far apart slowdowns are.
    Spacing,
    /// Something that is no number.
    Other,
}

const TARGETS_MS: [u32; 11] = [15, 22, 30, 33, 36, 40, 42, 45, 52, 60, 90];
const RTTS_MS: [u32; 9] = [10, 20, 30, 40, 45, 50, 60, 90, 120];
/// Other rates, and the targets there.
pub(super) const RATES_MBPS: [u32; 3] = [10, 20, 200];
const TARGETS_AT_RATES_MS: [u32; 4] = [36, 42, 48, 60];
/// The target of the duels that vary something else, where 38 ms is well within what BBR wins, and 45 ms what LEDBAT++ wins.
const BELOW_MS: u32 = 38;
const ABOVE_MS: u32 = 45;
const GAINS: [f64; 5] = [1.5, 1.75, 2.0, 2.25, 2.5];
const MEMORIES: [u32; 4] = [2, 4, 10, 20];
const SPACINGS: [u32; 3] = [4, 18, 27];

/// LEDBAT++ of the fork, with more parameters.
fn fork(extra: &str) -> String {
    format!("{{ name = \"ledbat++-libutp\"{extra} }}")
}

/// The same with this target.
fn with_target(target_ms: u32) -> String {
    fork(&format!(", target = \"{target_ms} ms\""))
}

/// BBR as in the draft, with more parameters.
fn bbr_with(extra: &str) -> String {
    format!("{{ name = \"bbr\", aggregation = false, pacing_margin = 0.0, {extra} }}")
}

impl Duel {
    /// LEDBAT++ of the fork beside the draft's BBR on the published path.
    fn new(series: Series, x: f64, title: String, controller: String) -> Self {
        let rate_mbps = CAPACITY_MBPS as u32;
        Self { series, x, title, controller, bbr: BBR.to_string(), rate_mbps, rtt_ms: RTT_MS }
    }

    fn beside(self, bbr: String) -> Self {
        Self { bbr, ..self }
    }
}

/// All duels.
#[must_use]
pub fn duels() -> Vec<Duel> {
    let published = CAPACITY_MBPS as u32;
    let targets = TARGETS_MS.into_iter().map(|target_ms| target(published, target_ms));
    let rtts = RTTS_MS.into_iter().map(|rtt_ms| {
        let duel = Duel::new(Series::Rtt, f64::from(rtt_ms), format!("base RTT of {rtt_ms} ms"), fork(""));
        Duel { rtt_ms, ..duel }
    });
    let rates = RATES_MBPS
        .into_iter()
        .flat_map(|rate| TARGETS_AT_RATES_MS.into_iter().map(move |target_ms| target(rate, target_ms)));
    targets.chain(rtts).chain(rates).chain(mechanism()).chain(others()).collect()
}

fn target(rate_mbps: u32, target_ms: u32) -> Duel {
    let rate =
        if f64::from(rate_mbps) == CAPACITY_MBPS { String::new() } else { format!(", {rate_mbps} Mbit/s") };
    let title = format!("target of {target_ms} ms{rate}");
    let series = Series::Target(rate_mbps);
    Duel { rate_mbps, ..Duel::new(series, f64::from(target_ms), title, with_target(target_ms)) }
}

/// One part of BBR or of LEDBAT++ altered at a time.
fn mechanism() -> impl Iterator<Item = Duel> {
    let gains = GAINS.into_iter().map(|gain| {
        let title = format!("target of {ABOVE_MS} ms, BBR allows itself {gain} products");
        let duel = Duel::new(Series::Gain, gain, title, with_target(ABOVE_MS));
        duel.beside(bbr_with(&format!("cwnd_gain = {gain:?}")))
    });
    let memories = MEMORIES.into_iter().map(|rounds| {
        let title = format!("target of {BELOW_MS} ms, BBR remembers {rounds} rounds");
        let duel = Duel::new(Series::Memory, f64::from(rounds), title, with_target(BELOW_MS));
        duel.beside(bbr_with(&format!("bandwidth_rounds = {rounds}")))
    });
    let spacings = SPACINGS.into_iter().map(|spacing| {
        let title = format!("target of {BELOW_MS} ms, slowdowns {spacing} recoveries apart");
        let extra = format!(", target = \"{BELOW_MS} ms\", slowdown_spacing = {spacing}");
        Duel::new(Series::Spacing, f64::from(spacing), title, fork(&extra))
    });
    gains.chain(memories).chain(spacings)
}

/// What no number stands for.
fn others() -> [Duel; 5] {
    let other =
        |title: &str, controller: String| Duel::new(Series::Other, f64::NAN, title.to_string(), controller);
    [
        other("LEDBAT++ without slowdowns", fork(", slowdowns = false")),
        other("LEDBAT with a target of 60 ms", "{ name = \"ledbat-libutp\", target = \"60 ms\" }".into()),
        other("LEDBAT (target of 100 ms)", Contender::Ledbat.controller().into()),
        other("LEDBAT++ as in the draft", Contender::PlusPlusDraft.controller().into()),
        other("LEDBAT++ beside BBR of Linux 6.12", fork("")).beside(BBR_TODAY.to_string()),
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
            let setting = Setting::duel(&duel, 1);
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
        let buffer = |rtt_ms| {
            let duel = Duel { rtt_ms, ..target(50, 60) };
            Setting::duel(&duel, 0).buffer_bytes()
        };
        assert_eq!((buffer(10), buffer(30), buffer(60)), (BUFFER_BYTES, BUFFER_BYTES, 1_500_000));
        assert_eq!(Setting::duel(&target(10, 60), 0).buffer_bytes(), 150_000);
    }

    #[test]
    fn duels_have_titles_and_scenarios_of_their_own() {
        let duels = duels();
        let titles: std::collections::BTreeSet<&str> = duels.iter().map(|duel| duel.title.as_str()).collect();
        let runs: std::collections::BTreeSet<String> =
            duels.iter().map(|duel| Setting::duel(duel, 1).to_toml()).collect();
        assert_eq!((titles.len(), runs.len()), (duels.len(), duels.len()));
    }
}
