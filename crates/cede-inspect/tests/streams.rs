//! Streams cut, shuffled, repeated and torn: what is read is what was said.

mod common;

use cede_inspect::{Kind, Speech};
use cede_units::Stream;
use common::{BLOCK, Heard, MS, Packet, inspect, over_tcp, over_utp, streams};

const BLOCKS: u32 = 40;

/// What both sides said, in the order of each.
fn said(heard: &Heard) -> [Vec<String>; 2] {
    [common::PORTS.0, common::PORTS.1]
        .map(|port| heard.messages(port).into_iter().map(str::to_string).collect())
}

fn whole() -> [Vec<String>; 2] {
    said(&inspect(&over_tcp(&streams(BLOCKS), [1, 1], 1448)).1)
}

/// Whether `part` is `whole` with messages left out.
fn is_part(part: &[String], whole: &[String]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|one| rest.any(|other| other == one))
}

#[test]
fn what_was_said_is_read_over_both_transports_and_in_every_cut() {
    let wanted = whole();
    assert_eq!(wanted[0].iter().filter(|text| text.contains("Request")).count(), BLOCKS as usize);
    assert_eq!(wanted[1].iter().filter(|text| text.contains("Piece")).count(), BLOCKS as usize);
    let streams = streams(BLOCKS);
    for mss in [7, 100, 1448, 30_000] {
        // Numbers wrap around within the streams.
        let (report, heard) = inspect(&over_tcp(&streams, [u32::MAX - 300, u32::MAX - 9_000], mss));
        assert_eq!(said(&heard), wanted, "TCP in parts of {mss}");
        let (report, heard) =
            if mss == 7 { (report, heard) } else { inspect(&over_utp(&streams, [65_530, 65_000], mss)) };
        assert_eq!(said(&heard), wanted, "uTP in parts of {mss}");
        let [one] = &report.connections[..] else { panic!("{} connections", report.connections.len()) };
        assert_eq!((one.speech, one.is_opened_by_first), (Speech::Plain, true));
        let [leecher, seed] = &one.sides;
        assert_eq!((seed.blocks, seed.block_bytes), (u64::from(BLOCKS), u64::from(BLOCKS * BLOCK)));
        assert_eq!(leecher.carried.stream_bytes, streams[0].len() as u64);
        assert_eq!(seed.carried.stream_bytes, streams[1].len() as u64);
        assert_eq!((seed.carried.repeated_packets, seed.holes, seed.losses), (0, 0, 0));
        assert_eq!(seed.count(Kind::Piece), u64::from(BLOCKS));
    }
}

#[test]
fn repetitions_and_disorder_change_nothing_but_their_counts() {
    let wanted = whole();
    for seed in 0..20 {
        let mut random = Stream::named(seed, "disorder");
        let both = [over_tcp(&streams(BLOCKS), [5, 9], 1448), over_utp(&streams(BLOCKS), [3, 7], 1000)];
        for mut packets in both {
            let begun = 3;
            // Acknowledgements would say that the capture lost what comes late.
            for at in begun..packets.len() {
                let other = at + random.below(12) as usize;
                if other < packets.len() && random.below(4) == 0 {
                    packets.swap(at, other);
                }
            }
            let repeated: Vec<Packet> =
                packets.iter().skip(begun).filter(|_| random.below(10) == 0).cloned().collect();
            let place = packets.len() / 2;
            packets.splice(place..place, repeated);
            packets.iter_mut().enumerate().for_each(|(k, packet)| packet.time_ns = k as u64 * 1_000);
            let (report, heard) = inspect(&packets);
            assert_eq!(said(&heard), wanted, "seed {seed}");
            assert!(report.connections[0].sides[1].carried.repeated_packets > 0);
            assert_eq!(report.connections[0].sides[1].holes, 0);
        }
    }
}

/// What is lost is sent again in segments that are cut elsewhere, and captures have times that go back.
#[test]
fn octets_that_come_again_beside_new_ones_count_once() {
    let (streams, wanted) = (streams(BLOCKS), whole());
    let is_the_seeds = |packet: &Packet| packet.octets[20..22] == common::PORTS.1.to_be_bytes();
    let number = |packet: &Packet| u32::from_be_bytes(*packet.octets[24..].first_chunk().unwrap());
    for (shift, len) in [(700_u32, 2_148), (0, 2_000), (3_000, 6_000)] {
        let mut packets = over_tcp(&streams, [5, 9], 1448);
        let data = |packet: &Packet| is_the_seeds(packet) && packet.len > 1_000;
        let at = packets.len() - 40 + packets[packets.len() - 40..].iter().position(data).unwrap();
        let from = number(&packets[at]) - shift;
        let begin = (from - 10) as usize;
        let again = &streams[1][begin..begin + len];
        let again = common::tcp(0, (common::PORTS.1, common::PORTS.0), (from, 6, 0x10), again);
        // The segment is lost; acknowledgements of it would say that the capture has lost it.
        packets[at] = again;
        let lost = packets.remove(at);
        packets.insert(at + 5, lost);
        packets.retain(|packet| packet.len > 40 || is_the_seeds(packet));
        packets.iter_mut().enumerate().for_each(|(k, packet)| packet.time_ns = k as u64 * 1_000);
        let (report, heard) = inspect(&packets);
        let [_, seed] = &report.connections[0].sides;
        assert_eq!(said(&heard), wanted, "{shift}");
        let sent: u64 = packets.iter().filter(|p| is_the_seeds(p)).map(|p| u64::from(p.len) - 40).sum();
        assert_eq!(seed.carried.stream_bytes, streams[1].len() as u64, "{shift}");
        assert_eq!(seed.carried.stream_bytes + seed.carried.repeated_bytes, sent, "{shift}");
        assert!(seed.carried.repeated_packets > 0, "{shift}");
    }
}

/// As where a machine captures on several queues.
#[test]
fn a_block_ends_when_it_began_or_later() {
    for (seed, mut packets) in (0..5).zip(std::iter::repeat(over_tcp(&streams(BLOCKS), [5, 9], 1448))) {
        let mut random = Stream::named(seed, "queues");
        packets.iter_mut().skip(3).for_each(|packet| packet.time_ns += random.below(100) * MS);
        let (_, heard) = inspect(&packets);
        assert!(heard.blocks.iter().all(|block| block.first_ns <= block.last_ns), "{seed}");
        assert_eq!(said(&heard), whole(), "{seed}");
    }
}

/// In this order they are one connection, which is heard as if nothing had overtaken anything.
fn check_overtaken(mut packets: Vec<Packet>, what: &str) {
    packets.iter_mut().enumerate().for_each(|(k, packet)| packet.time_ns = k as u64 * 1_000);
    let (report, heard) = inspect(&packets);
    let [one] = &report.connections[..] else { panic!("{what}: {} connections", report.connections.len()) };
    assert_eq!(said(&heard), whole(), "{what}");
    assert!(one.is_opened_by_first && one.ends[0].port == common::PORTS.0, "{what}");
    assert_eq!((one.sides[0].losses, one.sides[1].unrequested_blocks), (0, 0), "{what}");
}

/// The ports of a connection that has ended are taken again, and the capture lacks the second SYN.
#[test]
fn octets_behind_a_fin_are_those_of_another_connection() {
    const FIN: u8 = 0x11;
    let (streams, back) = (streams(BLOCKS), (common::PORTS.1, common::PORTS.0));
    for next in [[5_000_000, 900], [2_000_000_000, 3_000_000_000]] {
        let mut packets = over_tcp(&streams, [5, 9], 1448);
        let ends = [6 + streams[0].len() as u32, 10 + streams[1].len() as u32];
        for (ports, numbers) in
            [(common::PORTS, (ends[0], ends[1], FIN)), (back, (ends[1], ends[0] + 1, FIN))]
        {
            // The second of each was sent again.
            packets.extend(vec![common::tcp(0, ports, numbers, &[]); 2]);
        }
        packets.extend_from_slice(&over_tcp(&streams, next, 1448)[3..]);
        packets.iter_mut().enumerate().for_each(|(k, packet)| packet.time_ns = k as u64 * MS);
        let (report, _) = inspect(&packets);
        assert_eq!(report.connections.len(), 2, "{next:?}");
        for one in &report.connections {
            let [leecher, seed] = &one.sides;
            assert_eq!((one.speech, one.info_hash), (Speech::Plain, Some([7; 20])), "{next:?}");
            assert_eq!((seed.blocks, leecher.losses), (BLOCKS.into(), 0), "{next:?}");
            assert_eq!(seed.missing_bytes + leecher.missing_bytes + seed.carried.repeated_bytes, 0);
        }
    }
}

/// Captures of several queues have packets of a handshake behind those that follow it.
#[test]
fn a_syn_that_was_overtaken_begins_no_other_connection() {
    let packets = over_tcp(&streams(BLOCKS), [u32::MAX - 20, 9], 1448);
    // SYN, answer, acknowledgement, first data: each order in which data of a side stay in theirs.
    for order in [[1, 0, 2, 3], [1, 2, 0, 3], [1, 2, 3, 0], [2, 3, 0, 1], [0, 2, 3, 1], [3, 2, 1, 0]] {
        let mut early: Vec<Packet> = order.map(|place: usize| packets[place].clone()).to_vec();
        early.extend_from_slice(&packets[4..]);
        check_overtaken(early, &format!("{order:?}"));
    }
}

#[test]
fn a_syn_of_utp_that_was_overtaken_begins_no_other_connection() {
    let packets = over_utp(&streams(BLOCKS), [65_535, 9], 1000);
    for place in 1..6 {
        let mut late = packets.clone();
        late[..=place].rotate_left(1);
        check_overtaken(late, &format!("{place} before"));
    }
}

/// Takes packets with data of the seed away.
fn torn(packets: &[Packet], seed: u64, one_in: u64) -> Vec<Packet> {
    let mut random = Stream::named(seed, "torn");
    let mut kept: Vec<Packet> = packets
        .iter()
        .enumerate()
        .filter(|(k, packet)| *k < 12 || packet.len < 100 || random.below(one_in) > 0)
        .map(|(_, p)| p.clone())
        .collect();
    kept.iter_mut().enumerate().for_each(|(k, packet)| packet.time_ns = k as u64 * 50 * MS);
    kept
}

#[test]
fn holes_lose_no_more_than_they_must() {
    let wanted = whole();
    for seed in 0..20 {
        let packets = torn(&over_tcp(&streams(BLOCKS), [5, 9], 1448), seed, 30);
        let (report, heard) = inspect(&packets);
        let [leecher, sender] = said(&heard);
        assert_eq!(leecher, wanted[0]);
        assert!(is_part(&sender, &wanted[1]), "{sender:?}");
        let side = &report.connections[0].sides[1];
        assert!(side.holes > 0 && side.missing_bytes > 0 && side.missing_bytes % 1448 == 0);
        // A hole with a head in it costs that message, and that one alone.
        assert!(
            sender.len() as u64 + 2 * side.losses >= wanted[1].len() as u64,
            "{} {}",
            sender.len(),
            side.losses
        );
        assert!(heard.blocks.iter().any(|block| block.missing > 0), "holes within blocks are read over");
        let lost = heard.said.iter().filter(|(_, text)| text == "Lost").count();
        assert_eq!(lost as u64, side.losses);
        let packets = torn(&over_utp(&streams(BLOCKS), [5, 9], 1000), seed, 60);
        let (report, heard) = inspect(&packets);
        let [leecher, sender] = said(&heard);
        assert_eq!(leecher, wanted[0]);
        assert!(is_part(&sender, &wanted[1]) && sender.len() > wanted[1].len() / 3, "{}", sender.len());
        assert!(report.connections[0].sides[1].losses > 0);
    }
}

/// The capture lacks a packet, and the network loses the next one, which comes again much later, or never.
#[test]
fn of_a_hole_only_what_was_acknowledged_is_given_up() {
    let is_the_seeds = |packet: &Packet| packet.octets[20..22] == common::PORTS.1.to_be_bytes();
    let number = |packet: &Packet| u32::from_be_bytes(*packet.octets[24..].first_chunk().unwrap());
    let data = |packet: &Packet| is_the_seeds(packet) && packet.len == 1488;
    for comes_again in [true, false] {
        let mut packets = over_tcp(&streams(BLOCKS), [5, 9], 1448);
        let middle = packets.len() / 2;
        let first = middle + packets[middle..].iter().position(data).unwrap();
        let second = first + 1 + packets[first + 1..].iter().position(data).unwrap();
        let again = packets[second].clone();
        let acked = number(&again).to_be_bytes();
        let until = if comes_again { second + 40 } else { packets.len() };
        let leechers = packets[second..until].iter_mut().filter(|packet| !is_the_seeds(packet));
        leechers.for_each(|packet| packet.octets[28..32].copy_from_slice(&acked));
        if comes_again {
            packets.insert(until, again);
        }
        packets.remove(second);
        packets.remove(first);
        packets.iter_mut().enumerate().for_each(|(k, packet)| packet.time_ns = k as u64 * 50 * MS);
        let (report, _) = inspect(&packets);
        let [_, seed] = &report.connections[0].sides;
        assert_eq!((seed.holes, seed.missing_bytes), (1, 1448), "{comes_again}");
        assert_eq!(seed.undelivered_bytes == 0, comes_again);
        // The missing packet may hold the head of one.
        assert_eq!(seed.blocks + 1 >= u64::from(BLOCKS), comes_again, "{}", seed.blocks);
    }
}

/// A packet of the seed is lost, and what it says afterwards is not acknowledged: the connection is over, and the last packet
/// of the capture is another's.
#[test]
fn what_nobody_could_read_is_not_said() {
    let wanted = whole();
    for (is_tcp, packets) in
        [(true, over_tcp(&streams(BLOCKS), [5, 9], 1448)), (false, over_utp(&streams(BLOCKS), [5, 9], 1000))]
    {
        let is_the_seeds = |packet: &Packet| packet.octets[20..22] == common::PORTS.1.to_be_bytes();
        let place = packets.len() * 3 / 4;
        let lost = place + packets[place..].iter().position(|it| is_the_seeds(it) && it.len > 200).unwrap();
        let head = if is_tcp { 40 } else { 48 };
        let last_ns = packets.last().unwrap().time_ns;
        let late = common::udp(last_ns + 3600 * 1000 * MS, (1, 2), b"something else");
        let is_kept = |k: usize, packet: &Packet| k < lost || (k > lost && is_the_seeds(packet));
        let kept = packets.iter().enumerate().filter(|(k, packet)| is_kept(*k, packet)).map(|(_, p)| p);
        let unread: u64 =
            kept.clone().filter(|p| p.time_ns > packets[lost].time_ns).map(|p| u64::from(p.len) - head).sum();
        let given: Vec<Packet> = kept.cloned().chain([late.clone()]).collect();
        let (report, heard) = inspect(&given);
        let side = &report.connections[0].sides[1];
        assert_eq!((side.holes, side.losses, side.missing_bytes, side.undelivered_bytes), (0, 0, 0, unread));
        let [_, sender] = said(&heard);
        assert!(sender[..] == wanted[1][..sender.len()] && sender.len() < wanted[1].len());
        assert!(side.protocol_bytes() < u64::from(BLOCK) + 2000, "{}", side.protocol_bytes());
        // Acknowledged, it was delivered, and the capture has lost it. It is told as of the connection's time.
        let mut given: Vec<Packet> =
            packets.iter().enumerate().filter(|(k, _)| *k != lost).map(|(_, p)| p.clone()).collect();
        given.push(late);
        let (report, heard) = inspect(&given);
        let side = &report.connections[0].sides[1];
        assert_eq!((side.holes, side.undelivered_bytes), (1, 0));
        assert!(heard.times_ns.iter().all(|time_ns| *time_ns <= last_ns + MS));
        // Where acknowledgements were not captured at all, nobody knows.
        let seeds: Vec<Packet> = given.iter().filter(|packet| is_the_seeds(packet)).cloned().collect();
        let sides = &inspect(&seeds).0.connections[0].sides;
        assert_eq!(
            sides.each_ref().map(|side| (side.holes, side.undelivered_bytes)).iter().max(),
            Some(&(1, 0))
        );
    }
}

#[test]
fn a_capture_that_begins_midway_finds_the_next_message() {
    let wanted = whole();
    for packets in [over_tcp(&streams(BLOCKS), [5, 9], 1448), over_utp(&streams(BLOCKS), [5, 9], 1000)] {
        for skipped in [6, 25, 60, 121] {
            let (report, heard) = inspect(&packets[skipped..]);
            let [one] = &report.connections[..] else { panic!("{skipped}: {:?}", report.unlisted) };
            assert_eq!(one.speech, Speech::PlainLater);
            let [leecher, sender] = said(&heard);
            assert!(is_part(&leecher, &wanted[0]) && is_part(&sender, &wanted[1]));
            assert!(sender.len() as u32 > BLOCKS / 2, "{skipped}: {}", sender.len());
        }
    }
}

#[test]
fn cut_packets_are_read_as_far_as_they_go() {
    let wanted = whole();
    let mut packets = over_tcp(&streams(BLOCKS), [5, 9], 1448);
    packets.iter_mut().for_each(|packet| packet.octets.truncate(200));
    let (report, heard) = inspect(&packets);
    for (said, wanted) in said(&heard).iter().zip(wanted) {
        let known: Vec<String> = said.iter().filter(|text| *text != "say cut").cloned().collect();
        assert!(known.len() > 3 && is_part(&known, &wanted), "{known:?}");
    }
    let side = &report.connections[0].sides[1];
    assert!(side.missing_bytes > u64::from(BLOCKS * BLOCK / 2) && side.carried.cut_packets > 10);
}

#[test]
fn a_cut_handshake_is_told_as_far_as_it_was_captured() {
    let both = [over_tcp(&streams(BLOCKS), [5, 9], 1448), over_utp(&streams(BLOCKS), [5, 9], 1000)];
    for (mut packets, head) in both.into_iter().zip([40, 48]) {
        // The longest first: of each cut no more is left.
        for (captured, has_hash, has_reserved) in [(60, true, true), (30, false, true), (12, false, false)] {
            packets.iter_mut().for_each(|packet| packet.octets.truncate(head + captured));
            let (report, heard) = inspect(&packets);
            let [one] = &report.connections[..] else { panic!("{captured}: {:?}", report.unlisted) };
            assert_eq!(
                (one.speech, one.info_hash),
                (Speech::Plain, has_hash.then_some([7; 20])),
                "{captured}"
            );
            for side in &one.sides {
                assert_eq!((side.count(Kind::Handshake), side.peer_id), (1, None), "{captured}");
                assert_eq!(side.reserved.is_some(), has_reserved, "{captured}");
            }
            assert_eq!(heard.said.iter().filter(|(_, text)| text.contains("CutHandshake")).count(), 2);
        }
        packets.iter_mut().for_each(|packet| packet.octets.truncate(head + 10));
        assert!(inspect(&packets).1.said.iter().all(|(_, text)| !text.contains("CutHandshake")));
    }
}

/// Whether octets of blocks, of blocks without an end, of messages and those that were not read are no more than were written.
fn check_octets(packets: &[Packet], what: &str) -> u64 {
    let written = streams(BLOCKS).map(|stream| stream.len() as u64);
    let content = [0, u64::from(BLOCKS * BLOCK)];
    let (report, _) = inspect(packets);
    let one = &report.connections[0];
    let seed = usize::from(one.ends[1].port == common::PORTS.1);
    for (at, side) in one.sides.iter().enumerate() {
        let which = usize::from(at == seed);
        let data = side.block_bytes + side.broken_bytes;
        assert!(data <= content[which], "{what}: {data} octets of blocks");
        let protocol = side.protocol_bytes();
        assert!(protocol <= written[which] - content[which], "{what}: {protocol} octets of messages");
        assert_eq!(data + protocol + side.unread_bytes, side.ordered_bytes, "{what}");
        assert!(side.ordered_bytes <= written[which], "{what}");
    }
    one.sides[seed].unread_bytes
}

/// Where nobody was seen to open it: the order of addresses would tell of pseudonyms which of two addresses is the lower one.
#[test]
fn who_is_heard_first_stands_first() {
    let (tcp, utp) = (over_tcp(&streams(BLOCKS), [5, 9], 1448), over_utp(&streams(BLOCKS), [5, 9], 1000));
    for packets in [&tcp, &utp] {
        let from = |packet: &Packet| u16::from_be_bytes(*packet.octets[20..].first_chunk().unwrap());
        for port in [common::PORTS.0, common::PORTS.1] {
            let first = (6..).find(|&at| from(&packets[at]) == port).unwrap();
            let one = &inspect(&packets[first..]).0.connections[0];
            assert_eq!((one.ends[0].port, one.is_opened_by_first), (port, false));
        }
    }
}

#[test]
fn octets_that_were_not_read_are_no_messages() {
    let (tcp, utp) = (over_tcp(&streams(BLOCKS), [5, 9], 1448), over_utp(&streams(BLOCKS), [5, 9], 1000));
    for packets in [&tcp, &utp] {
        assert_eq!(check_octets(packets, "whole"), 0);
        for skipped in [6, 25, 60, 121] {
            assert!(check_octets(&packets[skipped..], &format!("from {skipped} on")) > 0);
        }
        for captured in [96, 110, 200] {
            let mut cut = packets.clone();
            cut.iter_mut().for_each(|packet| packet.octets.truncate(captured));
            assert!(check_octets(&cut, &format!("cut at {captured}")) > u64::from(BLOCK), "{captured}");
        }
        for seed in 0..10 {
            check_octets(&torn(packets, seed, 30), &format!("torn {seed}"));
        }
    }
    // A head is missing, and no other message comes before the end.
    let mut end = over_tcp(&streams(1), [5, 9], 100);
    let is_the_seeds = |packet: &Packet| packet.octets[20..22] == common::PORTS.1.to_be_bytes();
    let first = end.iter().position(|packet| is_the_seeds(packet) && packet.len > 100).unwrap();
    end.drain(first + 2..first + 4);
    let (report, _) = inspect(&end);
    let side = &report.connections[0].sides[1];
    assert_eq!((side.blocks, side.losses), (0, 1));
    assert!(side.unread_bytes > u64::from(BLOCK), "{}", side.unread_bytes);
}

/// A sender hands over what goes to one address at once, of whatever connection.
#[test]
fn packets_of_two_connections_that_were_joined_are_taken_apart() {
    const OTHER: u16 = 0x1234;
    let back = (common::PORTS.1, common::PORTS.0);
    let mut apart = over_utp(&streams(4), [5, 9], 1000);
    // Another connection of the same sockets, over which the leecher has said who it is.
    let state = |id, numbers| common::utp(2, id, numbers, &[]);
    let begun = [
        (common::PORTS, common::utp(4, OTHER, (70, 0), &[])),
        (back, state(OTHER, (200, 70))),
        (common::PORTS, common::utp(0, OTHER + 1, (71, 199), &common::handshake(b'*'))),
    ];
    apart.splice(2..2, begun.map(|(ports, octets)| common::udp(MS, ports, &octets)));
    let mut joined = apart.clone();
    for packet in &mut joined[5..] {
        // To what either side says, its acknowledgement of the other connection is joined.
        let ports = if packet.octets[20..22] == common::PORTS.0.to_be_bytes() { common::PORTS } else { back };
        let more = if ports == back { state(OTHER, (200, 71)) } else { state(OTHER + 1, (72, 199)) };
        *packet = common::udp(packet.time_ns, ports, &[&packet.octets[28..], &more[..]].concat());
    }
    let (wanted, (report, heard)) = (said(&inspect(&apart).1), inspect(&joined));
    assert_eq!(said(&heard), wanted);
    let both = &report.connections;
    let packets: u64 = both.iter().flat_map(|one| &one.sides).map(|side| side.carried.packets).sum();
    assert_eq!(packets as usize, apart.len() + joined.len() - 5);
    assert_eq!(both[0].sides.each_ref().map(|side| (side.holes, side.losses)), [(0, 0); 2]);
}

#[test]
fn datagrams_that_were_joined_are_taken_apart() {
    // As segmentation offload hands them over, four to a datagram; small ones fit an Ethernet frame even so. Numbers may be
    // missing between them, as where some are sent again.
    for (mss, stripes) in [(1000, 1), (300, 1), (1000, 2), (300, 2)] {
        let packets = over_utp(&streams(4), [5, 9], mss);
        let is_the_seeds = |packet: &Packet| packet.octets[20..22] == common::PORTS.1.to_be_bytes();
        let is_data = |packet: &&Packet| packet.len as usize == 20 + 8 + 20 + mss && is_the_seeds(packet);
        let send =
            |time_ns, payload: &[u8]| common::udp(time_ns, (common::PORTS.1, common::PORTS.0), payload);
        let data: Vec<&Packet> = packets.iter().filter(is_data).collect();
        let last = data[data.len() - 1];
        let number = |at: usize| u16::from_be_bytes([last.octets[at], last.octets[at + 1]]);
        let mut joined: Vec<Packet> = packets.iter().take_while(|packet| !is_data(packet)).cloned().collect();
        let mut apart = joined.clone();
        apart.extend(data.iter().copied().cloned());
        for some in data.chunks(4 * stripes) {
            for stripe in 0..stripes {
                let four = some.iter().skip(stripe).step_by(stripes);
                let payload: Vec<u8> = four.flat_map(|packet| packet.octets[28..].to_vec()).collect();
                joined.push(send(some[0].time_ns, &payload));
            }
        }
        // What follows, and with it a FIN.
        let rest =
            packets.iter().find(|packet| packet.time_ns > last.time_ns && is_the_seeds(packet)).unwrap();
        let seq = number(28 + 16).wrapping_add(2);
        let fin = common::utp(1, number(28 + 2), (seq, number(28 + 18)), &[]);
        apart.extend([rest.clone(), send(rest.time_ns, &fin)]);
        joined.push(send(rest.time_ns, &[&rest.octets[28..], &fin[..]].concat()));
        assert_eq!(said(&inspect(&joined).1), said(&inspect(&apart).1));
        assert_eq!(inspect(&joined).0.connections[0].sides[1].holes, 0);
    }
}
