//! The controllers inside quinn itself, on real sockets.

mod loopback;

use std::time::Duration;

#[tokio::test]
async fn an_upload_over_quinn_arrives_whole_under_our_controller() {
    let content: Vec<u8> =
        (0..4_000_000_u32).map(|octet| (octet.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let upload = tokio::time::timeout(Duration::from_secs(120), loopback::upload(content.clone()))
        .await
        .expect("two minutes are enough for 4 MB")
        .expect("the upload succeeds");
    assert!(upload.received == content, "what arrived is what was sent");
    assert_eq!(upload.controller, "ledbat++");
    assert!(
        upload.snapshot.base_delay_ns.is_some_and(|base| base > 0),
        "it has seen RTTs: {:?}",
        upload.snapshot
    );
}
