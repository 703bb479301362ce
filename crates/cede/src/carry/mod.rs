//! `cede serve`, `send`, `recv`, `pipe` and `proxy`: data over uTP on real sockets.

pub mod args;
mod document;
mod gauge;
pub mod key;
pub mod numbers;
pub mod pipe;
pub mod proxy;
pub mod recv;
pub mod send;
pub mod serve;
mod table;
mod transfer;

use crate::failure::Failure;
use crate::interrupt;
use crate::screen;
use args::ControllerArgs;
use cede_carry::bench::ControllerSpec;
use cede_carry::{DialError, Stop, Stopper, Target, WireError};
use cede_real::{BindError, SocketConfig, StreamConfig, UtpSocket};
use std::future::Future;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Runs a verb on a runtime of one thread: a uTP socket has one driver, and handing octets from thread to thread costs
/// more than it gains.
fn run<F: Future<Output = Result<(), Failure>>>(verb: impl FnOnce(Stop) -> F) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("no runtime: {error}")))?;
    let outcome = runtime.block_on(async {
        let stopper = Stopper::new();
        let stop = stopper.stop();
        tokio::spawn(async move {
            interrupt::asked().await;
            stopper.ask();
        });
        verb(stop).await
    });
    // A thread may be reading from a terminal: it is not waited for.
    runtime.shutdown_background();
    outcome.and_then(|()| screen::all_told())
}

/// How streams are opened with this controller.
fn stream_config(controller: &ControllerArgs) -> Result<(ControllerSpec, StreamConfig), Failure> {
    let spec = controller.spec().map_err(Failure::Usage)?;
    let choice = spec.choice().map_err(|error| Failure::Usage(format!("-C {}: {error}", spec.name)))?;
    Ok((spec, StreamConfig { controller: choice, ..StreamConfig::default() }))
}

fn target(text: &str, port: u16) -> Result<Target, Failure> {
    Target::parse(text, port).map_err(|error| Failure::Usage(format!("{text}: {error}")))
}

/// A socket that waits at a port; where no address is given at all of them, over IPv6 and IPv4 as far as the system has
/// them.
async fn listen(bind: Option<IpAddr>, port: u16, stream: StreamConfig) -> Result<UtpSocket, Failure> {
    let config = SocketConfig { stream, ..SocketConfig::default() };
    let all = [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)];
    let addresses = bind.map_or(all.to_vec(), |address| vec![address]);
    let mut last = None;
    for address in addresses {
        let address = SocketAddr::new(address, port);
        match UtpSocket::bind_with(address, config.clone()).await {
            Ok(socket) => return Ok(socket),
            Err(error) => {
                let is_taken = is_taken(&error);
                last = Some(unbound(address, &error));
                // Another address of the same port would only hide it.
                if is_taken {
                    break;
                }
            }
        }
    }
    Err(last.unwrap_or_else(|| Failure::Failed("there is no address to wait at".to_owned())))
}

fn is_taken(error: &BindError) -> bool {
    matches!(error, BindError::Io(error) if error.kind() == ErrorKind::AddrInUse)
}

fn unbound(address: SocketAddr, error: &BindError) -> Failure {
    let port = address.port();
    match error {
        BindError::Io(error) if error.kind() == ErrorKind::AddrInUse => Failure::Failed(format!(
            "UDP port {port} is taken; give another (0 for a free one), or see who has it: ss -ulnp 'sport = :{port}'"
        )),
        BindError::Io(error) if error.kind() == ErrorKind::AddrNotAvailable => {
            Failure::Failed(format!("{} is no address of this machine; see: ip address", address.ip()))
        }
        BindError::Io(error) if error.kind() == ErrorKind::PermissionDenied => {
            Failure::NotPermitted(format!("UDP port {port} is not permitted: {error}; take one above 1023"))
        }
        error => Failure::Failed(format!("cannot wait at {address}: {error}")),
    }
}

/// A failure to reach the other end, with what to do. `there` is the command that is to run there.
fn unreached(error: &DialError, there: &str) -> Failure {
    let hint = match error {
        DialError::Unknown { .. } => "; check the spelling, or give an address".to_owned(),
        DialError::NobodyThere(_) => format!("; start `{there}` there"),
        DialError::Silent(_) => {
            format!("; is `{there}` running there, and does UDP pass every firewall on the way?")
        }
        DialError::Bind(_) | DialError::Connect(_) => String::new(),
    };
    Failure::Failed(format!("{error}{hint}"))
}

/// What a broken conversation means to the user.
fn broken(error: &WireError) -> Failure {
    Failure::Failed(error.to_string())
}

/// A socket's address as others may write it.
fn place(socket: &UtpSocket) -> String {
    let address = socket.local_addr();
    match address.ip() {
        IpAddr::V6(ip) if ip.is_unspecified() => format!("UDP port {} (IPv6 and IPv4)", address.port()),
        IpAddr::V4(ip) if ip.is_unspecified() => format!("UDP port {} (IPv4)", address.port()),
        _ => format!("{address} (UDP)"),
    }
}
