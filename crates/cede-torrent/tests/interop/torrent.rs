//! What is exchanged.

use crate::support::{self, LIMIT, Scratch};
use cede_bt::magnet::Magnet;
use cede_bt::metainfo::{Info, Metainfo, Writer};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A torrent with a torrent file, and its content.
pub struct Torrent {
    pub info: Arc<Info>,
    pub content: Vec<u8>,
    pub tracker: String,
    scratch: Scratch,
}

impl Torrent {
    pub fn new(tracker: String, bytes: usize, is_v2: bool) -> Self {
        let lengths = [bytes / 3, bytes - bytes / 3];
        let (info, content) = if is_v2 {
            let (metainfo, content) = support::torrent_v2(&lengths);
            (Arc::new(metainfo.info), content)
        } else {
            support::torrent(&lengths)
        };
        let scratch = Scratch::new();
        let writer = Writer {
            name: info.name.clone(),
            piece_length: info.piece_length,
            is_v2,
            pieces: info.pieces.clone(),
            files: info.files.iter().filter(|file| !file.is_padding).cloned().collect(),
            trackers: vec![vec![tracker.clone()]],
            ..Writer::default()
        };
        fs::write(scratch.0.join("t.torrent"), writer.encode()).unwrap();
        let info = Arc::new(Metainfo::parse(&writer.encode()).unwrap().info);
        Self { info, content, tracker, scratch }
    }

    pub fn file(&self) -> String {
        self.scratch.0.join("t.torrent").display().to_string()
    }

    pub fn magnet(&self) -> String {
        let trackers = vec![self.tracker.clone()];
        let hash_v1 = self.info.hash_v2.is_none().then_some(self.info.hash_v1);
        Magnet { hash_v1, hash_v2: self.info.hash_v2, trackers, ..Magnet::default() }.to_string()
    }

    /// A folder of one client's own.
    pub fn folder(&self, name: &str) -> PathBuf {
        let folder = self.scratch.0.join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Puts the content where a client expects it.
    pub fn put(&self, folder: &Path) {
        fs::create_dir_all(folder.join("t")).unwrap();
        for (file, octets) in self.parts(folder) {
            fs::write(file, octets).unwrap();
        }
    }

    fn parts(&self, folder: &Path) -> impl Iterator<Item = (PathBuf, &[u8])> {
        self.info.files.iter().filter(|file| !file.is_padding).map(move |file| {
            let (start, end) = (file.offset as usize, (file.offset + file.length) as usize);
            (folder.join(file.path.join("/")), &self.content[start..end])
        })
    }

    /// Waits until the content is in a folder, octet by octet: other clients say that they are done before that.
    pub async fn until_in(&self, folder: &Path) {
        let missing = self.missing_in(folder).await;
        assert!(missing.is_none(), "{missing:?}");
    }

    /// The same; a file that is not what was sent, and how many of its octets are, where the time is over.
    pub async fn missing_in(&self, folder: &Path) -> Option<(PathBuf, usize)> {
        let began = Instant::now();
        for (file, octets) in self.parts(folder) {
            while let there = fs::read(&file).unwrap_or_default()
                && there != octets
            {
                if began.elapsed() > LIMIT {
                    let equal = there.iter().zip(octets).filter(|(a, b)| a == b).count();
                    return Some((file, equal));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        None
    }
}
