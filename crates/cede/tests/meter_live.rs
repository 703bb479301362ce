//! `cede meter -i`: on the loopback, and between two network namespaces that the test makes and removes. Skipped aloud
//! where the system does not permit it.
#![cfg(target_os = "linux")]

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::nets::Nets;
use support::{Finished, Folder, PATIENCE, Running, free_port};

/// A meter that watches; `None`, aloud, where that is not permitted.
fn watch(command: &mut Command) -> Option<Running> {
    let mut meter = Running::begin(command.stdin(Stdio::null()));
    if meter.hears("Ctrl-C").is_some() {
        return Some(meter);
    }
    let Finished { code, err, .. } = meter.end();
    println!("SKIPPED: {err}");
    assert!(matches!(code, Some(1 | 3)), "{code:?}: {err}");
    None
}

/// Ends as by Ctrl-C; what came last.
fn last_of(meter: Running) -> Value {
    meter.interrupt();
    meter.end().exits(0).last()
}

/// Talks to an address of the loopback until told to stop; the port.
fn chatter(address: Ipv4Addr, stop: &Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let mut near = TcpStream::connect((address, port)).unwrap();
        let mut far = listener.accept().unwrap().0;
        let (mut octets, began) = ([7_u8; 400], Instant::now());
        while !stop.load(Ordering::Relaxed) && began.elapsed() < PATIENCE {
            near.write_all(&octets).unwrap();
            far.read_exact(&mut octets).unwrap();
            far.write_all(&octets[..1]).unwrap();
            near.read_exact(&mut octets[..1]).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    port
}

fn host<'a>(line: &'a Value, address: &str) -> Option<&'a Value> {
    line["hosts"].as_array()?.iter().find(|host| host["address"] == address)
}

fn samples(line: &Value, address: &str) -> u64 {
    host(line, address).and_then(|host| host["queue"]["samples"].as_u64()).unwrap_or(0)
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_loopback_is_watched_served_as_metrics_and_summed_up_in_the_end() {
    let stop = Arc::new(AtomicBool::new(false));
    let port = chatter(Ipv4Addr::LOCALHOST, &stop);
    let metrics = free_address();
    // Another test's listeners may have the same port, at addresses of their own.
    let filter = format!("tcp port {port} and not net 127.20.0.0/16");
    let folder = Folder::new("loopback");
    let mut command =
        folder.command(["meter", "-i", "lo", "--json", "--interval", "300 ms", "--prometheus", &metrics]);
    command.args(["--filter", &filter, "--for", "80 s"]);
    let Some(mut meter) = watch(&mut command) else { return };
    let line = meter.prints_such(|line| samples(line, "127.0.0.1") >= 100);
    assert_eq!(line["hosts_in_all"], 1, "{line}");
    assert!(line["flows_remembered"].as_u64().unwrap() >= 1 && line["memory_bytes"].as_u64().unwrap() > 0);
    privileges_are_gone(meter.id());
    let answer = get(&metrics, "/metrics");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("text/plain; version=0.0.4"), "{answer}");
    assert!(answer.contains("cede_meter_host_samples{host=\"127.0.0.1\"}"), "{answer}");
    assert!(
        answer.contains("cede_meter_queue_delay_seconds_bucket{protocol=\"tcp\",le=\"+Inf\"}"),
        "{answer}"
    );
    assert!(get(&metrics, "/elsewhere").starts_with("HTTP/1.1 404"));
    stop.store(true, Ordering::Relaxed);
    // No sample is missing in the distribution because it came while a picture was made.
    let line = meter.prints_such(|line| host(line, "127.0.0.1").is_some_and(|host| host["now"].is_null()));
    let answer = get(&metrics, "/metrics");
    let count = answer
        .lines()
        .find_map(|line| line.strip_prefix("cede_meter_queue_delay_seconds_count{protocol=\"tcp\"} "));
    assert_eq!(count.unwrap().parse(), Ok(samples(&line, "127.0.0.1")), "{answer}");
    let last = last_of(meter);
    assert!(samples(&last, "127.0.0.1") >= 100, "{last}");
}

/// As in `cede meter -i eth0 --json | head -1`; whoever serves metrics goes on.
#[test]
fn who_reads_no_more_ends_the_watch() {
    let folder = Folder::new("unread");
    let begin = |more: &[&str]| {
        let mut command = folder.command(["meter", "-i", "lo", "--interval", "200 ms", "--for", "100 s"]);
        let mut child = command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let watches = said.any(|line| line.unwrap().contains("Ctrl-C"));
        drop(child.stdout.take());
        (child, watches)
    };
    let metrics = free_address();
    let (mut served, watches) = begin(&["--prometheus", &metrics]);
    if !watches {
        println!("SKIPPED: this user may not watch");
        return;
    }
    for form in ["--json", "--pseudonyms"] {
        let (mut child, _) = begin(&[form]);
        let end = Instant::now() + PATIENCE;
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "{form} goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(child.wait().unwrap().success());
    }
    assert!(served.try_wait().unwrap().is_none());
    served.kill().unwrap();
    served.wait().unwrap();
}

fn free_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

#[test]
fn metrics_are_no_more_however_many_hosts_there_are() {
    let stop = Arc::new(AtomicBool::new(false));
    for last in 1..=9 {
        let _ = chatter(Ipv4Addr::new(127, 20, 0, last), &stop);
    }
    let (folder, metrics) = (Folder::new("labels"), free_address());
    let mut command =
        folder.command(["meter", "-i", "lo", "--json", "--interval", "300 ms", "--for", "80 s"]);
    command.args([
        "--filter",
        "tcp and src net 127.20.0.0/16",
        "--prometheus",
        &metrics,
        "--metrics-hosts",
        "4",
    ]);
    let Some(mut meter) = watch(&mut command) else { return };
    meter.prints_such(|line| line["hosts_in_all"] == 9);
    let answer = get(&metrics, "/metrics");
    stop.store(true, Ordering::Relaxed);
    let series: Vec<_> = answer.lines().filter(|line| line.contains("{host=")).collect();
    let labels: BTreeSet<_> = series.iter().filter_map(|line| line.split('"').nth(1)).collect();
    assert!(labels.len() == 4 && series.len() <= 5 * 4, "{answer}");
    let has = |line: &str| answer.lines().any(|other| other == line);
    assert!(has("cede_meter_labelled_hosts 4") && has("cede_meter_unlabelled_hosts 5"), "{answer}");
    last_of(meter);
}

/// Under any key some addresses begin as their pseudonyms do: one in 150 with the first 16 bits. Under this one none of these tests does.
const KEY: [u8; 32] = [7; 32];

#[test]
fn metrics_and_the_table_have_pseudonyms_if_asked_for() {
    let stop = Arc::new(AtomicBool::new(false));
    for last in 1..=3 {
        let _ = chatter(Ipv4Addr::new(127, 30, 0, last), &stop);
    }
    let (folder, metrics) = (Folder::new("veiled"), free_address());
    folder.write("key", KEY);
    let mut command =
        folder.command(["meter", "-i", "lo", "--interval", "300 ms", "--for", "80 s", "--pseudonyms=key"]);
    command.args(["--filter", "tcp and src net 127.30.0.0/16", "--prometheus", &metrics]);
    let Some(meter) = watch(&mut command) else { return };
    let end = Instant::now() + PATIENCE;
    let answer = loop {
        let answer = get(&metrics, "/metrics");
        if answer.contains("cede_meter_labelled_hosts 3") {
            break answer;
        }
        assert!(Instant::now() < end, "{answer}");
        std::thread::sleep(Duration::from_millis(100));
    };
    stop.store(true, Ordering::Relaxed);
    meter.interrupt();
    let said = meter.end().exits(0).text().to_owned();
    assert!(answer.matches("{host=").count() >= 3 && said.contains("longest queue"), "{answer}{said}");
    assert!(!answer.contains("127.30.") && !said.contains("127.30."), "{answer}{said}");
}

/// Whoever watches is not root, and can do nothing that others cannot.
fn privileges_are_gone(process: u32) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim();
    for name in ["CapEff:", "CapPrm:", "CapInh:"] {
        assert_eq!(field(name), "0000000000000000", "{name}");
    }
    assert_eq!(field("NoNewPrivs:"), "1");
    // In a namespace where there is no other user to become it stays who it was.
    if !field("Uid:").starts_with("0\t") {
        assert!(!field("Uid:").split('\t').any(|id| id == "0"), "{}", field("Uid:"));
    }
}

/// Ours, with these words, in one of several networks.
fn cede_in(nets: &Nets, at: usize, arguments: &[&str]) -> Command {
    nets.within(at, Command::new(env!("CARGO_BIN_EXE_cede")).args(arguments))
}

/// A meter in the first of several networks, for as long as a test takes.
fn watch_in(nets: &Nets, interfaces: &[&str], more: &[&str]) -> Option<Running> {
    let words = ["--interval", "300 ms", "--for", "80 s"];
    watch(&mut cede_in(nets, 0, &[&["meter"], interfaces, &words, more].concat()))
}

#[test]
fn a_remote_host_that_sends_utp_is_seen_under_its_pseudonym_if_asked_for() {
    let Some(nets) = Nets::pair() else { return };
    let folder = Folder::new("remote");
    folder.write("key", KEY);
    let key = format!("--pseudonyms={}", folder.path("key").display());
    let Some(mut open) = watch_in(&nets, &["-i", "wire"], &["--json"]) else { return };
    let Some(mut veiled) = watch_in(&nets, &["-i", "wire"], &["--json", &key, "--protocol", "utp"]) else {
        return;
    };
    let _serve = Running::begin(&mut cede_in(&nets, 0, &["serve"]));
    let send = || Running::begin(&mut cede_in(&nets, 1, &["send", "192.0.2.1", "-t", "60"]));
    // The other end may not listen yet: whoever was refused asks again.
    let mut sender = send();
    let line = loop {
        let line = open.prints_such(|_| true);
        if samples(&line, "192.0.2.2") >= 100 {
            break line;
        }
        if sender.has_ended() {
            sender = send();
        }
    };
    let remote = host(&line, "192.0.2.2").unwrap();
    assert!(remote["utp"]["samples"].as_u64().unwrap() >= 100 && remote["tcp"].is_null(), "{remote}");
    let line = veiled.prints_such(|line| line["hosts"].as_array().is_some_and(|hosts| !hosts.is_empty()));
    assert!(!line.to_string().contains("192.0.2."), "{line}");
    let last = last_of(open);
    assert!(samples(&last, "192.0.2.2") >= 100, "{last}");
}

#[test]
fn an_interface_that_is_gone_ends_the_watch_with_what_there_is() {
    let Some(nets) = Nets::pair() else { return };
    let watching = |more: &[&str]| watch_in(&nets, &["-i", "wire"], more);
    let (Some(mut lines), Some(table)) = (watching(&["--json"]), watching(&[])) else { return };
    lines.prints_such(|_| true);
    nets.run(0, "link del wire");
    let last = lines.end().exits(1).complains("interface wire is gone").last();
    assert!(last["cede"].is_string() && last["interface"] == "wire", "{last}");
    let shown = table.end().exits(1).complains("interface wire is gone");
    assert!(shown.text().contains("No host says anything about its queue"), "{}", shown.text());
}

/// A router that has a queue of some 300 ms before the wire to the receiver, a sender, and the receiver. A packet is seen behind that queue where it
/// leaves, and before it where it comes.
fn router() -> Option<Nets> {
    let nets = Nets::new(3)?;
    nets.join((0, "comes"), (1, "wire"));
    nets.join((0, "leaves"), (2, "wire"));
    for (at, words) in [
        (1, "addr add 192.0.2.1/24 dev wire"),
        (0, "addr add 192.0.2.2/24 dev comes"),
        (0, "addr add 198.51.100.2/24 dev leaves"),
        (2, "addr add 198.51.100.1/24 dev wire"),
        (1, "route add default via 192.0.2.2"),
        (2, "route add default via 198.51.100.2"),
    ] {
        nets.run(at, words);
    }
    let mut forwards = Command::new("sysctl");
    nets.done(0, forwards.args(["-q", "-w", "net.ipv4.ip_forward=1"]));
    let mut queue = Command::new("tc");
    queue.args("qdisc add dev leaves root tbf rate 2mbit burst 5kb limit 75kb".split(' '));
    let has_queue = nets.within(0, &queue).status().is_ok_and(|status| status.success());
    if !has_queue {
        println!("SKIPPED: tc makes no queue");
    }
    has_queue.then_some(nets)
}

#[test]
fn of_two_interfaces_that_a_packet_passes_the_way_out_counts() {
    let Some(nets) = router() else { return };
    let watching = |interfaces: &[&str]| watch_in(&nets, interfaces, &["--json"]);
    let Some(one) = watching(&["-i", "comes"]) else { return };
    let Some(mut two) = watching(&["-i", "leaves", "-i", "comes"]) else { return };
    let Some(any) = watching(&["-i", "any"]) else { return };
    let _serve = Running::begin(&mut cede_in(&nets, 2, &["serve"]));
    let send =
        || Running::begin(&mut cede_in(&nets, 1, &["send", "198.51.100.1", "-t", "60", "-C", "cubic"]));
    let mut sender = send();
    while samples(&two.prints_such(|_| true), "192.0.2.1") < 400 {
        if sender.has_ended() {
            sender = send();
        }
    }
    let [one, two, any] = [one, two, any].map(last_of);
    let mean_ms = |line: &Value| host(line, "192.0.2.1").unwrap()["queue"]["time_mean_ms"].as_f64().unwrap();
    assert!(mean_ms(&one) < 20.0 && mean_ms(&two) > 100.0 && mean_ms(&any) > 100.0, "{one}\n{two}\n{any}");
    assert_eq!((&one["interface"], &two["interface"]), (&"comes".into(), &"leaves comes".into()));
    let counted = |line: &Value, name: &str| line["counters"][name].as_u64().unwrap();
    assert_eq!(counted(&one, "packets_seen_twice"), 0);
    // Each was seen twice, but for those at the end which were still in the queue.
    assert!(counted(&two, "packets_seen_twice") * 5 > counted(&two, "packets") * 2, "{two}");
}

#[test]
fn one_of_several_interfaces_that_is_gone_is_said_to_be_down() {
    let Some(nets) = Nets::pair() else { return };
    for arguments in ["link add other type veth peer name end", "link set other up", "link set end up"] {
        nets.run(0, arguments);
    }
    let watching = |more: &[&str]| watch_in(&nets, &["-i", "any"], more);
    let (Some(mut lines), Some(mut words)) = (watching(&["--json"]), watching(&[])) else { return };
    lines.prints_such(|line| line["interface_up"] == true);
    nets.run(0, "link del other");
    lines.prints_such(|line| line["interface_up"] == false);
    assert!(words.out_line(" down").contains("other"));
    nets.run(0, "link del wire");
    lines.end().exits(1).complains("interface wire is gone");
    words.end().exits(1);
}

/// The kernel hands a block of packets over when it is full or some 50 ms old.
#[test]
fn what_came_just_before_the_end_counts() {
    const PACKETS: u64 = 300;
    let Some(nets) = Nets::pair() else { return };
    nets.run(0, "link set lo up");
    for interfaces in [&["-i", "lo"][..], &["-i", "lo", "-i", "wire"]] {
        let Some(meter) = watch_in(&nets, interfaces, &["--json"]) else { return };
        let then_end = format!(
            "for ((k = 0; k < {PACKETS}; k++)); do echo here > /dev/udp/127.0.0.1/9; done; kill -INT {}",
            meter.id()
        );
        nets.done(0, Command::new("bash").args(["-c", &then_end]));
        let last = meter.end().exits(0).last();
        // Others are answers that nobody listens, and what IPv6 asks neighbours.
        let counted = |name: &str| last["counters"][name].as_u64().unwrap();
        assert_eq!(counted("packets") - counted("other_packets"), PACKETS, "{interfaces:?}: {last}");
    }
}

/// While the meter stands still, the ring has no room for what comes.
#[test]
fn what_found_no_room_is_told_in_the_end() {
    const PACKETS: usize = 100_000;
    let folder = Folder::new("room");
    let [near, far] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let far = far.local_addr().unwrap();
    let ended = |form: &[&str]| {
        let words = ["meter", "-i", "lo", "--interval", "60 s", "--for", "80 s"];
        let meter = watch(&mut folder.command([&words, form].concat()))?;
        meter.signal("-STOP");
        (0..PACKETS).for_each(|_| drop(near.send_to(&[7; 300], far)));
        meter.interrupt();
        meter.signal("-CONT");
        Some(meter.end().exits(0))
    };
    let Some(json) = ended(&["--json"]) else { return };
    assert!(json.last()["lost_packets"].as_u64() > Some(0), "{}", json.last());
    let text = ended(&[]).unwrap();
    assert!(text.text().contains("lost before us"), "{}", text.text());
    ended(&["--csv"]).unwrap().complains("lost before us");
}

#[test]
fn names_beside_any_count_as_well() {
    let Some(nets) = Nets::pair() else { return };
    nets.run(0, "link set lo up");
    let Some(_) = watch_in(&nets, &["-i", "any"], &[]) else { return };
    let watching = |name: &str| cede_in(&nets, 0, &["meter", "-i", "any", "-i", name, "--for", "1 s"]);
    for (name, told) in [("lo", "watching lo wire,"), ("wire", "watching wire,")] {
        Running::begin(&mut watching(name)).end().exits(0).complains(told);
    }
    Running::begin(&mut watching("wier")).end().exits(2).complains("there is no interface `wier`");
}

/// Seconds of a processor that a process has taken.
fn processor_s(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // Fields 14 and 15 of proc(5), in hundredths; the third is the first behind the name.
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

#[test]
fn an_interface_that_is_down_is_waited_for_at_rest() {
    let Some(nets) = Nets::pair() else { return };
    nets.run(0, "link set wire down");
    let Some(mut meter) = watch_in(&nets, &["-i", "wire"], &["--json"]) else { return };
    let rests = |meter: &mut Running| {
        meter.prints_such(|line| line["interface_up"] == false);
        let (before, began) = (processor_s(meter.id()), Instant::now());
        std::thread::sleep(Duration::from_secs(2));
        let took_s = processor_s(meter.id()) - before;
        assert!(took_s < 0.3 * began.elapsed().as_secs_f64(), "{took_s} s");
    };
    rests(&mut meter);
    nets.run(0, "link set wire up");
    meter.prints_such(|line| line["interface_up"] == true);
    // Packets of the moment before it goes down are still in the kernel's hands then.
    let refused = cede_in(&nets, 0, &["send", "192.0.2.2", "-t", "1"]).output();
    assert!(!refused.unwrap().status.success());
    nets.run(0, "link set wire down");
    rests(&mut meter);
    assert_eq!(meter.prints_such(|_| true)["interface_up"], false);
    nets.run(0, "link set wire up");
    meter.prints_such(|line| line["interface_up"] == true && line["packets_per_s"].as_f64() > Some(0.0));
    last_of(meter);
}

/// As by `nsenter --net`, or in a container's network: what lies under /sys is another one's.
#[test]
fn interfaces_are_those_of_the_network_that_the_meter_is_in() {
    let Some(nets) = Nets::pair() else { return };
    for arguments in ["link set wire down", "link set wire name apart0", "link set apart0 up"] {
        nets.run(0, arguments);
    }
    nets.run(0, "tuntap add bare0 mode tun");
    let meter = |interface: &str| {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", nets.name(0))).arg(env!("CARGO_BIN_EXE_cede"));
        Finished::of(command.args(["meter", "-i", interface, "--for", "300 ms"]).output().unwrap())
    };
    meter("elsewhere0").exits(2).complains("there are: apart0, bare0, lo");
    meter("apart0").exits(0);
    meter("bare0").exits(0);
}

/// A meter on the screen of a terminal that it has taken, the other end of that, and what came there so far; `None`, aloud, where it may not watch.
fn on_a_terminal(leader: &[&str], arguments: &[&str]) -> Option<(Child, File, String)> {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).unwrap();
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let inner = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let end = || Stdio::from(inner.try_clone().unwrap());
    let mut command = Command::new(leader[0]);
    command.args(&leader[1..]).arg(env!("CARGO_BIN_EXE_cede")).args(["meter", "-i", "lo", "--ui"]);
    let mut child = command.args(arguments).stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    drop((inner, command));
    let mut shown = File::from(terminal);
    let (mut octets, mut screen) = ([0; 4096], String::new());
    while !screen.contains("\x1b[?1049h") {
        let count = shown.read(&mut octets).unwrap_or(0);
        screen += &String::from_utf8_lossy(&octets[..count]);
        if count == 0 || screen.contains("error: ") {
            println!("SKIPPED: {screen}");
            child.wait().unwrap();
            return None;
        }
    }
    Some((child, shown, screen))
}

fn end_of(mut child: Child) -> ExitStatus {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("it goes on, with {} s of a processor behind it", processor_s(child.id()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// As where a connection to a far machine breaks: with the signal that it is so, and without.
#[test]
fn a_terminal_that_is_closed_ends_the_screen() {
    for leader in [&["setsid", "-c"][..], &["env"]] {
        let Some((child, shown, _)) = on_a_terminal(leader, &["--interval", "200 ms"]) else { return };
        drop(shown);
        // In order, and not by an abort because nothing can be said any more.
        let status = end_of(child);
        assert!(status.code().is_some(), "{leader:?} {status}");
    }
}

/// With its summary, or without where the second one found the terminal given back already: then it ends the program at once.
#[test]
fn whoever_asks_twice_for_the_end_has_the_terminal_back() {
    let Some((child, mut shown, _)) = on_a_terminal(&["env"], &["--interval", "200 ms"]) else { return };
    for _ in 0..2 {
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }
    // It ends with an error once nobody has the inner end.
    let mut octets = Vec::new();
    let _ = shown.read_to_end(&mut octets);
    let text = String::from_utf8_lossy(&octets);
    assert!(text.contains("\x1b[?1049l"), "{text}");
    match end_of(child).code() {
        Some(0) => assert!(text.contains("packets in ") || text.contains("1 packet in "), "{text}"),
        code => assert_eq!(code, Some(130), "{text}"),
    }
}

/// Whoever sees nothing does not know whether it works, nor that a key has told it to pause.
#[test]
fn a_screen_shows_something_before_the_first_interval_is_over() {
    let arguments = ["--interval", "1 min", "--for", "1 s"];
    let Some((child, mut shown, begun)) = on_a_terminal(&["env"], &arguments) else { return };
    let mut octets = Vec::new();
    let _ = shown.read_to_end(&mut octets);
    let text = begun + &String::from_utf8_lossy(&octets);
    let (drawn, _table) = text.split_once("\x1b[?1049l").unwrap();
    assert!(drawn.contains("cede meter -i lo"), "{text}");
    assert_eq!(end_of(child).code(), Some(0));
}

#[test]
fn what_is_lacking_is_told() {
    let folder = Folder::new("lacking");
    for (arguments, told) in [
        (["--interval", "0 s"], "--interval: 0 s is less than 100 ms"),
        (["--window", "0 s"], "--window: 0 s is less than 1 s"),
        (["--interval", "11 min"], "--window: 600 s is less than --interval, 660 s"),
        (["--prometheus", "localhost:9464"], "an IP address and a port are wanted, such as 127.0.0.1:9464"),
    ] {
        folder.cede(&[&["meter", "-i", "lo"][..], &arguments].concat()).exits(2).complains(told);
    }
    folder.cede(&["meter", "-i", "no-such-interface"]).exits(2).complains("there are: ");
    folder.cede(&["meter", "-i", "lo", "--ui"]).exits(2);
    // Without privileges: 3 and how to get them. Where there is no other user to become, nothing is shown.
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_cede")]);
    match command.args(["meter", "-i", "lo", "--for", "1 s"]).output() {
        Ok(output) if output.status.code() == Some(3) => {
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(told.contains("CAP_NET_RAW") && told.contains("setcap cap_net_raw+ep"), "{told}");
        }
        other => println!("SKIPPED: setpriv does not run the program as another user: {other:?}"),
    }
}
