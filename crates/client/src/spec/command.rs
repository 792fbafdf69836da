//! From a spec to what containment starts: its launch description, with the file for its standard error opened.

use std::fs::File;
use std::path::PathBuf;

use moored_containment::{Command, Stdio};

use super::server_spec::ServerSpec;
use crate::server::ConnectError;

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
        let mut command = self.launch.command();
        match &self.stderr {
            Stderr::Inherit => {}
            Stderr::Null => {
                command.stderr(Stdio::Null);
            }
            Stderr::File(path) => {
                let file = File::options().append(true).create(true).open(path);
                let file = file.map_err(|source| ConnectError::Stderr { path: path.clone(), source })?;
                command.stderr(file.into());
            }
        }
        Ok(command)
    }
}
