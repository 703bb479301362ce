//! Proportional rate reduction: in fast recovery the window comes down with what is delivered, in place of a pause until
//! pipe has fallen to it.
//!
//! Source: RFC 6937 sections 3 and 3.1, with the bound of Linux 6.12: one segment more than the conservative bound while
//! acknowledgements advance and nothing more is found lost. Counted in whole segments, as Linux does.
//!
//! Rate halving is what Linux did before 3.2 (`tcp_cwnd_down` and `tcp_complete_cwr` of 2.6.32): the window falls by a segment
//! for each second acknowledgement, is never more than a segment above pipe, and what it has come to at the end is where slow
//! start sets out from, up to the controller's window. So each lost acknowledgement costs a segment, and so does each loss.
//!
//! **What it leaves out.** Repairs without SACK, which keep RFC 6582's inflation, and controllers that do not reduce
//! their window at a loss, or that pace: theirs rules as it stands.
//!
//! **How it was validated.** The worked example of a window of 10 that is halved, both ways (tests of repair).

use super::Connection;

/// The reduction in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    /// cwnd at the entry.
    prior_bytes: u64,
    /// Delivered and sent since.
    delivered_bytes: u64,
    out_bytes: u64,
    /// What may be under way until the next acknowledgement.
    pub(super) window_bytes: u64,
    /// Every second acknowledgement counts for rate halving.
    odd: bool,
}

impl Reduction {
    /// Octets that may leave now.
    fn allowed_bytes(&self, pipe: u64, ssthresh: u64, segment: u64, delivered: u64, bonus: u64) -> u64 {
        if pipe > ssthresh {
            let share = (ssthresh * self.delivered_bytes).div_ceil(self.prior_bytes * segment) * segment;
            return share.saturating_sub(self.out_bytes);
        }
        let bound = self.delivered_bytes.saturating_sub(self.out_bytes).max(delivered) + bonus;
        bound.min(ssthresh - pipe)
    }

    /// Rate halving at an acknowledgement.
    fn halve(&mut self, pipe: u64, ssthresh: u64, segment: u64) {
        self.odd = !self.odd;
        if !self.odd && self.window_bytes > ssthresh {
            self.window_bytes = self.window_bytes.saturating_sub(segment);
        }
        self.window_bytes = self.window_bytes.min(pipe + segment);
    }
}

impl Connection {
    /// After the controller has answered in a recovery that it entered with `prior_bytes`.
    pub(super) fn reduce(&mut self, prior_bytes: Option<u64>, delivered_bytes: u64, is_progress: bool) {
        let ssthresh = self.allowance.cwnd_bytes;
        if let Some(prior_bytes) = prior_bytes.filter(|&prior| prior > ssthresh) {
            self.repair.reduction = Some(Reduction {
                prior_bytes,
                delivered_bytes: 0,
                out_bytes: 0,
                window_bytes: prior_bytes,
                odd: false,
            });
        }
        let (segment, pipe) = (u64::from(self.board.mss_bytes()), self.board.pipe_bytes());
        let Some(reduction) = &mut self.repair.reduction else { return };
        if self.config.rate_halving {
            return reduction.halve(pipe, ssthresh, segment);
        }
        reduction.delivered_bytes += delivered_bytes;
        let bonus = if is_progress { segment } else { 0 };
        let allowed = reduction.allowed_bytes(pipe, ssthresh, segment, delivered_bytes, bonus);
        // Whatever else, the entry retransmits.
        let least = if prior_bytes.is_some() { segment } else { 0 };
        reduction.window_bytes = pipe + allowed.max(least);
    }

    /// A segment left in a recovery.
    pub(super) fn note_reduced_sending(&mut self, bytes: u32) {
        if let Some(reduction) = &mut self.repair.reduction {
            reduction.out_bytes += u64::from(bytes);
        }
    }
}
