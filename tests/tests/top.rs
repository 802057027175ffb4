//! `cosched top`, and `cosched demo`, in a real pseudo terminal, against a real daemon. `script` (util-linux) makes the terminal, an
//! independent terminal emulator tells what is on the screen.

use cosched_api::{Class, JobState};
use cosched_tests::cluster::jobs::PULSE;
use cosched_tests::cluster::{Cluster, needs};
use cosched_tests::{Daemon, needs_root, procs, stderr, stdout, wait_until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

const SPIN_2: &str = "while :; do :; done & while :; do :; done";
/// Printed by the shell after the program has ended, with the terminal's settings.
const SHELL: &str = "stty rows 24 cols 80; \"$TOP\" top --interval 200ms; echo code=$?; stty -a";

/// A program on a screen of its own.
struct Screen {
    child: Child,
    keys: ChildStdin,
    parser: Arc<Mutex<vt100::Parser>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Screen {
    /// Runs a shell script on it, for this daemon.
    fn start(d: &Daemon, script: &str) -> Screen {
        Screen::with(&d.socket(), (24, 80), script)
    }

    /// The same for any daemon, on a screen of these rows and columns.
    fn with(socket: &Path, (rows, columns): (u16, u16), script: &str) -> Screen {
        let mut child = Command::new("script")
            .env("COSCHED_SOCKET", socket)
            .args(["--quiet", "--flush", "--return", "--command", script, "/dev/null"])
            .env("TOP", cosched_tests::bin_dir().join("cosched"))
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script (util-linux) runs");
        let parser = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let (mut output, shared) = (child.stdout.take().unwrap(), parser.clone());
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut piece) {
                shared.lock().unwrap().process(&piece[..count]);
            }
        });
        Screen { keys: child.stdin.take().unwrap(), child, parser, reader: Some(reader) }
    }

    fn text(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    fn shows(&self, what: &str) {
        assert!(wait_until(|| self.text().contains(what)), "`{what}` does not come on the screen:\n{}", self.text());
    }

    /// As the terminal tells it: a click of the left button on the line that has this text.
    fn click(&mut self, on: &str) {
        let encoding = self.parser.lock().unwrap().screen().mouse_protocol_encoding();
        assert_eq!(encoding, vt100::MouseProtocolEncoding::Sgr);
        let text = self.text();
        let line = 1 + text.lines().position(|line| line.contains(on)).unwrap_or_else(|| panic!("{on}: {text}"));
        self.press(&format!("\x1b[<0;3;{line}M\x1b[<0;3;{line}m"));
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("the terminal takes keys");
    }

    /// Waits for the end, and returns the final contents of the screen: the terminal must be in its original state.
    fn ended(mut self) -> String {
        assert!(wait_until(|| self.child.try_wait().unwrap().is_some()), "it does not end:\n{}", self.text());
        self.reader.take().unwrap().join().unwrap();
        let parser = self.parser.lock().unwrap();
        let screen = parser.screen();
        let text = screen.contents();
        assert!(!screen.alternate_screen() && !screen.hide_cursor(), "the screen was not given back:\n{text}");
        assert_eq!(
            screen.mouse_protocol_mode(),
            vt100::MouseProtocolMode::None,
            "the mouse was not given back:\n{text}"
        );
        let settings: Vec<&str> = text.split_whitespace().collect();
        assert!(["icanon", "echo", "isig"].iter().all(|wanted| settings.contains(wanted)), "raw mode is left:\n{text}");
        text
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Also removes what a failed test has left: ending `script` closes the terminal under its programs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_steer_a_real_job_and_the_terminal_is_given_back() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"50ms\"\nsharing = \"strict\"\n");
    let id = d.detach(&["--name", "spinner", "--", "sh", "-c", SPIN_2]);
    let other = d.detach(&["--name", "other", "--", "sh", "-c", SPIN_2]);
    let mut screen = Screen::start(&d, SHELL);
    screen.shows("spinner");
    screen.shows("2 running");
    screen.shows("CPUs ");
    // The current row changes without a key, in one of the two pictures.
    for row in [">  0", ">  1"] {
        screen.shows(row);
    }
    // Shares appear once there was time to measure them.
    assert!(wait_until(|| d.client().job(id).unwrap().share_due.is_some_and(|due| due > 0.2)));

    let state = |wanted| wait_until(|| d.client().job(id).unwrap().state == wanted);
    screen.press("s");
    screen.shows("suspend it?");
    screen.press("n");
    screen.shows("cancelled");
    assert_eq!(d.client().job(id).unwrap().state, JobState::Running);
    screen.press("s");
    screen.shows("suspend it?");
    screen.press("y");
    assert!(state(JobState::Suspended), "{}", screen.text());
    assert!(wait_until(|| d.frozen(id)), "its processes must stand still");
    screen.shows("1 suspended");
    screen.press("r");
    screen.shows("resume it?");
    screen.press("y");
    assert!(state(JobState::Running), "{}", screen.text());

    screen.press("cs");
    screen.shows("make it standby?");
    screen.press("y");
    assert!(wait_until(|| d.client().job(id).unwrap().class == Class::Standby), "{}", screen.text());
    // Before, the question has the word, too.
    screen.shows("is standby now");
    screen.click("other");
    screen.press("s");
    screen.shows(&format!("job {other} other"));
    screen.press("n");
    screen.shows("cancelled");
    screen.click("other");
    screen.shows(&format!("job {other}: Esc closes"));
    screen.press("\x1b[<2;3;3M");
    assert!(wait_until(|| !screen.text().contains("Esc closes")), "{}", screen.text());
    screen.press("/other\r");
    assert!(wait_until(|| !screen.text().contains("spinner")), "{}", screen.text());
    screen.press("k");
    screen.shows("end it");
    screen.press("y");
    assert!(wait_until(|| d.client().job(other).unwrap().state == JobState::Ended), "{}", screen.text());
    screen.press("\x1b");
    screen.shows("spinner");

    screen.press("q");
    let text = screen.ended();
    assert!(text.contains("code=0"), "{text}");
    d.cosched(&["kill", "-9", &id.to_string()]);
}

/// The `cosched top` that runs on a screen, found by its parent's parent.
fn top_of(screen: &Screen) -> i32 {
    let script = screen.child.id() as i32;
    let mut found = None;
    assert!(wait_until(|| {
        let shells = ["sh", "dash", "bash"].iter().flat_map(|name| procs::children_named(script, name));
        found = shells.flat_map(|shell| procs::children_named(shell, "cosched")).next();
        found.is_some()
    }));
    found.unwrap()
}

#[test]
fn signals_and_control_c_give_the_terminal_back() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    for (signal, code) in [(Some(Signal::TERM), "code=143"), (Some(Signal::INT), "code=130"), (None, "code=0")] {
        let mut screen = Screen::start(&d, SHELL);
        screen.shows("no jobs");
        match signal {
            Some(signal) => procs::signal(top_of(&screen), signal),
            None => screen.press("\x03"),
        }
        let text = screen.ended();
        assert!(text.contains(code), "{code}:\n{text}");
    }
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let screen = Screen::start(&d, SHELL);
    screen.shows("no jobs");
    let top = top_of(&screen);
    // Killing `script` closes the terminal, as closing a window does.
    drop(screen);
    let ended = wait_until(|| procs::comm(top).as_deref() != Some("cosched"));
    procs::signal(top, Signal::KILL);
    assert!(ended, "it goes on without a terminal");
}

#[test]
fn a_daemon_that_goes_away_and_comes_back_is_told_and_found() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start("");
    let mut screen = Screen::start(&d, SHELL);
    screen.shows("no jobs");
    d.stop();
    screen.shows("retrying");
    d.launch();
    assert!(wait_until(|| !screen.text().contains("retrying")), "{}", screen.text());
    screen.press("q");
    screen.ended();
}

#[test]
fn another_users_job_is_refused_in_a_line() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(d.dir.path(), mode).unwrap();
    let id = d.detach(&["--name", "roots", "--", "sleep", "1000"]);
    let as_nobody = SHELL.replace("\"$TOP\"", "setpriv --reuid 65534 --regid 65534 --clear-groups \"$TOP\"");
    let mut screen = Screen::start(&d, &as_nobody);
    if !wait_until(|| screen.text().contains("roots")) {
        assert!(screen.text().contains("Permission denied"), "{}", screen.text());
        println!("SKIPPED: another user cannot execute the programs in this checkout");
    } else {
        screen.press("s");
        screen.shows("suspend it?");
        screen.press("y");
        screen.shows("is not yours");
        assert_eq!(d.client().job(id).unwrap().state, JobState::Running);
        screen.press("q");
        screen.ended();
    }
    d.cosched(&["kill", "-9", &id.to_string()]);
}

#[test]
fn without_a_terminal_it_refuses_and_pipes_get_text_or_objects() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"20ms\"\n");
    let refused = d.cosched(&["top"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("standard output is not a terminal") && stderr(&refused).contains("--once"));
    assert!(refused.stdout.is_empty());
    let bad = d.cosched(&["top", "--interval", "1ms"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(stderr(&bad).contains("100ms to 60s"), "{}", stderr(&bad));

    let id = d.detach(&["--name", "seen", "--", "sh", "-c", SPIN_2]);
    let other = d.detach(&["--name", "unseen", "--class", "standby", "--", "sleep", "1000"]);
    let once = d.cosched(&["top", "--once", "--filter", "batch"]);
    assert!(once.status.success());
    let text = stdout(&once);
    assert!(text.contains(" seen ") && !text.contains("unseen") && text.contains("cpu0"), "{text}");
    assert!(!text.contains('\x1b') && text.lines().all(|line| line.chars().count() <= 80), "{text}");

    let json: serde_json::Value = serde_json::from_str(&stdout(&d.cosched(&["top", "--once", "--json"]))).unwrap();
    assert_eq!(json["jobs"].as_array().unwrap().len(), 2);
    assert!(json["status"]["load"]["cpus"].as_array().is_some_and(|cpus| !cpus.is_empty()), "{json}");
    // Without --once: an object per interval, until its reader closes the pipe.
    let mut stream =
        d.command("cosched").args(["top", "--json", "-i", "100ms"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stream.stdout.take().unwrap()));
    for _ in 0..2 {
        let line = lines.next().unwrap().unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&line).unwrap()["status"].is_object());
    }
    drop(lines);
    let ended = wait_until(|| stream.try_wait().unwrap().is_some());
    let _ = stream.kill();
    assert!(ended && stream.wait().unwrap().success());
    for id in [id, other] {
        d.cosched(&["kill", "-9", &id.to_string()]);
    }
}

#[test]
fn a_cluster_is_seen_and_steered_from_any_of_its_nodes() {
    if !needs(&["etcd", "openssl"]) {
        return;
    }
    let cluster = Cluster::met(3, "sharing = \"strict\"\n");
    let wide = cluster.gang(&[0, 1], PULSE, &["--name", "wide"]);
    let other = cluster.gang(&[0, 1], PULSE, &["--name", "other"]);
    let frozen = || (0..2).all(|n| procs::is_frozen(&cluster.node(n).v2_job(wide)));
    for (at, rows, columns) in [(1, 24, 80), (2, 60, 200)] {
        let script = SHELL.replace("rows 24 cols 80", &format!("rows {rows} cols {columns}"));
        let mut screen = Screen::with(&cluster.node(at).socket(), (rows, columns), &script);
        for what in ["wide", "other", "2 running", "n1", "n2", "n3"] {
            screen.shows(what);
        }
        if at == 1 {
            // The current row moves.
            for row in [">  0", ">  1"] {
                screen.shows(row);
            }
        }
        assert!(screen.text().lines().all(|line| line.chars().count() <= usize::from(columns)));
        screen.press("/wide\r");
        assert!(wait_until(|| !screen.text().contains("other")), "{}", screen.text());
        screen.press("s");
        screen.shows("suspend it?");
        screen.press("y");
        assert!(wait_until(|| cluster.all_say(wide, JobState::Suspended)), "{}", screen.text());
        assert!(wait_until(frozen));
        screen.shows("1 suspended");
        screen.press("r");
        screen.shows("resume it?");
        screen.press("y");
        assert!(wait_until(|| cluster.all_say(wide, JobState::Running)), "{}", screen.text());
        screen.press(if at == 1 { "cs" } else { "cb" });
        screen.shows("make it");
        screen.press("y");
        let class = if at == 1 { Class::Standby } else { Class::Batch };
        assert!(wait_until(|| cluster.nodes().iter().all(|node| node.job(wide).class == class)), "{}", screen.text());
        if at == 2 {
            screen.press("k");
            screen.shows("end it");
            screen.press("y");
            assert!(wait_until(|| cluster.all_say(wide, JobState::Ended)), "{}", screen.text());
            assert!(wait_until(|| cluster.is_clear_of(wide)));
        }
        screen.press("q");
        let text = screen.ended();
        assert!(text.contains("code=0"), "{text}");
    }
    assert!(cluster.all_say(other, JobState::Running));
    cluster.end(2, &[other]);
}

#[test]
fn the_demo_draws_over_what_it_drew() {
    if !needs_root() {
        return;
    }
    let Some(program) = cosched_tests::program("barrier-threads") else { return };
    let d = Daemon::start("slot_length = \"50ms\"\n");
    let script = format!(
        "stty rows 40 cols 100; \"$TOP\" demo --seconds 0.5 --jobs 2 --policies gang --program {program}; echo code=$?; stty -a"
    );
    let screen = Screen::with(&d.socket(), (40, 100), &script);
    let (mut pictures, mut doubled) = (0, String::new());
    while !screen.text().contains("code=") && pictures < 3000 {
        let text = screen.text();
        pictures += 1;
        if text.matches("cosched gang  ").count() > 1 || text.contains("\\u{") {
            doubled = text;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(doubled.is_empty(), "{doubled}");
    let text = screen.ended();
    assert!(text.contains("code=0") && text.contains("SLOWDOWN") && !text.contains("job 1: "), "{text}");
    assert!(!text.contains("\\u{"), "{text}");
}
