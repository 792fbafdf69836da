//! Where moored's own log lines go: to stderr, from the level that `--log-level` or `MOORED_LOG` names. Everything else of
//! the program emits through `tracing` and knows nothing of this file. Below that level an event costs one comparison.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use crate::args::{GlobalFlags, LOG_FORMAT, LOG_LEVEL, LogFormat};
use crate::exit::Failure;
use crate::render;
use crate::settings::Layers;

/// Begins to log, for the rest of the process.
pub(crate) fn begin(typed: GlobalFlags) -> Result<(), Failure> {
    let env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let layers = Layers::of_every_command(typed, &env);
    if layers.given(&LOG_LEVEL).is_none() && layers.given(&LOG_FORMAT).is_none() {
        // Every server has a moored of its own: without being asked for, a log costs no memory. Warnings that a user must see
        // do not depend on it.
        return Ok(());
    }
    let (level, format) = (layers.value(&LOG_LEVEL)?, layers.value(&LOG_FORMAT)?);
    let lines = tracing_subscriber::fmt().with_max_level(level).with_writer(Lines::default);
    let begun = match format {
        LogFormat::Text => tracing::subscriber::set_global_default(lines.with_ansi(false).finish()),
        LogFormat::Json => tracing::subscriber::set_global_default(lines.json().finish()),
    };
    // It is the first: nothing else of this program sets one.
    begun.map_err(|error| Failure::to(format_args!("begin to log: {error}")))
}

/// One event's line. It is written at the end, all at once, and dropped if stderr is full: no client has to read it.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let line = String::from_utf8_lossy(&self.0);
        render::say(line.trim_end_matches('\n'));
    }
}
