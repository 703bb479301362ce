//! Giving up what only the opening of an interface needs.
//!
//! Sources: capabilities(7), credentials(7), PR_SET_NO_NEW_PRIVS in prctl(2). The kernel keeps capabilities for each
//! thread, so this comes before any other thread is started.

use nix::unistd::{Gid, Uid, User, setgroups, setresgid, setresuid};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

/// Who nobody is where no table of users says so.
const NOBODY: u32 = 65534;

/// Becomes whoever called sudo, or nobody, where it is root; gives up all capabilities, and the way to any.
/// What was done, in words.
pub fn give_up() -> String {
    let became = if Uid::effective().is_root() { become_someone() } else { None };
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    let is_bare = set_capabilities(None, sets).is_ok();
    let is_final = set_no_new_privs(true).is_ok();
    let who = match became {
        Some(Ok(uid)) => format!("now user {uid}"),
        Some(Err(error)) => format!("still root, as the system refuses to change that ({error})"),
        None => format!("still user {}", Uid::effective()),
    };
    let what = if is_bare { "without capabilities" } else { "with the capabilities that it had" };
    let and = if is_final { " and no way to new ones" } else { "" };
    format!("{who}, {what}{and}")
}

fn become_someone() -> Option<nix::Result<Uid>> {
    let named = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok().filter(|&id| id != 0);
    let (uid, gid) = match (named("SUDO_UID"), named("SUDO_GID")) {
        (Some(uid), Some(gid)) => (Uid::from_raw(uid), Gid::from_raw(gid)),
        _ => match User::from_name("nobody") {
            Ok(Some(user)) => (user.uid, user.gid),
            _ => (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY)),
        },
    };
    // Groups first: whoever is no longer root cannot change them.
    let change = || {
        setgroups(&[gid])?;
        setresgid(gid, gid, gid)?;
        setresuid(uid, uid, uid)?;
        Ok(uid)
    };
    Some(change())
}
