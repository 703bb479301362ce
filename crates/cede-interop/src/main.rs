//! Runs the matrix and writes the report.
//!
//! `cargo run --release -p cede-interop [-- --quick|--quirks] [--json] [--only PEER]`: `--quick` runs the cases of the tests
//! and writes no report, `--quirks` the experiments alone, `--json` prints the results as one object a line, `--only` takes peers whose name contains a word. The
//! report is written to `docs/interop.md` by a full run over all peers, and printed otherwise. Ends with 1 where a failure
//! is not theirs.

use cede_interop::case::Case;
use cede_interop::matrix::{self, Peer, Scope, Verdict};
use cede_interop::quirks::{self, Finding, Quirk};
use cede_interop::report::{self, Section};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Small transfers under way at once: most of them wait for a client.
const AT_ONCE: usize = 3;
const REPORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/interop.md");

struct Arguments {
    scope: Scope,
    transfers: bool,
    json: bool,
    only: Option<String>,
}

impl Arguments {
    fn parse() -> Result<Self, String> {
        let mut parsed = Self { scope: Scope::Full, transfers: true, json: false, only: None };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => parsed.scope = Scope::Quick,
                "--quirks" => parsed.transfers = false,
                "--json" => parsed.json = true,
                "--only" => parsed.only = Some(words.next().ok_or("--only wants a peer")?.to_lowercase()),
                _ => return Err(format!("{word}: known are --quick, --quirks, --json and --only PEER")),
            }
        }
        Ok(parsed)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|word| name.to_lowercase().contains(word));
    let mut sections = Vec::new();
    for peer in Peer::ALL.into_iter().filter(|peer| wanted(peer.name())) {
        sections.push(section(peer, &arguments).await);
    }
    if let Err(error) = deliver(&arguments, &sections) {
        eprintln!("{REPORT}: {error}");
        return ExitCode::from(2);
    }
    let is_ours = |(_, verdict): &(Case, Verdict)| matches!(verdict, Verdict::Ours { .. });
    ExitCode::from(u8::from(sections.iter().any(|section| section.results.iter().any(is_ours))))
}

async fn section(peer: Peer, arguments: &Arguments) -> Section {
    let version = peer.version();
    match &version {
        Ok(version) => eprintln!("{} {version}", peer.name()),
        Err(why) => eprintln!("{}: SKIPPED: {why}", peer.name()),
    }
    let has_it = version.is_ok();
    let cases = if has_it && arguments.transfers { matrix::cases(peer, arguments.scope) } else { Vec::new() };
    let quirks = if has_it && arguments.scope == Scope::Full { try_quirks(peer).await } else { Vec::new() };
    Section { peer, version, results: run(peer, cases).await, quirks }
}

/// All at once: most of their time is silence.
async fn try_quirks(peer: Peer) -> Vec<(Quirk, Finding)> {
    let mut running = JoinSet::new();
    for quirk in Quirk::ALL {
        running.spawn(async move { (quirk, quirks::run(peer, quirk).await) });
    }
    let findings = running.join_all().await.into_iter();
    let mut known: Vec<_> = findings.filter_map(|(quirk, finding)| Some((quirk, finding?))).collect();
    known.sort_by_key(|(quirk, _)| *quirk as u8);
    for (quirk, finding) in &known {
        eprintln!("{}: {}: {}", peer.name(), quirk.name(), finding.as_ref().unwrap_or_else(|error| error));
    }
    known
}

/// Small transfers several at a time; large ones alone.
async fn run(peer: Peer, cases: Vec<Case>) -> Vec<(Case, Verdict)> {
    let (total, room) = (cases.len(), Arc::new(Semaphore::new(AT_ONCE)));
    let mut running = JoinSet::new();
    for (n, case) in cases.into_iter().enumerate() {
        let room = Arc::clone(&room);
        running.spawn(async move {
            let places = if case.bytes > 10 << 20 { AT_ONCE as u32 } else { 1 };
            let _place = room.acquire_many(places).await;
            let verdict = matrix::judge(peer, &case).await;
            eprintln!("{} {}/{total}: {case}: {verdict}", peer.name(), n + 1);
            (n, case, verdict)
        });
    }
    let mut results = running.join_all().await;
    results.sort_by_key(|(n, _, _)| *n);
    results.into_iter().map(|(_, case, verdict)| (case, verdict)).collect()
}

fn deliver(arguments: &Arguments, sections: &[Section]) -> std::io::Result<()> {
    if arguments.json {
        print!("{}", report::json(sections));
    }
    let text = report::markdown(sections);
    if arguments.scope == Scope::Full && arguments.transfers && arguments.only.is_none() {
        return std::fs::write(REPORT, text);
    }
    if !arguments.json {
        print!("{text}");
    }
    Ok(())
}
