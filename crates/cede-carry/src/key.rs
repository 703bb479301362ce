//! The secret that two ends share, and how people write it.
//!
//! A key is [`KEY_BYTES`] random octets. As text it is `cedekey1` and 56 letters and digits: base32 (RFC 4648 section 6, in
//! lower case) of the key and three octets of a checksum, 64 characters without a mark among them, so that a double
//! click takes up the whole. No two of base32's characters look alike.

use std::fmt;
use zeroize::Zeroize;

/// Octets of a key.
pub const KEY_BYTES: usize = 32;

/// What the text of a key begins with; the digit is the form's version.
const PREFIX: &str = "cedekey1";
const CHECKSUM_BYTES: usize = 3;
/// 35 octets are 280 bits: 56 characters of five, and nothing left over.
const DIGITS: usize = (KEY_BYTES + CHECKSUM_BYTES) * 8 / 5;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A secret key. What it prints of itself with `{:?}` is its fingerprint.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; KEY_BYTES]);

/// Why a text is no key. Nothing of the text is repeated, since it may be most of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyError {
    /// It begins otherwise.
    Prefix,
    /// It has so many characters behind its beginning.
    Length(usize),
    /// The character at this place, counted from one, is none of a key's.
    Character(usize),
    /// The checksum is another: characters were mistaken for others.
    Checksum,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix => write!(f, "this is no key: one begins with {PREFIX}, as `cede key` writes it"),
            Self::Length(found) => write!(
                f,
                "this is not the whole of a key, or more: {DIGITS} characters follow {PREFIX}, and here it is {found}"
            ),
            Self::Character(place) => {
                write!(f, "character {place} is none that keys have, which are a to z and 2 to 7")
            }
            Self::Checksum => f.write_str("a character of this key is wrong: its checksum does not fit"),
        }
    }
}

impl std::error::Error for KeyError {}

impl Key {
    /// A new one.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub fn random() -> std::io::Result<Self> {
        let mut octets = [0; KEY_BYTES];
        getrandom::fill(&mut octets).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Self(octets))
    }

    /// One of these octets.
    #[must_use]
    pub const fn new(octets: [u8; KEY_BYTES]) -> Self {
        Self(octets)
    }

    /// Its octets.
    pub(crate) const fn octets(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Reads what [`Key::to_text`] writes; space around it and capital letters do not matter.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let is_one = text.get(..PREFIX.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(PREFIX));
        if !is_one {
            return Err(KeyError::Prefix);
        }
        let digits = &text[PREFIX.len()..];
        let mut packed = [0; KEY_BYTES + CHECKSUM_BYTES];
        for (place, digit) in digits.chars().enumerate() {
            let known = ALPHABET.iter().position(|&known| digit.eq_ignore_ascii_case(&char::from(known)));
            let value = known.ok_or(KeyError::Character(PREFIX.len() + place + 1))?;
            for bit in (0..5).filter(|bit| value >> (4 - bit) & 1 == 1) {
                if let Some(octet) = packed.get_mut((place * 5 + bit) / 8) {
                    *octet |= 0x80 >> ((place * 5 + bit) % 8);
                }
            }
        }
        let count = digits.chars().count();
        let mut octets = [0; KEY_BYTES];
        octets.copy_from_slice(&packed[..KEY_BYTES]);
        let key = Self(octets);
        octets.zeroize();
        let is_whole = packed[KEY_BYTES..] == key.checksum();
        packed.zeroize();
        match (count, is_whole) {
            (DIGITS, true) => Ok(key),
            (DIGITS, false) => Err(KeyError::Checksum),
            _ => Err(KeyError::Length(count)),
        }
    }

    /// As people copy it. This is the secret itself.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut packed = [0; KEY_BYTES + CHECKSUM_BYTES];
        packed[..KEY_BYTES].copy_from_slice(&self.0);
        packed[KEY_BYTES..].copy_from_slice(&self.checksum());
        let bit = |at: usize| usize::from(packed[at / 8] >> (7 - at % 8) & 1);
        let digit = |place: usize| (0..5).fold(0, |value, at| value << 1 | bit(place * 5 + at));
        let digits = (0..DIGITS).map(|place| char::from(ALPHABET[digit(place)]));
        let text = PREFIX.chars().chain(digits).collect();
        packed.zeroize();
        text
    }

    /// Eight hexadecimal digits by which people see whether two ends have the same key. They tell nothing else of it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let digest = blake3::derive_key("cede 2026 fingerprint of a key", &self.0);
        digest[..4].iter().map(|octet| format!("{octet:02x}")).collect()
    }

    fn checksum(&self) -> [u8; CHECKSUM_BYTES] {
        let digest = blake3::derive_key("cede 2026 checksum of a key", &self.0);
        [digest[0], digest[1], digest[2]]
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Key {
        Key::new(std::array::from_fn(|at| (at * 37 + 5) as u8))
    }

    #[test]
    fn a_key_is_sixty_four_characters_and_survives_copying() {
        let text = some().to_text();
        assert_eq!((text.len(), &text[..PREFIX.len()]), (64, PREFIX));
        assert!(text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{text}");
        assert_eq!(Key::parse(&text), Ok(some()));
        assert_eq!(Key::parse(&format!("  {}\r\n", text.to_uppercase())), Ok(some()));
        assert_ne!(Key::random().unwrap(), Key::random().unwrap());
    }

    #[test]
    fn the_digits_are_those_of_rfc_4648() {
        // "foobar" is mzxw6ytboi there; its last digit holds two bits of nothing.
        let mut octets = [0; KEY_BYTES];
        octets[..6].copy_from_slice(b"foobar");
        assert!(Key::new(octets).to_text()[PREFIX.len()..].starts_with("mzxw6ytboi"));
    }

    #[test]
    fn every_mistyped_character_is_told() {
        let text = some().to_text();
        for place in PREFIX.len()..text.len() {
            for &other in ALPHABET.iter().filter(|&&other| other != text.as_bytes()[place]) {
                let mut wrong = text.clone().into_bytes();
                wrong[place] = other;
                let wrong = String::from_utf8(wrong).unwrap();
                assert_eq!(Key::parse(&wrong), Err(KeyError::Checksum), "{place}");
            }
        }
    }

    #[test]
    fn what_is_no_key_is_told_apart() {
        let text = some().to_text();
        assert_eq!(Key::parse(""), Err(KeyError::Prefix));
        assert_eq!(Key::parse("password"), Err(KeyError::Prefix));
        assert_eq!(Key::parse("cédékey1"), Err(KeyError::Prefix));
        assert_eq!(Key::parse(&text[..60]), Err(KeyError::Length(52)));
        assert_eq!(Key::parse(&format!("{text}a")), Err(KeyError::Length(57)));
        assert_eq!(Key::parse(&format!("{}1", &text[..63])), Err(KeyError::Character(64)));
        assert_eq!(Key::parse(&format!("{text}\n{text}")), Err(KeyError::Character(65)));
        assert_eq!(Key::parse(&format!("{text}ß")), Err(KeyError::Character(65)));
    }

    #[test]
    fn a_key_shows_its_fingerprint_and_nothing_else() {
        let key = some();
        let shown = format!("{key:?}");
        assert_eq!(shown, format!("Key({})", key.fingerprint()));
        assert_eq!(key.fingerprint().len(), 8);
        assert_ne!(key.fingerprint(), Key::new([0; KEY_BYTES]).fingerprint());
        assert!(!key.to_text().contains(&key.fingerprint()));
    }
}
