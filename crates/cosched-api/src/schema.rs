//! The OpenAPI 3.1 document of the API: the paths from one table, the bodies from the types themselves.
//!
//! `docs/schema/openapi.json` is the written form, which the daemon serves; a test compares the two, and the daemon's test checks that its router
//! serves every path of the table.

use crate::adopt::*;
use crate::cluster::*;
use crate::job_state::*;
use crate::limits::*;
use crate::machine::*;
use crate::resources::*;
use crate::stream::*;
use crate::types::*;
use serde_json::{Value, json};
use utoipa::OpenApi;

/// One method of one path of the API.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// In lower case.
    pub method: &'static str,
    /// With `{id}` for a job's id.
    pub path: &'static str,
    /// What the request does.
    pub summary: &'static str,
    /// The name of the body's type.
    pub request: Option<&'static str>,
    /// The name of the answer's type.
    pub response: &'static str,
    /// The query parameters: name, type, meaning.
    pub query: &'static [(&'static str, &'static str, &'static str)],
}

const fn route(
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    request: Option<&'static str>,
    response: &'static str,
) -> Route {
    Route { method, path, summary, request, response, query: &[] }
}

const fn with_query(route: Route, query: &'static [(&'static str, &'static str, &'static str)]) -> Route {
    Route { query, ..route }
}

/// Every path of the API.
pub const ROUTES: &[Route] = &[
    route("get", "/v1/status", "The machine: CPUs, matrix, switches, and what is wrong", None, "Status"),
    route("get", "/v1/version", "The daemon and the version of its interface", None, "Version"),
    route("get", "/v1/openapi.json", "This document", None, DOCUMENT),
    with_query(
        route("get", "/v1/load", "How busy a node is", None, "NodeLoad"),
        &[("node", "string", "The node's name; the daemon's own when absent")],
    ),
    route("get", "/v1/loads", "How busy all nodes are", None, "LoadList"),
    route("get", "/v1/limits", "The caller's limits at this daemon, and their use", None, "LimitList"),
    route("put", "/v1/queues", "The queues of the cluster", Some("QueuesRequest"), "Status"),
    route(
        "post",
        "/v1/cluster/repair",
        "Repair the cluster's store (administrators)",
        Some("RepairRequest"),
        "RepairReport",
    ),
    route("get", "/v1/cluster/export", "Export the cluster's store (administrators)", None, "ClusterBackup"),
    route("post", "/v1/cluster/import", "Restore an export (administrators)", Some("ImportRequest"), "RepairReport"),
    route("put", "/v1/nodes/{name}", "Whether a node of the cluster gets new jobs", Some("NodeRequest"), "Status"),
    route("put", "/v1/policy", "Change the machine's policy while jobs run", Some("PolicyRequest"), "Status"),
    with_query(
        route("get", "/v1/jobs", "The jobs", None, "JobList"),
        &[("all", "boolean", "Ended jobs that are still remembered, too")],
    ),
    with_query(
        route("get", "/v1/ended", "Jobs that have ended, the latest first, at most 1000", None, "JobList"),
        &[
            ("since_unix_ms", "integer", "Those that ended at this time or later"),
            ("until_unix_ms", "integer", "Those that ended at this time or before"),
            ("uid", "integer", "Those of this user"),
        ],
    ),
    route("post", "/v1/jobs", "Register a job; its first process enters its cgroups", Some("JobRequest"), "Job"),
    route("get", "/v1/jobs/{id}", "One job", None, "Job"),
    route("post", "/v1/jobs/{id}/exit", "The launcher saw the main process end", Some("ExitReport"), "Job"),
    route("post", "/v1/jobs/{id}/suspend", "Stop a job", None, "Job"),
    route("post", "/v1/jobs/{id}/resume", "Resume a suspended job", None, "Job"),
    route("post", "/v1/jobs/{id}/kill", "Signal every process of a job", Some("KillRequest"), "Job"),
    route("post", "/v1/jobs/{id}/share", "Change a job's maximum share of the time", Some("ShareRequest"), "Job"),
    route("post", "/v1/jobs/{id}/class", "Change a job's class", Some("ClassRequest"), "Job"),
    route(
        "post",
        "/v1/jobs/{id}/resources",
        "Change the resources that a job requests",
        Some("ResourcesRequest"),
        "Job",
    ),
    route("post", "/v1/jobs/{id}/processes", "Put a process into a job", Some("ProcessRequest"), "Job"),
    route("delete", "/v1/jobs/{id}/processes", "Take a process out of a job", Some("ProcessRequest"), "Job"),
    route("post", "/v1/jobs/{id}/cgroups", "Make a cgroup a part of a job, where it is", Some("CgroupRequest"), "Job"),
    route("delete", "/v1/jobs/{id}/cgroups", "Take such a cgroup out of a job", Some("CgroupRequest"), "Job"),
    route(
        "post",
        "/v1/jobs/{id}/release",
        "Release an adopted job: its processes continue, but are no longer a job",
        None,
        "Job",
    ),
    route("post", "/v1/jobs/{id}/policy", "Change a job's own policy", Some("PolicyRequest"), "Job"),
    with_query(
        route("get", "/v1/jobs/{id}/wait", "The job, when it has ended or the time is over", None, "Job"),
        &[("timeout_ms", "integer", "How long to wait, 60000 at most")],
    ),
    route("get", "/v1/jobs/{id}/events", "The events of a job", None, "EventList"),
    with_query(
        route("get", "/v1/events", "The daemon's events as they occur (server-sent events)", None, STREAM),
        &[
            (
                "after",
                "string",
                "The id of the last event that is known (or the header Last-Event-ID); 0: all remembered events",
            ),
            ("follow", "boolean", "false: end after the past events; true when absent"),
        ],
    ),
    route("get", "/v1/samples", "The last hour: what jobs were due and received", None, "Samples"),
    route("get", "/metrics", "Counters and histograms for Prometheus (OpenMetrics text)", None, TEXT),
];

/// The value of `response` for answers in plain text, not JSON.
pub const TEXT: &str = "text";

/// The value of `response` for this document.
pub const DOCUMENT: &str = "document";

/// The value of `response` for answers that are a continuous stream of this type.
pub const STREAM: &str = "StreamEvent";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "cosched",
        version = "1",
        description = "HTTP + JSON on a Unix socket; the uid of the process at the other end decides its rights."
    ),
    components(schemas(
        JobRequest,
        Job,
        ExitReport,
        KillRequest,
        LimitList,
        ClassRequest,
        ShareRequest,
        PolicyRequest,
        JobList,
        EventList,
        QueuesRequest,
        RepairRequest,
        RepairReport,
        ClusterBackup,
        ImportRequest,
        NodeRequest,
        Status,
        ResourcesRequest,
        ProcessRequest,
        CgroupRequest,
        NodeLoad,
        LoadList,
        Version,
        StatusFile,
        StreamEvent,
        Samples,
        ErrorBody
    ))
)]
struct Types;

/// The whole document.
pub fn openapi() -> Value {
    // The types' schemas come from derives; serialising them cannot fail.
    let mut document = serde_json::to_value(Types::openapi()).unwrap_or_default();
    let mut paths = serde_json::Map::new();
    for route in ROUTES {
        let entry = paths.entry(route.path).or_insert_with(|| json!({}));
        entry[route.method] = operation(route);
    }
    document["paths"] = Value::Object(paths);
    document
}

fn operation(route: &Route) -> Value {
    let mut parameters = Vec::new();
    if route.path.contains("{id}") {
        parameters.push(json!({"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}));
    }
    if route.path.contains("{name}") {
        parameters.push(json!({"name": "name", "in": "path", "required": true, "schema": {"type": "string"}}));
    }
    for (name, kind, meaning) in route.query {
        parameters.push(json!({"name": name, "in": "query", "description": meaning, "schema": {"type": kind}}));
    }
    let mut operation = json!({
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            "200": {"description": "Done", "content": body(route.response)},
            "default": {"description": "Refused: what, why, and what to do", "content": body("ErrorBody")},
        },
    });
    if let Some(request) = route.request {
        operation["requestBody"] = json!({"required": true, "content": body(request)});
    }
    operation
}

fn body(name: &str) -> Value {
    if name == TEXT {
        return json!({"application/openmetrics-text": {"schema": {"type": "string"}}});
    }
    if name == DOCUMENT {
        return json!({"application/json": {"schema": {"type": "object"}}});
    }
    let kind = if name == STREAM { "text/event-stream" } else { "application/json" };
    json!({kind: {"schema": {"$ref": format!("#/components/schemas/{name}")}}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// `COSCHED_UPDATE=1 cargo test -p cosched-api --features schema` regenerates the file.
    #[test]
    fn the_checked_in_document_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/openapi.json");
        let now = serde_json::to_string_pretty(&openapi()).unwrap() + "\n";
        if std::env::var_os("COSCHED_UPDATE").is_some() {
            std::fs::write(&path, &now).unwrap();
        }
        let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(checked_in == now, "docs/schema/openapi.json is old: run this test with COSCHED_UPDATE=1");
    }

    #[test]
    fn every_named_type_is_described() {
        let document = openapi();
        let names = ROUTES.iter().flat_map(|r| r.request.into_iter().chain([r.response]));
        for name in names.chain(["ErrorBody"]).filter(|name| ![TEXT, DOCUMENT].contains(name)) {
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
