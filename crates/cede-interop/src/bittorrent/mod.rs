//! As much of BitTorrent (BEP 3) as it takes to exchange one torrent of one file with one peer.
//!
//! **What it leaves out**: everything that is negotiable. We announce no extensions, so a peer talks plain BEP 3 to us.
//! **How it was validated**: two of ours exchange a torrent (below); libtorrent and Transmission take metainfo and
//! messages, and check the pieces' digests themselves.

mod peer;
mod torrent;
mod wire;

pub use peer::{Download, Pauses, leech, leech_rest, seed};
pub use torrent::Torrent;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    async fn exchange(given: &Torrent, wanted: &Torrent) -> (io::Result<()>, io::Result<Vec<u8>>) {
        let (here, there) = tokio::io::duplex(1000);
        let ((here, mut out), (there, mut back)) = (tokio::io::split(here), tokio::io::split(there));
        let giving = async { seed(here, &mut out, given).await };
        let taking = async {
            let got = leech(there, &mut back, wanted, Pauses::default()).await;
            // Whoever is disappointed leaves.
            tokio::io::AsyncWriteExt::shutdown(&mut back).await.map(|()| got)?
        };
        tokio::join!(giving, taking)
    }

    #[tokio::test]
    async fn two_of_ours_exchange_a_torrent() {
        for bytes in [1, 16_384, 300_001] {
            let torrent = Torrent::new("t", 5, bytes, None);
            let (gave, got) = exchange(&torrent, &torrent).await;
            gave.unwrap();
            assert_eq!(got.unwrap(), torrent.octets);
        }
    }

    /// One connection between a seed and a leech: what became of either.
    async fn connection(given: &Torrent, wanted: &Torrent, download: &mut Download) -> [io::Result<()>; 2] {
        let (here, there) = tokio::io::duplex(1000);
        let (here, mut out) = tokio::io::split(here);
        let giving = async {
            let gave = seed(here, &mut out, given).await;
            drop(out);
            gave
        };
        let (there, mut back) = tokio::io::split(there);
        let taking = leech_rest(there, &mut back, wanted, Pauses::default(), download);
        tokio::join!(giving, taking).into()
    }

    #[tokio::test]
    async fn what_one_connection_did_not_bring_comes_over_the_next() {
        let torrent = Torrent::new("t", 5, 300_001, None);
        let mut download = Download::new(&torrent);
        let mut half = torrent.clone();
        half.octets.truncate(150_000);
        let [gave, got] = connection(&half, &torrent, &mut download).await;
        assert!(gave.unwrap_err().to_string().contains("beyond the end"));
        assert_eq!(got.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let ended = connection(&torrent, &torrent, &mut download).await;
        ended.into_iter().for_each(Result::unwrap);
        assert_eq!(download.finish(&torrent).unwrap(), torrent.octets);
    }

    #[tokio::test]
    async fn a_piece_that_is_not_the_torrents_is_refused() {
        let torrent = Torrent::new("t", 5, 40_000, None);
        let mut forged = torrent.clone();
        forged.octets[20_000] ^= 1;
        let (_, got) = exchange(&forged, &torrent).await;
        assert!(got.unwrap_err().to_string().contains("digest"));
    }
}
