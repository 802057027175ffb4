//! `cosched web`: the page in a browser, with the rights of the user who starts it. The daemon needs no new interface (decision
//! 0056).

mod ask;
mod assets;
mod guard;
mod http;
mod proxy;

pub(crate) use ask::{WORK, work};

use crate::context::Context;
use crate::jobs;
use crate::out::{Failure, print, print_json, say};
use ask::Ask;
use clap::Args;
use cosched_api::{ErrorBody, ErrorCode, SocketChoice};
use guard::Secrets;
use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A browser opens six connections at a time; a user has few browsers.
const CONNECTIONS_MAX: usize = 64;
/// The largest request but for traces.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Of a request that is refused before it is read.
const UNREAD_BYTES_MAX: u64 = 32 << 20;
/// For a request without its body, all of it: strangers could otherwise hold every connection.
const HEAD_TIME: Duration = Duration::from_secs(10);
const BODY_TIME: Duration = Duration::from_secs(60);

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::WEB)]
pub(crate) struct Web {
    /// Where to listen: an address of this machine alone (loopback); port 0: any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
}

/// What all connections share.
struct Site {
    secrets: Secrets,
    socket: SocketChoice,
    ask: Arc<Ask>,
    connections: AtomicUsize,
}

/// `cosched web`
pub(crate) fn web(context: &Context, options: &Web) -> Result<u8, Failure> {
    if !options.listen.ip().is_loopback() {
        return Err(not_loopback(options.listen));
    }
    // A missing daemon is reported here and not in the browser.
    drop(jobs::connect(context)?);
    let failed = |e: std::io::Error| {
        let what = format!("cannot listen on {}", options.listen);
        Failure::explained(1, &what, &e.to_string(), "choose another port with --listen, or 0 for any free one")
    };
    let listener = TcpListener::bind(options.listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let secrets = Secrets::new(address).map_err(|e| Failure::other(format!("no random numbers: {e}")))?;
    let url = secrets.first_url();
    if context.json {
        print_json(&serde_json::json!({ "url": url, "port": address.port() }))?;
    } else {
        print(&format!("{url}\n"))?;
        let port = address.port();
        say(&format!(
            "open this address in a browser on this machine; anyone who has it acts as you. From elsewhere: ssh -L \
             {port}:127.0.0.1:{port} HOST. ^C ends it"
        ));
    }
    let socket = SocketChoice::find(context.socket.clone());
    let ask = Arc::new(Ask::new(&socket));
    serve(&listener, &Arc::new(Site { secrets, socket, ask, connections: AtomicUsize::new(0) }));
    Ok(0)
}

fn not_loopback(address: SocketAddr) -> Failure {
    Failure::explained(
        2,
        &format!("`cosched web` does not listen on {}", address.ip()),
        "other machines could reach it there, and it acts with your rights, without TLS",
        "listen on 127.0.0.1 and forward the port: ssh -L 8080:127.0.0.1:8080 HOST",
    )
}

fn serve(listener: &TcpListener, site: &Arc<Site>) {
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // For example, no descriptors are left.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if site.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            site.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let own = Arc::clone(site);
        let started = std::thread::Builder::new().spawn(move || {
            // If the client closes the connection, nothing is lost.
            let _ = connection(&own, stream);
            own.connections.fetch_sub(1, Ordering::Relaxed);
        });
        // The user has too many threads for now; the page retries.
        if started.is_err() {
            site.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Handles one request.
fn connection(site: &Site, mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_write_timeout(Some(Duration::from_secs(30)))?;
    let mut request = match http::read(&mut Timely::new(&stream, HEAD_TIME))? {
        Ok(request) => request,
        Err(status) => return http::answer(&mut stream, &http::Answer::text(status, "This is not a request.\n")),
    };
    // Before the body: strangers have nothing stored.
    if let Err(refused) = site.secrets.check(&request) {
        return http::answer(&mut stream, &refused);
    }
    let is_run = request.method == "POST" && request.path == ask::RUNS;
    let bytes_max = if is_run { ask::BYTES_MAX } else { BODY_BYTES_MAX };
    if let Err(status) = http::body(&mut Timely::new(&stream, BODY_TIME), &mut request, bytes_max)? {
        let why = format!("it has more than {} KiB", bytes_max >> 10);
        return refuse(
            &mut stream,
            &json_error(status, "the request is too large", &why, "Send less: a part of the trace."),
        );
    }
    match request.path.as_str() {
        "/v1/events" if request.method == "GET" => proxy::events(&site.socket, &request, stream),
        path if path.starts_with("/v1/") => http::answer(&mut stream, &proxy::ask(&site.socket, &request)),
        path if path.starts_with("/ask/") => http::answer(&mut stream, &site.ask.answer(&request)),
        path => http::answer(&mut stream, &assets::answer(path, &site.secrets, &request)),
    }
}

/// Answers before the request is read. What is still sent is taken, within bounds: a connection with unread data takes its answer with it when it is closed.
fn refuse(stream: &mut TcpStream, answer: &http::Answer) -> std::io::Result<()> {
    http::answer(stream, answer)?;
    stream.shutdown(Shutdown::Write)?;
    std::io::copy(&mut Timely::new(stream, BODY_TIME).take(UNREAD_BYTES_MAX), &mut std::io::sink()).map(drop)
}

/// Reads until a time, however slowly bytes arrive.
struct Timely<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Timely<'_> {
    fn new(stream: &TcpStream, time: Duration) -> Timely<'_> {
        Timely { stream, deadline: Instant::now() + time }
    }
}

impl Read for Timely<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // Zero is refused as a timeout.
        self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        if left.is_zero() { Err(std::io::ErrorKind::TimedOut.into()) } else { self.stream.read(buffer) }
    }
}

/// A refusal in the form of the daemon's.
fn json_error(status: u16, what: &str, why: &str, hint: &str) -> http::Answer {
    let [what, why, hint] = [what, why, hint].map(str::to_owned);
    let body = ErrorBody { code: ErrorCode::Internal, what, why, hint };
    http::Answer { status, ..http::Answer::json(&body) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_arrives_slowly_is_read_until_its_time_is_over() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        sender.write_all(b"GET").unwrap();
        let mut timely = Timely::new(&stream, Duration::from_secs(60));
        let mut bytes = [0; 8];
        assert_eq!(timely.read(&mut bytes).unwrap(), 3);
        timely.deadline = Instant::now();
        sender.write_all(b" /").unwrap();
        assert!(timely.read(&mut bytes).is_err(), "though there is something to read");
    }
}
