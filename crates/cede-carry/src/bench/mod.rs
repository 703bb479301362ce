//! A test of what a path gives: a control stream, and as many streams full of octets as are asked for.
//!
//! The client opens the control stream and says what it wants ([`Plan`]); the server answers with the number of a
//! session, under which the test's streams then join. When all have, `Start` begins the test on both sides. Each side
//! reports how its streams stand ([`Sample`]) every interval, and on `Finish` the server reports once more: what the
//! receiver counted is the test's goodput, and what the sender measured tells of delay and loss.

mod client;
mod flow;
mod server;

pub use client::{Client, Outcome, Peer, TestError};
pub(crate) use server::{Session, Sessions};

use cede_cc::{ParamError, registry};
use cede_real::ControllerChoice;
use cede_units::{Duration, Rate};

/// When a test ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// After so long.
    Time(Duration),
    /// When so many octets have arrived on each stream.
    Bytes(u64),
}

/// Which controller the sender's streams have, as text: the receiving end of a plan reads it by its own tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControllerSpec {
    /// Its name.
    pub name: String,
    /// Parameters and their values.
    pub params: Vec<(String, String)>,
}

impl ControllerSpec {
    /// The controller of that name with those parameters.
    ///
    /// # Errors
    /// [`ParamError`], which says what is allowed.
    pub fn choice(&self) -> Result<ControllerChoice, ParamError> {
        let settings = self.params.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        ControllerChoice::written(&self.name, settings)
    }

    /// Whether the controller heeds congestion; one that does not is no stranger's to ask for.
    #[must_use]
    pub fn is_responsive(&self) -> bool {
        registry::find(&self.name).is_none_or(|entry| entry.responsive)
    }
}

/// What a test is.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// How many streams.
    pub streams: u16,
    /// The server sends.
    pub reverse: bool,
    /// When it ends.
    pub limit: Limit,
    /// How often streams are looked at.
    pub interval: Duration,
    /// The most that each stream sends.
    pub rate: Option<Rate>,
    /// The controller of the server's streams where it sends; `None` leaves it the choice.
    pub controller: Option<ControllerSpec>,
}

/// The most streams that a test has.
pub const MAX_STREAMS: usize = 128;
/// The shortest interval between two reports.
pub const MIN_INTERVAL: Duration = Duration::from_millis(50);
/// The longest interval between two reports.
pub const MAX_INTERVAL: Duration = Duration::from_secs(3600);
/// The longest test.
pub const MAX_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

impl Plan {
    /// Whether it is one that can be carried out; the text says what is wrong.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.streams == 0 || usize::from(self.streams) > MAX_STREAMS {
            return Err(format!("{} streams: 1 to {MAX_STREAMS} are allowed", self.streams));
        }
        if let Limit::Time(span) = self.limit
            && (span.is_zero() || span > MAX_TIME)
        {
            return Err(format!("a test of {span}: up to {MAX_TIME} is allowed"));
        }
        if self.limit == Limit::Bytes(0) {
            return Err("a test of no octets shows nothing".to_owned());
        }
        if !(MIN_INTERVAL..=MAX_INTERVAL).contains(&self.interval) {
            return Err(format!(
                "an interval of {}: {MIN_INTERVAL} to {MAX_INTERVAL} is allowed",
                self.interval
            ));
        }
        if self.rate.is_some_and(|rate| rate.bits_per_sec() < 1000) {
            return Err("a rate below 1 kbit/s moves nothing".to_owned());
        }
        Ok(())
    }
}

/// Where a stream stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// Since the test began.
    pub at: Duration,
    /// Octets since the test began: what the peer has acknowledged of a sender's, what a receiver has read.
    pub bytes: u64,
    /// Packets that were sent again since the stream began.
    pub retransmissions: u64,
    /// The congestion window.
    pub cwnd_bytes: u64,
    /// The smoothed RTT; zero before the first sample.
    pub rtt: Duration,
    /// How long packets queue.
    pub queueing_delay: Option<Duration>,
    /// The controller does not say: the queueing delay is the RTT less the smallest RTT.
    pub is_queue_estimated: bool,
}
