//! What can be chosen of a session, and what the engine is set up with.

use super::error::SessionError;
use crate::agree::Encryption;
use crate::listener::Listener;
use cede_bt::engine::Setup;
use cede_bt::extension::{Extension, Hearsay};
use cede_bt::metainfo::Info;
use cede_bt::mixed::MixedRule;
use cede_bt::{Bitfield, Disposition, Duplicates, Geometry, Profile, Transport};
use cede_real::Yielding;
use cede_units::{Duration as Span, Stream as Random};

/// Who asks for nothing for so long gives its upload slot to the next who waits.
const SLOT_PATIENCE: Span = Span::from_secs(10);

/// Calls beyond the profile's, where there is no connection and nobody answers: routers remember each for a while.
const UNANSWERED_MAX: u32 = 100;

/// Peers of other clients have so long to decide which of two connections to us they keep.
const DUPLICATE_PATIENCE: Span = Span::from_secs(1);

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Choices {
    /// How the peer behaves.
    pub profile: Profile,
    /// Which transports it attempts and accepts.
    pub disposition: Disposition,
    /// Octets per second sent at most.
    pub upload_limit: Option<u64>,
    /// Octets per second read at most.
    pub download_limit: Option<u64>,
    /// What makes connections over TCP yield; the system's rules alone hold for them without it.
    pub tcp_yields: Option<Yielding>,
    /// Whether connections are enciphered.
    pub encryption: Encryption,
    /// Peers are told by peers.
    pub pex: bool,
    /// Our name among peers.
    pub peer_id: [u8; 20],
    /// What we call ourselves.
    pub client: String,
    /// Seeds the random choices.
    pub seed: u64,
}

impl Choices {
    /// How peers tell of others: not of a private torrent's, and holes are punched where uTP may be attempted.
    pub(super) fn hearsay(&self, info: &Info) -> Hearsay {
        let exchanges = self.pex && !info.is_private;
        Hearsay { exchanges, punches: exchanges && self.disposition.attempts(Transport::Utp) }
    }
}

/// A client's rules where its swarm is the open network's.
fn in_the_open(profile: Profile) -> Profile {
    Profile {
        slot_patience: Some(SLOT_PATIENCE),
        // Nothing of TCP is held back by guesses: whoever wants that says so (`--up`, `--down`).
        mixed: MixedRule::Free,
        duplicates: match profile.duplicates {
            // Several peers may be behind one address, and both ends are to keep the same connection.
            Duplicates::Drawn => Duplicates::ByPeerId,
            other => other,
        },
        duplicate_patience: Some(DUPLICATE_PATIENCE),
        unanswered_max: UNANSWERED_MAX,
        // A slot that is not used goes to the next; the connection does no harm.
        seed_patience: None,
        ..profile
    }
}

/// What the engine begins with.
pub(super) fn setup(
    info: &Info,
    whole: &[bool],
    listener: Option<&Listener>,
    choices: &Choices,
) -> Result<Setup, SessionError> {
    if info.lacks_hashes() {
        return Err(SessionError::Unsupported("the torrent lacks the hashes of its pieces"));
    }
    if info.piece_count() > Geometry::PIECES_MAX {
        return Err(SessionError::Unsupported("the torrent has too many pieces"));
    }
    let mut have = Bitfield::none(info.piece_count());
    for (piece, _) in (0..).zip(whole).filter(|(_, is_whole)| **is_whole) {
        have.insert(piece);
    }
    let port = listener.map(Listener::told_port);
    Ok(Setup {
        geometry: info.geometry.clone(),
        info_hash: info.info_hash(),
        peer_id: choices.peer_id,
        have,
        profile: in_the_open(choices.profile),
        disposition: choices.disposition,
        upload_limit: choices.upload_limit,
        extended: Some(greeting(info, choices, Told { port, upload_only: false })),
        notes: false,
        random: Random::named(choices.seed, "engine"),
    })
}

/// What peers are told of us that may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Told {
    /// The port that we are called at.
    pub port: Option<u16>,
    /// Nothing more is wanted.
    pub upload_only: bool,
}

/// What peers are told of us.
pub(super) fn greeting(info: &Info, choices: &Choices, told: Told) -> Vec<u8> {
    let size = u32::try_from(info.raw.len()).ok();
    Extension::ours(&choices.client, told.port, size, choices.hearsay(info), Some(told.upload_only))
}
