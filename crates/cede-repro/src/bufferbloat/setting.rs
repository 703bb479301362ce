//! The test bed, and a population of hosts.
//!
//! Source: the paper's section IV: 1 Mbit/s uplinks shaped by HTB; LEDBAT backlogged, TCP chirp (a burst every 30 s of
//! exponentially more packets), TCP backlogged, and a heartbeat; without and with hidden traffic to a third host.
//!
//! *What it leaves out:* which buffer the paper's uplinks had; its figures reach about six seconds, and so does this one.

use cede_lab::scenario::Scenario;
use cede_units::Stream;

/// What disturbs a case beside the queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// How far the remote host's clock is ahead, in seconds.
    pub clock_offset_s: i32,
    /// How much it gains, in parts per million.
    pub clock_drift_ppm: i32,
    /// Receivers answer every second packet, or after a while.
    pub delayed_acks: bool,
    /// The part of all packets that is lost behind the queue.
    pub loss: f64,
    /// The part of what comes back to the remote host that is lost.
    pub loss_back: f64,
    /// The part of all packets that is held back behind the queue, for so long that others overtake them.
    pub held_back: f64,
    /// What the random streams of loss and reordering begin with.
    pub seed: u32,
}

impl Conditions {
    /// Those of the validation.
    pub const USUAL: Self = Self {
        clock_offset_s: -3,
        clock_drift_ppm: 60,
        delayed_acks: false,
        loss: 0.0,
        loss_back: 0.0,
        held_back: 0.0,
        seed: 1,
    };

    /// One thing at a time, and all at once. The clock that is ahead wraps its 32 bits of microseconds on the way.
    pub const ALL: [(&'static str, Self); 13] = [
        ("as usual", Self::USUAL),
        ("clock ahead", Self { clock_offset_s: 4_200, clock_drift_ppm: 0, ..Self::USUAL }),
        ("+100 ppm", Self { clock_drift_ppm: 100, ..Self::USUAL }),
        ("-100 ppm", Self { clock_drift_ppm: -100, ..Self::USUAL }),
        ("delayed acks", Self { delayed_acks: true, ..Self::USUAL }),
        ("loss", Self { loss: 0.01, ..Self::USUAL }),
        ("reordering", Self { held_back: 0.005, ..Self::USUAL }),
        (
            "all at once",
            Self {
                clock_offset_s: 4_200,
                clock_drift_ppm: -100,
                delayed_acks: true,
                loss: 0.01,
                held_back: 0.005,
                ..Self::USUAL
            },
        ),
        ("more loss", Self { loss: 0.03, ..Self::USUAL }),
        ("much loss", Self { loss: 0.05, seed: 2, ..Self::USUAL }),
        ("loss both ways", Self { loss: 0.03, loss_back: 0.03, seed: 3, ..Self::USUAL }),
        ("more reordering", Self { clock_drift_ppm: -30, held_back: 0.02, seed: 2, ..Self::USUAL }),
        (
            "more of all",
            Self {
                clock_offset_s: 4_200,
                clock_drift_ppm: -100,
                delayed_acks: true,
                loss: 0.03,
                loss_back: 0.03,
                held_back: 0.02,
                seed: 5,
            },
        ),
    ];

    /// Keys of the remote host's uplink.
    fn uplink(&self) -> String {
        let Self { loss, held_back, .. } = self;
        format!("loss = {loss:?}, reorder = {{ probability = {held_back:?}, extra_delay = \"30 ms\" }}")
    }

    /// Keys of a flow.
    const fn flow(&self, seen: Seen) -> &'static str {
        match (self.delayed_acks, seen.is_utp()) {
            (false, _) => "",
            (true, true) => "utp = { ack = \"delayed\" }\n",
            (true, false) => "tcp = { ack = \"delayed\" }\n",
        }
    }
}

/// What the observer sees of the remote host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// A uTP flow that always has data.
    UtpBacklogged,
    /// A TCP flow that sends a burst every 30 s, each twice the one before.
    TcpChirp,
    /// A TCP flow that always has data.
    TcpBacklogged,
    /// A small uTP message every 200 ms.
    UtpHeartbeat,
    /// A small TCP message every 200 ms.
    TcpHeartbeat,
}

/// What the remote host sends elsewhere, where the observer sees nothing of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hidden {
    /// Nothing.
    Nothing,
    /// A TCP chirp.
    Chirp,
    /// A TCP flow that always has data.
    Backlogged,
}

/// One run of the validation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// What is seen.
    pub seen: Seen,
    /// What is hidden.
    pub hidden: Hidden,
}

/// The uplink of the validation, in Mbit/s.
pub const UPLINK_MBPS: f64 = 1.0;
/// Time of a full packet of 1,500 octets on it, in milliseconds.
pub const PACKET_MS: f64 = 1500.0 * 8.0 / (UPLINK_MBPS * 1e3);
/// One tick of the model TCP's timestamp clock, in milliseconds.
pub const TICK_MS: f64 = 1.0;
/// How long a case lasts: eleven bursts of a chirp, of 1 to 1,024 packets, and the time in which the last one drains.
pub const DURATION_S: u32 = 330;
/// The uplink's buffer in seconds.
pub const BUFFER_S: f64 = 6.0;

impl Seen {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::UtpBacklogged, Self::TcpChirp, Self::TcpBacklogged, Self::UtpHeartbeat, Self::TcpHeartbeat];

    /// For people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::UtpBacklogged => "LEDBAT backlogged",
            Self::TcpChirp => "TCP chirp",
            Self::TcpBacklogged => "TCP backlogged",
            Self::UtpHeartbeat => "LEDBAT heartbeat",
            Self::TcpHeartbeat => "TCP heartbeat",
        }
    }

    /// It travels over uTP.
    #[must_use]
    pub const fn is_utp(self) -> bool {
        matches!(self, Self::UtpBacklogged | Self::UtpHeartbeat)
    }

    /// It is too thin to queue behind itself.
    #[must_use]
    pub const fn is_heartbeat(self) -> bool {
        matches!(self, Self::UtpHeartbeat | Self::TcpHeartbeat)
    }

    const fn flow(self) -> &'static str {
        match self {
            Self::UtpBacklogged => UTP,
            Self::TcpChirp => {
                "controller = \"reno\"\nprotocol = \"tcp\"\ntraffic = { kind = \"chirp\", period = \"30 s\", max = \"1024 packets\" }\n"
            }
            Self::TcpBacklogged => "controller = \"cubic\"\nprotocol = \"tcp\"\n",
            Self::UtpHeartbeat => {
                "traffic = { kind = \"heartbeat\", period = \"200 ms\", bytes = \"100 B\" }\n"
            }
            Self::TcpHeartbeat => {
                "controller = \"reno\"\nprotocol = \"tcp\"\ntraffic = { kind = \"heartbeat\", period = \"200 ms\", bytes = \"100 B\" }\n"
            }
        }
    }
}

/// uTP's default controller, with its default target.
const UTP: &str = "";

impl Hidden {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Nothing, Self::Chirp, Self::Backlogged];

    /// For people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Nothing => "nothing hidden",
            Self::Chirp => "hidden TCP chirp",
            Self::Backlogged => "hidden TCP backlogged",
        }
    }

    const fn flow(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Chirp => Some(Seen::TcpChirp.flow()),
            Self::Backlogged => Some(Seen::TcpBacklogged.flow()),
        }
    }
}

impl Case {
    /// Every case: a heartbeat alone would show an empty queue, and is left out.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let all = Seen::ALL.into_iter().flat_map(|seen| Hidden::ALL.map(|hidden| Self { seen, hidden }));
        all.filter(|case| !case.seen.is_heartbeat() || case.hidden != Hidden::Nothing).collect()
    }

    /// For people.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}, {}", self.seen.title(), self.hidden.title())
    }

    /// The run as a scenario.
    ///
    /// # Panics
    /// Never: the text is sound.
    #[must_use]
    pub fn scenario(&self, conditions: &Conditions) -> Scenario {
        let seen = self.seen.flow();
        let (acks, uplink) = (conditions.flow(self.seen), conditions.uplink());
        let Conditions { clock_offset_s, clock_drift_ppm, seed, loss_back, .. } = conditions;
        let hidden = self.hidden.flow().map_or(String::new(), |flow| {
            format!(
                "[[flow]]\nname = \"hidden\"\nfrom = \"remote\"\nto = \"elsewhere\"\nstart = \"5.13 s\"\n{flow}"
            )
        });
        let text = format!(
            "name = \"bufferbloat\"\nduration = \"{DURATION_S} s\"\nseed = {seed}\n\n[topology]\nkind = \"star\"\n\n[uplink]\nrate = \"100 Mbit/s\"\n\
             delay = \"10 ms\"\nbuffer = \"1000 packets\"\n\n[downlink]\nrate = \"100 Mbit/s\"\ndelay = \"10 ms\"\n\
             buffer = \"1000 packets\"\n\n[[host]]\nname = \"elsewhere\"\n\n[[host]]\nname = \"observer\"\n\n[[host]]\n\
             name = \"remote\"\nclock_offset = \"{clock_offset_s} s\"\nclock_drift = \"{clock_drift_ppm} ppm\"\n\
             uplink = {{ rate = \"{UPLINK_MBPS} Mbit/s\", delay = \"10 ms\", buffer = \"{BUFFER_S} s\", {uplink} }}\n\
             downlink = {{ rate = \"100 Mbit/s\", delay = \"10 ms\", buffer = \"1000 packets\", loss = {loss_back:?} }}\n\n\
             [[flow]]\nname = \"seen\"\nfrom = \"remote\"\nto = \"observer\"\nstart = \"1 s\"\n{seen}{acks}\n{hidden}\n\
             [record]\nlinks = [\"remote-up\"]\n"
        );
        Scenario::parse("bufferbloat", &text).expect("the test bed is sound")
    }
}

/// One host of the population: seen first under uTP, then under TCP, for a minute each.
#[derive(Clone, PartialEq, Debug)]
pub struct Household {
    /// Its uplink, in kbit/s.
    pub uplink_kbps: u32,
    /// Its uplink's buffer, in milliseconds.
    pub buffer_ms: u32,
    /// Round-trip time to the observer, in milliseconds.
    pub rtt_ms: u32,
    /// The application limits its rate to this part of the uplink.
    pub limit: Option<f64>,
    /// Somebody in the house uploads by TCP all the time.
    pub hidden: bool,
}

/// Seconds for which a host is seen under each transport.
const SEEN_S: u32 = 60;

impl Household {
    /// So many hosts, drawn on named streams: uplinks of 256 kbit/s to 10 Mbit/s, buffers of 50 ms to 4 s, round trips of
    /// 20 to 200 ms; a third limits its rate to between 30 and 90 % of the uplink, and in a tenth of the houses somebody uploads.
    #[must_use]
    pub fn population(count: u32) -> Vec<Self> {
        (0..count).map(|number| Self::draw(&mut Stream::named(number.into(), "household"))).collect()
    }

    fn draw(random: &mut Stream) -> Self {
        const UPLINKS_KBPS: [u32; 6] = [256, 512, 1_000, 2_000, 5_000, 10_000];
        const BUFFERS_MS: [u32; 7] = [50, 100, 250, 500, 1_000, 2_000, 4_000];
        let mut pick = |choices: &[u32]| choices[random.below(choices.len() as u64) as usize];
        let (uplink_kbps, buffer_ms) = (pick(&UPLINKS_KBPS), pick(&BUFFERS_MS));
        Self {
            uplink_kbps,
            buffer_ms,
            rtt_ms: 20 + random.below(181) as u32,
            limit: random.chance(1.0 / 3.0).then(|| 0.3 + 0.6 * random.unit()),
            hidden: random.chance(0.1),
        }
    }

    /// Its two minutes as a scenario.
    ///
    /// # Panics
    /// Never: the text is sound.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        let Self { uplink_kbps, buffer_ms, rtt_ms, limit, hidden } = *self;
        let way_us = rtt_ms * 250;
        let traffic = limit.map_or(String::new(), |part| {
            let rate_kbps = (part * f64::from(uplink_kbps)).max(1.0) as u32;
            format!("traffic = {{ kind = \"paced\", rate = \"{rate_kbps} kbit/s\", message = \"1000 B\" }}\n")
        });
        let hidden = if hidden {
            "[[flow]]\nname = \"hidden\"\nfrom = \"remote\"\nto = \"elsewhere\"\nprotocol = \"tcp\"\ncontroller = \"cubic\"\n"
        } else {
            ""
        };
        let (half, end) = (SEEN_S, 2 * SEEN_S);
        let text = format!(
            "name = \"household\"\nduration = \"{end} s\"\n\n[topology]\nkind = \"star\"\n\n[uplink]\nrate = \"100 Mbit/s\"\n\
             delay = \"{way_us} us\"\nbuffer = \"1000 packets\"\n\n[downlink]\nrate = \"100 Mbit/s\"\ndelay = \"{way_us} us\"\n\
             buffer = \"1000 packets\"\n\n[[host]]\nname = \"elsewhere\"\n\n[[host]]\nname = \"observer\"\n\n[[host]]\n\
             name = \"remote\"\nuplink = {{ rate = \"{uplink_kbps} kbit/s\", delay = \"{way_us} us\", buffer = \"{buffer_ms} ms\" }}\n\n\
             [[flow]]\nname = \"utp\"\nfrom = \"remote\"\nto = \"observer\"\nstart = \"1 s\"\nstop = \"{half} s\"\n{traffic}\n\
             [[flow]]\nname = \"tcp\"\nfrom = \"remote\"\nto = \"observer\"\nprotocol = \"tcp\"\ncontroller = \"cubic\"\n\
             start = \"{half} s\"\n{traffic}\n{hidden}\n[record]\nlinks = [\"remote-up\"]\n"
        );
        Scenario::parse("household", &text).expect("a household is sound")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_and_household_is_a_scenario() {
        let cases = Case::all();
        assert_eq!(cases.len(), 13);
        for case in &cases {
            let flows = if case.hidden == Hidden::Nothing { 1 } else { 2 };
            for (_, conditions) in &Conditions::ALL {
                assert_eq!(case.scenario(conditions).flows.len(), flows, "{}", case.title());
            }
        }
        let population = Household::population(200);
        let count = |is: fn(&Household) -> bool| population.iter().filter(|house| is(house)).count();
        assert!((40..=90).contains(&count(|house| house.limit.is_some())));
        assert!((8..=35).contains(&count(|house| house.hidden)));
        for house in &population {
            assert!(house.scenario().flows.len() >= 2);
        }
        assert_eq!(population, Household::population(200), "the same every time");
    }
}
