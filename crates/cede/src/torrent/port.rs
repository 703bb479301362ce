//! Ports of a router that lead to ours, as far as a person and a program see them.

use super::args::SwarmArgs;
use cede_bt::Transport;
use cede_bt::gateway::Protocol;
use cede_torrent::gateway::{Keeper, Mapping, keep};
use cede_torrent::session::Listener;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;
use tokio::time::timeout;

/// A router has so long from the beginning, while what is there is checked.
const FIRST: Duration = Duration::from_millis(500);
/// Trackers are left alone for a minute.
const ALONE: Duration = Duration::from_secs(62);

/// What is heard of the router.
#[derive(Clone, Copy)]
pub enum News<'a> {
    /// It leads others to us.
    Leads(&'a Mapping),
    /// Trackers were told of another port before, and can be told again.
    IsToBeTold,
}

/// What is asked of the router, if anything.
pub struct Mapped {
    keeper: RefCell<Option<Keeper>>,
    /// Closed once the router has said something, or has had time to.
    first: watch::Receiver<()>,
}

impl Mapped {
    /// Asks in the background, unless that is not wanted, and hands on what is heard.
    pub fn begin(args: &SwarmArgs, listener: &Rc<Listener>, heard: impl Fn(News<'_>) + 'static) -> Self {
        let (settling, first) = watch::channel(());
        if args.no_port_mapping {
            return Self { keeper: RefCell::default(), first };
        }
        let ways = [(Transport::Tcp, Protocol::Tcp), (Transport::Utp, Protocol::Udp)];
        let accepted = ways.into_iter().filter(|(transport, _)| args.transport.accepts(*transport));
        let (sender, notes) = mpsc::unbounded_channel();
        let keeper = keep(listener, accepted.map(|(_, protocol)| protocol).collect(), sender);
        if keeper.is_some() {
            tokio::task::spawn_local(hear(notes, listener.port(), settling, heard));
        }
        Self { keeper: RefCell::new(keeper), first }
    }

    /// Waits until trackers can be told of the router's port at once, or a little.
    pub async fn settled(&self) {
        let _ = self.first.clone().changed().await;
    }

    /// Gives back what the router has granted.
    pub async fn end(&self) {
        let keeper = self.keeper.borrow_mut().take();
        if let Some(keeper) = keeper {
            keeper.end().await;
        }
    }
}

/// Tells of each port that leads to ours, and when trackers can hear of one that came late and is another.
async fn hear(
    mut notes: UnboundedReceiver<Mapping>,
    port: u16,
    settling: watch::Sender<()>,
    heard: impl Fn(News<'_>),
) {
    if let Ok(Some(first)) = timeout(FIRST, notes.recv()).await {
        heard(News::Leads(&first));
    }
    drop(settling);
    let mut is_late = false;
    loop {
        let wait = if is_late { ALONE } else { Duration::MAX };
        match timeout(wait, notes.recv()).await {
            Ok(Some(mapping)) => {
                heard(News::Leads(&mapping));
                is_late = mapping.grants.iter().any(|grant| grant.port != port);
            }
            Ok(None) => return,
            Err(_) => {
                is_late = false;
                heard(News::IsToBeTold);
            }
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
