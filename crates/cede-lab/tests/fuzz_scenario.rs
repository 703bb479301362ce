//! No text makes the parser of scenarios panic; what it refuses has a place; what it accepts prints as itself.

use cede_lab::scenario::{Overrides, Scenario, TABLES, render};

const EXAMPLES: [&str; 4] = [
    include_str!("../../../scenarios/demo.toml"),
    include_str!("../../../scenarios/drift.toml"),
    include_str!("../../../scenarios/star.toml"),
    include_str!("../../../scenarios/graph.toml"),
];

/// Values that are right somewhere and wrong elsewhere, and some that are wrong everywhere.
const VALUES: [&str; 24] = [
    "\"10 Mbit/s\"",
    "\"25 ms\"",
    "\"64 KiB\"",
    "\"2 BDP\"",
    "\"100 packets\"",
    "\"-50 ppm\"",
    "\"a\"",
    "\"\"",
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "0.5",
    "1e300",
    "nan",
    "true",
    "[]",
    "[\"a\", \"b\"]",
    "{}",
    "{ kind = \"chirp\", period = \"1 ns\" }",
    "{ name = \"reno\" }",
    "1979-05-27",
    "\"1000 h\"",
    "\"queue.p95_ms < 7\"",
];

fn check(text: &str, overrides: &Overrides) {
    let longest =
        overrides.texts().iter().map(String::as_str).chain([text]).map(|t| t.matches('\n').count()).max();
    match Scenario::parse_with("fuzz.toml", text, overrides) {
        Ok(scenario) => {
            let printed = scenario.to_toml();
            match Scenario::parse("printed", &printed) {
                Ok(again) => assert_eq!(again, scenario, "{printed}"),
                Err(problems) => panic!("{}\nof\n{printed}", render(&problems)),
            }
            assert!(scenario.instances().len() >= scenario.flows.len());
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in &problems {
                assert!(problem.line >= 1 && problem.line <= longest.unwrap_or(0) + 1, "{problem}");
                assert!(problem.column >= 1 && problem.width >= 1 && !problem.message.is_empty());
            }
            assert!(render(&problems).contains(" --> "));
        }
    }
}

#[test]
fn any_text() {
    bolero::check!().for_each(|octets: &[u8]| {
        check(&String::from_utf8_lossy(octets), &Overrides::none());
    });
}

/// One change of a valid scenario: which line, what to do, with what.
type Edit = (u8, u8, u8);

fn edited(text: &str, edits: &[Edit]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for &(line, action, with) in edits {
        let at = usize::from(line) % lines.len();
        let value = VALUES[usize::from(with) % VALUES.len()];
        match action % 6 {
            0 => lines[at] = format!("{} = {value}", lines[at].split(" = ").next().unwrap_or("x")),
            1 => lines.insert(at, lines[usize::from(with) % lines.len()].clone()),
            2 if lines.len() > 1 => drop(lines.remove(at)),
            3 => {
                let other = usize::from(with) % lines.len();
                lines.swap(at, other);
            }
            4 => lines.insert(at, format!("{} = {value}", any_key(line ^ with))),
            _ => {
                let kept = lines[at].chars().count().saturating_sub(usize::from(with % 4));
                lines[at] = lines[at].chars().take(kept).collect();
            }
        }
    }
    lines.join("\n")
}

fn any_key(index: u8) -> &'static str {
    let keys: Vec<&str> = TABLES.iter().flat_map(|table| table.options()).map(|option| option.key).collect();
    keys[usize::from(index) % keys.len()]
}

#[test]
fn changed_examples() {
    bolero::check!().with_type::<(u8, Vec<Edit>)>().with_iterations(4_000).for_each(|(which, edits)| {
        let text = EXAMPLES[usize::from(*which) % EXAMPLES.len()];
        check(&edited(text, &edits[..edits.len() % 3]), &Overrides::none());
    });
}

#[test]
fn any_override() {
    bolero::check!().with_type::<(u8, u8, u8, Vec<u8>)>().with_iterations(4_000).for_each(
        |(which, key, value, tail)| {
            let tables = [
                "link",
                "flow.0",
                "flow.*",
                "flow.ledbat.controller",
                "host.0.uplink",
                "topology",
                "record",
                "",
            ];
            let table = tables[usize::from(*key) % tables.len()];
            let value = VALUES[usize::from(*value) % VALUES.len()];
            let texts = [
                format!("{table}.{}={value}", any_key(*key ^ 0x55)),
                String::from_utf8_lossy(tail).into_owned(),
            ];
            let count = 1 + usize::from(*which & 1);
            check(
                EXAMPLES[usize::from(*which) % EXAMPLES.len()],
                &Overrides::new(texts.into_iter().take(count)),
            );
        },
    );
}
