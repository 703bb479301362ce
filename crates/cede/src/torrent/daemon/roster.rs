//! The torrents that there are, and what becomes of them.

use super::args::DaemonArgs;
use super::common::Terms;
use super::entry::{Entry, Run};
use super::store::{Kept, Past, Store};
use super::terms::{RECENTLY_S, now_s};
use crate::failure::Failure;
use crate::screen;
use crate::torrent::duty::Duty;
use crate::torrent::hub::Hub;
use crate::torrent::job::{self, Job, Sight, Verb};
use cede_bt::metainfo::Metainfo;
use cede_torrent::session::Session;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// The daemon.
pub struct Daemon {
    pub hub: Rc<Hub>,
    pub store: Store,
    pub args: DaemonArgs,
    /// Where torrents go that are added without a folder.
    pub folder: PathBuf,
    pub began: Instant,
    entries: RefCell<BTreeMap<u32, Rc<Entry>>>,
    /// Those that were removed and have not ended yet, or whose files have not gone yet. They are closed then.
    leaving: RefCell<Vec<(Rc<Entry>, watch::Receiver<()>)>>,
    next_id: Cell<u32>,
    closing: Notify,
    /// Nothing begins any more.
    pub is_ending: Cell<bool>,
    /// Of all runs, this one and what is no more among them.
    pub past: Cell<Past>,
    /// It could not be read, and is left as it is.
    is_past_lost: Cell<bool>,
    /// Octets that had been received and sent, and torrents that had been added, when this run began.
    pub before: Cell<(u64, u64, u64)>,
    /// When they were removed, and their numbers.
    removed: RefCell<Vec<(Instant, u32)>>,
    /// What holds for all.
    pub terms: Cell<Terms>,
}

/// It is looked so often whether a torrent is there, or moves.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Daemon {
    /// With nothing yet.
    pub async fn begin(args: &DaemonArgs, store: Store) -> Result<Rc<Self>, Failure> {
        let folder = args.output.canonicalize().map_err(|error| {
            let name = screen::named(&args.output);
            Failure::of_system(format!("-o: cannot use {name}: {error}"), error.kind())
        })?;
        Ok(Rc::new(Self {
            hub: Hub::open(&args.swarm).await?,
            store,
            args: args.clone(),
            folder,
            began: Instant::now(),
            entries: RefCell::default(),
            leaving: RefCell::default(),
            next_id: Cell::new(1),
            closing: Notify::new(),
            is_ending: Cell::default(),
            past: Cell::default(),
            is_past_lost: Cell::default(),
            before: Cell::default(),
            removed: RefCell::default(),
            terms: Cell::new(Terms::of(args)),
        }))
    }

    /// Changes what is remembered of all runs.
    fn note_past(&self, change: impl FnOnce(&mut Past)) {
        let mut past = self.past.get();
        change(&mut past);
        self.past.set(past);
        // What could not be read may be mended by whoever knows how.
        if let Some(Err(failure)) = (!self.is_past_lost.get()).then(|| self.store.write_past(&past)) {
            self.hub.say(&format!("{}\n", failure.words()));
        }
    }

    /// Goes on with what is remembered.
    pub fn take_up(self: &Rc<Self>) {
        match self.store.past() {
            Ok(past) => {
                self.past.set(past);
                self.note_past(|past| past.runs += 1);
            }
            Err(failure) => {
                self.is_past_lost.set(true);
                self.hub.say(&format!("{}; sums begin anew for this run\n", failure.words()));
            }
        }
        for (hash, kept, metainfo) in self.store.read(|text| self.hub.say(&format!("{text}\n"))) {
            let called = kept.link.as_ref().map_or_else(|| hash.clone(), |link| called(link, &hash));
            self.enter(hash, kept, metainfo, called);
        }
        for entry in self.queue().iter().filter(|entry| !entry.kept.borrow().is_paused) {
            self.begin_in_turn(entry);
        }
        tokio::task::spawn_local(self.clone().keep_advancing());
        let sums = self.sums();
        self.before.set((sums.received, sums.sent, self.past.get().added));
    }

    /// All of them, in the order in which they came.
    pub fn entries(&self) -> Vec<Rc<Entry>> {
        self.entries.borrow().values().cloned().collect()
    }

    /// The one with that info-hash, in digits.
    pub fn find(&self, hash: &str) -> Option<Rc<Entry>> {
        self.entries.borrow().values().find(|entry| entry.hash.eq_ignore_ascii_case(hash)).cloned()
    }

    /// The numbers of those that were removed within the last minute.
    pub fn lately_removed(&self) -> Vec<u32> {
        let mut removed = self.removed.borrow_mut();
        removed.retain(|(at, _)| at.elapsed().as_secs() < RECENTLY_S);
        removed.iter().map(|(_, id)| *id).collect()
    }

    /// One more, which is remembered.
    pub fn add(
        self: &Rc<Self>,
        (hash, called): (String, String),
        mut kept: Kept,
        metainfo: Option<Metainfo>,
    ) -> Result<Rc<Entry>, Failure> {
        kept.place = self.last_place();
        let torrent = metainfo.as_ref().map_or(Ok(()), |known| self.store.write_torrent(&hash, known));
        let written = torrent.and_then(|()| self.store.write(&hash, &kept));
        written.inspect_err(|_| drop(self.store.forget(&hash)))?;
        let entry = self.enter(hash, kept, metainfo, called);
        self.note_past(|past| past.added += 1);
        if !entry.kept.borrow().is_paused {
            self.begin_in_turn(&entry);
        }
        Ok(entry)
    }

    fn enter(&self, hash: String, kept: Kept, metainfo: Option<Metainfo>, called: String) -> Rc<Entry> {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let entry = Rc::new(Entry {
            id,
            hash,
            row: self.hub.enrol(),
            kept: RefCell::new(kept),
            metainfo: RefCell::new(metainfo.map(Rc::new)),
            called,
            run: RefCell::default(),
            sight: RefCell::default(),
            error: RefCell::default(),
            until: Rc::default(),
            waits: Cell::default(),
            stands_since: Cell::new(Instant::now()),
            is_to_be_checked: Cell::new(false),
            active_at: Cell::default(),
            changed_at: Cell::new(Instant::now()),
        });
        self.entries.borrow_mut().insert(id, entry.clone());
        entry
    }

    /// Remembers what has changed of a torrent.
    pub fn remember(&self, entry: &Entry) {
        if let Err(failure) = self.record(entry) {
            self.hub.say_of(&entry.name(), &failure.words());
        }
    }

    /// The same, for whoever has ordered the change, and is to hear where it will not last. One that was removed meanwhile is not remembered
    /// again.
    pub fn record(&self, entry: &Entry) -> Result<(), Failure> {
        entry.note_change();
        if !self.entries.borrow().contains_key(&entry.id) {
            return Ok(());
        }
        self.store.write(&entry.hash, &entry.kept.borrow())
    }

    /// Those that were removed and have not ended yet.
    pub fn leaving(&self) -> Vec<Rc<Entry>> {
        self.leaving.borrow().iter().map(|(entry, _)| entry.clone()).collect()
    }

    /// Waits until those of them have ended that are such.
    async fn left(&self, is_such: impl Fn(&Entry) -> bool) {
        let leaving = self.leaving.borrow().clone();
        for (_, mut left) in leaving.into_iter().filter(|(entry, _)| is_such(entry)) {
            let _ = left.changed().await;
        }
    }

    /// Begins a torrent, where it is not under way: once it has ended, if it is about to, and so has the same one that was removed.
    pub fn start(self: &Rc<Self>, entry: &Rc<Entry>) {
        if entry.is_under_way() || self.is_ending.get() {
            return;
        }
        self.hub.begin_one();
        let before = entry.run.take().map(|run| run.task);
        let stop = Rc::new(Notify::new());
        let (daemon, subject, stopping) = (self.clone(), entry.clone(), stop.clone());
        let task = tokio::task::spawn_local(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            // It may be removed itself meanwhile.
            let is_before = |entry: &Entry| entry.id < subject.id && entry.hash == subject.hash;
            daemon.left(is_before).await;
            daemon.carry_out(&subject, &stopping).await;
        });
        entry.error.take();
        entry.waits.set(false);
        entry.stands_since.set(Instant::now());
        entry.note_change();
        let mut kept = entry.kept.borrow_mut();
        if std::mem::take(&mut kept.is_finished) {
            // What it has given it has given: it is to be given as often once more.
            kept.own.counted_from = kept.sent;
        }
        drop(kept);
        entry.run.replace(Some(Run { stop, task, is_ending: false }));
    }

    /// Asks a torrent to end.
    pub fn stop(&self, entry: &Entry) {
        if let Some(run) = entry.run.borrow_mut().as_mut() {
            run.is_ending = true;
            run.stop.notify_one();
        }
    }

    /// Whether it is to run from now on, and in later runs of the daemon.
    pub fn set_paused(self: &Rc<Self>, entry: &Rc<Entry>, is_paused: bool) -> Result<(), Failure> {
        entry.kept.borrow_mut().is_paused = is_paused;
        if is_paused {
            entry.waits.set(false);
            self.stop(entry);
            // It need not have ended: its peers are let go at once.
            self.advance();
        } else {
            self.begin_in_turn(entry);
        }
        self.record(entry)
    }

    /// It is to run from now on, whoever waits.
    pub fn start_now(self: &Rc<Self>, entry: &Rc<Entry>) -> Result<(), Failure> {
        entry.kept.borrow_mut().is_paused = false;
        self.start(entry);
        self.record(entry)
    }

    /// One that is under way begins anew: what is there is checked.
    pub fn restart(self: &Rc<Self>, entry: &Rc<Entry>) {
        if entry.is_under_way() {
            self.stop(entry);
            self.start(entry);
        }
    }

    /// Checks what is there of one that is under way.
    pub fn verify(self: &Rc<Self>, entry: &Rc<Entry>) {
        entry.is_to_be_checked.set(true);
        self.restart(entry);
    }

    /// Waits until a torrent that was asked to has ended.
    async fn ended(entry: &Entry) {
        let run = entry.run.take();
        if let Some(run) = run {
            let _ = run.task.await;
        }
    }

    /// Forgets a torrent; its files go as well, where that is asked for. One that cannot be forgotten stays: it would come again with the
    /// next run, and fetch anew what was deleted.
    pub fn remove(self: &Rc<Self>, entry: Rc<Entry>, with_files: bool) -> Result<(), Failure> {
        self.store.forget(&entry.hash)?;
        self.entries.borrow_mut().remove(&entry.id);
        self.removed.borrow_mut().push((Instant::now(), entry.id));
        entry.waits.set(false);
        self.stop(&entry);
        self.advance();
        let (leaves, left) = watch::channel(());
        self.leaving.borrow_mut().push((entry.clone(), left));
        let daemon = self.clone();
        tokio::task::spawn_local(async move {
            Self::ended(&entry).await;
            if let Some(failure) = with_files.then(|| daemon.delete(&entry)).and_then(Result::err) {
                daemon.hub.say_of(&entry.name(), &failure.words());
            }
            let (received, sent) = entry.moved(None);
            daemon.note_past(|past| {
                past.received += received;
                past.sent += sent;
            });
            daemon.leaving.borrow_mut().retain(|(other, _)| other.id != entry.id);
            daemon.hub.dismiss(entry.row);
            drop(leaves);
        });
        Ok(())
    }

    /// Somebody asks for the end of the daemon.
    pub fn close(&self) {
        self.closing.notify_one();
    }

    /// Waits for that.
    pub async fn closed(&self) {
        self.closing.notified().await;
    }

    /// Ends all torrents in order.
    pub async fn end(&self) {
        self.is_ending.set(true);
        let entries = self.entries();
        entries.iter().for_each(|entry| self.stop(entry));
        for entry in &entries {
            Self::ended(entry).await;
        }
        self.left(|_| true).await;
        self.note_past(|past| past.seconds += self.began.elapsed().as_secs());
        self.hub.leave().await;
    }

    /// What becomes of one.
    async fn carry_out(self: &Rc<Self>, entry: &Rc<Entry>, stop: &Rc<Notify>) {
        self.hub.enter();
        let outcome = self.run(entry, stop).await;
        self.hub.board(|board| board.over(entry.row));
        match outcome {
            Ok(()) | Err(Failure::Interrupted(_)) => {}
            Err(failure) => {
                self.hub.say_of(&entry.name(), &failure.words());
                entry.error.replace(failure.text().map(str::to_owned));
            }
        }
        entry.note_ending(stop);
        self.hub.end_one();
        self.remember(entry);
        self.advance();
    }

    async fn run(self: &Rc<Self>, entry: &Rc<Entry>, stop: &Rc<Notify>) -> Result<(), Failure> {
        let (what, verb) = (self.what(entry), self.verb(entry));
        let begun = tokio::select! {
            biased;
            () = stop.notified() => Err(Failure::Interrupted(String::new())),
            begun = Job::begin(&self.hub, (entry.row, &what), &verb) => begun,
        };
        let mut job = match begun {
            Ok(job) => job,
            Err(failure) => {
                job::tell_of_nothing(self.hub.args.json, &what, &failure);
                self.hub.leave().await;
                return Err(failure);
            }
        };
        let sight = job.sight();
        self.see(entry, sight.clone());
        let outcome = tokio::select! {
            biased;
            outcome = job.run(stop.notified()) => outcome,
            never = self.watch(entry, &sight.session) => match never {},
        };
        entry.settle();
        // Where nobody hears any more how it goes, that ends all of them, for this time. It may be begun again from here on.
        if outcome.is_ok() && !screen::is_unread() {
            let mut kept = entry.kept.borrow_mut();
            (kept.is_finished, kept.is_paused) = (true, true);
        }
        entry.note_ending(stop);
        job.end(outcome).await
    }

    /// Its content was checked. What was ordered meanwhile holds from now on.
    fn see(&self, entry: &Entry, sight: Sight) {
        sight.session.add_peers(&entry.kept.borrow().peers);
        entry.sight.replace(Some(sight));
        entry.apply_terms(self.terms.get().until);
        entry.take_turns();
        entry.stands_since.set(Instant::now());
        entry.note_change();
        if !entry.has_begun() {
            entry.kept.borrow_mut().here = entry.here();
            self.remember(entry);
        }
    }

    /// Remembers when all is there, once, and when something moved.
    async fn watch(self: &Rc<Self>, entry: &Entry, session: &Session) -> Infallible {
        let (mut moved, mut is_noted) = ((0, 0), false);
        let mut counted = Instant::now();
        loop {
            let passed = counted.elapsed().as_secs();
            counted += Duration::from_secs(passed);
            entry.note_time(session.is_done(), passed);
            if session.is_done() && !std::mem::replace(&mut is_noted, true) {
                entry.note_checked();
                entry.kept.borrow_mut().done_s.get_or_insert_with(now_s);
                self.remember(entry);
                self.advance();
            }
            let now = entry.moved(Some(&session.view()));
            if std::mem::replace(&mut moved, now) != now {
                entry.active_at.set(Some(Instant::now()));
                entry.stands_since.set(Instant::now());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What a torrent is asked for by.
    fn what(&self, entry: &Entry) -> String {
        match (&*entry.metainfo.borrow(), &entry.kept.borrow().link) {
            (None, Some(link)) => link.clone(),
            _ => self.store.torrent(&entry.hash).to_string_lossy().into_owned(),
        }
    }

    fn verb(self: &Rc<Self>, entry: &Rc<Entry>) -> Verb {
        let (daemon, subject) = (self.clone(), entry.clone());
        Verb {
            duty: Duty::GetAndGive(entry.until.clone()),
            known: entry.metainfo.borrow().clone(),
            place: Box::new(move |source| daemon.place(&subject, source)),
        }
    }
}

/// What a link's torrent is called until it is known.
pub fn called(link: &str, hash: &str) -> String {
    cede_bt::magnet::Magnet::parse(link).ok().and_then(|link| link.name).unwrap_or_else(|| hash.to_owned())
}
