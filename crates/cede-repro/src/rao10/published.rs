//! The paper's numbers.

/// The cases of Table IV.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// No offload, no loss.
    Plain,
    /// Segmentation offload.
    Offload,
    /// Loss of 5 % at each ingress.
    Loss,
}

impl Case {
    /// Every case.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Offload, Self::Loss];

    /// What the table calls it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Plain => "TSO off, no loss",
            Self::Offload => "TSO on, no loss",
            Self::Loss => "TSO off, 5 % loss",
        }
    }
}

/// Table IV: upload limit in kB/s, RTT in ms, case, mean completion time in seconds.
pub(super) const TABLE_IV: [(u64, u64, Case, f64); 36] = [
    (10, 0, Case::Plain, 7314.7),
    (10, 400, Case::Plain, 8006.0),
    (10, 1000, Case::Plain, 8274.19),
    (10, 0, Case::Offload, 7268.4),
    (10, 400, Case::Offload, 7823.4),
    (10, 1000, Case::Offload, 8060.6),
    (10, 0, Case::Loss, 7359.1),
    (10, 400, Case::Loss, 8183.6),
    (10, 1000, Case::Loss, 8827.6),
    (20, 0, Case::Plain, 3634.9),
    (20, 400, Case::Plain, 4023.9),
    (20, 1000, Case::Plain, 3768.3),
    (20, 0, Case::Offload, 3728.3),
    (20, 400, Case::Offload, 3985.3),
    (20, 1000, Case::Offload, 3796.6),
    (20, 0, Case::Loss, 3711.2),
    (20, 400, Case::Loss, 4034.3),
    (20, 1000, Case::Loss, 4102.7),
    (50, 0, Case::Plain, 1437.96),
    (50, 400, Case::Plain, 1457.2),
    (50, 1000, Case::Plain, 1466.9),
    (50, 0, Case::Offload, 1433.7),
    (50, 400, Case::Offload, 1463.9),
    (50, 1000, Case::Offload, 1470.5),
    (50, 0, Case::Loss, 1432.7),
    (50, 400, Case::Loss, 1476.9),
    (50, 1000, Case::Loss, 1638.2),
    (100, 0, Case::Plain, 838.9),
    (100, 400, Case::Plain, 863.4),
    (100, 1000, Case::Plain, 844.5),
    (100, 0, Case::Offload, 828.9),
    (100, 400, Case::Offload, 860.4),
    (100, 1000, Case::Offload, 865.4),
    (100, 0, Case::Loss, 832.7),
    (100, 400, Case::Loss, 940.20),
    (100, 1000, Case::Loss, 1619.87),
];

/// Table I: delays of the loopback and the Ethernet device of each autonomous system, one way, in ms.
pub(super) const SYSTEMS: [(u64, u64); 5] = [(2, 5), (5, 15), (10, 25), (25, 100), (50, 100)];
