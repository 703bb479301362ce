//! The project's own chores: `cargo xtask tidy` checks what the compiler does not.
//!
//! * Core crates are `no_std`, depend on each other alone, and state an invariant.
//! * Files net of tests stay under 1,000 lines and functions under 100; how many pass the softer limits of the house
//!   style is a ratchet (`xtask/ratchet.txt`), which may only be lowered.
//! * Every crate stands in `ARCHITECTURE.md`, above all those that it knows; the papers that a repository needs are there.

mod measure;

use measure::{FunctionLength, Source};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Crates that may know no clock, socket or platform.
const CORE: [&str; 7] =
    ["cede-units", "cede-wire", "cede-cc", "cede-net", "cede-utp", "cede-tcp", "cede-sim"];
const FILE_SOFT: usize = 600;
const FILE_HARD: usize = 1_000;
const FUNCTION_SOFT: usize = 35;
const FUNCTION_HARD: usize = 100;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy(),
        _ => {
            eprintln!("usage: cargo xtask tidy");
            ExitCode::from(2)
        }
    }
}

fn tidy() -> ExitCode {
    let root = root();
    let mut problems = Vec::new();
    for name in CORE {
        check_core(&root, name, &mut problems);
    }
    check_papers(&root, &mut problems);
    check_rooms(&root, &mut problems);
    let sources = measure::sources(&root);
    check_sizes(&root, &sources, &mut problems);
    for problem in &problems {
        eprintln!("tidy: {problem}");
    }
    if problems.is_empty() {
        println!("tidy: {} files are in order", sources.len());
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}

/// The repository: the parent of this crate's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

fn read(path: &Path, problems: &mut Vec<String>) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| {
        problems.push(format!("{}: {error}", path.display()));
        String::new()
    })
}

fn check_core(root: &Path, name: &str, problems: &mut Vec<String>) {
    let folder = root.join("crates").join(name);
    let head = read(&folder.join("src/lib.rs"), problems);
    if !head.contains("#![no_std]") {
        problems.push(format!("{name}: src/lib.rs is not #![no_std]"));
    }
    if !head.contains("**Invariant:**") {
        problems.push(format!("{name}: src/lib.rs states no invariant"));
    }
    if head.contains("extern crate std;") && !head.contains("#[cfg(test)]\nextern crate std;") {
        problems.push(format!("{name}: src/lib.rs brings std in outside of tests"));
    }
    let manifest = read(&folder.join("Cargo.toml"), problems);
    for dependency in dependencies(&manifest) {
        if !CORE.contains(&dependency) {
            problems.push(format!("{name}: a core crate may not depend on {dependency}"));
        }
    }
}

/// The names in a manifest's `[dependencies]`.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split([' ', '=', '.']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
}

fn check_papers(root: &Path, problems: &mut Vec<String>) {
    for paper in ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        read(&root.join(paper), problems);
    }
    let architecture = read(&root.join("ARCHITECTURE.md"), problems);
    let crates = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    for name in crates.map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        if !architecture.contains(&format!("`{name}`")) {
            problems.push(format!("ARCHITECTURE.md does not name `{name}`"));
        }
    }
}

/// In the table of rooms arrows point down.
fn check_rooms(root: &Path, problems: &mut Vec<String>) {
    let architecture = read(&root.join("ARCHITECTURE.md"), problems);
    let rooms: Vec<&str> =
        architecture.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    for (place, room) in rooms.iter().enumerate() {
        let manifest = read(&root.join("crates").join(room).join("Cargo.toml"), problems);
        let known = dependencies(&manifest).filter(|name| name.starts_with("cede-"));
        for name in known.filter(|name| !rooms[place + 1..].contains(name)) {
            problems.push(format!("ARCHITECTURE.md: `{room}` knows `{name}`, which does not stand below it"));
        }
    }
}

fn check_sizes(root: &Path, sources: &[Source], problems: &mut Vec<String>) {
    let functions: Vec<&FunctionLength> = sources.iter().flat_map(|source| &source.functions).collect();
    for source in sources.iter().filter(|source| source.lines > FILE_HARD) {
        problems.push(format!("{}: {} lines net of tests", source.path, source.lines));
    }
    for function in functions.iter().filter(|function| function.lines > FUNCTION_HARD) {
        problems.push(format!("{}: `{}` has {} lines", function.path, function.name, function.lines));
    }
    let ratchet = read(&root.join("xtask/ratchet.txt"), problems);
    let long_files = sources.iter().filter(|source| source.lines > FILE_SOFT).count();
    let long: Vec<_> = functions.iter().filter(|function| function.lines > FUNCTION_SOFT).collect();
    check_ratchet(&ratchet, "files over 600 lines", long_files, problems);
    let before = problems.len();
    check_ratchet(&ratchet, "functions over 35 lines", long.len(), problems);
    if problems.len() > before {
        problems
            .extend(long.iter().map(|one| format!("  {} lines: `{}` in {}", one.lines, one.name, one.path)));
    }
    check_distribution(&functions, problems);
}

fn check_ratchet(ratchet: &str, what: &str, found: usize, problems: &mut Vec<String>) {
    let allowed =
        ratchet.lines().find_map(|line| line.strip_prefix(what)?.trim_start_matches(':').trim().parse().ok());
    match allowed {
        Some(allowed) if found > allowed => {
            problems.push(format!("{what}: {found}, and xtask/ratchet.txt allows {allowed}"));
        }
        Some(allowed) if found < allowed => {
            problems.push(format!("{what}: {found}; lower xtask/ratchet.txt from {allowed}"));
        }
        Some(_) => {}
        None => problems.push(format!("xtask/ratchet.txt has no line \"{what}: N\"; found {found}")),
    }
}

/// Nine functions of ten fit in 35 lines.
fn check_distribution(functions: &[&FunctionLength], problems: &mut Vec<String>) {
    let mut lengths: Vec<usize> = functions.iter().map(|function| function.lines).collect();
    lengths.sort_unstable();
    let at = |share: usize| lengths.get(lengths.len() * share / 100).copied().unwrap_or(0);
    println!("tidy: {} functions, median {} lines, nine of ten within {}", lengths.len(), at(50), at(90));
    if at(90) > FUNCTION_SOFT {
        problems.push(format!("nine of ten functions should fit in {FUNCTION_SOFT} lines, not {}", at(90)));
    }
}
