//! Each peer's quick cases. Nothing is installed here; what is missing is skipped aloud.

use cede_interop::clients::Client;
use cede_interop::matrix::{Peer, Scope, Verdict, cases, judge};
use cede_interop::stack::Stack;
use tokio::task::JoinSet;

async fn check(peer: Peer) {
    if let Err(why) = peer.version() {
        eprintln!("SKIPPED {}: {why}", peer.name());
        return;
    }
    let mut running = JoinSet::new();
    for case in cases(peer, Scope::Quick) {
        running.spawn(async move { (case, judge(peer, &case).await) });
    }
    let results = running.join_all().await;
    for (case, verdict) in &results {
        eprintln!("{}: {case}: {verdict}", peer.name());
    }
    let ours: Vec<_> =
        results.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Ours { .. })).collect();
    assert!(ours.is_empty(), "{}: {ours:#?}", peer.name());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn librqbit_utp_understands_ours() {
    check(Peer::Stack(Stack::Rqbit)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn utp_rs_understands_ours() {
    check(Peer::Stack(Stack::UtpRs)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn libtorrent_of_pypi_understands_ours() {
    check(Peer::Client(Client::LibtorrentPypi)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn libtorrent_of_debian_understands_ours() {
    check(Peer::Client(Client::LibtorrentDebian)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transmission_with_its_libutp_understands_ours() {
    check(Peer::Client(Client::Transmission)).await;
}
