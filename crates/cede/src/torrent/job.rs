//! A torrent that runs, from what names it to the goodbye.

use super::alone::Alone;
use super::asking::{Asking, Standing};
use super::duty::{Duty, Over, Watch};
use super::gauge::{self, Gauge, Rates, document};
use super::hub::{Hub, Taking, print_event};
use super::notes;
use super::place::{Content, Place};
use super::seek::Source;
use super::source;
use super::swarm;
use crate::carry::numbers;
use crate::failure::Failure;
use crate::screen;
use cede_bt::metainfo::{Info, Metainfo, Version};
use cede_torrent::announce::{Amounts, Identity, Trackers};
use cede_torrent::session::{Driver, Session, SessionError, View, Wish};
use cede_torrent::storage::{Notes, Renamed, Storage};
use serde_json::{Value, json};
use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

/// Peers that were named by hand are called again after so long where there is no connection to them, and after twice that, up to
/// the limit: they may have begun later than we, or begin anew.
const FIRST_REMINDER: Duration = Duration::from_secs(2);
const REMINDER: Duration = Duration::from_secs(30);

/// Says where a torrent's content is, or goes.
type Placing = dyn Fn(&Source) -> Result<Place, Failure>;

/// What is done with torrents.
pub struct Verb {
    /// Where a torrent's content is, or goes.
    pub place: Box<Placing>,
    /// What is to be done for it.
    pub duty: Duty,
    /// The torrent, where it is known already.
    pub known: Option<Rc<Metainfo>>,
}

/// A torrent that runs.
pub struct Job {
    hub: Rc<Hub>,
    /// Its place on the screen.
    row: usize,
    /// What it was asked for by.
    what: String,
    info: Arc<Info>,
    /// What is written to; `None` where nothing is.
    written: Option<Arc<Storage>>,
    session: Session,
    driver: Option<Driver>,
    announcing: JoinHandle<()>,
    found: Found,
    gauge: Gauge,
    alone: Alone,
    was_complete: bool,
    watch: Watch,
    _taking: Taking,
}

/// What others see of a torrent that runs.
#[derive(Clone)]
pub struct Sight {
    pub info: Arc<Info>,
    pub session: Session,
    /// What is written to.
    pub storage: Option<Arc<Storage>>,
    /// How it stood when it was looked at last.
    pub stands: Rc<Cell<Option<gauge::Standing>>>,
}

fn unrun(error: &SessionError) -> Failure {
    match error {
        SessionError::Storage(inner) => {
            Failure::of_system(screen::printable(&error.to_string()), inner.error.kind())
        }
        SessionError::Unsupported(_) => Failure::Failed(error.to_string()),
    }
}

/// Nothing begins: programs hear why.
pub fn tell_of_nothing(is_wanted: bool, what: &str, failure: &Failure) {
    if is_wanted {
        print_event(None, "end", &json!({ "what": what, "error": failure.text() }));
    }
}

impl Job {
    /// Finds out what there is, and begins. Where that fails, trackers that have heard of us by then hear that we leave.
    pub async fn begin(hub: &Rc<Hub>, (row, what): (usize, &str), verb: &Verb) -> Result<Self, Failure> {
        let mut source = match &verb.known {
            Some(known) => Source::of(Metainfo::clone(known)),
            None => source::open(what, (hub, row)).await?,
        };
        let mut asking = source.asking.take();
        let begun = match (verb.place)(&source) {
            Ok(place) => Self::begin_at((hub, row, what), source, (place, verb), &mut asking).await,
            Err(failure) => Err(failure),
        };
        if let (Some(asking), Err(failure)) = (asking, &begun) {
            asking.end(failure).await;
        }
        begun
    }

    async fn begin_at(
        (hub, row, what): (&Rc<Hub>, usize, &str),
        source: Source,
        (place, verb): (Place, &Verb),
        asking: &mut Option<Asking>,
    ) -> Result<Self, Failure> {
        let Source { metainfo, peers, given, .. } = source;
        let info = Arc::new(metainfo.info);
        let servers = servers(hub, &place, metainfo.web_seeds);
        let begun = Begun::of((hub, row), &info, &place, asking.as_ref()).await?;
        let Begun { storage, session, driver, wishes, identity, gauge, taking } = begun;
        let named = Named { tiers: hub.tiers(metainfo.trackers), peers, given, nodes: metainfo.nodes };
        let mut watch = Watch::new(verb.duty.clone());
        let is_unnamed = named.tiers.is_empty() && named.peers.is_empty() && servers.is_empty();
        remark(hub, &info, is_unnamed && watch.look(&session).is_none());
        let asked = (&session, wishes, identity);
        let (announcing, found) = look_for_peers((hub, row), &info, asked, named, asking.take());
        notes::hear_web((hub.clone(), row), session.use_web_seeds(&servers));
        Ok(Self {
            hub: hub.clone(),
            row,
            what: what.to_owned(),
            info,
            written: place.written.map(|_| storage),
            was_complete: session.is_done(),
            session,
            driver: Some(driver),
            announcing,
            found,
            gauge,
            alone: Alone::new(Instant::now()),
            watch,
            _taking: taking,
        })
    }

    /// What others see of it.
    pub fn sight(&self) -> Sight {
        Sight {
            info: self.info.clone(),
            session: self.session.clone(),
            storage: self.written.clone(),
            stands: self.gauge.stands(),
        }
    }

    /// Runs until somebody asks for the end (Ctrl-C, mostly), a failure, or it is over.
    pub async fn run(&mut self, asked: impl Future<Output = ()>) -> Result<(), Failure> {
        self.tell(
            "begin",
            &json!({
                "what": self.what, "name": self.info.name, "info_hash": numbers::hex(&self.info.info_hash()),
                "bytes": super::show::content_bytes(&self.info), "pieces": self.info.piece_count(),
            }),
        );
        if self.was_complete && self.written.is_some() {
            self.tell("complete", &json!({ "bytes": self.session.view().bytes }));
        }
        let Some(mut driver) = self.driver.take() else { return Ok(()) };
        let outcome = {
            let (mut running, mut asked) = (std::pin::pin!(driver.run()), std::pin::pin!(asked));
            loop {
                if self.watch.look(&self.session).is_some() {
                    break Ok(());
                }
                tokio::select! {
                    ended = &mut running => break ended.map_err(|error| unrun(&error)),
                    () = tokio::time::sleep(self.gauge.pause()) => self.look(),
                    () = self.session.arrival() => self.look(),
                    Some(peers) = self.found.peers.recv() => self.session.add_peers(&peers),
                    Some(peers) = self.found.named.recv() => self.session.call_peers(&peers),
                    Some(peers) = self.found.near.recv() => self.session.add_near_peers(&peers),
                    () = &mut asked => break Err(Failure::Interrupted(self.parting())),
                }
            }
        };
        self.driver = Some(driver);
        // A tracker that answers to the completion may be quicker than the clock.
        self.tell_completion();
        outcome
    }

    /// What an interruption leaves.
    fn parting(&self) -> String {
        if self.session.is_done() {
            return "nothing more is given".to_owned();
        }
        let view = self.session.view();
        let (here, all) = (view.wanted_here().pieces, numbers::count(view.wanted.pieces as usize, "piece"));
        format!("what has come stays, {here} of {all}; the same command goes on")
    }

    fn look(&mut self) {
        let view = self.session.view();
        let standing = self.gauge.update(&view);
        self.hub.board(|board| board.running(self.row, standing));
        if self.gauge.is_time_for_a_line() && self.hub.args.json {
            self.tell("progress", &document(&view, &standing.rates));
        }
        self.tell_completion();
        self.explain(&view);
    }

    /// Why nobody is there whom something is wanted of.
    fn explain(&mut self, view: &View) {
        let now = Instant::now();
        if view.is_complete || !view.peers.is_empty() || view.totals.downloaded_web > 0 {
            return self.alone.is_over(now);
        }
        if let Some(text) = self.alone.look(now, &view.misses, self.hub.args.encryption.into()) {
            self.hub.say_of(&self.info.name, &text);
        }
    }

    /// Once.
    fn tell_completion(&mut self) {
        if self.session.is_done() && !std::mem::replace(&mut self.was_complete, true) {
            self.tell("complete", &json!({ "bytes": self.session.view().bytes }));
        }
    }

    fn tell(&self, event: &str, data: &Value) {
        self.hub.tell(Some(&self.info.info_hash()), event, data);
    }

    /// Leaves the swarm, and says how it was.
    pub async fn end(mut self, outcome: Result<(), Failure>) -> Result<(), Failure> {
        let elapsed = self.gauge.elapsed();
        let view = self.session.view();
        self.session.leave();
        self.hub.part();
        let mut driver = self.driver.take();
        if self.session.is_done() {
            driver.iter_mut().flat_map(Driver::take_notes).for_each(Notes::discard);
        }
        if let Some(storage) = self.written.as_ref().filter(|it| view.is_complete && it.wants_everything()) {
            storage.discard_parts();
        }
        let patience = outcome.as_ref().err().map_or(swarm::GOODBYE, swarm::parting_time);
        let goodbye = tokio::time::timeout(patience, &mut self.announcing);
        let _ = tokio::join!(goodbye, self.hub.leave(), see_off(&self.session, self.watch.over()));
        // For a tracker that is slower files are not held open, and it does not hear of the end once the same torrent has begun anew.
        self.announcing.abort();
        driver.iter_mut().for_each(Driver::write_last_notes);
        let mut data = document(&view, &Rates::default());
        data["what"] = self.what.as_str().into();
        data["complete"] = self.session.is_done().into();
        data["seconds"] = elapsed.as_secs_f64().into();
        data["cpu_s"] = crate::carry::send::cpu_s().into();
        if let Err(failure) = &outcome {
            data["error"] = failure.text().into();
        }
        let option = self.watch.over().and_then(Over::option);
        if let Some(option) = option {
            data["ended_by"] = option.into();
        }
        self.tell("end", &data);
        let why = option.map_or_else(String::new, |option| format!("; that is as {option} asks"));
        self.hub.say_of(&self.info.name, &(moved(&view, elapsed) + &why));
        outcome
    }
}

/// Whoever was given what was to be given has it, also where it reads slowly; who interrupts does not wait for that.
async fn see_off(session: &Session, over: Option<Over>) {
    if over.and_then(Over::option).is_some() {
        tokio::select! {
            () = session.seen_off() => {}
            () = crate::interrupt::asked() => {}
        }
    }
}

/// What has come and gone.
fn moved(view: &View, elapsed: Duration) -> String {
    let totals = &view.totals;
    let web = totals.downloaded_web;
    let of_servers =
        if web > 0 { format!(", {} from web seeds", numbers::amount(web)) } else { String::new() };
    format!(
        "{} received ({} over uTP{of_servers}), {} sent ({} over uTP) in {:.1} s",
        numbers::amount(totals.received()),
        numbers::amount(totals.downloaded[1]),
        numbers::amount(totals.sent()),
        numbers::amount(totals.uploaded[1]),
        elapsed.as_secs_f64()
    )
}

/// A session that has begun.
struct Begun {
    storage: Arc<Storage>,
    session: Session,
    driver: Driver,
    wishes: UnboundedReceiver<Wish>,
    identity: Identity,
    gauge: Gauge,
    taking: Taking,
}

impl Begun {
    /// With what is there of the content. What is not begun keeps no other torrent from its place.
    async fn of(
        (hub, row): (&Rc<Hub>, usize),
        info: &Arc<Info>,
        place: &Place,
        asking: Option<&Asking>,
    ) -> Result<Self, Failure> {
        let mut taking = hub.take(info, place.written.map(|_| &*place.folder), &place.wanted)?;
        let Content { storage, notes, whole, begun } = place.open(info, (hub, row)).await?;
        hub.mapped.settled().await;
        // Trackers that a search has asked know us.
        let known = asking.map(|asking| asking.identity);
        let identity = known.map_or_else(|| hub.new_identity(info.info_hash()), Ok)?;
        let (listener, choices) = (Some(hub.listener.clone()), hub.choices(identity.peer_id)?);
        let made = Session::new(info, &storage, &whole, listener, choices);
        let (session, wishes, mut driver) = made.map_err(|error| unrun(&error))?;
        driver.keep_notes(notes);
        let begun = session.resume(&begun);
        place.want(&session);
        hub.join(&session);
        let here = whole.iter().filter(|is_whole| **is_whole).count();
        hub.say(&headline(info, (here, begun), hub.listener.port()));
        mention_files(hub, &storage, (info, place), here);
        let gauge = Gauge::new();
        taking.has_begun = true;
        Ok(Self { storage, session, driver, wishes, identity, gauge, taking })
    }
}

fn headline(info: &Info, (here, begun): (usize, u64), port: u16) -> String {
    let name = super::shown(std::slice::from_ref(&info.name));
    let (amount, pieces) = (
        numbers::amount(super::show::content_bytes(info)),
        numbers::count(info.piece_count() as usize, "piece"),
    );
    let port = match port {
        0 => "no peer can call us".to_owned(),
        port => format!("TCP and UDP port {port}"),
    };
    let are = if info.piece_count() == 1 { "is" } else { "are" };
    let begun = if begun > 0 { format!(", and {} of others", numbers::amount(begun)) } else { String::new() };
    format!("{name}: {amount}, {here} of {pieces} {are} here{begun}; {port}\n")
}

/// The torrent's web seeds, where they are to be asked.
fn servers(hub: &Hub, place: &Place, own: Vec<String>) -> Vec<String> {
    if hub.args.no_web_seeds || place.written.is_none() { Vec::new() } else { own }
}

/// What a person should know before it begins; of what is all there, and so over, nobody need be asked.
fn remark(hub: &Hub, info: &Info, is_unnamed: bool) {
    if info.version == Version::Hybrid {
        hub.say_of(&info.name, "a hybrid torrent: its v1 side is used, its v2 hashes are not checked");
    }
    if is_unnamed {
        hub.remark_on_nobody(&info.name, info.is_private);
    }
}

/// Files that are named one by one.
const FILES_NAMED: usize = 5;

/// Files that are not given although something is there, names that file systems do not take, and content that is elsewhere.
fn mention_files(hub: &Hub, storage: &Storage, (info, place): (&Info, &Place), here: usize) {
    let say = |text: &str| hub.say_of(&info.name, text);
    if place.written.is_none() {
        mention_missing(say, storage, (place, here));
    }
    if place.is_super {
        let is_whole = here == storage.wanted_pieces().len();
        let how = if is_whole {
            "each peer is told of two pieces at a time"
        } else {
            "not everything is here: what is, is given as usual"
        };
        say(&format!("super-seeding: {how}"));
    }
    mention_renamed(say, storage);
    if let Some((path, count)) = begun_by_others(storage).filter(|_| place.written.is_some()) {
        let path = screen::named(&path);
        let others = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        say(&format!(
            "{path}{others} may be what another client has begun: it is left alone; stop, leave the ending out of its name, and begin anew \
             to go on with what is right of it"
        ));
    }
}

/// Files that have other names than the torrent says.
fn mention_renamed(say: impl Fn(&str), storage: &Storage) {
    let is_real = |file: &usize| !storage.layout().files()[*file].is_padding;
    let files = || (0..storage.layout().files().len()).filter(is_real);
    for (why, text) in [
        (Renamed::Long, "are too long for file systems, and kept shorter"),
        (
            Renamed::Odd,
            "have characters that the file system does not take, and are kept with _ in their place",
        ),
    ] {
        let count = files().filter(|file| storage.renamed(*file) == Some(why)).count();
        if count > 0 {
            say(&format!("names of {} {text}", numbers::count(count, "file")));
        }
    }
}

/// What is to be given and is not: what is to be written is refused before that.
fn mention_missing(say: impl Fn(&str), storage: &Storage, (place, here): (&Place, usize)) {
    if here < storage.wanted_pieces().len() {
        for error in storage.in_the_way(FILES_NAMED) {
            say(&format!("not given: {}", screen::printable(&error.to_string())));
        }
    }
    if here == 0 {
        let folder = screen::named(&place.folder);
        say(&format!("nothing of it is in {folder}: --data names the folder that has it"));
    }
}

/// What others put behind the name of a file that is not whole: Transmission, qBittorrent, uTorrent, BitComet.
const UNFINISHED: [&str; 4] = ["part", "!qB", "!ut", "bc!"];
/// Files that others may have begun are looked for among so many.
const LOOKED_FOR: usize = 1_000;

/// A file that others may have begun in place of one that is not there, and how many there are of them.
fn begun_by_others(storage: &Storage) -> Option<(PathBuf, usize)> {
    let files = storage.layout().files().iter().enumerate().take(LOOKED_FOR);
    let missing = files
        .filter(|(at, file)| file.length > 0 && !file.is_padding && storage.is_wanted(*at))
        .map(|(at, _)| storage.path_of(at))
        .filter(|path| !path.exists());
    let begun = |path: PathBuf| {
        UNFINISHED.into_iter().map(|ending| path.with_added_extension(ending)).find(|begun| begun.is_file())
    };
    let mut all = missing.filter_map(begun);
    let first = all.next()?;
    Some((first, 1 + all.count()))
}

/// Peers that were found.
struct Found {
    peers: UnboundedReceiver<Vec<SocketAddr>>,
    /// Those that were named by hand, whenever they are to be called.
    named: UnboundedReceiver<Vec<SocketAddr>>,
    /// Those in the local network.
    near: UnboundedReceiver<Vec<SocketAddr>>,
}

/// Where a torrent's file or link, and who runs us, say that peers may be found.
struct Named {
    /// Trackers.
    tiers: Vec<Trackers>,
    /// Peers that are known already, and those of them that stand in the link.
    peers: Vec<SocketAddr>,
    given: Vec<SocketAddr>,
    /// Nodes of the hash table.
    nodes: Vec<String>,
}

/// Asks trackers, the distributed hash table and the local network from now on.
fn look_for_peers(
    (hub, row): (&Rc<Hub>, usize),
    info: &Arc<Info>,
    (session, wishes, identity): (&Session, UnboundedReceiver<Wish>, Identity),
    named: Named,
    asking: Option<Asking>,
) -> (JoinHandle<()>, Found) {
    session.add_peers(&named.peers);
    let (found, peers) = mpsc::unbounded_channel();
    let (found_near, near) = mpsc::unbounded_channel();
    let standing = standing(hub, info, session);
    // Those that a search has asked are the same.
    let asking = match asking {
        Some(asking) => {
            asking.go_on(standing, found.clone());
            asking
        }
        None => Asking::new(named.tiers, identity, (hub, row), (standing, found.clone())),
    };
    let announcing = asking.serve(wishes);
    let (found_named, by_hand) = mpsc::unbounded_channel();
    tokio::task::spawn_local(remind([named.given, swarm::peers(&hub.args)].concat(), found_named));
    if !hub.args.no_dht
        && !info.is_private
        && let Some(node) = hub.search_dht(info.info_hash(), true, &found)
    {
        let unasked = |error| hub.say(&format!("nodes that a torrent names are not asked: {error}\n"));
        node.enter(named.nodes).unwrap_or_else(unasked);
        session.join_dht(node.ports(), move |at| node.meet(at));
    }
    if !hub.args.no_lsd && !info.is_private {
        hub.search_local(info.info_hash(), true, found_near);
    }
    (announcing, Found { peers, named: by_hand, near })
}

/// How a session stands, to be told to trackers.
fn standing(hub: &Hub, info: &Info, session: &Session) -> Standing {
    let (subject, total) = (session.clone(), info.total_bytes);
    let port = hub.listener.outer_port();
    Box::new(move || {
        let view = subject.view();
        let (uploaded, downloaded) = (view.totals.sent(), view.totals.received());
        let left = total.saturating_sub(view.bytes);
        let is_partial_seed = view.is_complete && left > 0;
        Amounts { uploaded, downloaded, left, is_partial_seed, port: Some(port()) }
    })
}

async fn remind(given: Vec<SocketAddr>, named: UnboundedSender<Vec<SocketAddr>>) {
    let mut pause = FIRST_REMINDER;
    while !given.is_empty() && named.send(given.clone()).is_ok() {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(REMINDER);
    }
}
