//! What deployed clients do differently, as data.
//!
//! Sources: the mainline client, release 4.0.2 (the generation that the P2P 2010 study ran), and libtorrent 2.0.8, both
//! as observed and read; each rule's own file names what it comes from.

use crate::choker::ChokerRule;
use crate::disposition::{Dialling, Duplicates};
use crate::limiter::LimiterRule;
use crate::mixed::MixedRule;
use crate::picker::{EndGame, PartialRule, PickerRule};
use crate::pipeline::PipelineRule;
use crate::snub::SnubRule;
use cede_units::Duration;

/// The rules of one client. Each field may be changed on its own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Profile {
    /// What it is called.
    pub name: &'static str,
    /// Who is unchoked.
    pub choker: ChokerRule,
    /// Upload slots; `None` derives them from the upload limit as the mainline client does.
    pub slots: Option<u32>,
    /// An upload slot whose owner asks for nothing for so long goes to the next, and hosts share the slots; `None`, as in the
    /// deployed clients, leaves it to the rounds. For drivers that face the open network.
    pub slot_patience: Option<Duration>,
    /// Peers of the same private network are unchoked beside the slots, as soon as they want something.
    pub spares_neighbours: bool,
    /// How many requests a peer has to answer at a time.
    pub pipeline: PipelineRule,
    /// Which pieces are asked for.
    pub picker: PickerRule,
    /// How the upload limit is kept.
    pub limiter: LimiterRule,
    /// What holds TCP back beside uTP.
    pub mixed: MixedRule,
    /// How a peer is dialled.
    pub dialling: Dialling,
    /// Which of two connections stays.
    pub duplicates: Duplicates,
    /// Where two connections lead to the same peer and that is another client, whose rule may keep the other of the two, both stay for so long:
    /// it has closed one by then, or the rule here decides. `None` lets the rule here decide at once. For drivers that face the open network.
    pub duplicate_patience: Option<Duration>,
    /// No connection is opened where there are so many.
    pub initiate_max: u32,
    /// Where there is no connection at all, calls that nobody has answered for a moment do not keep others from being called, up to so
    /// many. The deployed clients have nothing of it (0): for drivers that face the open network.
    pub unanswered_max: u32,
    /// None is taken up where there are so many.
    pub connections_max: u32,
    /// After a connection a peer is left alone for a minute before it is called again (libtorrent); else a minute after it was called.
    pub rests_after_end: bool,
    /// Connections opened at once, and per second afterwards; `None` for no bound.
    pub dials_per_second: Option<u32>,
    /// The fast extension (BEP 6).
    pub fast: bool,
    /// Pieces that a choked peer may ask for (BEP 6).
    pub allowed_fast: u32,
    /// Requests of more octets close the connection.
    pub request_bytes_max: u32,
    /// When a peer is snubbed, and what becomes of the blocks it owes.
    pub snub: SnubRule,
    /// Something is said at least this often.
    pub keepalive: Duration,
    /// A peer that says nothing for so long is gone.
    pub silence_max: Duration,
    /// Whoever has everything lets go of a peer that it has unchoked and that wants something, where that has neither asked for anything nor
    /// been sent anything for so long. Behind a full uplink what a slow connection over TCP has asked for lies in the sender's buffer for longer
    /// than that, and the next connection to the same peer may be one over uTP.
    pub seed_patience: Option<Duration>,
    /// Peers asked of the tracker.
    pub want_peers: u32,
    /// The tracker is asked again where there are fewer connections.
    pub peers_min: u32,
    /// How often it is looked whether there are.
    pub reannounce: Duration,
    /// Peers are told of others (BEP 11). The messages are the driver's; one that faces the open network asks the torrent as well.
    pub exchanges: bool,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 3] = [Self::MAINLINE4, Self::LIBTORRENT, Self::UTORRENT3];

    /// The mainline client, release 4.0.2.
    pub const MAINLINE4: Self = Self {
        name: "mainline4",
        choker: ChokerRule::Mainline4,
        slots: None,
        slot_patience: None,
        spares_neighbours: false,
        pipeline: PipelineRule::Mainline4,
        picker: PickerRule {
            random_first: 4,
            partials: PartialRule::Strict,
            end_game: EndGame::Everyone,
            whole_within: None,
        },
        limiter: LimiterRule::RoundRobin { unit_bytes: 1380 },
        mixed: MixedRule::Free,
        dialling: Dialling::TcpFirst,
        duplicates: Duplicates::ByPeerId,
        duplicate_patience: None,
        initiate_max: 40,
        unanswered_max: 0,
        connections_max: 80,
        rests_after_end: false,
        dials_per_second: None,
        fast: false,
        allowed_fast: 0,
        request_bytes_max: 16 << 10,
        snub: SnubRule::Silent { after: Duration::from_secs(30) },
        keepalive: Duration::from_secs(120),
        silence_max: Duration::from_secs(300),
        seed_patience: None,
        want_peers: 50,
        peers_min: 20,
        reannounce: Duration::from_secs(300),
        exchanges: false,
    };

    /// libtorrent 2.0.8 with its default settings.
    pub const LIBTORRENT: Self = Self {
        name: "libtorrent",
        choker: ChokerRule::Libtorrent,
        slots: Some(8),
        slot_patience: None,
        spares_neighbours: true,
        pipeline: PipelineRule::Libtorrent,
        picker: PickerRule {
            random_first: 4,
            partials: PartialRule::Listed,
            end_game: EndGame::AllBegun,
            whole_within: Some(Duration::from_secs(20)),
        },
        limiter: LimiterRule::Bucket { tick: Duration::from_millis(500) },
        mixed: MixedRule::PeerProportional,
        dialling: Dialling::UtpFirst,
        duplicates: Duplicates::Drawn,
        duplicate_patience: None,
        initiate_max: 200,
        unanswered_max: 0,
        connections_max: 200,
        rests_after_end: true,
        dials_per_second: Some(30),
        fast: true,
        allowed_fast: 5,
        request_bytes_max: 128 << 10,
        snub: SnubRule::Late { block: Duration::from_secs(60), anything: Duration::from_secs(20) },
        keepalive: Duration::from_secs(100),
        silence_max: Duration::from_secs(120),
        seed_patience: Some(Duration::from_secs(60)),
        want_peers: 200,
        peers_min: 20,
        reannounce: Duration::from_secs(300),
        exchanges: true,
    };

    /// uTorrent 3.0 as far as it is known: transports race and uTP wins (TMA 2012, section 2.2); its choker and pipeline
    /// are not public, so libtorrent's stand in, with uTorrent's documented four slots and fifty connections. Peer exchange is its own
    /// invention; but told of everybody within a second, as libtorrent's peers are, the first fifty-one of a crowd become one in which each has
    /// fifty connections and nobody else finds a place, and how uTorrent makes room is not known.
    pub const UTORRENT3: Self = Self {
        name: "utorrent3",
        slots: Some(4),
        spares_neighbours: false,
        mixed: MixedRule::Free,
        picker: PickerRule {
            random_first: 4,
            partials: PartialRule::EquallyRare,
            end_game: EndGame::Strict,
            whole_within: None,
        },
        snub: SnubRule::Owing { after: Duration::from_secs(60) },
        dialling: Dialling::Race,
        duplicates: Duplicates::PreferUtp,
        initiate_max: 50,
        connections_max: 50,
        rests_after_end: false,
        dials_per_second: None,
        // Nothing is known of it; with five, a seed of 100 pieces would send four copies before its own.
        allowed_fast: 0,
        seed_patience: None,
        want_peers: 50,
        exchanges: false,
        ..Self::LIBTORRENT
    };

    /// The profile of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name == name)
    }

    /// Upload slots under an upload limit in octets per second.
    #[must_use]
    pub fn slots(&self, upload_limit: Option<u64>) -> u32 {
        self.slots.unwrap_or_else(|| crate::choker::slots_for(upload_limit))
    }
}
