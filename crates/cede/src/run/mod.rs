//! `cede run`: any scenario.

pub mod args;
mod room;

use crate::dataset::PARQUET;
use crate::execute::{Job, execute};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;
use crate::scenarios;
use crate::screen::{self, Screen};
use crate::shell::quoted;
use crate::whole;
use args::{RunArgs, TableForm};
use cede_lab::record::{self, Folder, Format, Vantage};
use cede_lab::scenario::{Overrides, is_swarm, parse_swarm};
use cede_lab::swarm::{self, Packets, SwarmWatcher};
use cede_plot::terminal;
use cede_units::Instant;
use std::path::{Path, PathBuf};

/// What the file of a swarm is called in its folder.
const SWARM: &str = "swarm.toml";
/// What it says about itself.
const SUMMARY: &str = "summary.json";
/// What a swarm's packets are written to.
const CAPTURE: &str = "packets.pcapng";

/// Reads the scenario and runs it.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let seed = args.seed.map(|seed| format!("seed={seed}"));
    let overrides = Overrides::new(args.set.iter().cloned().chain(seed));
    // Standard input can be read once only.
    let text = scenarios::text_of(&args.scenario)?;
    if is_swarm(&text) {
        refuse_forms(args)?;
        // What is captured is an option of a swarm: so it is told of with the others, and repeated.
        let packets = args.pcap.map(|vantage| format!("records.packets={}", packets(vantage.into())));
        let overrides = Overrides::new(overrides.texts().iter().cloned().chain(packets));
        return run_swarm(args, &text, &overrides);
    }
    let loaded = scenarios::load(&args.scenario, text, &overrides)?;
    let folder = match &args.output {
        Some(folder) => folder.clone(),
        None => PathBuf::from("cede-out").join(&loaded.scenario.name),
    };
    execute(&Job {
        repeat: repeat(args, overrides.texts(), &folder, "scenario.toml"),
        loaded: &loaded,
        folder,
        record: record::Options { formats: tables(&args.format), capture: args.pcap.map(Into::into) },
        flent: args.format.contains(&TableForm::Flent),
        plots: &args.plot,
        json: args.json,
    })
}

/// The forms of tables.
fn tables(forms: &[TableForm]) -> Vec<Format> {
    let table = |form: &TableForm| match form {
        TableForm::Csv => Some(Format::Csv),
        TableForm::Jsonl => Some(Format::JsonLines),
        TableForm::Parquet => Some(PARQUET),
        TableForm::Flent => None,
    };
    forms.iter().filter_map(table).collect()
}

/// What a swarm has not.
fn refuse_forms(args: &RunArgs) -> Result<(), Failure> {
    let text = match (args.format == [TableForm::Csv], args.plot.is_empty()) {
        (true, true) => return Ok(()),
        (false, _) => "the tables of a swarm are CSV, its summary JSON; --format is for scenarios",
        (true, false) => "of a swarm there are no figures, but its tables; --plot is for scenarios",
    };
    Err(Failure::Usage(text.to_string()))
}

/// Reads a swarm file and runs it.
fn run_swarm(args: &RunArgs, text: &str, overrides: &Overrides) -> Result<(), Failure> {
    let swarm = parse_swarm(&args.scenario, text, overrides).map_err(Failure::Scenario)?;
    prefer_large_pages(&args.scenario);
    if let Some(remark) = room::check(&swarm)? {
        screen::mention(&remark);
    }
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from("cede-out").join(&swarm.name));
    // Before anything is computed.
    let folder = begin(&swarm, text, &path)?;
    let mut attendant = SwarmAttendant { progress: Progress::begin(), end: Instant::ZERO + swarm.duration };
    let outcome = swarm::run_captured(&swarm, &path, &mut attendant);
    attendant.progress.end();
    let outcome = outcome.map_err(|error| Failure::Failed(error.to_string()));
    if outcome.is_err() && swarm.records.packets != Packets::None {
        let _ = std::fs::remove_file(path.join(CAPTURE));
    }
    let outcome = outcome?;
    let (files, json) = keep(args, &swarm, &outcome, &folder, overrides)?;
    let screen = Screen::new(args.json);
    let table = terminal::table(&swarm::summary_table(&swarm, &outcome), screen.columns, screen.colour);
    screen.say(&format!("{table}\nRecords: {files} files in {}\n", screen::named(&path)))?;
    if args.json {
        screen::print(&json)?;
    }
    judge(&swarm, &outcome)
}

/// The folder of a swarm that has not ended yet. An earlier run in it goes at once; and who is ended by force, or finds the disk full, leaves
/// word of whose files these are, and the file that was run: it may be that of the earlier run, of which there may be no other.
fn begin(swarm: &swarm::Swarm, text: &str, path: &Path) -> Result<Folder, Failure> {
    let folder = Folder::claim(path)?;
    let mut files = swarm::file_names(swarm);
    files.push(SWARM);
    if swarm.records.packets != Packets::None {
        files.push(CAPTURE);
    }
    let word = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "name": swarm.name,
        "seed": swarm.seed,
        "interrupted": true,
        "files": files,
    });
    write_whole(path, SUMMARY, &format!("{word:#}\n"))?;
    folder.sweep(&[SUMMARY, SWARM]);
    write_whole(path, SWARM, text)?;
    Ok(folder)
}

/// Writes a file in place of what it was before, which stays where there is no room.
fn write_whole(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = folder.join(name);
    whole::write(&path, text.as_bytes()).map_err(|error| failed(&path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::of_system(format!("{}: {error}", screen::named(path)), error.kind())
}

/// Writes what a swarm showed into its folder, in place of an earlier run. Answers with how many files there are, and with
/// the summary.
fn keep(
    args: &RunArgs,
    swarm: &swarm::Swarm,
    outcome: &swarm::SwarmOutcome,
    folder: &Folder,
    overrides: &Overrides,
) -> Result<(usize, String), Failure> {
    let path = folder.path();
    let files = swarm::write(swarm, outcome, path).map_err(|error| failed(path, &error))?;
    let mut names: Vec<&str> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
    names.push(SWARM);
    if swarm.records.packets != Packets::None {
        names.push(CAPTURE);
    }
    let mut json = swarm::to_json(swarm, outcome);
    json["overrides"] = overrides.texts().into();
    json["command"] = repeat(args, overrides.texts(), path, SWARM).into();
    json["files"] = names.clone().into();
    let json = format!("{json:#}\n");
    names.push(SUMMARY);
    write_whole(path, SUMMARY, &json)?;
    Ok((names.len(), json))
}

/// Says whether the swarm got anywhere, and fails where it was interrupted, and where what arrived was not the torrent.
fn judge(swarm: &swarm::Swarm, outcome: &swarm::SwarmOutcome) -> Result<(), Failure> {
    if outcome.is_interrupted {
        let ended_s = outcome.ended_at.as_secs_f64();
        let text =
            format!("{ended_s:.0} s of {} simulated; what was recorded until then is kept", swarm.duration);
        return Err(Failure::Interrupted(text));
    }
    if let Some(why) = swarm::unfinished(swarm, outcome) {
        screen::mention(&format!("{why}\n"));
    }
    let corrupt: u64 = outcome.peers.iter().map(|peer| peer.record.corrupt_bytes).sum();
    match corrupt {
        0 => Ok(()),
        corrupt => Err(Failure::Failed(format!("{corrupt} octets arrived that were not the torrent's"))),
    }
}

/// The program begins again for them: what comes through a pipe would not come twice.
fn prefer_large_pages(scenario: &str) {
    #[cfg(unix)]
    if std::fs::metadata(scenario).is_ok_and(|file| file.is_file()) {
        crate::pages::prefer_large();
    }
    #[cfg(not(unix))]
    let _ = scenario;
}

/// In a swarm, those that send at first are the seeds.
const fn packets(vantage: Vantage) -> &'static str {
    match vantage {
        Vantage::Sent => "sent",
        Vantage::Senders => "seeds",
        Vantage::Receivers => "leechers",
    }
}

/// Shows progress, and stops where that is asked for.
struct SwarmAttendant {
    progress: Progress,
    end: Instant,
}

impl SwarmWatcher for SwarmAttendant {
    fn progress(&mut self, now: Instant, _: usize, _: usize) -> bool {
        self.progress.update(now, self.end);
        !interrupt::is_asked()
    }
}

/// The command that repeats the run. What came through standard input is in the run folder: a scenario with its overrides,
/// a swarm as it came.
fn repeat(args: &RunArgs, overrides: &[String], folder: &Path, kept: &str) -> String {
    let is_piped = args.scenario == "-";
    let file = if is_piped { folder.join(kept).display().to_string() } else { args.scenario.clone() };
    let mut words = vec!["cede".to_string(), "run".to_string(), quoted(&file)];
    if !is_piped || kept == SWARM {
        overrides.iter().for_each(|text| words.extend(["-s".to_string(), quoted(text)]));
    }
    words.join(" ")
}
