//! `librqbit-utp`, with its defaults.

use librqbit_utp::UtpSocketUdp;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

pub(super) async fn bind(ip: IpAddr) -> io::Result<Arc<UtpSocketUdp>> {
    UtpSocketUdp::new_udp(SocketAddr::new(ip, 0)).await.map_err(io::Error::other)
}
