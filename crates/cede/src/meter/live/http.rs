//! A small server that hands out one text, for whoever scrapes metrics.

use crate::failure::Failure;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Callers that are served at a time; others wait.
const CALLERS_MAX: usize = 16;
/// A caller that has not said what it wants by then is left.
const PATIENCE: Duration = Duration::from_secs(5);
/// The type that Prometheus wants for its text format, version 0.0.4.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text that is handed out.
pub type Shared = Arc<Mutex<String>>;

/// Binds an address. It is served once [`serve`] is called.
pub fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    let told = |error: std::io::Error| {
        Failure::of_system(format!("cannot serve metrics at {address}: {error}"), error.kind())
    };
    let listener = TcpListener::bind(address).map_err(told)?;
    listener.set_nonblocking(true).map_err(told)?;
    Ok(listener)
}

/// Serves the text on a thread of its own for as long as the process lives.
pub fn serve(listener: TcpListener, text: Shared) -> Result<(), Failure> {
    let told = |error: std::io::Error| Failure::Failed(format!("cannot serve metrics: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(told)?;
    std::thread::Builder::new()
        .name("metrics".to_string())
        .spawn(move || runtime.block_on(accept(listener, text)))
        .map_err(told)?;
    Ok(())
}

async fn accept(listener: TcpListener, text: Shared) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let places = Arc::new(Semaphore::new(CALLERS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, for instance: that may pass.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let text = Arc::clone(&text);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, Arc::clone(&text)));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false);
            let connection = http.serve_connection(TokioIo::new(stream), service);
            // A caller that fails, or takes the answer drop by drop, is nobody's concern but its own.
            let _ = tokio::time::timeout(2 * PATIENCE, connection).await;
            drop(place);
        });
    }
}

async fn answer(request: Request<Incoming>, text: Shared) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => {
            (StatusCode::OK, text.lock().unwrap_or_else(PoisonError::into_inner).clone())
        }
        (&Method::GET, "/") => (StatusCode::OK, "cede meter: /metrics\n".to_string()),
        (&Method::GET | &Method::HEAD, _) => (StatusCode::NOT_FOUND, "only /metrics is here\n".to_string()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TEXT_FORMAT));
    Ok(response)
}
