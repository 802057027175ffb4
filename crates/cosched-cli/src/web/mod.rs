//! `cosched web`: the page in a browser, with the rights of the user who starts it. The daemon needs no new interface (decision
//! 0056).

mod assets;
mod guard;
mod http;
mod proxy;

use crate::context::Context;
use crate::jobs;
use crate::out::{Failure, print, print_json, say};
use clap::Args;
use cosched_api::SocketChoice;
use guard::Secrets;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A browser opens six connections at a time; a user has few browsers.
const CONNECTIONS_MAX: usize = 64;

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
    serve(&listener, &Arc::new(Site { secrets, socket, connections: AtomicUsize::new(0) }));
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
        let site = Arc::clone(site);
        std::thread::spawn(move || {
            // If the client closes the connection, nothing is lost.
            let _ = connection(&site, stream);
            site.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Handles one request.
fn connection(site: &Site, mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(30)))?;
    let request = match http::read(&mut stream)? {
        Ok(request) => request,
        Err(status) => return http::answer(&mut stream, &http::Answer::text(status, "This is not a request.\n")),
    };
    if let Err(refused) = site.secrets.check(&request) {
        return http::answer(&mut stream, &refused);
    }
    match request.path.as_str() {
        "/v1/events" if request.method == "GET" => proxy::events(&site.socket, &request, stream),
        path if path.starts_with("/v1/") => http::answer(&mut stream, &proxy::ask(&site.socket, &request)),
        path => http::answer(&mut stream, &assets::answer(path, &site.secrets, &request)),
    }
}
