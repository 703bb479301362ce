//! Reading swarm files.

use super::document::Node;
use super::flow::ProtocolKind;
use super::model::{Buffer, Limit};
use super::overrides::{Overrides, overridden};
use super::problem::{Problem, Sources};
use super::read_controller;
use super::read_presence::{check_trace, read_arrival, read_departure, times};
use super::reader::{Fields, Reader};
use crate::swarm::{
    ControllerChoice, Device, Group, Hashing, IMMEDIATE, Links, Packets, Role, Swarm, SwarmRecords, TcpStack,
    UtpStack,
};
use cede_bt::{Disposition, Geometry, Profile};
use cede_cc::ParamValue;
use cede_net::QueueLimit;
use cede_units::{Bytes, Duration, Rate};
use std::collections::BTreeSet;

/// Whether a text is a swarm file: TOML with a table `[swarm]`.
#[must_use]
pub fn is_swarm(text: &str) -> bool {
    let root = Node::parse_alone(text);
    root.as_ref().and_then(Node::table).is_some_and(|table| table.get("swarm").is_some())
}

/// Reads a swarm file after laying overrides over its text.
///
/// # Errors
/// Everything that is wrong with the text and the overrides, in its order; at least one. A problem in an override has
/// `-s` for its file.
pub fn parse_swarm(file_name: &str, text: &str, overrides: &Overrides) -> Result<Swarm, Vec<Problem>> {
    let mut sources = Sources::default();
    let (root, mut problems) = overridden(&mut sources, (file_name, text), overrides)?;
    let mut reader = Reader::new(&sources);
    let swarm = read(&mut reader, &root);
    problems.extend(reader.into_problems());
    match swarm {
        Some(swarm) if problems.is_empty() => Ok(swarm),
        _ => Err(problems),
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Swarm> {
    let root = Fields::open(reader, "swarm_file", Some(node), node.origin)?;
    let name = root.get(reader, "name");
    let _description: Option<String> = root.get(reader, "description");
    let seed: Option<i64> = root.get(reader, "seed");
    let fields = Fields::open(reader, "swarm", root.node("swarm"), root.at)?;
    let content: Option<Bytes> = fields.get(reader, "content");
    let piece: Option<Bytes> = fields.get(reader, "piece");
    let duration = fields.get(reader, "duration");
    let hashing: Option<String> = fields.get(reader, "hashing");
    let tracker = read_tracker(reader, &fields);
    let measure_from = fields.get(reader, "measure_from");
    check_measured(reader, &fields, measure_from, duration);
    let devices = read_devices(reader, &root);
    let names: Vec<String> = devices.iter().flatten().map(|(name, _)| name.clone()).collect();
    let groups = read_groups(reader, &root, &names);
    let links = read_links(reader, &root, devices);
    let records = read_records(reader, &root);
    let (content_bytes, piece_bytes) = (content?.0, piece?.0 as u32);
    check_pieces(reader, &fields, content_bytes, piece_bytes);
    Some(Swarm {
        name: name?,
        seed: seed?.unsigned_abs(),
        duration: duration?,
        content_bytes,
        piece_bytes,
        hashing: if hashing? == "sha1" { Hashing::Sha1 } else { Hashing::Compare },
        tracker_peers: tracker?.0,
        announce_every: tracker?.1,
        groups: groups?,
        links: links?,
        records: records?,
        measure_from: measure_from?,
    })
}

/// Trackers of ours are asked no more often, either (`cede torrent tracker --interval`).
const ANNOUNCE_LEAST: Duration = Duration::from_secs(1);

/// How many peers the tracker names at a time, and how often it is asked.
fn read_tracker(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<(u32, Option<Duration>)> {
    let peers: Option<i64> = fields.get(reader, "tracker_peers");
    let every: Option<Duration> = fields.maybe(reader, "announce_every")?;
    if every.is_some_and(|every| every < ANNOUNCE_LEAST) {
        let help = vec![format!("allowed: at least {ANNOUNCE_LEAST}")];
        reader.report(
            fields.origin("announce_every"),
            "peers would announce themselves without a pause",
            help,
        );
        return None;
    }
    Some((peers? as u32, every))
}

/// Whatever is measured after the end is nothing.
fn check_measured(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    from: Option<Duration>,
    duration: Option<Duration>,
) {
    if let (Some(from), Some(duration)) = (from, duration)
        && from >= duration
    {
        let help = vec![format!("allowed: less than the duration, {duration}")];
        reader.report(fields.origin("measure_from"), "nothing is left to measure after `measure_from`", help);
    }
}

fn check_pieces(reader: &mut Reader<'_>, fields: &Fields<'_>, content_bytes: u64, piece_bytes: u32) {
    if Geometry::new(content_bytes, piece_bytes).is_none() {
        let help = vec![format!("allowed: at most {} pieces", Geometry::PIECES_MAX)];
        reader.report(fields.origin("piece"), "the content has too many such pieces", help);
    }
}

fn read_records(reader: &mut Reader<'_>, root: &Fields<'_>) -> Option<SwarmRecords> {
    let fields = Fields::open(reader, "swarm_records", root.node("records"), root.at)?;
    Some(SwarmRecords {
        queue: fields.get(reader, "queue")?,
        pieces: fields.get(reader, "pieces")?,
        unchokes: fields.get(reader, "unchokes")?,
        sends: fields.get(reader, "sends")?,
        rtt: fields.get(reader, "rtt")?,
        packets: match fields.get::<String>(reader, "packets")?.as_str() {
            "sent" => Packets::Sent,
            "seeds" => Packets::Seeds,
            "leechers" => Packets::Leechers,
            _ => Packets::None,
        },
    })
}

fn read_device(reader: &mut Reader<'_>, node: &Node) -> Option<(String, Device)> {
    let fields = Fields::open(reader, "swarm_device", Some(node), node.origin)?;
    let name = fields.get(reader, "name");
    let (loopback, ethernet) = (fields.get(reader, "loopback"), fields.get(reader, "ethernet"));
    let loss = fields.get(reader, "loss");
    Some((name?, Device { loopback: loopback?, ethernet: ethernet?, loss: loss? }))
}

fn read_devices(reader: &mut Reader<'_>, root: &Fields<'_>) -> Option<Vec<(String, Device)>> {
    let nodes = root.list(reader, "device");
    let read = |node: &Node| read_device(reader, node);
    let devices: Option<Vec<(String, Device)>> = nodes.iter().map(read).collect();
    let names = devices.iter().flatten().map(|(name, _)| name.as_str());
    refuse_twins(reader, nodes, "devices", names);
    devices
}

/// Refuses those of a list that are called as another one before.
fn refuse_twins<'a>(
    reader: &mut Reader<'_>,
    nodes: &[Node],
    what: &str,
    names: impl Iterator<Item = &'a str>,
) {
    let mut seen = BTreeSet::new();
    for (name, node) in names.zip(nodes) {
        if !seen.insert(name) {
            let at = node.table().and_then(|table| table.get("name")).map(|entry| entry.node.origin);
            reader.report(at.unwrap_or(node.origin), format!("two {what} are called `{name}`"), Vec::new());
        }
    }
}

fn read_links(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
    devices: Option<Vec<(String, Device)>>,
) -> Option<Links> {
    let fields = Fields::open(reader, "swarm_links", root.node("links"), root.at)?;
    let rtt = fields.get(reader, "rtt");
    let loss = fields.get(reader, "loss");
    let matrix: Option<String> = fields.maybe(reader, "matrix")?;
    let devices = devices?;
    if !devices.is_empty() {
        fields.refuse(reader, &["rtt", "matrix", "loss"], "the devices say it");
        return Some(Links::Devices(devices.into_iter().map(|(_, device)| device).collect()));
    }
    let Some(matrix) = matrix else {
        return Some(Links::Homogeneous { rtt: rtt?, loss: loss? });
    };
    fields.refuse(reader, &["rtt"], "the matrix says it");
    let groups = root.list(reader, "group").len();
    let rows: Option<Vec<Vec<Duration>>> = matrix.split(';').map(times).collect();
    match rows.filter(|rows| rows.len() == groups && rows.iter().all(|row| row.len() == groups)) {
        Some(rtt) => Some(Links::Matrix { rtt, loss: loss? }),
        None => {
            let help =
                vec![format!("allowed: {groups} rows of {groups} times, as \"0 ms, 40 ms; 40 ms, 0 ms\"")];
            let complaint = match matrix.split([';', ',']).map(str::trim).find(|time| !is_time(time)) {
                Some(other) => format!("`matrix` has `{other}`, which is no time"),
                None => "`matrix` does not fit the groups".to_string(),
            };
            reader.report(fields.origin("matrix"), complaint, help);
            None
        }
    }
}

fn is_time(text: &str) -> bool {
    text.parse::<Duration>().is_ok()
}

fn read_groups(reader: &mut Reader<'_>, root: &Fields<'_>, machines: &[String]) -> Option<Vec<Group>> {
    let nodes = root.list(reader, "group");
    if nodes.is_empty() {
        reader.report(root.at, "there is no group of peers", vec!["allowed: [[group]], at least one".into()]);
        return None;
    }
    let read: Vec<Option<Group>> = nodes.iter().map(|node| read_group(reader, node, machines)).collect();
    let groups: Vec<Group> = read.into_iter().collect::<Option<_>>()?;
    refuse_twins(reader, nodes, "groups", groups.iter().map(|group| group.name.as_str()));
    if groups.iter().all(|group| group.role == Role::Leecher) {
        let help = vec!["allowed: role = \"seed\" in at least one [[group]]".into()];
        reader.report(root.at, "nobody has the content", help);
    }
    Some(groups)
}

fn tcp_stack_of(word: &str) -> TcpStack {
    match word {
        "linux-2.6" => TcpStack::Linux26,
        "linux-4.18" => TcpStack::Linux418,
        _ => TcpStack::Linux,
    }
}

fn read_group(reader: &mut Reader<'_>, node: &Node, machines: &[String]) -> Option<Group> {
    let fields = Fields::open(reader, "swarm_group", Some(node), node.origin)?;
    let name: Option<String> = fields.get(reader, "name");
    let count: Option<i64> = fields.get(reader, "count");
    let role: Option<String> = fields.get(reader, "role");
    let profile = read_profile(reader, &fields);
    let transports: Option<i64> = fields.get(reader, "transports");
    let access = read_access(reader, &fields);
    let controllers = read_controllers(reader, &fields, profile.as_ref());
    let tcp_stack: Option<String> = fields.get(reader, "tcp_stack");
    let arrival = read_arrival(reader, &fields);
    let departure = read_departure(reader, &fields);
    let limit = read_upload_limit(reader, &fields);
    let packet: Option<Bytes> = fields.get(reader, "packet");
    let offload: Option<Bytes> = fields.get(reader, "offload");
    let machine = read_machine(reader, &fields, machines);
    let (role, super_seeds) = match role?.as_str() {
        "seed" => (Role::Seed, false),
        "super-seed" => (Role::Seed, true),
        _ => (Role::Leecher, false),
    };
    let mut group = Group::new(&name?, count? as u32, role, profile?);
    group.super_seeds = super_seeds;
    access?(&mut group);
    (group.utp, group.utp_stack, group.tcp) = controllers?;
    group.tcp_stack = tcp_stack_of(&tcp_stack?);
    group.disposition = Disposition(transports? as u8);
    (group.arrival, group.departure) = (arrival?, departure?);
    check_trace(reader, &fields, &group);
    group.upload_limit = limit?;
    (group.packet_bytes, group.offload_bytes) = (packet?.0 as u32, offload?.0 as u32);
    group.machine = machine?;
    check_buffer(reader, &fields, &group);
    Some(group)
}

/// In octets per second; less than one lets nothing out.
fn read_upload_limit(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Option<u64>> {
    let rate: Option<Rate> = fields.maybe(reader, "upload_limit")?;
    let limit = rate.map(|rate| rate.bits_per_sec() / 8);
    if limit == Some(0) {
        let help = vec!["allowed: at least 8 bit/s".into()];
        reader.report(fields.origin("upload_limit"), "`upload_limit` is less than an octet per second", help);
        return None;
    }
    Some(limit)
}

/// A buffer that no packet fits into lets nothing through.
fn check_buffer(reader: &mut Reader<'_>, fields: &Fields<'_>, group: &Group) {
    let up = fields.has("uplink").then_some(group.buffer);
    let down = fields.has("downlink").then_some(group.downlink_buffer.unwrap_or(group.buffer));
    let least = u64::from(group.packet_bytes);
    for limit in up.into_iter().chain(down) {
        if let QueueLimit::Bytes(bytes) = limit
            && bytes < least
        {
            let help = vec![format!("allowed: at least a packet, {least} B")];
            reader.report(fields.origin("buffer"), format!("a `buffer` of {bytes} B holds no packet"), help);
            return;
        }
    }
}

fn read_profile(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Profile> {
    let word: Option<String> = fields.get(reader, "profile");
    let slots: Option<Option<i64>> = fields.maybe(reader, "slots");
    let exchanges: Option<Option<bool>> = fields.maybe(reader, "pex");
    let mut profile = Profile::named(&word?)?;
    profile.exchanges = exchanges?.unwrap_or(profile.exchanges);
    if let Some(slots) = slots? {
        // A number is meant for everybody, in one private network as well.
        (profile.slots, profile.spares_neighbours) = (Some(slots as u32), false);
    }
    Some(profile)
}

/// What the access links are like, as a change of a group.
fn read_access(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<impl FnOnce(&mut Group) + use<>> {
    let uplink: Option<Option<Rate>> = fields.maybe(reader, "uplink");
    let downlink: Option<Option<Rate>> = fields.maybe(reader, "downlink");
    let buffer: Option<Buffer> = fields.get(reader, "buffer");
    let latency = fields.get(reader, "latency");
    let burst: Option<Bytes> = fields.get(reader, "burst");
    let loss = fields.get(reader, "loss");
    let per_link: Option<i64> = fields.get(reader, "per_link");
    refuse_without_links(reader, fields);
    let (uplink, downlink, buffer) = (uplink?, downlink?, buffer?);
    let up = limit_of(reader, fields, buffer, uplink)?;
    // An amount of time is one of the link's own.
    let down = match downlink {
        Some(_) => Some(limit_of(reader, fields, buffer, downlink)?),
        None => None,
    };
    let (latency, loss, per_link): (Duration, _, _) = (latency?, loss?, per_link? as u32);
    let burst_bytes = burst?.0;
    // The way to a peer takes as long as the way from it, also where it has no rate.
    let downlink = downlink.or((!latency.is_zero()).then_some(IMMEDIATE));
    Some(move |group: &mut Group| {
        (group.uplink, group.downlink) = (uplink, downlink);
        (group.buffer, group.downlink_buffer) = (up, down);
        (group.latency, group.loss, group.per_link) = (latency, loss, per_link);
        group.burst_bytes = burst_bytes;
    })
}

/// Refuses what is asked of an access link where there is none. (A buffer may be stated for all groups alike.)
fn refuse_without_links(reader: &mut Reader<'_>, fields: &Fields<'_>) {
    if !fields.has("uplink") && !fields.has("downlink") {
        fields.refuse(reader, &["burst"], "there is neither `uplink` nor `downlink`");
    }
    if !fields.has("uplink") {
        fields.refuse(reader, &["per_link"], "there is no `uplink`");
    }
}

/// What a buffer holds before a link of this rate; where there is no link nothing ever waits.
fn limit_of(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    buffer: Buffer,
    rate: Option<Rate>,
) -> Option<QueueLimit> {
    match buffer.limit(rate.unwrap_or(IMMEDIATE), None) {
        Some(Limit::Packets(packets)) => {
            Some(QueueLimit::Packets(u32::try_from(packets).unwrap_or(u32::MAX)))
        }
        Some(Limit::Bytes(bytes)) => Some(QueueLimit::Bytes(bytes)),
        None => {
            let help = vec!["allowed: packets, an amount of data, or time".into()];
            let what = "`buffer` is in BDPs, and a swarm has many round trips";
            reader.report(fields.origin("buffer"), what, help);
            None
        }
    }
}

type Controllers = (ControllerChoice, UtpStack, ControllerChoice);

fn read_controllers(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    profile: Option<&Profile>,
) -> Option<Controllers> {
    let usual = Group::controller_of(profile.unwrap_or(&Profile::LIBTORRENT)).name;
    let utp = read_controller::read_or(reader, fields.node("controller"), fields.at, &usual);
    let tcp = read_controller::read(reader, fields.node("tcp_controller"), fields.at, ProtocolKind::Tcp);
    let target: Option<Option<Duration>> = fields.maybe(reader, "target");
    let stack: Option<String> = fields.get(reader, "stack");
    let (mut utp, tcp) = (utp?, tcp?);
    if let Some(target) = target? {
        utp.params.set("target", ParamValue::Duration(target));
        if let Err(error) = cede_cc::registry::resolve(&utp.name, &utp.params) {
            reader.report(fields.origin("target"), error.to_string(), Vec::new());
            return None;
        }
    }
    let stack = match stack?.as_str() {
        "libutp" => UtpStack::Libutp,
        "standard" => UtpStack::Standard,
        _ => UtpStack::Libtorrent,
    };
    Some((utp, stack, tcp))
}

fn read_machine(reader: &mut Reader<'_>, fields: &Fields<'_>, machines: &[String]) -> Option<usize> {
    let Some(name) = fields.maybe::<String>(reader, "machine")? else { return Some(0) };
    let found = machines.iter().position(|machine| *machine == name);
    if found.is_none() {
        let known: Vec<&str> = machines.iter().map(String::as_str).collect();
        if known.is_empty() {
            let help = vec!["allowed: [[device]] with this `name`".to_string()];
            reader.report(fields.origin("machine"), "there are no devices, and so no machines", help);
            return None;
        }
        reader.report_unknown(fields.origin("machine"), "machine", &name, &known);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::Departure;

    const TEXT: &str = r#"
name = "mixed"
[swarm]
content = "1 MB"
piece = "64 KiB"
[[group]]
name = "seed"
role = "seed"
uplink = "1 Mbit/s"
[[group]]
name = "leecher"
count = 3
uplink = "2 Mbit/s"
buffer = "40 packets"
transports = 13
controller = "ledbat-libutp"
target = "25 ms"
tcp_stack = "linux-2.6"
arrival = "trace"
times = "0 s, 5 s"
departure = "when-done"
upload_limit = "20 KiB/s"
[links]
matrix = "0 ms, 40 ms; 40 ms, 10 ms"
"#;

    #[test]
    fn a_swarm_file_is_read() {
        assert!(is_swarm(TEXT) && !is_swarm("name = \"x\"\n[[flow]]\n") && !is_swarm("["));
        let swarm = parse_swarm("swarm.toml", TEXT, &Overrides::none()).unwrap();
        assert_eq!(swarm.groups[0].buffer, QueueLimit::Bytes(125_000));
        let leecher = &swarm.groups[1];
        assert_eq!((leecher.count, leecher.buffer), (3, QueueLimit::Packets(40)));
        assert_eq!((leecher.upload_limit, leecher.disposition), (Some(20 << 10), Disposition(13)));
        assert_eq!(leecher.departure, Departure::WhenDone(Duration::ZERO));
        assert_eq!((swarm.groups[0].tcp_stack, leecher.tcp_stack), (TcpStack::Linux, TcpStack::Linux26));
        assert!(matches!(&swarm.links, Links::Matrix { rtt, .. } if rtt[1][1] == Duration::from_millis(10)));
    }

    #[test]
    fn a_buffer_in_time_is_one_of_each_links_rate() {
        let of = |lines: &str| {
            let text = TEXT.replace("buffer = \"40 packets\"", lines);
            let group = parse_swarm("swarm.toml", &text, &Overrides::none()).unwrap().groups.remove(1);
            (group.buffer, group.downlink_buffer)
        };
        let both = of("downlink = \"16 Mbit/s\"\nbuffer = \"100 ms\"");
        assert_eq!(both, (QueueLimit::Bytes(25_000), Some(QueueLimit::Bytes(200_000))));
        let octets = of("downlink = \"16 Mbit/s\"\nbuffer = \"125 kB\"");
        assert_eq!(octets, (QueueLimit::Bytes(125_000), Some(QueueLimit::Bytes(125_000))));
        assert_eq!(of("buffer = \"100 ms\""), (QueueLimit::Bytes(25_000), None));
    }

    /// Parameters without a name are those of the controller that the group has without them.
    #[test]
    fn parameters_alone_change_the_profiles_controller() {
        let of = |lines: &str| {
            let text = TEXT.replace("controller = \"ledbat-libutp\"\ntarget = \"25 ms\"", lines);
            let utp = parse_swarm("swarm.toml", &text, &Overrides::none()).unwrap().groups.remove(1).utp;
            (utp.name, utp.params.get("target").cloned())
        };
        let target = Some(ParamValue::Duration(Duration::from_millis(40)));
        let alone = "controller = { target = \"40 ms\" }";
        assert_eq!(of(alone), ("ledbat-libtorrent".into(), target.clone()));
        assert_eq!(of("target = \"40 ms\""), ("ledbat-libtorrent".into(), target.clone()));
        assert_eq!(of(&format!("{alone}\nprofile = \"mainline4\"")), ("ledbat".into(), target));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (good, bad, said) in [
            ("count = 3", "counts = 3", "count"),
            ("transports = 13", "transports = 77", "31"),
            ("\"25 ms\"", "\"soon\"", "target"),
            ("40 ms; 40 ms", "40 ms", "matrix"),
            ("role = \"seed\"", "role = \"leecher\"", "nobody has the content"),
            ("\"0 s, 5 s\"", "\"never\"", "times"),
            ("\"0 s, 5 s\"", "\"0 s, 5 s, 6 s, 7 s\"", "4 times for 3 peers"),
            ("\"40 packets\"", "\"2 BDP\"", "BDP"),
            ("\"ledbat-libutp\"", "\"led\"", "led"),
            ("role = \"seed\"", "role = \"sead\"", "sead"),
            ("\"linux-2.6\"", "\"linux-2.4\"", "linux-2.6"),
            ("\"trace\"", "\"traces\"", "traces"),
            ("\"when-done\"", "\"gone\"", "when-done"),
            ("\"trace\"", "\"poisson\"", "`times` has no meaning here"),
            ("\"when-done\"", "\"churn\"", "`after` is missing"),
            ("\"when-done\"", "\"stay\"\nafter = \"1 s\"", "`after` has no meaning here"),
            ("matrix =", "rtt = \"1 ms\"\nmatrix =", "`rtt` has no meaning here"),
            ("count = 3", "profile = \"utorrent\"", "utorrent3"),
            ("\"20 KiB/s\"", "\"7 bit/s\"", "less than an octet per second"),
            ("count = 3", "stack = \"lib\"", "libutp"),
            ("piece =", "hashing = \"sha2\"\npiece =", "sha1"),
            ("piece =", "announce_every = \"1 us\"\npiece =", "at least 1 s"),
            (
                "uplink = \"2 Mbit/s\"\nbuffer = \"40 packets\"",
                "burst = \"2 kB\"",
                "`burst` has no meaning here: there is neither",
            ),
            (
                "uplink = \"2 Mbit/s\"",
                "downlink = \"2 Mbit/s\"\nper_link = 2",
                "`per_link` has no meaning here",
            ),
        ] {
            let text = TEXT.replace(good, bad);
            let problems = parse_swarm("swarm.toml", &text, &Overrides::none()).unwrap_err();
            let told: String = problems.iter().map(|problem| format!("{problem:?}")).collect();
            assert!(told.contains(said), "{bad}: {told}");
        }
    }

    #[test]
    fn tables_are_called_as_in_the_file() {
        for (set, said) in [
            ("records=5", "`records` is the number 5"),
            ("group=5", "each [[group]]"),
            ("device=m1", "`device` is the text \\\"m1\\\", not a list"),
            ("device={ name = \"m1\", ethernet = \"5 ms\" }", "`device` is a table, not a list"),
        ] {
            let problems = parse_swarm("swarm.toml", TEXT, &Overrides::new([set])).unwrap_err();
            assert!(format!("{problems:?}").contains(said), "{set}: {problems:?}");
        }
    }

    #[test]
    fn overrides_are_laid_over_it() {
        let set = ["swarm.content=2 MB", "group.leecher.count=5", "group.*.uplink=3 Mbit/s"];
        let swarm = parse_swarm("swarm.toml", TEXT, &Overrides::new(set)).unwrap();
        assert_eq!((swarm.content_bytes, swarm.groups[1].count), (2_000_000, 5));
        assert!(swarm.groups.iter().all(|group| group.uplink == Some(Rate::from_mbit(3))));
        for (wrong, said) in [("group.leecher.count=many", "count"), ("group.nobody.count=1", "nobody")] {
            let problems = parse_swarm("swarm.toml", TEXT, &Overrides::new([wrong])).unwrap_err();
            assert!(format!("{problems:?}").contains(said), "{problems:?}");
        }
    }
}
