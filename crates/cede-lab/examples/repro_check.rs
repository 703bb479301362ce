use cede_lab::repro::{measure::*, setting::*};
use std::sync::atomic::AtomicBool;
fn main() {
    let stop = AtomicBool::new(false);
    let reps: u32 = std::env::args().nth(1).map_or(4, |a| a.parse().unwrap());
    let p = Choices::PRIMARY;
    let ms = Choices { carrier: Carrier::Tcp { tick_us: 1000 }, ..p };
    let us = Choices { carrier: Carrier::Tcp { tick_us: 1 }, ..p };
    let nr = Choices { sack: false, ..p };
    let nrms = Choices { sack: false, ..ms };
    let msf = Choices { filter: true, ..ms };
    let _ = us;
    let reno = || Part::one("tcp", Kind::Reno);
    let led = |t: f64| Part::one("lbe", Kind::Ledbat(Ledbat::with_target_ms(t)));
    let show = |label: &str, parts: Vec<Part>| {
        for (cl, c) in [("utp", p), ("tcp1ms", ms), ("tcp1msfilt", msf), ("nr-utp", nr), ("nr-1ms", nrms)] {
            let m: Vec<Measured> = (0..reps)
                .map(|r| {
                    measure(
                        &Setting { parts: parts.clone(), choices: c, repetition: r, series: false },
                        &stop,
                    )
                    .unwrap()
                })
                .collect();
            let f = |g: &dyn Fn(&Measured) -> f64| {
                let v: Vec<f64> = m.iter().map(g).collect();
                let mean = v.iter().sum::<f64>() / v.len() as f64;
                let lo = v.iter().cloned().fold(f64::MAX, f64::min);
                let hi = v.iter().cloned().fold(f64::MIN, f64::max);
                (mean, lo, hi)
            };
            let t = f(&|m| m.tcp_percent());
            let fl = f(&|m| m.fairness_long);
            println!(
                "{label:<16} {cl:<10} eta {:.4} tcp {:.2} [{:.2} {:.2}] Fl {:.4} [{:.4} {:.4}] Fs {:.4} B {:.4} P {:.5} Fo {:.4} x1 {:.0} rto {} ok {}",
                f(&|m| m.efficiency).0,
                t.0,
                t.1,
                t.2,
                fl.0,
                fl.1,
                fl.2,
                f(&|m| m.fairness_short).0,
                f(&|m| m.queue_index).0,
                f(&|m| m.loss).0,
                f(&|m| m.fairness_others).0,
                f(&|m| m.rates_mbps[0] * 1e3).0,
                m.iter().map(|m| m.timeouts).sum::<u64>(),
                m.iter().all(|m| m.intact)
            );
        }
    };
    show("reno", vec![reno()]);
    show("reno x2", vec![reno().times(2)]);
    show("ledbat25", vec![led(25.0)]);
    show("ledbat100", vec![led(100.0)]);
    show("ledbat25 x2", vec![led(25.0).times(2)]);
    for t in [5.0, 20.0, 30.0, 50.0, 65.0, 80.0, 90.0, 100.0, 120.0, 150.0] {
        show(&format!("T {t}"), vec![reno(), led(target_ms(t))]);
    }
    for n in [1, 5, 10] {
        show(&format!("N {n}"), vec![reno(), led(25.0).times(n)]);
    }
    for n in [5, 10] {
        show(&format!("Nreno {n}"), vec![reno(), Part::one("lbe", Kind::Reno).times(n)]);
    }
    for r in [1.5, 5.0, 10.0] {
        show(
            &format!("Tratio {r}"),
            vec![led(24.0 * r), Part::one("b", Kind::Ledbat(Ledbat::with_target_ms(24.0)))],
        );
    }
    for r in [2.0, 5.0, 10.0] {
        show(
            &format!("RTT led {r}"),
            vec![led(25.0).rtt_ratio(r), Part::one("b", Kind::Ledbat(Ledbat::PAPER))],
        );
        show(&format!("RTT reno {r}"), vec![reno().rtt_ratio(r), Part::one("b", Kind::Reno)]);
    }
}
