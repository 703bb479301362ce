//! The whole experiment in small, where namespaces can be made. How like the kernel the models are takes longer to see
//! than a test may last; `cede lab kernel` measures it.

use cede_testbed::NetnsError;
use cede_testbed::kernel::{KernelSpec, measure, predict};
use cede_units::Duration;

fn brief(controls: [&str; 2]) -> KernelSpec {
    let (alone, together) = (Duration::from_secs(3), Duration::from_secs(3));
    KernelSpec { controls: controls.map(str::to_string), alone, together, ..KernelSpec::default() }
}

#[test]
fn both_flows_run_over_a_path_with_a_delay() {
    let measured = match measure(&brief(["cubic", "reno"]), &mut |_| true) {
        Err(NetnsError::Impossible(why)) => {
            println!("SKIPPED: {why}");
            return;
        }
        other => other.expect("the experiment runs"),
    };
    if measured.longest_gap_s > 1.0 {
        println!("SKIPPED: this machine stood still for {:.1} s", measured.longest_gap_s);
        return;
    }
    let arrived = |index: usize| -> f64 {
        measured.showing.samples.iter().map(|sample| sample.mbps[index] * sample.span_s).sum()
    };
    assert!(arrived(0) > 0.0 && arrived(1) > 0.0, "{} and {} Mbit arrived", arrived(0), arrived(1));
}

#[test]
fn a_control_that_the_kernel_does_not_have_is_named() {
    if let Err(NetnsError::Impossible(why)) = measure(&brief(["reno", "reno"]), &mut |_| false) {
        println!("SKIPPED: {why}");
        return;
    }
    let refused = measure(&brief(["no-such-control", "reno"]), &mut |_| true);
    assert!(
        matches!(&refused, Err(NetnsError::Impossible(why)) if why.contains("no-such-control")),
        "{refused:?}"
    );
}

#[test]
fn the_models_fill_the_link_each_in_its_own_way() {
    let [cubic, both, bbr] = predict(&KernelSpec::default(), &mut || true).unwrap().phases;
    assert!(cubic.mbps[0] > 18.0 && cubic.queue_p95_ms > 150.0, "CUBIC fills the buffer: {cubic:?}");
    assert!(bbr.mbps[1] > 17.0 && bbr.queue_mean_ms < 60.0, "BBR does not: {bbr:?}");
    assert!(both.mbps.iter().all(|mbps| *mbps > 1.0), "neither starves: {both:?}");
}
