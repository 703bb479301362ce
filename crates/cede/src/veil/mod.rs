//! Pseudonyms in place of addresses, wherever they are shown.

mod spelled;

use crate::failure::Failure;
use crate::interrupt;
use crate::screen;
use cede_meter::{KEY_BYTES, Pseudonyms};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Pseudonyms that are remembered, as finding one takes up to 128 ciphers.
const REMEMBERED_MAX: usize = 1 << 16;

/// Nothing, or pseudonyms.
#[derive(Debug, Default)]
pub struct Veil {
    pseudonyms: OnceCell<Pseudonyms>,
    remembered: RefCell<HashMap<IpAddr, IpAddr>>,
}

impl Veil {
    /// From now on addresses are shown under pseudonyms.
    pub fn put_on(&self, key_file: Option<&Path>) -> Result<(), Failure> {
        let key = key_file.map_or_else(fresh, read)?;
        // It is put on once.
        let _ = self.pseudonyms.set(Pseudonyms::new(&key));
        Ok(())
    }

    /// What addresses are shown under, if not as they are.
    pub fn pseudonyms(&self) -> Option<&Pseudonyms> {
        self.pseudonyms.get()
    }

    /// A file's name as it is shown where what was found is: with pseudonyms for the addresses in it.
    pub fn named<'a>(&self, name: Cow<'a, str>) -> Cow<'a, str> {
        match self.pseudonyms() {
            Some(_) => spelled::replaced(&name, |address| self.shown(address)).into(),
            None => name,
        }
    }

    /// What files are called; what of it is no Unicode has no place in JSON, and is shown as a sign for that.
    pub fn names<'a>(&self, files: &'a [PathBuf]) -> Vec<Cow<'a, str>> {
        files.iter().map(|path| self.named(path.to_string_lossy())).collect()
    }

    /// The address as it is shown.
    pub fn shown(&self, address: IpAddr) -> IpAddr {
        let Some(pseudonyms) = self.pseudonyms.get() else { return address };
        let mut remembered = self.remembered.borrow_mut();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        *remembered.entry(address).or_insert_with(|| pseudonyms.of(address))
    }
}

fn fresh() -> Result<[u8; KEY_BYTES], Failure> {
    let mut key = [0; KEY_BYTES];
    let told = |error| Failure::Failed(format!("the system gives no random key: {error}"));
    getrandom::fill(&mut key).map_err(told)?;
    Ok(key)
}

fn read(path: &Path) -> Result<[u8; KEY_BYTES], Failure> {
    let told = |error: std::io::Error| {
        let hint = "\n  a key is made with: head -c 32 /dev/urandom > key; chmod 400 key";
        Failure::of_system(
            format!("cannot read the key {}: {error}{hint}", screen::named(path)),
            error.kind(),
        )
    };
    let octets = interrupt::while_reading(|| std::fs::read(path)).map_err(told)?;
    let wrong = || {
        Failure::Usage(format!(
            "{} is no key: {KEY_BYTES} octets or {} hexadecimal digits are wanted",
            screen::named(path),
            2 * KEY_BYTES
        ))
    };
    octets.as_slice().try_into().ok().or_else(|| from_digits(octets.trim_ascii())).ok_or_else(wrong)
}

fn from_digits(digits: &[u8]) -> Option<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16);
    for (octet, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        *octet = (value(pair[0])? << 4 | value(pair[1])?) as u8;
    }
    Some(key)
}
