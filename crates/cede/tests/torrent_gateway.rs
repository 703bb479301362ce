//! `cede torrent` behind a router of its own, miniupnpd, which opens ports when it is asked. Skipped aloud where namespaces cannot
//! be made, and where there is no miniupnpd or nft.
#![cfg(target_os = "linux")]

mod support;

use std::cell::Cell;
use std::time::{Duration, Instant};
use support::nets::Nets;
use support::{Folder, PATIENCE, Running};

const RULES: &str = r#"
table inet filter {
  chain prerouting { type nat hook prerouting priority -100; policy accept; jump opened; }
  chain postrouting { type nat hook postrouting priority 100; policy accept; oifname "wan" masquerade; jump passed; }
  chain forward {
    type filter hook forward priority 0; policy accept;
    jump let;
    iifname "wan" meta nfproto ipv6 ct state new drop;
  }
  chain input { type filter hook input priority 0; policy accept; }
  chain opened { }
  chain passed { }
  chain let { }
}
"#;

/// One machine in front of a router (11.0.0.2), it (11.0.0.1 and 192.168.7.1), and two behind it (192.168.7.2 and .3); some of them with IPv6, too.
struct Place {
    folder: Folder,
    nets: Nets,
    content: Vec<u8>,
    router: Option<Running>,
}

const FRONT: usize = 0;
const ROUTER: usize = 1;
const BEHIND: [usize; 2] = [2, 3];

impl Place {
    fn new(name: &str) -> Option<Self> {
        if !["miniupnpd", "nft"].into_iter().all(support::has) {
            return None;
        }
        let nets = Nets::new(4)?;
        nets.join((FRONT, "wire"), (ROUTER, "wan"));
        nets.run(FRONT, "addr add 11.0.0.2/24 dev wire");
        nets.run(ROUTER, "addr add 11.0.0.1/24 dev wan");
        nets.run(ROUTER, "link add lan type bridge");
        nets.run(ROUTER, "addr add 192.168.7.1/24 dev lan");
        nets.run(ROUTER, "link set lan up");
        for (at, number) in [(BEHIND[0], 2), (BEHIND[1], 3)] {
            nets.join((at, "wire"), (ROUTER, &format!("lan{number}")));
            nets.run(ROUTER, &format!("link set lan{number} master lan"));
            nets.run(at, &format!("addr add 192.168.7.{number}/24 dev wire"));
            nets.run(at, "route add default via 192.168.7.1");
        }
        let folder = Folder::new(name);
        let content = folder.write_pattern("film", 300_000);
        folder
            .cede(&["torrent", "make", "film", "-l", "16KiB", "-t", "http://11.0.0.2:6969/announce"])
            .exits(0);
        folder.cede(&["torrent", "make", "film", "-l", "16KiB", "-o", "bare.torrent"]).exits(0);
        std::fs::create_dir(folder.path("out")).unwrap();
        folder.write("rules", RULES);
        let place = Self { folder, nets, content, router: None };
        place.at_router(&["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
        place.at_router(&["nft", "-f", "rules"]);
        Some(place)
    }

    /// Behind the router the first has an address of IPv6 too, which nobody in front may call unless it says so: 2001:db8:7::2.
    fn speak_ipv6(&self) {
        let add = |at, address: &str| self.nets.run(at, &format!("addr add {address} nodad"));
        add(FRONT, "2001:db8:1::2/64 dev wire");
        add(ROUTER, "2001:db8:1::1/64 dev wan");
        add(ROUTER, "2001:db8:7::1/64 dev lan");
        add(ROUTER, "fe80::1/64 dev lan");
        add(BEHIND[0], "2001:db8:7::2/64 dev wire");
        self.nets.run(BEHIND[0], "route add default via fe80::1 dev wire");
        self.nets.run(FRONT, "route add 2001:db8:7::/64 via 2001:db8:1::1");
        self.at_router(&["sysctl", "-qw", "net.ipv6.conf.all.forwarding=1"]);
    }

    fn at_router(&self, words: &[&str]) -> String {
        self.nets.done(ROUTER, &self.folder.program(words))
    }

    /// The router speaks this from now on.
    fn speak(&mut self, nat_pmp: &str, upnp: &str) {
        self.router = None;
        let options = format!(
            "ext_ifname=wan\nlistening_ip=lan\nhttp_port=5000\nenable_natpmp={nat_pmp}\nenable_upnp={upnp}\n\
             secure_mode=yes\nuuid=00000000-0000-0000-0000-000000000001\nupnp_table_name=filter\n\
             upnp_nat_table_name=filter\nupnp_forward_chain=let\nupnp_nat_chain=opened\n\
             upnp_nat_postrouting_chain=passed\nipv6_disable=no\nallow 1024-65535 192.168.7.0/24 1024-65535\n"
        );
        self.folder.write("options", options);
        let words = ["miniupnpd", "-d", "-f", "options", "-P", "router.pid"];
        let mut router = Running::begin(&mut self.nets.within(ROUTER, &self.folder.program(&words)));
        router.says(if upnp == "yes" { "HTTP listening" } else { "Listening for NAT-PMP" });
        self.router = Some(router);
    }

    fn start(&self, at: usize, words: &str) -> Running {
        Running::begin(&mut self.nets.within(at, &self.folder.command(words.split_whitespace())))
    }

    fn seed(&self, at: usize, options: &str) -> Running {
        self.start(at, &format!("torrent seed film.torrent --no-dht --no-lsd --json {options}"))
    }

    /// Waits until the router leads so many ports to somebody.
    fn opened(&self, count: usize) {
        self.has_rules("opened", "dnat", count);
    }

    fn has_rules(&self, chain: &str, word: &str, count: usize) {
        let end = Instant::now() + PATIENCE;
        loop {
            let rules = self.at_router(&["nft", "list", "chain", "inet", "filter", chain]);
            if rules.matches(word).count() == count {
                return;
            }
            assert!(Instant::now() < end, "not {count}: {rules}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Two want the same port of it; each is reached through it, and trackers hear of that which it has.
#[test]
fn a_router_opens_ports_and_others_come_in_by_them() {
    let Some(mut place) = Place::new("gateway") else { return };
    for (nat_pmp, upnp, via) in [("yes", "no", "PCP"), ("no", "yes", "UPnP")] {
        place.speak(nat_pmp, upnp);
        let mut tracker = place.start(FRONT, "torrent tracker --json");
        let mut seeds = Vec::new();
        for (count, at) in BEHIND.into_iter().enumerate() {
            let mut seed = place.seed(at, "");
            let told = seed.prints("\"port\"")["data"].clone();
            assert_eq!(
                (told["via"].as_str(), told["address"].as_str()),
                (Some(via), Some("11.0.0.1")),
                "{told}"
            );
            assert_eq!(told["tcp"], told["udp"]);
            assert_eq!(told["tcp"] == 6881, count == 0, "{told}");
            let peer = format!("11.0.0.1:{}", told["tcp"]);
            if via == "PCP" {
                assert_eq!(tracker.prints("\"peer\"")["peer"].as_str(), Some(&peer[..]));
            }
            place.opened(2 * (count + 1));
            let words = format!(
                "torrent get bare.torrent -o out --no-dht --no-lsd --no-pex --transport tcp -p 0 --peer {peer}"
            );
            place.start(FRONT, &words).end().exits(0);
            assert!(place.folder.read("out/film") == place.content);
            std::fs::remove_file(place.folder.path("out/film")).unwrap();
            seeds.push(seed);
        }
        for seed in seeds {
            seed.interrupt();
            seed.end().exits(130);
        }
        place.opened(0);
    }
}

/// There is nothing to translate, and a firewall to open.
#[test]
fn a_router_lets_others_in_to_an_ipv6_address() {
    let Some(mut place) = Place::new("gateway-six") else { return };
    place.speak_ipv6();
    for (nat_pmp, upnp, via) in [("yes", "no", "PCP"), ("no", "yes", "UPnP")] {
        place.speak(nat_pmp, upnp);
        if via == "UPnP" {
            // miniupnpd hears PCP of IPv6 also where it is to hear none.
            place.at_router(&["nft", "add rule inet filter input meta nfproto ipv6 udp dport 5351 reject"]);
        }
        others_are_let_in(&place, via);
    }
    // Nobody opens it: it is shut.
    let mut shut = place.seed(BEHIND[0], "-p 7000 --no-port-mapping");
    shut.prints("progress");
    let words = "torrent get bare.torrent -o out --no-dht --no-lsd --transport tcp -p 0 --json --peer [2001:db8:7::2]:7000";
    let mut vain = place.start(FRONT, words);
    vain.prints_such(|line| line["data"]["unheard"]["silent"] == 1);
}

fn others_are_let_in(place: &Place, via: &str) {
    let mut seed = place.seed(BEHIND[0], "-p 7000");
    let told = seed.prints_such(|line| line["data"]["address"] == "2001:db8:7::2")["data"].clone();
    assert_eq!((&told["via"], &told["tcp"], &told["udp"]), (&via.into(), &7000.into(), &7000.into()));
    place.has_rules("let", "accept", 4);
    for transport in ["tcp", "utp"] {
        let words = format!(
            "torrent get bare.torrent -o out --no-dht --no-lsd --no-pex --transport {transport} -p 0 --peer [2001:db8:7::2]:7000"
        );
        place.start(FRONT, &words).end().exits(0);
        assert!(place.folder.read("out/film") == place.content);
        std::fs::remove_file(place.folder.path("out/film")).unwrap();
    }
    seed.interrupt();
    seed.end().exits(130);
    place.has_rules("let", "accept", 0);
}

/// What it leads to is where the machine was; whoever hears of us hears of where it is.
#[test]
fn a_router_is_asked_again_from_another_address() {
    let Some(mut place) = Place::new("gateway-moves") else { return };
    place.speak_ipv6();
    place.speak("yes", "no");
    let mut tracker = place.start(FRONT, "torrent tracker --json");
    let mut seed = place.seed(BEHIND[0], "");
    seed.prints_such(|line| line["data"]["address"] == "2001:db8:7::2");
    tracker.prints_such(|line| line["peer"] == "11.0.0.1:6881");
    place.nets.run(BEHIND[0], "addr del 192.168.7.2/24 dev wire");
    place.nets.run(BEHIND[0], "addr add 192.168.7.9/24 dev wire");
    place.nets.run(BEHIND[0], "route add default via 192.168.7.1");
    // The usual one still leads to the old address.
    let is_another = |data: &serde_json::Value| data["address"] == "11.0.0.1" && data["tcp"] != 6881;
    let told = seed.prints_such(|line| is_another(&line["data"]))["data"].clone();
    let peer = format!("11.0.0.1:{}", told["tcp"]);
    tracker.prints_such(|line| line["peer"] == peer[..]);
    place.nets.run(BEHIND[0], "addr del 2001:db8:7::2/64 dev wire");
    place.nets.run(BEHIND[0], "addr add 2001:db8:7::4/64 dev wire nodad");
    // What leads here already stays.
    let come = Cell::new([false; 2]);
    seed.prints_such(|line| {
        let (data, [four, six]) = (&line["data"], come.get());
        let is_four = data["address"] == "11.0.0.1" && data["tcp"] == told["tcp"];
        come.set([four || is_four, six || data["address"] == "2001:db8:7::4"]);
        come.get() == [true; 2]
    });
    place.opened(4);
}

#[test]
fn a_router_is_left_alone_where_that_is_wanted() {
    let Some(mut place) = Place::new("gateway-off") else { return };
    place.speak("yes", "no");
    let mut unwilling = place.seed(BEHIND[0], "--no-port-mapping -p 7000");
    let mut elsewhere = place.seed(BEHIND[0], "-B 127.0.0.1 -p 7001");
    for quiet in [&mut unwilling, &mut elsewhere] {
        quiet.prints("progress");
    }
    let mut asking = place.seed(BEHIND[1], "-B 192.168.7.3");
    assert_eq!(asking.prints("\"port\"")["data"]["tcp"], 6881);
    place.opened(2);
}
