//! Spans of ended jobs for an OpenTelemetry collector (`[traces]`, decision 0079), by OTLP over gRPC.
//!
//! Nothing waits for the collector: spans go through a bounded queue to a thread of its own. One that does not answer is asked again, less and less
//! often; what finds the queue full meanwhile is dropped, counted and said. What an ended daemon had not delivered is gone: accounting has it.

mod form;
mod proto;

use crate::config::Traces;
use crate::tls::Tls;
use cosched_api as api;
use form::text;
use proto::{ExportRequest, ExportResponse, Resource, ResourceSpans, Scope, ScopeSpans, Span};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};
use tonic::Status;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// Jobs that wait to be sent.
const QUEUE: usize = 1024;
/// Jobs that are sent at a time: they are collected for a moment.
const BATCH: usize = 128;
const COLLECTED_FOR: Duration = Duration::from_millis(200);
/// How long the collector may take to answer, and the times between two attempts.
const ANSWER_MAX: Duration = Duration::from_secs(10);
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The way to the thread; without `[traces]` there is none.
#[derive(Debug, Default)]
pub(crate) struct Spans(Option<Way>);

#[derive(Debug)]
struct Way {
    jobs: Sender<Vec<Span>>,
    dropped: Arc<AtomicU64>,
    cluster: String,
    node: String,
}

impl Spans {
    /// Starts the thread.
    ///
    /// # Errors
    /// The file of certificates cannot be read or holds none, the URL is not one, or no thread can be started.
    pub(crate) fn start(traces: Option<&Traces>, cluster: &str, node: &str) -> anyhow::Result<Spans> {
        let Some(traces) = traces else { return Ok(Spans(None)) };
        let endpoint = endpoint(traces)?;
        let (jobs, queue) = channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let sender = Exporter { url: traces.url.clone(), resource: resource(node), dropped: Arc::clone(&dropped) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("spans".into()).spawn(move || {
            runtime.block_on(async { sender.run(endpoint.connect_lazy(), queue).await });
        })?;
        Ok(Spans(Some(Way { jobs, dropped, cluster: cluster.to_owned(), node: node.to_owned() })))
    }

    /// A job has ended here.
    pub(crate) fn send(&self, job: &api::Job, events: &[api::Event]) {
        let Some(way) = &self.0 else { return };
        if way.jobs.try_send(form::spans(&way.cluster, &way.node, job, events)).is_err() {
            way.dropped.fetch_add(1, Relaxed);
        }
    }
}

fn endpoint(traces: &Traces) -> anyhow::Result<Endpoint> {
    let wrong = |why: String| anyhow::anyhow!("`url = \"{}\"` of `[traces]` cannot be used: {why}", traces.url);
    let endpoint = Endpoint::from_shared(traces.url.clone()).map_err(|e| wrong(e.to_string()))?;
    let endpoint = endpoint.connect_timeout(ANSWER_MAX);
    let Some(file) = &traces.ca_file else { return Ok(endpoint) };
    let ca_pem = std::fs::read_to_string(file).map_err(|e| wrong(format!("{}: {e}", file.display())))?;
    Tls { ca_pem, ..Tls::default() }.secure(endpoint).map_err(|why| wrong(format!("{}: {why}", file.display())))
}

fn resource(node: &str) -> Resource {
    let version = text("service.version", env!("CARGO_PKG_VERSION"));
    Resource {
        attributes: vec![
            text("service.name", "cosched"),
            version,
            text("service.instance.id", node),
            text("host.name", node),
        ],
    }
}

/// The thread's side.
struct Exporter {
    url: String,
    resource: Resource,
    dropped: Arc<AtomicU64>,
}

impl Exporter {
    async fn run(&self, channel: Channel, mut queue: Receiver<Vec<Span>>) {
        let mut client = Grpc::new(channel);
        let mut jobs = Vec::new();
        while queue.recv_many(&mut jobs, BATCH).await > 0 {
            sleep(COLLECTED_FOR).await;
            // What has come meanwhile goes along; what is left comes next.
            while jobs.len() < BATCH
                && let Ok(job) = queue.try_recv()
            {
                jobs.push(job);
            }
            self.deliver(&mut client, std::mem::take(&mut jobs).concat()).await;
        }
    }

    /// What is too large for the collector goes in halves.
    async fn deliver(&self, client: &mut Grpc<Channel>, spans: Vec<Span>) {
        let mut parts = vec![spans];
        while let Some(mut part) = parts.pop() {
            if self.deliver_part(client, &part).await {
                continue;
            }
            match part.len() {
                0 | 1 => tracing::warn!("a span of an ended job is too large for {}, and is left out", self.url),
                spans => {
                    let rest = part.split_off(spans / 2);
                    parts.extend([rest, part]);
                }
            }
        }
    }

    /// Until the collector has taken them, or refuses them for good; returns whether they were not too large for it.
    async fn deliver_part(&self, client: &mut Grpc<Channel>, spans: &[Span]) -> bool {
        let request = self.request(spans.to_vec());
        let mut pause = RETRY[0];
        let mut has_told = false;
        loop {
            match timeout(ANSWER_MAX, export(client, request.clone())).await {
                Ok(Ok(answer)) => {
                    self.tell_end(has_told, answer);
                    return true;
                }
                Ok(Err(status)) if is_too_large(&status) => return false,
                Ok(Err(status)) if !is_retried(&status) => {
                    tracing::warn!("{} refuses spans of ended jobs: {}", self.url, status.message());
                    return true;
                }
                Ok(Err(status)) => self.tell(&mut has_told, status.message()),
                Err(_) => self.tell(&mut has_told, "no answer in 10 s"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(RETRY[1]);
        }
    }

    fn request(&self, spans: Vec<Span>) -> ExportRequest {
        let scope = Scope { name: "cosched".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
        ExportRequest { resource_spans: vec![ResourceSpans { resource: Some(self.resource.clone()), scope_spans }] }
    }

    fn tell(&self, has_told: &mut bool, why: &str) {
        if !std::mem::replace(has_told, true) {
            tracing::warn!("{} takes no spans of ended jobs: {why}. They are sent when it does", self.url);
        }
    }

    fn tell_end(&self, has_told: bool, answer: ExportResponse) {
        if has_told {
            tracing::info!("{} takes spans again", self.url);
        }
        let dropped = self.dropped.swap(0, Relaxed);
        if dropped > 0 {
            tracing::warn!("{dropped} ended jobs have no spans at {}: more than {QUEUE} waited", self.url);
        }
        if let Some(partial) = answer.partial_success.filter(|partial| partial.rejected_spans > 0) {
            tracing::warn!("{} has refused {} spans: {}", self.url, partial.rejected_spans, partial.error_message);
        }
    }
}

async fn export(client: &mut Grpc<Channel>, request: ExportRequest) -> Result<ExportResponse, Status> {
    client.ready().await.map_err(|e| Status::from_error(Box::new(e)))?;
    let codec = ProstCodec::<ExportRequest, ExportResponse>::default();
    let answer = client.unary(tonic::Request::new(request), PathAndQuery::from_static(EXPORT), codec).await?;
    Ok(answer.into_inner())
}

/// OTLP: a server with too much to do says in the details of its answer when to retry. Without them it refuses what is larger than its limit.
fn is_too_large(status: &Status) -> bool {
    status.code() == tonic::Code::ResourceExhausted && status.details().is_empty()
}

/// As OTLP's specification says which refusals are temporary.
fn is_retried(status: &Status) -> bool {
    use tonic::Code::{
        Aborted, Cancelled, DataLoss, DeadlineExceeded, OutOfRange, ResourceExhausted, Unavailable, Unknown,
    };
    match status.code() {
        // A connection that failed; else it is a collector's answer.
        Unknown => status.source().is_some(),
        code => matches!(
            code,
            Aborted | Cancelled | DataLoss | DeadlineExceeded | OutOfRange | ResourceExhausted | Unavailable
        ),
    }
}
