//! Where a machine saw a packet: at which of its interfaces, and which way it went.
//!
//! The headers of captures of all interfaces ("cooked": LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2 of the registry of link types) tell whether a
//! packet leaves the machine, the second one also the interface.

use cede_wire::link::LinkType;

/// How a packet was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct View {
    /// Zero where that is not told.
    interface: u32,
    leaves: bool,
}

impl View {
    /// Of a frame; `None` where its link type does not tell.
    #[inline]
    pub(crate) fn of(link_type: LinkType, frame: &[u8]) -> Option<Self> {
        const LEAVES: u8 = 4;
        match (link_type, frame) {
            (LinkType::LINUX_SLL, &[_, kind, ..]) => Some(Self { interface: 0, leaves: kind == LEAVES }),
            (LinkType::LINUX_SLL2, &[_, _, _, _, a, b, c, d, _, _, kind, ..]) => {
                Some(Self { interface: u32::from_be_bytes([a, b, c, d]), leaves: kind == LEAVES })
            }
            _ => None,
        }
    }

    /// Whether it was on its way out.
    pub(crate) const fn leaves(&self) -> bool {
        self.leaves
    }
}
