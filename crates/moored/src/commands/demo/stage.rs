//! What the demo holds: a contained stage with the whole play below it. Looking, killing the client, ending all.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use moored_containment::process::command_line;
use moored_containment::{
    Command, Contained, EndReport, Ladder, ProcessIdentity, ProcessTable, Recording, Stdio, Stdout,
};

use super::parts::{KILL, KILLED, READY};
use crate::exit::Failure;

/// How the client starts its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Plain,
    Moored,
}

impl Way {
    /// The server's command, as it would stand in the client's config.
    fn command(self, program: &OsString) -> Vec<OsString> {
        let server = [program.clone(), "demo-part".into(), "server".into()];
        let prefix: &[&str] = match self {
            Self::Plain => &[],
            // The times are spelled out, so that no settings of the user change what is shown.
            Self::Moored => {
                &["run", "--name", "demo", "--grace", "2s", "--kill-after", "2s", "--idle", "off", "--"]
            }
        };
        let first = (self == Self::Moored).then(|| program.clone());
        first.into_iter().chain(prefix.iter().map(OsString::from)).chain(server).collect()
    }
}

/// One process of the play.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) identity: ProcessIdentity,
    pub(super) parent: u32,
    pub(super) label: String,
}

/// The stage, with all that is below it. Dropping it ends all.
pub(super) struct Stage {
    contained: Contained,
    said: BufReader<Stdout>,
}

impl Stage {
    /// Raises it, and returns when the server has answered its client.
    pub(super) fn start(way: Way) -> Result<Self, Failure> {
        let program = own_program()?.into_os_string();
        let mut contained = Command::new(&program)
            .args(["demo-part", "stage", "--"])
            .args(way.command(&program))
            .stdin(Stdio::Pipe)
            .stdout(Stdio::Pipe)
            // If the demo itself is killed, nothing is given time, also if the stage leaves first.
            .ladder(Ladder::kill().kill_after(Duration::ZERO))
            .recording(Recording::InUserFolder)
            .label("moored-demo")
            .spawn()
            .map_err(|error| Failure::to(format_args!("start the demo: {error}")))?;
        let said = contained.stdout.take().ok_or_else(|| Failure::to("hear the demo's stage"))?;
        let mut stage = Self { contained, said: BufReader::new(said) };
        stage.hear(READY)?;
        Ok(stage)
    }

    /// Kills the client, and says when that was.
    pub(super) fn kill_client(&mut self) -> Result<Instant, Failure> {
        let stdin = self.contained.stdin.as_mut().ok_or_else(|| Failure::to("speak to the demo's stage"))?;
        stdin
            .write_all(KILL.as_bytes())
            .map_err(|error| Failure::to(format_args!("speak to the demo's stage: {error}")))?;
        let at = Instant::now();
        self.hear(KILLED)?;
        Ok(at)
    }

    /// Everybody who lives below the stage, each by identity.
    pub(super) fn look(&self) -> Result<Vec<Member>, Failure> {
        let table = ProcessTable::read()
            .map_err(|error| Failure::to(format_args!("read the process table: {error}")))?;
        let [outer, inner] = self.contained.guardians();
        let ours = [inner, self.contained.identity()];
        let below = table.descendants(&outer).into_iter();
        let below = below.filter(|process| !ours.contains(&process.identity) && !process.is_zombie());
        Ok(below
            .map(|process| Member {
                identity: process.identity,
                parent: process.parent,
                label: label(process.identity.pid, &process.name),
            })
            .collect())
    }

    /// Ends all that is left.
    pub(super) fn end(mut self) -> Result<EndReport, Failure> {
        self.contained
            .end(Ladder::kill())
            .map_err(|error| Failure::to(format_args!("end what the demo started: {error}")))
    }

    fn hear(&mut self, expected: &str) -> Result<(), Failure> {
        let mut line = String::new();
        match self.said.read_line(&mut line) {
            Ok(_) if line == expected => Ok(()),
            Ok(0) => Err(Failure::to("play the demo: its server could not be started")),
            Ok(_) => Err(Failure::to(format_args!("play the demo: {}", line.trim_end()))),
            Err(error) => Err(Failure::to(format_args!("hear the demo's stage: {error}"))),
        }
    }
}

fn own_program() -> Result<PathBuf, Failure> {
    crate::own_program::own_program()
        .map_err(|error| Failure::to(format_args!("find moored's own program: {error}")))
}

/// What a process plays, by its arguments.
fn label(pid: u32, name: &str) -> String {
    let words: Vec<String> =
        command_line(pid).iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "demo-part", "daemon", ..] => "daemon, in a session of its own".to_owned(),
        [_, "demo-part", part, ..] => part.to_owned(),
        [_, "run", ..] => "moored run".to_owned(),
        _ => name.to_owned(),
    }
}
