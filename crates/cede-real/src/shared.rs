//! What a socket's driver, its streams and its owner share: the endpoint behind one lock.
//!
//! Whoever changes something under the lock lets out what it causes before leaving ([`State::settle`]): packets go to the
//! UDP socket from the task that wrote, without a detour through the driver. The driver is woken only for what it alone
//! can do: wait for the socket, and for the time.
//!
//! Tasks are woken, and wakers dropped, only after the lock is free: both may run code that takes it.

use crate::clock::Clock;
use crate::foreign::Outlet;
use crate::outgoing::{Outgoing, Sending, Wire};
use crate::udp::Udp;
use crate::way::Way;
use cede_units::Instant;
use cede_utp::{Endpoint, Event, Handle};
use std::sync::PoisonError;
#[cfg(not(test))]
use std::sync::{Mutex, MutexGuard};
// The crate's own tests run this under a scheduler that tries orders: see `model.rs`.
#[cfg(test)]
use shuttle::sync::{Mutex, MutexGuard};
use std::task::{Context, Waker};

/// Batches that leave before what has arrived is looked at again: the more at once, the more a receiver with the default
/// buffer of 208 KiB loses where the controller heeds losses alone.
const BATCHES_PER_TURN: usize = 2;
/// Tasks that wait for streams of peers; with more, all are asked whether they still do.
const MAX_ACCEPTORS: usize = 64;

pub(crate) struct Shared<W = Udp> {
    pub udp: W,
    pub clock: Clock,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub endpoint: Endpoint<Way>,
    pub outgoing: Outgoing,
    pub foreign: Outlet,
    pub received_datagrams: u64,
    pub receive_calls: u64,
    pub receive_errors: u64,
    pub complaints_heeded: u64,
    pub complaints_ignored: u64,
    /// Who waits for news of a stream, by the place of its connection. There are many, and most of them idle: a table
    /// without keys takes half of what a map takes.
    waiting: Vec<Waiting>,
    /// Streams that the application holds.
    held: usize,
    acceptors: Vec<Waker>,
    driver: Driver,
    /// To be woken once the lock is free.
    woken: Vec<Waker>,
    /// The socket's owner is still there.
    pub is_held: bool,
}

/// Who waits for news of one stream.
#[derive(Default)]
struct Waiting {
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What others know of the driver.
#[derive(Default)]
struct Driver {
    /// The instant that it will wait for.
    until: Instant,
    /// It will wait until the system takes datagrams again.
    until_writable: bool,
    /// It is to look again before it sleeps, or to wake up.
    called: bool,
    waker: Option<Waker>,
    /// It has ended, and nothing will happen any more.
    gone: bool,
}

/// What the driver should do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Go on: there is more to send.
    Continue,
    /// Wait for the socket, to read or, where `blocked`, to write, or until the deadline.
    Wait { deadline: Instant, blocked: bool },
    /// Nobody needs it any more.
    End,
}

impl<W: Wire> Shared<W> {
    pub fn new(udp: W, endpoint: Endpoint<Way>) -> Self {
        let state = State {
            endpoint,
            outgoing: Outgoing::default(),
            foreign: Outlet::default(),
            received_datagrams: 0,
            receive_calls: 0,
            receive_errors: 0,
            complaints_heeded: 0,
            complaints_ignored: 0,
            waiting: Vec::new(),
            held: 0,
            acceptors: Vec::new(),
            driver: Driver::default(),
            woken: Vec::new(),
            is_held: true,
        };
        Self { udp, clock: Clock::new(), state: Mutex::new(state) }
    }

    /// The state is sound between any two calls of the endpoint, so a panic elsewhere under the lock does not taint it.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something, and lets out what it causes.
    pub fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        self.settle(state);
        result
    }

    /// After a change by anyone but the driver: lets out what it causes, and leaves.
    pub fn settle(&self, mut state: MutexGuard<'_, State>) {
        let next = state.let_out(self);
        let driver = &state.driver;
        let is_known = match next {
            Next::Wait { blocked: true, .. } => driver.until_writable,
            Next::Wait { deadline, blocked: false } => driver.until <= deadline,
            Next::Continue | Next::End => false,
        };
        if !is_known {
            state.call_driver();
        }
        leave(state);
    }
}

impl State {
    /// Sends what the endpoint wants sent, within bounds, and tells its news.
    pub fn let_out<W: Wire>(&mut self, shared: &Shared<W>) -> Next {
        let mut next = Next::Continue;
        for _ in 0..BATCHES_PER_TURN {
            let now = shared.clock.now();
            match self.outgoing.send_batch(now, &mut self.endpoint, &shared.udp) {
                Sending::Done => {}
                sending => {
                    let deadline = self.endpoint.poll_timeout().unwrap_or(Instant::NEVER);
                    next = Next::Wait { deadline, blocked: sending == Sending::Blocked };
                    break;
                }
            }
        }
        self.tell_news();
        self.offer_incoming();
        if self.is_finished() { Next::End } else { next }
    }

    fn is_finished(&self) -> bool {
        !self.is_held && self.held == 0 && self.endpoint.is_empty() && self.outgoing.is_empty()
    }

    fn tell_news(&mut self) {
        while let Some((handle, event)) = self.endpoint.poll_event() {
            let Some(waiting) = self.waiting.get_mut(handle.index() as usize) else { continue };
            let (reads, writes) = match event {
                Event::Readable | Event::PeerFinished => (true, false),
                Event::Writable | Event::Connected => (false, true),
                Event::Closed | Event::Failed(_) => (true, true),
            };
            self.woken.extend(waiting.reader.take_if(|_| reads));
            self.woken.extend(waiting.writer.take_if(|_| writes));
        }
    }

    /// Wakes who waits for a connection that a peer has opened. It stays with the endpoint until it is asked for: by then
    /// it may be one of too many, and have to prove itself first.
    fn offer_incoming(&mut self) {
        if !self.acceptors.is_empty() && self.endpoint.has_incoming() {
            self.woken.append(&mut self.acceptors);
        }
    }

    /// The next connection that a peer has opened; where there is none, the task will be woken.
    pub fn take_incoming(&mut self, cx: &Context<'_>) -> Option<Handle> {
        let taken = self.endpoint.accept();
        if taken.is_none() {
            self.wait_to_accept(cx);
        }
        taken
    }

    fn wait_to_accept(&mut self, cx: &Context<'_>) {
        if self.acceptors.iter().any(|other| other.will_wake(cx.waker())) {
            return;
        }
        // Attempts that were given up leave their wakers: those that are still of use come back when woken.
        if self.acceptors.len() >= MAX_ACCEPTORS {
            self.woken.append(&mut self.acceptors);
        }
        self.acceptors.push(cx.waker().clone());
    }

    /// The owner is gone: peers get no more streams, and those that nobody took up are reset.
    pub fn stop_accepting(&mut self) {
        self.is_held = false;
        self.endpoint.stop_listening();
        while let Some(handle) = self.endpoint.accept() {
            if let Some(connection) = self.endpoint.connection_mut(handle) {
                connection.abort();
            }
            self.endpoint.release(handle);
        }
    }

    /// Takes a stream into the books, once for each [`State::release`].
    pub fn hold(&mut self, handle: Handle) {
        self.held += 1;
        if self.waiting.len() <= handle.index() as usize {
            self.waiting.resize_with(handle.index() as usize + 1, Waiting::default);
        }
    }

    /// Strikes a stream out; its connection goes on by itself until it has ended in good order.
    pub fn release(&mut self, handle: Handle) {
        self.held -= 1;
        let waiting = std::mem::take(&mut self.waiting[handle.index() as usize]);
        self.woken.extend(waiting.reader.into_iter().chain(waiting.writer));
        self.endpoint.release(handle);
    }

    /// Registers who reads a stream, and returns who did before, to be dropped once the lock is free.
    #[must_use]
    pub fn wait_to_read(&mut self, handle: Handle, cx: &Context<'_>) -> Option<Waker> {
        self.waiting.get_mut(handle.index() as usize)?.reader.replace(cx.waker().clone())
    }

    /// As [`State::wait_to_read`], for who writes.
    #[must_use]
    pub fn wait_to_write(&mut self, handle: Handle, cx: &Context<'_>) -> Option<Waker> {
        self.waiting.get_mut(handle.index() as usize)?.writer.replace(cx.waker().clone())
    }

    /// The driver's turn has come to this.
    pub fn driver_will(&mut self, next: Next) {
        let (until, until_writable) = match next {
            Next::Wait { deadline, blocked } => (deadline, blocked),
            Next::Continue | Next::End => (Instant::ZERO, false),
        };
        self.driver = Driver { until, until_writable, ..Driver::default() };
    }

    /// True where the driver was called since its turn; else this task will be woken when it is.
    pub fn is_driver_called(&mut self, cx: &Context<'_>) -> bool {
        if !self.driver.called {
            self.driver.waker = Some(cx.waker().clone());
        }
        self.driver.called
    }

    /// The driver will come no later than the endpoint needs it.
    #[cfg(test)]
    pub fn is_deadline_known(&self) -> bool {
        self.driver.until <= self.endpoint.poll_timeout().unwrap_or(Instant::NEVER)
    }

    /// Nothing moves any more; whoever waits learns it.
    pub fn driver_ends(&mut self) {
        self.driver.gone = true;
        self.foreign.close();
        self.woken.append(&mut self.acceptors);
        for waiting in &mut self.waiting {
            self.woken.extend(waiting.reader.take().into_iter().chain(waiting.writer.take()));
        }
    }

    pub fn is_driver_gone(&self) -> bool {
        self.driver.gone
    }

    fn call_driver(&mut self) {
        self.driver.called = true;
        self.woken.extend(self.driver.waker.take());
    }
}

/// Frees the lock, then wakes whom the news concern.
pub(crate) fn leave(mut state: MutexGuard<'_, State>) {
    let woken = std::mem::take(&mut state.woken);
    drop(state);
    woken.into_iter().for_each(Waker::wake);
}
