//! From a spec to what containment starts.

use std::fs::File;
use std::path::PathBuf;

use moored_containment::{Command, Stdio};

use super::ServerSpec;
use crate::launch::ConnectError;

/// Where a server's standard error goes.
///
/// ```
/// use moored_client::{ServerSpec, Stderr};
/// let quiet = ServerSpec::new("files", "files-server").stderr(Stderr::Null);
/// assert_ne!(quiet, ServerSpec::new("files", "files-server"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stderr {
    /// To ours.
    #[default]
    Inherit,
    /// Nowhere.
    Null,
    /// To the end of this file, which is made if it is not there.
    File(PathBuf),
}

impl ServerSpec {
    /// What containment starts, with pipes for the protocol.
    pub(crate) fn command(&self) -> Result<Command, ConnectError> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).label(&self.name).stdin(Stdio::Pipe).stdout(Stdio::Pipe).ladder(self.ladder);
        command.stderr(match &self.stderr {
            Stderr::Inherit => Stdio::Inherit,
            Stderr::Null => Stdio::Null,
            Stderr::File(path) => match File::options().append(true).create(true).open(path) {
                Ok(file) => file.into(),
                Err(source) => return Err(ConnectError::Stderr { path: path.clone(), source }),
            },
        });
        if self.clear_env {
            command.env_clear();
        }
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        for program in &self.keep {
            command.keep(program);
        }
        for (layer, wanted) in &self.layers {
            command.layer(*layer, *wanted);
        }
        Ok(command)
    }
}
