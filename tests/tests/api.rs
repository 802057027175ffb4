//! The document of the API and the daemon agree: every path that the one names, the other answers.

use cosched_api::schema::{ROUTES, TEXT};
use cosched_tests::{Daemon, needs_root};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// The body of the answer to a request, as JSON.
fn ask(d: &Daemon, method: &str, path: &str) -> serde_json::Value {
    let mut stream = UnixStream::connect(d.socket()).unwrap();
    let method = method.to_uppercase();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").expect("a head and a body").1;
    serde_json::from_str(body).unwrap_or_else(|e| panic!("{method} {path}: {e}: {answer}"))
}

#[test]
fn every_documented_path_is_answered() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let unknown = |method: &str, path: &str| {
        let what = ask(&d, method, path)["what"].as_str().unwrap_or_default().to_owned();
        what == format!("there is no {} {path}", method.to_uppercase())
    };
    for route in ROUTES.iter().filter(|route| route.response != TEXT) {
        let path = route.path.replace("{id}", "999999");
        assert!(!unknown(route.method, &path), "{} {} is documented and not answered", route.method, route.path);
    }
    assert!(unknown("get", "/v1/nothing"));
    assert!(unknown("delete", "/v1/status"));
}

#[test]
fn a_status_has_what_the_document_says() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    assert!(d.cosched(&["run", "--", "true"]).status.success());
    let document = cosched_api::schema::openapi();
    for (path, name) in [("/v1/status", "Status"), ("/v1/jobs/1", "Job"), ("/v1/jobs?all=true", "JobList")] {
        let answer = ask(&d, "get", path);
        for field in document["components"]["schemas"][name]["required"].as_array().expect("required fields") {
            assert!(!answer[field.as_str().unwrap()].is_null(), "{path} has no {field}");
        }
    }
}
