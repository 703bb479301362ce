//! The local network: whoever is beyond it does not have us ask its servers, which may do what only their owner is to have them do.

use crate::proxy::is_proxied;
use crate::request::host_of;
use std::net::{IpAddr, ToSocketAddrs};

/// Whether a server that is elsewhere sends on into the local network.
pub(crate) fn leads_home(from: &str, to: &str) -> bool {
    is_near(to) && !is_near(from)
}

/// Whether a URL leads into the local network, as far as that can be told: a proxy looks names up by itself.
pub(crate) fn is_near(url: &str) -> bool {
    let host = host_of(url).filter(|_| !is_proxied(url));
    let found = host.and_then(|host| host.to_socket_addrs().ok());
    found.into_iter().flatten().any(|address| is_local(address.ip()))
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
