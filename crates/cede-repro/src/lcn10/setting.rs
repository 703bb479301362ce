//! The paper's setting: two routers, one bottleneck, flows of four protocols, and what the paper leaves open.
//!
//! Source: "A hands-on assessment of transport protocols with lower than best effort priority", LCN 2010, section
//! III-A: 10 Mbit/s, 25 ms one way, a drop-tail buffer of 100 packets, packets of 1500 octets, 120 s, all flows
//! back-logged and started together. Where it is silent: access links of 1 Gbit/s with 1 ms on each side, so 23 ms at
//! the bottleneck; the packet in service does not count; initial window 2; every packet acknowledged; retransmission
//! timeouts of 200 ms and more.

use cede_lab::scenario::Scenario;
use std::fmt::Write as _;

/// The bottleneck's rate.
pub const CAPACITY_MBPS: f64 = 10.0;
/// The bottleneck's buffer in packets.
pub const BUFFER_PACKETS: f64 = 100.0;
/// The paper's packets in octets.
pub const PACKET_BYTES: u32 = 1500;
/// What one packet takes at the bottleneck, in milliseconds.
pub const PACKET_MS: f64 = 1.2;
/// The round-trip time without queueing, in milliseconds.
pub const BASE_RTT_MS: f64 = 50.0;
/// The target of the paper and of the draft of its day, in milliseconds.
pub const TARGET_MS: f64 = 25.0;

/// A target in milliseconds from a part of the buffer in percent (section IV-A: 100 % are 120 ms).
#[must_use]
pub fn target_ms(percent_of_buffer: f64) -> f64 {
    percent_of_buffer / 100.0 * BUFFER_PACKETS * PACKET_MS
}

/// LEDBAT's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ledbat {
    /// tau in milliseconds.
    pub target_ms: f64,
    /// G, where gamma = G / tau.
    pub gain: f64,
}

impl Ledbat {
    /// The paper's: 25 ms and 1.
    pub const PAPER: Self = Self { target_ms: TARGET_MS, gain: 1.0 };

    /// With another target.
    #[must_use]
    pub const fn with_target_ms(target_ms: f64) -> Self {
        Self { target_ms, gain: 1.0 }
    }

    /// With another gain.
    #[must_use]
    pub const fn with_gain(gain: f64) -> Self {
        Self { target_ms: TARGET_MS, gain }
    }
}

/// TCP-LP, NICE or Vegas: over the model TCP, with timestamps of 1 ms that read the hosts' clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Background {
    /// The controller, as the scenario format has it.
    pub controller: &'static str,
    /// How far the receivers' clocks are ahead of the senders', in milliseconds.
    pub clock_offset_ms: u32,
    /// One tick of the transport's timestamps in microseconds.
    pub tick_us: u32,
}

impl Background {
    /// TCP-LP by the equations of its paper.
    pub const LP_EQUATIONS: Self = Self::new("\"lp\"");
    /// TCP-LP as Linux has it, where the rate of the peer's clock is known.
    pub const LP_KNOWN_RATE: Self = Self::new("{ name = \"lp-linux\", clock_rate = \"known\" }");
    /// The same where equality with the threshold is no congestion, as in ns-3.
    pub const LP_NS3: Self =
        Self::new("{ name = \"lp-linux\", clock_rate = \"known\", boundary = \"inclusive\" }");
    /// The same with ns-3's window: slow start that an inference phase does not hold, growth by fractions of a packet, and losses
    /// that halve what is still under way.
    pub const LP_NS3_WINDOW: Self = Self::new(
        "{ name = \"lp-linux\", clock_rate = \"known\", boundary = \"inclusive\", inference_holds = \"avoidance\", \
         growth = \"fractions\", halves = \"pipe\" }",
    );
    /// TCP-LP as ns-2 runs Linux 2.6's: stamps to the nearest millisecond, judged inside of repairs too, slow start at ssthresh.
    pub const LP_NS2: Self = Self::new(
        "{ name = \"lp-linux\", stamp_rounding = \"nearest\", judge_repairs = true, slow_start_at_ssthresh = true }",
    )
    .fine_stamps();
    /// The same in 32-bit numbers, which is probably what the paper ran.
    pub const LP_32_BITS: Self = Self::new(
        "{ name = \"lp-linux26\", stamp_rounding = \"nearest\", judge_repairs = true, slow_start_at_ssthresh = true }",
    )
    .fine_stamps();
    /// NICE on Vegas as Linux 2.6 and ns-2 have it: a floor of two packets, slow start up to and at ssthresh, a backlog of
    /// 2 to 4 packets.
    pub const NICE_LINUX26: Self = Self::new(
        "{ name = \"nice\", min_cwnd = 2.0, slow_start_at_ssthresh = true, backlog = \"ns3\", window = \"present\", \
         alpha = 2.0, beta = 4.0 }",
    );
    /// Vegas with the rules of ns-3.
    pub const VEGAS_NS3: Self = Self::new("{ name = \"vegas\", backlog = \"ns3\", window = \"present\" }");
    /// Vegas with the rules of Linux, which ns-2 runs.
    pub const VEGAS_LINUX: Self = Self::new("{ name = \"vegas\", backlog = \"linux\" }");
    /// NICE with windows down to 1/48 of a packet.
    pub const NICE_FRACTIONAL: Self = Self::new("\"nice\"");

    /// With synchronised clocks.
    #[must_use]
    pub const fn new(controller: &'static str) -> Self {
        Self { controller, clock_offset_ms: 0, tick_us: 1000 }
    }

    /// With timestamps of 1 us, for controllers that round them themselves.
    #[must_use]
    pub const fn fine_stamps(self) -> Self {
        Self { tick_us: 1, ..self }
    }

    /// With the receivers' clocks ahead.
    #[must_use]
    pub const fn clock_offset_ms(self, clock_offset_ms: u32) -> Self {
        Self { clock_offset_ms, ..self }
    }
}

/// The bottleneck, and when the first part of a run sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bed {
    /// The paper's: all flows from the beginning to the end.
    Paper,
    /// That of the evaluation of LEDBAT++ (`repro::ledbatpp`): 50 Mbit/s, 30 ms, four bandwidth-delay products, and a first flow
    /// from 30 to 80 s. The paper has no such run; ns-2 and ns-3 do.
    Evaluation,
}

impl Bed {
    /// The bottleneck's rate.
    #[must_use]
    pub const fn capacity_mbps(self) -> f64 {
        match self {
            Self::Paper => CAPACITY_MBPS,
            Self::Evaluation => 50.0,
        }
    }

    /// The bottleneck as a scenario writes it; its buffer is what waits.
    const fn link(self) -> &'static str {
        match self {
            Self::Paper => "rate = \"10 Mbit/s\"\ndelay = \"23 ms\"\nbuffer = \"100 packets\"\n",
            Self::Evaluation => "rate = \"50 Mbit/s\"\ndelay = \"13 ms\"\nbuffer = \"500 packets\"\n",
        }
    }

    /// When the first part sends, where that is not all the time.
    const fn first_part(self) -> &'static str {
        match self {
            Self::Paper => "",
            Self::Evaluation => "start = \"30 s\"\nstop = \"80 s\"\n",
        }
    }
}

/// A protocol under study.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// The TCP of best effort.
    Reno,
    /// Another TCP of best effort: its controller, as the scenario format has it.
    Rival(&'static str),
    /// LEDBAT.
    Ledbat(Ledbat),
    /// TCP-LP, NICE or Vegas.
    Background(Background),
}

/// A flow, or several alike.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// What runs in it.
    pub kind: Kind,
    /// How many.
    pub count: u32,
    /// Its base round-trip time over [`BASE_RTT_MS`]; the rest lies on the way back.
    pub rtt_ratio: f64,
}

impl Part {
    /// One flow on the common path.
    #[must_use]
    pub const fn one(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, count: 1, rtt_ratio: 1.0 }
    }

    /// So many flows.
    #[must_use]
    pub const fn times(mut self, count: u32) -> Self {
        self.count = count;
        self
    }

    /// On a path whose round-trip time is so many times as long.
    #[must_use]
    pub const fn rtt_ratio(mut self, ratio: f64) -> Self {
        self.rtt_ratio = ratio;
        self
    }
}

/// What carries LEDBAT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// uTP, whose timestamps have microseconds.
    Utp,
    /// The model TCP, with a timestamp clock of this tick in microseconds.
    Tcp {
        /// One tick in microseconds.
        tick_us: u32,
    },
}

/// The answers to what the paper leaves open.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Choices {
    /// Reno repairs with selective acknowledgements; NewReno (RFC 6582) otherwise.
    pub sack: bool,
    /// With SACK: repairs lower the window in proportion to what is delivered, as Linux, ns-2's Linux and ns-3 do.
    pub prr: bool,
    /// What carries LEDBAT.
    pub carrier: Carrier,
    /// Receivers acknowledge every second packet or after 200 ms.
    pub delayed_acks: bool,
    /// Receivers of TCP acknowledge as those of Linux do.
    pub linux_acks: bool,
    /// The bottleneck, and when the first part sends.
    pub bed: Bed,
    /// Each packet is held up behind the bottleneck by up to this, in microseconds; none overtakes another.
    pub noise_us: u32,
    /// Gain times offset is capped at one packet per round trip.
    pub clamp: bool,
    /// LEDBAT's smallest window in packets.
    pub min_window_packets: u32,
    /// LEDBAT's filter of delay samples takes the minimum of the last four; the paper's text has none.
    pub filter: bool,
    /// The window moves in whole packets, as in the code behind the paper's figures.
    pub whole_packets: bool,
    /// The largest random start in milliseconds, for repetitions other than 0.
    pub start_jitter_ms: u32,
    /// How long the run lasts.
    pub duration_s: u32,
}

impl Choices {
    /// The choices of the figures.
    pub const PRIMARY: Self = Self {
        sack: true,
        prr: true,
        carrier: Carrier::Utp,
        delayed_acks: false,
        linux_acks: false,
        bed: Bed::Paper,
        noise_us: 0,
        clamp: true,
        min_window_packets: 1,
        filter: false,
        whole_packets: false,
        start_jitter_ms: 100,
        duration_s: 120,
    };
}

/// One run: flows, choices, and which repetition it is.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// The flows; the first is the one whose share is plotted.
    pub parts: Vec<Part>,
    /// What the paper leaves open.
    pub choices: Choices,
    /// Repetition 0 starts all flows at the same instant; it is the seed too.
    pub repetition: u32,
    /// Windows and queue are wanted over time.
    pub series: bool,
}

impl Setting {
    /// The scenario of this run, as the scenario format has it.
    ///
    /// # Panics
    /// Where the flows' parameters are outside what the format allows, which the experiments' are not.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        let text = self.to_toml();
        Scenario::parse("lcn10", &text)
            .unwrap_or_else(|problems| panic!("{text}\n{}", cede_lab::scenario::render(&problems)))
    }

    /// The scenario as text, for `cede run`.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = format!(
            "name = \"lcn10\"\nduration = \"{} s\"\nseed = {}\n\n[link]\n{}{}\n\
             [record]\ninterval = \"50 ms\"\nqueue = false\nevents = false\n",
            self.choices.duration_s,
            self.repetition,
            self.choices.bed.link(),
            self.noise(),
        );
        for (place, part) in self.parts.iter().enumerate() {
            self.write_flow(&mut text, part, if place == 0 { self.choices.bed.first_part() } else { "" });
        }
        for part in &self.parts {
            write_clock(&mut text, part);
        }
        text
    }

    fn noise(&self) -> String {
        match self.choices.noise_us {
            0 => String::new(),
            noise_us => format!("jitter = \"{noise_us} us\"\n"),
        }
    }

    fn write_flow(&self, text: &mut String, part: &Part, when: &str) {
        let jitter_ms = if self.repetition == 0 { 0 } else { self.choices.start_jitter_ms };
        let return_us = 1000.0 + (part.rtt_ratio - 1.0) * BASE_RTT_MS * 1000.0;
        let _ = write!(
            text,
            "\n[[flow]]\nname = \"{}\"\ncount = {}\n{when}start_jitter = \"{jitter_ms} ms\"\nreturn_delay = \"{} us\"\n\
             controller = {}\n{}",
            part.name,
            part.count,
            return_us.round(),
            self.controller(part.kind),
            self.protocol(part.kind),
        );
    }

    fn controller(&self, kind: Kind) -> String {
        let ledbat = match kind {
            Kind::Reno => return "\"reno\"".to_string(),
            Kind::Rival(controller) => return controller.to_string(),
            Kind::Background(background) => return background.controller.to_string(),
            Kind::Ledbat(ledbat) => ledbat,
        };
        let choices = &self.choices;
        format!(
            "{{ name = \"ledbat-draft\", target = \"{} us\", gain = {:?}, clamp = {}, min_cwnd = {:?}, \
             filter = \"{}\", whole_packets = {} }}",
            (ledbat.target_ms * 1000.0).round(),
            ledbat.gain,
            choices.clamp,
            f64::from(choices.min_window_packets),
            if choices.filter { "min" } else { "latest" },
            choices.whole_packets,
        )
    }

    fn protocol(&self, kind: Kind) -> String {
        let choices = &self.choices;
        let ack = if choices.delayed_acks { "delayed" } else { "every" };
        let tcp_ack = if choices.linux_acks { "linux" } else { ack };
        let tcp = |sack: bool, tick_us: u32| {
            format!(
                "protocol = \"tcp\"\n[flow.tcp]\nsack = {sack}\nprr = {}\ninitial_window = \"2 packets\"\nmin_rto = \"200 ms\"\n\
                 timestamp_tick = \"{tick_us} us\"\nack = \"{tcp_ack}\"\n",
                // Without SACK there is no other repair than RFC 6582's.
                choices.prr && sack
            )
        };
        match (kind, choices.carrier) {
            (Kind::Reno | Kind::Rival(_), _) => tcp(choices.sack, 1000),
            (Kind::Background(background), _) => {
                tcp(choices.sack, background.tick_us) + "timestamp_random = false\n"
            }
            (Kind::Ledbat(_), Carrier::Tcp { tick_us }) => tcp(choices.sack, tick_us),
            (Kind::Ledbat(_), Carrier::Utp) => {
                format!("protocol = \"utp\"\n[flow.utp]\nmin_rto = \"200 ms\"\nack = \"{ack}\"\n")
            }
        }
    }
}

/// Where a part's receivers have clocks that are ahead.
fn write_clock(text: &mut String, part: &Part) {
    let Kind::Background(background) = part.kind else { return };
    if background.clock_offset_ms == 0 {
        return;
    }
    let _ = write!(
        text,
        "\n[[host]]\nname = \"{}-receiver\"\nclock_offset = \"{} ms\"\n",
        part.name, background.clock_offset_ms
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_follow_the_buffer() {
        assert!((target_ms(100.0) - 120.0).abs() < 1e-9);
        assert!((target_ms(2.0) - 2.4).abs() < 1e-9);
    }

    #[test]
    fn every_choice_makes_a_scenario_of_its_own() {
        let base = Setting {
            parts: vec![Part::one("tcp", Kind::Reno), Part::one("lbe", Kind::Ledbat(Ledbat::PAPER)).times(3)],
            choices: Choices::PRIMARY,
            repetition: 1,
            series: false,
        };
        let primary = Choices::PRIMARY;
        let variants = [
            Choices { sack: false, ..primary },
            Choices { prr: false, ..primary },
            Choices { carrier: Carrier::Tcp { tick_us: 1000 }, ..primary },
            Choices { carrier: Carrier::Tcp { tick_us: 1 }, ..primary },
            Choices { delayed_acks: true, ..primary },
            Choices { linux_acks: true, ..primary },
            Choices { bed: Bed::Evaluation, ..primary },
            Choices { noise_us: 500, ..primary },
            Choices { clamp: false, ..primary },
            Choices { min_window_packets: 2, ..primary },
            Choices { filter: true, ..primary },
            Choices { whole_packets: true, ..primary },
            Choices { start_jitter_ms: 0, ..primary },
            Choices { duration_s: 600, ..primary },
        ];
        let mut hashes = vec![base.scenario().content_hash()];
        for choices in variants {
            hashes.push(Setting { choices, ..base.clone() }.scenario().content_hash());
        }
        hashes.push(Setting { repetition: 2, ..base }.scenario().content_hash());
        let count = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }

    #[test]
    fn background_protocols_have_their_clocks() {
        let lp = Background::LP_KNOWN_RATE;
        let text = |kind| {
            let parts = vec![Part::one("lbe", Kind::Background(kind)).times(3)];
            Setting { parts, choices: Choices::PRIMARY, repetition: 0, series: false }.to_toml()
        };
        assert!(!text(lp).contains("[[host]]"));
        assert!(text(lp.clock_offset_ms(100)).contains("clock_offset = \"100 ms\""));
        assert!(text(lp).contains("timestamp_random = false"));
        Scenario::parse("lcn10", &text(lp.clock_offset_ms(100))).unwrap();
    }

    #[test]
    fn a_longer_round_trip_lies_on_the_way_back() {
        let part = Part::one("long", Kind::Ledbat(Ledbat::PAPER)).rtt_ratio(2.0);
        let setting = Setting { parts: vec![part], choices: Choices::PRIMARY, repetition: 0, series: false };
        let access = setting.scenario().flows[0].access;
        assert_eq!(access.return_delay, Some(cede_units::Duration::from_millis(51)));
    }
}
