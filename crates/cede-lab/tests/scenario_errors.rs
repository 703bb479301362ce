//! What is refused, and how it is said.

use cede_lab::scenario::{
    Fallback, MAX_PROBLEMS, METRICS, Overrides, Problem, Scenario, TABLES, reference, render,
};

const VALID: &str =
    "duration = \"10 s\"\n[link]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\n[[flow]]\nname = \"a\"\n";

const GRAPH: &str = "duration = \"10 s\"\n[topology]\nkind = \"graph\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
                     [[node]]\nname = \"c\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
                     [[flow]]\nfrom = \"a\"\nto = \"b\"\n";

fn problems(text: &str) -> Vec<Problem> {
    match Scenario::parse("x.toml", text) {
        Ok(_) => panic!("was accepted:\n{text}"),
        Err(problems) => problems,
    }
}

/// The one problem of the text: its line, its message and its help.
fn the_problem(text: &str) -> (usize, String, String) {
    let found = problems(text);
    assert_eq!(found.len(), 1, "{}", render(&found));
    (found[0].line, found[0].message.clone(), found[0].help.join("; "))
}

/// Asserts that the text has one problem, at the line that contains `at`, which says `message` and helps with `help`.
#[track_caller]
fn refused(text: &str, at: &str, message: &str, help: &str) {
    let (line, found, found_help) = the_problem(text);
    let expected = text.lines().position(|l| l.contains(at)).unwrap_or_else(|| panic!("no {at}")) + 1;
    assert_eq!(line, expected, "{found}");
    assert!(found.contains(message), "{found}");
    assert!(found_help.contains(help), "{found_help}");
}

fn with_link(line: &str) -> String {
    VALID.replace("[[flow]]", &format!("{line}\n[[flow]]"))
}

fn with_flow(lines: &str) -> String {
    format!("{VALID}{lines}\n")
}

#[test]
fn a_problem_reads_like_a_compilers() {
    let text = VALID.replace("delay", "dealy").replace("rate = \"10 Mbit/s\"", "rate = 10");
    let expected = "\
error: `delay` is missing in [link]
 --> x.toml:2:1
  |
2 | [link]
  | ^^^^^^
  = allowed: a time of at most 1000 h in ns, us, ms, s, min or h, for instance \"25 ms\"

error: `rate` in [link] lacks its unit: 10
 --> x.toml:3:8
  |
3 | rate = 10
  |        ^^
  = allowed: a rate above zero and of at most 1000 Gbit/s in bit/s, kbit/s, Mbit/s, Gbit/s, kB/s, MB/s, KiB/s or MiB/s, for instance \"10 Mbit/s\"

error: unknown key `dealy` in [link]
 --> x.toml:4:1
  |
4 | dealy = \"25 ms\"
  | ^^^^^
  = did you mean `delay`?
  = allowed: rate, delay, buffer, bdp_rtt, count_in_service, count_delayed, queue, ecn, policer, burst, peak, loss, loss_burst, reorder, duplicate, jitter, jitter_reorders, batch";
    assert_eq!(render(&problems(&text)), expected);
}

#[test]
fn a_bare_number_is_no_quantity() {
    refused(&VALID.replace("\"25 ms\"", "25"), "delay", "lacks its unit: 25", "\"25 ms\"");
    refused(&VALID.replace("25 ms", "25"), "delay", "lacks its unit: \"25\"", "ns, us, ms");
    refused(&with_link("buffer = 100"), "buffer", "lacks its unit", "\"100 packets\"");
    refused(&with_flow("bytes = 10"), "bytes", "lacks its unit", "MiB");
    refused(
        &with_flow("controller = { name = \"ledbat\", target = 25 }"),
        "target",
        "lacks its unit",
        "a time from",
    );
}

#[test]
fn a_wrong_unit_is_refused_with_the_right_ones() {
    refused(&VALID.replace("10 Mbit/s", "10 ms"), "rate", "unknown unit \"ms\"", "Mbit/s");
    refused(&VALID.replace("25 ms", "25 MB"), "delay", "unknown unit \"MB\"", "in ns, us, ms, s, min or h");
    refused(&with_link("buffer = \"3 furlongs\""), "buffer", "unknown unit \"furlongs\"", "BDP");
}

#[test]
fn impossible_values_are_refused() {
    refused(&VALID.replace("10 Mbit/s", "0 Mbit/s"), "rate", "must be above zero", "a rate above zero");
    refused(&VALID.replace("10 s", "0 s"), "duration", "must be above zero", "a time above zero");
    refused(&VALID.replace("25 ms", "-25 ms"), "delay", "is negative: \"-25 ms\"", "a time");
    refused(&with_link("loss = 1.5"), "loss", "out of range: 1.5", "a number from 0 to 1");
    refused(&with_link("loss = -0.1"), "loss", "out of range: -0.1", "a number from 0 to 1");
    refused(&with_link("loss = nan"), "loss", "out of range", "a number from 0 to 1");
    refused(&with_link("buffer = \"0 packets\""), "buffer", "must be above zero", "above zero");
    refused(&with_link("buffer = \"1.5 packets\""), "buffer", "no whole number", "100 packets");
    refused(&with_link("loss_burst = { enter = 0.1, leave = 0 }"), "leave", "never end", "above 0");
    refused(&with_flow("count = 0"), "count", "out of range: 0", "from 1 to 10000");
    refused(&with_flow("packet = \"20 B\""), "packet", "out of range: 20 B", "from 128 B");
    refused(&with_link("buffer = \"1 us\""), "buffer", "less than one packet", "at least 1500 B");
}

#[test]
fn what_would_do_nothing_beside_the_other_options_is_refused() {
    let reorders = with_link("jitter_reorders = true");
    refused(&reorders, "jitter_reorders", "`jitter_reorders` has no meaning here: only with a `jitter`", "");
    let nothing = |lines: &str, key: &str, why: &str| {
        refused(&with_flow(lines), key, &format!("`{key}` has no meaning here: only with {why}"), "");
    };
    let delayed = "`ack = \"delayed\"`";
    nothing("utp.ack_delay = \"20 ms\"", "ack_delay", delayed);
    nothing("utp.ack = \"every\"\nutp.ack_packets = 4", "ack_packets", delayed);
    let tcp = |line: &str, key: &str, why: &str| nothing(&format!("protocol = \"tcp\"\n{line}"), key, why);
    tcp("tcp.ack_delay = \"20 ms\"", "ack_delay", delayed);
    tcp("tcp.ack = \"linux\"\ntcp.ack_delay = \"20 ms\"", "ack_delay", delayed);
    tcp("tcp.sack = false\ntcp.rack = true", "rack", "`sack`");
    tcp("tcp.sack = false\ntcp.prr = true", "prr", "`sack`");
    tcp("tcp.timestamps = false\ntcp.timestamp_tick = \"10 ms\"", "timestamp_tick", "`timestamps`");
    tcp("tcp.timestamps = false\ntcp.timestamp_random = false", "timestamp_random", "`timestamps`");
    let red = with_link("queue = { kind = \"red\", adapt_up = 0.1 }");
    refused(&red, "adapt_up", "`adapt_up` has no meaning here: only with `adaptive = true`", "");
    let pie = with_link("queue = { kind = \"pie\", mark_max = 0.5 }");
    refused(&pie, "mark_max", "`mark_max` has no meaning here: only with `ecn`", "");
    let clock = with_flow("[[host]]\nname = \"a-sender\"\nclock_step_at = \"5 s\"");
    refused(&clock, "clock_step_at", "`clock_step_at` has no meaning here: only with a `clock_step`", "");
    for fine in [
        "queue = { kind = \"pie\", mark_max = 0.5 }\necn = true",
        "jitter_reorders = false",
        "jitter = \"0 s\"\njitter_reorders = true",
        "jitter = \"5 ms\"\njitter_reorders = true",
    ] {
        assert!(Scenario::parse("x.toml", &with_link(fine)).is_ok(), "{fine}");
    }
    let off = "protocol = \"tcp\"\ntcp = { sack = false, rack = false, prr = false, timestamps = false }";
    assert!(Scenario::parse("x.toml", &with_flow(off)).is_ok());
}

#[test]
fn limits_of_the_transports_are_told_and_not_bent() {
    let delayed = "utp.ack = \"delayed\"\nutp.ack_packets = 256";
    refused(&with_flow(delayed), "ack_packets", "out of range: 256", "from 1 to 255");
    refused(&with_flow("utp.send_buffer = \"2 GiB\""), "send_buffer", "out of range", "to 1 GiB");
    refused(
        &with_flow("protocol = \"tcp\"\ntcp.receive_buffer = \"2 GiB\""),
        "receive_buffer",
        "out of range",
        "1 GiB",
    );
    let slow = with_link("burst = \"64 KiB\"\npeak = \"1 Mbit/s\"");
    refused(&slow, "peak", "`peak` is 1 Mbit/s, below `rate`", "from that of the link on, 10 Mbit/s");
    let change = "\n[[change]]\nat = \"5 s\"\nlink = \"bottleneck\"\nrate = \"30 Mbit/s\"\n";
    let slow_later = with_link("burst = \"64 KiB\"\npeak = \"20 Mbit/s\"") + change;
    refused(
        &slow_later,
        "link = \"bottleneck\"",
        "`rate` becomes 30 Mbit/s, above `peak`",
        "up to the link's `peak`, 20 Mbit/s",
    );
    refused(&VALID.replace("10 Mbit/s", "2000 Gbit/s"), "rate", "out of range", "at most 1000 Gbit/s");
}

#[test]
fn times_must_lie_in_their_order() {
    refused(
        &with_flow("start = \"5 s\"\nstop = \"5 s\""),
        "stop",
        "not after the start",
        "after `start`, 5 s",
    );
    refused(&with_flow("start = \"10 s\""), "start", "the run is over", "before the end of the run, 10 s");
    refused(&format!("warmup = \"10 s\"\n{VALID}"), "warmup", "nothing of the run is left", "shorter");
}

#[test]
fn names_must_be_known_unique_and_plain() {
    refused(&with_flow("[[flow]]\nname = \"a\" # again"), "again", "two flows are called `a`", "of its own");
    refused(
        &with_flow("[[flow]]\nname = \"b\"\ncount = 2\n[[flow]]\nname = \"b-2\""),
        "b-2",
        "`b-2`",
        "of its own",
    );
    refused(&VALID.replace("\"a\"", "\"a.b\""), "a.b", "is no name", "letters");
    refused(&VALID.replace("\"a\"", "\"12\""), "12", "digits alone", "letters");
    refused(
        &with_flow("[[host]]\nname = \"a-sendr\""),
        "a-sendr",
        "unknown host",
        "did you mean `a-sender`?",
    );
    refused(
        &with_flow("[record]\nlinks = [\"bottlenek\"]"),
        "links",
        "unknown link",
        "did you mean `bottleneck`?",
    );
    let lost_end = GRAPH.replace("from = \"a\"\nto = \"b\"\nrate", "from = \"z\"\nto = \"b\"\nrate");
    refused(&lost_end, "\"z\"", "unknown node `z`", "allowed: a, b, c");
    let lost_flow = GRAPH.replace("[[flow]]\nfrom = \"a\"", "[[flow]]\nfrom = \"z\"");
    refused(&lost_flow, "\"z\"", "unknown host `z`", "allowed: a, b, c");
}

#[test]
fn graphs_must_join_the_ends_of_flows_both_ways() {
    assert!(Scenario::parse("x.toml", GRAPH).is_ok());
    let far = GRAPH.replace("[[flow]]\nfrom = \"a\"\nto = \"b\"", "[[flow]]\nfrom = \"a\"\nto = \"c\" # far");
    let found = problems(&far);
    let messages: Vec<&str> = found.iter().map(|p| p.message.as_str()).collect();
    assert_eq!(messages, ["no way leads from `a` to `c`", "no way leads from `c` to `a`"]);
    let one_way = GRAPH.replace("rate =", "both_ways = false\nrate =");
    let (line, message, help) = the_problem(&one_way);
    assert_eq!((line, message.as_str()), (18, "no way leads from `b` to `a`"));
    assert!(help.contains("both directions"), "{help}");
    let route = format!("{GRAPH}[[route]]\npath = [\"a\", \"c\"]\n");
    refused(&route, "path", "no link leads from `a` to `c`", "");
    let twice = GRAPH.replace(
        "[[flow]]",
        "[[link]]\nfrom = \"a\" # twin\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n[[flow]]",
    );
    let (_, message, help) = the_problem(&twice);
    assert!(message.contains("two links are called `a-b`") && help.contains("NAME-back"), "{message} {help}");
}

#[test]
fn a_bdp_needs_its_round_trip_time() {
    assert!(Scenario::parse("x.toml", &with_link("buffer = \"2 BDP\"")).is_ok());
    let graph = GRAPH.replace("rate =", "buffer = \"2 BDP\"\nrate =");
    refused(&graph, "BDP", "needs a round-trip time", "bdp_rtt");
    let counting = graph.replace("rate =", "count_delayed = true\nrate =");
    refused(&counting, "true", "for a plain queue that counts packets", "a buffer in packets");
    assert!(Scenario::parse("x.toml", &graph.replace("rate =", "bdp_rtt = \"50 ms\"\nrate =")).is_ok());
    let idle = graph.replace("2 BDP", "20 packets").replace("rate =", "bdp_rtt = \"50 ms\"\nrate =");
    refused(&idle, "bdp_rtt", "`bdp_rtt` has no meaning here: only with a `buffer` in BDP", "");
    let zero = format!("{}[topology]\naccess_delay = \"0 s\"\n", VALID.replace("25 ms", "0 s"));
    refused(&zero, "delay = \"0 s\"", "base round-trip time is zero", "above zero");
}

#[test]
fn controllers_and_their_parameters_are_the_registrys() {
    refused(
        &with_flow("controller = \"ledbta\""),
        "ledbta",
        "unknown controller `ledbta`",
        "did you mean `ledbat`?",
    );
    refused(
        &with_flow("controller = \"ledbatpp\""),
        "ledbatpp",
        "unknown controller `ledbatpp`",
        "did you mean `ledbat++`?",
    );
    let unknown = with_flow("controller = { name = \"ledbat\", traget = \"25 ms\" }");
    refused(&unknown, "traget", "`ledbat` has no parameter `traget`", "did you mean `target`?");
    let nameless = with_flow("controller = { nmae = \"vegas\" }");
    refused(&nameless, "nmae", "unknown key `nmae` in a controller without a `name`", "did you mean `name`?");
    let nameless = with_flow("controller = { traget = \"25 ms\" }");
    refused(&nameless, "traget", "in a controller without a `name`", "those of the default here, `ledbat`");
    let crossed = with_flow("controller = { name = \"vegas\", alpha = 5, beta = 2 }");
    refused(
        &crossed,
        "{ name",
        "`vegas` refuses: the parameter \"alpha\" cannot be 5 here; allowed: a number up to \"beta\", which is 2",
        "",
    );
    let wrong = with_flow("controller = { name = \"ledbat\", target = \"a lot\" }");
    refused(
        &wrong,
        "a lot",
        "the parameter `target` of `ledbat` cannot be the text \"a lot\"",
        "a time from",
    );
    let bits = |bits: &str| with_flow(&format!("controller = {{ name = \"lp-linux\", bits = {bits} }}"));
    assert!(
        ["\"32\"", "32", "\"32-delay\""].iter().all(|word| Scenario::parse("x.toml", &bits(word)).is_ok())
    );
    refused(
        &bits("16"),
        "16",
        "the parameter `bits` of `lp-linux` cannot be the number 16",
        "32, 32-delay, 64",
    );
}

#[test]
fn assertions_use_metrics_flows_and_links_that_there_are() {
    let assert = |text: &str| format!("{VALID}[assert]\n{text}\n");
    assert!(
        Scenario::parse("x.toml", &assert("queue.p95_ms = \"< 70\"\nflow.a.share = [\"> 0\", \"<= 1\"]"))
            .is_ok()
    );
    refused(&assert("queue.p95 = \"< 70\""), "p95", "unknown metric `queue.p95`", "p95_ms");
    refused(&assert("flow.b.share = \"> 0\""), "flow.b", "unknown flow `b`", "allowed: a");
    refused(&assert("flow.share = \"> 0\""), "share", "lacks the flow's name", "allowed: a");
    refused(&assert("queue.p95_ms = \"70\""), "p95", "compares nothing", "METRIC < NUMBER");
    refused(&assert("queue.p95_ms = \"< 70 ms\""), "p95", "\"70 ms\" is no number", "counts ms");
    refused(&assert("link.efficiency = \"> 98 %\""), "98", "is no number", "98 % is 0.98");
    refused(&assert("link.core.loss = \"< 1\""), "core", "unknown link `core`", "bottleneck, return");
    refused(&assert("fairness = 3"), "fairness", "cannot be the number 3", "queue.p95_ms");
    let graph = format!("{GRAPH}[assert]\nqueue.p95_ms = \"< 70\"\n");
    refused(&graph, "p95", "lacks the link's name", "a-b, a-b-back");
}

#[test]
fn what_belongs_elsewhere_says_where() {
    refused(
        &VALID.replace("[link]", "rate = \"1 Mbit/s\"\n[link]"),
        "1 Mbit",
        "unknown key `rate` at the top",
        "option of [link]",
    );
    refused(&with_link("queue = \"choke\""), "choke", "is no known word", "droptail");
    for name in ["bbr", "vivace", "proteus-p", "proteus-s", "proteus-h", "fixed"] {
        let tcp = format!("protocol = \"tcp\"\ncontroller = \"{name}\"\n[flow.tcp]\necn = true");
        let text = with_flow(&tcp);
        refused(&text, "ecn", &format!("`ecn` is not for `{name}`"), "answers marks");
    }
    refused(&with_link("ecn = true"), "ecn", "`ecn` has no meaning here", "codel, fq-codel, pie or red");
    let policer = "policer = { rate = \"5 Mbit/s\", burst = \"500 B\" }";
    refused(&with_link(policer), "policer", "less than one packet", "at least 1500 B");
    let late = "[[host]]\nname = \"a-sender\"\nclock_step = \"1 s\"\nclock_step_at = \"1000 s\"";
    refused(
        &with_flow(late),
        "a-sender",
        "`clock_step_at` is 1000 s, when the run is over",
        "before the end",
    );
    refused(&with_flow("[flow.tcp]"), "flow.tcp", "the protocol of this flow is \"utp\"", "");
    refused(&with_flow("from = \"x\""), "from", "hosts of its own", "");
    refused(&with_flow("[[node]]\nname = \"x\""), "node", "belongs to a graph", "");
    let traffic =
        with_flow("traffic = { kind = \"heartbeat\", period = \"1 s\", bytes = \"1 kB\", on = \"1 s\" }");
    refused(&traffic, "traffic", "no option of \"heartbeat\" traffic", "");
}

#[test]
fn what_is_no_toml_is_refused_at_its_line() {
    let (line, message, _) = the_problem(&VALID.replace("\"25 ms\"", "25 ms"));
    assert_eq!(line, 4);
    assert!(message.starts_with("not TOML: "), "{message}");
    let empty = problems("");
    assert!(empty.iter().all(|p| p.line == 1) && empty.len() == 3, "{}", render(&empty));
}

#[test]
fn a_wrong_override_is_shown_as_its_own_line() {
    let problem = |text: &str| {
        let found = Scenario::parse_with("x.toml", VALID, &Overrides::new([text])).unwrap_err();
        assert_eq!(found.len(), 1, "{}", render(&found));
        found[0].to_string()
    };
    let shown = problem("link.rate=5");
    assert!(
        shown.starts_with(
            "error: `rate` in [link] lacks its unit: 5\n --> -s:1:11\n  |\n1 | link.rate=5\n  |           ^\n"
        ),
        "{shown}"
    );
    assert!(problem("link.rate").contains("has no `=`"));
    assert!(problem("flow.b.start=1 s").contains("there is no element `b`"));
    assert!(problem("lnk.rate=1 Mbit/s").contains("did you mean `link`?"));
    assert!(problem("duration.x=1 s").contains("there is no `x` in the text"));
    assert!(problem("flow.0.controller.traget=5 ms").contains("did you mean `target`?"));
}

#[test]
fn the_reference_names_every_key_word_and_metric() {
    let text = reference();
    for table in TABLES {
        assert!(text.contains(table.meaning), "{}", table.path);
        for option in table.options() {
            let default = match option.fallback {
                Fallback::Required => "**required**",
                Fallback::Value(text) | Fallback::Absent(text) => text,
            };
            let start = format!("| `{}` |", option.key);
            let parts = [default, option.example, option.meaning];
            let row =
                text.lines().find(|l| l.starts_with(&start) && parts.iter().all(|part| l.contains(part)));
            let row = row.unwrap_or_else(|| panic!("no row for {} {}", table.path, option.key));
            // A stray bar would break the row apart.
            assert_eq!(row.matches('|').count(), 6, "{row}");
        }
    }
    assert!(METRICS.iter().all(|metric| text.contains(&metric.pattern())));
}

#[test]
fn a_file_in_which_nothing_is_right_is_told_so_in_a_few_words() {
    let twins = VALID.to_string() + &"[[flow]]\n".repeat(3000);
    assert_eq!(problems(&twins).len(), MAX_PROBLEMS);
    assert!(problems(&format!("a = {}", "[".repeat(100_000))).len() <= MAX_PROBLEMS);
}

#[test]
fn more_flows_than_ports_are_refused() {
    let flow = |name: &str| format!("[[flow]]\nname = \"{name}\"\ncount = 10000\n");
    let text = VALID.to_string() + &["b", "c", "d", "e", "f", "last"].map(flow).concat();
    refused(&text, "last", "there are 60001 flows", "55535");
}
