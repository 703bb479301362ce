//! The state that driver and streams share, under a scheduler that tries orders (`shuttle`).
//!
//! Everything is the real thing (lock, endpoint, batches, wakers, streams' reading and writing) but the UDP socket, which
//! is a queue here, and the waiting for time: nothing is lost on this wire, so no deadline is ever needed. What goes wrong
//! in some order shows as a deadlock (somebody waits whom nobody will wake), or as a driver that would sleep past a
//! deadline.

use crate::outgoing::Wire;
use crate::shared::{Next, Shared, leave};
use crate::stream::Core;
use crate::way::Way;
use cede_cc::{Params, registry};
use cede_units::Stream;
use cede_utp::{Config, Endpoint, Limits, Payload};
use shuttle::sync::Mutex;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, Waker};
use tokio::io::ReadBuf;

const ALICE: u16 = 1;
const BOB: u16 = 2;
/// More than two packets of the first window, so that acknowledgements are waited for.
const MESSAGE_BYTES: usize = 3000;
/// Orders that are tried per test.
const ORDERS: usize = 2000;

fn addr(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// What has arrived for one of the two, and who waits for it.
#[derive(Default)]
struct Queue {
    datagrams: VecDeque<Vec<u8>>,
    reader: Option<Waker>,
    /// The wire has been taken down.
    ended: bool,
}

/// The wire as one of the two sees it.
#[derive(Clone)]
struct Model {
    here: Arc<Mutex<Queue>>,
    there: Arc<Mutex<Queue>>,
}

impl Wire for Model {
    fn max_segments(&self) -> usize {
        8
    }

    fn send(&self, _: Way, contents: &[u8], segment: usize) -> io::Result<()> {
        let mut queue = self.there.lock().unwrap();
        queue.datagrams.extend(contents.chunks(segment).map(<[u8]>::to_vec));
        let reader = queue.reader.take();
        drop(queue);
        reader.into_iter().for_each(Waker::wake);
        Ok(())
    }

    fn send_gathered(&self, _: Way, _: &[IoSlice<'_>], _: Option<u16>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn let_fragment(&self, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn end(queue: &Mutex<Queue>) {
    let mut queue = queue.lock().unwrap();
    queue.ended = true;
    let reader = queue.reader.take();
    drop(queue);
    reader.into_iter().for_each(Waker::wake);
}

fn shared(seed: u64, wire: Model) -> Arc<Shared<Model>> {
    let mut endpoint = Endpoint::new(Limits::default(), Stream::named(seed, "model"));
    endpoint.listen(config(), Box::new(|path| registry::build("reno", &Params::new(), path).unwrap()));
    Arc::new(Shared::new(wire, endpoint))
}

fn config() -> Config {
    Config { keepalive: None, ..Config::default() }
}

/// The driver's turns, as `driver.rs` has them.
async fn drive(shared: Arc<Shared<Model>>, peer: SocketAddr) {
    loop {
        let arrived = std::mem::take(&mut shared.udp.here.lock().unwrap().datagrams);
        let now = shared.clock.now();
        let mut state = shared.lock();
        for datagram in arrived {
            state.endpoint.handle(now, Way::to(peer), &datagram, Payload::Empty);
        }
        let next = state.let_out(&shared);
        state.driver_will(next);
        leave(state);
        match next {
            Next::Continue => continue,
            Next::End => break,
            Next::Wait { .. } if wait(&shared).await => {}
            Next::Wait { .. } => break,
        }
    }
    let mut state = shared.lock();
    state.driver_ends();
    leave(state);
}

/// Waits for a datagram or a call; false where neither will come any more.
async fn wait(shared: &Shared<Model>) -> bool {
    poll_fn(|cx| {
        let mut state = shared.lock();
        if state.is_driver_called(cx) {
            return Poll::Ready(true);
        }
        assert!(state.is_deadline_known(), "it would sleep past a deadline");
        drop(state);
        let mut queue = shared.udp.here.lock().unwrap();
        if !queue.datagrams.is_empty() {
            return Poll::Ready(true);
        }
        queue.reader = Some(cx.waker().clone());
        if queue.ended { Poll::Ready(false) } else { Poll::Pending }
    })
    .await
}

async fn connect(shared: &Arc<Shared<Model>>) -> Core<Model> {
    let controller = registry::build("reno", &Params::new(), &config().path()).unwrap();
    let now = shared.clock.now();
    let handle = shared.with(|state| {
        let handle = state.endpoint.connect(now, Way::to(addr(BOB)), config(), controller).unwrap();
        state.hold(handle);
        handle
    });
    let core = Core::new(Arc::clone(shared), handle);
    poll_fn(|cx| core.poll_connected(cx)).await.unwrap();
    core
}

/// The next stream that a peer has opened; none once the driver has ended.
async fn accept(shared: &Arc<Shared<Model>>) -> Option<Core<Model>> {
    let handle = poll_fn(|cx| {
        let mut state = shared.lock();
        let taken = state.take_incoming(cx);
        if let Some(handle) = taken {
            state.hold(handle);
        }
        let gone = state.is_driver_gone();
        shared.settle(state);
        if taken.is_some() || gone { Poll::Ready(taken) } else { Poll::Pending }
    })
    .await?;
    Some(Core::new(Arc::clone(shared), handle))
}

async fn write_all(core: &Core<Model>, mut octets: &[u8]) {
    while !octets.is_empty() {
        let n = poll_fn(|cx| core.poll_write(cx, octets)).await.unwrap();
        octets = &octets[n..];
    }
}

/// Reads to the end, or to an error, and returns how much.
async fn read_to_end(core: &Core<Model>) -> io::Result<usize> {
    let mut total = 0;
    loop {
        let mut octets = [0; 1000];
        let mut buffer = ReadBuf::new(&mut octets);
        poll_fn(|cx| core.poll_read(cx, &mut buffer)).await?;
        match buffer.filled().len() {
            0 => return Ok(total),
            n => total += n,
        }
    }
}

/// Both drivers.
type Drivers = [shuttle::thread::JoinHandle<()>; 2];

/// Accepts a stream and reads to its end, or to that of the driver, whichever comes first.
async fn read_until_something_ends(shared: &Arc<Shared<Model>>) {
    let Some(stream) = accept(shared).await else { return };
    if let Err(error) = read_to_end(&stream).await {
        assert_eq!(error.kind(), io::ErrorKind::NotConnected);
        let refused = poll_fn(|cx| stream.poll_write(cx, b"too late")).await;
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::NotConnected);
    }
}

/// Both ends, their drivers running.
fn world() -> (Arc<Shared<Model>>, Arc<Shared<Model>>, Drivers) {
    let queues = [(); 2].map(|()| Arc::new(Mutex::new(Queue::default())));
    let [a, b] = queues;
    let alice = shared(1, Model { here: Arc::clone(&a), there: Arc::clone(&b) });
    let bob = shared(2, Model { here: b, there: a });
    let drivers = [(&alice, BOB), (&bob, ALICE)].map(|(shared, peer)| {
        let shared = Arc::clone(shared);
        shuttle::thread::spawn(move || shuttle::future::block_on(drive(shared, addr(peer))))
    });
    (alice, bob, drivers)
}

#[test]
fn nobody_waits_for_ever_whatever_the_order() {
    shuttle::check_random(
        || {
            let (alice, bob, drivers) = world();
            let serving = shuttle::thread::spawn({
                let bob = Arc::clone(&bob);
                move || {
                    shuttle::future::block_on(async {
                        let stream = accept(&bob).await.unwrap();
                        let heard = read_to_end(&stream).await.unwrap();
                        write_all(&stream, &[2; 10]).await;
                        stream.shutdown().unwrap();
                        (heard, stream)
                    })
                }
            });
            let (answer, stream) = shuttle::future::block_on(async {
                let stream = connect(&alice).await;
                write_all(&stream, &[1; MESSAGE_BYTES]).await;
                stream.shutdown().unwrap();
                (read_to_end(&stream).await.unwrap(), stream)
            });
            let (heard, theirs) = serving.join().unwrap();
            assert_eq!((heard, answer), (MESSAGE_BYTES, 10));
            drop((stream, theirs));
            end(&alice.udp.here);
            end(&bob.udp.here);
            drivers.into_iter().for_each(|driver| driver.join().unwrap());
        },
        ORDERS,
    );
}

#[test]
fn a_stream_whose_driver_ends_learns_it_whenever_that_is() {
    shuttle::check_random(
        || {
            let (alice, bob, drivers) = world();
            let reading = shuttle::thread::spawn({
                let bob = Arc::clone(&bob);
                move || {
                    shuttle::future::block_on(read_until_something_ends(&bob));
                }
            });
            let stream = shuttle::future::block_on(async {
                let stream = connect(&alice).await;
                write_all(&stream, b"hello").await;
                stream
            });
            let ending = shuttle::thread::spawn({
                let queue = Arc::clone(&bob.udp.here);
                move || end(&queue)
            });
            let dropping = shuttle::thread::spawn(move || drop(stream));
            reading.join().unwrap();
            ending.join().unwrap();
            dropping.join().unwrap();
            end(&alice.udp.here);
            drivers.into_iter().for_each(|driver| driver.join().unwrap());
        },
        ORDERS,
    );
}
