//! A blocking client with one connection, which is kept open between requests.

use crate::adopt::CgroupRequest;
use crate::cluster::{ClusterBackup, ImportRequest, RepairReport, RepairRequest};
use crate::error::ClientError;
use crate::http;
use crate::job_state::EventList;
use crate::limits::LimitList;
use crate::machine::{NodeRequest, QueuesRequest};
use crate::resources::{LoadList, NodeLoad, ProcessRequest, ResourcesRequest, Version};
use crate::stream::{EventStream, SILENCE_MAX, Samples, StreamRequest};
use crate::types::{
    ClassRequest, ErrorBody, ErrorCode, ExitReport, Job, JobList, JobRequest, KillRequest, PolicyRequest, ShareRequest,
    Status,
};
use crate::version::{API_VERSION, ApiVersion};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer than any answer of a working daemon takes.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// For requests that read or write a whole store.
const STORE_TIMEOUT: Duration = Duration::from_secs(120);

type Result<T> = std::result::Result<T, ClientError>;

/// A client of the daemon behind one socket.
///
/// All methods block for at most 30 s (`wait`: plus its own time). They return [`ClientError::Unreachable`] if there
/// is no answer, [`ClientError::Refused`] with the daemon's explanation, and [`ClientError::Protocol`] if the answer
/// does not follow this interface.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    connection: Option<UnixStream>,
    answer_timeout: Duration,
}

impl Client {
    /// Connects to the daemon's socket. Fails if no daemon listens on it.
    pub fn connect(path: impl AsRef<Path>) -> Result<Client> {
        let path = path.as_ref().to_owned();
        let connection = open(&path)?;
        Ok(Client { path, connection: Some(connection), answer_timeout: ANSWER_TIMEOUT })
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Closes the connection, for a program that pauses: the number of each user is limited. The next request opens another one.
    pub fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Sets the longest time that one answer may take; the default is 30 s.
    pub fn set_answer_timeout(&mut self, timeout: Duration) {
        self.answer_timeout = timeout;
    }

    /// `GET /v1/status`.
    pub fn status(&mut self) -> Result<Status> {
        self.get("/v1/status")
    }

    /// `GET /v1/version`: which daemon answers, and its version of the interface.
    pub fn version(&mut self) -> Result<Version> {
        self.get("/v1/version")
    }

    /// `GET /v1/load`: how busy a node is; the daemon's own node if none is named.
    pub fn load(&mut self, node: Option<&str>) -> Result<NodeLoad> {
        match node {
            Some(name) => self.get(&format!("/v1/load?node={}", escape(name))),
            None => self.get("/v1/load"),
        }
    }

    /// `GET /v1/loads`: how busy all nodes are.
    pub fn loads(&mut self) -> Result<LoadList> {
        self.get("/v1/loads")
    }

    /// `GET /v1/limits`: the caller's limits with this daemon, and current usage.
    pub fn limits(&mut self) -> Result<LimitList> {
        self.get("/v1/limits")
    }

    /// `GET /v1/jobs`: the jobs that have not ended, or all that the daemon remembers.
    pub fn jobs(&mut self, all: bool) -> Result<JobList> {
        self.get(if all { "/v1/jobs?all=true" } else { "/v1/jobs" })
    }

    /// `GET /v1/ended`: at most 1000 jobs that ended between these times (inclusive), the latest first.
    pub fn ended(&mut self, since_unix_ms: u64, until_unix_ms: u64) -> Result<JobList> {
        self.get(&format!("/v1/ended?since_unix_ms={since_unix_ms}&until_unix_ms={until_unix_ms}"))
    }

    /// `GET /v1/jobs/{id}`.
    pub fn job(&mut self, id: u64) -> Result<Job> {
        self.get(&format!("/v1/jobs/{id}"))
    }

    /// `GET /v1/jobs/{id}/events`.
    pub fn events(&mut self, id: u64) -> Result<EventList> {
        self.get(&format!("/v1/jobs/{id}/events"))
    }

    /// `POST /v1/jobs`: when it returns, the request's process is in the job's cgroups.
    pub fn register(&mut self, request: &JobRequest) -> Result<Job> {
        self.post("/v1/jobs", request)
    }

    /// `POST /v1/jobs/{id}/exit`: the main process has ended.
    pub fn report_exit(&mut self, id: u64, report: &ExitReport) -> Result<Job> {
        self.post(&format!("/v1/jobs/{id}/exit"), report)
    }

    /// `POST /v1/jobs/{id}/suspend`.
    pub fn suspend(&mut self, id: u64) -> Result<Job> {
        self.post(&format!("/v1/jobs/{id}/suspend"), &serde_json::Map::new())
    }

    /// `POST /v1/jobs/{id}/resume`.
    pub fn resume(&mut self, id: u64) -> Result<Job> {
        self.post(&format!("/v1/jobs/{id}/resume"), &serde_json::Map::new())
    }

    /// `POST /v1/jobs/{id}/kill`.
    pub fn kill(&mut self, id: u64, request: &KillRequest) -> Result<Job> {
        self.post(&format!("/v1/jobs/{id}/kill"), request)
    }

    /// `POST /v1/jobs/{id}/share`.
    pub fn set_share(&mut self, id: u64, request: &ShareRequest) -> Result<Job> {
        self.post(&format!("/v1/jobs/{id}/share"), request)
    }

    /// `POST /v1/jobs/{id}/class`.
    pub fn set_class(&mut self, id: u64, request: &ClassRequest) -> Result<Job> {
        self.post(&format!("/v1/jobs/{id}/class"), request)
    }

    /// `POST /v1/jobs/{id}/release`: an adopted job is no longer a job; its processes continue.
    pub fn release(&mut self, id: u64) -> Result<Job> {
        self.post(&format!("/v1/jobs/{id}/release"), &serde_json::Map::new())
    }

    /// `POST /v1/jobs/{id}/processes`: adds a process to the job.
    pub fn add_process(&mut self, id: u64, request: &ProcessRequest) -> Result<Job> {
        self.post(&format!("/v1/jobs/{id}/processes"), request)
    }

    /// `DELETE /v1/jobs/{id}/processes`: removes a process from the job.
    pub fn remove_process(&mut self, id: u64, request: &ProcessRequest) -> Result<Job> {
        self.call("DELETE", &format!("/v1/jobs/{id}/processes"), Some(&encode(request)), self.answer_timeout)
    }

    /// `POST /v1/jobs/{id}/cgroups`: makes a cgroup a part of the job.
    pub fn add_cgroup(&mut self, id: u64, request: &CgroupRequest) -> Result<Job> {
        self.post(&format!("/v1/jobs/{id}/cgroups"), request)
    }

    /// `DELETE /v1/jobs/{id}/cgroups`: a cgroup is no part of the job any more, and runs on.
    pub fn remove_cgroup(&mut self, id: u64, request: &CgroupRequest) -> Result<Job> {
        self.call("DELETE", &format!("/v1/jobs/{id}/cgroups"), Some(&encode(request)), self.answer_timeout)
    }

    /// `POST /v1/jobs/{id}/resources`.
    pub fn set_resources(&mut self, id: u64, request: &ResourcesRequest) -> Result<Job> {
        self.post(&format!("/v1/jobs/{id}/resources"), request)
    }

    /// `POST /v1/jobs/{id}/policy`.
    pub fn set_job_policy(&mut self, id: u64, request: &PolicyRequest) -> Result<Job> {
        self.post(&format!("/v1/jobs/{id}/policy"), request)
    }

    /// `PUT /v1/nodes/{name}`: sets whether a node gets new jobs.
    pub fn set_node(&mut self, name: &str, request: &NodeRequest) -> Result<Status> {
        self.call("PUT", &format!("/v1/nodes/{name}"), Some(&encode(request)), self.answer_timeout)
    }

    /// `PUT /v1/queues`: sets the queues of the cluster.
    pub fn set_queues(&mut self, request: &QueuesRequest) -> Result<Status> {
        self.call("PUT", "/v1/queues", Some(&encode(request)), self.answer_timeout)
    }

    /// `POST /v1/cluster/repair`: lists what is wrong with the cluster's store and, if requested, repairs it.
    pub fn repair_cluster(&mut self, request: &RepairRequest) -> Result<RepairReport> {
        self.call("POST", "/v1/cluster/repair", Some(&encode(request)), STORE_TIMEOUT)
    }

    /// `GET /v1/cluster/export`: the contents of the cluster's store.
    pub fn export_cluster(&mut self) -> Result<ClusterBackup> {
        self.call("GET", "/v1/cluster/export", None, STORE_TIMEOUT)
    }

    /// `POST /v1/cluster/import`: restores what was exported.
    pub fn import_cluster(&mut self, request: &ImportRequest) -> Result<RepairReport> {
        self.call("POST", "/v1/cluster/import", Some(&encode(request)), STORE_TIMEOUT)
    }

    /// `PUT /v1/policy`: sets the machine's policy, sharing and slot length.
    pub fn set_policy(&mut self, request: &PolicyRequest) -> Result<Status> {
        self.call("PUT", "/v1/policy", Some(&encode(request)), self.answer_timeout)
    }

    /// `GET /metrics`: counters and histograms in the OpenMetrics text format, which Prometheus reads.
    pub fn metrics(&mut self) -> Result<String> {
        let response = self.ask("GET", "/metrics", None, self.answer_timeout)?;
        if (200..300).contains(&response.status) {
            return String::from_utf8(response.body).map_err(|e| ClientError::Protocol(e.to_string()));
        }
        decode::<serde_json::Value>(&response).map(|value| value.to_string())
    }

    /// `GET /v1/jobs/{id}/wait`: the job, as soon as it has ended or the time has passed. The daemon limits the time
    /// to 60 s.
    pub fn wait(&mut self, id: u64, timeout: Duration) -> Result<Job> {
        self.call("GET", &wait_target(id, timeout), None, self.answer_timeout + timeout)
    }

    /// Like [`Client::wait`], on a connection of its own and without blocking: for loops that poll several things.
    pub fn start_wait(&self, id: u64, timeout: Duration) -> Result<PendingWait> {
        let mut stream = open(&self.path)?;
        http::send(&mut stream, "GET", &wait_target(id, timeout), None).map_err(|source| self.unreachable(source))?;
        Ok(PendingWait { stream, path: self.path.clone() })
    }

    /// `GET /v1/samples`: samples of the last hour.
    pub fn samples(&mut self) -> Result<Samples> {
        self.get("/v1/samples")
    }

    /// `GET /v1/events`, on a connection of its own: events from now on, or since a given event.
    pub fn stream(&self, request: &StreamRequest) -> Result<EventStream> {
        let target = format!("/v1/events?follow={}{}", request.follow, after(request.after.as_deref()));
        let mut stream = open(&self.path)?;
        let lines = stream
            .set_read_timeout(Some(SILENCE_MAX))
            .and_then(|()| http::send(&mut stream, "GET", &target, None))
            .and_then(|()| http::receive_lines(stream));
        match lines.map_err(|source| self.failed(source))? {
            Ok(lines) => Ok(EventStream::new(lines, self.path.clone())),
            Err(response) => Err(decode::<serde_json::Value>(&response)
                .map_or_else(|e| e, |_| ClientError::Protocol("the answer is not a stream of events".to_owned()))),
        }
    }

    /// Forwards a request unchanged, for programs that relay the requests of others; returns status and body of the
    /// answer.
    pub fn forward(&mut self, method: &str, target: &str, body: Option<&[u8]>) -> Result<(u16, Vec<u8>)> {
        let response = self.ask(method, target, body, self.answer_timeout)?;
        Ok((response.status, response.body))
    }

    fn get<T: DeserializeOwned>(&mut self, target: &str) -> Result<T> {
        self.call("GET", target, None, self.answer_timeout)
    }

    fn post<T: DeserializeOwned>(&mut self, target: &str, body: &impl Serialize) -> Result<T> {
        self.call("POST", target, Some(&encode(body)), self.answer_timeout)
    }

    fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        target: &str,
        body: Option<&[u8]>,
        timeout: Duration,
    ) -> Result<T> {
        decode(&self.ask(method, target, body, timeout)?)
    }

    fn ask(&mut self, method: &str, target: &str, body: Option<&[u8]>, timeout: Duration) -> Result<http::Response> {
        let response = match self.connection.take() {
            // The daemon may have closed a kept connection; then it has not seen anything of this request, which is
            // sent again.
            Some(stream) => match self.exchange(stream, method, target, body, timeout) {
                Err(e) if is_closed(&e) => self.exchange(open(&self.path)?, method, target, body, timeout),
                other => other,
            },
            None => self.exchange(open(&self.path)?, method, target, body, timeout),
        };
        response.map_err(|source| self.failed(source))
    }

    fn exchange(
        &mut self,
        mut stream: UnixStream,
        method: &str,
        target: &str,
        body: Option<&[u8]>,
        timeout: Duration,
    ) -> io::Result<http::Response> {
        stream.set_read_timeout(Some(timeout))?;
        http::send(&mut stream, method, target, body)?;
        let response = http::receive(&mut stream)?;
        if response.keep {
            self.connection = Some(stream);
        }
        Ok(response)
    }

    fn failed(&self, source: io::Error) -> ClientError {
        if source.kind() == io::ErrorKind::InvalidData {
            ClientError::Protocol(source.to_string())
        } else {
            self.unreachable(source)
        }
    }

    fn unreachable(&self, source: io::Error) -> ClientError {
        ClientError::Unreachable { path: self.path.clone(), source }
    }
}

/// A pending long poll; its descriptor becomes readable when the answer arrives or the daemon closes the connection.
#[derive(Debug)]
pub struct PendingWait {
    stream: UnixStream,
    path: PathBuf,
}

impl PendingWait {
    /// Reads the answer; blocks until it has arrived.
    pub fn finish(mut self) -> Result<Job> {
        let response = http::receive(&mut self.stream)
            .map_err(|source| ClientError::Unreachable { path: self.path.clone(), source })?;
        decode(&response)
    }
}

impl AsFd for PendingWait {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn open(path: &Path) -> Result<UnixStream> {
    loop {
        match UnixStream::connect(path) {
            // Interrupted by a timer of the program; nothing has happened yet.
            Err(source) if source.kind() == io::ErrorKind::Interrupted => (),
            other => return other.map_err(|source| ClientError::Unreachable { path: path.to_owned(), source }),
        }
    }
}

fn after(id: Option<&str>) -> String {
    id.map_or_else(String::new, |id| format!("&after={}", escape(id)))
}

fn wait_target(id: u64, timeout: Duration) -> String {
    format!("/v1/jobs/{id}/wait?timeout_ms={}", timeout.as_millis())
}

fn encode(body: &impl Serialize) -> Vec<u8> {
    // The wire types have string keys and no failing serializers, so this cannot fail.
    serde_json::to_vec(body).expect("wire types are always JSON")
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | BrokenPipe | ConnectionReset)
}

fn decode<T: DeserializeOwned>(response: &http::Response) -> Result<T> {
    if (200..300).contains(&response.status) {
        return serde_json::from_slice(&response.body).map_err(|e| ClientError::Protocol(e.to_string()));
    }
    match serde_json::from_slice::<ErrorBody>(&response.body) {
        Ok(body) => Err(refused(body, response.version.as_deref())),
        Err(_) => {
            let text = String::from_utf8_lossy(&response.body);
            let start: String = text.trim().chars().take(200).collect();
            Err(ClientError::Protocol(format!("HTTP status {} {start}", response.status)))
        }
    }
}

/// A refusal is reported as a version mismatch if the daemon's different version is the reason.
fn refused(body: ErrorBody, version: Option<&str>) -> ClientError {
    let Ok(daemon) = ApiVersion::of_header(version) else {
        return ClientError::Protocol(format!("it names an invalid version of the interface: {version:?}"));
    };
    // The answer of an older daemon to a path or a field that it does not know.
    let unknown = match body.code {
        ErrorCode::NotFound => body.why.contains("no such path"),
        ErrorCode::Invalid => body.why.contains("unknown field") || body.why.contains("unknown variant"),
        _ => false,
    };
    if daemon.major != API_VERSION.major || (daemon < API_VERSION && unknown) {
        return ClientError::Version { daemon, why: format!("{}: {}", body.what, body.why) };
    }
    ClientError::Refused(body)
}

/// Escapes a text as a value in a query: all characters except letters, digits, `.`, `-` and `_`.
fn escape(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ErrorCode;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::net::UnixListener;
    use std::thread::JoinHandle;

    /// Answers each request of each connection in turn; an empty answer closes the connection instead.
    fn server(path: &Path, connections: Vec<Vec<&'static str>>) -> JoinHandle<Vec<String>> {
        let listener = UnixListener::bind(path).unwrap();
        std::thread::spawn(move || {
            let mut seen = Vec::new();
            for answers in connections {
                let mut stream = BufReader::new(listener.accept().unwrap().0);
                for answer in answers.into_iter().filter(|answer| !answer.is_empty()) {
                    seen.push(read_request(&mut stream));
                    stream.get_mut().write_all(answer.as_bytes()).unwrap();
                }
            }
            seen
        })
    }

    fn read_request(stream: &mut BufReader<UnixStream>) -> String {
        let (mut first, mut length) = (String::new(), 0);
        stream.read_line(&mut first).unwrap();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        format!("{} {}", first.trim_end(), String::from_utf8(body).unwrap())
    }

    const EMPTY_LIST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"jobs\":[]}";

    #[test]
    fn keeps_the_connection_and_opens_another_when_it_was_closed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let server = server(&path, vec![vec![EMPTY_LIST, EMPTY_LIST], vec![EMPTY_LIST]]);
        let mut client = Client::connect(&path).unwrap();
        for all in [false, true, false] {
            assert!(client.jobs(all).unwrap().jobs.is_empty());
        }
        let seen = server.join().unwrap();
        assert_eq!(seen, ["GET /v1/jobs HTTP/1.1 ", "GET /v1/jobs?all=true HTTP/1.1 ", "GET /v1/jobs HTTP/1.1 "]);
    }

    #[test]
    fn gives_the_daemons_refusal_and_its_own_when_the_answer_is_strange() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 54\r\n\r\n\
            {\"code\":\"forbidden\",\"what\":\"w\",\"why\":\"y\",\"hint\":\"h h\"}";
        let strange = "HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\nouch";
        let server = server(&path, vec![vec![refusal, strange]]);
        let mut client = Client::connect(&path).unwrap();
        let kill = KillRequest { signal: 15, grace_ms: Some(5000), here: false };
        match client.kill(7, &kill) {
            Err(ClientError::Refused(body)) => {
                assert_eq!((body.code, body.hint.as_str()), (ErrorCode::Forbidden, "h h"))
            }
            other => panic!("{other:?}"),
        }
        match client.suspend(7) {
            Err(ClientError::Protocol(why)) => assert_eq!(why, "HTTP status 500 ouch"),
            other => panic!("{other:?}"),
        }
        let seen = server.join().unwrap();
        assert_eq!(seen[0], "POST /v1/jobs/7/kill HTTP/1.1 {\"signal\":15,\"grace_ms\":5000}");
        assert_eq!(seen[1], "POST /v1/jobs/7/suspend HTTP/1.1 {}");
    }

    fn answer(status: &str, header: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\n{header}Content-Length: {}\r\n\r\n{body}", body.len())
    }

    #[test]
    fn a_daemon_of_another_version_is_told_from_one_that_refuses() {
        let body =
            |code: &str, why: &str| format!("{{\"code\":\"{code}\",\"what\":\"w\",\"why\":\"{why}\",\"hint\":\"h\"}}");
        let ask = |header: &str, body: &str| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s");
            let text: &'static str = answer("404 Not Found", header, body).leak();
            let server = server(&path, vec![vec![text]]);
            let error = Client::connect(&path).unwrap().load(Some("a b")).unwrap_err();
            assert_eq!(server.join().unwrap(), ["GET /v1/load?node=a%20b HTTP/1.1 "]);
            error
        };
        let unknown = body("not-found", "The API has no such path or method");
        // Version 0.1.0 of the daemon sends no version.
        let old = ask("", &unknown).to_string();
        assert!(old.starts_with("the daemon speaks version 1.0 of the interface, this program version 1."), "{old}");
        assert!(old.contains("hint: the daemon is older"), "{old}");
        let new = ask("Cosched-Api: 2.0\r\n", &body("unsupported", "yours is 1")).to_string();
        assert!(new.contains("version 2.0") && new.contains("this program is older"), "{new}");
        let same = format!("Cosched-Api: {API_VERSION}\r\n");
        assert!(matches!(ask(&same, &unknown), ClientError::Refused(_)));
        assert!(matches!(ask("", &body("not-found", "no job")), ClientError::Refused(_)));
        assert!(matches!(ask("Cosched-Api: x\r\n", &unknown), ClientError::Protocol(_)));
    }

    #[test]
    fn says_that_nothing_listens_and_that_the_daemon_went_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let unreachable = |result| matches!(result, Err(ClientError::Unreachable { source, .. }) if source.kind() != io::ErrorKind::Other);
        assert!(unreachable(Client::connect(&path).map(drop)));
        let server = server(&path, vec![vec![EMPTY_LIST]]);
        let mut client = Client::connect(&path).unwrap();
        client.jobs(false).unwrap();
        server.join().unwrap();
        assert!(unreachable(client.jobs(false).map(drop)));
    }
}
