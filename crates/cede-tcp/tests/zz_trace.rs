mod support;
use cede_tcp::Config;
use cede_units::{Duration, Instant};
use support::*;
#[test]
fn trace() {
    let config = Config::newreno();
    let mut net = Net::new(config.clone(), config.clone(), Duration::from_millis(25));
    net.connect(controller("reno", &config));
    net.link = Some((cede_units::Rate::from_mbit(10), 100 * 1500));
    net.client.to_send = u64::MAX;
    net.client.closes = false;
    let mut last = (0, 0);
    for ms in (1000..30_000).step_by(20) {
        net.run(Instant::from_millis(ms), &mut clear);
        let d = net.drops;
        let s = *net.client().statistics();
        let n = net.client().snapshot();
        if (s.timeouts, s.recoveries) != last || (ms < 3000 && ms % 100 == 0) {
            last = (s.timeouts, s.recoveries);
            println!("{ms} to {} rec {} mode {:?} win {} flight {} pipe {} srtt {} rttvar {} rto {} cwnd {} ssth {:?} drops {d} rtx {}", s.timeouts, s.recoveries, n.repair, n.window_bytes/1460, n.flight_bytes/1460, n.pipe_bytes/1460, n.srtt, n.rttvar, n.rto, n.controller.cwnd_bytes/1460., n.controller.ssthresh_bytes.map(|b| b/1460.), s.retransmissions);
        }
    }
}
