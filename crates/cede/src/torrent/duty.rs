//! When enough has been done for a torrent.

use crate::screen;
use cede_torrent::session::Session;
use cede_units::Duration as Span;
use clap::Args;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// When giving ends.
#[derive(Args, Clone, Copy, Default, Debug)]
pub struct UntilArgs {
    /// Go on giving until so many times what is there has been sent, since this began (the daemon: over all its runs) [example: --seed-ratio 1.5]
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

/// When giving a torrent ends. It may change under way.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Until {
    /// Once so many times what is there has been sent.
    pub ratio: Option<f64>,
    /// After so long.
    pub time: Option<Span>,
    /// Once nobody has taken anything for so long.
    pub idle: Option<Span>,
    /// Octets that were sent before this run, and count.
    pub sent_before: u64,
}

impl From<UntilArgs> for Until {
    fn from(args: UntilArgs) -> Self {
        Self { ratio: args.seed_ratio, time: args.seed_time, ..Self::default() }
    }
}

/// What is to be done for a torrent.
#[derive(Clone, Debug)]
pub enum Duty {
    /// To have it.
    Get,
    /// To have it, and to give it from then on.
    GetAndGive(Rc<Cell<Until>>),
    /// To give what is there.
    Give(Rc<Cell<Until>>),
}

impl Duty {
    /// To have it, and to give it from then on, with an end that stays as it is.
    pub fn get_and_give(until: UntilArgs) -> Self {
        Self::GetAndGive(Rc::new(Cell::new(until.into())))
    }

    /// To give what is there, likewise.
    pub fn give(until: UntilArgs) -> Self {
        Self::Give(Rc::new(Cell::new(until.into())))
    }
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
    /// Nobody has taken anything for as long.
    Idle,
}

impl Over {
    /// The option, or the order, that asked for this end, if one did.
    pub const fn option(self) -> Option<&'static str> {
        match self {
            Self::Ratio => Some("--seed-ratio"),
            Self::Time => Some("--seed-time"),
            Self::Idle => Some("seedIdleLimit"),
            Self::Here | Self::Unread => None,
        }
    }
}

/// A duty under way.
#[derive(Debug)]
pub struct Watch {
    duty: Duty,
    gives_since: Option<Instant>,
    /// Octets that were sent when it was looked at last, and since when that is so.
    taken: Option<(u64, Instant)>,
    over: Option<Over>,
}

impl Watch {
    pub const fn new(duty: Duty) -> Self {
        Self { duty, gives_since: None, taken: None, over: None }
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
        let (until, gives) = match &self.duty {
            Duty::Get => return session.is_done().then_some(Over::Here),
            Duty::GetAndGive(until) => (until.get(), session.is_done()),
            Duty::Give(until) => (until.get(), true),
        };
        if screen::is_unread() {
            return Some(Over::Unread);
        }
        if !gives {
            return None;
        }
        let (now, sent) = (Instant::now(), session.sent());
        let gives_since = *self.gives_since.get_or_insert(now);
        let (_, idle_since) = *self.taken.insert(match self.taken {
            Some((before, since)) if before == sent => (sent, since),
            _ => (sent, now),
        });
        // Where nothing is there nothing can be given, however often.
        let is_sent = |ratio: f64| {
            let here = session.view().bytes;
            here > 0 && (until.sent_before + sent) as f64 >= ratio * here as f64
        };
        let is_past = |since: Instant, time: Span| now - since >= Duration::from_nanos(time.as_nanos());
        if until.ratio.is_some_and(is_sent) {
            Some(Over::Ratio)
        } else if until.time.is_some_and(|time| is_past(gives_since, time)) {
            Some(Over::Time)
        } else {
            until.idle.is_some_and(|time| is_past(idle_since, time)).then_some(Over::Idle)
        }
    }
}
