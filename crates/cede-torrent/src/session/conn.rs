//! One connection's task: reads into the engine, and writes what that has left for it.

use super::outgoing::Outgoing;
use super::shared::Shared;
use super::state::Inner;
use crate::link::Link;
use cede_bt::engine::ConnId;
use cede_bt::wire::PIECE_HEADER_BYTES;
use cede_wire::Payload;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// What waits to be written at most: eight blocks with their heads.
const OUT_BYTES: usize = 8 * ((16 << 10) + PIECE_HEADER_BYTES as usize);
/// What is read at once from a connection that brings much.
const READ_BYTES: usize = 256 << 10;
/// And from one that does not.
const IDLE_READ_BYTES: usize = 4 << 10;
/// What is more than enough to be worth a buffer that is kept for another use.
const SMALL_READ_BYTES: usize = 16 << 10;
/// A new buffer is so many times what the last read brought.
const GROWTH: usize = 4;
/// Buffers that are kept for another use.
const MAX_BUFFERS: usize = 32;
/// Reads at a stretch before others have their turn: so many, or until they have taken so long.
const READS_PER_TURN: usize = 8;
const TURN: Duration = Duration::from_millis(4);
/// Where what one read has brought takes longer than that to be heard, the next one brings less: a read of messages of five octets, each of which
/// has something thought over anew, takes far longer than one of blocks.
const HEARING_MOST: Duration = Duration::from_millis(2);
/// A peer that takes nothing does not keep a closed connection longer.
const CLOSING_PATIENCE: Duration = Duration::from_secs(5);
/// Nor one to whom something is on its way when the session ends: one that is slow has it by then, one that is gone never.
const LAST_PATIENCE: Duration = Duration::from_secs(20);
/// Who has so few blocks to send, and no more, may wait for an acknowledgement before it sends the rest of one.
const FEW_REQUESTS: usize = 4;
/// Where nothing more can be written, it is looked so often whether anything has been heard of the peer since.
const HEARING_EVERY: Duration = Duration::from_secs(5);
/// Reading is tried again so long after a rate limit has stopped it.
const LIMITED_PAUSE: Duration = Duration::from_millis(20);
/// And so long after it has stopped it twice without a read between: others have read what there was.
const SECOND_PAUSE: Duration = Duration::from_millis(5);

struct Task {
    inner: Rc<Inner>,
    shared: Rc<RefCell<Shared>>,
    id: ConnId,
    link: Link,
    /// Read into; whole again once the disk has let go of it.
    buffer: Arc<[u8]>,
    /// What the last read brought.
    brought: usize,
    /// What is read at once at most, by how long it took to hear what was read before.
    at_once: usize,
    /// What is being written, enciphered where it has to be.
    writing: Outgoing,
    written: usize,
    /// Until reading is tried again.
    pause: Option<Pin<Box<Sleep>>>,
    /// Nothing has been read since a pause was begun.
    has_paused: bool,
    /// Until a connection that is to end is given up.
    patience: Option<Pin<Box<Sleep>>>,
    was_heard: bool,
    /// Content was written to it.
    was_given: bool,
    /// Something was read, and nothing written since.
    is_unanswered: bool,
    /// Until it is looked whether anything has been heard of the peer, and how many packets had been before.
    hearing: Option<(Pin<Box<Sleep>>, u64)>,
}

/// Runs a connection to its end; whether anything was heard.
pub(super) async fn run(inner: Rc<Inner>, shared: Rc<RefCell<Shared>>, mut link: Link) -> bool {
    if let Some(yielding) = &inner.choices.tcp_yields {
        link.stream = link.stream.yielding(yielding);
    }
    let _counted = inner.count_link();
    let (id, address) = (shared.borrow().id, shared.borrow().address);
    let origin = inner.state.borrow().origin();
    shared.borrow_mut().from = link.stream.from(address, origin);
    let mut task = Task::new(inner, (id, shared), link);
    {
        let mut state = task.inner.state.borrow_mut();
        state.engine.set_room(id, OUT_BYTES as u32);
        task.inner.pump(&mut state);
    }
    let _ = poll_fn(|cx| task.poll(cx)).await;
    task.inner.part_from(&mut task.inner.state.borrow_mut(), id);
    let closing = poll_fn(|cx| task.link.stream.poll_shutdown(cx));
    let _ = tokio::time::timeout(CLOSING_PATIENCE, closing).await;
    let is_left = task.shared.borrow().is_closing && task.inner.state.borrow().left.is_some();
    if is_left && task.was_given {
        see_off(&mut task.link).await;
    }
    task.was_heard
}

/// Waits for a peer to hang up, which it does once it has all that was sent. What it says meanwhile is read and dropped: the system takes
/// back what is on its way over a connection that is closed with something unread, and uTP ends with the process.
async fn see_off(link: &mut Link) {
    let mut said = vec![0; IDLE_READ_BYTES];
    let hanging_up = async { while link.receive(&mut said).await.is_ok_and(|n| n > 0) {} };
    let _ = tokio::time::timeout(LAST_PATIENCE, hanging_up).await;
}

impl Task {
    fn new(inner: Rc<Inner>, (id, shared): (ConnId, Rc<RefCell<Shared>>), link: Link) -> Self {
        Self {
            inner,
            shared,
            id,
            link,
            buffer: Arc::from(vec![0; IDLE_READ_BYTES]),
            brought: 0,
            at_once: READ_BYTES,
            writing: Outgoing::default(),
            written: 0,
            pause: None,
            has_paused: false,
            patience: None,
            was_heard: false,
            was_given: false,
            is_unanswered: false,
            hearing: None,
        }
    }

    /// Ready when the connection is over. What several reads brought goes to the disk together.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = self.poll_turn(cx);
        Inner::store(&mut self.inner.state.borrow_mut());
        polled
    }

    /// What several reads cause leaves together: each write costs a call here, and wakes whoever is at the other end.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What we leave for ourselves below is seen below.
        self.shared.borrow_mut().waker = None;
        if self.shared.borrow().is_lost {
            return Poll::Ready(Err(io::ErrorKind::NetworkDown.into()));
        }
        let is_drained = self.poll_write(cx)?;
        if self.shared.borrow().is_closing {
            return self.poll_closing(cx, is_drained);
        }
        let began = Instant::now();
        for _ in 0..READS_PER_TURN {
            match self.poll_read(cx)? {
                Poll::Ready(true) if self.shared.borrow().is_closing || began.elapsed() > TURN => break,
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(Ok(())),
                Poll::Pending => return self.poll_rest(cx),
            }
        }
        wake_after_others(cx);
        Poll::Pending
    }

    /// Nothing more is there to read: what that has caused leaves, and the task rests.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let is_drained = self.poll_write(cx)?;
        if self.shared.borrow().is_closing {
            return self.poll_closing(cx, is_drained);
        }
        if std::mem::take(&mut self.is_unanswered) {
            self.acknowledge();
        }
        if !is_drained || self.hearing.is_some() {
            self.poll_hearing(cx, is_drained);
        }
        self.shared.borrow_mut().waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The engine hears whether the peer is heard, as long as what is written goes nowhere. Over TCP the system says when somebody is gone.
    fn poll_hearing(&mut self, cx: &mut Context<'_>, is_drained: bool) {
        if self.hearing.is_none() {
            let Some((packets, _)) = self.link.stream.heard() else { return };
            self.hearing = Some((Box::pin(tokio::time::sleep(HEARING_EVERY)), packets));
        }
        let Some((sleep, before)) = &mut self.hearing else { return };
        if sleep.as_mut().poll(cx).is_pending() {
            return;
        }
        let heard = self.link.stream.heard();
        let is_unheard =
            !is_drained && heard.is_some_and(|(packets, is_awaited)| is_awaited && packets == *before);
        self.inner.state.borrow_mut().engine.set_unheard(self.id, is_unheard);
        self.hearing = None;
        if !is_drained {
            cx.waker().wake_by_ref();
        }
    }

    /// Nothing that was written carries the acknowledgement of what was read, and the system delays it by 40 ms. libtorrent writes the
    /// head of a block and then its content, which Nagle's algorithm holds back until the head is acknowledged.
    fn acknowledge(&self) {
        let owed = self.inner.state.borrow().engine.owed(self.id);
        if (1..=FEW_REQUESTS).contains(&owed) {
            self.link.stream.acknowledge();
        }
    }

    /// A connection that is to end waits for what it still has to say, but not long.
    fn poll_closing(&mut self, cx: &mut Context<'_>, is_drained: bool) -> Poll<io::Result<()>> {
        let is_left = self.inner.state.borrow().left.is_some();
        let most = if is_left { LAST_PATIENCE } else { CLOSING_PATIENCE };
        let patience = self.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep(most)));
        if is_drained || patience.as_mut().poll(cx).is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Writes what there is; true once nothing is left.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        loop {
            if self.written == self.writing.octets().len() && !self.refill() {
                return Ok(true);
            }
            match self.link.poll_write(cx, &self.writing.octets()[self.written..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(n)) => {
                    self.written += n;
                    self.is_unanswered = false;
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(false),
            }
        }
    }

    /// Takes over what the session has left; false where that is nothing. The engine then hears of the room.
    fn refill(&mut self) -> bool {
        let mut state = self.inner.state.borrow_mut();
        self.written = 0;
        if self.shared.borrow().out.is_empty() {
            // A connection at rest keeps no large buffers.
            self.writing.give_back(&mut state.spare);
            return false;
        }
        self.writing.clear();
        std::mem::swap(&mut self.shared.borrow_mut().out, &mut self.writing);
        self.was_given |= self.writing.has_content();
        if let Err(error) = self.writing.fetch(&self.inner.storage) {
            self.writing.clear();
            self.inner.fail(&mut state, error);
            return false;
        }
        if let Some(cipher) = self.link.outgoing() {
            cipher.apply(self.writing.octets_mut());
        }
        state.engine.set_room(self.id, OUT_BYTES as u32);
        self.inner.pump(&mut state);
        true
    }

    /// Reads once; false at the end of the stream.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<bool>> {
        let Some(allowance) = self.poll_allowance(cx) else { return Ok(Poll::Pending) };
        if Arc::get_mut(&mut self.buffer).is_none() {
            self.change_buffer();
        }
        let len = self.buffer.len().min(allowance).min(self.at_once);
        let Some(space) = Arc::get_mut(&mut self.buffer) else { return Ok(Poll::Pending) };
        let n = match self.link.poll_read(cx, &mut space[..len]) {
            Poll::Ready(Ok(n)) => n,
            Poll::Ready(Err(error)) => return Err(error),
            Poll::Pending => return Ok(Poll::Pending),
        };
        if n == 0 {
            return Ok(Poll::Ready(false));
        }
        (self.was_heard, self.is_unanswered, self.brought) = (true, true, n);
        self.has_paused = false;
        self.hear(n);
        if n == self.buffer.len() && n < READ_BYTES {
            self.buffer = Arc::from(vec![0; len_after(n, n)]);
        }
        Ok(Poll::Ready(true))
    }

    /// The engine hears what so many octets say.
    fn hear(&mut self, n: usize) {
        let began = Instant::now();
        let payload = Payload::from_part(&self.buffer, 0, n as u32);
        let mut state = self.inner.state.borrow_mut();
        state.limits.down.borrow_mut().spend(n);
        let now = self.inner.now();
        state.engine.received(now, self.id, payload);
        self.inner.pump(&mut state);
        self.at_once = at_once_after(self.at_once, n, began.elapsed());
    }

    /// How much may be read now; `None` where nothing may, and the task will be woken.
    fn poll_allowance(&mut self, cx: &mut Context<'_>) -> Option<usize> {
        let mut state = self.inner.state.borrow_mut();
        if state.disk.is_busy() {
            state.waiting.push(cx.waker().clone());
            return None;
        }
        let allowance = state.limits.down.borrow_mut().allowance();
        drop(state);
        if allowance > 0 {
            self.pause = None;
            return Some(allowance);
        }
        let mut pause = self.pause.take().unwrap_or_else(|| {
            let has_paused = std::mem::replace(&mut self.has_paused, true);
            Box::pin(tokio::time::sleep(if has_paused { SECOND_PAUSE } else { LIMITED_PAUSE }))
        });
        if pause.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        } else {
            self.pause = Some(pause);
        }
        None
    }

    /// The disk still has parts of the buffer: another takes its place, one that it has let go of where there is one. A new one is
    /// small where reads bring little (a limit, a slow peer), as each keeps all of its buffer until the disk has what it brought.
    fn change_buffer(&mut self) {
        let mut state = self.inner.state.borrow_mut();
        let len = self.buffer.len();
        let is_free = |buffer: &mut Arc<[u8]>| len > IDLE_READ_BYTES && Arc::get_mut(buffer).is_some();
        let mut next = state.buffers.pop_front();
        if !next.as_mut().is_some_and(is_free) {
            state.buffers.extend(next.take());
        }
        let next = next.unwrap_or_else(|| Arc::from(vec![0; len_after(len, self.brought)]));
        let used = std::mem::replace(&mut self.buffer, next);
        if len == READ_BYTES && state.buffers.len() < MAX_BUFFERS {
            state.buffers.push_back(used);
        }
    }
}

/// Wakes the task once all others that are awake have had their turn, and it was looked which others are to be: by itself that is done
/// after 61 turns, in which whoever floods has 128 MB read.
fn wake_after_others(cx: &mut Context<'_>) {
    let _ = pin!(tokio::task::yield_now()).poll(cx);
}

/// How much may be read at once after so many octets of at most as many took so long to be heard.
fn at_once_after(at_once: usize, brought: usize, took: Duration) -> usize {
    if took > HEARING_MOST { (brought / 2).max(IDLE_READ_BYTES) } else { (2 * at_once).min(READ_BYTES) }
}

/// How long a new buffer is that follows on one of a length, into which the last read has brought so much. Those that are not small are
/// all of one length, so that they can be used again.
fn len_after(len: usize, brought: usize) -> usize {
    let wanted = (GROWTH * brought).next_power_of_two();
    let wanted = if wanted > SMALL_READ_BYTES { READ_BYTES } else { wanted };
    wanted.clamp(IDLE_READ_BYTES, if brought == len { READ_BYTES } else { len })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that take a microsecond for each octet, after what takes next to nothing: two milliseconds of them at a time, and then all again.
    #[test]
    fn less_is_read_at_once_where_it_takes_long_to_be_heard() {
        let mut at_once = READ_BYTES;
        let mut hear = |octets: usize, us_per_octet: f64| {
            let brought = octets.min(at_once);
            let took = Duration::from_micros((brought as f64 * us_per_octet) as u64);
            at_once = at_once_after(at_once, brought, took);
            took
        };
        assert!((0..20).all(|_| hear(1 << 30, 0.001) < HEARING_MOST));
        let took: Vec<Duration> = (0..20).map(|_| hear(1 << 30, 0.2)).collect();
        assert!(took[8..].iter().all(|took| *took <= 2 * HEARING_MOST), "{took:?}");
        // However slow, something is read.
        assert!((0..20).all(|_| hear(1 << 30, 1_000.0) > Duration::ZERO));
        (0..20).for_each(|_| assert!(hear(1 << 30, 0.001) < HEARING_MOST));
        assert_eq!(at_once, READ_BYTES);
    }

    /// What reads of one size keep of memory is a few times what they brought, and who brings much is read at once.
    #[test]
    fn buffers_are_as_large_as_reads_need() {
        for (bytes, most) in [
            (1, 4096),
            (700, 6 * 700),
            (1448, 6 * 1448),
            (4096, 6 * 4096),
            (5000, READ_BYTES),
            (40_000, READ_BYTES),
        ] {
            let mut len = READ_BYTES;
            for _ in 0..8 {
                len = len_after(len, bytes.min(len));
            }
            assert!((bytes + 1..=most).contains(&len), "{bytes}: {len}");
        }
        let mut len = IDLE_READ_BYTES;
        for _ in 0..3 {
            len = len_after(len, len);
        }
        assert_eq!(len, READ_BYTES);
    }
}
