//! Torrents, folders and sessions for tests.
#![allow(dead_code, reason = "each test file uses a part")]

use cede_bt::metainfo::{File, Info, Metainfo, Writer, sha1};
use cede_bt::{Disposition, Profile};
use cede_real::StreamConfig;
use cede_torrent::session::{Choices, Driver, Encryption, Listener, Session, Wish};
use cede_torrent::storage::Storage;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::LocalSet;

pub const PIECE: usize = 16_384;
/// Every wait in these tests ends after that, however busy the machine.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A folder of one test, removed at its end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// One that nobody else has or had. The number of the process does not tell it from others: whoever runs in a namespace of its own
    /// is number 1 there, and several have one folder for what is temporary. The driver of a session that was dropped may write for a moment still.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let base = std::env::temp_dir();
        let paths = (NEXT.fetch_add(1, Ordering::Relaxed)..)
            .map(|count| base.join(format!("cede-torrent-{}-{count}", std::process::id())));
        let is_ours = |path: &PathBuf| match fs::create_dir(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            other => other.map(|()| true).unwrap(),
        };
        Self(paths.into_iter().find(is_ours).unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn octets(len: usize, seed: u64) -> Vec<u8> {
    let mut state = cede_units::Stream::named(seed, "octets");
    (0..len).map(|_| state.next_u64() as u8).collect()
}

/// A torrent of files of these lengths, and its content.
pub fn torrent(lengths: &[usize]) -> (Arc<Info>, Vec<u8>) {
    torrent_in(lengths, PIECE)
}

/// The same in pieces of a length.
pub fn torrent_in(lengths: &[usize], piece: usize) -> (Arc<Info>, Vec<u8>) {
    let real: Vec<_> = lengths.iter().map(|length| (*length, false)).collect();
    padded_torrent(&real, piece)
}

/// The same, of files some of which are padding.
pub fn padded_torrent(lengths: &[(usize, bool)], piece: usize) -> (Arc<Info>, Vec<u8>) {
    let (mut files, mut content) = (Vec::new(), Vec::new());
    for (index, &(len, is_padding)) in lengths.iter().enumerate() {
        let path = vec!["t".to_owned(), format!("f{index}")];
        let (length, offset) = (len as u64, content.len() as u64);
        files.push(File { path, length, offset, is_padding, is_executable: false });
        content.extend(if is_padding { vec![0; len] } else { octets(len, index as u64) });
    }
    let pieces = content.chunks(piece).flat_map(sha1).collect();
    let writer = Writer { name: "t".into(), piece_length: piece as u32, pieces, files, ..Writer::default() };
    (Arc::new(Info::parse(&writer.info().encode()).unwrap()), content)
}

/// The same of v2, in the order of names. The content has zeros where padding is.
pub fn torrent_v2(lengths: &[usize]) -> (Metainfo, Vec<u8>) {
    let file = |(index, &length): (usize, &usize)| File {
        path: vec!["t".to_owned(), format!("f{index}")],
        length: length as u64,
        offset: 0,
        is_padding: false,
        is_executable: false,
    };
    let files = lengths.iter().enumerate().map(file).collect();
    let mut writer =
        Writer { name: "t".into(), piece_length: PIECE as u32, is_v2: true, files, ..Writer::default() };
    // Without its hashes it says where everything lies.
    let lacking = Info::parse(&writer.info().encode()).unwrap();
    let mut content = vec![0; lacking.geometry.total_bytes() as usize];
    for (index, file) in lacking.files.iter().filter(|file| !file.is_padding).enumerate() {
        let octets = octets(file.length as usize, index as u64);
        content[file.offset as usize..][..octets.len()].copy_from_slice(&octets);
    }
    for piece in 0..lacking.piece_count() {
        let mut hasher = lacking.hasher(piece);
        hasher.update(&content[piece as usize * PIECE..][..lacking.piece_bytes(piece) as usize]);
        writer.pieces.extend(hasher.finish().octets());
    }
    (Metainfo::parse(&writer.encode()).unwrap(), content)
}

/// A name of our client's.
pub fn peer_id(id: u8) -> [u8; 20] {
    let mut name = [id; 20];
    name[..3].copy_from_slice(b"-CE");
    name
}

pub fn choices(id: u8, transports: u8) -> Choices {
    Choices {
        profile: Profile::UTORRENT3,
        disposition: Disposition(transports),
        upload_limit: None,
        download_limit: None,
        tcp_yields: None,
        encryption: Encryption::Allow,
        pex: true,
        peer_id: peer_id(id),
        client: "cede test".to_owned(),
        seed: id.into(),
    }
}

/// A session with a folder and a place where it is reached.
pub struct Member {
    pub session: Session,
    pub address: SocketAddr,
    pub scratch: Scratch,
    pub storage: Arc<Storage>,
    pub wishes: UnboundedReceiver<Wish>,
    pub driver: Option<Driver>,
    pub listener: Rc<Listener>,
}

impl Member {
    /// One that has `content`, or nothing. Called within a runtime.
    pub async fn new(info: &Arc<Info>, content: Option<&[u8]>, wanted: &[bool], choices: Choices) -> Self {
        Self::at(Ipv4Addr::LOCALHOST.into(), info, content, wanted, choices).await
    }

    /// The same at an address.
    pub async fn at(
        local: IpAddr,
        info: &Arc<Info>,
        content: Option<&[u8]>,
        wanted: &[bool],
        choices: Choices,
    ) -> Self {
        let scratch = Scratch::new();
        let storage = Arc::new(Storage::new(&scratch.0, info, wanted).unwrap());
        if let Some(content) = content {
            storage.write(0, content).unwrap();
        }
        let whole = vec![content.is_some(); info.piece_count() as usize];
        Self::with(local, (info, &whole), (scratch, storage), choices).await
    }

    /// One that goes on with what is stored, of which `whole` is there.
    pub async fn resumed(info: &Arc<Info>, storage: &Arc<Storage>, whole: &[bool], choices: Choices) -> Self {
        let place = (Scratch::new(), storage.clone());
        Self::with(Ipv4Addr::LOCALHOST.into(), (info, whole), place, choices).await
    }

    async fn with(
        local: IpAddr,
        (info, whole): (&Arc<Info>, &[bool]),
        (scratch, storage): (Scratch, Arc<Storage>),
        choices: Choices,
    ) -> Self {
        let stream = StreamConfig::default();
        let listener = Rc::new(Listener::bind(Some(local), 0, choices.disposition, stream).await.unwrap());
        let address = SocketAddr::new(local, listener.port());
        let made = Session::new(info, &storage, whole, Some(listener.clone()), choices).unwrap();
        let (session, wishes, driver) = made;
        Self { session, address, scratch, storage, wishes, driver: Some(driver), listener }
    }

    /// Runs it in the background.
    pub fn start(&mut self) {
        let mut driver = self.driver.take().unwrap();
        tokio::task::spawn_local(async move { driver.run().await.unwrap() });
    }

    /// Waits until everything wanted is there and on the disk.
    pub async fn done(&self) {
        let waiting = async {
            while !self.session.is_done() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let view = || format!("{:?}", self.session.view());
        assert!(tokio::time::timeout(LIMIT, waiting).await.is_ok(), "not done: {}", view());
    }

    /// The whole content as it is stored.
    pub fn content(&self, len: usize) -> Vec<u8> {
        let mut octets = vec![0; len];
        self.storage.read(0, &mut octets).unwrap();
        octets
    }
}

/// Until something is so.
pub async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.expect("it does not come to that");
}

/// Runs a test on one thread.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, test)
}
