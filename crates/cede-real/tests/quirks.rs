//! What deployed implementations of uTP send that BEP 29 does not foresee, as raw packets to a real socket: each is taken
//! as the sheet of this project has it (`docs/interop.md`), and the stream goes on.

mod common;

use cede_real::{SocketConfig, UtpSocket, UtpStream};
use cede_units::{Duration, Seq16};
use cede_wire::utp::{EXT_BITS, EXT_CLOSE_REASON, EXT_SELECTIVE_ACK, Kind};
use common::in_time;
use common::probe::{Chain, Probe};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A socket, the stream that it took up, and who opened that.
struct Opened {
    server: UtpSocket,
    stream: UtpStream,
    probe: Probe,
}

async fn opened_with(id: u16, syn: u16, chain: Chain<'_>, syn_window_bytes: u32) -> Opened {
    let server = UtpSocket::bind("127.0.0.1:0").await.unwrap();
    opened_on(server, id, syn, chain, syn_window_bytes).await
}

async fn opened_on(server: UtpSocket, id: u16, syn: u16, chain: Chain<'_>, syn_window_bytes: u32) -> Opened {
    let mut probe = Probe::new(server.local_addr(), id, syn).await;
    probe.window_bytes = syn_window_bytes;
    probe.open(chain).await;
    probe.window_bytes = 1 << 20;
    probe.state(&[]).await;
    let stream = server.accept().await.unwrap();
    Opened { server, stream, probe }
}

async fn opened() -> Opened {
    opened_with(100, 7000, &[], 1 << 20).await
}

impl Opened {
    /// Octets go both ways.
    async fn talks(&mut self) {
        self.probe.numbered(Kind::Data, &[], b"question").await;
        let mut heard = [0; 8];
        self.stream.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"question");
        self.stream.write_all(b"answer").await.unwrap();
        assert_eq!(self.probe.take(6).await, b"answer");
    }

    async fn until(&self, reached: impl Fn(&UtpStream) -> bool) {
        while !reached(&self.stream) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn every_connection_id_and_first_number_opens_a_stream_the_last_and_the_wrap_included() {
    for (id, syn) in [(0, 0), (1, 1), (0x7fff, 0x7fff), (65_534, 65_534), (65_535, 65_535), (65_535, 0)] {
        in_time(async { opened_with(id, syn, &[], 1 << 20).await.talks().await }).await;
    }
}

#[tokio::test]
async fn a_syn_with_a_window_of_zero_is_no_closed_window() {
    in_time(async { opened_with(100, 7000, &[], 0).await.talks().await }).await;
}

#[tokio::test]
async fn a_syn_may_carry_extensions_known_or_not() {
    let cases: [Chain<'_>; 6] = [
        &[(EXT_BITS, &[0; 8])],
        &[(EXT_BITS, &[0xff; 8])],
        &[(EXT_BITS, &[1; 3])],
        &[(200, b"whatever")],
        &[(EXT_SELECTIVE_ACK, &[0xff; 4]), (9, &[])],
        &[(9, &[7; 255]), (10, &[7; 255])],
    ];
    for chain in cases {
        in_time(async { opened_with(100, 7000, chain, 1 << 20).await.talks().await }).await;
    }
}

#[tokio::test]
async fn each_duplicate_syn_gets_the_same_answer_and_opens_nothing() {
    in_time(async {
        let server = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut probe = Probe::new(server.local_addr(), 65_535, 9).await;
        let first = probe.open(&[]).await.seq;
        for _ in 0..5 {
            (probe.seq, probe.ack) = (Seq16(9), Seq16(0));
            assert_eq!(probe.open(&[]).await.seq, first);
        }
        let statistics = server.statistics();
        assert_eq!((statistics.endpoint.opened, statistics.connections), (1, 1));
        probe.state(&[]).await;
        let stream = server.accept().await.unwrap();
        Opened { server, stream, probe }.talks().await;
    })
    .await;
}

#[tokio::test]
async fn the_answer_takes_no_number_and_data_begin_with_it() {
    in_time(async {
        let server = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut probe = Probe::new(server.local_addr(), 100, 7).await;
        let answer = probe.open(&[]).await;
        probe.numbered(Kind::Data, &[], b"1").await;
        let mut stream = server.accept().await.unwrap();
        stream.write_all(b"2").await.unwrap();
        let data = probe.hear(|heard| heard.header.kind == Kind::Data).await;
        assert_eq!(data.header.seq, answer.seq);
    })
    .await;
}

/// DATA and FIN behind extensions that other implementations drop the packet for.
#[tokio::test]
async fn extensions_of_any_kind_order_and_length_leave_data_and_ends_readable() {
    let masks = [0_usize, 1, 2, 3, 5, 13, 75, 120, 255].map(|len| vec![0_u8; len]);
    let mut chains: Vec<Vec<(u8, &[u8])>> =
        masks.iter().map(|mask| vec![(EXT_SELECTIVE_ACK, &mask[..])]).collect();
    chains.push(vec![(EXT_CLOSE_REASON, &[0, 0, 1, 4])]);
    chains.push(vec![(EXT_SELECTIVE_ACK, &[0; 4]), (EXT_CLOSE_REASON, &[0, 0, 0, 6])]);
    chains.push(vec![(EXT_CLOSE_REASON, &[9])]);
    chains.push(vec![(77, b"unknown"), (78, &[]), (EXT_SELECTIVE_ACK, &[0; 4])]);
    chains.push(vec![(0xfe, &[0, 0]), (0xfe, &[])]);
    in_time(async {
        let mut opened = opened().await;
        for chain in &chains {
            opened.probe.numbered(Kind::Data, chain, b"octets").await;
        }
        opened.probe.numbered(Kind::Fin, &[(EXT_CLOSE_REASON, &[0, 0, 1, 4])], &[]).await;
        let mut heard = Vec::new();
        opened.stream.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"octets".repeat(chains.len()));
        opened.probe.hear_all_acknowledged().await;
    })
    .await;
}

/// A mask whose first three bits are set, however long: the packet before them is lost, and leaves again at once. No
/// timeout can be what sends it.
#[tokio::test]
async fn a_selective_ack_of_any_length_repairs_a_loss() {
    for len in [1_usize, 2, 3, 4, 5, 8, 13, 64, 75, 140, 255] {
        in_time(async {
            let mut config = SocketConfig::default();
            config.stream.transport.initial_rto = Duration::from_secs(600);
            config.stream.transport.min_rto = Duration::from_secs(600);
            let server = UtpSocket::bind_with("127.0.0.1:0", config).await.unwrap();
            let mut opened = opened_on(server, 100, 7000, &[], 1 << 20).await;
            // Five full packets, the first of which is padded, and one that waits for an acknowledgement.
            opened.stream.write_all(&[7; 3000]).await.unwrap();
            let begin = opened.probe.ack.add(1);
            let mut bytes = 0;
            for n in 0..5 {
                bytes += opened.probe.hear(|heard| heard.header.seq == begin.add(n)).await.payload.len();
            }
            let mut mask = vec![0; len];
            mask[0] = 0b111;
            opened.probe.state(&[(EXT_SELECTIVE_ACK, &mask)]).await;
            opened.probe.hear(|heard| heard.header.seq == begin).await;
            opened.probe.ack = begin.add(4);
            opened.probe.state(&[]).await;
            opened.probe.take(3000 - bytes).await;
            opened.talks().await;
        })
        .await;
    }
}

#[tokio::test]
async fn numbers_wrap_in_the_middle_of_a_stream() {
    in_time(async {
        let mut opened = opened_with(3, 65_530, &[], 1 << 20).await;
        for n in 0..20_u8 {
            opened.probe.numbered(Kind::Data, &[], &[n]).await;
        }
        let mut heard = [0; 20];
        opened.stream.read_exact(&mut heard).await.unwrap();
        assert!(heard.into_iter().eq(0..20));
    })
    .await;
}

#[tokio::test]
async fn a_fin_that_overtakes_data_ends_the_stream_behind_them_and_what_follows_it_is_dropped() {
    in_time(async {
        let mut opened = opened().await;
        let first = opened.probe.header(Kind::Data);
        opened.probe.seq = first.seq.add(1);
        opened.probe.numbered(Kind::Fin, &[], &[]).await;
        let beyond = opened.probe.header(Kind::Data);
        opened.probe.send(&beyond, &[], b"never").await;
        opened.probe.send(&first, &[], b"late").await;
        let mut heard = Vec::new();
        opened.stream.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"late");
        assert_eq!(opened.stream.statistics().discarded_seq, 1);
    })
    .await;
}

/// libtorrent 2.0: its counter stays at the FIN's number, and its STATEs carry that.
#[tokio::test]
async fn a_fin_that_takes_no_number_leaves_later_acknowledgements_valid() {
    in_time(async {
        let mut opened = opened().await;
        let fin = opened.probe.header(Kind::Fin);
        opened.probe.send(&fin, &[], &[]).await;
        opened.stream.write_all(b"answer").await.unwrap();
        // The number is not advanced, and the acknowledgements of DATA and FIN carry the FIN's.
        assert_eq!(opened.probe.take(6).await, b"answer");
        opened.stream.shutdown().await.unwrap();
        let end = opened.probe.hear(|heard| heard.header.kind == Kind::Fin).await;
        opened.probe.ack = end.header.seq;
        opened.probe.state(&[]).await;
        drop(opened.stream);
        while opened.server.statistics().connections > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn acknowledgements_of_what_was_never_sent_or_long_ago_are_dropped_with_their_packets() {
    in_time(async {
        let mut opened = opened().await;
        for (n, off) in [1_u16, 500, 0x7fff, 0x8000, 65_526].into_iter().enumerate() {
            let mut data = opened.probe.header(Kind::Data);
            data.ack = data.ack.add(off);
            opened.probe.send(&data, &[], b"forged").await;
            opened.until(|stream| stream.statistics().discarded_ack > n as u64).await;
        }
        opened.talks().await;
    })
    .await;
}

#[tokio::test]
async fn timestamps_of_zero_and_differences_that_mean_nothing_are_no_samples() {
    for timestamps in [(0, 0), (0, 0x7fff_ffff), (u32::MAX, u32::MAX), (1, 0x8000_0000)] {
        in_time(async {
            let mut opened = opened().await;
            opened.probe.timestamps = timestamps;
            for _ in 0..20 {
                opened.talks().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_keepalive_is_neither_answered_nor_a_duplicate() {
    in_time(async {
        let mut opened = opened().await;
        opened.talks().await;
        let before = opened.stream.statistics();
        for _ in 0..5 {
            let mut keepalive = opened.probe.header(Kind::State);
            keepalive.ack = keepalive.ack.sub(1);
            opened.probe.send(&keepalive, &[], &[]).await;
        }
        opened.until(|stream| stream.statistics().packets_received >= before.packets_received + 5).await;
        let after = opened.stream.statistics();
        assert_eq!(
            (after.duplicate_acks_received, after.states_sent),
            (before.duplicate_acks_received, before.states_sent)
        );
        opened.talks().await;
    })
    .await;
}

#[tokio::test]
async fn a_window_of_zero_is_probed_and_opens_again() {
    in_time(async {
        let mut opened = opened().await;
        opened.probe.window_bytes = 0;
        opened.probe.state(&[]).await;
        opened
            .until(|stream| stream.snapshot().is_some_and(|snapshot| snapshot.peer_window_bytes == 0))
            .await;
        opened.stream.write_all(&[7; 5000]).await.unwrap();
        // The probe comes after a second, unasked. What it brings there is no room for.
        opened.probe.hear(|heard| heard.header.kind == Kind::Data).await;
        opened.probe.state(&[]).await;
        assert!(opened.stream.statistics().zero_window_probes > 0);
        opened.probe.window_bytes = 1 << 20;
        opened.probe.state(&[]).await;
        assert_eq!(opened.probe.take(5000).await, vec![7; 5000]);
    })
    .await;
}

#[tokio::test]
async fn resets_with_either_id_end_a_stream_where_they_acknowledge_what_is_plausible() {
    for own_id in [false, true] {
        in_time(async {
            let mut opened = opened().await;
            let mut reset = opened.probe.header(Kind::Reset);
            reset.connection_id = reset.connection_id.wrapping_sub(u16::from(own_id));
            let wrong = cede_wire::utp::Header { ack: reset.ack.add(3000), ..reset };
            opened.probe.send(&wrong, &[], &[]).await;
            opened.until(|stream| stream.statistics().discarded_resets == 1).await;
            opened.probe.send(&reset, &[], &[]).await;
            let error = opened.stream.read_u8().await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
            // Whatever follows finds nobody.
            opened.probe.numbered(Kind::Data, &[], b"after the end").await;
            opened.probe.hear(|heard| heard.header.kind == Kind::Reset).await;
        })
        .await;
    }
}

/// Strangers: one RESET for each packet that is not like another, none for RESETs and for repetitions.
#[tokio::test]
async fn packets_of_no_connection_draw_one_reset_each() {
    in_time(async {
        let server = UtpSocket::bind_with("127.0.0.1:0", SocketConfig::default()).await.unwrap();
        let probe = Probe::new(server.local_addr(), 500, 77).await;
        for kind in [Kind::Reset, Kind::Data, Kind::Data, Kind::State, Kind::Fin] {
            probe.send(&probe.header(kind), &[], &[]).await;
        }
        let reset = probe.hear(|heard| heard.header.kind == Kind::Reset).await.header;
        assert_eq!((reset.connection_id, reset.ack, reset.window_bytes), (501, Seq16(77), 0));
        while server.statistics().endpoint.strays < 5 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert_eq!(server.statistics().endpoint.resets_sent, 1, "all of them have the same number");
    })
    .await;
}

#[tokio::test]
async fn what_is_no_utp_goes_to_the_other_protocol() {
    let mut strange = vec![vec![0_u8; 19], b"d1:ad2:id20:".to_vec(), Vec::new()];
    // Version 0 and 2, kinds beyond SYN, an extension's head and body that do not fit.
    for (at, octet) in [(0, 0x40), (0, 0x42), (0, 0x51), (0, 0xf1)] {
        let mut header = vec![0; 20];
        header[at] = octet;
        strange.push(header);
    }
    let truncated = |tail: &[u8]| [&[0x01, EXT_SELECTIVE_ACK][..], &[0; 18], tail].concat();
    strange.extend([truncated(&[]), truncated(&[0]), truncated(&[0, 4, 1, 1])]);
    in_time(async {
        let server = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut foreign = server.foreign();
        let probe = Probe::new(server.local_addr(), 1, 1).await;
        for octets in strange.iter().filter(|octets| !octets.is_empty()) {
            probe.socket.send(octets).await.unwrap();
            assert_eq!(&foreign.recv().await.unwrap().octets[..], &octets[..]);
        }
    })
    .await;
}
