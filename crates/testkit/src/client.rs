//! The bin `client`: an MCP client in a process of its own, which starts a server over stdio and then obeys.
//!
//! ```text
//! client [--sockets] -- PROGRAM [ARG]...
//! ```
//!
//! It initializes, lists the tools, says so, and then does what it is told on stdin, a line each:
//!
//! | order | what it does |
//! |---|---|
//! | `call TOOL JSON` | calls the tool with these arguments |
//! | `send LINE` | writes the line, and waits for nothing |
//! | `sibling PROGRAM [ARG]...` | starts a program that inherits the writing end of the server's stdin |
//! | `close` | closes the server's stdin, waits for its end, exits |
//! | `exit` | exits at once, without a word to the server |
//!
//! The end of its own stdin means `exit`: a test that is gone leaves nothing. What happened goes to stdout, one JSON
//! object a line, in the words that the clients on the official SDKs use too. With `--sockets` the server's stdin and
//! stdout are socket pairs, as Node makes them; else they are pipes.

#![expect(clippy::disallowed_methods, reason = "a client that leaks is what moored is for")]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};

use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::{Value, json};

/// The whole bin.
pub fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let sockets = args.first().is_some_and(|arg| arg == "--sockets");
    args.drain(..usize::from(sockets));
    let lived = match args.split_first() {
        Some((dashes, argv)) if dashes == "--" && !argv.is_empty() => live(argv, sockets),
        _ => Err(io::Error::other("usage: client [--sockets] -- PROGRAM [ARG]...")),
    };
    if let Err(error) = lived {
        say(&json!({ "event": "broken", "error": error.to_string() }));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn live(argv: &[OsString], sockets: bool) -> io::Result<()> {
    let mut server = Server::start(argv, sockets)?;
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "client", "version": env!("CARGO_PKG_VERSION") },
    });
    let initialized = server.ask("initialize", &params)?;
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string())?;
    let tools = server.ask("tools/list", &json!({}))?;
    let names: Vec<_> = tools["tools"].as_array().into_iter().flatten().map(|tool| &tool["name"]).collect();
    let child = server.child.id();
    say(
        &json!({ "event": "ready", "server": initialized["serverInfo"]["name"], "child": child, "tools": names }),
    );
    for order in io::stdin().lock().lines() {
        let order = order?;
        let (verb, rest) = order.split_once(' ').unwrap_or((&order, ""));
        match verb {
            "call" => server.call(rest),
            "send" => server.send(rest)?,
            "sibling" => server.start_sibling(rest)?,
            "close" => return server.close(),
            "exit" => break,
            _ => return Err(io::Error::other(format!("unknown order: {order}"))),
        }
    }
    Ok(())
}

/// What happened, on stdout. Nobody may be there to hear it.
fn say(happened: &Value) {
    let _ = writeln!(io::stdout(), "{happened}").and_then(|()| io::stdout().flush());
}

/// A server over stdio, and our ends of it.
struct Server {
    child: Child,
    input: File,
    output: BufReader<File>,
    asked: u64,
}

impl Server {
    fn start(argv: &[OsString], sockets: bool) -> io::Result<Self> {
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]);
        if sockets {
            let (ours, theirs) = UnixStream::pair()?;
            let (out, their_out) = UnixStream::pair()?;
            let child = command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(their_out)).spawn()?;
            return Ok(Self::new(child, ours.into(), out.into()));
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self::new(child, input.into(), output.into())),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn new(child: Child, input: OwnedFd, output: OwnedFd) -> Self {
        Self { child, input: input.into(), output: BufReader::new(output.into()), asked: 0 }
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        self.input.write_all(format!("{line}\n").as_bytes())
    }

    /// The answer to one question. Whatever else comes meanwhile is passed over.
    fn ask(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(io::Error::other(format!("the server ended before it answered `{method}`")));
            }
            let answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == id && answer.get("method").is_none() {
                return match answer.get("error") {
                    Some(error) => Err(io::Error::other(error.to_string())),
                    None => Ok(answer["result"].clone()),
                };
            }
        }
    }

    fn call(&mut self, order: &str) {
        let (tool, arguments) = order.split_once(' ').unwrap_or((order, "{}"));
        let called = serde_json::from_str::<Value>(arguments)
            .map_err(io::Error::from)
            .and_then(|arguments| self.ask("tools/call", &json!({ "name": tool, "arguments": arguments })));
        match called {
            Ok(result) => say(&json!({ "event": "called", "result": result })),
            Err(error) => say(&json!({ "event": "failed", "error": error.to_string() })),
        }
    }

    /// What a client does that forgot O_CLOEXEC.
    fn start_sibling(&mut self, command: &str) -> io::Result<()> {
        let mut words = command.split(' ');
        let mut sibling = Command::new(words.next().unwrap_or_default());
        sibling.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        fcntl_setfd(&self.input, FdFlags::empty())?;
        let started = sibling.spawn();
        fcntl_setfd(&self.input, FdFlags::CLOEXEC)?;
        say(&json!({ "event": "sibling", "pid": started?.id() }));
        Ok(())
    }

    fn close(mut self) -> io::Result<()> {
        drop(self.input);
        io::copy(&mut self.output, &mut io::sink())?;
        let status = self.child.wait()?;
        say(&json!({ "event": "closed", "code": status.code() }));
        Ok(())
    }
}
