//! What to run and by which rules: values, made from argv and settings, that know no clock and no process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::key::{Key, KeyWriter};
use crate::{Rules, masked};

/// One server: its command, where it runs, and the rules for its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    /// What it is called in `ps`, the log and the ledger.
    pub name: String,
    /// Program and arguments, as they were given; never empty.
    pub command: Vec<OsString>,
    /// Where it runs: where we were started.
    pub cwd: PathBuf,
    /// The environment, which is ours unchanged; only for telling entries apart.
    pub env: BTreeMap<OsString, OsString>,
    /// The rules for its life.
    pub rules: Rules,
}

impl ServerSpec {
    /// The command for people and files: secrets are masked.
    #[must_use]
    pub fn masked_command(&self) -> Vec<String> {
        masked(&self.command)
    }

    /// What all instances of the same server share: its name and its command.
    #[must_use]
    pub fn server_key(&self) -> Key {
        KeyWriter::default().string(&self.name).list(&self.command).key()
    }

    /// What all instances of one entry of a client's config share: command, folder and environment.
    #[must_use]
    pub fn entry_key(&self) -> Key {
        KeyWriter::default().list(&self.command).string(&self.cwd).map(self.env.iter()).key()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn time_server() -> ServerSpec {
        ServerSpec {
            name: "time".into(),
            command: vec!["uvx".into(), "mcp-server-time".into()],
            cwd: "/srv".into(),
            env: [("TZ", "UTC"), ("A", "1")].map(|(name, value)| (name.into(), value.into())).into(),
            rules: Rules::default(),
        }
    }

    /// Files of other builds have these numbers in them: a change here makes two builds strangers to each other.
    #[test]
    fn keys_are_the_same_in_every_build() {
        assert_eq!(time_server().server_key().to_string(), "c35e2a5f342c1149");
        assert_eq!(time_server().entry_key().to_string(), "cc3bceea002a08df");
        let no_text = OsString::from_vec(vec![0xff]);
        let other =
            ServerSpec { command: vec!["uvx".into(), no_text], env: BTreeMap::new(), ..time_server() };
        assert_eq!(other.entry_key().to_string(), "a01e223817c6dd5b");
    }

    #[test]
    fn the_name_tells_servers_apart_and_the_environment_tells_entries_apart() {
        let named = ServerSpec { name: "clock".into(), ..time_server() };
        assert_ne!(named.server_key(), time_server().server_key());
        assert_eq!(named.entry_key(), time_server().entry_key());
        let moved = ServerSpec { env: BTreeMap::new(), ..time_server() };
        assert_eq!(moved.server_key(), time_server().server_key());
        assert_ne!(moved.entry_key(), time_server().entry_key());
    }
}
