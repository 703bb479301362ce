//! Uploads 64 MiB in the background over QUIC on the loopback, and says what the controller saw:
//! `cargo run --release -p cede-quinn --example background_upload`.

#[path = "../tests/loopback/mod.rs"]
mod loopback;

use std::error::Error;
use std::time::Instant;

const OCTETS: usize = 64 << 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let upload = loopback::upload(vec![7; OCTETS]).await?;
    let seconds = began.elapsed().as_secs_f64();
    println!("{} octets in {seconds:.2} s with {}", upload.received.len(), upload.controller);
    println!("at the end: {:?}", upload.snapshot);
    Ok(())
}
