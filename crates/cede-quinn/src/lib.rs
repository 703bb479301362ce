//! Background congestion control for QUIC: Cede's controllers for [quinn](https://docs.rs/quinn/0.11) 0.11.
//!
//! A QUIC transfer that nobody waits for (an update, a backup, model weights) should take what others leave. Give
//! quinn a [`Scavenger`] and it does:
//!
//! ```
//! use cede_quinn::Scavenger;
//! use std::sync::Arc;
//!
//! let mut transport = quinn::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(Scavenger::ledbat_plus_plus()));
//! // client_config.transport_config(Arc::new(transport));
//! ```
//!
//! Parameters are those of `cede explain NAME`, as they are written there:
//!
//! ```
//! # fn main() -> Result<(), cede_quinn::Error> {
//! let gentle = cede_quinn::Scavenger::ledbat_plus_plus().set("target", "25 ms")?;
//! # let _ = gentle;
//! # Ok(())
//! # }
//! ```
//!
//! What the controller makes of the path is in its snapshot:
//!
//! ```no_run
//! # fn told(connection: &quinn::Connection) {
//! let state = connection.congestion_state().into_any();
//! if let Ok(controller) = state.downcast::<cede_quinn::QuicController>() {
//!     println!("{}: {:?}", controller.name(), controller.snapshot());
//! }
//! # }
//! ```
//!
//! The controller rules what *this* side sends. Whoever uploads in the background configures its client, whoever
//! serves background downloads its server (or one transport configuration per kind of connection).
//!
//! # Which one
//! * [`Scavenger::ledbat_plus_plus`]: the choice for nearly everybody. Its draft defines it on the round-trip time, which is
//!   what QUIC measures, so nothing is lost: it is LEDBAT++ in full.
//! * [`Scavenger::ledbat_on_rtt`]: RFC 6817's LEDBAT with the RTT in the place of the one-way delay that QUIC does not tell.
//!   Queues on the way *back* make it yield too, and the base RTT hides what drift and route changes do. It is not what
//!   the RFC describes, hence the name.
//! * [`Scavenger::nice`]: TCP-NICE. Its windows below two packets cannot be expressed (see below), so of many flows on a slow
//!   link it takes more than the original.
//! * [`Scavenger::named`] with `"cede"`: our own, which yields to BBR and to what stands behind FQ-CoDel as well. It misses the one-way delay
//!   where a congested way back makes round trips long; `docs/cede-controller.md` says what it trades.
//! * [`Scavenger::named`]: any other controller of `cede list controllers` that yields and is ruled by a window, with
//!   parameters. TCP-LP is among them, on the raw RTT ([`AckDelay::Included`]), where it fills an idle link and yields as it
//!   should. Those that cannot work here are refused with the reason: [`UNFIT`].
//!
//! What each does beside quinn's own CUBIC and BBR is measured in the simulated world by
//! `cargo run --release -p cede-quinn --example compare`; the crate's tests hold those that are offered to the battery's
//! marks for using, giving up and taking back a link.
//!
//! # What quinn 0.11 does not tell, and what is done about it
//! * **No one-way delay.** QUIC carries no time stamps (draft-smith-quic-receive-ts would). Controllers with a `signal`
//!   are built with `signal = rtt`; asking for `owd` is an [`Error`].
//! * **The peer's ack delay is inside `now - sent`.** A receiver may sit on an acknowledgement for 25 ms, as much as many a
//!   delay target. quinn subtracts the delay that the peer reports, but only inside its own smoothed RTT. With
//!   [`AckDelay::Removed`], the default, the sample is recovered from two successive values of that average, one
//!   acknowledgement late; [`AckDelay::Included`] takes the raw one. Ask the peer for prompt acknowledgements with
//!   `TransportConfig::ack_frequency_config` if both ends know that extension.
//! * **No control of pacing.** quinn paces at 1.25 windows per smoothed RTT, whatever the controller says. Controllers
//!   that steer by rate (BBR, PCC Vivace, Proteus) are refused.
//! * **`in_flight + next >= window` blocks**, so a window of n packets needs an octet more: every window is reported with
//!   that octet. A window of zero would divide by zero; none is below two packets, as with one packet under way each
//!   round trip would wait for the peer's delayed acknowledgement.
//! * **No timers.** What a controller wants done at a certain time (LEDBAT++'s slowdowns) is done at the next packet sent,
//!   acknowledged or lost after it.
//! * **`app_limited` is of the application alone.** Where flow control, not the window, holds data back, quinn says that nothing is
//!   limited. A window of which a round trip used less than three quarters is taken to be limited too (RFC 9002, section 7.8).
//! * **Losses come as a sum of octets and the newest packet's time**, and retransmission timeouts not at all: a probe
//!   timeout changes no window in QUIC (RFC 9002, section 7.5), persistent congestion (7.6) is told to the controller as
//!   a timeout.
//! * **ECN marks come as a congestion event without lost octets**, one for a group of marked packets.
//! * **A new local port (NAT rebinding) clones the controller.** The clone shares its state with the original: the way is
//!   taken to be the same. A new peer address begins anew, as quinn builds a fresh one.
//!
//! # Limits
//! 65,536 departures are remembered per connection (about 5 MB at most; some kilobytes in practice). Windows end at
//! [`Scavenger::max_window_bytes`], 64 MiB by default.
//!
//! **Invariant:** no congestion control is decided here; this crate only translates.

mod adapter;
mod config;
mod ledger;
mod sample;

pub use adapter::QuicController;
/// What [`Scavenger::named`] takes, [`Error`] holds and [`QuicController::snapshot`] answers.
pub use cede_cc::{ParamError, ParamValue, Params, Snapshot};
pub use config::{Error, Scavenger, UNFIT};
pub use sample::AckDelay;
