//! Registering a session: a locked file in the user's runtime folder that says what does not change. Finding registered
//! sessions is in `registered_run`, the control socket beside the file in `control_server`.
//!
//! The process that runs the session holds the lock until its end, so a file whose lock can be taken is that of a session that
//! was killed. Containment's own record is another file: it exists while there is a process tree, and a sleeping server has
//! none.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use moored_containment::RuntimeDir;

use crate::run_id::RunId;
use crate::run_info::RunInfo;

/// The ending of a registration file.
pub(crate) const FILE: &str = "run";
/// The ending of a control socket.
pub(crate) const SOCKET: &str = "sock";
/// The ending of a registration file that has not got its name yet.
pub(crate) const DRAFT: &str = "draft";

/// How often a registration is tried whose draft is removed by another process.
const ATTEMPTS: u32 = 3;

/// The registration of a session of this process. Dropping it removes the file and the control socket.
#[derive(Debug)]
pub struct RunRegistration {
    folder: PathBuf,
    run: RunId,
    _lock: File,
}

impl RunRegistration {
    /// Registers a session. The file gets its name only when it is complete and locked.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn take(folder: &RuntimeDir, info: &RunInfo) -> io::Result<Self> {
        for attempt in 1..ATTEMPTS {
            match Self::try_take(folder.path(), info, attempt) {
                // A concurrent `remove_dead` had the draft's lock before us, or has deleted the draft.
                Err(error) if is_draft_lost(&error) => {}
                taken => return taken,
            }
        }
        Self::try_take(folder.path(), info, ATTEMPTS)
    }

    fn try_take(folder: &Path, info: &RunInfo, attempt: u32) -> io::Result<Self> {
        // A draft has an ending of its own: `RegisteredRun::all` would try the lock of a `.run` file before we have it, and
        // take the session for a dead one.
        let draft = folder.join(format!(".{}.{attempt}.{FILE}.{DRAFT}", info.run));
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
        // Never waits: the process that has the lock may be stopped, and our caller may be on a runtime.
        file.try_lock()?;
        let written = file
            .write_all(&serde_json::to_vec(info)?)
            .and_then(|()| fs::rename(&draft, path_of(folder, info.run, FILE)));
        if let Err(error) = written {
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        Ok(Self { folder: folder.to_path_buf(), run: info.run, _lock: file })
    }

    /// Where the control socket belongs.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        path_of(&self.folder, self.run, SOCKET)
    }
}

impl Drop for RunRegistration {
    fn drop(&mut self) {
        // While we still hold the lock: an unlocked file would read as a session that was killed. Both may be gone already.
        let _ = fs::remove_file(self.socket());
        let _ = fs::remove_file(path_of(&self.folder, self.run, FILE));
    }
}

fn is_draft_lost(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::WouldBlock)
}

pub(crate) fn path_of(folder: &Path, run: RunId, ending: &str) -> PathBuf {
    folder.join(format!("{run}.{ending}"))
}
