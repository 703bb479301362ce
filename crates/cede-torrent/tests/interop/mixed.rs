//! One swarm of ours and theirs: eight peers, each in a network namespace of its own, joined by a bridge. One of ours has the
//! content and sends slowly, to few at a time, so that the others have to exchange what they have. It behaves as libtorrent:
//! those whom it chokes may ask for the pieces that it has granted them.

use crate::ATTEMPTS;
use crate::case::{announce_ours, tracker};
use crate::place::Place;
use crate::support::{LIMIT, Member, choices, run};
use crate::theirs::{Client, Kind, Role, Task, Theirs};
use crate::torrent::Torrent;
use cede_bt::metainfo::sha1;
use cede_bt::{Profile, Transport};
use cede_torrent::session::Choices;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command as Ready, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

const BYTES: usize = 4_000_000;
const PEERS: usize = 8;
/// Octets per second that the seed sends.
const SEED_LIMIT: u64 = 1_500_000;
/// Peers that the seed sends to at a time, beside what it grants to the others.
const SEED_SLOTS: u32 = 2;
/// Bitmasks of ours, the seed's first. The leechers' rule is that of uTorrent 3: whatever both can is attempted at once.
const MASKS: [u8; 5] = [31, 31, 14, 13, 5];
/// Tells one of ours what it is: transports, address, tracker, and whether it has the content.
const MEMBER: &str = "CEDE_MIXED_MEMBER";

/// A bridge, and a namespace for each peer on a wire to it.
const NETWORK: &str = r#"
ip link add br0 type bridge && ip addr add 198.51.100.1/24 dev br0 && ip link set br0 up
for n in $(seq 1 "$1"); do
    ip netns add "m$n" && ip link add "v$n" type veth peer name eth0 netns "m$n"
    ip link set "v$n" master br0 && ip link set "v$n" up
    ip -n "m$n" link set lo up && ip -n "m$n" addr add "198.51.100.$((10 + n))/24" dev eth0
    ip -n "m$n" link set eth0 up && ip -n "m$n" route add default via 198.51.100.1 || exit 1
done"#;

fn digest(octets: &[u8]) -> String {
    sha1(octets).iter().map(|octet| format!("{octet:02x}")).collect()
}

fn address_of(number: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 10 + number as u8)), 6881)
}

/// One of ours, in its own process.
struct Ours {
    lines: Lines<BufReader<ChildStdout>>,
    input: ChildStdin,
    _child: Child,
}

impl Ours {
    fn start(task: &Task<'_>, mask: u8, tracker: &str) -> Self {
        let mut command = task.command(&std::env::current_exe().unwrap());
        let is_seed = task.role == Role::Seed;
        command.args(["--exact", "member_of_a_mixed_swarm", "--nocapture"]);
        command.env(MEMBER, format!("{mask} {} {tracker} {is_seed}", task.address));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { lines, input: child.stdin.take().unwrap(), _child: child }
    }

    async fn digest(&mut self) -> String {
        loop {
            let line = self.lines.next_line().await.unwrap().expect("one of ours has ended");
            if let Some((_, digest)) = line.split_once("digest ") {
                return digest.to_owned();
            }
        }
    }
}

/// What there is to know of a swarm that does not end: how ours see it.
async fn lament(ours: &mut [(usize, u8, Ours)]) {
    for (number, _, ours) in ours {
        println!("member {number}:");
        let _ = ours.input.write_all(b"\n").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What runs in the process of one of ours: says its digest once it has everything, tells how it stands when asked, and ends
/// with its input.
pub fn member() {
    let Ok(told) = std::env::var(MEMBER) else { return };
    let words: Vec<String> = told.split(' ').map(str::to_owned).collect();
    let (mask, address): (u8, SocketAddr) = (words[0].parse().unwrap(), words[1].parse().unwrap());
    let is_seed = words[3] == "true";
    run(async move {
        let torrent = Torrent::new(words[2].clone(), BYTES, false);
        let limit = is_seed.then_some(SEED_LIMIT);
        let number = address.ip().to_string().bytes().last().unwrap_or(0);
        let mut choices = Choices { upload_limit: limit, ..choices(number, mask) };
        if is_seed {
            choices.profile = Profile { slots: Some(SEED_SLOTS), ..Profile::LIBTORRENT };
        }
        let content = is_seed.then_some(&torrent.content[..]);
        let mut ours = Member::at(address.ip(), &torrent.info, content, &[], choices).await;
        announce_ours(&mut ours, &torrent);
        ours.start();
        ours.done().await;
        println!("digest {}", digest(&ours.content(BYTES)));
        let ask = || tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
        while ask().await.is_ok_and(|read| read.is_ok_and(|octets| octets > 0)) {
            eprintln!("{:?}", ours.session.view());
        }
    });
}

fn content_of(folder: &Path) -> Vec<u8> {
    ["t/f0", "t/f1"].iter().flat_map(|name| std::fs::read(folder.join(name)).unwrap()).collect()
}

/// Runs the swarm; a row of the table for each peer. Ours have to end at the first time.
pub async fn swarm(place: &Place) -> String {
    let status = Ready::new("sh").args(["-c", NETWORK, "sh", &PEERS.to_string()]).status().unwrap();
    assert!(status.success(), "no network for the swarm");
    for _ in 1..ATTEMPTS {
        match attempt(place).await {
            Ok(rows) => return rows,
            Err(complaint) => println!("again: {complaint}"),
        }
    }
    attempt(place).await.unwrap()
}

/// The rows, or which of theirs has not ended.
async fn attempt(place: &Place) -> Result<String, String> {
    let clients = Client::all(place);
    let (url, _) = tracker(place);
    let torrent = Torrent::new(url.clone(), BYTES, false);
    let expected = digest(&torrent.content);
    let task = |number: usize, is_tcp_only: bool| Task {
        torrent: &torrent,
        folder: torrent.folder(&format!("m{number}")),
        role: if number == 1 { Role::Seed } else { Role::Leech },
        by_magnet: false,
        is_enciphered: false,
        transports: if is_tcp_only { vec![Transport::Tcp] } else { vec![Transport::Tcp, Transport::Utp] },
        address: address_of(number),
        namespace: Some(format!("m{number}")),
    };
    let (mut ours, mut theirs, mut rows) = (Vec::new(), Vec::new(), String::new());
    for number in 1..=PEERS - clients.len() {
        let mask = MASKS[(number - 1) % MASKS.len()];
        ours.push((number, mask, Ours::start(&task(number, false), mask, &url)));
    }
    for (client, number) in clients.iter().zip(PEERS - clients.len() + 1..) {
        let task = task(number, client.kind == Kind::Aria2);
        theirs.push((client, task.folder.clone(), Theirs::start(client, &task).await));
    }
    for (number, mask, ours) in &mut ours {
        let found = tokio::time::timeout(LIMIT, ours.digest()).await;
        let found = found.unwrap_or_else(|_| panic!("member {number}, one of ours, does not finish"));
        assert_eq!(found, expected, "member {number}");
        let role = if *number == 1 { "seed" } else { "leecher" };
        rows += &format!("| cede-torrent, `--transport {mask}` | {role} | {found} |\n");
    }
    for (client, folder, _running) in &theirs {
        if let Some(missing) = torrent.missing_in(folder).await {
            lament(&mut ours).await;
            return Err(format!("{} does not finish: {missing:?}", client.label));
        }
        let found = digest(&content_of(folder));
        assert_eq!(found, expected, "{}", client.label);
        rows += &format!("| {} | leecher | {found} |\n", client.label);
    }
    Ok(rows)
}

/// What docs/interop-bittorrent.md says of it.
pub fn section(place: &Place) -> String {
    if !place.is_own {
        return String::new();
    }
    let rows = run(swarm(place));
    format!(
        "\n## A mixed swarm\n\nEight peers, each in a network namespace of its own, joined by a bridge; the seed sends at most\n\
         {SEED_LIMIT} octets a second of {BYTES}, so the others exchange what they have.\n\n\
         | peer | role | SHA-1 of the content at the end |\n|---|---|---|\n{rows}"
    )
}
