//! What two `cede` processes say to each other over a uTP stream.
//!
//! Three things are carried: a **test** of what a path gives ([`mod@bench`]), a **file** ([`mod@file`]), and the TCP
//! connections of other programs ([`relay`]). Each begins with the same [`greeting`], by which a stray program, or a
//! release that speaks another version, is told so in words; then frames of one grammar follow ([`message`]).
//!
//! # Trust
//! Where both ends have the same [`Key`], all that they say is encrypted and authenticated beneath everything else
//! ([`seal`], which says against whom that helps), and nobody without it is heard: strangers are kept apart, few and for
//! a short time, until they have shown it ([`Door`]). Who has the key is trusted no further than in the clear.
//!
//! Without a key nothing is encrypted or authenticated: whoever reaches the port may speak. Therefore each length that the
//! wire states has a bound, names of files lose whatever could lead out of a folder ([`file::safe_name`]), nothing that exists is
//! overwritten unless the receiver's user said so, and silence ends whatever waits ([`SILENCE`]).
//!
//! **Invariant:** nothing here prints, reads a command line, or knows a terminal; progress is told through callbacks.

pub mod bench;
mod dial;
mod door;
mod error;
pub mod file;
mod framed;
pub mod greeting;
mod key;
mod line;
mod link;
pub mod message;
mod offer;
mod opening;
pub mod relay;
pub mod seal;
mod serve;
mod stop;
mod untrusted;

pub use dial::{DialError, Target, dial};
pub use door::Door;
pub use error::WireError;
pub use framed::{FrameReader, FrameWriter};
pub use key::{KEY_BYTES, Key, KeyError};
pub use line::Line;
pub use link::Link;
pub use opening::SILENCE;
pub use serve::{Allowed, Event, Server, Share};
pub use stop::{Stop, Stopper};

/// The port where none is given: the number of LEDBAT's RFC.
pub const DEFAULT_PORT: u16 = 6817;
