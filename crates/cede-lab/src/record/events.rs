//! What happened to the flows, as JSON lines.

use super::flows::phase_name;
use super::folder::Folder;
use super::output::{Output, RecordError};
use crate::journal::Happening;
use crate::run::FlowEvent;
use serde::Serialize;

/// A line of `events.jsonl`.
#[derive(Serialize, Default)]
struct Line<'a> {
    t_s: f64,
    flow: &'a str,
    end: &'static str,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeouts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// `events.jsonl`.
#[derive(Debug)]
pub(super) struct EventLines {
    output: Output,
}

impl EventLines {
    pub fn create(folder: &Folder) -> Result<Self, RecordError> {
        Ok(Self { output: Output::create(folder.path(), "events.jsonl")? })
    }

    pub fn event(&mut self, event: &FlowEvent<'_>) {
        // A struct of plain fields serialises always.
        let mut line = serde_json::to_vec(&line_of(event)).unwrap_or_default();
        line.push(b'\n');
        self.output.write(&line);
    }

    pub const fn has_failed(&self) -> bool {
        self.output.has_failed()
    }

    pub fn finish(&mut self) -> Result<String, RecordError> {
        self.output.finish()
    }
}

fn line_of<'a>(event: &'a FlowEvent<'_>) -> Line<'a> {
    let end = if event.at_sender { "sender" } else { "receiver" };
    let plain = |name| Line {
        t_s: event.at.as_secs_f64(),
        flow: &event.flow.name,
        end,
        event: name,
        ..Line::default()
    };
    match &event.happening {
        Happening::Opening => plain("opening"),
        Happening::Connected => plain("connected"),
        Happening::Phase(phase) => Line { phase: Some(phase_name(*phase)), ..plain("phase") },
        Happening::Loss(packets) => Line { packets: Some(*packets), ..plain("loss") },
        Happening::Timeout(timeouts) => Line { timeouts: Some(*timeouts), ..plain("timeout") },
        Happening::Stopped => plain("stopped"),
        Happening::Finished => plain("finished"),
        Happening::PeerFinished => plain("peer_finished"),
        Happening::Closed => plain("closed"),
        Happening::Failed(reason) => Line { reason: Some(reason), ..plain("failed") },
    }
}
