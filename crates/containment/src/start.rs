//! From a [`Command`] to a running, contained server; or to an error, with nothing left behind.
//!
//! ```text
//! check ─▶ write the record ─▶ make the cgroup leaf ─▶ fill the board ─▶ launch the outer guardian ─▶ hear "started"
//! ```
//!
//! The session is written down before a child exists. Until the guardian runs, what was made is undone here; from then
//! on the guardians undo it, also if we are killed in the middle.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::board::{Board, NO_FD, Word, flag, packet, stage};
use crate::command::{Command, Recording};
use crate::cookie::SessionId;
use crate::identity::ProcessIdentity;
use crate::link::Link;
use crate::record::{OwnRecord, Record, RuntimeDir};
use crate::stdio::{Direction, Ends};
use crate::strength::{Layer, Use};
use crate::sweep::leaf_name;
use crate::sys::{self, Heard};

/// Why a server was not started. Nothing is left of the attempt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no such program.
    #[error("failed to start `{program}`: no such program{}", if program.contains('/') { "" } else { " in PATH" })]
    NotFound {
        /// As it was given.
        program: String,
    },
    /// It is there, but cannot be executed.
    #[error("failed to execute `{program}`")]
    NotExecutable {
        /// As it was given.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// The working directory cannot be entered.
    #[error("failed to enter the working directory `{}`", path.display())]
    WorkingDirectory {
        /// As it was given.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A string with a NUL in it, or a variable without a proper name.
    #[error("failed to pass on {what}: {why}")]
    InvalidInput {
        /// Which one.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Too many open files, in this process or on this machine.
    #[error("failed to start `{program}`: out of file descriptors (raise `ulimit -n`, or close some)")]
    OutOfFiles {
        /// As it was given.
        program: String,
        /// The kernel's word.
        source: io::Error,
    },
    /// Too many processes, of this user or on this machine.
    #[error(
        "failed to start `{program}`: out of processes (raise `ulimit -u` or the pids limit, or end some)"
    )]
    OutOfProcesses {
        /// As it was given.
        program: String,
        /// The kernel's word.
        source: io::Error,
    },
    /// A layer that was required cannot be had.
    #[error("failed to contain `{program}` by {layer}: {why}")]
    LayerUnavailable {
        /// As it was given.
        program: String,
        /// Which layer.
        layer: Layer,
        /// Why not.
        why: String,
    },
    /// A kept program and a layer that cannot spare anybody.
    #[error("failed to contain `{program}`: {layer} cannot spare anybody, so nothing can be kept")]
    KeepImpossible {
        /// As it was given.
        program: String,
        /// Which layer.
        layer: Layer,
    },
    /// The session had to be written down in a given folder, and could not be.
    #[error("failed to write the session's record in `{}`", folder.display())]
    Record {
        /// Where.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The guardians could not be set up.
    #[error("failed to set up the guardians of `{program}`")]
    Guardian {
        /// As it was given.
        program: String,
        /// Why not.
        source: io::Error,
    },
}

impl StartError {
    /// The exit code that a wrapper should end with: 127 not found, 126 not executable, 125 for everything else.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            _ => 125,
        }
    }
}

/// What [`start`] gives: the link to the guardians, and our ends of the server's files.
pub(crate) struct Started {
    pub(crate) link: Link,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

/// Starts it. A layer that is only wanted if it can be had, and that fails half-way, is left out at a second attempt.
pub(crate) fn start(command: &Command) -> Result<Started, StartError> {
    let mut layers = choose_layers(command)?;
    loop {
        match attempt(command, &layers) {
            Err(StartError::LayerUnavailable { layer, .. })
                if command.wants(layer) == Use::IfAvailable && layers.contains(&layer) =>
            {
                layers.retain(|l| *l != layer);
            }
            other => return other,
        }
    }
}

// === checking ===

fn name_of(command: &Command) -> String {
    command.program.to_string_lossy().into_owned()
}

fn choose_layers(command: &Command) -> Result<Vec<Layer>, StartError> {
    let mut layers = Vec::new();
    for layer in Layer::ALL {
        let wanted = command.wants(layer);
        if wanted == Use::Off {
            continue;
        }
        let spares_nobody = matches!(layer, Layer::Landlock | Layer::Pidns) && !command.keep.is_empty();
        if spares_nobody && wanted == Use::Required {
            return Err(StartError::KeepImpossible { program: name_of(command), layer });
        }
        let available = if layer == Layer::Landlock { sys::sealing_is_available() } else { Ok(()) };
        match available {
            Ok(()) if !spares_nobody => layers.push(layer),
            Err(why) if wanted == Use::Required => {
                return Err(StartError::LayerUnavailable { program: name_of(command), layer, why });
            }
            _ => {}
        }
    }
    Ok(layers)
}

/// The strings for the board, in the order of [`Word`], and how many of each kind.
struct Texts {
    bytes: Vec<u8>,
    counts: Vec<(Word, usize)>,
}

impl Texts {
    fn put(&mut self, what: &str, text: &[u8]) -> Result<(), StartError> {
        let text = CString::new(text).map_err(|_| StartError::InvalidInput {
            what: what.to_owned(),
            why: "it has a NUL byte in it",
        })?;
        self.bytes.extend_from_slice(text.as_bytes_with_nul());
        Ok(())
    }

    fn put_all<'a>(
        &mut self,
        word: Word,
        what: &str,
        texts: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), StartError> {
        let mut count = 0;
        for text in texts {
            self.put(what, text)?;
            count += 1;
        }
        self.counts.push((word, count));
        Ok(())
    }

    fn of(command: &Command, record_name: &str, leaf_name: &str) -> Result<Self, StartError> {
        let mut texts = Self { bytes: Vec::new(), counts: Vec::new() };
        texts.put("the record's name", record_name.as_bytes())?;
        texts.put("the leaf's name", leaf_name.as_bytes())?;
        let cwd = command.cwd.as_deref().unwrap_or(Path::new(""));
        texts.put("the working directory", cwd.as_os_str().as_bytes())?;

        let ours: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let environment = server_environment(command, &ours)?;
        let path = environment.iter().find_map(|(name, value)| (name == "PATH").then_some(value.as_os_str()));
        let candidates = candidates(&command.program, path);
        texts.put_all(
            Word::Candidates,
            "the program",
            candidates.iter().map(|c| c.as_os_str().as_bytes()),
        )?;
        let arguments = [&command.program].into_iter().chain(&command.args);
        texts.put_all(Word::Arguments, "an argument", arguments.map(|a| a.as_bytes()))?;
        let environment: Vec<Vec<u8>> = environment.iter().map(joined).collect();
        texts.put_all(Word::Environment, "a variable", environment.iter().map(Vec::as_slice))?;
        texts.put_all(Word::KeepRules, "a kept program", command.keep.iter().map(|k| k.as_bytes()))?;
        let on_end = on_end_argv(command)?;
        texts.put_all(Word::OnEndArguments, "an argument of on_end", on_end.iter().map(|a| a.as_bytes()))?;
        let ours: Vec<Vec<u8>> =
            if on_end.is_empty() { Vec::new() } else { ours.iter().map(joined).collect() };
        texts.put_all(Word::OnEndEnvironment, "a variable", ours.iter().map(Vec::as_slice))?;
        Ok(texts)
    }
}

fn joined((name, value): &(OsString, OsString)) -> Vec<u8> {
    [name.as_bytes(), b"=", value.as_bytes()].concat()
}

/// Ours, with the command's changes.
fn server_environment(
    command: &Command,
    ours: &[(OsString, OsString)],
) -> Result<Vec<(OsString, OsString)>, StartError> {
    let kept = ours.iter().filter(|(name, _)| !command.clear_env && !command.env.contains_key(name)).cloned();
    let mut all: Vec<_> = kept.collect();
    for (name, value) in &command.env {
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            let what = format!("the variable `{}`", name.to_string_lossy());
            return Err(StartError::InvalidInput { what, why: "it has no proper name" });
        }
        all.extend(value.clone().map(|value| (name.clone(), value)));
    }
    Ok(all)
}

/// Where the program may be, in the order in which execvp looks.
fn candidates(program: &OsStr, path: Option<&OsStr>) -> Vec<PathBuf> {
    const NO_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
    if program.is_empty() {
        return Vec::new();
    }
    if program.as_bytes().contains(&b'/') {
        return vec![PathBuf::from(program)];
    }
    let path = path.unwrap_or(OsStr::new(NO_PATH));
    // An empty part means the working directory.
    let folder = |part: &[u8]| PathBuf::from(OsStr::from_bytes(if part.is_empty() { b"." } else { part }));
    path.as_bytes().split(|b| *b == b':').map(|part| folder(part).join(program)).collect()
}

/// The `on_end` command with its program resolved now: later there may be nobody to tell that it is missing.
fn on_end_argv(command: &Command) -> Result<Vec<OsString>, StartError> {
    let Some((program, rest)) = command.on_end.split_first() else { return Ok(Vec::new()) };
    let path = std::env::var_os("PATH");
    let found = candidates(program, path.as_deref()).into_iter().find(|candidate| candidate.is_file());
    let found = found.and_then(|found| std::path::absolute(found).ok());
    let found =
        found.ok_or_else(|| StartError::NotFound { program: program.to_string_lossy().into_owned() })?;
    Ok([found.into_os_string()].into_iter().chain(rest.iter().cloned()).collect())
}

// === doing ===

/// What was made, and is to be undone unless the guardians take it over.
struct Made {
    record: Option<OwnRecord>,
    leaf: Option<sys::Leaf>,
    keep: bool,
}

impl Drop for Made {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        if let Some(record) = &self.record {
            record.remove();
        }
        if let Some(leaf) = &self.leaf {
            let _ = leaf.remove();
        }
    }
}

fn attempt(command: &Command, layers: &[Layer]) -> Result<Started, StartError> {
    let failed = |source| resource_error(command, source);
    let stdin = command.stdin.open(Direction::ToServer, sys::stdio()[0]).map_err(failed)?;
    let stdout = command.stdout.open(Direction::FromServer, sys::stdio()[1]).map_err(failed)?;
    let stderr = command.stderr.open(Direction::FromServer, sys::stdio()[2]).map_err(failed)?;

    let (record, mut made) = write_down(command, layers)?;
    let name = made.record.as_ref().map_or("", |r| r.name.as_str());
    let leaf = if made.leaf.is_some() { leaf_name(record.id) } else { String::new() };
    let texts = Texts::of(command, name, &leaf)?;
    let mut shared = sys::SharedBoard::create(&texts.bytes).map_err(failed)?;
    let (socket, theirs) = sys::socket_pair().map_err(failed)?;
    let owner = sys::own_pidfd().map_err(failed)?;
    fill(shared.board(), command, layers, &record, &texts);
    let files = hand_over(shared.board(), &made, theirs.as_fd(), owner.as_fd(), [&stdin, &stdout, &stderr]);
    let board_file = shared.file().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    let fallback = made.record.as_ref().map(|r| r.folder.path().to_path_buf());
    let outer =
        sys::launch(&record.id.to_string(), board_file, &files, fallback.as_deref()).map_err(failed)?;
    drop(files);
    drop((theirs, owner));
    shared.close_file();
    let (our_stdin, our_stdout, our_stderr) = (stdin.ours, stdout.ours, stderr.ours);
    drop((stdin.server, stdout.server, stderr.server));

    let heard = loop {
        let ready = sys::wait_readable(socket.as_fd(), None);
        match ready.and_then(|_| socket.hear()).map_err(failed)? {
            Heard::Packet(packet::STARTED, Some(server)) => break Some(server),
            Heard::Packet(..) | Heard::Closed => break None,
            Heard::Nothing => {}
        }
    };
    let Some(server) = heard else {
        outer.reap();
        return Err(stage_error(command, shared.board()));
    };
    made.keep = true;
    let link = Link::new(record, made.record.take(), shared, socket, outer, server, command);
    Ok(Started { link, stdin: our_stdin, stdout: our_stdout, stderr: our_stderr })
}

/// Chooses the session's name, writes the record under it and then makes the leaf that the record names, so that nothing
/// of ours is ever on the machine that no record leads to. The name is free: the record's file is made only if there is
/// none of that name.
fn write_down(command: &Command, layers: &[Layer]) -> Result<(Record, Made), StartError> {
    let failed = |source| resource_error(command, source);
    let mut record = Record {
        id: SessionId::choose(None, 0),
        label: command.label.clone(),
        owner: ProcessIdentity::of(std::process::id()).map_err(failed)?,
        started_ticks: sys::now_in_ticks(),
        leaf: None,
        on_end: on_end_argv(command)?,
        processes: Vec::new(),
        kept: Vec::new(),
        ended: false,
    };
    let mut made = Made { record: None, leaf: None, keep: false };
    let leaf = |id| {
        if layers.contains(&Layer::Cgroup) { sys::leaf_path(&leaf_name(id)) } else { Err(String::new()) }
    };
    let mut tries = 0;
    let place = loop {
        let random = sys::random_u64().map_err(failed)?;
        // Sessions deep inside others have few names to choose from. When all seem taken, better no cookie than one
        // that another session has.
        let cookies = if tries < 64 { sys::inherited_cookie() } else { Some(0) };
        tries += 1;
        record.id = SessionId::choose(cookies, random);
        let place = leaf(record.id);
        record.leaf = place.as_ref().ok().cloned();
        made.record = match record_in(command, &record)? {
            Written::NameTaken => continue,
            Written::Nowhere => None,
            Written::Down(own) => Some(own),
        };
        break place;
    };
    if layers.contains(&Layer::Cgroup) {
        made.leaf = make_leaf(command, place)?;
        if made.leaf.is_none() {
            record.leaf = None;
        }
    }
    Ok((record, made))
}

enum Written {
    Down(OwnRecord),
    NameTaken,
    Nowhere,
}

fn record_in(command: &Command, record: &Record) -> Result<Written, StartError> {
    let (folder, must) = match &command.recording {
        Recording::InUserFolder => (RuntimeDir::of_user().ok(), false),
        Recording::In(folder) => (Some(folder.clone()), true),
        Recording::Off => (None, false),
    };
    let Some(folder) = folder else { return Ok(Written::Nowhere) };
    match OwnRecord::create(&folder, record) {
        Ok(Some(own)) => Ok(Written::Down(own)),
        Ok(None) => Ok(Written::NameTaken),
        Err(source) if must => Err(StartError::Record { folder: folder.path().to_path_buf(), source }),
        // Weaker, and the strength says so.
        Err(_) => Ok(Written::Nowhere),
    }
}

fn make_leaf(command: &Command, place: Result<PathBuf, String>) -> Result<Option<sys::Leaf>, StartError> {
    match place.and_then(|path| sys::make_leaf(&path)) {
        Ok(leaf) => Ok(Some(leaf)),
        Err(why) if command.wants(Layer::Cgroup) == Use::Required => {
            Err(StartError::LayerUnavailable { program: name_of(command), layer: Layer::Cgroup, why })
        }
        Err(_) => Ok(None),
    }
}

fn fill(board: Board<'_>, command: &Command, layers: &[Layer], record: &Record, texts: &Texts) {
    let bit = |layer, bit| if layers.contains(&layer) { bit } else { 0 };
    let nanos = |d: std::time::Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    let flags = bit(Layer::Guardian, flag::SUBREAPER)
        | bit(Layer::Landlock, flag::SEALED)
        | bit(Layer::Pidns, flag::STRICT)
        | if command.cwd.is_some() { flag::HAS_CWD } else { 0 };
    board.set(Word::Flags, flags);
    board.set(Word::Cookie, record.id.cookie().unwrap_or(0));
    board.set(Word::Grace, nanos(command.ladder.grace));
    board.set(Word::KillAfter, nanos(command.ladder.kill_after));
    board.set(Word::Verify, nanos(command.ladder.verify));
    board.set(Word::OnEndPatience, nanos(command.on_end_patience));
    board.set(Word::StringBytes, texts.bytes.len() as u64);
    for (word, count) in &texts.counts {
        board.set(*word, *count as u64);
    }
}

/// Writes on the board which file is which, and gathers them for the launch.
fn hand_over<'a>(
    board: Board<'_>,
    made: &'a Made,
    socket: BorrowedFd<'a>,
    owner: BorrowedFd<'a>,
    stdio: [&'a Ends; 3],
) -> Vec<BorrowedFd<'a>> {
    let record = made.record.as_ref();
    let leaf = made.leaf.as_ref();
    let [stdin, stdout, stderr] = stdio.map(|ends| Some(ends.server.as_fd()));
    let all = [
        (Word::OwnerSocket, Some(socket)),
        (Word::OwnerPidfd, Some(owner)),
        (Word::RecordFile, record.and_then(OwnRecord::file)),
        (Word::RuntimeFolder, record.map(|r| r.folder.fd())),
        (Word::CgroupLeaf, leaf.map(sys::Leaf::leaf)),
        (Word::CgroupParent, leaf.map(sys::Leaf::parent)),
        (Word::Stdin, stdin),
        (Word::Stdout, stdout),
        (Word::Stderr, stderr),
    ];
    let number = |fd: Option<BorrowedFd<'_>>| fd.map_or(NO_FD, |fd| u64::from(fd.as_raw_fd().unsigned_abs()));
    for (word, fd) in &all {
        board.set(*word, number(*fd));
    }
    all.into_iter().filter_map(|(_, fd)| fd).collect()
}

// === errors ===

fn resource_error(command: &Command, source: io::Error) -> StartError {
    let program = name_of(command);
    match source.raw_os_error().map(sys::Shortage::of) {
        Some(sys::Shortage::Files) => StartError::OutOfFiles { program, source },
        Some(sys::Shortage::Processes) => StartError::OutOfProcesses { program, source },
        _ => StartError::Guardian { program, source },
    }
}

/// What the guardians wrote on the board before they gave up.
fn stage_error(command: &Command, board: Board<'_>) -> StartError {
    let program = name_of(command);
    let errno = i32::try_from(board.get(Word::StageError)).unwrap_or(0);
    let source = io::Error::from_raw_os_error(errno);
    let layer =
        |layer| StartError::LayerUnavailable { program: program.clone(), layer, why: source.to_string() };
    match board.get(Word::Stage) {
        stage::FORK_INNER
            if board.has(Word::Flags, flag::STRICT)
                && sys::Shortage::of(errno) != sys::Shortage::Processes =>
        {
            layer(Layer::Pidns)
        }
        stage::NAMESPACE => layer(Layer::Pidns),
        stage::SEAL => layer(Layer::Landlock),
        stage::CWD => StartError::WorkingDirectory { path: command.cwd.clone().unwrap_or_default(), source },
        stage::EXEC if source.kind() == io::ErrorKind::NotFound && !exists(command) => {
            StartError::NotFound { program }
        }
        // A script that is there, but whose interpreter is not, is "not found" to the kernel.
        stage::EXEC => StartError::NotExecutable { program, source },
        _ => resource_error(command, source),
    }
}

/// Whether any place that was tried has a file of that name.
fn exists(command: &Command) -> bool {
    let changed = command.env.get(OsStr::new("PATH")).cloned();
    let path = changed.unwrap_or_else(|| if command.clear_env { None } else { std::env::var_os("PATH") });
    let base = command.cwd.clone().unwrap_or_default();
    candidates(&command.program, path.as_deref()).iter().any(|candidate| base.join(candidate).exists())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn a_name_is_looked_for_in_every_part_of_the_path() {
        let found = candidates(OsStr::new("node"), Some(OsStr::new("/a::/b")));
        assert_eq!(found, [Path::new("/a/node"), Path::new("./node"), Path::new("/b/node")]);
        assert_eq!(candidates(OsStr::new("./node"), Some(OsStr::new("/a"))), [Path::new("./node")]);
        assert!(candidates(OsStr::new(""), None).is_empty());
    }

    #[test]
    fn the_environment_is_ours_but_for_what_is_changed() {
        let ours = [("A".into(), "1".into()), ("B".into(), "2".into())];
        let mut command = Command::new("x");
        command.env("B", "3").env_remove("A").env("C", "4");
        let env = server_environment(&command, &ours).expect("proper names");
        assert_eq!(env, [("B".into(), "3".into()), ("C".into(), "4".into())]);
        command.env_clear().env("", "x");
        assert!(matches!(server_environment(&command, &ours), Err(StartError::InvalidInput { .. })));
    }

    #[test]
    fn a_text_with_nul_is_refused_by_name() {
        let mut command = Command::new("x");
        command.arg(OsString::from_vec(b"a\0b".to_vec()));
        let error = Texts::of(&command, "", "").err().expect("refused");
        assert_eq!(error.to_string(), "failed to pass on an argument: it has a NUL byte in it");
    }
}
