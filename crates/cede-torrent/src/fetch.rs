//! What is at a URL of http or https: answers of trackers, and torrent files.

use crate::depart::Departing;
use crate::near::leads_home;
use crate::origin::{Family, Origin};
use crate::request::get;
use flate2::read::MultiGzDecoder;
use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};
use ureq::config::IpFamily;
use ureq::http::{HeaderMap, StatusCode, header};

/// Who does not answer within that is passed over.
const PATIENCE: Duration = Duration::from_secs(20);
/// No time at all would be taken for no limit.
const LEAST_PATIENCE: Duration = Duration::from_millis(10);
/// How often a server may send on to another.
const MAX_REDIRECTS: u32 = 5;
/// A torrent file from a URL: as long as torrents can be.
const MAX_DOWNLOAD_BYTES: u64 = cede_bt::metainfo::MAX_FILE_BYTES as u64;

/// What came.
pub(crate) struct Fetched {
    status: StatusCode,
    /// Where the server sends on to, if nothing is fetched from there.
    onward: Option<String>,
    pub octets: Vec<u8>,
}

impl Fetched {
    /// Why this is not what was asked for, where the server says so.
    pub fn failure(&self) -> Option<String> {
        match &self.onward {
            Some(url) if is_http(url) => {
                Some(format!("the server sends on more than {MAX_REDIRECTS} times, at last to {}", bare(url)))
            }
            Some(url) => {
                Some(format!("the server sends on to {}, which is neither http nor https", bare(url)))
            }
            None => (!self.status.is_success()).then(|| format!("the server answers: {}", self.status)),
        }
    }
}

/// What is behind a URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Download {
    /// This.
    Octets(Vec<u8>),
    /// The server sends on to this magnet link.
    Magnet(String),
}

/// Fetches what is at a URL.
///
/// # Errors
/// Why it cannot be had, for people.
pub async fn download(url: &str, origin: Origin) -> Result<Download, String> {
    let fetched = fetch(url.to_owned(), MAX_DOWNLOAD_BYTES, (origin, None)).await?;
    match fetched.failure() {
        None => Ok(Download::Octets(fetched.octets)),
        Some(why) => match fetched.onward {
            Some(link) if begins(&link, "magnet:") => Ok(Download::Magnet(link)),
            _ => Err(why),
        },
    }
}

/// Whether a text begins like this, in whatever case.
pub(crate) fn begins(text: &str, head: &str) -> bool {
    text.get(..head.len()).is_some_and(|found| found.eq_ignore_ascii_case(head))
}

pub(crate) fn is_http(url: &str) -> bool {
    begins(url, "http:") || begins(url, "https:")
}

/// Fetches so many octets at most, by one family where one is given.
pub(crate) async fn fetch(
    url: String,
    limit: u64,
    (origin, family): (Origin, Option<Family>),
) -> Result<Fetched, String> {
    if begins(&url, "https://") && !cfg!(feature = "https") {
        return Err("https is not built in (cargo build --features cede-torrent/https); many trackers answer over http:// or udp://, too".to_owned());
    }
    let fetching = tokio::task::spawn_blocking(move || follow(&agent(origin, family)?, url, limit));
    fetching.await.map_err(|error| error.to_string())?
}

/// Fetches from wherever servers send on to.
fn follow(agent: &ureq::Agent, mut url: String, limit: u64) -> Result<Fetched, String> {
    let deadline = Instant::now() + PATIENCE;
    for hops in 0.. {
        let left = deadline.saturating_duration_since(Instant::now()).max(LEAST_PATIENCE);
        let request = get(agent, &url).map_err(|error| words(&error))?;
        let request = request.config().timeout_global(Some(left)).build();
        let mut response = request.call().map_err(|error| words(&error))?;
        let status = response.status();
        let place = response.headers().get(header::LOCATION).filter(|_| status.is_redirection());
        let Some(place) = place else {
            let is_packed = is_packed_still(response.headers());
            let body = response.body_mut().with_config().limit(limit).reader();
            let octets = if is_packed { read(MultiGzDecoder::new(body), limit)? } else { read(body, limit)? };
            return Ok(Fetched { status, onward: None, octets });
        };
        let onward = onward(&url, &String::from_utf8_lossy(place.as_bytes()));
        if hops == MAX_REDIRECTS || !is_http(&onward) {
            // What goes with a redirection is for people.
            return Ok(Fetched { status, onward: Some(onward), octets: Vec::new() });
        }
        if leads_home(&url, &onward) {
            return Err(format!("the server sends on into the local network, to {}", bare(&onward)));
        }
        url = onward;
    }
    unreachable!("the last hop returns")
}

/// A URL without what is behind its path: that is what we have said of ourselves, in an announce, or a passkey.
fn bare(url: &str) -> String {
    url.split_once('?').map_or_else(|| url.to_owned(), |(front, _)| format!("{front}?..."))
}

/// Whether the octets of an answer are packed after the library has read them: it knows one of the ways in which gzip is spelt (RFC 9110,
/// section 8.4.1).
fn is_packed_still(headers: &HeaderMap) -> bool {
    let coding = headers.get(header::CONTENT_ENCODING).map_or(&b""[..], |coding| coding.as_bytes());
    let is = |name: &[u8]| coding.eq_ignore_ascii_case(name);
    coding != b"gzip" && (is(b"gzip") || is(b"x-gzip"))
}

/// Why there is no answer, for people: what the library says is for those who know it.
pub(crate) fn words(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} s", PATIENCE.as_secs()),
        ureq::Error::Io(error) if error.kind() == ErrorKind::UnexpectedEof => {
            "the server hung up before it had answered".to_owned()
        }
        ureq::Error::Io(error) => certificate_words(error).unwrap_or_else(|| error.to_string()),
        ureq::Error::Protocol(error) => format!("what the server says is no HTTP: {error}"),
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => "that is no URL that can be asked".to_owned(),
        ureq::Error::BodyExceedsLimit(limit) => format!("the answer is longer than {limit} octets"),
        other => other.to_string(),
    }
}

/// What is wrong with a server's certificate, where that is what is wrong. The same is said in the same words whenever it is asked.
#[cfg(feature = "https")]
fn certificate_words(error: &std::io::Error) -> Option<String> {
    use rustls::CertificateError as Wrong;
    let rustls::Error::InvalidCertificate(wrong) = error.get_ref()?.downcast_ref()? else { return None };
    let why = match wrong {
        Wrong::Expired | Wrong::ExpiredContext { .. } => "has expired".to_owned(),
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => {
            "is not valid yet: one of the two clocks is wrong".to_owned()
        }
        Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => "is for another name".to_owned(),
        Wrong::UnknownIssuer => {
            "has nobody to vouch for it who is trusted (SSL_CERT_FILE names a file of those who are)"
                .to_owned()
        }
        // What the library says of that is a name of its own.
        Wrong::Other(other) if other.0.to_string() == "CaUsedAsEndEntity" => {
            "is that of an authority (CA:TRUE), which no server may have, as where it has signed itself"
                .to_owned()
        }
        other => format!("is not taken: {other}"),
    };
    Some(format!("the server's certificate {why}"))
}

#[cfg(not(feature = "https"))]
const fn certificate_words(_: &std::io::Error) -> Option<String> {
    None
}

/// The URL that a reference means at a place (RFC 3986, section 5.2; dots in paths are left to the server).
pub(crate) fn onward(base: &str, reference: &str) -> String {
    let is_in_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let reference = reference.trim().split('#').next().unwrap_or_default();
    if reference
        .split_once(':')
        .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(is_in_scheme))
    {
        return reference.to_owned();
    }
    let (scheme, rest) = base.split_once("://").unwrap_or(("http", base));
    if reference.starts_with("//") {
        return format!("{scheme}:{reference}");
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let folder = match reference.chars().next() {
        Some('/') => "",
        Some('?') | None => path,
        Some(_) => &path[..path.rfind('/').map_or(0, |at| at + 1)],
    };
    let slash = if folder.is_empty() && !reference.starts_with('/') { "/" } else { "" };
    format!("{scheme}://{authority}{folder}{slash}{reference}")
}

/// A client whose connections leave from an address, by one family where one is given.
///
/// # Errors
/// The environment names a proxy or certificates that cannot be used.
pub(crate) fn agent(origin: Origin, family: Option<Family>) -> Result<ureq::Agent, String> {
    if let Some(fault) = crate::proxy::fault(origin.address().is_some()) {
        return Err(fault);
    }
    let only = Family::ALL.into_iter().filter(|family| origin.reaches(*family));
    let only: Vec<Family> = only.filter(|one| family.is_none_or(|family| family == *one)).collect();
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .ip_family(match only[..] {
            [Family::V4] => IpFamily::Ipv4Only,
            [Family::V6] => IpFamily::Ipv6Only,
            _ => IpFamily::Any,
        })
        .user_agent(concat!("cede/", env!("CARGO_PKG_VERSION")));
    #[cfg(feature = "https")]
    let config = config.tls_config(tls()?);
    Ok(match origin.address() {
        None => config.build().new_agent(),
        Some(address) => Departing::from(address).agent(config.build()),
    })
}

/// All of it, within a limit that holds for what was compressed, too.
fn read(body: impl Read, limit: u64) -> Result<Vec<u8>, String> {
    let mut octets = Vec::new();
    body.take(limit + 1).read_to_end(&mut octets).map_err(|error| words(&error.into()))?;
    if octets.len() as u64 > limit { Err("the answer is too long".to_owned()) } else { Ok(octets) }
}

/// Whose certificates are trusted: those of authorities in the file that `SSL_CERT_FILE` names, or else Mozilla's.
#[cfg(feature = "https")]
fn tls() -> Result<ureq::tls::TlsConfig, String> {
    use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
    let named = std::env::var_os("SSL_CERT_FILE").filter(|name| !name.is_empty());
    let Some(path) = named else { return Ok(TlsConfig::default()) };
    let failed = |error: &dyn std::fmt::Display| format!("SSL_CERT_FILE {}: {error}", path.display());
    let text = std::fs::read(&path).map_err(|error| failed(&error))?;
    let mut roots = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| failed(&error))? {
            roots.push(certificate);
        }
    }
    Ok(TlsConfig::builder().root_certs(RootCerts::from(roots)).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_silent_is_told_in_words() {
        let silent = words(&ureq::Error::Timeout(ureq::Timeout::Global));
        assert_eq!(silent, "no answer within 20 s");
        let refused = ureq::Error::Io(ErrorKind::ConnectionRefused.into());
        assert_eq!(words(&refused), "connection refused");
    }

    #[cfg(feature = "https")]
    #[test]
    fn what_is_wrong_with_a_certificate_is_told_in_words_that_stay() {
        use rustls::pki_types::UnixTime;
        use rustls::{CertificateError, Error};
        let told = |wrong| {
            words(&ureq::Error::Io(std::io::Error::new(
                ErrorKind::InvalidData,
                Error::InvalidCertificate(wrong),
            )))
        };
        let expired = |now| {
            let [time, not_after] = [now, 1].map(|s| UnixTime::since_unix_epoch(Duration::from_secs(s)));
            told(CertificateError::ExpiredContext { time, not_after })
        };
        assert_eq!(expired(7), "the server's certificate has expired");
        assert_eq!(expired(7), expired(8));
        assert!(told(CertificateError::UnknownIssuer).contains("SSL_CERT_FILE"));
        assert!(told(CertificateError::Revoked).starts_with("the server's certificate is not taken: "));
    }

    #[test]
    fn servers_send_on_by_whole_and_by_relative_urls() {
        let base = "http://a.example:81/b/c/d?q=1";
        for (reference, means) in [
            ("https://z.example/x", "https://z.example/x"),
            ("magnet:?xt=urn:btih:0", "magnet:?xt=urn:btih:0"),
            ("file:///etc/passwd", "file:///etc/passwd"),
            ("//z.example/x", "http://z.example/x"),
            ("/x?y=http://w", "http://a.example:81/x?y=http://w"),
            ("x.torrent", "http://a.example:81/b/c/x.torrent"),
            ("?r=2", "http://a.example:81/b/c/d?r=2"),
            ("", "http://a.example:81/b/c/d"),
            (" /x#part ", "http://a.example:81/x"),
        ] {
            assert_eq!(onward(base, reference), means, "{reference}");
        }
        assert_eq!(onward("http://a.example", "x"), "http://a.example/x");
        assert_eq!(onward("http://a.example?q", "?r"), "http://a.example/?r");
    }
}
