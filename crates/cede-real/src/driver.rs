//! The one task per socket: it reads, keeps the time, and sends what others could not.

use crate::arrival::ArrivalClock;
use crate::inbox::{Arrival, Inbox};
use crate::shared::{Next, Shared, State, leave};
use crate::udp::Fill;
use cede_units::Instant;
use cede_utp::Verdict;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::Sleep;

/// Fills of the inbox before what they cause is sent.
const FILLS_PER_TURN: usize = 4;
/// Turns before other tasks of the runtime get one. To yield costs it a look at all of its sockets.
const TURNS_IN_A_ROW: usize = 16;
/// Errors of the socket in a row after which it is taken for lost.
const MAX_RECEIVE_ERRORS: u32 = 100;

/// Drives a socket until nobody needs it any more.
pub(crate) async fn run(shared: Arc<Shared>) {
    let _gone = Gone(Arc::clone(&shared));
    let mut driver = Driver::new(shared);
    let mut sleep = Box::pin(tokio::time::sleep_until(tokio::time::Instant::now()));
    let mut turns = 0;
    loop {
        match driver.turn() {
            Next::Continue if turns < TURNS_IN_A_ROW => {
                turns += 1;
                continue;
            }
            Next::Continue => tokio::task::yield_now().await,
            Next::Wait { deadline, blocked } => driver.wait(deadline, blocked, &mut sleep).await,
            Next::End => return,
        }
        turns = 0;
    }
}

/// Whatever ends the driver (its work, its runtime or a panic), those who wait learn it.
struct Gone(Arc<Shared>);

impl Drop for Gone {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.driver_ends();
        leave(state);
    }
}

struct Driver {
    shared: Arc<Shared>,
    inbox: Inbox,
    arrivals: ArrivalClock,
    errors: u32,
    /// The system is to be asked for datagrams although the runtime knows of none.
    asks: bool,
    /// Ends when somebody has said something of what we sent.
    alarm: Pin<Box<dyn Future<Output = ()> + Send>>,
}

fn alarm(shared: &Arc<Shared>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let shared = Arc::clone(shared);
    Box::pin(async move { shared.udp.complaints_wait().await })
}

impl Driver {
    fn new(shared: Arc<Shared>) -> Self {
        let (inbox, arrivals) = (Inbox::new(), ArrivalClock::default());
        Self { alarm: alarm(&shared), shared, inbox, arrivals, errors: 0, asks: false }
    }

    /// Takes in what has arrived and what is due, and lets out what that causes: one answer to all of it.
    fn turn(&mut self) -> Next {
        let reading = self.read();
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if self.errors > MAX_RECEIVE_ERRORS {
            return Next::End;
        }
        state.endpoint.handle_timeout(shared.clock.now());
        let next = match (state.let_out(&shared), reading) {
            (Next::Wait { .. }, Fill::More) => Next::Continue,
            (next, _) => next,
        };
        state.driver_will(next);
        leave(state);
        next
    }

    fn read(&mut self) -> Fill {
        for _ in 0..FILLS_PER_TURN {
            let asks = std::mem::take(&mut self.asks);
            match self.inbox.fill(&self.shared.udp, asks) {
                Ok(fill) => {
                    self.take_in();
                    if fill == Fill::Dry {
                        return fill;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.errors = 0;
                    return Fill::Dry;
                }
                // Some systems report here what became of datagrams sent earlier.
                Err(_) => self.on_receive_error(),
            }
        }
        Fill::More
    }

    /// An error may be somebody's complaint, which is no fault of the socket. It has kept us from reading what is there,
    /// for which the runtime will not call again.
    fn on_receive_error(&mut self) {
        let complaints = self.heed_complaints();
        self.errors = if complaints > 0 { 0 } else { self.errors + 1 };
        self.shared.lock().receive_errors += 1;
        self.asks = true;
    }

    /// Hears what was said of our datagrams, and returns how much.
    fn heed_complaints(&mut self) -> usize {
        let complaints = self.shared.udp.complaints();
        if !complaints.is_empty() {
            let now = self.shared.clock.now();
            let mut state = self.shared.lock();
            complaints.iter().for_each(|complaint| state.heed(now, complaint));
        }
        complaints.len()
    }

    fn take_in(&mut self) {
        self.errors = 0;
        let now = self.shared.clock.now();
        self.arrivals.read(now);
        let mut state = self.shared.lock();
        state.receive_calls += 1;
        for arrival in self.inbox.arrivals() {
            let arrived_at = self.arrivals.arrival(arrival.stamp);
            take_datagram(&mut state, now, arrived_at, &arrival);
        }
    }

    /// Sleeps until the socket, the time or another task has something to do.
    async fn wait(&mut self, deadline: Instant, blocked: bool, sleep: &mut Pin<Box<Sleep>>) {
        if deadline != Instant::NEVER {
            let at = self.shared.clock.to_runtime(deadline);
            // A timer that fires early does no harm, and setting it costs: it is moved only where it would be late.
            if at < sleep.deadline() || sleep.is_elapsed() {
                sleep.as_mut().reset(at);
            }
        }
        poll_fn(|cx| {
            let called = self.shared.lock().is_driver_called(cx);
            let ready = called || self.is_alarmed(cx) || self.is_time(cx, blocked, deadline, sleep);
            if ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn is_alarmed(&mut self, cx: &mut Context<'_>) -> bool {
        let alarmed = self.alarm.as_mut().poll(cx).is_ready();
        if alarmed {
            self.heed_complaints();
            self.asks = true;
            self.alarm = alarm(&self.shared);
        }
        alarmed
    }

    fn is_time(
        &self,
        cx: &mut Context<'_>,
        blocked: bool,
        deadline: Instant,
        sleep: &mut Pin<Box<Sleep>>,
    ) -> bool {
        self.shared.udp.poll_readable(cx).is_ready()
            || (blocked && self.shared.udp.poll_writable(cx).is_ready())
            || (deadline != Instant::NEVER && sleep.as_mut().poll(cx).is_ready())
    }
}

fn take_datagram(state: &mut State, now: Instant, arrived_at: Instant, arrival: &Arrival<'_>) {
    state.received_datagrams += 1;
    let (head, payload) = arrival.split();
    let verdict = state.endpoint.handle_stamped(now, arrived_at, arrival.way, head, payload);
    if verdict == Verdict::Unrecognised {
        state.foreign.offer(arrival.way.peer, arrival.octets);
    }
}
