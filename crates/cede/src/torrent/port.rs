//! Ports of a router that lead to ours, as far as a person and a program see them.

use super::args::SwarmArgs;
use cede_bt::Transport;
use cede_bt::gateway::Protocol;
use cede_torrent::gateway::{Keeper, Mapping, keep};
use cede_torrent::session::Listener;
use serde_json::{Value, json};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::Instant;

/// A router has so long from the beginning, while what is there is checked.
const FIRST: Duration = Duration::from_millis(500);
/// Trackers are left alone for a minute.
const ALONE: Duration = Duration::from_secs(62);

/// What is asked of the router, if anything.
#[derive(Default)]
pub struct Mapped {
    keeper: Option<Keeper>,
    notes: Option<UnboundedReceiver<Mapping>>,
    first: Option<Mapping>,
    until: Option<Instant>,
    /// When trackers are to hear of a port that they have not heard of.
    tell_at: Option<Instant>,
    port: u16,
}

impl Mapped {
    /// Asks in the background, unless that is not wanted.
    pub fn begin(args: &SwarmArgs, listener: &Rc<Listener>) -> Self {
        let port = listener.port();
        if args.no_port_mapping {
            return Self { port, ..Self::default() };
        }
        let ways = [(Transport::Tcp, Protocol::Tcp), (Transport::Utp, Protocol::Udp)];
        let accepted = ways.into_iter().filter(|(transport, _)| args.transport.accepts(*transport));
        let (sender, notes) = mpsc::unbounded_channel();
        let keeper = keep(listener, accepted.map(|(_, protocol)| protocol).collect(), sender);
        let notes = keeper.is_some().then_some(notes);
        Self { keeper, notes, until: Some(Instant::now() + FIRST), port, ..Self::default() }
    }

    /// Waits until a router leads to us, from another port than before.
    pub async fn changed(&mut self) -> Mapping {
        if let Some(first) = self.first.take() {
            return first;
        }
        match &mut self.notes {
            Some(notes) => match notes.recv().await {
                Some(mapping) => {
                    let is_ours = mapping.grants.iter().all(|grant| grant.port == self.port);
                    self.tell_at = (!is_ours).then(|| Instant::now() + ALONE);
                    mapping
                }
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    /// Trackers are to be asked anew: they were told of another port.
    pub fn is_to_be_told(&mut self) -> bool {
        self.tell_at.take_if(|at| *at <= Instant::now()).is_some()
    }

    /// Does something, and waits a little for the router beside it, so that trackers hear of its port at once.
    pub async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let done = work.await;
        if let (Some(notes), Some(until)) = (&mut self.notes, self.until) {
            self.first = tokio::time::timeout_at(until, notes.recv()).await.ok().flatten();
        }
        done
    }

    /// Gives back what the router has granted.
    pub async fn end(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            keeper.end().await;
        }
    }
}

/// What is said of it, and printed for programs.
pub fn told(mapping: &Mapping) -> (String, Value) {
    let port = |protocol| mapping.grants.iter().find(|grant| grant.protocol == protocol).map(|it| it.port);
    let (tcp, udp) = (port(Protocol::Tcp), port(Protocol::Udp));
    let ports = match (tcp, udp) {
        (Some(tcp), Some(udp)) if tcp == udp => format!("TCP and UDP port {tcp}"),
        (Some(tcp), Some(udp)) => format!("TCP port {tcp} and UDP port {udp}"),
        (Some(tcp), None) => format!("TCP port {tcp}"),
        (None, udp) => format!("UDP port {}", udp.unwrap_or_default()),
    };
    let address = mapping.address.map_or_else(|| "the router".to_owned(), |address| address.to_string());
    let data = json!({ "via": mapping.via, "address": mapping.address, "tcp": tcp, "udp": udp });
    (format!("{ports} of {address} leads here ({})\n", mapping.via), data)
}
