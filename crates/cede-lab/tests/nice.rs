//! NICE behind receivers that answer pairs, and keep the answer to a single packet back.

use cede_lab::run::Run;
use cede_lab::scenario::Scenario;

/// NICE's rate in Mbit/s after the first `warmup` seconds, over TCP with this receiver.
fn rate_mbps(buffer: &str, ack: &str, warmup: u32, params: &str, other: &str) -> f64 {
    let text = format!(
        "name = \"nice\"\nduration = \"120 s\"\nwarmup = \"{warmup} s\"\n\
         [topology]\naccess_delay = \"0 s\"\naccess_rate = \"10 Gbit/s\"\n\
         [link]\nrate = \"20 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"{buffer}\"\n\
         [[flow]]\nname = \"nice\"\nprotocol = \"tcp\"\ntcp.ack = \"{ack}\"\ntcp.min_rto = \"200 ms\"\n\
         controller = {{ name = \"nice\"{params} }}\n{other}"
    );
    let scenario = Scenario::parse("nice.toml", &text).unwrap_or_else(|problems| panic!("{problems:?}"));
    Run::new(&scenario).go(&mut ()).expect("it runs").0.flows[0].rate_mbps
}

const CUBIC: &str =
    "[[flow]]\nname = \"cubic\"\nprotocol = \"tcp\"\ncontroller = \"cubic\"\ntcp.ack = \"linux\"\n";

/// From 1/48 of a packet; a lone one is answered after the receiver's 200 ms, which is late.
#[test]
fn two_packets_at_a_time_find_the_way_back_where_lone_ones_never_do() {
    let beside = format!("{CUBIC}start = \"10 s\"\nstop = \"40 s\"\n");
    let after = |params| rate_mbps("200 ms", "delayed", 100, params, &beside);
    assert!(after("") > 15.0, "{}", after(""));
    assert!(after(", pairs = false") < 0.1, "{}", after(", pairs = false"));
}

/// 40 ms of the receiver's in the largest round trip would hide six of queue.
#[test]
fn behind_ten_packets_it_gives_way_to_cubic_over_tcp_too() {
    let kept = rate_mbps("10 packets", "linux", 20, "", CUBIC);
    assert!(kept < 1.0, "{kept}");
}

/// A fifth of the queue holds less than the packets that leave together, or than Vegas's backlog, or holds them.
#[test]
fn alone_it_needs_a_buffer_of_more_than_ten_packets() {
    let used = |packets: u32| rate_mbps(&format!("{packets} packets"), "linux", 20, "", "") / 20.0;
    let buffers = [3, 5, 10, 12, 20].map(used);
    assert!(buffers.is_sorted_by(|a, b| *a < b + 1e-3), "{buffers:?}");
    assert!(buffers[1] < 0.1 && buffers[2] < 0.7 && buffers[3] > 0.99, "{buffers:?}");
}
