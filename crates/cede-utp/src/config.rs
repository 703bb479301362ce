//! What can be chosen about a connection, each choice with its default and where it comes from.
//!
//! The defaults are what BEP 29 says where deployed peers agree with it, and otherwise what both libutp and libtorrent
//! accept. [`Config::libutp`] and [`Config::libtorrent`] take the decisions of these two instead, for comparisons.

use crate::mtu::{Mtu, PathMtu};
use alloc::sync::Arc;
use cede_cc::Path;
pub use cede_cc::instruments::RttRule;
use cede_units::{Duration, Seq16};
use cede_wire::utp::HEADER_BYTES;

/// Acknowledgements that wait for company.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayedAck {
    /// The longest wait of an acknowledgement.
    pub timeout: Duration,
    /// This many packets are acknowledged at once.
    pub every_packets: u8,
}

/// What happens while the congestion window is smaller than a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubPacketWindow {
    /// One packet leaves every `packet / cwnd` smoothed round trips, as BEP 29 allows.
    Paced,
    /// Nothing leaves until the retransmission timer lifts the window to a packet, as libutp does.
    Blocked,
}

/// What can be chosen about a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Payload of full packets. Default [`Mtu::DEFAULT`].
    pub mtu: Mtu,
    /// The largest datagram that this end receives whole, in octets of UDP payload, which it tells the peer in the
    /// handshake. Where the peer tells its own, and the host knows that the first link carries as much
    /// ([`Connection::on_link_carries`](crate::Connection::on_link_carries)), [`Mtu::Search`] goes beyond its ceiling up
    /// to the smaller of both. Default `None`: nothing is said, and no ceiling is passed.
    pub datagram_limit_bytes: Option<u16>,
    /// Octets held for sending, sent and not, that are not yet acknowledged; also bounds the congestion window.
    /// Default 1 MiB (libutp).
    pub send_buffer_bytes: u32,
    /// Where the send buffer grows with the congestion window, to twice as much: up to this, which bounds the window
    /// then. Default `None`: it is fixed, as in libutp.
    pub send_buffer_limit_bytes: Option<u32>,
    /// Octets held for the application, in order and out of order; the window that is advertised. Default 1 MiB
    /// (libutp, libtorrent).
    pub receive_buffer_bytes: u32,
    /// Where the receive buffer grows while the application takes more than half of it per round trip: up to this, 16 MiB
    /// at most. Default `None`: it is fixed, as in libutp.
    pub receive_buffer_limit_bytes: Option<u32>,
    /// The peer's window until the first packet that states it; SYNs do not count, since libtorrent's state none.
    /// Default 255 * 1435 (libutp).
    pub initial_peer_window_bytes: u32,
    /// Packets sent and not acknowledged. Default 1023: libutp receives no packet 1024 or more ahead. Peers known to have
    /// a larger [`Config::seq_window_packets`] can be sent more, 16384 at most; those that announce it are.
    pub max_outstanding_packets: u16,
    /// How far ahead of the next expected one a packet may be numbered. Default 1024 (libutp); 16384 at most. More than
    /// 1024 count only as far as there are 64 octets of receive buffer for each.
    pub seq_window_packets: u16,
    /// The handshake tells the peer [`Config::seq_window_packets`], and takes in what the peer tells. Default false.
    pub announce: bool,
    /// The last packet waits for company while it is short and others are outstanding (RFC 896). Default true
    /// (libutp, libtorrent).
    pub nagle: bool,
    /// Acknowledgements that wait; `None` acknowledges at the end of each batch of input. Default `None`.
    pub delayed_ack: Option<DelayedAck>,
    /// How round trips make the retransmission timeout. By libtorrent's rule each packet acknowledged gives a round trip, since it left
    /// last, whether it was sent again or not. Default RFC 6298's.
    pub rto_rule: RttRule,
    /// The least retransmission timeout. Default 500 ms (BEP 29, libtorrent).
    pub min_rto: Duration,
    /// The retransmission timeout is longer than the smoothed round trip by this at least. Peers keep acknowledgements back for 100 ms
    /// (libutp), which on a path whose round trips hardly vary is more than four deviations: who has then two packets under way would
    /// time out in vain with every acknowledgement of one. Default 200 ms, as Linux's TCP has it (`tcp_rto_min` bounds its deviation).
    pub rto_margin: Duration,
    /// The largest retransmission timeout, after doubling too. Default 60 s.
    pub max_rto: Duration,
    /// The retransmission timeout before the first RTT sample. Default 1 s (BEP 29).
    pub initial_rto: Duration,
    /// The timeout of the first SYN. Default 3 s (libutp, libtorrent).
    pub syn_rto: Duration,
    /// Retransmission timeouts run out at whole multiples of this only. Default `None`.
    pub rto_polling: Option<Duration>,
    /// The retransmission timeout begins anew with every packet of the peer's, whatever it says, as in libtorrent: who sends
    /// data in return is waited for longer. Default false: with news of our packets only.
    pub rto_after_silence: bool,
    /// SYNs that are sent again before the attempt fails. Default 2 (libutp).
    pub max_syn_retransmissions: u8,
    /// Timeouts in a row that send again before the connection fails. Default 4 (libutp).
    pub max_retransmissions: u8,
    /// A packet that has left so often, and whose timer runs out, ends the connection, whatever else was heard meanwhile.
    /// Default `None`: timeouts in a row alone count.
    pub max_transmissions: Option<u8>,
    /// Duplicate STATEs that make the oldest packet lost; `None` ignores them. Default 3 (BEP 29).
    pub duplicate_ack_threshold: Option<u8>,
    /// Packets selectively acknowledged above one that make it lost, 1 to 4. Default 3 (BEP 29, libutp).
    pub sack_threshold: u8,
    /// An acknowledgement with a mask tells the controller of the mask's octets alone, as libtorrent's does: those that it acknowledges
    /// below the gap besides make no window grow. Default false.
    pub masks_count_alone: bool,
    /// Losses are also told by time, and what nothing is heard of is probed, as RFC 8985 has it: a lost repetition, or the
    /// loss of the last packets, then takes two round trips instead of a timeout. Default false, since nobody deployed
    /// does so.
    pub rack: bool,
    /// Packets that one acknowledgement can declare lost; the next goes on where it ended. `None` is no limit. Of
    /// these, `resends_beyond_window` leave at once. Default `None`.
    pub max_losses_per_ack: Option<u16>,
    /// Lost packets that are sent again at once, whatever the window says, per acknowledgement that finds any.
    /// Default 1 (RFC 6675 section 5, step 4.3).
    pub resends_beyond_window: u16,
    /// What happens while the window is smaller than a packet. Default [`SubPacketWindow::Paced`].
    pub sub_packet_window: SubPacketWindow,
    /// The initial window that [`Config::path`] suggests, in packets; of the largest size that [`Mtu::Search`] looks for,
    /// which most paths carry. Default 2 (RFC 6817 section 2.4).
    pub initial_window_packets: u16,
    /// The step of the clock that timestamps are taken from. Default 1 us.
    pub timestamp_resolution: Duration,
    /// Silence after which a STATE refreshes address translators on the path. Default 29 s (libutp).
    pub keepalive: Option<Duration>,
    /// As [`Config::keepalive`], for peers that have announced nothing, so that their patience is unknown. Default `None`:
    /// the same.
    pub keepalive_strangers: Option<Duration>,
    /// Keepalives leave at multiples of this on the host's clock, up to so much earlier than they would: those of many
    /// connections then leave together, and the host sleeps in between. Default zero: each at its own time.
    pub keepalive_step: Duration,
    /// Connections of an endpoint to one address of our own kind share keepalives, since address translators know them as
    /// one: of those that have one to send at a time, one does. Each sends one itself after so much silence of both its ends,
    /// by which an end that the other has lost finds out, and as often as without this once it has ended its own stream.
    /// Default `None`: each for itself.
    pub keepalive_shared: Option<Duration>,
    /// A connection that idles is called once, a retransmission timeout after the last acknowledgement; of the timeouts after
    /// that, each twice as long, the controller hears when there is something to send again, and until then its window stands
    /// as it was. Default false: of each when it is due.
    pub idle_told_late: bool,
    /// Windows of controllers without a pacing rate leave spread over most of a round trip, instead of as acknowledgements let
    /// them: behind a short queue a burst is lost. Default false, since nobody deployed does so.
    pub pace_windows: bool,
    /// How late the host may be when it calls at a deadline. Under a pacing rate so much may leave at once as the rate is in
    /// that time, 96 KiB at most, or else the flow would fall behind it. Default zero: hosts of simulations are on time.
    pub pacing_granularity: Duration,
    /// The pause before a packet probes a window of zero; it doubles from probe to probe. Default 15 s (libutp).
    pub zero_window_probe: Duration,
    /// The longest pause between such probes. Default 15 s: they come at equal intervals (libutp).
    pub zero_window_probe_max: Duration,
    /// A peer whose window stays shut for so long, while there is something to send, has
    /// [timed out](crate::ConnectionError::TimedOut). Default `None`: as in TCP it is waited for as long as it answers
    /// probes, since a reader may pause for days, and the application can give up.
    pub zero_window_limit: Option<Duration>,
    /// How long an answered SYN waits for its connection. Default 10 s.
    pub handshake_timeout: Duration,
    /// How long, after [`close`](crate::Connection::close), a silent peer's FIN is awaited once ours is acknowledged.
    /// Default 10 s.
    pub fin_timeout: Duration,
    /// Bounds of the time that a finished connection answers repeated FINs, which is twice the RTO. Default 1 s.
    pub linger_min: Duration,
    /// See [`Config::linger_min`]. Default 10 s.
    pub linger_max: Duration,
    /// The connection id of the initiator's side, instead of a random one. For tests and replays.
    pub connection_id: Option<u16>,
    /// The first sequence number, instead of a random one. For tests and replays.
    pub initial_seq: Option<Seq16>,
}

/// What [`Config::default`] gives.
const DEFAULT: Config = Config {
    mtu: Mtu::DEFAULT,
    datagram_limit_bytes: None,
    send_buffer_bytes: 1 << 20,
    send_buffer_limit_bytes: None,
    receive_buffer_bytes: 1 << 20,
    receive_buffer_limit_bytes: None,
    initial_peer_window_bytes: 255 * 1435,
    max_outstanding_packets: 1023,
    seq_window_packets: 1024,
    announce: false,
    nagle: true,
    delayed_ack: None,
    rto_rule: RttRule::Rfc6298,
    min_rto: Duration::from_millis(500),
    rto_margin: Duration::from_millis(200),
    max_rto: Duration::from_secs(60),
    initial_rto: Duration::from_secs(1),
    syn_rto: Duration::from_secs(3),
    rto_polling: None,
    rto_after_silence: false,
    max_syn_retransmissions: 2,
    max_retransmissions: 4,
    max_transmissions: None,
    duplicate_ack_threshold: Some(3),
    sack_threshold: 3,
    masks_count_alone: false,
    rack: false,
    max_losses_per_ack: None,
    resends_beyond_window: 1,
    sub_packet_window: SubPacketWindow::Paced,
    initial_window_packets: 2,
    timestamp_resolution: Duration::from_micros(1),
    keepalive: Some(Duration::from_secs(29)),
    keepalive_strangers: None,
    keepalive_step: Duration::ZERO,
    keepalive_shared: None,
    idle_told_late: false,
    pace_windows: false,
    pacing_granularity: Duration::ZERO,
    zero_window_probe: Duration::from_secs(15),
    zero_window_probe_max: Duration::from_secs(15),
    zero_window_limit: None,
    handshake_timeout: Duration::from_secs(10),
    fin_timeout: Duration::from_secs(10),
    linger_min: Duration::from_secs(1),
    linger_max: Duration::from_secs(10),
    connection_id: None,
    initial_seq: None,
};

impl Default for Config {
    fn default() -> Self {
        DEFAULT
    }
}

impl Config {
    /// The decisions of bittorrent/libutp: selective acknowledgements alone find losses, up to four of which are sent
    /// again at once; timeouts of a second or more, looked at every 500 ms; windows below a packet block; one packet
    /// to begin with.
    #[must_use]
    pub fn libutp() -> Self {
        Self {
            min_rto: Duration::from_millis(1000),
            rto_margin: Duration::ZERO,
            initial_rto: Duration::from_secs(3),
            rto_polling: Some(Duration::from_millis(500)),
            duplicate_ack_threshold: None,
            max_losses_per_ack: Some(4),
            resends_beyond_window: 4,
            sub_packet_window: SubPacketWindow::Blocked,
            initial_window_packets: 1,
            ..Self::default()
        }
    }

    /// The decisions of arvidn/libtorrent: four packets must be acknowledged beyond a gap, up to five are sent again
    /// at once, the fourth timeout in a row ends the connection, and so does the timeout of a packet that has left three times; one
    /// packet to begin with; timeouts run from the last packet heard, and are looked at twice a second. Its search for the path's MTU is [`Mtu::Halving`].
    #[must_use]
    pub fn libtorrent() -> Self {
        Self {
            sack_threshold: 4,
            max_losses_per_ack: Some(5),
            resends_beyond_window: 5,
            masks_count_alone: true,
            rto_rule: RttRule::Libtorrent,
            rto_margin: Duration::ZERO,
            rto_after_silence: true,
            rto_polling: Some(Duration::from_millis(500)),
            max_retransmissions: 3,
            max_transmissions: Some(3),
            initial_window_packets: 1,
            keepalive: None,
            ..Self::default()
        }
    }

    /// What a host on the Internet wants, beside peers of every make: buffers that grow from 256 KiB to 16 MiB with the
    /// path, enough for 1 Gbit/s at 100 ms; windows of more packets towards peers that announce them; a keepalive every
    /// 9 s towards strangers, some of which hang up after 10 s without traffic, and one every 29 s to each address of our own kind; a first window of ten packets
    /// (RFC 6928), and windows that are paced; losses told by time, and a retransmission timeout of at least 200 ms
    /// (Linux's TCP, librqbit), seven of which in a row take 25 s or more; windows of zero
    /// probed after 1 s, 2 s and so on up to a minute (RFC 9293 section 3.8.6.1).
    ///
    /// [`Config::default`] prescribes fixed buffers instead, so that what is compared in a simulation differs in nothing
    /// but what the comparison is of.
    #[must_use]
    pub fn internet() -> Self {
        Self {
            send_buffer_bytes: 256 << 10,
            send_buffer_limit_bytes: Some(MAX_WINDOW_BYTES),
            receive_buffer_bytes: 256 << 10,
            receive_buffer_limit_bytes: Some(MAX_WINDOW_BYTES),
            seq_window_packets: crate::reorder::MAX_PACKETS,
            announce: true,
            keepalive_strangers: Some(Duration::from_secs(9)),
            keepalive_step: Duration::from_secs(1),
            keepalive_shared: Some(Duration::from_secs(300)),
            idle_told_late: true,
            rack: true,
            pace_windows: true,
            initial_window_packets: 10,
            min_rto: Duration::from_millis(200),
            max_retransmissions: 7,
            zero_window_probe: Duration::from_secs(1),
            zero_window_probe_max: Duration::from_secs(60),
            ..Self::default()
        }
    }

    /// What a controller for a connection of this kind should know of its path.
    #[must_use]
    pub fn path(&self) -> Path {
        let mss_bytes = PathMtu::new(self.mtu).mss_bytes();
        let usual_bytes = match self.mtu {
            Mtu::Fixed(_) => mss_bytes,
            Mtu::Search { ceiling_bytes, .. } | Mtu::Halving { ceiling_bytes, .. } => {
                mss_bytes.max(u32::from(ceiling_bytes).saturating_sub(HEADER_BYTES as u32))
            }
        };
        Path {
            mss_bytes,
            initial_cwnd_bytes: usual_bytes * u32::from(self.initial_window_packets),
            max_cwnd_bytes: self.max_cwnd_bytes(),
        }
    }

    /// What the send buffer can grow to bounds the congestion window.
    pub(crate) fn max_cwnd_bytes(&self) -> u64 {
        u64::from(self.send_buffer_limit_bytes.unwrap_or(self.send_buffer_bytes))
    }

    /// The same with every number brought into the range in which the rooms of the connection rely on it; the very
    /// same where that is so already.
    pub(crate) fn checked(config: Arc<Self>) -> Arc<Self> {
        let sound = (*config).clone().in_range();
        if sound == *config { config } else { Arc::new(sound) }
    }

    fn in_range(mut self) -> Self {
        self.max_outstanding_packets = self.max_outstanding_packets.clamp(1, crate::outbox::MAX_PACKETS);
        self.seq_window_packets = self.seq_window_packets.clamp(1, crate::reorder::MAX_PACKETS);
        self.sack_threshold = self.sack_threshold.clamp(1, MAX_SACK_THRESHOLD as u8);
        self.send_buffer_bytes = self.send_buffer_bytes.max(1);
        // The window is a 32-bit field, but a peer that keeps 16 MiB under way is none that exists.
        self.receive_buffer_bytes = self.receive_buffer_bytes.clamp(1, MAX_WINDOW_BYTES);
        let (sends, receives) = (self.send_buffer_bytes, self.receive_buffer_bytes);
        self.send_buffer_limit_bytes = self.send_buffer_limit_bytes.map(|limit| limit.max(sends));
        self.receive_buffer_limit_bytes =
            self.receive_buffer_limit_bytes.map(|limit| limit.clamp(receives, MAX_WINDOW_BYTES));
        self.initial_window_packets = self.initial_window_packets.max(1);
        self
    }
}

/// Windows are cut to this: no peer's claim makes more than this wait in the network.
pub(crate) const MAX_WINDOW_BYTES: u32 = 16 << 20;

/// The largest [`Config::sack_threshold`].
pub(crate) const MAX_SACK_THRESHOLD: usize = 4;
