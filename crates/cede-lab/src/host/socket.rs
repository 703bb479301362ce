//! One end of a flow: a transport with an application behind it.

use super::transport::{SocketSetup, Transport};
use crate::journal::{Entry, Happening, Journal};
use crate::traffic::Source;
use crate::view::SocketView;
use cede_net::{Address, Datagram, Output};
use cede_units::{Duration, Instant};
use cede_wire::Payload;

/// An application keeps this much written and unsent, so that a flow that is told to stop has little left to say.
const WRITE_AHEAD_BYTES: u64 = 32 << 10;

/// One end of a flow.
pub struct Socket {
    me: Address,
    peer: Address,
    transport: Transport,
    role: Role,
    start: Instant,
    /// The peer will send nothing more.
    peer_finished: bool,
    /// Why the connection ended, where it ended badly.
    error: Option<String>,
    /// What happens to it, where somebody wants to know.
    journal: Option<Box<Journal>>,
}

enum Role {
    Sender { source: Source, written: u64, closed: bool, finished_at: Option<Instant> },
    Receiver { received: u64, intact: bool },
}

impl Socket {
    /// The end of a flow that sends what `source` offers, from the source's start on.
    #[must_use]
    pub fn sender(ends: (Address, Address), setup: SocketSetup, source: Source, start: Instant) -> Self {
        let role = Role::Sender { source, written: 0, closed: false, finished_at: None };
        Self::new(ends, setup, role, start)
    }

    /// The end of a flow that receives, and checks that what comes is what was sent.
    #[must_use]
    pub fn receiver(ends: (Address, Address), setup: SocketSetup) -> Self {
        let role = Role::Receiver { received: 0, intact: true };
        Self::new(ends, setup, role, Instant::NEVER)
    }

    fn new((me, peer): (Address, Address), setup: SocketSetup, role: Role, start: Instant) -> Self {
        let transport = setup.idle();
        Self { me, peer, transport, role, start, peer_finished: false, error: None, journal: None }
    }

    /// The same socket, which writes down what happens to it.
    #[must_use]
    pub fn with_journal(mut self) -> Self {
        self.journal = Some(Box::default());
        self
    }

    /// What happened since this was last asked; nothing without a journal.
    #[must_use]
    pub fn take_journal(&self) -> Vec<Entry> {
        self.journal.as_ref().map(|journal| journal.take()).unwrap_or_default()
    }

    /// Payload octets received in order.
    #[must_use]
    pub const fn received_bytes(&self) -> u64 {
        match self.role {
            Role::Receiver { received, .. } => received,
            Role::Sender { .. } => 0,
        }
    }

    /// Whether all that was received is what was sent.
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        match self.role {
            Role::Receiver { intact, .. } => intact,
            Role::Sender { .. } => true,
        }
    }

    /// When, by the host's clock, everything had been sent and acknowledged.
    #[must_use]
    pub const fn finished_at(&self) -> Option<Instant> {
        match self.role {
            Role::Sender { finished_at, .. } => finished_at,
            Role::Receiver { .. } => None,
        }
    }

    /// What can be seen from outside.
    #[must_use]
    pub fn view(&self) -> SocketView {
        SocketView { error: self.error.clone(), ..self.transport.view() }
    }

    pub(super) const fn port(&self) -> u16 {
        self.me.port
    }

    /// Moves all of the socket's times by `span`, to the clock of the host that it lives on.
    pub(super) fn delay(&mut self, span: Duration) {
        self.start += span;
        if let Role::Sender { source, .. } = &mut self.role {
            source.delay(span);
        }
    }

    /// Takes what happens and sends what there is to send; returns the next deadline.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        datagram: Option<Datagram>,
        output: &mut Output,
    ) -> Instant {
        if now >= self.start && self.transport.is_idle() && self.transport.connect(now, self.me, self.peer) {
            self.note(now, Happening::Opening);
        }
        match datagram {
            Some(datagram) => self.transport.handle(now, datagram),
            None => self.transport.handle_timeout(now),
        }
        self.work(now, output);
        if self.journal.is_some() {
            self.keep_journal(now);
        }
        self.deadline()
    }

    fn note(&mut self, now: Instant, happening: Happening) {
        if let Some(journal) = &mut self.journal {
            journal.note(now, happening);
        }
    }

    fn keep_journal(&mut self, now: Instant) {
        let Role::Sender { closed, finished_at, .. } = self.role else { return };
        let mut standing = self.transport.standing();
        (standing.stopped, standing.finished) = (closed, finished_at.is_some());
        if let Some(journal) = &mut self.journal {
            journal.compare(now, standing);
        }
    }

    /// Lets the application read and write, and sends what the transport then has to send.
    fn work(&mut self, now: Instant, output: &mut Output) {
        loop {
            self.hear_events(now);
            self.serve_application(now);
            if !self.transmit(now, output) {
                return;
            }
        }
    }

    fn hear_events(&mut self, now: Instant) {
        while let Some(happening) = self.transport.next_happening() {
            match &happening {
                Happening::PeerFinished => self.peer_finished = true,
                Happening::Failed(reason) => self.error = Some(reason.clone()),
                _ => {}
            }
            self.note(now, happening);
        }
    }

    fn serve_application(&mut self, now: Instant) {
        match &mut self.role {
            Role::Receiver { received, intact } => {
                while let Some(payload) = self.transport.read() {
                    *intact &= continues(&payload, *received);
                    *received += u64::from(payload.len());
                }
                if self.peer_finished {
                    self.transport.close();
                }
            }
            Role::Sender { source, written, closed, finished_at } => {
                let offer = source.offer(now);
                let room = WRITE_AHEAD_BYTES.saturating_sub(*written - self.transport.first_sent_bytes());
                // Half a buffer at a time: one write serves many packets.
                if offer > 0 && room >= (WRITE_AHEAD_BYTES / 2).min(offer) && !*closed {
                    let payload = Payload::Pattern { start: *written, len: offer.min(room) as u32 };
                    let accepted = u64::from(self.transport.write(payload));
                    source.taken(accepted);
                    *written += accepted;
                }
                if source.is_finished() && !*closed && !self.transport.is_idle() {
                    self.transport.close();
                    *closed = true;
                }
                if *closed && finished_at.is_none() && self.transport.acked_bytes() >= *written {
                    *finished_at = Some(now);
                }
            }
        }
    }

    /// Sends everything that may leave; says whether there was anything.
    fn transmit(&mut self, now: Instant, output: &mut Output) -> bool {
        let before = output.sends.len();
        while let Some(datagram) = self.transport.poll_transmit(now, self.me, self.peer) {
            output.sends.push(datagram);
        }
        output.sends.len() > before
    }

    fn deadline(&self) -> Instant {
        let transport = match self.transport.is_idle() {
            true => self.start,
            false => self.transport.poll_timeout().unwrap_or(Instant::NEVER),
        };
        let application = match &self.role {
            Role::Sender { source, closed: false, .. } => source.next_change(),
            _ => Instant::NEVER,
        };
        transport.min(application.max(self.start))
    }
}

/// Whether a payload is the run of the pattern that begins at `offset`.
fn continues(payload: &Payload, offset: u64) -> bool {
    match payload {
        Payload::Pattern { start, .. } => *start == offset,
        Payload::Empty => true,
        Payload::Shared { .. } | Payload::Pair { .. } => {
            payload.to_vec().iter().zip(offset..).all(|(&o, at)| o == cede_wire::pattern_octet(at))
        }
    }
}
