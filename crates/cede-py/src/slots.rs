//! Controllers that are written in Python, by number: what builds a controller is a function without a memory of its own, which is
//! told the number as a parameter.

use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Controllers in use.
static SLOTS: Mutex<BTreeMap<u32, Slot>> = Mutex::new(BTreeMap::new());
/// Names that were given away: a registry's are static.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// What is needed to build a controller, and where it puts what went wrong.
pub struct Slot {
    class: Py<PyAny>,
    fault: Fault,
}

impl Slot {
    /// One more connection wants it.
    pub fn handles(&self, py: Python<'_>) -> (Py<PyAny>, Fault) {
        (self.class.clone_ref(py), self.fault.clone())
    }
}

/// The first error that a controller raised.
#[derive(Clone, Default)]
pub struct Fault(Arc<Mutex<Option<PyErr>>>);

impl Fault {
    pub fn put(&self, error: PyErr) {
        lock(&self.0).get_or_insert(error);
    }

    pub fn is_there(&self) -> bool {
        lock(&self.0).is_some()
    }

    pub fn take(&self) -> Option<PyErr> {
        lock(&self.0).take()
    }
}

/// A controller's place; it is free again when this is dropped.
pub struct Place(pub u32);

impl Place {
    pub fn of(class: Py<PyAny>, fault: Fault) -> Self {
        let mut slots = lock(&SLOTS);
        let number = slots.last_key_value().map_or(0, |(last, _)| last + 1);
        slots.insert(number, Slot { class, fault });
        Self(number)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&SLOTS).remove(&self.0);
    }
}

/// Looks at what has this number.
pub fn with<T>(number: u32, look: impl FnOnce(&Slot) -> T) -> Option<T> {
    lock(&SLOTS).get(&number).map(look)
}

/// A name that stays for good.
pub fn interned(name: &str) -> &'static str {
    let mut names = lock(&NAMES);
    if let Some(known) = names.get(name) {
        return known;
    }
    let new: &'static str = Box::leak(name.to_string().into_boxed_str());
    names.insert(new);
    new
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
