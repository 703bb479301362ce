//! The proxy that the environment names (`ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY`, in either case): HTTP or SOCKS.
//!
//! One that cannot be used is not passed over, as `ureq` does it: whoever names one does not want to be seen by those who are asked.

use crate::request::askable;
use std::env;
use ureq::http::Uri;
use ureq::{Proxy, ProxyProtocol};

/// In the order in which `ureq` looks for them.
const NAMES: [&str; 6] = ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];

/// Whether a proxy of the environment stands between.
pub(crate) fn is_proxied(url: &str) -> bool {
    let Ok(uri) = askable(url).parse::<Uri>() else { return false };
    Proxy::try_from_env().is_some_and(|proxy| !proxy.is_no_proxy(&uri))
}

/// Why the environment's proxy cannot be used; `is_bound` where connections are to leave from an address.
pub(crate) fn fault(is_bound: bool) -> Option<String> {
    let set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let name = NAMES.into_iter().find(set)?;
    fault_of(name, env::var(name).ok().as_deref(), is_bound)
}

fn fault_of(name: &str, value: Option<&str>, is_bound: bool) -> Option<String> {
    // What stands there is not told: it may have a password.
    let Some(proxy) = value.and_then(|value| Proxy::new(value).ok()) else {
        return Some(format!(
            "{name} names no proxy that can be used: http://HOST:PORT or socks5://HOST:PORT; unset it to ask without one"
        ));
    };
    let is_http = matches!(proxy.protocol(), ProxyProtocol::Http | ProxyProtocol::Https);
    (is_bound && !is_http).then(|| {
        format!(
            "the SOCKS proxy of {name} would be asked from another address than that of -B; use one of them"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_cannot_be_used_is_told() {
        for (value, is_bound, told) in [
            (Some("http://127.0.0.1:1"), true, None),
            (Some("127.0.0.1:1"), false, None),
            (Some("socks5://a.example:1"), false, None),
            (Some("socks5h://me:word@a.example:1"), true, Some("-B")),
            (Some("gopher://a.example:1"), false, Some("ALL_PROXY names no proxy")),
            (Some("http://a b:word/"), false, Some("ALL_PROXY names no proxy")),
            (None, false, Some("ALL_PROXY names no proxy")),
        ] {
            let fault = fault_of("ALL_PROXY", value, is_bound);
            assert_eq!(fault.is_some(), told.is_some(), "{value:?}: {fault:?}");
            let fault = fault.unwrap_or_default();
            assert!(told.is_none_or(|told| fault.contains(told)) && !fault.contains("word"), "{fault}");
        }
    }
}
