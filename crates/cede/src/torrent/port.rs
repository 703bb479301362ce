//! Ports of a router that lead to ours, as far as a person and a program see them.

use super::swarm_args::SwarmArgs;
use cede_bt::gateway::Protocol;
use cede_bt::{Family, Transport};
use cede_torrent::gateway::{Keeper, Mapping, keep};
use cede_torrent::session::Listener;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::net::IpAddr;
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
    keepers: RefCell<Vec<Keeper>>,
    /// Closed once the router has said something of IPv4, or has had time to.
    first: watch::Receiver<()>,
}

impl Mapped {
    /// Asks in the background, unless that is not wanted, and hands on what is heard.
    pub fn begin(args: &SwarmArgs, listener: &Rc<Listener>, heard: impl Fn(News<'_>) + 'static) -> Self {
        let (settling, first) = watch::channel(());
        if args.no_port_mapping {
            return Self { keepers: RefCell::default(), first };
        }
        let ways = [(Transport::Tcp, Protocol::Tcp), (Transport::Utp, Protocol::Udp)];
        let accepted = ways.into_iter().filter(|(transport, _)| args.transport.accepts(*transport));
        let protocols: Vec<Protocol> = accepted.map(|(_, protocol)| protocol).collect();
        let (heard, mut keepers) = (Rc::new(heard), Vec::new());
        // Trackers are told of ports of IPv4 alone: those of IPv6 are ours.
        for (family, settling) in [(Family::V4, settling), (Family::V6, watch::channel(()).0)] {
            let (sender, notes) = mpsc::unbounded_channel();
            let keeper = keep(listener, family, protocols.clone(), sender);
            if keeper.is_some() {
                tokio::task::spawn_local(hear(notes, listener.port(), settling, heard.clone()));
            }
            keepers.extend(keeper);
        }
        Self { keepers: RefCell::new(keepers), first }
    }

    /// Waits until trackers can be told of the router's port at once, or a little.
    pub async fn settled(&self) {
        let _ = self.first.clone().changed().await;
    }

    /// We are in another network: its router is asked, and has time to lead others to us before trackers hear of it.
    pub async fn ask_again(&self) {
        self.keepers.borrow().iter().for_each(Keeper::ask_again);
        tokio::time::sleep(FIRST).await;
    }

    /// Gives back what the router has granted.
    pub async fn end(&self) {
        let keepers = self.keepers.take();
        // Side by side: each may take a while.
        let ending: Vec<_> =
            keepers.into_iter().map(|keeper| tokio::task::spawn_local(keeper.end())).collect();
        for ended in ending {
            let _ = ended.await;
        }
    }
}

/// Tells of each port that leads to ours, and when trackers can hear of one that came late and is another.
async fn hear(
    mut notes: UnboundedReceiver<Mapping>,
    port: u16,
    settling: watch::Sender<()>,
    heard: Rc<impl Fn(News<'_>)>,
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
    let text = match mapping.address {
        Some(IpAddr::V6(_)) => format!("the router lets others in to {ports} of {address}"),
        _ => format!("{ports} of {address} leads here"),
    };
    (format!("{text} ({})\n", mapping.via), data)
}
