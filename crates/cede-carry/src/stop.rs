//! A wish to end that many tasks can wait for.

use tokio::sync::watch;

/// Lets tasks learn that they are to end.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

/// Tells them. Dropping it tells nothing.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    /// Nobody is asked to stop yet.
    #[must_use]
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// What tasks wait for.
    #[must_use]
    pub fn stop(&self) -> Stop {
        Stop(self.0.subscribe())
    }

    /// Asks all to stop.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }
}

impl Default for Stopper {
    fn default() -> Self {
        Self::new()
    }
}

impl Stop {
    /// One that never comes.
    #[must_use]
    pub fn never() -> Self {
        Stopper::new().stop()
    }

    /// Whether it has come.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it comes.
    pub async fn asked(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
