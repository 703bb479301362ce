//! Datagrams that the kernel dropped because a socket's receive buffer was full.
//!
//! Source: the column `drops` of `/proc/net/udp` and `udp6` (Linux, `udp4_format_sock`). Addresses stand there as
//! hexadecimal words in the machine's own octet order.

use std::fs;
use std::net::{IpAddr, SocketAddr};

/// How many datagrams the sockets bound to these addresses, in this network namespace, have lost to a full buffer;
/// `None` where the system does not say.
#[must_use]
pub fn overflows(addresses: &[SocketAddr]) -> Option<u64> {
    let tables = ["/proc/self/net/udp", "/proc/self/net/udp6"];
    let texts: Vec<String> = tables.iter().filter_map(|table| fs::read_to_string(table).ok()).collect();
    let wanted: Vec<String> = addresses.iter().map(column).collect();
    (!texts.is_empty()).then(|| texts.iter().map(|text| drops(text, &wanted)).sum())
}

/// The drops of the sockets of a table whose local address is wanted.
fn drops(table: &str, wanted: &[String]) -> u64 {
    let of_line = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let local = fields.nth(1)?;
        wanted.iter().any(|address| address == local).then(|| fields.next_back()?.parse::<u64>().ok())?
    };
    table.lines().skip(1).filter_map(of_line).sum()
}

/// An address as the table writes it.
fn column(address: &SocketAddr) -> String {
    let word = |octets: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(octets));
    let ip: String = match address.ip() {
        IpAddr::V4(ip) => word(ip.octets()),
        IpAddr::V6(ip) => ip.octets().as_chunks().0.iter().map(|chunk| word(*chunk)).collect(),
    };
    format!("{ip}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn what_a_full_socket_loses_is_found_in_the_system_s_table() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(full) = UdpSocket::bind(local) else {
                println!("SKIPPED for {local}: no such address here");
                continue;
            };
            let address = full.local_addr().unwrap();
            let Some(before) = overflows(&[address]) else {
                println!("SKIPPED: the system has no table of sockets");
                return;
            };
            assert_eq!(before, 0);
            socket2::SockRef::from(&full).set_recv_buffer_size(4096).unwrap();
            let sender = UdpSocket::bind(local).unwrap();
            for _ in 0..100 {
                sender.send_to(&[0; 1000], address).unwrap();
            }
            let lost = overflows(&[address]).unwrap();
            full.set_nonblocking(true).unwrap();
            let mut kept = 0;
            while full.recv_from(&mut [0; 1000]).is_ok() {
                kept += 1;
            }
            assert!(kept > 0 && lost + kept == 100, "{lost} lost, {kept} kept");
        }
    }

    #[test]
    fn lines_that_are_none_count_nothing() {
        let table = "head\n 1: 0100007F:1F90\nx\n\n 2: 0100007F:1F90 a b 17\n 3: 0100007F:1F90 a b no\n";
        assert_eq!(drops(table, &["0100007F:1F90".to_string()]), 17);
        assert_eq!(drops(table, &["0100007F:1F91".to_string()]), 0);
    }
}
