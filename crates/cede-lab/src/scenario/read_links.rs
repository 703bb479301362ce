//! Reading links.

use super::model::{Buffer, BurstLoss, Limit, Link, Reorder};
use super::problem::Origin;
use super::read_queue::{read_policer, read_queue, read_shaper};
use super::reader::{Fields, Reader};
use cede_net::Discipline;
use cede_units::{Duration, Rate};

/// What a table of a link leaves to another table.
#[derive(Clone, Default)]
pub(crate) struct Inherited<'a> {
    /// The table to look a missing key up in.
    pub table: Option<Fields<'a>>,
    /// The rate and delay where neither table gives them.
    pub rate_and_delay: Option<(Rate, Duration)>,
}

/// A link with the places of its buffer and its policer, for the checks that need more than the link.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PlacedLink {
    pub link: Link,
    pub buffer_origin: Origin,
    pub policer_origin: Origin,
}

/// Reads a link from the tables in order: a key is taken from the first that gives it.
pub(crate) fn read_link(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    inherited: &Inherited<'_>,
) -> Option<PlacedLink> {
    let from = |key: &str| match &inherited.table {
        Some(table) if !fields.has(key) && table.has(key) => table,
        _ => fields,
    };
    let rate = match inherited.rate_and_delay {
        Some((rate, _)) if !from("rate").has("rate") => Some(rate),
        _ => from("rate").get(reader, "rate"),
    };
    let delay = match inherited.rate_and_delay {
        Some((_, delay)) if !from("delay").has("delay") => Some(delay),
        _ => from("delay").get(reader, "delay"),
    };
    let buffer = from("buffer").get(reader, "buffer");
    let in_bdp = matches!(buffer, None | Some(Buffer::Bdp(_)));
    let bdp_rtt = from("bdp_rtt").maybe(reader, "bdp_rtt");
    if !in_bdp {
        fields.refuse(reader, &["bdp_rtt"], "only with a `buffer` in BDP");
    }
    let count_in_service = from("count_in_service").get(reader, "count_in_service");
    let count_delayed = from("count_delayed").get(reader, "count_delayed");
    let queue = read_queue(reader, from("queue"));
    let ecn = from("ecn").get(reader, "ecn");
    let policer = read_policer(reader, from("policer"));
    let shaper = read_shaper(reader, from("burst"), from("peak"));
    let loss = from("loss").get(reader, "loss");
    let loss_burst = read_burst(reader, from("loss_burst"));
    let reorder = read_reorder(reader, from("reorder"));
    let duplicate = from("duplicate").get(reader, "duplicate");
    let jitter = from("jitter").get(reader, "jitter");
    let jitter_reorders = from("jitter_reorders").get(reader, "jitter_reorders");
    let batch = from("batch").get(reader, "batch");
    let link = Link {
        rate: rate?,
        delay: delay?,
        buffer: buffer?,
        bdp_rtt: bdp_rtt?.filter(|_| in_bdp),
        count_in_service: count_in_service?,
        count_delayed: count_delayed?,
        queue: queue?,
        ecn: ecn?,
        policer: policer?,
        shaper: shaper?,
        loss: loss?,
        loss_burst: loss_burst?,
        reorder: reorder?,
        duplicate: duplicate?,
        jitter: jitter?,
        jitter_reorders: jitter_reorders?,
        batch: batch?,
    };
    check_counting(reader, &link, from("count_delayed").origin("count_delayed"))?;
    check_marking(reader, &link, from("ecn").origin("ecn"))?;
    if !link.ecn
        && let Some(queue) = Fields::quiet("queue.pie", from("queue").node("queue"), from("queue").at)
    {
        queue.refuse(reader, &["mark_max"], "only with `ecn`");
    }
    if link.jitter_reorders && !from("jitter").has("jitter") {
        from("jitter_reorders").refuse(reader, &["jitter_reorders"], "only with a `jitter`");
    }
    check_peak(reader, &link, from("peak").origin("peak"))?;
    let [buffer_origin, policer_origin] = ["buffer", "policer"].map(|key| from(key).origin(key));
    Some(PlacedLink { link, buffer_origin, policer_origin })
}

/// A queue that drops only when it is full has nothing to mark.
fn check_marking(reader: &mut Reader<'_>, link: &Link, at: Origin) -> Option<()> {
    let plain = matches!(link.queue, Discipline::DropTail | Discipline::HeadDrop);
    if !(link.ecn && plain) {
        return Some(());
    }
    let help = vec!["allowed: with `queue` codel, fq-codel, pie or red".to_string()];
    reader.report(at, "`ecn` has no meaning here: this queue marks nothing", help);
    None
}

/// A link that never reaches its rate has another.
fn check_peak(reader: &mut Reader<'_>, link: &Link, at: Origin) -> Option<()> {
    let Some(peak) = link.shaper.and_then(|shaper| shaper.peak).filter(|peak| *peak < link.rate) else {
        return Some(());
    };
    let help = vec![format!("allowed: a rate from that of the link on, {}", link.rate)];
    reader.report(at, format!("`peak` is {peak}, below `rate`"), help);
    None
}

/// netem counts packets, and its queue is its own: what manages a queue sits behind it.
fn check_counting(reader: &mut Reader<'_>, link: &Link, at: Origin) -> Option<()> {
    let plain = link.queue == Discipline::DropTail && link.policer.is_none() && link.shaper.is_none();
    if !link.count_delayed || (plain && matches!(link.buffer, Buffer::Packets(_))) {
        return Some(());
    }
    let help = vec![
        "allowed: with a buffer in packets, `queue = \"droptail\"`, and neither policer nor burst"
            .to_string(),
    ];
    reader.report(at, "`count_delayed` is for a plain queue that counts packets", help);
    None
}

fn read_burst(reader: &mut Reader<'_>, link: &Fields<'_>) -> Option<Option<BurstLoss>> {
    let Some(node) = link.node("loss_burst") else { return Some(None) };
    let fields = Fields::open(reader, "loss_burst", Some(node), node.origin)?;
    let enter = fields.get(reader, "enter");
    let leave: Option<f64> = fields.get(reader, "leave");
    let loss_bad = fields.get(reader, "loss_bad");
    let loss_good = fields.get(reader, "loss_good");
    if leave == Some(0.0) {
        let help = vec!["allowed: a number above 0, up to 1".to_string()];
        reader.report(fields.origin("leave"), "`leave` is 0: the first burst would never end", help);
        return None;
    }
    Some(Some(BurstLoss { enter: enter?, leave: leave?, loss_bad: loss_bad?, loss_good: loss_good? }))
}

fn read_reorder(reader: &mut Reader<'_>, link: &Fields<'_>) -> Option<Option<Reorder>> {
    let Some(node) = link.node("reorder") else { return Some(None) };
    let fields = Fields::open(reader, "reorder", Some(node), node.origin)?;
    let probability = fields.get(reader, "probability");
    let extra_delay = fields.get(reader, "extra_delay");
    Some(Some(Reorder { probability: probability?, extra_delay: extra_delay? }))
}

/// Checks that a policer lets the largest packet through at all.
pub(crate) fn check_policer(reader: &mut Reader<'_>, placed: &PlacedLink, packet_bytes: u32) {
    let Some(policer) = placed.link.policer.filter(|it| it.burst_bytes < u64::from(packet_bytes)) else {
        return;
    };
    let message = format!("the policer's `burst` is {} B, less than one packet", policer.burst_bytes);
    let help = vec![format!("allowed: at least {packet_bytes} B, the largest packet of any flow")];
    reader.report(placed.policer_origin, message, help);
}

/// Checks a buffer against what only the whole scenario knows: what a BDP is, and the largest packet.
pub(crate) fn check_buffer(
    reader: &mut Reader<'_>,
    placed: &PlacedLink,
    default_rtt: Option<Duration>,
    packet_bytes: u32,
) {
    let at = placed.buffer_origin;
    match placed.link.limit(default_rtt) {
        None => {
            let help = vec![
                "allowed: `bdp_rtt = \"50 ms\"` beside it, or a buffer in packets, octets or time"
                    .to_string(),
            ];
            reader.report(at, "a buffer in BDP needs a round-trip time", help);
        }
        Some(Limit::Bytes(bytes)) if bytes < u64::from(packet_bytes) => {
            let message =
                format!("the buffer `{}` holds {bytes} B, less than one packet", placed.link.buffer);
            reader.report(
                at,
                message,
                vec![format!("allowed: at least {packet_bytes} B, the largest packet of any flow")],
            );
        }
        Some(_) => {}
    }
}
