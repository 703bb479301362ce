//! Three network namespaces with a bottleneck between them, made and removed with `ip` and `tc`.
//!
//! ```text
//! sender 10.77.1.1 -- 10.77.1.2 router 10.77.2.1 -[tbf]-> 10.77.2.2 receiver
//! ```
//! Neighbours are permanent, so that no address resolution waits in the shaped queue, and nothing is offloaded across the
//! wires, so that packets are packets.

use super::NetnsError;
use cede_units::{Duration, Rate};
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Output};

pub(crate) const SENDER: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 1);
pub(crate) const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 2);
const PREFIX: &str = "cede-";
/// The token bucket's depth: one Ethernet frame with its header, and a little more, as `tbf` wants it.
const BURST_BYTES: u32 = 1_600;
const SENDER_MAC: &str = "02:ce:de:00:01:01";
const ROUTER_MACS: [&str; 2] = ["02:ce:de:00:01:02", "02:ce:de:00:02:01"];
const RECEIVER_MAC: &str = "02:ce:de:00:02:02";

/// The three namespaces; dropping them removes them.
pub(crate) struct Namespaces {
    name: String,
}

/// What the bottleneck has done and holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bottleneck {
    pub sent_bytes: u64,
    pub backlog_bytes: u64,
    pub drops: u64,
}

/// Says why namespaces cannot be used here.
fn obstacle() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("network namespaces are Linux's".to_string());
    }
    for tool in [["ip", "-V"], ["tc", "-V"]] {
        if Command::new(tool[0]).arg(tool[1]).output().is_err() {
            return Some(format!("`{}` is not there (Debian: iproute2)", tool[0]));
        }
    }
    None
}

impl Namespaces {
    /// Lays them out, with a token bucket of this rate and a buffer of this time on the router's port to the receiver.
    ///
    /// # Errors
    /// [`NetnsError::Impossible`], whatever it is that fails.
    pub fn where_possible(rate: Rate, buffer: Duration) -> Result<Self, NetnsError> {
        match obstacle() {
            Some(why) => Err(NetnsError::Impossible(why)),
            None => Self::make(rate, buffer).map_err(|error| NetnsError::Impossible(error.to_string())),
        }
    }

    fn make(rate: Rate, buffer: Duration) -> io::Result<Self> {
        sweep();
        let made = Self { name: unique_name() };
        for end in ["s", "r", "d"] {
            ip(&format!("netns add {}-{end}", made.name))?;
            ip(&format!("-n {}-{end} link set lo up", made.name))?;
        }
        made.wire(["s", "r"], ["s0", "r0"], [SENDER_MAC, ROUTER_MACS[0]], ["10.77.1.1", "10.77.1.2"])?;
        made.wire(["r", "d"], ["r1", "d0"], [ROUTER_MACS[1], RECEIVER_MAC], ["10.77.2.1", "10.77.2.2"])?;
        ip(&format!("-n {}-s route add default via 10.77.1.2", made.name))?;
        ip(&format!("-n {}-d route add default via 10.77.2.1", made.name))?;
        made.enter("r", || fs::write("/proc/sys/net/ipv4/ip_forward", "1"))??;
        made.shape(rate, buffer)?;
        Ok(made)
    }

    /// A wire between two namespaces.
    fn wire(
        &self,
        ends: [&str; 2],
        ports: [&str; 2],
        macs: [&str; 2],
        addresses: [&str; 2],
    ) -> io::Result<()> {
        let name = &self.name;
        let ([a, b], [port_a, port_b]) = (ends, ports);
        let peer = format!("peer name {port_b} netns {name}-{b} address {}", macs[1]);
        ip(&format!("link add {port_a} netns {name}-{a} address {} type veth {peer}", macs[0]))?;
        for (near, far) in [(0, 1), (1, 0)] {
            let (ns, port) = (format!("{name}-{}", ends[near]), ports[near]);
            ip(&format!("-n {ns} addr add {}/24 dev {port}", addresses[near]))?;
            ip(&format!("-n {ns} link set {port} gso_max_segs 1 up"))?;
            let neighbour = format!("{} lladdr {} dev {port}", addresses[far], macs[far]);
            ip(&format!("-n {ns} neigh replace {neighbour} nud permanent"))?;
        }
        Ok(())
    }

    fn shape(&self, rate: Rate, buffer: Duration) -> io::Result<()> {
        let (bits, limit) = (rate.bits_per_sec(), rate.bytes_in(buffer));
        let bucket = format!("tbf rate {bits}bit burst {BURST_BYTES} limit {limit}");
        run("tc", &format!("-n {}-r qdisc add dev r1 root {bucket}", self.name)).map(drop)
    }

    /// Gives the receiver's port a second address.
    pub fn add_receiver(&self, address: Ipv4Addr) -> io::Result<()> {
        let name = &self.name;
        ip(&format!("-n {name}-d addr add {address}/24 dev d0"))?;
        ip(&format!("-n {name}-r neigh replace {address} lladdr {RECEIVER_MAC} dev r1 nud permanent"))
    }

    /// Sends what comes from the receiver through a device of the router's, and on to the sender what comes out of it.
    #[cfg(target_os = "linux")]
    pub fn route_back_through(&self, port: &str) -> io::Result<()> {
        let router = format!("{}-r", self.name);
        ip(&format!("-n {router} link set {port} mtu 1500 up"))?;
        // The packets come out of the device with an address that is not behind it.
        self.enter("r", || {
            ["all", port]
                .iter()
                .try_for_each(|name| fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "0"))
        })??;
        ip(&format!("-n {router} route add 10.77.1.0/24 dev {port} table 100"))?;
        ip(&format!("-n {router} rule add iif r1 to 10.77.1.0/24 lookup 100"))
    }

    /// Reads the bottleneck's counters.
    pub fn bottleneck(&self) -> io::Result<Bottleneck> {
        let output = run("tc", &format!("-n {}-r -s -j qdisc show dev r1", self.name))?;
        let table: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let bucket = table.as_array().and_then(|rows| rows.iter().find(|row| row["kind"] == "tbf"));
        let bucket = bucket.ok_or_else(|| io::Error::other("tc shows no token bucket"))?;
        let number = |name: &str| bucket[name].as_u64().unwrap_or_default();
        Ok(Bottleneck {
            sent_bytes: number("bytes"),
            backlog_bytes: number("backlog"),
            drops: number("drops"),
        })
    }

    /// Does something within a namespace, in a thread of its own: what it opens belongs there.
    pub fn enter<R: Send>(&self, end: &str, work: impl FnOnce() -> R + Send) -> io::Result<R> {
        let place = self.place(end);
        std::thread::scope(|scope| {
            let inside = scope.spawn(move || place.go().map(|()| work()));
            inside.join().map_err(|_| io::Error::other("a thread in a namespace has panicked"))?
        })
    }

    /// The way into a namespace, for a thread that stays.
    pub fn place(&self, end: &str) -> Place {
        Place { path: PathBuf::from(format!("/run/netns/{}-{end}", self.name)) }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for end in ["s", "r", "d"] {
            // Wires and queues go with them. What was never made cannot be removed.
            let _ = ip(&format!("netns del {}-{end}", self.name));
        }
    }
}

/// The way into a namespace.
pub(crate) struct Place {
    path: PathBuf,
}

impl Place {
    /// Moves this thread into the namespace.
    #[cfg(target_os = "linux")]
    pub fn go(&self) -> io::Result<()> {
        use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
        use std::os::fd::AsFd;
        let file = File::open(&self.path)?;
        Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// There are none here.
    #[cfg(not(target_os = "linux"))]
    pub fn go(&self) -> io::Result<()> {
        File::open(&self.path).map(drop)
    }
}

/// A name that no other run has: the process's, and a number.
fn unique_name() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{PREFIX}{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Removes what runs have left that were killed before they could.
fn sweep() {
    for name in fs::read_dir("/run/netns").into_iter().flatten().flatten().map(|entry| entry.file_name()) {
        let name = name.to_string_lossy();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if process.is_some_and(|id| !PathBuf::from(format!("/proc/{id}")).exists()) {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn ip(arguments: &str) -> io::Result<()> {
    run("ip", arguments).map(drop)
}

/// Runs a tool; its words are the error where it fails.
fn run(tool: &str, arguments: &str) -> io::Result<Output> {
    let mut command = Command::new(tool);
    command.args(arguments.split(' '));
    // Ctrl-C in a terminal is for us: a tool that it stops half-way leaves things behind.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let output = command.output()?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let kind = if said.contains("not permitted") || said.contains("ermission denied") {
        io::ErrorKind::PermissionDenied
    } else {
        io::ErrorKind::Other
    };
    Err(io::Error::new(kind, format!("{tool} {arguments}: {}", said.trim())))
}
