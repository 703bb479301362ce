//! What trackers and web seeds complain of, told once.

use super::printable;
use crate::screen;
use cede_torrent::announce::Note;
use cede_torrent::web::WebNote;
use std::collections::HashMap;
use std::net::SocketAddr;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// Hands on what trackers say of peers, and mentions what keeps them from it.
pub async fn hear(mut notes: UnboundedReceiver<Note>, found: UnboundedSender<Vec<SocketAddr>>) {
    let mut said = Said::default();
    while let Some(Note { url, result }) = notes.recv().await {
        let text = match &result {
            Ok(answer) => answer.warning.as_ref(),
            Err(why) => Some(why),
        };
        if let Some(text) = said.news(&url, text) {
            screen::mention(&(printable(&format!("{url}: {text}")) + "\n"));
        }
        if let Ok(answer) = result {
            let _ = found.send(answer.peers);
        }
    }
}

/// Mentions what is wrong with web seeds, in the background.
pub fn hear_web(mut notes: UnboundedReceiver<WebNote>) {
    tokio::task::spawn_local(async move {
        let mut said = Said::default();
        while let Some(WebNote { url, trouble }) = notes.recv().await {
            if let Some(text) = said.news(&url, trouble.as_ref()) {
                screen::mention(&(printable(&format!("web seed {url}: {text}")) + "\n"));
            }
        }
    });
}

/// What each tracker complained of last: a complaint is not told again with each announce.
#[derive(Default)]
struct Said(HashMap<String, String>);

impl Said {
    /// What a person has not been told yet.
    fn news(&mut self, url: &str, text: Option<&String>) -> Option<String> {
        let Some(text) = text else {
            return self.0.remove(url).map(|_| "all is well now".to_owned());
        };
        let before = self.0.insert(url.to_owned(), text.clone());
        (before.as_ref() != Some(text)).then(|| text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracker_is_quoted_once_until_it_says_something_else() {
        let (mut said, busy, gone) = (Said::default(), "busy".to_owned(), "gone".to_owned());
        assert_eq!(said.news("a", None), None);
        assert_eq!(said.news("a", Some(&busy)), Some("busy".to_owned()));
        assert_eq!(said.news("a", Some(&busy)), None);
        assert_eq!(said.news("b", Some(&busy)), Some("busy".to_owned()));
        assert_eq!(said.news("a", Some(&gone)), Some("gone".to_owned()));
        assert_eq!(said.news("a", None), Some("all is well now".to_owned()));
        assert_eq!(said.news("a", None), None);
        assert_eq!(said.news("a", Some(&gone)), Some("gone".to_owned()));
    }
}
