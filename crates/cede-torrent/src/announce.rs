//! Asking trackers, over HTTP and UDP.
//!
//! Source: BEP 3, 12, 15 and 23. Each tier is asked by itself, its trackers in order until one answers, the next also where
//! one takes long; that which has answered is asked first from then on. What it leaves out: names of hosts in answers, scrapes. How it was validated: against the tracker of
//! this crate in the tests, and opentracker.

use crate::session::Wish;
use cede_bt::engine::AnnounceEvent;
use cede_bt::tracker::udp::{Asked, Request, Response};
use cede_bt::tracker::{Announce, Answer, Event, http};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{UdpSocket, lookup_host};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// A tracker over HTTP answers within that, or is passed over.
const HTTP_PATIENCE: Duration = Duration::from_secs(20);
/// BEP 15 waits 15 s and doubles that eight times; a person waits for two.
const UDP_TRIES: u32 = 2;
/// A tracker that takes longer than that may not be there: the next is asked beside it.
const IMPATIENCE: Duration = Duration::from_secs(3);
/// When no tracker of a tier has answered, the tier is asked again after that, and twice that, up to the limit.
const RETRY: Duration = Duration::from_secs(15);
const MAX_RETRY: Duration = Duration::from_secs(30 * 60);
/// More peers are not asked for sooner than that after the last time.
const MORE_AFTER: Duration = Duration::from_secs(60);
/// A torrent file from a URL: as long as torrents can be.
const MAX_DOWNLOAD_BYTES: u64 = cede_bt::metainfo::MAX_FILE_BYTES as u64;

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
}

/// How much has passed, for trackers that count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Amounts {
    /// Octets sent.
    pub uploaded: u64,
    /// Octets received.
    pub downloaded: u64,
    /// Octets that are missing.
    pub left: u64,
}

/// What came of an announce.
#[derive(Clone, Debug)]
pub struct Note {
    /// The tracker.
    pub url: String,
    /// Its answer, or why there is none.
    pub result: Result<Answer, String>,
}

/// Announces to all tiers as long as `wishes` come; `amounts` is asked before each announce. Notes go to `notes`. Ends, after
/// every tier has been told that we leave, when the other end of `wishes` is gone.
pub async fn run(
    tiers: Vec<Vec<String>>,
    identity: Identity,
    amounts: impl Fn() -> Amounts + Clone + 'static,
    mut wishes: UnboundedReceiver<Wish>,
    notes: UnboundedSender<Note>,
) {
    let mut inboxes = Vec::new();
    let mut tasks = Vec::new();
    for urls in tiers {
        let (inbox, wishes) = unbounded_channel();
        let tier = Tier { urls, identity, tracker_id: None, notes: notes.clone() };
        inboxes.push(inbox);
        tasks.push(tokio::task::spawn_local(tier.run(amounts.clone(), wishes)));
    }
    while let Some(wish) = wishes.recv().await {
        for inbox in &inboxes {
            let _ = inbox.send(wish);
        }
    }
    drop(inboxes);
    for task in tasks {
        let _ = task.await;
    }
}

struct Tier {
    urls: Vec<String>,
    identity: Identity,
    tracker_id: Option<Vec<u8>>,
    notes: UnboundedSender<Note>,
}

impl Tier {
    async fn run(mut self, amounts: impl Fn() -> Amounts, mut wishes: UnboundedReceiver<Wish>) {
        let (mut next, mut retry, mut is_known) = (None, RETRY, false);
        // When somebody may ask for more; while nobody answers, only its own time counts.
        let mut more_at: Option<Instant> = None;
        loop {
            let (event, want) = tokio::select! {
                wish = wishes.recv() => match wish {
                    Some(Wish { event: AnnounceEvent::More, .. })
                        if more_at.is_none_or(|at| Instant::now() < at) => continue,
                    Some(wish) => (event_of(wish.event), wish.want),
                    None => break,
                },
                () = until(next) => (if is_known { Event::Interval } else { Event::Started }, 50),
            };
            let asked_at = Instant::now();
            match self.announce(event, want, amounts()).await {
                Some(Pauses { interval, least }) => {
                    (is_known, retry) = (true, RETRY);
                    next = Some(Instant::now() + interval);
                    more_at = Some(asked_at + least);
                }
                None => {
                    next = Some(Instant::now() + retry);
                    more_at = None;
                    retry = (retry * 2).min(MAX_RETRY);
                }
            }
        }
        if is_known {
            self.urls.truncate(1);
            self.announce(Event::Stopped, 0, amounts()).await;
        }
    }

    /// Asks the trackers until one answers, and says when it wants to be asked again.
    async fn announce(&mut self, event: Event, want: u32, amounts: Amounts) -> Option<Pauses> {
        let announce = self.announcement(event, want, amounts);
        let questions: Vec<_> = self
            .urls
            .iter()
            .map(|url| {
                let (url, announce, id) = (url.clone(), announce.clone(), self.tracker_id.clone());
                async move { ask(&url, &announce, id.as_deref()).await }
            })
            .collect();
        let note = |at: usize, result| drop(self.notes.send(Note { url: self.urls[at].clone(), result }));
        let (at, answer) = first_answer(questions.into_iter(), |at, why| note(at, Err(why))).await?;
        note(at, Ok(answer.clone()));
        self.urls.swap(0, at);
        let pauses = Pauses::of(&answer);
        self.tracker_id = answer.tracker_id.or(self.tracker_id.take());
        Some(pauses)
    }

    fn announcement(&self, event: Event, want: u32, amounts: Amounts) -> Announce {
        let Identity { info_hash, peer_id, port, key } = self.identity;
        let Amounts { uploaded, downloaded, left } = amounts;
        let left = Some(left);
        Announce { info_hash, peer_id, port, uploaded, downloaded, left, event, key, wanted: Some(want) }
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

/// The first answer, and to which question. Each is asked when the one before has failed or takes long.
async fn first_answer<T: 'static, E: 'static>(
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

/// Waits until then; for ever, where there is no such time.
pub(crate) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

const fn event_of(event: AnnounceEvent) -> Event {
    match event {
        AnnounceEvent::Started => Event::Started,
        AnnounceEvent::Completed => Event::Completed,
        AnnounceEvent::More => Event::Interval,
    }
}

/// Asks one tracker.
///
/// # Errors
/// Why there is no answer, for people.
pub async fn ask(url: &str, announce: &Announce, tracker_id: Option<&[u8]>) -> Result<Answer, String> {
    if let Some(rest) = url.strip_prefix("udp://") {
        let host = rest.split('/').next().unwrap_or(rest);
        return ask_udp(host, announce).await.map_err(|error| error.to_string());
    }
    let url = http::url(url, announce, tracker_id);
    let (status, octets) = get(url, http::MAX_ANSWER_BYTES as u64).await?;
    // Trackers say why they refuse under any status.
    http::parse_answer(&octets).map_err(|error| match error {
        http::Error::Failure(_) => error.to_string(),
        _ => no_success(status).unwrap_or_else(|| error.to_string()),
    })
}

/// What a status says, where it is none of success.
fn no_success(status: ureq::http::StatusCode) -> Option<String> {
    (!status.is_success()).then(|| format!("the server answers: {status}"))
}

/// What is at a URL.
///
/// # Errors
/// Why it cannot be had, for people.
pub async fn download(url: &str) -> Result<Vec<u8>, String> {
    let (status, octets) = get(url.to_owned(), MAX_DOWNLOAD_BYTES).await?;
    no_success(status).map_or(Ok(octets), Err)
}

async fn get(url: String, limit: u64) -> Result<(ureq::http::StatusCode, Vec<u8>), String> {
    if url.starts_with("https://") && !cfg!(feature = "https") {
        return Err("https is not built in (cargo build --features cede-torrent/https); many trackers answer over http:// or udp://, too".to_owned());
    }
    let fetching = tokio::task::spawn_blocking(move || {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(HTTP_PATIENCE))
            .http_status_as_error(false)
            .max_redirects(5)
            .user_agent(concat!("cede/", env!("CARGO_PKG_VERSION")));
        #[cfg(feature = "https")]
        let config = config.tls_config(tls()?);
        let mut response = config.build().new_agent().get(&url).call().map_err(|error| error.to_string())?;
        let octets = read(response.body_mut().with_config().limit(limit).reader(), limit)?;
        Ok((response.status(), octets))
    });
    fetching.await.map_err(|error| error.to_string())?
}

/// All of it, within a limit that holds for what was compressed, too.
fn read(body: impl Read, limit: u64) -> Result<Vec<u8>, String> {
    let mut octets = Vec::new();
    body.take(limit + 1).read_to_end(&mut octets).map_err(|error| error.to_string())?;
    if octets.len() as u64 > limit { Err("the answer is too long".to_owned()) } else { Ok(octets) }
}

/// Whose certificates are trusted: those of authorities in the file that `SSL_CERT_FILE` names, or else Mozilla's.
#[cfg(feature = "https")]
fn tls() -> Result<ureq::tls::TlsConfig, String> {
    use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
    let Some(path) = std::env::var_os("SSL_CERT_FILE") else { return Ok(TlsConfig::default()) };
    let failed = |error: &dyn std::fmt::Display| format!("SSL_CERT_FILE {}: {error}", path.display());
    let text = std::fs::read(&path).map_err(|error| failed(&error))?;
    let mut roots = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| failed(&error))? {
            roots.push(certificate);
        }
    }
    Ok(TlsConfig::builder().root_certs(RootCerts::from(roots)).build())
}

async fn ask_udp(host: &str, announce: &Announce) -> io::Result<Answer> {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if !has_port {
        let why = "a UDP tracker's address has a port, as in udp://host:6969";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the tracker's name has no address");
    let addresses: Vec<SocketAddr> = lookup_host(host).await?.take(4).collect();
    let questions = addresses.into_iter().map(|address| {
        let announce = announce.clone();
        async move { ask_udp_at(address, &announce).await }
    });
    let answer = first_answer(questions, |_, error| last = error).await;
    answer.map(|(_, answer)| answer).ok_or(last)
}

async fn ask_udp_at(address: SocketAddr, announce: &Announce) -> io::Result<Answer> {
    let any: SocketAddr =
        if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse().map_err(io::Error::other)?;
    let socket = UdpSocket::bind(any).await?;
    socket.connect(address).await?;
    let is_v6 = address.is_ipv6();
    for attempt in 0..UDP_TRIES {
        let patience = Duration::from_secs(15 << attempt);
        let exchange = async {
            let Response::Connect(connection) = call(&socket, 0, Request::Connect, is_v6).await? else {
                return Err(io::Error::other("the tracker answers something else than was asked"));
            };
            call(&socket, connection, Request::Announce(announce.clone()), is_v6).await
        };
        match timeout(patience, exchange).await {
            Ok(Ok(Response::Announce(answer))) => return Ok(answer),
            Ok(Ok(_)) => return Err(io::Error::other("the tracker answers something else than was asked")),
            Ok(Err(error)) => return Err(error),
            Err(_) => {}
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the tracker does not answer"))
}

/// Asks, and waits for the answer to exactly that.
async fn call(socket: &UdpSocket, connection: u64, request: Request, is_v6: bool) -> io::Result<Response> {
    let transaction = getrandom::u32().map_err(io::Error::other)?;
    socket.send(&Asked { connection, transaction, request }.encode()).await?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = socket.recv(&mut buffer).await?;
        match Response::decode(&buffer[..n], is_v6) {
            Ok((heard, Response::Error(why))) if heard == transaction => {
                return Err(io::Error::other(format!("the tracker refuses: {why}")));
            }
            Ok((heard, response)) if heard == transaction => return Ok(response),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
