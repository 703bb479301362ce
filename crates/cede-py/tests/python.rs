//! The Python package, tested from Python (`python/tests`): put together of what cargo has built, without an installation.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The first Python that the package is for.
const VERSION_CHECK: &str = "import sys; sys.exit(sys.version_info < (3, 10))";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A Python that the package is for, if there is one.
fn python() -> Option<&'static str> {
    let serves = |name: &&str| {
        Command::new(name).args(["-c", VERSION_CHECK]).status().is_ok_and(|status| status.success())
    };
    ["python3", "python"].into_iter().find(serves)
}

/// The package as it would be installed, in a folder.
fn lay_out(folder: &Path) {
    let package = folder.join("cede");
    fs::create_dir_all(&package).unwrap();
    for entry in fs::read_dir(workspace().join("python/cede")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    let library = format!("{}_cede{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let built = env::current_exe().unwrap().with_file_name(library);
    fs::copy(&built, package.join("_cede.abi3.so"))
        .unwrap_or_else(|error| panic!("{}: {error}", built.display()));
}

#[test]
#[cfg(target_os = "linux")]
fn the_package_does_what_its_tests_say() {
    let Some(python) = python() else {
        println!("skipped: there is no Python from 3.10 on");
        return;
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("python-package");
    lay_out(&folder);
    let tests = workspace().join("python/tests");
    let run = Command::new(python)
        .args(["-B", "-m", "unittest", "discover", "-v", "-s"])
        .arg(&tests)
        .env("PYTHONPATH", &folder)
        .env("CEDE_WORKSPACE", workspace())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    // That nothing was found would be no failure to it.
    assert!(said.contains("\nOK") && !said.contains("Ran 0 tests"), "{said}");
}
