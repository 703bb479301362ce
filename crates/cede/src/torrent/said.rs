//! What servers complain of, told once: not with each announce, nor of each torrent.

use std::collections::HashMap;

/// Characters that are told of a complaint: what servers send on to may be as long as they like.
const TOLD_MAX: usize = 500;

/// What each server complains of, of which torrents.
#[derive(Default)]
pub struct Said(HashMap<String, Vec<(usize, String)>>);

impl Said {
    /// A server complains of a torrent, or does not: what a person has not been told yet.
    pub fn news(&mut self, torrent: usize, server: &str, text: Option<&String>) -> Option<String> {
        let known = self.0.entry(server.to_owned()).or_default();
        let before = known.iter().position(|(of, _)| *of == torrent).map(|at| known.swap_remove(at).1);
        let news = match text {
            Some(text) => {
                let text = cut(text);
                let is_known =
                    before.as_ref() == Some(&text) || known.iter().any(|(_, other)| *other == text);
                known.push((torrent, text.clone()));
                (!is_known).then_some(text)
            }
            None => (before.is_some() && known.is_empty()).then(|| "all is well now".to_owned()),
        };
        if known.is_empty() {
            self.0.remove(server);
        }
        news
    }

    /// What servers complain of, of a torrent.
    pub fn of(&self, torrent: usize) -> Vec<(String, String)> {
        let mine = |known: &[(usize, String)]| {
            known.iter().find(|(of, _)| *of == torrent).map(|(_, text)| text.clone())
        };
        self.0.iter().filter_map(|(server, known)| Some((server.clone(), mine(known)?))).collect()
    }

    /// A torrent is gone.
    pub fn forget(&mut self, torrent: usize) {
        self.0.values_mut().for_each(|known| known.retain(|(of, _)| *of != torrent));
        self.0.retain(|_, known| !known.is_empty());
    }
}

/// A complaint in a line. The server's URL, which a torrent may have at any length, is told no longer either.
pub fn line(server: &str, news: &str) -> String {
    format!("{}: {news}", cut(server))
}

fn cut(text: &str) -> String {
    let end = text.char_indices().nth(TOLD_MAX).map(|(at, _)| at);
    end.map_or_else(|| text.to_owned(), |end| format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_complaint_is_told_at_any_length() {
        let long = "ä".repeat(60_000);
        let told = Said::default().news(0, "a", Some(&long)).unwrap();
        assert_eq!(told, "ä".repeat(TOLD_MAX) + "…");
        let url = format!("http://a.example/{}", "b".repeat(60_000));
        let line = line(&url, "busy");
        assert!(line.starts_with("http://a.example/b") && line.ends_with("…: busy"));
        assert_eq!(line.chars().count(), TOLD_MAX + 7);
    }

    #[test]
    fn a_tracker_is_quoted_once_until_it_says_something_else() {
        let (mut said, busy, gone) = (Said::default(), "busy".to_owned(), "gone".to_owned());
        assert_eq!(said.news(0, "a", None), None);
        assert_eq!(said.news(0, "a", Some(&busy)), Some("busy".to_owned()));
        assert_eq!(said.news(0, "a", Some(&busy)), None);
        assert_eq!(said.news(0, "b", Some(&busy)), Some("busy".to_owned()));
        assert_eq!(said.news(0, "a", Some(&gone)), Some("gone".to_owned()));
        assert_eq!(said.news(0, "a", None), Some("all is well now".to_owned()));
        assert_eq!(said.news(0, "a", None), None);
        assert_eq!(said.news(0, "a", Some(&gone)), Some("gone".to_owned()));
    }

    #[test]
    fn what_is_wrong_for_many_torrents_is_said_once() {
        let (mut said, busy) = (Said::default(), "busy".to_owned());
        assert_eq!(said.news(0, "a", Some(&busy)), Some("busy".to_owned()));
        assert_eq!(said.news(1, "a", Some(&busy)), None);
        assert_eq!(said.news(0, "a", None), None, "not for the other one");
        assert_eq!(said.news(1, "a", None), Some("all is well now".to_owned()));
        let unknown = "no such torrent".to_owned();
        assert_eq!(said.news(0, "a", Some(&unknown)), Some(unknown.clone()));
        assert_eq!(said.news(1, "a", None), None);
        assert_eq!(said.news(0, "a", Some(&unknown)), None, "another torrent's answer changes nothing");
    }
}
