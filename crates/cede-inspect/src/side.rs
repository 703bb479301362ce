//! What one peer said on a connection.
//!
//! Source: BEP 3 (both sides begin choked and not interested), BEP 6 (rejects). A block answers the request of the other
//! side that names it.
//!
//! **What it leaves out.** Requests beyond [`REQUESTS_MAX`] that are open at once: their blocks have no latency.
//!
//! **How it was validated.** Conversations by hand (`tests/conversations.rs`), Wireshark's counts, swarms' own records.

use crate::client::client_of;
use crate::event::Kind;
use crate::report::{Carried, SideReport};
use cede_bt::wire::{BlockRef, Handshake, Reserved};
use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// Requests of one side that are kept until they are answered.
const REQUESTS_MAX: usize = 1 << 13;
/// Names of extensions that are kept, and their lengths.
const NAMES_MAX: usize = 64;

/// A state that is one thing or another, and how long it was which.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Toggle {
    /// Since when; `None` as long as nobody knows.
    state: Option<(bool, u64)>,
    on_ns: u64,
    off_ns: u64,
    /// Times that it went from on to off.
    pub ended: u64,
}

impl Toggle {
    pub(crate) fn set(&mut self, is_on: bool, now_ns: u64) {
        let mut now_ns = now_ns;
        if let Some((was_on, since)) = self.state {
            // Times of captures go back, and no moment counts twice.
            now_ns = now_ns.max(since);
            *(if was_on { &mut self.on_ns } else { &mut self.off_ns }) += now_ns - since;
            self.ended += u64::from(was_on && !is_on);
        } else {
            // Its end is seen, its beginning was not.
            self.ended += u64::from(!is_on);
        }
        self.state = Some((is_on, now_ns));
    }

    /// It is in this state from the beginning.
    pub(crate) fn begin(&mut self, is_on: bool, now_ns: u64) {
        self.state.get_or_insert((is_on, now_ns));
    }

    /// From now on nobody knows: what would tell may be missing.
    pub(crate) fn lose(&mut self, now_ns: u64) {
        (self.on_ns, self.off_ns) = self.times_ns(now_ns);
        self.state = None;
    }

    /// Time on and off until then.
    pub(crate) fn times_ns(&self, until_ns: u64) -> (u64, u64) {
        match self.state {
            Some((true, since)) => (self.on_ns + until_ns.saturating_sub(since), self.off_ns),
            Some((false, since)) => (self.on_ns, self.off_ns + until_ns.saturating_sub(since)),
            None => (self.on_ns, self.off_ns),
        }
    }
}

/// A block on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    pub block: BlockRef,
    pub first_ns: u64,
    /// The place of the packet with its first octets.
    pub place: u64,
    /// Octets of it that have come.
    pub got: u32,
    pub repairs: u32,
    pub missing: u32,
}

/// What one peer said.
#[derive(Debug, Default)]
pub(crate) struct Side {
    pub handshake: Option<Handshake>,
    /// What it says that it can do, where as much of its handshake was captured.
    pub reserved: Option<Reserved>,
    /// Where it takes connections, by its extension handshake.
    pub port: Option<u16>,
    /// Its names for extended messages that it wants.
    names: Vec<(u8, String)>,
    /// What the report says of it, as far as that is counted or told by the peer itself.
    pub told: SideReport,
    /// It chokes the other side.
    pub chokes: Toggle,
    /// It is interested in what the other side has.
    pub wants: Toggle,
    /// Open requests, and when they were made.
    requests: HashMap<BlockRef, u64, RandomState>,
    pub coming: Option<Coming>,
    /// From the other side's request to the last octet of a block, in microseconds, all together.
    pub latency_sum_us: u64,
}

impl Side {
    pub(crate) fn count(&mut self, kind: Kind) {
        self.told.counts[kind as usize] += 1;
    }

    /// It asks for a block.
    pub(crate) fn request(&mut self, block: BlockRef, now_ns: u64) {
        if self.requests.len() < REQUESTS_MAX {
            self.requests.insert(block, now_ns);
        }
    }

    /// Its request was answered, refused, or does not count any more: when it was made.
    pub(crate) fn settle(&mut self, block: &BlockRef) -> Option<u64> {
        self.requests.remove(block)
    }

    /// A block that it sent is there.
    pub(crate) fn add_block(
        &mut self,
        coming: &Coming,
        requested_ns: Option<u64>,
        now_ns: u64,
        is_duplicate: bool,
    ) {
        let octets = u64::from(coming.block.len);
        self.count(Kind::Piece);
        self.told.blocks += 1;
        self.told.block_bytes += octets;
        if is_duplicate {
            self.told.duplicate_blocks += 1;
            self.told.duplicate_bytes += octets;
        }
        match requested_ns {
            Some(requested_ns) => {
                let us = now_ns.saturating_sub(requested_ns) / 1000;
                self.told.latency.add(us as f64);
                self.latency_sum_us += us;
            }
            None => self.told.unrequested_blocks += 1,
        }
    }

    /// What it says from now on is not read.
    pub(crate) fn lose(&mut self, now_ns: u64) {
        self.told.losses += 1;
        self.chokes.lose(now_ns);
        self.wants.lose(now_ns);
        self.drop_coming();
    }

    /// The block on its way will not be whole, as far as can be seen.
    pub(crate) fn drop_coming(&mut self) {
        if let Some(coming) = self.coming.take() {
            self.told.broken_blocks += 1;
            self.told.broken_bytes += u64::from(coming.got);
        }
    }

    /// None of its requests counts any more.
    pub(crate) fn forget_requests(&mut self) {
        self.requests.clear();
    }

    /// The name that the peer gave to an extended message.
    pub(crate) fn name_of(&self, id: u8) -> Option<&str> {
        if id == 0 {
            return Some("handshake");
        }
        self.names.iter().find(|name| name.0 == id).map(|name| name.1.as_str())
    }

    /// It says what it calls its messages: later handshakes add to earlier ones (BEP 10).
    pub(crate) fn learn(&mut self, octets: &[u8]) {
        use cede_bt::bencode::{Document, Limits};
        let Ok((document, _)) = Document::parse_prefix(octets, Limits::MESSAGE) else { return };
        let root = document.root();
        if let Some(client) = root.get(b"v").and_then(|client| client.bytes()) {
            self.told.client = Some(plain(client, 64));
        }
        let port = root.get(b"p").and_then(|port| port.uint()).and_then(|port| u16::try_from(port).ok());
        self.port = port.filter(|&port| port > 0).or(self.port);
        for (name, id) in root.get(b"m").into_iter().flat_map(|names| names.entries()) {
            let id = id.uint().and_then(|id| u8::try_from(id).ok()).filter(|&id| id > 0);
            let Some(id) = id else { continue };
            self.names.retain(|(known, _)| *known != id);
            if self.names.len() < NAMES_MAX {
                self.names.push((id, plain(name, 32)));
            }
        }
    }

    /// What is told of it, with what was counted beneath its messages, at the end.
    pub(crate) fn report(&self, carried: Carried, end_ns: u64) -> SideReport {
        let seconds = |(on, off): (u64, u64)| (on as f64 / 1e9, off as f64 / 1e9);
        let (told, handshake) = (&self.told, self.handshake);
        let timed = told.latency.count();
        SideReport {
            peer_id: handshake.map(|handshake| handshake.peer_id),
            client: told.client.clone().or_else(|| client_of(&handshake?.peer_id)),
            reserved: self.reserved,
            carried,
            latency_mean_ms: (timed > 0).then(|| self.latency_sum_us as f64 / 1e3 / timed as f64),
            unchokes: self.chokes.ended,
            choking_s: seconds(self.chokes.times_ns(end_ns)),
            interested_s: seconds(self.wants.times_ns(end_ns)),
            ..told.clone()
        }
    }

    /// Octets that are held besides its own.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.requests.capacity() * (size_of::<BlockRef>() + 9) + self.names.len() * 48
    }

    /// The connection is over: what is of no use for the report goes.
    pub(crate) fn shrink(&mut self) {
        (self.requests, self.names) = Default::default();
    }
}

/// Text that others chose, without what a terminal might take for a command, such as marks that turn the order of writing round: a
/// line looks like another one then.
pub(crate) fn plain(octets: &[u8], chars: usize) -> String {
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    String::from_utf8_lossy(octets).chars().filter(|&c| !c.is_control() && !turns(c)).take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_counts_only_while_it_is_known() {
        let mut toggle = Toggle::default();
        toggle.begin(true, 10);
        toggle.set(false, 15);
        toggle.lose(40);
        assert_eq!((toggle.times_ns(100), toggle.ended), ((5, 25), 1));
        toggle.set(true, 110);
        assert_eq!((toggle.times_ns(111), toggle.ended), ((6, 25), 1));
    }

    #[test]
    fn names_that_others_chose_are_no_commands() {
        assert_eq!(plain("a\x1b[2J\u{202e}b\u{2066}ü\n".as_bytes(), 64), "a[2Jbü");
        assert_eq!(plain(b"\xff\xff\xff", 2), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn where_times_go_back_no_moment_counts_twice() {
        let mut toggle = Toggle::default();
        toggle.begin(true, 10);
        toggle.set(false, 100);
        toggle.set(true, 40);
        assert_eq!(toggle.times_ns(120), (110, 0));
    }
}
