//! What the tests share.
#![allow(dead_code)]

pub mod probe;
pub mod puppet;
pub mod relay;

use std::future::Future;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A test that takes longer has failed.
pub async fn in_time<F: Future>(test: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), test).await.expect("the test takes too long")
}

/// An octet of a stream that shows where it belongs.
fn octet(offset: u64, salt: u8) -> u8 {
    cede_wire::pattern_octet(offset) ^ salt
}

/// Writes `len` octets and ends the stream.
pub async fn send_pattern(out: &mut (impl AsyncWrite + Unpin), len: u64, salt: u8) {
    let mut offset = 0;
    while offset < len {
        let n = (len - offset).min(60_000);
        let piece: Vec<u8> = (offset..offset + n).map(|offset| octet(offset, salt)).collect();
        out.write_all(&piece).await.unwrap();
        offset += n;
    }
    out.shutdown().await.unwrap();
}

/// Reads to the end, checks every octet, and returns how many there were.
pub async fn expect_pattern(from: &mut (impl AsyncRead + Unpin), salt: u8) -> u64 {
    let (mut offset, mut buffer) = (0, vec![0; 70_000]);
    loop {
        let n = from.read(&mut buffer).await.unwrap();
        if n == 0 {
            return offset;
        }
        for &found in &buffer[..n] {
            assert_eq!(found, octet(offset, salt), "at {offset}");
            offset += 1;
        }
    }
}
