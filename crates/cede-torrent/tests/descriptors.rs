//! Where the system lets a process have few files and connections open.
#![cfg(unix)]

mod support;

use cede_bt::wire::{Handshake, Reserved};
use cede_torrent::check::{Watch, check};
use std::process::Command;
use std::time::Duration;
use support::{LIMIT, Member, choices, run, torrent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Set for who may have few.
const INSIDE: &str = "CEDE_DESCRIPTORS_INSIDE";

/// Runs the test again in a process that may have so many open; true for who is inside.
fn has_few(test: &str, most: u32) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let exe = std::env::current_exe().unwrap();
    let text = format!("ulimit -n {most} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &text]).arg(exe).args(["--exact", test, "--nocapture"]).env(INSIDE, "1");
    assert!(command.status().unwrap().success(), "{test} failed with {most} descriptors");
    false
}

/// What could not be opened is not what is not there.
#[test]
fn files_are_read_and_written_in_turn() {
    if !has_few("files_are_read_and_written_in_turn", 30) {
        return;
    }
    run(async {
        let (info, content) = torrent(&[20_000; 60]);
        let member = Member::new(&info, None, &[], choices(1, 5)).await;
        member.storage.write(0, &content).unwrap();
        // Everything that may be open is, and whether the files are where they belong is seen all the same.
        member.storage.find_files_of(0).unwrap();
        member.storage.settle().unwrap();
        let whole = check(&member.storage, &info, &[], &Watch::default());
        assert!(whole.iter().all(|is_whole| *is_whole), "{whole:?}");
        assert_eq!(member.content(content.len()), content);
    });
}

#[test]
fn callers_wait_for_a_descriptor_and_that_is_told() {
    if !has_few("callers_wait_for_a_descriptor_and_that_is_told", 40) {
        return;
    }
    run(async {
        let (info, content) = torrent(&[20_000]);
        let mut member = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        member.start();
        // The callers are of this process, too.
        let mut callers = Vec::new();
        let calling = async {
            loop {
                match TcpStream::connect(member.address).await {
                    Ok(caller) => callers.push(caller),
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let told = async {
            tokio::select! {
                () = member.listener.runs_short() => {}
                () = calling => {}
            }
        };
        tokio::time::timeout(LIMIT, told).await.expect("nothing is said of a shortage");
        callers.clear();
        // Once others have gone there is room again.
        let greeting =
            Handshake { reserved: Reserved::default(), info_hash: info.info_hash(), peer_id: [2; 20] };
        let greeted = async {
            loop {
                let Ok(mut caller) = TcpStream::connect(member.address).await else { continue };
                let mut answer = [0; 68];
                let is_said = caller.write_all(&greeting.encode()).await.is_ok();
                if is_said && caller.read_exact(&mut answer).await.is_ok() {
                    return answer;
                }
            }
        };
        let answer = tokio::time::timeout(LIMIT, greeted).await.expect("nobody is served any more");
        assert_eq!(&answer[..20], b"\x13BitTorrent protocol");
    });
}
