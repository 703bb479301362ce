//! A path that loses and reorders.

use cede_units::Stream;
use std::net::SocketAddr;
use tokio::net::UdpSocket;

/// The type of a uTP packet, in the upper half of its first octet, that opens a connection.
const SYN: u8 = 4;

/// Passes datagrams between a caller, who opens a connection first, and `server`; loses 3 % of them and lets 5 % be overtaken.
/// Others are not heard: who ended a connection through an earlier socket with this port may still repeat its FIN.
pub async fn lossy_relay(socket: UdpSocket, server: SocketAddr) {
    let mut random = Stream::named(1, "relay");
    let (mut caller, mut held) = (None, None::<(Vec<u8>, SocketAddr)>);
    let mut buffer = vec![0; 65_536];
    loop {
        let (n, from) = socket.recv_from(&mut buffer).await.unwrap();
        if from != server && caller.is_none() && buffer[0] >> 4 == SYN {
            caller = Some(from);
        }
        let to = if from == server { caller } else { (caller == Some(from)).then_some(server) };
        let Some(to) = to.filter(|_| !random.chance(0.03)) else { continue };
        if held.is_none() && random.chance(0.05) {
            held = Some((buffer[..n].to_vec(), to));
            continue;
        }
        socket.send_to(&buffer[..n], to).await.unwrap();
        if random.chance(0.3)
            && let Some((octets, to)) = held.take()
        {
            socket.send_to(&octets, to).await.unwrap();
        }
    }
}
