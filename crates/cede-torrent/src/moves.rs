//! Whether the machine has come into another network, so that others look for us where we are no more.
//!
//! **What it leaves out.** A router that gets another address itself: trackers see that at the next announce.

use crate::origin::Origin;
use cede_bt::{Family, PerFamily};
use if_addrs::Interface;
use std::net::IpAddr;
use std::time::Duration;

/// The machine's addresses are looked at so often; what was seen twice is so. Where a lease is renewed one may be missing for a moment.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// From where we go to others.
type Home = PerFamily<Option<IpAddr>>;

/// By each family the address on the way to the Internet, or of a network that has no way there.
fn home(origin: Origin) -> Home {
    let [v4, v6] = Family::ALL.map(|family| origin.outward(family));
    if v4.is_some() && v6.is_some() {
        return PerFamily { v4, v6 };
    }
    let beyond = |it: &Interface| !it.is_loopback() && !it.is_link_local();
    let mut near = if_addrs::get_if_addrs().unwrap_or_default();
    near.retain(|it| beyond(it) && origin.address().is_none_or(|address| address == it.ip()));
    let of = |family| {
        let addresses = near.iter().map(Interface::ip).filter(|ip| Family::of(*ip) == family);
        addresses.filter(|_| origin.reaches(family)).min()
    };
    PerFamily { v4: v4.or_else(|| of(Family::V4)), v6: v6.or_else(|| of(Family::V6)) }
}

/// Tells moves from what was seen at each look.
struct Moves {
    /// What others were told, and what was seen last.
    told: Home,
    seen: Home,
}

impl Moves {
    const fn begin(home: Home) -> Self {
        Self { told: home, seen: home }
    }

    /// Notes what is seen; whether it is sure by it that the machine has an address of some family that it had not.
    fn note(&mut self, home: Home) -> bool {
        if core::mem::replace(&mut self.seen, home) != home {
            return false;
        }
        let before = core::mem::replace(&mut self.told, home);
        Family::ALL.into_iter().any(|family| home[family].is_some() && home[family] != before[family])
    }
}

/// Calls `then` whenever the machine has come into another network, or back into one after it was in none.
pub async fn watch(origin: Origin, mut then: impl AsyncFnMut()) {
    let mut moves = Moves::begin(home(origin));
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if moves.note(home(origin)) {
            then().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_twice_and_was_not_there_is_a_move() {
        let seen = |v4: &str, v6: &str| PerFamily { v4: v4.parse().ok(), v6: v6.parse().ok() };
        let (a, b, c) = ("192.0.2.1", "192.0.2.2", "2001:db8::1");
        let mut moves = Moves::begin(seen(a, ""));
        for (v4, v6, is) in [
            (a, "", false),
            // For a moment without.
            ("", "", false),
            (a, "", false),
            (a, "", false),
            (b, "", false),
            (b, "", true),
            (b, "", false),
            (b, c, false),
            (b, c, true),
            // An address that is gone is none that is to be told.
            (b, "", false),
            (b, "", false),
            // Away, and back.
            ("", "", false),
            ("", "", false),
            (b, "", false),
            (b, "", true),
        ] {
            assert_eq!(moves.note(seen(v4, v6)), is, "{v4} {v6}");
        }
    }
}
