//! The daemon's log: lines on standard error; where that is systemd's journal, entries with a priority and fields.
//!
//! An entry's text has the fields, too: whoever reads it by `journalctl -u coschedd` sees what standard error would have shown.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt::{Debug, Write as _};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

const SOCKET: &str = "/run/systemd/journal/socket";
/// pipe(7).
const PIPE_BUF: usize = 4096;

/// To be called once, before the first message.
pub(crate) fn start() {
    let filter = EnvFilter::try_from_env("COSCHED_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    match journal() {
        Some(journal) => Registry::default().with(filter).with(Journal(journal)).init(),
        None => tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Stderr).with_ansi(false).init(),
    }
}

/// Systemd's journal, if standard error leads there: systemd then says which file that is.
fn journal() -> Option<UnixDatagram> {
    let stream = std::env::var("JOURNAL_STREAM").ok()?;
    let stderr = std::fs::metadata("/proc/self/fd/2").ok()?;
    if stream != format!("{}:{}", stderr.dev(), stderr.ino()) {
        return None;
    }
    let socket = UnixDatagram::unbound().ok()?;
    socket.connect(SOCKET).ok()?;
    // Every user may write there, so its queue may be full.
    socket.set_nonblocking(true).ok()?;
    Some(socket)
}

struct Journal(UnixDatagram);

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut entry = Entry::default();
        event.record(&mut entry);
        let level = event.metadata().level();
        if self.0.send(&entry.to_bytes(level)).is_err() {
            // The journal's other door.
            let _ = Stderr.write(format!("{level} {}\n", entry.text()).as_bytes());
        }
    }
}

/// Standard error, unless that would have to wait: a journal that hangs, or a pipe that is not read, must not stop the daemon.
struct Stderr;

impl std::io::Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let stderr = std::io::stderr();
        // A pipe that is ready takes that many without waiting.
        for part in bytes.chunks(PIPE_BUF) {
            let mut door = [PollFd::new(&stderr, PollFlags::OUT)];
            if !matches!(poll(&mut door, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1)) {
                break;
            }
            // It may be closed; then there is no other place.
            let _ = stderr.lock().write_all(part);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A message with its fields.
#[derive(Default)]
struct Entry {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Visit for Entry {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => self.fields.push((name, value.to_owned())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

impl Entry {
    fn text(&self) -> String {
        let mut text = self.message.clone();
        for (name, value) in &self.fields {
            // Writing to a text cannot fail.
            let _ = write!(text, " {name}={value}");
        }
        text
    }

    /// In the journal's native protocol.
    fn to_bytes(&self, level: &Level) -> Vec<u8> {
        let mut bytes = Vec::new();
        add(&mut bytes, "MESSAGE", &self.text());
        add(&mut bytes, "PRIORITY", priority(level));
        add(&mut bytes, "SYSLOG_IDENTIFIER", "coschedd");
        for (name, value) in &self.fields {
            add(&mut bytes, &format!("COSCHED_{}", name.to_uppercase().replace('.', "_")), value);
        }
        bytes
    }
}

/// Of syslog(3).
fn priority(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        _ => "7",
    }
}

/// A value with a line break has its length before it.
fn add(bytes: &mut Vec<u8>, name: &str, value: &str) {
    bytes.extend(name.bytes());
    if value.contains('\n') {
        bytes.push(b'\n');
        bytes.extend((value.len() as u64).to_le_bytes());
    } else {
        bytes.push(b'=');
    }
    bytes.extend(value.bytes());
    bytes.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_text_priority_and_fields() {
        let (ours, journals) = UnixDatagram::pair().unwrap();
        let log = Registry::default().with(Journal(ours));
        tracing::subscriber::with_default(log, || tracing::warn!(id = 7, how = "killed", "job {}", "ended"));
        let mut bytes = [0; 512];
        let length = journals.recv(&mut bytes).unwrap();
        let wanted = "MESSAGE=job ended id=7 how=killed\nPRIORITY=4\nSYSLOG_IDENTIFIER=coschedd\nCOSCHED_ID=7\nCOSCHED_HOW=killed\n";
        assert_eq!(std::str::from_utf8(&bytes[..length]), Ok(wanted));
    }

    #[test]
    fn a_line_break_forges_no_field() {
        let mut bytes = Vec::new();
        add(&mut bytes, "MESSAGE", "a\nPRIORITY=0");
        assert_eq!(bytes, b"MESSAGE\n\x0c\0\0\0\0\0\0\0a\nPRIORITY=0\n");
    }
}
