//! The bin `marked`: sets a mark on itself, takes the place that was asked for, and becomes the program.
//!
//! ```text
//! marked MARK [--uid N --gid N] [--cgroup DIR]... [--rlimit NAME=N]... -- PROGRAM [ARG]...
//! marked --watch PID
//! ```
//!
//! The second form is the watcher of a test (`survivors::watcher`).
//!
//! It execs, so the program has the pid, the stdio and the environment that the test gave. Root is dropped last, and the
//! supplementary groups with it. Names of limits: `nofile`, `nproc`, `memlock`, `as`.
//!
//! Whoever started the tests may have done so in the background, or by `nohup`: then SIGINT, SIGQUIT or SIGHUP are ignored,
//! which is inherited. The program has them as from a terminal.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::survivors::watcher;

/// What `env` and `setpriv` exit with when the program could not be started.
const NOT_STARTED: u8 = 127;

/// The whole bin. Returns on failure, and when a watcher's work is done.
pub fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    if args.next_if(|arg| arg == watcher::WATCH).is_some() {
        return watcher::main(args.next());
    }
    let Err(error) = become_program(args);
    let _ = writeln!(io::stderr(), "marked: {error}");
    ExitCode::from(NOT_STARTED)
}

fn become_program(mut args: impl Iterator<Item = OsString>) -> io::Result<std::convert::Infallible> {
    limit(Resource::Rss, number(args.next(), "mark")?)?;
    let (mut uid, mut gid) = (None, None);
    while let Some(arg) = args.next().filter(|arg| arg != "--") {
        match arg.to_str().unwrap_or_default() {
            "--uid" => uid = Some(number(args.next(), "uid")?),
            "--gid" => gid = Some(number(args.next(), "gid")?),
            "--cgroup" => enter_cgroup(Path::new(&args.next().unwrap_or_default()))?,
            "--rlimit" => set_named_limit(&args.next().unwrap_or_default())?,
            _ => return Err(io::Error::other(format!("unknown switch `{}`", arg.display()))),
        }
    }
    let program = args.next().ok_or_else(|| io::Error::other("no program after `--`"))?;
    let mut command = if ignores_what_terminals_send() {
        let mut env = Command::new("env");
        env.arg("--default-signal=HUP,INT,QUIT").arg(&program);
        env
    } else {
        Command::new(&program)
    };
    command.args(args);
    gid.map(|gid| command.gid(gid));
    // With a uid, std clears the supplementary groups as well.
    uid.map(|uid| command.uid(uid));
    let error = command.exec();
    Err(io::Error::new(error.kind(), format!("`{}` does not start: {error}", program.display())))
}

fn ignores_what_terminals_send() -> bool {
    const HUP_INT_QUIT: u64 = 0b111;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & HUP_INT_QUIT != 0
}

fn limit(resource: Resource, value: u64) -> io::Result<()> {
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?)
}

fn set_named_limit(text: &OsString) -> io::Result<()> {
    let (name, value) = text.to_str().and_then(|text| text.split_once('=')).unwrap_or_default();
    let resource = match name {
        "nofile" => Resource::Nofile,
        "nproc" => Resource::Nproc,
        "memlock" => Resource::Memlock,
        "as" => Resource::As,
        _ => return Err(io::Error::other(format!("unknown limit `{}`", text.display()))),
    };
    limit(resource, number(Some(value.into()), name)?)
}

fn enter_cgroup(folder: &Path) -> io::Result<()> {
    let file = folder.join("cgroup.procs");
    fs::write(&file, "0")
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", file.display())))
}

fn number<T: std::str::FromStr>(arg: Option<OsString>, what: &str) -> io::Result<T> {
    let parsed = arg.as_ref().and_then(|text| text.to_str()?.parse().ok());
    parsed.ok_or_else(|| io::Error::other(format!("{what}: {arg:?} is no number")))
}
