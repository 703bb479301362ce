//! A small server that hands out one text, for whoever scrapes metrics.

use crate::callers::Callers;
use crate::failure::Failure;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;

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
    let mut callers = Callers::default();
    loop {
        callers.next(&listener, |stream| tokio::spawn(hear(stream, Arc::clone(&text))).abort_handle()).await;
    }
}

/// Answers one caller.
async fn hear(stream: TcpStream, text: Shared) {
    let service = service_fn(|request| answer(request, Arc::clone(&text)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    // A caller that fails, or takes the answer drop by drop, is nobody's concern but its own.
    let _ = tokio::time::timeout(2 * PATIENCE, connection).await;
}

async fn answer(request: Request<Incoming>, text: Shared) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => {
            (StatusCode::OK, text.lock().unwrap_or_else(PoisonError::into_inner).clone())
        }
        (&Method::GET | &Method::HEAD, "/") => (StatusCode::OK, "cede meter: /metrics\n".to_string()),
        (&Method::GET | &Method::HEAD, _) => (StatusCode::NOT_FOUND, "only /metrics is here\n".to_string()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TEXT_FORMAT));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callers::CALLERS_MAX;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Instant;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn served(text: &str) -> SocketAddr {
        let listener = bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, Shared::new(Mutex::new(text.to_string()))).unwrap();
        address
    }

    #[test]
    fn callers_that_say_nothing_keep_nobody_waiting() {
        let address = served("all_total 7\n");
        let silent: Vec<TcpStream> = (0..5 * CALLERS_MAX)
            .map(|k| {
                let mut stream = TcpStream::connect(address).unwrap();
                // Half of them begin to ask.
                stream.write_all(&b"GET /metr"[..9 * (k % 2)]).unwrap();
                stream
            })
            .collect();
        let began = Instant::now();
        for _ in 0..10 {
            assert!(ask(address, "GET /metrics").ends_with("\r\n\r\nall_total 7\n"));
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
        drop(silent);
    }

    #[test]
    fn what_is_asked_for_in_vain_is_answered_as_http_has_it() {
        let address = served("all_total 7\n");
        for (request, status) in [
            ("GET /", "200"),
            ("HEAD /", "200"),
            ("HEAD /metrics", "200"),
            ("GET /elsewhere", "404"),
            ("POST /metrics", "405"),
        ] {
            let answer = ask(address, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
            assert_eq!(answer.contains("allow: GET, HEAD\r\n"), status == "405", "{answer}");
        }
    }
}
