//! The processes that a server leaves behind: `__sleep` stays for ever, `__detach` is the middle of a double fork.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use super::{signals, uplog};

/// Hidden first argument of a process that stays.
pub(super) const SLEEP: &str = "__sleep";
/// Hidden first argument of the middle of a double fork.
pub(super) const DETACH: &str = "__detach";

/// How wide a tree grows at each node.
pub(super) const TREE_FAN: usize = 8;

/// What a sleeper is asked to be. It travels as arguments, since a clean daemon has no environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sleeper {
    pub(super) ignore_term: bool,
    pub(super) own_session: bool,
    pub(super) own_group: bool,
    /// Clears the environment, and closes every fd including 0, 1 and 2.
    pub(super) clean: bool,
    /// Stops itself once it is up.
    pub(super) stopped: bool,
    /// How many processes it starts below itself, and how many of them are its own children.
    pub(super) below: usize,
    pub(super) fan: usize,
    pub(super) up_log: Option<PathBuf>,
    pub(super) pid_file: Option<PathBuf>,
}

impl Sleeper {
    /// The command that starts it from `program`, a path to this bin under whatever name.
    pub(super) fn command(&self, program: &OsString, first: &str) -> Command {
        let mut command = Command::new(program);
        // The server's stdin is not theirs to hold; its stdout and stderr they inherit, as real leaks do.
        command.arg(first).args(self.to_args()).stdin(Stdio::null());
        if self.own_group {
            command.process_group(0);
        }
        if self.clean {
            command.env_clear();
        }
        command
    }

    fn to_args(&self) -> Vec<OsString> {
        let flags = [
            (self.ignore_term, "ignore-term"),
            (self.own_session, "own-session"),
            (self.own_group, "own-group"),
            (self.clean, "clean"),
            (self.stopped, "stopped"),
        ];
        let mut args: Vec<OsString> = flags.iter().filter(|flag| flag.0).map(|flag| flag.1.into()).collect();
        if self.below > 0 {
            args.extend(["below".into(), self.below.to_string().into()]);
            args.extend(["fan".into(), self.fan.to_string().into()]);
        }
        for (name, path) in [("up-log", &self.up_log), ("pid-file", &self.pid_file)] {
            args.extend(path.iter().flat_map(|path| [name.into(), path.into()]));
        }
        args
    }

    fn from_args(mut args: impl Iterator<Item = OsString>) -> Self {
        let mut sleeper = Self::default();
        let number = |arg: Option<OsString>| arg.and_then(|text| text.to_str()?.parse().ok()).unwrap_or(0);
        while let Some(name) = args.next() {
            match name.to_str().unwrap_or_default() {
                "ignore-term" => sleeper.ignore_term = true,
                "own-session" => sleeper.own_session = true,
                "own-group" => sleeper.own_group = true,
                "clean" => sleeper.clean = true,
                "stopped" => sleeper.stopped = true,
                "below" => sleeper.below = number(args.next()),
                "fan" => sleeper.fan = number(args.next()),
                "up-log" => sleeper.up_log = args.next().map(PathBuf::from),
                "pid-file" => sleeper.pid_file = args.next().map(PathBuf::from),
                _ => {}
            }
        }
        sleeper
    }

    /// Its children, which share the processes below it as evenly as can be.
    fn children(&self) -> Vec<Self> {
        let count = self.below.min(self.fan.max(1));
        let below = self.below - count;
        (0..count)
            .map(|index| {
                let below = below / count + usize::from(index < below % count);
                Self { own_session: false, own_group: false, below, ..self.clone() }
            })
            .collect()
    }

    fn get_up(&self) -> io::Result<()> {
        if let Some(path) = &self.pid_file {
            uplog::append_own_pid(path)?;
        }
        if self.own_session {
            rustix::process::setsid()?;
        }
        if self.ignore_term {
            signals::ignore_polite_ones()?;
        }
        let program = own_program();
        for child in self.children() {
            child.command(&program, SLEEP).spawn()?;
        }
        if self.clean {
            close_everything()?;
        }
        if let Some(path) = &self.up_log {
            uplog::append_own_pid(path)?;
        }
        Ok(())
    }
}

/// The life of a sleeper: get up, report, stay.
pub(super) fn sleep(args: impl Iterator<Item = OsString>) -> ExitCode {
    let sleeper = Sleeper::from_args(args);
    if sleeper.get_up().is_err() {
        return ExitCode::FAILURE;
    }
    if sleeper.stopped {
        let _ = signals::stop_self();
    }
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// The middle of a double fork: a new session, the daemon in it as no leader, and away.
pub(super) fn detach(args: impl Iterator<Item = OsString>) -> ExitCode {
    let sleeper = Sleeper::from_args(args);
    let _ = rustix::process::setsid();
    match sleeper.command(&own_program(), SLEEP).spawn() {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The path of this bin as it was started, so that `ps` shows its name; the link if it has been deleted since.
pub(super) fn own_program() -> OsString {
    match std::env::current_exe() {
        Ok(path) if path.exists() => path.into_os_string(),
        _ => "/proc/self/exe".into(),
    }
}

fn close_everything() -> io::Result<()> {
    let names: Vec<OsString> =
        fs::read_dir("/proc/self/fd")?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    for fd in names.iter().filter_map(|name| name.to_str()?.parse::<i32>().ok()) {
        // The fd of the listing itself is among them, and closed already.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(sleeper: &Sleeper) -> usize {
        1 + sleeper.children().iter().map(size).sum::<usize>()
    }

    #[test]
    fn a_tree_has_exactly_the_processes_asked_for() {
        for below in [0, 1, 7, 8, 9, 64, 73, 500] {
            for fan in [1, 2, TREE_FAN] {
                assert_eq!(size(&Sleeper { below, fan, ..Sleeper::default() }), below + 1);
            }
        }
    }

    #[test]
    fn arguments_carry_a_sleeper_unchanged() {
        let sleeper = Sleeper {
            ignore_term: true,
            own_session: true,
            own_group: true,
            clean: true,
            stopped: true,
            below: 3,
            fan: 2,
            up_log: Some("/a b".into()),
            pid_file: Some("/c".into()),
        };
        assert_eq!(Sleeper::from_args(sleeper.to_args().into_iter()), sleeper);
    }
}
