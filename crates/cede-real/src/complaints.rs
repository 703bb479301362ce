//! What routers and peers say of our datagrams (ICMP).
//!
//! Source: RFC 1191 and RFC 8201 for what is too large, RFC 5927 for what to believe. Anybody can send ICMP. A complaint
//! is believed where it quotes the header of a packet that is under way on a connection with that peer, by its connection
//! id and its number; even so it only ever makes packets smaller, never below the search's floor, and ends attempts to connect. A
//! connection that is up has its timeouts to find out that nobody is there, or asks again where it has nothing under way
//! ([`Connection::nobody_there`](cede_utp::Connection::nobody_there)).
//!
//! **What it leaves out.** Systems other than Linux; complaints that quote less than a whole header (RFC 792 asks for
//! eight octets, which are UDP's own; routers have quoted more since RFC 1812).
//! **How it was validated.** `tests/icmp.rs`: the kernel's own complaints, and forged ones.

use crate::complaint::{Complaint, Reason};
use crate::shared::State;
use crate::udp::header_bytes;
use crate::way::Way;
use cede_units::{Instant, Seq16};
use cede_wire::utp::{Kind, VERSION, View};

impl State {
    /// Heeds a complaint, or counts it as incredible.
    pub fn heed(&mut self, now: Instant, complaint: &Complaint) {
        let Some(quoted) = Quoted::read(&complaint.head) else {
            self.complaints_ignored += 1;
            return;
        };
        let (way, head) = (Way::to(complaint.peer), &complaint.head[..]);
        let credible = self.endpoint.is_under_way(way, head, quoted.seq);
        match complaint.reason {
            Reason::Unreachable | Reason::NobodyThere if credible && quoted.opens => {
                self.endpoint.unreachable(way, head);
            }
            Reason::NobodyThere if self.endpoint.nobody_there(now, way, head, quoted.seq) => {}
            Reason::TooBig { mtu_bytes } if credible => {
                let fits_bytes = mtu_bytes.checked_sub(header_bytes(complaint.peer));
                self.endpoint.packet_too_big(now, way, head, fits_bytes);
            }
            _ => {
                self.complaints_ignored += 1;
                return;
            }
        }
        self.complaints_heeded += 1;
    }
}

/// What a quoted header says.
struct Quoted {
    opens: bool,
    seq: Seq16,
}

impl Quoted {
    fn read(head: &[u8]) -> Option<Self> {
        let fields = View::new(head)?;
        let kind = Kind::from_number(fields.kind_number())?;
        (fields.version() == VERSION).then(|| Self { opens: kind == Kind::Syn, seq: fields.seq() })
    }
}
