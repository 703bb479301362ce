//! One transfer.

use crate::place::Place;
use crate::support::{LIMIT, Member, choices};
use crate::theirs::{Client, Kind, Role, Task, Theirs};
use crate::torrent::Torrent;
use cede_bt::metadata::Wanted;
use cede_bt::tracker::book::Limits;
use cede_bt::{Disposition, Transport};
use cede_real::StreamConfig;
use cede_torrent::calls::Calls;
use cede_torrent::magnet::{Seeker, fetch};
use cede_torrent::server::Tracker;
use cede_torrent::session::{Choices, Encryption, Listener};
use std::cell::RefCell;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc;

const BYTES: usize = 1_500_000;

pub const HEAD: &str = "# The BitTorrent client with others\n\n\
Each row is a transfer of 1.5 MB between `cede-torrent` and another client; equal means that all octets are. Enciphered means\n\
that both sides refuse anything else; in the clear, that ours does. aria2 has no uTP.\n\
Made by `CEDE_UPDATE=1 cargo test -p cede-torrent --test interop`, which also runs in the test suite; `docs/interop.md` ends with\n\
the same.\n\n\
| client | way | transport | encryption | known by | content |\n|---|---|---|---|---|---|\n";

#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The other client has the content.
    pub is_theirs: bool,
    pub transport: Transport,
    pub is_enciphered: bool,
    pub by_magnet: bool,
    pub is_v2: bool,
}

impl Case {
    pub fn all(client: &Client) -> Vec<Self> {
        let transports: &[Transport] =
            if client.kind == Kind::Aria2 { &[Transport::Tcp] } else { &[Transport::Tcp, Transport::Utp] };
        let mut all = Vec::new();
        for is_theirs in [true, false] {
            for &transport in transports {
                for (is_enciphered, by_magnet) in [(false, false), (true, false), (false, true), (true, true)]
                {
                    all.push(Self { is_theirs, transport, is_enciphered, by_magnet, is_v2: false });
                }
                // Of the clients here libtorrent knows v2; a link asks for more than a file does.
                if client.kind == Kind::Libtorrent {
                    let (is_enciphered, by_magnet) = (false, true);
                    all.push(Self { is_theirs, transport, is_enciphered, by_magnet, is_v2: true });
                }
            }
        }
        all
    }

    fn disposition(self) -> Disposition {
        if self.transport == Transport::Tcp { Disposition(5) } else { Disposition(10) }
    }

    fn encryption(self) -> Encryption {
        if self.is_enciphered { Encryption::Require } else { Encryption::Off }
    }

    fn choices(self) -> Choices {
        Choices { encryption: self.encryption(), ..choices(1, self.disposition().0) }
    }

    pub fn row(self, client: &str) -> String {
        let way = if self.is_theirs { "theirs to ours" } else { "ours to theirs" };
        let over = if self.transport == Transport::Tcp { "tcp" } else { "utp" };
        let cipher = if self.is_enciphered { "enciphered" } else { "in the clear" };
        let by = match (self.by_magnet, self.is_v2) {
            (true, true) => "magnet link (v2)",
            (true, false) => "magnet link",
            (false, _) => "torrent file",
        };
        format!("| {client} | {way} | {over} | {cipher} | {by} | equal |\n")
    }
}

/// Ports of those that have announced themselves as seeds.
type Seeds = Rc<RefCell<HashSet<u16>>>;

/// A tracker, and what it has heard.
pub fn tracker(place: &Place) -> (String, Seeds) {
    let limits = Limits { interval: cede_units::Duration::from_secs(5), ..Limits::default() };
    let seeds = Seeds::default();
    let heard = seeds.clone();
    let log = Box::new(move |entry: &cede_torrent::server::Entry| {
        if let Some(announce) = entry.announce.as_ref().filter(|announce| announce.left == Some(0)) {
            heard.borrow_mut().insert(announce.port);
        }
    });
    let tracker = Tracker::bind(SocketAddr::new(place.ip, 0), limits, Vec::new(), log).unwrap();
    let url = format!("http://{}/announce", tracker.local_addr().unwrap());
    tokio::task::spawn_local(async move { tracker.run().await });
    (url, seeds)
}

async fn until_announced(seeds: &Seeds, port: u16) {
    let waiting = async {
        while !seeds.borrow().contains(&port) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // A client whose first announce goes wrong waits a minute: it is sooner begun anew.
    let waited = tokio::time::timeout(LIMIT / 3, waiting).await;
    assert!(waited.is_ok(), "nobody has announced port {port} as a seed's");
}

pub async fn exchange(place: &Place, client: &Client, case: Case) {
    let (url, seeds) = tracker(place);
    let torrent = Torrent::new(url, BYTES, case.is_v2);
    let folder = torrent.folder("theirs");
    let role = if case.is_theirs { Role::Seed } else { Role::Leech };
    let task = Task {
        torrent: &torrent,
        folder: folder.clone(),
        role,
        by_magnet: case.by_magnet,
        is_enciphered: case.is_enciphered,
        transports: vec![case.transport],
        address: SocketAddr::new(place.ip, Place::port()),
        namespace: None,
    };
    if case.is_theirs {
        torrent.put(&folder);
        let _theirs = Theirs::start(client, &task).await;
        until_announced(&seeds, task.address.port()).await;
        let mut ours = Member::at(place.ip, &torrent.info, None, &[], case.choices()).await;
        if case.by_magnet {
            follow(&torrent, case, task.address).await;
        }
        ours.start();
        ours.session.add_peers(&[task.address]);
        ours.done().await;
        assert_eq!(ours.content(torrent.content.len()), torrent.content, "{case:?}");
        let view = ours.session.view();
        assert_eq!(view.totals.downloaded[1 - case.transport as usize], 0, "the other transport was used");
    } else {
        let mut ours = Member::at(place.ip, &torrent.info, Some(&torrent.content), &[], case.choices()).await;
        announce_ours(&mut ours, &torrent);
        ours.start();
        until_announced(&seeds, ours.address.port()).await;
        let _theirs = Theirs::start(client, &task).await;
        torrent.until_in(&folder).await;
        let view = ours.session.view();
        assert_eq!(view.totals.uploaded[1 - case.transport as usize], 0, "the other transport was used");
    }
}

/// The dictionary from theirs is the torrent's.
async fn follow(torrent: &Torrent, case: Case, address: SocketAddr) {
    let attempts = Disposition(case.disposition().0 & 3);
    let listener = Listener::bind(Some(address.ip()), 0, attempts, StreamConfig::default()).await.unwrap();
    let wanted = match torrent.info.hash_v2 {
        Some(hash) => Wanted::V2(hash),
        None => Wanted::V1(torrent.info.hash_v1),
    };
    let seeker = Seeker {
        wanted,
        info_hash: torrent.info.info_hash(),
        peer_id: [2; 20],
        client: "cede test".to_owned(),
        disposition: case.disposition(),
        encryption: case.encryption(),
        listener: Some(Rc::new(listener)),
        calls: Calls::default(),
    };
    let (found, mut peers) = mpsc::unbounded_channel();
    found.send(vec![address]).unwrap();
    let fetched = tokio::time::timeout(LIMIT, fetch(&seeker, &mut peers)).await.unwrap().0;
    assert_eq!(fetched.unwrap().unwrap(), *torrent.info, "{case:?}");
}

/// Ours at the tracker, asked again as often as it says; whoever it names is known to ours.
pub fn announce_ours(ours: &mut Member, torrent: &Torrent) {
    use cede_torrent::announce::{Amounts, Identity, Note, run};
    use cede_torrent::origin::Origin;
    let (notes, mut noted) = mpsc::unbounded_channel::<Note>();
    let session = ours.session.clone();
    tokio::task::spawn_local(async move {
        while let Some(note) = noted.recv().await {
            session.add_peers(&note.result.map(|answer| answer.peers).unwrap_or_default());
        }
    });
    let (_, closed) = mpsc::unbounded_channel();
    let wishes = std::mem::replace(&mut ours.wishes, closed);
    let port = ours.address.port();
    let peer_id = [port as u8; 20];
    let identity =
        Identity { info_hash: torrent.info.info_hash(), peer_id, port, key: 1, origin: Origin::default() };
    let (session, total) = (ours.session.clone(), torrent.info.total_bytes);
    let amounts = move || Amounts { left: total - session.view().bytes, ..Amounts::default() };
    tokio::task::spawn_local(run(
        vec![vec![torrent.tracker.clone()].into()],
        identity,
        amounts,
        wishes,
        notes,
    ));
}
