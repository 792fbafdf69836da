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
use std::os::fd::AsFd as _;
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
    let stdin = std::io::stdin().lock();
    // Without the buffer of Rust's own stdout, and what is long is made once: the pipe is measured, not the server.
    let mut stdout = fs::File::from(std::io::stdout().as_fd().try_clone_to_owned().expect("stdout"));
    let mut long = String::new();
    for line in stdin.lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
        let Some(id) = message.get("id") else { continue };
        let size = message["params"]["size"].as_u64().unwrap_or(0) as usize;
        let answer = |text: &str| {
            format!(
                "{{\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}},\"jsonrpc\":\"2.0\",\"id\":{id}}}\n"
            )
        };
        let short = answer(message["params"]["text"].as_str().unwrap_or(""));
        let line = if size == 0 {
            &short
        } else {
            if long.len() < size {
                long = answer(&"x".repeat(size));
            }
            &long
        };
        if stdout.write_all(line.as_bytes()).is_err() {
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
    answer: Vec<u8>,
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
        Self { child, stdin, stdout: BufReader::with_capacity(64 << 10, stdout), answer: Vec::new(), next: 0 }
    }

    /// One call; what the server says of its own accord meanwhile is passed over.
    fn ask(&mut self, params: &str) -> usize {
        self.next += 1;
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/call\",\"params\":{params}}}\n",
            self.next
        );
        self.stdin.write_all(line.as_bytes()).expect("it reads");
        loop {
            self.answer.clear();
            let read = self.stdout.read_until(b'\n', &mut self.answer).expect("it answers");
            if read == 0 || answers(&self.answer, self.next) {
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
            let everything = everything();
            if everything.exists() {
                let call =
                    format!("{{\"name\":\"echo\",\"arguments\":{{\"message\":\"{}\"}}}}", "x".repeat(70));
                self.compare_round_trips(
                    "server-everything",
                    &["node", &everything.to_string_lossy()],
                    &call,
                );
            }
        }
    }

    /// The least that any relay does is two processes that copy: the third way shows what the machine takes for that.
    fn compare_round_trips(&self, name: &str, server: &[&str], params: &str) {
        let quoted: Vec<String> =
            server.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        let cats = format!("cat | {} | cat", quoted.join(" "));
        let ways = [
            ("through run", self.through(&[], server)),
            ("run --direct", self.through(&["--direct"], server)),
            ("cat | server | cat", self.direct(&["sh", "-c", &cats])),
        ];
        let names: Vec<&str> = ways.iter().map(|(name, _)| *name).collect();
        let commands = [self.direct(server)].into_iter().chain(ways.map(|(_, command)| command));
        let mut servers: Vec<Server> = commands.map(Server::start).collect();
        servers.iter_mut().for_each(Server::initialize);
        let mut times = vec![Vec::new(); servers.len()];
        for round in 0..6_000 {
            for (server, times) in servers.iter_mut().zip(&mut times) {
                let began = Instant::now();
                server.ask(params);
                if round >= 1_000 {
                    times.push(began.elapsed());
                }
            }
        }
        let mut medians = times.into_iter().map(|times| micros(median(times)));
        let bare = medians.next().unwrap_or_default();
        println!("round-trip {name}: direct {bare:.1} µs");
        for (way, time) in names.into_iter().zip(medians) {
            println!("  {way} {time:.1} µs: {:+.1} µs, {:+.1} %", time - bare, time / bare * 100.0 - 100.0);
        }
        servers.into_iter().for_each(Server::end);
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

/// Whether the line has that id; in what is long it stands at the beginning or at the end.
fn answers(line: &[u8], id: u64) -> bool {
    let ends = [&line[..line.len().min(64)], &line[line.len().saturating_sub(64)..]];
    let text = ends.map(String::from_utf8_lossy).concat();
    [",", "}"].iter().any(|after| text.contains(&format!("\"id\":{id}{after}")))
}

/// The reference server of the protocol's authors, where the tests have installed it.
fn everything() -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_moored")).ancestors().nth(2).expect("the target folder");
    target.join("fixtures/node/node_modules/@modelcontextprotocol/server-everything/dist/index.js")
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
