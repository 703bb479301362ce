//! A delay line on the way back: the kernel at hand may lack netem, and without propagation every round trip is queue alone.
//!
//! The router sends what comes from the receiver to a TUN device; a thread holds each packet for the delay and gives
//! it back to the router, which now sends it on. Only acknowledgements go that way, so that few packets a second depend on
//! how punctual a thread is, which has real-time priority where it may; how late the latest was is kept.

use super::namespaces::Namespaces;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Ends with its owner.
pub(crate) struct DelayLine {
    stop: Arc<AtomicBool>,
    latest_ns: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl DelayLine {
    /// How much later than it should the latest packet left.
    pub fn latest(&self) -> Duration {
        Duration::from_nanos(self.latest_ns.load(Ordering::Relaxed))
    }
}

impl Drop for DelayLine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{Arc, DelayLine, Duration, Namespaces, io};
    use crate::priority::raise;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::sync::atomic::Ordering;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
    use std::thread;
    use std::time::Instant;
    use tun_rs::{DeviceBuilder, SyncDevice};

    const PORT: &str = "delay0";
    /// How often a thread that waits looks whether it should stop.
    const LOOK: Duration = Duration::from_millis(100);
    const MAX_PACKET_BYTES: usize = 65_536;

    type Held = (Instant, Vec<u8>);

    impl DelayLine {
        /// Delays what travels from the receiver to the sender.
        pub fn insert(namespaces: &Namespaces, delay: Duration) -> io::Result<Self> {
            let device = namespaces.enter("r", || DeviceBuilder::new().name(PORT).build_sync())??;
            device.set_nonblocking(true)?;
            namespaces.route_back_through(PORT)?;
            let device = Arc::new(device);
            let mut line = Self { stop: Arc::default(), latest_ns: Arc::default(), threads: Vec::new() };
            let (hold, held) = channel();
            let (stop, reading) = (Arc::clone(&line.stop), Arc::clone(&device));
            let reader = thread::spawn(move || {
                raise();
                while !stop.load(Ordering::Relaxed) && take(&reading, delay, &hold) {}
            });
            let (stop, latest) = (Arc::clone(&line.stop), Arc::clone(&line.latest_ns));
            let writer = thread::spawn(move || {
                raise();
                while !stop.load(Ordering::Relaxed) {
                    let Some(late) = give(&device, &held) else { return };
                    latest.fetch_max(late.as_nanos() as u64, Ordering::Relaxed);
                }
            });
            line.threads.extend([reader, writer]);
            Ok(line)
        }
    }

    /// Takes what has come; false where nobody listens any more.
    fn take(device: &SyncDevice, delay: Duration, hold: &Sender<Held>) -> bool {
        let look = Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as i64 };
        let mut waiting = [PollFd::new(device, PollFlags::IN)];
        if !poll(&mut waiting, Some(&look)).is_ok_and(|ready| ready > 0) {
            return true;
        }
        let mut packet = vec![0; MAX_PACKET_BYTES];
        while let Ok(bytes) = device.recv(&mut packet) {
            if hold.send((Instant::now() + delay, packet[..bytes].to_vec())).is_err() {
                return false;
            }
        }
        true
    }

    /// Gives the next packet on when its time has come, and says how late that was; none where no more will come.
    fn give(device: &SyncDevice, held: &Receiver<Held>) -> Option<Duration> {
        let (due, packet) = match held.recv_timeout(LOOK) {
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout) => return Some(Duration::ZERO),
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // A device that is full or gone drops, as a wire does.
        let _ = device.send(&packet);
        Some(due.elapsed())
    }
}

#[cfg(not(target_os = "linux"))]
impl DelayLine {
    /// There is none here.
    pub fn insert(_: &Namespaces, _: Duration) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::NotFound, "TUN devices are used on Linux only"))
    }
}
