//! `cede torrent` behind a router of its own, miniupnpd, which opens ports when it is asked. Skipped aloud where namespaces cannot
//! be made, and where there is no miniupnpd or nft.
#![cfg(target_os = "linux")]

mod support;

use std::time::{Duration, Instant};
use support::nets::Nets;
use support::{Folder, PATIENCE, Running};

const RULES: &str = r#"
table inet filter {
  chain prerouting { type nat hook prerouting priority -100; policy accept; jump opened; }
  chain postrouting { type nat hook postrouting priority 100; policy accept; oifname "wan" masquerade; jump passed; }
  chain forward { type filter hook forward priority 0; policy accept; jump let; }
  chain opened { }
  chain passed { }
  chain let { }
}
"#;

/// One machine in front of a router (11.0.0.2), it (11.0.0.1 and 192.168.7.1), and two behind it (192.168.7.2 and .3).
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
             upnp_nat_postrouting_chain=passed\nallow 1024-65535 192.168.7.0/24 1024-65535\n"
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
        let end = Instant::now() + PATIENCE;
        loop {
            let rules = self.at_router(&["nft", "list", "chain", "inet", "filter", "opened"]);
            if rules.matches("dnat").count() == count {
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
