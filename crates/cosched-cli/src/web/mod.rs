//! `cosched web`: the page in a browser, with the rights of the user who starts it; for a team with those of the user whom a reverse proxy names
//! (`team.rs`). The daemon needs no new interface (decisions 0056, 0072).

mod ask;
mod assets;
mod guard;
mod http;
mod member;
mod proxy;
mod team;

pub(crate) use ask::{WORK, work};
pub(crate) use member::{MEMBER, member};

use crate::context::Context;
use crate::jobs;
use crate::out::{Failure, print, print_json, say};
use crate::timely::Timely;
use ask::Ask;
use clap::Args;
use cosched_api::{ErrorBody, ErrorCode, SocketChoice};
use guard::Guard;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::str::FromStr;
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
/// For what the other side does not take.
const SEND_TIME: Duration = Duration::from_secs(30);

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::WEB)]
pub(crate) struct Web {
    /// Where to listen: an address of this machine alone (loopback; port 0: any free one), or for a team the path of a socket
    #[arg(long, value_name = "ADDRESS:PORT|PATH", default_value = "127.0.0.1:0")]
    listen: Listen,
    #[command(flatten)]
    team: team::Options,
}

/// Where to listen.
#[derive(Clone, Debug)]
enum Listen {
    Port(SocketAddr),
    /// For a reverse proxy.
    Socket(PathBuf),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        if text.starts_with('/') {
            return Ok(Listen::Socket(text.into()));
        }
        text.parse()
            .map(Listen::Port)
            .map_err(|e| format!("{e}; give ADDRESS:PORT, or the path of a socket from the root"))
    }
}

/// What all connections share.
struct Site {
    guard: Guard,
    socket: SocketChoice,
    ask: Arc<Ask>,
}

impl Site {
    fn new(guard: Guard, socket: SocketChoice) -> Arc<Site> {
        let ask = Arc::new(Ask::new(&socket));
        Arc::new(Site { guard, socket, ask })
    }
}

/// `cosched web`
pub(crate) fn web(context: &Context, options: &Web) -> Result<u8, Failure> {
    match &options.listen {
        Listen::Socket(path) => team::serve(context, path, &options.team),
        Listen::Port(address) if options.team.is_given() || !address.ip().is_loopback() => Err(not_there(*address)),
        Listen::Port(address) => serve(context, *address),
    }
}

fn not_there(address: SocketAddr) -> Failure {
    let (what, why) = if address.ip().is_loopback() {
        let why = "every user of this machine can connect there, and could name any other user";
        ("a page for a team does not listen on a port".to_owned(), why)
    } else {
        let why = "other machines could reach it there, and it acts with your rights, without TLS";
        (format!("`cosched web` does not listen on {}", address.ip()), why)
    };
    let hint = "for yourself listen on 127.0.0.1 and forward the port: ssh -L 8080:127.0.0.1:8080 HOST; for a team give a reverse proxy, \
                which has TLS, a socket: --listen /run/cosched-web/web.sock (docs/web.md)";
    Failure::explained(2, &what, why, hint)
}

/// The page of one user.
fn serve(context: &Context, address: SocketAddr) -> Result<u8, Failure> {
    // A missing daemon is reported here and not in the browser.
    drop(jobs::connect(context)?);
    let failed = |e: io::Error| {
        let hint = "choose another port with --listen, or 0 for any free one";
        Failure::explained(1, &format!("cannot listen on {address}"), &e.to_string(), hint)
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let guard = Guard::new(address).map_err(|e| Failure::other(format!("no random numbers: {e}")))?;
    let (url, port) = (guard.first_url(), address.port());
    if context.json {
        print_json(&serde_json::json!({ "url": url, "port": port }))?;
    } else {
        print(&format!("{url}\n"))?;
        say(&format!(
            "open this address in a browser on this machine; anyone who has it acts as you. From elsewhere: ssh -L \
             {port}:127.0.0.1:{port} HOST. ^C ends it"
        ));
    }
    let site = Site::new(guard, SocketChoice::find(context.socket.clone()));
    accept(|| listener.accept(), move |stream| connection(&site, &[], stream))
}

/// Threads for connections.
#[derive(Debug, Default)]
struct Threads(Arc<AtomicUsize>);

impl Threads {
    /// Starts one. If there are too many, by this program's count or the system's, the connection is closed, and the page retries.
    fn start(&self, work: impl FnOnce() -> io::Result<()> + Send + 'static) {
        if self.0.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            self.0.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let count = Arc::clone(&self.0);
        let started = std::thread::Builder::new().spawn(move || {
            // If the client closes the connection, nothing is lost.
            let _ = work();
            count.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn are_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// Accepts connections for ever.
fn accept<S: Send + 'static, A>(
    next: impl Fn() -> io::Result<(S, A)>,
    handle: impl Fn(S) -> io::Result<()> + Clone + Send + 'static,
) -> ! {
    let threads = Threads::default();
    loop {
        let Ok((stream, _)) = next() else {
            // For example, no descriptors are left.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        let handle = handle.clone();
        threads.start(move || handle(stream));
    }
}

/// Handles one request, of which the first bytes may have been read already.
fn connection<S: Read + Write + AsFd>(site: &Site, mut begun: &[u8], mut stream: S) -> io::Result<()> {
    set_socket_timeout(&stream, Timeout::Send, Some(SEND_TIME))?;
    let head = http::read(&mut begun.by_ref().chain(within(&mut stream, HEAD_TIME)))?;
    let mut request = match head {
        Ok(request) => request,
        Err(status) => return http::answer(&mut stream, &http::Answer::text(status, "This is not a request.\n")),
    };
    // Before the body: strangers have nothing stored.
    if let Err(refused) = site.guard.check(&request) {
        return http::answer(&mut stream, &refused);
    }
    let is_run = request.method == "POST" && request.path == ask::RUNS;
    let bytes_max = if is_run { ask::BYTES_MAX } else { BODY_BYTES_MAX };
    let mut rest = begun.chain(within(&mut stream, BODY_TIME));
    if let Err(status) = http::body(&mut rest, &mut request, bytes_max)? {
        let why = format!("it has more than {} KiB", bytes_max >> 10);
        let answer = json_error(status, "the request is too large", &why, "Send less: a part of the trace.");
        return refuse(&mut stream, &answer);
    }
    match request.path.as_str() {
        "/v1/events" if request.method == "GET" => proxy::events(&site.socket, &request, stream),
        path if path.starts_with("/v1/") => http::answer(&mut stream, &proxy::ask(&site.socket, &request)),
        "/ask/playground" if request.method == "POST" => {
            // Its sizes are bounded there.
            let answer = http::Answer::of(200, http::JSON, cosched_playground::simulate(&request.body));
            http::answer(&mut stream, &answer)
        }
        path if path.starts_with("/ask/") => http::answer(&mut stream, &site.ask.answer(&request)),
        path => http::answer(&mut stream, &assets::answer(path, &site.guard, &request)),
    }
}

fn within<S: AsFd>(stream: S, time: Duration) -> Timely<S> {
    Timely::new(stream, Instant::now() + time)
}

/// Answers before the request is read. What is still sent is taken, within bounds: a connection with unread data takes its answer with it when it is closed.
fn refuse<S: Read + Write + AsFd>(stream: &mut S, answer: &http::Answer) -> io::Result<()> {
    http::answer(stream, answer)?;
    rustix::net::shutdown(&*stream, rustix::net::Shutdown::Write)?;
    io::copy(&mut within(stream, BODY_TIME).take(UNREAD_BYTES_MAX), &mut io::sink()).map(drop)
}

fn json_error(status: u16, what: &str, why: &str, hint: &str) -> http::Answer {
    let [what, why, hint] = [what, why, hint].map(str::to_owned);
    let body = ErrorBody { code: ErrorCode::Internal, what, why, hint };
    http::Answer { status, ..http::Answer::json(&body) }
}
