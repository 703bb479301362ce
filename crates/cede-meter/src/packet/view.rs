//! Where a machine saw a packet: at which of its interfaces, and which way it went.
//!
//! The headers of captures of all interfaces ("cooked": LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2 of the registry of link types) tell whether a
//! packet leaves the machine, the second one also the interface. Other captures of several interfaces (pcapng) tell the interface alone, and several
//! captures of the same time nothing but which of them it is.

use cede_wire::link::LinkType;

/// How a packet was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct View {
    /// Zero where that is not told.
    interface: u32,
    /// Which one of several that were taken at the same time.
    pub capture: u16,
    way: Way,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// In another capture than the one that shows such packets last.
    Elsewhere,
    Comes,
    Leaves,
    Untold,
}

impl View {
    /// Of a frame; `None` where its link type does not tell.
    #[inline]
    pub(crate) fn of(link_type: LinkType, frame: &[u8], capture: u16) -> Option<Self> {
        const LEAVES: u8 = 4;
        let way = |kind: u8| if kind == LEAVES { Way::Leaves } else { Way::Comes };
        match (link_type, frame) {
            (LinkType::LINUX_SLL, &[_, kind, ..]) => Some(Self { interface: 0, capture, way: way(kind) }),
            (LinkType::LINUX_SLL2, &[_, _, _, _, a, b, c, d, _, _, kind, ..]) => {
                Some(Self { interface: u32::from_be_bytes([a, b, c, d]), capture, way: way(kind) })
            }
            _ => None,
        }
    }

    /// At an interface, one of several.
    pub(crate) const fn at(interface: u32, capture: u16) -> Self {
        Self { interface, capture, way: Way::Untold }
    }

    /// The interface, and whose.
    pub(crate) const fn place(self) -> Place {
        Place((self.capture as u32) << 16 | self.interface & 0xffff)
    }

    /// The same, where it is no way out: that is by another interface, if it is known.
    pub(crate) fn no_exit(self, exit: Option<Place>) -> Self {
        let is_elsewhere = exit.is_some_and(|exit| !exit.is_in(self.capture));
        Self { way: if is_elsewhere { Way::Elsewhere } else { Way::Comes }, ..self }
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
    pub(crate) fn where_left_by(self, exit: Option<Place>) -> Self {
        match exit {
            Some(exit) if self.is_untold() && exit == self.place() => Self { way: Way::Leaves, ..self },
            // By a bridge, a VLAN or a tunnel's interface, and then by the one below it.
            Some(exit) if self.leaves() && exit.is_in(self.capture) && exit != self.place() => {
                self.no_exit(Some(exit))
            }
            Some(exit) if self.is_untold() || !exit.is_in(self.capture) => self.no_exit(Some(exit)),
            _ => self,
        }
    }

    /// Whether one packet may have been seen like this first, and then as `later`.
    pub(crate) fn may_be_followed_by(&self, later: &Self) -> bool {
        if self.capture != later.capture {
            true
        } else if self.is_untold() && later.is_untold() || self.leaves() && later.leaves() {
            self.interface != later.interface
        } else {
            self.leaves() != later.leaves()
        }
    }

    /// Whether what tells ways, as far as anything does, speaks of both, and tells them apart.
    pub(crate) fn has_way_beside(&self, other: &Self) -> bool {
        self.capture == other.capture && !self.is_untold() && self.leaves() != other.leaves()
    }

    /// So many packets are seen at an interface after another before that is believed to be the way: where it is told that both are left by,
    /// the first one tells, as a connection's first may be the only one that meets an empty queue.
    pub(crate) fn sightings_min(&self) -> u8 {
        if self.leaves() { 1 } else { 2 }
    }

    /// How near it is to where packets go on to the other end.
    pub(crate) const fn rank(&self) -> u8 {
        match self.way {
            Way::Elsewhere => 0,
            Way::Comes | Way::Untold => 1,
            Way::Leaves => 2,
        }
    }
}

/// An interface of a capture. Of its number the lower half tells it among those of the same capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place(u32);

impl Place {
    /// One of a capture with few.
    #[cfg(test)]
    pub(crate) const fn numbered(number: u32) -> Self {
        Self(number)
    }

    pub(crate) const fn is_of_same_capture(self, other: Self) -> bool {
        self.0 >> 16 == other.0 >> 16
    }

    pub(crate) const fn is_in(self, capture: u16) -> bool {
        (self.0 >> 16) as u16 == capture
    }
}
