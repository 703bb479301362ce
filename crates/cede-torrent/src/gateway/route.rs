//! By which address and through which gateway the Internet is reached.

use crate::origin::Origin;
use cede_bt::Family;
use cede_bt::gateway::{PORT, is_behind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The address that we have on the way to the Internet, where a gateway is to be asked to lead others to it: of IPv4 a private one, of IPv6 one
/// that others can call.
pub(super) fn outward(origin: Origin, family: Family) -> Option<IpAddr> {
    let host = origin.outward(family)?;
    let is_to_be_led_to = match host {
        IpAddr::V4(host) => is_behind(host),
        IpAddr::V6(host) => is_global(host),
    };
    is_to_be_led_to.then_some(host)
}

/// Of the range that is given out to be reached from everywhere (RFC 4291, 2.4).
const fn is_global(host: Ipv6Addr) -> bool {
    host.segments()[0] >> 13 == 1
}

/// The default gateway of the interface that has this address, with the port that it listens at.
pub(super) fn default_gateway(host: IpAddr) -> Option<SocketAddr> {
    let interfaces = if_addrs::get_if_addrs().ok()?;
    let interface = interfaces.into_iter().find(|interface| interface.ip() == host)?;
    let table = |name| std::fs::read_to_string(name).ok();
    if host.is_ipv4() {
        let gateway = gateway_in(&table("/proc/net/route")?, &interface.name)?;
        return Some(SocketAddr::from((gateway, PORT)));
    }
    let gateway = gateway_v6_in(&table("/proc/net/ipv6_route")?, &interface.name)?;
    // Most are addresses of their link alone.
    Some(SocketAddrV6::new(gateway, PORT, 0, interface.index.unwrap_or(0)).into())
}

/// Linux's table of routes: interface, destination, gateway, flags, references, use, metric, mask. Numbers are as they lie in memory.
fn gateway_in(table: &str, interface: &str) -> Option<Ipv4Addr> {
    let mut best = None;
    for line in table.lines().skip(1) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, "00000000", gateway, _, _, _, metric, "00000000", ..] = words[..] else { continue };
        let number = u32::from_str_radix(gateway, 16).ok().filter(|number| *number > 0 && name == interface);
        let route = number.and_then(|number| Some((metric.parse::<u32>().ok()?, number)));
        best = best.into_iter().chain(route).min();
    }
    best.map(|(_, number): (u32, u32)| Ipv4Addr::from(number.to_ne_bytes()))
}

/// The same of IPv6: destination, its length, source, its length, gateway, metric, references, use, flags, interface. Numbers are written as on
/// the wire.
fn gateway_v6_in(table: &str, interface: &str) -> Option<Ipv6Addr> {
    let routes = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "00", _, "00", gateway, metric, _, _, _, name] = words[..] else { return None };
        let gateway = u128::from_str_radix(gateway, 16).ok().filter(|gateway| *gateway > 0)?;
        let metric = u32::from_str_radix(metric, 16).ok()?;
        (name == interface).then_some((metric, gateway))
    });
    routes.min().map(|(_, gateway)| Ipv6Addr::from(gateway))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_gateway_is_that_of_the_interface_with_the_least_metric() {
        let line = |words: [&str; 4]| {
            let [name, destination, gateway, metric] = words;
            format!("{name}\t{destination}\t{gateway}\t0003\t0\t0\t{metric}\t00000000\t0\t0\t0\n")
        };
        let gateway = |last: u8| format!("{:08X}", u32::from_ne_bytes([192, 168, 1, last]));
        let table = [
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n".to_owned(),
            line(["eth0", "00000000", &gateway(9), "600"]),
            line(["eth0", "00000000", &gateway(1), "100"]),
            line(["tun0", "00000000", "00000000", "1"]),
            line(["wlan0", "00000000", &gateway(2), "1"]),
            line(["eth0", "0001A8C0", &gateway(3), "0"]),
            "eth0 nonsense\n".to_owned(),
        ]
        .concat();
        let of = |interface| gateway_in(&table, interface);
        assert_eq!(of("eth0"), Some([192, 168, 1, 1].into()));
        assert_eq!(of("wlan0"), Some([192, 168, 1, 2].into()));
        assert_eq!((of("tun0"), of("lo")), (None, None));
    }

    #[test]
    fn so_it_is_for_ipv6() {
        let none = "0".repeat(32);
        let line = |prefix: &str, gateway: &str, metric: &str, interface: &str| {
            format!(
                "{none} {prefix} {none} 00 {gateway} {metric} 00000001 00000000 00000003 {interface:>8}\n"
            )
        };
        let near = |last: u8| format!("fe80{:028x}", last);
        let table = [
            line("00", &near(9), "00000400", "eth0"),
            line("00", &near(1), "00000064", "eth0"),
            line("40", &near(2), "00000001", "eth0"),
            line("00", &none, "00000001", "tun0"),
            line("00", &near(3), "00000001", "wlan0"),
            "nonsense eth0\n".to_owned(),
        ]
        .concat();
        let of = |interface| gateway_v6_in(&table, interface);
        assert_eq!(of("eth0"), Some("fe80::1".parse().unwrap()));
        assert_eq!(of("wlan0"), Some("fe80::3".parse().unwrap()));
        assert_eq!((of("tun0"), of("lo")), (None, None));
        for (host, is) in [("2001:db8::1", true), ("fd00::1", false), ("fe80::1", false), ("::1", false)] {
            assert_eq!(is_global(host.parse().unwrap()), is, "{host}");
        }
    }

    #[test]
    fn only_who_is_behind_a_router_asks_for_a_port() {
        for host in ["10.1.2.3", "192.168.0.2", "172.20.0.1", "100.64.0.1", "100.127.9.9"] {
            assert!(is_behind(host.parse().unwrap()), "{host}");
        }
        for host in ["127.0.0.1", "203.0.113.5", "100.128.0.1", "100.63.0.1", "169.254.1.1", "0.0.0.0"] {
            assert!(!is_behind(host.parse().unwrap()), "{host}");
        }
    }
}
