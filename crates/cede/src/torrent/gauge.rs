//! How fast a torrent comes and goes, and the line that says how it stands.

use crate::carry::numbers;
use crate::progress::{bar, clock};
use cede_bt::Transport;
use cede_torrent::calls::Miss;
use cede_torrent::session::{Part, View};
use cede_units::{Duration as Span, Rate};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Rates are those of so long.
const WINDOW: Duration = Duration::from_secs(5);

/// It is looked so often how a torrent stands.
const TICK: Duration = Duration::from_millis(250);
/// And so often where nobody was there for a while, and so nothing moves.
const IDLE_TICK: Duration = Duration::from_secs(1);
const IDLE_AFTER: Duration = Duration::from_secs(10);
/// Lines of JSON are so far apart.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Rates by transport.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Of what comes, over TCP and uTP and from servers.
    pub down: [Rate; 3],
    /// Of what leaves.
    pub up: [Rate; 2],
}

/// A torrent at one instant, as far as a person is told.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// What is wanted, there or not.
    pub wanted: Part,
    /// What of it is there.
    pub here: Part,
    /// Everything wanted is there.
    pub is_complete: bool,
    /// Ready connections.
    pub peers: usize,
    /// Peers that sent bad data.
    pub banned: usize,
    /// Octets that were sent.
    pub sent: u64,
    /// Servers are asked, too.
    pub is_web: bool,
    /// How fast it goes.
    pub rates: Rates,
}

impl Standing {
    /// The same once nothing moves any more.
    pub fn at_rest(self) -> Self {
        Self { rates: Rates::default(), peers: 0, banned: 0, ..self }
    }
}

/// How fast a torrent comes and goes.
pub struct Gauge {
    began: Instant,
    /// When somebody was there last, or it began.
    busy_at: Instant,
    line_at: Instant,
    looks: VecDeque<(Instant, [u64; 5])>,
    stands: Rc<Cell<Option<Standing>>>,
}

impl Gauge {
    /// Begins now.
    pub fn new() -> Self {
        let now = Instant::now();
        let (looks, stands) = (VecDeque::new(), Rc::default());
        Self { began: now, busy_at: now, line_at: now + LINE_EVERY, looks, stands }
    }

    /// How it stood when it was looked at last, for others to see.
    pub fn stands(&self) -> Rc<Cell<Option<Standing>>> {
        self.stands.clone()
    }

    /// Until the next look.
    pub fn pause(&self) -> Duration {
        if self.busy_at.elapsed() < IDLE_AFTER { TICK } else { IDLE_TICK }
    }

    /// Whether it is, once each time.
    pub fn is_time_for_a_line(&mut self) -> bool {
        let now = Instant::now();
        let is_time = now >= self.line_at;
        if is_time {
            self.line_at = now + LINE_EVERY;
        }
        is_time
    }

    /// How it stands.
    pub fn update(&mut self, view: &View) -> Standing {
        let now = Instant::now();
        let totals = &view.totals;
        if !view.peers.is_empty() || totals.downloaded_web > 0 && !view.is_complete {
            self.busy_at = now;
        }
        let ([tcp, utp], [up_tcp, up_utp]) = (totals.downloaded, totals.uploaded);
        let sums = [tcp, utp, totals.downloaded_web, up_tcp, up_utp];
        self.looks.push_back((now, sums));
        while self.looks.len() > 2 && now - self.looks[1].0 >= WINDOW {
            self.looks.pop_front();
        }
        let standing = self.standing(view);
        self.stands.set(Some(standing));
        standing
    }

    fn standing(&self, view: &View) -> Standing {
        Standing {
            wanted: view.wanted,
            here: view.wanted_here(),
            is_complete: view.is_complete,
            peers: view.peers.len(),
            banned: view.banned.len(),
            sent: view.totals.sent(),
            is_web: view.totals.downloaded_web > 0 || !view.web_seeds.is_empty(),
            rates: self.rates(),
        }
    }

    fn rates(&self) -> Rates {
        let (Some((then, before)), Some((now, after))) = (self.looks.front(), self.looks.back()) else {
            return Rates::default();
        };
        let span = Span::from_secs_f64((*now - *then).as_secs_f64());
        let rate = |at: usize| Rate::from_bytes_over(after[at].saturating_sub(before[at]), span);
        Rates { down: [rate(0), rate(1), rate(2)], up: [rate(3), rate(4)] }
    }

    /// How long it has taken.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

fn sum(rates: &[Rate]) -> Rate {
    Rate::from_bits_per_sec(rates.iter().map(|rate| rate.bits_per_sec()).sum())
}

/// Columns in front of the words: a percentage, without a bar.
const PERCENT_COLUMNS: usize = 7;

/// What a person sees of it in so many columns: shorter words where others would be cut.
pub fn line(it: &Standing, columns: usize) -> String {
    let peers = peers(it.peers, it.banned);
    let up = numbers::rate(sum(&it.rates.up));
    if it.is_complete {
        return format!("seeding to {peers}: {} sent, {up}", numbers::amount(it.sent));
    }
    let part = it.here.bytes as f64 / it.wanted.bytes.max(1) as f64;
    let down = sum(&it.rates.down).bits_per_sec();
    let left = (it.wanted.bytes - it.here.bytes) as f64 * 8.0 / down.max(1) as f64;
    let left = if down == 0 { "?".to_owned() } else { clock(left) };
    let [tcp, utp, web] = it.rates.down.map(numbers::rate);
    let web = if it.is_web { format!(" {web} web") } else { String::new() };
    let (bar, pieces, of) = (bar(part), it.here.pieces, it.wanted.pieces);
    let rates = format!("{tcp} TCP {utp} uTP{web}, up {up}");
    let words = format!("{pieces} of {of} pieces, {left} left, {peers}, down {rates}");
    if words.chars().count() + PERCENT_COLUMNS < columns {
        return format!("{bar}  {words}");
    }
    format!("{bar}  {pieces}/{of}, {left}, {peers}, {rates}")
}

/// How many there are; whoever waits for nothing but those who may not come back is to know.
pub fn peers(count: usize, banned: usize) -> String {
    let peers = numbers::count(count, "peer");
    match banned {
        0 => peers,
        banned => format!("{peers} ({banned} banned for bad data)"),
    }
}

/// The same for programs.
pub fn document(view: &View, rates: &Rates) -> Value {
    let totals = &view.totals;
    let over = |sums: [u64; 2]| json!({ "tcp": sums[0], "utp": sums[1] });
    let bits = |rates: &[Rate]| json!({ "tcp": rates[0].bits_per_sec(), "utp": rates[1].bits_per_sec() });
    let (mut downloaded, mut down) = (over(totals.downloaded), bits(&rates.down));
    downloaded["web"] = totals.downloaded_web.into();
    down["web"] = rates.down[2].bits_per_sec().into();
    let peers = view.peers.iter().map(|peer| {
        json!({
            "address": peer.address.to_string(),
            "transport": if peer.transport == Transport::Tcp { "tcp" } else { "utp" },
            "encrypted": peer.is_enciphered, "outgoing": peer.is_outgoing, "client": peer.client,
            "pieces": peer.pieces, "unchokes_us": peer.unchokes_us, "unchoked": peer.is_unchoked,
        })
    });
    json!({
        "pieces": view.pieces, "bytes": view.bytes,
        "missing": { "pieces": view.missing.pieces, "bytes": view.missing.bytes }, "complete": view.is_complete,
        "downloaded": downloaded, "uploaded": over(totals.uploaded),
        "down_bits_per_second": down, "up_bits_per_second": bits(&rates.up),
        "redundant": totals.redundant, "bad_pieces": totals.bad_pieces,
        "banned": view.banned.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "web_seeds": view.web_seeds, "unheard": unheard(view),
        "peers": peers.collect::<Vec<_>>(),
    })
}

/// Peers that were called and have not been heard, by why.
fn unheard(view: &View) -> Value {
    let name = |miss: &Miss| match miss {
        Miss::Filtered => "filtered",
        Miss::Silent => "silent",
        Miss::Unreachable => "unreachable",
        Miss::Refused => "refused",
        Miss::HungUp => "hung_up",
        Miss::Clear => "unencrypted",
        Miss::Ignorant => "ignorant",
    };
    view.misses.iter().map(|(miss, count)| (name(miss).to_owned(), Value::from(*count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_torrent::calls::Misses;
    use std::net::SocketAddr;

    #[test]
    fn who_was_banned_is_told_of_beside_those_who_are_there() {
        let view = View {
            totals: cede_bt::engine::Totals::default(),
            pieces: 1,
            bytes: 100,
            wanted: Part { pieces: 2, bytes: 200 },
            missing: Part { pieces: 1, bytes: 100 },
            available: 0,
            is_complete: false,
            peers: Vec::new(),
            web_seeds: Vec::new(),
            banned: Vec::new(),
            misses: Misses::new(),
        };
        let said = |view: &View| line(&Gauge::new().update(view), usize::MAX);
        assert!(said(&view).contains("? left, 0 peers, "), "{}", said(&view));
        let view = View { banned: vec![SocketAddr::from(([192, 0, 2, 1], 6881))], ..view };
        assert!(said(&view).contains("? left, 0 peers (1 banned for bad data), "), "{}", said(&view));
    }

    /// In the 80 columns that most terminals begin with there is room for the rates.
    #[test]
    fn a_narrow_line_says_what_a_wide_one_does() {
        let it = Standing {
            wanted: Part { pieces: 1_500, bytes: 1_000 },
            here: Part { pieces: 123, bytes: 500 },
            is_complete: false,
            peers: 40,
            banned: 0,
            sent: 0,
            is_web: false,
            rates: Rates { down: [Rate::from_mbit(12); 3], up: [Rate::from_mbit(3); 2] },
        };
        let wide = "  50 %  123 of 1500 pieces, 1 s left, 40 peers, down 12.0 Mbit/s TCP 12.0 Mbit/s uTP, up 6.00 Mbit/s";
        let narrow = "  50 %  123/1500, 1 s, 40 peers, 12.0 Mbit/s TCP 12.0 Mbit/s uTP, up 6.00 Mbit/s";
        for (columns, words) in [(usize::MAX, wide), (120, wide), (80, narrow), (10, narrow)] {
            let said = line(&it, columns);
            assert!(said.ends_with(words), "{columns}: {said}");
        }
        assert!(narrow.trim_start().chars().count() < 80);
    }
}
