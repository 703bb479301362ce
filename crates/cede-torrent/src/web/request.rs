//! One request to a web seed, on a thread of its own: what is asked for, what comes, and what it means where something else does.
//!
//! Source: RFC 9110 (ranges, sections 14 and 15.3.7). A server that sends another part than was asked for, or a file of another length,
//! does not have the torrent's; one that sends whole files alone is told from both. Redirections are followed a few times, but not from
//! elsewhere into the local network, whose servers are not asked with a query either: a torrent could have us do there what only its
//! owner is to do (libtorrent keeps to that, too).

use crate::fetch::{is_http, onward, words};
use crate::near::is_near;
use crate::request::get;
use cede_bt::web::{ContentRange, retry_after_s};
use cede_wire::Payload;
use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Sender;
use ureq::http::{HeaderMap, HeaderName, Response, StatusCode, header};
use ureq::{Agent, Body};

/// A server that says nothing for so long is not waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a server may send on to another.
const MAX_REDIRECTS: u32 = 5;
/// Of a file that is sent whole so much is passed over to get to what was asked for.
const MAX_SKIPPED_BYTES: u64 = 1 << 20;
/// Who sends less than that for so long may as well send nothing.
const LEAST_BYTES_PER_S: f64 = 1024.0;
const SLOW_AFTER: Duration = Duration::from_secs(30);
/// What has come is handed on after that, however little it is.
const HAND_ON: Duration = Duration::from_secs(1);
/// Less of what is asked for is no answer.
const LEAST_PART_BYTES: u64 = 64 << 10;
/// Of an answer that ends too early, whatever its head has said of its length.
const CUT_SHORT: &str = "the server ends before it has sent what it was asked for";
/// Buffers that are filled by turns.
const BUFFERS: usize = 4;

/// What is asked for.
pub(super) struct Ask {
    pub url: String,
    /// The server is in the local network.
    pub is_local: bool,
    /// The first octet of the file, and the one behind the last.
    pub first: u64,
    pub end: u64,
    /// Octets of the file.
    pub length: u64,
    /// All of it is asked for, as the server sends nothing else.
    pub is_whole: bool,
    /// So much is handed on at a time.
    pub portion: usize,
}

/// Why something did not come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// The file is not to be had there.
    Lacking(String),
    /// Nothing is.
    Useless(String),
    /// The server sends files from their beginnings alone.
    OnlyWhole,
    /// All of the file would come for the little of it that is missing: others may have that.
    LeftToOthers,
    /// It may be had later, not before that where the server says so.
    Later(String, Option<Duration>),
}

/// What comes of it.
pub(super) enum Event {
    /// The octets that follow are those of the file from there on.
    From(u64),
    /// The same from its beginning, which was not asked for by itself: the server sends whole files.
    FromBeginning,
    Octets(Payload),
    Over(Result<(), Fault>),
}

/// Carries out a request. What comes goes to `events`; where nobody listens any more it ends.
pub(super) fn carry_out(agent: &Agent, ask: &Ask, events: &Sender<Event>) {
    let outcome = call(agent, ask).and_then(|mut response| {
        let end = begin(ask, &response, events)?;
        read(ask, &mut response, end, events)
    });
    let _ = events.blocking_send(Event::Over(outcome));
}

fn later(why: &dyn std::fmt::Display) -> Fault {
    Fault::Later(why.to_string(), None)
}

/// The answer of whoever does not send on to another.
fn call(agent: &Agent, ask: &Ask) -> Result<Response<Body>, Fault> {
    let (mut url, mut is_local) = (ask.url.clone(), ask.is_local);
    for _ in 0..=MAX_REDIRECTS {
        let request = get(agent, &url).map_err(|error| Fault::Useless(words(&error)))?;
        let mut request = request.header(header::ACCEPT_ENCODING, "identity");
        if !ask.is_whole {
            request = request.header(header::RANGE, format!("bytes={}-{}", ask.first, ask.end - 1));
        }
        let request = request
            .config()
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE));
        let response = request.build().call().map_err(|error| match error {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => Fault::Useless(words(&error)),
            _ => later(&words(&error)),
        })?;
        let place = response.headers().get(header::LOCATION).filter(|_| response.status().is_redirection());
        let Some(place) = place else { return Ok(response) };
        let next = onward(&url, &String::from_utf8_lossy(place.as_bytes()));
        if !is_http(&next) {
            return Err(Fault::Lacking(format!(
                "the server sends on to {next}, which is neither http nor https"
            )));
        }
        let next_is_local = is_near(&next);
        if next_is_local && !is_local {
            return Err(Fault::Useless(format!("the server sends on into the local network, to {next}")));
        }
        (url, is_local) = (next, next_is_local);
    }
    Err(Fault::Lacking(format!("the server sends on more than {MAX_REDIRECTS} times, at last to {url}")))
}

/// Whether what is sent is what was asked for. Says where it begins, and returns where it is to end.
fn begin(ask: &Ask, response: &Response<Body>, events: &Sender<Event>) -> Result<u64, Fault> {
    let (status, headers) = (response.status(), response.headers());
    let encoding = text(headers, header::CONTENT_ENCODING);
    if status.is_success() && encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        return Err(Fault::Useless("the server sends files in another form (Content-Encoding)".to_owned()));
    }
    let (begins, end) = match status {
        StatusCode::PARTIAL_CONTENT if !ask.is_whole => {
            let (first, end) = part(ask, headers)?;
            (Event::From(first), end)
        }
        StatusCode::OK => {
            if let Some(length) = response.body().content_length().filter(|length| *length != ask.length) {
                return Err(other_length(length, ask.length));
            }
            if !ask.is_whole && ask.first > MAX_SKIPPED_BYTES {
                return Err(Fault::OnlyWhole);
            }
            let is_all = ask.first == 0 && ask.end == ask.length;
            (if is_all { Event::From(0) } else { Event::FromBeginning }, ask.end)
        }
        StatusCode::RANGE_NOT_SATISFIABLE => return Err(out_of_range(ask, headers)),
        other => return Err(refusal(other, headers)),
    };
    events.blocking_send(begins).map_err(|error| later(&error))?;
    Ok(end)
}

fn other_length(length: u64, expected: u64) -> Fault {
    Fault::Lacking(format!("the file there has {length} octets, and the torrent's {expected}"))
}

/// A part: the one that was asked for, or its beginning.
fn part(ask: &Ask, headers: &HeaderMap) -> Result<(u64, u64), Fault> {
    let told = text(headers, header::CONTENT_RANGE).unwrap_or_default();
    let range = ContentRange::parse(told);
    if let Some(length) = range.and_then(|range| range.length).filter(|length| *length != ask.length) {
        return Err(other_length(length, ask.length));
    }
    match range {
        Some(range) if range.first == ask.first && is_enough(range.end, ask) => Ok((range.first, range.end)),
        _ => Err(Fault::Useless(format!(
            "the server sends another part than it is asked for (Content-Range: {told})"
        ))),
    }
}

/// A server may send less than it is asked for, but it is not asked for octet after octet.
const fn is_enough(end: u64, ask: &Ask) -> bool {
    end == ask.end || end < ask.end && end - ask.first >= LEAST_PART_BYTES
}

/// What is asked for lies within the torrent's file. A server to which it does not has another file, or has not all of it yet, or
/// does not know for now.
fn out_of_range(ask: &Ask, headers: &HeaderMap) -> Fault {
    let told = text(headers, header::CONTENT_RANGE).and_then(ContentRange::length_of_unsatisfied);
    match told.filter(|length| *length != ask.length) {
        Some(length) => other_length(length, ask.length),
        None => Fault::Later(answered(StatusCode::RANGE_NOT_SATISFIABLE), None),
    }
}

fn answered(status: StatusCode) -> String {
    format!("the server answers: {status}")
}

fn refusal(status: StatusCode, headers: &HeaderMap) -> Fault {
    let why = answered(status);
    let is_passing = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
        );
    if !is_passing {
        return Fault::Lacking(why);
    }
    let after = text(headers, header::RETRY_AFTER).and_then(retry_after_s).map(Duration::from_secs);
    Fault::Later(why, after)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Reads to the end of what is to come, and not beyond.
fn read(ask: &Ask, response: &mut Response<Body>, end: u64, events: &Sender<Event>) -> Result<(), Fault> {
    let is_measured = response.body().content_length().is_some();
    let first = if response.status() == StatusCode::OK { 0 } else { ask.first };
    let mut body = response.body_mut().with_config().limit(u64::MAX).reader();
    let (mut left, mut waited, mut portions) = (end - first, Duration::ZERO, Portions::new(ask.portion));
    while left > 0 {
        let (most, began) = (left.min(ask.portion as u64), Instant::now());
        let (octets, ended) = portions.next(&mut body, most as usize);
        waited += began.elapsed();
        let n = u64::from(octets.len());
        left -= n;
        if n > 0 && events.blocking_send(Event::Octets(octets)).is_err() {
            return Ok(());
        }
        if let Some(ended) = ended {
            return Err(ended);
        }
        if waited > SLOW_AFTER && ((end - first - left) as f64) < LEAST_BYTES_PER_S * waited.as_secs_f64() {
            return Err(later(&"the server is too slow"));
        }
    }
    if is_measured {
        // It is used again if nothing is left in it.
        let _ = body.read(&mut [0]);
    }
    Ok(())
}

/// Buffers that are filled by turns: who reads them may take its time.
struct Portions {
    buffers: [Arc<[u8]>; BUFFERS],
    turn: usize,
}

impl Portions {
    fn new(bytes: usize) -> Self {
        Self { buffers: std::array::from_fn(|_| Arc::from(vec![0; bytes])), turn: 0 }
    }

    /// What comes next, so much at most; and why that is the end, if it is.
    fn next(&mut self, body: &mut impl Read, most: usize) -> (Payload, Option<Fault>) {
        self.turn = (self.turn + 1) % BUFFERS;
        let buffer = &mut self.buffers[self.turn];
        if Arc::get_mut(buffer).is_none() {
            *buffer = Arc::from(vec![0; buffer.len()]);
        }
        let (mut n, mut ended, began) = (0, None, Instant::now());
        if let Some(space) = Arc::get_mut(buffer) {
            while n < most && ended.is_none() && began.elapsed() < HAND_ON {
                match body.read(&mut space[n..most]) {
                    Ok(0) => ended = Some(later(&CUT_SHORT)),
                    Ok(more) => n += more,
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => ended = Some(later(&CUT_SHORT)),
                    Err(error) => ended = Some(later(&error)),
                }
            }
        }
        (Payload::from_part(buffer, 0, n as u32), ended)
    }
}
