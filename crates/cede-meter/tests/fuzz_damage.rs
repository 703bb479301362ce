//! Damaged captures: what is passed over is little, and nothing is made up.

use cede_meter::{Feed, FeedError};
use cede_units::Stream;
use cede_wire::link::LinkType;
use cede_wire::pcap::{ReadErrorKind, Reader, Record};
use cede_wire::pcapng::{Captured, Interface, InterfaceId, Section, Writer};
use std::collections::HashSet;
use std::io::Read;
use std::ops::Range;
use std::sync::OnceLock;

/// A record without where it stands.
type Kept = (Option<u64>, u32, Vec<u8>);

/// A capture, its records, and where each stands.
struct Whole {
    file: Vec<u8>,
    records: Vec<(Range<usize>, Kept)>,
}

const fn kept(record: &Record<'_>) -> (Option<u64>, u32) {
    (record.time_ns, record.original_len)
}

fn keep(record: &Record<'_>) -> Kept {
    let (time_ns, original_len) = kept(record);
    (time_ns, original_len, record.captured.to_vec())
}

impl Whole {
    fn new(file: Vec<u8>) -> Self {
        let mut reader = Reader::new(&file).unwrap();
        let (mut records, mut from) = (Vec::new(), reader.offset());
        while let Some(record) = reader.next() {
            let record = keep(&record.unwrap());
            records.push((from..reader.offset(), record));
            from = reader.offset();
        }
        Self { file, records }
    }

    /// The first packets of a recorded capture.
    fn classic() -> &'static Self {
        static FILE: OnceLock<Whole> = OnceLock::new();
        FILE.get_or_init(|| {
            let recorded: &[u8] = include_bytes!("vectors/utp_1m.pcap.gz");
            let mut file = Vec::new();
            flate2::read::GzDecoder::new(recorded).read_to_end(&mut file).unwrap();
            let mut reader = Reader::new(&file).unwrap();
            assert_eq!(reader.by_ref().take(400).filter(Result::is_ok).count(), 400);
            let len = reader.offset();
            file.truncate(len);
            Self::new(file)
        })
    }

    /// The same packets as blocks.
    fn blocks() -> &'static Self {
        static FILE: OnceLock<Whole> = OnceLock::new();
        FILE.get_or_init(|| {
            let mut writer = Writer::new(Vec::new(), &Section::default()).unwrap();
            let interface = Interface { name: "a", description: "", link_type: LinkType::ETHERNET };
            writer.add_interface(&interface).unwrap();
            for (_, (time_ns, original_len, octets)) in &Self::classic().records {
                let (time_ns, original_len, interface) = (time_ns.unwrap(), *original_len, InterfaceId(0));
                let packet = Captured { interface, time_ns, octets, original_len, comment: "" };
                writer.write_packet(&packet).unwrap();
            }
            Self::new(writer.into_sink())
        })
    }
}

/// Gives octets by pieces.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let len = self.1.min(self.0.len());
        (&mut self.0).take(len as u64).read(out)
    }
}

/// What is read of a capture that comes by pieces, and what is wrong with it.
fn read(file: &[u8], piece: usize) -> (Vec<Kept>, Option<FeedError>) {
    let mut feed = Feed::new(Pieces(file, piece));
    let mut found = Vec::new();
    loop {
        match feed.step_into(&mut |record| found.push(keep(record))) {
            Ok(true) => {}
            Ok(false) => return (found, None),
            Err(error) => return (found, Some(error)),
        }
    }
}

/// Reads a capture that was damaged in these places. Nothing must be found but what is in the whole one, or was touched. How many
/// records were lost, and how many may be: those that were touched, and a few around each place.
fn check(whole: &Whole, file: &[u8], damage: &[Range<usize>], piece: usize) -> (usize, usize) {
    const AROUND: usize = 5;
    let is_hit = |at: &Range<usize>| damage.iter().any(|hit| hit.start < at.end && at.start < hit.end);
    let hits = whole.records.iter().filter(|(at, _)| is_hit(at)).count();
    let originals: HashSet<&Kept> = whole.records.iter().map(|(_, record)| record).collect();
    let (found, error) = read(file, piece);
    let strange = found.iter().filter(|record| !originals.contains(record)).count();
    assert!(strange <= hits, "{strange} records were made up, {hits} were hit: {error:?}");
    let lost = (whole.records.len() + strange).saturating_sub(found.len());
    if let Some(FeedError::Damaged(damage)) = error {
        assert!(damage.places > 0 && damage.bytes > 0 && damage.bytes <= file.len() as u64, "{damage:?}");
    }
    if hits == 0 {
        assert_eq!(found.len(), whole.records.len());
    }
    (lost, hits + AROUND * damage.len())
}

/// Puts octets over a capture behind its first packet, from a place on.
fn put(file: &mut [u8], place: usize, octets: &[u8]) -> Range<usize> {
    const FRONT: usize = 400;
    let from = FRONT + place % (file.len() - FRONT);
    let to = file.len().min(from + octets.len());
    file[from..to].copy_from_slice(&octets[..to - from]);
    from..to
}

#[test]
fn runs_of_random_octets_zeros_and_ones_cost_few_packets() {
    let mut stream = Stream::named(21, "damage");
    let mut lost = 0;
    for round in 0..3_000 {
        let whole = if round % 2 == 0 { Whole::classic() } else { Whole::blocks() };
        let mut file = whole.file.clone();
        let damage: Vec<Range<usize>> = (0..1 + stream.below(3))
            .map(|_| {
                let is_short = stream.chance(0.5);
                let len = 1 + stream.below(if is_short { 8 } else { 700 });
                let kind = stream.below(4);
                let octets: Vec<u8> = (0..len)
                    .map(|_| match kind {
                        0 => 0,
                        1 => 0xff,
                        _ => stream.next_u32() as u8,
                    })
                    .collect();
                put(&mut file, stream.below(1 << 30) as usize, &octets)
            })
            .collect();
        let piece = if round % 3 == 0 { 1 + stream.below(3_000) as usize } else { usize::MAX };
        let (these, most) = check(whole, &file, &damage, piece);
        assert!(these <= most, "{these} records were lost in {damage:?}");
        lost += these;
    }
    assert!(lost > 3_000, "nothing was damaged: {lost}");
}

/// Anything at all over a capture: `cargo bolero` runs this without an end.
#[test]
fn whatever_is_put_over_a_capture_nothing_is_made_up() {
    let generator = (
        bolero::produce::<bool>(),
        bolero::produce::<Vec<(usize, Vec<u8>)>>().with().len(1..=4_usize),
        bolero::produce::<u16>(),
    );
    bolero::check!().with_iterations(3_000).with_generator(generator).for_each(
        |(is_classic, damage, piece)| {
            let whole = if *is_classic { Whole::classic() } else { Whole::blocks() };
            let mut file = whole.file.clone();
            let damage: Vec<Range<usize>> =
                damage.iter().map(|(place, octets)| put(&mut file, *place, octets)).collect();
            check(whole, &file, &damage, 1 + usize::from(*piece));
        },
    );
}

#[test]
fn damage_is_told_with_its_place_and_its_size() {
    let whole = Whole::classic();
    let (at, _) = &whole.records[100];
    let told = |octets: &[u8], from: usize, end: usize| {
        let mut file = whole.file[..end].to_vec();
        file[from..from + octets.len()].copy_from_slice(octets);
        read(&file, 1_000).1.unwrap().to_string()
    };
    let end = whole.file.len();
    let len = at.len();
    // The field of the captured length.
    assert_eq!(
        told(&[0xff; 4], at.start + 8, end),
        format!(
            "at octet {}: a record cannot have a length of 4294967295 octets; {len} octets were passed over",
            at.start
        )
    );
    for octets in [&[0; 16][..], &[0xff; 8], &[0, 0, 0, 0]] {
        let text = told(octets, at.start, end);
        let wanted =
            format!("at octet {}: what stands here is no record; {len} octets were passed over", at.start);
        assert_eq!(text, wanted, "{octets:?}");
    }
    let cut = told(&[0xff; 4], at.start + 8, end - 7);
    assert!(cut.ends_with("octets were passed over, and the file ends before its time"), "{cut}");
    // No more is there than the end: that is said.
    let (last, _) = whole.records.last().unwrap();
    let cut = told(&[], 0, end - 7);
    assert_eq!(cut, format!("at octet {}: {}", last.start, ReadErrorKind::Truncated));
}

#[test]
fn odd_captures_that_are_whole_stay_whole() {
    let classic = Whole::classic();
    let shifted = |shift: &dyn Fn(usize) -> u32| {
        let mut file = classic.file.clone();
        for (k, (at, _)) in classic.records.iter().enumerate() {
            let seconds = u32::from_le_bytes(file[at.start..at.start + 4].try_into().unwrap());
            let seconds = seconds.wrapping_add(shift(k));
            file[at.start..at.start + 4].copy_from_slice(&seconds.to_le_bytes());
        }
        file
    };
    let days = |k: usize| k as u32 * 86_400;
    for file in [
        // A packet every other day; a clock that is set once, forward and back; the first packet in 1970.
        shifted(&|k| days(2 * k)),
        shifted(&|k| if k < 200 { 0 } else { days(400) }),
        shifted(&|k| if k < 200 { days(400) } else { 0 }),
        shifted(&|k| if k == 0 { days(9_000) } else { 0 }),
        shifted(&|k| if k == 399 { days(1) } else { 0 }),
    ] {
        let (found, error) = read(&file, usize::MAX);
        assert!(found.len() == 400 && error.is_none(), "{} {error:?}", found.len());
    }
    // Fractions of more than a second, and more octets than were on the wire, in each record.
    for (field, value) in [(4, 2_000_000_u32), (12, 20)] {
        let mut file = classic.file.clone();
        for (at, _) in &classic.records {
            file[at.start + field..at.start + field + 4].copy_from_slice(&value.to_le_bytes());
        }
        let (found, error) = read(&file, 777);
        assert!(found.len() == 400 && error.is_none(), "{} {error:?}", found.len());
    }
}

/// A length that is wrong led into the middle of a packet, whose octets seemed to be a record that the file's end cuts.
#[test]
fn an_odd_record_is_not_believed_for_what_the_end_cuts() {
    let whole = Whole::classic();
    let mut file = whole.file.clone();
    let (at, _) = &whole.records[198];
    let from = at.start - 1;
    let octets = [137, 111, 65, 226, 104, 131, 168, 51, 220, 155];
    let hit = from..from + octets.len();
    file[hit.clone()].copy_from_slice(&octets);
    let (lost, most) = check(whole, &file, std::slice::from_ref(&hit), usize::MAX);
    assert!(lost <= most, "{lost}");
}
