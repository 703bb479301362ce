//! The run folder: what a run leaves behind for people and programs.
//!
//! | file | what it holds |
//! |---|---|
//! | `manifest.json` | version, scenario and its hash, seed, generator, command, results, tape hash, times ([`Manifest`]) |
//! | `scenario.toml` | the scenario with every default filled in; running it repeats the run |
//! | `flows.csv` | a row per flow and interval: rate, windows, RTT, believed queue, octets under way, retransmissions |
//! | `controllers.csv` | with `record.controllers`, a row per flow and interval: phase, base delay, pacing rate |
//! | `queue-LINK.csv` | a row per dequeue: time, wait, what is left, what was served and dropped so far |
//! | `events.jsonl` | a line per event: connections, losses, timeouts, phases |
//! | `packets.pcapng` | the octets of every packet ([`Vantage`]) |
//!
//! Tables (`*.csv`) can be JSON lines, or what a caller writes ([`OtherFormat`]), besides or instead.
//!
//! Everything is streamed to disk while the world runs, so memory does not grow with what is recorded. The first
//! error ends the writing of a file and is reported at the end; [`Recorder::has_failed`] tells at once.
//!
//! **Invariant:** nothing here decides what is measured; whoever records only listens.

mod capture;
mod events;
mod flows;
mod folder;
mod manifest;
mod output;
mod queues;
mod rows;

pub(crate) use capture::{Capture, Scope};
pub use capture::{Octets, Vantage, address};
pub use folder::Folder;
pub use manifest::{Manifest, Results, ScenarioRecord, Status};
pub use output::RecordError;
pub use rows::{Column, CreateSheet, Format, Kind, OtherFormat, Sheet, Value};

use crate::network::Network;
use crate::run::{FlowEvent, FlowSample, Run};
use crate::scenario::Scenario;
use events::EventLines;
use flows::FlowRows;
use queues::QueueRows;
use std::cell::RefCell;
use std::rc::Rc;

/// The tables of a run folder: what their files are called as CSV, and their columns.
pub const TABLES: [(&str, &[Column]); 3] = [
    ("flows.csv", flows::FLOW_COLUMNS),
    ("controllers.csv", flows::CONTROLLER_COLUMNS),
    ("queue-LINK.csv", queues::COLUMNS),
];

/// What is written beyond what the scenario asks for, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The forms of tables.
    pub formats: Vec<Format>,
    /// The capture, where one is wanted; `record.packets` of the scenario asks for every packet, once.
    pub capture: Option<Vantage>,
}

impl Default for Options {
    fn default() -> Self {
        Self { formats: vec![Format::Csv], capture: None }
    }
}

/// Writes a run down while it goes.
pub struct Recorder {
    flows: FlowRows,
    events: Option<EventLines>,
    queues: Option<Rc<RefCell<QueueRows>>>,
    capture: Option<Rc<RefCell<Capture>>>,
}

impl Recorder {
    /// Opens the files that the scenario and the options ask for.
    ///
    /// # Errors
    /// [`RecordError`] where one cannot be created.
    pub fn create(
        folder: &Folder,
        scenario: &Scenario,
        network: &Network,
        options: &Options,
    ) -> Result<Self, RecordError> {
        let vantage = options.capture.or(scenario.record.packets.then_some(Vantage::default()));
        let open_queues = || QueueRows::create(folder, scenario, network, &options.formats);
        let open_capture = |vantage| Capture::create(folder, scenario, network, vantage);
        Ok(Self {
            flows: FlowRows::create(folder, &options.formats, scenario.record.controllers)?,
            events: scenario.record.events.then(|| EventLines::create(folder)).transpose()?,
            queues: scenario.record.queue.then(open_queues).transpose()?.map(|q| Rc::new(RefCell::new(q))),
            capture: vantage.map(open_capture).transpose()?.map(|c| Rc::new(RefCell::new(c))),
        })
    }

    /// The run, with everything that is to be recorded handed here.
    #[must_use]
    pub fn attach<'a>(&self, mut run: Run<'a>) -> Run<'a> {
        if let Some(queues) = &self.queues {
            run = run.tap_queues(Box::new(Rc::clone(queues)));
        }
        if let Some(capture) = &self.capture {
            run = run.tap(Box::new(Rc::clone(capture)));
        }
        if self.events.is_some() { run.journal() } else { run }
    }

    /// Writes down how a flow stands.
    pub fn sample(&mut self, sample: &FlowSample<'_>) {
        self.flows.sample(sample);
    }

    /// Writes down what happened to a flow.
    pub fn event(&mut self, event: &FlowEvent<'_>) {
        if let Some(events) = &mut self.events {
            events.event(event);
        }
    }

    /// Something could not be written: there is no use in going on.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.flows.has_failed()
            || self.events.as_ref().is_some_and(EventLines::has_failed)
            || self.queues.as_ref().is_some_and(|queues| queues.borrow().has_failed())
            || self.capture.as_ref().is_some_and(|capture| capture.borrow().has_failed())
    }

    /// Writes out what is still in memory and tells the names of the files.
    ///
    /// # Errors
    /// The first [`RecordError`] of any file.
    pub fn finish(mut self) -> Result<Vec<String>, RecordError> {
        let mut names = self.flows.finish()?;
        if let Some(queues) = &self.queues {
            names.extend(queues.borrow_mut().finish()?);
        }
        if let Some(mut events) = self.events {
            names.push(events.finish()?);
        }
        if let Some(capture) = &self.capture {
            names.push(capture.borrow_mut().finish()?);
        }
        Ok(names)
    }
}
