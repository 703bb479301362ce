//! A request for what is at a URL, with the name and the password that stand in it.
//!
//! Source: RFC 3986, section 3.2 (what is reserved within them is percent-encoded), RFC 7617 (the Basic scheme), RFC 4648 (base 64).
//! What it leaves out: other schemes, such as Digest. How it was validated: the tests below, and Python's `http.server`.

use cede_bt::magnet::percent_decoded;
use ureq::http::{Uri, header};
use ureq::typestate::WithoutBody;
use ureq::{Agent, Error, RequestBuilder};

/// Asks for what is at a URL.
pub(crate) fn get(agent: &Agent, url: &str) -> Result<RequestBuilder<WithoutBody>, Error> {
    let request = agent.get(url);
    let Ok(uri) = url.parse::<Uri>() else { return Ok(request) };
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let (user, place) =
        authority.rsplit_once('@').map_or((None, authority), |(user, place)| (Some(user), place));
    if names_no_port(place) {
        // It would be taken for none, and somebody else asked.
        return Err(Error::BadUri(format!("{place} names no port")));
    }
    Ok(match user {
        Some(user) => request.header(header::AUTHORIZATION, basic(user)),
        None => request,
    })
}

/// Whether there is something behind the host that is no port.
fn names_no_port(place: &str) -> bool {
    let behind = place.rsplit_once(':').map_or("", |(_, behind)| behind);
    // An address of IPv6 has colons, too.
    !behind.is_empty() && !behind.ends_with(']') && behind.parse::<u16>().is_err()
}

/// What says who asks, of `name:password` as it stands in a URL.
fn basic(user: &str) -> String {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let octets = [percent_decoded(name), b":".to_vec(), percent_decoded(password)].concat();
    format!("Basic {}", base64(&octets))
}

fn base64(octets: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | usize::from(group.get(at).copied().unwrap_or(0)));
        let digit = move |at: usize| char::from(DIGITS[bits >> (18 - 6 * at) & 63]);
        let count = group.len() + 1;
        (0..4).map(move |at| if at < count { digit(at) } else { '=' })
    };
    octets.chunks(3).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648, section 10, and of RFC 7617, section 2.
    #[test]
    fn base_64_is_that_of_the_rfc() {
        for (octets, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(octets.as_bytes()), text);
        }
        assert_eq!(base64(b"\xfb\xff"), "+/8=");
        assert_eq!(basic("Aladdin:open%20sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }

    #[test]
    fn names_and_passwords_are_what_their_encoding_says() {
        assert_eq!(basic("us%20er:p%40s:s"), format!("Basic {}", base64(b"us er:p@s:s")));
        assert_eq!(basic("name"), format!("Basic {}", base64(b"name:")));
        assert_eq!(basic("%C3%A4:%"), format!("Basic {}", base64("ä:%".as_bytes())));
    }

    #[test]
    fn what_is_no_port_is_not_passed_over() {
        for (place, is_none) in [
            ("a.example", false),
            ("a.example:", false),
            ("a.example:80", false),
            ("a.example:99999", true),
            ("[2001:db8::1]", false),
            ("[2001:db8::1]:81", false),
            ("[2001:db8::1]:65536", true),
        ] {
            assert_eq!(names_no_port(place), is_none, "{place}");
        }
    }
}
