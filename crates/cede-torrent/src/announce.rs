//! Announcing ourselves to the trackers of a torrent, as long as it takes part.
//!
//! Source: BEP 3, 12, 21 and 31. Each tier is asked by itself, its trackers in order until one answers, the next also where
//! one takes long; that which has answered is asked first from then on. What it leaves out: scrapes. How it was validated:
//! against the tracker of this crate in the tests, and opentracker.

use crate::acquaintance::Acquaintances;
use crate::ask::{Question, Refusal, ask, first_answer};
use crate::origin::Origin;
use crate::session::Wish;
use cede_bt::engine::AnnounceEvent;
use cede_bt::tracker::http::RetryIn;
use cede_bt::tracker::{Announce, Answer, Event};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// When no tracker of a tier has answered, the tier is asked again after that, and twice that, up to the limit.
const RETRY: Duration = Duration::from_secs(15);
const MAX_RETRY: Duration = Duration::from_secs(30 * 60);
/// More peers are not asked for sooner than that after the last time.
const MORE_AFTER: Duration = Duration::from_secs(60);

/// Who announces itself.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The torrent.
    pub info_hash: [u8; 20],
    /// The peer.
    pub peer_id: [u8; 20],
    /// Where it is reached.
    pub port: u16,
    /// Tells it from others at the same address.
    pub key: u32,
    /// Where it asks from.
    pub origin: Origin,
}

/// How it stands, for trackers that count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Amounts {
    /// Octets sent.
    pub uploaded: u64,
    /// Octets received.
    pub downloaded: u64,
    /// Octets that are missing.
    pub left: u64,
    /// Nothing more is wanted, although something is missing (BEP 21).
    pub is_partial_seed: bool,
    /// Where we are reached now, if not at the port of the [`Identity`].
    pub port: Option<u16>,
}

/// What came of an announce.
#[derive(Clone, Debug)]
pub struct Note {
    /// The tracker.
    pub url: String,
    /// Its answer, or why there is none.
    pub result: Result<Answer, String>,
}

/// Trackers of which one is to be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trackers {
    /// Their URLs.
    pub urls: Vec<String>,
    /// A person has named them; else a torrent or a link has, which may have been made by anybody.
    pub are_named: bool,
}

impl From<Vec<String>> for Trackers {
    /// Those of a torrent or a link.
    fn from(urls: Vec<String>) -> Self {
        Self { urls, are_named: false }
    }
}

/// Announces to all tiers as long as `wishes` come; `amounts` is asked before each announce. Notes go to `notes`. Ends, after
/// every tier has been told that we leave, when the other end of `wishes` is gone. A tracker is told one thing after the other: what was
/// said to it before the goodbye has been answered, or given up, by then.
pub async fn run(
    tiers: Vec<Trackers>,
    identity: Identity,
    amounts: impl Fn() -> Amounts + Clone + 'static,
    mut wishes: UnboundedReceiver<Wish>,
    notes: UnboundedSender<Note>,
) {
    let (mut inboxes, acquaintances) = (Vec::new(), Acquaintances::default());
    let mut tasks = JoinSet::new();
    for Trackers { urls, are_named } in tiers {
        let (inbox, wishes) = unbounded_channel();
        let (notes, acquaintances) = (notes.clone(), acquaintances.clone());
        let resting = HashMap::new();
        let tier = Tier { urls, are_named, resting, identity, tracker_id: None, acquaintances, notes };
        inboxes.push(inbox);
        tasks.spawn_local(tier.run(amounts.clone(), wishes));
    }
    while let Some(wish) = wishes.recv().await {
        for inbox in &inboxes {
            let _ = inbox.send(wish);
        }
    }
    drop(inboxes);
    while tasks.join_next().await.is_some() {}
}

struct Tier {
    urls: Vec<String>,
    are_named: bool,
    /// Those that want to be left alone, and until when.
    resting: HashMap<String, Rest>,
    identity: Identity,
    tracker_id: Option<Vec<u8>>,
    acquaintances: Acquaintances,
    notes: UnboundedSender<Note>,
}

impl Tier {
    async fn run(mut self, amounts: impl Fn() -> Amounts, mut wishes: UnboundedReceiver<Wish>) {
        let (mut next, mut told) = (None, Told::default());
        // When somebody may ask for more; while nobody answers, only its own time counts.
        let mut more_at: Option<Instant> = None;
        loop {
            let (event, want) = tokio::select! {
                wish = wishes.recv() => match wish {
                    Some(Wish { event: AnnounceEvent::More, .. })
                        if more_at.is_none_or(|at| Instant::now() < at) => continue,
                    Some(wish) => (told.wish(wish.event), wish.want),
                    None => break,
                },
                () = until(next) => (told.due(), 50),
            };
            let asked_at = Instant::now();
            match self.announce(event, want, amounts()).await {
                Some(Pauses { interval, least }) => {
                    told = Told { of_us: true, ..Told::default() };
                    next = Some(Instant::now() + interval);
                    more_at = Some(asked_at + least);
                }
                None => {
                    next = self.next(Instant::now() + told.retry);
                    more_at = None;
                    told.retry = (told.retry * 2).min(MAX_RETRY);
                }
            }
        }
        if told.of_us {
            self.urls.truncate(1);
            self.announce(Event::Stopped, 0, amounts()).await;
        }
    }

    /// Whether a tracker may be asked.
    fn may_ask(&self, url: &str) -> bool {
        self.resting.get(url).is_none_or(|rest| rest.0.is_some_and(|until| until <= Instant::now()))
    }

    /// When the next of those that have not answered is asked, where who says nothing of that is asked then.
    fn next(&self, otherwise: Instant) -> Option<Instant> {
        let rest_of = |url: &String| self.resting.get(url).filter(|_| !self.may_ask(url));
        self.urls.iter().filter_map(|url| rest_of(url).map_or(Some(otherwise), |rest| rest.0)).min()
    }

    /// What a tracker says of when it wants to be asked again.
    fn note_rest(&mut self, url: &str, retry: Option<RetryIn>) {
        match retry {
            Some(retry) => self.resting.insert(url.to_owned(), Rest::of(retry)),
            None => self.resting.remove(url),
        };
    }

    /// Asks the trackers that may be asked until one answers, and says when it wants to be asked again.
    async fn announce(&mut self, event: Event, want: u32, amounts: Amounts) -> Option<Pauses> {
        let (announce, is_named) = (self.announcement(event, want, amounts), self.are_named);
        let urls: Vec<String> = self.urls.iter().filter(|url| self.may_ask(url)).cloned().collect();
        let questions: Vec<_> = urls
            .iter()
            .map(|url| {
                let (announce, tracker_id) = (announce.clone(), self.tracker_id.clone());
                let (url, notes) = (url.clone(), self.notes.clone());
                let late = {
                    let url = url.clone();
                    move |answer| drop(notes.send(Note { url, result: Ok(answer) }))
                };
                let (origin, acquaintances) = (self.identity.origin, self.acquaintances.clone());
                ask(Question { url, is_named, announce, tracker_id, origin, acquaintances }, late)
            })
            .collect();
        let mut refused = |at: usize, refusal: Refusal| {
            self.note_rest(&urls[at], refusal.retry);
            self.note(&urls[at], Err(refusal.why));
        };
        let (at, answer) = first_answer(questions.into_iter(), &mut refused).await?;
        self.note_rest(&urls[at], None);
        self.note(&urls[at], Ok(answer.clone()));
        if let Some(place) = self.urls.iter().position(|url| *url == urls[at]) {
            self.urls.swap(0, place);
        }
        let pauses = Pauses::of(&answer);
        self.tracker_id = answer.tracker_id.or(self.tracker_id.take());
        Some(pauses)
    }

    fn note(&self, url: &str, result: Result<Answer, String>) {
        let _ = self.notes.send(Note { url: url.to_owned(), result });
    }

    fn announcement(&self, event: Event, want: u32, amounts: Amounts) -> Announce {
        let Identity { info_hash, peer_id, port, key, .. } = self.identity;
        let Amounts { uploaded, downloaded, left, is_partial_seed, port: outer } = amounts;
        let (left, port) = (Some(left), outer.unwrap_or(port));
        let event = if is_partial_seed { by_partial_seed(event) } else { event };
        Announce { info_hash, peer_id, port, uploaded, downloaded, left, event, key, wanted: Some(want) }
    }
}

/// Until when a tracker is left alone that has refused; `None` for always.
struct Rest(Option<Instant>);

impl Rest {
    fn of(retry: RetryIn) -> Self {
        match retry {
            RetryIn::Minutes(minutes) => {
                Self(Some(Instant::now() + Duration::from_secs(60 * u64::from(minutes))))
            }
            RetryIn::Never => Self(None),
        }
    }
}

/// When a tracker that has answered is asked again.
struct Pauses {
    interval: Duration,
    /// Not sooner than that, whoever wants more.
    least: Duration,
}

impl Pauses {
    fn of(answer: &Answer) -> Self {
        let interval_s = answer.sane_interval_s();
        let least_s = answer.min_interval_s.unwrap_or(0).min(interval_s);
        let [interval, least] = [interval_s, least_s].map(|seconds| Duration::from_secs(seconds.into()));
        Self { interval, least: least.max(MORE_AFTER) }
    }
}

/// Waits until then; for ever, where there is no such time.
pub(crate) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What a tier has been told, by an announce that was answered.
#[derive(Clone, Copy)]
struct Told {
    of_us: bool,
    /// That everything is here now has been said, and nobody has answered: it is said until somebody does, or who counts downloads
    /// misses one.
    owes_completed: bool,
    /// Where nobody answers it is told again after so long.
    retry: Duration,
}

impl Default for Told {
    fn default() -> Self {
        Self { of_us: false, owes_completed: false, retry: RETRY }
    }
}

impl Told {
    /// What is said where there is a wish for that.
    const fn wish(&mut self, event: AnnounceEvent) -> Event {
        self.owes_completed |= matches!(event, AnnounceEvent::Completed);
        if matches!(event, AnnounceEvent::Moved) {
            // Whoever did not answer there may answer here.
            self.retry = RETRY;
        }
        match event {
            AnnounceEvent::Started if !self.owes_completed => Event::Started,
            _ => self.due(),
        }
    }

    /// What is said when its time has come.
    const fn due(self) -> Event {
        match self {
            Self { owes_completed: true, .. } => Event::Completed,
            Self { of_us: true, .. } => Event::Interval,
            Self { of_us: false, .. } => Event::Started,
        }
    }
}

/// What is said by whoever wants nothing more without having everything: trackers count downloads, and that is none.
const fn by_partial_seed(event: Event) -> Event {
    match event {
        Event::Completed | Event::Interval => Event::Paused,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_answered_is_said_again() {
        let mut told = Told::default();
        assert_eq!(told.wish(AnnounceEvent::Started), Event::Started);
        assert_eq!(told.due(), Event::Started);
        told.of_us = true;
        assert_eq!((told.due(), told.wish(AnnounceEvent::More)), (Event::Interval, Event::Interval));
        assert_eq!(told.wish(AnnounceEvent::Completed), Event::Completed);
        assert_eq!((told.due(), told.wish(AnnounceEvent::More)), (Event::Completed, Event::Completed));
        told.owes_completed = false;
        assert_eq!(told.due(), Event::Interval);
    }

    /// A tracker that has not said when is asked after the usual time; those that have, then; where all want peace, nobody.
    #[test]
    fn a_tier_is_asked_again_when_the_first_of_its_trackers_may_be() {
        let (notes, _heard) = unbounded_channel();
        let origin = Origin::default();
        let identity = Identity { info_hash: [0; 20], peer_id: [0; 20], port: 1, key: 0, origin };
        let urls = vec!["a".to_owned(), "b".to_owned()];
        let acquaintances = Acquaintances::default();
        let mut tier = Tier {
            urls,
            are_named: false,
            resting: HashMap::new(),
            identity,
            tracker_id: None,
            acquaintances,
            notes,
        };
        let soon = Instant::now() + RETRY;
        tier.note_rest("a", Some(RetryIn::Minutes(5)));
        assert_eq!((tier.may_ask("a"), tier.may_ask("b"), tier.next(soon)), (false, true, Some(soon)));
        tier.note_rest("b", Some(RetryIn::Never));
        let next = tier.next(soon).map(|next| next.duration_since(soon).as_secs());
        assert_eq!((tier.may_ask("b"), next), (false, Some(5 * 60 - RETRY.as_secs())));
        tier.note_rest("a", Some(RetryIn::Never));
        assert_eq!(tier.next(soon), None);
        tier.note_rest("a", None);
        assert_eq!((tier.may_ask("a"), tier.next(soon)), (true, Some(soon)));
    }

    #[test]
    fn a_tracker_is_left_alone_as_long_as_it_wants() {
        for (interval_s, min_interval_s, pauses) in [
            (1800, None, (1800, 60)),
            (1800, Some(900), (1800, 900)),
            (1800, Some(5), (1800, 60)),
            (600, Some(7200), (600, 600)),
        ] {
            let Pauses { interval, least } =
                Pauses::of(&Answer { interval_s, min_interval_s, ..Answer::default() });
            assert_eq!((interval.as_secs(), least.as_secs()), pauses);
        }
    }
}
