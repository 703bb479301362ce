//! When an application has data to send.

use crate::scenario::{Distribution, Traffic};
use cede_units::{Bytes, Duration, Instant, Rate, Stream};

/// What a source without an end has left: more than any run can take.
const ENDLESS: u64 = u64::MAX / 4;

/// An application that offers octets as its traffic model says. Times are those of the host it lives on, counted
/// from the beginning of the run.
#[derive(Clone, Debug)]
pub struct Source {
    model: Traffic,
    stop: Option<Instant>,
    /// What may still be offered in all.
    left: u64,
    /// The model offers all that is left, as fast as it is taken.
    greedy: bool,
    /// What has been offered message by message and not yet taken.
    pending: u64,
    /// When the model acts next.
    next: Instant,
    /// How often it has acted.
    step: u32,
    /// For on/off traffic: until when it is on.
    on_until: Instant,
    packet_payload: u64,
    random: Stream,
}

impl Source {
    /// A source that begins at `start`. `packet_payload` is what a "packet" of chirp traffic means, in octets.
    #[must_use]
    pub fn new(
        model: Traffic,
        start: Instant,
        stop: Option<Instant>,
        bytes: Option<Bytes>,
        packet_payload: u32,
        random: Stream,
    ) -> Self {
        Self {
            model,
            stop,
            left: bytes.map_or(ENDLESS, |bytes| bytes.0),
            greedy: false,
            pending: 0,
            next: start,
            step: 0,
            on_until: start,
            packet_payload: u64::from(packet_payload),
            random,
        }
    }

    /// Moves all of the source's times by `span`, to the clock of the host that it lives on.
    pub fn delay(&mut self, span: Duration) {
        self.next += span;
        self.on_until += span;
        self.stop = self.stop.map(|stop| stop + span);
    }

    /// Brings the source up to `now` and returns how many octets it has to offer.
    pub fn offer(&mut self, now: Instant) -> u64 {
        if self.stopped(now) {
            self.left = 0;
            self.pending = 0;
            self.next = Instant::NEVER;
        }
        while self.next <= now && self.left > 0 {
            self.act();
        }
        if self.greedy { self.left } else { self.pending }
    }

    /// Takes note that `bytes` of what was offered have been taken.
    pub fn taken(&mut self, bytes: u64) {
        let purse = if self.greedy { &mut self.left } else { &mut self.pending };
        *purse -= bytes.min(*purse);
    }

    /// When the source has something new to say: more data, or its end.
    #[must_use]
    pub fn next_change(&self) -> Instant {
        let next = if self.left > 0 { self.next } else { Instant::NEVER };
        match self.stop {
            Some(stop) if self.left > 0 || self.pending > 0 => next.min(stop),
            _ => next,
        }
    }

    /// There will be nothing more.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.left == 0 && self.pending == 0
    }

    fn stopped(&self, now: Instant) -> bool {
        self.stop.is_some_and(|stop| stop <= now)
    }

    fn emit(&mut self, bytes: u64) {
        let bytes = bytes.min(self.left);
        self.left -= bytes;
        self.pending += bytes;
    }

    /// Does what is due at `next` and sets the next time.
    fn act(&mut self) {
        match self.model {
            Traffic::Backlogged => {
                self.greedy = true;
                self.next = Instant::NEVER;
            }
            Traffic::Chirp { period, first_packets, growth, max_packets } => {
                let packets = chirp_packets(first_packets, growth, max_packets, self.step);
                self.emit(packets * self.packet_payload);
                self.next += period;
            }
            Traffic::Heartbeat { period, bytes } => {
                self.emit(bytes.0);
                self.next += period;
            }
            Traffic::Paced { rate, message } => self.pace(rate, message.0),
            Traffic::OnOff { on, off, rate, distribution } => self.alternate(on, off, rate, distribution),
        }
        self.step = self.step.saturating_add(1);
    }

    fn pace(&mut self, rate: Rate, message: u64) {
        self.emit(message);
        self.next += rate.time_to_send(message).max(Duration::from_nanos(1));
    }

    fn alternate(&mut self, on: Duration, off: Duration, rate: Option<Rate>, distribution: Distribution) {
        let Some(rate) = rate else {
            self.greedy = !self.greedy;
            let span = self.draw(if self.greedy { on } else { off }, distribution);
            self.next += span;
            return;
        };
        if self.next >= self.on_until {
            self.on_until = self.next + self.draw(on, distribution);
        }
        self.pace(rate, self.packet_payload);
        if self.next >= self.on_until {
            self.next = self.on_until + self.draw(off, distribution);
            self.on_until = self.next;
        }
    }

    fn draw(&mut self, mean: Duration, distribution: Distribution) -> Duration {
        let span = match distribution {
            Distribution::Constant => mean,
            Distribution::Exponential => Duration::from_secs_f64(self.random.exponential(mean.as_secs_f64())),
        };
        // Time must pass, or the model would act for ever at one instant.
        span.max(Duration::from_micros(1))
    }
}

/// Packets of burst `step`: `first * growth^step`, rounded down, and at most `max`.
fn chirp_packets(first: u64, growth: f64, max: u64, step: u32) -> u64 {
    let mut packets = first as f64;
    for _ in 0..step {
        packets *= growth;
        if packets >= max as f64 {
            return max;
        }
    }
    (packets as u64).min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(model: Traffic, stop_s: Option<u64>, bytes: Option<u64>) -> Source {
        let stop = stop_s.map(Instant::from_secs);
        let random = Stream::named(1, "flow test/traffic");
        Source::new(model, Instant::from_secs(1), stop, bytes.map(Bytes), 1_000, random)
    }

    /// What a source offers in each whole second, when everything is taken at once.
    fn per_second(mut source: Source, seconds: u64) -> Vec<u64> {
        let mut offered = vec![0; seconds as usize];
        let end = Instant::from_secs(seconds);
        loop {
            let now = source.next_change();
            if now >= end {
                return offered;
            }
            let bytes = source.offer(now).min(1 << 40);
            source.taken(bytes);
            offered[now.as_secs_f64() as usize] += bytes;
        }
    }

    #[test]
    fn a_backlogged_source_offers_from_its_start_to_its_stop() {
        let mut source = source(Traffic::Backlogged, Some(5), None);
        assert_eq!(source.offer(Instant::ZERO), 0);
        assert!(source.offer(Instant::from_secs(1)) > 1 << 60);
        source.taken(1_000_000);
        assert!(source.offer(Instant::from_secs(4)) > 1 << 60);
        assert_eq!(source.next_change(), Instant::from_secs(5));
        assert_eq!(source.offer(Instant::from_secs(5)), 0);
        assert!(source.is_finished());
    }

    #[test]
    fn a_limit_in_octets_ends_any_model() {
        let heartbeat = Traffic::Heartbeat { period: Duration::from_secs(1), bytes: Bytes(400) };
        assert_eq!(per_second(source(heartbeat, None, Some(1_000)), 9), [0, 400, 400, 200, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_chirp_grows_to_its_largest_burst() {
        let period = Duration::from_secs(1);
        let chirp = Traffic::Chirp { period, first_packets: 1, growth: 2.5, max_packets: 20 };
        assert_eq!(
            per_second(source(chirp, None, None), 7),
            [0, 1_000, 2_000, 6_000, 15_000, 20_000, 20_000]
        );
    }

    #[test]
    fn a_paced_source_keeps_its_rate() {
        let paced = Traffic::Paced { rate: Rate::from_bits_per_sec(64_000), message: Bytes(160) };
        assert_eq!(per_second(source(paced, None, None), 4), [0, 8_000, 8_000, 8_000]);
    }

    #[test]
    fn on_off_traffic_falls_silent_and_returns() {
        let model = |rate, distribution| Traffic::OnOff {
            on: Duration::from_secs(1),
            off: Duration::from_secs(2),
            rate,
            distribution,
        };
        let paced = model(Some(Rate::from_bits_per_sec(80_000)), Distribution::Constant);
        assert_eq!(per_second(source(paced, None, None), 8), [0, 10_000, 0, 0, 10_000, 0, 0, 10_000]);
        let mut greedy = source(model(None, Distribution::Constant), None, None);
        let open: Vec<bool> = (0..8).map(|s| greedy.offer(Instant::from_millis(1_000 * s + 1)) > 0).collect();
        assert_eq!(open, [false, true, false, false, true, false, false, true]);
        let drawn = model(Some(Rate::from_bits_per_sec(80_000)), Distribution::Exponential);
        let total: u64 = per_second(source(drawn, None, None), 3_001).iter().sum();
        assert!((8_000_000..12_000_000).contains(&total), "{total}");
    }
}
