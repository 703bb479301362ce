//! What is told of torrents and of the session.

use super::chosen::chosen as chosen_torrents;
use super::entry::{Entry, Status, files};
use super::roster::Daemon;
use super::terms::{Arguments, now_s};
use crate::failure::Failure;
use crate::torrent::hub::Heard;
use crate::torrent::show::{content_bytes, magnet_of};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cede_bt::metainfo::Metainfo;
use cede_torrent::session::{Turn, View};
use serde_json::{Map, Value, json};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

/// Of what is asked for with `fields` those, or all.
pub fn chosen(all: Arguments, arguments: &Arguments) -> Arguments {
    match arguments.get("fields").and_then(Value::as_array) {
        Some(fields) => {
            all.into_iter().filter(|(key, _)| fields.iter().any(|it| it.as_str() == Some(key))).collect()
        }
        None => all,
    }
}

/// `torrent-get`.
pub fn torrents(daemon: &Rc<Daemon>, arguments: &Arguments) -> Result<Arguments, Failure> {
    let fields = arguments.get("fields").and_then(Value::as_array);
    let fields: Vec<&str> = fields
        .ok_or_else(|| Failure::Usage("fields: say which".to_owned()))?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let entries = chosen_torrents(daemon, arguments)?;
    let ranked = if fields.contains(&"queuePosition") { daemon.queue() } else { Vec::new() };
    let positions = ranked.iter().enumerate().map(|(position, entry)| (entry.id, position)).collect();
    let is_table = arguments.get("format").and_then(Value::as_str) == Some("table");
    let mut list: Vec<Value> = if is_table { vec![json!(fields)] } else { Vec::new() };
    for entry in entries {
        let about = About::of(daemon, &entry, &positions);
        let known = fields.iter().filter_map(|field| Some(((*field).to_owned(), about.field(field)?)));
        list.push(if is_table {
            fields.iter().map(|field| about.field(field).unwrap_or(Value::Null)).collect()
        } else {
            known.collect::<Map<_, _>>().into()
        });
    }
    let mut told = Map::from_iter([("torrents".to_owned(), Value::from(list))]);
    if arguments.get("ids").and_then(Value::as_str) == Some("recently-active") {
        told.insert("removed".to_owned(), json!(daemon.lately_removed()));
    }
    Ok(told)
}

/// A torrent as it stands. What takes a while to find out is found out where somebody asks for it.
struct About<'a> {
    daemon: &'a Daemon,
    entry: &'a Entry,
    /// Places in the queue, by the numbers of torrents, where somebody asks for them.
    positions: &'a HashMap<u32, usize>,
    metainfo: Option<Rc<Metainfo>>,
    view: OnceCell<Option<View>>,
    checked: Option<f64>,
    status: Status,
    here: OnceCell<Vec<u64>>,
}

impl<'a> About<'a> {
    fn of(daemon: &'a Daemon, entry: &'a Entry, positions: &'a HashMap<u32, usize>) -> Self {
        let checked = daemon.hub.checked(entry.row);
        Self {
            metainfo: entry.metainfo.borrow().clone(),
            view: OnceCell::new(),
            checked,
            status: entry.status(checked),
            here: OnceCell::new(),
            daemon,
            entry,
            positions,
        }
    }

    fn view(&self) -> Option<&View> {
        self.view.get_or_init(|| self.entry.view()).as_ref()
    }

    /// Octets of each file that are there.
    fn here(&self) -> &[u64] {
        self.here.get_or_init(|| self.entry.here())
    }

    /// Octets of the files that are wanted, and of them those that are there.
    fn wanted(&self) -> (u64, u64) {
        let Some(known) = &self.metainfo else { return (0, 0) };
        let kept = self.entry.kept.borrow();
        let is_wanted = |(number, _): &(usize, _)| !kept.unwanted.contains(number);
        let all = files(&known.info).map(|(_, file)| file.length).enumerate().filter(is_wanted);
        all.fold((0, 0), |(wanted, here), (number, length)| {
            (wanted + length, here + self.here().get(number).copied().unwrap_or(0).min(length))
        })
    }

    fn total(&self) -> u64 {
        self.metainfo.as_ref().map_or(0, |known| content_bytes(&known.info))
    }

    fn rates(&self) -> (u64, u64) {
        self.entry.rates()
    }

    fn moved(&self) -> (u64, u64) {
        self.entry.moved(self.view())
    }

    fn part_done(&self) -> f64 {
        match self.wanted() {
            (0, _) => f64::from(u8::from(self.metainfo.is_some())),
            (wanted, here) => here as f64 / wanted as f64,
        }
    }

    /// Sent for each octet that there is; -1 where nothing is, -2 where that is without end.
    fn ratio(&self) -> f64 {
        let (received, sent) = self.moved();
        let of = if received > 0 { received } else { self.here().iter().sum() };
        match (sent, of) {
            (0, 0) => -1.0,
            (_, 0) => -2.0,
            (sent, of) => sent as f64 / of as f64,
        }
    }

    /// Seconds until it is there; -1 where that is not now, -2 where it is not known.
    fn eta(&self) -> i64 {
        let (wanted, here) = self.wanted();
        match (self.status, self.rates().0) {
            (Status::Fetches, 0) => -2,
            (Status::Fetches, rate) => i64::try_from((wanted - here) / rate).unwrap_or(-2),
            _ => -1,
        }
    }

    /// A number of its own for each kind of trouble: 0 none, 1 and 2 a tracker's, 3 ours.
    fn error(&self) -> (u8, String) {
        if let Some(text) = &*self.entry.error.borrow() {
            return (3, text.clone());
        }
        match self.daemon.hub.complaints(self.entry.row).into_iter().next() {
            Some((server, text)) => (1, format!("{server}: {text}")),
            None => (0, String::new()),
        }
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.of_content(name)
            .or_else(|| self.of_progress(name))
            .or_else(|| self.of_terms(name))
            .or_else(|| self.of_peers(name))
            .or_else(|| self.of_files(name))
            .or_else(|| self.of_trackers(name))
            .or_else(|| never(name))
    }

    /// What stands in the torrent file.
    fn of_content(&self, name: &str) -> Option<Value> {
        let (entry, kept) = (self.entry, self.entry.kept.borrow());
        let known = self.metainfo.as_deref();
        let info = known.map(|known| &known.info);
        Some(match name {
            "id" => entry.id.into(),
            "queuePosition" => self.positions.get(&entry.id).copied().unwrap_or(self.positions.len()).into(),
            "hashString" => entry.hash.as_str().into(),
            "name" => entry.name().into(),
            "totalSize" => self.total().into(),
            "pieceCount" => info.map_or(0, cede_bt::metainfo::Info::piece_count).into(),
            "pieceSize" => info.map_or(0, |info| info.piece_length).into(),
            "isPrivate" => info.is_some_and(|info| info.is_private).into(),
            "comment" => known.and_then(|known| known.comment.clone()).unwrap_or_default().into(),
            "creator" => known.and_then(|known| known.created_by.clone()).unwrap_or_default().into(),
            "dateCreated" => known.and_then(|known| known.creation_s).unwrap_or(0).into(),
            "downloadDir" => kept.folder.to_string_lossy().into(),
            "torrentFile" => self.daemon.store.torrent(&entry.hash).to_string_lossy().into(),
            "labels" => json!(kept.labels),
            "addedDate" | "startDate" => kept.added_s.into(),
            "doneDate" => kept.done_s.unwrap_or(0).into(),
            "magnetLink" => match known {
                Some(known) => magnet_of(known).to_string().into(),
                None => kept.link.clone().unwrap_or_default().into(),
            },
            "webseeds" => json!(known.map_or(&[][..], |known| &known.web_seeds[..])),
            "file-count" => info.map_or(0, |info| files(info).count()).into(),
            _ => return None,
        })
    }

    fn of_progress(&self, name: &str) -> Option<Value> {
        Some(match name {
            "status" => (self.status as u8).into(),
            "sizeWhenDone" => self.wanted().0.into(),
            "leftUntilDone" => {
                let (wanted, here) = self.wanted();
                (wanted - here).into()
            }
            "haveValid" => self.here().iter().sum::<u64>().into(),
            "haveUnchecked" => 0.into(),
            "desiredAvailable" => self.view().map_or(0, |view| view.available).into(),
            "percentDone" => self.part_done().into(),
            "metadataPercentComplete" => f64::from(u8::from(self.metainfo.is_some())).into(),
            "recheckProgress" => self.checked.unwrap_or(0.0).into(),
            "rateDownload" => self.rates().0.into(),
            "rateUpload" => self.rates().1.into(),
            "eta" => self.eta().into(),
            "etaIdle" => (-1).into(),
            "downloadedEver" => self.moved().0.into(),
            "uploadedEver" => self.moved().1.into(),
            "uploadRatio" => self.ratio().into(),
            "corruptEver" => {
                let bad = self.view().map_or(0, |view| view.totals.bad_pieces);
                let piece = self.metainfo.as_ref().map_or(0, |known| u64::from(known.info.piece_length));
                (u64::from(bad) * piece).into()
            }
            "error" => self.error().0.into(),
            "errorString" => self.error().1.into(),
            "isFinished" => self.entry.kept.borrow().is_finished.into(),
            "isStalled" => (self.entry.is_under_way() && self.rates() == (0, 0)).into(),
            "activityDate" => self.entry.active_s().into(),
            _ => return None,
        })
    }

    /// For how long it has run, and by which limits.
    fn of_terms(&self, name: &str) -> Option<Value> {
        let kept = self.entry.kept.borrow();
        Some(match name {
            "secondsDownloading" => kept.fetched_s.into(),
            "secondsSeeding" => kept.given_s.into(),
            "maxConnectedPeers" | "peer-limit" => self.daemon.hub.connections_at_most().1.into(),
            _ => return kept.own.field(name),
        })
    }

    fn of_peers(&self, name: &str) -> Option<Value> {
        let peers = self.view().map_or(&[][..], |view| &view.peers[..]);
        let count = |of: &dyn Fn(&cede_torrent::session::PeerView) -> bool| {
            Value::from(peers.iter().filter(|peer| of(peer)).count())
        };
        Some(match name {
            "peersConnected" => peers.len().into(),
            "peersSendingToUs" => count(&|peer| peer.unchokes_us && peer.owed[0] > 0),
            "peersGettingFromUs" => count(&|peer| peer.is_unchoked && peer.is_interested),
            "webseedsSendingToUs" => self.view().map_or(0, |view| view.web_seeds.len()).into(),
            "peers" => {
                let pieces = self.metainfo.as_ref().map_or(1, |known| known.info.piece_count().max(1));
                peers.iter().map(|peer| peer_document(peer, pieces)).collect()
            }
            _ => return None,
        })
    }

    fn of_files(&self, name: &str) -> Option<Value> {
        let known = self.metainfo.as_deref();
        let kept = self.entry.kept.borrow();
        let list =
            || known.into_iter().flat_map(|known| files(&known.info)).map(|(_, file)| file).enumerate();
        let here = |number: usize| self.here().get(number).copied().unwrap_or(0);
        let is_wanted = |number: usize| !kept.unwanted.contains(&number);
        let priority = |number: usize| match kept.turn(number) {
            Turn::Last => -1,
            Turn::Usual => 0,
            Turn::First => 1,
        };
        Some(match name {
            "files" => list()
                .map(|(number, file)| {
                    json!({ "name": file.path.join("/"), "length": file.length, "bytesCompleted": here(number) })
                })
                .collect(),
            "fileStats" => list()
                .map(|(number, _)| {
                    let (here, priority) = (here(number), priority(number));
                    json!({ "bytesCompleted": here, "wanted": is_wanted(number), "priority": priority })
                })
                .collect(),
            "pieces" => self.pieces().into(),
            "priorities" => list().map(|(number, _)| priority(number)).collect(),
            "wanted" => list().map(|(number, _)| u8::from(is_wanted(number))).collect(),
            _ => return None,
        })
    }

    /// A bit for each piece that is there, the first the highest of its octet, in base64. Of one that does not run it is only known whether all are.
    fn pieces(&self) -> String {
        let count = self.metainfo.as_ref().map_or(0, |known| known.info.piece_count() as usize);
        let is_whole = count > 0 && self.here().iter().sum::<u64>() == self.total();
        let whole = match self.entry.sight.borrow().as_ref() {
            Some(sight) => sight.session.whole(),
            None => vec![is_whole; count],
        };
        let octet = |bits: &[bool]| {
            bits.iter().zip((0..8).rev()).fold(0, |octet: u8, (bit, place)| octet | (u8::from(*bit) << place))
        };
        STANDARD.encode(whole.chunks(8).map(octet).collect::<Vec<u8>>())
    }

    fn of_trackers(&self, name: &str) -> Option<Value> {
        let tiers = self.metainfo.as_ref().map_or(&[][..], |known| &known.trackers[..]);
        let urls = tiers.iter().enumerate().flat_map(|(tier, urls)| urls.iter().map(move |url| (tier, url)));
        let urls = urls.enumerate().map(|(id, (tier, url))| (id, tier, url));
        Some(match name {
            "trackers" => urls
                .map(|(id, tier, url)| json!({ "id": id, "tier": tier, "announce": url, "scrape": "" }))
                .collect(),
            "trackerStats" => {
                let complaints = self.daemon.hub.complaints(self.entry.row);
                urls.map(|(id, tier, url)| {
                    let text = complaints.iter().find(|(server, _)| server == url).map(|(_, text)| &**text);
                    let hub = &self.daemon.hub;
                    let came = (hub.heard(self.entry.row, url), hub.missed(self.entry.row, url));
                    tracker_document((id, tier, url), text, came, self.entry.is_under_way())
                })
                .collect()
            }
            _ => return None,
        })
    }
}

/// What clients ask for and never comes out otherwise here.
fn never(name: &str) -> Option<Value> {
    Some(match name {
        "bandwidthPriority" | "editDate" | "manualAnnounceTime" => 0.into(),
        "honorsSessionLimits" => true.into(),
        _ => return None,
    })
}

fn peer_document(peer: &cede_torrent::session::PeerView, pieces: u32) -> Value {
    let mut flags = String::new();
    for (is_so, letter) in [
        (peer.unchokes_us && peer.owed[0] > 0, 'D'),
        (peer.is_unchoked && peer.is_interested, 'U'),
        (peer.unchokes_us && !peer.is_interesting, 'K'),
        (peer.is_unchoked && !peer.is_interested, '?'),
        (peer.is_enciphered, 'E'),
        (!peer.is_outgoing, 'I'),
        (peer.transport == cede_bt::Transport::Utp, 'T'),
    ] {
        if is_so {
            flags.push(letter);
        }
    }
    json!({
        "address": peer.address.ip().to_string(), "port": peer.address.port(),
        "clientName": peer.client.clone().unwrap_or_default(), "flagStr": flags,
        "isEncrypted": peer.is_enciphered, "isIncoming": !peer.is_outgoing,
        "isUTP": peer.transport == cede_bt::Transport::Utp,
        "peerIsChoked": !peer.is_unchoked, "clientIsChoked": !peer.unchokes_us,
        "peerIsInterested": peer.is_interested, "clientIsInterested": peer.is_interesting,
        "isDownloadingFrom": peer.unchokes_us && peer.owed[0] > 0,
        "isUploadingTo": peer.is_unchoked && peer.owed[1] > 0,
        "progress": f64::from(peer.pieces) / f64::from(pieces),
        "rateToClient": peer.rates[0], "rateToPeer": peer.rates[1],
    })
}

/// A tracker, as far as it is known: when something was or will be, in seconds since 1970; 0 where that is not known, -1 for numbers.
fn tracker_document(
    (id, tier, url): (usize, usize, &str),
    complaint: Option<&str>,
    (heard, missed_at): (Option<Heard>, Option<Instant>),
    is_asked: bool,
) -> Value {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    // What does not answer is asked again before long (2, queued), and not when its last answer has said.
    let state = if !is_asked { 0 } else { 1 + u8::from(missed_at.is_some()) };
    let last = missed_at.or_else(|| heard.map(|heard| heard.at));
    let at = last.map_or(0, |at| now_s() - at.elapsed().as_secs() as i64);
    let next = heard.filter(|_| state == 1).map_or(0, |heard| at + i64::from(heard.interval_s));
    let count = |of: fn(&Heard) -> Option<u32>| heard.as_ref().and_then(of).map_or(-1, i64::from);
    json!({
        "id": id, "tier": tier, "announce": url, "scrape": "", "host": host, "isBackup": false,
        "announceState": state, "hasAnnounced": last.is_some(),
        "lastAnnounceSucceeded": last.is_some() && missed_at.is_none(),
        "lastAnnounceResult": complaint.unwrap_or(if heard.is_some() { "Success" } else { "" }),
        "lastAnnouncePeerCount": heard.map_or(0, |heard| heard.peers),
        "lastAnnounceTime": at, "lastAnnounceStartTime": at, "nextAnnounceTime": next,
        "lastAnnounceTimedOut": false,
        // Trackers are not asked for numbers alone.
        "scrapeState": 0, "hasScraped": false, "lastScrapeResult": "", "lastScrapeStartTime": 0,
        "lastScrapeSucceeded": false, "lastScrapeTime": 0, "lastScrapeTimedOut": false, "nextScrapeTime": 0,
        "seederCount": count(|heard| heard.seeders), "leecherCount": count(|heard| heard.leechers),
        "downloadCount": -1,
    })
}

/// `session-stats`.
pub fn statistics(daemon: &Daemon) -> Arguments {
    let sums = daemon.sums();
    let (past, (received, sent, added)) = (daemon.past.get(), daemon.before.get());
    let active_s = daemon.began.elapsed().as_secs();
    let current = json!({
        "downloadedBytes": sums.received - received, "uploadedBytes": sums.sent - sent,
        "filesAdded": past.added - added, "secondsActive": active_s, "sessionCount": 1,
    });
    let cumulative = json!({
        "downloadedBytes": sums.received, "uploadedBytes": sums.sent, "filesAdded": past.added,
        "secondsActive": past.seconds + active_s, "sessionCount": past.runs,
    });
    let told = json!({
        "activeTorrentCount": sums.under_way, "pausedTorrentCount": sums.torrents - sums.under_way,
        "torrentCount": sums.torrents, "downloadSpeed": sums.down, "uploadSpeed": sums.up,
        "current-stats": current, "cumulative-stats": cumulative,
    });
    told.as_object().cloned().unwrap_or_default()
}
