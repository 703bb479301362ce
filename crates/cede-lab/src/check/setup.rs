//! Scenarios of the battery as text.

/// A dumbbell of one bottleneck, and what flows through it.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    rate_mbps: f64,
    rtt_ms: f64,
    buffer: &'static str,
    warmup_s: f64,
    duration_s: f64,
    forward: Vec<String>,
    back: Vec<String>,
    more: Vec<String>,
}

impl Setup {
    /// A bottleneck of this rate and base RTT, with 200 ms of buffer, as access equipment commonly has.
    pub(super) fn new(rate_mbps: f64, rtt_ms: f64) -> Self {
        Self {
            rate_mbps,
            rtt_ms,
            buffer: "200 ms",
            warmup_s: 15.0,
            duration_s: 45.0,
            forward: Vec::new(),
            back: Vec::new(),
            more: Vec::new(),
        }
    }

    pub(super) fn buffer(mut self, buffer: &'static str) -> Self {
        self.buffer = buffer;
        self
    }

    /// Measures from `from_s` to `until_s`, when the run ends.
    pub(super) fn window(mut self, from_s: f64, until_s: f64) -> Self {
        (self.warmup_s, self.duration_s) = (from_s, until_s);
        self
    }

    /// An option of the bottleneck.
    pub(super) fn link(mut self, option: &str) -> Self {
        self.forward.push(option.to_string());
        self
    }

    /// An option of the way back.
    pub(super) fn back(mut self, option: &str) -> Self {
        self.back.push(option.to_string());
        self
    }

    /// A table of its own: a flow, a change, a host.
    pub(super) fn with(mut self, table: impl Into<String>) -> Self {
        self.more.push(table.into());
        self
    }

    /// Something that changes on the bottleneck, as `delay = "100 ms"`.
    pub(super) fn change(self, at_s: f64, what: &str) -> Self {
        self.with(format!("[[change]]\nat = \"{at_s} s\"\n{what}\n"))
    }

    /// The scenario.
    pub(super) fn text(&self, name: &str) -> String {
        let one_way_us = self.rtt_ms * 500.0;
        let mut text = format!(
            "name = \"{name}\"\nduration = \"{} s\"\nwarmup = \"{} s\"\n\n[topology]\naccess_rate = \"10 Gbit/s\"\n\
             access_delay = \"0 s\"\naccess_buffer = \"1000000 packets\"\n\n[link]\nrate = \"{} Mbit/s\"\n\
             delay = \"{one_way_us} us\"\nbuffer = \"{}\"\n",
            self.duration_s, self.warmup_s, self.rate_mbps, self.buffer
        );
        let lines = |options: &[String]| options.iter().map(|line| format!("{line}\n")).collect::<String>();
        text += &lines(&self.forward);
        text += "\n[return_link]\nbuffer = \"1000000 packets\"\n";
        text += &lines(&self.back);
        text += &self.more.iter().map(|table| format!("\n{table}")).collect::<String>();
        text + "\n[record]\ninterval = \"250 ms\"\n"
    }
}

/// A foreground TCP flow, as a current system has it.
pub(super) fn foreground(controller: &str, options: &str) -> String {
    format!(
        "[[flow]]\nname = \"{controller}\"\nprotocol = \"tcp\"\ncontroller = \"{controller}\"\n\
         tcp = {{ ack = \"linux\", min_rto = \"200 ms\" }}\n{options}\n"
    )
}
