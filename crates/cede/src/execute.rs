//! One run from its beginning to its end: folder, records, progress, report, and what is shown of it.

use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;
use crate::run::args::PictureForm;
use crate::scenarios::Loaded;
use crate::screen::{self, Screen};
use crate::shell::quoted;
use cede_lab::network::Network;
use cede_lab::outcome::{Outcome, Verdict};
use cede_lab::ports::FIRST_PORT;
use cede_lab::record::{self, Folder, Manifest, Recorder, Results, Status};
use cede_lab::report::{self, Provenance, Subject};
use cede_lab::run::{FlowEvent, FlowSample, Run, RunError, Watcher};
use cede_plot::terminal;
use cede_units::{Duration, Instant};
use flate2::{Compression, write::GzEncoder};
use std::io;
use std::path::PathBuf;

/// What is to be run, and what is to be kept of it.
pub struct Job<'a> {
    /// The scenario.
    pub loaded: &'a Loaded,
    /// The run folder.
    pub folder: PathBuf,
    /// The command that repeats the run.
    pub repeat: String,
    /// What is recorded.
    pub record: record::Options,
    /// A file for flent is wanted, too.
    pub flent: bool,
    /// Forms in which figures are drawn beside the report.
    pub plots: &'a [PictureForm],
    /// Standard output is for the manifest.
    pub json: bool,
}

/// Feeds the record, shows progress, and stops where that is asked for or nothing can be written any more.
struct Attendant {
    recorder: Recorder,
    progress: Progress,
    reached: Instant,
}

impl Watcher for Attendant {
    fn progress(&mut self, now: Instant, end: Instant) -> bool {
        self.reached = now;
        self.progress.update(now, end);
        !interrupt::is_asked() && !self.recorder.has_failed()
    }

    fn sample(&mut self, sample: &FlowSample<'_>) {
        self.recorder.sample(sample);
    }

    fn event(&mut self, event: &FlowEvent<'_>) {
        self.recorder.event(event);
    }
}

/// What came of a run.
struct Finished {
    outcome: Result<Outcome, RunError>,
    files: Result<Vec<String>, record::RecordError>,
    reached: Instant,
    wall_s: f64,
    cpu_s: Option<f64>,
}

/// Runs a job, keeps what it showed, and shows it.
///
/// # Errors
/// [`Failure`]; assertions that do not hold are one.
pub fn execute(job: &Job<'_>) -> Result<(), Failure> {
    let scenario = &job.loaded.scenario;
    // Names of files need be no Unicode.
    let command: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut manifest = Manifest::begin(scenario, &job.loaded.source, &command);
    let folder = clear(job, &manifest)?;
    let run = Run::new(scenario);
    let network = run.network().clone();
    let recorder = Recorder::create(&folder, scenario, &network, &job.record)?;
    // Who is ended by force leaves these, and whoever comes next is to know them.
    manifest.files = folder.made();
    folder.write_manifest(&manifest)?;
    let finished = go(run, recorder);
    manifest.simulated_s = finished.reached.as_secs_f64();
    (manifest.wall_s, manifest.cpu_s) = (finished.wall_s, finished.cpu_s);
    let broken;
    (manifest.files, broken) = match finished.files {
        Ok(files) => ([vec!["scenario.toml".to_string()], files].concat(), None),
        Err(error) => (folder.made(), Some(Failure::from(error))),
    };
    match (broken, finished.outcome) {
        (None, Ok(outcome)) => complete(job, &folder, &network, &outcome, manifest),
        (Some(failure), _) => give_up(job, &folder, manifest, Status::Failed, failure),
        (None, Err(RunError::Interrupted)) => {
            let reached = format!("{:.1} of {} simulated", manifest.simulated_s, scenario.duration);
            let text =
                format!("{reached}; what was recorded until then is in {}", screen::named(&job.folder));
            give_up(job, &folder, manifest, Status::Interrupted, Failure::Interrupted(text))
        }
        (None, Err(error)) => {
            give_up(job, &folder, manifest, Status::Failed, Failure::Failed(error.to_string()))
        }
    }
}

/// The run folder with nothing in it but what this run is. An earlier one goes at once: of a run that ends early, the
/// report of another would stand beside what it says itself.
fn clear(job: &Job<'_>, manifest: &Manifest<'_>) -> Result<Folder, Failure> {
    let folder = Folder::claim(&job.folder)?;
    folder.write_manifest(manifest)?;
    folder.sweep(&["manifest.json"]);
    folder.write("scenario.toml", job.loaded.scenario.to_toml().as_bytes())?;
    Ok(folder)
}

fn go(run: Run<'_>, recorder: Recorder) -> Finished {
    let run = recorder.attach(run);
    let before = cpu_s();
    let mut attendant = Attendant { recorder, progress: Progress::begin(), reached: Instant::ZERO };
    let outcome = run.go(&mut attendant).map(|(outcome, _)| outcome);
    Finished {
        outcome,
        wall_s: attendant.progress.end(),
        cpu_s: cpu_s().zip(before).map(|(now, before)| now - before),
        files: attendant.recorder.finish(),
        reached: attendant.reached,
    }
}

/// Processor time of this thread in seconds, where the system tells (Linux).
fn cpu_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

/// A run that went to its end.
fn complete(
    job: &Job<'_>,
    folder: &Folder,
    network: &Network,
    outcome: &Outcome,
    mut manifest: Manifest<'_>,
) -> Result<(), Failure> {
    let subject = Subject { scenario: &job.loaded.scenario, network, outcome };
    let verdicts = outcome.verdicts(&job.loaded.scenario);
    manifest.files.extend(draw(job, folder, &subject)?);
    if job.flent {
        manifest.files.push(write_flent(folder, &subject)?);
    }
    let provenance = Provenance {
        command: &job.repeat,
        source: &job.loaded.text,
        wall_s: manifest.wall_s,
        files: &manifest.files,
    };
    let page = report::page(&subject, &verdicts, &provenance);
    let page = folder.write("report.html", page.as_bytes())?;
    manifest.files.push(page);
    let shown = show(job, &subject, &verdicts, manifest.wall_s);
    let (status, judgement) = judge(outcome, &verdicts);
    manifest.status = status;
    publish(job, folder, &manifest.with_results(Results { outcome, assertions: &verdicts }))?;
    judgement.and(shown)
}

/// Whether all is well with what a run showed.
fn judge(outcome: &Outcome, verdicts: &[Verdict]) -> (Status, Result<(), Failure>) {
    let damaged = outcome.flows.iter().any(|flow| !flow.intact);
    let failing = verdicts.iter().filter(|verdict| !verdict.holds).count();
    match (damaged, failing) {
        (true, _) => {
            let text = "data arrived damaged: this is a defect of the transport";
            (Status::Failed, Err(Failure::Failed(text.to_string())))
        }
        (false, 0) => (Status::Complete, Ok(())),
        (false, failing) => (Status::AssertionFailed, Err(Failure::AssertionsFailed(failing))),
    }
}

/// A run that ended early: says so in the manifest.
fn give_up(
    job: &Job<'_>,
    folder: &Folder,
    mut manifest: Manifest<'_>,
    status: Status,
    failure: Failure,
) -> Result<(), Failure> {
    manifest.status = status;
    // Where the disk is full this fails as well; what was wrong first is what is told.
    let _ = publish(job, folder, &manifest);
    Err(failure)
}

fn publish(job: &Job<'_>, folder: &Folder, manifest: &Manifest<'_>) -> Result<(), Failure> {
    folder.write_manifest(manifest)?;
    if !job.json {
        return Ok(());
    }
    let text = serde_json::to_string_pretty(manifest).map_err(|error| Failure::Failed(error.to_string()))?;
    screen::print(&(text + "\n"))
}

/// The figures as files, where they are asked for.
fn draw(job: &Job<'_>, folder: &Folder, subject: &Subject<'_>) -> Result<Vec<String>, Failure> {
    let figure = report::overview(subject);
    let mut names = Vec::new();
    for form in job.plots {
        let (name, octets) = match form {
            PictureForm::Svg => ("figures.svg", figure.to_svg().into_bytes()),
            PictureForm::Png => {
                let octets = figure.to_png(2.0).map_err(|error| Failure::Failed(error.to_string()))?;
                ("figures.png", octets)
            }
        };
        names.push(folder.write(name, &octets)?);
    }
    Ok(names)
}

/// The run as one file for flent, called as flent wants it.
fn write_flent(folder: &Folder, subject: &Subject<'_>) -> Result<String, Failure> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    // What is written to memory, and numbers and words as JSON, cannot fail.
    let octets = serde_json::to_writer(&mut packed, &report::flent(subject)).map_err(io::Error::from);
    let octets = octets.and_then(|()| packed.finish()).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(folder.write(&format!("{}.flent.gz", subject.scenario.name), &octets)?)
}

const RATE_LINES: usize = 13;
const QUEUE_LINES: usize = 11;

/// The scenario's name, and what it shows where it says so.
fn headline(name: &str, description: &str) -> String {
    if description.is_empty() { name.to_string() } else { format!("{name}: {description}") }
}

/// What a person sees.
fn show(job: &Job<'_>, subject: &Subject<'_>, verdicts: &[Verdict], wall_s: f64) -> Result<(), Failure> {
    let screen = Screen::new(job.json);
    let (columns, colour) = (screen.columns, screen.colour);
    let scenario = subject.scenario;
    let mut out = screen.wrap("", &headline(&screen.bold(&scenario.name), &scenario.description)) + "\n";
    let panels = [report::rates(subject), report::queues(subject)];
    out += &terminal::charts(&panels[..1], columns, RATE_LINES, colour);
    out.push('\n');
    out += &terminal::charts(&panels[1..], columns, QUEUE_LINES, colour);
    out.push('\n');
    for table in [Some(report::flows(subject)), Some(report::links(subject)), report::assertions(verdicts)] {
        let Some(table) = table.filter(|table| !table.is_empty()) else { continue };
        out += &terminal::table(&table, columns, colour);
        out.push('\n');
    }
    out += &screen.wrap("", &fairness(subject.outcome, scenario.warmup));
    out.push('\n');
    for sentence in report::story(subject) {
        out += &screen.wrap("", &screen.strong(&sentence));
    }
    out.push('\n');
    let tape = &subject.outcome.tape;
    let took =
        format!("{} simulated in {wall_s:.2} s, seed {}, tape {tape}", scenario.duration, scenario.seed);
    out += &screen.wrap("", &took);
    out += &format!("report:  {}\n", screen.bold(&screen::named(&job.folder.join("report.html"))));
    out += &format!("again:   {}\n", job.repeat);
    if let Some(command) = dissection(job, subject) {
        out += &format!("packets: {command}\n");
    }
    screen.say(&out)
}

/// How Wireshark reads the capture: it does not know uTP's ports, and by default takes windows above 3.5 MiB for a sign
/// of something else.
fn dissection(job: &Job<'_>, subject: &Subject<'_>) -> Option<String> {
    if job.record.capture.is_none() && !subject.scenario.record.packets {
        return None;
    }
    let last = subject.network.flows.len().saturating_sub(1) + usize::from(FIRST_PORT);
    let utp = format!("-d udp.port=={FIRST_PORT}-{last},bt-utp -o bt-utp.max_window_size:ffffffff");
    let capture = job.folder.join("packets.pcapng");
    Some(format!("tshark -r {} {utp}", quoted(&capture.display().to_string())))
}

/// The indices, and what the tables above are of where they are not of the whole run, of which the sentences below tell.
fn fairness(outcome: &Outcome, warmup: Duration) -> String {
    let index = |value: Option<f64>| value.map_or("–".to_string(), |value| format!("{value:.3}"));
    let (long, short) = (index(outcome.fairness_long), index(outcome.fairness_short));
    let of = if warmup.is_zero() {
        "over the whole time".to_string()
    } else {
        format!("over the {} s after the warm-up, as in the tables", outcome.span_s)
    };
    format!("fairness (Jain): {long} {of}, {short} in windows of one second")
}
