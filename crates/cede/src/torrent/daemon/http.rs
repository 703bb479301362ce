//! HTTP in front of the orders.
//!
//! Whoever gives one has to have read the answer to an earlier one: it tells of a number that has to come with each (Transmission's
//! way against pages of strangers, which can send and not read).

use super::auth::Auth;
use super::roster::Daemon;
use super::{metrics, rpc};
use crate::callers::Callers;
use crate::carry::numbers;
use crate::failure::Failure;
use crate::torrent::swarm;
use cede_bt::metainfo::MAX_FILE_BYTES;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// A caller has so long to say what it wants, and all of it.
const PATIENCE: Duration = Duration::from_secs(60);
const SESSION_ID: HeaderName = HeaderName::from_static("x-transmission-session-id");
/// A torrent file in base64, and what is around it.
const MAX_BODY_BYTES: usize = MAX_FILE_BYTES / 3 * 4 + (64 << 10);
const JSON: &str = "application/json; charset=UTF-8";
const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

type Answer = Response<Full<Bytes>>;

/// Binds an address. It is served once a server runs.
pub fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    let told = |error: std::io::Error| {
        Failure::of_system(format!("--rpc: cannot take orders at {address}: {error}"), error.kind())
    };
    let listener = std::net::TcpListener::bind(address).map_err(told)?;
    listener.set_nonblocking(true).map_err(told)?;
    TcpListener::from_std(listener).map_err(told)
}

/// Who serves.
#[derive(Clone)]
pub struct Server {
    daemon: Rc<Daemon>,
    auth: Rc<Auth>,
    /// The number that comes with each order.
    session: Rc<str>,
}

impl Server {
    pub fn new(daemon: Rc<Daemon>, auth: Rc<Auth>) -> Result<Self, Failure> {
        let session = numbers::hex(&[swarm::chance()?, swarm::chance()?].concat());
        Ok(Self { daemon, auth, session: session.into() })
    }

    /// Serves whoever calls, until it is dropped.
    pub async fn run(&self, listener: TcpListener) -> Infallible {
        let mut callers = Callers::default();
        loop {
            let serve = |stream| tokio::task::spawn_local(self.clone().hear(stream)).abort_handle();
            callers.next(&listener, serve).await;
        }
    }

    async fn hear(self, stream: TcpStream) {
        let service = service_fn(|request| async { Ok::<_, Infallible>(self.answer(request).await) });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
        // A caller that fails is nobody's concern but its own.
        let _ = http.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let header = |name: &HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
        if !self.auth.trusts(header(&HOST)) {
            let words = "ask by the machine's address, or as localhost; or have a password (--rpc-auth)\n";
            return plain(StatusCode::MISDIRECTED_REQUEST, words);
        }
        if !self.auth.admits(header(&AUTHORIZATION)) {
            let mut answer = plain(StatusCode::UNAUTHORIZED, "a name and a password are needed\n");
            let realm = HeaderValue::from_static("Basic realm=\"Transmission\"");
            answer.headers_mut().insert(WWW_AUTHENTICATE, realm);
            return answer;
        }
        let is_session = header(&SESSION_ID) == Some(&*self.session);
        match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/metrics") => {
                told(StatusCode::OK, METRICS, metrics::text(&self.daemon).into())
            }
            (_, "/transmission/rpc" | "/transmission/rpc/") if !is_session => self.tell_session(),
            (&Method::POST, "/transmission/rpc" | "/transmission/rpc/") => self.order(request).await,
            (_, "/transmission/rpc" | "/transmission/rpc/") => {
                plain(StatusCode::METHOD_NOT_ALLOWED, "give orders with POST\n")
            }
            (&Method::GET | &Method::HEAD, path) => page(path).unwrap_or_else(nothing),
            _ => nothing(),
        }
    }

    /// Whoever can read this may ask once more.
    fn tell_session(&self) -> Answer {
        let words = "the order has to come with this X-Transmission-Session-Id\n";
        let mut answer = plain(StatusCode::CONFLICT, words);
        if let Ok(session) = HeaderValue::from_str(&self.session) {
            answer.headers_mut().insert(SESSION_ID, session);
        }
        answer
    }

    async fn order(&self, request: Request<Incoming>) -> Answer {
        let body = Limited::new(request.into_body(), MAX_BODY_BYTES).collect();
        match tokio::time::timeout(PATIENCE, body).await {
            Ok(Ok(body)) => {
                let answer = rpc::answer(&self.daemon, &body.to_bytes()).await;
                told(StatusCode::OK, JSON, answer.to_string().into())
            }
            Ok(Err(_)) => plain(StatusCode::PAYLOAD_TOO_LARGE, "that is longer than any torrent file\n"),
            Err(_) => plain(StatusCode::REQUEST_TIMEOUT, "the order was not heard to its end\n"),
        }
    }
}

fn nothing() -> Answer {
    plain(StatusCode::NOT_FOUND, "a page at /, orders at /transmission/rpc, /metrics\n")
}

/// The page for people, and what belongs to it. It loads nothing from elsewhere, and stands in no frame of others.
fn page(path: &str) -> Option<Answer> {
    let (kind, text) = match path {
        "/" => ("text/html; charset=utf-8", include_str!("page/page.html")),
        "/page.css" => ("text/css; charset=utf-8", include_str!("page/page.css")),
        "/page.js" => ("text/javascript; charset=utf-8", include_str!("page/page.js")),
        _ => return None,
    };
    let mut answer = told(StatusCode::OK, kind, Bytes::from_static(text.as_bytes()));
    let rules = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                 form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
    answer.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(rules));
    Some(answer)
}

fn plain(status: StatusCode, words: &'static str) -> Answer {
    told(status, TEXT, Bytes::from_static(words.as_bytes()))
}

fn told(status: StatusCode, kind: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
