//! What the torrents of one process share: a port, limits, nodes of the hash table, the router's ports, the screen.

use super::board::Board;
use super::filter;
use super::port::{self, Mapped, News};
use super::said::{self, Said};
use super::swarm;
use super::swarm_args::SwarmArgs;
use crate::carry::numbers;
use crate::failure::Failure;
use crate::screen;
use cede_bt::Family;
use cede_bt::metainfo::Info;
use cede_bt::tracker::Answer;
use cede_real::Yielding;
use cede_torrent::announce::{Identity, Trackers};
use cede_torrent::dht::OurNode;
use cede_torrent::limits::Limits;
use cede_torrent::local::Local;
use cede_torrent::moves;
use cede_torrent::open_files::allow_many_files;
use cede_torrent::session::{Choices, Listener, Session};
use cede_torrent::storage::{Claims, Clash};
use serde_json::{Value, json};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

/// Limits are looked at so often.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Connections of all torrents; each has a part of them, and at least a few.
const CONNECTIONS: u32 = 500;
const CONNECTIONS_OF_ONE: u32 = 10;
/// Descriptors that are left for other things where the system does not give many.
const FILES_BESIDE: u64 = 100;

/// What is shared.
pub struct Hub {
    /// How swarms are taken part in.
    pub args: SwarmArgs,
    /// What makes TCP yield.
    tcp_yields: Option<Yielding>,
    /// Where peers reach us.
    pub listener: Rc<Listener>,
    /// Who is led to us by a router.
    pub mapped: Mapped,
    /// Content is checked one torrent after the other, each on all cores.
    pub turns: Semaphore,
    board: RefCell<Board>,
    said: RefCell<Said>,
    /// Of all torrents together.
    pub limits: Limits,
    /// Begun when they are asked for; `None` where they cannot be had.
    node: OnceCell<Option<OurNode>>,
    local: OnceCell<Option<Local>>,
    sessions: RefCell<Vec<Session>>,
    taken: RefCell<Taken>,
    /// Torrents that there are.
    count: Cell<usize>,
    /// Torrents that have not ended, and one more as long as others may come.
    left: Cell<usize>,
    /// Torrents come and go.
    is_open: bool,
    /// What trackers said last, of which torrents.
    heard: RefCell<HashMap<(usize, String), Heard>>,
    /// When trackers that have not answered since did not, of which torrents.
    unanswered: RefCell<HashMap<(usize, String), Instant>>,
    /// What the process may have open, connections among it, where there is a limit.
    open_files: Option<u64>,
}

/// What can be done about what is in the way.
#[derive(Clone, Copy)]
pub struct Elsewhere {
    pub folder: &'static str,
    /// The same that is there may be written over.
    pub over: &'static str,
}

/// What a tracker said last.
#[derive(Clone, Copy)]
pub struct Heard {
    pub at: Instant,
    /// Seconds until it is asked again.
    pub interval_s: u32,
    /// Peers that it told us of.
    pub peers: usize,
    /// Peers that it knows, where it says so.
    pub seeders: Option<u32>,
    pub leechers: Option<u32>,
}

/// What torrents have taken for themselves.
#[derive(Default)]
struct Taken {
    torrents: HashSet<[u8; 20]>,
    /// Files that are written, by the folders that they are in.
    files: HashMap<PathBuf, Claims>,
    /// The same files, wherever: one folder may lie within another.
    places: HashSet<PathBuf>,
}

impl Taken {
    fn claim(&mut self, folder: &Path, info: &Info, wanted: &[bool]) -> Result<(), Clash> {
        let claims = self.files.entry(folder.to_path_buf()).or_default();
        claims.take(folder, &info.files, picked(wanted))?;
        let paths = Claims::paths(&info.files, picked(wanted));
        if let Some(path) = paths.iter().find(|path| self.places.contains(&below(folder, path))) {
            claims.give_back(&info.files, picked(wanted));
            return Err(Clash { path: path.clone(), taken: path.clone() });
        }
        self.places.extend(paths.iter().map(|path| below(folder, path)));
        Ok(())
    }

    fn give_back(&mut self, folder: &Path, info: &Info, wanted: &[bool]) {
        if let Some(claims) = self.files.get_mut(folder) {
            claims.give_back(&info.files, picked(wanted));
        }
        for path in Claims::paths(&info.files, picked(wanted)) {
            self.places.remove(&below(folder, &path));
        }
    }
}

fn below(folder: &Path, path: &[String]) -> PathBuf {
    path.iter().fold(folder.to_path_buf(), |place, name| place.join(name))
}

/// What a torrent has taken. It is given back where nothing comes of it, and where others may come, at its end.
pub struct Taking {
    hub: Rc<Hub>,
    info: Arc<Info>,
    /// The folder that it is written into, where it is written.
    folder: Option<PathBuf>,
    wanted: Vec<bool>,
    /// It has begun.
    pub has_begun: bool,
}

impl Drop for Taking {
    fn drop(&mut self) {
        if !self.has_begun || self.hub.is_open {
            self.hub.give_back(self);
        }
    }
}

impl Hub {
    /// Waits for the peers of so many torrents.
    pub async fn begin(args: &SwarmArgs, count: usize) -> Result<Rc<Self>, Failure> {
        Self::make(args, count, false).await
    }

    /// Waits for the peers of torrents that come and go. It ends when it is left once more than it was entered.
    pub async fn open(args: &SwarmArgs) -> Result<Rc<Self>, Failure> {
        let hub = Self::make(args, 0, true).await?;
        hub.enter();
        Ok(hub)
    }

    async fn make(args: &SwarmArgs, count: usize, is_open: bool) -> Result<Rc<Self>, Failure> {
        let open_files = allow_many_files();
        let tcp_yields = args.control.tcp_yields()?;
        let (filter, headline) = filter::read(args.ip_filter.as_deref())?;
        let listener = swarm::listen(args, filter).await?;
        let hub = Rc::new_cyclic(|hub| Self {
            args: args.clone(),
            tcp_yields,
            mapped: Mapped::begin(args, &listener, Self::hearing(hub.clone())),
            listener,
            turns: Semaphore::new(1),
            board: RefCell::new(if is_open { Board::open() } else { Board::new(count) }),
            said: RefCell::default(),
            limits: Limits::new(args.up, args.down),
            node: OnceCell::new(),
            local: OnceCell::new(),
            sessions: RefCell::default(),
            taken: RefCell::default(),
            count: Cell::new(count),
            left: Cell::new(count),
            is_open,
            heard: RefCell::default(),
            unanswered: RefCell::default(),
            open_files,
        });
        headline.iter().for_each(|text| hub.say(text));
        tokio::task::spawn_local(hub.clone().tell_of_shortage());
        let mover = hub.clone();
        tokio::task::spawn_local(moves::watch(mover.listener.origin(), async move || mover.move_on().await));
        tokio::task::spawn_local(hub.clone().keep_limits());
        Ok(hub)
    }

    /// Divides what may be sent, as long as there is, or may come to be, a limit.
    async fn keep_limits(self: Rc<Self>) {
        while self.is_open || self.args.up.is_some() {
            tokio::time::sleep(LOOK_EVERY).await;
            self.limits.look();
        }
    }

    /// Says once that there are no more descriptors.
    async fn tell_of_shortage(self: Rc<Self>) {
        self.listener.runs_short().await;
        let limit = self.open_files.map_or_else(String::new, |most| format!(" than {most}"));
        self.say(&format!(
            "peers have to wait: this process may have no more files and connections open{limit}; `ulimit -n` allows more\n"
        ));
    }

    /// Connections of all torrents: there have to be descriptors for files, and for what is asked for beside.
    fn connections(&self) -> u32 {
        let spare = self.open_files.map_or(u64::MAX, |most| most.saturating_sub(FILES_BESIDE));
        self.args.max_peers.unwrap_or(CONNECTIONS).min(u32::try_from(spare).unwrap_or(u32::MAX))
    }

    /// Connections of all torrents, and of one that begins now.
    pub fn connections_at_most(&self) -> (u32, u32) {
        let (own, all) = (self.args.profile.connections_max, self.connections());
        // Whoever says how many there may be means it, also where the profile has fewer.
        let (least, most) = self.args.max_peers.map_or((CONNECTIONS_OF_ONE, own), |most| (1, most));
        (all, most.min((all / self.count.get().max(1) as u32).max(least)))
    }

    /// Hears of the router.
    fn hearing(hub: Weak<Self>) -> impl Fn(News<'_>) {
        move |news| match (hub.upgrade(), news) {
            (Some(hub), News::Leads(mapping)) => {
                let (text, data) = port::told(mapping);
                hub.say(&text);
                hub.tell(None, "port", &data);
            }
            (Some(hub), News::IsToBeTold) => hub.announce_again(),
            (None, _) => {}
        }
    }

    /// Whether there are several torrents, so that each is to be named.
    pub const fn is_shared(&self) -> bool {
        self.is_open || self.count.get() > 1
    }

    /// What else can be done with a torrent that has no room where it is to go.
    pub const fn elsewhere(&self) -> Elsewhere {
        if self.is_open {
            return Elsewhere { folder: "or add it with another folder (download-dir)", over: "" };
        }
        Elsewhere { folder: "take another folder (-o)", over: ", or write over it (--overwrite)" }
    }

    /// One more torrent: its place on the screen, until it is dismissed.
    pub fn enrol(&self) -> usize {
        self.board.borrow_mut().add()
    }

    /// One that comes and goes is about to run, and has its part of the connections.
    pub fn begin_one(&self) {
        self.count.set(self.count.get() + 1);
    }

    /// It runs no longer.
    pub fn end_one(&self) {
        self.count.set(self.count.get().saturating_sub(1));
    }

    /// A torrent is gone for good.
    pub fn dismiss(&self, row: usize) {
        self.board.borrow_mut().remove(row);
        self.said.borrow_mut().forget(row);
        self.heard.borrow_mut().retain(|(of, _), _| *of != row);
        self.unanswered.borrow_mut().retain(|(of, _), _| *of != row);
    }

    /// A tracker has answered.
    pub fn hear(&self, row: usize, url: &str, answer: &Answer) {
        let Answer { seeders, leechers, .. } = *answer;
        let (interval_s, peers) = (answer.sane_interval_s(), answer.peers.len());
        let heard = Heard { at: Instant::now(), interval_s, peers, seeders, leechers };
        if self.is_open {
            self.unanswered.borrow_mut().remove(&(row, url.to_owned()));
            self.heard.borrow_mut().insert((row, url.to_owned()), heard);
        }
    }

    /// A tracker has refused, or not answered.
    pub fn miss(&self, row: usize, url: &str) {
        if self.is_open {
            self.unanswered.borrow_mut().insert((row, url.to_owned()), Instant::now());
        }
    }

    /// When a tracker was asked in vain that has not answered since.
    pub fn missed(&self, row: usize, url: &str) -> Option<Instant> {
        self.unanswered.borrow().get(&(row, url.to_owned())).copied()
    }

    /// What a tracker said last of a torrent.
    pub fn heard(&self, row: usize, url: &str) -> Option<Heard> {
        self.heard.borrow().get(&(row, url.to_owned())).copied()
    }

    /// What servers complain of, of a torrent.
    pub fn complaints(&self, row: usize) -> Vec<(String, String)> {
        self.said.borrow().of(row)
    }

    /// How much of what is there of a torrent has been checked, while it is.
    pub fn checked(&self, row: usize) -> Option<f64> {
        self.board.borrow().checked(row)
    }

    /// A torrent that was enrolled begins, and will leave.
    pub fn enter(&self) {
        self.left.set(self.left.get() + 1);
    }

    /// A torrent is given or, into a folder, fetched: the files that are wanted, or all where nothing is said of them. None is taken
    /// twice, and no file belongs to two.
    pub fn take(
        self: &Rc<Self>,
        info: &Arc<Info>,
        folder: Option<&Path>,
        wanted: &[bool],
    ) -> Result<Taking, Failure> {
        let mut taken = self.taken.borrow_mut();
        if !taken.torrents.insert(info.info_hash()) {
            return Err(Failure::Failed("the same torrent as another one of these".to_owned()));
        }
        let folder = folder.filter(|_| self.is_shared()).map(super::real);
        let made = folder.as_ref().map_or(Ok(()), |folder| taken.claim(folder, info, wanted));
        if made.is_err() {
            taken.torrents.remove(&info.info_hash());
        }
        made.map_err(|clash| clashing(&clash, self.elsewhere().folder))?;
        drop(taken);
        let (hub, info, wanted) = (self.clone(), info.clone(), wanted.to_vec());
        Ok(Taking { hub, info, folder, wanted, has_begun: false })
    }

    /// It is in nobody's way.
    fn give_back(&self, taking: &Taking) {
        let mut taken = self.taken.borrow_mut();
        taken.torrents.remove(&taking.info.info_hash());
        if let Some(folder) = &taking.folder {
            taken.give_back(folder, &taking.info, &taking.wanted);
        }
    }

    /// A torrent runs from now on: it has its part of what is limited.
    pub fn join(&self, session: &Session) {
        self.limits.join(session);
        self.sessions.borrow_mut().push(session.clone());
    }

    /// A torrent has left: its files are held open no longer.
    pub fn part(&self) {
        self.limits.part();
        self.sessions.borrow_mut().retain(|session| !session.has_left());
    }

    /// A torrent has ended; the last one gives back the router's ports.
    pub async fn leave(&self) {
        self.left.set(self.left.get().saturating_sub(1));
        if self.left.get() == 0 {
            self.mapped.end().await;
        }
    }

    /// The machine has come into another network: whoever has been told of us hears it anew.
    async fn move_on(&self) {
        self.mapped.ask_again().await;
        self.announce_again();
        self.node.get().into_iter().flatten().for_each(OurNode::announce_again);
        self.local.get().into_iter().flatten().for_each(Local::announce_again);
    }

    /// Trackers are to hear of another address or port.
    fn announce_again(&self) {
        let sessions = self.sessions.borrow();
        sessions.iter().filter(|session| !session.has_left()).for_each(Session::announce_again);
    }

    /// How trackers know us, under a new name.
    pub fn new_identity(&self, info_hash: [u8; 20]) -> Result<Identity, Failure> {
        let key = swarm::chance()?.first_chunk().map_or(0, |octets| u32::from_be_bytes(*octets));
        let (port, origin) = (self.listener.port(), self.listener.origin());
        Ok(Identity { info_hash, peer_id: swarm::peer_id()?, port, key, origin })
    }

    /// A torrent's trackers, and those that were named.
    pub fn tiers(&self, own: Vec<Vec<String>>) -> Vec<Trackers> {
        let named =
            self.args.trackers.iter().map(|url| Trackers { urls: vec![url.clone()], are_named: true });
        own.into_iter().map(Trackers::from).chain(named).collect()
    }

    /// What a session is told.
    pub fn choices(&self, peer_id: [u8; 20]) -> Result<Choices, Failure> {
        let args = &self.args;
        let mut profile = args.profile;
        profile.connections_max = self.connections_at_most().1;
        profile.initiate_max = profile.initiate_max.min(profile.connections_max);
        Ok(Choices {
            profile,
            disposition: args.transport,
            upload_limit: self.limits.up(),
            // Those of all hold from when it joins them.
            download_limit: None,
            tcp_yields: self.tcp_yields.clone(),
            encryption: args.encryption.into(),
            pex: !args.no_pex,
            peer_id,
            client: swarm::client(),
            seed: swarm::chance()?.first_chunk().map_or(0, |octets| u64::from_be_bytes(*octets)),
        })
    }

    /// Looks for peers in the distributed hash table, in the background, and tells it of us where it is to be told. Our node,
    /// where there is one.
    pub fn search_dht(
        &self,
        info_hash: [u8; 20],
        is_told: bool,
        found: &UnboundedSender<Vec<SocketAddr>>,
    ) -> Option<OurNode> {
        let unavailable = |error: std::io::Error| self.say(&format!("no distributed hash table: {error}\n"));
        let SwarmArgs { dht_node, dht_port, .. } = &self.args;
        let start = || OurNode::start(self.listener.origin(), dht_node, *dht_port).map_err(unavailable).ok();
        let node = self.node.get_or_init(start).as_ref()?;
        let (own, outer) = (self.listener.port(), self.listener.outer_port());
        // Routers lead ports of IPv4 alone here.
        let port = move |family| if family == Family::V4 { outer() } else { own };
        let searching = node.search(info_hash, move |family| is_told.then(|| port(family)), found.clone());
        searching.unwrap_or_else(unavailable);
        Some(node.clone())
    }

    /// Looks for peers in the local network, in the background, and tells it of our port where it is to be told.
    pub fn search_local(&self, info_hash: [u8; 20], is_told: bool, found: UnboundedSender<Vec<SocketAddr>>) {
        let unavailable =
            |error: std::io::Error| self.say(&format!("no search of the local network: {error}\n"));
        let start = || Local::start(self.listener.origin()).map_err(unavailable).ok();
        if let Some(local) = self.local.get_or_init(start) {
            local.search(info_hash, is_told.then(|| self.listener.port()), found);
        }
    }

    /// Says something to a person.
    pub fn say(&self, text: &str) {
        self.board.borrow_mut().clear();
        screen::mention(text);
    }

    /// The same of one torrent, which is named where there are several.
    pub fn say_of(&self, name: &str, text: &str) {
        let head = if self.is_shared() { format!("{}: ", screen::printable(name)) } else { String::new() };
        self.say(&format!("{head}{text}\n"));
    }

    /// A torrent names nobody who is to be asked for peers: that is said where nobody else is asked, either.
    pub fn remark_on_nobody(&self, name: &str, is_private: bool) {
        let args = &self.args;
        if args.peers.is_empty() && (args.no_dht && args.no_lsd || is_private) {
            let what = "name a tracker (-t) or a peer (--peer), or wait for others";
            self.say_of(name, &format!("nobody is to be asked for peers: {what}"));
        }
    }

    /// A server complains of a torrent, or does not any more.
    pub fn complaint(&self, torrent: usize, server: &str, text: Option<&String>) {
        let news = self.said.borrow_mut().news(torrent, server, text);
        if let Some(news) = news {
            self.say(&(screen::printable(&said::line(server, &news)) + "\n"));
        }
    }

    /// The screen's line, to change.
    pub fn board(&self, change: impl FnOnce(&mut Board)) {
        change(&mut self.board.borrow_mut());
    }

    /// Tells programs of an event, of a torrent where it is one's.
    pub fn tell(&self, torrent: Option<&[u8; 20]>, event: &str, data: &Value) {
        if self.args.json {
            print_event(torrent, event, data);
        }
    }
}

/// What somebody else has taken.
fn clashing(Clash { path, taken }: &Clash, advice: &str) -> Failure {
    let (name, other) = (super::shown(path), super::shown(taken));
    let whose = match path == taken {
        true => format!("{name} belongs to another one of these, too"),
        false => {
            format!("{name} is the same in this folder as {other}, which belongs to another one of these")
        }
    };
    Failure::Failed(format!("{whose}: {advice}"))
}

/// Whether a file is wanted: all are where nothing is said of them.
fn picked(wanted: &[bool]) -> impl Fn(usize) -> bool {
    |file| wanted.get(file).copied().unwrap_or(true)
}

/// A line for programs.
pub fn print_event(torrent: Option<&[u8; 20]>, event: &str, data: &Value) {
    let torrent = torrent.map(|hash| numbers::hex(hash));
    screen::report_json_line(&json!({ "event": event, "torrent": torrent, "data": data }));
}
