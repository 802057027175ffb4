//! `cosched web` for a team: a reverse proxy says whose request it is, and a process that has become that user answers it (`member.rs`).
//!
//! This process runs as root. It reads heads of requests, and hands each connection over; it asks the daemon nothing. It believes what the
//! header says because only the proxy's user can connect (decision 0072).

use super::guard::refusal;
use super::http::{self, Answer, Request};
use super::member::{MEMBER, account, send};
use super::{HEAD_TIME, SEND_TIME, accept, refuse, within};
use crate::context::Context;
use crate::jobs;
use crate::out::{EXIT_FORBIDDEN, Failure, print, print_json, say};
use clap::Args;
use nix::unistd::User;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::geteuid;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

const HEADING: &str = "For a team";
const HEADER: &str = "X-Remote-User";
const UID_MIN: u32 = 1000;
/// Users with a page at a time.
const MEMBERS_MAX: usize = 128;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The page's address in browsers: https://HOST or https://HOST:PORT
    #[arg(long, value_name = "URL", value_parser = origin, help_heading = HEADING)]
    origin: Option<String>,
    /// The user that the reverse proxy runs as; no other user can connect
    #[arg(long, value_name = "USER", help_heading = HEADING)]
    proxy_user: Option<String>,
    /// The header in which the proxy names the user [default: X-Remote-User]
    #[arg(long, value_name = "HEADER", value_parser = header, help_heading = HEADING)]
    user_header: Option<String>,
    /// The lowest uid that has a page; system users have lower ones [default: 1000]
    #[arg(long, value_name = "UID", value_parser = clap::value_parser!(u32).range(1..), help_heading = HEADING)]
    uid_min: Option<u32>,
}

impl Options {
    pub(super) fn is_given(&self) -> bool {
        self.origin.is_some() || self.proxy_user.is_some() || self.user_header.is_some() || self.uid_min.is_some()
    }
}

/// What browsers send as `Origin`.
fn origin(text: &str) -> Result<String, String> {
    let lower = text.trim_end_matches('/').to_ascii_lowercase();
    let host = lower.strip_prefix("https://").map(|host| host.strip_suffix(":443").unwrap_or(host));
    let is_host =
        |host: &&str| !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b));
    let origin = host.filter(is_host).map(|host| format!("https://{host}"));
    origin.ok_or_else(|| {
        "give https://HOST or https://HOST:PORT: without TLS, passwords can be read on the way".to_owned()
    })
}

fn header(text: &str) -> Result<String, String> {
    let is_name = (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if is_name { Ok(text.to_owned()) } else { Err("a header's name has letters, digits and -".to_owned()) }
}

/// What all connections share.
struct Team {
    origin: String,
    header: String,
    proxy: u32,
    uid_min: u32,
    /// The daemon's.
    socket: PathBuf,
    /// By uid.
    members: Mutex<HashMap<u32, Member>>,
}

struct Member {
    link: OwnedFd,
    child: Child,
}

/// `cosched web --listen PATH`
pub(super) fn serve(context: &Context, path: &Path, options: &Options) -> Result<u8, Failure> {
    let (Some(origin), Some(proxy)) = (&options.origin, &options.proxy_user) else {
        let why = "the first is the page's address in browsers, the second the only user that may connect";
        let hint =
            "cosched web --listen /run/cosched-web/web.sock --origin https://cosched.example.org --proxy-user www-data";
        return Err(Failure::explained(2, "a page for a team needs --origin and --proxy-user", why, hint));
    };
    if !geteuid().is_root() {
        let (what, why) =
            ("only root can serve a page for a team", "each request is answered with the rights of its user");
        let hint =
            "start it as root, as the unit cosched-web-team does; `cosched web` without --listen is for yourself";
        return Err(Failure::explained(EXIT_FORBIDDEN, what, why, hint));
    }
    let proxy = account(proxy, 1).map_err(|why| {
        let hint =
            "name the user that the proxy connects as: www-data for nginx in Debian; see `ps -o user,cmd -C nginx`";
        Failure::explained(2, "that user cannot be the proxy's", &why, hint)
    })?;
    let client = jobs::connect(context)?;
    let listener = bind(path, proxy.uid.as_raw()).map_err(|e| {
        let hint = "give a path in a directory that root alone can write, as /run/cosched-web";
        Failure::explained(1, &format!("cannot listen on {}", path.display()), &e.to_string(), hint)
    })?;
    let team = Arc::new(Team {
        origin: origin.clone(),
        header: options.user_header.as_deref().unwrap_or(HEADER).to_owned(),
        proxy: proxy.uid.as_raw(),
        uid_min: options.uid_min.unwrap_or(UID_MIN),
        socket: std::path::absolute(client.path()).map_err(|e| Failure::other(e.to_string()))?,
        members: Mutex::default(),
    });
    drop(client);
    if context.json {
        print_json(&serde_json::json!({ "socket": path, "url": origin }))?;
    } else {
        print(&format!("{origin}\n"))?;
        say(&format!(
            "{} passes requests to {}, and names their users in {} (docs/web.md has nginx's configuration). ^C ends it",
            proxy.name,
            path.display(),
            team.header
        ));
    }
    accept(|| listener.accept(), move |stream| team.handle(stream))
}

/// A socket to which this user can connect, and no other one but root.
fn bind(path: &Path, uid: u32) -> io::Result<UnixListener> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("it is no file's path"));
    };
    let directory = directory.canonicalize()?;
    // Another socket in its place would be given the requests of all users.
    for above in directory.ancestors() {
        let found = fs::metadata(above)?;
        let is_open = found.mode() & 0o022 != 0 && found.mode() & 0o1000 == 0;
        if found.uid() != 0 || is_open {
            return Err(io::Error::other(format!("{} can be changed by others than root", above.display())));
        }
    }
    let path = directory.join(name);
    let is_socket = fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_socket());
    // One that is left from another time.
    if is_socket && UnixStream::connect(&path).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused) {
        fs::remove_file(&path)?;
    }
    let listener = UnixListener::bind(&path)?;
    // What connects before this is refused by its uid.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    chown(&path, Some(uid), None)?;
    Ok(listener)
}

impl Team {
    fn handle(&self, mut stream: UnixStream) -> io::Result<()> {
        set_socket_timeout(&stream, Timeout::Send, Some(SEND_TIME))?;
        // Root, and what the permissions of the file may have let in.
        if socket_peercred(&stream)?.uid.as_raw() != self.proxy {
            let hint = format!("Open {}.", self.origin);
            return refuse(&mut stream, &refusal("this socket is for the reverse proxy alone", &hint));
        }
        let request = match http::read(&mut within(&mut stream, HEAD_TIME))? {
            Ok(request) => request,
            Err(status) => return refuse(&mut stream, &Answer::text(status, "This is not a request.\n")),
        };
        let handed = self.user(&request).and_then(|user| self.hand_over(&user, &request, &stream));
        handed.or_else(|refused| refuse(&mut stream, &refused))
    }

    /// The user whom the proxy names.
    fn user(&self, request: &Request) -> Result<User, Answer> {
        // Some programs take `_` for `-`, so a browser may send a header that a proxy does not replace.
        let is_named = |name: &str| name.replace('_', "-").eq_ignore_ascii_case(&self.header);
        let all: Vec<_> = request.headers.iter().filter(|(name, _)| is_named(name)).collect();
        let hint = "The proxy's configuration has to set this header, and remove what browsers send: docs/web.md.";
        match all.as_slice() {
            [(name, value)] if !name.contains('_') => account(value, self.uid_min)
                .map_err(|why| refusal(&why, "Log in at the proxy as a user of this machine, with a uid of people.")),
            [] => Err(refusal(&format!("the proxy names no user in {}", self.header), hint)),
            _ => Err(refusal(&format!("more than one {} has come", self.header), hint)),
        }
    }

    /// Gives the connection to the user's process, which is started if there is none.
    fn hand_over(&self, user: &User, request: &Request, stream: &UnixStream) -> Result<(), Answer> {
        let busy = |why: &str| Answer::text(503, &format!("cosched web: {why}\nThe page tries again by itself.\n"));
        let (uid, begun) = (user.uid.as_raw(), [request.head.as_slice(), &request.body].concat());
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.retain(|_, member| matches!(member.child.try_wait(), Ok(None)));
        // It may have ended meanwhile, once.
        for _ in 0..2 {
            let is_full = members.len() >= MEMBERS_MAX;
            let member = match members.entry(uid) {
                Entry::Occupied(found) => found.into_mut(),
                Entry::Vacant(_) if is_full => return Err(busy("too many users have the page open")),
                Entry::Vacant(free) => free.insert(self.start(user).map_err(|e| busy(&e.to_string()))?),
            };
            match send(&member.link, &begun, stream) {
                Ok(()) => return Ok(()),
                Err(Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED) => {
                    // It has closed its side, so it is ending.
                    let _ = member.child.wait();
                    members.remove(&uid);
                }
                // Its requests wait unread; those of other users do not wait for them.
                Err(e) => return Err(busy(&format!("your process does not take more requests: {e}"))),
            }
        }
        Err(busy("your process ends at once"))
    }

    fn start(&self, user: &User) -> io::Result<Member> {
        let (link, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        // This program, also after another version has taken its place.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("cosched").arg(MEMBER).arg(&user.name).arg(user.uid.to_string()).arg(user.gid.to_string());
        command.arg(&self.origin).current_dir("/").stdin(other).stdout(Stdio::null());
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("COSCHED_SOCKET", &self.socket);
        command.env("HOME", &user.dir).env("USER", &user.name).env("LOGNAME", &user.name);
        Ok(Member { link, child: command.spawn()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_as_browsers_send_it() {
        assert_eq!(origin("https://Cosched.example.org:443/").unwrap(), "https://cosched.example.org");
        assert_eq!(origin("https://[::1]:8443").unwrap(), "https://[::1]:8443");
        for wrong in ["http://x", "x", "https://", "https://x/y", "https://a@x", "https://x y", ""] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
        assert!(header("X-Forwarded-User").is_ok() && header("X_User").is_err() && header("").is_err());
    }

    #[test]
    fn the_header_is_there_once_and_names_a_person() {
        let team = Team {
            origin: "https://x".into(),
            header: HEADER.into(),
            proxy: 33,
            uid_min: 1,
            socket: PathBuf::new(),
            members: Mutex::default(),
        };
        let of = |names: &[(&str, &str)]| {
            let headers = names.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            team.user(&Request { headers, ..Request::default() }).map(|user| user.name)
        };
        assert_eq!(of(&[("host", "x"), ("x-remote-user", "daemon")]).unwrap(), "daemon");
        for wrong in [
            &[][..],
            &[("x-remote-user", "root")],
            &[("x-remote-user", "")],
            &[("x_remote_user", "daemon")],
            &[("x-remote-user", "daemon"), ("x-remote-user", "daemon")],
            &[("x-remote-user", "daemon"), ("x_remote-user", "bin")],
        ] {
            assert_eq!(of(wrong).unwrap_err().status, 403, "{wrong:?}");
        }
    }

    #[test]
    fn a_socket_is_its_users_alone_and_where_only_root_writes() {
        if !geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("web.sock");
        let listener = bind(&path, 33).unwrap();
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.mode() & 0o777, found.uid()), (0o600, 33));
        assert!(bind(&path, 33).is_err(), "another one listens");
        drop(listener);
        bind(&path, 33).unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        assert!(bind(&directory.path().join("file"), 33).is_err(), "a file is no socket's rest");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(bind(&path, 33).unwrap_err().to_string().contains("others than root"));
    }
}
