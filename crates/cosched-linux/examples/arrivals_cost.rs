//! Measures the cost of detecting which jobs have a message waiting.
//!
//! `arrivals_cost [SOCKETS…]` makes processes with this number of connected TCP sockets (default: 10, 100, 1000), a tenth of them with an unread
//! byte, and prints one line each: the cost of a sample by a dump of sock_diag and by the epoll sets of [`cosched_linux::arrivals`], that of the
//! first and a later scan of the descriptors, and the share of a CPU at a sample every 2 ms with scans as often as they are due. Then it lets two
//! threads exchange bytes over TCP, watched and not, in turns: the cost of watching for the program. With the feature `bpf`, also the cost of the BPF
//! program for a job and for all other processes. Needs root.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use cosched_linux::{ArrivalBell, Arrivals, BpfArrivals, Layout, Place, Tree};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const LOOKS: u32 = 400;
const PERIOD_US: f64 = 2000.0;
const ROUNDS: u32 = 4000;
const REPEATS: usize = 15;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.get(1).map(String::as_str) {
        Some("hold") => hold(args[2].parse()?),
        Some("pingpong") => pingpong(args.get(2).map(String::as_str)),
        _ => {
            let named: Vec<usize> = args[1..].iter().map(|n| n.parse()).collect::<Result<_, _>>()?;
            for sockets in if named.is_empty() { vec![10, 100, 1000] } else { named } {
                looks(sockets)?;
            }
            exchange()
        }
    }
}

fn pair(listener: &TcpListener) -> std::io::Result<(TcpStream, TcpStream)> {
    let one = TcpStream::connect(listener.local_addr()?)?;
    Ok((one, listener.accept()?.0))
}

fn hold(sockets: usize) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut pairs = (0..sockets / 2).map(|_| pair(&listener)).collect::<Result<Vec<_>, _>>()?;
    for (one, _) in pairs.iter_mut().step_by(5) {
        one.write_all(b"x")?;
    }
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Enters a cgroup; then exchanges a batch of bytes for each line of the input; prints the nanoseconds.
fn pingpong(cgroup: Option<&str>) -> Result<(), Box<dyn Error>> {
    if let Some(procs) = cgroup {
        std::fs::write(procs, "0")?;
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (mut one, mut two) = pair(&listener)?;
    one.set_nodelay(true)?;
    two.set_nodelay(true)?;
    std::thread::spawn(move || {
        let mut byte = [0];
        while two.read_exact(&mut byte).and_then(|()| two.write_all(&byte)).is_ok() {}
    });
    println!("ready");
    for line in std::io::stdin().lines() {
        line?;
        let start = Instant::now();
        let mut byte = [0];
        for _ in 0..ROUNDS {
            one.write_all(&byte)?;
            one.read_exact(&mut byte)?;
        }
        println!("{}", start.elapsed().as_nanos());
    }
    Ok(())
}

struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(words: &[&str]) -> Result<Program, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().ok_or("no output")?));
        let mut program = Program { child, input, output };
        program.line()?;
        Ok(program)
    }

    fn line(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().into())
    }

    fn ask(&mut self) -> Result<f64, Box<dyn Error>> {
        self.input.as_mut().ok_or("no input")?.write_all(b"\n")?;
        Ok(self.line()?.parse::<f64>()? / f64::from(ROUNDS) / 1000.0)
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn looks(sockets: usize) -> Result<(), Box<dyn Error>> {
    let program = Program::start(&["hold", &sockets.to_string()])?;
    let mut arrivals = Arrivals::new()?;
    let watched = arrivals.watch(1, false)?;
    let first = arrivals.rescan(1, &[program.pid()])?;
    let again = arrivals.rescan(1, &[program.pid()])?;
    let diag = SockDiag::open()?;
    let (mut by_diag, mut by_epoll) = (Vec::new(), Vec::new());
    let (mut with_queue, mut unread) = (0, false);
    for _ in 0..LOOKS {
        let start = Instant::now();
        with_queue = diag.unread_sockets()?;
        by_diag.push(start.elapsed().as_nanos() as f64 / 1000.0);
        let start = Instant::now();
        unread = watched.has_message();
        by_epoll.push(start.elapsed().as_nanos() as f64 / 1000.0);
    }
    let (diag_us, epoll_us, again_us) = (median(by_diag), median(by_epoll), again.cost_ns as f64 / 1000.0);
    // The same pace as that of Arrivals.
    let scans_share = again_us / (again_us * 400.0).clamp(1e5, 5e6);
    println!(
        "{sockets} sockets ({} watched, {with_queue} with a queue, {unread}): sock_diag {diag_us:.1} µs = {:.3} % of a CPU; epoll {epoll_us:.2} µs, \
         scan {:.0} then {again_us:.0} µs = {:.3} % of a CPU; ratio of the looks {:.0}",
        first.added,
        100.0 * diag_us / PERIOD_US,
        first.cost_ns as f64 / 1000.0,
        100.0 * (epoll_us / PERIOD_US + scans_share),
        diag_us / epoll_us,
    );
    Ok(())
}

/// Waits for the bell as the slot thread does: after an answer, it does not listen for a millisecond.
fn listen(bell: &ArrivalBell, until: &std::sync::atomic::AtomicBool) {
    while !until.load(std::sync::atomic::Ordering::Relaxed) {
        let limit = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        if poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&limit)).is_ok_and(|ready| ready > 0) {
            bell.answer(&mut |_| ());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn exchange() -> Result<(), Box<dyn Error>> {
    let mut program = Program::start(&["pingpong"])?;
    let mut arrivals = Arrivals::new()?;
    let mut us: [Vec<f64>; 6] = Default::default();
    let tree = Tree::open(&Layout::detect()?, Place::Root { name: format!("cst-{}", std::process::id()) })?;
    let job = tree.create_job(1)?;
    // Sockets belong to the job in which they are created.
    let mut inside = Program::start(&["pingpong", &job.v2_dir().join("gang/cgroup.procs").to_string_lossy()])?;
    let has_bpf = BpfArrivals::load().inspect_err(|e| println!("{e}")).is_ok();
    for _ in 0..REPEATS {
        for (way, found) in us.iter_mut().enumerate() {
            let stop = std::sync::atomic::AtomicBool::new(false);
            if way > 3 && has_bpf {
                let mut bpf = BpfArrivals::load()?;
                bpf.watch(&job, Duration::from_millis(1))?;
                found.push(if way == 4 { program.ask()? } else { inside.ask()? });
            }
            if way > 3 {
                continue;
            }
            if way > 0 {
                arrivals.watch(1, way > 1)?;
                arrivals.rescan(1, &[program.pid()])?;
            }
            let bell = arrivals.bell();
            found.push(std::thread::scope(|scope| {
                if way == 3 {
                    scope.spawn(|| listen(&bell, &stop));
                }
                let time = program.ask();
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
                time
            })?);
            arrivals.forget(1);
        }
    }
    drop(inside);
    job.kill()?;
    while job.populated()? {
        std::thread::sleep(Duration::from_millis(1));
    }
    job.remove()?;
    tree.remove()?;
    let [plain, watched, rings, heard, others, member] = us.map(median);
    println!(
        "exchange {plain:.2} µs; watched {:.3}, ringing {:.3}, with a listener that rests 1 ms {:.3} of that",
        watched / plain,
        rings / plain,
        heard / plain
    );
    if has_bpf {
        println!("with the BPF program: of others {:.3}, of a job {:.3} of that", others / plain, member / plain);
    }
    Ok(())
}

/// The alternative: a dump of all TCP sockets of this network namespace.
struct SockDiag {
    socket: rustix::fd::OwnedFd,
}

impl SockDiag {
    fn open() -> Result<SockDiag, Box<dyn Error>> {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, socket_with};
        let protocol = Some(netlink::SOCK_DIAG);
        Ok(SockDiag { socket: socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)? })
    }

    /// The number of established TCP sockets that have something in their receive queue.
    fn unread_sockets(&self) -> Result<usize, Box<dyn Error>> {
        use rustix::net::{RecvFlags, SendFlags, recv, send};
        // struct nlmsghdr (SOCK_DIAG_BY_FAMILY, request and dump), struct inet_diag_req_v2 (inet, TCP, established only, no extras).
        let mut request = [0u8; 16 + 56];
        request[0..4].copy_from_slice(&72u32.to_ne_bytes());
        request[4..6].copy_from_slice(&20u16.to_ne_bytes());
        request[6..8].copy_from_slice(&0x301u16.to_ne_bytes());
        request[16] = 2;
        request[17] = 6;
        request[20..24].copy_from_slice(&(1u32 << 1).to_ne_bytes());
        send(&self.socket, &request, SendFlags::empty())?;
        let mut buffer = vec![0u8; 64 * 1024];
        let mut found = 0;
        loop {
            let (length, _) = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            let mut at = 0;
            while at + 16 <= length {
                let word = |o: usize| u32::from_ne_bytes([buffer[o], buffer[o + 1], buffer[o + 2], buffer[o + 3]]);
                match u16::from_ne_bytes([buffer[at + 4], buffer[at + 5]]) {
                    3 => return Ok(found),
                    2 => return Err("the kernel refuses the dump".into()),
                    // idiag_rqueue of struct inet_diag_msg.
                    _ => found += usize::from(word(at + 16 + 56) > 0),
                }
                at += (word(at) as usize).next_multiple_of(4);
            }
        }
    }
}
