//! One live interface, or several that are watched together: a router's, say.
//!
//! Each has a ring of its own, which is handed over block by block, so that what one showed within some 50 ms comes before what another one showed
//! meanwhile. Packets of several wait until those of all are there, and go on in the order of time, each with its interface and whether it leaves by
//! that: so the meter finds what passes two of them, and counts its way out.
//!
//! **What it leaves out.** Interfaces that come later. More than [`SEVERAL_MAX`].

use super::tap::{self, Heard, Tap};
use crate::failure::Failure;
use crate::meter::lots::Sorter;
use cede_meter::Meter;
use cede_wire::pcap::Record;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// All that are up.
pub const ANY: &str = "any";
/// Each takes memory of the kernel's.
const SEVERAL_MAX: usize = 32;
/// A block is handed over 50 ms after its first packet came, and read soon after that.
const HELD: Duration = Duration::from_millis(200);

/// Interfaces that are watched.
pub struct Taps {
    taps: Vec<Numbered>,
    /// What was read of several and may still be preceded.
    sorter: Sorter,
    /// When the last packet came that was handed over, in microseconds since 1970.
    last_us: u64,
    /// What came later does not count, in nanoseconds since 1970.
    until_ns: u64,
    /// Those that are gone, and what they lost.
    gone: Vec<String>,
    lost: u64,
}

/// By its number the meter tells what passes several.
struct Numbered {
    number: u32,
    tap: Tap,
}

impl Taps {
    /// Opens interfaces by their names.
    pub fn open(names: &[String]) -> Result<Self, Failure> {
        let meant = |name: &String| if name == ANY { tap::all_up() } else { vec![name.clone()] };
        let mut wanted: Vec<String> = names.iter().flat_map(meant).collect();
        wanted.sort();
        wanted.dedup();
        match wanted.len() {
            0 => return Err(Failure::Failed("no interface is up but the loopback".to_owned())),
            1..=SEVERAL_MAX => {}
            many => {
                let text =
                    format!("{many} interfaces are more than {SEVERAL_MAX}; name with -i those that count");
                return Err(Failure::Usage(text));
            }
        }
        let count = wanted.len();
        let open = |(number, name): (u32, &String)| Ok(Numbered { number, tap: Tap::open(name, count)? });
        let taps = (0..).zip(&wanted).map(open).collect::<Result<_, Failure>>()?;
        Ok(Self {
            taps,
            sorter: Sorter::default(),
            last_us: 0,
            until_ns: u64::MAX,
            gone: Vec::new(),
            lost: 0,
        })
    }

    /// Their names, as they were when they were opened.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.taps.iter().map(|one| one.tap.name()).collect();
        names.join(" ")
    }

    /// Waits for packets, no longer than this, and hands them to the meter. It fails where no interface is left.
    pub fn read(&mut self, meter: &mut Meter, timeout: Duration) -> Result<(), Failure> {
        let Self { taps, sorter, last_us, until_ns, .. } = self;
        let mut hand = |record: &Record<'_>| hand_over(record, *until_ns, last_us, meter);
        if let ([only], true) = (&mut taps[..], sorter.is_empty()) {
            return only.tap.read(timeout, None, &mut hand);
        }
        wait(taps, timeout);
        let (mut gone, mut settled_ns) = (Vec::new(), since_1970().saturating_sub(HELD).as_nanos() as u64);
        for (at, one) in taps.iter_mut().enumerate() {
            let mut last_ns = None;
            let mut take = |record: &Record<'_>| {
                last_ns = record.time_ns.max(last_ns);
                sorter.take(record, &mut hand);
            };
            if let Err(why) = one.tap.read(Duration::ZERO, Some(one.number), &mut take) {
                gone.push((at, why));
            }
            // Behind a block there may be another one, however old it is: the rings were left for a picture, say.
            settled_ns = settled_ns.min(last_ns.unwrap_or(u64::MAX));
        }
        sorter.hand_over_until(settled_ns, &mut hand);
        gone.into_iter().rev().try_for_each(|(at, why)| self.leave(at, why))
    }

    /// One is gone: the others are watched on, and it is said to be down.
    fn leave(&mut self, at: usize, why: Failure) -> Result<(), Failure> {
        let Numbered { tap, .. } = self.taps.remove(at);
        self.lost += tap.lost();
        self.gone.push(tap.name().to_owned());
        if self.taps.is_empty() { Err(why) } else { Ok(()) }
    }

    /// Hands over what came until now and still waits, with the kernel, too: there a block that is not full is left until it is some 50 ms old.
    pub fn end(&mut self, meter: &mut Meter) {
        self.until_ns = since_1970().as_nanos() as u64;
        let began = Instant::now();
        while let Some(left) = HELD.checked_sub(began.elapsed()) {
            if self.read(meter, left).is_err() {
                break;
            }
        }
        let Self { sorter, last_us, until_ns, .. } = self;
        sorter.end(&mut |record| hand_over(record, *until_ns, last_us, meter));
    }

    /// What there is to say beside packets.
    pub fn heard(&self) -> Heard {
        let lost = self.lost + self.taps.iter().map(|one| one.tap.lost()).sum::<u64>();
        let down = self.taps.iter().filter(|one| !one.tap.is_up()).map(|one| one.tap.name());
        let down: Vec<&str> = self.gone.iter().map(String::as_str).chain(down).collect();
        Heard { last_us: self.last_us, lost, down: down.join(" ") }
    }
}

/// Hands a packet to the meter, unless it came too late to count.
fn hand_over(record: &Record<'_>, until_ns: u64, last_us: &mut u64, meter: &mut Meter) {
    let time_ns = record.time_ns.unwrap_or(0);
    if time_ns <= until_ns {
        *last_us = time_ns / 1000;
        meter.record(record);
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Waits until one of several has something, or has ended. What cannot be waited for is looked at.
fn wait(taps: &[Numbered], timeout: Duration) {
    let mut fds: Vec<PollFd<'_>> =
        taps.iter().map(|one| PollFd::new(&one.tap, PollFlags::IN | PollFlags::ERR)).collect();
    let timeout = Timespec::try_from(timeout).ok();
    let _ = poll(&mut fds, timeout.as_ref());
}
