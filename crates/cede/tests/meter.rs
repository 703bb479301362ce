//! `cede meter`, on recorded captures of a 1 Mbit/s uplink seen from the other end.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Deref;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::captures::{TCP, UTP, halves, parts, plain};
use support::{Finished, Folder, pattern, until_taken};

/// A folder with the captures, removed in the end.
struct Place(Folder);

impl Deref for Place {
    type Target = Folder;
    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        folder.write("utp.pcap.gz", UTP);
        folder.write("tcp.pcap", plain(TCP));
        Self(folder)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.0.command([&["meter"], arguments].concat())
    }

    fn meter(&self, arguments: &[&str]) -> (i32, String, String) {
        Finished::of(self.command(arguments).output().unwrap()).told()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let (code, out, err) = self.meter(&[arguments, &["--json"]].concat());
        assert_eq!(code, 0, "{err}");
        serde_json::from_str(&out).unwrap()
    }
}

/// The recorded queue is empty at the beginning alone: a window that is shorter than the capture sees the rest from where it is least.
#[test]
fn what_delays_are_counted_from_may_slide() {
    let place = Place::new("base");
    let mean = |json: &Value| json["hosts"][0]["queue"]["time_mean_ms"].as_f64().unwrap();
    let whole = place.json(&["tcp.pcap"]);
    let wide = place.json(&["tcp.pcap", "--base", "1 h"]);
    assert_eq!(whole["hosts"], wide["hosts"]);
    assert_eq!((&whole["base_window_s"], &wide["base_window_s"]), (&Value::Null, &3600.0.into()));
    let sliding = place.json(&["tcp.pcap", "--base", "10 s"]);
    assert!(mean(&sliding) < 0.9 * mean(&whole) && mean(&sliding) > 0.0, "{sliding}");
    let (code, _, err) = place.meter(&["tcp.pcap", "--base", "10 ms"]);
    assert!(code == 2 && err.contains("--base: 10 ms is less than 1 s"), "{err}");
}

#[test]
fn words_fit_a_narrow_terminal_and_say_whom_they_are_about() {
    let place = Place::new("narrow");
    let output = place.command(&["utp.pcap.gz"]).env("COLUMNS", "60").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("10.0.1.2") && text.contains("--csv"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    let (code, out, _) = place.meter(&["utp.pcap.gz", "--host", "192.0.2.1"]);
    assert!(code == 0 && out.starts_with("No host that --host asks for says anything"), "{out}");
}

#[test]
fn a_host_may_be_written_as_it_is_shown_or_as_one_of_ipv6() {
    let place = Place::new("spelled");
    let of = |host: &str| place.meter(&["tcp.pcap", "--csv", "--host", host]);
    let (code, wanted, _) = of("10.0.1.2");
    assert!(code == 0 && wanted.lines().count() == 2, "{wanted}");
    for host in ["::ffff:10.0.1.2", "[::ffff:a00:102]", "[10.0.1.2]"] {
        assert_eq!(of(host).1, wanted, "{host}");
    }
    for host in ["10.0.1.2:80", "[10.0.1.2", "10.0.1.0/24", "one"] {
        let (code, _, err) = of(host);
        assert!(code == 2 && err.contains("such as 203.0.113.7 or 2001:db8::7"), "{err}");
    }
}

#[test]
fn the_worst_host_comes_first_in_every_form() {
    let place = Place::new("forms");
    let (code, out, err) = place.meter(&["tcp.pcap"]);
    assert_eq!(code, 0, "{err}");
    let first = out.lines().find(|line| line.starts_with("10.0.")).expect("a host");
    assert!(first.starts_with("10.0.1.2"), "{out}");
    let json = place.json(&["tcp.pcap"]);
    assert_eq!(json["hosts"][0]["address"], "10.0.1.2");
    assert!(json["hosts"][0]["queue"]["time_mean_ms"].as_f64().unwrap() > 2_000.0, "{json}");
    let (_, csv, _) = place.meter(&["tcp.pcap", "--csv"]);
    assert!(csv.starts_with("host,protocols,flows,samples,mean_ms,sample_mean_ms,"), "{csv}");
    assert!(csv.lines().nth(1).unwrap().starts_with("10.0.1.2,TCP,1,"), "{csv}");
    let (_, plot, _) = place.meter(&["tcp.pcap", "--plot"]);
    assert!(plot.contains("Queueing delay at the sender"), "{plot}");
}

#[test]
fn series_flows_and_choices() {
    let place = Place::new("choices");
    let (_, all, _) = place.meter(&["utp.pcap.gz", "--series"]);
    let (_, one, _) = place.meter(&["utp.pcap.gz", "--series", "--host", "10.0.1.2", "--json"]);
    assert!(all.starts_with("time_us,from,to,protocol,estimator,queue_us\n"));
    assert!(one.lines().count() > 5_000 && all.lines().count() > 2 * one.lines().count() - 500);
    let first: Value = serde_json::from_str(one.lines().next().unwrap()).unwrap();
    assert_eq!((&first["from"], &first["protocol"]), (&Value::from("10.0.1.2:6881"), &Value::from("uTP")));
    let flows = place.json(&["utp.pcap.gz", "tcp.pcap", "--flows"]);
    assert_eq!(flows["flows"].as_array().unwrap().len(), 4);
    assert!(flows["flows"][0]["echoed"]["samples"].as_u64().unwrap() > 3_000, "{}", flows["flows"][0]);
    let tcp = place.json(&["utp.pcap.gz", "tcp.pcap", "--protocol", "tcp"]);
    assert!(tcp["hosts"][0]["utp"].is_null() && tcp["hosts"][0]["tcp"].is_object());
    let later = place.json(&["tcp.pcap", "--since", "60 s", "--until", "70 s"]);
    let flags = &later["hosts"][0]["flags"];
    // What came before it is not shown, but known.
    assert!(!flags.as_array().unwrap().contains(&"start-not-seen".into()), "{flags}");
    let covered = later["hosts"][0]["queue"]["covered_s"].as_f64().unwrap();
    assert!((9.0..=10.0).contains(&covered), "{covered}");
    // So many packets were seen in this time.
    let counted = |name: &str| later["counters"][name].as_u64().unwrap();
    let (_, words, _) = place.meter(&["tcp.pcap", "--since", "60 s", "--until", "70 s"]);
    let inside = counted("packets") - counted("packets_outside_time");
    let told = words.replace(',', "");
    assert!(told.contains(&format!("\n{inside} packets in 10.0 s")) && inside > 500, "{words}");
}

#[test]
fn several_files_pipes_and_compressions_read_alike() {
    let place = Place::new("sources");
    let whole = place.json(&["tcp.pcap"]);
    let octets = plain(TCP);
    let [one, two] = halves(&octets);
    place.write("one.pcap", one);
    place.write("two.pcap", two);
    let halves = place.json(&["one.pcap", "two.pcap"]);
    assert_eq!(halves["hosts"][0]["queue"], whole["hosts"][0]["queue"]);
    let piped = place.cede_reading(&["meter", "-", "--json"], TCP).json();
    assert_eq!(piped["hosts"], whole["hosts"]);
}

#[test]
fn a_pipe_that_is_silent_may_be_given_up_and_what_it_said_counts() {
    let place = Place::new("silent-pipe");
    for (name, compressed) in [("plain", false), ("gzip", true)] {
        let mut running = place.start_reading(&["meter", "-"], Stdio::piped());
        let mut pipe = running.stdin();
        let octets = if compressed { TCP.to_vec() } else { plain(TCP) };
        pipe.write_all(&octets[..octets.len() / 2]).unwrap();
        until_taken(&pipe);
        // What was taken is looked at within a moment.
        std::thread::sleep(Duration::from_secs(1));
        running.interrupt();
        let ended =
            running.end().exits(130).complains("interrupted: - was not read to the end; what came before");
        assert!(ended.text().contains("10.0.1.2"), "{name}: {}", ended.text());
        drop(pipe);
    }
}

/// To open a pipe with a name is to wait for whoever writes into it, who may never come.
#[test]
#[cfg(unix)]
fn a_pipe_that_nobody_writes_into_may_be_given_up() {
    let place = Place::new("nobody-writes");
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    for files in [&["pipe"][..], &["tcp.pcap", "pipe"]] {
        let running = place.start(&[&["meter"], files].concat());
        std::thread::sleep(Duration::from_secs(1));
        running.interrupt();
        running.end().exits(130).complains("not read to the end; what came before counts");
    }
}

#[test]
fn the_analysis_of_captures_ends_with_what_is_wrong_with_them() {
    let place = Place::new("analysis");
    place.write("noise", [7; 99]);
    let analysis = ["repro", "bufferbloat", "--world", "sim", "--quick", "-o", "out", "--capture", "noise"];
    let ended = place.cede(&[&analysis[..], &["--capture", "tcp.pcap"]].concat());
    let ended = ended.exits(1).complains("error: noise: at octet 0: neither pcap nor pcapng");
    assert!(ended.text().contains("statements") && place.path("out/bufferbloat.html").exists());
    place.cede(&analysis).exits(1).complains("no peer in these captures has 50 samples");
}

/// Answers are in other files than their questions, and round trips last for several files.
#[test]
fn where_files_end_changes_nothing() {
    let place = Place::new("cuts");
    for (capture, flags) in [(TCP, &["--flows"][..]), (UTP, &["--flows", "--estimator", "echoed"])] {
        let octets = plain(capture);
        place.write("whole.pcap", &octets);
        let whole = place.json(&[&["whole.pcap"], flags].concat());
        for count in [2, 7, 150] {
            let names: Vec<String> = (0..count).map(|k| format!("part{k}.pcap")).collect();
            names.iter().zip(parts(&octets, count)).for_each(|(name, part)| place.write(name, part));
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let found = place.json(&[&names[..], flags].concat());
            for member in ["hosts", "flows", "counters"] {
                assert_eq!(found[member], whole[member], "{count}: {member}");
            }
        }
    }
}

#[test]
fn files_are_one_run_in_whatever_order_they_are_named() {
    let place = Place::new("order");
    let octets = plain(TCP);
    let parts = parts(&octets, 4);
    for (part, name) in parts.iter().zip(["cap", "cap1", "cap10", "cap2"]) {
        place.write(name, part);
    }
    place.write("empty", &octets[..24]);
    let gzip = |octets: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(octets).unwrap();
        encoder.finish().unwrap()
    };
    place.write("cap1.gz", gzip(&parts[1]));
    let of = |files: &[&str], more: &[&str]| place.json(&[files, more].concat());
    let ordered = of(&["cap", "cap1", "cap10", "cap2"], &["--flows"]);
    for files in [
        &["cap2", "cap10", "cap1", "cap"][..],
        &["cap10", "cap", "empty", "cap2", "cap1.gz"],
        &["empty", "cap2", "cap1", "cap", "cap10"],
    ] {
        let found = of(files, &["--flows"]);
        assert_eq!(
            (&found["hosts"], &found["flows"], &found["counters"]),
            (&ordered["hosts"], &ordered["flows"], &ordered["counters"]),
            "{files:?}"
        );
    }
    let times = ["--since", "20 s", "--until", "100 s"];
    let since = of(&["tcp.pcap"], &times);
    let outside = |found: &Value| found["counters"]["packets_outside_time"].clone();
    assert_eq!(outside(&of(&["cap2", "cap10", "cap1", "cap"], &times)), outside(&since));
    // Standard input cannot be read twice: it keeps its place, here the second one.
    let piped = place.cede_reading(&["meter", "cap1", "-", "cap", "cap2", "--json"], &parts[2]).json();
    let named = of(&["cap", "cap10", "cap1", "cap2"], &[]);
    assert_eq!(piped["counters"]["packets"], named["counters"]["packets"]);
    assert_eq!(piped["hosts"].as_array().unwrap().len(), named["hosts"].as_array().unwrap().len());
}

/// What a shell's patterns name twice; of pieces that follow each other nothing is to be told.
#[test]
fn a_file_named_twice_is_read_once() {
    let place = Place::new("twice");
    let octets = plain(TCP);
    let parts = parts(&octets, 4);
    let later = |part: &Vec<u8>| part[24..].to_vec();
    place.write("cap1", [parts[2].clone(), later(&parts[3])].concat());
    place.write("head", [parts[0].clone(), later(&parts[1])].concat());
    let once = place.json(&["tcp.pcap"]);
    let (code, out, err) = place.meter(&["tcp.pcap", "./tcp.pcap", "--json"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert!(code == 0 && err.contains("note: ./tcp.pcap is named more than once and read once"), "{err}");
    assert_eq!((&found["hosts"], &found["counters"]), (&once["hosts"], &once["counters"]));
    let (code, _, err) = place.meter(&["cap1", "head", "--json"]);
    assert!(code == 0 && err.is_empty(), "{err}");
}

/// A name that is no Unicode, as file systems of Linux permit.
#[cfg(target_os = "linux")]
#[test]
fn a_file_may_be_called_anything() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new("called");
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.pcap");
    std::fs::rename(place.path("tcp.pcap"), place.path("").join(name)).unwrap();
    for program in ["meter", "inspect"] {
        let mut command = place.0.command([program]);
        let found = Finished::of(command.arg(name).arg("--json").output().unwrap()).exits(0).json();
        assert_eq!(found["files"][0], "caf\u{fffd}.pcap");
    }
}

/// What a terminal would obey, in the name of a file: whoever speaks of it shows it as what it is, and in one line.
#[cfg(unix)]
#[test]
fn no_name_commands_a_terminal() {
    let place = Place::new("commands");
    let (name, lines) = ("a\u{1b}]0;title\u{7}.pcap", "a\u{1b}[2J\nerror: b.pcap");
    let shown = |name: &str| name.replace(char::is_control, "\u{fffd}");
    let tell = |verb: &[&str], name| {
        place.write(name, "none");
        let (_, out, err) = Finished::of(place.0.command([verb, &[name]].concat()).output().unwrap()).told();
        assert!(err.contains(&shown(name)), "{verb:?}: {err:?}");
        assert!(!(out + &err).contains(['\u{1b}', '\u{7}']), "{verb:?}");
    };
    [&["run"][..], &["send"]].iter().for_each(|verb| tell(verb, name));
    for verb in [&["meter", name][..], &["inspect"], &["torrent", "show"]] {
        [name, lines].iter().for_each(|name| tell(verb, name));
    }
}

#[test]
fn what_only_an_interface_has_is_refused_with_files() {
    let place = Place::new("live-only");
    for option in [
        &["--window", "5 s"][..],
        &["--for", "5 s"],
        &["--interval", "1 s"],
        &["--ui"],
        &["--prometheus", "[::1]:1"],
    ] {
        let (code, out, err) = place.meter(&[&["tcp.pcap"], option].concat());
        assert!(code == 2 && out.is_empty() && err.contains(option[0]), "{option:?}: {code} {out}{err}");
    }
}

/// Figures for programs have no room for a picture, which would be left out without a word.
#[test]
fn what_is_asked_for_is_shown_or_refused() {
    let place = Place::new("shown");
    for form in ["--json", "--csv", "--series"] {
        let (code, out, err) = place.meter(&["tcp.pcap", "--plot", form]);
        assert!(code == 2 && out.is_empty() && err.contains("--plot"), "{form}: {code} {out}{err}");
    }
}

/// One frame of zstd, with a checksum.
fn zstd_frame(octets: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(octets).unwrap();
    encoder.finish().unwrap()
}

/// A frame that readers pass over, as pzstd writes them (RFC 8878, section 3.1.2).
fn skippable() -> Vec<u8> {
    [&[0x50, 0x2a, 0x4d, 0x18, 5, 0, 0, 0][..], b"aside"].concat()
}

#[test]
fn zstd_is_read_frame_by_frame() {
    let place = Place::new("zstd");
    let octets = plain(TCP);
    let whole = place.json(&["tcp.pcap"]);
    let frames: Vec<Vec<u8>> = octets.chunks(300_000).map(zstd_frame).collect();
    place.write("one", zstd_frame(&octets));
    place.write("frames", frames.concat());
    place.write(
        "skippable",
        frames.iter().flat_map(|frame| [skippable(), frame.clone()].concat()).collect::<Vec<_>>(),
    );
    for name in ["one", "frames", "skippable"] {
        assert_eq!(place.json(&[name])["hosts"], whole["hosts"], "{name}");
    }
    let found = |name: &str, octets: Vec<u8>| {
        place.write(name, octets);
        let (code, out, err) = place.meter(&[name, "--json"]);
        assert_eq!(code, 1, "{name}: {err}");
        let found: Value = serde_json::from_str(&out).unwrap();
        (found["counters"]["packets"].as_u64().unwrap(), err)
    };
    // Cut short: what was whole of it is read, of a capture that is shorter than any window, too.
    let one = zstd_frame(&octets);
    let (packets, err) = found("cut", one[..one.len() / 2].to_vec());
    assert!(
        packets > 2_000 && err.contains("cut: zstd: the file ends within a frame; what came before counts"),
        "{packets} {err}"
    );
    // The checksum is what comes last.
    let mut wrong = frames;
    *wrong[1].last_mut().unwrap() ^= 1;
    let (packets, err) = found("checksum", wrong.concat());
    assert!(packets > 2_000 && err.contains("zstd: the data differ from their checksum"), "{packets} {err}");
    let (packets, err) = found("behind", [&one[..], b"behind the end"].concat());
    assert!(err.contains("zstd: what is no frame follows"), "{err}");
    assert_eq!(packets, whole["counters"]["packets"].as_u64().unwrap());
    // A window of 2 GiB, and a block of a gigabyte of zeros in it: refused before it takes any memory.
    let (packets, err) = found("bomb", vec![0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 2, 0, 0, 0]);
    assert!(packets == 0 && err.contains("asks for a window of more than 128 MiB"), "{err}");
}

#[test]
fn damage_is_told_and_what_came_before_counts() {
    let place = Place::new("damage");
    place.write("cut.pcap", &plain(TCP)[..500_000]);
    let (code, out, err) = place.meter(&["cut.pcap"]);
    assert_eq!(code, 1);
    assert!(out.contains("10.0.1.2") && err.contains("cut.pcap: at octet"), "{err}");
    assert!(err.contains("the file ends here before its time; what came before counts"), "{err}");
    place.write("cut.gz", &TCP[..100_000]);
    let (code, out, err) = place.meter(&["cut.gz"]);
    assert!(code == 1 && out.contains("10.0.1.2"));
    assert!(err.contains("cut.gz: gzip: the file ends within a member; what came before counts"), "{err}");
    let mut wrong = TCP.to_vec();
    let last = wrong.len() - 8;
    wrong[last] ^= 1;
    place.write("sum.gz", wrong);
    assert!(place.meter(&["sum.gz"]).2.contains("gzip: the data differ from their checksum"));
    place.write("more.gz", [TCP, &b"more than is there"[..]].concat());
    assert!(place.meter(&["more.gz"]).2.contains("gzip: what is no member follows"));
    place.write("words", "not a capture at all, only words");
    let (code, _, err) = place.meter(&["words"]);
    assert!(code == 1 && err.contains("neither pcap nor pcapng"), "{err}");
    let (code, _, err) = place.meter(&["nowhere.pcap"]);
    assert!(code == 1 && err.contains("cannot read nowhere.pcap"), "{err}");
    assert_eq!(place.meter(&["."]).0, 2);
    let (code, _, err) = place.meter(&["tcp.pcap", "--since", "90"]);
    assert!(code == 2 && err.contains("lacks its unit"), "{err}");
    let (code, _, err) = place.meter(&["tcp.pcap", "--since", "10 s", "--until", "5 s"]);
    assert!(code == 2 && err.contains("--since: 10 s is not before --until, 5 s"), "{err}");
}

/// Delays by time, sender and receiver.
type Delays = BTreeMap<(u64, String, String), Vec<f64>>;

/// The samples of one estimate.
fn samples(place: &Place, file: &str, estimator: &str) -> (i32, Delays, String) {
    let (code, out, err) = place.meter(&[file, "--series", "--json", "--estimator", estimator]);
    let mut found = Delays::new();
    for line in out.lines() {
        let sample: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| sample[name].as_str().unwrap().to_string();
        let key = (sample["time_us"].as_u64().unwrap(), text("from"), text("to"));
        found.entry(key).or_default().push(sample["queue_us"].as_f64().unwrap());
    }
    (code, found, err)
}

#[test]
fn behind_what_is_damaged_a_capture_goes_on_and_no_sample_is_false() {
    let place = Place::new("behind");
    let good = plain(TCP);
    let count = |found: &Delays| found.values().map(Vec::len).sum::<usize>();
    for estimator in ["direct", "echoed"] {
        let (_, whole, _) = samples(&place, "tcp.pcap", estimator);
        for (name, octets) in [("random", pattern(300)), ("zeros", vec![0; 3_000]), ("ones", vec![0xff; 90])]
        {
            let mut damaged = good.clone();
            let middle = good.len() / 2;
            damaged[middle..middle + octets.len()].copy_from_slice(&octets);
            place.write(name, damaged);
            let (code, found, err) = samples(&place, name, estimator);
            assert_eq!(code, 1, "{name}: {err}");
            assert!(err.contains("octets were passed over; all the rest counts"), "{name}: {err}");
            assert!(count(&found) + 60 > count(&whole) && count(&found) < count(&whole), "{name}: {err}");
            for (key, delays) in &found {
                let known = whole
                    .get(key)
                    .unwrap_or_else(|| panic!("{name}, {estimator}: made up: {key:?} {delays:?}"));
                let is_known = |delay: &f64| known.iter().any(|known| (known - delay).abs() < 1_000.0);
                assert!(delays.iter().all(is_known), "{name}, {estimator}: {delays:?} for {known:?}");
            }
        }
    }
}

#[test]
fn a_report_needs_nothing_but_a_browser() {
    let place = Place::new("report");
    assert_eq!(place.meter(&["utp.pcap.gz", "tcp.pcap", "--report", "r.html"]).0, 0);
    let page = place.text("r.html");
    assert!(page.contains("10.0.1.2") && page.contains("<svg") && page.contains("y = 2x"));
    assert!(!page.contains("src=\"http") && !page.contains("@import"));
    let (code, _, err) = place.meter(&["tcp.pcap", "--report", "nowhere/r.html"]);
    assert!(code == 1 && err.contains("cannot write nowhere/r.html"), "{err}");
}

#[test]
fn every_flag_is_explained() {
    for (_, name, text) in cede_meter::Flags::ALL {
        let (code, out, _) = Folder::new("flag").cede(&["explain", name, "--json"]).told();
        assert!(code == 0 && out.contains(text), "{name}");
    }
}

#[test]
fn filters_choose_packets_and_their_errors_are_marked() {
    let place = Place::new("filter");
    let whole = place.json(&["utp.pcap.gz", "tcp.pcap"]);
    let only = |filter: &str| place.json(&["utp.pcap.gz", "tcp.pcap", "--filter", filter]);
    let tcp = only("tcp and host 10.0.1.2");
    assert_eq!(tcp["hosts"][0]["tcp"], whole["hosts"][0]["tcp"]);
    assert!(tcp["hosts"].as_array().unwrap().iter().all(|host| host["utp"].is_null()));
    assert!(tcp["counters"]["packets_that_do_not_pass"].as_u64().unwrap() > 1_000);
    assert!(only("net 192.0.2.0/24")["hosts"].as_array().unwrap().is_empty());
    let (_, out, _) = place.meter(&["tcp.pcap", "--filter", "ip6"]);
    assert!(out.contains("packets held back by --filter"), "{out}");
    let (code, _, err) = place.meter(&["tcp.pcap", "--filter", "tcp and prot 80"]);
    assert!(code == 2 && err.contains("did you mean `port`?") && err.contains("\n          ^^^^"), "{err}");
}

#[test]
fn pseudonyms_hide_addresses_in_every_output_and_stay_under_one_key() {
    let place = Place::new("pseudonyms");
    place.write("key", [7; 32]);
    place.write("digits", "07".repeat(32) + "\n");
    let of = |arguments: &[&str]| {
        let (code, out, err) = place.meter(&[&["tcp.pcap", "utp.pcap.gz"], arguments].concat());
        assert_eq!(code, 0, "{err}");
        assert!(
            !out.contains("10.0.1.2") && !out.contains("10.0.3.2") && !out.is_empty(),
            "{arguments:?}: {out}"
        );
        out
    };
    for form in [
        &[][..],
        &["--flows"],
        &["--csv"],
        &["--series"],
        &["--series", "--json"],
        &["--plot"],
        &["--json", "--flows"],
    ] {
        of(&[form, &["--pseudonyms=key"]].concat());
    }
    assert_eq!(of(&["--csv", "--pseudonyms=key"]), of(&["--csv", "--pseudonyms=digits"]));
    // What that hides is not for any key certain: some addresses are their own pseudonyms.
    let fresh = || place.meter(&["tcp.pcap", "utp.pcap.gz", "--csv", "--pseudonyms"]).1;
    assert_ne!(fresh(), fresh(), "a fresh key each time");
    of(&["--pseudonyms=key", "--report", "r.html", "--parquet", "set"]);
    assert!(!place.text("r.html").contains("10.0.1.2"));
    // Who is meant by --host is said by the true address.
    let chosen = of(&["--pseudonyms=key", "--host", "10.0.1.2", "--csv"]);
    assert_eq!(chosen.lines().count(), 2, "{chosen}");
    place.write("short", [7; 31]);
    assert_eq!(place.meter(&["tcp.pcap", "--pseudonyms=short"]).0, 2);
    let (code, _, err) = place.meter(&["tcp.pcap", "--pseudonyms=nokey"]);
    assert!(code == 1 && err.contains("/dev/urandom"), "{err}");
}

/// A classic capture of raw IP with these records: time in seconds, what the record says of its lengths, and its octets.
fn classic(link_type: u32, records: &[(u32, [u32; 2], &[u8])]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
    file.extend(link_type.to_le_bytes());
    for (seconds, [captured, original], octets) in records {
        for word in [*seconds, 7, *captured, *original] {
            file.extend(word.to_le_bytes());
        }
        file.extend(*octets);
    }
    file
}

/// The fixed headers of a segment of TCP that has options, over IPv4.
fn segment_without_options() -> Vec<u8> {
    let ip = [0x45, 0, 0, 92, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&ip[..], &[0, 80, 0, 81], &[0, 0, 0, 1, 0, 0, 0, 1], &[0x80, 0x10, 1, 0, 0, 0, 0, 0]].concat()
}

#[test]
fn adversarial_captures_end_with_clear_words_and_meaningful_codes() {
    let place = Place::new("adversarial");
    let good = plain(TCP);
    let ng = |blocks: &[&[u8]]| {
        let head = [0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
        [&head[..], &[0xff; 8], &[28, 0, 0, 0], &blocks.concat()].concat()
    };
    let block =
        |kind: u8, len: u8, body: &[u8]| [&[kind, 0, 0, 0, len, 0, 0, 0], body, &[len, 0, 0, 0]].concat();
    let mut flipped = good.clone();
    // Longer than a record's octets, so that a header is hit.
    flipped[700_000..700_100].fill(0xff);
    let cases: [(&str, Vec<u8>, i32, &str); 19] = [
        ("empty", Vec::new(), 1, "empty: it is empty"),
        (
            "xz",
            b"\xfd7zXZ\0\0\x04".to_vec(),
            1,
            "compressed with xz, which is not read here: pipe what `xz -dc`",
        ),
        ("bzip2", b"BZh91AY&SY".to_vec(), 1, "`bzip2 -dc`"),
        ("header-only", good[..24].to_vec(), 0, "no packet was seen"),
        ("half-a-header", good[..11].to_vec(), 1, "ends here before its time"),
        ("version", [&good[..4], &[9, 0], &good[6..]].concat(), 1, "unknown format version 9"),
        (
            "endless-record",
            classic(101, &[(1, [u32::MAX, 60], &[0x45; 60])]),
            1,
            "a record cannot have a length of 4294967295 octets",
        ),
        ("flipped", flipped, 1, "octets were passed over; all the rest counts"),
        ("no-interface", ng(&[&block(6, 32, &[0; 20])]), 1, "interface 0 was not described"),
        ("short-block", ng(&[&block(6, 8, &[])]), 1, "a block cannot have a length of 8 octets"),
        ("option-overrun", ng(&[&block(1, 24, &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0xff, 0])]), 1, "option"),
        ("link-type", classic(189, &[(1, [8, 8], &[0; 8])]), 1, "link type 189 is not read"),
        // Of addresses, ports and flags nothing more was captured.
        (
            "short-snapshot",
            classic(101, &[(1, [40, 92], &segment_without_options())]),
            0,
            "queue: 1 packet cut off within the headers",
        ),
        (
            "no-octets",
            classic(101, &[(1, [0, 60], &[]), (1, [0, 0], &[])]),
            0,
            "2 packets cut off within the headers",
        ),
        ("nonsense", classic(101, &[(1, [40, 40], &[0x4f; 40]), (2, [40, 40], &[0x60; 40])]), 0, "No host"),
        ("gzip-cut", TCP[..TCP.len() / 2].to_vec(), 1, "what came before counts"),
        ("gzip-empty", vec![0x1f, 0x8b, 8, 0], 1, "gzip-empty"),
        ("zstd-nonsense", [&[0x28, 0xb5, 0x2f, 0xfd][..], &[0xff; 40]].concat(), 1, "zstd-nonsense"),
        ("text", b"Dear Sir or Madam".to_vec(), 1, "neither pcap nor pcapng"),
    ];
    for (name, octets, wanted, words) in cases {
        place.write(name, octets);
        let (code, out, err) = place.meter(&[name]);
        assert_eq!(code, wanted, "{name}: {out}{err}");
        assert!(format!("{out}{err}").contains(words) && !err.contains("panicked"), "{name}: {out}{err}");
        assert!(code == 0 || err.contains(name), "{name}: {err}");
    }
    // One of several that is damaged takes nothing from the others.
    let (code, out, err) = place.meter(&["text", "tcp.pcap", "gzip-cut"]);
    assert!(code == 1 && out.contains("10.0.1.2"), "{out}{err}");
    assert!(err.contains("text: ") && err.contains("gzip-cut: "), "{err}");
}

/// A segment without data, with timestamps.
fn segment(source: u32, clock: u32) -> Vec<u8> {
    let ip =
        [&[0x45, 0, 0, 52, 0, 0, 0, 0, 64, 6, 0, 0][..], &source.to_be_bytes(), &[198, 51, 100, 1]].concat();
    let tcp = [0x13, 0x88, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x80, 0x10, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 8, 10];
    [&ip[..], &tcp, &clock.to_be_bytes(), &[0, 0, 0, 9]].concat()
}

/// The table of 60,000 hosts: it is printed as it is made. As one document in memory it took 6.5 KB a host.
#[test]
#[cfg(target_os = "linux")]
fn what_is_printed_of_many_hosts_takes_no_memory_for_each() {
    const HOSTS: u32 = 60_000;
    const ADDRESS_SPACE_KIB: u32 = 300_000;
    let place = Place::new("many-hosts");
    let segments: Vec<Vec<u8>> = (0..HOSTS).map(|k| segment(0x0a00_0000 + k, 1_000 + k)).collect();
    let records: Vec<_> =
        (0..).zip(&segments).map(|(k, octets)| (1 + k / 1_000, [52, 52], &octets[..])).collect();
    place.write("many.pcap", classic(101, &records));
    let mut command = Command::new("sh");
    let limited = format!(
        "ulimit -v {ADDRESS_SPACE_KIB}; exec {} meter many.pcap --min-samples 1 --memory '64 MiB' \"$@\"",
        env!("CARGO_BIN_EXE_cede")
    );
    command.current_dir(place.path("")).args(["-c", &limited, "sh", "--json"]);
    let found = Finished::of(command.output().unwrap()).exits(0).json();
    assert_eq!(found["hosts"].as_array().unwrap().len(), HOSTS as usize);
    // A page has the worst, and says so.
    let (code, _, err) = place.meter(&["many.pcap", "--min-samples", "1", "--report", "r.html", "--csv"]);
    let page = place.text("r.html");
    assert!(code == 0 && page.contains("the worst 1,000 of 60,000"), "{err}");
    assert!((1_000..1_010).contains(&page.matches("<tr").count()));
}

#[test]
fn times_of_several_files_are_counted_from_the_first() {
    let place = Place::new("times");
    let [one, two] = halves(&plain(TCP));
    place.write("one.pcap", one);
    place.write("two.pcap", two);
    let whole = place.json(&["tcp.pcap", "--since", "20 s", "--until", "100 s"]);
    let halves = place.json(&["one.pcap", "two.pcap", "--since", "20 s", "--until", "100 s"]);
    assert_eq!(halves["counters"]["packets_outside_time"], whole["counters"]["packets_outside_time"]);
    assert_eq!(halves["hosts"][0]["queue"], whole["hosts"][0]["queue"]);
}
