//! Web seeds: servers of HTTP and HTTPS that have a torrent's content (BEP 19).
//!
//! Each has a task beside those of the connections: it takes runs of pieces from the engine, has a thread ask for them
//! (`request`), and hands in what comes under the same limits as what peers send. As fast as a server is, so long are the runs. One that
//! fails for now is asked again later and later, one that lacks a file for others alone, and one that sends a bad piece never again.
//!
//! **What it leaves out.** BEP 17, FTP, more than one connection for each server.
//! **How it was validated.** `tests/web.rs`, against honest and hostile servers; beside libtorrent by hand (`docs/torrent.md`).

mod request;

use crate::fetch::{agent, is_http};
use crate::near::is_near;
use crate::session::{Inner, Session, State};
use crate::storage::Slice;
use cede_bt::BLOCK_BYTES;
use cede_bt::engine::SourceId;
use cede_bt::web::url_of;
use cede_wire::Payload;
use request::{Ask, Event, Fault, carry_out};
use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::future::poll_fn;
use std::ops::Range;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use ureq::Agent;

/// Servers that are asked at the same time; others take the places of those that are good for nothing.
const MAX_ACTIVE: usize = 4;
/// A run is what comes in so long, within bounds, and of who has not been measured that much.
const RUN_S: f64 = 8.0;
const RUN_BYTES: Range<u64> = 64 << 10..16 << 20;
const FIRST_RUN_BYTES: u64 = 1 << 20;
/// What takes so long is left to others from the end of a piece on.
const LONG_RUN: Duration = Duration::from_secs(32);
/// What the thread hands on at a time, and how much of that may wait.
const PORTION_BYTES: usize = 128 << 10;
const LIMITED_PORTION_BYTES: usize = 16 << 10;
const WAITING: usize = 2;
/// Who has nothing to do, or may read nothing for now, looks again after that.
const IDLE: Duration = Duration::from_millis(250);
const LIMITED_PAUSE: Duration = Duration::from_millis(5);
/// Of an answer that ends too soon so much is progress: who sent it is asked for the rest at once. Some servers send no more at a time.
const PROGRESS_BYTES: u64 = 64 << 10;
/// After a failure, and twice that after the next, up to the limit; after so many in a row nothing more is asked.
const RETRY: Duration = Duration::from_secs(5);
const MAX_RETRY: Duration = Duration::from_secs(10 * 60);
const MAX_PATIENCE: Duration = Duration::from_secs(60 * 60);
const MAX_FAILURES: u32 = 8;
/// Files that it does not have, one after the other.
const MAX_LACKING: u32 = 64;
/// Of a server that only sends whole files a file is taken if this part of it is missing, or if it is short. Of others what is
/// missing is left to peers and other servers, where there are any, and taken all the same where it is no less after that.
const LEAST_PART: u64 = 4;
const SHORT_BYTES: u64 = 1 << 20;
const LEFT_FOR: Duration = Duration::from_secs(10);
/// Of what it will send so much is taken from others' reach beforehand.
const AHEAD_BYTES: u64 = 4 << 20;

/// What is to be known of a web seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebNote {
    /// Which.
    pub url: String,
    /// What is wrong; nothing any more where it is none.
    pub trouble: Option<String>,
}

impl Session {
    /// Fetches from web seeds (BEP 19), too, what is missing; what is to be known of them comes back. Must be called within a
    /// [`tokio::task::LocalSet`].
    #[must_use]
    pub fn use_web_seeds(&self, urls: &[String]) -> UnboundedReceiver<WebNote> {
        let (notes, noted) = unbounded_channel();
        begin(&self.inner, urls, &notes);
        noted
    }
}

/// Fetches from these servers until everything is there.
fn begin(inner: &Rc<Inner>, urls: &[String], notes: &UnboundedSender<WebNote>) {
    let mut seen = HashSet::new();
    let urls: VecDeque<String> = urls.iter().filter(|url| seen.insert(*url)).cloned().collect();
    let active = urls.len().min(MAX_ACTIVE);
    let queue = Rc::new(RefCell::new(urls));
    for _ in 0..active {
        let (inner, queue, notes) = (inner.clone(), queue.clone(), notes.clone());
        tokio::task::spawn_local(async move {
            let next = || queue.borrow_mut().pop_front();
            while let Some(url) = next().filter(|_| !inner.is_over()) {
                serve(&inner, url, &notes).await;
            }
        });
    }
}

/// From one server, as long as it is good for something.
async fn serve(inner: &Rc<Inner>, url: String, notes: &UnboundedSender<WebNote>) {
    let note = |trouble| drop(notes.send(WebNote { url: url.clone(), trouble }));
    let (agent, is_local) = match client(inner, &url).await {
        Ok(client) => client,
        Err(why) => return note(Some(format!("{why}; it is not used"))),
    };
    let source = {
        let mut state = inner.state.borrow_mut();
        state.web_seeds.push(url.clone());
        state.engine.add_source()
    };
    let mut seed = WebSeed::new(inner, &url, (agent, is_local), source);
    let why = seed.run(&note).await;
    let mut state = inner.state.borrow_mut();
    let now = inner.now();
    state.engine.remove_source(now, source);
    state.web_seeds.retain(|other| *other != url);
    inner.pump(&mut state);
    drop(state);
    if let Some(why) = why {
        note(Some(format!("{why}; it is not used any more")));
    }
}

/// What asks a server, and whether that is in the local network.
async fn client(inner: &Inner, url: &str) -> Result<(Agent, bool), String> {
    if !is_http(url) {
        return Err("it is neither http nor https".to_owned());
    }
    if url.starts_with("https") && !cfg!(feature = "https") {
        return Err("https is not built in (cargo build --features cede-torrent/https)".to_owned());
    }
    let origin = inner.state.borrow().listener.as_ref().map(|listener| listener.origin()).unwrap_or_default();
    let agent = agent(origin, None)?;
    let near = url.to_owned();
    let is_local = tokio::task::spawn_blocking(move || is_near(&near)).await.unwrap_or(true);
    if is_local && url.contains('?') {
        return Err("servers of the local network are not asked with a query (?)".to_owned());
    }
    Ok((agent, is_local))
}

/// A server.
struct WebSeed<'a> {
    inner: &'a Rc<Inner>,
    url: &'a str,
    agent: Agent,
    is_local: bool,
    source: SourceId,
    /// It sends whole files, whatever it is asked for.
    is_whole: bool,
    /// What of a file was left to others last: which, and how much of it was missing.
    left: Option<(usize, u64)>,
    /// Octets per second, of the last run.
    rate: f64,
    /// In a row.
    failures: u32,
    lacking: u32,
    /// When the run began.
    began: Instant,
    /// Octets that came, and those since the last failure that were of use: who only sends whole files may send the same ones again.
    came: u64,
    progress: u64,
}

/// A part of a file, and where it lies in the content.
struct Part {
    file: usize,
    range: Range<u64>,
    at: u64,
}

impl<'a> WebSeed<'a> {
    /// A server of which nothing is known yet.
    fn new(inner: &'a Rc<Inner>, url: &'a str, (agent, is_local): (Agent, bool), source: SourceId) -> Self {
        Self {
            inner,
            url,
            agent,
            is_local,
            source,
            is_whole: false,
            left: None,
            rate: 0.0,
            failures: 0,
            lacking: 0,
            began: Instant::now(),
            came: 0,
            progress: 0,
        }
    }

    /// Until everything is there, or it is good for nothing more: then says why.
    async fn run(&mut self, note: &dyn Fn(Option<String>)) -> Option<String> {
        let mut is_troubled = false;
        while !self.inner.is_over() {
            let Some(run) = self.claim() else {
                tokio::time::sleep(IDLE).await;
                if !self.inner.state.borrow().engine.has_source(self.source) {
                    return Some("a piece that it sent is not the torrent's".to_owned());
                }
                continue;
            };
            let outcome = self.fetch(run).await;
            self.give_back();
            match outcome {
                Ok(()) => {
                    (self.failures, self.lacking) = (0, 0);
                    if std::mem::take(&mut is_troubled) {
                        note(None);
                    }
                }
                Err(fault) => {
                    let is_later = matches!(fault, Fault::Later(..));
                    let pause = match self.weigh(fault, note) {
                        Ok(pause) => pause,
                        Err(why) => return Some(why),
                    };
                    is_troubled |= is_later && !pause.is_zero();
                    self.rest(pause).await;
                }
            }
        }
        None
    }

    fn claim(&self) -> Option<Range<u64>> {
        let bytes = match self.rate {
            0.0 => FIRST_RUN_BYTES,
            rate => ((rate * RUN_S) as u64).clamp(RUN_BYTES.start, RUN_BYTES.end),
        };
        self.inner.state.borrow_mut().engine.claim(self.source, bytes)
    }

    fn give_back(&self) {
        let mut state = self.inner.state.borrow_mut();
        let now = self.inner.now();
        state.engine.give_back(now, self.source);
        self.inner.pump(&mut state);
        Inner::store(&mut state);
    }

    /// What follows from a failure: a pause, or that it is good for nothing, and why.
    fn weigh(&mut self, fault: Fault, note: &dyn Fn(Option<String>)) -> Result<Duration, String> {
        match fault {
            Fault::Useless(why) => Err(why),
            // The whole of each file is asked for from now on.
            Fault::OnlyWhole => {
                self.is_whole = true;
                Ok(Duration::ZERO)
            }
            Fault::LeftToOthers => Ok(LEFT_FOR),
            // Of a file that it does not have it has been said to the engine that it does not.
            Fault::Lacking(why) => {
                let has_more = self.inner.state.borrow_mut().engine.source_lacks(self.source, 0..0);
                self.lacking += 1;
                if !has_more || self.lacking > MAX_LACKING {
                    return Err(why);
                }
                note(Some(why));
                Ok(Duration::ZERO)
            }
            Fault::Later(why, after) => {
                let progress = std::mem::take(&mut self.progress);
                if progress >= PROGRESS_BYTES && after.is_none() {
                    return Ok(Duration::ZERO);
                }
                // What is no block is not kept.
                self.failures = if progress >= u64::from(BLOCK_BYTES) { 1 } else { self.failures + 1 };
                if self.failures > MAX_FAILURES {
                    return Err(why);
                }
                note(Some(why));
                let pause = (RETRY * (1 << (self.failures - 1))).min(MAX_RETRY);
                Ok(after.unwrap_or(pause).clamp(RETRY, MAX_PATIENCE))
            }
        }
    }

    async fn rest(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while Instant::now() < until && !self.inner.is_over() {
            tokio::time::sleep(IDLE.min(until - Instant::now())).await;
        }
    }

    /// Octets that it is still to send of what it has taken.
    fn owed(&self) -> u64 {
        self.inner.state.borrow().engine.owed_by_source(self.source)
    }

    /// Fetches a run of the content, file by file.
    async fn fetch(&mut self, run: Range<u64>) -> Result<(), Fault> {
        let before = self.came;
        self.began = Instant::now();
        if self.is_whole {
            return self.fetch_whole(run.start).await;
        }
        let layout = self.inner.storage.layout();
        let slices: Vec<Slice> = layout.slices(run.start, (run.end - run.start) as usize).collect();
        for slice in slices {
            let at = run.start + slice.range.start as u64;
            let length = slice.range.len() as u64;
            if slice.is_padding {
                self.pass_padding(at..at + length);
            } else if self.owed() > 0 {
                let range = slice.offset..slice.offset + length;
                let part = Part { file: slice.file, range, at };
                self.fetch_part(part).await.inspect_err(|fault| self.note_lack(fault, slice.file))?;
            }
        }
        self.rate = (self.came - before) as f64 / self.began.elapsed().as_secs_f64().max(0.001);
        Ok(())
    }

    /// Fetches whole files, one after the other, as long as something of them is to come. Pieces that two files share come with
    /// both: so it begins where none is shared with the file before.
    async fn fetch_whole(&mut self, at: u64) -> Result<(), Fault> {
        let layout = self.inner.storage.layout();
        let first = layout.slices(at, 1).next().map_or(0, |slice| slice.file);
        let mut file = self.begin_of_chain(first);
        while let Some(entry) = layout.files().get(file).filter(|_| self.owed() > 0) {
            let range = entry.offset..entry.offset + entry.length;
            if entry.is_padding {
                self.pass_padding(range);
            } else if self.missing_of(file) > 0 {
                let part = Part { file, range: 0..entry.length, at: entry.offset };
                self.fetch_part(part).await.inspect_err(|fault| self.note_lack(fault, file))?;
            }
            file += 1;
        }
        Ok(())
    }

    fn begin_of_chain(&self, mut file: usize) -> usize {
        let state = self.inner.state.borrow();
        let layout = self.inner.storage.layout();
        let length = u64::from(self.inner.info.piece_length);
        let is_shared =
            |start: u64| !start.is_multiple_of(length) && state.engine.lacks((start / length) as u32);
        while file > 0 && is_shared(layout.files()[file].offset) {
            file -= 1;
        }
        file
    }

    /// A file that is not there has no pieces there either.
    fn note_lack(&self, fault: &Fault, file: usize) {
        if matches!(fault, Fault::Lacking(_)) {
            let pieces = self.inner.storage.layout().pieces_of(file);
            self.inner.state.borrow_mut().engine.source_lacks(self.source, pieces);
        }
    }

    fn pass_padding(&self, range: Range<u64>) {
        let mut state = self.inner.state.borrow_mut();
        let now = self.inner.now();
        state.engine.pass_padding(now, self.source, range);
        self.inner.pump(&mut state);
        Inner::store(&mut state);
    }

    /// A part of a file, in as many requests as the server needs for it.
    async fn fetch_part(&mut self, mut part: Part) -> Result<(), Fault> {
        let start = part.at - part.range.start;
        while !part.range.is_empty() && self.owed() > 0 {
            let ask = self.ask(&part)?;
            let (is_whole, end) = (ask.is_whole, ask.end);
            let (sender, events) = channel(WAITING);
            let agent = self.agent.clone();
            let asking = move || carry_out(&agent, &ask, &sender);
            let thread = std::thread::Builder::new().name("web seed".to_owned()).spawn(asking);
            thread.map_err(|error| Fault::Later(error.to_string(), None))?;
            let came_to = self.hear(events, (part.file, start..start + end, is_whole)).await?;
            if came_to <= part.range.start {
                return Err(Fault::Later("the server sends nothing".to_owned(), None));
            }
            part.range.start = came_to.min(part.range.end);
        }
        Ok(())
    }

    fn ask(&mut self, part: &Part) -> Result<Ask, Fault> {
        let file = &self.inner.storage.layout().files()[part.file];
        let (first, end) = if self.is_whole { (0, file.length) } else { (part.range.start, part.range.end) };
        if self.is_whole && file.length > SHORT_BYTES && self.is_left_to_others(part.file, file.length) {
            return Err(Fault::LeftToOthers);
        }
        let is_limited = self.inner.state.borrow().limits.down.borrow().is_limited();
        Ok(Ask {
            url: url_of(self.url, &self.inner.info, part.file),
            is_local: self.is_local,
            first,
            end,
            length: file.length,
            is_whole: self.is_whole,
            portion: if is_limited { LIMITED_PORTION_BYTES } else { PORTION_BYTES },
        })
    }

    /// Whether little of a file is missing, and others may give it yet.
    fn is_left_to_others(&mut self, file: usize, length: u64) -> bool {
        let missing = self.missing_of(file);
        let state = self.inner.state.borrow();
        let is_alone = state.web_seeds.len() == 1 && state.engine.connections().next().is_none();
        let before = self.left.replace((file, missing));
        missing < length / LEAST_PART && !is_alone && before != self.left
    }

    /// Octets of the pieces of a file that are missing.
    fn missing_of(&self, file: usize) -> u64 {
        let state = self.inner.state.borrow();
        let pieces = self.inner.storage.layout().pieces_of(file);
        pieces
            .filter(|piece| state.engine.lacks(*piece))
            .map(|piece| u64::from(self.inner.info.piece_bytes(piece)))
            .sum()
    }

    /// Hands in what comes of a file, up to `end` of the content, where the file begins at `start`, as long as something of it is wanted. Says up to where it came.
    async fn hear(
        &mut self,
        mut events: Receiver<Event>,
        (file, Range { start, end }, is_whole): (usize, Range<u64>, bool),
    ) -> Result<u64, Fault> {
        let mut at = 0;
        while let Some(event) = events.recv().await {
            match event {
                Event::From(first) => at = first,
                Event::FromBeginning => self.is_whole = true,
                Event::Over(outcome) => return outcome.map(|()| at),
                Event::Octets(octets) => {
                    if is_whole {
                        self.claim_ahead(file, start + at);
                    }
                    let len = u64::from(octets.len());
                    self.take(start + at, octets).await;
                    at += len;
                    if !is_whole && self.is_long(start + at) {
                        self.give_back();
                    }
                    let is_wanted = self.owed() > 0 || is_whole && self.missing_of(file) > 0;
                    // What has come to its end leaves a connection that is used again.
                    if start + at < end && (self.inner.is_over() || !is_wanted) {
                        return Ok(u64::MAX);
                    }
                }
            }
        }
        Err(Fault::Later("the request came to nothing".to_owned(), None))
    }

    /// The run takes too long, and a piece has ended at about this place.
    fn is_long(&self, at: u64) -> bool {
        self.began.elapsed() > LONG_RUN && at % u64::from(self.inner.info.piece_length) < PORTION_BYTES as u64
    }

    /// What a whole file will bring is not asked of others.
    fn claim_ahead(&self, file: usize, at: u64) {
        let layout = self.inner.storage.layout();
        let length = u64::from(self.inner.info.piece_length);
        let (pieces, end) = (layout.pieces_of(file), (at + AHEAD_BYTES).div_ceil(length));
        let ahead = at.div_ceil(length) as u32..u32::try_from(end).unwrap_or(u32::MAX).min(pieces.end);
        let from = ahead.start.max(pieces.start);
        self.inner.state.borrow_mut().engine.claim_all(self.source, from..ahead.end);
    }

    /// Hands in what has come, once it may be.
    async fn take(&mut self, at: u64, octets: Payload) {
        self.allowance().await;
        let len = u64::from(octets.len());
        let mut state = self.inner.state.borrow_mut();
        state.limits.down.borrow_mut().spend(octets.len() as usize);
        let (now, before) = (self.inner.now(), state.engine.totals().redundant);
        state.engine.delivered(now, self.source, at, octets);
        let of_use = len - (state.engine.totals().redundant - before);
        (self.came, self.progress) = (self.came + len, self.progress + of_use);
        self.inner.pump(&mut state);
        Inner::store(&mut state);
    }

    /// Waits until the disk and the limit allow for more.
    async fn allowance(&self) {
        poll_fn(|cx| {
            let state: &mut State = &mut self.inner.state.borrow_mut();
            if state.disk.is_busy() {
                state.waiting.push(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        while self.inner.state.borrow().limits.down.borrow_mut().allowance() == 0 {
            tokio::time::sleep(LIMITED_PAUSE).await;
        }
    }
}
