//! uTP on real UDP sockets.
mod clock;
mod config;
mod driver;
mod error;
mod foreign;
mod outgoing;
mod shared;
mod socket;
mod stream;
mod udp;

pub use config::{ControllerChoice, SocketConfig, StreamConfig};
pub use error::{BindError, ConnectError};
pub use foreign::{Foreign, ForeignDatagram};
pub use socket::{SocketStatistics, UtpSocket};
pub use stream::{OwnedReadHalf, OwnedWriteHalf, Reading, UtpStream};
