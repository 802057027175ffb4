//! Access control: only the browser that was given the first address may send requests, and no page of another origin.
//!
//! To the daemon, requests come from the user of this process, so anything that passes here acts as this user. A
//! cookie alone is not enough: browsers send it to every port of a host, and so to the servers of other users of this machine.
//! Therefore requests of the page also carry the token, which the page stores where only its own origin, port included, can
//! read it.

use super::http::{Answer, Request};
use std::io::{self, Read};
use std::net::SocketAddr;

/// Where the page is, and the secrets that a browser must present. A team's reverse proxy has asked for a password instead: a page of another
/// origin, with which browsers send that, too, is refused all the same.
#[derive(Debug)]
pub(super) struct Guard {
    origin: String,
    secrets: Option<Secrets>,
}

#[derive(Debug)]
struct Secrets {
    token: String,
    cookie: String,
    cookie_name: String,
}

impl Guard {
    /// With random secrets.
    pub(super) fn new(address: SocketAddr) -> io::Result<Guard> {
        let cookie_name = format!("cosched-{}", address.port());
        let secrets = Secrets { token: random()?, cookie: random()?, cookie_name };
        Ok(Guard { origin: format!("http://{address}"), secrets: Some(secrets) })
    }

    /// Behind a reverse proxy.
    pub(super) fn of_team(origin: String) -> Guard {
        Guard { origin, secrets: None }
    }

    /// The address that opens the page.
    pub(super) fn first_url(&self) -> String {
        let token = self.secrets.as_ref().map(|secrets| format!("?token={}", secrets.token));
        format!("{}/{}", self.origin, token.unwrap_or_default())
    }

    /// The cookie to set, if the request carried the token.
    pub(super) fn new_cookie(&self, request: &Request) -> Option<String> {
        let Secrets { cookie, cookie_name, .. } = self.secrets.as_ref().filter(|secrets| secrets.has_token(request))?;
        Some(format!("{cookie_name}={cookie}; HttpOnly; SameSite=Strict; Path=/"))
    }

    /// Refuses requests that do not come from the page.
    pub(super) fn check(&self, request: &Request) -> Result<(), Answer> {
        let others = || format!("The page is at {}; a page of another origin cannot use it.", self.origin);
        // This server's name in browsers: the printed address. `localhost` may be ::1, where another user can listen.
        let host = self.origin.split_once("://").map(|(_, host)| host);
        if request.header("host") != host {
            return Err(refusal("the host is not this server's", &others()));
        }
        let is_change = request.method != "GET";
        let is_page = request.path == "/" && !is_change;
        let origin_is_ours = match request.header("origin") {
            Some(origin) => origin == self.origin,
            None => !is_change && !request.headers.iter().any(|(name, _)| name == "origin"),
        };
        let fetched_by_us = matches!(request.header("sec-fetch-site"), None | Some("same-origin" | "none"));
        if !origin_is_ours || !(fetched_by_us || is_page) {
            return Err(refusal("the request comes from another origin", &others()));
        }
        let is_file = !request.path.starts_with("/v1/") && !request.path.starts_with("/ask/");
        let is_known = self.secrets.as_ref().is_none_or(|secrets| {
            if is_file || request.path.starts_with(super::ask::REPORTS) && !is_change {
                secrets.has_cookie(request) || is_page && secrets.has_token(request)
            } else {
                secrets.has_cookie(request) && secrets.has_key(request)
            }
        });
        let hint =
            "Open the address that `cosched web` has printed, with its token; it is valid until `cosched web` ends.";
        if is_known { Ok(()) } else { Err(refusal("the token is missing or old", hint)) }
    }
}

impl Secrets {
    fn has_token(&self, request: &Request) -> bool {
        request.query("token").is_some_and(|token| same(token, &self.token))
    }

    fn has_key(&self, request: &Request) -> bool {
        let key = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        key.is_some_and(|key| same(key, &self.token))
    }

    fn has_cookie(&self, request: &Request) -> bool {
        let cookies = request.header("cookie").unwrap_or_default();
        let mut pairs = cookies.split("; ").filter_map(|pair| pair.split_once('='));
        let own = pairs.find(|(key, _)| *key == self.cookie_name);
        own.is_some_and(|(_, value)| same(value, &self.cookie))
    }
}

pub(super) fn refusal(what: &str, hint: &str) -> Answer {
    Answer::text(403, &format!("cosched web: {what}\n{hint}\n"))
}

/// 128 random bits from the kernel, in hexadecimal.
pub(super) fn random() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares in constant time.
fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: u16 = 8080;

    fn guard() -> Guard {
        let secrets = Secrets { token: "t".repeat(32), cookie: "c".repeat(32), cookie_name: format!("cosched-{PORT}") };
        Guard { origin: format!("http://127.0.0.1:{PORT}"), secrets: Some(secrets) }
    }

    /// A request as the page itself sends it.
    fn own(method: &str, path: &str) -> Request {
        let (cookie, key) = (format!("a=b; cosched-{PORT}={}", "c".repeat(32)), format!("Bearer {}", "t".repeat(32)));
        let host = format!("127.0.0.1:{PORT}");
        let origin = format!("http://{host}");
        let headers = [
            ("host", host),
            ("origin", origin),
            ("cookie", cookie),
            ("authorization", key),
            ("sec-fetch-site", "same-origin".into()),
        ];
        let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Request { method: method.into(), path: path.into(), headers, ..Request::default() }
    }

    fn with(mut request: Request, name: &str, value: Option<&str>) -> Request {
        request.headers.retain(|(key, _)| key != name);
        request.headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        request
    }

    fn passes(request: &Request) -> bool {
        guard().check(request).is_ok()
    }

    #[test]
    fn the_page_passes_and_nobody_else() {
        let (look, change) = (|| own("GET", "/v1/status"), || own("POST", "/v1/jobs/7/kill"));
        let (runs, run) = (|| own("GET", "/ask/runs"), || own("POST", "/ask/runs"));
        assert!(passes(&runs()) && passes(&run()));
        assert!(passes(&look()) && passes(&change()));
        assert!(passes(&with(look(), "origin", None)), "a browser says no origin for its own GET");
        assert!(!passes(&with(with(look(), "host", Some("localhost:8080")), "origin", Some("http://localhost:8080"))));
        for request in [look as fn() -> Request, change, runs, run] {
            for (name, value) in [
                ("host", None),
                ("host", Some("evil.example:8080")),
                ("host", Some("127.0.0.1:8081")),
                ("origin", Some("http://evil.example")),
                ("origin", Some("http://127.0.0.1:9999")),
                ("origin", Some("https://127.0.0.1:8080")),
                ("origin", Some("null")),
                ("sec-fetch-site", Some("cross-site")),
                ("sec-fetch-site", Some("same-site")),
                ("cookie", None),
                ("cookie", Some("cosched-8080=x")),
                ("authorization", None),
                ("authorization", Some("Bearer x")),
            ] {
                assert!(!passes(&with(request(), name, value)), "{name}: {value:?}");
            }
        }
        assert!(!passes(&with(change(), "origin", None)), "a change says where it comes from");
        let report = with(own("GET", "/ask/reports/7"), "authorization", None);
        assert!(passes(&report) && !passes(&with(report, "cookie", None)), "a tab has the cookie only");
        assert!(!passes(&with(own("POST", "/ask/reports/7"), "authorization", None)));
    }

    #[test]
    fn the_first_address_opens_the_page_alone() {
        let bare = |path: &str, query: &str| Request {
            method: "GET".into(),
            path: path.into(),
            query: query.into(),
            headers: vec![("host".into(), "127.0.0.1:8080".into())],
            ..Request::default()
        };
        let token = format!("token={}", "t".repeat(32));
        assert!(passes(&bare("/", &token)) && !passes(&bare("/", "")) && !passes(&bare("/", "token=x")));
        assert!(!passes(&bare("/v1/status", &token)), "an address is in histories; it reads no data");
        assert!(guard().new_cookie(&bare("/", &token)).unwrap().contains("HttpOnly; SameSite=Strict"));
        assert_eq!(guard().new_cookie(&bare("/", "")), None);
        let one = Guard::new(SocketAddr::from(([127, 0, 0, 1], 1))).unwrap();
        let Secrets { token, cookie, .. } = one.secrets.as_ref().unwrap();
        assert!(token.len() == 32 && token != cookie && one.first_url().ends_with(token.as_str()));
    }

    #[test]
    fn behind_a_proxy_the_origin_decides() {
        let guard = Guard::of_team("https://cosched.example.org".into());
        let of = |method: &str, headers: &[(&str, &str)]| {
            let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let path = "/v1/jobs/7/kill".to_owned();
            guard.check(&Request { method: method.into(), path, headers, ..Request::default() }).is_ok()
        };
        let (host, ours) = (("host", "cosched.example.org"), ("origin", "https://cosched.example.org"));
        assert!(of("POST", &[host, ours]) && of("GET", &[host]));
        assert!(!of("POST", &[host]), "a change says where it comes from");
        assert!(!of("POST", &[host, ours, ours]) && !of("POST", &[host, host, ours]), "which one is meant?");
        assert!(!of("POST", &[host, ("origin", "http://cosched.example.org")]));
        assert!(!of("GET", &[("host", "cosched.example.org.evil.example")]));
        assert!(!of("GET", &[host, ("sec-fetch-site", "cross-site")]));
        assert_eq!(guard.first_url(), "https://cosched.example.org/");
        assert_eq!(guard.new_cookie(&own("GET", "/")), None);
    }
}
