//! What a monitor interval is worth: the utilities of PCC Vivace and Proteus, as small values.
//!
//! Source: PCC-Uspace (30c2cfe), `pcc_utility_manager.cpp`; Dong et al., NSDI 2018, section 4; Meng et al., SIGCOMM 2020,
//! section 4. With x the rate in Mbit/s (10^6), g the RTT gradient, L the loss rate and s the RTT deviation in us:
//! `u_P = x^0.9 - 900 x max(0, g) - 11.35 x L`; `u_S = u_P - 0.0015 x s`; `u_H` is u_P below a threshold and u_S from there.
//!
//! *What it leaves out:* the sigmoid of PCC Allegro; the other utilities of that code.
//! *How it was validated:* check 1 below; the intervals of `tests/vectors/proteus.json` in `interval.rs`.

use cede_units::math;

/// What was seen of an interval, after noise has been set to zero.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Observation {
    /// What was sent, in Mbit/s.
    pub rate_mbit: f64,
    /// dRTT/dt, without unit.
    pub gradient: f64,
    /// The share of octets lost.
    pub loss: f64,
    /// The RTT's standard deviation in microseconds.
    pub deviation_us: f64,
}

/// Who a flow is towards others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Role {
    /// Takes its share.
    Primary,
    /// Yields where RTTs begin to vary.
    Scavenger,
    /// A primary up to so many Mbit/s, a scavenger above.
    Hybrid { threshold_mbit: f64 },
}

impl Role {
    /// Whether it yields at this rate.
    pub(super) fn yields_at(self, rate_mbit: f64) -> bool {
        match self {
            Self::Primary => false,
            Self::Scavenger => true,
            Self::Hybrid { threshold_mbit } => rate_mbit >= threshold_mbit,
        }
    }
}

/// A utility function.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Utility {
    pub role: Role,
    /// Of the rate: 0.9.
    pub exponent: f64,
    /// Of the gradient: 900.
    pub gradient_weight: f64,
    /// Of the loss: 11.35.
    pub loss_weight: f64,
    /// Of the deviation, per second: 1500.
    pub deviation_weight: f64,
}

impl Utility {
    /// The value of an interval.
    pub(super) fn of(&self, seen: &Observation) -> f64 {
        let x = seen.rate_mbit;
        let deviation_s = if self.role.yields_at(x) { seen.deviation_us / 1e6 } else { 0.0 };
        let per_mbit = self.gradient_weight * seen.gradient.max(0.0)
            + self.loss_weight * seen.loss
            + self.deviation_weight * deviation_s;
        math::pow(x, self.exponent) - x * per_mbit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utility(role: Role) -> Utility {
        let (exponent, gradient_weight, loss_weight) = (0.9, 900.0, 11.35);
        Utility { role, exponent, gradient_weight, loss_weight, deviation_weight: 1500.0 }
    }

    fn of(role: Role, x: f64, gradient: f64, loss: f64, deviation_us: f64) -> f64 {
        utility(role).of(&Observation { rate_mbit: x, gradient, loss, deviation_us })
    }

    #[test]
    fn check_1_the_utilities_have_the_published_values() {
        for (x, g, l, expected) in [
            (10.0, 0.0, 0.0, 7.943_282),
            (10.0, 0.001, 0.0, -1.056_718),
            (10.0, 0.01, 0.0, -82.056_718),
            (10.0, 0.0, 0.01, 6.808_282),
            (10.0, 0.0, 0.05, 2.268_282),
            (10.0, -0.01, 0.0, 7.943_282),
            (50.0, 0.0, 0.0, 33.812_167),
            (1.0, 0.0, 0.0, 1.0),
        ] {
            let found = of(Role::Primary, x, g, l, 3000.0);
            assert!((found - expected).abs() < 1e-6, "{x} {g} {l}: {found}");
        }
        for (g, l, s, expected) in [
            (0.0, 0.0, 500.0, 0.443_282),
            (0.0, 0.0, 2000.0, -22.056_718),
            (0.001, 0.01, 1000.0, -17.191_718),
        ] {
            let found = of(Role::Scavenger, 10.0, g, l, s);
            assert!((found - expected).abs() < 1e-6, "{g} {l} {s}: {found}");
        }
    }

    #[test]
    fn a_hybrid_is_a_primary_below_its_threshold() {
        let hybrid = Role::Hybrid { threshold_mbit: 5.0 };
        assert_eq!(of(hybrid, 4.9, 0.0, 0.0, 2000.0), of(Role::Primary, 4.9, 0.0, 0.0, 2000.0));
        assert_eq!(of(hybrid, 5.0, 0.0, 0.0, 2000.0), of(Role::Scavenger, 5.0, 0.0, 0.0, 2000.0));
    }

    /// The rate at which a utility that falls by `cost` per Mbit/s stops growing.
    #[test]
    fn the_break_even_points_are_those_of_the_derivative() {
        let slope = |x: f64, loss: f64| {
            (of(Role::Primary, x * 1.0001, 0.0, loss, 0.0) - of(Role::Primary, x, 0.0, loss, 0.0))
                / (x * 0.0001)
        };
        for (x, percent) in [(1.0, 7.93), (10.0, 6.30), (100.0, 5.00)] {
            assert!(slope(x, (percent - 0.02) / 100.0) > 0.0, "{x}");
            assert!(slope(x, (percent + 0.02) / 100.0) < 0.0, "{x}");
        }
    }
}
