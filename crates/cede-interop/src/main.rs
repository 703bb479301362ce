//! Runs the matrix and writes the report.
//!
//! `cargo run --release -p cede-interop [-- --quick|--quirks] [--json] [--only PEER] [--resume]`: `--quick` runs the cases
//! of the tests and writes no report, `--quirks` the experiments alone, `--json` prints the results as one object a line,
//! `--only` takes peers whose name contains a word, `--resume` believes what a run that was cut short has found. The
//! report is written to `docs/interop.md` by a full run over all peers, and printed otherwise. Ends with 1 where a failure
//! is not theirs.

use cede_interop::case::Case;
use cede_interop::log::Log;
use cede_interop::matrix::{self, Peer, Scope, Verdict};
use cede_interop::namespace;
use cede_interop::quirks::{self, Finding, Quirk};
use cede_interop::report::{self, Section};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Small transfers under way at once, of all peers: most of them wait for a client.
const PLACES: usize = 4;
/// How many places a large one takes.
const PLACES_OF_LARGE: u32 = 2;
const REPORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/interop.md");

#[derive(Clone)]
struct Arguments {
    scope: Scope,
    transfers: bool,
    json: bool,
    only: Option<String>,
    resumes: bool,
}

impl Arguments {
    fn parse() -> Result<Self, String> {
        let mut parsed =
            Self { scope: Scope::Full, transfers: true, json: false, only: None, resumes: false };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => parsed.scope = Scope::Quick,
                "--quirks" => parsed.transfers = false,
                "--json" => parsed.json = true,
                "--resume" => parsed.resumes = true,
                "--only" => parsed.only = Some(words.next().ok_or("--only wants a peer")?.to_lowercase()),
                _ => {
                    return Err(format!(
                        "{word}: known are --quick, --quirks, --json, --resume and --only PEER"
                    ));
                }
            }
        }
        Ok(parsed)
    }

    fn wants(&self, peer: Peer) -> bool {
        self.only.as_ref().is_none_or(|word| peer.name().to_lowercase().contains(word))
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if let Err(why) = namespace::enter() {
        eprintln!("in this machine's network: {why}");
    }
    let sections = match run(&arguments) {
        Ok(sections) => sections,
        Err(error) => {
            eprintln!("the log: {error}");
            return ExitCode::from(2);
        }
    };
    if let Err(error) = deliver(&arguments, &sections) {
        eprintln!("{REPORT}: {error}");
        return ExitCode::from(2);
    }
    let is_ours = |(_, verdict): &(Case, Verdict)| matches!(verdict, Verdict::Ours { .. });
    ExitCode::from(u8::from(sections.iter().any(|section| section.results.iter().any(is_ours))))
}

#[tokio::main]
async fn run(arguments: &Arguments) -> std::io::Result<Vec<Section>> {
    sections(arguments).await
}

/// All peers at once, in the order of their names' list.
async fn sections(arguments: &Arguments) -> std::io::Result<Vec<Section>> {
    let log = std::env::current_exe()?.with_file_name("interop.log");
    let log = Arc::new(Log::open(&log, arguments.resumes)?);
    let room = Arc::new(Semaphore::new(PLACES));
    let mut running = Vec::new();
    for peer in Peer::ALL.into_iter().filter(|&peer| arguments.wants(peer)) {
        let work = Work { peer, log: Arc::clone(&log), room: Arc::clone(&room) };
        running.push(tokio::spawn(work.section(arguments.clone())));
    }
    let mut sections = Vec::new();
    for section in running {
        sections.push(section.await.map_err(std::io::Error::other)?);
    }
    Ok(sections)
}

/// What is done with one peer.
struct Work {
    peer: Peer,
    log: Arc<Log>,
    room: Arc<Semaphore>,
}

impl Work {
    async fn section(self, arguments: Arguments) -> Section {
        let (peer, version) = (self.peer, self.peer.version());
        let Ok(known) = &version else {
            eprintln!("{}: SKIPPED: {}", peer.name(), version.as_ref().err().map_or("", String::as_str));
            return Section { peer, version, results: Vec::new(), quirks: Vec::new() };
        };
        eprintln!("{} {known}", peer.name());
        let subject = format!("{} {known}", peer.name());
        let quirks =
            if arguments.scope == Scope::Full { self.try_quirks(&subject).await } else { Vec::new() };
        let cases = if arguments.transfers { matrix::cases(peer, arguments.scope) } else { Vec::new() };
        let results = self.run(cases, &subject).await;
        Section { peer, version, results, quirks }
    }

    /// All at once: most of their time is silence.
    async fn try_quirks(&self, subject: &str) -> Vec<(Quirk, Finding)> {
        let mut running = JoinSet::new();
        for quirk in Quirk::ALL {
            let (peer, log) = (self.peer, Arc::clone(&self.log));
            let subject = format!("{subject}: {}", quirk.name());
            running.spawn(async move {
                if let Some(known) = log.finding(&subject) {
                    return Some((quirk, known));
                }
                let finding = quirks::run(peer, quirk).await?;
                eprintln!("{subject}: {}", finding.as_ref().unwrap_or_else(|error| error));
                complain(log.keep_finding(&subject, &finding));
                Some((quirk, finding))
            });
        }
        let mut known: Vec<_> = running.join_all().await.into_iter().flatten().collect();
        known.sort_by_key(|(quirk, _)| *quirk as u8);
        known
    }

    /// As many at once as there is room for.
    async fn run(&self, cases: Vec<Case>, subject: &str) -> Vec<(Case, Verdict)> {
        let mut running = JoinSet::new();
        for (n, case) in cases.into_iter().enumerate() {
            let (peer, log, room) = (self.peer, Arc::clone(&self.log), Arc::clone(&self.room));
            let subject = format!("{subject}: {case}");
            running.spawn(async move {
                if let Some(known) = log.verdict(&subject) {
                    return (n, case, known);
                }
                let places = if case.is_large() { PLACES_OF_LARGE } else { 1 };
                let _place = room.acquire_many(places).await;
                let verdict = matrix::judge(peer, &case).await;
                eprintln!("{subject}: {verdict}");
                complain(log.keep_verdict(&subject, &verdict));
                (n, case, verdict)
            });
        }
        let mut results = running.join_all().await;
        results.sort_by_key(|(n, _, _)| *n);
        results.into_iter().map(|(_, case, verdict)| (case, verdict)).collect()
    }
}

/// A log that cannot be written keeps no run from its end.
fn complain(kept: std::io::Result<()>) {
    if let Err(error) = kept {
        eprintln!("the log: {error}");
    }
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
