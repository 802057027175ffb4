//! cosched-nri, an NRI plug-in for containerd: a pod with the annotation `cosched.io/gang` becomes a job of coschedd, which all of its containers are
//! (docs/kubernetes.md, decision 0073).

mod gangs;
mod messages;
mod place;
mod pods;
mod session;
mod settings;
mod turn;
mod wire;

use anyhow::Context;
use clap::Parser;
use cosched_api::SocketChoice;
use gangs::{Gangs, Told};
use pods::News;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use session::{Identity, Listener};
use settings::Settings;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Where the settings are, if they are not named.
const SETTINGS: &str = "/etc/cosched-nri.toml";
/// Between attempts to connect.
const RETRY: Duration = Duration::from_secs(1);

/// An NRI plug-in for containerd: pods with the annotation cosched.io/gang become gangs of coschedd.
#[derive(Parser)]
#[command(
    version,
    after_help = "containerd may also start it itself, as /opt/nri/plugins/10-cosched. docs/kubernetes.md has more."
)]
struct Args {
    /// containerd's NRI socket
    #[arg(long, value_name = "PATH", default_value = "/var/run/nri/nri.sock")]
    nri_socket: PathBuf,

    /// coschedd's socket [default: $COSCHED_SOCKET, else the system's daemon]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// What pods may ask for, TOML [default: /etc/cosched-nri.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Its place among plug-ins, two digits
    #[arg(long, value_name = "NN", default_value = "10", value_parser = index)]
    index: String,
}

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("cosched-nri: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    let mut settings = settings(args.config.as_deref())?;
    settings.socket = args.socket.clone().or(settings.socket);
    let gangs = Gangs::new(SocketChoice::find(settings.socket.clone()), settings.clone());
    let (tell, told) = channel();
    let ears = Ears { own: settings, tell };
    let identity = Identity { index: args.index.clone(), name: "cosched".to_owned() };
    let given = given_connection()?;
    let nri_socket = args.nri_socket.clone();
    let session = std::thread::Builder::new().name("nri".into());
    session.spawn(move || match given {
        Some(stream) => serve_once(&stream, &identity, ears),
        None => serve_for_ever(&nri_socket, &identity, ears),
    })?;
    gangs.run(&told);
    Ok(())
}

/// Passes on what the runtime tells.
struct Ears {
    /// The settings where the runtime has none for the plug-in.
    own: Settings,
    tell: Sender<Told>,
}

impl Listener for Ears {
    fn configure(&mut self, text: &str) -> Result<(), String> {
        let settings = if text.trim().is_empty() { self.own.clone() } else { Settings::parse(text)? };
        self.pass(Told::Settings(settings));
        Ok(())
    }

    fn tell(&mut self, news: News) {
        self.pass(Told::News(news));
    }
}

impl Ears {
    fn pass(&self, told: Told) {
        // The receiver is gone only when the process ends.
        let _ = self.tell.send(told);
    }
}

/// The runtime that has started the plug-in starts it again with itself.
fn serve_once(stream: &UnixStream, identity: &Identity, mut ears: Ears) {
    let Err(e) = session::serve(stream, identity, &mut ears);
    tracing::info!("{}", ended(&e));
}

/// A runtime that is started again is connected to again.
fn serve_for_ever(path: &Path, identity: &Identity, mut ears: Ears) {
    let mut said = String::new();
    loop {
        let why = match UnixStream::connect(path) {
            Ok(stream) => {
                let Err(e) = session::serve(&stream, identity, &mut ears);
                ended(&e)
            }
            Err(e) => format!(
                "no NRI at {}: {e}. containerd 1.7 and later have it: in 1.7 set `disable = false` in \
                 [plugins.\"io.containerd.nri.v1.nri\"]",
                path.display()
            ),
        };
        if why != said {
            tracing::warn!("{why}");
            said = why;
        }
        std::thread::sleep(RETRY);
    }
}

fn ended(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the runtime has closed the connection".to_owned(),
        _ => format!("the connection to the runtime has ended: {error}"),
    }
}

/// The connection of a plug-in that the runtime has started.
fn given_connection() -> anyhow::Result<Option<UnixStream>> {
    let Some(text) = std::env::var_os("NRI_PLUGIN_SOCKET") else { return Ok(None) };
    let what = || format!("NRI_PLUGIN_SOCKET={} is no connection to a runtime", text.display());
    let number = text.to_str().and_then(|text| text.parse().ok()).with_context(what)?;
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let stream = pidfd_getfd(own, number, PidfdGetfdFlags::empty()).with_context(what)?;
    Ok(Some(stream.into()))
}

fn settings(named: Option<&Path>) -> anyhow::Result<Settings> {
    let path = named.unwrap_or(Path::new(SETTINGS));
    let text = match std::fs::read_to_string(path) {
        Err(e) if named.is_none() && e.kind() == std::io::ErrorKind::NotFound => String::new(),
        other => other.with_context(|| format!("the settings in {} cannot be read", path.display()))?,
    };
    Settings::parse(&text).map_err(anyhow::Error::msg).with_context(|| format!("{} is not valid", path.display()))
}

fn index(text: &str) -> Result<String, String> {
    let is_one = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_one { Ok(text.to_owned()) } else { Err("an index has two digits, as 10".to_owned()) }
}
