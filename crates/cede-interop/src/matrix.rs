//! The matrix: which cases each peer is put to, and whose fault a failure is.

use crate::case::{Case, Direction, Family, Opener, Path, size};
use crate::clients::{self, Client};
use crate::stack::Stack;
use crate::transfer::{self, Outcome};
use std::fmt;

/// A case is tried this often before it has failed: a 3 % path can lose three SYNs in a row.
const ATTEMPTS: u32 = 2;
/// What is tried where the large size takes longer than there is time for.
const SHORTENED_BYTES: usize = 10 << 20;
/// The workspace's lock file names the versions of the peers that are linked in.
const LOCK_FILE: &str = include_str!("../../../Cargo.lock");

/// Whom ours talks to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// A library that is linked in.
    Stack(Stack),
    /// A BitTorrent client.
    Client(Client),
}

impl Peer {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Stack(Stack::Rqbit),
        Self::Stack(Stack::UtpRs),
        Self::Client(Client::LibtorrentPypi),
        Self::Client(Client::LibtorrentDebian),
        Self::Client(Client::Transmission),
    ];

    /// How it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stack(stack) => stack.name(),
            Self::Client(client) => client.name(),
        }
    }

    /// Its version, where it can be had.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn version(self) -> Result<String, String> {
        match self {
            Self::Stack(stack) => locked_version(stack.name()).ok_or_else(|| "not in Cargo.lock".to_owned()),
            Self::Client(client) => client.version(),
        }
    }

    async fn run(self, case: &Case) -> Result<Outcome, String> {
        match (self, case.direction) {
            (Self::Stack(theirs), Direction::ToTheirs) => Ok(transfer::run(case, Stack::Cede, theirs).await),
            (Self::Stack(theirs), Direction::ToOurs) => Ok(transfer::run(case, theirs, Stack::Cede).await),
            (Self::Client(theirs), _) => clients::run(case, theirs).await,
        }
    }

    /// The same between two of theirs.
    async fn control(self, case: &Case) -> Result<Outcome, String> {
        match self {
            Self::Stack(theirs) => Ok(transfer::run(case, theirs, theirs).await),
            Self::Client(theirs) => clients::control(case, theirs).await,
        }
    }
}

/// The version of a package in the lock file.
fn locked_version(package: &str) -> Option<String> {
    let (_, entry) = LOCK_FILE.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    entry.split('"').next().map(str::to_owned)
}

/// How much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A few small transfers: for a test.
    Quick,
    /// Everything.
    Full,
}

/// The cases for a peer.
#[must_use]
pub fn cases(peer: Peer, scope: Scope) -> Vec<Case> {
    let sizes: &[usize] = match peer {
        Peer::Stack(_) => &[0, 1, 1 << 20],
        // A torrent has at least one octet.
        Peer::Client(_) => &[1, 1 << 20],
    };
    let all = sizes.iter().flat_map(|&bytes| {
        let paths = Path::ALL.into_iter().flat_map(move |path| families(bytes, path));
        paths.flat_map(four)
    });
    match scope {
        Scope::Quick => all.filter(|case| is_quick(peer, case)).collect(),
        Scope::Full => all.chain(large()).collect(),
    }
}

fn families(bytes: usize, path: Path) -> [Case; 2] {
    let (direction, opener) = (Direction::ToTheirs, Opener::Sender);
    [Family::V4, Family::V6].map(|family| Case { direction, opener, bytes, family, path })
}

fn four(case: Case) -> [Case; 4] {
    let ways = [
        (Direction::ToTheirs, Opener::Sender),
        (Direction::ToTheirs, Opener::Receiver),
        (Direction::ToOurs, Opener::Sender),
        (Direction::ToOurs, Opener::Receiver),
    ];
    ways.map(|(direction, opener)| Case { direction, opener, ..case })
}

fn large() -> Vec<Case> {
    let all = Path::ALL.into_iter().flat_map(|path| families(100 << 20, path)).flat_map(four);
    all.filter(|case| case.opener == Opener::Sender).collect()
}

/// Transmission takes a quarter of a minute for anything, and `utp-rs` loses its way on bad paths now and then.
fn is_quick(peer: Peer, case: &Case) -> bool {
    let is_plain = case.path == Path::Direct && (case.bytes == 1 << 20 || case.family == Family::V4);
    let is_rough = case.path == Path::Rough && case.family == Family::V4 && case.bytes > 1;
    match peer {
        Peer::Client(Client::Transmission) => is_plain && case.bytes > 1 && case.family == Family::V4,
        Peer::Stack(Stack::UtpRs) => is_plain,
        Peer::Client(_) => (is_plain && case.bytes > 1) || (is_rough && case.opener == Opener::Sender),
        Peer::Stack(_) => is_plain || (is_rough && case.opener == Opener::Sender),
    }
}

/// What a case came to.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// All arrived.
    Ok {
        /// How long it took.
        seconds: f64,
        /// What it took beside time: a second attempt, or more connections than one.
        remark: Option<String>,
    },
    /// The large size was not over in time, and a smaller one arrived.
    Shortened {
        /// The size,
        bytes: usize,
        /// how long it took,
        seconds: f64,
        /// and what became of the large one, and of the smaller one between two of theirs and two of ours.
        what: String,
    },
    /// It failed, as it does between two of theirs, and not between two of ours.
    Theirs {
        /// What went wrong,
        what: String,
        /// and what goes wrong between two of theirs.
        among_them: String,
    },
    /// It failed, and we know of nobody else to blame.
    Ours {
        /// What went wrong,
        what: String,
        /// and what the experiments with two of theirs and two of ours came to.
        controls: String,
    },
    /// It cannot be tried here.
    Skipped {
        /// Why.
        why: String,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok { seconds, remark: None } => write!(f, "ok, {seconds:.2} s"),
            Self::Ok { seconds, remark: Some(what) } => write!(f, "ok, {seconds:.2} s, {what}"),
            Self::Shortened { bytes, seconds, what } => {
                write!(f, "ok for {} only, {seconds:.2} s; {what}", size(*bytes))
            }
            Self::Theirs { what, among_them } => {
                write!(f, "FAILED, theirs: {what}; between two of theirs: {among_them}")
            }
            Self::Ours { what, controls } => write!(f, "FAILED: {what}; {controls}"),
            Self::Skipped { why } => write!(f, "SKIPPED: {why}"),
        }
    }
}

/// Runs a case and says whose fault a failure is.
pub async fn judge(peer: Peer, case: &Case) -> Verdict {
    let mut before = None;
    for attempt in 1.. {
        match peer.run(case).await {
            Err(why) => return Verdict::Skipped { why },
            Ok(Outcome::Arrived { seconds, connections }) => {
                return Verdict::Ok { seconds, remark: before.or_else(|| given_up(connections)) };
            }
            // A large one that took too long would do so again.
            Ok(Outcome::Failed { what }) if case.is_large() => return shorten(peer, case, what).await,
            Ok(Outcome::Failed { what }) if attempt == ATTEMPTS => return blame(peer, case, what).await,
            Ok(Outcome::Failed { what }) => {
                before = Some(format!("at the second attempt; the first: {what}"));
            }
        }
    }
    unreachable!("the last attempt returns")
}

fn given_up(connections: u32) -> Option<String> {
    (connections > 1).then(|| format!("over {connections} connections: theirs gave up all but the last"))
}

/// Does less of the same get through, and how does that stand beside two of theirs? If not, whose fault is the large one?
async fn shorten(peer: Peer, case: &Case, what: String) -> Verdict {
    let less = Case { bytes: SHORTENED_BYTES, ..*case };
    let Ok(Outcome::Arrived { seconds, .. }) = peer.run(&less).await else {
        return blame(peer, case, what).await;
    };
    let theirs = peer.control(&less).await.unwrap_or_else(|why| Outcome::failed(format!("not tried: {why}")));
    let ours = transfer::run(&less, Stack::Cede, Stack::Cede).await;
    let what = format!(
        "{}: {what}; {} between two of theirs: {theirs}; between two of ours: {ours}",
        size(case.bytes),
        size(less.bytes)
    );
    Verdict::Shortened { bytes: less.bytes, seconds, what }
}

async fn blame(peer: Peer, case: &Case, what: String) -> Verdict {
    let theirs = peer.control(case).await.unwrap_or_else(|why| Outcome::failed(format!("not tried: {why}")));
    let ours = transfer::run(case, Stack::Cede, Stack::Cede).await;
    match (theirs, ours) {
        (Outcome::Failed { what: among_them }, Outcome::Arrived { .. }) => {
            Verdict::Theirs { what, among_them }
        }
        (theirs, ours) => {
            let controls = format!("between two of theirs: {theirs}; between two of ours: {ours}");
            Verdict::Ours { what, controls }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_is_a_part_of_full_and_each_case_is_there_once() {
        for peer in Peer::ALL {
            let (quick, full) = (cases(peer, Scope::Quick), cases(peer, Scope::Full));
            assert!(quick.len() >= 4 && quick.iter().all(|case| full.contains(case)), "{}", peer.name());
            assert!(full.iter().enumerate().all(|(n, case)| !full[..n].contains(case)));
        }
    }

    #[test]
    fn the_lock_file_knows_the_libraries() {
        assert!(Peer::Stack(Stack::Rqbit).version().unwrap().starts_with("0.7."));
        assert!(Peer::Stack(Stack::UtpRs).version().unwrap().starts_with("0.1.0-alpha"));
    }
}
