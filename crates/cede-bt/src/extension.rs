//! The extension protocol's handshake: what a peer calls its messages, and what it says of itself.
//!
//! Source: BEP 10; BEP 21 for `upload_only`, which libtorrent also tells in a message of its own. What it leaves out: `yourip`, `ipv4` and `ipv6`, which anybody can claim. How it was validated: both
//! directions below, a fuzz target, and the clients that ours talks to.

use crate::bencode::{Document, Form, Limits, Node};
use alloc::string::String;
use alloc::vec::Vec;

/// Our id for messages of BEP 9.
pub const UT_METADATA: u8 = 1;
/// Our id for messages of BEP 11.
pub const UT_PEX: u8 = 2;
/// Our id for messages of BEP 55.
pub const UT_HOLEPUNCH: u8 = 3;
/// Our id for libtorrent's message of one octet that says whether its sender still wants something.
pub const UPLOAD_ONLY: u8 = 4;
/// Requests that a peer may have open with us, as we tell it; libtorrent 2 says the same. Transmission 3 asks for what is missing of so many
/// twice a second at most, so that fewer would hold it back.
pub const OUR_REQUESTS: u32 = 2_000;

/// What a peer says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Extension {
    /// The id that it wants metadata messages under; 0 for none.
    pub ut_metadata: u8,
    /// The id that it wants peer exchange under; 0 for none.
    pub ut_pex: u8,
    /// The id that it wants to be introduced to others under; 0 for none.
    pub ut_holepunch: u8,
    /// Where it takes connections.
    pub port: Option<u16>,
    /// Requests that it takes at once.
    pub requests: Option<u32>,
    /// Octets of the info dictionary.
    pub metadata_size: Option<u32>,
    /// Whether it wants nothing of anybody any more (BEP 21), where it says so.
    pub upload_only: Option<bool>,
    /// What it calls itself.
    pub client: Option<String>,
}

/// How we hear of peers from peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hearsay {
    /// By peer exchange.
    pub exchanges: bool,
    /// By being introduced to them.
    pub punches: bool,
}

impl Extension {
    /// Ours. `metadata_size` where there is something to ask for; no hearsay with a private torrent; `upload_only` where it is known
    /// whether we want something.
    #[must_use]
    pub fn ours(
        client: &str,
        port: Option<u16>,
        metadata_size: Option<u32>,
        hearsay: Hearsay,
        upload_only: Option<bool>,
    ) -> Vec<u8> {
        let names = Form::dict()
            .with("ut_metadata", u32::from(UT_METADATA))
            .with_some("ut_pex", hearsay.exchanges.then_some(u32::from(UT_PEX)))
            .with_some("ut_holepunch", hearsay.punches.then_some(u32::from(UT_HOLEPUNCH)))
            .with_some("upload_only", upload_only.map(|_| u32::from(UPLOAD_ONLY)));
        Form::dict()
            .with("m", names)
            .with_some("metadata_size", metadata_size)
            .with_some("p", port.map(u32::from))
            .with("reqq", OUR_REQUESTS)
            .with_some("upload_only", upload_only.map(u32::from))
            .with("v", client)
            .encode()
    }

    /// Reads one; `None` where it is none.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let document = Document::parse(octets, Limits::MESSAGE).ok()?;
        let root = document.root();
        let names = root.get(b"m").filter(|names| names.is_dict())?;
        let id = |name: &[u8]| names.get(name).and_then(Node::uint).and_then(|id| u8::try_from(id).ok());
        let number = |key: &[u8]| root.get(key).and_then(Node::uint).and_then(|n| u32::try_from(n).ok());
        let client = root.get(b"v").and_then(Node::bytes);
        Some(Self {
            ut_metadata: id(b"ut_metadata").unwrap_or(0),
            ut_pex: id(b"ut_pex").unwrap_or(0),
            ut_holepunch: id(b"ut_holepunch").unwrap_or(0),
            port: number(b"p").and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0),
            requests: number(b"reqq").filter(|requests| *requests > 0),
            metadata_size: number(b"metadata_size"),
            upload_only: number(b"upload_only").map(|told| told != 0),
            client: client.map(|text| String::from_utf8_lossy(text).chars().take(64).collect()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_say_is_understood() {
        let octets = Extension::ours(
            "cede 1",
            Some(6881),
            Some(40_000),
            Hearsay { exchanges: true, punches: true },
            Some(true),
        );
        let read = Extension::parse(&octets).unwrap();
        let client = Some("cede 1".into());
        assert_eq!(
            read,
            Extension {
                ut_metadata: 1,
                ut_pex: 2,
                ut_holepunch: 3,
                port: Some(6881),
                requests: Some(2_000),
                metadata_size: Some(40_000),
                upload_only: Some(true),
                client
            }
        );
        let private = Extension::parse(&Extension::ours("c", None, None, Hearsay::default(), None)).unwrap();
        assert_eq!(
            (private.ut_pex, private.ut_holepunch, private.port, private.upload_only),
            (0, 0, None, None)
        );
    }

    #[test]
    fn odd_values_count_for_nothing() {
        let read = Extension::parse(b"d1:md11:ut_metadatai300e6:ut_pexi-1ee4:reqqi0e1:pi70000ee").unwrap();
        assert_eq!(read, Extension::default());
        assert_eq!(Extension::parse(b"d1:mi1ee"), None);
        assert_eq!(Extension::parse(b"le"), None);
    }
}
