//! `cede meter -i`: the meter on a live interface, as lines, as a screen that updates, as metrics.
//!
//! One thread reads packets and makes pictures of the window by turns; a picture that takes long is made less often, and
//! of fewer samples. The kernel's ring holds what comes meanwhile.

mod http;
mod line;
mod metrics;
mod picture;
mod privileges;
#[cfg(test)]
mod said;
mod tap;
mod taps;
mod ui;

use super::{LiveArgs, MeterArgs, show};
use crate::failure::Failure;
use crate::interrupt;
use crate::screen::{self, Screen};
use cede_meter::Meter;
use metrics::Labels;
use picture::{Picture, Recent, Tally};
use std::collections::HashMap;
use std::io::IsTerminal;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tap::Heard;
use taps::Taps;

/// While keys may be pressed the ring is left as often as that.
const KEYS_EVERY: Duration = Duration::from_millis(50);
const SIGNALS_EVERY: Duration = Duration::from_millis(200);
/// A picture may take this part of the time; beyond, it is made less often.
const PICTURE_PART: u32 = 4;
/// A picture that takes longer than this is made of fewer samples, one in this time of each direction at the sparsest.
const PICTURE_SLOW: Duration = Duration::from_millis(400);
const SPACING_FIRST: Duration = Duration::from_millis(1);
const SPACING_MOST: Duration = Duration::from_secs(1);
/// Whoever wants a picture more often sees the making of pictures. A window that is shorter than the time between two of them forgets
/// what none of them has shown.
const INTERVAL_LEAST: cede_units::Duration = cede_units::Duration::from_millis(100);
const WINDOW_LEAST: cede_units::Duration = cede_units::Duration::from_secs(1);

/// Where pictures go.
struct Sinks<'a> {
    args: &'a MeterArgs,
    screen: Option<(ui::Screen, ui::View)>,
    metrics: Option<(http::Shared, Labels)>,
    last: Option<Picture>,
}

/// Watches interfaces until Ctrl-C, or as long as asked for; that none is left meanwhile is an error in the end.
pub fn run(args: &MeterArgs) -> Result<(), Failure> {
    if args.live.ui && !std::io::stdout().is_terminal() {
        return Err(Failure::Usage("--ui needs a terminal on standard output".to_string()));
    }
    check_times(&args.live)?;
    let mut taps = Taps::open(&args.live.interfaces)?;
    let names = taps.names();
    let listener = args.live.prometheus.map(http::bind).transpose()?;
    let became = privileges::give_up();
    let mut session = Session::new(args)?;
    let mut sinks = Sinks::open(args, &names, listener)?;
    if !args.live.ui {
        screen::mention(&format!("watching {names}, {became}; Ctrl-C ends with the table of the window\n"));
    }
    sinks.begin(session.picture(&taps.heard()));
    let watched = session.watch(&mut taps, &mut sinks);
    taps.end(&mut session.meter);
    drop(sinks.screen.take());
    // What there is is shown, however it ended.
    session.end(args, taps.heard().lost).and(watched)
}

fn check_times(args: &LiveArgs) -> Result<(), Failure> {
    let (interval, window) = (args.interval, args.window);
    let wrong = if interval < INTERVAL_LEAST {
        format!("--interval: {interval} is less than {INTERVAL_LEAST}")
    } else if window < WINDOW_LEAST {
        format!("--window: {window} is less than {WINDOW_LEAST}")
    } else if window < interval {
        format!("--window: {window} is less than --interval, {interval}")
    } else {
        return Ok(());
    };
    Err(Failure::Usage(wrong))
}

/// What is watched.
struct Session<'a> {
    args: &'a MeterArgs,
    meter: Meter,
    began: Instant,
    /// When the last picture was made, and the packets and octets until then.
    last: (Instant, u64, u64),
    /// When the last packet came of those in the last picture.
    shown_us: u64,
    tallies: [Tally; 2],
    spacing: Duration,
}

impl<'a> Session<'a> {
    fn new(args: &'a MeterArgs) -> Result<Self, Failure> {
        let now = Instant::now();
        Ok(Self {
            args,
            meter: Meter::new(args.config()?),
            began: now,
            last: (now, 0, 0),
            shown_us: 0,
            tallies: [Tally::default(); 2],
            spacing: Duration::ZERO,
        })
    }

    fn watch(&mut self, taps: &mut Taps, sinks: &mut Sinks<'_>) -> Result<(), Failure> {
        let interval = duration(self.args.live.interval);
        let end = self.args.live.duration.map(|time| self.began + duration(time));
        let mut due = self.began + interval;
        while !interrupt::is_asked() && end.is_none_or(|end| Instant::now() < end) {
            let patience = if self.args.live.ui { KEYS_EVERY } else { SIGNALS_EVERY };
            let until = end.map_or(due, |end| end.min(due));
            taps.read(&mut self.meter, until.saturating_duration_since(Instant::now()).min(patience))?;
            if sinks.wants_to_quit() {
                break;
            }
            if Instant::now() >= due {
                let began = Instant::now();
                let picture = self.picture(&taps.heard());
                sinks.show(picture)?;
                if sinks.is_unheard() {
                    break;
                }
                let took = began.elapsed();
                self.adapt(took);
                due = (due + interval).max(Instant::now() + took * (PICTURE_PART - 1));
            }
        }
        Ok(())
    }

    /// What is to be seen now; what is older than the window is forgotten.
    fn picture(&mut self, heard: &Heard) -> Picture {
        let now_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64);
        self.meter.forget_before(now_us.saturating_sub(duration(self.args.live.window).as_micros() as u64));
        let recent = Recent {
            new_us: (std::mem::replace(&mut self.shown_us, heard.last_us), heard.last_us),
            estimator: self.args.estimator(),
            tallies: &mut self.tallies,
            by_host: HashMap::new(),
        };
        let mut rows = recent.rows(&self.meter);
        rows.retain(|row| self.args.wants_host(row.host.address));
        // Nobody behind this has to think of pseudonyms.
        rows.iter_mut().for_each(|row| row.host.address = self.args.shown(row.host.address));
        rows.sort_by(|a, b| super::worst_first(&a.host, &b.host));
        let (counters, now) = (self.meter.counters(), Instant::now());
        let (since, packets, bytes) =
            std::mem::replace(&mut self.last, (now, counters.packets, counters.bytes));
        let seconds = now.duration_since(since).as_secs_f64().max(1e-9);
        Picture {
            rows,
            flows: self.meter.flows(),
            memory_bytes: self.meter.memory_bytes(),
            packets_per_s: (counters.packets - packets) as f64 / seconds,
            bits_per_s: (counters.bytes - bytes) as f64 * 8.0 / seconds,
            counters,
            lost: heard.lost,
            down: heard.down.clone(),
            spacing: self.spacing,
            tallies: self.tallies,
            running_s: self.began.elapsed().as_secs_f64(),
        }
    }

    /// Keeps fewer samples where pictures take too long, and more again where there is time.
    fn adapt(&mut self, took: Duration) {
        let before = self.spacing;
        if took > PICTURE_SLOW {
            self.spacing = (self.spacing * 2).clamp(SPACING_FIRST, SPACING_MOST);
        } else if took < PICTURE_SLOW / 8 {
            self.spacing /= 2;
            if self.spacing < SPACING_FIRST {
                self.spacing = Duration::ZERO;
            }
        }
        if self.spacing != before {
            self.meter.set_spacing_us(self.spacing.as_micros() as u32);
        }
    }

    /// The table of what the window holds in the end.
    fn end(&self, args: &MeterArgs, lost: u64) -> Result<(), Failure> {
        let found = super::find(args, &super::Captures::named(&[]), &self.meter);
        let findings = super::Findings { lost: Some(lost), ..found };
        if args.json {
            return super::data::print_json_line(args, &findings);
        }
        if args.csv {
            return show::print_csv(args, &findings);
        }
        let screen = Screen::new(false);
        screen.say(&show::text(args, &findings, &screen))
    }
}

impl<'a> Sinks<'a> {
    fn open(args: &'a MeterArgs, names: &str, listener: Option<TcpListener>) -> Result<Self, Failure> {
        let serve = |listener: TcpListener| -> Result<(http::Shared, Labels), Failure> {
            let at = listener.local_addr().ok();
            let text = http::Shared::default();
            http::serve(listener, text.clone())?;
            let at = at.map(|at| served_at(args, at)).unwrap_or_default();
            screen::mention(&format!("metrics at {at}/metrics\n"));
            Ok((text, Labels::new(args.live.metrics_hosts)))
        };
        let metrics = listener.map(serve);
        let title = format!("cede meter -i {names}, last {}", args.live.window);
        let screen = if args.live.ui { Some((ui::Screen::open()?, ui::View::new(title))) } else { None };
        Ok(Self { args, screen, metrics: metrics.transpose()?, last: None })
    }

    /// Who asks, or looks, before the first interval is over learns that there is a meter, and sees what keys do.
    fn begin(&mut self, picture: Picture) {
        self.publish(&picture);
        if let Some((screen, view)) = &mut self.screen {
            screen.draw(view, &picture);
            self.last = Some(picture);
        }
    }

    /// Hands the metrics out, where they are asked for.
    fn publish(&mut self, picture: &Picture) {
        if let Some((text, labels)) = &mut self.metrics {
            let fresh = metrics::text(picture, labels);
            *text.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = fresh;
        }
    }

    fn show(&mut self, picture: Picture) -> Result<(), Failure> {
        self.publish(&picture);
        match &mut self.screen {
            Some((screen, view)) => {
                view.remember(&picture);
                if !view.is_paused() {
                    screen.draw(view, &picture);
                }
            }
            None if self.args.json => screen::print(&line::json(&picture))?,
            // Standard output is for the table then.
            None if self.args.csv => {}
            None => screen::print(&line::text(&picture))?,
        }
        if !self.screen.as_ref().is_some_and(|(_, view)| view.is_paused()) {
            self.last = Some(picture);
        }
        Ok(())
    }

    /// Whether nobody hears of pictures any more, as behind `| head -1`.
    fn is_unheard(&self) -> bool {
        self.metrics.is_none() && screen::is_unread()
    }

    /// Does what the keys say.
    fn wants_to_quit(&mut self) -> bool {
        let Some((screen, view)) = &mut self.screen else { return false };
        match screen.wish(view) {
            ui::Wish::Quit => true,
            ui::Wish::Nothing => false,
            ui::Wish::Redraw => {
                if let Some(picture) = &self.last {
                    screen.draw(view, picture);
                }
                false
            }
        }
    }
}

/// Where metrics are. Under pseudonyms that of this machine, which may be seen itself, is not told beside what it is seen under.
fn served_at(args: &MeterArgs, at: SocketAddr) -> String {
    if args.veil.pseudonyms().is_some() {
        format!("port {} of the address asked for: ", at.port())
    } else {
        format!("http://{at}")
    }
}

fn duration(time: cede_units::Duration) -> Duration {
    Duration::from_nanos(time.as_nanos())
}
