//! A loss that was none: what it took is given back.
//!
//! Source: RFC 4015's idea, with the window itself in place of a slow start up to it, as Linux has it (`tcp_undo_cwnd_reduction`). A
//! slow start that the loss ended stays ended: the queue ends it within a round trip or two anyhow.
//! *What it leaves out, how it was validated:* see `mod.rs`.

use super::target::Target;
use super::{Cede, Stage};
use crate::instruments::LossEpoch;
use cede_units::Instant;

/// What there was before the last loss.
#[derive(Clone, Debug)]
pub(super) struct Before {
    window: f64,
    epoch: LossEpoch,
    target: Target,
    repeated: bool,
    careful_until: Instant,
    velocity: f64,
    ahead_targets: f64,
    quiet_rounds: i32,
}

impl Cede {
    pub(super) fn before_cut(&self) -> Before {
        Before {
            window: if let Stage::Slowdown { before, .. } = self.stage { before } else { self.cwnd },
            epoch: self.epoch,
            target: self.target.clone(),
            repeated: self.repeated,
            careful_until: self.careful_until,
            velocity: self.velocity,
            ahead_targets: self.ahead_targets,
            quiet_rounds: self.quiet_rounds,
        }
    }

    pub(super) fn give_back(&mut self, was: Before) {
        match &mut self.stage {
            Stage::Slowdown { before, .. } => *before = before.max(was.window),
            _ => self.cwnd = self.bounds.bound(self.cwnd.max(was.window), self.bounds.mss),
        }
        self.ssthresh = self.ssthresh.max(self.cwnd);
        (self.epoch, self.target, self.repeated) = (was.epoch, was.target, was.repeated);
        (self.careful_until, self.velocity) = (was.careful_until, was.velocity);
        (self.ahead_targets, self.quiet_rounds) = (was.ahead_targets, was.quiet_rounds);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{loss, path, timeout};
    use crate::{Params, registry};

    #[test]
    fn a_loss_that_was_none_gives_back_what_it_took() {
        let mut cede = registry::build("cede", &Params::new(), &path(1000)).unwrap();
        let whole = cede.snapshot().cwnd_bytes;
        cede.on_feedback(&loss(5, 20).feedback());
        assert!(cede.snapshot().cwnd_bytes < whole);
        cede.on_undo();
        assert_eq!(cede.snapshot().cwnd_bytes, whole);
        // Of what had been sent before: another event all the same.
        cede.on_feedback(&loss(19, 25).feedback());
        assert!(cede.snapshot().cwnd_bytes < whole);
        cede.on_timeout(&timeout(5000, 1));
        let least = cede.snapshot().cwnd_bytes;
        cede.on_undo();
        assert_eq!(cede.snapshot().cwnd_bytes, least, "no timeout");
    }
}
