//! The hop limit that most packets of a direction come with.
//!
//! Source: the majority vote of Boyer and Moore (1981). Who is on the way and sends packets in another one's name, as those do that
//! end connections of others, is as far away as it is: its packets have another hop limit than those in whose place they come. Packets
//! that say nothing of a clock have no vote.

/// A hop limit, and by how many votes it is ahead of all others: at most so many packets of a direction have another one beside as many
/// that have this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct HopLimit {
    pub value: u8,
    pub ahead: u8,
}

impl HopLimit {
    /// Counts a packet.
    #[inline]
    pub(crate) const fn note(&mut self, value: u8) {
        self.join(Self { value, ahead: 1 });
    }

    /// Counts those that another one stands for.
    #[inline]
    pub(crate) const fn join(&mut self, other: Self) {
        if self.value == other.value {
            self.ahead = self.ahead.saturating_add(other.ahead);
        } else if self.ahead < other.ahead {
            *self = Self { value: other.value, ahead: other.ahead - self.ahead };
        } else {
            self.ahead -= other.ahead;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_most_packets_have_counts() {
        let of = |values: &[u8]| {
            let mut limit = HopLimit::default();
            values.iter().for_each(|&value| limit.note(value));
            limit
        };
        assert_eq!(of(&[]), HopLimit::default());
        assert_eq!(of(&[60, 60, 99, 60, 99]), HopLimit { value: 60, ahead: 1 });
        assert_eq!(of(&[99, 60, 60, 60]), HopLimit { value: 60, ahead: 2 });
        assert_eq!(of(&[60; 1_000]), HopLimit { value: 60, ahead: u8::MAX });
        let mut both = of(&[99, 99]);
        both.join(of(&[60; 5]));
        assert_eq!(both, HopLimit { value: 60, ahead: 3 });
    }
}
