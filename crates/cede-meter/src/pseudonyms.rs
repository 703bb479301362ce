//! Addresses replaced by others such that two which share a prefix of n bits still do, and no more than that.
//!
//! Source: Xu, Fan, Ammar, Moon, "Prefix-preserving IP address anonymization: measurement-based security evaluation and a
//! new cryptography-based scheme" (ICNP 2002), known as Crypto-PAn: each bit is turned by one bit of AES-128 over the bits
//! before it, filled up with a secret pad. The key has 32 octets, 16 for the cipher and 16 for the pad. IPv6 addresses go
//! the same way over 128 bits.
//!
//! **What it leaves out.** Ports, times and sizes stay as they are: whoever knows when somebody sent what can find them.
//! Whoever knows the true address behind a pseudonym learns the shared prefix of every other one.
//!
//! **How it was validated.** The addresses and key that the authors' program comes with; prefixes of random addresses
//! (below).

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Octets of a key.
pub const KEY_BYTES: usize = 32;

/// A keyed, prefix-preserving permutation of addresses.
#[derive(Clone)]
pub struct Pseudonyms {
    cipher: Aes128,
    pad: u128,
}

/// The key is nobody's business.
impl fmt::Debug for Pseudonyms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pseudonyms").finish_non_exhaustive()
    }
}

impl Pseudonyms {
    /// Pseudonyms under a key; the same key gives the same ones.
    #[must_use]
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        let (cipher_key, pad) = key.split_at(KEY_BYTES / 2);
        let half = |octets: &[u8]| <[u8; KEY_BYTES / 2]>::try_from(octets).unwrap_or_default();
        let cipher = Aes128::new(&half(cipher_key).into());
        let pad = encrypt(&cipher, u128::from_be_bytes(half(pad)));
        Self { cipher, pad }
    }

    /// The pseudonym of an address, of the same family.
    #[must_use]
    pub fn of(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(v4) => {
                let turned = self.turn(u128::from(v4.to_bits()) << 96, 32) >> 96;
                Ipv4Addr::from_bits(turned as u32).into()
            }
            IpAddr::V6(v6) => Ipv6Addr::from_bits(self.turn(v6.to_bits(), 128)).into(),
        }
    }

    /// Turns the upper `len` bits, each by what those before it say.
    fn turn(&self, address: u128, len: u32) -> u128 {
        (0..len).fold(address, |turned, at| {
            let before = !u128::MAX.checked_shr(at).unwrap_or(0);
            let bit = encrypt(&self.cipher, address & before | self.pad & !before) >> 127;
            turned ^ bit << (127 - at)
        })
    }
}

fn encrypt(cipher: &Aes128, block: u128) -> u128 {
    let mut octets = block.to_be_bytes().into();
    cipher.encrypt_block(&mut octets);
    u128::from_be_bytes(octets.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    /// Key and addresses of the sample that comes with Crypto-PAn 1.0.
    const KEY: [u8; 32] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131, 121, 121,
        101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];

    #[test]
    fn the_authors_sample_comes_out() {
        let pseudonyms = Pseudonyms::new(&KEY);
        for (address, pseudonym) in [
            ("128.11.68.132", "135.242.180.132"),
            ("129.118.74.4", "134.136.186.123"),
            ("130.132.252.244", "133.68.164.234"),
            ("141.223.7.43", "141.167.8.160"),
            ("141.233.145.108", "141.129.237.235"),
            ("152.163.225.39", "151.140.114.167"),
            ("156.29.3.236", "147.225.12.42"),
            ("165.247.96.84", "162.9.99.234"),
            ("166.107.77.190", "160.132.178.185"),
            ("192.102.249.13", "252.138.62.131"),
        ] {
            assert_eq!(pseudonyms.of(address.parse().unwrap()).to_string(), pseudonym, "{address}");
        }
    }

    #[test]
    fn shared_prefixes_stay_as_long_as_they_are() {
        let pseudonyms = Pseudonyms::new(&[7; 32]);
        let mut stream = Stream::named(1, "pseudonyms");
        let shared = |a: u128, b: u128| (a ^ b).leading_zeros();
        for round in 0..400 {
            let mut bits = || u128::from(stream.below(u64::MAX)) << 64 | u128::from(stream.below(u64::MAX));
            let (a, difference) = (bits(), bits() >> (round % 128));
            let of = |address: u128| match pseudonyms.of(Ipv6Addr::from_bits(address).into()) {
                IpAddr::V6(v6) => v6.to_bits(),
                IpAddr::V4(_) => panic!("of another family"),
            };
            assert_eq!(shared(a, a ^ difference), shared(of(a), of(a ^ difference)));
            assert_ne!(of(a), a, "in {round}");
        }
    }
}
