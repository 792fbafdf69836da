//! The players. They leave children alone on purpose, which is why they may start them in the plain way: the demo
//! contains them all. Each ends by itself after a minute, should all else fail.

#![expect(
    clippy::disallowed_methods,
    reason = "the demo shows what becomes of bare children, and contains them itself"
)]

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::DemoPart;
use crate::exit::{Exit, Failure};
use crate::own_program::own_program;
use crate::render;

/// What is said between the demo and its stage, and between the stage and the client.
pub(super) const READY: &str = "ready\n";
pub(super) const KILL: &str = "kill\n";
pub(super) const KILLED: &str = "killed\n";

/// The last resort; the demo is long over then.
const LIFE: Duration = Duration::from_mins(1);

/// Plays one part.
pub(crate) fn play(part: DemoPart) -> Result<Exit, Failure> {
    let played = match part {
        DemoPart::Stage { server } => stage(&server),
        DemoPart::Client { server } => client(&server),
        DemoPart::Server => serve(),
        DemoPart::Child | DemoPart::Daemon => stay(),
        DemoPart::Detach => detach(),
    };
    played.map(|()| Exit::Ok).map_err(|error| Failure::to(format_args!("play a part in the demo: {error}")))
}

/// A command that plays this part.
fn part(name: &str) -> io::Result<Command> {
    let mut command = Command::new(own_program()?);
    command.args(["demo-part", name]).stdin(Stdio::null());
    Ok(command)
}

/// Starts the client, kills it when told, and stays until it is told nothing more.
fn stage(server: &[OsString]) -> io::Result<()> {
    let mut client = part("client")?.arg("--").args(server).stdout(Stdio::piped()).spawn()?;
    let told = client_is_ready(&mut client).and_then(|()| render::out(READY)).and_then(|()| {
        let mut order = String::new();
        io::stdin().read_line(&mut order)?;
        if order == KILL { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    });
    // Our own child, not reaped yet: the kernel cannot have given its pid to another process.
    client.kill()?;
    client.wait()?;
    told?;
    render::out(KILLED)?;
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

fn client_is_ready(client: &mut Child) -> io::Result<()> {
    let stdout = client.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    if line == READY { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Starts the server as any client does, and speaks with it once.
fn client(server: &[OsString]) -> io::Result<()> {
    let (program, args) = server.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut server = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = server.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let output = server.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "moored-demo", "version": env!("CARGO_PKG_VERSION")}}});
    writeln!(input, "{hello}")?;
    let mut output = BufReader::new(output);
    let mut answer = String::new();
    output.read_line(&mut answer)?;
    let answer: Value = serde_json::from_str(&answer)?;
    if answer["result"]["serverInfo"]["name"] != "misbehaving" {
        return Err(io::ErrorKind::InvalidData.into());
    }
    render::out(READY)?;
    std::thread::sleep(LIFE);
    Ok(())
}

/// Has a child and a daemon, answers `initialize`, and then stays whatever is said.
fn serve() -> io::Result<()> {
    let _deaf = deaf()?;
    let _child = part("child")?.stdout(Stdio::null()).spawn()?;
    part("detach")?.stdout(Stdio::null()).status()?;
    for line in io::stdin().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if message["method"] == "initialize" {
            let result = json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": {},
                "serverInfo": {"name": "misbehaving", "version": "1.0"}});
            render::out(&format!("{}\n", json!({"jsonrpc": "2.0", "id": message["id"], "result": result})))?;
        }
    }
    std::thread::sleep(LIFE);
    Ok(())
}

fn stay() -> io::Result<()> {
    let _deaf = deaf()?;
    std::thread::sleep(LIFE);
    Ok(())
}

/// In a session of its own, and orphaned: no process could be asked to end it.
fn detach() -> io::Result<()> {
    rustix::process::setsid()?;
    part("daemon")?.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
}

/// While this value lives, SIGTERM and the like are received and ignored.
fn deaf() -> io::Result<(tokio::runtime::Runtime, [Signal; 3])> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let polite = {
        let _inside = runtime.enter();
        [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?]
    };
    Ok((runtime, polite))
}
