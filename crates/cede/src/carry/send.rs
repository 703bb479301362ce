//! `cede send`: a test of the way to another machine, or a file to it.

use super::args::SendArgs;
use super::table::{HEAD, Rows};
use super::{broken, document, key, stream_config, target, transfer, unreached};
use crate::failure::Failure;
use crate::screen::{self, Screen};
use cede_carry::bench::{
    Client, ControllerSpec, Limit, MAX_INTERVAL, Outcome, Peer, Plan, Sample, TestError,
};
use cede_carry::{Key, Stop, Target};
use cede_real::StreamConfig;
use cede_units::Duration;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::Path;

const TEST_TIME: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_secs(1);

/// Tests, or sends a file.
pub fn send(args: &SendArgs) -> Result<(), Failure> {
    match args.what.as_slice() {
        [host] => test(args, whereto(host)?),
        [file, host] => {
            let options = [
                (args.time.is_some(), "-t"),
                (args.bytes.is_some(), "-n"),
                (args.reverse, "-R"),
                (args.parallel.is_some(), "-P"),
                (args.rate.is_some(), "-b"),
                (args.interval.is_some(), "-i"),
            ];
            if let Some((_, option)) = options.iter().find(|(is_given, _)| *is_given) {
                return Err(Failure::Usage(format!("{option} is for tests, and does not go with a file")));
            }
            transfer::send_file(args, file, whereto(host)?)
        }
        _ => Err(Failure::Usage("give HOST:PORT, or FILE and HOST:PORT".to_owned())),
    }
}

/// A host's name and port; unlike a file's name they are always text.
fn whereto(host: &OsStr) -> Result<&str, Failure> {
    host.to_str().ok_or_else(|| {
        let shown = screen::named(Path::new(host));
        Failure::Usage(format!("{shown} is no HOST:PORT; for a file write: cede send {shown} HOST:PORT"))
    })
}

fn test(args: &SendArgs, host: &str) -> Result<(), Failure> {
    if Path::new(host).is_file() {
        return Err(Failure::Usage(format!("whereto? write: cede send {host} HOST:PORT")));
    }
    if args.name.is_some() {
        return Err(Failure::Usage("--as is for files, and does not go with a test".to_owned()));
    }
    let target = target(host, args.port)?;
    let (spec, config) = stream_config(&args.controller)?;
    let plan = plan(args, &spec)?;
    let key = key::load(&args.key)?;
    let report = Report::new(args, target, plan, spec, key);
    super::run(|stop| carry_out(report, config, stop))
}

fn plan(args: &SendArgs, spec: &ControllerSpec) -> Result<Plan, Failure> {
    let plan = Plan {
        streams: args.parallel.unwrap_or(1),
        reverse: args.reverse,
        limit: match args.bytes {
            Some(bytes) => Limit::Bytes(bytes),
            None => Limit::Time(args.time.unwrap_or(TEST_TIME)),
        },
        interval: args.interval.filter(|interval| !interval.is_zero()).unwrap_or(match args.interval {
            None => INTERVAL,
            Some(_) => MAX_INTERVAL,
        }),
        rate: args.rate,
        controller: (args.reverse && !args.controller.is_default()).then(|| spec.clone()),
    };
    plan.check().map_err(Failure::Usage)?;
    Ok(plan)
}

async fn carry_out(mut report: Report, config: StreamConfig, mut stop: Stop) -> Result<(), Failure> {
    let opening = Client::open(&report.target, &config, report.key.as_ref(), report.plan.clone());
    let opened = tokio::select! {
        opened = opening => opened,
        () = stop.asked() => return Err(Failure::Interrupted("nothing was tested".to_owned())),
    };
    let client = match opened {
        Ok(client) => client,
        Err(error) => return Err(report.failed(&error)),
    };
    report.begin(&client.peer);
    let outcome = client.run(&mut stop, |here, there| report.interval(here, there)).await;
    match outcome {
        Ok(outcome) => report.end(&outcome),
        Err((error, outcome)) => {
            report.rest(&outcome);
            Err(report.failed(&error))
        }
    }
}

/// In which form the report comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Words,
    Document,
    Lines,
}

/// What is said of a test.
struct Report {
    target: Target,
    plan: Plan,
    spec: ControllerSpec,
    key: Option<Key>,
    form: Form,
    screen: Screen,
    before: (Vec<Sample>, Vec<Sample>),
    start: Value,
    intervals: Vec<Value>,
}

impl Report {
    fn new(args: &SendArgs, target: Target, plan: Plan, spec: ControllerSpec, key: Option<Key>) -> Self {
        let form = match (args.json, args.json_stream) {
            (true, _) => Form::Document,
            (_, true) => Form::Lines,
            _ => Form::Words,
        };
        let screen = Screen::new(form != Form::Words);
        let (before, intervals) = Default::default();
        Self { target, plan, spec, key, form, screen, before, start: Value::Null, intervals }
    }

    fn begin(&mut self, peer: &Peer) {
        self.start = document::start(&self.target, peer, &self.plan, &self.spec, self.key.is_some());
        match self.form {
            Form::Words => {
                let text = format!("{}\n{}\n", self.headline(peer), self.screen.bold(HEAD));
                let _ = self.screen.say(&text);
            }
            Form::Lines => self.event("start", &self.start),
            Form::Document => {}
        }
    }

    fn headline(&self, peer: &Peer) -> String {
        let port = peer.local.port();
        let streams = match self.plan.streams {
            1 => "one stream".to_owned(),
            count => format!("{count} streams"),
        };
        let way = if self.plan.reverse { "from there to here" } else { "from here to there" };
        let params: String =
            self.spec.params.iter().map(|(name, value)| format!(", {name} {value}")).collect();
        let controller = match (self.plan.reverse, &self.plan.controller) {
            (true, None) => "the server's controller".to_owned(),
            _ => format!("{}{params}", self.spec.name),
        };
        let (target, remote, under) = (&self.target, peer.remote, key::under(self.key.as_ref()));
        format!("{target} ({remote}) from UDP port {port}: {streams} {way}, {controller}{under}")
    }

    /// What has happened since the last look.
    fn interval(&mut self, here: &[Sample], there: &[Sample]) {
        let rows = Rows::between([&self.before.0, here], [&self.before.1, there], !self.plan.reverse);
        self.before = (here.to_vec(), there.to_vec());
        let value = document::interval(&rows, !self.plan.reverse);
        match self.form {
            Form::Words => {
                // What standard output does not take shows at the end.
                let _ = self.screen.say(&rows.lines());
            }
            Form::Lines => self.event("interval", &value),
            Form::Document => self.intervals.push(value),
        }
    }

    /// What has happened since the last interval, if that is worth a line.
    fn rest(&mut self, outcome: &Outcome) {
        let is_news = outcome.here.iter().enumerate().any(|(index, sample)| {
            let before = self.before.0.get(index).copied().unwrap_or_default();
            sample.bytes != before.bytes || sample.at - before.at > Duration::from_millis(20)
        });
        if is_news {
            self.interval(&outcome.here, &outcome.there);
        }
    }

    fn end(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        self.rest(outcome);
        let is_sender = !self.plan.reverse;
        let end = document::end(outcome, is_sender, cpu_s());
        match self.form {
            Form::Words => self.screen.say(&self.totals(outcome))?,
            Form::Lines => self.event("end", &end),
            Form::Document => {
                let intervals = std::mem::take(&mut self.intervals);
                screen::print_json(&json!({ "start": self.start, "intervals": intervals, "end": end }))?;
            }
        }
        match outcome.was_stopped {
            true => Err(Failure::Interrupted("the test ended before its time".to_owned())),
            false => Ok(()),
        }
    }

    fn totals(&self, outcome: &Outcome) -> String {
        let is_sender = !self.plan.reverse;
        let (sent, received) =
            if is_sender { (&outcome.here, &outcome.there) } else { (&outcome.there, &outcome.here) };
        let sent = Rows::between([&[], sent], [&[], &[]], true);
        let received = document::totals(received);
        let side = |rows: &Rows, name: &str| {
            let lines = rows.lines();
            lines.lines().map(|line| format!("{line}   {name}\n")).collect::<String>()
        };
        let cpu = cpu_s().map(|cpu_s| {
            let gigabytes = received.sum.bytes as f64 / 1e9;
            format!("processor time of this end: {cpu_s:.2} s, {:.2} s/GB\n", cpu_s / gigabytes.max(1e-9))
        });
        format!(
            "- - - - - - - - - - total\n{}{}{}",
            side(&sent, "sender"),
            side(&received, "receiver"),
            cpu.unwrap_or_default()
        )
    }

    /// The failure, and in JSON too.
    fn failed(&mut self, error: &TestError) -> Failure {
        let failure = match error {
            TestError::Dial(error) => unreached(error, "cede serve"),
            TestError::Wire(error) => broken(error),
            TestError::Connect(error) => Failure::Failed(format!("no further stream: {error}")),
        };
        let text = match &failure {
            Failure::Failed(text) => text.clone(),
            _ => error.to_string(),
        };
        match self.form {
            Form::Words => {}
            Form::Lines => self.event("error", &Value::from(text)),
            Form::Document => {
                let intervals = std::mem::take(&mut self.intervals);
                // As with iperf3, an end that tells nothing: the document has the same parts.
                let document =
                    json!({ "start": self.start, "intervals": intervals, "end": {}, "error": text });
                let _ = screen::print_json(&document);
            }
        }
        failure
    }

    fn event(&self, name: &str, data: &Value) {
        screen::report_json_line(&json!({ "event": name, "data": data }));
    }
}

/// Processor time of the whole process in seconds, where the system tells (Linux).
pub fn cpu_s() -> Option<f64> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let nanos = tasks.flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    Some(nanos.sum::<f64>() / 1e9)
}
