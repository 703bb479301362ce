//! When enough has been done for a torrent.

use crate::screen;
use cede_torrent::session::Session;
use cede_units::Duration as Span;
use clap::Args;
use std::time::{Duration, Instant};

/// When giving ends.
#[derive(Args, Clone, Copy, Default, Debug)]
pub struct UntilArgs {
    /// Go on giving until so many times what is there has been sent, since this began [example: --seed-ratio 1.5]
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    pub seed_ratio: Option<f64>,
    /// Go on giving for so long and no longer [example: --seed-time 2h]
    #[arg(long, value_name = "TIME")]
    pub seed_time: Option<Span>,
}

/// How often what is there is to be sent.
fn ratio(text: &str) -> Result<f64, String> {
    let ratio: f64 = text.parse().map_err(|_| "take a number, such as 1.5".to_owned())?;
    if ratio.is_finite() && ratio > 0.0 {
        Ok(ratio)
    } else {
        Err("take more than 0, such as 1.5: so many times what is there is sent".to_owned())
    }
}

impl UntilArgs {
    /// Whether there is an end.
    pub const fn is_any(&self) -> bool {
        self.seed_ratio.is_some() || self.seed_time.is_some()
    }
}

/// What is to be done for a torrent.
#[derive(Clone, Copy, Debug)]
pub enum Duty {
    /// To have it.
    Get,
    /// To have it, and to give it from then on.
    GetAndGive(UntilArgs),
    /// To give what is there.
    Give(UntilArgs),
}

/// Why a torrent is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// Everything is there, and no more was asked for.
    Here,
    /// Nobody hears any more how it goes.
    Unread,
    /// It was given as often as was asked for.
    Ratio,
    /// It was given for as long.
    Time,
}

impl Over {
    /// The option that asked for this end, if one did.
    pub const fn option(self) -> Option<&'static str> {
        match self {
            Self::Ratio => Some("--seed-ratio"),
            Self::Time => Some("--seed-time"),
            Self::Here | Self::Unread => None,
        }
    }
}

/// A duty under way.
#[derive(Debug)]
pub struct Watch {
    duty: Duty,
    gives_since: Option<Instant>,
    over: Option<Over>,
}

impl Watch {
    pub const fn new(duty: Duty) -> Self {
        Self { duty, gives_since: None, over: None }
    }

    /// Why it is over, if it was when looked at last.
    pub const fn over(&self) -> Option<Over> {
        self.over
    }

    /// Why it is over, once it is.
    pub fn look(&mut self, session: &Session) -> Option<Over> {
        self.over = self.judge(session);
        self.over
    }

    fn judge(&mut self, session: &Session) -> Option<Over> {
        let (until, gives) = match self.duty {
            Duty::Get => return session.is_done().then_some(Over::Here),
            Duty::GetAndGive(until) => (until, session.is_done()),
            Duty::Give(until) => (until, true),
        };
        if screen::is_unread() {
            return Some(Over::Unread);
        }
        if !gives {
            return None;
        }
        let gives_since = *self.gives_since.get_or_insert_with(Instant::now);
        // Where nothing is there nothing can be given, however often.
        let is_sent = |ratio: f64| {
            let here = session.view().bytes;
            here > 0 && session.sent() as f64 >= ratio * here as f64
        };
        if until.seed_ratio.is_some_and(is_sent) {
            return Some(Over::Ratio);
        }
        let is_late = |time: Span| gives_since.elapsed() >= Duration::from_nanos(time.as_nanos());
        until.seed_time.is_some_and(is_late).then_some(Over::Time)
    }
}
