//! The state of queues at every dequeue.

use super::folder::Folder;
use super::output::RecordError;
use super::rows::{Column, Format, Rows, Value, number, time, whole};
use crate::meter::QueueTap;
use crate::network::{Network, Watched};
use crate::scenario::Scenario;
use cede_net::Dequeue;
use std::cell::RefCell;
use std::rc::Rc;

pub(super) const COLUMNS: &[Column] = &[
    time("time_s", "When the packet began to be transmitted, in seconds since the beginning of the run."),
    number("waited_ms", "How long it had waited, in milliseconds."),
    whole("packet_bytes", "Octets of the packet, headers included."),
    whole("queued_bytes", "Octets that wait behind it."),
    whole("queued_packets", "Packets that wait behind it."),
    whole("served_bytes", "Octets served since the beginning, this packet included."),
    whole("dropped_packets", "Packets dropped since the beginning."),
];

/// `queue-LINK` for every link whose queue is recorded.
#[derive(Debug)]
pub(super) struct QueueRows {
    /// By the index of the metered link.
    links: Vec<Option<Rows>>,
}

impl QueueRows {
    pub fn create(
        folder: &Folder,
        scenario: &Scenario,
        network: &Network,
        formats: &[Format],
    ) -> Result<Self, RecordError> {
        let named = &scenario.record.links;
        let open = |watched: &Watched| {
            let wanted = named.is_empty() || named.contains(&watched.name);
            let rows = || Rows::create(folder.path(), &format!("queue-{}", watched.name), COLUMNS, formats);
            wanted.then(rows).transpose()
        };
        Ok(Self { links: network.watched.iter().map(open).collect::<Result<_, RecordError>>()? })
    }

    pub fn has_failed(&self) -> bool {
        self.links.iter().flatten().any(Rows::has_failed)
    }

    pub fn finish(&mut self) -> Result<Vec<String>, RecordError> {
        let names: Result<Vec<_>, _> = self.links.iter_mut().flatten().map(Rows::finish).collect();
        Ok(names?.concat())
    }
}

impl QueueTap for Rc<RefCell<QueueRows>> {
    fn dequeued(&mut self, link: usize, event: &Dequeue) {
        let mut queues = self.borrow_mut();
        let Some(Some(rows)) = queues.links.get_mut(link) else { return };
        rows.push(&[
            Value::Time(event.at),
            Value::Number(event.waited.as_millis_f64()),
            Value::Whole(u64::from(event.bytes)),
            Value::Whole(event.queued_bytes),
            Value::Whole(u64::from(event.queued_packets)),
            Value::Whole(event.served_bytes),
            Value::Whole(event.dropped_packets),
        ]);
    }
}
