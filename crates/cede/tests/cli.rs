//! The program as its users meet it: exit codes, files, what goes to which stream.

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use support::{Finished, Folder, SHORT};

fn manifest(place: &Folder, folder: &str) -> Value {
    serde_json::from_str(&place.text(&format!("{folder}/manifest.json"))).unwrap()
}

#[test]
fn the_demo_needs_nothing_and_leaves_a_report_that_needs_nothing() {
    let place = Folder::new("demo");
    let run = place.cede(&["demo"]).exits(0);
    for said in [
        "ledbat",
        "cubic",
        "share (%)",
        "fairness",
        "At 10 s cubic joins: ledbat falls to",
        "cede-out/demo/report.html",
    ] {
        assert!(run.text().contains(said), "{said} in {}", run.text());
    }
    assert_eq!(run.err, "");
    let page = place.text("cede-out/demo/report.html");
    for said in ["<svg", "cede demo --seed 1", "name = &quot;ledbat&quot;", "Queueing delay"] {
        assert!(page.contains(said), "{said}");
    }
    let namespaces = page.matches("http://www.w3.org/").count();
    assert_eq!(page.matches("http://").count(), namespaces, "addresses that are no names of XML");
    for reference in ["https://", "src=\"", "@import", "url(", "<link"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn ledbat_yields_in_the_demo_and_comes_back() {
    let place = Folder::new("yields");
    place.cede(&["demo", "-o", "out"]).exits(0);
    let rows = place.text("out/flows.csv");
    let mean = |from: f64, to: f64| {
        let rates: Vec<f64> = rows
            .lines()
            .skip(1)
            .map(|line| line.split(',').collect::<Vec<_>>())
            .filter(|row| row[1] == "ledbat" && (from..to).contains(&row[0].parse::<f64>().unwrap()))
            .map(|row| row[2].parse().unwrap())
            .collect();
        rates.iter().sum::<f64>() / rates.len() as f64
    };
    assert!(mean(5.0, 10.0) > 9.0 && mean(15.0, 20.0) < 1.0 && mean(25.0, 30.0) > 9.0);
}

#[test]
fn a_run_leaves_what_its_manifest_names() {
    let place = Folder::new("folder");
    place.write("short.toml", SHORT);
    place.cede(&["run", "short.toml", "-s", "record.controllers=true"]).exits(0);
    let manifest = manifest(&place, "cede-out/short");
    assert_eq!(manifest["status"], "complete");
    assert_eq!(manifest["scenario"]["source"], "short.toml");
    assert_eq!(manifest["results"]["flows"][1]["name"], "other");
    assert!(manifest["generator"].as_str().unwrap().contains("xoshiro"));
    let mut named: Vec<&str> =
        manifest["files"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
    named.push("manifest.json");
    named.sort_unstable();
    let mut found: Vec<String> = fs::read_dir(place.path("cede-out/short"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, named);
    assert!(place.text("cede-out/short/controllers.csv").contains(",scavenger,congestion_avoidance,"));
}

#[test]
fn the_queue_is_written_down_at_every_dequeue() {
    let place = Folder::new("queue");
    place.write("short.toml", SHORT);
    place.cede(&["run", "short.toml", "-o", "out"]).exits(0);
    let text = place.text("out/queue-bottleneck.csv");
    let mut lines = text.lines();
    let heading = "time_s,waited_ms,packet_bytes,queued_bytes,queued_packets,served_bytes,dropped_packets";
    assert_eq!(lines.next(), Some(heading));
    let mut last = [0.0; 7];
    let mut served = 0.0;
    for line in lines {
        let row: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        served += row[2];
        assert_eq!(row[5], served, "{line}");
        // 5 Mbit/s serve an octet in 1.6 us; times are in whole nanoseconds.
        assert!(row[0] - last[0] >= last[2] * 1.6e-6 - 2e-9 && row[6] >= last[6], "{line}");
        last.copy_from_slice(&row);
    }
    assert!(served > 1e6 && last[0] > 2.9);
}

#[test]
fn events_tell_the_life_of_a_flow() {
    let place = Folder::new("events");
    place.write("short.toml", SHORT);
    let choices = ["-s", "flow.other.stop=2 s", "-s", "duration=6 s"];
    place.cede(&[&["run", "short.toml", "-o", "out"][..], &choices[..]].concat()).exits(0);
    let events: Vec<Value> =
        place.text("out/events.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let times: Vec<f64> = events.iter().map(|event| event["t_s"].as_f64().unwrap()).collect();
    assert!(times.is_sorted());
    let of_other = events.iter().filter(|event| event["flow"] == "other" && event["end"] == "sender");
    let names: Vec<&str> = of_other.map(|event| event["event"].as_str().unwrap()).collect();
    let place_of = |name: &str| {
        names.iter().position(|found| *found == name).unwrap_or_else(|| panic!("{name} in {names:?}"))
    };
    let life = ["opening", "connected", "stopped", "closed"].map(place_of);
    assert!(life.is_sorted() && names.contains(&"finished"), "{names:?}");
}

#[test]
fn the_same_seed_gives_the_same_octets_and_another_seed_others() {
    let place = Folder::new("seed");
    place.write("short.toml", SHORT.replace("buffer", "loss = 0.01\nbuffer"));
    for (seed, folder) in [("5", "a"), ("5", "b"), ("6", "c")] {
        place.cede(&["run", "short.toml", "--seed", seed, "-o", folder]).exits(0);
    }
    for file in ["flows.csv", "queue-bottleneck.csv", "events.jsonl"] {
        assert_eq!(place.text(&format!("a/{file}")), place.text(&format!("b/{file}")), "{file}");
    }
    let tape = |folder| manifest(&place, folder)["results"]["tape"].clone();
    assert_eq!(tape("a"), tape("b"));
    assert_ne!(tape("a"), tape("c"));
    assert_ne!(place.text("a/flows.csv"), place.text("c/flows.csv"));
}

#[test]
fn the_scenario_in_the_folder_repeats_the_run() {
    let place = Folder::new("again");
    place.write("short.toml", SHORT);
    place.cede(&["run", "short.toml", "-s", "link.rate=3 Mbit/s", "--seed", "9", "-o", "a"]).exits(0);
    place.cede(&["run", "a/scenario.toml", "-o", "b"]).exits(0);
    assert_eq!(manifest(&place, "a")["results"], manifest(&place, "b")["results"]);
    assert_eq!(manifest(&place, "a")["scenario"]["hash"], manifest(&place, "b")["scenario"]["hash"]);
}

#[test]
fn numbers_of_a_run_say_which_time_they_are_of() {
    let place = Folder::new("warmup");
    place.write("short.toml", SHORT);
    let whole = place.cede(&["run", "short.toml"]).exits(0);
    assert!(whole.text().contains("over the whole time"), "{}", whole.text());
    let late = place.cede(&["run", "short.toml", "-s", "duration=3 s", "-s", "warmup=1 s"]).exits(0);
    assert!(late.text().contains("over the 2 s after the warm-up, as in the tables"), "{}", late.text());
}

#[test]
fn an_assertion_that_does_not_hold_makes_the_exit_code_one() {
    let place = Folder::new("assert");
    place.write(
        "short.toml",
        format!("{SHORT}[assert]\nlink.efficiency = \"> 0.2\"\nqueue.p95_ms = \"< 0.001\"\n"),
    );
    let run = place.cede(&["run", "short.toml"]).exits(1);
    assert!(
        run.text().contains("queue.p95_ms < 0.001") && run.text().contains("does not hold"),
        "{}",
        run.text()
    );
    assert!(run.err.contains("error: an assertion does not hold"), "{}", run.err);
    let manifest = manifest(&place, "cede-out/short");
    assert_eq!(manifest["status"], "assertion_failed");
    assert_eq!(manifest["results"]["assertions"][0]["holds"], true);
    assert_eq!(manifest["results"]["assertions"][1]["holds"], false);
    assert!(manifest["results"]["assertions"][1]["measured"].as_f64().unwrap() > 1.0);
}

#[test]
fn a_wrong_scenario_is_refused_with_its_lines() {
    let place = Folder::new("wrong");
    place.write("wrong.toml", SHORT.replace("\"5 Mbit/s\"", "5").replace("delay", "dealy"));
    let run = place.cede(&["run", "wrong.toml"]).exits(2);
    for said in
        ["--> wrong.toml:4:8", "4 | rate = 5", "--> wrong.toml:5:1", "did you mean `delay`?", "not run: "]
    {
        assert!(run.err.contains(said), "{said} in {}", run.err);
    }
    assert_eq!(run.text(), "");
    assert!(!place.path("cede-out").exists());
    let run = place.cede(&["run", "demo", "-s", "link.rate=fast"]).exits(2);
    assert!(run.err.contains("--> -s:1:11"), "{}", run.err);
}

#[test]
fn what_cannot_be_read_is_told_with_what_there_is() {
    let place = Folder::new("missing");
    let run = place.cede(&["run", "latecomers.toml"]).exits(2);
    assert!(
        run.err.contains("cannot read latecomers.toml") && run.err.contains("`latecomer`"),
        "{}",
        run.err
    );
    place.cede(&["run"]).exits(2);
    let refused = place.cede(&["run", "demo", "--format", "arrow"]).exits(2);
    assert!(refused.err.contains("csv, jsonl, parquet, flent"), "{}", refused.err);
}

#[test]
fn json_alone_goes_to_standard_output() {
    let place = Folder::new("json");
    place.write("short.toml", SHORT);
    let run = place.cede(&["run", "short.toml", "--json"]).exits(0);
    let printed = run.json();
    assert_eq!(printed, manifest(&place, "cede-out/short"));
    assert_eq!(printed["results"]["flows"][0]["name"], "scavenger");
    assert!(run.err.contains("share (%)"), "{}", run.err);
}

#[test]
fn overrides_and_standard_input() {
    let place = Folder::new("stdin");
    let run = place
        .cede_reading(&["run", "-", "-s", "link.rate=2 Mbit/s", "--json", "-o", "out"], SHORT.as_bytes())
        .exits(0);
    assert!(run.json()["results"]["links"][0]["rate_mbps"].as_f64().unwrap() < 2.1);
    assert!(place.text("out/scenario.toml").contains("rate = \"2 Mbit/s\""));
    assert!(run.err.contains("again:   cede run out/scenario.toml"), "{}", run.err);
}

#[test]
fn a_folder_that_cannot_be_used_is_told_and_left_alone() {
    let place = Folder::new("refused");
    place.write("file", "");
    let run = place.cede(&["demo", "-o", "file/out"]).exits(1);
    assert!(run.err.contains("cannot make the folder file/out"), "{}", run.err);
    fs::create_dir(place.path("letters")).unwrap();
    place.write("letters/report.html", "dear");
    let run = place.cede(&["demo", "-o", "letters"]).exits(1);
    assert!(run.err.contains("holds files that no run wrote"), "{}", run.err);
    assert_eq!(place.text("letters/report.html"), "dear");
}

/// The names in a run folder, in order.
fn names(place: &Folder, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(place.path(folder)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Whatever became of the run before, and whichever kind it was, nothing of it stands beside the next; what a person put
/// there stays.
#[test]
fn nothing_of_an_earlier_run_stands_beside_the_next() {
    let place = Folder::new("earlier");
    place.write("short.toml", SHORT);
    place.write("long.toml", SHORT.replace("\"3 s\"", "\"100 h\""));
    place.cede(&["run", "short.toml", "-o", "plain"]).exits(0);
    place.cede(&["run", "short.toml", "-o", "out", "--pcap", "--plot", "svg"]).exits(0);
    place.write("out/notes.txt", "mine");
    let running = place.start(&["run", "long.toml", "-o", "out", "--format", "jsonl"]);
    let rows = || fs::metadata(place.path("out/flows.jsonl")).is_ok_and(|meta| meta.len() > 0);
    let patience = std::time::Instant::now();
    while !rows() && patience.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    running.kill();
    let left = [
        "events.jsonl",
        "flows.jsonl",
        "manifest.json",
        "notes.txt",
        "queue-bottleneck.jsonl",
        "scenario.toml",
    ];
    assert_eq!(names(&place, "out"), left);
    place.cede(&["run", "short.toml", "-o", "out"]).exits(0);
    assert_eq!(place.text("out/notes.txt"), "mine");
    fs::remove_file(place.path("out/notes.txt")).unwrap();
    assert_eq!(names(&place, "out"), names(&place, "plain"));
}

/// Whoever may write anywhere (root) is not held up by permissions, and the test says so.
#[cfg(unix)]
#[test]
fn a_read_only_folder_is_not_permitted() {
    use std::os::unix::fs::PermissionsExt;
    let place = Folder::new("readonly");
    let folder = place.path("locked");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(folder.join("probe"), "").is_ok() {
        println!("skipped: this user may write to read-only folders");
        return;
    }
    let run = place.cede(&["demo", "-o", "locked/out"]).exits(3);
    assert!(run.err.contains("cannot make the folder locked/out: Permission denied"), "{}", run.err);
}

/// `/dev/full` stands in for a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_run_and_is_told() {
    for file in ["queue-bottleneck.csv", "flows.csv", "events.jsonl", "packets.pcapng"] {
        let place = Folder::new("full");
        fs::create_dir(place.path("out")).unwrap();
        place.write("out/manifest.json", "{}");
        std::os::unix::fs::symlink("/dev/full", place.path("out").join(file)).unwrap();
        let run = place.cede(&["demo", "-o", "out"]);
        if file == "packets.pcapng" {
            run.exits(0);
            let run = place.cede(&["run", "demo", "-o", "out", "--pcap"]).exits(1);
            assert!(run.err.contains("cannot write out/packets.pcapng: No space left"), "{}", run.err);
            assert!(manifest(&place, "out")["simulated_s"].as_f64().unwrap() < 29.0);
        } else {
            assert!(run.exits(1).err.contains(&format!("cannot write out/{file}: No space left")));
        }
        assert_eq!(manifest(&place, "out")["status"], "failed");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_standard_output_does_not_take_is_an_error() {
    let place = Folder::new("full-output");
    for arguments in [&["demo", "-o", "out"][..], &["demo", "-o", "out", "--json"], &["list"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let run = place.command(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let err = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{err}");
        assert!(err.contains("error: cannot write to standard output: No space left"), "{err}");
    }
    assert_eq!(manifest(&place, "out")["status"], "complete", "the run itself is whole");
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_was_written() {
    let place = Folder::new("interrupt");
    let running =
        place.start(&["run", "alone", "-s", "duration=100 h", "-s", "record.queue=false", "-o", "out"]);
    let rows = place.path("out/flows.csv");
    let begun = || fs::metadata(&rows).is_ok_and(|meta| meta.len() > 100_000);
    let patience = std::time::Instant::now();
    while !begun() && patience.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    running.interrupt();
    let run = running.end().exits(130);
    assert!(run.err.contains("interrupted: ") && run.err.contains("out"), "{}", run.err);
    let manifest = manifest(&place, "out");
    assert_eq!(manifest["status"], "interrupted");
    let reached = manifest["simulated_s"].as_f64().unwrap();
    let text = fs::read_to_string(&rows).unwrap();
    let last: f64 = text.lines().last().unwrap().split(',').next().unwrap().parse().unwrap();
    assert!((last - reached).abs() < 1e-6, "{last} {reached}");
}

#[test]
fn no_escape_codes_but_where_they_are_asked_for() {
    let place = Folder::new("colour");
    let plain = place.cede(&["demo"]).exits(0);
    assert!(!plain.text().contains('\x1b') && !plain.err.contains('\x1b'));
    let run = |variables: &[(&str, &str)]| {
        let output =
            place.command(["demo"]).env_remove("NO_COLOR").envs(variables.iter().copied()).output().unwrap();
        Finished::of(output).exits(0).text().to_owned()
    };
    assert!(run(&[("CLICOLOR_FORCE", "1")]).contains("\x1b["));
    assert!(!run(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\x1b'));
    for columns in ["40", "72", "200"] {
        let text = run(&[("COLUMNS", columns)]);
        let widest =
            text.lines().filter(|line| !line.contains("cede-out/")).map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= columns.parse().unwrap(), "{columns}: {text}");
    }
}

#[test]
fn everything_listed_can_be_explained_and_run() {
    let place = Folder::new("list");
    let listed = place.cede(&["list", "--json"]).exits(0).json();
    let items = listed.as_array().unwrap();
    for kind in ["controller", "scenario", "metric", "figure"] {
        assert!(items.iter().any(|item| item["kind"] == kind), "{kind}");
    }
    for item in items {
        let name = item["name"].as_str().unwrap();
        let found = place.cede(&["explain", name, "--json"]).exits(0).json();
        assert_eq!(found[0]["kind"], item["kind"], "{name}");
        assert!(!place.cede(&["explain", name]).exits(0).out.is_empty());
    }
    assert!(place.cede(&["list", "controllers"]).exits(0).text().contains("ledbat"));
}

#[test]
fn explanations_name_formula_source_and_units() {
    let place = Folder::new("explain");
    let ledbat = place.cede(&["explain", "ledbat"]).exits(0).text().to_owned();
    for said in ["formula", "RFC 6817", "target", "default", "ms"] {
        assert!(ledbat.contains(said), "{said} in {ledbat}");
    }
    assert!(place.cede(&["explain", "link.buffer"]).exits(0).text().contains("BDP"));
    for (name, said) in [
        ("group.uplink", "option of [[group]]"),
        ("links.matrix", "40 ms, 0 ms"),
        ("swarm.content", "it must be given"),
        ("records", "[records]  part of a swarm file"),
        ("device.loopback", "option of [[device]]"),
        ("arrival", "poisson: "),
        ("link.queue.codel.target", "standing queue"),
        ("link.from", "option of [[link]]"),
    ] {
        let told = place.cede(&["explain", name]).exits(0).text().to_owned();
        assert!(told.contains(said), "{name}: {told}");
    }
    assert!(place.cede(&["explain", "queue.bottleneck.p95_ms"]).exits(0).text().contains("95 %"));
    assert!(
        place
            .cede(&["explain", "ledbat.target"])
            .exits(0)
            .text()
            .contains("parameter of the controller ledbat")
    );
    // All of a kind, and what bears the same name.
    for (kind, ours) in
        [("metrics", "p95_ms"), ("flags", "start-not-seen"), ("flags", "column of"), ("queues", "codel")]
    {
        let told = place.cede(&["explain", kind]).exits(0).text().to_owned();
        assert!(told.contains(ours), "{kind}: {told}");
    }
    let unknown = place.cede(&["explain", "ledbta"]).exits(2);
    assert!(unknown.err.contains("did you mean `ledbat`?"), "{}", unknown.err);
}

#[test]
fn the_reference_in_the_documentation_is_the_generated_one() {
    let place = Folder::new("reference");
    let generated = place.cede(&["explain", "scenario"]).exits(0).text().to_owned();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    let written = fs::read_to_string(path).unwrap_or_default();
    assert!(
        generated == written,
        "docs/scenario.md is not what the program prints; from the root of the workspace run\n    \
         cargo run -- explain scenario > docs/scenario.md"
    );
}

#[test]
fn completions_and_man_pages_cover_every_command() {
    let place = Folder::new("generated");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(place.cede(&["completions", shell]).exits(0).text().contains("repro"), "{shell}");
    }
    place.cede(&["man", "-o", "man"]).exits(0);
    for page in [
        "cede",
        "cede-demo",
        "cede-run",
        "cede-repro",
        "cede-list",
        "cede-explain",
        "cede-completions",
        "cede-man",
    ] {
        assert!(place.text(&format!("man/{page}.1")).contains(".TH"), "{page}");
    }
    assert!(place.text("man/cede-run.1").contains("Examples"));
    assert!(place.cede(&["--help"]).exits(0).text().contains("130  interrupted"));
}

#[test]
fn a_check_shows_each_mark_and_exits_by_them() {
    let place = Folder::new("check");
    let good = place.cede(&["check", "ledbat", "--only", "application/limited"]).exits(0);
    assert!(good.text().contains("of what it had to say") && good.text().contains("1 of 1 scenarios passed"));
    let bad = place.cede(&["check", "reno", "--only", "buffers/bloated", "--json"]).exits(1);
    let findings: Value = bad.json();
    assert_eq!(findings[0]["passed"], false);
    let queue = findings[0]["findings"].as_array().unwrap().iter().find(|one| one["holds"] == false).unwrap();
    assert!(queue["measured"].as_f64().is_some_and(|ms| ms > 1_000.0), "{queue}");
    let table =
        place.cede(&["check", "ledbat", "--over", "tcp", "--only", "application/limited", "--markdown"]);
    assert!(table.text().starts_with("| scenario "), "{}", table.text());
    let told = ["check", "reno", "--only", "buffers/bloated", "--markdown"];
    let told = place.cede(&told).exits(1);
    assert!(told.text().contains("\n\n* `buffers/bloated` ("), "{}", told.text());
    let parts = ["check", "reno", "--only", "buffers/bloated", "--ablate"];
    assert!(place.cede(&parts).exits(1).text().contains("0 of 1"));
}

#[test]
fn a_checks_scenario_can_be_run_by_itself() {
    let place = Folder::new("check-toml");
    let only = ["check", "ledbat", "-s", "target=60 ms", "--only", "application/limited", "--toml"];
    let toml = place.cede(&only).exits(0);
    assert!(toml.text().contains("target = \"60 ms\""), "{}", toml.text());
    place.cede_reading(&["run", "-", "-o", "out"], &toml.out).exits(0);
}

/// What a failing check says last is run as it stands.
#[test]
#[cfg(unix)]
fn the_command_that_a_check_prints_runs() {
    let place = Folder::new("check-hint");
    let bin = Path::new(env!("CARGO_BIN_EXE_cede")).parent().unwrap();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths =
        std::env::join_paths([bin.to_path_buf()].into_iter().chain(std::env::split_paths(&paths))).unwrap();
    for (arguments, has) in [
        (&["check", "reno", "--only", "yields/call"][..], "name = \"own\""),
        (
            &[
                "check",
                "ledbat",
                "--over",
                "tcp",
                "-s",
                "target=99 ms",
                "--vary",
                "7",
                "--only",
                "buffers/shallow-cubic",
            ],
            "target = \"99 ms\"",
        ),
        (&["check", "proteus-p", "--only", "yields/web"], "name = \"own\""),
    ] {
        let failed = place.cede(arguments).exits(1);
        let hint =
            failed.text().lines().find_map(|line| line.strip_prefix("look into one: ")).unwrap().to_string();
        let (check, run) = hint.split_once(" | ").unwrap();
        assert_eq!(run, "cede run -");
        let shown = std::process::Command::new("sh");
        let shell = |mut shell: std::process::Command, command: &str| {
            let out = shell
                .arg("-c")
                .arg(command)
                .env("PATH", &paths)
                .current_dir(place.path(""))
                .output()
                .unwrap();
            assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8(out.stdout).unwrap()
        };
        let toml = shell(shown, check);
        assert!(toml.contains(has), "{toml}");
        let ran = shell(std::process::Command::new("sh"), &hint);
        assert!(ran.contains("report:"), "{ran}");
        let kept =
            place.text(&format!("cede-out/{}/scenario.toml", arguments.last().unwrap().replace('/', "-")));
        assert!(
            kept.contains(has) && (!arguments.contains(&"--vary") || kept.contains("seed = 7")),
            "{kept}"
        );
    }
}

#[test]
fn of_a_case_with_several_runs_each_is_shown_by_its_name() {
    let place = Folder::new("check-runs");
    let show = |toml: &str| place.cede(&["check", "ledbat", "--only", "yields/web", toml]);
    let own = show("--toml").exits(0);
    assert!(own.text().starts_with("# yields/web, run `own`; others: --toml=without\n"), "{}", own.text());
    let without = show("--toml=without").exits(0);
    assert!(!without.text().contains("\"own\""), "{}", without.text());
    assert!(show("--toml=reno").exits(2).err.contains("allowed: without, own"));
    let many = place.cede(&["check", "ledbat", "--only", "yields", "--toml"]).exits(2);
    assert!(many.err.contains("cede check ledbat --only yields/cubic --toml"), "{}", many.err);
}

#[test]
fn json_tells_never_from_nothing() {
    let place = Folder::new("check-json");
    let found =
        place.cede(&["check", "lp-linux", "--only", "yields/back-after-bbr", "--json"]).exits(1).json();
    let finding = &found[0]["findings"][0];
    assert!(finding["measured"].is_null() && finding["missing"] == "never", "{found}");
}

#[test]
fn controllers_in_the_examples_of_help_pages_are_there() {
    let place = Folder::new("help-controllers");
    let listed = place.cede(&["list", "controllers", "--json"]).exits(0);
    let mut seen = 0;
    for verb in [&["lab"][..], &["send"], &["serve"], &["torrent", "get"], &["torrent", "seed"]] {
        let help = place.cede(&[verb, &["--help"]].concat()).exits(0);
        let examples = help.text().split_once("Examples").unwrap_or_else(|| panic!("{verb:?}")).1.to_string();
        let words: Vec<&str> = examples.split_whitespace().collect();
        for name in words.windows(2).filter(|pair| pair[0] == "-C").map(|pair| pair[1]) {
            assert!(listed.text().contains(&format!("\"{name}\"")), "{verb:?}: {name}");
            seen += 1;
        }
    }
    assert!(seen >= 3, "{seen}");
}

#[test]
fn a_check_refuses_what_there_is_not() {
    let place = Folder::new("check-wrong");
    for (arguments, says) in [
        (&["check", "ledbatt"][..], "did you mean `ledbat`?"),
        (&["check", "ledbatpp"], "did you mean `ledbat++`?"),
        (&["lab", "path", "-C", "ledbatpp"], "did you mean `ledbat++`?"),
        (&["lab", "gentle", "-C", "ledbat-pp"], "did you mean `ledbat++`?"),
        (&["lab", "gentle", "-C", "reno", "--target", "5ms"], "there is no parameter \"target\""),
        (&["lab", "gentle", "--rate", "1Mbit", "--buffer", "12ms"], "holds no packet; 12112 us"),
        (&["check", "ledbat", "--only", "yield"], "did you mean `yields`?"),
        (&["check", "ledbat", "--only", "yields/cal"], "did you mean `yields/call`?"),
        (&["check", "ledbat", "-s", "targt=25 ms"], "did you mean `target`?"),
        (&["check", "ledbat", "-s", "target=25"], "a time from"),
        (&["check"], "CONTROLLER"),
        (&["check", "ledbat", "--all"], "--all"),
    ] {
        let refused = place.cede(arguments).exits(2);
        assert!(refused.err.contains(says), "{refused:?}");
    }
}
