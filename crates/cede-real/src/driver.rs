//! The one task per socket: it reads, keeps the time, and sends what others could not.

use crate::arrival::ArrivalClock;
use crate::inbox::{Arrival, Fill, Inbox};
use crate::shared::{Next, Shared, State, leave};
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
    let mut driver = Driver { shared, inbox: Inbox::new(), arrivals: ArrivalClock::default(), errors: 0 };
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
}

impl Driver {
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
            match self.inbox.fill(&self.shared.udp, false) {
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
                Err(_) => {
                    self.errors += 1;
                    self.shared.lock().receive_errors += 1;
                }
            }
        }
        Fill::More
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
        state.offer_incoming();
    }

    /// Sleeps until the socket, the time or another task has something to do.
    async fn wait(&self, deadline: Instant, blocked: bool, sleep: &mut Pin<Box<Sleep>>) {
        if deadline != Instant::NEVER {
            let at = self.shared.clock.to_runtime(deadline);
            // A timer that fires early does no harm, and setting it costs: it is moved only where it would be late.
            if at < sleep.deadline() || sleep.is_elapsed() {
                sleep.as_mut().reset(at);
            }
        }
        poll_fn(|cx| {
            let called = self.shared.lock().is_driver_called(cx);
            if called || self.is_time(cx, blocked, deadline, sleep) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
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
    let verdict = state.endpoint.handle_stamped(now, arrived_at, arrival.peer, head, payload);
    if verdict == Verdict::Unrecognised {
        state.foreign.offer(arrival.peer, arrival.octets);
    }
}
