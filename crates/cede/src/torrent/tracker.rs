//! `cede torrent tracker`.

use super::args::TrackerArgs;
use super::{read_metainfo, source_name, swarm};
use crate::carry::numbers;
use crate::dataset::date;
use crate::failure::Failure;
use crate::interrupt;
use crate::screen;
use cede_bt::tracker::book::Limits;
use cede_torrent::server::{Entry, Over, Tracker};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// Runs a tracker until Ctrl-C.
pub fn tracker(args: &TrackerArgs) -> Result<(), Failure> {
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        read_metainfo(path).map_err(|failure| failure.about(&source_name(&name)))
    };
    let only = args.only.iter().map(|path| Ok(read(path)?.info.info_hash()));
    let only = only.collect::<Result<Vec<_>, Failure>>()?;
    swarm::run(async {
        let tracker = bind(args, &only)?;
        let address = tracker.local_addr().map_err(|error| Failure::Failed(error.to_string()))?;
        let host = if address.ip().is_unspecified() { "HOST".to_owned() } else { host(address.ip()) };
        let port = address.port();
        screen::mention(&format!("tracker at http://{host}:{port}/announce and udp://{host}:{port}\n"));
        tokio::select! {
            () = tracker.run() => {}
            () = interrupt::asked() => {}
            () = swarm::unread() => return Ok(()),
        }
        Err(Failure::Interrupted("the tracker has ended".to_owned()))
    })
}

fn host(ip: IpAddr) -> String {
    if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() }
}

fn bind(args: &TrackerArgs, only: &[[u8; 20]]) -> Result<Tracker, Failure> {
    let all = [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)];
    let addresses = args.bind.map_or(all.to_vec(), |address| vec![address]);
    let limits = Limits { interval: args.interval, ..Limits::default() };
    let (mut last, mut at) = (None, String::new());
    for address in addresses {
        let is_json = args.json;
        let log = Box::new(move |entry: &Entry| tell(entry, is_json));
        match Tracker::bind(SocketAddr::new(address, args.port), limits, only.to_vec(), log) {
            Ok(tracker) => return Ok(tracker),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                let port = args.port;
                let hint = "give another (0 for a free one)";
                return Err(Failure::Failed(format!(
                    "port {port} is taken; {hint}, or see who has it: ss -lntup"
                )));
            }
            Err(error) => (last, at) = (Some(error), format!("{address}, ")),
        }
    }
    let error = last.unwrap_or_else(|| ErrorKind::AddrNotAvailable.into());
    Err(Failure::of_system(format!("cannot wait at {at}port {}: {error}", args.port), error.kind()))
}

/// One line for each announce, with its time.
fn tell(entry: &Entry, is_json: bool) {
    if is_json {
        screen::report_json_line(&document(entry));
    } else {
        screen::report(&text(entry, now_s()));
    }
}

const fn over(entry: &Entry) -> &'static str {
    match entry.over {
        Over::Http => "http",
        Over::Udp => "udp",
    }
}

/// Where a peer takes connections; where it has not said so, where it asked from.
fn peer(entry: &Entry) -> SocketAddr {
    let port = entry.announce.as_ref().map_or(entry.from.port(), |announce| announce.port);
    SocketAddr::new(entry.from.ip(), port)
}

fn document(entry: &Entry) -> Value {
    let announce = entry.announce.as_ref();
    // Of which torrent nobody knows, there is nothing to count.
    let tally = announce.map(|_| &entry.tally);
    json!({
        "at_s": now_s(), "peer": peer(entry).to_string(), "over": over(entry),
        "info_hash": announce.map(|announce| numbers::hex(&announce.info_hash)),
        "event": announce.map(|announce| announce.event.name()),
        "peer_id": announce.map(|announce| numbers::hex(&announce.peer_id)),
        "left": announce.and_then(|announce| announce.left),
        "uploaded": announce.map(|announce| announce.uploaded),
        "downloaded": announce.map(|announce| announce.downloaded),
        "told": entry.result.as_ref().ok(), "refused": entry.result.as_ref().err(),
        "seeders": tally.map(|tally| tally.seeders), "leechers": tally.map(|tally| tally.leechers),
        "completed": tally.map(|tally| tally.completed),
    })
}

fn text(entry: &Entry, at_s: f64) -> String {
    let (day, second) = (date((at_s * 1e6) as u64), at_s as u64 % 86_400);
    format!("{day}T{:02}:{:02}:{:02}Z {}", second / 3_600, second / 60 % 60, second % 60, words(entry))
}

fn words(entry: &Entry) -> String {
    let (peer, over) = (peer(entry), over(entry));
    let told = match &entry.result {
        Ok(count) => format!("told {}", numbers::count(*count, "peer")),
        Err(why) => format!("refused: {why}"),
    };
    let Some(announce) = &entry.announce else { return format!("{peer:<24} {over:<4} {told}\n") };
    let hash = numbers::hex(&announce.info_hash);
    let left = announce.left.map_or_else(|| "?".to_owned(), numbers::amount);
    let (seeders, leechers) = (entry.tally.seeders, entry.tally.leechers);
    format!(
        "{peer:<24} {over:<4} {}  {:<9} left {left:>8}, {told}, {seeders} seeding {leechers} leeching\n",
        &hash[..8],
        announce.event.name()
    )
}

fn now_s() -> f64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0.0, |now| now.as_secs_f64())
}
