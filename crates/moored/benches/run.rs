//! What `moored run` costs: round trips, throughput, the first byte, memory, waking up for nothing. Each figure is taken
//! against a direct pipe to the same server in the same run, a turn each, so that both see the same machine.
//!
//! `cargo bench -p moored --bench run [-- NAME…]`; names: round-trip, results, first-byte, memory, hibernated, wake-ups.
//! A Node server is measured too where `node` is found. The program itself is the server when called with `--serve`.
#![expect(clippy::print_stdout, reason = "figures are its output")]
#![expect(
    clippy::disallowed_methods,
    reason = "the bare way is what it is compared with; all are ended and waited for"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const NODE_SERVER: &str = r#"
const rl = require('readline').createInterface({ input: process.stdin, terminal: false });
rl.on('line', line => {
  const m = JSON.parse(line);
  if (m.id === undefined) return;
  process.stdout.write(JSON.stringify({ result: { content: [{ type: 'text', text: m.params.text }] }, jsonrpc: '2.0', id: m.id }) + '\n');
});
"#;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if args.first().is_some_and(|arg| arg == "--serve") {
        return serve();
    }
    let wanted = |name: &str| args.is_empty() || args.iter().any(|arg| arg == name);
    let bench = Bench::new();
    type Measure = fn(&Bench);
    let all: [(&str, Measure); 6] = [
        ("round-trip", Bench::round_trip),
        ("results", Bench::results),
        ("first-byte", Bench::first_byte),
        ("memory", Bench::memory),
        ("hibernated", Bench::hibernated),
        ("wake-ups", Bench::wake_ups),
    ];
    for (_, measure) in all.iter().filter(|(name, _)| wanted(name)) {
        measure(&bench);
    }
    bench.clean();
}

/// Answers `{"id":N,"size":S}` with a result of that size, and anything else with itself.
fn serve() {
    let (stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in stdin.lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
        let Some(id) = message.get("id") else { continue };
        let size = message["params"]["size"].as_u64().unwrap_or(0) as usize;
        let text = if size > 0 {
            "x".repeat(size)
        } else {
            message["params"]["text"].as_str().unwrap_or("").to_owned()
        };
        let answer = format!(
            "{{\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}},\"jsonrpc\":\"2.0\",\"id\":{id}}}\n"
        );
        if stdout.write_all(answer.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            return;
        }
    }
}

struct Bench {
    folder: PathBuf,
    moored: PathBuf,
    own: String,
}

/// A server, with or without moored before it.
struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

impl Server {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { child, stdin, stdout: BufReader::with_capacity(1 << 20, stdout), next: 0 }
    }

    /// One call; what the server says of its own accord meanwhile is passed over.
    fn ask(&mut self, params: &str) -> usize {
        self.next += 1;
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/call\",\"params\":{params}}}\n",
            self.next
        );
        self.stdin.write_all(line.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        loop {
            answer.clear();
            let read = self.stdout.read_until(b'\n', &mut answer).expect("it answers");
            if read == 0 || !answer.starts_with(b"{\"method\"") {
                return read;
            }
        }
    }

    fn initialize(&mut self) {
        self.stdin
            .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
            .expect("it reads");
        let mut answer = Vec::new();
        self.stdout.read_until(b'\n', &mut answer).expect("it answers");
    }

    fn end(self) {
        let Self { mut child, stdin, stdout, .. } = self;
        drop((stdin, stdout));
        child.wait().expect("our child");
    }
}

impl Bench {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("moored-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let own = std::env::current_exe().expect("ourselves").to_string_lossy().into_owned();
        Self { folder, moored: PathBuf::from(env!("CARGO_BIN_EXE_moored")), own }
    }

    fn clean(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn direct(&self, server: &[&str]) -> Command {
        let mut command = Command::new(server[0]);
        command.args(&server[1..]);
        command
    }

    fn through(&self, options: &[&str], server: &[&str]) -> Command {
        let mut command = Command::new(&self.moored);
        command.arg("run").args(options).arg("--").args(server);
        let place = |name: &str| self.folder.join(name);
        command.env("MOORED_RUNTIME_DIR", place("run")).env("MOORED_STATE_DIR", place("state"));
        command
    }

    fn own_server(&self) -> Vec<&str> {
        vec![&self.own, "--serve"]
    }

    fn round_trip(&self) {
        let text = format!("{{\"text\":\"{}\"}}", "x".repeat(110));
        self.compare_round_trips("Rust server", &self.own_server(), &text);
        if Command::new("node").arg("--version").output().is_ok_and(|out| out.status.success()) {
            self.compare_round_trips("Node echo of nine lines", &["node", "-e", NODE_SERVER], &text);
        }
    }

    fn compare_round_trips(&self, name: &str, server: &[&str], params: &str) {
        let mut both = [Server::start(self.direct(server)), Server::start(self.through(&[], server))];
        both.iter_mut().for_each(Server::initialize);
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..6_000 {
            for (server, times) in both.iter_mut().zip(&mut times) {
                let began = Instant::now();
                server.ask(params);
                if round >= 1_000 {
                    times.push(began.elapsed());
                }
            }
        }
        let [bare, run] = times.map(median);
        let more = run.as_secs_f64() / bare.as_secs_f64() * 100.0 - 100.0;
        println!(
            "round-trip {name}: direct {:.1} µs, through run {:.1} µs: +{:.1} µs, {more:+.1} %",
            micros(bare),
            micros(run),
            micros(run) - micros(bare)
        );
        both.into_iter().for_each(Server::end);
    }

    fn results(&self) {
        for megabytes in [1, 10] {
            let size = megabytes * 1_000_000;
            let params = format!("{{\"size\":{size}}}");
            let server = self.own_server();
            let mut both = [Server::start(self.direct(&server)), Server::start(self.through(&[], &server))];
            let mut times = [Vec::new(), Vec::new()];
            for round in 0..(60 / megabytes.min(3)) {
                for (server, times) in both.iter_mut().zip(&mut times) {
                    let began = Instant::now();
                    assert!(server.ask(&params) > size);
                    if round > 2 {
                        times.push(began.elapsed());
                    }
                }
            }
            let [bare, run] = times.map(median);
            let speed = |time: Duration| size as f64 / time.as_secs_f64() / 1e6;
            println!(
                "results of {megabytes} MB: direct {:.2} ms ({:.0} MB/s), through run {:.2} ms ({:.0} MB/s)",
                bare.as_secs_f64() * 1e3,
                speed(bare),
                run.as_secs_f64() * 1e3,
                speed(run)
            );
            both.into_iter().for_each(Server::end);
        }
    }

    fn first_byte(&self) {
        let server = self.own_server();
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..60 {
            for (way, times) in times.iter_mut().enumerate() {
                let command = if way == 0 { self.direct(&server) } else { self.through(&[], &server) };
                let began = Instant::now();
                let mut started = Server::start(command);
                started.ask("{}");
                times.push(began.elapsed());
                started.end();
            }
        }
        let [bare, run] = times.map(median);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "first byte: direct {:.2} ms, through run {:.2} ms: +{:.2} ms",
            ms(bare),
            ms(run),
            ms(run) - ms(bare)
        );
    }

    fn memory(&self) {
        let mut server = Server::start(self.through(&[], &self.own_server()));
        server.initialize();
        for _ in 0..100 {
            server.ask("{\"text\":\"x\"}");
        }
        std::thread::sleep(Duration::from_millis(500));
        let pids = moored_and_guardians(server.child.id());
        println!(
            "memory of a running moored + guardians: {} kB PSS ({pids:?})",
            pids.iter().map(|pid| pss(*pid)).sum::<u64>()
        );
        server.end();
    }

    fn hibernated(&self) {
        const MANY: usize = 500;
        let mut servers: Vec<Server> = (0..MANY)
            .map(|_| {
                let mut server = Server::start(self.through(&["--idle", "300ms"], &self.own_server()));
                server.initialize();
                server
            })
            .collect();
        let deadline = Instant::now() + Duration::from_secs(60);
        let awake = |servers: &[Server]| {
            servers.iter().filter(|s| moored_and_guardians(s.child.id()).len() > 1).count()
        };
        while awake(&servers) > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(200));
        }
        let left = awake(&servers);
        let total: u64 = servers.iter().map(|server| pss(server.child.id())).sum();
        println!(
            "{MANY} hibernated ({left} still awake): {:.1} MB PSS in all, {} kB each",
            total as f64 / 1e3,
            total / MANY as u64
        );
        let began = Instant::now();
        servers[0].ask("{\"text\":\"x\"}");
        println!("a wake: {:.1} ms to the answer", began.elapsed().as_secs_f64() * 1e3);
        servers.drain(..).for_each(Server::end);
    }

    fn wake_ups(&self) {
        let mut server = Server::start(self.through(&[], &self.own_server()));
        server.initialize();
        std::thread::sleep(Duration::from_secs(2));
        let pids = moored_and_guardians(server.child.id());
        let before: u64 = pids.iter().map(|pid| switches(*pid)).sum();
        std::thread::sleep(Duration::from_secs(10));
        let after: u64 = pids.iter().map(|pid| switches(*pid)).sum();
        println!("wake-ups of an idle moored + guardians in 10 s: {}", after - before);
        server.end();
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// moored, and the two below it.
fn moored_and_guardians(moored: u32) -> Vec<u32> {
    let child = |pid: u32| -> Option<u32> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let read = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).ok();
        tasks.flatten().filter_map(read).find_map(|list| list.split(' ').next()?.parse().ok())
    };
    let outer = child(moored);
    let inner = outer.and_then(child);
    [Some(moored), outer, inner].into_iter().flatten().collect()
}

fn pss(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn switches(pid: u32) -> u64 {
    let of = |task: &Path| -> u64 {
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    };
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.map(|task| of(&task.path())).sum()
}
