//! Transfers between ours and other clients: both directions, over TCP and uTP, in the clear and enciphered, by torrent file and
//! by magnet link; and a swarm of them all. What is not installed is skipped aloud. `CEDE_UPDATE=1` writes
//! docs/interop-bittorrent.md; `CEDE_INTEROP_ONLY` picks rows of the table that contain it.

mod case;
mod mixed;
mod place;
#[path = "../support/mod.rs"]
mod support;
mod theirs;
mod torrent;

use case::{Case, HEAD, exchange};
use place::Place;
use std::fs;
use std::sync::Arc;
use support::run;
use theirs::Client;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Transfers at a time. The others' clients mostly wait for their own clocks.
const AT_ONCE: usize = 24;

/// Others' clients give a peer up for good that did not answer within their few seconds, however busy the machine, so a
/// transfer is begun anew, aloud, up to so many times.
const ATTEMPTS: u32 = 3;

/// Whether a transfer goes well.
async fn attempt(place: &Place, client: &Client, case: Case) -> bool {
    let (place, client) = (*place, client.clone());
    tokio::task::spawn_local(async move { exchange(&place, &client, case).await }).await.is_ok()
}

/// A row of the table for each transfer that went well, and a complaint for each other one.
async fn exchange_all(place: &Place, client: &Client, places: &Arc<Semaphore>) -> Result<String, String> {
    let mut running = JoinSet::new();
    let asked = std::env::var("CEDE_INTEROP_ONLY").unwrap_or_default();
    let cases: Vec<Case> =
        Case::all(client).into_iter().filter(|case| case.row(&client.label).contains(&asked)).collect();
    for (number, case) in cases.iter().copied().enumerate() {
        let (place, client, places) = (*place, client.clone(), places.clone());
        running.spawn_local(async move {
            let _turn = places.acquire_owned().await;
            let row = case.row(&client.label);
            let began = std::time::Instant::now();
            let mut failures = 0;
            while !attempt(&place, &client, case).await {
                failures += 1;
                assert!(failures < ATTEMPTS, "{failures} times in vain: {row}");
                println!("again: {row}");
            }
            println!("{:.1} s {}", began.elapsed().as_secs_f64(), row.trim_end());
            number
        });
    }
    let mut went_well = vec![false; cases.len()];
    while let Some(done) = running.join_next().await {
        // Whoever panicked has said why already.
        done.into_iter().for_each(|number| went_well[number] = true);
    }
    let failed: Vec<&Case> =
        cases.iter().zip(&went_well).filter(|(_, well)| !**well).map(|(c, _)| c).collect();
    if !failed.is_empty() {
        return Err(format!("{}: {failed:?}", client.label));
    }
    Ok(cases.iter().map(|case| case.row(&client.label)).collect())
}

#[test]
fn other_clients_and_ours_exchange_torrents() {
    let Some(place) = place::enter("other_clients_and_ours_exchange_torrents") else { return };
    let (mut table, mut complaints) = (HEAD.to_owned(), Vec::new());
    let clients = Client::all(&place);
    run(async {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        let all = clients.iter().map(|client| exchange_all(&place, client, &places));
        for outcome in join_all(all).await {
            match outcome {
                Ok(rows) => table += &rows,
                Err(complaint) => complaints.push(complaint),
            }
        }
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    if std::env::var_os("CEDE_UPDATE").is_some() {
        write(&(table + &mixed::section(&place)));
    }
}

/// The document of its own, and the end of the one on all transports.
fn write(text: &str) {
    const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
    fs::write(format!("{DOCS}interop-bittorrent.md"), text).unwrap();
    let whole = fs::read_to_string(format!("{DOCS}interop.md")).unwrap();
    let rest = whole.split("\n# The BitTorrent client").next().unwrap_or_default().trim_end();
    fs::write(format!("{DOCS}interop.md"), format!("{rest}\n\n{text}")).unwrap();
}

/// All of them at the same time, in their order.
async fn join_all<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<_> = all.map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|cx| {
        for (one, outcome) in &mut waiting {
            if outcome.is_none()
                && let std::task::Poll::Ready(done) = one.as_mut().poll(cx)
            {
                *outcome = Some(done);
            }
        }
        let is_over = waiting.iter().all(|(_, outcome)| outcome.is_some());
        if is_over { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, outcome)| outcome).collect()
}

#[test]
fn a_swarm_of_ours_and_theirs_finishes_with_equal_digests() {
    let Some(place) = place::enter("a_swarm_of_ours_and_theirs_finishes_with_equal_digests") else { return };
    if place.is_own {
        run(mixed::swarm(&place));
    }
}

/// The tests above run at the same time, each as number 1 of a namespace, in one folder for what is temporary.
#[test]
fn a_folder_that_somebody_has_is_not_taken() {
    let [one, other] = [support::Scratch::new(), support::Scratch::new()];
    assert_ne!(one.0, other.0);
    let gone = one.0.clone();
    drop(one);
    assert!(!gone.exists() && other.0.exists());
}

/// A member of the mixed swarm, in its own process and namespace; nothing where it is not asked for.
#[test]
fn member_of_a_mixed_swarm() {
    mixed::member();
}
