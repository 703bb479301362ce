//! Peers that call each other at the same time, and one that calls itself.

mod support;

use cede_bt::Profile;
use cede_bt::wire::{Handshake, Reserved};
use cede_torrent::session::{Choices, PeerView};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use support::{Member, choices, run, torrent, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The one connection that is left where it was one once. Since one had its first they have not both been without one, nor has that one where they
/// have one transport: else it may hear sooner of the end of the one connection than of what the other has said over the one that is kept.
async fn one_left(members: &[Member; 2], told: &str, is_one_transport: bool) -> [PeerView; 2] {
    let mut quiet = 0;
    let mut last = vec![0; 2];
    until(|| {
        let peers: Vec<Vec<PeerView>> = members.iter().map(|member| member.session.view().peers).collect();
        let seen: Vec<usize> = peers.iter().map(Vec::len).collect();
        let mut pairs = last.iter().zip(&seen);
        let is_kept = pairs.all(|(&before, &now)| before == 0 || now > 0);
        let is_one_left = last == [0, 0] || seen != [0, 0];
        assert!(is_one_left && (is_kept || !is_one_transport), "{told}: {last:?}, then {seen:?}");
        quiet = if seen == [1, 1] { quiet + 1 } else { 0 };
        last = seen;
        quiet == 40
    })
    .await;
    members.each_ref().map(|member| member.session.view().peers.remove(0))
}

#[test]
fn two_that_begin_at_the_same_time_keep_one_connection() {
    run(async {
        let (info, content) = torrent(&[3_000_000]);
        let profiles = [Profile::UTORRENT3, Profile::LIBTORRENT, Profile::MAINLINE4];
        for (profile, transports) in profiles.into_iter().flat_map(|it| [5, 10, 31].map(|mask| (it, mask))) {
            let choices = |id| Choices { profile, upload_limit: Some(50_000), ..choices(id, transports) };
            let seed = Member::new(&info, Some(&content), &[], choices(1)).await;
            let mut both = [seed, Member::new(&info, None, &[], choices(2)).await];
            both.iter_mut().for_each(Member::start);
            both[0].session.add_peers(&[both[1].address]);
            both[1].session.add_peers(&[both[0].address]);
            let told = format!("{} {transports}", profile.name);
            let [here, there] = one_left(&both, &told, transports != 31).await;
            assert_eq!(here.transport, there.transport, "{told}");
            assert_ne!(here.is_outgoing, there.is_outgoing, "{told}");
        }
    });
}

/// Somebody who does not know better has told a member of an address that leads to itself. It calls that once.
#[test]
fn a_member_that_has_met_itself_calls_that_address_no_more() {
    run(async {
        let (info, _) = torrent(&[100_000]);
        let mut member = Member::new(&info, None, &[], choices(1, 5)).await;
        member.start();
        let [way, other] = [bind().await, bind().await];
        let [ours, others] = [&way, &other].map(|door| door.local_addr().unwrap());
        member.session.add_peers(&[ours]);
        let mut call = called(&member, &way, ours).await;
        let mut answer = TcpStream::connect(member.address).await.unwrap();
        // Until the one that has called hangs up.
        let _ = tokio::io::copy_bidirectional(&mut call, &mut answer).await;
        drop(call);
        drop(called(&member, &other, others).await);
        // Not even where somebody insists on it.
        member.session.call_peers(&[ours]);
        drop(called(&member, &other, others).await);
        assert!(tokio::time::timeout(Duration::from_millis(100), way.accept()).await.is_err());
    });
}

async fn bind() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap()
}

/// One that hangs up since it has another connection to us is not deaf to the clear.
#[test]
fn who_hangs_up_on_a_second_call_is_not_called_enciphered() {
    run(async {
        let (info, _) = torrent(&[100_000]);
        let mut member = Member::new(&info, None, &[], choices(1, 5)).await;
        member.start();
        let handshake =
            Handshake { reserved: Reserved::default(), info_hash: info.info_hash(), peer_id: [2; 20] };
        let mut first = TcpStream::connect(member.address).await.unwrap();
        first.write_all(&handshake.encode()).await.unwrap();
        until(|| member.session.view().peers.len() == 1).await;
        let waiting = bind().await;
        let address = waiting.local_addr().unwrap();
        for _ in 0..2 {
            let mut call = called(&member, &waiting, address).await;
            let mut greeting = [0; 68];
            call.read_exact(&mut greeting).await.unwrap();
            assert_eq!(&greeting[..20], b"\x13BitTorrent protocol");
        }
    });
}

/// A call to an address that is insisted on.
async fn called(member: &Member, waiting: &TcpListener, address: SocketAddr) -> TcpStream {
    loop {
        member.session.call_peers(&[address]);
        let call = tokio::time::timeout(Duration::from_millis(50), waiting.accept());
        if let Ok(call) = call.await {
            return call.unwrap().0;
        }
    }
}
