//! Running a swarm.

use super::exchange;
use super::host::{Life, SwarmHost, begins_with};
use super::layout::Layout;
use super::meter::SwarmMeter;
use super::model::{Packets, Role, Swarm};
use super::outcome::{PeerOutcome, SwarmOutcome};
use super::sockets::{Sockets, Stack};
use super::tracker::Tracker;
use crate::record::{Capture, RecordError, Scope};
use cede_bt::Geometry;
use cede_bt::engine::Setup;
use cede_net::HostId;
use cede_sim::{TopologyError, World};
use cede_units::{Duration, Instant, Stream};
use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

/// Why a swarm could not be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SwarmError {
    /// The content cannot be cut into such pieces.
    Content,
    /// A group's stack cannot be built.
    Stack(String),
    /// The network does not hang together.
    Topology(TopologyError),
    /// It takes longer than the event queue of so large a network can count.
    TooLong(Instant),
    /// The capture could not be written.
    Capture(String),
}

impl From<RecordError> for SwarmError {
    fn from(error: RecordError) -> Self {
        Self::Capture(error.to_string())
    }
}

impl fmt::Display for SwarmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Content => f.write_str("the content cannot be cut into such pieces"),
            Self::Stack(what) | Self::Capture(what) => f.write_str(what),
            Self::Topology(error) => error.fmt(f),
            Self::TooLong(horizon) => write!(f, "a swarm of this size can be run for {horizon} at most"),
        }
    }
}

impl std::error::Error for SwarmError {}

/// Hears how a swarm proceeds.
pub trait SwarmWatcher {
    /// So many of the leechers are complete at `now`; answers whether to go on.
    fn progress(&mut self, now: Instant, complete: usize, leechers: usize) -> bool {
        let _ = (now, complete, leechers);
        true
    }
}

impl SwarmWatcher for () {}

type SwarmWorld = World<SwarmHost, SwarmMeter>;

/// After so many events the watcher is asked again, also within a simulated second: in a large swarm that takes minutes.
const AT_A_TIME: u64 = 1 << 16;

/// Runs a swarm until every leecher is complete or gone, its time is over, or the watcher has seen enough.
///
/// # Errors
/// [`SwarmError`].
pub fn run(swarm: &Swarm, watcher: &mut dyn SwarmWatcher) -> Result<SwarmOutcome, SwarmError> {
    play(swarm, &Layout::of(swarm), None, watcher)
}

/// The same, with the packets that the swarm's records ask for in `packets.pcapng` in a folder, which is made.
///
/// # Errors
/// [`SwarmError`].
pub fn run_captured(
    swarm: &Swarm,
    folder: &Path,
    watcher: &mut dyn SwarmWatcher,
) -> Result<SwarmOutcome, SwarmError> {
    let layout = Layout::of(swarm);
    let Some(scope) = scope(swarm, &layout) else { return play(swarm, &layout, None, watcher) };
    std::fs::create_dir_all(folder)
        .map_err(|error| SwarmError::Capture(format!("{}: {error}", folder.display())))?;
    let names: Vec<&str> = layout.seats.iter().map(|seat| seat.name.as_str()).collect();
    let comment = format!("swarm {}, seed {}", swarm.name, swarm.seed);
    let capture = Rc::new(RefCell::new(Capture::open(folder, &comment, &names, scope)?));
    let outcome = play(swarm, &layout, Some(&capture), watcher)?;
    capture.borrow_mut().finish()?;
    Ok(outcome)
}

/// The packets that are wanted, if any are.
fn scope(swarm: &Swarm, layout: &Layout) -> Option<Scope> {
    let at = |role| layout.seats.iter().map(|seat| swarm.groups[seat.group].role == role).collect();
    match swarm.records.packets {
        Packets::None => None,
        Packets::Sent => Some(Scope::Sent),
        Packets::Seeds => Some(Scope::At(at(Role::Seed))),
        Packets::Leechers => Some(Scope::At(at(Role::Leecher))),
    }
}

fn leechers(swarm: &Swarm, layout: &Layout) -> Vec<HostId> {
    let seats = (0..).map(HostId).zip(&layout.seats);
    let leechers = seats.filter(|(_, seat)| swarm.groups[seat.group].role == Role::Leecher);
    leechers.map(|(id, _)| id).collect()
}

fn play(
    swarm: &Swarm,
    layout: &Layout,
    capture: Option<&Rc<RefCell<Capture>>>,
    watcher: &mut dyn SwarmWatcher,
) -> Result<SwarmOutcome, SwarmError> {
    let random = Stream::named(swarm.seed, "tracker");
    let tracker = Rc::new(RefCell::new(Tracker::new(swarm.tracker_peers, random)));
    let mut world = build(swarm, layout, &tracker)?;
    if let Some(capture) = capture {
        world.observer_mut().tap(Rc::clone(capture));
    }
    let end = Instant::ZERO + swarm.duration;
    if end > world.horizon() {
        return Err(SwarmError::TooLong(world.horizon()));
    }
    let leechers = leechers(swarm, layout);
    let (mut now, mut complete, mut is_interrupted) = (Instant::ZERO, 0, false);
    while now < end && !is_interrupted {
        now = (now + Duration::from_secs(1)).min(end);
        while !world.run_some(now, AT_A_TIME) && watcher.progress(world.now(), complete, leechers.len()) {}
        complete = leechers.iter().filter(|&&id| world.host(id).is_done()).count();
        // A disk that is full is told of at the end; there is no use in going on.
        if capture.is_some_and(|capture| capture.borrow().has_failed()) {
            break;
        }
        let is_over = complete == leechers.len();
        is_interrupted = !watcher.progress(world.now(), complete, leechers.len()) && !is_over;
        if is_over {
            break;
        }
    }
    Ok(SwarmOutcome { is_interrupted, ..finish(swarm, layout, &world, &tracker.borrow()) })
}

fn build(swarm: &Swarm, layout: &Layout, tracker: &Rc<RefCell<Tracker>>) -> Result<SwarmWorld, SwarmError> {
    let geometry = Geometry::new(swarm.content_bytes, swarm.piece_bytes).ok_or(SwarmError::Content)?;
    for group in &swarm.groups {
        Stack::of(group).map_err(SwarmError::Stack)?;
    }
    let numbers: std::collections::BTreeMap<&str, u32> = layout.topology.link_names().zip(0..).collect();
    let links = layout.uplinks.iter().chain(&layout.downlinks);
    let watched: Vec<_> =
        links.map(|(name, rate)| (cede_sim::LinkId(numbers[name.as_str()]), *rate)).collect();
    let mut meter = SwarmMeter::new(numbers.len(), &watched);
    meter.open(Instant::ZERO + swarm.measure_from);
    if swarm.records.queue {
        meter.keep_log();
    }
    let host = |id: HostId, name: &str| {
        let seat = &layout.seats[id.0 as usize];
        debug_assert_eq!(seat.name, name);
        host(swarm, seat, id, &geometry, tracker)
    };
    layout.topology.build(swarm.seed, meter, host).map_err(SwarmError::Topology)
}

fn host(
    swarm: &Swarm,
    seat: &super::layout::Seat,
    id: HostId,
    geometry: &Geometry,
    tracker: &Rc<RefCell<Tracker>>,
) -> SwarmHost {
    let group = &swarm.groups[seat.group];
    let stream = |what: &str| stream(swarm, seat, what);
    let setup = setup(swarm, seat, geometry);
    let life = Life {
        setup,
        super_seeds: group.super_seeds,
        arrives_at: seat.arrives_at,
        announce_every: swarm.announce_every,
        departure: group.departure,
        hashing: swarm.hashing,
        random: stream("life"),
        records: swarm.records,
    };
    let stack = Stack::of(group).expect("built once already");
    let mut sockets = Sockets::new(id, stack, group, stream("sockets"));
    if swarm.records.rtt {
        sockets.note_rtts();
    }
    SwarmHost::new(id, life, sockets, Rc::clone(tracker))
}

/// A peer's random numbers for one purpose.
fn stream(swarm: &Swarm, seat: &super::layout::Seat, what: &str) -> Stream {
    Stream::named(swarm.seed, &format!("peer {}/{what}", seat.name))
}

fn octets(random: &mut Stream) -> [u8; 20] {
    core::array::from_fn(|_| random.next_u16() as u8)
}

fn setup(swarm: &Swarm, seat: &super::layout::Seat, geometry: &Geometry) -> Setup {
    let group = &swarm.groups[seat.group];
    Setup {
        geometry: geometry.clone(),
        info_hash: octets(&mut Stream::named(swarm.seed, "torrent")),
        peer_id: octets(&mut stream(swarm, seat, "id")),
        have: begins_with(group.role == Role::Seed, geometry.pieces()),
        profile: group.profile,
        disposition: group.disposition,
        upload_limit: group.upload_limit,
        extended: group.profile.exchanges.then(exchange::introduction),
        notes: swarm.records.unchokes,
        random: stream(swarm, seat, "engine"),
    }
}

fn finish(swarm: &Swarm, layout: &Layout, world: &SwarmWorld, tracker: &Tracker) -> SwarmOutcome {
    let peers: Vec<PeerOutcome> = layout
        .seats
        .iter()
        .zip((0..).map(HostId))
        .map(|(seat, id)| PeerOutcome {
            name: seat.name.clone(),
            group: seat.group,
            role: swarm.groups[seat.group].role,
            record: world.host(id).record(),
        })
        .collect();
    let numbers: std::collections::BTreeMap<&str, usize> =
        (layout.seats.iter().map(|seat| &*seat.name)).zip(0..).collect();
    let mut records = world.observer().links().iter().cloned();
    let mut records_of = |links: &[(String, cede_units::Rate)]| {
        let peers = links.iter().map(|(link, _)| numbers[link.rsplit_once('/').map_or("", |(peer, _)| peer)]);
        peers.zip(records.by_ref()).collect()
    };
    let (uplinks, downlinks) = (records_of(&layout.uplinks), records_of(&layout.downlinks));
    // A link that nobody waits for tells of its dequeues when it is looked at.
    let mut queue = world.observer().log().to_vec();
    queue.sort_by_key(|entry| entry.at);
    SwarmOutcome {
        peers,
        uplinks,
        downlinks,
        tracker: tracker.log().to_vec(),
        queue,
        ended_at: world.now(),
        is_interrupted: false,
        events: world.events(),
    }
}
