//! `librqbit-utp`, with its defaults, or for many idle connections.

use librqbit_utp::{SocketOpts, UtpSocketUdp, UtpSocketUdpOpts};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

pub(super) async fn bind(ip: IpAddr) -> io::Result<Arc<UtpSocketUdp>> {
    UtpSocketUdp::new_udp(SocketAddr::new(ip, 0)).await.map_err(io::Error::other)
}

pub(super) async fn bind_patiently(ip: IpAddr, connections: usize) -> io::Result<Arc<UtpSocketUdp>> {
    let options = SocketOpts {
        max_live_vsocks: NonZeroUsize::new(connections),
        remote_inactivity_timeout: Some(Duration::from_secs(3600)),
        ..SocketOpts::default()
    };
    let addr = SocketAddr::new(ip, 0);
    UtpSocketUdp::new_udp_with_opts(addr, options, UtpSocketUdpOpts::default())
        .await
        .map_err(io::Error::other)
}
