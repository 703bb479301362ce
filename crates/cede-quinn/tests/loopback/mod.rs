//! A background upload from a quinn client to a quinn server, both in this process.

use cede_cc::Snapshot;
use cede_quinn::{QuicController, Scavenger};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

const NAME: &str = "server.test";

/// What arrived, and what our controller said when all of it had.
pub struct Upload {
    pub received: Vec<u8>,
    pub controller: &'static str,
    pub snapshot: Snapshot,
}

/// Sends `content` with LEDBAT++ and waits until the server has all of it.
pub async fn upload(content: Vec<u8>) -> Result<Upload, Box<dyn Error>> {
    let certified = rcgen::generate_simple_self_signed(vec![NAME.to_string()])?;
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let server_config = ServerConfig::with_single_cert(vec![certified.cert.der().clone()], key.into())?;
    let server = Endpoint::server(server_config, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let to = server.local_addr()?;
    let limit = content.len();
    let receiving = tokio::spawn(async move {
        let connection =
            server.accept().await.ok_or("the server was closed")?.await.map_err(|e| e.to_string())?;
        let mut stream = connection.accept_uni().await.map_err(|e| e.to_string())?;
        let received = stream.read_to_end(limit).await.map_err(|e| e.to_string())?;
        connection.close(VarInt::from_u32(0), b"thanks");
        server.wait_idle().await;
        Ok::<_, String>(received)
    });

    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Scavenger::ledbat_plus_plus()));
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone())?;
    let mut client_config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    client_config.transport_config(Arc::new(transport));
    let mut client = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    client.set_default_client_config(client_config);

    let connection = client.connect(to, NAME)?.await?;
    let mut stream = connection.open_uni().await?;
    stream.write_all(&content).await?;
    stream.finish()?;
    // The server closes the connection when it has read the stream to its end.
    connection.closed().await;
    let state = connection.congestion_state().into_any();
    let ours = state.downcast::<QuicController>().map_err(|_| "the controller is not ours")?;
    let received = receiving.await??;
    Ok(Upload { received, controller: ours.name(), snapshot: ours.snapshot() })
}
