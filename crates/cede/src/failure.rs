//! How a command ends when it does not end well.

use cede_lab::record::RecordError;
use cede_lab::scenario::{MAX_PROBLEMS, Problem, render};
use std::io::ErrorKind;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub enum Failure {
    /// The scenario is none.
    Scenario(Vec<Problem>),
    /// The command line asks for what there is not.
    Usage(String),
    /// It went wrong on the way.
    Failed(String),
    /// Assertions do not hold; the screen has shown which.
    AssertionsFailed(usize),
    /// Pass marks of the battery were missed; the screen has shown which.
    MarksMissed(usize),
    /// The system does not permit it.
    NotPermitted(String),
    /// Ctrl-C; the text says what there is nevertheless.
    Interrupted(String),
}

impl Failure {
    /// The process's exit code.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) | Self::AssertionsFailed(_) | Self::MarksMissed(_) => 1,
            Self::Scenario(_) | Self::Usage(_) => 2,
            Self::NotPermitted(_) => 3,
            Self::Interrupted(_) => 130,
        }
    }

    /// What the system refuses or cannot do, by the kind of its error.
    pub fn of_system(text: String, kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::NotPermitted(text),
            _ => Self::Failed(text),
        }
    }

    /// What it says, where that is one text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Usage(text) | Self::Failed(text) | Self::NotPermitted(text) | Self::Interrupted(text) => {
                Some(text)
            }
            Self::Scenario(_) | Self::AssertionsFailed(_) | Self::MarksMissed(_) => None,
        }
    }

    /// Of whatever it is about, which its text does not name, by a name that can be shown. An interruption is about all.
    pub fn about(self, name: &str) -> Self {
        let named = |text: String| format!("{name}: {text}");
        match self {
            Self::Usage(text) => Self::Usage(named(text)),
            Self::Failed(text) => Self::Failed(named(text)),
            Self::NotPermitted(text) => Self::NotPermitted(named(text)),
            other => other,
        }
    }

    /// What is said of it in the end.
    pub fn words(&self) -> String {
        match self {
            Self::Scenario(problems) => {
                let count = problems.len();
                let noun = if count == 1 { "problem" } else { "problems" };
                let more = if count < MAX_PROBLEMS { "" } else { " or more" };
                format!("{}\n\nerror: the scenario was not run: {count} {noun}{more}", render(problems))
            }
            Self::Usage(text) | Self::Failed(text) | Self::NotPermitted(text) => format!("error: {text}"),
            Self::AssertionsFailed(1) => "error: an assertion does not hold".to_string(),
            Self::AssertionsFailed(count) => format!("error: {count} assertions do not hold"),
            Self::MarksMissed(1) => "error: a scenario of the battery was not passed".to_string(),
            Self::MarksMissed(count) => format!("error: {count} scenarios of the battery were not passed"),
            Self::Interrupted(text) => format!("interrupted: {text}"),
        }
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Self::of_system(error.to_string(), error.kind())
    }
}
