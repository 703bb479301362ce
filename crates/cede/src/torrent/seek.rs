//! From a magnet link to its torrent: who is asked, and what becomes of those who were told of us.

use super::alone::Alone;
use super::asking::Asking;
use super::hub::Hub;
use super::swarm::{self, peer_id};
use super::swarm_args::SwarmArgs;
use crate::carry::numbers;
use crate::failure::Failure;
use crate::screen;
use cede_bt::Transport;
use cede_bt::magnet::Magnet;
use cede_bt::metadata::Wanted;
use cede_bt::metainfo::{Info, Metainfo};
use cede_torrent::calls::Calls;
use cede_torrent::magnet::{Seeker, Told, fetch};
use std::cell::RefCell;
use std::collections::HashSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// It is looked so often whether there is something to say.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A torrent, and where peers may be.
pub struct Source {
    /// The torrent.
    pub metainfo: Metainfo,
    /// Peers that are known already.
    pub peers: Vec<SocketAddr>,
    /// Those of them that stand in the link.
    pub given: Vec<SocketAddr>,
    /// Files that a link selects.
    pub selected: Vec<(u32, u32)>,
    /// Trackers that have heard of us.
    pub asking: Option<Asking>,
}

impl Source {
    /// A torrent that nothing else is known of.
    pub const fn of(metainfo: Metainfo) -> Self {
        Self { metainfo, peers: Vec::new(), given: Vec::new(), selected: Vec::new(), asking: None }
    }
}

/// It was ended before anything came.
pub fn nothing_came() -> Failure {
    Failure::Interrupted("nothing was downloaded".to_owned())
}

/// What was found out behind a link.
struct Found {
    info: Info,
    /// Peers that are known.
    peers: Vec<SocketAddr>,
    /// Those of them that trackers, the link or whoever started us have named.
    named: HashSet<SocketAddr>,
}

/// What a link asks for, if that can be asked for.
fn understand(what: &str, args: &SwarmArgs) -> Result<(Magnet, Wanted), Failure> {
    let magnet = Magnet::parse(what).map_err(|error| Failure::Usage(error.to_string()))?;
    let wanted = match (magnet.hash_v1, magnet.hash_v2) {
        (Some(hash), _) => Wanted::V1(hash),
        (None, Some(hash)) => Wanted::V2(hash),
        (None, None) => return Err(Failure::Usage("the magnet link has no hash".to_owned())),
    };
    if !Transport::ALL.into_iter().any(|transport| args.transport.attempts(transport)) {
        let text = "a link is followed by asking peers, and --transport attempts none; give a torrent file";
        return Err(Failure::Usage(text.to_owned()));
    }
    Ok((magnet, wanted))
}

/// Follows a link to its torrent.
pub async fn follow(what: &str, (hub, row): (&Rc<Hub>, usize)) -> Result<Source, Failure> {
    let args = &hub.args;
    let (magnet, wanted) = understand(what, args)?;
    let name = called(&magnet);
    hub.say_of(&name, "looking for somebody who has the torrent behind the link");
    let given = named_peers(hub, &magnet).await;
    let trackers: Vec<Vec<String>> = magnet.trackers.iter().map(|url| vec![url.clone()]).collect();
    let identity = hub.new_identity(magnet.info_hash())?;
    let (named, names) = mpsc::unbounded_channel();
    let _ = named.send([swarm::peers(args), given.clone()].concat());
    let tiers = hub.tiers(trackers.clone());
    if tiers.is_empty() && given.is_empty() {
        hub.remark_on_nobody(&name, false);
    }
    let asking = Asking::begin(tiers, identity, (hub, row), &named);
    drop(named);
    let found =
        search(hub, (&magnet, wanted), (&asking, names)).await.and_then(|found| agreeing(found, &magnet));
    let Found { info, peers, named } = match found {
        Ok(found) => found,
        Err(failure) => {
            asking.end(&failure).await;
            return Err(failure);
        }
    };
    // A private torrent's peers are those that its trackers tell of. libtorrent keeps those that the table has told it by then.
    let peers = peers.into_iter().filter(|peer| !info.is_private || named.contains(peer)).collect();
    let metainfo = Metainfo { web_seeds: magnet.web_seeds, ..Metainfo::of_info(info, trackers) };
    Ok(Source { metainfo, peers, given, selected: magnet.selected, asking: Some(asking) })
}

/// What a link's torrent is called until it is known.
fn called(magnet: &Magnet) -> String {
    magnet.name.clone().unwrap_or_else(|| numbers::hex(&magnet.info_hash()))
}

/// A link with two hashes means one torrent; by that of v1 it is asked for.
fn agreeing(found: Found, magnet: &Magnet) -> Result<Found, Failure> {
    match magnet.hash_v2 {
        Some(hash) if found.info.hash_v2 != Some(hash) => {
            let (name, has) = (screen::printable(&found.info.name), found.info.hash_v2);
            let has = has.map_or("has none".to_owned(), |hash| format!("has {}", numbers::hex(&hash)));
            let text = format!(
                "the link's two hashes are not one torrent's: by that of v1 it is {name}, which {has} of v2; take one of them out of the link"
            );
            Err(Failure::Failed(text))
        }
        _ => Ok(found),
    }
}

/// The peers that stand in a link.
async fn named_peers(hub: &Hub, magnet: &Magnet) -> Vec<SocketAddr> {
    let mut given = Vec::new();
    for peer in &magnet.peers {
        match tokio::net::lookup_host(peer).await {
            Ok(found) => given.extend(found),
            Err(error) => {
                let text = format!("{peer}, a peer of the link (x.pe): {error}");
                hub.say(&(screen::printable(&text) + "\n"));
            }
        }
    }
    given
}

async fn seeker(hub: &Hub, magnet: &Magnet, wanted: Wanted) -> Result<Seeker, Failure> {
    let args = &hub.args;
    let listener = swarm::only_attempts(args, hub.listener.filter()).await?;
    Ok(Seeker {
        wanted,
        info_hash: magnet.info_hash(),
        // Another name than the session's: peers refuse two connections of one.
        peer_id: peer_id()?,
        client: swarm::client(),
        disposition: args.transport,
        encryption: args.encryption.into(),
        listener: Some(listener),
        calls: Calls::default(),
    })
}

async fn search(
    hub: &Hub,
    (magnet, wanted): (&Magnet, Wanted),
    (asking, names): (&Asking, UnboundedReceiver<Vec<SocketAddr>>),
) -> Result<Found, Failure> {
    let args = &hub.args;
    let seeker = seeker(hub, magnet, wanted).await?;
    let (found, mut peers) = mpsc::unbounded_channel();
    let named = Rc::new(RefCell::new(HashSet::new()));
    tokio::task::spawn_local(remember(names, named.clone(), found.clone()));
    if !args.no_dht {
        // Whether it is private is not known: the table is asked, and not told of us.
        hub.search_dht(magnet.info_hash(), false, &found);
    }
    if !args.no_lsd {
        // Likewise: others are heard, and not told of us.
        hub.search_local(magnet.info_hash(), false, found.clone());
    }
    drop(found);
    let (told, peers) = tokio::select! {
        outcome = fetch(&seeker, &mut peers) => outcome,
        never = asking.keep_wishing() => match never {},
        never = explain(hub, &seeker, magnet) => match never {},
        () = crate::interrupt::asked() => return Err(nothing_came()),
    };
    let told: Told =
        told.ok_or_else(|| Failure::Failed("nobody could tell what the link stands for".to_owned()))?;
    let info = told.map_err(|error| Failure::Failed(error.to_string()))?;
    let named = named.borrow().clone();
    Ok(Found { info, peers, named })
}

/// Says why nobody tells, once that has lasted.
async fn explain(hub: &Hub, seeker: &Seeker, magnet: &Magnet) -> Infallible {
    let mut alone = Alone::new(Instant::now());
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if let Some(text) = alone.look(Instant::now(), &seeker.calls.misses(), seeker.encryption) {
            hub.say_of(&called(magnet), &text);
        }
    }
}

/// Hands on peers, and remembers who was among them.
async fn remember(
    mut names: UnboundedReceiver<Vec<SocketAddr>>,
    named: Rc<RefCell<HashSet<SocketAddr>>>,
    found: UnboundedSender<Vec<SocketAddr>>,
) {
    while let Some(peers) = names.recv().await {
        named.borrow_mut().extend(&peers);
        if found.send(peers).is_err() {
            return;
        }
    }
}
