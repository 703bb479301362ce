//! Message Stream Encryption: a handshake before BitTorrent's own, and a cipher behind it.
//!
//! Source: "Message Stream Encryption" as the clients of 2006 agreed on it, in the form that libtorrent and Transmission speak:
//! a Diffie-Hellman exchange over 768 bits, both sides padded, keys from SHA-1 of the secret and the info-hash, RC4 with its
//! first 1,024 octets thrown away. It hides what is said from whoever only looks for words. It keeps nothing secret from
//! somebody who knows the info-hash and stands in the middle.
//!
//! **What it leaves out.** Padding behind the negotiation (both PadC and PadD are sent empty, and read over when they come).
//! **How it was validated.** Both sides against each other in every cut, a fuzz target, the keystream of RC4's published
//! vectors (in its own crate), and libtorrent, Transmission and aria2 in both directions.

use crate::wire::PROTOCOL;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Odd, U768};
use rc4::{KeyInit, StreamCipher};
use sha1::{Digest, Sha1};

/// Octets of a public number.
pub const PUBLIC_BYTES: usize = 96;
/// Octets of a private number: 160 bits.
pub const PRIVATE_BYTES: usize = 20;
/// Padding at most.
pub const PADDING_MAX: usize = 512;
/// Eight zeros, by which each side finds the beginning of what is enciphered.
const VC_BYTES: usize = 8;
/// Of the keystream, thrown away.
const DISCARDED_BYTES: usize = 1024;
/// The modulus, of 768 bits.
const PRIME_HEX: &str = "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD\
     EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A63A36210000000000090563";
const PRIME: U768 = U768::from_be_hex(PRIME_HEX);
const ODD_PRIME: Odd<U768> = Odd::<U768>::from_be_hex(PRIME_HEX);

/// Which forms of what follows are acceptable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accept(pub u32);

impl Accept {
    /// In the clear behind the handshake.
    pub const PLAIN: Self = Self(1);
    /// Enciphered.
    pub const RC4: Self = Self(2);
    /// Either.
    pub const EITHER: Self = Self(3);
}

/// Why a handshake failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// What should come next did not come within the padding that is allowed.
    Lost,
    /// The peer wants another torrent.
    Torrent,
    /// There is no form that both accept.
    Form,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "the peer's encryption handshake makes no sense",
            Self::Torrent => "the peer wants another torrent",
            Self::Form => "there is no form of encryption that both accept",
        })
    }
}

impl core::error::Error for Error {}

/// A stream cipher: RC4 behind its first 1,024 octets.
pub struct Rc4(rc4::Rc4);

impl Rc4 {
    fn new(label: &[u8], secret: &[u8; PUBLIC_BYTES], info_hash: &[u8; 20]) -> Option<Self> {
        let key = digest(&[label, secret, info_hash]);
        let mut cipher = rc4::Rc4::new_from_slice(&key).ok()?;
        cipher.apply_keystream(&mut [0; DISCARDED_BYTES]);
        Some(Self(cipher))
    }

    /// Enciphers or deciphers the next octets.
    pub fn apply(&mut self, octets: &mut [u8]) {
        self.0.apply_keystream(octets);
    }
}

impl fmt::Debug for Rc4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rc4")
    }
}

/// The ciphers of a connection.
#[derive(Debug)]
pub struct Ciphers {
    /// Of what comes.
    pub incoming: Rc4,
    /// Of what leaves.
    pub outgoing: Rc4,
}

/// How a handshake ended well.
#[derive(Debug)]
pub struct Outcome {
    /// What follows is enciphered so, or is in the clear.
    pub ciphers: Option<Ciphers>,
    /// What has come behind the handshake, in the clear.
    pub early: Vec<u8>,
    /// The torrent that both mean, as the caller calls it; `None` where the peer began with BitTorrent's handshake, which will say.
    pub info_hash: Option<[u8; 20]>,
}

/// What is not to be guessed.
#[derive(Clone, Debug)]
pub struct Secrets {
    /// The private number, of a cryptographic generator.
    pub private: [u8; PRIVATE_BYTES],
    /// Random octets, at most [`PADDING_MAX`].
    pub padding: Vec<u8>,
}

#[derive(Debug)]
enum Stage {
    /// Waiting for the peer's public number.
    Public,
    /// The side that opened: looking for the zeros.
    Zeros([u8; VC_BYTES], Ciphers),
    /// The side that was called: looking for the hash that ends the padding.
    Mark([u8; PUBLIC_BYTES]),
    /// Reading what is offered or selected.
    Terms(Ciphers),
    Over,
}

/// One side of a handshake: handed octets, and asked for octets.
#[derive(Debug)]
pub struct Handshake {
    /// What the caller may mean; what the other side means, once that is known, alone.
    names: Vec<[u8; 20]>,
    accept: Accept,
    /// Where both are possible, in the clear.
    prefers_clear: bool,
    secrets: Secrets,
    opens: bool,
    stage: Stage,
    input: Vec<u8>,
    /// What has been deciphered of the terms.
    clear: Vec<u8>,
    output: Vec<u8>,
}

impl Handshake {
    /// The side that opens the connection.
    #[must_use]
    pub fn open(info_hash: [u8; 20], accept: Accept, secrets: Secrets) -> Self {
        let mut this = Self::new(vec![info_hash], accept, secrets, true);
        this.say_public();
        this
    }

    /// The side that was called, by one of these names of torrents; a hybrid one has two. Peers that begin in the clear are noticed.
    #[must_use]
    pub fn answer(names: Vec<[u8; 20]>, accept: Accept, secrets: Secrets) -> Self {
        Self::new(names, accept, secrets, false)
    }

    /// The side that was called selects, of a caller that offers both, what follows in the clear (as libtorrent does by itself).
    #[must_use]
    pub fn in_the_clear_if(self, prefers_clear: bool) -> Self {
        Self { prefers_clear, ..self }
    }

    fn new(names: Vec<[u8; 20]>, accept: Accept, secrets: Secrets, opens: bool) -> Self {
        let (prefers_clear, stage) = (false, Stage::Public);
        let (input, clear, output) = (Vec::new(), Vec::new(), Vec::new());
        Self { names, accept, prefers_clear, secrets, opens, stage, input, clear, output }
    }

    fn info_hash(&self) -> Result<[u8; 20], Error> {
        self.names.first().copied().ok_or(Error::Torrent)
    }

    /// What is to be sent now.
    pub fn take_output(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.output)
    }

    /// Octets came. `None` as long as more are needed.
    ///
    /// # Errors
    /// [`Error`]; the connection is of no use.
    pub fn receive(&mut self, octets: &[u8]) -> Result<Option<Outcome>, Error> {
        self.input.extend_from_slice(octets);
        if !self.opens && matches!(self.stage, Stage::Public) {
            let known = self.input.len().min(PROTOCOL.len());
            if self.input[..known] == PROTOCOL[..known] {
                let is_plain = known == PROTOCOL.len();
                let early = if is_plain { core::mem::take(&mut self.input) } else { Vec::new() };
                return Ok(is_plain.then_some(Outcome { ciphers: None, early, info_hash: None }));
            }
        }
        loop {
            let (stage, is_further) = match core::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Public => self.on_public()?,
                Stage::Zeros(sought, ciphers) => match self.find(&sought)? {
                    true => (Stage::Terms(ciphers), true),
                    false => (Stage::Zeros(sought, ciphers), false),
                },
                Stage::Mark(secret) => self.on_mark(secret)?,
                Stage::Terms(ciphers) if self.opens => return self.on_selection(ciphers),
                Stage::Terms(ciphers) => return self.on_offer(ciphers),
                Stage::Over => (Stage::Over, false),
            };
            self.stage = stage;
            if !is_further {
                return Ok(None);
            }
        }
    }

    fn say_public(&mut self) {
        let public = power(&U768::from_u8(2), &self.secrets.private);
        self.output.extend_from_slice(&public);
        self.output.extend_from_slice(&self.secrets.padding);
    }

    fn ciphers(&self, secret: &[u8; PUBLIC_BYTES]) -> Result<Ciphers, Error> {
        let info_hash = self.info_hash()?;
        let cipher = |label| Rc4::new(label, secret, &info_hash).ok_or(Error::Form);
        let (opener, other) = (cipher(b"keyA")?, cipher(b"keyB")?);
        let (outgoing, incoming) = if self.opens { (opener, other) } else { (other, opener) };
        Ok(Ciphers { incoming, outgoing })
    }

    fn on_public(&mut self) -> Result<(Stage, bool), Error> {
        let Some(public) = self.input.first_chunk::<PUBLIC_BYTES>().copied() else {
            return Ok((Stage::Public, false));
        };
        self.input.drain(..PUBLIC_BYTES);
        let theirs = U768::from_be_slice(&public);
        // Zero, one and numbers beyond the prime would make a secret that everybody knows.
        if theirs <= U768::ONE || theirs >= PRIME {
            return Err(Error::Lost);
        }
        let secret = power(&theirs, &self.secrets.private);
        if !self.opens {
            self.say_public();
            return Ok((Stage::Mark(secret), true));
        }
        let mut ciphers = self.ciphers(&secret)?;
        self.output.extend_from_slice(&digest(&[b"req1", &secret]));
        self.output.extend_from_slice(&torrent_mark(&self.info_hash()?, &digest(&[b"req3", &secret])));
        // The zeros, what is offered, no padding and no payload.
        let mut offer = [0; VC_BYTES + 8];
        offer[VC_BYTES..VC_BYTES + 4].copy_from_slice(&self.accept.0.to_be_bytes());
        ciphers.outgoing.apply(&mut offer);
        self.output.extend_from_slice(&offer);
        let mut sought = [0; VC_BYTES];
        ciphers.incoming.apply(&mut sought);
        Ok((Stage::Zeros(sought, ciphers), true))
    }

    /// Takes everything up to the end of `sought` off the input, once it is there.
    fn find(&mut self, sought: &[u8]) -> Result<bool, Error> {
        let places = self.input.windows(sought.len()).take(PADDING_MAX + 1);
        match places.into_iter().position(|window| window == sought) {
            Some(at) => {
                self.input.drain(..at + sought.len());
                Ok(true)
            }
            None if self.input.len() >= PADDING_MAX + sought.len() => Err(Error::Lost),
            None => Ok(false),
        }
    }

    fn on_mark(&mut self, secret: [u8; PUBLIC_BYTES]) -> Result<(Stage, bool), Error> {
        // The hash of the torrent follows at once: both are taken together.
        let mark = digest(&[b"req1", &secret]);
        let at = self.input.windows(mark.len()).take(PADDING_MAX + 1).position(|window| window == mark);
        let Some(torrent) = at.and_then(|at| self.input.get(at + 20..)?.first_chunk::<20>().copied()) else {
            let is_lost = at.is_none() && self.input.len() >= PADDING_MAX + mark.len();
            return if is_lost { Err(Error::Lost) } else { Ok((Stage::Mark(secret), false)) };
        };
        let veil = digest(&[b"req3", &secret]);
        let meant = self.names.iter().find(|name| torrent == torrent_mark(name, &veil)).copied();
        self.names = vec![meant.ok_or(Error::Torrent)?];
        self.input.drain(..at.unwrap_or_default() + 40);
        Ok((Stage::Terms(self.ciphers(&secret)?), true))
    }

    /// Deciphers until there are `until` octets of the terms; whether there are.
    fn decipher(&mut self, until: usize, cipher: &mut Rc4) -> bool {
        let missing = until.saturating_sub(self.clear.len()).min(self.input.len());
        let start = self.clear.len();
        self.clear.extend(self.input.drain(..missing));
        cipher.apply(&mut self.clear[start..]);
        self.clear.len() >= until
    }

    /// The number of two octets at a place of the terms.
    fn short(&self, at: usize) -> usize {
        self.clear.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |n| u16::from_be_bytes(*n).into())
    }

    fn word(&self, at: usize) -> u32 {
        self.clear.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |n| u32::from_be_bytes(*n))
    }

    /// What was selected, and padding.
    fn on_selection(&mut self, mut ciphers: Ciphers) -> Result<Option<Outcome>, Error> {
        let whole = self.decipher(6, &mut ciphers.incoming).then(|| 6 + self.short(4));
        if whole.is_some_and(|whole| whole > 6 + PADDING_MAX) {
            return Err(Error::Lost);
        }
        if !whole.is_some_and(|whole| self.decipher(whole, &mut ciphers.incoming)) {
            self.stage = Stage::Terms(ciphers);
            return Ok(None);
        }
        let select = self.word(0);
        if select.count_ones() != 1 || select & self.accept.0 == 0 {
            return Err(Error::Form);
        }
        Ok(Some(self.outcome(Accept(select), ciphers, Vec::new())))
    }

    /// Zeros, what is offered, padding, and the first octets of what follows.
    fn on_offer(&mut self, mut ciphers: Ciphers) -> Result<Option<Outcome>, Error> {
        let Some(early) = self.read_offer(&mut ciphers.incoming)? else {
            self.stage = Stage::Terms(ciphers);
            return Ok(None);
        };
        let both = self.word(VC_BYTES) & self.accept.0;
        let order =
            if self.prefers_clear { [Accept::PLAIN, Accept::RC4] } else { [Accept::RC4, Accept::PLAIN] };
        let select = order.into_iter().find(|one| both & one.0 != 0).unwrap_or(Accept(0));
        if select.0 == 0 {
            return Err(Error::Form);
        }
        let mut terms = vec![0; VC_BYTES + 6];
        terms[VC_BYTES..VC_BYTES + 4].copy_from_slice(&select.0.to_be_bytes());
        ciphers.outgoing.apply(&mut terms);
        self.output.extend_from_slice(&terms);
        Ok(Some(self.outcome(select, ciphers, early)))
    }

    fn read_offer(&mut self, cipher: &mut Rc4) -> Result<Option<Vec<u8>>, Error> {
        if !self.decipher(VC_BYTES + 6, cipher) {
            return Ok(None);
        }
        let padding = self.short(VC_BYTES + 4);
        if self.clear[..VC_BYTES] != [0; VC_BYTES] || padding > PADDING_MAX {
            return Err(Error::Lost);
        }
        let at = VC_BYTES + 6 + padding;
        if !self.decipher(at + 2, cipher) || !self.decipher(at + 2 + self.short(at), cipher) {
            return Ok(None);
        }
        Ok(Some(self.clear[at + 2..].to_vec()))
    }

    fn outcome(&mut self, select: Accept, mut ciphers: Ciphers, mut early: Vec<u8>) -> Outcome {
        let mut rest = core::mem::take(&mut self.input);
        if select == Accept::RC4 {
            ciphers.incoming.apply(&mut rest);
        }
        early.extend_from_slice(&rest);
        Outcome {
            ciphers: (select == Accept::RC4).then_some(ciphers),
            early,
            info_hash: self.names.first().copied(),
        }
    }
}

fn digest(parts: &[&[u8]]) -> [u8; 20] {
    let mut digest = Sha1::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().into()
}

/// What names the torrent to whoever knows it, behind a veil that both sides make of their secret.
fn torrent_mark(info_hash: &[u8; 20], veil: &[u8; 20]) -> [u8; 20] {
    let torrent = digest(&[b"req2", info_hash]);
    core::array::from_fn(|at| torrent[at] ^ veil[at])
}

/// `base` to the power of a private number, modulo the prime; in constant time.
fn power(base: &U768, private: &[u8; PRIVATE_BYTES]) -> [u8; PUBLIC_BYTES] {
    let mut exponent = [0; PUBLIC_BYTES];
    exponent[PUBLIC_BYTES - PRIVATE_BYTES..].copy_from_slice(private);
    let params = FixedMontyParams::new(ODD_PRIME);
    let power = FixedMontyForm::new(base, &params)
        .pow_bounded_exp(&U768::from_be_slice(&exponent), 8 * PRIVATE_BYTES as u32);
    let mut out = [0; PUBLIC_BYTES];
    out.copy_from_slice(&power.retrieve().to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(seed: u8, padding: usize) -> Secrets {
        Secrets { private: core::array::from_fn(|at| seed ^ at as u8), padding: vec![seed; padding] }
    }

    /// Lets two sides talk in portions, and says how both ended.
    fn talk(
        offered: Accept,
        accepted: Accept,
        terms: ([usize; 2], usize),
    ) -> Result<(Outcome, Outcome), Error> {
        let a = Handshake::open([7; 20], offered, secrets(1, terms.0[0]));
        let b = Handshake::answer(vec![[7; 20]], accepted, secrets(2, terms.0[1]));
        talk_between(a, b, terms.1)
    }

    fn talk_between(mut a: Handshake, mut b: Handshake, portion: usize) -> Result<(Outcome, Outcome), Error> {
        let (mut to_b, mut to_a, mut ended) = (Vec::new(), Vec::new(), (None, None));
        for _ in 0..10_000 {
            to_b.extend(a.take_output());
            to_a.extend(b.take_output());
            let (n, m) = (to_b.len().min(portion), to_a.len().min(portion));
            if ended.1.is_none() {
                let part: Vec<u8> = to_b.drain(..n).collect();
                ended.1 = b.receive(&part)?;
            }
            let part: Vec<u8> = to_a.drain(..m).collect();
            if ended.0.is_none() {
                ended.0 = a.receive(&part)?;
            }
            if let (Some(_), Some(_)) = &ended {
                break;
            }
        }
        Ok((ended.0.unwrap(), ended.1.unwrap()))
    }

    #[test]
    fn both_sides_come_to_the_same_ciphers_in_every_cut() {
        for (paddings, portion) in [([0, 0], 1), ([512, 512], 7), ([3, 500], 4096), ([511, 1], 96)] {
            let (a, b) = talk(Accept::EITHER, Accept::EITHER, (paddings, portion)).unwrap();
            let (mut a, mut b) = (a.ciphers.unwrap(), b.ciphers.unwrap());
            for (from, to) in [(&mut a.outgoing, &mut b.incoming), (&mut b.outgoing, &mut a.incoming)] {
                let mut octets = *b"what is said";
                from.apply(&mut octets);
                assert_ne!(&octets, b"what is said");
                to.apply(&mut octets);
                assert_eq!(&octets, b"what is said");
            }
        }
    }

    #[test]
    fn who_is_offered_both_may_take_the_clear() {
        for (offered, is_clear) in [(Accept::EITHER, true), (Accept::PLAIN, true), (Accept::RC4, false)] {
            let a = Handshake::open([7; 20], offered, secrets(1, 3));
            let b = Handshake::answer(vec![[7; 20]], Accept::EITHER, secrets(2, 5)).in_the_clear_if(true);
            let (a, b) = talk_between(a, b, 50).unwrap();
            assert_eq!((a.ciphers.is_none(), b.ciphers.is_none()), (is_clear, is_clear), "{offered:?}");
        }
    }

    #[test]
    fn what_both_accept_is_taken() {
        let (a, b) = talk(Accept::EITHER, Accept::PLAIN, ([9, 9], 50)).unwrap();
        assert!(a.ciphers.is_none() && b.ciphers.is_none() && b.info_hash == Some([7; 20]));
        assert_eq!(talk(Accept::RC4, Accept::PLAIN, ([9, 9], 50)).unwrap_err(), Error::Form);
        assert_eq!(talk(Accept::PLAIN, Accept::RC4, ([9, 9], 50)).unwrap_err(), Error::Form);
    }

    #[test]
    fn peers_in_the_clear_and_of_other_torrents_are_told() {
        let mut b = Handshake::answer(vec![[7; 20]], Accept::EITHER, secrets(2, 0));
        assert!(b.receive(&PROTOCOL[..5]).unwrap().is_none());
        let outcome = b.receive(&PROTOCOL[5..]).unwrap().unwrap();
        assert_eq!((outcome.early, outcome.info_hash), (PROTOCOL.to_vec(), None));
        let mut a = Handshake::open([8; 20], Accept::EITHER, secrets(1, 0));
        let mut b = Handshake::answer(vec![[7; 20]], Accept::EITHER, secrets(2, 0));
        assert!(b.receive(&a.take_output()).unwrap().is_none());
        assert!(a.receive(&b.take_output()).unwrap().is_none());
        assert_eq!(b.receive(&a.take_output()).unwrap_err(), Error::Torrent);
    }

    #[test]
    fn a_caller_is_understood_by_each_of_several_names() {
        for (called, is_known) in [(7, true), (8, true), (9, false)] {
            let mut a = Handshake::open([called; 20], Accept::RC4, secrets(1, 0));
            let mut b = Handshake::answer(vec![[7; 20], [8; 20]], Accept::RC4, secrets(2, 0));
            assert!(b.receive(&a.take_output()).unwrap().is_none());
            assert!(a.receive(&b.take_output()).unwrap().is_none());
            match b.receive(&a.take_output()) {
                Ok(outcome) => {
                    let outcome = outcome.unwrap();
                    assert!(is_known && outcome.ciphers.is_some());
                    assert_eq!(outcome.info_hash, Some([called; 20]));
                }
                Err(error) => assert!(!is_known && error == Error::Torrent),
            }
        }
    }

    #[test]
    fn nonsense_ends_after_the_longest_padding() {
        for public in [[0; PUBLIC_BYTES], [0xff; PUBLIC_BYTES]] {
            let mut b = Handshake::answer(vec![[7; 20]], Accept::EITHER, secrets(2, 0));
            assert_eq!(b.receive(&public).unwrap_err(), Error::Lost);
        }
        let mut b = Handshake::answer(vec![[7; 20]], Accept::EITHER, secrets(2, 0));
        let error = (0..700).find_map(|_| b.receive(&[5]).err());
        assert_eq!(error, Some(Error::Lost));
    }

    #[test]
    fn powers_are_those_of_the_prime() {
        // 2^769 mod P = 2 * (2^768 - P), computed with Python's pow.
        let mut private = [0; PRIVATE_BYTES];
        private[18..].copy_from_slice(&769_u16.to_be_bytes());
        let power = power(&U768::from_u8(2), &private);
        assert_eq!(power[..8], [0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00]);
        assert_eq!(power[88..], [0xff, 0xff, 0xff, 0xff, 0xff, 0xed, 0xf5, 0x3a]);
    }
}
