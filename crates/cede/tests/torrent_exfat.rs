//! `cede torrent` on exFAT, which takes neither all characters in names nor two names that differ in the case of letters alone. Skipped
//! aloud where none can be mounted.
#![cfg(target_os = "linux")]

mod support;

use std::path::PathBuf;
use std::process::Command;
use support::Folder;

/// A file system of its own, as long as it lives.
struct Exfat {
    device: String,
    at: PathBuf,
}

fn done(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Exfat {
    fn mount(folder: &Folder, name: &str) -> Option<Self> {
        let (image, at) = (folder.path(&format!("{name}.image")), folder.path(name));
        std::fs::create_dir(&at).unwrap();
        std::fs::File::create(&image).unwrap().set_len(32 << 20).unwrap();
        let device = done("losetup", &["-f", "--show", image.to_str()?]);
        let mounted = device.and_then(|device| {
            let made = Self { device, at };
            done("mkfs.exfat", &[&made.device])?;
            done("mount.exfat-fuse", &[&made.device, made.at.to_str()?])?;
            Some(made)
        });
        if mounted.is_none() {
            println!("SKIPPED: no exFAT (losetup, mkfs.exfat, mount.exfat-fuse and the right to mount)");
        }
        mounted
    }
}

impl Drop for Exfat {
    fn drop(&mut self) {
        done("umount", &[&self.at.to_string_lossy()]);
        done("losetup", &["-d", &self.device]);
    }
}

fn make(folder: &Folder, name: &str, files: &[(&str, usize)]) {
    std::fs::create_dir_all(folder.path(name)).unwrap();
    files.iter().for_each(|(file, bytes)| drop(folder.write_pattern(&format!("{name}/{file}"), *bytes)));
    folder.cede(&["torrent", "make", name, "-l", "16KiB", "-o", &format!("{name}.torrent")]).exits(0);
}

#[test]
fn what_a_file_system_does_not_take_in_names_has_substitutes_and_alike_names_are_refused() {
    const ALONE: &[&str] = &["--no-dht", "--no-lsd", "-B", "127.0.0.1"];
    let folder = Folder::new("exfat");
    let Some(_mounted) = Exfat::mount(&folder, "stick") else { return };
    make(&folder, "odd", &[("what? no.txt", 70_000), ("a:b", 30_000), ("plain", 20_000)]);
    make(&folder, "alike", &[("README", 9_000), ("readme", 9_000)]);
    let seed = |data: &str| {
        let mut seed = folder.start(
            &[&["torrent", "seed", "odd.torrent", "alike.torrent", "-d", data, "-p", "0"], ALONE].concat(),
        );
        let line = seed.says("odd: ");
        let peer = format!("127.0.0.1:{}", line.trim().rsplit(' ').next().unwrap());
        (seed, peer)
    };
    let get = |torrent: &str, to: &str, peer: &str| {
        folder.cede(&[&["torrent", "get", torrent, "-o", to, "-p", "0", "--peer", peer], ALONE].concat())
    };
    let (seeding, peer) = seed(".");
    get("alike.torrent", "stick", &peer).exits(1).complains("it is the same file as stick/alike/README");
    get("odd.torrent", "stick", &peer)
        .exits(0)
        .complains("names of 2 files have characters that the file system does not take");
    let pairs = [("what? no.txt", "what_ no.txt"), ("a:b", "a_b"), ("plain", "plain")];
    for (name, kept) in pairs {
        assert!(folder.read(&format!("stick/odd/{kept}")) == folder.read(&format!("odd/{name}")), "{name}");
    }
    // What is missing of it is fetched again, and what is there found.
    std::fs::remove_file(folder.path("stick/odd/a_b")).unwrap();
    get("odd.torrent", "stick", &peer).exits(0).complains("odd: 120 kB, 6 of 8 pieces are here");
    drop(seeding);
    // It is given from there under the torrent's names.
    let (_seeding, peer) = seed("stick");
    get("odd.torrent", "back", &peer).exits(0);
    for (name, _) in pairs {
        assert!(folder.read(&format!("back/odd/{name}")) == folder.read(&format!("odd/{name}")), "{name}");
    }
}
