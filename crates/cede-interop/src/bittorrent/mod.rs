//! As much of BitTorrent (BEP 3) as it takes to exchange one torrent of one file with one peer.
//!
//! **What it leaves out**: everything that is negotiable. We announce no extensions, so a peer talks plain BEP 3 to us.
//! **How it was validated**: two of ours exchange a torrent (below); libtorrent and Transmission take metainfo and
//! messages, and check the pieces' digests themselves.

mod peer;
mod torrent;
mod wire;

pub use peer::{Pauses, leech, seed};
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

    #[tokio::test]
    async fn a_piece_that_is_not_the_torrents_is_refused() {
        let torrent = Torrent::new("t", 5, 40_000, None);
        let mut forged = torrent.clone();
        forged.octets[20_000] ^= 1;
        let (_, got) = exchange(&forged, &torrent).await;
        assert!(got.unwrap_err().to_string().contains("digest"));
    }
}
