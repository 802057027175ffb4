//! The log of the hooks: Slurm discards what a prolog or epilog writes, and what a task prolog writes would appear in the
//! user's results.

use super::settings::Settings;
use crate::out::say;
use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixDatagram;

const SYSLOG: &str = "/dev/log";
/// Facility daemon (3), severity warning (4), as syslog(3) counts them.
const PRIORITY: u32 = 3 * 8 + 4;

/// Writes one line to the destination of the setting `log`. Errors are ignored, and nothing is waited for: a log must not stop a job.
pub(super) fn write(settings: &Settings, job: u32, text: &str) {
    let line = format!("job {job}: {}", text.replace("\n  ", "; ").replace('\n', " "));
    say(&line);
    let own = format!("cosched-slurm[{}]: {line}", std::process::id());
    let _ = if settings.log == "syslog" {
        UnixDatagram::unbound()
            .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
            .and_then(|socket| socket.send_to(format!("<{PRIORITY}>{own}").as_bytes(), SYSLOG))
            .map(drop)
    } else {
        let file = File::options().create(true).append(true).open(&settings.log);
        file.and_then(|mut file| writeln!(file, "{} {own}", jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ")))
    };
}
