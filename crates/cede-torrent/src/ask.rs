//! Asking one tracker, over HTTP or UDP, by IPv4 and by IPv6.
//!
//! Source: BEP 3, 7, 15, 23, 31 and 41. A tracker sees the address that it is asked from: one that has addresses of both families is
//! asked over both at once, so that it knows our peer by both (libtorrent does so, too). Peers that it lists by the names of
//! their hosts are looked up. How it was validated: against the tracker of this crate in the tests, and opentracker.

use crate::acquaintance::Acquaintances;
use crate::fetch::{Fetched, begins, fetch, is_http};
use crate::near::{addresses_beyond, may_press_buttons};
use crate::origin::{Family, Origin};
use crate::proxy::is_proxied;
use crate::request::host_of;
use cede_bt::tracker::http::{self, RetryIn};
use cede_bt::tracker::{Announce, Answer, Event};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Who takes longer than that may not be there: the next is asked beside it.
const IMPATIENCE: Duration = Duration::from_secs(3);
/// Addresses of a tracker that are tried, of each family.
const MAX_ADDRESSES: usize = 4;
/// Names of peers are looked up within that, or passed over.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(5);
/// Addresses that are taken of one name.
const MAX_OF_NAME: usize = 2;

/// What a tracker is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The tracker.
    pub url: String,
    /// A person has named it.
    pub is_named: bool,
    /// What it is told.
    pub announce: Announce,
    /// What it gave us to be sent back.
    pub tracker_id: Option<Vec<u8>>,
    /// Where it is asked from.
    pub origin: Origin,
    /// Those over UDP that have answered of late.
    pub acquaintances: Acquaintances,
}

/// Why a tracker has not answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// For people.
    pub why: String,
    /// When it wants to be asked again, where it has said so.
    pub retry: Option<RetryIn>,
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self { why, retry: None }
    }
}

/// Why a tracker is not asked that may be none.
const NOT_AT_HOME: &str = "trackers on this machine that a torrent or a link names are asked at /announce alone; name it yourself (-t) to have it asked";

/// Asks one tracker over each family that leads to it, and returns the first answer; the other family's goes to `late` when it comes. Who
/// says goodbye waits a little for both. Must run within a [`tokio::task::LocalSet`].
///
/// # Errors
/// Why there is no answer.
pub async fn ask(question: Question, late: impl FnOnce(Answer) + 'static) -> Result<Answer, Refusal> {
    let mut asked = JoinSet::new();
    for way in ways(&question).await? {
        let question = question.clone();
        asked.spawn_local(async move {
            let answer = way.ask(question).await.map_err(|why| (way.family, why))?;
            Ok(with_named(answer).await)
        });
    }
    let mut failures = Vec::new();
    while let Some(outcome) = asked.join_next().await {
        match outcome {
            Ok(Ok(answer)) => {
                let rest = hand_on(asked, late);
                match question.announce.event {
                    Event::Stopped => drop(timeout(IMPATIENCE, rest).await),
                    _ => drop(tokio::task::spawn_local(rest)),
                }
                return Ok(answer);
            }
            Ok(Err(why)) => failures.push(why),
            // It has panicked.
            Err(_) => {}
        }
    }
    Err(Refusal { why: told(&failures), retry: soonest(&failures) })
}

async fn hand_on(mut asked: JoinSet<Result<Answer, Failed>>, late: impl FnOnce(Answer)) {
    if let Some(Ok(Ok(answer))) = asked.join_next().await {
        late(answer);
    }
}

/// What came of one way.
type Failed = (Option<Family>, Refusal);

/// Where each way leads to somebody who says when, that is the soonest of it.
fn soonest(failures: &[Failed]) -> Option<RetryIn> {
    let minutes = |failed: &Failed| match failed.1.retry {
        Some(RetryIn::Minutes(minutes)) => Some(minutes),
        Some(RetryIn::Never) => Some(u32::MAX),
        None => None,
    };
    let each: Option<Vec<u32>> = failures.iter().map(minutes).collect();
    each?
        .into_iter()
        .min()
        .map(|least| if least == u32::MAX { RetryIn::Never } else { RetryIn::Minutes(least) })
}

fn told(failures: &[Failed]) -> String {
    match failures {
        [] => "the tracker has no address".to_owned(),
        [(_, refusal)] => refusal.why.clone(),
        [(_, first), others @ ..] if others.iter().all(|(_, refusal)| refusal.why == first.why) => {
            first.why.clone()
        }
        several => {
            let text = |(family, Refusal { why, .. }): &Failed| match family {
                Some(family) => format!("over {}: {why}", family.name()),
                None => why.clone(),
            };
            several.iter().map(text).collect::<Vec<_>>().join("; ")
        }
    }
}

/// One way to a tracker.
#[derive(Clone, Debug)]
struct Way {
    /// `None` where a proxy stands between, or where there is no telling.
    family: Option<Family>,
    addresses: Vec<SocketAddr>,
}

impl Way {
    async fn ask(&self, question: Question) -> Result<Answer, Refusal> {
        match udp_parts(&question.url) {
            Some(_) => self.ask_udp(&question).await.map_err(|error| error.to_string().into()),
            None => self.ask_http(&question).await,
        }
    }

    async fn ask_http(&self, question: &Question) -> Result<Answer, Refusal> {
        let url = http::url(&question.url, &question.announce, question.tracker_id.as_deref());
        let fetched = fetch(url, http::MAX_ANSWER_BYTES as u64, (question.origin, self.family)).await?;
        let Fetched { octets, .. } = &fetched;
        // Trackers say why they refuse under any status.
        http::parse_answer(octets).map_err(|error| match error {
            http::Error::Failure(_, retry) => Refusal { why: error.to_string(), retry },
            _ => fetched.failure().unwrap_or_else(|| error.to_string()).into(),
        })
    }

    async fn ask_udp(&self, question: &Question) -> io::Result<Answer> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the tracker's name has no address");
        let ask = |address: &SocketAddr| {
            let Question { url, announce, origin, acquaintances, .. } = question.clone();
            let address = *address;
            async move {
                let path = udp_parts(&url).map_or("", |(_, path)| path);
                acquaintances.ask((origin, address), &announce, path).await
            }
        };
        let answer = first_answer(self.addresses.iter().map(ask), |_, error| last = error).await;
        answer.map(|(_, answer)| answer).ok_or(last)
    }
}

/// Where a tracker over UDP is, of its URL, and what it is told of the rest.
fn udp_parts(url: &str) -> Option<(&str, &str)> {
    const SCHEME: &str = "udp://";
    let rest = begins(url, SCHEME).then(|| &url[SCHEME.len()..])?.split('#').next()?;
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    Some((host, if path == "/" { "" } else { path }))
}

/// By which ways the tracker is to be had.
async fn ways(question: &Question) -> Result<Vec<Way>, String> {
    let url = &question.url;
    let host = match udp_parts(url) {
        Some((host, _)) if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
            host.to_owned()
        }
        Some(_) => return Err("a UDP tracker's address has a port, as in udp://host:6969".to_owned()),
        None if !is_http(url) => return Err("the URL is neither of http, https nor udp".to_owned()),
        None => match host_of(url) {
            Some(host) if !is_proxied(url) => host,
            Some(host) if !question.is_named && may_press_buttons(url, &addresses_beyond(&host)) => {
                return Err(NOT_AT_HOME.to_owned());
            }
            // Names are looked up beyond a proxy; what is no URL is told by who asks.
            _ => return Ok(vec![Way { family: None, addresses: Vec::new() }]),
        },
    };
    let found: Vec<SocketAddr> = lookup_host(&host).await.map_err(|error| error.to_string())?.collect();
    if !question.is_named && udp_parts(url).is_none() && may_press_buttons(url, &found) {
        return Err(NOT_AT_HOME.to_owned());
    }
    let way = |family: Family| {
        let of_family = found.iter().filter(|address| Family::of(address.ip()) == family);
        let addresses = of_family.take(MAX_ADDRESSES).copied().collect();
        Way { family: Some(family), addresses }
    };
    let ways = Family::ALL.into_iter().filter(|family| question.origin.reaches(*family)).map(way);
    let ways: Vec<Way> = ways.filter(|way| !way.addresses.is_empty()).collect();
    match found.is_empty() || !ways.is_empty() {
        true => Ok(ways),
        false => Err("the tracker has no address that the one to go out from leads to".to_owned()),
    }
}

/// The answer with the peers that it lists by name, as far as their names can be looked up.
async fn with_named(mut answer: Answer) -> Answer {
    let mut lookups = JoinSet::new();
    for (name, port) in std::mem::take(&mut answer.named) {
        lookups.spawn_local(async move {
            let found = lookup_host((name, port)).await;
            found.into_iter().flatten().take(MAX_OF_NAME).collect::<Vec<_>>()
        });
    }
    let looking = async {
        while let Some(found) = lookups.join_next().await {
            answer.peers.extend(found.unwrap_or_default());
        }
    };
    let _ = timeout(LOOKUP_PATIENCE, looking).await;
    answer
}

/// The first answer, and to which question. Each is asked when the one before has failed or takes long.
pub(crate) async fn first_answer<T: 'static, E: 'static>(
    questions: impl ExactSizeIterator<Item = impl Future<Output = Result<T, E>> + 'static>,
    mut failed: impl FnMut(usize, E),
) -> Option<(usize, T)> {
    let (mut waiting, mut asked) = (questions.enumerate(), JoinSet::new());
    loop {
        if let Some((at, question)) = waiting.next() {
            asked.spawn_local(async move { (at, question.await) });
        }
        let patience = if waiting.len() > 0 { IMPATIENCE } else { Duration::MAX };
        match timeout(patience, asked.join_next()).await {
            Ok(None) => return None,
            Ok(Some(Ok((at, Ok(answer))))) => return Some((at, answer)),
            Ok(Some(Ok((at, Err(why))))) => failed(at, why),
            // It takes long, or has panicked.
            Err(_) | Ok(Some(Err(_))) => {}
        }
    }
}
