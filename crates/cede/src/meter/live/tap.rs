//! A live interface, through the kernel's packet ring.
//!
//! Source: packet(7), PACKET_RX_RING with TPACKET_V3: the kernel writes packets into memory that it shares with us, a
//! block at a time, stamps them and counts what found no room.
//!
//! **What it leaves out.** Other systems than Linux. Hardware stamps: few cards have them, and their clock is another one.
//! All interfaces at once: a packet would be seen on each that it crosses.

use crate::failure::Failure;
use cede_meter::Meter;
use cede_wire::link::LinkType;
use netring::{BpfFilter, BpfInsn, Capture, CaptureStats, Error, PacketDirection};
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::LinkAddr;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, netdevice, socket, sockopt};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The ring: 64 blocks of half a megabyte; one that is not full is handed over after 50 ms.
const BLOCK_BYTES: usize = 1 << 19;
const BLOCKS: usize = 64;
const BLOCK_TIMEOUT_MS: u32 = 50;
/// What is kept of a packet: headers of a tunnel, of IPv6 with extensions and of TCP with all its options.
const SNAPSHOT_BYTES: u32 = 320;
/// BPF: return a constant, how much of the packet is to be kept.
const BPF_RETURN: u16 = 0x06;

/// What an interface's packets begin with, by the kernel's number of its kind (if_arp.h).
const KIND_ETHERNET: u16 = 1;
const KIND_LOOPBACK: u16 = 772;
/// Those without a header: PPP, tunnels of IP, and none (tun, WireGuard).
const KINDS_BARE: [u16; 5] = [512, 768, 769, 776, KIND_NONE];
const KIND_NONE: u16 = 65534;
/// Nothing is known.
const KIND_VOID: u16 = 65535;

/// An open interface.
pub struct Tap {
    capture: Capture,
    link_type: LinkType,
    /// The kernel shows each packet twice there, when it leaves and when it arrives.
    is_loopback: bool,
    presence: Presence,
    is_up: bool,
    /// When the last packet came, in microseconds since 1970.
    last_us: u64,
}

/// What an interface told beside packets.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// When the last packet came, in microseconds since 1970; zero before the first.
    pub last_us: u64,
    /// What the kernel counted since the ring was opened: packets that found no room in it.
    pub lost: u64,
    /// Whether the interface is up. What one is not shows nothing.
    pub is_up: bool,
}

/// The interface by its number, which survives another name: whether it is still there. The ring of one that is gone looks like
/// that of one that is silent.
struct Presence {
    name: String,
    index: u32,
    socket: OwnedFd,
}

impl Presence {
    fn of(name: &str) -> std::io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
        let index = netdevice::name_to_index(&socket, name)?;
        Ok(Self { name: name.to_string(), index, socket })
    }

    fn check(&self) -> Result<(), Failure> {
        match netdevice::index_to_name(&self.socket, self.index) {
            Err(Errno::NODEV | Errno::NXIO) => Err(Failure::Failed(format!(
                "interface {} is gone; what it showed until then counts",
                self.name
            ))),
            // What cannot be asked says nothing.
            _ => Ok(()),
        }
    }

    /// Whether it is set to work, whatever it is called now.
    fn is_up(&self) -> bool {
        let name = netdevice::index_to_name(&self.socket, self.index);
        name.is_ok_and(|name| told_of(&name).is_some_and(|told| told.flags.contains(InterfaceFlags::IFF_UP)))
    }
}

impl Tap {
    /// Opens an interface.
    pub fn open(name: &str) -> Result<Self, Failure> {
        let told = told_of(name).ok_or_else(|| unknown(name))?;
        let kind = kind_of(&told);
        let link_type = match kind {
            KIND_ETHERNET | KIND_LOOPBACK => LinkType::ETHERNET,
            bare if KINDS_BARE.contains(&bare) => LinkType::RAW,
            other => {
                return Err(Failure::Failed(format!(
                    "interface {name} has packets of kind {other}, which are not read; Ethernet, loopback, PPP, tun and tunnels of IP are"
                )));
            }
        };
        let presence =
            Presence::of(name).map_err(|error| Failure::Failed(format!("cannot watch {name}: {error}")))?;
        let capture = open_ring(name).map_err(|error| explained(name, &error))?;
        let is_up = told.flags.contains(InterfaceFlags::IFF_UP);
        Ok(Self { capture, link_type, is_loopback: kind == KIND_LOOPBACK, presence, is_up, last_us: 0 })
    }

    /// Waits for a block of packets, no longer than this, and hands them to the meter. It fails where the interface is gone.
    pub fn read(&mut self, meter: &mut Meter, timeout: Duration) -> Result<(), Failure> {
        let told = |error| Failure::Failed(format!("the interface cannot be read any more: {error}"));
        let Some(batch) = self.capture.next_batch_blocking(timeout).map_err(told)? else {
            return self.rest();
        };
        // What came just before it went down is handed over after that.
        self.is_up = self.is_up || self.presence.is_up();
        for packet in batch.iter() {
            if self.is_loopback && packet.direction() == PacketDirection::Outgoing {
                continue;
            }
            let time = packet.timestamp();
            let time_ns = u64::from(time.sec) * 1_000_000_000 + u64::from(time.nsec);
            self.last_us = time_ns / 1000;
            meter.packet(time_ns, self.link_type, packet.data(), packet.original_len() as u32);
        }
        Ok(())
    }

    /// When no packet came: whether the interface is there, and up. One that goes down leaves an error with the socket, which no more
    /// waits for packets until somebody has asked for it, neither then nor when the interface is up again.
    fn rest(&mut self) -> Result<(), Failure> {
        let error = sockopt::socket_error(&self.capture);
        if matches!(error, Ok(Err(Errno::NETDOWN))) || !self.is_up {
            self.is_up = self.presence.is_up();
        }
        self.presence.check()
    }

    /// What there is to say beside packets.
    pub fn heard(&self) -> Heard {
        let lost = self.capture.cumulative_stats().map_or(0, |CaptureStats { drops, .. }| u64::from(drops));
        Heard { last_us: self.last_us, lost, is_up: self.is_up }
    }
}

fn open_ring(name: &str) -> Result<Capture, Error> {
    let snapshot = BpfInsn { code: BPF_RETURN, jt: 0, jf: 0, k: SNAPSHOT_BYTES };
    Capture::builder()
        .interface(name)
        .block_size(BLOCK_BYTES)
        .block_count(BLOCKS)
        .block_timeout_ms(BLOCK_TIMEOUT_MS)
        .fill_rxhash(false)
        .bpf_filter(BpfFilter::new(vec![snapshot])?)
        .build()
}

/// What the system tells of interfaces, those of our own network namespace: what lies under `/sys` may be another one's, as behind
/// `nsenter --net`.
fn interfaces() -> Vec<InterfaceAddress> {
    let all = getifaddrs().into_iter().flatten();
    // Beside these there is one for each IP address.
    all.filter(|one| one.address.is_none_or(|address| address.as_link_addr().is_some())).collect()
}

fn told_of(name: &str) -> Option<InterfaceAddress> {
    interfaces().into_iter().find(|one| one.interface_name == name)
}

/// The kind of an interface. Of one without addresses of its own the system does not tell it; those from one point to another (tun,
/// WireGuard, PPP) are bare.
fn kind_of(told: &InterfaceAddress) -> u16 {
    let told_kind = told.address.as_ref().and_then(|address| address.as_link_addr()).map(LinkAddr::hatype);
    let is_bare = told.flags.contains(InterfaceFlags::IFF_POINTOPOINT);
    told_kind.unwrap_or(if is_bare { KIND_NONE } else { KIND_VOID })
}

fn unknown(name: &str) -> Failure {
    let mut there: Vec<String> = interfaces().into_iter().map(|one| one.interface_name).collect();
    there.sort();
    there.dedup();
    Failure::Usage(format!("there is no interface `{name}`; there are: {}", there.join(", ")))
}

fn explained(name: &str, error: &Error) -> Failure {
    let source = std::error::Error::source(error);
    let of_system = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    let is_refused = matches!(error, Error::PermissionDenied)
        || of_system.is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    if is_refused {
        return Failure::NotPermitted(lacking(name));
    }
    let why = source.map(|source| format!(": {source}")).unwrap_or_default();
    Failure::Failed(format!("cannot watch {name}: {error}{why}"))
}

fn lacking(name: &str) -> String {
    let program =
        std::env::current_exe().map_or_else(|_| "cede".to_string(), |path| path.display().to_string());
    format!(
        "watching {name} needs the capability CAP_NET_RAW, which this process lacks. One of these gives it:\n  \
         sudo setcap cap_net_raw+ep {program}      once, for whoever may run it\n  \
         sudo {program} meter -i {name}            it gives root up as soon as the interface is open\n  \
         sudo tcpdump -i {name} -s 320 -w - | {program} meter -"
    )
}
