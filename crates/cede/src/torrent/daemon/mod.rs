//! `cede torrent daemon`: torrents that come and go, as others ask for it over HTTP.

pub mod args;
mod auth;
mod change;
mod chosen;
mod common;
mod content;
mod entry;
mod fields;
mod http;
mod metrics;
mod own;
mod queue;
mod roster;
mod rpc;
mod session;
mod store;
mod terms;

use crate::failure::Failure;
use crate::torrent::place::{check_folder, make_folder};
use crate::torrent::swarm;
use crate::{interrupt, screen};
use args::DaemonArgs;
use auth::Auth;
use roster::Daemon;
use std::rc::Rc;
use store::Store;

/// Runs until Ctrl-C, or until somebody asks for the end.
pub fn daemon(args: &DaemonArgs) -> Result<(), Failure> {
    let auth = Auth::of(args)?;
    check_folder(&args.output)?;
    make_folder(&args.output)?;
    let nowhere =
        || Failure::Usage("--state: name a folder to remember torrents in, as there is no $HOME".to_owned());
    let state = args.state.clone().or_else(Store::usual).ok_or_else(nowhere)?;
    let store = Store::open(&state)?;
    interrupt::bear_with_several();
    swarm::run(serve(args, auth, store))
}

async fn serve(args: &DaemonArgs, auth: Auth, store: Store) -> Result<(), Failure> {
    let listener = http::bind(args.rpc)?;
    let address = listener.local_addr().map_err(|error| Failure::Failed(error.to_string()))?;
    let daemon = Daemon::begin(args, store).await?;
    screen::mention(&format!(
        "takes orders at http://{address}/ (a page; /transmission/rpc for programs; /metrics)\n"
    ));
    daemon.take_up();
    let server = http::Server::new(daemon.clone(), Rc::new(auth))?;
    let outcome = tokio::select! {
        never = server.run(listener) => match never {},
        () = interrupt::asked() => Err(Failure::Interrupted("torrents go on when it is begun anew".to_owned())),
        () = daemon.closed() => Ok(()),
        () = swarm::unread() => Ok(()),
    };
    daemon.end().await;
    outcome
}
