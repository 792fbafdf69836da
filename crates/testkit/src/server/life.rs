//! The server's life in order: what it starts, when it says that it is ready, how it answers, how it ends.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::switches::{Switches, USAGE};
use super::{escapes, helper, mcp, signals, uplog};

/// What a crash exits with.
const CRASH: u8 = 3;
/// A usage error, or a helper that did not come up.
const BROKEN: u8 = 70;

/// Lives as the arguments ask.
pub(super) fn main(args: Vec<OsString>) -> ExitCode {
    let outcome = match Switches::parse(args.iter().cloned()) {
        Ok(switches) if switches.wrap_shell => wrap_in_shells(&switches, &args),
        Ok(switches) => live(&switches),
        Err(message) => Err(io::Error::other(format!("{message}\n{USAGE}"))),
    };
    outcome.map(ExitCode::from).unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "misbehave: {error}");
        ExitCode::from(BROKEN)
    })
}

fn live(switches: &Switches) -> io::Result<u8> {
    if let Some(path) = &switches.pid_file {
        uplog::append_own_pid(path)?;
    }
    if switches.ignore_term {
        signals::ignore_polite_ones()?;
    }
    escapes::start_all(switches)?;
    let memory = switches.allocate_mb.map(touch_memory);
    if switches.block_stdout {
        // Fails only when nobody holds the reading end, which shows again below.
        let _ = fill_stdout();
    }
    if let Some(path) = &switches.ready_file {
        write_atomically(path)?;
    }
    if let Some(signal) = switches.die_by {
        signals::die_by(signal)?;
    }
    if switches.stop_self {
        signals::stop_self()?;
    }
    if let Some(code) = switches.exit_now {
        return Ok(code);
    }
    let code = serve(switches)?;
    drop(memory);
    Ok(code)
}

/// Answers until EOF or crash, after the delays that were asked for. These come after the ready file: a test that
/// does not drain a pipe still learns that the rest is up.
fn serve(switches: &Switches) -> io::Result<u8> {
    if let Some(pause) = switches.slow_start {
        std::thread::sleep(pause);
    }
    if let Some(bytes) = switches.block_stderr {
        write_noise(&mut io::stderr(), bytes)?;
    }
    if switches.block_stdout {
        // Fails only when nobody holds the reading end any more.
        let _ = write_noise(&mut io::stdout(), usize::MAX);
        return Ok(at_eof(switches));
    }
    let mut calls = 0;
    for line in io::stdin().lock().lines() {
        let Some(answer) = mcp::answer(&line?) else { continue };
        // A client that is gone is as good as EOF, which comes next.
        let _ = io::stdout().write_all(answer.text.as_bytes()).and_then(|()| io::stdout().flush());
        calls += u64::from(answer.was_call);
        if switches.crash_after.is_some_and(|limit| answer.was_call && calls >= limit) {
            return Ok(CRASH);
        }
    }
    Ok(at_eof(switches))
}

fn at_eof(switches: &Switches) -> u8 {
    if let Some(pause) = switches.die_on_eof_after {
        std::thread::sleep(pause);
        return switches.exit_code;
    }
    if switches.spin_after_eof {
        loop {
            std::hint::spin_loop();
        }
    }
    if switches.ignore_eof {
        loop {
            std::thread::sleep(Duration::from_secs(3600));
        }
    }
    switches.exit_code
}

/// Becomes `sh` → `sh` → this server without the switch, as `npx` and `bash -c` wrappers do. The exit code passes
/// through, and both shells stand in the pid file: the outer one is this very process.
fn wrap_in_shells(switches: &Switches, args: &[OsString]) -> io::Result<u8> {
    const INNER: &str = r#"test -z "$1" || echo $$ >>"$1"; shift; "$@"; exit $?"#;
    const OUTER: &str = r#"inner=$1; shift; sh -c "$inner" inner "$@"; exit $?"#;
    if let Some(path) = &switches.pid_file {
        uplog::append_own_pid(path)?;
    }
    let pid_file = switches.pid_file.clone().unwrap_or_default();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", OUTER, "outer", INNER]).arg(pid_file).arg(helper::own_program());
    Err(shell.args(args.iter().filter(|arg| *arg != "--wrap-shell")).exec())
}

/// Writes until the pipe takes no more. A reader that keeps draining would keep us here, so there is an end to it.
fn fill_stdout() -> io::Result<()> {
    const ENOUGH: usize = 4 << 20;
    let mut stdout = io::stdout();
    let mut written = 0;
    while written < ENOUGH && has_room(&stdout)? {
        // A pipe that has room at all has room for this much.
        write_noise(&mut stdout, NOISE.len())?;
        written += NOISE.len();
    }
    Ok(())
}

fn has_room(stdout: &io::Stdout) -> io::Result<bool> {
    let mut fds = [PollFd::new(stdout, PollFlags::OUT)];
    Ok(poll(&mut fds, Some(&Timespec::default()))? > 0)
}

/// One line that a reader of JSON lines survives, and a whole divisor of what a pipe takes at once.
const NOISE: &[u8; 128] =
    b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\
\"noise noise noise noise noise noise noise\"}}\n";

fn write_noise(to: &mut impl io::Write, bytes: usize) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let chunk = left.min(NOISE.len());
        to.write_all(&NOISE[NOISE.len() - chunk..])?;
        to.flush()?;
        left -= chunk;
    }
    Ok(())
}

fn touch_memory(megabytes: usize) -> Vec<u8> {
    // Not zeros: those would stay untouched pages of the kernel's.
    std::hint::black_box(vec![1; megabytes << 20])
}

fn write_atomically(path: &Path) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".part");
    fs::write(&temporary, format!("{}\n", std::process::id()))?;
    fs::rename(temporary, path)
}
