//! Who may give orders.

use super::args::DaemonArgs;
use crate::failure::Failure;
use crate::screen;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::net::IpAddr;

/// Who may.
pub struct Auth {
    /// The word behind `Basic` of whoever may (RFC 7617); where there is none, whoever is on this machine.
    basic: Option<String>,
}

impl Auth {
    /// As the command line says.
    pub fn of(args: &DaemonArgs) -> Result<Self, Failure> {
        let Some(path) = &args.rpc_auth else {
            if args.rpc.ip().is_loopback() {
                return Ok(Self { basic: None });
            }
            let text = format!(
                "--rpc {}: others than this machine could give orders: give a file with NAME:PASSWORD (--rpc-auth), or take 127.0.0.1",
                args.rpc
            );
            return Err(Failure::Usage(text));
        };
        let name = screen::named(path);
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::of_system(format!("--rpc-auth: cannot read {name}: {error}"), error.kind())
        })?;
        let line = text.lines().next().unwrap_or_default();
        match line.split_once(':') {
            Some((user, password)) if !user.is_empty() && !password.is_empty() => {
                Ok(Self { basic: Some(STANDARD.encode(line)) })
            }
            _ => Err(Failure::Usage(format!("--rpc-auth: {name} has to have one line, NAME:PASSWORD"))),
        }
    }

    /// Whether whoever sends this `Authorization` may.
    pub fn admits(&self, authorization: Option<&str>) -> bool {
        let Some(known) = &self.basic else { return true };
        let said = authorization.and_then(|text| {
            let (scheme, word) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("basic").then_some(word.trim())
        });
        said.is_some_and(|said| is_same(said.as_bytes(), known.as_bytes()))
    }

    /// Whether a page that was loaded from this `Host` may ask. Where no password is needed, a page of a stranger whose name is made to
    /// lead to this machine could ask in its user's name: so the host has to be an address, or this machine by name.
    pub fn trusts(&self, host: Option<&str>) -> bool {
        let Some(host) = host.filter(|_| self.basic.is_none()) else { return true };
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        let name = name.trim_end_matches('.');
        name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
    }
}

/// Takes as long wherever they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_knows_the_word_may_ask_and_pages_of_strangers_may_not() {
        let open = Auth { basic: None };
        let closed = Auth { basic: Some(STANDARD.encode("me:secret")) };
        let basic = format!("Basic {}", STANDARD.encode("me:secret"));
        assert!(
            open.admits(None)
                && closed.admits(Some(&basic))
                && closed.admits(Some(&basic.replace("Basic", "basic")))
        );
        for wrong in
            [None, Some("Basic"), Some("Basic bWU6c2VjcmV1"), Some(&*basic.replace("Basic", "Bearer"))]
        {
            assert!(!closed.admits(wrong), "{wrong:?}");
        }
        for host in ["127.0.0.1:9091", "localhost", "LocalHost.:9091", "[::1]:9091", "192.0.2.1"] {
            assert!(open.trusts(Some(host)), "{host}");
        }
        for host in ["evil.example:9091", "evil.example", "127.0.0.1.evil.example:9091", ""] {
            assert!(!open.trusts(Some(host)) && closed.trusts(Some(host)), "{host}");
        }
        assert!(open.trusts(None));
    }
}
