//! What holds for a torrent of `cede torrent daemon` alone, and for all: limits, and when giving ends.

mod support;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::daemon::{Daemon, FETCHES, GIVES, Place, QUIET, STOPPED};

/// What is told of the only torrent.
fn told(daemon: &mut Daemon, fields: &[&str]) -> Value {
    daemon.order("torrent-get", &json!({ "fields": fields }))["torrents"][0].clone()
}

#[test]
fn a_torrent_has_limits_of_its_own() {
    let place = Place::new("terms-limits", 4_000_000);
    let mut daemon = place.daemon(&[]);
    daemon.add(&place.torrent(), &json!({ "paused": true }));
    daemon.order("torrent-set", &json!({ "downloadLimit": 20, "downloadLimited": true, "uploadLimit": 7 }));
    let fields = ["downloadLimit", "downloadLimited", "uploadLimit", "uploadLimited"];
    let wanted =
        json!({ "downloadLimit": 20, "downloadLimited": true, "uploadLimit": 7, "uploadLimited": false });
    assert_eq!(told(&mut daemon, &fields), wanted);
    for order in [
        json!({ "downloadLimit": 0 }),
        json!({ "honorsSessionLimits": false }),
        json!({ "seedRatioMode": 7 }),
        json!({ "seedIdleLimit": "soon" }),
    ] {
        daemon.refused("torrent-set", &order);
    }
    daemon.order("torrent-start", &json!({ "ids": [1] }));
    let begun = daemon.until("begun", |it| it["downloadedEver"].as_u64() > Some(0));
    let (began, before) = (Instant::now(), begun["downloadedEver"].as_u64().unwrap());
    std::thread::sleep(Duration::from_secs(3));
    let now = daemon.until("fetched", |it| it["status"] == FETCHES)["downloadedEver"].as_u64().unwrap();
    // However late it was asked: a quarter of a second may have been saved up, and a block is told of once it is whole.
    let most = 20_000.0 * (began.elapsed().as_secs_f64() + 0.25) + 3.0 * 16_384.0;
    assert!(((now - before) as f64) < most, "{} octets, {most} at most", now - before);
    // It would have taken minutes.
    daemon.order("torrent-set", &json!({ "downloadLimited": false }));
    daemon.until_there();
    daemon.running.kill();
    let mut daemon = place.daemon(&[]);
    assert_eq!(told(&mut daemon, &fields)["uploadLimit"], 7, "that is remembered");
    daemon.running.kill();
    place.seed.kill();
}

/// The daemon gives everything to somebody who begins with nothing.
fn given(place: &Place, daemon: &mut Daemon) {
    let at = format!("127.0.0.1:{}", daemon.order("session-get", &json!({}))["peer-port"]);
    let _ = std::fs::remove_dir_all(place.folder.path("other"));
    std::fs::create_dir(place.folder.path("other")).unwrap();
    let words = ["torrent", "get", "film.torrent", "-o", "other", "--no-pex", "--peer", &at];
    place.folder.cede(&[&words[..], &QUIET].concat()).exits(0);
}

#[test]
fn giving_ends_as_often_as_it_is_said_over_runs_and_begins_again_when_it_is_asked() {
    let place = Place::new("terms-ratio", 200_000);
    let mut daemon = place.daemon(&["--seed-ratio", "9"]);
    daemon.add(&place.torrent(), &json!({}));
    daemon.until_there();
    daemon.order("torrent-set", &json!({ "seedRatioLimit": 1.5, "seedRatioMode": 1 }));
    given(&place, &mut daemon);
    daemon.until("given once", |it| it["uploadedEver"].as_u64() >= Some(200_000) && it["status"] == GIVES);
    daemon.order("session-close", &json!({}));
    daemon.running.end().exits(0);
    // What was given before the daemon began anew counts.
    let mut daemon = place.daemon(&[]);
    daemon.until("goes on", |it| it["status"] == GIVES);
    let terms = told(&mut daemon, &["seedRatioLimit", "seedRatioMode", "seedIdleMode"]);
    assert_eq!(terms, json!({ "seedRatioLimit": 1.5, "seedRatioMode": 1, "seedIdleMode": 0 }));
    given(&place, &mut daemon);
    daemon.until("given twice", |it| it["status"] == STOPPED && it["isFinished"] == true);
    // Whoever begins it again means it to be given as often once more.
    daemon.order("torrent-start", &json!({}));
    daemon.until("goes on", |it| it["status"] == GIVES && it["isFinished"] == false);
    given(&place, &mut daemon);
    daemon.until("given three times", |it| {
        it["status"] == GIVES && it["uploadedEver"].as_u64() >= Some(600_000)
    });
    // All are given without end, and this one as all are.
    daemon.order("torrent-set", &json!({ "seedRatioMode": 0 }));
    daemon.order("session-set", &json!({ "seedRatioLimit": 0.5, "seedRatioLimited": true }));
    daemon.until("over at once", |it| it["status"] == STOPPED && it["isFinished"] == true);
    let session = daemon.order("session-get", &json!({}));
    assert_eq!((&session["seedRatioLimit"], &session["seedRatioLimited"]), (&json!(0.5), &json!(true)));
    daemon.running.kill();
    place.seed.kill();
}

#[test]
fn torrents_may_be_added_without_being_begun() {
    let place = Place::new("terms-added", 50_000);
    let mut daemon = place.daemon(&[]);
    daemon.order("session-set", &json!({ "start-added-torrents": false, "idle-seeding-limit": 5 }));
    let session = daemon.order("session-get", &json!({}));
    assert_eq!(
        (&session["start-added-torrents"], &session["idle-seeding-limit"]),
        (&json!(false), &json!(5))
    );
    assert_eq!(session["idle-seeding-limit-enabled"], false);
    daemon.add(&place.torrent(), &json!({}));
    daemon.until("stopped", |it| it["status"] == STOPPED);
    daemon.delete_all();
    daemon.until_none();
    daemon.add(&place.torrent(), &json!({ "paused": false }));
    daemon.until_there();
    daemon.running.kill();
    place.seed.kill();
}
