//! Runs the matrix and writes the report.
//!
//! `cargo run --release -p cede-interop`; `-- --help` says what can be left out. The report is written to `docs/interop.md` by a
//! run of everything, and printed otherwise. Ends with 1 where a failure is not theirs.

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
const PLACES: usize = 8;
/// How many places a large one takes.
const PLACES_OF_LARGE: u32 = 2;
const USAGE: &str =
    "Usage: cede-interop [--quick | --quirks] [--only PEER] [--case WORDS] [--json] [--resume]

Transfers between cede's uTP and others', all combinations; a full run over all peers writes docs/interop.md.

  --quick       the few transfers of the tests, without the experiments
  --quirks      the experiments alone
  --only PEER   peers whose name contains this, as `libtorrent`
  --case WORDS  transfers whose description contains this, as `1 MiB, IPv6`
  --json        one object a line
  --resume      believe what a run that was cut short has found";
const REPORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/interop.md");

#[derive(Clone)]
struct Arguments {
    scope: Scope,
    transfers: bool,
    json: bool,
    only: Option<String>,
    case: Option<String>,
    resumes: bool,
}

impl Arguments {
    fn parse() -> Result<Self, String> {
        let mut parsed =
            Self { scope: Scope::Full, transfers: true, json: false, only: None, case: None, resumes: false };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => parsed.scope = Scope::Quick,
                "--quirks" => parsed.transfers = false,
                "--json" => parsed.json = true,
                "--resume" => parsed.resumes = true,
                "--only" => parsed.only = Some(words.next().ok_or("--only wants a peer")?.to_lowercase()),
                "--case" => parsed.case = Some(words.next().ok_or("--case wants words")?),
                _ => return Err(format!("{word} is not known\n{USAGE}")),
            }
        }
        Ok(parsed)
    }

    /// Whether nothing is left out of the transfers.
    fn takes_all_cases(&self) -> bool {
        self.scope == Scope::Full && self.case.is_none()
    }

    fn wants(&self, peer: Peer) -> bool {
        self.only.as_ref().is_none_or(|word| peer.name().to_lowercase().contains(word))
    }

    fn wants_case(&self, case: &Case) -> bool {
        self.case.as_ref().is_none_or(|words| case.to_string().contains(words))
    }
}

fn main() -> ExitCode {
    if std::env::args().skip(1).any(|word| word == "--help" || word == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
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

/// All peers side by side: the experiments, which are silent for most of the time, and meanwhile one transfer after the
/// other, large ones last.
async fn sections(arguments: &Arguments) -> std::io::Result<Vec<Section>> {
    let log = std::env::current_exe()?.with_file_name("interop.log");
    let log = Arc::new(Log::open(&log, arguments.resumes)?);
    let mut sections: Vec<_> =
        Peer::ALL.into_iter().filter(|&peer| arguments.wants(peer)).map(announce).collect();
    let mut work = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        if let Ok(version) = &section.version {
            let subject = format!("{} {version}", section.peer.name());
            work.push(Work { number, peer: section.peer, subject, log: Arc::clone(&log) });
        }
    }
    let quirks =
        tokio::spawn(try_quirks(if arguments.takes_all_cases() { work.clone() } else { Vec::new() }));
    if arguments.transfers {
        for (number, case, verdict) in transfers(&work, arguments).await {
            sections[number].results.push((case, verdict));
        }
    }
    for (number, quirk, finding) in quirks.await.map_err(std::io::Error::other)? {
        sections[number].quirks.push((quirk, finding));
    }
    Ok(sections)
}

fn announce(peer: Peer) -> Section {
    let version = peer.version();
    match &version {
        Ok(version) => eprintln!("{} {version}", peer.name()),
        Err(why) => eprintln!("{}: SKIPPED: {why}", peer.name()),
    }
    Section { peer, version, results: Vec::new(), quirks: Vec::new() }
}

/// What is done with one peer.
#[derive(Clone)]
struct Work {
    /// Its section's.
    number: usize,
    peer: Peer,
    subject: String,
    log: Arc<Log>,
}

async fn try_quirks(work: Vec<Work>) -> Vec<(usize, Quirk, Finding)> {
    let mut running = JoinSet::new();
    for work in work {
        for quirk in Quirk::ALL {
            let work = work.clone();
            running.spawn(async move { Some((work.number, quirk, work.try_quirk(quirk).await?)) });
        }
    }
    let mut known: Vec<_> = running.join_all().await.into_iter().flatten().collect();
    known.sort_by_key(|(number, quirk, _)| (*number, *quirk as u8));
    known
}

/// In the order of their beginnings, as many at once as there is room for.
async fn transfers(work: &[Work], arguments: &Arguments) -> Vec<(usize, Case, Verdict)> {
    let of = |work: &Work| {
        let work = work.clone();
        matrix::cases(work.peer, arguments.scope)
            .into_iter()
            .filter(|case| arguments.wants_case(case))
            .map(move |case| (work.clone(), case))
    };
    let mut cases: Vec<_> = work.iter().flat_map(of).collect();
    let total = cases.len();
    cases.sort_by_key(|(_, case)| case.is_large());
    let (room, mut running) = (Arc::new(Semaphore::new(PLACES)), JoinSet::new());
    for (n, (work, case)) in cases.into_iter().enumerate() {
        let places = if case.is_large() { PLACES_OF_LARGE } else { 1 };
        let place = Arc::clone(&room).acquire_many_owned(places).await;
        running.spawn(async move {
            let verdict = work.try_transfer(&case, &format!("{}/{total}", n + 1)).await;
            drop(place);
            (n, work.number, case, verdict)
        });
    }
    let mut results = running.join_all().await;
    results.sort_by_key(|(n, _, _, _)| *n);
    results.into_iter().map(|(_, number, case, verdict)| (number, case, verdict)).collect()
}

impl Work {
    async fn try_quirk(&self, quirk: Quirk) -> Option<Finding> {
        let subject = format!("{}: {}", self.subject, quirk.name());
        if let Some(known) = self.log.finding(&subject) {
            return Some(known);
        }
        let finding = quirks::run(self.peer, quirk).await?;
        eprintln!("{subject}: {}", finding.as_ref().unwrap_or_else(|error| error));
        complain(self.log.keep_finding(&subject, &finding));
        Some(finding)
    }

    async fn try_transfer(&self, case: &Case, count: &str) -> Verdict {
        let subject = format!("{}: {case}", self.subject);
        if let Some(known) = self.log.verdict(&subject) {
            return known;
        }
        let verdict = matrix::judge(self.peer, case).await;
        eprintln!("{count} {subject}: {verdict}");
        complain(self.log.keep_verdict(&subject, &verdict));
        verdict
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
    if arguments.takes_all_cases() && arguments.transfers && arguments.only.is_none() {
        return std::fs::write(REPORT, text);
    }
    if !arguments.json {
        print!("{text}");
    }
    Ok(())
}
