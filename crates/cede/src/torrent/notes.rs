//! What trackers and web seeds say.

use super::hub::Hub;
use cede_torrent::announce::Note;
use cede_torrent::web::WebNote;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::sync::mpsc::UnboundedReceiver;

/// Hands on what trackers say of a torrent's peers, and mentions what keeps them from it.
pub async fn hear(
    (hub, torrent): (Rc<Hub>, usize),
    mut notes: UnboundedReceiver<Note>,
    found: impl Fn(Vec<SocketAddr>),
) {
    while let Some(Note { url, result }) = notes.recv().await {
        let text = match &result {
            Ok(answer) => answer.warning.as_ref(),
            Err(why) => Some(why),
        };
        hub.complaint(torrent, &url, text);
        match result {
            Ok(answer) => {
                hub.hear(torrent, &url, &answer);
                found(answer.peers);
            }
            Err(_) => hub.miss(torrent, &url),
        }
    }
}

/// Mentions what is wrong with a torrent's web seeds, in the background.
pub fn hear_web((hub, torrent): (Rc<Hub>, usize), mut notes: UnboundedReceiver<WebNote>) {
    tokio::task::spawn_local(async move {
        while let Some(WebNote { url, trouble }) = notes.recv().await {
            hub.complaint(torrent, &format!("web seed {url}"), trouble.as_ref());
        }
    });
}
