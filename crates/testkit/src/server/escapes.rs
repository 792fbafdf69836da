//! Everything the server starts, each thing a way by which descendants have escaped in the wild.
//!
//! Returns only when all of it is up: every process of a tree exists, daemons are detached, storms have hopped.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::helper::{self, Sleeper, TREE_FAN};
use super::switches::Switches;
use super::uplog::UpLog;
use super::{hop, signals};

/// A tree of thousands on a loaded machine takes its time; a test's own deadline comes first.
const UP_DEADLINE: Duration = Duration::from_secs(120);

/// Starts all that the switches ask for, and waits until it is up.
pub(super) fn start_all(switches: &Switches) -> io::Result<()> {
    let mut starter =
        Starter { program: helper::own_program(), pid_file: switches.pid_file.clone(), up: UpLog::create()? };
    let stubborn = Sleeper { ignore_term: true, ..Sleeper::default() };
    let polite = Sleeper::default();
    if switches.grandchild {
        starter.child(stubborn.clone())?;
    }
    if switches.own_group {
        starter.child(Sleeper { own_group: true, ..polite.clone() })?;
    }
    if switches.own_session_child {
        starter.child(Sleeper { own_session: true, ..polite.clone() })?;
    }
    if switches.stopped_child {
        starter.child(Sleeper { stopped: true, ..polite.clone() })?;
    }
    if switches.daemon {
        starter.daemon(stubborn.clone())?;
    }
    if switches.clean_daemon {
        starter.daemon(Sleeper { clean: true, ..stubborn })?;
    }
    let node = Sleeper { ignore_term: switches.tree_ignores_term, ..polite };
    starter.forest(&node, switches.tree, TREE_FAN)?;
    starter.forest(&node, switches.chain, 1)?;
    if let Some(name) = &switches.keep_alive_child {
        starter.keeper(name, switches.keep_dir.as_deref())?;
    }
    for _ in 0..switches.storm {
        starter.lineage(switches.storm_period_micros, switches.ignore_term)?;
    }
    starter.up.wait(UP_DEADLINE)
}

struct Starter {
    program: OsString,
    pid_file: Option<PathBuf>,
    up: UpLog,
}

impl Starter {
    fn reporting(&mut self, sleeper: Sleeper) -> Sleeper {
        let up_log = Some(self.up.expect(1 + sleeper.below).to_owned());
        Sleeper { up_log, pid_file: self.pid_file.clone(), ..sleeper }
    }

    fn child(&mut self, sleeper: Sleeper) -> io::Result<()> {
        self.reporting(sleeper).command(&self.program, helper::SLEEP).spawn().map(drop)
    }

    /// The middle process is waited for, so that the daemon has another parent when this returns.
    fn daemon(&mut self, sleeper: Sleeper) -> io::Result<()> {
        let status = self.reporting(sleeper).command(&self.program, helper::DETACH).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other("a daemon did not detach")) }
    }

    /// `count` processes in all, the server's own children among them.
    fn forest(&mut self, node: &Sleeper, count: usize, fan: usize) -> io::Result<()> {
        let children = count.min(fan);
        for index in 0..children {
            let below = (count - children) / children + usize::from(index < (count - children) % children);
            self.child(Sleeper { below, fan, ..node.clone() })?;
        }
        Ok(())
    }

    /// The browser or tmux that must be kept: another program's name, a session of its own, a child of its own.
    fn keeper(&mut self, name: &OsStr, dir: Option<&Path>) -> io::Result<()> {
        let dir = dir.ok_or_else(|| io::Error::other("`--keep-alive-child` needs `--keep-dir`"))?;
        let program = dir.join(name);
        // A plain user may not link what another owns; the copy is safe from ETXTBSY, since nobody forks here meanwhile.
        if fs::hard_link(&self.program, &program).is_err() {
            fs::copy(&self.program, &program)?;
        }
        let mut pids = program.clone().into_os_string();
        pids.push(".pids");
        let sleeper = Sleeper { own_session: true, below: 1, fan: 1, ..Sleeper::default() };
        let sleeper = Sleeper { pid_file: Some(pids.into()), ..self.reporting(sleeper) };
        sleeper.command(&program.into_os_string(), helper::SLEEP).spawn().map(drop)
    }

    /// One lineage of a storm. Its first generation is reaped here, the others by whoever adopts them.
    fn lineage(&mut self, period_micros: u64, ignores_term: bool) -> io::Result<()> {
        let mut command = if ignores_term {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", signals::SHELL_IGNORES_POLITE_ONES, "sh"]).arg(&self.program);
            shell
        } else {
            Command::new(&self.program)
        };
        command.arg(hop::NAME).arg(period_micros.to_string()).arg(self.up.expect(1)).stdin(Stdio::null());
        command.status().map(drop)
    }
}
