//! A connection to the runtime: the plug-in registers, is configured and synchronised, and then hears what happens.
//!
//! The runtime waits for each answer, for 2 s by default, and containers start and stop meanwhile. So everything is answered at once, and what follows from
//! it is done by another thread.

use crate::messages::{
    Configure, Configured, Event, Happened, PLUGIN_SERVICE, RUNTIME_SERVICE, RegisterPlugin, Request, Response,
    StateChange, Status, Synchronize, Synchronized,
};
use crate::pods::News;
use crate::wire::{self, Message, PLUGIN, REQUEST, RESPONSE, RUNTIME, Reader};
use prost::Message as _;
use std::convert::Infallible;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long a runtime may take until it has sent what runs.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(30);

/// ttrpc's codes.
const INVALID: i32 = 3;
const UNIMPLEMENTED: i32 = 12;

/// As what the plug-in registers: plug-ins are called in the order of their indices.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Identity {
    pub(crate) index: String,
    pub(crate) name: String,
}

/// What hears of a session.
pub(crate) trait Listener {
    /// The plug-in's settings, if the runtime has a file with some for it.
    ///
    /// # Errors
    /// They are wrong: the runtime then refuses the plug-in.
    fn configure(&mut self, text: &str) -> Result<(), String>;

    /// Something happened.
    fn tell(&mut self, news: News);
}

/// Answers the runtime until the connection ends.
///
/// # Errors
/// Why it has ended: `UnexpectedEof` when the runtime has closed it.
pub(crate) fn serve(stream: &UnixStream, identity: &Identity, listener: &mut dyn Listener) -> io::Result<Infallible> {
    stream.set_read_timeout(Some(BEGIN_TIME_MAX))?;
    let (mut reader, mut out) = (Reader::new(stream), stream);
    register(&mut out, identity)?;
    let mut begun = Synchronize::default();
    loop {
        let message = reader.next()?;
        match (message.connection, message.kind) {
            (PLUGIN, REQUEST) => {
                let request = decode::<Request>(&message.body)?;
                let answer = answer(&request, &mut begun, listener);
                let response = answer.unwrap_or_else(|status| Response { status: Some(status), payload: Vec::new() });
                let body = response.encode_to_vec();
                wire::send(&mut out, &Message { kind: RESPONSE, body, ..message })?;
                if request.method == "Synchronize" {
                    stream.set_read_timeout(None)?;
                }
            }
            (RUNTIME, RESPONSE) => check_registered(&message)?,
            // Neither streams nor other calls are a part of NRI.
            _ => (),
        }
    }
}

fn register(out: &mut &UnixStream, identity: &Identity) -> io::Result<()> {
    let Identity { index, name } = identity.clone();
    let request = Request {
        service: RUNTIME_SERVICE.to_owned(),
        method: "RegisterPlugin".to_owned(),
        payload: RegisterPlugin { plugin_name: name, plugin_idx: index }.encode_to_vec(),
    };
    wire::send(out, &Message { connection: RUNTIME, stream: 1, kind: REQUEST, body: request.encode_to_vec() })
}

fn check_registered(message: &Message) -> io::Result<()> {
    let response = decode::<Response>(&message.body)?;
    match response.status.filter(|status| status.code != 0) {
        Some(status) => Err(io::Error::other(format!("it does not register the plug-in: {}", status.message))),
        None => Ok(()),
    }
}

fn answer(request: &Request, begun: &mut Synchronize, listener: &mut dyn Listener) -> Result<Response, Status> {
    if request.service != PLUGIN_SERVICE {
        return Err(Status { code: UNIMPLEMENTED, message: "no such service".to_owned() });
    }
    let payload = match request.method.as_str() {
        "Configure" => {
            let asked = read::<Configure>(request)?;
            tracing::info!("registered with {:?} {:?}", asked.runtime_name, asked.runtime_version);
            listener.configure(&asked.config).map_err(|message| Status { code: INVALID, message })?;
            Configured { events: Event::mask() }.encode_to_vec()
        }
        "Synchronize" => {
            let Synchronize { pods, containers, more } = read(request)?;
            begun.pods.extend(pods);
            begun.containers.extend(containers);
            if !more {
                let Synchronize { pods, containers, .. } = std::mem::take(begun);
                listener.tell(News::All { pods, containers });
            }
            Synchronized { more }.encode_to_vec()
        }
        "StateChange" => {
            let StateChange { event, pod, container } = read(request)?;
            if let Some(event) = Event::of_number(event) {
                listener.tell(News::Happened { event, pod, container });
            }
            Vec::new()
        }
        "Shutdown" => Vec::new(),
        method => {
            let unknown = || Status { code: UNIMPLEMENTED, message: "no such method".to_owned() };
            let event = Event::of_method(method).ok_or_else(unknown)?;
            let Happened { pod, container } = read(request)?;
            listener.tell(News::Happened { event, pod, container });
            Vec::new()
        }
    };
    Ok(Response { status: None, payload })
}

fn read<T: prost::Message + Default>(request: &Request) -> Result<T, Status> {
    T::decode(&request.payload[..]).map_err(|e| Status { code: INVALID, message: format!("{}: {e}", request.method) })
}

fn decode<T: prost::Message + Default>(bytes: &[u8]) -> io::Result<T> {
    T::decode(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{Container, PodSandbox};

    #[derive(Default)]
    struct Heard(Vec<News>, Vec<String>);

    impl Listener for Heard {
        fn configure(&mut self, text: &str) -> Result<(), String> {
            self.1.push(text.to_owned());
            if text == "wrong" { Err("no such key".to_owned()) } else { Ok(()) }
        }

        fn tell(&mut self, news: News) {
            self.0.push(news);
        }
    }

    fn call<T: prost::Message>(method: &str, payload: &T) -> Request {
        Request { service: PLUGIN_SERVICE.into(), method: method.into(), payload: payload.encode_to_vec() }
    }

    /// What the plug-in answers to these calls of a runtime, after it has registered.
    fn ask(calls: &[Request]) -> (Vec<Response>, Heard) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut heard = Heard::default();
        let calls = calls.to_vec();
        let runtime = std::thread::spawn(move || {
            let (mut reader, mut out) = (Reader::new(&theirs), &theirs);
            let registered = reader.next().unwrap();
            assert_eq!((registered.connection, registered.kind), (RUNTIME, REQUEST));
            let asked = Request::decode(&registered.body[..]).unwrap();
            let name = RegisterPlugin::decode(&asked.payload[..]).unwrap();
            assert_eq!((asked.method.as_str(), name.plugin_idx.as_str()), ("RegisterPlugin", "10"));
            let body = Response::default().encode_to_vec();
            wire::send(&mut out, &Message { kind: RESPONSE, body, ..registered }).unwrap();
            let answers = calls.iter().enumerate().map(|(at, call)| {
                let stream = 2 * at as u32 + 1;
                let body = call.encode_to_vec();
                wire::send(&mut out, &Message { connection: PLUGIN, stream, kind: REQUEST, body }).unwrap();
                let answer = reader.next().unwrap();
                assert_eq!((answer.connection, answer.stream, answer.kind), (PLUGIN, stream, RESPONSE));
                Response::decode(&answer.body[..]).unwrap()
            });
            answers.collect()
        });
        let identity = Identity { index: "10".into(), name: "cosched".into() };
        let ended = serve(&ours, &identity, &mut heard).unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
        (runtime.join().unwrap(), heard)
    }

    #[test]
    fn a_runtime_is_answered_and_what_it_tells_is_heard() {
        let pod = PodSandbox { id: "p".into(), ..PodSandbox::default() };
        let container = Container { id: "c".into(), ..Container::default() };
        let half = Synchronize { pods: vec![pod.clone()], containers: vec![], more: true };
        let rest = Synchronize { pods: vec![], containers: vec![container.clone()], more: false };
        let event = |event| StateChange { event, pod: Some(pod.clone()), container: None };
        let stop = Happened { pod: Some(pod.clone()), container: Some(container.clone()) };
        let (answers, heard) = ask(&[
            call("Configure", &Configure { config: "class = \"batch\"".into(), ..Configure::default() }),
            call("Synchronize", &half),
            call("Synchronize", &rest),
            call("StateChange", &event(3)),
            call("StateChange", &event(1)),
            call("StopContainer", &stop),
            call("CreateContainer", &stop),
        ]);
        let codes = answers.iter().map(|answer| answer.status.as_ref().map_or(0, |status| status.code));
        assert_eq!(codes.collect::<Vec<_>>(), [0, 0, 0, 0, 0, 0, UNIMPLEMENTED]);
        assert_eq!(Configured::decode(&answers[0].payload[..]).unwrap().events, Event::mask());
        assert!(Synchronized::decode(&answers[1].payload[..]).unwrap().more);
        let (pod, container) = (Some(pod), Some(container));
        let all =
            News::All { pods: pod.clone().into_iter().collect(), containers: container.clone().into_iter().collect() };
        let removed = News::Happened { event: Event::RemovePodSandbox, pod: pod.clone(), container: None };
        let stopped = News::Happened { event: Event::StopContainer, pod, container };
        assert_eq!(heard.0, [all, removed, stopped]);
        assert_eq!(heard.1, ["class = \"batch\""]);
    }

    #[test]
    fn wrong_settings_and_wrong_messages_are_answered_by_the_reason() {
        let rubbish = Request { payload: vec![0xff; 9], ..call("Synchronize", &Synchronize::default()) };
        let (answers, heard) =
            ask(&[call("Configure", &Configure { config: "wrong".into(), ..Configure::default() }), rubbish]);
        let status = |at: usize| answers[at].status.clone().unwrap();
        assert_eq!((status(0).code, status(0).message.as_str()), (INVALID, "no such key"));
        assert_eq!(status(1).code, INVALID);
        assert!(heard.0.is_empty());
    }
}
