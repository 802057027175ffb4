//! Connections, tokens and calls.

use super::super::FromStore;
use super::proto;
use super::words;
use super::{EtcdConfig, EtcdConfigError};
use cosched_cluster::OpId;
use cosched_cluster::store::{LeaseId, Op, OpDone, Range, Revision, StoreError};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

/// The longest answer in bytes: all entries of a large cluster.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// How often a silent connection is pinged. etcd permits no shorter time than 5 s.
const PING: Duration = Duration::from_secs(8);

/// The limit on the wait for the answer to a ping.
const PONG_MAX: Duration = Duration::from_secs(4);

/// The wait for a password check may be this number of times longer than for other answers, where there is no other endpoint.
const PATIENCE_MAX: u32 = 8;

const TXN: &str = "/etcdserverpb.KV/Txn";
const GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
const REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
const WATCH: &str = "/etcdserverpb.Watch/Watch";
const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";

#[derive(Debug)]
pub(super) struct Wire {
    channels: Vec<Channel>,
    /// The endpoint in use.
    at: Cell<usize>,
    https: bool,
    user: Option<(String, String)>,
    token: RefCell<Option<AsciiMetadataValue>>,
    answer_max: Duration,
    /// The limit on the wait for a token, as a multiple of that for other answers.
    patience: Cell<u32>,
}

/// The initial patience: none if there are other endpoints to try.
fn patience_min(endpoints: usize) -> u32 {
    if endpoints > 1 { 1 } else { PATIENCE_MAX }
}

fn wrong(what: impl Into<String>, why: impl Into<String>, hint: &str) -> EtcdConfigError {
    EtcdConfigError { what: what.into(), why: why.into(), hint: hint.to_owned() }
}

impl Wire {
    pub(super) fn new(config: &EtcdConfig) -> Result<Wire, EtcdConfigError> {
        if config.endpoints.is_empty() {
            let hint = "Name etcd's members, as in endpoints = [\"http://10.0.0.1:2379\"].";
            return Err(wrong("the store cannot be reached", "no endpoint is set", hint));
        }
        let channels = config.endpoints.iter().map(|endpoint| channel(endpoint, config)).collect::<Result<_, _>>()?;
        Ok(Wire {
            channels,
            at: Cell::new(0),
            https: config.endpoints.iter().any(|endpoint| endpoint.starts_with("https://")),
            user: config.user.clone(),
            token: RefCell::new(None),
            answer_max: config.answer_max,
            patience: Cell::new(patience_min(config.endpoints.len())),
        })
    }

    fn grpc(&self) -> Grpc<Channel> {
        Grpc::new(self.channels[self.at.get()].clone())
            .max_decoding_message_size(ANSWER_BYTES_MAX)
            .max_encoding_message_size(ANSWER_BYTES_MAX)
    }

    /// The endpoint does not answer: uses the next one from now on.
    fn turn_to_next(&self, failed: usize) {
        if self.at.get() == failed {
            self.at.set((failed + 1) % self.channels.len());
        }
    }

    /// Carries out an operation that is not a watch.
    pub(super) async fn call(&self, op: Op) -> Result<OpDone, StoreError> {
        let first = self.call_once(op.clone()).await;
        // The operation was refused, so it may be repeated with a new token.
        let done = match first {
            Err(Refusal::Token) => {
                self.token.replace(None);
                self.call_once(op).await
            }
            first => first,
        };
        done.map_err(|refusal| self.hint_at_certificates(refusal.told()))
    }

    /// A server that rejects our certificate may just close the connection: its alert comes after the handshake, and may be overtaken.
    fn hint_at_certificates(&self, why: StoreError) -> StoreError {
        match why {
            StoreError::Unavailable(text)
                if ["closed", "reset", "broken pipe"].iter().any(|part| text.to_lowercase().contains(part)) =>
            {
                let hint = match self.https {
                    true => "if etcd asks for a certificate of its clients, check `cert_file` and `key_file`",
                    false => "if etcd speaks TLS, write https:// in `endpoints`, and set `ca_file`",
                };
                StoreError::Unavailable(format!("{text}: {hint}"))
            }
            why => why,
        }
    }

    async fn call_once(&self, op: Op) -> Result<OpDone, Refusal> {
        let at = self.at.get();
        let done = match self.authenticate().await {
            Ok(()) => timeout(self.answer_max, self.call_now(op)).await.unwrap_or_else(|_| Err(self.late())),
            Err(why) => Err(why),
        };
        if let Err(Refusal::Other(StoreError::Unavailable(_))) = done {
            self.turn_to_next(at);
        }
        done
    }

    /// If a token names a later revision than etcd has reached, etcd does not answer at all but waits for that revision. That happens after it has
    /// lost its data. The next operation requests a new token.
    fn late(&self) -> Refusal {
        self.token.replace(None);
        late()
    }

    async fn call_now(&self, op: Op) -> Result<OpDone, Refusal> {
        match op {
            Op::Txn(txn) => self.unary(TXN, words::txn(txn)).await.map(words::txn_done),
            Op::Grant { ttl_s } => {
                let request = proto::LeaseGrantRequest { ttl: ttl_s as i64 };
                let granted: proto::LeaseGrantResponse = self.unary(GRANT, request).await?;
                if !granted.error.is_empty() {
                    return Err(Refusal::Other(StoreError::Fault(granted.error)));
                }
                let revision = words::revision(granted.header);
                Ok(OpDone::Granted { lease: LeaseId(granted.id), ttl_s: granted.ttl as u64, revision })
            }
            Op::KeepAlive(lease) => self.keep_alive(lease).await,
            Op::Revoke(lease) => {
                let revoked: Result<proto::LeaseRevokeResponse, _> =
                    self.unary(REVOKE, proto::LeaseRequest { id: lease.0 }).await;
                match revoked {
                    Ok(_) | Err(Refusal::Other(StoreError::LeaseNotFound)) => Ok(OpDone::Revoked),
                    Err(refusal) => Err(refusal),
                }
            }
            Op::Watch { .. } => Ok(OpDone::Watching),
        }
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<OpDone, Refusal> {
        let mut grpc = self.grpc();
        grpc.ready().await.map_err(refused_transport)?;
        let asks = tokio_stream::once(proto::LeaseRequest { id: lease.0 });
        let codec = ProstCodec::<proto::LeaseRequest, proto::LeaseKeepAliveResponse>::default();
        let answers = grpc.streaming(self.request(asks), PathAndQuery::from_static(KEEP_ALIVE), codec).await;
        let answer = answers.map_err(refused)?.into_inner().message().await.map_err(refused)?;
        let gone = || Refusal::Other(StoreError::Unavailable("the connection was closed".to_owned()));
        let answer = answer.ok_or_else(gone)?;
        Ok(OpDone::KeptAlive { ttl_s: answer.ttl.max(0) as u64 })
    }

    /// Gets a token, if etcd has users and there is no token.
    async fn authenticate(&self) -> Result<(), Refusal> {
        let Some((name, password)) = &self.user else { return Ok(()) };
        if self.token.borrow().is_some() {
            return Ok(());
        }
        let request = proto::AuthenticateRequest { name: name.clone(), password: password.clone() };
        // etcd checks passwords slowly on purpose. The caller may give up before that, but the next one finds the token. A member that hangs looks
        // the same: all endpoints are tried before the wait becomes longer.
        let answer = timeout(self.patience.get() * self.answer_max, self.unary(AUTHENTICATE, request)).await;
        if answer.is_err() && self.at.get() + 1 == self.channels.len() {
            self.patience.set((2 * self.patience.get()).min(PATIENCE_MAX));
        }
        let answer: proto::AuthenticateResponse = match answer.unwrap_or_else(|_| Err(late())) {
            // Without authentication, etcd also serves clients that have a user.
            Err(Refusal::Other(StoreError::Unavailable(why))) if why.contains("authentication is not enabled") => {
                return Ok(());
            }
            answer => answer?,
        };
        self.token.replace(answer.token.parse().ok());
        self.patience.set(patience_min(self.channels.len()));
        Ok(())
    }

    pub(super) async fn unary<A, B>(&self, path: &'static str, ask: A) -> Result<B, Refusal>
    where
        A: prost::Message + Default + 'static,
        B: prost::Message + Default + 'static,
    {
        let mut grpc = self.grpc();
        grpc.ready().await.map_err(refused_transport)?;
        let codec = ProstCodec::<A, B>::default();
        let answer = grpc.unary(self.request(ask), PathAndQuery::from_static(path), codec).await;
        answer.map(tonic::Response::into_inner).map_err(refused)
    }

    fn request<T>(&self, ask: T) -> Request<T> {
        let mut request = Request::new(ask);
        // With this, an endpoint that is cut off from the others ends watches instead of staying silent.
        request.metadata_mut().insert("hasleader", AsciiMetadataValue::from_static("true"));
        if let Some(token) = &*self.token.borrow() {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }

    /// Watches until the watch ends.
    pub(super) async fn watch(&self, id: OpId, range: Range, from: Revision, to: &UnboundedSender<FromStore>) {
        let at = self.at.get();
        let mut began = false;
        let why = self.watch_now(id, range, from, to, &mut began).await;
        let why = match why {
            Refusal::Token => {
                self.token.replace(None);
                StoreError::Unavailable("the token has expired".to_owned())
            }
            Refusal::Other(why) => why,
        };
        if matches!(why, StoreError::Unavailable(_)) {
            self.turn_to_next(at);
        }
        let _ = to.send(match began {
            true => FromStore::WatchLost(id, why),
            false => FromStore::Done(id, Err(why)),
        });
    }

    async fn watch_now(
        &self,
        id: OpId,
        range: Range,
        from: Revision,
        to: &UnboundedSender<FromStore>,
        began: &mut bool,
    ) -> Refusal {
        if let Err(why) = self.authenticate().await {
            return why;
        }
        let mut answers = match timeout(self.answer_max, self.begin_watch(range, from)).await {
            Ok(Ok(answers)) => answers,
            Ok(Err(why)) => return why,
            Err(_) => return self.late(),
        };
        loop {
            let answer = match answers.message().await {
                Ok(Some(answer)) => answer,
                Ok(None) => return Refusal::Other(StoreError::Unavailable("the watch was closed".to_owned())),
                Err(status) => return refused(status),
            };
            if answer.canceled {
                return Refusal::Other(cancelled(&answer));
            }
            if answer.created && !*began {
                *began = true;
                let _ = to.send(FromStore::Done(id, Ok(OpDone::Watching)));
            }
            if !answer.events.is_empty() {
                let _ = to.send(FromStore::News(id, words::news(answer.events)));
            }
        }
    }

    async fn begin_watch(
        &self,
        range: Range,
        from: Revision,
    ) -> Result<tonic::Streaming<proto::WatchResponse>, Refusal> {
        let mut grpc = self.grpc();
        grpc.ready().await.map_err(refused_transport)?;
        let (key, range_end) = words::range(range);
        let create = proto::WatchCreateRequest { key, range_end, start_revision: from as i64 };
        // The stream of requests stays open: etcd would end the watch with it.
        let asks = tokio_stream::StreamExt::chain(
            tokio_stream::once(proto::WatchRequest { create: Some(create) }),
            tokio_stream::pending(),
        );
        let codec = ProstCodec::<proto::WatchRequest, proto::WatchResponse>::default();
        let answers = grpc.streaming(self.request(asks), PathAndQuery::from_static(WATCH), codec).await;
        Ok(answers.map_err(refused)?.into_inner())
    }
}

/// Why an operation was not carried out.
pub(super) enum Refusal {
    /// The token has expired, or etcd was restarted.
    Token,
    Other(StoreError),
}

impl Refusal {
    fn told(self) -> StoreError {
        match self {
            Refusal::Token => StoreError::Denied("etcd rejects the token that it issued a moment ago".to_owned()),
            Refusal::Other(why) => why,
        }
    }
}

fn late() -> Refusal {
    Refusal::Other(StoreError::Unavailable("no answer in time".to_owned()))
}

fn refused(status: Status) -> Refusal {
    let text = status.message();
    if text.contains("invalid auth token") || text.contains("revision of auth store is old") {
        return Refusal::Token;
    }
    Refusal::Other(words::error(&status))
}

fn refused_transport(error: tonic::transport::Error) -> Refusal {
    refused(Status::from_error(Box::new(error)))
}

fn cancelled(answer: &proto::WatchResponse) -> StoreError {
    if answer.compact_revision > 0 {
        return StoreError::Compacted(answer.compact_revision as u64);
    }
    words::error(&Status::unavailable(format!("the watch was cancelled: {}", answer.cancel_reason)))
}

fn channel(endpoint: &str, config: &EtcdConfig) -> Result<Channel, EtcdConfigError> {
    let hint = "Write it as http://host:port, or https://host:port with certificates.";
    let what = || format!("the endpoint {endpoint} cannot be used");
    let https = endpoint.starts_with("https://");
    if !https && !endpoint.starts_with("http://") {
        return Err(wrong(what(), "it has to begin with http:// or https://", hint));
    }
    let mut channel = Endpoint::from_shared(endpoint.to_owned())
        .map_err(|e| wrong(what(), e.to_string(), hint))?
        .connect_timeout(config.answer_max)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING)
        .keep_alive_timeout(PONG_MAX)
        .keep_alive_while_idle(true);
    if https {
        let tls = config.tls.as_ref();
        let tls = tls.ok_or_else(|| {
            wrong(what(), "https needs `ca_file`", "Name the file with the certificate of its signer.")
        })?;
        let hint = "Check ca_file, cert_file and key_file: they have to be PEM.";
        channel = tls.secure(channel).map_err(|why| wrong(what(), why, hint))?;
    }
    Ok(channel.connect_lazy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_has_run_out_is_asked_for_again_and_nobody_is_told() {
        let token = |text: &str| matches!(refused(Status::unauthenticated(text)), Refusal::Token);
        assert!(token("etcdserver: invalid auth token") && token("etcdserver: revision of auth store is old"));
        assert!(!token("etcdserver: permission denied"));
        assert!(matches!(Refusal::Token.told(), StoreError::Denied(_)), "twice in a row it is refused");
    }

    #[test]
    fn a_watch_that_etcd_ends_says_why() {
        let ended = |compact_revision, reason: &str| {
            let (cancel_reason, canceled) = (reason.to_owned(), true);
            cancelled(&proto::WatchResponse { compact_revision, cancel_reason, canceled, ..Default::default() })
        };
        assert_eq!(ended(7, ""), StoreError::Compacted(7));
        assert!(matches!(ended(0, "etcdserver: no leader"), StoreError::Unavailable(why) if why.contains("no leader")));
    }

    #[test]
    fn one_member_alone_is_waited_for_and_of_several_each_is_asked_first() {
        assert_eq!((patience_min(1), patience_min(2)), (PATIENCE_MAX, 1));
    }
}
