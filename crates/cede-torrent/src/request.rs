//! A request for what is at a URL, whatever letters it has, with the name and the password that stand in it.
//!
//! Source: RFC 3986, sections 2.1 and 3.2 (what is reserved within them is percent-encoded), RFC 7617 (the Basic scheme).
//! What it leaves out: other schemes, such as Digest. How it was validated: the tests below, and Python's `http.server`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cede_bt::magnet::{percent_decoded, percent_encoded};
use std::borrow::Cow;
use ureq::http::{Uri, header};
use ureq::typestate::WithoutBody;
use ureq::{Agent, Error, RequestBuilder};

/// A URL with percent signs for what no URL has (RFC 3986, section 2.1) and some in torrents, links and redirections have all the same:
/// spaces, letters beyond those of ASCII.
pub(crate) fn askable(url: &str) -> Cow<'_, str> {
    let is_askable = |octet: u8| octet.is_ascii_graphic() && !matches!(octet, b'"' | b'<' | b'>' | b'`');
    if url.bytes().all(is_askable) {
        return Cow::Borrowed(url);
    }
    let encoded =
        |octet: u8| if is_askable(octet) { char::from(octet).into() } else { percent_encoded(&[octet]) };
    Cow::Owned(url.bytes().map(encoded).collect())
}

/// Host and port of a URL, as they are looked up.
pub(crate) fn host_of(url: &str) -> Option<String> {
    let uri: Uri = askable(url).parse().ok()?;
    let port = uri.port_u16().or_else(|| match uri.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    })?;
    Some(format!("{}:{port}", uri.host()?))
}

/// Asks for what is at a URL.
pub(crate) fn get(agent: &Agent, url: &str) -> Result<RequestBuilder<WithoutBody>, Error> {
    let url = &*askable(url);
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
    format!("Basic {}", STANDARD.encode(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7617, section 2, and what its encoding says.
    #[test]
    fn names_and_passwords_are_what_their_encoding_says() {
        assert_eq!(basic("Aladdin:open%20sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        let is = |user, meant: &[u8]| assert_eq!(basic(user), format!("Basic {}", STANDARD.encode(meant)));
        is("us%20er:p%40s:s", b"us er:p@s:s");
        is("name", b"name:");
        is("%C3%A4:%", "ä:%".as_bytes());
    }

    #[test]
    fn what_no_url_has_is_encoded_and_all_else_stays() {
        for (url, means) in [
            (
                "http://a.example/b c/\u{e4}?k=\u{fc}&l=<%3E>",
                "http://a.example/b%20c/%C3%A4?k=%C3%BC&l=%3C%3E%3E",
            ),
            ("http://[::1]:81/{b}|c%20d?e=f+g", "http://[::1]:81/{b}|c%20d?e=f+g"),
        ] {
            assert_eq!(askable(url), means);
        }
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
