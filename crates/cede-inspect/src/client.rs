//! What client a peer id names.
//!
//! Source: BEP 20: Azureus's style (`-qB4650-`), mainline's (`M4-0-2--`), and the clients that the BEP and their own sources
//! list. A peer id is what a peer says; nothing keeps it from saying another's.
//!
//! **What it leaves out.** Shadow's style, which no living client uses. **How it was validated.** Below.

/// Codes of Azureus's style.
const CLIENTS: [(&[u8; 2], &str); 34] = [
    (b"AG", "Ares"),
    (b"AZ", "Azureus"),
    (b"BC", "BitComet"),
    (b"BI", "BiglyBT"),
    (b"BT", "BitTorrent"),
    (b"BW", "BitWombat"),
    (b"CD", "Enhanced CTorrent"),
    (b"CE", "Cede"),
    (b"DE", "Deluge"),
    (b"FD", "Free Download Manager"),
    (b"FL", "Flud"),
    (b"FW", "FrostWire"),
    (b"HL", "Halite"),
    (b"KG", "KGet"),
    (b"KT", "KTorrent"),
    (b"LT", "libtorrent"),
    (b"PI", "PicoTorrent"),
    (b"QD", "QQDownload"),
    (b"SD", "Xunlei"),
    (b"TB", "Torch"),
    (b"TL", "Tribler"),
    (b"TR", "Transmission"),
    (b"TX", "Tixati"),
    (b"UE", "uTorrent Embedded"),
    (b"UM", "uTorrent Mac"),
    (b"UT", "uTorrent"),
    (b"UW", "uTorrent Web"),
    (b"WT", "BitLet"),
    (b"WW", "WebTorrent"),
    (b"XL", "Xunlei"),
    (b"lt", "rTorrent"),
    (b"qB", "qBittorrent"),
    (b"rQ", "rqbit"),
    (b"st", "SharkTorrent"),
];

/// The client that a peer id names, with its version, as in "Transmission 4.0.6".
#[must_use]
pub fn client_of(peer_id: &[u8; 20]) -> Option<String> {
    match peer_id {
        [b'-', a, b, version @ ..]
            if version[4] == b'-' || a.is_ascii_alphabetic() && b.is_ascii_alphabetic() =>
        {
            let known =
                CLIENTS.iter().find(|(code, _)| **code == [*a, *b]).map(|(_, name)| (*name).to_string());
            let code = || {
                [*a, *b]
                    .iter()
                    .all(u8::is_ascii_alphanumeric)
                    .then(|| [*a, *b].map(char::from).iter().collect())
            };
            let name: String = known.or_else(code)?;
            Some(format!("{name} {}", version_of(&version[..4])))
        }
        // aria2 writes its version out: "A2-1-36-0-".
        [b'A', b'2', b'-', rest @ ..] => Some(format!("aria2 {}", dashed(rest))),
        [b'M', rest @ ..] if rest[0].is_ascii_digit() => Some(format!("mainline {}", dashed(rest))),
        _ => None,
    }
}

/// Four digits, of which ten and above are letters; what is zero at the end is left out.
fn version_of(digits: &[u8]) -> String {
    let number = |digit: &u8| char::from(*digit).to_digit(36).filter(|_| digit.is_ascii_alphanumeric());
    let mut numbers: Vec<u32> = digits.iter().map_while(number).collect();
    while numbers.len() > 2 && numbers.last() == Some(&0) {
        numbers.pop();
    }
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

/// Numbers between dashes, up to the first thing that is neither.
fn dashed(text: &[u8]) -> String {
    let is_version = |octet: &&u8| octet.is_ascii_digit() || **octet == b'-';
    let text: String = text.iter().take(8).take_while(is_version).map(|&octet| char::from(octet)).collect();
    text.split("--").next().unwrap_or("").trim_matches('-').replace('-', ".")
}

#[cfg(test)]
mod tests {
    use super::client_of;

    #[test]
    fn peer_ids_name_their_clients() {
        for (id, name) in [
            (b"-TR4060-abcdefghijkl", Some("Transmission 4.0.6")),
            (b"-TR300Z-abcdefghijkl", Some("Transmission 3.0.0.35")),
            (b"-LT20B0-abcdefghijkl", Some("libtorrent 2.0.11")),
            (b"-lt0D80-abcdefghijkl", Some("rTorrent 0.13.8")),
            (b"-CE0100-abcdefghijkl", Some("Cede 0.1")),
            (b"-XY1000-abcdefghijkl", Some("XY 1.0")),
            (b"A2-1-36-0-abcdefghij", Some("aria2 1.36.0")),
            (b"M4-0-2--abcdefghijkl", Some("mainline 4.0.2")),
            (b"\xff\x00\x00\x00\x00\x00\x00\x00abcdefghijkl", None),
        ] {
            assert_eq!(client_of(id).as_deref(), name);
        }
    }
}
