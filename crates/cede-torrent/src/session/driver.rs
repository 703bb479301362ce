//! What has to run beside the connections' tasks: deadlines, what the disk says, notes, and who hears of whom.

use super::away::Away;
use super::choices::{Told, greeting};
use super::dial;
use super::error::SessionError;
use super::state::{Inner, State};
use crate::disk::Report;
use crate::listener::Listener;
use crate::moves::LOOK_EVERY;
use crate::reception::Door;
use crate::storage::{Notes, Stamp, Storage};
use cede_bt::engine::Hearers;
use cede_bt::picker::Begun;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Notes about the download are written so often.
const NOTES_EVERY: Duration = Duration::from_secs(30);
/// Peers are told of others so often (BEP 11).
const PEX_EVERY: Duration = Duration::from_secs(60);

impl Inner {
    /// Callers are taken up as long as what comes back is there.
    fn start(self: &Rc<Self>) -> Option<Door> {
        let mut state = self.state.borrow_mut();
        self.tell_anew(&mut state);
        state.engine.start(self.now());
        self.pump(&mut state);
        state.listener.as_ref().map(|listener| listener.receive(dial::names(&self.info), self.clone()))
    }

    /// Peers hear of what has changed: a router may lead others to us by another port than before, and once everything is here nothing
    /// more is wanted.
    fn tell_anew(self: &Rc<Self>, state: &mut State) {
        let port = state.listener.as_deref().map(Listener::told_port);
        let told = Told { port, upload_only: state.engine.is_upload_only() };
        let before = std::mem::replace(&mut state.told, told);
        if before != told {
            let hearers = if before.upload_only == told.upload_only { Hearers::Called } else { Hearers::All };
            let greeting = greeting(&self.info, &self.choices, told);
            state.engine.set_extended(self.now(), greeting, hearers);
            self.pump(state);
        }
    }
}

/// What has to run for a session to live.
pub struct Driver {
    pub(super) inner: Rc<Inner>,
    pub(super) inbox: mpsc::UnboundedReceiver<Report>,
    pub(super) notes: Option<Notes>,
}

impl Driver {
    /// Keeps notes of what is there, for a resumption.
    pub fn keep_notes(&mut self, notes: Option<Notes>) {
        self.notes = notes;
    }

    /// Runs until something fails. Dropping the future is the other end: what is under way then is lost, what was stored is
    /// not. Must run within a [`tokio::task::LocalSet`].
    ///
    /// # Errors
    /// [`SessionError`].
    pub async fn run(&mut self) -> Result<(), SessionError> {
        let inner = self.inner.clone();
        let _door = inner.start();
        let mut notes_at = Instant::now() + NOTES_EVERY;
        let mut pex_at = Instant::now() + PEX_EVERY;
        let (mut away, mut look_at) = (Away::default(), Instant::now() + LOOK_EVERY);
        loop {
            let ours = notes_at.min(pex_at).min(look_at);
            let deadline = inner.arm().map_or(ours, |at| at.min(ours));
            tokio::select! {
                report = self.inbox.recv() => inner.on_report(report),
                () = tokio::time::sleep_until(deadline.into()) => inner.on_deadline(),
                () = inner.alarm.notified() => {}
            }
            if let Some(error) = inner.state.borrow_mut().error.take() {
                return Err(error);
            }
            inner.tell_anew(&mut inner.state.borrow_mut());
            let now = Instant::now();
            if now >= notes_at {
                notes_at = now + NOTES_EVERY;
                self.renew_notes();
            }
            if now >= pex_at {
                pex_at = now + PEX_EVERY;
                inner.exchange_peers();
            }
            if now >= look_at {
                look_at = now + LOOK_EVERY;
                inner.turn_over();
                away.look(&inner);
            }
        }
    }

    /// Of what is complete there is nothing to be resumed.
    fn renew_notes(&self) {
        if !self.inner.is_over() {
            self.write_notes();
        }
    }

    /// Writes down what is there.
    fn write_notes(&self) {
        self.note(&self.inner.whole(), &self.inner.state.borrow().engine.unfinished());
    }

    /// Writes down what is there once the session has left and all of it is written: before, the notes would be older than the files,
    /// and count for nothing. A disk that takes too long for that leaves those of before.
    pub fn write_last_notes(&mut self) {
        if !self.inner.state.borrow_mut().disk.finish() {
            return;
        }
        let mut whole = self.inner.whole();
        while let Ok(report) = self.inbox.try_recv() {
            if let Report::Checked { piece, good } = report
                && let Some(is_whole) = whole.get_mut(piece as usize)
            {
                *is_whole = good;
            }
        }
        let left = self.inner.state.borrow().left.clone();
        self.note(&whole, &left.unwrap_or_default());
    }

    /// Writes down which pieces are there, or may be: files that are not wanted now were not looked at, and what has all its blocks
    /// may not have been checked. What cannot be written only costs a check later.
    fn note(&self, whole: &[bool], unfinished: &[Begun]) {
        if let Some(notes) = &self.notes {
            let storage = &self.inner.storage;
            let known = whole.iter().zip(storage.wanted_pieces());
            let mut may_be: Vec<bool> = known.map(|(is_whole, is_wanted)| *is_whole || !is_wanted).collect();
            let mut begun = Vec::new();
            for unfinished in unfinished.iter().filter(|begun| !whole[begun.piece as usize]) {
                if unfinished.blocks.is_full() {
                    may_be[unfinished.piece as usize] = true;
                } else {
                    begun.push(unfinished.clone());
                }
            }
            let _ = notes.write(&may_be, &begun, &stamps(storage));
        }
    }

    /// The notes, when the session is over.
    pub fn take_notes(&mut self) -> Option<Notes> {
        self.notes.take()
    }
}

/// How the files of a torrent stand.
#[must_use]
pub fn stamps(storage: &Storage) -> Vec<Option<Stamp>> {
    (0..storage.layout().files().len()).map(|file| Stamp::of(Path::new(&storage.path_of(file)))).collect()
}
