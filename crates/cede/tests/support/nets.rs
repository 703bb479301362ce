//! Network namespaces of a test's own, by root and on Linux; gone afterwards.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Two machines at one wire, 192.0.2.1 and 192.0.2.2, and 2001:db8::1 and ::2.
pub struct Nets(Vec<String>);

fn ip(words: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(words.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Nets {
    /// As many as there are names; `None`, said aloud, where the system makes none.
    pub fn new(count: usize) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let own = format!("cede-{}n{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let mut nets = Self(Vec::new());
        for at in 0..count {
            let name = format!("{own}-{at}");
            if !ip(&format!("netns add {name}")) {
                println!("SKIPPED: the system makes no network namespaces (root and ip are needed)");
                return None;
            }
            nets.0.push(name);
            assert!(nets.ip(at, "link set lo up"));
        }
        Some(nets)
    }

    /// Two of them, joined by a wire.
    pub fn pair() -> Option<Self> {
        let nets = Self::new(2)?;
        nets.join((0, "wire"), (1, "wire"));
        for (at, number) in [(0, 1), (1, 2)] {
            nets.run(at, &format!("addr add 192.0.2.{number}/24 dev wire"));
            // Where there is no IPv6, there is none.
            nets.ip(at, &format!("addr add 2001:db8::{number}/64 dev wire nodad"));
        }
        Some(nets)
    }

    /// Three in a row, the middle one of which leads from the first's network to the last's: in each network, which is named by what its
    /// addresses begin with, the middle has 1 (devices `near` and `far`) and the other 2 (device `wire`). `way` is added to the routes.
    pub fn row([first, last]: [&str; 2], bits: u8, way: &str) -> Option<Self> {
        let nets = Self::new(3)?;
        for (end, device, prefix) in [(0, "near", first), (2, "far", last)] {
            nets.join((end, "wire"), (1, device));
            for (at, name, number) in [(1, device, 1), (end, "wire", 2)] {
                // Where nobody looks for twins of an address, that means nothing.
                nets.run(at, &format!("addr add {prefix}{number}/{bits} dev {name} nodad"));
            }
            nets.run(end, &format!("route add default via {prefix}1 {way}"));
        }
        let is_v6 = first.contains(':');
        let forwarding = if is_v6 { "net.ipv6.conf.all.forwarding=1" } else { "net.ipv4.ip_forward=1" };
        nets.done(1, Command::new("sysctl").args(["-qw", forwarding]));
        Some(nets)
    }

    /// The system's name of one of them.
    pub fn name(&self, at: usize) -> &str {
        &self.0[at]
    }

    /// Puts a wire between two.
    pub fn join(&self, (one, name): (usize, &str), (other, other_name): (usize, &str)) {
        let there = &self.0[other];
        self.run(one, &format!("link add {name} type veth peer name {other_name} netns {there}"));
        self.run(one, &format!("link set {name} up"));
        self.run(other, &format!("link set {other_name} up"));
    }

    fn ip(&self, at: usize, words: &str) -> bool {
        ip(&format!("-n {} {words}", self.0[at]))
    }

    /// Has `ip` do something in one of them.
    pub fn run(&self, at: usize, words: &str) {
        assert!(self.ip(at, words), "ip {words}");
    }

    /// The same program in one of them.
    pub fn within(&self, at: usize, program: &Command) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[at]]).arg(program.get_program()).args(program.get_args());
        command.stdin(Stdio::null());
        if let Some(folder) = program.get_current_dir() {
            command.current_dir(folder);
        }
        command
    }

    /// Has a program do something in one of them: what it prints.
    pub fn done(&self, at: usize, program: &Command) -> String {
        let done = self.within(at, program).output().unwrap();
        assert!(done.status.success(), "{program:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }
}

impl Drop for Nets {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&format!("netns del {name}"));
        }
    }
}
