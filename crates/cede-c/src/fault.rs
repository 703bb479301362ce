//! What goes wrong, as C hears of it: a value that says so, and a text for the thread that called.

use cede_real::blocking::Error;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Something has failed.
pub const ERROR: c_int = -1;
/// It took longer than it may.
pub const TIMEOUT: c_int = -2;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Why a call does not do what it should.
pub enum Fault {
    Said(String),
    TooLate,
}

impl Fault {
    pub const fn said(text: String) -> Self {
        Self::Said(text)
    }

    pub fn of(error: impl fmt::Display) -> Self {
        Self::Said(error.to_string())
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::TooLate => Self::TooLate,
            error => Self::of(error),
        }
    }
}

/// What a function gives where it fails, and where it took too long.
pub trait Failing {
    fn too_late(failed: Self) -> Self;
}

impl Failing for c_int {
    fn too_late(_: Self) -> Self {
        TIMEOUT
    }
}

impl Failing for isize {
    fn too_late(_: Self) -> Self {
        TIMEOUT as Self
    }
}

impl<T> Failing for *mut T {
    fn too_late(failed: Self) -> Self {
        failed
    }
}

impl Failing for () {
    fn too_late((): Self) -> Self {}
}

/// Does it, and remembers why where that fails. A panic must not leave Rust.
pub fn guarded<T: Failing>(failed: T, work: impl FnOnce() -> Result<T, Fault>) -> T {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => {
            remember("");
            value
        }
        Ok(Err(Fault::Said(text))) => {
            remember(&text);
            failed
        }
        Ok(Err(Fault::TooLate)) => {
            remember("it took longer than was allowed");
            T::too_late(failed)
        }
        Err(_) => {
            remember("this is a fault of cede's: a call panicked");
            failed
        }
    }
}

fn remember(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = text);
}

/// Why the last call of this thread failed.
pub fn last() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// A text of C's; `None` for NULL.
///
/// # Safety
/// It ends with 0, or is NULL.
pub unsafe fn text(at: *const c_char) -> Result<Option<String>, Fault> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().map(|text| Some(text.to_owned())).map_err(Fault::of)
}

/// What must not be NULL.
pub fn required<T>(value: Option<T>, name: &str) -> Result<T, Fault> {
    value.ok_or_else(|| Fault::said(format!("{name} is NULL")))
}
