//! uTP for C: what `include/cede.h` declares, where each function is documented.
//!
//! Handles are boxes that C holds the address of. Calls block the caller; the work is done by [`cede_real::blocking`]. A panic ends a
//! call with an error, and nothing else.
//!
//! **Invariant:** nothing here knows uTP: it turns addresses, lengths and texts of C into calls of it.

mod choice;
mod fault;
mod status;

use cede_real::blocking::{Patience, Socket, Stream, socket_closed};
use fault::{Fault, guarded, required, text};
use status::Status;
use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

/// So many milliseconds at most; for ever where they are negative.
fn patience(timeout_ms: c_int) -> Patience<'static> {
    u64::try_from(timeout_ms).ok().map(Duration::from_millis).into()
}

/// See `cede.h`.
#[unsafe(no_mangle)]
pub extern "C" fn cede_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// See `cede.h`.
#[unsafe(no_mangle)]
pub extern "C" fn cede_error() -> *const c_char {
    fault::last()
}

/// See `cede.h`.
///
/// # Safety
/// `address` is a text that ends with 0; `controller` is one, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cede_bind(address: *const c_char, controller: *const c_char) -> *mut Socket {
    // SAFETY: as the caller promises.
    let (address, controller) = unsafe { (text(address), text(controller)) };
    guarded(std::ptr::null_mut(), || {
        let stream = choice::stream(controller?.as_deref())?.unwrap_or_default();
        let socket = Socket::bind(&required(address?, "address")?, stream)?;
        Ok(Box::into_raw(Box::new(socket)))
    })
}

/// See `cede.h`.
///
/// # Safety
/// `socket` comes from [`cede_bind`] and was not freed, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cede_port(socket: *const Socket) -> c_int {
    // SAFETY: as the caller promises.
    let socket = unsafe { socket.as_ref() };
    guarded(fault::ERROR, || Ok(required(socket, "socket")?.local_addr().port().into()))
}

/// See `cede.h`.
///
/// # Safety
/// `socket` comes from [`cede_bind`] and was not freed, or is NULL; no other call is using it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cede_socket_free(socket: *mut Socket) {
    if !socket.is_null() {
        // SAFETY: as the caller promises: it was made by `Box::into_raw`, and nobody else has it.
        let socket = unsafe { Box::from_raw(socket) };
        guarded((), || {
            drop(socket);
            Ok(())
        });
    }
}

/// See `cede.h`.
///
/// # Safety
/// `socket` comes from [`cede_bind`] and was not freed; `peer` is a text that ends with 0; `controller` is one, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cede_connect(
    socket: *mut Socket,
    peer: *const c_char,
    controller: *const c_char,
    timeout_ms: c_int,
) -> *mut Stream {
    // SAFETY: as the caller promises.
    let (socket, peer, controller) = unsafe { (socket.as_ref(), text(peer), text(controller)) };
    guarded(std::ptr::null_mut(), || {
        let socket = required(socket, "socket")?;
        let (peer, config) = (required(peer?, "peer")?, choice::stream(controller?.as_deref())?);
        let stream = socket.connect(&peer, config.as_ref(), patience(timeout_ms))?;
        Ok(Box::into_raw(Box::new(stream)))
    })
}

/// See `cede.h`.
///
/// # Safety
/// `socket` comes from [`cede_bind`] and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cede_accept(socket: *mut Socket, timeout_ms: c_int) -> *mut Stream {
    // SAFETY: as the caller promises.
    let socket = unsafe { socket.as_ref() };
    guarded(std::ptr::null_mut(), || {
        let stream = required(socket, "socket")?.accept(patience(timeout_ms))?;
        Ok(Box::into_raw(Box::new(stream)))
    })
}

/// See `cede.h`.
///
/// # Safety
/// `stream` comes from [`cede_connect`] or [`cede_accept`] and was not freed; `size` octets at `buffer` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cede_read(
    stream: *mut Stream,
    buffer: *mut c_void,
    size: usize,
    timeout_ms: c_int,
) -> isize {
    // SAFETY: as the caller promises. It is never read before it is written: `read` fills it from its beginning.
    let (stream, buffer) = unsafe {
        let room = (!buffer.is_null()).then(|| std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size));
        (stream.as_ref(), room)
    };
    guarded(fault::ERROR as isize, || {
        let (stream, buffer) = (required(stream, "stream")?, required(buffer, "buffer")?);
        Ok(stream.read(buffer, patience(timeout_ms))? as isize)
    })
}

/// See `cede.h`.
///
/// # Safety
/// `stream` comes from [`cede_connect`] or [`cede_accept`] and was not freed; `size` octets at `octets` can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cede_write(
    stream: *mut Stream,
    octets: *const c_void,
    size: usize,
    timeout_ms: c_int,
) -> isize {
    // SAFETY: as the caller promises.
    let (stream, octets) = unsafe {
        let octets = (!octets.is_null()).then(|| std::slice::from_raw_parts(octets.cast::<u8>(), size));
        (stream.as_ref(), octets)
    };
    guarded(fault::ERROR as isize, || {
        let (stream, octets) = (required(stream, "stream")?, required(octets, "octets")?);
        Ok(stream.write(octets, patience(timeout_ms))? as isize)
    })
}

/// See `cede.h`.
///
/// # Safety
/// `stream` comes from [`cede_connect`] or [`cede_accept`] and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cede_finish(stream: *mut Stream, timeout_ms: c_int) -> c_int {
    // SAFETY: as the caller promises.
    let stream = unsafe { stream.as_ref() };
    guarded(fault::ERROR, || {
        required(stream, "stream")?.finish(patience(timeout_ms))?;
        Ok(0)
    })
}

/// See `cede.h`.
///
/// # Safety
/// `stream` comes from [`cede_connect`] or [`cede_accept`] and was not freed, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cede_abort(stream: *mut Stream) {
    // SAFETY: as the caller promises.
    let stream = unsafe { stream.as_ref() };
    guarded((), || {
        required(stream, "stream")?.abort();
        Ok(())
    });
}

/// See `cede.h`.
///
/// # Safety
/// `stream` comes from [`cede_connect`] or [`cede_accept`] and was not freed, or is NULL; no other call is using it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cede_stream_free(stream: *mut Stream) {
    if !stream.is_null() {
        // SAFETY: as the caller promises: it was made by `Box::into_raw`, and nobody else has it.
        let stream = unsafe { Box::from_raw(stream) };
        guarded((), || {
            drop(stream);
            Ok(())
        });
    }
}

/// See `cede.h`.
///
/// # Safety
/// `stream` comes from [`cede_connect`] or [`cede_accept`] and was not freed; `size` octets at `text` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cede_peer(stream: *const Stream, text: *mut c_char, size: usize) -> c_int {
    // SAFETY: as the caller promises. It is written before it is read.
    let (stream, room) = unsafe {
        let room = (!text.is_null()).then(|| std::slice::from_raw_parts_mut(text.cast::<u8>(), size));
        (stream.as_ref(), room)
    };
    guarded(fault::ERROR, || {
        let (stream, room) = (required(stream, "stream")?, required(room, "text")?);
        let peer = stream.view().peer_addr().to_string();
        let Some((room, _)) = room.split_at_mut_checked(peer.len() + 1) else {
            return Err(Fault::said(format!(
                "{peer} and its end take {} octets, not {size}",
                peer.len() + 1
            )));
        };
        room[..peer.len()].copy_from_slice(peer.as_bytes());
        room[peer.len()] = 0;
        Ok(0)
    })
}

/// See `cede.h`.
///
/// # Safety
/// `stream` comes from [`cede_connect`] or [`cede_accept`] and was not freed; a status at `status` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cede_get_status(stream: *const Stream, status: *mut Status) -> c_int {
    // SAFETY: as the caller promises.
    let (stream, status) = unsafe { (stream.as_ref(), status.as_mut()) };
    guarded(fault::ERROR, || {
        let (stream, status) = (required(stream, "stream")?, required(status, "status")?);
        *status = Status::of(stream.view()).ok_or_else(socket_closed)?;
        Ok(0)
    })
}
