//! From a [`Command`] to a running, contained server; or to an error, with nothing left behind.
//!
//! ```text
//! check ─▶ write the record ─▶ make the cgroup leaf ─▶ fill the board ─▶ launch the outer guardian ─▶ hear "started"
//! ```
//!
//! The session is written down before a child exists. Until the guardian runs, what was made is undone here; from then
//! on the guardians undo it, also if we are killed in the middle.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use crate::owner::command::{Command, Recording};
use crate::owner::link::Link;
use crate::owner::start_error::{StartError, resource_error, stage_error};
use crate::owner::stdio::{Direction, Ends};
use crate::owner::strength::{Layer, Use};
use crate::owner::texts::{Texts, on_end_argv};
use crate::process::boot_time::ticks_since_boot;
use crate::process::identity::{BootId, ProcessIdentity};
use crate::record::cookie::SessionId;
use crate::record::runtime_dir::{OwnRecord, RuntimeDir};
use crate::record::session_record::Record;
use crate::shared::board::{Board, NO_FD, STRINGS_AT, Word, flag, packet};
use crate::sweep::execution::leaf_name;
use crate::sys::{self, Heard};

/// How long the guardians may take to undo a start that failed.
const PATIENCE_WITH_FAILURE: Duration = Duration::from_secs(60);

/// What [`start`] gives: the link to the guardians, and our ends of the server's files.
pub(crate) struct Started {
    pub(crate) link: Link,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

/// Starts it. A layer that is only wanted if it can be had, and that fails half-way, is left out at a second attempt.
pub(crate) fn start(command: &Command) -> Result<Started, StartError> {
    if !sys::proc_is_ours() {
        return Err(StartError::ForeignProc { program: command.name() });
    }
    if BootId::current().is_err_and(|error| error.kind() == io::ErrorKind::Unsupported) {
        return Err(StartError::PartialProc { program: command.name() });
    }
    check_file_size_limit(command)?;
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

/// The guardians' image and the board are files in memory, and the kernel's limit holds for these too.
fn check_file_size_limit(command: &Command) -> Result<(), StartError> {
    let Some(limit) = sys::file_size_limit() else { return Ok(()) };
    // The names of the record and of the leaf are not chosen yet; neither has more than a few dozen bytes.
    const NAMES: usize = 256;
    let board = STRINGS_AT + Texts::of(command, "", "")?.bytes.len() + NAMES;
    let needed = board.max(sys::image_size()) as u64;
    if limit >= needed {
        return Ok(());
    }
    Err(StartError::FileSizeLimit { program: command.name(), limit, needed })
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
            return Err(StartError::KeepImpossible { program: command.name(), layer });
        }
        let available = if layer == Layer::Landlock { sys::sealing_is_available() } else { Ok(()) };
        match available {
            Ok(()) if !spares_nobody => layers.push(layer),
            Err(why) if wanted == Use::Required => {
                return Err(StartError::LayerUnavailable { program: command.name(), layer, why });
            }
            _ => {}
        }
    }
    Ok(layers)
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

    let server = match hear_start(&socket) {
        Ok(Some(server)) => server,
        // Our end goes first: whatever runs by now is ended by the guardians for that.
        Ok(None) => {
            drop(socket);
            outer.reap(PATIENCE_WITH_FAILURE);
            return Err(stage_error(command, shared.board()));
        }
        Err(error) => {
            drop(socket);
            outer.reap(PATIENCE_WITH_FAILURE);
            return Err(failed(error));
        }
    };
    made.keep = true;
    let link = Link::new(record, made.record.take(), shared, socket, outer, server, command);
    Ok(Started { link, stdin: our_stdin, stdout: our_stdout, stderr: our_stderr })
}

/// Waits for the word of a guardian: the server's pidfd, or nothing if it could not be started.
fn hear_start(socket: &sys::Socket) -> io::Result<Option<OwnedFd>> {
    loop {
        sys::wait_readable(socket.as_fd(), None)?;
        match socket.hear()? {
            Heard::Packet(packet::STARTED, Some(server)) => return Ok(Some(server)),
            // The kernel drops a file for which the receiver has no number left.
            Heard::Packet(packet::STARTED, None) => return Err(sys::out_of_files()),
            Heard::Packet(..) | Heard::Closed => return Ok(None),
            Heard::Nothing => {}
        }
    }
}

/// Chooses the session's name, writes the record under it and then makes the leaf that the record names, so that nothing
/// of ours is ever on the machine that no record leads to. The name is free: the record's file is made only if there is
/// none of that name.
fn write_down(command: &Command, layers: &[Layer]) -> Result<(Record, Made), StartError> {
    const NAMES_TRIED: u32 = 64;
    let failed = |source| resource_error(command, source);
    let mut record = Record {
        id: SessionId::choose(None, 0),
        label: command.label.clone(),
        owner: ProcessIdentity::of(std::process::id()).map_err(failed)?,
        started_ticks: ticks_since_boot(),
        pid_namespace: sys::pid_namespace().map_err(failed)?,
        leaf: None,
        on_end: on_end_argv(command)?,
        on_end_patience: command.on_end_patience,
        keep: command.keep.clone(),
        processes: Vec::new(),
        kept: Vec::new(),
        ended: false,
    };
    let mut made = Made { record: None, leaf: None, keep: false };
    let mut tries = 0;
    let place = loop {
        let random = sys::random_u64().map_err(failed)?;
        // Sessions deep inside others have few names to choose from. When all seem taken, better no cookie than one
        // that another session has.
        let cookies = if tries < NAMES_TRIED { sys::inherited_cookie() } else { Some(0) };
        tries += 1;
        record.id = SessionId::choose(cookies, random);
        let place = layers.contains(&Layer::Cgroup).then(|| sys::leaf_path(&leaf_name(record.id)));
        record.leaf = place.as_ref().and_then(|place| place.as_ref().ok().cloned());
        made.record = match record_in(command, &record)? {
            Written::NameTaken => continue,
            // Inside another session names are few, and only a record tells which are taken.
            Written::Nowhere if tries < NAMES_TRIED && cookies.is_some() => {
                tries = NAMES_TRIED;
                continue;
            }
            Written::Nowhere => None,
            Written::Down(own) => Some(own),
        };
        break place;
    };
    if let Some(place) = place {
        made.leaf = make_leaf(command, place)?;
        record.leaf = made.leaf.as_ref().map(|leaf| leaf.path.clone());
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
        Recording::InUserFolder => (RuntimeDir::of_user(), false),
        Recording::In(folder) => (Ok(folder.clone()), true),
        Recording::Off => return Ok(Written::Nowhere),
    };
    let created = folder.and_then(|folder| OwnRecord::create(&folder, record));
    match created {
        Ok(Some(own)) => Ok(Written::Down(own)),
        Ok(None) => Ok(Written::NameTaken),
        // A shortage passes; to start weaker for it would not be worth it.
        Err(source) if sys::Shortage::of(&source) != sys::Shortage::Other => {
            Err(resource_error(command, source))
        }
        Err(source) if must => Err(StartError::Record { folder: record_folder(command), source }),
        // Weaker, and the strength says so.
        Err(_) => Ok(Written::Nowhere),
    }
}

fn record_folder(command: &Command) -> PathBuf {
    match &command.recording {
        Recording::In(folder) => folder.path().to_path_buf(),
        Recording::InUserFolder | Recording::Off => PathBuf::new(),
    }
}

fn make_leaf(
    command: &Command,
    place: Result<PathBuf, sys::NoLeaf>,
) -> Result<Option<sys::Leaf>, StartError> {
    match place.and_then(|path| sys::make_leaf(&path)) {
        Ok(leaf) => Ok(Some(leaf)),
        Err(sys::NoLeaf { source: Some(source), .. })
            if sys::Shortage::of(&source) != sys::Shortage::Other =>
        {
            Err(resource_error(command, source))
        }
        Err(sys::NoLeaf { why, .. }) if command.wants(Layer::Cgroup) == Use::Required => {
            Err(StartError::LayerUnavailable { program: command.name(), layer: Layer::Cgroup, why })
        }
        Err(_) => Ok(None),
    }
}

fn fill(board: Board<'_>, command: &Command, layers: &[Layer], record: &Record, texts: &Texts) {
    let bit = |layer, bit| if layers.contains(&layer) { bit } else { 0 };
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    let flags = bit(Layer::Guardian, flag::SUBREAPER)
        | bit(Layer::Landlock, flag::SEALED)
        | bit(Layer::Pidns, flag::STRICT)
        | if command.cwd.is_some() { flag::HAS_CWD } else { 0 }
        | if command.wants(Layer::Cgroup) == Use::Required { flag::LEAF_REQUIRED } else { 0 };
    board.set(Word::Flags, flags);
    board.set(Word::Cookie, record.id.cookie().unwrap_or(0));
    board.set(Word::Grace, nanos(command.ladder.grace));
    board.set(Word::KillAfter, nanos(command.ladder.kill_after));
    board.set(Word::Verify, nanos(command.ladder.verify));
    board.set(Word::OnEndPatience, nanos(command.on_end_patience));
    board.set(Word::HighestPid, sys::highest_pid());
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
