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
use rustix::net::{AddressFamily, SocketType, netdevice, socket};
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
const KINDS_BARE: [u16; 5] = [512, 768, 769, 776, 65534];

/// An open interface.
pub struct Tap {
    capture: Capture,
    link_type: LinkType,
    /// The kernel shows each packet twice there, when it leaves and when it arrives.
    is_loopback: bool,
    presence: Presence,
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
            Err(rustix::io::Errno::NODEV | rustix::io::Errno::NXIO) => Err(Failure::Failed(format!(
                "interface {} is gone; what it showed until then counts",
                self.name
            ))),
            // What cannot be asked says nothing.
            _ => Ok(()),
        }
    }
}

impl Tap {
    /// Opens an interface.
    pub fn open(name: &str) -> Result<Self, Failure> {
        let kind = kind_of(name)?;
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
        Ok(Self { capture, link_type, is_loopback: kind == KIND_LOOPBACK, presence })
    }

    /// Waits for a block of packets, no longer than this, and hands them to the meter. It fails where the interface is gone.
    pub fn read(&mut self, meter: &mut Meter, timeout: Duration) -> Result<(), Failure> {
        let told = |error| Failure::Failed(format!("the interface cannot be read any more: {error}"));
        let Some(batch) = self.capture.next_batch_blocking(timeout).map_err(told)? else {
            return self.presence.check();
        };
        for packet in batch.iter() {
            if self.is_loopback && packet.direction() == PacketDirection::Outgoing {
                continue;
            }
            let time = packet.timestamp();
            let time_ns = u64::from(time.sec) * 1_000_000_000 + u64::from(time.nsec);
            meter.packet(time_ns, self.link_type, packet.data(), packet.original_len() as u32);
        }
        Ok(())
    }

    /// What the kernel counted since the ring was opened: packets that found no room in it among them.
    pub fn losses(&self) -> u64 {
        self.capture.cumulative_stats().map_or(0, |CaptureStats { drops, .. }| u64::from(drops))
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

/// The kind of an interface, where there is one of that name.
fn kind_of(name: &str) -> Result<u16, Failure> {
    let is_name = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    let read = |name: &str| std::fs::read_to_string(format!("/sys/class/net/{name}/type")).ok();
    let kind = is_name.then(|| read(name)).flatten().and_then(|text| text.trim().parse().ok());
    kind.ok_or_else(|| {
        let entries = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
        let mut there: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        there.sort();
        Failure::Usage(format!("there is no interface `{name}`; there are: {}", there.join(", ")))
    })
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
