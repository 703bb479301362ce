//! Choices per stream, made early and late, and the pace that is kept.

mod common;

use cede_cc::ParamValue;
use cede_real::{ControllerChoice, OwnedReadHalf, OwnedWriteHalf, StreamConfig, UtpSocket, UtpStream};
use cede_units::{Duration, Rate};
use cede_utp::Mtu;
use common::{expect_pattern, in_time, send_pattern};
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;

#[test]
fn streams_go_wherever_tasks_go() {
    fn goes_anywhere<T: Unpin + Send + Sync + 'static>() {}
    goes_anywhere::<UtpStream>();
    goes_anywhere::<OwnedReadHalf>();
    goes_anywhere::<OwnedWriteHalf>();
    goes_anywhere::<UtpSocket>();
}

#[tokio::test]
async fn peers_are_decided_about_one_by_one() {
    in_time(async {
        let server = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let welcome = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let other = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let known = welcome.local_addr();
        server.listen_with(move |peer: SocketAddr| {
            let config = StreamConfig { mtu: Some(Mtu::Fixed(700)), ..StreamConfig::with_controller("reno") };
            (peer == known).then_some(config)
        });
        let mut impatient = StreamConfig::default();
        impatient.transport.syn_rto = Duration::from_millis(30);
        impatient.transport.max_syn_retransmissions = 0;
        assert!(other.connect_with(server.local_addr(), &impatient).await.is_err());
        let (there, here) = tokio::join!(welcome.connect(server.local_addr()), server.accept());
        let (there, here) = (there.unwrap(), here.unwrap());
        assert_eq!(here.peer_addr(), known);
        assert_eq!(here.snapshot().unwrap().payload_bytes, 700);
        assert_ne!(there.snapshot().unwrap().payload_bytes, 700);
        server.stop_listening();
        assert!(other.connect_with(server.local_addr(), &impatient).await.is_err());
        assert_eq!(server.statistics().endpoint.syns_refused, 2);
    })
    .await;
}

#[tokio::test]
async fn a_running_stream_changes_its_controller_and_goes_on() {
    in_time(async {
        let alice = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let bob = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let (there, here) = tokio::join!(alice.connect(bob.local_addr()), bob.accept());
        let (mut there, mut here) = (there.unwrap(), here.unwrap());
        let sending = async {
            there.write_all(&[cede_wire::pattern_octet(0)]).await.unwrap();
            let slower = ControllerChoice::named("ledbat")
                .with("target", ParamValue::Duration(Duration::from_millis(25)));
            there.set_controller(&slower).unwrap();
            assert!(there.set_controller(&ControllerChoice::named("no such thing")).is_err());
            assert!(there.snapshot().unwrap().controller.base_delay_ns.is_none(), "it knows nothing yet");
            there.set_controller(&ControllerChoice::named("cubic")).unwrap();
            there.write_all(&(1..300_000).map(cede_wire::pattern_octet).collect::<Vec<_>>()).await.unwrap();
            there.shutdown().await.unwrap();
        };
        let (_, heard) = tokio::join!(sending, expect_pattern(&mut here, 0));
        assert_eq!(heard, 300_000);
    })
    .await;
}

#[tokio::test]
async fn a_paced_stream_is_no_faster_than_its_pace() {
    in_time(async {
        // 80 Mbit/s: a timer of 1 ms lets 10 kB go each time, more than the controller's burst of 3000 octets.
        let rate = ParamValue::Rate(Rate::from_mbit(80));
        let config = StreamConfig {
            controller: ControllerChoice::named("fixed").with("rate", rate),
            ..Default::default()
        };
        let alice = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let bob = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let addr = bob.local_addr();
        let (there, here) = tokio::join!(alice.connect_with(addr, &config), bob.accept());
        let (mut there, mut here) = (there.unwrap(), here.unwrap());
        let begun = there.reading();
        let (_, heard) = tokio::join!(send_pattern(&mut there, 2_000_000, 5), expect_pattern(&mut here, 5));
        assert_eq!(heard, 2_000_000);
        // However late this machine is, it cannot be early; its first burst leaves at once.
        let least = Rate::from_mbit(80).time_to_send(2_000_000 - 30_000);
        let took = there.reading().since(&begun);
        assert!(took >= least, "{took} is too fast");
        println!(
            "at 80 Mbit/s 2 MB took {took} and should take {}",
            Rate::from_mbit(80).time_to_send(2_000_000)
        );
    })
    .await;
}
