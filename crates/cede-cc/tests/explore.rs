mod support;
use cede_cc::{registry, Params, Path};
use cede_units::*;
use support::*;
fn build(name: &str, kv: &[(&str,&str)]) -> Box<dyn cede_cc::Controller> {
    let mut p = Params::new();
    for (k,v) in kv { p.parse_and_set(registry::find(name).unwrap().params, k, v).unwrap(); }
    registry::build(name, &p, &Path{mss_bytes:MSS, initial_cwnd_bytes: 3*MSS, max_cwnd_bytes: 1<<24}).unwrap()
}
#[test]
fn hy() {
    for h in ["on","off"] {
    let mut w = World::new(Rate::from_mbit(10), Duration::from_millis(50), Duration::from_millis(120), vec![Flow::new(build("cubic",&[("hystart",h)]))]);
    for k in 0..40 { w.measure_until(Instant::from_millis(50*k)); let s=w.flows[0].controller.snapshot(); println!("{h} {} ms cwnd {:.1} {:?} lost {}", 50*k, s.cwnd_bytes/1448.0, s.phase, w.flows[0].lost); }
    }
}
