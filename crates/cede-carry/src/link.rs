//! Frames over a line, in both directions.

use crate::framed::{FrameReader, FrameWriter};
use crate::line::Line;
use crate::message::Message;

/// Both directions of a line, in frames.
#[derive(Debug)]
pub struct Link {
    /// What the other side says.
    pub reader: FrameReader<Line>,
    /// What this side says.
    pub writer: FrameWriter<Line>,
    /// The stream itself.
    pub line: Line,
}

impl Link {
    /// Frames over a line.
    #[must_use]
    pub fn new(line: Line) -> Self {
        Self { reader: FrameReader::new(line.clone()), writer: FrameWriter::new(line.clone()), line }
    }

    /// Says a last word, if it still can be said, and waits until it has arrived.
    pub async fn part_with(mut self, message: &Message) {
        let _ = self.writer.send(message).await;
        self.part().await;
    }

    /// Ends our direction and waits until everything has arrived.
    pub async fn part(mut self) {
        let _ = self.writer.end().await;
        self.line.delivered().await;
    }
}
