//! Who is served over HTTP at a time, by what hands out metrics and what takes orders.

use std::collections::VecDeque;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Callers that are served at a time. One more takes the place of who is there for longest: whoever asks at once has an answer within
/// a millisecond, however many others say nothing.
pub const CALLERS_MAX: usize = 64;
/// Where nobody can be let in (too many open files, for instance), that may pass.
const PAUSE: Duration = Duration::from_millis(100);

/// Those who are served.
#[derive(Default)]
pub struct Callers(VecDeque<AbortHandle>);

impl Callers {
    /// Waits for the next one, who is to be served by a task.
    pub async fn next(&mut self, listener: &TcpListener, serve: impl FnOnce(TcpStream) -> AbortHandle) {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            return;
        };
        self.0.retain(|caller| !caller.is_finished());
        if self.0.len() >= CALLERS_MAX {
            self.0.pop_front().as_ref().map(AbortHandle::abort);
        }
        self.0.push_back(serve(stream));
    }
}
