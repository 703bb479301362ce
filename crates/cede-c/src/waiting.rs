//! The runtime that does the work, and waiting for it.

use crate::fault::Fault;
use cede_real::OwnedWriteHalf;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::runtime::{Builder, Runtime};

/// How often it is looked whether everything has arrived.
const LOOK: Duration = Duration::from_millis(2);

/// The runtime; it is never ended, as streams go on when their handles are gone.
fn runtime() -> Result<&'static Runtime, Fault> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = Builder::new_multi_thread().worker_threads(2).thread_name("cede").enable_all().build();
    let made = made.map_err(Fault::of)?;
    Ok(RUNTIME.get_or_init(|| made))
}

/// Waits for something, so many milliseconds at most; for ever where they are negative.
pub fn wait<T>(timeout_ms: i32, work: impl Future<Output = T>) -> Result<T, Fault> {
    let runtime = runtime()?;
    match u64::try_from(timeout_ms) {
        Err(_) => Ok(runtime.block_on(work)),
        Ok(ms) => runtime
            .block_on(async { tokio::time::timeout(Duration::from_millis(ms), work).await })
            .map_err(|_| Fault::TooLate),
    }
}

/// Ends our direction; over once all that was written has arrived.
pub async fn finished(writing: &mut OwnedWriteHalf) -> Result<(), Fault> {
    loop {
        // Of a stream that has failed, at whatever time, this is the error.
        writing.shutdown().await.map_err(Fault::of)?;
        let snapshot = writing.snapshot();
        let snapshot = snapshot.ok_or_else(|| Fault::said("the socket has closed".to_owned()))?;
        if snapshot.undelivered_bytes() == 0 {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The first address that a text leads to. A name is looked up by a thread of the runtime's, for which nobody waits longer than for
/// anything else.
pub async fn resolved(text: &str) -> Result<SocketAddr, Fault> {
    let found = tokio::net::lookup_host(text).await;
    let mut found = found.map_err(|error| Fault::said(format!("{text}: {error}")))?;
    found.next().ok_or_else(|| Fault::said(format!("{text} leads to no address")))
}
