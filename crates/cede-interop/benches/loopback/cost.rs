//! What a transfer costs, as the kernel says.

use std::fs;
use std::time::Instant;

/// Ticks of `/proc/PID/stat` in a second: fixed on Linux, whatever the kernel's own are.
const TICKS_PER_SEC: f64 = 100.0;

/// What a transfer took.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub bytes: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub peak_kib: u64,
    /// Datagrams that a socket's receive buffer had no room for.
    pub overflows: u64,
}

impl Cost {
    pub fn goodput(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }

    pub fn cpu_per_gb(&self) -> f64 {
        self.cpu_seconds / (self.bytes as f64 / 1e9)
    }

    /// One line, for the parent process.
    pub fn line(&self) -> String {
        let Self { bytes, seconds, cpu_seconds, peak_kib, overflows } = self;
        format!("cost {bytes} {seconds} {cpu_seconds} {peak_kib} {overflows}")
    }

    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cost "))?;
        let mut words = line.split(' ');
        let mut next = || words.next();
        Some(Self {
            bytes: next()?.parse().ok()?,
            seconds: next()?.parse().ok()?,
            cpu_seconds: next()?.parse().ok()?,
            peak_kib: next()?.parse().ok()?,
            overflows: next()?.parse().ok()?,
        })
    }
}

/// User and system time of a process so far.
pub fn cpu_seconds(process: &str) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The fields behind the name, which is in brackets: utime and stime are the 12th and 13th of them.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS_PER_SEC
}

/// The largest resident set of a process so far.
pub fn peak_kib(process: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Datagrams that receive buffers had no room for, in this network namespace.
pub fn overflows() -> u64 {
    let snmp = fs::read_to_string("/proc/self/net/snmp").unwrap_or_default();
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let place = names.split_whitespace().position(|name| name == "RcvbufErrors");
    let value = place.and_then(|place| values.split_whitespace().nth(place));
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Begins to measure this process; call the result at the end.
pub fn meter(bytes: u64) -> impl FnOnce() -> Cost {
    let (began, cpu, lost) = (Instant::now(), cpu_seconds("self"), overflows());
    move || Cost {
        bytes,
        seconds: began.elapsed().as_secs_f64(),
        cpu_seconds: cpu_seconds("self") - cpu,
        peak_kib: peak_kib("self"),
        overflows: overflows() - lost,
    }
}
