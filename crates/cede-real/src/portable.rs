//! In the place of what only Linux can do: everything here says that it cannot, and the callers have another way.

use crate::complaint::Complaint;
use crate::way::Way;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn send_gathered<S>(_: &S, _: Way, _: &[IoSlice<'_>], _: Option<u16>) -> io::Result<()> {
    unsupported()
}

pub(crate) fn disable_timestamps<S>(_: &S) -> io::Result<()> {
    unsupported()
}

pub(crate) fn path_mtu(_: IpAddr, _: SocketAddr) -> io::Result<u32> {
    unsupported()
}

pub(crate) fn next_complaint<S>(_: &S) -> io::Result<Option<Complaint>> {
    Err(io::ErrorKind::WouldBlock.into())
}

pub(crate) fn enable_complaints<S>(_: &S, _: bool) -> io::Result<()> {
    unsupported()
}

pub(crate) fn let_fragment<S>(_: &S, _: bool, _: bool) -> io::Result<()> {
    unsupported()
}
