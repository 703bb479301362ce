//! Who is unchoked.
//!
//! Sources: mainline 4.0.2's Choker (leecher: the best by download rate, and one place that moves on every 30 s; seed:
//! a few new ones in each round of 10 s, the longest unchoked make room, and so does whoever has nothing queued);
//! libtorrent 2.0.8: by octets of the last round of 15 s, one optimistic place of 30 s, a seed goes round by quota of
//! pieces and minutes; BEP 3's plain rule: the four best and an optimistic one.
//!
//! A choker sees peers as facts and answers with the places of those to be unchoked; what it says to them is the
//! engine's.
//!
//! **What it leaves out.** libtorrent's other seed chokers and its slots by rate.
//! **How it was validated.** Rounds by hand in the tests below; in swarms, "abrupt termination" as the P2P 2010 study
//! describes it (claim B4).

use alloc::vec::Vec;
use cede_units::{Duration, Instant};

/// Which client's rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChokerRule {
    /// Mainline 4.0.2.
    Mainline4,
    /// libtorrent 2.0.8.
    Libtorrent,
    /// BEP 3.
    Bep3,
}

impl ChokerRule {
    /// The time between rounds.
    #[must_use]
    pub const fn interval(self) -> Duration {
        match self {
            Self::Mainline4 | Self::Bep3 => Duration::from_secs(10),
            Self::Libtorrent => Duration::from_secs(15),
        }
    }
}

/// libtorrent: so many pieces end a turn of a seed's slot, where a minute has passed too.
const QUOTA_PIECES: u64 = 20;
const QUOTA_TIME: Duration = Duration::from_secs(60);
/// A place that a mainline leecher keeps for those it knows nothing of.
const UPLOADS_MIN: u32 = 2;
/// libtorrent's optimistic places: a fifth of all, at least one.
const OPTIMISTIC_SHARE: u32 = 5;

/// Upload slots under a limit in octets per second, as the mainline client derives them (kB are KiB there).
#[must_use]
pub fn slots_for(upload_limit: Option<u64>) -> u32 {
    match upload_limit.map(|bytes| bytes as f64 / 1024.0) {
        None => 7,
        Some(rate) if rate <= 0.0 => 7,
        Some(rate) if rate < 9.0 => 2,
        Some(rate) if rate < 15.0 => 3,
        Some(rate) if rate < 42.0 => 4,
        Some(rate) => cede_units::math::sqrt(rate * 0.6) as u32,
    }
}

/// What a choker knows of a peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidate {
    /// It wants something from us.
    pub interested: bool,
    /// It is unchoked now.
    pub unchoked: bool,
    /// It owes blocks and has sent none for long.
    pub snubbed: bool,
    /// Octets per second from it.
    pub download_rate: f64,
    /// Octets per second to it.
    pub upload_rate: f64,
    /// Octets from it since the last round.
    pub downloaded: u64,
    /// Octets to it since the last round.
    pub uploaded: u64,
    /// Octets to it since it was unchoked.
    pub uploaded_in_turn: u64,
    /// The round in which it was unchoked.
    pub unchoke_round: u64,
    /// When it was unchoked last.
    pub unchoked_at: Option<Instant>,
    /// When it was last unchoked on trial.
    pub optimistic_at: Option<Instant>,
    /// Requests wait, beside the block that is being sent.
    pub has_requests: bool,
    /// All that was written has been taken by the transport.
    pub flushed: bool,
    /// How far it stands behind others that wait: slots that it had and did not use, then those of its host that come before it.
    pub rank: (u32, u32),
}

/// Why a choker is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occasion {
    /// The time between rounds is over.
    Round,
    /// A peer came, left, or changed its interest.
    Event,
}

/// What is decided about whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Situation {
    /// Now.
    pub now: Instant,
    /// Everything is here.
    pub seeding: bool,
    /// Upload slots.
    pub slots: u32,
    /// Octets of a piece.
    pub piece_bytes: u32,
    /// Why.
    pub occasion: Occasion,
}

/// The answer: for each candidate whether it is to be unchoked; how far the list is to be rotated; who is on trial.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Decision {
    /// By candidate.
    pub unchoke: Vec<bool>,
    /// The candidate that comes first from now on.
    pub first: usize,
    /// Candidates that are on trial.
    pub optimistic: Vec<usize>,
}

/// The state of a choker.
#[derive(Clone, Copy, Debug)]
pub struct Choker {
    rule: ChokerRule,
    round: u64,
    unchokes_since_round: u32,
    optimistic_until: Instant,
}

impl Choker {
    /// A choker before its first round.
    #[must_use]
    pub const fn new(rule: ChokerRule) -> Self {
        Self { rule, round: 0, unchokes_since_round: 0, optimistic_until: Instant::ZERO }
    }

    /// Rounds so far.
    #[must_use]
    pub const fn round(&self) -> u64 {
        self.round
    }

    /// Decides about everybody, in the order of the list.
    pub fn decide(&mut self, situation: &Situation, list: &[Candidate]) -> Decision {
        self.round += u64::from(situation.occasion == Occasion::Round);
        match self.rule {
            ChokerRule::Mainline4 if situation.seeding => self.mainline_seed(situation, list),
            ChokerRule::Mainline4 | ChokerRule::Bep3 => self.mainline_leecher(situation, list),
            ChokerRule::Libtorrent => self.libtorrent(situation, list),
        }
    }

    fn mainline_leecher(&self, situation: &Situation, list: &[Candidate]) -> Decision {
        let moves = situation.occasion == Occasion::Round && self.round.is_multiple_of(3);
        let waiting = |peer: &Candidate| !peer.unchoked && peer.interested;
        let first = if moves { list.iter().position(waiting).unwrap_or(0) } else { 0 };
        let rate = |peer: &Candidate| if situation.seeding { peer.upload_rate } else { peer.download_rate };
        let mut preferred: Vec<usize> =
            (0..list.len()).filter(|&at| list[at].interested && !list[at].snubbed).collect();
        preferred.sort_by(|&a, &b| rate(&list[b]).total_cmp(&rate(&list[a])));
        preferred.truncate(situation.slots.saturating_sub(1) as usize);
        let mut unchoke = alloc::vec![false; list.len()];
        preferred.iter().for_each(|&at| unchoke[at] = true);
        let mut places = UPLOADS_MIN.saturating_sub(preferred.len() as u32).max(1);
        for at in (first..list.len()).chain(0..first) {
            if !unchoke[at] && places > 0 {
                unchoke[at] = true;
                places -= u32::from(list[at].interested);
            }
        }
        Decision { unchoke, first, optimistic: Vec::new() }
    }

    fn mainline_seed(&mut self, situation: &Situation, list: &[Candidate]) -> Decision {
        let forced = self.forced_unchokes(situation);
        let recent =
            |peer: &Candidate| peer.unchoke_round + 3 > self.round || (peer.has_requests && peer.flushed);
        let mut kept: Vec<usize> =
            (0..list.len()).filter(|&at| list[at].unchoked && list[at].interested).collect();
        // The busy and the recent first, the latest of them before; then the others, by rate.
        kept.sort_by(|&a, &b| {
            let key = |peer: &Candidate| if recent(peer) { peer.unchoke_round + 1 } else { 0 };
            let order = key(&list[b]).cmp(&key(&list[a]));
            order.then(list[b].upload_rate.total_cmp(&list[a].upload_rate))
        });
        kept.truncate(situation.slots.saturating_sub(forced) as usize);
        let mut free = situation.slots - kept.len() as u32;
        match situation.occasion {
            Occasion::Round => self.unchokes_since_round = 0,
            Occasion::Event => self.unchokes_since_round += free,
        }
        let mut decision = Decision { unchoke: alloc::vec![false; list.len()], ..Decision::default() };
        kept.iter().for_each(|&at| decision.unchoke[at] = true);
        for (at, peer) in list.iter().enumerate() {
            if free > 0 && peer.interested && !peer.unchoked && peer.flushed {
                decision.unchoke[at] = true;
                free -= 1;
                if free == 0 {
                    decision.first = (at + 1) % list.len();
                }
            }
        }
        decision
    }

    /// How many places a seed gives to others in this round: a third of the slots, rounded up, in three rounds.
    fn forced_unchokes(&self, situation: &Situation) -> u32 {
        if situation.occasion == Occasion::Event {
            return 0;
        }
        let per_period = situation.slots.div_ceil(3);
        let due = (per_period + (self.round % 3) as u32) / 3;
        due.saturating_sub(self.unchokes_since_round).min(situation.slots)
    }

    fn libtorrent(&mut self, situation: &Situation, list: &[Candidate]) -> Decision {
        if situation.occasion == Occasion::Event {
            return fill_free_places(situation.slots, list);
        }
        let mut decision = Decision { unchoke: alloc::vec![false; list.len()], ..Decision::default() };
        let mut interested: Vec<usize> = (0..list.len()).filter(|&at| list[at].interested).collect();
        interested.sort_by_key(|&at| libtorrent_key(situation, &list[at]));
        let trials = (situation.slots / OPTIMISTIC_SHARE).max(1);
        let regular = situation.slots.saturating_sub(trials) as usize;
        interested.iter().take(regular).for_each(|&at| decision.unchoke[at] = true);
        let mut rest: Vec<usize> = interested.into_iter().skip(regular).collect();
        let keeps = situation.now < self.optimistic_until;
        // Those on trial stay for 30 s; then whoever has waited longest.
        rest.sort_by_key(|&at| {
            let peer = &list[at];
            let on_trial = keeps && peer.unchoked && peer.optimistic_at.is_some();
            (!on_trial, peer.rank, peer.optimistic_at.unwrap_or(Instant::ZERO))
        });
        for &at in rest.iter().take(trials as usize) {
            decision.unchoke[at] = true;
            decision.optimistic.push(at);
        }
        if !keeps {
            self.optimistic_until = situation.now + Duration::from_secs(30);
        }
        decision
    }
}

/// Between rounds libtorrent takes nothing away: whoever waits longest gets what is free.
fn fill_free_places(slots: u32, list: &[Candidate]) -> Decision {
    let mut unchoke: Vec<bool> = list.iter().map(|peer| peer.unchoked && peer.interested).collect();
    let taken = unchoke.iter().filter(|&&taken| taken).count();
    let mut waiting: Vec<usize> =
        (0..list.len()).filter(|&at| list[at].interested && !list[at].unchoked).collect();
    waiting.sort_by_key(|&at| (list[at].rank, list[at].unchoked_at.unwrap_or(Instant::ZERO)));
    for &at in waiting.iter().take((slots as usize).saturating_sub(taken)) {
        unchoke[at] = true;
    }
    Decision { unchoke, ..Decision::default() }
}

/// What libtorrent sorts by, the best first: slots not used, a turn that is over, octets, the host's others, and how long it waits.
type Key = (u32, u8, core::cmp::Reverse<u64>, u32, Instant);

fn libtorrent_key(situation: &Situation, peer: &Candidate) -> Key {
    let waits_since = peer.unchoked_at.unwrap_or(Instant::ZERO);
    let (unused, before) = peer.rank;
    if !situation.seeding {
        return (unused, 0, core::cmp::Reverse(peer.downloaded), before, waits_since);
    }
    // What still reaches choked peers, and pieces that they were granted, gives them no better place.
    let uploaded = if peer.unchoked { peer.uploaded } else { 0 };
    let quota = QUOTA_PIECES * u64::from(situation.piece_bytes);
    let is_long_ago = situation.now.since(waits_since) > QUOTA_TIME;
    let served = peer.unchoked && peer.uploaded_in_turn > quota && is_long_ago;
    (unused, u8::from(served), core::cmp::Reverse(uploaded), before, waits_since)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Candidate = Candidate {
        interested: true,
        unchoked: false,
        snubbed: false,
        download_rate: 0.0,
        upload_rate: 0.0,
        downloaded: 0,
        uploaded: 0,
        uploaded_in_turn: 0,
        unchoke_round: 0,
        unchoked_at: None,
        optimistic_at: None,
        has_requests: false,
        flushed: true,
        rank: (0, 0),
    };

    fn situation(seeding: bool, occasion: Occasion) -> Situation {
        Situation { now: Instant::from_secs(100), seeding, slots: 4, piece_bytes: 1 << 18, occasion }
    }

    #[test]
    fn slots_follow_the_upload_limit() {
        let slots = [10, 20, 50, 100].map(|kib| slots_for(Some(kib << 10)));
        assert_eq!((slots, slots_for(None), slots_for(Some(5 << 10))), ([3, 4, 5, 7], 7, 2));
    }

    #[test]
    fn a_leecher_keeps_its_best_and_tries_the_next_every_third_round() {
        let mut choker = Choker::new(ChokerRule::Mainline4);
        let mut list: Vec<Candidate> =
            (0..6).map(|n| Candidate { download_rate: f64::from(n), ..PEER }).collect();
        let round = situation(false, Occasion::Round);
        let decision = choker.decide(&round, &list);
        assert_eq!(decision.unchoke, [true, false, false, true, true, true]);
        list.iter_mut().zip(&decision.unchoke).for_each(|(peer, &unchoked)| peer.unchoked = unchoked);
        assert_eq!(choker.decide(&round, &list).first, 0);
        let third = choker.decide(&round, &list);
        assert_eq!((third.first, &third.unchoke[..3]), (1, &[false, true, false][..]));
    }

    #[test]
    fn who_is_not_interested_takes_no_place() {
        let mut choker = Choker::new(ChokerRule::Mainline4);
        let idle = Candidate { interested: false, ..PEER };
        let decision =
            choker.decide(&situation(false, Occasion::Event), &[idle, PEER, PEER, PEER, PEER, PEER]);
        assert_eq!(decision.unchoke.iter().filter(|&&unchoked| unchoked).count(), 5);
    }

    #[test]
    fn a_seed_gives_two_of_four_places_to_others_in_thirty_seconds() {
        let mut choker = Choker::new(ChokerRule::Mainline4);
        let mut list = alloc::vec![PEER; 10];
        let mut changes = Vec::new();
        for _ in 0..12 {
            let decision = choker.decide(&situation(true, Occasion::Round), &list);
            let mut fresh = 0;
            for (peer, &unchoked) in list.iter_mut().zip(&decision.unchoke) {
                if unchoked && !peer.unchoked {
                    (peer.unchoke_round, fresh) = (choker.round(), fresh + 1);
                }
                peer.unchoked = unchoked;
                peer.has_requests = true;
            }
            list.rotate_left(decision.first);
            assert_eq!(decision.unchoke.iter().filter(|&&unchoked| unchoked).count(), 4);
            changes.push(fresh);
        }
        assert_eq!(changes, [4, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0]);
    }

    #[test]
    fn a_seed_drops_whoever_has_been_unchoked_for_long_and_has_nothing_queued() {
        let mut choker = Choker::new(ChokerRule::Mainline4);
        choker.round = 10;
        let held =
            |unchoke_round, has_requests| Candidate { unchoked: true, unchoke_round, has_requests, ..PEER };
        let list = [held(9, false), held(2, true), held(3, false), held(4, true), PEER];
        // Round 11 forces one change (11 mod 3 is 2): the idle one goes, though it is not the oldest.
        let decision = choker.decide(&situation(true, Occasion::Round), &list);
        assert_eq!(decision.unchoke, [true, true, false, true, true]);
    }

    #[test]
    fn libtorrent_tries_one_for_thirty_seconds() {
        let mut choker = Choker::new(ChokerRule::Libtorrent);
        let mut list: Vec<Candidate> = (0..9).map(|n| Candidate { downloaded: n, ..PEER }).collect();
        let mut tried = Vec::new();
        for round in 0..6 {
            let now = Instant::from_secs(100 + 15 * round);
            let situation = Situation { now, slots: 4, ..situation(false, Occasion::Round) };
            let decision = choker.decide(&situation, &list);
            assert_eq!(decision.unchoke.iter().filter(|&&unchoked| unchoked).count(), 4);
            for (at, peer) in list.iter_mut().enumerate() {
                let trial = decision.optimistic.contains(&at);
                if trial && !(peer.unchoked && peer.optimistic_at.is_some()) {
                    peer.optimistic_at = Some(now);
                }
                peer.unchoked = decision.unchoke[at];
            }
            tried.push(decision.optimistic[0]);
        }
        assert!(tried[0] == tried[1] && tried[2] == tried[3] && tried[0] != tried[2], "{tried:?}");
    }
}
