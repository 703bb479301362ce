//! Where a machine saw a packet: at which of its interfaces, and which way it went.
//!
//! The headers of captures of all interfaces ("cooked": LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2 of the registry of link types) tell whether a
//! packet leaves the machine, the second one also the interface. Other captures of several interfaces (pcapng) tell the interface alone.

use cede_wire::link::LinkType;

/// How a packet was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct View {
    /// Zero where that is not told.
    pub interface: u32,
    way: Way,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Comes,
    Leaves,
    Untold,
}

impl View {
    /// Of a frame; `None` where its link type does not tell.
    #[inline]
    pub(crate) fn of(link_type: LinkType, frame: &[u8]) -> Option<Self> {
        const LEAVES: u8 = 4;
        let way = |kind: u8| if kind == LEAVES { Way::Leaves } else { Way::Comes };
        match (link_type, frame) {
            (LinkType::LINUX_SLL, &[_, kind, ..]) => Some(Self { interface: 0, way: way(kind) }),
            (LinkType::LINUX_SLL2, &[_, _, _, _, a, b, c, d, _, _, kind, ..]) => {
                Some(Self { interface: u32::from_be_bytes([a, b, c, d]), way: way(kind) })
            }
            _ => None,
        }
    }

    /// At an interface, one of several.
    pub(crate) const fn at(interface: u32) -> Self {
        Self { interface, way: Way::Untold }
    }

    /// The same, on its way in.
    pub(crate) const fn coming(self) -> Self {
        Self { way: Way::Comes, ..self }
    }

    /// Whether it was on its way out.
    pub(crate) fn leaves(&self) -> bool {
        self.way == Way::Leaves
    }

    /// Whether nothing says which way it went.
    pub(crate) fn is_untold(&self) -> bool {
        self.way == Way::Untold
    }

    /// The same, where it is known by which interface such packets leave.
    pub(crate) fn where_left_by(self, interface: Option<u32>) -> Self {
        match interface.filter(|_| self.is_untold()) {
            Some(interface) if interface == self.interface => Self { way: Way::Leaves, ..self },
            Some(_) => Self { way: Way::Comes, ..self },
            None => self,
        }
    }

    /// Whether one packet may have been seen like this first, and then as `later`.
    pub(crate) fn may_be_followed_by(&self, later: &Self) -> bool {
        if self.is_untold() && later.is_untold() {
            self.interface != later.interface
        } else {
            self.leaves() != later.leaves()
        }
    }
}
