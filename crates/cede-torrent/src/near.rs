//! The local network: whoever is beyond it does not have us ask its servers, which may do what only their owner is to have them do.

use crate::proxy::is_proxied;
use crate::request::{askable, host_of};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use ureq::http::Uri;

/// Whether a server that is elsewhere sends on into the local network.
pub(crate) fn leads_home(from: &str, to: &str) -> bool {
    is_near(to) && !is_near(from)
}

/// Whether a URL leads into the local network, as far as that can be told: a proxy looks names up by itself.
pub(crate) fn is_near(url: &str) -> bool {
    let found = match host_of(url) {
        Some(host) if is_proxied(url) => addresses_beyond(&host),
        Some(host) => host.to_socket_addrs().into_iter().flatten().collect(),
        None => Vec::new(),
    };
    found.iter().any(|address| is_local(address.ip()))
}

/// What a host is called by a URL that a proxy is asked for: one that is an address, in whatever form (`127.1`), is the same to everybody
/// who looks it up, and the proxy is often on this machine.
pub(crate) fn addresses_beyond(host: &str) -> Vec<SocketAddr> {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name).trim_end_matches('.');
    let last = name.rsplit('.').next().unwrap_or_default();
    if last.eq_ignore_ascii_case("localhost") {
        return vec![(Ipv4Addr::LOCALHOST, 0).into()];
    }
    // No domain ends in a label that begins so: nobody is asked for it.
    match name.starts_with('[') || last.starts_with(|first: char| first.is_ascii_digit()) {
        true => host.to_socket_addrs().into_iter().flatten().collect(),
        false => Vec::new(),
    }
}

/// Whether what a stranger calls a tracker, whose host has these addresses, may be something else on this machine, which would be made to
/// do something by being asked. libtorrent asks for no other path there, either.
pub(crate) fn may_press_buttons(url: &str, addresses: &[SocketAddr]) -> bool {
    let is_here = |address: &SocketAddr| {
        let ip = address.ip().to_canonical();
        ip.is_loopback() || ip.is_unspecified()
    };
    let is_announce = || askable(url).parse::<Uri>().is_ok_and(|uri| uri.path() == "/announce");
    addresses.iter().any(is_here) && !is_announce()
}

fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_unspecified(),
        IpAddr::V6(v6) => {
            v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_unspecified()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_at_home_are_told_from_others() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "169.254.1.1",
            "::1",
            "fe80::1",
            "fd00::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(is_local(text.parse().unwrap()), "{text}");
        }
        for text in ["192.0.2.1", "8.8.8.8", "2001:db8::1", "::ffff:8.8.8.8"] {
            assert!(!is_local(text.parse().unwrap()), "{text}");
        }
        assert!(is_near("http://127.0.0.1:1/x") && is_near("http://[::1]/") && !is_near("no URL"));
    }

    #[test]
    fn strangers_trackers_on_this_machine_are_asked_at_their_usual_path_alone() {
        for (url, address, is_refused) in [
            ("http://127.0.0.1:1/announce", "127.0.0.1:1", false),
            ("http://localhost:1/announce?key=1", "[::1]:1", false),
            ("http://127.0.0.1:1/reboot", "127.0.0.1:1", true),
            ("http://127.0.0.1:1/announce/../reboot", "127.0.0.1:1", true),
            ("http://a.example:1/", "[::ffff:127.0.0.1]:1", true),
            ("http://0.0.0.0:1/x", "0.0.0.0:1", true),
            ("http://192.168.0.1:1/x", "192.168.0.1:1", false),
            ("http://192.0.2.1/x", "192.0.2.1:80", false),
        ] {
            assert_eq!(may_press_buttons(url, &[address.parse().unwrap()]), is_refused, "{url}");
        }
    }

    #[test]
    fn beyond_a_proxy_addresses_are_known_and_names_are_not() {
        for host in
            ["127.0.0.1:1", "127.1:1", "2130706433:1", "0x7f.1:1", "[::1]:1", "LOCALHOST:1", "a.localhost:1"]
        {
            let found = addresses_beyond(host);
            assert!(
                !found.is_empty() && found.iter().all(|found| found.ip().is_loopback()),
                "{host} {found:?}"
            );
        }
        for host in ["tracker.example:1", "localhost.example:1", "1.example:1"] {
            assert!(addresses_beyond(host).is_empty(), "{host}");
        }
    }

    #[test]
    fn nobody_sends_home_from_elsewhere() {
        for (from, to, is_refused) in [
            ("http://192.0.2.1/a", "http://127.0.0.1:631/b", true),
            ("https://192.0.2.1/a", "http://192.168.0.1/", true),
            ("http://192.0.2.1/a", "http://192.0.2.2/a", false),
            ("http://127.0.0.1:1/a", "http://10.0.0.1/a", false),
            ("http://10.0.0.1/a", "http://192.0.2.1/a", false),
        ] {
            assert_eq!(leads_home(from, to), is_refused, "{from} {to}");
        }
    }
}
