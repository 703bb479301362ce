//! How people write addresses and URLs.

use std::net::{IpAddr, Ipv6Addr};

/// An address of this machine.
pub fn address(text: &str) -> Result<IpAddr, String> {
    let words = "take an address of this machine, such as 192.0.2.1 or 2001:db8::1 (no name, no interface)";
    match text.parse().map_err(|_| words.to_owned())? {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            Err("an address of fe80::/10 holds on one wire alone; take another one of this machine"
                .to_owned())
        }
        address => Ok(address),
    }
}

/// A host and a port.
pub fn host_port(text: &str) -> Result<String, String> {
    let is_host = |host: &str| match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()),
        None => !host.is_empty() && !host.contains(':'),
    };
    match text.rsplit_once(':') {
        Some((host, port)) if is_host(host) && port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Ok(text.to_owned())
        }
        _ => Err("take a host and a port, such as 192.0.2.1:6881 or [2001:db8::1]:6881".to_owned()),
    }
}

/// The scheme of a URL, if it is one of these in whatever case (RFC 3986, section 3.1), and what stands behind it.
pub fn of_schemes<'a>(text: &'a str, schemes: &[&str]) -> Option<(&'a str, &'a str)> {
    let (scheme, rest) = text.split_once("://")?;
    schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some((scheme, rest))
}

/// A tracker's URL.
pub fn tracker_url(text: &str) -> Result<String, String> {
    let (scheme, rest) = of_schemes(text, &["http", "https", "udp"])
        .ok_or("a tracker's URL begins with http://, https:// or udp://")?;
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    if host.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(
            "that names no host, or has a space in it; write http://tracker.example/announce".to_owned()
        );
    }
    if scheme.eq_ignore_ascii_case("udp") && host_port(host).is_err() {
        return Err("a UDP tracker is named with its port, such as udp://tracker.example:6969".to_owned());
    }
    Ok(text.to_owned())
}

/// A web seed's URL.
pub fn web_url(text: &str) -> Result<String, String> {
    let parts = of_schemes(text, &["http", "https"]);
    let host = parts.and_then(|(_, rest)| rest.split(['/', '?']).next()).filter(|host| !host.is_empty());
    if host.is_none() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(
            "a web seed is an http or https URL without spaces, such as http://mirror.example/films/"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_host_is_no_address() {
        for text in ["192.0.2.1", "6881", ":6881", "192.0.2.1:0", "192.0.2.1:x", "[::1]", "::1", "[x]:1", ""]
        {
            assert!(host_port(text).is_err(), "{text}");
        }
        for url in
            ["udp://a:1", "udp://[::1]:1/announce", "http://a", "https://a:1/x?y=z", "UDP://a:1", "Http://a"]
        {
            assert!(tracker_url(url).is_ok(), "{url}");
        }
        for url in
            ["ftp://a", "a:1", "http://", "http:///x", "udp://a", "udp://a/x", "UDP://a", "http://a b/x", ""]
        {
            assert!(tracker_url(url).is_err(), "{url}");
        }
        assert!(web_url("https://a/d/").is_ok() && web_url("HTTP://a").is_ok());
        for url in ["ftp://a/d", "http:///d", "http://a b", "a/d", ""] {
            assert!(web_url(url).is_err(), "{url}");
        }
        assert!(address("2001:db8::1").is_ok() && address("fe80::1").is_err() && address("a").is_err());
    }
}
