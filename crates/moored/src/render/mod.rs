//! What people and programs read: tables, JSON, trees. All of stdout goes through here.

mod style;
mod table;
mod tree;
mod values;

pub(crate) use style::{BAD, DIM, GOOD, STRONG, paint};
pub(crate) use table::Table;
pub(crate) use tree::{Node, tree};
pub(crate) use values::{ago, bytes, command_line, percent, short_ids, span};

use std::io::{self, Write as _};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde_json::{Map, Value};

/// The form of all JSON that is printed. It grows when something in it changes its meaning, not when something is added.
const SCHEMA_VERSION: u32 = 1;

/// Prints this, with colours only at a terminal.
pub(crate) fn out(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Writes this to stderr. A closed stderr is no error, and a full one is not waited for: a client may leave it unread for
/// ever, and moored must be able to exit all the same.
pub(crate) fn say(text: &str) {
    let mut stderr = anstream::stderr().lock();
    // A pipe that poll calls writable takes at least this many bytes (PIPE_BUF is 4096).
    for part in format!("{text}\n").as_bytes().chunks(512) {
        if !has_room(&io::stderr()) || stderr.write_all(part).is_err() {
            return;
        }
    }
}

/// Whether something can be written there at once, or soon.
fn has_room(to: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(to, PollFlags::OUT)];
    let write_timeout = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    poll(&mut fds, Some(&write_timeout)).is_ok_and(|ready| ready > 0)
}

/// Prints one JSON object with its version and this under that name.
pub(crate) fn json(name: &str, value: &impl Serialize) -> io::Result<()> {
    let mut object = Map::new();
    object.insert("schema_version".to_owned(), SCHEMA_VERSION.into());
    object.insert(name.to_owned(), serde_json::to_value(value)?);
    raw_line(&Value::Object(object))
}

/// Prints one line of JSON for one of many; the version stands first in each.
pub(crate) fn json_line(value: &impl Serialize) -> io::Result<()> {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        schema_version: u32,
        #[serde(flatten)]
        value: &'a T,
    }
    raw_line(&Versioned { schema_version: SCHEMA_VERSION, value })
}

/// Past the colours: JSON has none, and a log line within may hold anything.
fn raw_line(value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    raw(&line)
}

/// Prints bytes as they are.
pub(crate) fn raw(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}
