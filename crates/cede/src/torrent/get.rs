//! `cede torrent get` and `cede torrent seed`.

use super::args::{GetArgs, SeedArgs, SwarmArgs};
use super::gauge::{Gauge, document};
use super::notes;
use super::port::{self, Mapped};
use super::seek::Source;
use super::source;
use super::swarm::{self, Swarm};
use super::tracker::asked;
use crate::carry::numbers;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Pace, StatusLine, bar};
use crate::screen;
use cede_bt::metainfo::{Info, Version};
use cede_torrent::announce::{self, Amounts, Identity};
use cede_torrent::check::{self, Watch};
use cede_torrent::gateway::Mapping;
use cede_torrent::mend::mend;
use cede_torrent::session::{Driver, Listener, Session, SessionError, Wish, stamps};
use cede_torrent::storage::{Allocation, Notes, Storage, StorageError};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

const TICK: Duration = Duration::from_millis(250);
/// A line of JSON each second.
const TICKS_PER_LINE: u32 = 4;
/// Peers that were given by hand are told of so often, lest those that were away for long are forgotten.
const REMINDER: Duration = Duration::from_secs(60);

/// Downloads a torrent.
pub fn get(args: &GetArgs) -> Result<(), Failure> {
    check_folder(&args.output)?;
    swarm::run(async {
        let beginning = begin(&args.swarm, &args.what, |source| {
            let wanted = source::wanted(args, source)?;
            let allocation = if args.preallocate { Allocation::Full } else { Allocation::Sparse };
            make_folder(&args.output)?;
            Ok(Place { folder: &args.output, wanted, allocation: Some(allocation), is_super: false })
        });
        let is_over = |job: &Job<'_>| if args.seed { screen::is_unread() } else { job.session.is_done() };
        carry_out(&args.swarm, beginning, is_over).await
    })
}

/// Gives a torrent's content.
pub fn seed(args: &SeedArgs) -> Result<(), Failure> {
    swarm::run(async {
        let (folder, is_super) = (&args.data, args.super_seed);
        let place = |_: &Source| Ok(Place { folder, wanted: Vec::new(), allocation: None, is_super });
        let beginning = begin(&args.swarm, &args.what, place);
        carry_out(&args.swarm, beginning, |_| screen::is_unread()).await
    })
}

/// Finds out what there is, and begins. Where that fails, trackers that have heard of us by then hear that we leave.
async fn begin<'a>(
    args: &'a SwarmArgs,
    what: &str,
    place: impl FnOnce(&Source) -> Result<Place<'a>, Failure>,
) -> Result<Job<'a>, Failure> {
    let listener = Swarm::listen(args).await?;
    let mut mapped = Mapped::begin(args, &listener);
    let begun = begin_at(args, what, place, (&listener, &mut mapped)).await;
    match begun {
        Ok(job) => Ok(Job { found: Found { mapped, ..job.found }, ..job }),
        Err(failure) => {
            mapped.end().await;
            Err(failure)
        }
    }
}

async fn begin_at<'a>(
    args: &'a SwarmArgs,
    what: &str,
    place: impl FnOnce(&Source) -> Result<Place<'a>, Failure>,
    (listener, mapped): (&Rc<Listener>, &mut Mapped),
) -> Result<Job<'a>, Failure> {
    let mut source = source::open(what, args, listener).await?;
    let asking = source.asking.take();
    let known = asking.as_ref().map(|asking| asking.identity);
    let begun = match place(&source) {
        Ok(place) => Job::begin(args, source, place, (listener, known, mapped)).await,
        Err(failure) => Err(failure),
    };
    if let Some(asking) = asking {
        asking.end(begun.as_ref().err()).await;
    }
    begun
}

/// From the beginning to the end; where nothing begins, programs hear why.
async fn carry_out<'a>(
    args: &'a SwarmArgs,
    beginning: impl Future<Output = Result<Job<'a>, Failure>>,
    is_over: impl Fn(&Job<'a>) -> bool,
) -> Result<(), Failure> {
    let in_vain = |failure: &Failure| tell(args, "end", &json!({ "error": failure.text() }));
    let mut job = beginning.await.inspect_err(in_vain)?;
    let outcome = job.run(is_over).await;
    job.end(outcome).await
}

/// The folder is there, or at least the one that it is to be made in.
fn check_folder(folder: &Path) -> Result<(), Failure> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = folder.display();
    if folder.is_dir() {
        Ok(())
    } else if folder.symlink_metadata().is_ok() {
        Err(Failure::Usage(format!("-o: {name} is no folder; give the one to put the files into")))
    } else if parent.is_none_or(Path::is_dir) {
        Ok(())
    } else {
        Err(Failure::Usage(format!("-o: there is no folder to make {name} in; make it: mkdir -p {name}")))
    }
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(Failure::of_system(format!("cannot make {}: {error}", folder.display()), error.kind()))
        }
        _ => Ok(()),
    }
}

fn tell(args: &SwarmArgs, event: &str, data: &Value) {
    if args.json {
        let _ = screen::print_json_line(&json!({ "event": event, "data": data }));
    }
}

/// Where the content is, or goes.
struct Place<'a> {
    folder: &'a Path,
    wanted: Vec<bool>,
    /// `None` where nothing is written.
    allocation: Option<Allocation>,
    /// Peers are told of a few pieces each.
    is_super: bool,
}

impl Place<'_> {
    /// Whether anything is to come here.
    fn want(&self, session: &Session) {
        match self.allocation {
            Some(_) => session.want_files(),
            None if self.is_super => session.super_seed(),
            None => session.want_nothing(),
        }
    }
}

/// A torrent that runs.
struct Job<'a> {
    args: &'a SwarmArgs,
    info: Arc<Info>,
    /// What is written to; `None` where nothing is.
    written: Option<Arc<Storage>>,
    session: Session,
    driver: Option<Driver>,
    announcing: JoinHandle<()>,
    found: Found,
    gauge: Gauge,
    was_complete: bool,
    ticks: u32,
}

fn unstored(error: &StorageError) -> Failure {
    Failure::of_system(super::printable(&error.to_string()), error.error.kind())
}

fn unrun(error: &SessionError) -> Failure {
    match error {
        SessionError::Storage(inner) => {
            Failure::of_system(super::printable(&error.to_string()), inner.error.kind())
        }
        SessionError::Unsupported(_) => Failure::Failed(error.to_string()),
    }
}

impl<'a> Job<'a> {
    async fn begin(
        args: &'a SwarmArgs,
        source: Source,
        place: Place<'_>,
        (listener, known, mapped): (&Rc<Listener>, Option<Identity>, &mut Mapped),
    ) -> Result<Self, Failure> {
        let Source { metainfo, peers, given, .. } = source;
        let info = Arc::new(metainfo.info);
        let is_unserved = args.no_web_seeds || place.allocation.is_none();
        let servers = if is_unserved { Vec::new() } else { metainfo.web_seeds };
        let (storage, notes, whole) = mapped.beside(open(&info, &place)).await?;
        let here = whole.iter().filter(|is_whole| **is_whole).count();
        let identity = known.map_or_else(|| Swarm::new_identity(info.info_hash(), listener), Ok)?;
        let choices = Swarm::choices(args, identity.peer_id)?;
        let made = Session::new(&info, &storage, &whole, Some(listener.clone()), choices);
        let (session, wishes, mut driver) = made.map_err(|error| unrun(&error))?;
        driver.keep_notes(notes);
        place.want(&session);
        screen::mention(&headline(&info, here, listener.port()));
        let tiers = tiers(args, metainfo.trackers);
        remark(args, &info, tiers.is_empty() && peers.is_empty() && servers.is_empty());
        mention_files(&storage, &place, here);
        session.add_peers(&peers);
        let given = [given, args.peers.clone()].concat();
        let (announcing, found) =
            look_for_peers(args, &info, (&session, wishes, identity), (tiers, given), listener);
        notes::hear_web(session.use_web_seeds(&servers));
        let gauge = Gauge::new(info.piece_count(), wanted_bytes(&info, &storage));
        let was_complete = session.is_done();
        let (driver, written) = (Some(driver), place.allocation.map(|_| storage));
        Ok(Self { args, info, written, session, driver, announcing, found, gauge, was_complete, ticks: 0 })
    }

    /// Runs until Ctrl-C, a failure, or `is_over`.
    async fn run(&mut self, is_over: impl Fn(&Self) -> bool) -> Result<(), Failure> {
        self.tell(
            "begin",
            &json!({
                "name": self.info.name, "info_hash": numbers::hex(&self.info.info_hash()),
                "bytes": super::show::content_bytes(&self.info), "pieces": self.info.piece_count(),
            }),
        );
        if self.was_complete && self.written.is_some() {
            self.tell("complete", &json!({ "bytes": self.session.view().bytes }));
        }
        let Some(mut driver) = self.driver.take() else { return Ok(()) };
        let outcome = {
            let mut running = std::pin::pin!(driver.run());
            loop {
                if is_over(self) {
                    break Ok(());
                }
                tokio::select! {
                    ended = &mut running => break ended.map_err(|error| unrun(&error)),
                    () = tokio::time::sleep(TICK) => self.look(),
                    mapping = self.found.mapped.changed() => self.on_mapping(&mapping),
                    Some(peers) = self.found.peers.recv() => self.session.add_peers(&peers),
                    Some(peers) = self.found.near.recv() => self.session.add_near_peers(&peers),
                    () = asked() => break Err(Failure::Interrupted(self.parting())),
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
        let (here, all) =
            (self.session.view().pieces, numbers::count(self.info.piece_count() as usize, "piece"));
        format!("what has come stays, {here} of {all}; the same command goes on")
    }

    fn look(&mut self) {
        let view = self.session.view();
        let rates = self.gauge.update(&view);
        self.ticks += 1;
        if self.found.mapped.is_to_be_told() {
            self.session.announce_again();
        }
        if self.args.json && self.ticks.is_multiple_of(TICKS_PER_LINE) {
            self.tell("progress", &document(&view, &rates));
        }
        self.tell_completion();
    }

    /// Once.
    fn tell_completion(&mut self) {
        if self.session.is_done() && !std::mem::replace(&mut self.was_complete, true) {
            self.tell("complete", &json!({ "bytes": self.session.view().bytes }));
        }
    }

    /// A router leads others to us.
    fn on_mapping(&self, mapping: &Mapping) {
        let (text, data) = port::told(mapping);
        screen::mention(&text);
        self.tell("port", &data);
    }

    fn tell(&self, event: &str, data: &Value) {
        tell(self.args, event, data);
    }

    /// Leaves the swarm, and says how it was.
    async fn end(mut self, outcome: Result<(), Failure>) -> Result<(), Failure> {
        let elapsed = self.gauge.end();
        let view = self.session.view();
        self.session.leave();
        if let Some(driver) = &mut self.driver {
            driver.write_notes();
            driver.take_notes().filter(|_| self.session.is_done()).into_iter().for_each(Notes::discard);
        }
        if let Some(storage) = self.written.as_ref().filter(|it| view.is_complete && it.wants_everything()) {
            storage.discard_parts();
        }
        let patience = outcome.as_ref().err().map_or(swarm::GOODBYE, swarm::parting_time);
        let goodbye = tokio::time::timeout(patience, &mut self.announcing);
        let _ = tokio::join!(goodbye, self.found.mapped.end());
        let mut data = document(&view, &super::gauge::Rates::default());
        data["seconds"] = elapsed.as_secs_f64().into();
        data["cpu_s"] = crate::carry::send::cpu_s().into();
        if let Err(failure) = &outcome {
            data["error"] = failure.text().into();
        }
        self.tell("end", &data);
        let (down, up) = (view.totals.downloaded, view.totals.uploaded);
        let web = view.totals.downloaded_web;
        let of_servers =
            if web > 0 { format!(", {} from web seeds", numbers::amount(web)) } else { String::new() };
        screen::mention(&format!(
            "{} received ({} over uTP{of_servers}), {} sent ({} over uTP) in {:.1} s\n",
            numbers::amount(down.iter().sum::<u64>() + web),
            numbers::amount(down[1]),
            numbers::amount(up.iter().sum()),
            numbers::amount(up[1]),
            elapsed.as_secs_f64()
        ));
        outcome
    }
}

/// Octets of pieces that are wanted.
fn wanted_bytes(info: &Info, storage: &Storage) -> u64 {
    let is_wanted = storage.wanted_pieces();
    (0..info.piece_count())
        .filter(|at| is_wanted[*at as usize])
        .map(|at| u64::from(info.piece_bytes(at)))
        .sum()
}

/// Opens the notes and makes room.
fn prepare(
    info: &Info,
    folder: &Path,
    (storage, allocation): (&Storage, Allocation),
) -> Result<Notes, Failure> {
    let notes = Notes::open(folder, &info.info_hash()).map_err(|error| unstored(&error))?;
    if let Err(error) = storage.prepare(allocation) {
        // Notes of an earlier run are kept: what is in the way may be moved.
        notes.discard_if_empty();
        return Err(unstored(&error));
    }
    Ok(notes)
}

/// Opens the content and finds out what is there.
async fn open(
    info: &Arc<Info>,
    place: &Place<'_>,
) -> Result<(Arc<Storage>, Option<Notes>, Vec<bool>), Failure> {
    let storage = Storage::new(place.folder, info, &place.wanted).map_err(|error| unstored(&error))?;
    let storage = Arc::new(storage);
    let notes =
        place.allocation.map(|allocation| prepare(info, place.folder, (&storage, allocation))).transpose()?;
    let skip =
        notes.as_ref().map(|notes| notes.missing(storage.layout(), &stamps(&storage))).unwrap_or_default();
    let whole = find(info, &storage, skip, place.allocation.is_some()).await?;
    Ok((storage, notes, whole))
}

/// The pieces that are there. Of those that files share the parts are looked for where they may be, if something is to be written.
async fn find(
    info: &Arc<Info>,
    storage: &Arc<Storage>,
    skip: Vec<bool>,
    is_written: bool,
) -> Result<Vec<bool>, Failure> {
    let watch = Arc::new(Watch::default());
    let (checked, total) = (watch.clone(), info.total_bytes);
    let (subject, torrent) = (storage.clone(), info.clone());
    let mut checking = tokio::task::spawn_blocking(move || {
        let mut whole = check::check(&subject, &torrent, &skip, &checked);
        let mended =
            if is_written { mend(&subject, &torrent, (&mut whole, &skip), &checked) } else { Ok(()) };
        mended.map(|()| whole)
    });
    let mut status = StatusLine::begin(Pace::patient(Duration::from_millis(100)), None);
    let whole = loop {
        tokio::select! {
            whole = &mut checking => break whole,
            () = tokio::time::sleep(TICK) => {}
        }
        watch.is_ended.store(interrupt::is_asked(), Relaxed);
        let part = watch.done.load(Relaxed) as f64 / total as f64;
        status.show(|_| format!("{}  checking what is there", bar(part)));
    };
    status.end();
    if interrupt::is_asked() {
        return Err(Failure::Interrupted("what is there was not checked".to_owned()));
    }
    let whole = whole.map_err(|error| Failure::Failed(error.to_string()))?;
    whole.map_err(|error| unstored(&error))
}

fn headline(info: &Info, here: usize, port: u16) -> String {
    let name = super::shown(std::slice::from_ref(&info.name));
    let (amount, pieces) = (
        numbers::amount(super::show::content_bytes(info)),
        numbers::count(info.piece_count() as usize, "piece"),
    );
    let port = match port {
        0 => "no peer can call us".to_owned(),
        port => format!("TCP and UDP port {port}"),
    };
    format!("{name}: {amount}, {here} of {pieces} are here; {port}\n")
}

/// The torrent's trackers, and those that were named.
fn tiers(args: &SwarmArgs, own: Vec<Vec<String>>) -> Vec<Vec<String>> {
    own.into_iter().chain(args.trackers.iter().map(|url| vec![url.clone()])).collect()
}

/// What a person should know before it begins.
fn remark(args: &SwarmArgs, info: &Info, is_unnamed: bool) {
    if info.version == Version::Hybrid {
        screen::mention("a hybrid torrent: its v1 side is used, its v2 hashes are not checked\n");
    }
    if is_unnamed && args.peers.is_empty() && (args.no_dht && args.no_lsd || info.is_private) {
        let what = "name a tracker (-t) or a peer (--peer), or wait for others";
        screen::mention(&format!("nobody is to be asked for peers: {what}\n"));
    }
}

/// Names that file systems do not take, and content that is elsewhere.
fn mention_files(storage: &Storage, place: &Place<'_>, here: usize) {
    if place.allocation.is_none() && here == 0 {
        let folder = place.folder.display();
        screen::mention(&format!("nothing of it is in {folder}: --data names the folder that has it\n"));
    }
    if place.is_super {
        let is_whole = here == storage.wanted_pieces().len();
        let how = if is_whole {
            "each peer is told of two pieces at a time"
        } else {
            "not everything is here: what is, is given as usual"
        };
        screen::mention(&format!("super-seeding: {how}\n"));
    }
    let is_real = |file: &usize| !storage.layout().files()[*file].is_padding;
    let files = 0..storage.layout().files().len();
    let count = files.filter(|file| is_real(file) && storage.is_shortened(*file)).count();
    if count > 0 {
        let files = numbers::count(count, "file");
        screen::mention(&format!("names of {files} are too long for file systems, and kept shorter\n"));
    }
}

/// Peers that were found.
struct Found {
    peers: UnboundedReceiver<Vec<SocketAddr>>,
    /// Those in the local network.
    near: UnboundedReceiver<Vec<SocketAddr>>,
    mapped: Mapped,
}

/// Asks trackers, the distributed hash table and the local network from now on.
fn look_for_peers(
    args: &SwarmArgs,
    info: &Arc<Info>,
    (session, wishes, identity): (&Session, UnboundedReceiver<Wish>, Identity),
    (tiers, given): (Vec<Vec<String>>, Vec<SocketAddr>),
    listener: &Listener,
) -> (JoinHandle<()>, Found) {
    let (found, peers) = mpsc::unbounded_channel();
    let (found_near, near) = mpsc::unbounded_channel();
    let (notes, noted) = mpsc::unbounded_channel();
    let (subject, total) = (session.clone(), info.total_bytes);
    let port = Rc::new(listener.outer_port());
    let amounts = move || {
        let view = subject.view();
        let sum = |sums: [u64; 2]| sums.iter().sum();
        let left = total.saturating_sub(view.bytes);
        let downloaded = sum(view.totals.downloaded) + view.totals.downloaded_web;
        Amounts { uploaded: sum(view.totals.uploaded), downloaded, left, port: Some(port()) }
    };
    let announcing = tokio::task::spawn_local(announce::run(tiers, identity, amounts, wishes, notes));
    tokio::task::spawn_local(notes::hear(noted, found.clone()));
    tokio::task::spawn_local(remind(given, found.clone()));
    if !args.no_dht && !info.is_private {
        swarm::search_dht(args, info.info_hash(), (listener, true), &found);
    }
    if !args.no_lsd && !info.is_private {
        swarm::search_local(info.info_hash(), (listener, Some(listener.port())), found_near);
    }
    (announcing, Found { peers, near, mapped: Mapped::default() })
}

async fn remind(given: Vec<SocketAddr>, found: UnboundedSender<Vec<SocketAddr>>) {
    while found.send(given.clone()).is_ok() {
        tokio::time::sleep(REMINDER).await;
    }
}
